/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The order cache, for accmem_buddy.c only: blocks that were given back and are
 * still used in the map, so that a request of the same size takes them without
 * a search, and nothing is cut and merged in between.
 *
 * For each size there is a stack. Which granules are parked is known exactly: a
 * bit a word says that some are, and which ones a mask in a slot, unless all are.
 * A slot is found by the number of the word; a block that would need one that
 * another word has is not parked. Parked bytes count as free, and as free and
 * dirty.
 */
#ifndef ACCMEM_BUDDY_CACHE_H
#define ACCMEM_BUDDY_CACHE_H

#include "accmem_buddy_marks.h"

/*
 * No range smaller than this has an order cache. This share of its granules is
 * the number of blocks that are parked, and the size of one, or a quarter of that
 * while less than three quarters of the range are free. Tests of small ranges
 * have others.
 */
#ifndef PARKED_RANGE_MIN
#define PARKED_RANGE_MIN 16384
#define PARKED_SHARE_SHIFT 10
#endif

/* Blocks that have room in the order cache of a range of @nr granules */
static inline unsigned int parked_room(u64 nr)
{
	if (nr < PARKED_RANGE_MIN)
		return 0;
	return min_t(u64, nr >> PARKED_SHARE_SHIFT, ACCMEM_BUDDY_PARKED);
}

/* Slots, a power of two: one for each four words, but not more than can help */
static inline unsigned int parked_slots(u64 nr)
{
	u64 words = words_for(nr) >> 2;

	if (!parked_room(nr))
		return 0;
	if (words >= 8 * ACCMEM_BUDDY_PARKED)
		return 8 * ACCMEM_BUDDY_PARKED;
	return words ? 1u << (fls64(words) - 1) : 1;
}

static inline struct accmem_buddy_slot *slot_of(const struct accmem_buddy *b,
						u64 i)
{
	return &b->slot[i & b->slot_mask];
}

/* Granules of word @i that are parked */
static inline u64 parked_in(const struct accmem_buddy *b, u64 i)
{
	const struct accmem_buddy_slot *slot = slot_of(b, i);

	touch(1);
	if (!(b->parked_words[i >> WORD_SHIFT] >> (i & WORD_MASK) & 1))
		return 0;
	touch(1);
	return slot->mask && slot->word == i ? slot->mask : ~0ull;
}

/* Granules of a word are parked now, if there is a slot for it. */
static inline bool word_park(struct accmem_buddy *b, u64 i, u64 mask)
{
	struct accmem_buddy_slot *slot = slot_of(b, i);

	if (~mask) {
		touch(1);
		if (slot->mask && slot->word != i)
			return false;
		slot->word = i;
		slot->mask |= mask;
	}
	touch(1);
	b->parked_words[i >> WORD_SHIFT] |= 1ull << (i & WORD_MASK);
	return true;
}

/* Parked granules of a word are no more. */
static inline void word_unpark(struct accmem_buddy *b, u64 i, u64 mask)
{
	struct accmem_buddy_slot *slot = slot_of(b, i);

	if (~mask) {
		touch(1);
		slot->mask &= ~mask;
		if (slot->mask)
			return;
	}
	touch(1);
	b->parked_words[i >> WORD_SHIFT] &= ~(1ull << (i & WORD_MASK));
}

/* Words from @i on, before @end, that have one word of bits, which is in *@mask */
static inline u64 words_together(u64 i, u64 end, u64 *mask)
{
	u64 n = min(end - i, 64 - (i & WORD_MASK));

	*mask = bits_mask(i & WORD_MASK, n);
	return n;
}

/* If these are whole words that have one word of bits: those; else 0 */
static inline u64 whole_words(u64 lo, u64 last)
{
	if ((lo | (last + 1)) & WORD_MASK ||
	    lo >> map_shift(2) != last >> map_shift(2))
		return 0;
	return bits_mask(lo >> WORD_SHIFT & WORD_MASK,
			 ((last - lo) >> WORD_SHIFT) + 1);
}

static noinline bool words_park(struct accmem_buddy *b, u64 lo, u64 last)
{
	u64 i = lo >> WORD_SHIFT, end = last >> WORD_SHIFT, mask, n;

	mask = whole_words(lo, last);
	if (mask) {
		touch(1);
		b->parked_words[i >> WORD_SHIFT] |= mask;
		return true;
	}
	if (!word_park(b, i, mask_from(lo)))
		return false;
	if (!word_park(b, end, mask_up_to(last))) {
		word_unpark(b, i, mask_from(lo));
		return false;
	}
	for (i++; i < end; i += n) {
		n = words_together(i, end, &mask);
		touch(1);
		b->parked_words[i >> WORD_SHIFT] |= mask;
	}
	return true;
}

static noinline void words_unpark(struct accmem_buddy *b, u64 lo, u64 last)
{
	u64 i = lo >> WORD_SHIFT, end = last >> WORD_SHIFT, mask, n;

	mask = whole_words(lo, last);
	if (mask) {
		touch(1);
		b->parked_words[i >> WORD_SHIFT] &= ~mask;
		return;
	}
	word_unpark(b, i, mask_from(lo));
	word_unpark(b, end, mask_up_to(last));
	for (i++; i < end; i += n) {
		n = words_together(i, end, &mask);
		touch(1);
		b->parked_words[i >> WORD_SHIFT] &= ~mask;
	}
}

/* An id that is not in use; there is one. Those that were in use are a stack. */
static inline u16 parked_new_id(struct accmem_buddy *b)
{
	u16 id = b->stack[0];

	if (!id)
		return ++b->nr_ids;
	b->stack[0] = b->parked[id].below;
	return id;
}

/* The block with the first id from @id on that is in use; NULL if none is */
static inline struct accmem_buddy_parked *
parked_from(const struct accmem_buddy *b, unsigned int id)
{
	for (; id <= b->nr_ids; id++) {
		touch(1);
		if (b->parked[id].n)
			return &b->parked[id];
	}
	return NULL;
}

/* Whether there were slots for it; the caller sees to room in the cache. */
static inline bool parked_push(struct accmem_buddy *b, u64 lo, u64 n)
{
	u64 i = lo >> WORD_SHIFT, last = lo + n - 1;
	struct accmem_buddy_parked *p;
	u16 id, below;

	if (i == last >> WORD_SHIFT ?
		    !word_park(b, i, bits_mask(lo & WORD_MASK, n)) :
		    !words_park(b, lo, last))
		return false;
	touch(3);
	id = parked_new_id(b);
	below = b->stack[n];
	b->stack[n] = id;
	b->parked[below].above = id;
	p = &b->parked[id];
	p->lo = lo;
	p->n = n;
	p->below = below;
	p->above = 0;
	b->nr_parked++;
	return true;
}

/* A block is parked no more, and its caller has use for it. */
static inline u64 parked_remove(struct accmem_buddy *b, u16 id)
{
	struct accmem_buddy_parked *p = &b->parked[id];
	u64 lo = p->lo, i = lo >> WORD_SHIFT, last = lo + p->n - 1;

	touch(3);
	if (i == last >> WORD_SHIFT)
		word_unpark(b, i, bits_mask(lo & WORD_MASK, p->n));
	else
		words_unpark(b, lo, last);
	if (p->above)
		b->parked[p->above].below = p->below;
	else
		b->stack[p->n] = p->below;
	b->parked[p->below].above = p->above;
	p->n = 0;
	p->below = b->stack[0];
	b->stack[0] = id;
	b->nr_parked--;
	return lo;
}

/* Blocks of a size that are looked at for one with an alignment */
#define PARKED_PROBES 8

/* The last one given back of @n granules with this alignment; NOWHERE */
static inline u64 parked_take(struct accmem_buddy *b, u64 n, u64 align)
{
	unsigned int probe = 0;
	u16 id;

	for (id = b->stack[n]; id && probe < PARKED_PROBES; probe++) {
		touch(1);
		if (!(b->parked[id].lo & (align - 1)))
			return parked_remove(b, id);
		id = b->parked[id].below;
	}
	return NOWHERE;
}

/* The id of the next block that has to go, of all in turn; there is one. */
static inline u16 parked_next_out(struct accmem_buddy *b)
{
	struct accmem_buddy_parked *p = parked_from(b, b->hand + 1);

	if (!p)
		p = parked_from(b, 1);
	b->hand = p - b->parked;
	return b->hand;
}

/* The parked block after @p, or the first one after NULL; NULL */
static inline struct accmem_buddy_parked *
parked_each(const struct accmem_buddy *b, const struct accmem_buddy_parked *p)
{
	if (!b->nr_parked)
		return NULL;
	return parked_from(b, p ? p - b->parked + 1 : 1);
}

static inline u64 parked_hi(const struct accmem_buddy_parked *p)
{
	return (u64)p->lo + p->n;
}

static bool parked_overlaps_far(const struct accmem_buddy *b, u64 lo, u64 hi)
{
	const struct accmem_buddy_parked *p = NULL;

	while ((p = parked_each(b, p)))
		if (p->lo < hi && lo < parked_hi(p))
			return true;
	return false;
}

static noinline bool parked_overlaps_words(const struct accmem_buddy *b, u64 lo,
					   u64 last)
{
	u64 i = lo >> WORD_SHIFT, end = last >> WORD_SHIFT, mask, n;

	mask = whole_words(lo, last);
	if (mask) {
		touch(1);
		return b->parked_words[i >> WORD_SHIFT] & mask;
	}
	if ((end - i) >> WORD_SHIFT > b->nr_parked)
		return parked_overlaps_far(b, lo, last + 1);
	if (parked_in(b, i) & mask_from(lo) ||
	    parked_in(b, end) & mask_up_to(last))
		return true;
	for (i++; i < end; i += n) {
		n = words_together(i, end, &mask);
		touch(1);
		if (b->parked_words[i >> WORD_SHIFT] & mask)
			return true;
	}
	return false;
}

/* Does a parked block have a granule of [@lo, @hi)? */
static inline bool parked_overlaps(const struct accmem_buddy *b, u64 lo, u64 hi)
{
	u64 i = lo >> WORD_SHIFT;

	if (!b->nr_parked)
		return false;
	if (i != (hi - 1) >> WORD_SHIFT)
		return parked_overlaps_words(b, lo, hi - 1);
	return parked_in(b, i) & bits_mask(lo & WORD_MASK, hi - lo);
}

/* Dirty granules of [@lo, @hi) that are parked */
static inline u64 parked_dirty(const struct accmem_buddy *b, u64 lo, u64 hi)
{
	const struct accmem_buddy_parked *p = NULL;
	u64 n = 0, from, to;

	if (lo == hi || !parked_overlaps(b, lo, hi))
		return 0;
	while ((p = parked_each(b, p))) {
		from = max_t(u64, lo, p->lo);
		to = min(hi, parked_hi(p));
		if (from < to)
			n += count_dirty(b, from, to);
	}
	return n;
}

/* The end of the parked block that has granule @pos, or @pos */
static inline u64 parked_end(const struct accmem_buddy *b, u64 pos)
{
	const struct accmem_buddy_parked *p = NULL;

	while ((p = parked_each(b, p)))
		if (p->lo <= pos && pos < parked_hi(p))
			return parked_hi(p);
	return pos;
}

/* The first granule at or after @pos that is parked; NOWHERE */
static inline u64 parked_next(const struct accmem_buddy *b, u64 pos)
{
	const struct accmem_buddy_parked *p = NULL;
	u64 best = NOWHERE;

	while ((p = parked_each(b, p)))
		if (parked_hi(p) > pos)
			best = min(best, max_t(u64, pos, p->lo));
	return best;
}

#endif /* ACCMEM_BUDDY_CACHE_H */
