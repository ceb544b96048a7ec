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

#include "lib/layout/layout.h"
#include "../count.h"
#include "model.h"

#define G ACCMEM_GRANULE
#define GIB BIT_ULL(30)
#define OPS 100000
#define LIVE_MAX 65536

static int passed, failed;
static bool cache;

/*
 * Words of the median and of the costliest call, without and with the order
 * cache, or loads and stores of a question: a quarter above what they were when this
 * was written.
 */
static const struct limit {
	const char *name;
	u32 median[2];
	u32 most[2];
} limits[] = {
	{ "pair-4k", { 13, 4 }, { 13, 15 } },
	{ "pair-2m", { 14, 4 }, { 14, 17 } },
	{ "pair-odd", { 14, 14 }, { 14, 14 } },
	{ "pair-4k-16t", { 18, 4 }, { 18, 23 } },
	{ "pair-1t-16t", { 29, 29 }, { 29, 29 } },
	{ "bulk-4k", { 9, 9 }, { 42, 43 } },
	{ "bulk-8k-256k", { 18, 17 }, { 69, 77 } },
	{ "churn-small", { 22, 22 }, { 75, 75 } },
	{ "churn-4m", { 29, 29 }, { 78, 78 } },
	{ "powers-of-two", { 22, 5 }, { 53, 52 } },
	{ "checkerboard", { 5, 5 }, { 7, 7 } },
	{ "large-among-small", { 14, 4 }, { 52, 54 } },
	{ "aligned-pairs", { 0, 0 }, { 1681, 1681 } },
	{ "aligned-scan", { 0, 0 }, { 1689, 1689 } },
	{ "runs-of-pairs", { 0, 0 }, { 2073, 2073 } },
	{ "aligned-runs", { 0, 0 }, { 9737, 9737 } },
	{ "windows", { 0, 0 }, { 744463, 744463 } },
	{ "aligned-pieces", { 0, 0 }, { 2605, 2605 } },
	{ "merge-all", { 0, 0 }, { 47, 48025 } },
	{ "next-free", { 0, 0 }, { 17, 66463 } },
	{ "owned-request", { 0, 0 }, { 8, 8 } },
	{ "owned-scan", { 0, 0 }, { 974, 974 } },
	{ "owned-largest", { 0, 0 }, { 967, 967 } },
};

static const struct limit *limit_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(limits); i++)
		if (!strcmp(limits[i].name, name))
			return &limits[i];
	fprintf(stderr, "no limit for %s\n", name);
	abort();
}

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
	count_within(t->meta, t->meta_size);
	return t;
}

static bool bench_alloc(struct bench *t, u64 size, u64 align)
{
	struct accmem_buddy_request req = { .size = size, .align = align };
	struct accmem_run *run = &t->live[t->nr_live];
	int err;

	count_begin();
	err = accmem_buddy_alloc(&t->b, &req, &run->start);
	if (t->nr_costs < 2 * OPS)
		t->cost[t->nr_costs++] = count_words();
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

	count_begin();
	if (accmem_buddy_free(&t->b, run.start, run.size))
		abort();
	if (t->nr_costs < 2 * OPS)
		t->cost[t->nr_costs++] = count_words();
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

static void bench_end(struct bench *t, const char *name)
{
	const struct limit *limit = limit_of(name);
	u32 median, most;
	bool ok;

	qsort(t->cost, t->nr_costs, sizeof(t->cost[0]), by_size);
	median = t->cost[t->nr_costs / 2];
	most = t->cost[t->nr_costs - 1];
	ok = median <= limit->median[cache] && most <= limit->most[cache] &&
	     most <= 20 * median;
	printf("%s cost=%s cache=%s median=%u limit=%u max=%u limit=%u failures=%llu\n",
	       ok ? "ok" : "FAILED", name, cache ? "on" : "off", median,
	       limit->median[cache], most, limit->most[cache], t->failures);
	count(ok);
	bench_drop(t);
}

static void pairs_in_an_empty_range(const char *name, u64 range, u64 size)
{
	struct bench *t = bench_new(range);
	int i;

	for (i = 0; i < OPS; i++) {
		bench_alloc(t, size, G);
		bench_free(t, 0);
	}
	bench_end(t, name);
}

static void bulk_then_random_frees(const char *name, u64 size, u64 align,
				   unsigned int n)
{
	struct bench *t = bench_new(4 * GIB);
	unsigned int i;

	for (i = 0; i < n; i++)
		bench_alloc(t, size, align);
	while (t->nr_live)
		bench_free(t, rng_below(&t->r, t->nr_live));
	if (largest_run(&t->b) != 4 * GIB)
		abort();
	bench_end(t, name);
}

static void churn(const char *name, u64 range, u64 most)
{
	struct bench *t = bench_new(range);
	int i;

	for (i = 0; i < OPS; i++) {
		while (accmem_buddy_free_bytes(&t->b) < range / 10 + most)
			bench_free(t, rng_below(&t->r, t->nr_live));
		bench_alloc(t, (1 + rng_below(&t->r, most / G)) * G, G);
	}
	bench_end(t, name);
}

/* Powers of two, as many as half of the range holds */
static void powers_of_two(const char *name)
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
	bench_end(t, name);
}

/* Every second granule free: no worse layout exists for a search. */
static void checkerboard(const char *name)
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
	bench_end(t, name);
}

/* Small blocks that the order cache knows all over, and large ones that come and go */
static void large_among_small(const char *name)
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
	bench_end(t, name);
}

/* Frees @n granules of each @step of them, from @lo on and below @hi. */
static void make_holes(struct bench *t, u64 lo, u64 hi, u64 step, u64 n)
{
	for (; lo < hi; lo += step)
		if (accmem_buddy_free(&t->b, lo * G, n * G))
			abort();
}

static void compare(const char *name, u64 accesses)
{
	u64 limit = limit_of(name)->most[cache];
	bool ok = accesses <= limit;

	printf("%s cost=%s cache=%s accesses=%llu limit=%llu\n",
	       ok ? "ok" : "FAILED", name, cache ? "on" : "off", accesses,
	       limit);
	count(ok);
}

static void answer(const char *name)
{
	compare(name, count_accesses());
}

/* The most that one step of a search costs that finds nothing in @words words */
static void answer_steps(const char *name, struct accmem_buddy *b,
			 const struct accmem_buddy_request *req, u64 words)
{
	u64 cursor = 0, most = 0, steps = 0, at;
	int err;

	do {
		count_begin();
		err = accmem_buddy_alloc_scan(b, req, &cursor, &at);
		most = count_accesses() > most ? count_accesses() : most;
		steps++;
	} while (err == -EAGAIN);
	if (err != -ENOSPC || steps > words / 256 + 1)
		abort();
	compare(name, most);
}

/*
 * A question with an alignment looks at words in which a run begins that is long
 * enough; here at each word, for pairs of granules at odd places. No call looks at
 * more than 256 of them, in a range of any size. Pieces that are too short for the
 * alignment are not looked at.
 */
static void questions_with_an_alignment(void)
{
	struct accmem_buddy_request req = { .size = 2 * G, .align = 2 * G };
	struct bench *t = bench_new(GIB);
	u64 i, at;
	struct accmem_run runs[64];
	unsigned int nr;

	for (i = 0; i < GIB / G; i++)
		if (accmem_buddy_alloc(&t->b,
				       &(struct accmem_buddy_request){
					       G, G, i * G, (i + 1) * G, 0, 0 },
				       &at) ||
		    at != i * G)
			abort();
	make_holes(t, 1, GIB / G, 4, 2);
	largest_run(&t->b);
	count_begin();
	if (accmem_buddy_alloc(&t->b, &req, &at) != -EAGAIN)
		abort();
	answer("aligned-pairs");
	for (i = 0; i < 2; i++) {
		req.flags = i ? ACCMEM_BUDDY_TOP_DOWN : 0;
		answer_steps("aligned-scan", &t->b, &req, GIB / G / 64);
	}
	req.flags = 0;
	count_begin();
	req.align = G;
	req.size = 65 * 2 * G;
	if (accmem_buddy_alloc_runs(&t->b, &req, runs, 64, &nr) != -E2BIG)
		abort();
	answer("runs-of-pairs");
	/* 64 holes of 35 granules, each at a multiple of 32 */
	for (i = 0; i < 64; i++)
		for (at = 0; at < 33; at += at & 3 ? 1 : 3)
			if (accmem_buddy_free(&t->b, (i * 4096 + 2048 + at) * G,
					      G))
				abort();
	count_begin();
	req.align = 32 * G;
	req.size = 65 * 32 * G;
	if (accmem_buddy_alloc_runs(&t->b, &req, runs, 64, &nr) != -E2BIG)
		abort();
	answer("aligned-runs");
	bench_drop(t);
}

/*
 * A window of 512 granules costs what it has, however many runs lie elsewhere.
 * In each word there is a hole of two granules at an odd place, which no request
 * with an alignment can use.
 */
static void windows_with_an_alignment(void)
{
	struct accmem_buddy_request req = { .size = 2 * G, .align = 2 * G };
	const u64 range = 8 * GIB, window = 512 * G;
	struct bench *t = bench_new(range);
	u64 at, i;

	if (!bench_alloc(t, range, G))
		abort();
	make_holes(t, 1, range / G, 64, 2);
	largest_run(&t->b);
	count_begin();
	for (i = 0; i < 2; i++) {
		req.flags = i ? ACCMEM_BUDDY_TOP_DOWN : 0;
		for (req.start = 0; req.start < range; req.start += window) {
			req.end = req.start + window;
			if (accmem_buddy_alloc(&t->b, &req, &at) != -ENOSPC)
				abort();
		}
	}
	answer("windows");
	bench_drop(t);
}

/*
 * Pieces of the least length that the alignment allows are not looked for behind more
 * than 256 words of others: here are 64 of them behind 32,000 that do not serve.
 */
static void pieces_with_an_alignment(void)
{
	struct accmem_buddy_request req = { .size = 65 * 32 * G,
					    .align = 32 * G };
	const u64 range = 8 * GIB;
	struct accmem_run runs[64];
	struct bench *t;
	unsigned int nr;

	t = bench_new(range);
	if (!bench_alloc(t, range, G))
		abort();
	/* holes of 62 granules, none of which has 32 at a multiple of 32 */
	make_holes(t, 33, range / G - 8192 - 31, 64, 62);
	make_holes(t, range / G - 8192, range / G, 128, 33);
	largest_run(&t->b);
	count_begin();
	if (accmem_buddy_alloc_runs(&t->b, &req, runs, 64, &nr) != -E2BIG)
		abort();
	answer("aligned-pieces");
	bench_drop(t);
}

/* Blocks that wait one beside the other are one free run. */
static void the_next_free_run_of_cached_blocks(void)
{
	struct bench *t = bench_new(4 * GIB);
	struct accmem_run run;
	unsigned int i;

	for (i = 0; i < 4000; i++)
		bench_alloc(t, G, G);
	for (i = 1000; i < 2000; i++)
		if (accmem_buddy_free(&t->b, t->live[i].start, G))
			abort();
	count_begin();
	if (!accmem_buddy_next_free(&t->b, t->live[1000].start, &run) ||
	    run.size != 1000 * G)
		abort();
	answer("next-free");
	bench_drop(t);
}

/* A question for the largest run merges the 1,024 blocks that wait. */
static void all_that_waits_merges(void)
{
	struct bench *t = bench_new(4 * GIB);
	unsigned int i;

	for (i = 0; i < 2048; i++)
		bench_alloc(t, (1 + i % 7) * G, G);
	for (i = 0; i < 2048; i += 2)
		if (accmem_buddy_free(&t->b, t->live[i].start, t->live[i].size))
			abort();
	count_begin();
	largest_run(&t->b);
	answer("merge-all");
	bench_drop(t);
}

/* Compare the costliest step of a search for the largest run of owner 2. */
static void largest_steps(const char *name, struct accmem_buddy *b)
{
	u64 cursor = 0, largest = 0, most = 0;
	int err;

	do {
		count_begin();
		err = accmem_buddy_largest_run_of(b, 2, &cursor, &largest);
		most = count_accesses() > most ? count_accesses() : most;
	} while (err == -EAGAIN);
	if (err || largest)
		abort();
	compare(name, most);
}

/*
 * Every second granule is free, and all folios belong to owner 1: there is nothing for owner 2,
 * and each call that finds this out looks at a bounded number of runs.
 */
static void folios_of_another_owner(void)
{
	static struct accmem_buddy_folio folios[GIB >> ACCMEM_BUDDY_FOLIO_SHIFT];
	struct accmem_buddy_request req = { .size = G, .align = G, .owner = 1 };
	struct bench *t = bench_new(GIB);
	u64 i, at;

	memset(folios, 0, sizeof(folios));
	accmem_buddy_set_owners(&t->b, folios);
	for (i = 0; i < GIB / G; i++) {
		req.start = i * G;
		req.end = (i + 1) * G;
		if (accmem_buddy_alloc(&t->b, &req, &at))
			abort();
	}
	for (i = 0; i < GIB / G; i += 2)
		if (accmem_buddy_free_owned(&t->b, i * G, G, 1))
			abort();
	req = (struct accmem_buddy_request){ .size = G,
					     .align = G,
					     .owner = 2 };
	largest_run(&t->b);
	count_begin();
	if (accmem_buddy_alloc(&t->b, &req, &at) != -ENOSPC)
		abort();
	answer("owned-request");
	answer_steps("owned-scan", &t->b, &req, GIB / G);
	largest_steps("owned-largest", &t->b);
	bench_drop(t);
}

static void workloads(void)
{
	pairs_in_an_empty_range("pair-4k", 4 * GIB, G);
	pairs_in_an_empty_range("pair-2m", 4 * GIB, 512 * G);
	pairs_in_an_empty_range("pair-odd", 4 * GIB, 12345 * G);
	pairs_in_an_empty_range("pair-4k-16t", BIT_ULL(44), G);
	pairs_in_an_empty_range("pair-1t-16t", BIT_ULL(44), BIT_ULL(40) + G);
	bulk_then_random_frees("bulk-4k", G, G, LIVE_MAX - 1);
	bulk_then_random_frees("bulk-8k-256k", 2 * G, 64 * G, 16384);
	churn("churn-small", GIB, 256 * G);
	churn("churn-4m", 4 * GIB, 1024 * G);
	powers_of_two("powers-of-two");
	checkerboard("checkerboard");
	large_among_small("large-among-small");
	questions_with_an_alignment();
	windows_with_an_alignment();
	pieces_with_an_alignment();
	all_that_waits_merges();
	the_next_free_run_of_cached_blocks();
	folios_of_another_owner();
}

int main(void)
{
	workloads();
	cache = true;
	workloads();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
