// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The order cache: freed blocks that are still used in the map, so that a request of
 * the same size takes one without a search, a cut or a merge.
 *
 * A block in the cache is parked. There is a stack of them for each size. A block that
 * a request took from a stack is lent: the cache still knows it, and when it is freed
 * as a whole, nothing has to be looked up in the map. A lent block of which a part is
 * freed is forgotten. Parked and lent blocks are the known ones ("kept").
 *
 * They are found by their last granule, in a hash table. Overlaps are found by a
 * bitmap of last granules, in which granules far apart share a bit that at most one
 * may set, and a count for each 128 granules with a summary above. Parked bytes count
 * as free, and as free and dirty.
 */

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

/* Blocks that have room on the stacks of a range of @nr granules */
static inline unsigned int parked_room(u64 nr)
{
	u64 share = nr < PARKED_RANGE_MIN ? 0 : nr >> PARKED_SHARE_SHIFT;

	return min_t(u64, share, PARKED_MAX);
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

/* Words of bits for last granules, as a shift: at most a quarter of all */
static inline unsigned int kept_bits_shift(u64 nr)
{
	return min_t(unsigned int, ilog2(max(words_for(nr) >> 2, 1ull)), 16);
}

/* A part of the range in which kept blocks are counted, in granules, as a shift */
#define KEPT_PART_SHIFT 7

static inline u64 kept_parts(u64 nr)
{
	return (nr + (1ull << KEPT_PART_SHIFT) - 1) >> KEPT_PART_SHIFT;
}

/* Where kept blocks end */

static inline u64 kept_hi(const struct kept_block *k)
{
	return (u64)k->lo + k->n;
}

/*
 * The word of bits for granule @at and its word. It is shifted a little from one turn
 * through the bits to the next, as large blocks like to end at multiples of powers of
 * two.
 */
static inline u64 *kept_word(const struct buddy *b, u64 at)
{
	u64 i = at >> WORD_SHIFT;

	i += (i >> b->kept_bits_shift) * 5;
	return &b->kept_bits[i & ((1ull << b->kept_bits_shift) - 1)];
}

static inline struct summary kept_summary(const struct buddy *b)
{
	return (struct summary){ b->kept_index, words_for(kept_parts(b->nr)) };
}

/* A block that ends with granule @last is kept, or no more. */
static inline void kept_set_bit(struct buddy *b, u64 last, bool set)
{
	u64 *word = kept_word(b, last), part = last >> KEPT_PART_SHIFT;

	*word = with_bits(*word, 1ull << (last & WORD_MASK), set);
	b->kept_count[part] += set ? 1 : -1;
	if (set)
		summary_add(kept_summary(b), &b->kept_top, part);
	else
		summary_del(kept_summary(b), &b->kept_top, part,
			    !b->kept_count[part]);
}

static inline u16 *kept_list(const struct buddy *b, u64 last)
{
	return &b->kept_hash[hash_32(last, b->kept_hash_shift)];
}

/* The id of the kept block that ends with granule @last; 0 */
static inline u16 kept_find(const struct buddy *b, u64 last)
{
	u16 id = *kept_list(b, last);

	while (id && kept_hi(&b->kept[id]) - 1 != last)
		id = b->kept[id].next;
	return id;
}

/* The first one that ends in the word of @at, at it or after; 0 */
static inline u16 kept_first(const struct buddy *b, u64 at)
{
	u64 word = *kept_word(b, at) & mask_from(at);
	u16 id = 0;

	for (; word && !id; word &= word - 1)
		id = kept_find(b, (at & ~(u64)WORD_MASK) + __ffs64(word));
	return id;
}

/* The first kept block that has a granule of [@lo, @hi); 0 */
static u16 kept_in(const struct buddy *b, u64 lo, u64 hi)
{
	u64 last = hi + b->kept_longest - 2, at, part;
	u16 id = 0;

	if (!b->nr_kept)
		return 0;
	for (at = lo; at <= last && !id; at = (at | WORD_MASK) + 1) {
		part = summary_next(kept_summary(b), &b->kept_top,
				    at >> KEPT_PART_SHIFT,
				    min(last, b->nr - 1) >> KEPT_PART_SHIFT);
		if (part == NOWHERE)
			return 0;
		at = max(at, part << KEPT_PART_SHIFT);
		id = kept_first(b, at);
	}
	return b->kept[id].lo < hi ? id : 0;
}

/* Blocks that are kept */

/* Ids that are looked at for a block that has to go */
#define KEPT_PROBES 8

static inline bool kept_is_lent(const struct kept_block *k)
{
	return k->above == KEPT_LENT;
}

/* The next block, of all in turn, that is lent, or parked; 0 if none is near */
static inline u16 kept_next_out(struct buddy *b, bool lent)
{
	const struct kept_block *k;
	unsigned int probe;

	for (probe = 0; probe < KEPT_PROBES; probe++) {
		b->hand = b->hand < b->nr_ids ? b->hand + 1 : 1;
		k = &b->kept[b->hand];
		if (k->n && kept_is_lent(k) == lent)
			return b->hand;
	}
	return 0;
}

/* The block is not parked. */
static noinline void kept_forget(struct buddy *b, u16 id)
{
	struct kept_block *k = &b->kept[id];
	u64 last = kept_hi(k) - 1;
	u16 *link = kept_list(b, last);

	while (*link != id)
		link = &b->kept[*link].next;
	*link = k->next;
	kept_set_bit(b, last, false);
	k->n = 0;
	k->below = b->stack[0];
	b->stack[0] = id;
	b->nr_kept--;
}

/* An id that is not in use; 0. Those that were in use are a stack. */
static inline u16 kept_new_id(struct buddy *b)
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
static inline u16 kept_add(struct buddy *b, u64 lo, u64 n)
{
	u64 last = lo + n - 1;
	u16 id, *list = kept_list(b, last);

	if (*kept_word(b, last) >> (last & WORD_MASK) & 1)
		return 0;
	id = kept_new_id(b);
	if (!id)
		return 0;
	kept_set_bit(b, last, true);
	b->kept[id] = (struct kept_block){ .lo = lo, .n = n, .next = *list };
	*list = id;
	b->kept_longest = b->nr_kept ? max_t(u64, b->kept_longest, n) : n;
	b->nr_kept++;
	return id;
}

/*
 * Is nothing of [@lo, @hi), which is used in the map, parked? Lent blocks that
 * have a part of it are forgotten: they do not come back as a whole.
 */
static inline bool kept_release(struct buddy *b, u64 lo, u64 hi)
{
	u16 id;

	while (lo < hi && (id = kept_in(b, lo, hi))) {
		if (!kept_is_lent(&b->kept[id]))
			return false;
		lo = kept_hi(&b->kept[id]);
		kept_forget(b, id);
	}
	return true;
}

/* Blocks that are parked */

/* Is anything of [@lo, @hi) parked? */
static bool parked_overlap(const struct buddy *b, u64 lo, u64 hi)
{
	u16 id;

	if (!b->nr_parked)
		return false;
	for (; lo < hi && (id = kept_in(b, lo, hi)); lo = kept_hi(&b->kept[id]))
		if (!kept_is_lent(&b->kept[id]))
			return true;
	return false;
}

/* The caller sees to room on the stacks. */
static inline void parked_push(struct buddy *b, u16 id, u64 n)
{
	struct kept_block *k = &b->kept[id];
	u16 below = b->stack[n];

	b->stack[n] = id;
	b->kept[below].above = id;
	k->below = below;
	k->above = 0;
	b->nr_parked++;
}

/*
 * A block is lent from now on, of @n granules. The one below the topmost need not hear
 * of it.
 */
static inline u64 parked_lend(struct buddy *b, u16 id, u64 n)
{
	struct kept_block *k = &b->kept[id];

	if (b->stack[n] == id) {
		b->stack[n] = k->below;
	} else {
		b->kept[k->above].below = k->below;
		b->kept[k->below].above = k->above;
	}
	k->above = KEPT_LENT;
	b->nr_parked--;
	return k->lo;
}

/* Blocks of a size that are looked at for one with an alignment */
#define PARKED_PROBES 8

/*
 * The last one given back of @n granules with this alignment that @owner may have;
 * NOWHERE
 */
static inline u64 parked_take(struct buddy *b, u64 n, u64 align, u64 owner)
{
	bool bound = owner_is_bound(b, owner);
	unsigned int probe = 0;
	u16 id;

	for (id = b->stack[n]; id && probe < PARKED_PROBES; probe++) {
		if (!(b->kept[id].lo & (align - 1)) &&
		    (!bound || owner_permits(b, owner, b->kept[id].lo, n)))
			return parked_lend(b, id, n);
		id = b->kept[id].below;
	}
	return NOWHERE;
}

/* Which blocks are parked, and which parked blocks are merged when */

static noinline void parked_merge_one(struct buddy *b, u16 id)
{
	u64 n = b->kept[id].n, lo = parked_lend(b, id, n);

	kept_forget(b, id);
	change_merge_at(b, lo, n);
}

static void parked_merge_all(struct buddy *b)
{
	u16 id;

	for (id = 1; b->nr_parked; id++)
		if (b->kept[id].n && !kept_is_lent(&b->kept[id]))
			parked_merge_one(b, id);
	if (b->nr_kept)
		return;
	b->nr_ids = 0;
	b->stack[0] = 0;
}

/* 2 GiB */
#define PARKED_FREE BIT_ULL(19)

/*
 * What is not merged costs room, and the more the smaller a range is. There is none of
 * it while less than this is free, no less than half of the range and no more than
 * three quarters.
 */
static inline u64 parked_free_min(u64 nr)
{
	return clamp_t(u64, PARKED_FREE, nr >> 1, nr - (nr >> 2));
}

/*
 * May no block be parked now? Those that are go one at a time. If as many came back to
 * a full cache as it holds, with no request between them, nobody waits for blocks.
 */
static inline bool parked_is_off(const struct buddy *b)
{
	return b->nr_free < b->short_of || b->frees_since_alloc == b->room;
}

/* Called before free runs change: while no block may be parked, merges one. */
static void parked_merge_some(struct buddy *b)
{
	u16 id = b->nr_parked && parked_is_off(b) ? kept_next_out(b, false) : 0;

	if (id)
		parked_merge_one(b, id);
}

/* One block less on the full stacks, but not for another of its size */
static noinline bool parked_make_room(struct buddy *b, u64 n)
{
	u16 id = kept_next_out(b, false);

	b->frees_since_alloc++;
	if (!id || b->kept[id].n == n)
		return false;
	parked_merge_one(b, id);
	return true;
}

/* May a block of @n granules wait now? */
static inline bool parked_has_room(struct buddy *b, u64 n)
{
	if (n > b->parked_max || parked_is_off(b))
		return false;
	return b->nr_parked != b->room || parked_make_room(b, n);
}

/* Whether a block that was not kept waits now */
static bool parked_add(struct buddy *b, u64 lo, u64 n)
{
	u16 id = parked_has_room(b, n) ? kept_add(b, lo, n) : 0;

	if (id)
		parked_push(b, id, n);
	return id;
}
