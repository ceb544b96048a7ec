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

static noinline bool words_park(struct accmem_buddy *b, u64 lo, u64 last)
{
	u64 i = lo >> WORD_SHIFT, end = last >> WORD_SHIFT, mask, n;

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

	word_unpark(b, i, mask_from(lo));
	word_unpark(b, end, mask_up_to(last));
	for (i++; i < end; i += n) {
		n = words_together(i, end, &mask);
		touch(1);
		b->parked_words[i >> WORD_SHIFT] &= ~mask;
	}
}

/* An id that is not in use; there is one. */
static inline u16 parked_new_id(struct accmem_buddy *b)
{
	unsigned int i = __ffs64(~b->ids_full), bit = __ffs64(~b->ids[i]);

	touch(2);
	b->ids[i] |= 1ull << bit;
	if (!~b->ids[i])
		b->ids_full |= 1ull << i;
	return (i << WORD_SHIFT) + bit + 1;
}

static inline void parked_end_id(struct accmem_buddy *b, u16 id)
{
	unsigned int i = (id - 1) >> WORD_SHIFT;

	touch(2);
	b->ids[i] &= ~(1ull << ((id - 1) & WORD_MASK));
	b->ids_full &= ~(1ull << i);
}

/* The first id from @id on that is in use; 0 if none is */
static inline u16 parked_id_from(const struct accmem_buddy *b, u16 id)
{
	unsigned int i = (id - 1) >> WORD_SHIFT;
	u64 word;

	if (id > ACCMEM_BUDDY_PARKED)
		return 0;
	word = b->ids[i] & mask_from(id - 1);
	touch(1);
	while (!word) {
		if (++i == ARRAY_SIZE(b->ids))
			return 0;
		touch(1);
		word = b->ids[i];
	}
	return (i << WORD_SHIFT) + __ffs64(word) + 1;
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
	parked_end_id(b, id);
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
	u16 id = parked_id_from(b, b->hand + 1);

	if (!id)
		id = parked_id_from(b, 1);
	b->hand = id;
	return id;
}

/**
 * struct parked_walk - through all parked blocks
 * @ids: what is left of a word of ids
 * @next: which word comes after it
 * @lo: the block
 * @hi: its end
 */
struct parked_walk {
	u64 ids;
	unsigned int next;
	u64 lo;
	u64 hi;
};

static inline bool parked_each(const struct accmem_buddy *b,
			       struct parked_walk *w)
{
	const struct accmem_buddy_parked *p;

	while (!w->ids) {
		if (w->next == ARRAY_SIZE(b->ids))
			return false;
		touch(1);
		w->ids = b->ids[w->next++];
	}
	touch(1);
	p = &b->parked[((w->next - 1) << WORD_SHIFT) + __ffs64(w->ids) + 1];
	w->ids &= w->ids - 1;
	w->lo = p->lo;
	w->hi = w->lo + p->n;
	return true;
}

static bool parked_overlaps_far(const struct accmem_buddy *b, u64 lo, u64 hi)
{
	struct parked_walk w = {};

	while (parked_each(b, &w))
		if (w.lo < hi && lo < w.hi)
			return true;
	return false;
}

static noinline bool parked_overlaps_words(const struct accmem_buddy *b, u64 lo,
					   u64 last)
{
	u64 i = lo >> WORD_SHIFT, end = last >> WORD_SHIFT, mask, n;

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
	struct parked_walk w = {};
	u64 n = 0;

	if (lo == hi || !parked_overlaps(b, lo, hi))
		return 0;
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
