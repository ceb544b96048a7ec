// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The order cache: freed blocks that serve the next request of their size.
 *
 * A block in the cache stays used in the map, so that a request of the same size needs
 * no search, no cut and no merge. A block has one of these states:
 *
 * - parked: freed, on the stack of its size. Its granules count as free, and its dirty
 *   granules as free and dirty.
 *
 * - lent: allocated from a stack. The cache still knows the block. A free of exactly
 *   this block needs no lookup in the map. A free of a part of it makes the cache
 *   forget it.
 *
 * Parked and lent blocks together are the kept blocks. A hash table finds a kept block
 * by its last granule. Overlaps are found by a bitmap of last granules, in which
 * granules far apart share a bit that one block at most may set, and by a count for
 * each 128 granules with a summary above.
 */

/*
 * Least size of a range with an order cache, in granules. The share of its granules, as
 * a shift, is the most blocks that are parked and the largest size of one. At most
 * KEPT_TIMES as many blocks are kept. Tests of small ranges have other values.
 */
#ifndef PARKED_RANGE_MIN
#define PARKED_RANGE_MIN 20480
#define PARKED_SHARE_SHIFT 10
#define KEPT_TIMES 4
#endif

/* Most parked blocks of a range of @nr granules */
static inline unsigned int parked_room(u64 nr)
{
	u64 share = nr < PARKED_RANGE_MIN ? 0 : nr >> PARKED_SHARE_SHIFT;

	return min_t(u64, share, PARKED_MAX);
}

/* Most kept blocks, if at most @parked of them are parked */
static inline unsigned int kept_room(unsigned int parked)
{
	return KEPT_TIMES * parked;
}

/* Hash buckets as a shift: between one and two for each kept block */
static inline unsigned int kept_hash_shift(u64 nr)
{
	return fls64(kept_room(parked_room(nr)));
}

/*
 * Words of the bitmap as a shift: at most a quarter of the words of the range
 */
static inline unsigned int kept_bits_shift(u64 nr)
{
	return min_t(unsigned int, ilog2(max(words_for(nr) >> 2, 1ull)), 16);
}

/* Granules of a part of the range with one count, as a shift */
#define KEPT_PART_SHIFT 7

static inline u64 kept_parts(u64 nr)
{
	return (nr + (1ull << KEPT_PART_SHIFT) - 1) >> KEPT_PART_SHIFT;
}

/* Ends of kept blocks */

static inline u64 kept_hi(const struct kept_block *k)
{
	return (u64)k->lo + k->n;
}

/*
 * The word of the bitmap for granule @at and its neighbours. The position shifts a
 * little from one turn through the bitmap to the next, because large blocks often end
 * at multiples of powers of two.
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

/* Record that a kept block ends with granule @last, or no longer does. */
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

/* The id of the kept block that ends with granule @last; 0 for none */
static inline u16 kept_find(const struct buddy *b, u64 last)
{
	u16 id = *kept_list(b, last);

	while (id && kept_hi(&b->kept[id]) - 1 != last)
		id = b->kept[id].next;
	return id;
}

/*
 * The first kept block that ends in the word of @at, at @at or after; 0 for none
 */
static inline u16 kept_first(const struct buddy *b, u64 at)
{
	u64 word = *kept_word(b, at) & mask_from(at);
	u16 id = 0;

	for (; word && !id; word &= word - 1)
		id = kept_find(b, (at & ~(u64)WORD_MASK) + __ffs64(word));
	return id;
}

/* The first kept block that overlaps [@lo, @hi); 0 for none */
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

/* Kept blocks */

/* Ids that are checked in the search for a block to evict */
#define KEPT_PROBES 8

static inline bool kept_is_lent(const struct kept_block *k)
{
	return k->above == KEPT_LENT;
}

/* The next lent or parked block in turn; 0 if none is near */
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

/* Forget a block that is not parked. */
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

/* An unused id, from the stack of unused ids if there is one; 0 for none */
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

/* Keep a block and return its id; 0 if there is no room for it */
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
 * Check that no granule of [@lo, @hi), which is used in the map, is parked. Lent blocks
 * that overlap it are forgotten, because they will not be freed as a whole.
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

/* Parked blocks */

/* Is any granule of [@lo, @hi) parked? */
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

/* Park a kept block. The caller has checked that there is room. */
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
 * Lend a parked block of @n granules. If it was the topmost of its stack, the block
 * below is left as it is.
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

/* Blocks of a size that are checked for an alignment */
#define PARKED_PROBES 8

/*
 * Lend the latest block of @n granules with this alignment that @owner may use; NOWHERE
 * if there is none
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

/* Parking and merging */

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

/* Free granules that allow parking: 2 GiB */
#define PARKED_FREE BIT_ULL(19)

/*
 * Least number of free granules at which blocks are parked. Unmerged blocks cost room,
 * and more of it in a smaller range, so the limit is 2 GiB, no less than half of the
 * range and no more than three quarters.
 */
static inline u64 parked_free_min(u64 nr)
{
	return clamp_t(u64, PARKED_FREE, nr >> 1, nr - (nr >> 2));
}

/*
 * Is parking off? It is when too few granules are free, or when as many blocks as the
 * cache holds were freed into a full cache without a request between them.
 */
static inline bool parked_is_off(const struct buddy *b)
{
	return b->nr_free < b->short_of || b->frees_since_alloc == b->room;
}

/*
 * Merge one parked block while parking is off. Called before free runs change.
 */
static void parked_merge_some(struct buddy *b)
{
	u16 id = b->nr_parked && parked_is_off(b) ? kept_next_out(b, false) : 0;

	if (id)
		parked_merge_one(b, id);
}

/*
 * Merge one block of the full cache to make room, unless it has the same size.
 */
static noinline bool parked_make_room(struct buddy *b, u64 n)
{
	u16 id = kept_next_out(b, false);

	b->frees_since_alloc++;
	if (!id || b->kept[id].n == n)
		return false;
	parked_merge_one(b, id);
	return true;
}

/* Can a block of @n granules be parked? */
static inline bool parked_has_room(struct buddy *b, u64 n)
{
	if (n > b->parked_max || parked_is_off(b))
		return false;
	return b->nr_parked != b->room || parked_make_room(b, n);
}

/* Park a block that was not kept, if there is room. */
static bool parked_add(struct buddy *b, u64 lo, u64 n)
{
	u16 id = parked_has_room(b, n) ? kept_add(b, lo, n) : 0;

	if (id)
		parked_push(b, id, n);
	return id;
}
