// SPDX-License-Identifier: GPL-2.0
/*
 * Costs of calls in instructions. The guest has one processor, on which an instruction
 * takes a nanosecond.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 20000 /* pairs */
#define WARM 500
#define MANY 20000 /* live buffers */
#define WHOLE_ROUNDS 2000 /* lives with a mapping */
#define CLEAN_ROUNDS 3
#define MIXED_ROUNDS 5000
#define MIXED_LIVE 64
#define CLEAR_4K 512 /* stores */

/* --- floors --------------------------------------------------------------- */

static void touch(volatile char *p, size_t length, bool all)
{
	size_t at;

	for (at = 0; at < (all ? length : 1); at += 4096)
		p[at] = 1;
}

static void memfd_life(size_t length, bool all)
{
	int fd = memfd_create("bench", MFD_CLOEXEC);
	void *p;

	if (fd < 0 || ftruncate(fd, length))
		die(errno, "memfd");
	p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die(errno, "mmap of a memfd");
	touch(p, length, all);
	munmap(p, length);
	close(fd);
}

static double memfd_lives(size_t length, bool all)
{
	uint64_t start;
	int i;

	for (i = 0; i < WARM; i++)
		memfd_life(length, all);
	start = meter_now();
	for (i = 0; i < WHOLE_ROUNDS; i++)
		memfd_life(length, all);
	usleep(100000);
	return (double)(meter_now() - start) / WHOLE_ROUNDS;
}

/* --- pairs ---------------------------------------------------------------- */

static void pairs(int fd, int n)
{
	while (n--)
		buffer_free(fd, buffer_alloc(fd, KIB(4), 0).address);
}

double meter_pair(int fd)
{
	uint64_t start;

	pairs(fd, WARM);
	start = meter_now();
	pairs(fd, ROUNDS);
	return (double)(meter_now() - start) / ROUNDS;
}

/* Measure ALLOC and FREE of 4 KiB beside live buffers, over two null ioctls. */
static void measure_pairs(const struct device *dev)
{
	static const struct {
		const char *name;
		unsigned int live;
		double most; /* null ioctls */
	} rows[] = {
		{ "pair-1-live", 1, 2.0 },
		{ "pair-20000-live", MANY, 2.1 },
	};
	unsigned int i, live = 0;
	int fd = device_open(dev);
	double cost, null;

	device_settle(dev);
	for (i = 0; i < 2; i++) {
		for (; live < rows[i].live; live++)
			buffer_alloc(fd, KIB(4), 0);
		null = meter_null_ioctl(fd);
		cost = meter_pair(fd);
		figure(rows[i].name, dev, cost, "instructions");
		goal_most(rows[i].name, dev, cost / (2 * null), rows[i].most);
	}
	close(fd);
}

/* --- FREE of many --------------------------------------------------------- */

static void shuffle(uint64_t *values, unsigned int n)
{
	uint64_t seed = 1, swap;
	unsigned int i, j;

	for (i = n - 1; i; i--) {
		j = random_next(&seed) % (i + 1);
		swap = values[i];
		values[i] = values[j];
		values[j] = swap;
	}
}

static double free_cost(const struct device *dev, bool map)
{
	static uint64_t addresses[MANY];
	int fd = device_open(dev);
	struct accmem_alloc a;
	uint64_t start;
	unsigned int i;

	device_settle(dev);
	for (i = 0; i < MANY; i++) {
		a = buffer_alloc(fd, KIB(4), 0);
		if (map)
			buffer_touch(fd, &a, KIB(4));
		addresses[i] = a.address;
	}
	shuffle(addresses, MANY);
	device_settle(dev);
	start = meter_now();
	for (i = 0; i < MANY; i++)
		buffer_free(fd, addresses[i]);
	start = meter_end(start);
	close(fd);
	return (double)start / MANY;
}

static void measure_frees(const struct device *dev)
{
	double cost = free_cost(dev, true);

	if (dev == &devices[PHYS])
		goal_most("free-of-20000", dev, cost, 3000 + CLEAR_4K);
	else
		figure("free-of-20000", dev, cost, "instructions");
	figure("free-of-20000-never-mapped", dev, free_cost(dev, false),
	       "instructions");
}

/* --- FREE at a position --------------------------------------------------- */

#define STREAM_FREES 4000

static int stream_reached(int fd, uint64_t position)
{
	struct accmem_stream_create create = { .size = sizeof(create) };
	struct accmem_stream_signal signal = { .size = sizeof(signal),
					       .position = position };

	if (ioctl(fd, ACCMEM_IOC_STREAM_CREATE, &create) ||
	    ioctl(create.fd, ACCMEM_IOC_STREAM_SIGNAL, &signal))
		die(errno, "a stream");
	return create.fd;
}

/* Return the cost of a FREE, of more buffers than the context's cache can have. */
static double one_free(int fd, const struct accmem_free *how)
{
	static uint64_t addresses[STREAM_FREES];
	struct accmem_free req = *how;
	uint64_t start;
	unsigned int i;

	for (i = 0; i < STREAM_FREES; i++)
		addresses[i] = buffer_alloc(fd, KIB(4), 0).address;
	start = meter_now();
	for (i = 0; i < STREAM_FREES; i++) {
		req.address = addresses[i];
		if (ioctl(fd, ACCMEM_IOC_FREE, &req))
			die(errno, "FREE");
	}
	return (double)(meter_now() - start) / STREAM_FREES;
}

/*
 * Measure FREE at a reached position, over FREE without a position; and FREE at a
 * position that is not reached.
 */
static void measure_stream_frees(const struct device *dev)
{
	int fd = device_open(dev), stream = stream_reached(fd, 7);
	struct accmem_free plain = { .size = sizeof(plain) };
	struct accmem_free at = { .size = sizeof(at),
				  .flags = ACCMEM_FREE_STREAM,
				  .fd = stream, .position = 7 };
	double cost, reached;

	device_settle(dev);
	one_free(fd, &plain);
	cost = one_free(fd, &plain);
	reached = one_free(fd, &at);
	figure("free", dev, cost, "instructions");
	figure("free-at-reached", dev, reached, "instructions");
	goal_most("free-at-reached", dev, reached / cost, 1.3);
	at.position = 8;
	figure("free-at-pending", dev, one_free(fd, &at), "instructions");
	close(stream);
	close(fd);
}

/* --- clean memory --------------------------------------------------------- */

/* ALLOC and FREE of 64 MiB. Return the cost of ALLOC. With @dirty, write to each page. */
static double clean_alloc(int fd, bool dirty)
{
	uint64_t start = meter_now();
	struct accmem_alloc a = buffer_alloc(fd, MIB(64), 0);
	double cost = meter_now() - start;
	void *p;

	if (dirty) {
		p = buffer_map(fd, &a, MIB(64));
		touch(p, MIB(64), true);
		munmap(p, MIB(64));
	}
	buffer_free(fd, a.address);
	return cost;
}

static void keep_least(double *least, double cost)
{
	if (cost < *least)
		*least = cost;
}

/*
 * Measure ALLOC of memory that the same context has freed without touching it, and
 * ALLOC of memory that another context has written to and the cleaner has cleared.
 */
static void clean_allocs(const struct device *dev, double *untouched,
			 double *cleared)
{
	int fd = device_open(dev);

	clean_alloc(fd, false);
	keep_least(untouched, clean_alloc(fd, false));
	clean_alloc(fd, true);
	close(fd);
	meter_rest();
	fd = device_open(dev);
	keep_least(cleared, clean_alloc(fd, false));
	close(fd);
}

/*
 * Compare ALLOC of memory that the cleaner has cleared with ALLOC of memory that no
 * task has to clear. Each figure is the least of several, since an interrupt takes as
 * long as one ALLOC.
 */
static void measure_clean(const struct device *dev)
{
	double untouched = INFINITY, cleared = INFINITY;
	unsigned int i;

	for (i = 0; i < CLEAN_ROUNDS; i++)
		clean_allocs(dev, &untouched, &cleared);
	figure("alloc-64m-untouched", dev, untouched, "instructions");
	figure("alloc-64m-cleared", dev, cleared, "instructions");
	goal_most("alloc-64m-cleared", dev, cleared / untouched, 1.1);
}

/* --- whole lives ---------------------------------------------------------- */

static void buffer_life(int fd, size_t length, bool all)
{
	struct accmem_alloc a = buffer_alloc(fd, length, 0);
	void *p = buffer_map(fd, &a, length);

	touch(p, length, all);
	munmap(p, length);
	buffer_free(fd, a.address);
}

static double buffer_lives(const struct device *dev, size_t length, bool all)
{
	int fd = device_open(dev);
	uint64_t start;
	int i;

	for (i = 0; i < WARM; i++)
		buffer_life(fd, length, all);
	device_settle(dev);
	start = meter_now();
	for (i = 0; i < WHOLE_ROUNDS; i++)
		buffer_life(fd, length, all);
	device_settle(dev);
	start = meter_now() - start;
	close(fd);
	return (double)start / WHOLE_ROUNDS;
}

/* Compare lives of buffers (ALLOC, mmap, stores, munmap, FREE) with lives of memfds. */
static void measure_lives(void)
{
	static const struct {
		const char *name;
		size_t length;
		bool all; /* stores to all pages, not only to the first */
	} rows[] = {
		{ "life-4k", KIB(4), false },
		{ "life-64k", KIB(64), false },
		{ "life-64k-all-pages", KIB(64), true },
	};
	double cost, floor;
	unsigned int i, j;

	for (i = 0; i < 3; i++) {
		floor = memfd_lives(rows[i].length, rows[i].all);
		printf("bench=%s-memfd instructions=%.0f\n", rows[i].name,
		       floor);
		for (j = 0; j < NR_DEVICES; j++) {
			const struct device *dev = &devices[j];

			cost = buffer_lives(dev, rows[i].length, rows[i].all);
			figure(rows[i].name, dev, cost, "instructions");
			if (j == NOPAGES || rows[i].all)
				figure(rows[i].name, dev, cost / floor,
				       "over_memfd");
			else
				goal_most(rows[i].name, dev, cost / floor, 0.7);
		}
	}
}

/* --- random sizes --------------------------------------------------------- */

static void replace(int fd, uint64_t *address, uint64_t *seed)
{
	uint64_t length = KIB(4) + random_next(seed) % (KIB(508) + 1);

	if (*address)
		buffer_free(fd, *address);
	*address = buffer_alloc(fd, length, 0).address;
}

double meter_mixed(const struct device *dev)
{
	uint64_t live[MIXED_LIVE] = {}, seed = 1, start;
	int fd = device_open(dev), i;

	device_settle(dev);
	for (i = 0; i < MIXED_LIVE; i++)
		replace(fd, &live[i], &seed);
	start = meter_now();
	for (i = 0; i < MIXED_ROUNDS; i++)
		replace(fd, &live[random_next(&seed) % MIXED_LIVE], &seed);
	start = meter_end(start);
	close(fd);
	return MIXED_ROUNDS * 1e6 / start;
}

static void measure_mixed(void)
{
	double rate[NR_DEVICES];
	int i;

	for (i = 0; i < NR_DEVICES; i++) {
		rate[i] = meter_mixed(&devices[i]);
		figure("mixed", &devices[i], 1e6 / rate[i], "instructions");
	}
	goal_least("mixed-over-emulated", &devices[PHYS],
		   rate[PHYS] / rate[EMULATED], 0.8);
	figure("mixed-over-emulated", &devices[NOPAGES],
	       rate[NOPAGES] / rate[EMULATED], "ratio");
}

void bench_calls(void)
{
	int i;

	meter_start();
	for (i = 0; i < NR_DEVICES; i++)
		device_settle(&devices[i]);
	for (i = 0; i < NR_DEVICES; i++)
		measure_pairs(&devices[i]);
	for (i = 0; i < NR_DEVICES; i++) {
		meter_rest();
		measure_frees(&devices[i]);
	}
	for (i = 0; i < NR_DEVICES; i++)
		measure_stream_frees(&devices[i]);
	meter_rest();
	for (i = 0; i < NR_DEVICES; i++)
		measure_clean(&devices[i]);
	meter_rest();
	measure_lives();
	meter_rest();
	measure_mixed();
	meter_stop();
}
