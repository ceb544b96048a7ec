// SPDX-License-Identifier: GPL-2.0
/*
 * Replaying over lib/, in this process: the layout function, the allocator and
 * the slab that the driver runs, called as its ALLOC calls them for a contiguous
 * buffer with every default.
 */
#include <linux/accmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accmem_buddy.h"
#include "accmem_layout.h"
#include "accmem_slab.h"
#include "replay.h"

/* a granule that small blocks are cut from */
struct sheet {
	struct accmem_slab_granule units;
	u64 start;
};

struct heap {
	struct accmem_buddy buddy;
	struct accmem_slab slab;
	struct accmem_run *runs; /* of each id; size 0 when it has none */
	struct sheet **sheets; /* likewise, of small blocks */
	bool exact; /* sizes as asked for: small ones are small blocks */
	void *meta;
	u64 size;
	size_t meta_size;
};

static int heap_make(struct heap *h, const struct trace *t, u64 size)
{
	h->size = size;
	h->meta_size = accmem_buddy_meta_size(size);
	if (!h->meta_size) {
		fprintf(stderr, "accmem-replay: no range can have %llu bytes\n",
			size);
		return -1;
	}
	h->meta = xcalloc(1, h->meta_size);
	h->runs = xcalloc(t->nr_ids, sizeof(*h->runs));
	h->sheets = xcalloc(t->nr_ids, sizeof(*h->sheets));
	accmem_slab_init(&h->slab);
	return accmem_buddy_init(&h->buddy, size, h->meta);
}

/* a granule more for small blocks */
static bool add_sheet(struct heap *h)
{
	struct accmem_buddy_request req = { .size = ACCMEM_GRANULE,
					    .align = ACCMEM_GRANULE };
	struct sheet *sheet = xcalloc(1, sizeof(*sheet));

	if (accmem_buddy_alloc(&h->buddy, &req, &sheet->start)) {
		free(sheet);
		return false;
	}
	accmem_slab_add(&h->slab, &sheet->units);
	return true;
}

static bool small_alloc(struct heap *h, u32 id,
			const struct accmem_layout *layout)
{
	struct accmem_slab_granule *units;
	unsigned int offset;

	do {
		units = accmem_slab_alloc(&h->slab, layout->footprint,
					  layout->alignment, &offset);
	} while (!units && add_sheet(h));
	if (!units)
		return false;
	h->sheets[id] = list_entry(units, struct sheet, units);
	h->runs[id].start = h->sheets[id]->start + offset;
	h->runs[id].size = layout->footprint;
	return true;
}

static bool small_free(struct heap *h, u32 id)
{
	struct sheet *sheet = h->sheets[id];
	u64 start = sheet->start;
	int empty;

	h->sheets[id] = NULL;
	empty = accmem_slab_free(&h->slab, &sheet->units,
				 h->runs[id].start - start, h->runs[id].size);
	if (empty <= 0)
		return !empty;
	free(sheet);
	return !accmem_buddy_free(&h->buddy, start, ACCMEM_GRANULE);
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
	if (accmem_buddy_alloc(&h->buddy, &req, &run->start))
		return false;
	run->size = req.size;
	return true;
}

static void heap_free(struct heap *h, u32 id)
{
	struct accmem_run *run = &h->runs[id];

	if (!run->size)
		return;
	if (h->sheets[id] ?
		    !small_free(h, id) :
		    accmem_buddy_free(&h->buddy, run->start, run->size)) {
		fprintf(stderr, "accmem-replay: id %u cannot be freed\n", id);
		abort();
	}
	run->size = 0;
}

static void heap_unmake(struct heap *h, const struct trace *t)
{
	u32 id;

	/* the sheets that are left are among what is freed */
	for (id = 0; id < t->nr_ids; id++)
		heap_free(h, id);
	free(h->meta);
	free(h->runs);
	free(h->sheets);
}

static void draw(struct heap *h, const struct trace *t)
{
	struct picture *p = picture_new(h->size);
	struct accmem_run run;
	u64 at = 0;

	while (accmem_buddy_next_free(&h->buddy, at, &run)) {
		picture_add(p, at, run.start - at);
		at = run.start + run.size;
	}
	picture_add(p, at, h->size - at);
	picture_print(p, t->name);
}

/* Events [from, to); returns how many allocations failed. */
static u64 play(struct heap *h, const struct trace *t, u64 granule,
		size_t from, size_t to)
{
	u64 failures = 0;
	size_t i;

	for (i = from; i < to; i++) {
		const struct event *e = &t->events[i];

		if (!e->bytes)
			heap_free(h, e->id);
		else if (!heap_alloc(h, e, granule))
			failures++;
	}
	return failures;
}

int replay_lib(const struct trace *t, const struct options *o,
	       struct result *r)
{
	u64 capacity = o->capacity ? o->capacity : 2 * t->peak, start, spent;
	struct heap h = { .exact = o->granule == GRANULE_MIN };

	if (heap_make(&h, t, capacity))
		return -1;
	start = cpu_ns();
	r->failures = play(&h, t, o->granule, 0, t->peak_event + 1);
	spent = cpu_ns() - start;
	r->footprint = capacity - accmem_buddy_free_bytes(&h.buddy);
	if (o->map)
		draw(&h, t);
	start = cpu_ns();
	r->failures += play(&h, t, o->granule, t->peak_event + 1,
			    t->nr_events);
	spent += cpu_ns() - start;
	r->ns_per_op = (double)spent / t->nr_events;
	r->has_failures = true;
	r->has_footprint = true;
	r->has_time = true;
	heap_unmake(&h, t);
	return 0;
}

static bool serves(struct heap *h, const struct trace *t, u64 granule)
{
	size_t i;

	for (i = 0; i < t->nr_events; i++) {
		const struct event *e = &t->events[i];

		if (!e->bytes)
			heap_free(h, e->id);
		else if (!heap_alloc(h, e, granule))
			return false;
	}
	return true;
}

/* Success is not monotone in the size: this many in a row are asked for. */
#define IN_A_ROW 9
#define STEPS 512
#define STEPS_MAX (16 * STEPS)

int replay_min_heap(const struct trace *t, const struct options *o,
		    struct result *r)
{
	u64 step = round_up_to((t->peak + STEPS - 1) / STEPS, GRANULE_MIN);
	unsigned int in_a_row = 0, i;
	struct heap h = {};
	bool ok;

	for (i = 0; in_a_row < IN_A_ROW; i++) {
		if (i == STEPS_MAX) {
			fprintf(stderr, "accmem-replay: %s: no heap is enough\n",
				t->name);
			return -1;
		}
		progress(t, "heap sizes tried", i, STEPS);
		if (heap_make(&h, t, t->peak + i * step))
			return -1;
		ok = serves(&h, t, o->granule);
		heap_unmake(&h, t);
		in_a_row = ok ? in_a_row + 1 : 0;
	}
	r->min_heap = t->peak + (i - IN_A_ROW) * step;
	r->has_min_heap = true;
	return 0;
}
