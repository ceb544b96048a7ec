// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The order cache: freed blocks that serve the next request of their size.
 *
 * A block in the cache stays used in the map, so that a request of the same size needs
 * no search, no cut and no merge. A block has one of these states:
 *
 * - cached: freed, on the stack of its size. Its granules count as free, and its dirty
 *   granules as free and dirty.
 *
 * - outstanding: allocated from a stack. The cache still knows the block. A free of
 *   exactly this block needs no lookup in the map. A free of a part of it makes the
 *   cache forget it.
 *
 * Cached and outstanding blocks together are the tracked blocks. A hash table finds a
 * tracked block by its last granule. Overlaps are found by a bitmap of last granules,
 * in which granules far apart share a bit that one block at most may set, and by a
 * count for each 128 granules with a summary above.
 */

/*
 * Least size of a range with an order cache, in granules. The share of its granules, as
 * a shift, is the most blocks that are cached and the largest size of one. At most
 * TRACKED_TIMES as many blocks are tracked. Tests of small ranges have other values.
 */
#ifndef CACHED_RANGE_MIN
#define CACHED_RANGE_MIN 20480
#define CACHED_SHARE_SHIFT 10
#define TRACKED_TIMES 4
#endif

/* Most cached blocks of a range of @nr granules */
static inline unsigned int cached_room(u64 nr)
{
	u64 share = nr < CACHED_RANGE_MIN ? 0 : nr >> CACHED_SHARE_SHIFT;

	return min_t(u64, share, CACHED_MAX);
}

/* Most tracked blocks, if at most @cached of them are cached */
static inline unsigned int tracked_room(unsigned int cached)
{
	return TRACKED_TIMES * cached;
}

/* Hash buckets as a shift: between one and two for each tracked block */
static inline unsigned int tracked_hash_shift(u64 nr)
{
	return fls64(tracked_room(cached_room(nr)));
}

/*
 * Words of the bitmap as a shift: at most a quarter of the words of the range
 */
static inline unsigned int tracked_bits_shift(u64 nr)
{
	return min_t(unsigned int, ilog2(max(words_for(nr) >> 2, 1ull)), 16);
}

/* Granules of a part of the range with one count, as a shift */
#define TRACKED_PART_SHIFT 7

static inline u64 tracked_parts(u64 nr)
{
	return (nr + (1ull << TRACKED_PART_SHIFT) - 1) >> TRACKED_PART_SHIFT;
}

/* Ends of tracked blocks */

static inline u64 tracked_hi(const struct tracked_block *k)
{
	return (u64)k->lo + k->n;
}

/*
 * The word of the bitmap for granule @at and its neighbours. The position shifts a
 * little from one turn through the bitmap to the next, because large blocks often end
 * at multiples of powers of two.
 */
static inline u64 *tracked_word(const struct buddy *b, u64 at)
{
	u64 i = at >> WORD_SHIFT;

	i += (i >> b->tracked_bits_shift) * 5;
	return &b->tracked_bits[i & ((1ull << b->tracked_bits_shift) - 1)];
}

static inline struct summary tracked_summary(const struct buddy *b)
{
	return (struct summary){ b->tracked_index,
				 words_for(tracked_parts(b->nr)) };
}

/* Record that a tracked block ends with granule @last, or no longer does. */
static inline void tracked_set_bit(struct buddy *b, u64 last, bool set)
{
	u64 *word = tracked_word(b, last), part = last >> TRACKED_PART_SHIFT;

	*word = with_bits(*word, 1ull << (last & WORD_MASK), set);
	b->tracked_count[part] += set ? 1 : -1;
	if (set)
		summary_add(tracked_summary(b), &b->tracked_top, part);
	else
		summary_del(tracked_summary(b), &b->tracked_top, part,
			    !b->tracked_count[part]);
}

static inline u16 *tracked_list(const struct buddy *b, u64 last)
{
	return &b->tracked_hash[hash_32(last, b->tracked_hash_shift)];
}

/* The id of the tracked block that ends with granule @last; 0 for none */
static inline u16 tracked_find(const struct buddy *b, u64 last)
{
	u16 id = *tracked_list(b, last);

	while (id && tracked_hi(&b->tracked[id]) - 1 != last)
		id = b->tracked[id].next;
	return id;
}

/*
 * The first tracked block that ends in the word of @at, at @at or after; 0 for none
 */
static inline u16 tracked_first(const struct buddy *b, u64 at)
{
	u64 word = *tracked_word(b, at) & mask_from(at);
	u16 id = 0;

	for (; word && !id; word &= word - 1)
		id = tracked_find(b, (at & ~(u64)WORD_MASK) + __ffs64(word));
	return id;
}

/* The first tracked block that overlaps [@lo, @hi); 0 for none */
static u16 tracked_in(const struct buddy *b, u64 lo, u64 hi)
{
	u64 last = hi + b->tracked_longest - 2, at, part;
	u16 id = 0;

	if (!b->nr_tracked)
		return 0;
	for (at = lo; at <= last && !id; at = (at | WORD_MASK) + 1) {
		part = summary_next(tracked_summary(b), &b->tracked_top,
				    at >> TRACKED_PART_SHIFT,
				    min(last, b->nr - 1) >> TRACKED_PART_SHIFT);
		if (part == NOWHERE)
			return 0;
		at = max(at, part << TRACKED_PART_SHIFT);
		id = tracked_first(b, at);
	}
	return b->tracked[id].lo < hi ? id : 0;
}

/* Kept blocks */

/* Ids that are checked in the search for a block to evict */
#define TRACKED_PROBES 8

static inline bool tracked_is_outstanding(const struct tracked_block *k)
{
	return k->above == TRACKED_OUTSTANDING;
}

/* The next outstanding or cached block in turn; 0 if none is near */
static inline u16 tracked_next_evict(struct buddy *b, bool outstanding)
{
	const struct tracked_block *k;
	unsigned int probe;

	for (probe = 0; probe < TRACKED_PROBES; probe++) {
		b->hand = b->hand < b->nr_ids ? b->hand + 1 : 1;
		k = &b->tracked[b->hand];
		if (k->n && tracked_is_outstanding(k) == outstanding)
			return b->hand;
	}
	return 0;
}

/* Forget a block that is not cached. */
static noinline void tracked_forget(struct buddy *b, u16 id)
{
	struct tracked_block *k = &b->tracked[id];
	u64 last = tracked_hi(k) - 1;
	u16 *link = tracked_list(b, last);

	while (*link != id)
		link = &b->tracked[*link].next;
	*link = k->next;
	tracked_set_bit(b, last, false);
	k->n = 0;
	k->below = b->stack[0];
	b->stack[0] = id;
	b->nr_tracked--;
}

/* An unused id, from the stack of unused ids if there is one; 0 for none */
static inline u16 tracked_new_id(struct buddy *b)
{
	u16 id;

	if (b->nr_tracked == tracked_room(b->room)) {
		id = tracked_next_evict(b, true);
		if (!id)
			return 0;
		tracked_forget(b, id);
	}
	id = b->stack[0];
	if (!id)
		return ++b->nr_ids;
	b->stack[0] = b->tracked[id].below;
	return id;
}

/* Keep a block and return its id; 0 if there is no room for it */
static inline u16 tracked_add(struct buddy *b, u64 lo, u64 n)
{
	u64 last = lo + n - 1;
	u16 id, *list = tracked_list(b, last);

	if (*tracked_word(b, last) >> (last & WORD_MASK) & 1)
		return 0;
	id = tracked_new_id(b);
	if (!id)
		return 0;
	tracked_set_bit(b, last, true);
	b->tracked[id] =
		(struct tracked_block){ .lo = lo, .n = n, .next = *list };
	*list = id;
	b->tracked_longest = b->nr_tracked ? max_t(u64, b->tracked_longest, n) :
					     n;
	b->nr_tracked++;
	return id;
}

/*
 * Check that no granule of [@lo, @hi), which is used in the map, is cached. Outstanding
 * blocks that overlap it are forgotten, because they will not be freed as a whole.
 */
static inline bool tracked_release(struct buddy *b, u64 lo, u64 hi)
{
	u16 id;

	while (lo < hi && (id = tracked_in(b, lo, hi))) {
		if (!tracked_is_outstanding(&b->tracked[id]))
			return false;
		lo = tracked_hi(&b->tracked[id]);
		tracked_forget(b, id);
	}
	return true;
}

/* Cached blocks */

/* Is any granule of [@lo, @hi) cached? */
static bool cached_overlaps(const struct buddy *b, u64 lo, u64 hi)
{
	u16 id;

	if (!b->nr_cached_blocks)
		return false;
	for (; lo < hi && (id = tracked_in(b, lo, hi));
	     lo = tracked_hi(&b->tracked[id]))
		if (!tracked_is_outstanding(&b->tracked[id]))
			return true;
	return false;
}

/*
 * Put a tracked block on the stack of its size. The caller has checked that there is
 * room.
 */
static inline void cached_push(struct buddy *b, u16 id, u64 n)
{
	struct tracked_block *k = &b->tracked[id];
	u16 below = b->stack[n];

	b->stack[n] = id;
	b->tracked[below].above = id;
	k->below = below;
	k->above = 0;
	b->nr_cached_blocks++;
}

/*
 * Take a cached block of @n granules off its stack. If it was the topmost block, the
 * block below is left as it is.
 */
static inline u64 cached_pop(struct buddy *b, u16 id, u64 n)
{
	struct tracked_block *k = &b->tracked[id];

	if (b->stack[n] == id) {
		b->stack[n] = k->below;
	} else {
		b->tracked[k->above].below = k->below;
		b->tracked[k->below].above = k->above;
	}
	k->above = TRACKED_OUTSTANDING;
	b->nr_cached_blocks--;
	return k->lo;
}

/* Blocks of a size that are checked for an alignment */
#define CACHED_PROBES 8

/*
 * Allocate the latest cached block of @n granules with this alignment that @owner may
 * use; NOWHERE if there is none
 */
static inline u64 cached_alloc(struct buddy *b, u64 n, u64 align, u64 owner)
{
	bool bound = owner_is_bound(b, owner);
	unsigned int probe = 0;
	u16 id;

	for (id = b->stack[n]; id && probe < CACHED_PROBES; probe++) {
		if (!(b->tracked[id].lo & (align - 1)) &&
		    (!bound || owner_permits(b, owner, b->tracked[id].lo, n)))
			return cached_pop(b, id, n);
		id = b->tracked[id].below;
	}
	return NOWHERE;
}

/* Caching and merging */

static noinline void cached_merge_one(struct buddy *b, u16 id)
{
	u64 n = b->tracked[id].n, lo = cached_pop(b, id, n);

	tracked_forget(b, id);
	merge_block_at(b, lo, n);
}

static void cached_merge_all(struct buddy *b)
{
	u16 id;

	for (id = 1; b->nr_cached_blocks; id++)
		if (b->tracked[id].n &&
		    !tracked_is_outstanding(&b->tracked[id]))
			cached_merge_one(b, id);
	if (b->nr_tracked)
		return;
	b->nr_ids = 0;
	b->stack[0] = 0;
}

/* Free granules that allow caching: 2 GiB */
#define CACHED_FREE BIT_ULL(19)

/*
 * Least number of free granules at which blocks are cached. Unmerged blocks cost room,
 * and more of it in a smaller range, so the limit is 2 GiB, no less than half of the
 * range and no more than three quarters.
 */
static inline u64 cached_free_min(u64 nr)
{
	return clamp_t(u64, CACHED_FREE, nr >> 1, nr - (nr >> 2));
}

/*
 * Is caching off? It is when too few granules are free, or when as many blocks as the
 * cache holds were freed into a full cache without a request between them.
 */
static inline bool cached_is_off(const struct buddy *b)
{
	return b->nr_free < b->short_of || b->frees_since_alloc == b->room;
}

/*
 * Merge one cached block while caching is off. Called before free runs change.
 */
static void cached_merge_some(struct buddy *b)
{
	u16 id = b->nr_cached_blocks && cached_is_off(b) ?
			 tracked_next_evict(b, false) :
			 0;

	if (id)
		cached_merge_one(b, id);
}

/*
 * Merge one block of the full cache to make room, unless it has the same size.
 */
static noinline bool cached_make_room(struct buddy *b, u64 n)
{
	u16 id = tracked_next_evict(b, false);

	b->frees_since_alloc++;
	if (!id || b->tracked[id].n == n)
		return false;
	cached_merge_one(b, id);
	return true;
}

/* Can a block of @n granules be cached? */
static inline bool cached_has_room(struct buddy *b, u64 n)
{
	if (n > b->cached_max || cached_is_off(b))
		return false;
	return b->nr_cached_blocks != b->room || cached_make_room(b, n);
}

/* Cache a block that was not tracked, if there is room. */
static bool cached_add(struct buddy *b, u64 lo, u64 n)
{
	u16 id = cached_has_room(b, n) ? tracked_add(b, lo, n) : 0;

	if (id)
		cached_push(b, id, n);
	return id;
}
