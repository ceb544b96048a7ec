// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Calls drawn from a generator, on the allocator and on the naive reference
 * side by side; after every one of them the two must agree on everything that
 * can be asked. The property test draws at random, the fuzzer from its input.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/layout/layout.h"
#include "lib/buddy/internal.h"
#include "model.h"
#include "world.h"

#define G ACCMEM_GRANULE
#define MAX_RUNS 8
#define SIZES 4
#define BLOCKS 64

/**
 * struct world - one instance and its reference
 * @cache: it has an order cache, which is on
 * @calm: few sizes, hardly a window or an end, and what merges all that is cached
 *	is seldom asked, so that the order cache fills
 * @folios: with the rule of owners
 * @sizes: in granules, of most requests in a calm world
 * @block: what was allocated lately, which may have been given back since
 */
struct world {
	struct accmem_buddy b;
	struct model m;
	struct rng r;
	void *meta;
	const char *origin;
	u64 step;
	bool cache;
	bool calm;
	struct accmem_buddy_folio *folios;
	u64 sizes[SIZES];
	struct accmem_run block[BLOCKS];
};

static void fail(const struct world *w, const char *what)
{
	fprintf(stderr, "FAILED: %s (%s, step %llu, %llu granules)\n", what,
		w->origin, w->step, w->m.nr);
	exit(1);
}

#define CHECK(w, condition)                  \
	do {                                 \
		if (!(condition))            \
			fail(w, #condition); \
	} while (0)

/* Exact below 8, then by the two bits below the highest */
static unsigned int size_class(u64 n)
{
	unsigned int shift = 0;

	while (n >> shift >= 8)
		shift++;
	return 4 * shift + (n >> shift);
}

/* Sizes of all magnitudes, small ones as often as large ones */
static u64 some_size(struct world *w, u64 most)
{
	unsigned int bits = 0;

	while (most >> bits)
		bits++;
	return 1 + rng_below(&w->r, 1ull << rng_below(&w->r, bits)) % most;
}

static void random_request(struct world *w, struct accmem_buddy_request *req)
{
	u64 a, b;

	memset(req, 0, sizeof(*req));
	req->align = G;
	if (w->m.rule)
		req->owner = rng_below(&w->r, 4);
	if (w->calm && rng_below(&w->r, 32)) {
		req->size = w->sizes[rng_below(&w->r, SIZES)] * G;
		return;
	}
	req->size = some_size(w, w->m.nr) * G;
	if (rng_below(&w->r, 3) == 0)
		req->align = G << rng_below(&w->r, 11);
	if (rng_below(&w->r, 4) == 0) {
		a = rng_below(&w->r, w->m.nr + 1);
		b = rng_below(&w->r, w->m.nr + 1);
		req->start = (a < b ? a : b) * G;
		req->end = (a < b ? b : a) * G;
		if (!req->end)
			req->end = G;
	}
	if (rng_next(&w->r) & 1)
		req->flags = ACCMEM_BUDDY_TOP_DOWN;
}

/* The run that a request without other wishes is cut from, or its size 0 */
static struct accmem_run run_around(const struct world *w, u64 at)
{
	struct accmem_run run = {};
	u64 pos = 0;

	while (model_next(&w->m, pos, MODEL_USED, false, &run) &&
	       run.start + run.size <= at)
		pos = run.start + run.size;
	return run;
}

/* Requests from 1/512 of the range on, up to 1/256, are placed by other rules. */
static bool is_big(const struct world *w, u64 n)
{
	u64 section = 1;

	while (w->m.nr > 512 * section)
		section *= 2;
	return n >= section;
}

/*
 * Requests are cut from the end of a run. Best fit up to classes of size: the
 * run is of the same class as the smallest that serves, unless the request's
 * own class has more runs than are looked at. Not so with the order cache: a
 * block of the right size is taken wherever it is.
 */
static void fits_best(struct world *w, const struct accmem_buddy_request *req,
		      u64 at)
{
	struct accmem_run run, taken = run_around(w, at);
	unsigned int own = 0;
	u64 pos, smallest = ~0ull;

	if (w->cache || req->owner || req->align != G || req->start ||
	    req->end || req->flags)
		return;
	pos = taken.start + taken.size;
	CHECK(w, at == taken.start || at + req->size == pos);
	if (at != taken.start || is_big(w, req->size / G))
		return; /* kept apart from large blocks, or placed among them */
	pos = 0;
	while (model_next(&w->m, pos, MODEL_USED, false, &run)) {
		pos = run.start + run.size;
		if (run.size >= req->size && run.size < smallest)
			smallest = run.size;
		own += size_class(run.size / G) == size_class(req->size / G);
	}
	if (own > 4)
		return;
	CHECK(w, size_class(taken.size / G) == size_class(smallest / G));
	CHECK(w, smallest >= 8 * G || taken.size == smallest);
}

/* As a caller does it: at once, or by a search in steps */
static int alloc_or_scan(struct world *w,
			 const struct accmem_buddy_request *req, u64 *at)
{
	u64 cursor = 0, steps = 0;
	int err;

	err = accmem_buddy_alloc(&w->b, req, at);
	if (err != -EAGAIN &&
	    (err != -ENOSPC || (!req->owner && rng_below(&w->r, 8))))
		return err;
	do {
		err = accmem_buddy_alloc_scan(&w->b, req, &cursor, at);
	} while (err == -EAGAIN && ++steps <= w->m.nr);
	return err;
}

/* Bytes of folios of which somebody but the cleaner has a granule, or all in use */
static u64 held_bytes(const struct world *w)
{
	u64 i, n = 0;

	if (!w->m.rule)
		return model_count(&w->m, MODEL_USED, MODEL_USED);
	for (i = 0; i < w->m.nr; i += MODEL_FOLIO)
		if (model_folio_used(&w->m, i) > model_folio_cleaning(&w->m, i))
			n += w->m.nr - i < MODEL_FOLIO ? w->m.nr - i :
							 MODEL_FOLIO;
	return n * G;
}

static void do_alloc(struct world *w, struct accmem_run *block)
{
	struct accmem_buddy_request req;
	u64 at = 0, held = held_bytes(w);
	struct model view;
	bool fits;
	int err;

	random_request(w, &req);
	view = model_view(&w->m, req.owner);
	fits = model_fits(&view, &req);
	err = alloc_or_scan(w, &req, &at);
	CHECK(w, err == (fits ? 0 : -ENOSPC));
	if (!err)
		CHECK(w, model_lawful(&view, &req, at));
	model_view_free(&w->m, &view);
	if (err)
		return;
	fits_best(w, &req, at);
	model_alloc(&w->m, at, req.size, req.owner);
	CHECK(w, accmem_buddy_claimed(&w->b, at, req.size) ==
			 held_bytes(w) - held);
	block->start = at;
	block->size = req.size;
}

static void do_alloc_runs(struct world *w)
{
	unsigned int max_runs = 1 + rng_below(&w->r, MAX_RUNS), nr = 0, i;
	struct accmem_run runs[MAX_RUNS];
	struct accmem_buddy_request req, piece;
	bool exact, bounded;
	u64 left;
	int err, want;

	random_request(w, &req);
	/* at most four searches for each piece */
	exact = req.align == G ||
		4 * (max_runs + 1) * DIV_ROUND_UP(w->m.nr, 64) <= FIND_WORDS;
	err = accmem_buddy_alloc_runs(&w->b, &req, runs, max_runs, &nr);
	want = model_runs_result(&w->m, &req, max_runs);
	/* a search that ends early finds other pieces, which may be too many, or just fit */
	bounded = err == -E2BIG || (!err && want == -E2BIG);
	CHECK(w, err == want || (!exact && bounded));
	if (err)
		return;
	CHECK(w, nr >= 1 && nr <= max_runs);
	CHECK(w, !exact || (nr == 1) == model_fits(&w->m, &req));
	for (i = 0, left = req.size; i < nr; i++) {
		piece = req;
		piece.size = runs[i].size;
		CHECK(w, runs[i].size && runs[i].size <= left);
		CHECK(w, i == nr - 1 || runs[i].size % req.align == 0);
		CHECK(w, model_lawful(&w->m, &piece, runs[i].start));
		model_alloc(&w->m, runs[i].start, runs[i].size, 0);
		left -= runs[i].size;
	}
	CHECK(w, !left);
}

static bool is_live(const struct world *w, u64 start, u64 size)
{
	return size && start < w->m.nr * G && size <= w->m.nr * G - start &&
	       model_all(&w->m, start, size, MODEL_USED, true);
}

/* What one owner has of a run, from its start on */
static u64 of_one_owner(const struct world *w, u64 start, u64 size)
{
	u64 i = start / G;

	while (i < (start + size) / G && w->m.taker[i] == w->m.taker[start / G])
		i++;
	return i * G - start;
}

static u64 taker(const struct world *w, u64 start)
{
	u8 owner = w->m.taker[start / G];

	return owner == MODEL_CLEANER ? ACCMEM_BUDDY_CLEANER : owner;
}

/* Is any of it retired? */
static bool is_retired(const struct world *w, u64 start, u64 size)
{
	return !model_all(&w->m, start, size, MODEL_RETIRED, false);
}

static void free_run(struct world *w, u64 start, u64 size)
{
	u64 claimed = 0, held = held_bytes(w);

	if (is_live(w, start, size) && is_retired(w, start, size))
		return; /* no caller does so */
	if (!is_live(w, start, size)) {
		CHECK(w, accmem_buddy_free(&w->b, start, size) == -EINVAL);
		return;
	}
	if (w->m.rule) {
		size = of_one_owner(w, start, size);
		if (taker(w, start) != ACCMEM_BUDDY_CLEANER)
			claimed = accmem_buddy_claimed(&w->b, start, size);
		CHECK(w, !accmem_buddy_free_owned(&w->b, start, size,
						  taker(w, start)));
	} else {
		CHECK(w, !accmem_buddy_free(&w->b, start, size));
	}
	model_free(&w->m, start, size);
	CHECK(w, !w->m.rule || claimed == held - held_bytes(w));
}

/* A block as it was allocated, if it is still there; else another one */
static void do_block(struct world *w)
{
	struct accmem_run *block = &w->block[rng_below(&w->r, BLOCKS)];

	if (is_live(w, block->start, block->size))
		free_run(w, block->start, block->size);
	else
		do_alloc(w, block);
}

/* A used run in full, a part of one, or anything at all */
static void do_free(struct world *w)
{
	struct accmem_run run;
	u64 skip, size;

	if (!model_next(&w->m, rng_below(&w->r, w->m.nr) * G, MODEL_USED, true,
			&run))
		return;
	skip = rng_below(&w->r, 2) ? rng_below(&w->r, run.size / G) * G : 0;
	size = some_size(w, (run.size - skip) / G) * G;
	if (rng_below(&w->r, 3) == 0)
		size = run.size - skip;
	run.start += skip;
	if (rng_below(&w->r, 8) == 0) {
		run.start = rng_below(&w->r, w->m.nr + 2) * G;
		size = some_size(w, w->m.nr) * G;
	}
	free_run(w, run.start, size);
}

/* Has anybody else a part of the folios of a run? */
static bool has_company(const struct world *w, const struct accmem_run *run)
{
	u64 first = run->start / G, end = first + run->size / G, i;

	for (i = first - first % MODEL_FOLIO;
	     i < w->m.nr && (i < end || i % MODEL_FOLIO); i++) {
		if ((i < first || i >= end) &&
		    model_all(&w->m, i * G, G, MODEL_USED, true) &&
		    !is_retired(w, i * G, G))
			return true;
	}
	return false;
}

/* What one owner has becomes another's, if it has its folios to itself. */
static void do_chown(struct world *w)
{
	u64 to = 1 + rng_below(&w->r, 3), held = held_bytes(w);
	struct accmem_run run;
	bool refused;

	if (!w->m.rule || !model_next(&w->m, rng_below(&w->r, w->m.nr) * G,
				      MODEL_USED, true, &run))
		return;
	run.size = of_one_owner(w, run.start, run.size);
	if (taker(w, run.start) == ACCMEM_BUDDY_CLEANER ||
	    !taker(w, run.start) || is_retired(w, run.start, G))
		return;
	refused = has_company(w, &run);
	CHECK(w, accmem_buddy_chown(&w->b, run.start, run.size,
				    taker(w, run.start),
				    to) == (refused ? -EBUSY : 0));
	if (!refused)
		model_chown(&w->m, run.start, run.size, to);
	CHECK(w, held_bytes(w) == held);
}

/* A granule is retired, but few are, so that there is memory for the other calls. */
static void do_retire(struct world *w)
{
	u64 at = rng_below(&w->r, w->m.nr) * G, held = held_bytes(w);
	u64 retired = model_count(&w->m, MODEL_RETIRED, MODEL_RETIRED);
	bool used = model_all(&w->m, at, G, MODEL_USED, true);

	CHECK(w, accmem_buddy_retire(&w->b, w->m.nr * G) == -EINVAL);
	CHECK(w, accmem_buddy_retire(&w->b, at + 1) == -EINVAL);
	if (!used && (rng_below(&w->r, 4) || 16 * retired > w->m.nr * G))
		return;
	CHECK(w, accmem_buddy_retire(&w->b, at) == (used ? -EBUSY : 0));
	if (!used)
		model_retire(&w->m, at);
	CHECK(w, !w->m.rule || held_bytes(w) == held);
}

static void do_mark(struct world *w)
{
	u64 at = rng_below(&w->r, w->m.nr);
	u64 size = some_size(w, w->m.nr - at) * G;
	bool dirty = rng_next(&w->r) & 1;

	dirty |= !model_all(&w->m, at * G, size, MODEL_USED, true);
	if (model_all(&w->m, at * G, size, MODEL_USED, true))
		accmem_buddy_mark_held(&w->b, at * G, size, dirty);
	else
		accmem_buddy_mark_dirty(&w->b, at * G, size);
	model_set(&w->m, at * G, size, MODEL_DIRTY, dirty);
}

static void do_alloc_dirty(struct world *w)
{
	u64 max = some_size(w, w->m.nr) * G;
	u64 dirty = model_count(&w->m, MODEL_USED | MODEL_DIRTY, MODEL_DIRTY);
	struct accmem_run run;
	unsigned int tries = 0;
	int err;

	do {
		err = accmem_buddy_alloc_dirty(&w->b, max, &run);
	} while (err == -EAGAIN && ++tries <= w->m.nr);
	CHECK(w, err == (dirty ? 0 : -ENOENT));
	if (err)
		return;
	CHECK(w, run.size && run.size <= max);
	CHECK(w, run.start + run.size <= w->m.nr * G);
	CHECK(w, model_all(&w->m, run.start, run.size, MODEL_USED, false));
	CHECK(w, model_all(&w->m, run.start, run.size, MODEL_DIRTY, true));
	model_alloc(&w->m, run.start, run.size, MODEL_CLEANER);
	if (rng_below(&w->r, 4))
		free_run(w, run.start, run.size);
}

static void do_walk_dirty(struct world *w)
{
	u64 at = rng_below(&w->r, w->m.nr);
	u64 size = some_size(w, w->m.nr - at) * G;
	u64 max = some_size(w, w->m.nr) * G, end = at * G + size;
	struct accmem_run run, want;
	bool any;

	any = model_next(&w->m, at * G, MODEL_DIRTY, true, &want) &&
	      want.start < end;
	CHECK(w,
	      accmem_buddy_next_dirty(&w->b, at * G, size, max, &run) == any);
	if (!any)
		return;
	if (want.size > end - want.start)
		want.size = end - want.start;
	if (want.size > max)
		want.size = max;
	CHECK(w, run.start == want.start && run.size == want.size);
}

static void do_switch(struct world *w)
{
	bool on = rng_below(&w->r, 4);

	accmem_buddy_set_cache(&w->b, on);
	w->cache = on && buddy_of(&w->b)->room;
}

static void agree_on_owners(struct world *w)
{
	u64 owner = rng_below(&w->r, 4), cursor = 0, largest = 0, steps = 0, i;
	struct model view = model_view(&w->m, owner);
	int err;

	do {
		err = accmem_buddy_largest_run_of(&w->b, owner, &cursor,
						  &largest);
	} while (err == -EAGAIN && ++steps <= w->m.nr);
	CHECK(w, !err && largest == model_largest(&view));
	model_view_free(&w->m, &view);
	for (i = 0; i < w->m.nr; i += MODEL_FOLIO) {
		u64 used = model_folio_used(&w->m, i), of;

		if (model_folio_cleaning(&w->m, i) < used)
			CHECK(w, accmem_buddy_folio_used(&w->b, i * G) ==
					 used - model_folio_cleaning(&w->m, i));
		else if (!used && i + 1 < w->m.nr)
			CHECK(w, !accmem_buddy_folio_used(&w->b, i * G));
		of = accmem_buddy_folio_owner(&w->b, i * G);
		if (of == ACCMEM_BUDDY_CLEANER)
			of = MODEL_CLEANER;
		CHECK(w, !of || (used && of == w->m.owner[i / MODEL_FOLIO]));
	}
}

static void agree(struct world *w)
{
	u64 at = rng_below(&w->r, w->m.nr) * G;
	struct accmem_run run, want;
	bool any;

	CHECK(w, accmem_buddy_free_bytes(&w->b) ==
			 model_count(&w->m, MODEL_USED, 0));
	CHECK(w, accmem_buddy_free_dirty_bytes(&w->b) ==
			 model_count(&w->m, MODEL_USED | MODEL_DIRTY,
				     MODEL_DIRTY));
	/* The rest merges what the order cache holds: not after every call */
	if (w->cache && rng_below(&w->r, w->calm ? 256 : 8))
		return;
	any = model_next(&w->m, at, MODEL_USED, false, &want);
	CHECK(w, accmem_buddy_next_free(&w->b, at, &run) == any);
	CHECK(w, !any || (run.start == want.start && run.size == want.size));
	if (w->m.rule)
		agree_on_owners(w);
	CHECK(w, largest_run(&w->b) == model_largest(&w->m));
}

/*
 * Freeing all that is left must bring back one run between two retired granules, whatever
 * the marks.
 */
static void wind_up(struct world *w)
{
	u64 retired = model_count(&w->m, MODEL_RETIRED, MODEL_RETIRED), at = 0;
	struct accmem_run run, kept;

	while (model_next(&w->m, at, MODEL_USED, true, &run)) {
		if (model_next(&w->m, run.start, MODEL_RETIRED, true, &kept) &&
		    kept.start < run.start + run.size)
			run.size = kept.start - run.start;
		at = run.size ? run.start : kept.start + kept.size;
		if (run.size)
			free_run(w, run.start, run.size);
	}
	CHECK(w, accmem_buddy_free_bytes(&w->b) == w->m.nr * G - retired);
	CHECK(w, largest_run(&w->b) == model_largest(&w->m));
	agree(w);
}

static void step(struct world *w)
{
	switch (rng_below(&w->r, 22)) {
	case 21:
		do_retire(w);
		break;
	case 20:
		do_chown(w);
		break;
	case 0 ... 6:
		do_alloc(w, &w->block[rng_below(&w->r, BLOCKS)]);
		break;
	case 7:
		do_alloc_runs(w);
		break;
	case 8 ... 10:
		do_block(w);
		break;
	case 11 ... 15:
		do_free(w);
		break;
	case 16:
		do_mark(w);
		break;
	case 17:
		do_alloc_dirty(w);
		break;
	case 18:
		do_walk_dirty(w);
		break;
	default:
		do_switch(w);
		break;
	}
}

/* What disturbs the order cache is rare. */
static void step_calm(struct world *w)
{
	switch (rng_below(&w->r, 64)) {
	case 0:
		step(w);
		break;
	case 1 ... 8:
		do_mark(w);
		break;
	default:
		do_block(w);
		break;
	}
}

/*
 * Most are small, for speed; some have more words than one word speaks for, and a
 * few are large enough for an order cache as it is built in.
 */
static u64 some_range(struct world *w)
{
	switch (rng_below(&w->r, 32)) {
	case 0:
		return 4097 + rng_below(&w->r, 8000) +
		       (rng_below(&w->r, 4) ? 0 : 16384);
	case 1 ... 4:
		return 1 + rng_below(&w->r, 4096);
	case 5 ... 16:
		return 1 + rng_below(&w->r, 300);
	default:
		return some_size(w, 4096);
	}
}

void world_run(const char *origin, const struct rng *draw, u64 ops)
{
	struct world w = { .origin = origin, .r = *draw };
	unsigned int i;
	u64 size;

	w.m.nr = some_range(&w);
	size = w.m.nr * G;
	w.m.granule = calloc(w.m.nr, 1);
	w.meta = malloc(accmem_buddy_meta_size(size));
	if (!w.m.granule || !w.meta)
		abort();
	/* what need not be zero is not */
	memset(w.meta, 0xa5, accmem_buddy_meta_size(size));
	memset(w.meta, 0, accmem_buddy_meta_zeroed(size));
	CHECK(&w, !accmem_buddy_init(&w.b, size, w.meta));
	w.folios = calloc(w.m.nr / MODEL_FOLIO + 1, sizeof(*w.folios));
	w.m.owner = calloc(w.m.nr / MODEL_FOLIO + 1, 1);
	w.m.taker = calloc(w.m.nr, 1);
	w.m.rule = rng_below(&w.r, 2);
	if (!w.folios || !w.m.owner || !w.m.taker)
		abort();
	if (w.m.rule)
		accmem_buddy_set_owners(&w.b, w.folios);
	w.cache = buddy_of(&w.b)->room;
	w.calm = w.cache && rng_below(&w.r, 2);
	for (i = 0; i < SIZES; i++)
		w.sizes[i] = some_size(&w, w.m.nr / (2 * BLOCKS) + 1);
	agree(&w);
	for (w.step = 0; w.step < ops && !rng_is_spent(&w.r); w.step++) {
		if (w.calm)
			step_calm(&w);
		else
			step(&w);
		agree(&w);
	}
	wind_up(&w);
	free(w.folios);
	free(w.m.owner);
	free(w.m.taker);
	free(w.m.granule);
	free(w.meta);
}
