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
 * They are found by their first granule, in a hash table. Overlaps are found by a
 * bitmap of first granules, in which granules far apart share a bit that at most one
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

#define KEPT_STARTS_SHIFT_MAX 16

static inline u64 parked_share(u64 nr)
{
	return nr < PARKED_RANGE_MIN ? 0 : nr >> PARKED_SHARE_SHIFT;
}

/* Blocks that have room on the stacks of a range of @nr granules */
static inline unsigned int parked_room(u64 nr)
{
	return min_t(u64, parked_share(nr), PARKED_BLOCKS);
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
static inline u64 kept_start_word(const struct buddy *b, u64 lo)
{
	u64 i = lo >> WORD_SHIFT;

	i += (i >> b->kept_start_shift) * 5;
	return i & ((1ull << b->kept_start_shift) - 1);
}

/* Does no kept block have the bit of @lo? */
static inline bool kept_start_is_free(const struct buddy *b, u64 lo)
{
	u64 starts = b->kept_starts[kept_start_word(b, lo)];

	return !(starts >> (lo & WORD_MASK) & 1);
}

static inline struct summary kept_summary(const struct buddy *b)
{
	return summary_at(b->kept_index, kept_parts(b->nr));
}

/* Whether it is the first or the last of its part cannot be predicted: no branch */
static inline void kept_start_set(struct buddy *b, u64 lo)
{
	u64 part = lo >> KEPT_PART_SHIFT;

	b->kept_starts[kept_start_word(b, lo)] |= 1ull << (lo & WORD_MASK);
	b->kept_count[part]++;
	summary_add(kept_summary(b), &b->kept_top, part);
}

static inline void kept_start_clear(struct buddy *b, u64 lo)
{
	u64 part = lo >> KEPT_PART_SHIFT;

	b->kept_starts[kept_start_word(b, lo)] &= ~(1ull << (lo & WORD_MASK));
	b->kept_count[part]--;
	summary_del(kept_summary(b), &b->kept_top, part, !b->kept_count[part]);
}

static inline u16 *kept_list(const struct buddy *b, u64 lo)
{
	return &b->kept_hash[hash_32(lo, b->kept_hash_shift)];
}

static inline u64 kept_hi(const struct kept_block *k)
{
	return (u64)k->lo + k->n;
}

/* The id of the kept block that begins at @lo; 0 */
static inline u16 kept_find(const struct buddy *b, u64 lo)
{
	u16 id = *kept_list(b, lo);

	while (id) {
		if (b->kept[id].lo == lo)
			break;
		id = b->kept[id].next;
	}
	return id;
}

/* Blocks that are kept */

/* Has it any that are not parked? */
static inline bool kept_any_lent(const struct buddy *b)
{
	return b->nr_kept != b->nr_parked;
}

/* Ids that are looked at for a block that has to go */
#define KEPT_PROBES 8

/* The next block, of all in turn, that is lent, or parked; 0 if none is near */
static inline u16 kept_next_out(struct buddy *b, bool lent)
{
	unsigned int probe;

	for (probe = 0; probe < KEPT_PROBES; probe++) {
		b->hand = b->hand < b->nr_ids ? b->hand + 1 : 1;
		if (b->kept[b->hand].n && b->kept[b->hand].lent == lent)
			return b->hand;
	}
	return 0;
}

/* The block is not parked. */
static noinline void kept_forget(struct buddy *b, u16 id)
{
	struct kept_block *k = &b->kept[id];
	u16 *link = kept_list(b, k->lo);

	while (*link != id)
		link = &b->kept[*link].next;
	*link = k->next;
	kept_start_clear(b, k->lo);
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
	struct kept_block *k;
	u16 id, *list;

	id = kept_start_is_free(b, lo) ? kept_new_id(b) : 0;
	if (!id)
		return 0;
	kept_start_set(b, lo);
	list = kept_list(b, lo);
	k = &b->kept[id];
	k->lo = lo;
	k->n = n;
	k->next = *list;
	*list = id;
	b->kept_longest = b->nr_kept ? max_t(u64, b->kept_longest, n) : n;
	b->nr_kept++;
	return id;
}

/* The last kept block that begins in [@least, @pos), of a part; 0 */
static inline u16 kept_last(const struct buddy *b, u64 least, u64 pos)
{
	u64 word;
	u16 id;

	while (pos-- > least) {
		word = b->kept_starts[kept_start_word(b, pos)] &
		       mask_up_to(pos);
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
static inline u16 kept_first(const struct buddy *b, u64 pos, u64 hi)
{
	u64 word;
	u16 id;

	for (; pos < hi; pos = (pos | WORD_MASK) + 1) {
		word = b->kept_starts[kept_start_word(b, pos)] & mask_from(pos);
		if (map_one_word(pos, hi))
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
static inline u16 kept_before(const struct buddy *b, u64 pos)
{
	u64 least = pos - min_t(u64, pos, b->kept_longest - 1), part;
	u16 id = 0;

	for (; pos > least && !id; pos = part << KEPT_PART_SHIFT) {
		part = summary_prev(kept_summary(b), &b->kept_top,
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
static inline u16 kept_within(const struct buddy *b, u64 pos, u64 hi)
{
	u64 part;
	u16 id = 0;

	for (; pos < hi && !id; pos = (part + 1) << KEPT_PART_SHIFT) {
		part = summary_next(kept_summary(b), &b->kept_top,
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
static inline bool kept_maybe(const struct buddy *b, u64 lo, u64 hi)
{
	struct summary p = kept_summary(b);
	const u64 *words = p.nr > 1 ? p.words : &b->kept_top;
	u64 last = (hi - 1) >> KEPT_PART_SHIFT;

	lo = (lo - min_t(u64, lo, b->kept_longest - 1)) >> KEPT_PART_SHIFT;
	if (lo >> WORD_SHIFT != last >> WORD_SHIFT)
		return true;
	return words[lo >> WORD_SHIFT] & mask_from(lo) & mask_up_to(last);
}

/* The lowest kept block that has a granule of [@lo, @hi); 0 */
static u16 kept_in(const struct buddy *b, u64 lo, u64 hi)
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
static inline bool kept_release(struct buddy *b, u64 lo, u64 hi)
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
static inline void parked_push(struct buddy *b, u16 id, u64 n)
{
	struct kept_block *k = &b->kept[id];
	u16 below = b->stack[n];

	b->stack[n] = id;
	b->kept[below].above = id;
	k->below = below;
	k->above = 0;
	k->lent = false;
	b->nr_parked++;
}

/* A block is lent from now on. */
static inline u64 parked_lend(struct buddy *b, u16 id)
{
	struct kept_block *k = &b->kept[id];

	if (k->above)
		b->kept[k->above].below = k->below;
	else
		b->stack[k->n] = k->below;
	b->kept[k->below].above = k->above;
	k->lent = true;
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
			return parked_lend(b, id);
		id = b->kept[id].below;
	}
	return NOWHERE;
}

/* The parked block after @k, or the first one after NULL; NULL */
static inline struct kept_block *parked_each(const struct buddy *b,
					     const struct kept_block *k)
{
	unsigned int id = k ? k - b->kept : 0;

	while (b->nr_parked && ++id <= b->nr_ids) {
		if (b->kept[id].n && !b->kept[id].lent)
			return &b->kept[id];
	}
	return NULL;
}

/* Is anything of [@lo, @hi) parked? */
static bool parked_overlap(const struct buddy *b, u64 lo, u64 hi)
{
	u16 id;

	if (!b->nr_parked)
		return false;
	for (; lo < hi && (id = kept_in(b, lo, hi)); lo = kept_hi(&b->kept[id]))
		if (!b->kept[id].lent)
			return true;
	return false;
}
