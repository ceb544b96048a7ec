// SPDX-License-Identifier: GPL-2.0
/*
 * Replay on a device. For each allocation: ALLOC, mmap, write a pattern into every granule
 * of the buffer. For each free: compare the pattern, munmap, FREE. Only ALLOC and FREE are
 * timed.
 */
#include <accmem.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "replay.h"

struct buffer {
	u64 address;
	u64 length;
	u64 footprint;
	u64 seed; /* seed of the pattern */
	void *pointer; /* NULL if the buffer is not allocated */
};

struct player {
	const struct trace *t;
	const struct replay_options *o;
	struct accmem_context *ctx;
	struct buffer *buffers; /* indexed by id */
	u64 failures, corrupt, spent, calls, live, footprint;
};

static int complain(const struct player *p, const char *what, int err)
{
	fprintf(stderr, "accmem: replay: %s: %s: %s\n", p->o->device, what,
		strerror(-err));
	return -1;
}

#define PATTERN_BYTES 8u /* bytes of the pattern at either end of a granule */

/* The words of neighbouring granules, of both ends of a granule, and of buffers differ. */
static u64 pattern_word(const struct buffer *b, u64 at)
{
	return b->seed + at * 0x9e3779b97f4a7c15ull;
}

/* Write or compare @size bytes of the pattern at offset @at. */
static bool pattern_piece(const struct buffer *b, u64 at, u64 size, bool write)
{
	u64 word = pattern_word(b, at);
	char *piece = (char *)b->pointer + at;

	if (write) {
		memcpy(piece, &word, size);
		return true;
	}
	return !memcmp(piece, &word, size);
}

/* Write or compare a word of the pattern at either end of each complete granule. */
static bool pattern_granules(const struct buffer *b, u64 length, bool write)
{
	const u64 last = GRANULE_MIN / 8 - 1;
	u64 *words = b->pointer, at;

	for (at = 0; at < length; at += GRANULE_MIN, words += last + 1) {
		u64 front = pattern_word(b, at), back = ~front;

		if (write) {
			words[0] = front;
			words[last] = back;
		} else if (words[0] != front || words[last] != back) {
			return false;
		}
	}
	return true;
}

/*
 * Write or compare the pattern at the ends of each granule. Buffers that overlap, and pages
 * at wrong addresses, are wrong by whole granules, or by a part at the end of a granule.
 */
static bool pattern_go(const struct buffer *b, bool write)
{
	u64 whole = b->length / GRANULE_MIN * GRANULE_MIN;
	u64 rest = b->length - whole, size;
	bool same = pattern_granules(b, whole, write);

	size = rest < PATTERN_BYTES ? rest : PATTERN_BYTES;
	same &= pattern_piece(b, whole, size, write);
	rest -= size;
	size = rest < PATTERN_BYTES ? rest : PATTERN_BYTES;
	same &= pattern_piece(b, b->length - size, size, write);
	return same;
}

static int player_alloc(struct player *p, size_t event)
{
	const struct event *e = &p->t->events[event];
	struct buffer *b = &p->buffers[e->id];
	struct accmem_alloc req = {};
	u64 start = now_ns();
	int err;

	req.length = round_up_to(e->bytes, p->o->granule);
	if (p->o->granule == GRANULE_MIN)
		req.length = e->bytes;
	err = accmem_allocate(p->ctx, &req);
	p->spent += now_ns() - start;
	p->calls++;
	if (err == -ENOMEM || err == -EDQUOT) {
		p->failures++;
		return 0;
	}
	if (err)
		return complain(p, "alloc", err);
	b->address = req.address;
	b->length = req.length;
	b->footprint = req.footprint;
	b->seed = (event + 1) * 0xd1342543de82ef95ull;
	err = accmem_map(p->ctx, b->address, PROT_READ | PROT_WRITE,
			 &b->pointer);
	if (err)
		return complain(p, "map", err);
	pattern_go(b, true);
	p->live += b->footprint;
	return 0;
}

static int player_free(struct player *p, u32 id)
{
	struct buffer *b = &p->buffers[id];
	u64 start;
	int err;

	if (!b->pointer)
		return 0;
	if (!pattern_go(b, false))
		p->corrupt++;
	b->pointer = NULL;
	p->live -= b->footprint;
	err = accmem_unmap(p->ctx, b->address);
	if (err)
		return complain(p, "unmap", err);
	start = now_ns();
	err = accmem_release(p->ctx, b->address);
	p->spent += now_ns() - start;
	p->calls++;
	return err ? complain(p, "free", err) : 0;
}

/* Print the kernel's picture of the carveout, if debugfs can be read. */
static bool print_debugfs_map(const struct player *p)
{
	const char *slash = strrchr(p->o->device, '/');
	char path[256], text[4096];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/sys/kernel/debug/accmem/%s/occupancy",
		 slash ? slash + 1 : p->o->device);
	file = fopen(path, "r");
	if (!file)
		return false;
	printf("%s: the carveout at the peak\n", p->t->name);
	while ((n = fread(text, 1, sizeof(text), file)))
		fwrite(text, 1, n, stdout);
	fclose(file);
	return true;
}

static int print_map(const struct player *p)
{
	struct accmem_info info = {};
	struct picture *picture;
	u64 size, end;
	u32 id;
	int err;

	if (print_debugfs_map(p))
		return 0;
	err = accmem_get_info(p->ctx, 0, &info);
	if (err)
		return complain(p, "info", err);
	size = info.capacity;
	for (id = 0; id < p->t->nr_ids; id++) {
		const struct buffer *b = &p->buffers[id];

		end = b->address - info.address_base + b->footprint;
		if (b->pointer && end > size)
			size = end;
	}
	picture = picture_new(size);
	for (id = 0; id < p->t->nr_ids; id++) {
		const struct buffer *b = &p->buffers[id];

		if (b->pointer)
			picture_add(picture, b->address - info.address_base,
				    b->footprint);
	}
	picture_print(picture, p->t->name);
	return 0;
}

static int play(struct player *p)
{
	const struct trace *t = p->t;
	size_t i;
	u32 id;
	int err = 0;

	for (i = 0; i < t->nr_events && !err; i++) {
		progress("replay: %s: %zu of %zu events", t->name, i,
			 t->nr_events);
		if (t->events[i].bytes)
			err = player_alloc(p, i);
		else
			err = player_free(p, t->events[i].id);
		if (err || i != t->peak_event)
			continue;
		p->footprint = p->live;
		if (p->o->map)
			err = print_map(p);
	}
	for (id = 0; id < t->nr_ids && !err; id++)
		err = player_free(p, id);
	return err;
}

int replay_device(const struct trace *t, const struct replay_options *o,
		  struct replay_result *r)
{
	struct player p = { .t = t, .o = o };
	int err;

	err = accmem_open(o->device, &p.ctx);
	if (err)
		return complain(&p, "open", err);
	p.buffers = xcalloc(t->nr_ids, sizeof(*p.buffers));
	err = play(&p);
	free(p.buffers);
	accmem_close(p.ctx);
	r->footprint = p.footprint;
	r->ns_per_op = p.calls ? (double)p.spent / p.calls : 0;
	r->failures = p.failures;
	r->corrupt = p.corrupt;
	r->has_footprint = true;
	r->has_time = true;
	r->has_failures = true;
	r->has_corrupt = true;
	return err;
}
