/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The order cache, for accmem_buddy.c only: blocks that were given back and are
 * still used in the map, so that a request of the same size takes them without
 * a search, and nothing is cut and merged in between.
 *
 * Sizes are the least ones of the classes, which all powers of two are, and for
 * each there is a stack. Where parked blocks begin is hashed, by units of two
 * lengths that are not shorter than the block: whether a call would meet one is
 * known from a few chains. Parked bytes count as free, and as free and dirty.
 */
#ifndef ACCMEM_BUDDY_CACHE_H
#define ACCMEM_BUDDY_CACHE_H

#include "accmem_buddy_marks.h"

/*
 * No range smaller than this has an order cache, and no block is larger than
 * this share of the range. Tests of small ranges have others.
 */
#ifndef PARKED_RANGE_MIN
#define PARKED_RANGE_MIN 8192
#define PARKED_SHARE_SHIFT 10
#endif

/* Granules of the units, as shifts */
static const u8 parked_unit[ACCMEM_BUDDY_UNITS] = { 6, 10 };

static inline bool is_parkable(const struct accmem_buddy *b, u64 n)
{
	unsigned int class;

	if (!b->parks || n > b->nr >> PARKED_SHARE_SHIFT)
		return false;
	class = class_of(n);
	return class < ACCMEM_BUDDY_STACKS && class_size(class) == n;
}

/* Blocks are numbered by their stack and their place in it, from 1 on. */
static inline u16 parked_id(unsigned int class, unsigned int i)
{
	return class * ACCMEM_BUDDY_STACK + i;
}

static inline u64 parked_start(const struct accmem_buddy *b, u16 id)
{
	return b->parked[id / ACCMEM_BUDDY_STACK][id % ACCMEM_BUDDY_STACK];
}

static inline u64 parked_size(u16 id)
{
	return class_size(id / ACCMEM_BUDDY_STACK);
}

static inline unsigned int parked_kind(u16 id)
{
	return parked_size(id) > 64;
}

static inline u16 *parked_chain(struct accmem_buddy *b, u16 id)
{
	unsigned int kind = parked_kind(id);
	u64 i = parked_start(b, id) >> parked_unit[kind];

	return &b->chain[kind][i % ACCMEM_BUDDY_CHAINS];
}

static inline void parked_link(struct accmem_buddy *b, u16 id)
{
	u16 *chain = parked_chain(b, id);

	touch(2);
	b->nr_kind[parked_kind(id)]++;
	b->chained[id] = *chain;
	*chain = id;
}

static inline void parked_unlink(struct accmem_buddy *b, u16 id)
{
	u16 *at = parked_chain(b, id);

	touch(2);
	b->nr_kind[parked_kind(id)]--;
	while (*at != id) {
		touch(1);
		at = &b->chained[*at];
	}
	*at = b->chained[id];
}

/* The block on top of a stack, which its caller has use for */
static inline u64 parked_pop(struct accmem_buddy *b, unsigned int class)
{
	unsigned int i = --b->stack[class];

	touch(2);
	b->nr_parked--;
	parked_unlink(b, parked_id(class, i));
	return b->parked[class][i];
}

/* The last one given back of @n granules with this alignment; NOWHERE */
static inline u64 parked_take(struct accmem_buddy *b, u64 n, u64 align)
{
	unsigned int class = class_of(n), top = b->stack[class], i = top;
	u32 at;

	touch(1);
	while (i && b->parked[class][i - 1] & (align - 1)) {
		touch(1);
		i--;
	}
	if (!i)
		return NOWHERE;
	if (i == top)
		return parked_pop(b, class);
	/* The topmost block takes its place. */
	at = b->parked[class][i - 1];
	parked_unlink(b, parked_id(class, i - 1));
	b->parked[class][i - 1] = parked_pop(b, class);
	parked_link(b, parked_id(class, i - 1));
	return at;
}

/* Whether there was room */
static inline bool parked_push(struct accmem_buddy *b, u64 lo, u64 n)
{
	unsigned int class = class_of(n), i = b->stack[class];

	touch(2);
	if (i == ACCMEM_BUDDY_STACK || b->nr_parked == ACCMEM_BUDDY_PARKED)
		return false;
	b->parked[class][i] = lo;
	b->stack[class]++;
	b->nr_parked++;
	parked_link(b, parked_id(class, i));
	return true;
}

/**
 * struct parked_walk - through all parked blocks
 * @class: of the next one, or above it
 * @i: how many of that class are left
 * @lo: the block
 * @hi: its end
 */
struct parked_walk {
	unsigned int class;
	unsigned int i;
	u64 lo;
	u64 hi;
};

static inline bool parked_each(const struct accmem_buddy *b,
			       struct parked_walk *w)
{
	if (!b->nr_parked)
		return false;
	while (!w->i) {
		if (++w->class == ACCMEM_BUDDY_STACKS)
			return false;
		w->i = b->stack[w->class];
	}
	touch(1);
	w->lo = b->parked[w->class][--w->i];
	w->hi = w->lo + class_size(w->class);
	return true;
}

/* Is one of a chain of blocks in [@lo, @hi)? */
static inline bool chain_overlaps(const struct accmem_buddy *b, u16 id, u64 lo,
				  u64 hi)
{
	u64 start;

	for (; id; id = b->chained[id]) {
		touch(2);
		start = parked_start(b, id);
		if (start < hi && lo < start + parked_size(id))
			return true;
	}
	return false;
}

/* The same of all blocks of a kind, in the chains in which one can be */
static inline bool kind_overlaps(const struct accmem_buddy *b,
				 unsigned int kind, u64 lo, u64 hi)
{
	const u16 *chain = b->chain[kind];
	unsigned int shift = parked_unit[kind];
	u64 reach = (1ull << shift) - 1;
	u64 i = (lo - min(lo, reach)) >> shift, last = (hi - 1) >> shift;

	last = min(last, i + ACCMEM_BUDDY_CHAINS - 1);
	touch((last - i) / 4 + 1);
	for (; i <= last; i++) {
		if (chain[i % ACCMEM_BUDDY_CHAINS] &&
		    chain_overlaps(b, chain[i % ACCMEM_BUDDY_CHAINS], lo, hi))
			return true;
	}
	return false;
}

/* Does a parked block have a granule of [@lo, @hi)? */
static inline bool parked_overlaps(const struct accmem_buddy *b, u64 lo, u64 hi)
{
	unsigned int kind;

	if (!b->nr_parked)
		return false;
	for (kind = 0; kind < ACCMEM_BUDDY_UNITS; kind++)
		if (b->nr_kind[kind] && kind_overlaps(b, kind, lo, hi))
			return true;
	return false;
}

/* Dirty granules of [@lo, @hi) that are parked */
static inline u64 parked_dirty(const struct accmem_buddy *b, u64 lo, u64 hi)
{
	struct parked_walk w = {};
	u64 n = 0;

	while (parked_each(b, &w))
		if (max(lo, w.lo) < min(hi, w.hi))
			n += count_dirty(b, max(lo, w.lo), min(hi, w.hi));
	return n;
}

/* The end of the parked block that has granule @pos, or @pos */
static inline u64 parked_end(const struct accmem_buddy *b, u64 pos)
{
	struct parked_walk w = {};

	while (parked_each(b, &w))
		if (w.lo <= pos && pos < w.hi)
			return w.hi;
	return pos;
}

/* The first granule at or after @pos that is parked; NOWHERE */
static inline u64 parked_next(const struct accmem_buddy *b, u64 pos)
{
	struct parked_walk w = {};
	u64 best = NOWHERE;

	while (parked_each(b, &w))
		if (w.hi > pos)
			best = min(best, max(pos, w.lo));
	return best;
}

#endif /* ACCMEM_BUDDY_CACHE_H */
