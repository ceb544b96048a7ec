// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What an operation costs, counted and not timed: metadata words and nodes
 * touched. Each workload has a bound on its costliest operation, and on how
 * far that lies above the median.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "accmem_layout.h"
#include "model.h"

#define G ACCMEM_GRANULE
#define GIB BIT_ULL(30)
#define OPS 100000
#define LIVE_MAX 65536

u64 accmem_buddy_touched;

static int passed, failed;
static bool cache;

struct bench {
	struct accmem_buddy b;
	void *meta;
	size_t meta_size;
	struct rng r;
	struct accmem_run live[LIVE_MAX];
	unsigned int nr_live;
	u32 cost[2 * OPS];
	unsigned int nr_costs;
	u64 failures;
};

static struct bench *bench_new(u64 size)
{
	struct bench *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->r.state = 1;
	t->meta_size = accmem_buddy_meta_size(size);
	t->meta = mmap(NULL, t->meta_size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->meta == MAP_FAILED || accmem_buddy_init(&t->b, size, t->meta))
		abort();
	accmem_buddy_set_cache(&t->b, cache);
	return t;
}

static bool bench_alloc(struct bench *t, u64 size, u64 align)
{
	struct accmem_buddy_request req = { .size = size, .align = align };
	struct accmem_run *run = &t->live[t->nr_live];
	int err;

	accmem_buddy_touched = 0;
	err = accmem_buddy_alloc(&t->b, &req, &run->start);
	if (t->nr_costs < 2 * OPS)
		t->cost[t->nr_costs++] = accmem_buddy_touched;
	if (err) {
		t->failures++;
		return false;
	}
	run->size = size;
	t->nr_live++;
	return true;
}

static void bench_free(struct bench *t, unsigned int i)
{
	struct accmem_run run = t->live[i];

	accmem_buddy_touched = 0;
	if (accmem_buddy_free(&t->b, run.start, run.size))
		abort();
	if (t->nr_costs < 2 * OPS)
		t->cost[t->nr_costs++] = accmem_buddy_touched;
	t->live[i] = t->live[--t->nr_live];
}

static int by_size(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

static void bench_end(struct bench *t, const char *name, u32 limit)
{
	u32 median, most;
	bool ok;

	qsort(t->cost, t->nr_costs, sizeof(t->cost[0]), by_size);
	median = t->cost[t->nr_costs / 2];
	most = t->cost[t->nr_costs - 1];
	ok = most <= limit && most <= 20 * median;
	printf("%s cost=%s cache=%s median=%u max=%u limit=%u failures=%llu\n",
	       ok ? "ok" : "FAILED", name, cache ? "on" : "off", median, most,
	       limit, t->failures);
	if (ok)
		passed++;
	else
		failed++;
	munmap(t->meta, t->meta_size);
	free(t);
}

static void pairs_in_an_empty_range(const char *name, u64 range, u64 size,
				    u32 limit)
{
	struct bench *t = bench_new(range);
	int i;

	for (i = 0; i < OPS; i++) {
		bench_alloc(t, size, G);
		bench_free(t, 0);
	}
	bench_end(t, name, limit);
}

static void bulk_then_random_frees(const char *name, u64 size, u64 align,
				   unsigned int n, u32 limit)
{
	struct bench *t = bench_new(4 * GIB);
	unsigned int i;

	for (i = 0; i < n; i++)
		bench_alloc(t, size, align);
	while (t->nr_live)
		bench_free(t, rng_below(&t->r, t->nr_live));
	if (accmem_buddy_largest_run(&t->b, G) != 4 * GIB)
		abort();
	bench_end(t, name, limit);
}

static void churn(const char *name, u64 range, u64 most, u32 limit)
{
	struct bench *t = bench_new(range);
	int i;

	for (i = 0; i < OPS; i++) {
		while (accmem_buddy_free_bytes(&t->b) < range / 10 + most)
			bench_free(t, rng_below(&t->r, t->nr_live));
		bench_alloc(t, (1 + rng_below(&t->r, most / G)) * G, G);
	}
	bench_end(t, name, limit);
}

/* Powers of two, as many as half of the range holds */
static void powers_of_two(const char *name, u32 limit)
{
	struct bench *t = bench_new(4 * GIB);
	u64 size;
	int i;

	for (i = 0; i < OPS; i++) {
		size = G << rng_below(&t->r, 11);
		while (accmem_buddy_free_bytes(&t->b) < 2 * GIB + size)
			bench_free(t, rng_below(&t->r, t->nr_live));
		bench_alloc(t, size, G);
	}
	bench_end(t, name, limit);
}

/* Every second granule free: no worse layout exists for a search. */
static void checkerboard(const char *name, u32 limit)
{
	struct bench *t = bench_new(GIB / 4);
	u64 i;

	while (bench_alloc(t, G, G))
		;
	for (i = 0; i < LIVE_MAX; i += 2)
		accmem_buddy_free(&t->b, i * G, G);
	t->nr_live = 0;
	t->nr_costs = 0;
	t->failures = 0;
	for (i = 0; i < 1000; i++) {
		bench_alloc(t, 2 * G, G);
		if (bench_alloc(t, G, G))
			bench_free(t, 0);
	}
	bench_end(t, name, limit);
}

static void workloads(void)
{
	pairs_in_an_empty_range("pair-4k", 4 * GIB, G, 30);
	pairs_in_an_empty_range("pair-2m", 4 * GIB, 512 * G, 30);
	pairs_in_an_empty_range("pair-odd", 4 * GIB, 12345 * G, 50);
	pairs_in_an_empty_range("pair-4k-16t", BIT_ULL(44), G, 50);
	pairs_in_an_empty_range("pair-1t-16t", BIT_ULL(44), BIT_ULL(40) + G,
				80);
	bulk_then_random_frees("bulk-4k", G, G, LIVE_MAX - 1, 80);
	bulk_then_random_frees("bulk-8k-256k", 2 * G, 64 * G, 16384, 120);
	churn("churn-small", GIB, 256 * G, 90);
	churn("churn-4m", 4 * GIB, 1024 * G, 90);
	powers_of_two("powers-of-two", 90);
	checkerboard("checkerboard", 50);
}

int main(void)
{
	workloads();
	cache = true;
	workloads();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
