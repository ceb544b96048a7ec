// SPDX-License-Identifier: GPL-2.0
/*
 * Workloads: lists of events. All random choices are made when a list is generated, so
 * the same seed gives the same events for every allocator, even if allocations fail.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "core.h"
#include "traces.h"

#define RANGE ((u32)(BENCH_RANGE / BENCH_GRANULE))
#define MIB ((u32)(BIT_ULL(20) / BENCH_GRANULE))
#define WARM 1000
#define LIVE 1024
#define IDS 131072

/**
 * struct plan - a workload that is being generated
 * @w: the workload
 * @events: events of the workload
 * @state: state of the random number generator
 * @live: ids of the blocks in use, in any order, then all other ids
 * @size: size of each block in granules
 * @nr_live: number of blocks in use
 * @granules: number of granules in use
 * @failed: the kernel was out of memory
 */
struct plan {
	struct bench_workload *w;
	struct bench_event *events;
	u64 state;
	u32 *live;
	u32 *size;
	u32 nr_live;
	u64 granules;
	bool failed;
};

/* xorshift64*, from which the upper half is used */
static u32 random_below(struct plan *p, u32 n)
{
	p->state ^= p->state >> 12;
	p->state ^= p->state << 25;
	p->state ^= p->state >> 27;
	return ((p->state * 0x2545f4914f6cdd1dull >> 32) * n) >> 32;
}

static bool grow(struct plan *p)
{
	u32 room = p->w->room ? 2 * p->w->room : 4096;
	struct bench_event *events = bench_calloc(room, sizeof(*events));

	if (!events) {
		p->failed = true;
		return false;
	}
	if (p->w->nr_events)
		memcpy(events, p->events, p->w->nr_events * sizeof(*events));
	bench_release(p->events);
	p->events = events;
	p->w->room = room;
	return true;
}

static void push(struct plan *p, u32 id, u32 granules)
{
	if (p->w->nr_events == p->w->room && !grow(p))
		return;
	p->events[p->w->nr_events++] = (struct bench_event){ id, granules };
	p->w->nr_ids = max(p->w->nr_ids, id + 1);
}

/* live[] is a permutation of all ids; the ids in use come first. */
static void push_alloc(struct plan *p, u32 granules)
{
	u32 id = p->live[p->nr_live++];

	push(p, id, granules);
	p->size[id] = granules;
	p->granules += granules;
}

static void push_free(struct plan *p)
{
	u32 at = random_below(p, p->nr_live);
	u32 id = p->live[at];

	push(p, id, 0);
	p->granules -= p->size[id];
	p->live[at] = p->live[--p->nr_live];
	p->live[p->nr_live] = id;
}

static void setup_ends(struct plan *p)
{
	p->w->nr_setup = p->w->nr_events;
}

/* A block is allocated and freed in an empty range, again and again. */
static void pairs(struct plan *p, u32 granules, u32 n)
{
	u32 i;

	for (i = 0; i < WARM + n; i++) {
		if (i == WARM)
			setup_ends(p);
		push_alloc(p, granules);
		push_free(p);
	}
}

/* @live blocks stay live: each time a random block is freed, and another allocated. */
static void pairs_among(struct plan *p, u32 granules, u32 live, u32 n)
{
	u32 i;

	for (i = 0; i < live; i++)
		push_alloc(p, granules);
	for (i = 0; i < WARM + n; i++) {
		if (i == WARM)
			setup_ends(p);
		push_free(p);
		push_alloc(p, granules);
	}
}

/* @live blocks are allocated, then freed in random order, until @n were allocated. */
static void batches(struct plan *p, u32 granules, u32 live, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		push_alloc(p, granules);
		if (p->nr_live < live && i < n - 1)
			continue;
		while (p->nr_live)
			push_free(p);
	}
}

static u32 power_of_two(struct plan *p)
{
	return 1 << random_below(p, 11);
}

static u32 no_power_of_two(struct plan *p)
{
	u32 granules;

	do {
		granules = 1 + random_below(p, 4 * MIB);
	} while (is_power_of_2(granules));
	return granules;
}

/* Random blocks are freed when the next block would exceed the limit. */
static void churn(struct plan *p, u32 (*size)(struct plan *p), u32 limit,
		  u32 n)
{
	u32 granules = size(p), i;

	while (p->granules + granules <= limit) {
		push_alloc(p, granules);
		granules = size(p);
	}
	setup_ends(p);
	for (i = 0; i < n; i++) {
		while (p->granules + granules > limit)
			push_free(p);
		push_alloc(p, granules);
		granules = size(p);
	}
}

enum kind { PAIRS, PAIRS_AMONG, BATCHES, BULK, POWERS, CHURN };

static const struct recipe {
	const char *name;
	enum kind kind;
	u32 granules;
	u32 align; /* in granules */
	u32 n;
} recipes[] = {
	{ "pair-4k", PAIRS, 1, 1, 50000 },
	{ "pair-2m", PAIRS, 2 * MIB, 1, 50000 },
	{ "pair-4k-live", PAIRS_AMONG, 1, 1, 50000 },
	{ "pair-2m-live", PAIRS_AMONG, 2 * MIB, 1, 50000 },
	{ "batch-4k", BATCHES, 1, 1, 51200 },
	{ "batch-2m", BATCHES, 2 * MIB, 1, 51200 },
	{ "bulk-4k", BULK, 1, 1, 65536 },
	{ "mix-pow2", POWERS, 0, 1, 100000 },
	{ "churn-90", CHURN, 0, 1, 200000 },
	{ "align-256k", BULK, 2, MIB / 4, 16384 },
};

static void follow(struct plan *p, const struct recipe *r, u32 n)
{
	switch (r->kind) {
	case PAIRS:
		pairs(p, r->granules, n);
		break;
	case PAIRS_AMONG:
		pairs_among(p, r->granules, LIVE, n);
		break;
	case BATCHES:
		batches(p, r->granules, LIVE, n);
		break;
	case BULK:
		batches(p, r->granules, n, n);
		break;
	case POWERS:
		churn(p, power_of_two, RANGE / 2, n);
		break;
	case CHURN:
		churn(p, no_power_of_two, RANGE / 10 * 9, n);
		break;
	}
}

static int make(struct bench_workload *w, const struct recipe *r, u64 seed,
		u32 n)
{
	struct plan p = { .w = w, .state = seed ? seed : 1 };
	u32 i;

	p.live = bench_calloc(IDS, sizeof(*p.live));
	p.size = bench_calloc(IDS, sizeof(*p.size));
	if (p.live && p.size) {
		for (i = 0; i < IDS; i++)
			p.live[i] = i;
		follow(&p, r, n);
	} else {
		p.failed = true;
	}
	bench_release(p.live);
	bench_release(p.size);
	w->event = p.events;
	if (p.failed)
		bench_workload_free(w);
	return p.failed ? -ENOMEM : 0;
}

int bench_workload_make(struct bench_workload *w, unsigned int index, u64 seed,
			unsigned int percent)
{
	const struct recipe *r;

	*w = (struct bench_workload){ .align = BENCH_GRANULE };
	if (index < ARRAY_SIZE(recipes)) {
		r = &recipes[index];
		w->name = r->name;
		w->align = r->align * BENCH_GRANULE;
		return make(w, r, seed, r->n / 100 * percent + r->n % 100);
	}
	index -= ARRAY_SIZE(recipes);
	if (index >= ARRAY_SIZE(bench_traces))
		return -ENOENT;
	w->name = bench_traces[index].name;
	w->event = bench_traces[index].event;
	w->nr_events = bench_traces[index].nr_events;
	w->nr_ids = bench_traces[index].nr_ids;
	return 0;
}

void bench_workload_free(struct bench_workload *w)
{
	if (w->room)
		bench_release(w->event);
	w->event = NULL;
}
