// SPDX-License-Identifier: GPL-2.0
/*
 * accmem bench: what the memory of a device costs a program, beside ordinary memory.
 *
 * Each operation has a pair of functions: one on the device through libaccmem, as a program
 * would call it, and one on private anonymous memory. Both repeat the operation in the same
 * process, one after the other.
 */
#include <accmem.h>
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "accmem.h"
#include "request.h"

#define BATCHES 5 /* the result is the median of their times */
#define BATCH_NS 20000000ull /* of the first batch, at least */
#define BATCH_LEAST_NS (BATCH_NS / 2) /* of the others */
#define ROUNDS_MOST 1000000u /* in a batch */

static const char usage[] =
	"usage: accmem bench [--json] [SIZE] [FLAG...] [DEVICE[/CARVEOUT]]\n"
	"Measure the times of operations on the memory of a device, and on ordinary memory.\n"
	"Buffers have SIZE bytes, or 4K, 64K, 2M and 64M. Flags are those of accmem explain.\n";

static const uint64_t default_sizes[] = { 4 << 10, 64 << 10, 2 << 20,
					  64 << 20 };

struct bench {
	struct accmem_context *ctx;
	const struct request *request;
	uint64_t size;
	void *mapping; /* a mapped buffer of the device */
	char *ordinary[2];
};

typedef int operation_fn(const struct bench *b);

/* --- the operations: each returns 0 or a negative errno value --------------- */

static int call_device(const struct bench *b)
{
	struct accmem_info info;

	return accmem_get_info(b->ctx, 0, &info);
}

static int call_ordinary(const struct bench *b)
{
	(void)b;
	syscall(SYS_getppid);
	return 0;
}

static int allocate(const struct bench *b, uint64_t *address)
{
	struct accmem_alloc a = b->request->alloc;
	int err;

	a.length = b->size;
	err = accmem_allocate(b->ctx, &a);
	*address = a.address;
	return err;
}

static int allocate_device(const struct bench *b)
{
	uint64_t address;
	int err = allocate(b, &address);

	return err ?: accmem_release(b->ctx, address);
}

static void *map_ordinary(const struct bench *b)
{
	return mmap(NULL, b->size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int allocate_ordinary(const struct bench *b)
{
	void *p = map_ordinary(b);

	return p == MAP_FAILED || munmap(p, b->size) ? -errno : 0;
}

static void write_pages(volatile char *p, uint64_t size)
{
	uint64_t at;

	for (at = 0; at < size; at += GRANULE)
		p[at] = 1;
}

static int use_device(const struct bench *b)
{
	uint64_t address;
	void *p;
	int err = allocate(b, &address), freed;

	if (err)
		return err;
	err = accmem_map(b->ctx, address, PROT_READ | PROT_WRITE, &p);
	if (!err)
		write_pages(p, b->size);
	freed = accmem_release(b->ctx, address);
	return err ?: freed;
}

static int use_ordinary(const struct bench *b)
{
	void *p = map_ordinary(b);

	if (p == MAP_FAILED)
		return -errno;
	write_pages(p, b->size);
	return munmap(p, b->size) ? -errno : 0;
}

static int write_device(const struct bench *b)
{
	memcpy(b->mapping, b->ordinary[0], b->size);
	return 0;
}

static int read_device(const struct bench *b)
{
	memcpy(b->ordinary[0], b->mapping, b->size);
	return 0;
}

static int copy_ordinary(const struct bench *b)
{
	memcpy(b->ordinary[1], b->ordinary[0], b->size);
	return 0;
}

static const struct operation {
	const char *name;
	const char *title;
	operation_fn *device;
	operation_fn *ordinary;
	bool copies; /* the output is bytes per second */
} operations[] = {
	{ "allocate", "allocate, free", allocate_device, allocate_ordinary,
	  false },
	{ "use", "allocate, map, write pages, free", use_device, use_ordinary,
	  false },
	{ "write", "copy to the buffer", write_device, copy_ordinary, true },
	{ "read", "copy from the buffer", read_device, copy_ordinary, true },
};

static const struct operation call = { "call", "call", call_device,
				       call_ordinary, false };

/* --- measuring -------------------------------------------------------------- */

static int repeat(const struct bench *b, const struct operation *op,
		  operation_fn *once, unsigned int rounds, uint64_t *ns)
{
	uint64_t start;
	char size[16];
	int err = 0;

	progress("bench: %s %s", op->title,
		 b->size ? size_text(b->size, size) : "");
	start = now_ns();
	while (rounds-- && !err)
		err = once(b);
	*ns = now_ns() - start;
	return err;
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Fill @times, in order. */
static int repeat_all(const struct bench *b, const struct operation *op,
		      operation_fn *once, unsigned int rounds,
		      uint64_t times[BATCHES])
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < BATCHES && !err; i++)
		err = repeat(b, op, once, rounds, &times[i]);
	if (!err)
		qsort(times, BATCHES, sizeof(*times), compare_times);
	return err;
}

/*
 * Find the time of one operation: @ns is that of the median batch. A first batch that other
 * work of the machine has made long is followed by batches that are too short.
 */
static int measure(const struct bench *b, const struct operation *op,
		   operation_fn *once, double *ns)
{
	uint64_t times[BATCHES];
	unsigned int rounds;
	int err;

	for (rounds = 1;; rounds *= 2) {
		err = repeat(b, op, once, rounds, &times[0]);
		if (!err && times[0] < BATCH_NS && rounds < ROUNDS_MOST)
			continue;
		err = err ?: repeat_all(b, op, once, rounds, times);
		if (err)
			return err;
		if (times[0] >= BATCH_LEAST_NS || rounds >= ROUNDS_MOST)
			break;
	}
	*ns = (double)times[BATCHES / 2] / rounds;
	return 0;
}

/* --- output ----------------------------------------------------------------- */

struct result {
	const struct operation *operation;
	uint64_t size; /* 0: the operation has no buffer */
	double device; /* ns */
	double ordinary;
};

struct results {
	struct result *list;
	size_t nr;
};

static const char *time_text(double ns, char text[16])
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	size_t unit = 0;

	for (; ns >= 999.5 && unit < 3; unit++)
		ns /= 1000;
	snprintf(text, 16, "%.*f%s",
		 ns < 9.995 ? 2 :
		 ns < 99.95 ? 1 :
			      0,
		 ns, units[unit]);
	return text;
}

static const char *cost_text(const struct result *r, double ns, char text[20])
{
	char rate[16];

	if (!r->operation->copies)
		return time_text(ns, text);
	snprintf(text, 20, "%s/s", size_text(r->size * 1e9 / ns, rate));
	return text;
}

static void print_results(const struct results *all)
{
	static const struct column columns[] = {
		{ "OPERATION", false, 0 }, { "SIZE", true, 0 },
		{ "DEVICE", true, 0 },	   { "ORDINARY", true, 0 },
		{ "TIMES", true, 0 },
	};
	struct table *t =
		table_new(columns, sizeof(columns) / sizeof(*columns));
	char size[16], device[20], ordinary[20];
	size_t i;

	for (i = 0; i < all->nr; i++) {
		const struct result *r = &all->list[i];

		table_add(t, "%s\t%s\t%s\t%s\t%.2f", r->operation->title,
			  r->size ? size_text(r->size, size) : "",
			  cost_text(r, r->device, device),
			  cost_text(r, r->ordinary, ordinary),
			  r->device / r->ordinary);
	}
	table_print(t);
	table_free(t);
}

static void print_json(const struct results *all, const char *device)
{
	struct json_object *o = json_object_new_object();
	struct json_object *array = json_object_new_array(), *row;
	size_t i;

	for (i = 0; i < all->nr; i++) {
		const struct result *r = &all->list[i];

		row = json_object_new_object();
		json_add_text(row, "operation", r->operation->name);
		if (r->size)
			json_add_number(row, "size", r->size);
		json_object_object_add(row, "device_ns",
				       json_object_new_double(r->device));
		json_object_object_add(row, "ordinary_ns",
				       json_object_new_double(r->ordinary));
		json_object_array_add(array, row);
	}
	json_add_number(o, "schema", 1);
	json_add_text(o, "device", device);
	json_object_object_add(o, "results", array);
	json_print(o);
}

/* --- the command ------------------------------------------------------------ */

static int measure_both(const struct bench *b, const struct operation *op,
			struct results *all)
{
	struct result r = { .operation = op, .size = b->size };
	int err = measure(b, op, op->device, &r.device) ?:
			  measure(b, op, op->ordinary, &r.ordinary);

	if (err)
		return err;
	all->list = grow(all->list, all->nr, sizeof(*all->list));
	all->list[all->nr++] = r;
	return 0;
}

/* Allocate and map what the copies need. */
static int prepare(struct bench *b, uint64_t *address)
{
	int err = allocate(b, address), i;

	if (err)
		return err;
	for (i = 0; i < 2 && !err; i++) {
		b->ordinary[i] = map_ordinary(b);
		if (b->ordinary[i] == MAP_FAILED)
			err = -errno;
		else
			write_pages(b->ordinary[i], b->size);
	}
	err = err   ?:
		      accmem_map(b->ctx, *address, PROT_READ | PROT_WRITE,
				 &b->mapping);
	if (err)
		accmem_release(b->ctx, *address);
	return err;
}

static int measure_size(struct bench *b, struct results *all)
{
	const size_t nr = sizeof(operations) / sizeof(*operations);
	uint64_t address;
	size_t i;
	int err = 0, freed;

	for (i = 0; i < nr && !operations[i].copies && !err; i++)
		err = measure_both(b, &operations[i], all);
	err = err ?: prepare(b, &address);
	if (err)
		return err;
	for (; i < nr && !err; i++)
		err = measure_both(b, &operations[i], all);
	freed = accmem_release(b->ctx, address);
	munmap(b->ordinary[0], b->size);
	munmap(b->ordinary[1], b->size);
	return err ?: freed;
}

/* The ordinary memory of the comparison has to fit beside what the machine does. */
static bool is_too_large(uint64_t size)
{
	return size / sysconf(_SC_PAGESIZE) >
	       (uint64_t)sysconf(_SC_PHYS_PAGES) / 4;
}

/* Measure one size, or those of the default sizes for which there is memory. */
static int measure_all(struct bench *b, struct results *all)
{
	const size_t nr = sizeof(default_sizes) / sizeof(*default_sizes);
	size_t i;
	int err = measure_both(b, &call, all);

	if (b->request->has_size) {
		b->size = b->request->alloc.length;
		return err ?: measure_size(b, all);
	}
	for (i = 0; i < nr && !err && !is_too_large(default_sizes[i]); i++) {
		b->size = default_sizes[i];
		err = measure_size(b, all);
		if (i && (err == -ENOMEM || err == -EDQUOT))
			return 0;
	}
	return err;
}

static void bench_failed(const struct bench *b, const char *path, int err)
{
	char size[16];

	fprintf(stderr, "accmem: bench: %s: %s%s%s%s\n", path,
		b->size ? size_text(b->size, size) : "", b->size ? ": " : "",
		strerror(-err),
		b->ctx && b->size ? " (accmem explain gives the reason)" : "");
}

/* The results of the sizes before an error are printed as well. */
static int bench(const struct device *d, const struct request *req, bool json)
{
	struct bench b = { .request = req };
	char *path = format("/dev/%s", d->name);
	struct results all = { 0 };
	int err = accmem_open(path, &b.ctx);

	if (!err) {
		err = measure_all(&b, &all);
		if (json)
			print_json(&all, d->name);
		else
			print_results(&all);
	}
	if (err)
		bench_failed(&b, path, err);
	accmem_close(b.ctx);
	free(all.list);
	free(path);
	return err ? STATUS_FAILED : STATUS_OK;
}

int command_bench(int argc, char **argv)
{
	const struct device *d;
	struct request req;
	struct snapshot s;
	struct options o;
	char text[16];
	int status = options_parse(&o, argc, argv, "j", usage);

	if (status >= 0)
		return status;
	if (!request_parse(&req, "bench", argc - optind, argv + optind)) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	if (is_too_large(req.alloc.length)) {
		fprintf(stderr,
			"accmem: bench: %s: more than a quarter of the machine's ordinary memory, to compare with\n",
			size_text(req.alloc.length, text));
		return STATUS_FAILED;
	}
	status = snapshot_with(&s, *req.device ? req.device : NULL);
	if (!status) {
		d = *req.device ? snapshot_device(&s, req.device) : s.devices;
		status = bench(d, &req, o.json);
	}
	snapshot_free(&s);
	return status;
}
