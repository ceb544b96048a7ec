/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The order cache, for accmem_buddy.c only: blocks that were given back and are
 * still used in the map, so that a request of the same size takes them without
 * a search, and nothing is cut and merged in between.
 *
 * For each size there is a stack. Which granules are parked is known exactly:
 * those of a word that is parked in part by a mask in a slot for that word,
 * words that are parked as a whole by a mask in a slot for 64 of them. Slots are
 * found by the number of the word, or of the 64; a block that would need one
 * that is taken is not parked. Parked bytes count as free, and as free and dirty.
 */
#ifndef ACCMEM_BUDDY_CACHE_H
#define ACCMEM_BUDDY_CACHE_H

#include "accmem_buddy_marks.h"

/*
 * No range smaller than this has an order cache, and no block is larger than
 * this share of the range, or a quarter of that while less than three quarters
 * of the range are free. Tests of small ranges have others.
 */
#ifndef PARKED_RANGE_MIN
#define PARKED_RANGE_MIN 8192
#define PARKED_SHARE_SHIFT 10
#endif

/**
 * struct parked_piece - a part of a block that has one slot
 * @slot: the slot
 * @key: of what the slot speaks when it has this piece
 * @mask: its bits
 */
struct parked_piece {
	struct accmem_buddy_slot *slot;
	u64 key;
	u64 mask;
};

static inline struct parked_piece part_of(struct accmem_buddy *b, u64 i,
					  u64 mask)
{
	return (struct parked_piece){ &b->part[i % ACCMEM_BUDDY_PARTS], i,
				      mask };
}

static inline struct parked_piece whole_of(struct accmem_buddy *b, u64 first,
					   u64 n)
{
	u64 i = first >> WORD_SHIFT;

	return (struct parked_piece){ &b->whole[i % ACCMEM_BUDDY_WHOLES], i,
				      bits_mask(first & WORD_MASK, n) };
}

/* Words from @first on, up to @last, that are in one group */
static inline u64 in_group(u64 first, u64 last)
{
	return min(last - first, WORD_MASK - (first & WORD_MASK)) + 1;
}

static inline bool piece_fits(const struct parked_piece *p)
{
	touch(1);
	return !p->slot->mask || p->slot->key == p->key;
}

static inline void piece_set(const struct parked_piece *p, bool parked)
{
	touch(1);
	p->slot->key = p->key;
	p->slot->mask = parked ? p->slot->mask | p->mask :
				 p->slot->mask & ~p->mask;
}

/* Is [@lo, @hi) one piece, as most blocks are? Then it is in *@p. */
static inline bool is_one_piece(struct accmem_buddy *b, u64 lo, u64 hi,
				struct parked_piece *p)
{
	u64 first = lo >> WORD_SHIFT, last = (hi - 1) >> WORD_SHIFT;

	if (first == last) {
		*p = part_of(b, first, bits_mask(lo & WORD_MASK, hi - lo));
		return true;
	}
	if ((lo | hi) & WORD_MASK || first >> WORD_SHIFT != last >> WORD_SHIFT)
		return false;
	*p = whole_of(b, first, last - first + 1);
	return true;
}

/* Pieces of the others: the words at the ends, and two groups between */
#define PARKED_PIECES 4

static unsigned int parked_pieces(struct accmem_buddy *b, u64 lo, u64 hi,
				  struct parked_piece *p)
{
	u64 first = lo >> WORD_SHIFT, last = (hi - 1) >> WORD_SHIFT, n;
	unsigned int nr = 0;

	if (lo & WORD_MASK)
		p[nr++] = part_of(b, first++, ~0ull << (lo & WORD_MASK));
	if (hi & WORD_MASK)
		p[nr++] = part_of(b, last--, bits_mask(0, hi & WORD_MASK));
	for (; first <= last; first += n) {
		n = in_group(first, last);
		p[nr++] = whole_of(b, first, n);
	}
	return nr;
}

static noinline bool parked_mark_pieces(struct accmem_buddy *b, u64 lo, u64 hi,
					bool parked)
{
	struct parked_piece piece[PARKED_PIECES];
	unsigned int nr = parked_pieces(b, lo, hi, piece), i;

	for (i = 0; i < nr; i++)
		if (parked && !piece_fits(&piece[i]))
			return false;
	for (i = 0; i < nr; i++)
		piece_set(&piece[i], parked);
	return true;
}

/* Granules are parked, if there is room in the slots, or are no more. */
static inline bool parked_mark(struct accmem_buddy *b, u64 lo, u64 hi,
			       bool parked)
{
	struct parked_piece piece;

	if (!is_one_piece(b, lo, hi, &piece))
		return parked_mark_pieces(b, lo, hi, parked);
	if (parked && !piece_fits(&piece))
		return false;
	piece_set(&piece, parked);
	return true;
}

/* An id that is not in use; there is one. */
static inline u16 parked_new_id(struct accmem_buddy *b)
{
	unsigned int i = 0, bit;

	while (!~b->ids[i])
		i++;
	touch(i + 1);
	bit = __ffs64(~b->ids[i]);
	b->ids[i] |= 1ull << bit;
	return (i << WORD_SHIFT) + bit + 1;
}

/* The first id from @id on that is in use; 0 if none is */
static inline u16 parked_id_from(const struct accmem_buddy *b, u16 id)
{
	unsigned int i = (id - 1) >> WORD_SHIFT;
	u64 word;

	if (id > ACCMEM_BUDDY_PARKED)
		return 0;
	word = b->ids[i] & ~0ull << ((id - 1) & WORD_MASK);
	touch(1);
	while (!word) {
		if (++i == ARRAY_SIZE(b->ids))
			return 0;
		touch(1);
		word = b->ids[i];
	}
	return (i << WORD_SHIFT) + __ffs64(word) + 1;
}

/* Whether there was room in the slots; the caller sees to it in the cache. */
static inline bool parked_push(struct accmem_buddy *b, u64 lo, u64 n)
{
	struct accmem_buddy_parked *p;
	u16 id, below;

	if (!parked_mark(b, lo, lo + n, true))
		return false;
	touch(4);
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

	touch(4);
	parked_mark(b, p->lo, (u64)p->lo + p->n, false);
	if (p->above)
		b->parked[p->above].below = p->below;
	else
		b->stack[p->n] = p->below;
	b->parked[p->below].above = p->above;
	b->ids[(id - 1) >> WORD_SHIFT] &= ~(1ull << ((id - 1) & WORD_MASK));
	b->nr_parked--;
	return p->lo;
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

static inline u64 slot_bits(const struct accmem_buddy_slot *slot, u64 key)
{
	touch(1);
	return slot->key == key ? slot->mask : 0;
}

static inline u64 parts_parked(const struct accmem_buddy *b, u64 i)
{
	return slot_bits(&b->part[i % ACCMEM_BUDDY_PARTS], i);
}

static inline u64 wholes_parked(const struct accmem_buddy *b, u64 i)
{
	return slot_bits(&b->whole[i % ACCMEM_BUDDY_WHOLES], i);
}

/* Words of a range beyond which all parked blocks are fewer to look at */
#define PARKED_NEAR 64

static bool parked_overlaps_far(const struct accmem_buddy *b, u64 lo, u64 hi)
{
	struct parked_walk w = {};

	while (parked_each(b, &w))
		if (w.lo < hi && lo < w.hi)
			return true;
	return false;
}

static noinline bool parked_overlaps_words(const struct accmem_buddy *b, u64 lo,
					   u64 hi)
{
	u64 i = lo >> WORD_SHIFT, last = (hi - 1) >> WORD_SHIFT, n;
	u64 mask = ~0ull << (lo & WORD_MASK);

	if (last - i >= PARKED_NEAR)
		return parked_overlaps_far(b, lo, hi);
	for (; i < last; i++, mask = ~0ull)
		if (parts_parked(b, i) & mask)
			return true;
	if (parts_parked(b, i) & bits_mask(0, ((hi - 1) & WORD_MASK) + 1))
		return true;
	for (i = lo >> WORD_SHIFT; i <= last; i += n) {
		n = in_group(i, last);
		if (wholes_parked(b, i >> WORD_SHIFT) &
		    bits_mask(i & WORD_MASK, n))
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
		return parked_overlaps_words(b, lo, hi);
	return parts_parked(b, i) & bits_mask(lo & WORD_MASK, hi - lo) ||
	       wholes_parked(b, i >> WORD_SHIFT) >> (i & WORD_MASK) & 1;
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
