// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What an operation costs, counted and not timed: metadata words and nodes
 * touched. Each workload has a bound on its costliest operation, and on how
 * far that lies above the median.
 */
#include <errno.h>
#include <linux/kernel.h>
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

static void bench_drop(struct bench *t)
{
	munmap(t->meta, t->meta_size);
	free(t);
}

static void count(bool ok)
{
	if (ok)
		passed++;
	else
		failed++;
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
	count(ok);
	bench_drop(t);
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

/* Small blocks that the order cache knows all over, and large ones that come and go */
static void large_among_small(const char *name, u32 limit)
{
	struct bench *t = bench_new(4 * GIB);
	unsigned int i, k;
	u64 at[64];

	for (i = 0; i < ARRAY_SIZE(at); i++) {
		for (k = 0; k < 32; k++)
			bench_alloc(t, G << (k & 3), G);
		if (!bench_alloc(t, (8192 + 64 * i) * G, G))
			abort();
		at[i] = t->live[t->nr_live - 1].start;
		t->nr_live--;
	}
	while (t->nr_live > ARRAY_SIZE(at))
		bench_free(t, rng_below(&t->r, t->nr_live));
	t->nr_costs = 0;
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		t->live[t->nr_live++] =
			(struct accmem_run){ at[i], (8192 + 64 * i) * G };
		bench_free(t, t->nr_live - 1);
		for (k = 0; k < 2; k++)
			if (bench_alloc(t, 4 * G, G))
				bench_free(t, t->nr_live - 1);
	}
	bench_end(t, name, limit);
}

static void answer(const char *name, u64 limit)
{
	bool ok = accmem_buddy_touched <= limit;

	printf("%s cost=%s cache=%s words=%llu limit=%llu\n",
	       ok ? "ok" : "FAILED", name, cache ? "on" : "off",
	       accmem_buddy_touched, limit);
	count(ok);
}

/*
 * A question with an alignment looks once at each word in which a run begins that
 * is long enough, whatever else is there; here at each word, for pairs of granules
 * at odd places. Pieces that are too short for the alignment are not looked at.
 */
static void questions_with_an_alignment(void)
{
	struct accmem_buddy_request req = { .size = 2 * G, .align = 2 * G };
	struct bench *t = bench_new(GIB);
	u64 words = GIB / G / 64, i, at;
	struct accmem_run runs[64];
	unsigned int nr;

	for (i = 0; i < GIB / G; i++)
		if (accmem_buddy_alloc(&t->b,
				       &(struct accmem_buddy_request){
					       G, G, i * G, (i + 1) * G, 0 },
				       &at) ||
		    at != i * G)
			abort();
	for (i = 1; i < GIB / G; i += 4)
		if (accmem_buddy_free(&t->b, i * G, 2 * G))
			abort();
	accmem_buddy_largest_run(&t->b, G);
	accmem_buddy_touched = 0;
	if (accmem_buddy_alloc(&t->b, &req, &at) != -ENOSPC)
		abort();
	answer("aligned-pairs", words * 3);
	accmem_buddy_touched = 0;
	req.align = G;
	req.size = 65 * 2 * G;
	if (accmem_buddy_alloc_runs(&t->b, &req, runs, 64, &nr) != -E2BIG)
		abort();
	answer("runs-of-pairs", 64 * 50);
	/* 64 holes of 35 granules, each at a multiple of 32 */
	for (i = 0; i < 64; i++)
		for (at = 0; at < 33; at += at & 3 ? 1 : 3)
			if (accmem_buddy_free(&t->b, (i * 4096 + 2048 + at) * G, G))
				abort();
	accmem_buddy_touched = 0;
	req.align = 32 * G;
	req.size = 65 * 32 * G;
	if (accmem_buddy_alloc_runs(&t->b, &req, runs, 64, &nr) != -E2BIG)
		abort();
	answer("aligned-runs", 64 * 64 * 12);
	accmem_buddy_touched = 0;
	if (accmem_buddy_largest_run(&t->b, 32 * G) != 35 * G)
		abort();
	answer("largest-aligned", 200);
	bench_drop(t);
}

/* Blocks that wait one beside the other are one free run. */
static void the_next_free_run_of_parked_blocks(void)
{
	struct bench *t = bench_new(4 * GIB);
	struct accmem_run run;
	unsigned int i;

	for (i = 0; i < 4000; i++)
		bench_alloc(t, G, G);
	for (i = 1000; i < 2000; i++)
		if (accmem_buddy_free(&t->b, t->live[i].start, G))
			abort();
	accmem_buddy_touched = 0;
	if (!accmem_buddy_next_free(&t->b, t->live[1000].start, &run) ||
	    run.size != 1000 * G)
		abort();
	answer("next-free", 1000 * 8);
	bench_drop(t);
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
	large_among_small("large-among-small", 120);
	questions_with_an_alignment();
	the_next_free_run_of_parked_blocks();
}

int main(void)
{
	workloads();
	cache = true;
	workloads();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
