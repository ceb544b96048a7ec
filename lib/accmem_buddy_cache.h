/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The order cache, for accmem_buddy.c only: blocks that were given back and are
 * still used in the map, so that a request of the same size takes them without
 * a search, and nothing is cut and merged in between.
 *
 * For each size there is a stack of those that wait: they are parked. A block that
 * a request took from there is lent, and stays known: when it is given back as a
 * whole, nothing has to be looked up in the map. Both are kept, and are found by
 * where they begin, in a hash table. In which parts of the range any do is
 * counted, and has a bitmap; inside them, a map of starts has a bit for each
 * granule, which it shares with others far away: of these only one may begin a
 * kept block. A lent block of which a part is given back is forgotten. Parked
 * bytes count as free, and as free and dirty.
 */
#ifndef ACCMEM_BUDDY_CACHE_H
#define ACCMEM_BUDDY_CACHE_H

#include <linux/hash.h>

#include "accmem_buddy_marks.h"
#include "accmem_buddy_starts.h"

/*
 * No range smaller than this has an order cache. This share of its granules is
 * the number of blocks that are parked, and the size of one; so many times as many
 * are kept. Tests of small ranges have others.
 */
#ifndef PARKED_RANGE_MIN
#define PARKED_RANGE_MIN 20480
#define PARKED_SHARE_SHIFT 10
#define KEPT_TIMES 4
#endif

#define KEPT_STARTS_SHIFT_MAX 16

static inline u64 parked_share(u64 nr)
{
	return nr < PARKED_RANGE_MIN ? 0 : nr >> PARKED_SHARE_SHIFT;
}

/* Blocks that have room on the stacks of a range of @nr granules */
static inline unsigned int parked_room(u64 nr)
{
	return min_t(u64, parked_share(nr), ACCMEM_BUDDY_PARKED);
}

/* Blocks that are kept, at most, with room for @parked of them to be parked */
static inline unsigned int kept_room(unsigned int parked)
{
	return KEPT_TIMES * parked;
}

/* Twice as many lists, or up to half of that less; as a shift */
static inline unsigned int kept_hash_shift(u64 nr)
{
	return fls64(kept_room(parked_room(nr)));
}

/* Words of the map of starts, as a shift: at most a quarter of all */
static inline unsigned int kept_start_shift(u64 nr)
{
	u64 words = words_for(nr) >> 2;

	if (!words)
		return 0;
	return min_t(unsigned int, fls64(words) - 1, KEPT_STARTS_SHIFT_MAX);
}

/* A part of the range in which kept blocks are counted, in granules, as a shift */
#define KEPT_PART_SHIFT 7

static inline u64 kept_parts(u64 nr)
{
	return (nr + (1ull << KEPT_PART_SHIFT) - 1) >> KEPT_PART_SHIFT;
}

/* Where kept blocks begin */

/*
 * The word of starts for granule @lo and its word. It is shifted a little from one
 * turn through the map to the next, as large blocks like to begin at multiples of
 * powers of two.
 */
static inline u64 start_word(const struct accmem_buddy *b, u64 lo)
{
	u64 i = lo >> WORD_SHIFT;

	i += (i >> b->kept_start_shift) * 5;
	return i & ((1ull << b->kept_start_shift) - 1);
}

/* Does no kept block have the bit of @lo? */
static inline bool start_is_free(const struct accmem_buddy *b, u64 lo)
{
	u64 starts = b->kept_starts[start_word(b, lo)];

	touch(1);
	return !(starts >> (lo & WORD_MASK) & 1);
}

static inline struct starts parts_of(const struct accmem_buddy *b)
{
	return starts_at(b->kept_index, kept_parts(b->nr));
}

/* Whether it is the first or the last of its part cannot be predicted: no branch */
static inline void start_set(struct accmem_buddy *b, u64 lo)
{
	u64 part = lo >> KEPT_PART_SHIFT;

	touch(2);
	b->kept_starts[start_word(b, lo)] |= 1ull << (lo & WORD_MASK);
	b->kept_count[part]++;
	starts_add(parts_of(b), &b->kept_top, part);
}

static inline void start_clear(struct accmem_buddy *b, u64 lo)
{
	u64 part = lo >> KEPT_PART_SHIFT;

	touch(2);
	b->kept_starts[start_word(b, lo)] &= ~(1ull << (lo & WORD_MASK));
	b->kept_count[part]--;
	starts_del(parts_of(b), &b->kept_top, part, !b->kept_count[part]);
}

static inline u16 *kept_list(const struct accmem_buddy *b, u64 lo)
{
	touch(1);
	return &b->kept_hash[hash_32(lo, b->kept_hash_shift)];
}

static inline u64 kept_hi(const struct accmem_buddy_kept *k)
{
	return (u64)k->lo + k->n;
}

/* The id of the kept block that begins at @lo; 0 */
static inline u16 kept_find(const struct accmem_buddy *b, u64 lo)
{
	u16 id = *kept_list(b, lo);

	while (id) {
		touch(1);
		if (b->kept[id].lo == lo)
			break;
		id = b->kept[id].next;
	}
	return id;
}

/* Blocks that are kept */

/* Has it any that are not parked? */
static inline bool has_lent(const struct accmem_buddy *b)
{
	return b->nr_kept != b->nr_parked;
}

/* Ids that are looked at for a block that has to go */
#define KEPT_PROBES 8

/* The next block, of all in turn, that is lent, or parked; 0 if none is near */
static inline u16 kept_next_out(struct accmem_buddy *b, bool lent)
{
	unsigned int probe;

	for (probe = 0; probe < KEPT_PROBES; probe++) {
		b->hand = b->hand < b->nr_ids ? b->hand + 1 : 1;
		touch(1);
		if (b->kept[b->hand].n && b->kept[b->hand].lent == lent)
			return b->hand;
	}
	return 0;
}

/* The block is not parked. */
static noinline void kept_forget(struct accmem_buddy *b, u16 id)
{
	struct accmem_buddy_kept *k = &b->kept[id];
	u16 *link = kept_list(b, k->lo);

	while (*link != id) {
		touch(1);
		link = &b->kept[*link].next;
	}
	*link = k->next;
	start_clear(b, k->lo);
	k->n = 0;
	k->below = b->stack[0];
	b->stack[0] = id;
	b->nr_kept--;
}

/* An id that is not in use; 0. Those that were in use are a stack. */
static inline u16 kept_new_id(struct accmem_buddy *b)
{
	u16 id;

	if (b->nr_kept == kept_room(b->room)) {
		id = kept_next_out(b, true);
		if (!id)
			return 0;
		kept_forget(b, id);
	}
	id = b->stack[0];
	if (!id)
		return ++b->nr_ids;
	b->stack[0] = b->kept[id].below;
	return id;
}

/* The id of a block that is kept from now on; 0 if there is no room for it */
static inline u16 kept_add(struct accmem_buddy *b, u64 lo, u64 n)
{
	struct accmem_buddy_kept *k;
	u16 id, *list;

	id = start_is_free(b, lo) ? kept_new_id(b) : 0;
	if (!id)
		return 0;
	start_set(b, lo);
	list = kept_list(b, lo);
	k = &b->kept[id];
	touch(1);
	k->lo = lo;
	k->n = n;
	k->next = *list;
	*list = id;
	b->kept_longest = b->nr_kept ? max_t(u64, b->kept_longest, n) : n;
	b->nr_kept++;
	return id;
}

/* The last kept block that begins in [@least, @pos), of a part; 0 */
static inline u16 kept_last(const struct accmem_buddy *b, u64 least, u64 pos)
{
	u64 word;
	u16 id;

	while (pos-- > least) {
		touch(1);
		word = b->kept_starts[start_word(b, pos)] & mask_up_to(pos);
		pos &= ~(u64)WORD_MASK;
		for (; word; word &= ~(1ull << (fls64(word) - 1))) {
			id = kept_find(b, pos + fls64(word) - 1);
			if (id)
				return id;
		}
	}
	return 0;
}

/* The first kept block that begins in [@pos, @hi), of a part; 0 */
static inline u16 kept_first(const struct accmem_buddy *b, u64 pos, u64 hi)
{
	u64 word;
	u16 id;

	for (; pos < hi; pos = (pos | WORD_MASK) + 1) {
		touch(1);
		word = b->kept_starts[start_word(b, pos)] & mask_from(pos);
		if (is_one_word(pos, hi))
			word &= mask_up_to(hi - 1);
		pos &= ~(u64)WORD_MASK;
		for (; word; word &= word - 1) {
			id = kept_find(b, pos + __ffs64(word));
			if (id)
				return id;
		}
	}
	return 0;
}

/* The kept block that begins last before @pos, if that may have it; 0 */
static inline u16 kept_before(const struct accmem_buddy *b, u64 pos)
{
	u64 least = pos - min_t(u64, pos, b->kept_longest - 1), part;
	u16 id = 0;

	for (; pos > least && !id; pos = part << KEPT_PART_SHIFT) {
		part = starts_prev(parts_of(b), &b->kept_top,
				   (pos - 1) >> KEPT_PART_SHIFT,
				   least >> KEPT_PART_SHIFT);
		if (part == NOWHERE)
			return 0;
		id = kept_last(b, max(least, part << KEPT_PART_SHIFT),
			       min(pos, (part + 1) << KEPT_PART_SHIFT));
	}
	return id;
}

/* The first kept block that begins in [@pos, @hi); 0 */
static inline u16 kept_within(const struct accmem_buddy *b, u64 pos, u64 hi)
{
	u64 part;
	u16 id = 0;

	for (; pos < hi && !id; pos = (part + 1) << KEPT_PART_SHIFT) {
		part = starts_next(parts_of(b), &b->kept_top,
				   pos >> KEPT_PART_SHIFT,
				   (hi - 1) >> KEPT_PART_SHIFT);
		if (part == NOWHERE)
			return 0;
		id = kept_first(b, max(pos, part << KEPT_PART_SHIFT),
				min(hi, (part + 1) << KEPT_PART_SHIFT));
	}
	return id;
}

/*
 * May a kept block have a granule of [@lo, @hi)? None is the usual answer, and found
 * without a search where one word has all the parts in which it might begin.
 */
static inline bool kept_maybe(const struct accmem_buddy *b, u64 lo, u64 hi)
{
	struct starts p = parts_of(b);
	const u64 *words = p.nr > 1 ? p.words : &b->kept_top;
	u64 last = (hi - 1) >> KEPT_PART_SHIFT;

	lo = (lo - min_t(u64, lo, b->kept_longest - 1)) >> KEPT_PART_SHIFT;
	if (lo >> WORD_SHIFT != last >> WORD_SHIFT)
		return true;
	touch(1);
	return words[lo >> WORD_SHIFT] & mask_from(lo) & mask_up_to(last);
}

/* The lowest kept block that has a granule of [@lo, @hi); 0 */
static u16 kept_in(const struct accmem_buddy *b, u64 lo, u64 hi)
{
	u16 id;

	if (!b->nr_kept || !kept_maybe(b, lo, hi))
		return 0;
	id = kept_before(b, lo);
	if (id && kept_hi(&b->kept[id]) > lo)
		return id;
	return kept_within(b, lo, hi);
}

/*
 * Is nothing of [@lo, @hi), which is used in the map, parked? Lent blocks that
 * have a part of it are forgotten: they do not come back as a whole.
 */
static inline bool kept_release(struct accmem_buddy *b, u64 lo, u64 hi)
{
	u16 id;

	while (b->nr_kept && lo < hi) {
		id = kept_in(b, lo, hi);
		if (!id)
			return true;
		if (!b->kept[id].lent)
			return false;
		lo = kept_hi(&b->kept[id]);
		kept_forget(b, id);
	}
	return true;
}

/* Blocks that are parked */

/* The caller sees to room on the stacks. */
static inline void parked_push(struct accmem_buddy *b, u16 id, u64 n)
{
	struct accmem_buddy_kept *k = &b->kept[id];
	u16 below = b->stack[n];

	touch(4);
	b->stack[n] = id;
	b->sizes[n >> WORD_SHIFT] |= 1ull << (n & WORD_MASK);
	b->kept[below].above = id;
	k->below = below;
	k->above = 0;
	k->lent = false;
	b->nr_parked++;
}

/* A block is lent from now on. */
static inline u64 parked_lend(struct accmem_buddy *b, u16 id)
{
	struct accmem_buddy_kept *k = &b->kept[id];

	touch(3);
	if (k->above)
		b->kept[k->above].below = k->below;
	else
		b->stack[k->n] = k->below;
	b->kept[k->below].above = k->above;
	k->lent = true;
	b->nr_parked--;
	return k->lo;
}

/* Blocks of a size that are looked at for one with an alignment; and sizes */
#define PARKED_PROBES 8

/* The last one given back of @n granules with this alignment; NOWHERE */
static inline u64 parked_take(struct accmem_buddy *b, u64 n, u64 align)
{
	unsigned int probe = 0;
	u16 id;

	for (id = b->stack[n]; id && probe < PARKED_PROBES; probe++) {
		touch(1);
		if (!(b->kept[id].lo & (align - 1)))
			return parked_lend(b, id);
		id = b->kept[id].below;
	}
	return NOWHERE;
}

/*
 * The largest size of @least to @most granules that has a parked block; 0 if none
 * has, or if too many that had one have to be passed
 */
static inline u64 parked_size(struct accmem_buddy *b, u64 least, u64 most)
{
	unsigned int probe;
	u64 n, word;

	for (n = most, probe = 0; n >= least && probe < PARKED_PROBES;) {
		word = b->sizes[n >> WORD_SHIFT] & mask_up_to(n);
		n &= ~(u64)WORD_MASK;
		if (!word) {
			if (!n--)
				break;
			continue;
		}
		n += fls64(word) - 1;
		touch(1);
		if (b->stack[n])
			return n >= least ? n : 0;
		b->sizes[n >> WORD_SHIFT] &= ~(1ull << (n & WORD_MASK));
		probe++;
	}
	return 0;
}

/* The parked block after @k, or the first one after NULL; NULL */
static inline struct accmem_buddy_kept *
parked_each(const struct accmem_buddy *b, const struct accmem_buddy_kept *k)
{
	unsigned int id = k ? k - b->kept : 0;

	while (b->nr_parked && ++id <= b->nr_ids) {
		touch(1);
		if (b->kept[id].n && !b->kept[id].lent)
			return &b->kept[id];
	}
	return NULL;
}

/* Dirty granules of [@lo, @hi) that are parked */
static inline u64 parked_dirty(const struct accmem_buddy *b, u64 lo, u64 hi)
{
	const struct accmem_buddy_kept *k;
	u64 n = 0;
	u16 id;

	for (; lo < hi && (id = kept_in(b, lo, hi)); lo = kept_hi(k)) {
		k = &b->kept[id];
		if (!k->lent)
			n += count_dirty(b, max_t(u64, lo, k->lo),
					 min(hi, kept_hi(k)));
	}
	return n;
}

/* The end of the parked block that has granule @pos, or @pos */
static inline u64 parked_end(const struct accmem_buddy *b, u64 pos)
{
	u16 id = pos < b->nr ? kept_in(b, pos, pos + 1) : 0;

	return id && !b->kept[id].lent ? kept_hi(&b->kept[id]) : pos;
}

/* The first granule from @lo on, but before @hi, that is parked; or @hi */
static inline u64 parked_next(const struct accmem_buddy *b, u64 lo, u64 hi)
{
	const struct accmem_buddy_kept *k;
	u16 id;

	for (; lo < hi && (id = kept_in(b, lo, hi)); lo = kept_hi(k)) {
		k = &b->kept[id];
		if (!k->lent)
			return max_t(u64, lo, k->lo);
	}
	return hi;
}

#endif /* ACCMEM_BUDDY_CACHE_H */
