// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Where the time of the allocator goes, in this process: nanoseconds of
 * processor time an alloc and a free together, the best of several rounds. For
 * work on lib/; what is claimed of it is measured in the kernel.
 */
#include <linux/kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/layout/layout.h"
#include "model.h"

#define G ACCMEM_GRANULE
#define RANGE BIT_ULL(32)
#define LIVE_MAX 65536
#define ROUNDS 7

struct bench {
	struct accmem_buddy b;
	void *meta;
	struct rng r;
	struct accmem_run live[LIVE_MAX];
	u64 nr_live;
	u64 failures;
};

static struct bench t;

static u64 cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void fresh(bool cache)
{
	size_t size = accmem_buddy_meta_size(RANGE);

	free(t.meta);
	memset(&t, 0, sizeof(t));
	t.r.state = 1;
	t.meta = calloc(1, size);
	if (!t.meta || accmem_buddy_init(&t.b, RANGE, t.meta))
		abort();
	accmem_buddy_set_cache(&t.b, cache);
}

static bool get(u64 granules, u64 align)
{
	struct accmem_buddy_request req = {
		.size = granules * G,
		.align = align * G,
	};
	struct accmem_run *run = &t.live[t.nr_live];

	if (accmem_buddy_alloc(&t.b, &req, &run->start)) {
		t.failures++;
		return false;
	}
	run->size = req.size;
	t.nr_live++;
	return true;
}

static void put(u64 i)
{
	struct accmem_run run = t.live[i];

	if (accmem_buddy_free(&t.b, run.start, run.size))
		abort();
	t.live[i] = t.live[--t.nr_live];
}

static u64 pairs(u64 granules, u64 others)
{
	u64 i, start;

	for (i = 0; i < others; i++)
		get(granules, 1);
	start = cpu_ns();
	for (i = 0; i < 200000; i++) {
		get(granules, 1);
		put(rng_below(&t.r, t.nr_live));
	}
	return (cpu_ns() - start) / 200000;
}

static u64 pair_4k(void)
{
	return pairs(1, 0);
}

static u64 pair_2m(void)
{
	return pairs(512, 0);
}

static u64 pair_4k_1024(void)
{
	return pairs(1, 1024);
}

static u64 pair_2m_1024(void)
{
	return pairs(512, 1024);
}

static u64 bulk(u64 granules, u64 align, u64 n)
{
	u64 i, start = cpu_ns();

	for (i = 0; i < n; i++)
		get(granules, align);
	while (t.nr_live)
		put(rng_below(&t.r, t.nr_live));
	return (cpu_ns() - start) / n;
}

static u64 bulk_4k(void)
{
	return bulk(1, 1, LIVE_MAX);
}

static u64 bulk_8k_256k(void)
{
	return bulk(2, 64, 16384);
}

static u64 powers_of_two(void)
{
	u64 i, start;

	for (i = 0; i < 4000; i++)
		get(1ull << rng_below(&t.r, 10), 1);
	start = cpu_ns();
	for (i = 0; i < 100000; i++) {
		put(rng_below(&t.r, t.nr_live));
		get(1ull << rng_below(&t.r, 10), 1);
	}
	return (cpu_ns() - start) / 100000;
}

static u64 churn(void)
{
	u64 i, start;

	while (accmem_buddy_free_bytes(&t.b) > RANGE / 10)
		get(1 + rng_below(&t.r, 1024), 1);
	start = cpu_ns();
	for (i = 0; i < 100000; i++) {
		while (accmem_buddy_free_bytes(&t.b) < RANGE / 10)
			put(rng_below(&t.r, t.nr_live));
		get(1 + rng_below(&t.r, 1024), 1);
	}
	return (cpu_ns() - start) / 100000;
}

static const struct {
	const char *name;
	u64 (*run)(void);
} workloads[] = {
	{ "pair-4k", pair_4k },
	{ "pair-2m", pair_2m },
	{ "pair-4k-1024", pair_4k_1024 },
	{ "pair-2m-1024", pair_2m_1024 },
	{ "bulk-4k", bulk_4k },
	{ "bulk-8k-256k", bulk_8k_256k },
	{ "powers-of-two", powers_of_two },
	{ "churn", churn },
};

int main(int argc, char **argv)
{
	u64 best, ns;
	unsigned int i, round;
	int cache;

	for (i = 0; i < ARRAY_SIZE(workloads); i++) {
		if (argc > 1 && strcmp(argv[1], workloads[i].name))
			continue;
		for (cache = 0; cache < 2; cache++) {
			best = ~0ull;
			for (round = 0; round < ROUNDS; round++) {
				fresh(cache);
				ns = workloads[i].run();
				best = ns < best ? ns : best;
			}
			printf("workload=%s cache=%s ns=%llu failures=%llu\n",
			       workloads[i].name, cache ? "on" : "off", best,
			       t.failures);
		}
	}
	return 0;
}
