// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The map: which granules are used.
 *
 * A buddy system of radix 64: a node has 64 children. A node that is wholly free or
 * wholly used speaks for all of them, and what they say themselves is stale; taking a
 * part of it splits it, which makes its children true, and freeing the last part
 * merges them again. The leaves are bits, one a granule, 64 to a word; above them a
 * node has two bits: some of it is used, all of it is. So a large range costs a few
 * words, and creation writes one word a level. Until it is split, the word of a free
 * leaf is nobody's: classes.c keeps links in some.
 */

/* Granules that a bit of @level stands for, as a shift */
static inline unsigned int map_shift(unsigned int level)
{
	return WORD_SHIFT * level;
}

static inline void map_push_down(struct buddy *b, unsigned int level, u64 i)
{
	struct map_state *above = &b->state[level][i >> WORD_SHIFT];
	u64 bit = 1ull << (i & WORD_MASK), fill;

	if (above->some & bit && !(above->full & bit))
		return;
	fill = above->full & bit ? ~0ull : 0;
	if (level == 1) {
		b->used[i] = fill;
		return;
	}
	b->state[level - 1][i].some = fill;
	b->state[level - 1][i].full = fill;
}

/* Says in the level above what word @i of the level below @level holds. */
static inline void map_sum_up(struct buddy *b, unsigned int level, u64 i)
{
	struct map_state *above = &b->state[level][i >> WORD_SHIFT];
	u64 bit = 1ull << (i & WORD_MASK), some, full;

	if (level == 1) {
		some = b->used[i];
		full = some;
	} else {
		some = b->state[level - 1][i].some;
		full = b->state[level - 1][i].full;
	}
	above->some = some ? above->some | bit : above->some & ~bit;
	above->full = ~full ? above->full & ~bit : above->full | bit;
}

/* Bits @first to @last of word @i of @level, both of them within that word */
static inline void map_fill(struct buddy *b, unsigned int level, u64 i,
			    unsigned int first, unsigned int last, bool set)
{
	u64 mask = bits_mask(first, last - first + 1);
	struct map_state *s;

	if (!level) {
		b->used[i] = with_bits(b->used[i], mask, set);
		return;
	}
	s = &b->state[level][i];
	s->some = with_bits(s->some, mask, set);
	s->full = with_bits(s->full, mask, set);
}

/* Bits @first to @last of @level, without the words that lie in between */
static inline void map_fill_ends(struct buddy *b, unsigned int level, u64 first,
				 u64 last, bool set)
{
	u64 left = first >> WORD_SHIFT, right = last >> WORD_SHIFT;

	if (left == right) {
		map_fill(b, level, left, first & WORD_MASK, last & WORD_MASK,
			 set);
		return;
	}
	map_fill(b, level, left, first & WORD_MASK, WORD_MASK, set);
	map_fill(b, level, right, 0, last & WORD_MASK, set);
}

/* The same, with these words if nothing above speaks for them */
static inline void map_fill_between(struct buddy *b, unsigned int level,
				    u64 first, u64 last, bool set)
{
	u64 i;

	map_fill_ends(b, level, first, last, set);
	if (level < b->map_top)
		return;
	for (i = (first >> WORD_SHIFT) + 1; i < last >> WORD_SHIFT; i++)
		map_fill(b, level, i, 0, WORD_MASK, set);
}

/* Is word @i of the level below @level described as it is? */
static inline bool map_is_mixed(const struct buddy *b, unsigned int level,
				u64 i)
{
	const struct map_state *s = &b->state[level][i >> WORD_SHIFT];

	return (s->some & ~s->full) >> (i & WORD_MASK) & 1;
}

/* Was it mixed, and is it still? @level is above the first. */
static inline bool map_stays_mixed(const struct buddy *b, unsigned int level,
				   u64 i)
{
	const struct map_state *s = &b->state[level - 1][i];

	return s->some && ~s->full && map_is_mixed(b, level, i);
}

/*
 * The lowest level, from @least up, whose word for @pos is true: what lies below
 * is alike, or it is @least.
 */
static inline unsigned int map_depth_from(const struct buddy *b,
					  unsigned int least, u64 pos)
{
	unsigned int level = b->map_top;

	while (level > least &&
	       map_is_mixed(b, level, pos >> map_shift(level))) {
		level--;
	}
	return level;
}

static inline unsigned int map_depth(const struct buddy *b, u64 pos)
{
	return map_depth_from(b, 0, pos);
}

static inline bool map_one_word(u64 lo, u64 hi)
{
	return lo >> WORD_SHIFT == (hi - 1) >> WORD_SHIFT;
}

/* Does one word of level 1 speak of it? */
static inline bool map_near(u64 lo, u64 hi)
{
	return lo >> map_shift(2) == (hi - 1) >> map_shift(2);
}

/*
 * From where [@lo, @hi) is looked at and changed: level 0 where it is part of a
 * mixed word; else the lowest level from 1 up whose word for @lo is true. Which of
 * several words are mixed cannot be predicted, so there is no branch for that.
 */
static inline unsigned int map_level(const struct buddy *b, u64 lo, u64 hi)
{
	return map_depth_from(b, !map_one_word(lo, hi), lo);
}

/* From @level up, which is above the first, after word @i below has changed */
static inline void map_sum_up_from(struct buddy *b, unsigned int level, u64 i)
{
	for (; level <= b->map_top && !map_stays_mixed(b, level, i); level++) {
		map_sum_up(b, level, i);
		i >>= WORD_SHIFT;
	}
}

/*
 * A word of granules, of which @mask changes, and what is said above it: what
 * it was cannot be predicted, so there is no branch for it.
 */
static inline void map_change_word(struct buddy *b, u64 i, u64 mask, bool used,
				   struct map_state *above)
{
	u64 bit = 1ull << (i & WORD_MASK), word = b->used[i];

	word = above->some & bit ? word : 0;
	word = above->full & bit ? ~0ull : word;
	word = with_bits(word, mask, used);
	b->used[i] = word;
	above->some = (above->some & ~bit) | (word ? bit : 0);
	above->full = (above->full & ~bit) | (~word ? 0 : bit);
}

/* map_set() in a word that is mixed and stays it; whether it does */
static inline bool map_set_mixed(struct buddy *b, u64 lo, u64 hi, bool used)
{
	u64 mask = bits_mask(lo & WORD_MASK, hi - lo);
	u64 word = with_bits(b->used[lo >> WORD_SHIFT], mask, used);

	if (!word || !~word)
		return false;
	b->used[lo >> WORD_SHIFT] = word;
	return true;
}

/* map_set() for granules of which one word of level 1 speaks */
static __always_inline void map_set_near(struct buddy *b, unsigned int level,
					 u64 lo, u64 last, bool used)
{
	u64 left = lo >> WORD_SHIFT, right = last >> WORD_SHIFT, mask;
	struct map_state *s = &b->state[1][left >> WORD_SHIFT];
	bool mixed = level < 2;

	for (; level > 1; level--)
		map_push_down(b, level, lo >> map_shift(level));
	if (left == right) {
		mask = mask_from(lo) & mask_up_to(last);
		map_change_word(b, left, mask, used, s);
	} else {
		mask = words_between(left, right);
		if (lo & WORD_MASK)
			map_change_word(b, left, mask_from(lo), used, s);
		else
			mask |= 1ull << (left & WORD_MASK);
		if (~last & WORD_MASK)
			map_change_word(b, right, mask_up_to(last), used, s);
		else
			mask |= 1ull << (right & WORD_MASK);
		s->some = with_bits(s->some, mask, used);
		s->full = with_bits(s->full, mask, used);
	}
	if (!mixed || !s->some || !~s->full)
		map_sum_up_from(b, 2, left >> WORD_SHIFT);
}

/* map_set() for any other granules */
static noinline void map_set_far(struct buddy *b, u64 lo, u64 last, bool used)
{
	unsigned int level = max(map_depth(b, lo), map_depth(b, last));
	u64 left, right;

	for (; level; level--) {
		left = lo >> map_shift(level);
		right = last >> map_shift(level);
		map_push_down(b, level, left);
		if (left != right)
			map_push_down(b, level, right);
	}
	map_fill_ends(b, 0, lo, last, used);
	for (level = 1; level <= b->map_top; level++) {
		left = lo >> map_shift(level);
		right = last >> map_shift(level);
		if (left == right) {
			map_sum_up_from(b, level, left);
			return;
		}
		if (right - left > 1)
			map_fill_between(b, level, left + 1, right - 1, used);
		map_sum_up(b, level, left);
		map_sum_up(b, level, right);
	}
}

/* Do two words of level 1 speak of it, side by side? */
static inline bool map_side_by_side(u64 lo, u64 hi)
{
	return ((hi - 1) >> map_shift(2)) - (lo >> map_shift(2)) == 1;
}

/* map_set() for these */
static noinline void map_set_two(struct buddy *b, unsigned int level, u64 lo,
				 u64 hi, bool used)
{
	u64 middle = (hi - 1) >> map_shift(2) << map_shift(2);

	map_set_near(b, level, lo, middle - 1, used);
	level = map_depth_from(b, 1, middle);
	map_set_near(b, level, middle, hi - 1, used);
}

/*
 * [@lo, @hi), which is not empty, becomes used or free. @level is map_level() of
 * it, here and below.
 */
static __always_inline void map_set(struct buddy *b, unsigned int level, u64 lo,
				    u64 hi, bool used)
{
	if (!level && map_set_mixed(b, lo, hi, used))
		return;
	if (map_near(lo, hi))
		map_set_near(b, level, lo, hi - 1, used);
	else if (map_side_by_side(lo, hi))
		map_set_two(b, level, lo, hi, used);
	else
		map_set_far(b, lo, hi - 1, used);
}

/* Of word @i of @level the bits below which something is used, or free */
static inline u64 map_any(const struct buddy *b, unsigned int level, u64 i,
			  bool used)
{
	if (!level)
		return used ? b->used[i] : ~b->used[i];
	return used ? b->state[level][i].some : ~b->state[level][i].full;
}

/* Is all below bit @i of @level used, or free? */
static inline bool map_all(const struct buddy *b, unsigned int level, u64 i,
			   bool used)
{
	const struct map_state *s;

	if (!level)
		return true;
	s = &b->state[level][i >> WORD_SHIFT];
	return (used ? s->full : ~s->some) >> (i & WORD_MASK) & 1;
}

/* The highest level in which a word borders on @pos, from @level up */
static inline unsigned int map_climb(const struct buddy *b, u64 pos,
				     unsigned int level)
{
	while (level < b->map_top &&
	       !(pos & ((1ull << map_shift(level + 1)) - 1)))
		level++;
	return level;
}

/*
 * The first granule at or after @pos that is used, or free; b->nr. @level is
 * not less than map_depth() of @pos.
 */
static __always_inline u64 map_next(const struct buddy *b, unsigned int level,
				    u64 pos, bool used)
{
	u64 i, word;

	while (pos < b->nr) {
		i = pos >> map_shift(level);
		word = map_any(b, level, i >> WORD_SHIFT, used);
		word &= ~0ull << (i & WORD_MASK);
		if (!word) {
			pos = ((i >> WORD_SHIFT) + 1) << map_shift(level + 1);
			level = map_climb(b, pos, level);
			continue;
		}
		if (!(word >> (i & WORD_MASK) & 1)) {
			i = (i & ~(u64)WORD_MASK) + __ffs64(word);
			pos = i << map_shift(level);
		}
		if (map_all(b, level, i, used))
			return min(pos, b->nr);
		level--;
	}
	return b->nr;
}

/* What word @i has that is used, if it is not all free; @s speaks of it. */
static inline u64 map_word_used(const struct buddy *b,
				const struct map_state *s, u64 i)
{
	return b->used[i] | -(s->full >> (i & WORD_MASK) & 1);
}

/*
 * map_is_used() for granules up to @last of which one word of level 1 speaks. If
 * they are part of one word, it is not mixed.
 */
static inline bool map_is_used_near(const struct buddy *b, u64 lo, u64 last)
{
	u64 left = lo >> WORD_SHIFT, right = last >> WORD_SHIFT, unused;
	const struct map_state *s = &b->state[1][left >> WORD_SHIFT];

	unused = ~s->some >> (left & WORD_MASK) & 1;
	unused |= ~s->some >> (right & WORD_MASK) & 1;
	unused |= ~map_word_used(b, s, left) & mask_from(lo);
	unused |= ~map_word_used(b, s, right) & mask_up_to(last);
	unused |= ~s->full & words_between(left, right);
	return !unused;
}

/* Are all of [@lo, @hi) used? */
static inline bool map_is_used(const struct buddy *b, unsigned int level,
			       u64 lo, u64 hi)
{
	if (!level) {
		return !(~b->used[lo >> WORD_SHIFT] &
			 bits_mask(lo & WORD_MASK, hi - lo));
	}
	if (level == 1 && map_near(lo, hi))
		return map_is_used_near(b, lo, hi - 1);
	return map_next(b, level, lo, false) >= hi;
}

/*
 * One more than the last granule below @pos that is used, or free; 0. @level is
 * not less than map_depth() of the granule before @pos.
 */
static __always_inline u64 map_prev(const struct buddy *b, unsigned int level,
				    u64 pos, bool used)
{
	u64 i, word;

	while (pos) {
		i = (pos - 1) >> map_shift(level);
		word = map_any(b, level, i >> WORD_SHIFT, used);
		word &= ~0ull >> (WORD_MASK - (i & WORD_MASK));
		if (!word) {
			pos = (i >> WORD_SHIFT) << map_shift(level + 1);
			level = map_climb(b, pos, level);
			continue;
		}
		if (!(word >> (i & WORD_MASK) & 1)) {
			i = (i & ~(u64)WORD_MASK) + fls64(word) - 1;
			pos = (i + 1) << map_shift(level);
		}
		if (map_all(b, level, i, used))
			return pos;
		level--;
	}
	return 0;
}

/* Where the free run below @lo, which is used, begins: @lo if there is none. */
static inline u64 map_run_start(const struct buddy *b, unsigned int level,
				u64 lo)
{
	u64 i = lo >> WORD_SHIFT, word;

	if (level)
		word = map_word_used(b, &b->state[1][i >> WORD_SHIFT], i);
	else
		word = b->used[i];
	word &= (1ull << (lo & WORD_MASK)) - 1;
	if (level < 2 && word)
		return (lo & ~(u64)WORD_MASK) + fls64(word);
	return map_prev(b, map_climb(b, lo, level), lo, true);
}

static u64 map_next_free(const struct buddy *b, u64 pos)
{
	return map_next(b, b->map_top, pos, false);
}

static u64 map_next_used(const struct buddy *b, u64 pos)
{
	return map_next(b, b->map_top, pos, true);
}

/* Where the free run that ends at @pos begins; @pos when none does */
static u64 map_free_before(const struct buddy *b, u64 pos)
{
	return map_prev(b, b->map_top, pos, true);
}

/* All is free; what words have past the end reads as used. */
static void map_init(struct buddy *b)
{
	u64 count = b->nr, last;
	unsigned int level;
	bool mixed = false;

	b->used[(count - 1) >> WORD_SHIFT] = 0;
	for (level = 0; level <= b->map_top; level++) {
		last = (count - 1) >> WORD_SHIFT;
		if (count & WORD_MASK)
			map_fill(b, level, last, count & WORD_MASK, WORD_MASK,
				 true);
		if (mixed)
			b->state[level][last].some |=
				1ull << ((count - 1) & WORD_MASK);
		mixed |= count & WORD_MASK;
		count = last + 1;
	}
}
