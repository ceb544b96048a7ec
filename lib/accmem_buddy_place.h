/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Placement: which free run a request is cut from, for accmem_buddy.c only. What
 * was tried, and what it gave, is in EXPERIMENTS.md.
 */
#ifndef ACCMEM_BUDDY_PLACE_H
#define ACCMEM_BUDDY_PLACE_H

#include "accmem_buddy_big.h"

/*
 * What is not big, in a range that large blocks fill: it would break up the room that
 * they need again. Where hardly anything is large, best fit alone packs better. While
 * less than 8 granules are live, it goes to the high end as well.
 */
static bool keeps_apart(const struct accmem_buddy *b, u64 n)
{
	u64 live = b->nr - b->nr_free;

	return !is_big(b, n) && min(b->nr_large, live) >= live >> 3;
}

/* Runs of one class that are looked at for the one that fits best */
#define PROBES 4

/* The same for the run of @size granules that begins last in word @i */
static inline bool long_serves(const struct accmem_buddy *b,
			       const struct want *w, u64 i, u64 size)
{
	struct span run;

	if (w->align == 1)
		return size >= w->n;
	run = long_run(b, i);
	return serves(w, &run);
}

/*
 * Of the runs of a listed class that were added last, the smallest that serves,
 * and the oldest of these; size 0 if none does. Which one it is cannot be
 * predicted, so there is no branch for each.
 */
static struct span best_listed(const struct accmem_buddy *b,
			       const struct want *w, unsigned int class)
{
	u64 best = ~0ull, that, size; /* size and word */
	u32 i = b->first[class];
	unsigned int probe;

	touch(1);
	for (probe = 0; probe < PROBES && i != NO_WORD; probe++) {
		touch(1);
		size = b->longest[0][i];
		that = size << 32 | i;
		that = size <= best >> 32 ? that : best;
		best = long_serves(b, w, i, size) ? that : best;
		i = link_next(b, i);
	}
	return ~best ? long_run(b, (u32)best) : (struct span){};
}

/* Of the lowest ones of any other class the smallest that serves */
static struct span best_in_order(const struct accmem_buddy *b,
				 const struct want *w, unsigned int class)
{
	struct starts words = starts_of(b, class);
	const u64 *top = &b->starts[class];
	struct span best = {}, run;
	unsigned int probe = 0;
	struct begun g;
	u64 i, begin;

	for (i = 0; probe < PROBES; i++) {
		i = starts_next(words, top, i, words_for(b->nr) - 1);
		if (i == NOWHERE)
			break;
		g = begun_in(b, i);
		begin = begin_class(&g, class);
		for (; begin && probe < PROBES; begin &= begin - 1, probe++) {
			run = span_inside(&g, i, __ffs64(begin));
			if (!serves(w, &run) ||
			    (best.size && run.size >= best.size))
				continue;
			best = run;
			if (best.size == w->n || class < 8)
				return best;
		}
	}
	return best;
}

static inline struct span best_of_class(const struct accmem_buddy *b,
					const struct want *w,
					unsigned int class)
{
	if (is_listed(class))
		return best_listed(b, w, class);
	return best_in_order(b, w, class);
}

/*
 * The run to place a request in, by size: from its own class, else from the
 * smallest class in which all are large enough. With an alignment, the classes
 * between are those whose runs may or may not serve: they are left alone.
 */
static struct span best_fit(const struct accmem_buddy *b, const struct want *w)
{
	unsigned int own = class_of(w->n), larger;
	unsigned int sure = class_of(min(w->n + w->align - 1, b->nr));
	struct span run = {};

	if (has_class(b, own))
		run = best_of_class(b, w, own);
	if (!run.size && sure != own && has_class(b, sure))
		run = best_of_class(b, w, sure);
	if (run.size)
		return run;
	larger = next_class(b, sure + 1);
	if (larger < ACCMEM_BUDDY_CLASSES)
		run = best_of_class(b, w, larger);
	return run;
}

/* The same, and the wilderness if that fits better */
static struct span best_fit_of_all(const struct accmem_buddy *b,
				   const struct want *w)
{
	struct span run = best_fit(b, w), wild = wilderness(b);

	if (serves(w, &wild) && (!run.size || wild.size < run.size))
		return wild;
	return run;
}

/* The run that has granule @pos; its size is 0 when that is used */
static struct span run_around(const struct accmem_buddy *b, u64 pos)
{
	struct span run = {};
	u64 first = free_before(b, pos + 1);

	if (first <= pos) {
		run.start = first;
		run.size = next_used(b, pos) - first;
	}
	return run;
}

/*
 * With an alignment, a run that holds @n granules however it lies is found at
 * once. Only where there is none are the words with shorter ones looked at.
 */
static struct spot find_low(const struct accmem_buddy *b, const struct want *w)
{
	struct span run = {};
	struct spot spot;
	u64 pos = w->lo;

	if (pos && pos < w->hi) {
		run = run_around(b, pos);
		if (spot_low(w, &run, w->lo, w->hi, &spot))
			return spot;
		pos = max(pos, run.start + run.size);
	}
	run = run_at_or_after(b, pos, w->hi, w->n + w->align - 1, 1);
	if (spot_low(w, &run, w->lo, w->hi, &spot))
		return spot;
	if (w->align == 1)
		return no_spot;
	run = run_at_or_after(b, pos, w->hi, w->n, w->align);
	if (spot_low(w, &run, w->lo, w->hi, &spot))
		return spot;
	return no_spot;
}

static struct spot find_high(const struct accmem_buddy *b,
			     const struct want *w)
{
	struct span run = {};
	struct spot spot;
	u64 pos = w->hi;

	if (longest_of(w->n) > longest_in_range(b))
		return no_spot;
	if (pos < b->nr && pos > w->lo) {
		run = run_around(b, pos - 1);
		if (spot_high(w, &run, w->lo, w->hi, &spot))
			return spot;
		if (run.size)
			pos = run.start;
	}
	run = run_before(b, pos, w->lo, w->n + w->align - 1, 1);
	if (spot_high(w, &run, w->lo, w->hi, &spot))
		return spot;
	if (w->align > 1) {
		run = run_before(b, pos, w->lo, w->n, w->align);
		if (spot_high(w, &run, w->lo, w->hi, &spot))
			return spot;
	}
	/* what reaches into the window from below it */
	if (w->lo && w->lo < pos) {
		run = run_around(b, w->lo);
		if (spot_high(w, &run, w->lo, w->hi, &spot))
			return spot;
	}
	return no_spot;
}

/* The highest or lowest spot of all runs */
static struct spot spot_at_end(const struct accmem_buddy *b,
			       const struct want *w, bool high)
{
	struct spot spot = high ? find_high(b, w) : find_low(b, w), other;
	struct span wild = wilderness(b);
	bool serves = high ? spot_high(w, &wild, w->lo, w->hi, &other) :
			     spot_low(w, &wild, w->lo, w->hi, &other);

	if (!serves)
		return spot;
	if (!spot.run.size ||
	    (high ? other.at > spot.at : other.at < spot.at))
		return other;
	return spot;
}

/* Takes the spot in @run for the best if it has more than *@n granules. */
static inline void take_longer(const struct span *run, u64 lo, u64 hi,
			       u64 align, struct spot *best, u64 *n)
{
	u64 start = align_up(max(lo, run->start), align);
	u64 end = min(hi, run->start + run->size);

	if (start >= end || end - start <= *n)
		return;
	best->at = start;
	best->run = *run;
	*n = end - start;
}

/*
 * The longest spot with an aligned start in the window of @w, of *@n granules,
 * which is w->n at least; or none. What is not the wilderness is looked at from
 * @from on, and no further than a spot of @enough granules.
 */
static struct spot longest_spot(const struct accmem_buddy *b,
				const struct want *w, u64 from, u64 enough,
				u64 *n)
{
	struct span run = wilderness(b);
	struct spot best = {};
	u64 pos = from;

	*n = w->n - 1;
	if (w->align == 1 && !w->lo && w->hi == b->nr && longest_in_range(b))
		*n = max_t(u64, *n, longest_in_range(b) - 1);
	take_longer(&run, w->lo, w->hi, w->align, &best, n);
	run.size = 0;
	if (from && from < w->hi)
		run = run_around(b, from);
	while (pos < w->hi && *n < enough) {
		if (!run.size)
			run = run_at_or_after(b, pos, w->hi, *n + 1, w->align);
		if (!run.size)
			break;
		take_longer(&run, w->lo, w->hi, w->align, &best, n);
		pos = min(w->hi, run.start + run.size);
		run.size = 0;
	}
	if (!best.run.size)
		*n = 0;
	return best;
}

/**
 * struct pieces - taken one after the other, each the longest there is
 * @from: there is none below, but the wilderness
 * @last: granules of the last one; there is none of more
 */
struct pieces {
	u64 from;
	u64 last;
};

/*
 * The spot of the next one, a multiple of w->align and w->n granules long at
 * most; *@n is 0 if there is none.
 */
static struct spot next_piece(const struct accmem_buddy *b,
			      const struct want *w, struct pieces *p, u64 *n)
{
	struct want least = *w;
	struct spot spot;

	least.n = w->align;
	spot = longest_spot(b, &least, p->from, p->last, n);
	*n = align_down(min(*n, w->n), w->align);
	/* all that are left are as long, and those below this one are gone */
	if (p->last == w->align && !is_wild(b, &spot.run))
		p->from = spot.at + *n;
	/* where the rest is a multiple, too, any of these is as good */
	if (!(w->n & (w->align - 1)))
		p->last = *n;
	return spot;
}

static struct spot place(const struct accmem_buddy *b, const struct want *w)
{
	bool window = w->lo || w->hi != b->nr;
	bool high = w->high || (!window && keeps_apart(b, w->n));
	struct spot spot;

	if (w->n > b->wild_size && longest_of(w->n) > longest_in_range(b))
		return no_spot;
	if (high || window)
		return spot_at_end(b, w, high);
	if (is_big(b, w->n)) {
		spot = place_big(b, w);
		if (spot.run.size)
			return spot;
	}
	spot.run = best_fit_of_all(b, w);
	if (!spot.run.size)
		return find_low(b, w);
	spot.at = align_up(spot.run.start, w->align);
	return spot;
}

#endif /* ACCMEM_BUDDY_PLACE_H */
