/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Where a big request goes, for accmem_buddy.c only: to that end of a free run where
 * it breaks up the least of what is free, or soon will be. Of the runs that fit best
 * some are looked at, and both ends of each are weighed, by one of two rules.
 *
 * In a range without large blocks, once lifetimes are known: it goes beside a block
 * that will stay or go as it will, where that does not take a much larger run.
 *
 * In others: a run, with the blocks beside it that will be gone before the request
 * is, makes a region. What the request cuts off from the rest of it is lost for the
 * next one that needs it as a whole. It costs more the more that is, and the larger
 * the region. The larger the request, the further down it goes.
 */
#ifndef ACCMEM_BUDDY_BIG_H
#define ACCMEM_BUDDY_BIG_H

#include <linux/limits.h>

#include "accmem_buddy_lives.h"
#include "accmem_buddy_spots.h"

/* Runs that are looked at, but for the wilderness */
#define BIG_PROBES 8

/**
 * struct walk - through the free runs that fit best, the smallest classes first
 * @class: the class it is in
 * @at: the word in which the next run of a listed class begins; of another, from
 *	which on to look
 * @word: the word that was looked at last, of a class that is not listed
 * @runs: what begins there
 * @begin: bits of the runs of the class that are left of it
 */
struct walk {
	unsigned int class;
	u64 at;
	u64 word;
	struct begun runs;
	u64 begin;
};

static bool walk_list(const struct accmem_buddy *b, struct walk *k,
		      struct span *run)
{
	if (k->at == NO_WORD)
		return false;
	*run = long_run(b, k->at);
	k->at = link_next(b, k->at);
	return true;
}

static bool walk_words(const struct accmem_buddy *b, struct walk *k,
		       struct span *run)
{
	struct starts words = starts_of(b, k->class);

	while (!k->begin) {
		k->word = starts_next(words, &b->starts[k->class], k->at,
				      words_for(b->nr) - 1);
		if (k->word == NOWHERE)
			return false;
		k->at = k->word + 1;
		k->runs = begun_in(b, k->word);
		k->begin = begin_class(&k->runs, k->class);
	}
	*run = span_inside(&k->runs, k->word, __ffs64(k->begin));
	k->begin &= k->begin - 1;
	return true;
}

/* Goes on with the first class from @class on that has runs, if there is one. */
static void walk_class(const struct accmem_buddy *b, struct walk *k,
		       unsigned int class)
{
	k->class = next_class(b, class);
	k->at = 0;
	k->begin = 0;
	if (k->class == ACCMEM_BUDDY_CLASSES || !is_listed(k->class))
		return;
	touch(1);
	k->at = b->first[k->class];
}

static bool walk_next(const struct accmem_buddy *b, struct walk *k,
		      struct span *run)
{
	while (k->class < ACCMEM_BUDDY_CLASSES) {
		if (is_listed(k->class) ? walk_list(b, k, run) :
					  walk_words(b, k, run))
			return true;
		walk_class(b, k, k->class + 1);
	}
	return false;
}

/**
 * struct choice - of a spot for a big request
 * @w: the request
 * @class: of its size
 * @regions: which of the two rules
 * @stays: whether it will
 * @life: its lifetime, from its size alone
 * @log: of its size
 * @low: how far it is drawn to the low end; to the high end if negative
 * @spot: the best one so far
 * @cost: what that costs
 */
struct choice {
	const struct want *w;
	unsigned int class;
	bool regions;
	bool stays;
	u64 life;
	int log;
	int low;
	struct spot spot;
	int cost;
};

/* Either end of a run, if it serves and costs less than the best so far */
static void choose(const struct accmem_buddy *b, struct choice *c,
		   const struct span *run, int low, int high)
{
	struct spot spot;

	if (low < c->cost && spot_low(c->w, run, 0, b->nr, &spot)) {
		c->spot = spot;
		c->cost = low;
	}
	if (high < c->cost && spot_high(c->w, run, 0, b->nr, &spot)) {
		c->spot = spot;
		c->cost = high;
	}
}

/* Neighbours */

/* Classes of size: how much larger a run may be where the neighbour is right */
#define NEIGHBOUR_WORTH 4

static void weigh_neighbours(const struct accmem_buddy *b, struct choice *c,
			     const struct span *run)
{
	u64 end = run->start + run->size;
	int larger = class_of(run->size) - c->class;
	bool below, above;

	below = life_stays(b, life_below(b, run->start)) == c->stays;
	above = life_stays(b, life_above(b, end)) == c->stays;
	if (run->size == c->w->n)
		below |= above;
	choose(b, c, run, larger + (below ? 0 : NEIGHBOUR_WORTH),
	       larger + (above ? 0 : NEIGHBOUR_WORTH));
}

/* Regions */

/* Of the life of the request, in tenths: blocks beside it are gone by then. */
static const unsigned int shares[] = { 4, 7, 12 };

/* The logarithm of @n to the base 2, by 256 */
#define LOG_SHIFT 8

static inline int log_of(u64 n)
{
	unsigned int whole = ilog2(n);

	return (whole << LOG_SHIFT) +
	       (int)((n << (63 - whole) << 1) >> (64 - LOG_SHIFT));
}

static int region_cost(const struct choice *c, u64 size, u64 cut_off)
{
	return log_of(size) - c->log + 4 * (log_of(c->w->n + cut_off) - c->log);
}

static int end_cost(const struct accmem_buddy *b, const struct choice *c,
		    u64 at)
{
	return c->low * (int)((at << LOG_SHIFT) / b->nr) >> LOG_SHIFT;
}

/* With an alignment, what the ends would cost without: they are near enough. */
static void weigh_regions(const struct accmem_buddy *b, struct choice *c,
			  const struct span *run)
{
	u64 start = run->start, end = start + run->size, n = c->w->n, lo, hi;
	const struct accmem_buddy_life *below = life_below(b, start);
	const struct accmem_buddy_life *above = life_above(b, end);
	u64 below_rest = life_rest(b, below), above_rest = life_rest(b, above);
	int low = end_cost(b, c, start), high = end_cost(b, c, end - n);
	unsigned int i;
	u64 soon;

	for (i = 0; i < ARRAY_SIZE(shares); i++) {
		soon = c->life * shares[i] / 10;
		lo = below_rest <= soon ? below->lo : start;
		hi = above_rest <= soon ? above->lo + (u64)above->n : end;
		low += region_cost(c, hi - lo, min(start - lo, hi - start - n));
		high += region_cost(c, hi - lo, min(hi - end, end - n - lo));
	}
	choose(b, c, run, low, high);
}

/* Which of the two rules: were there large blocks lately, or is nothing known? */
static bool has_regions(const struct accmem_buddy *b)
{
	return had_large(b) || !b->nr_ended;
}

/*
 * How far a request is drawn down: a large one most, one of a quarter of that size
 * neither way, one of a sixteenth up. The other end costs ten octaves more then.
 */
static int drawn_low(const struct accmem_buddy *b, int log)
{
	int low = log - log_of(b->large) + (2 << LOG_SHIFT);

	return 5 * clamp(low, -(2 << LOG_SHIFT), 2 << LOG_SHIFT);
}

static void weigh(const struct accmem_buddy *b, struct choice *c,
		  const struct span *run)
{
	if (run->size < c->w->n)
		return;
	if (c->regions)
		weigh_regions(b, c, run);
	else
		weigh_neighbours(b, c, run);
}

/* May a run of @class cost less than the best so far? */
static bool may_be_better(const struct choice *c, unsigned int class)
{
	int log = log_of(class_size(class)) - c->log;

	if (c->regions)
		return (int)ARRAY_SIZE(shares) * log + min(c->low, 0) < c->cost;
	return (int)class - (int)c->class < c->cost;
}

static noinline struct spot place_big(const struct accmem_buddy *b,
				      const struct want *w)
{
	struct span run = wilderness(b);
	struct choice c = {
		.w = w,
		.class = class_of(w->n),
		.regions = has_regions(b),
		.stays = place_stays(b, life_place(b, w->n), 0),
		.life = size_life(b, w->n),
		.log = log_of(w->n),
		.cost = INT_MAX,
	};
	unsigned int probe;
	struct walk k = {};

	c.low = drawn_low(b, c.log);
	weigh(b, &c, &run);
	walk_class(b, &k, c.class);
	for (probe = 0; probe < BIG_PROBES && walk_next(b, &k, &run); probe++) {
		if (!may_be_better(&c, k.class))
			break;
		weigh(b, &c, &run);
	}
	return c.spot;
}

#endif /* ACCMEM_BUDDY_BIG_H */
