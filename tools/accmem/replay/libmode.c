// SPDX-License-Identifier: GPL-2.0
/*
 * Replay over lib/, in this process. The layout function, the allocator and the slab are
 * those of the driver, and are called as its ALLOC calls them for a contiguous buffer with
 * default values.
 */
#include <errno.h>
#include <linux/accmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/buddy/buddy.h"
#include "lib/layout/layout.h"
#include "lib/slab/slab.h"
#include "replay.h"

/* Return the processor time of this thread; the time of other processes does not count. */
static u64 cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* a granule from which small blocks are allocated */
struct slab_page {
	struct accmem_slab_granule slots;
	u64 start;
};

/* a range, which several heaps may use at the same time */
struct range {
	struct accmem_buddy buddy;
	struct accmem_buddy_folio *folios;
	void *meta;
	u64 size;
};

/* the allocations of one trace in a range */
struct heap {
	struct range *range;
	u64 owner;
	struct accmem_slab slab;
	struct accmem_run *runs; /* run of each id; size 0 if the id has none */
	struct slab_page **slab_pages; /* page of each small block */
	bool exact; /* sizes are not rounded up to a granule: there are small blocks */
	bool placement; /* print where each allocation is placed */
};

static int range_make(struct range *r, u64 size, bool owners)
{
	size_t meta_size = accmem_buddy_meta_size(size);

	if (!meta_size) {
		fprintf(stderr,
			"accmem: replay: no range can have %llu bytes\n", size);
		return -1;
	}
	r->size = size;
	r->meta = xcalloc(1, meta_size);
	r->folios = xcalloc((size >> ACCMEM_BUDDY_FOLIO_SHIFT) + 1,
			    sizeof(*r->folios));
	accmem_buddy_init(&r->buddy, size, r->meta);
	if (owners)
		accmem_buddy_set_owners(&r->buddy, r->folios);
	return 0;
}

static void range_unmake(struct range *r)
{
	free(r->folios);
	free(r->meta);
}

static void heap_make(struct heap *h, struct range *r, const struct trace *t)
{
	h->range = r;
	h->runs = xcalloc(t->nr_ids, sizeof(*h->runs));
	h->slab_pages = xcalloc(t->nr_ids, sizeof(*h->slab_pages));
	accmem_slab_init(&h->slab);
}

/* Allocate a run as the driver does. */
static bool range_alloc(struct heap *h, struct accmem_buddy_request *req,
			u64 *start)
{
	struct accmem_buddy *b = &h->range->buddy;
	u64 cursor = 0;
	int err;

	req->owner = h->owner;
	err = accmem_buddy_alloc(b, req, start);
	if (err == -EAGAIN || (err && h->owner)) {
		do {
			err = accmem_buddy_alloc_scan(b, req, &cursor, start);
		} while (err == -EAGAIN);
	}
	return !err;
}

/* Allocate a granule for small blocks. */
static bool add_slab_page(struct heap *h)
{
	struct accmem_buddy_request req = { .size = ACCMEM_GRANULE,
					    .align = ACCMEM_GRANULE };
	struct slab_page *slab_page = xcalloc(1, sizeof(*slab_page));

	if (!range_alloc(h, &req, &slab_page->start)) {
		free(slab_page);
		return false;
	}
	accmem_slab_add(&h->slab, &slab_page->slots);
	return true;
}

static bool small_alloc(struct heap *h, u32 id,
			const struct accmem_layout *layout)
{
	struct accmem_slab_granule *slots;
	unsigned int offset;

	do {
		slots = accmem_slab_alloc(&h->slab, layout->footprint,
					  layout->alignment, &offset);
	} while (!slots && add_slab_page(h));
	if (!slots)
		return false;
	h->slab_pages[id] = list_entry(slots, struct slab_page, slots);
	h->runs[id].start = h->slab_pages[id]->start + offset;
	h->runs[id].size = layout->footprint;
	return true;
}

static bool small_free(struct heap *h, u32 id)
{
	struct slab_page *slab_page = h->slab_pages[id];
	u64 start = slab_page->start;
	int empty;

	h->slab_pages[id] = NULL;
	empty = accmem_slab_free(&h->slab, &slab_page->slots,
				 h->runs[id].start - start, h->runs[id].size);
	if (empty <= 0)
		return !empty;
	free(slab_page);
	return !accmem_buddy_free_owned(&h->range->buddy, start, ACCMEM_GRANULE,
					h->owner);
}

static bool heap_alloc(struct heap *h, const struct event *e, u64 granule)
{
	static const struct accmem_layout_caps caps = {
		.page_sizes = ACCMEM_GRANULE | 1ull << 21,
		.max_alignment = 1ull << 30,
	};
	struct accmem_layout_request ask = {
		.length = h->exact ? e->bytes : round_up_to(e->bytes, granule),
		.page_policy = ACCMEM_PAGE_ANY,
	};
	struct accmem_run *run = &h->runs[e->id];
	struct accmem_buddy_request req = {};
	struct accmem_layout layout;

	if (accmem_layout(&ask, &caps, &layout))
		return false;
	if (layout.small)
		return small_alloc(h, e->id, &layout);
	req.size = layout.footprint;
	req.align = layout.alignment;
	if (!range_alloc(h, &req, &run->start))
		return false;
	run->size = req.size;
	return true;
}

static void heap_free(struct heap *h, u32 id)
{
	struct accmem_run *run = &h->runs[id];

	if (!run->size)
		return;
	if (h->slab_pages[id] ?
		    !small_free(h, id) :
		    accmem_buddy_free_owned(&h->range->buddy, run->start,
					    run->size, h->owner)) {
		fprintf(stderr, "accmem: replay: id %u cannot be freed\n", id);
		abort();
	}
	run->size = 0;
}

static void heap_unmake(struct heap *h, const struct trace *t)
{
	u32 id;

	/* the frees of the small blocks also free their slab pages */
	for (id = 0; id < t->nr_ids; id++)
		heap_free(h, id);
	free(h->runs);
	free(h->slab_pages);
}

static void draw(struct heap *h, const struct trace *t)
{
	struct picture *p = picture_new(h->range->size);
	struct accmem_run run;
	u64 at = 0;

	while (accmem_buddy_next_free(&h->range->buddy, at, &run)) {
		picture_add(p, at, run.start - at);
		at = run.start + run.size;
	}
	picture_add(p, at, h->range->size - at);
	picture_print(p, t->name);
}

/* Print a line in the format of a trace, with the offset after the identifier. */
static void print_placement(const struct heap *h, u32 id)
{
	if (h->placement)
		printf("a %u %llu %llu\n", id, h->runs[id].start,
		       h->runs[id].size);
}

/* Replay the events [from, to). Return the number of failed allocations. */
static u64 play(struct heap *h, const struct trace *t, u64 granule, size_t from,
		size_t to)
{
	u64 failures = 0;
	size_t i;

	for (i = from; i < to; i++) {
		const struct event *e = &t->events[i];

		if (!e->bytes)
			heap_free(h, e->id);
		else if (!heap_alloc(h, e, granule))
			failures++;
		else
			print_placement(h, e->id);
	}
	return failures;
}

int replay_lib(const struct trace *t, const struct replay_options *o,
	       struct replay_result *r)
{
	u64 capacity = o->capacity ? o->capacity : 2 * t->peak, start, spent;
	struct heap h = { .exact = o->granule == GRANULE_MIN,
			  .placement = o->placement };
	struct range range;

	if (range_make(&range, capacity, false))
		return -1;
	heap_make(&h, &range, t);
	start = cpu_ns();
	r->failures = play(&h, t, o->granule, 0, t->peak_event + 1);
	spent = cpu_ns() - start;
	r->footprint = capacity - accmem_buddy_free_bytes(&range.buddy);
	if (o->map)
		draw(&h, t);
	start = cpu_ns();
	r->failures += play(&h, t, o->granule, t->peak_event + 1, t->nr_events);
	spent += cpu_ns() - start;
	r->ns_per_op = (double)spent / t->nr_events;
	r->has_failures = true;
	r->has_footprint = true;
	r->has_time = true;
	heap_unmake(&h, t);
	range_unmake(&range);
	return 0;
}

/*
 * Does a range of @size serve @nr traces, which take turns event by event? Return -1 after
 * a message on an error.
 */
static int serves(const struct trace *t, unsigned int nr, u64 size,
		  const struct replay_options *o)
{
	unsigned int k, left = nr;
	struct range range;
	u64 failures = 0;
	struct heap *h;
	size_t i;

	if (range_make(&range, size, o->owners))
		return -1;
	h = xcalloc(nr, sizeof(*h));
	for (k = 0; k < nr; k++) {
		h[k].owner = o->owners ? k + 1 : 0;
		heap_make(&h[k], &range, &t[k]);
	}
	for (i = 0; left && !failures; i++)
		for (k = 0, left = 0; k < nr; k++) {
			left += i + 1 < t[k].nr_events;
			if (i < t[k].nr_events)
				failures += play(&h[k], &t[k], o->granule, i,
						 i + 1);
		}
	for (k = 0; k < nr; k++)
		heap_unmake(&h[k], &t[k]);
	free(h);
	range_unmake(&range);
	return !failures;
}

/*
 * A larger range may fail although a smaller range serves: this many sizes in a row must
 * serve.
 */
#define IN_A_ROW 9
#define STEPS 512
#define STEPS_MAX (16 * STEPS)

/* Return the maximum of the live bytes of @nr traces, which take turns event by event. */
static u64 peak_of(const struct trace *t, unsigned int nr, u64 granule)
{
	u64 **bytes = xcalloc(nr, sizeof(*bytes)), live = 0, peak = 0;
	unsigned int k, left = nr;
	size_t i;

	for (k = 0; k < nr; k++)
		bytes[k] = xcalloc(t[k].nr_ids, sizeof(**bytes));
	for (i = 0; left; i++)
		for (k = 0, left = 0; k < nr; k++) {
			if (i >= t[k].nr_events)
				continue;
			live -= bytes[k][t[k].events[i].id];
			bytes[k][t[k].events[i].id] =
				round_up_to(t[k].events[i].bytes, granule);
			live += bytes[k][t[k].events[i].id];
			peak = live > peak ? live : peak;
			left++;
		}
	for (k = 0; k < nr; k++)
		free(bytes[k]);
	free(bytes);
	return peak;
}

int replay_min_heap(const struct trace *t, unsigned int nr,
		    const struct replay_options *o, struct replay_result *r)
{
	unsigned int in_a_row = 0, i;
	u64 peak = peak_of(t, nr, o->granule), step;
	int ok;

	step = round_up_to((peak + STEPS - 1) / STEPS, GRANULE_MIN);
	for (i = 0; in_a_row < IN_A_ROW; i++) {
		if (i == STEPS_MAX) {
			fprintf(stderr,
				"accmem: replay: %s: no heap is enough\n",
				t->name);
			return -1;
		}
		progress("replay: %s: %u heap sizes tried", t->name, i);
		ok = serves(t, nr, peak + i * step, o);
		if (ok < 0)
			return -1;
		in_a_row = ok ? in_a_row + 1 : 0;
	}
	r->peak = peak;
	r->min_heap = peak + (i - IN_A_ROW) * step;
	r->has_min_heap = true;
	return 0;
}
