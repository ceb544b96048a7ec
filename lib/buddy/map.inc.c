// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A map: one bit for each granule of a range.
 *
 * The allocator has a map of used granules, a map of dirty granules, and a map of
 * folios.
 *
 * A map is a buddy system of radix 64. A node has 64 children. A node that is wholly 0
 * or wholly 1 describes all of its children, and the words of the children are stale. A
 * change of a part of such a node splits it: its children become valid. A change that
 * makes all children equal merges them again. The leaves are bits, one per granule, 64
 * to a word. Above them a node has two bits: some bits are set, all bits are set. A
 * node with different bits below is mixed. So a large range costs a few words, and
 * creation writes one word per level. The leaf word of a node that is not split is
 * unused; size_classes.inc.c stores links in some.
 */

/* Granules that a bit of @level describes, as a shift */
static inline unsigned int map_shift(unsigned int level)
{
	return WORD_SHIFT * level;
}

/* Is word @i of the level below @level mixed, and so valid? */
static inline bool map_is_mixed(const struct map *m, unsigned int level, u64 i)
{
	const struct map_state *s = &m->state[level][i >> WORD_SHIFT];

	return (s->some & ~s->full) >> (i & WORD_MASK) & 1;
}

/*
 * The lowest level from @least up whose word for @pos is valid: all words below are
 * alike, or the level is @least.
 */
static inline unsigned int map_depth(const struct map *m, unsigned int least,
				     u64 pos)
{
	unsigned int level = m->top;

	while (level > least && map_is_mixed(m, level, pos >> map_shift(level)))
		level--;
	return level;
}

static inline bool map_one_word(u64 lo, u64 hi)
{
	return lo >> WORD_SHIFT == (hi - 1) >> WORD_SHIFT;
}

/* Does one word of level 1 describe [@lo, @hi)? */
static inline bool map_near(u64 lo, u64 hi)
{
	return lo >> map_shift(2) == (hi - 1) >> map_shift(2);
}

/*
 * The level at which a read or a change of [@lo, @hi) begins: level 0 if it is part of
 * a mixed word; else the lowest level from 1 up whose word for @lo is valid. The mixed
 * words are unpredictable, so there is no branch.
 */
static inline unsigned int map_level(const struct map *m, u64 lo, u64 hi)
{
	return map_depth(m, !map_one_word(lo, hi), lo);
}

/* Make word @i of the level below @level valid; @level is above the first. */
static inline void map_push_down(struct map *m, unsigned int level, u64 i)
{
	const struct map_state *above = &m->state[level][i >> WORD_SHIFT];
	u64 fill = -(above->full >> (i & WORD_MASK) & 1);

	if (!map_is_mixed(m, level, i))
		m->state[level - 1][i] = (struct map_state){ fill, fill };
}

/*
 * Update the summary of word @i in each level from @level up, which is above the first.
 * Stop at a word that was mixed and still is.
 */
static inline void map_sum_up(struct map *m, unsigned int level, u64 i)
{
	const struct map_state *s;
	struct map_state *above;
	u64 bit;

	for (; level <= m->top; level++, i >>= WORD_SHIFT) {
		s = &m->state[level - 1][i];
		if (s->some && ~s->full && map_is_mixed(m, level, i))
			return;
		above = &m->state[level][i >> WORD_SHIFT];
		bit = 1ull << (i & WORD_MASK);
		above->some = with_bits(above->some, bit, s->some);
		above->full = with_bits(above->full, bit, !~s->full);
	}
}

static inline void map_fill(struct map *m, unsigned int level, u64 i, u64 mask,
			    bool set)
{
	struct map_state *s = &m->state[level][i];

	s->some = with_bits(s->some, mask, set);
	s->full = with_bits(s->full, mask, set);
}

/*
 * The valid content of word @i of granules, which @s describes. Whether the word is
 * mixed is unpredictable, so there is no branch.
 */
static inline u64 map_true_word(const struct map *m, const struct map_state *s,
				u64 i)
{
	u64 bit = 1ull << (i & WORD_MASK), word = m->words[i];

	word = s->some & bit ? word : 0;
	return s->full & bit ? ~0ull : word;
}

/* Change the bits of @mask in a word of granules, and its summary. */
static inline void map_change_word(struct map *m, u64 i, u64 mask, bool set,
				   struct map_state *above)
{
	u64 word = with_bits(map_true_word(m, above, i), mask, set);
	u64 bit = 1ull << (i & WORD_MASK);

	m->words[i] = word;
	above->some = (above->some & ~bit) | (word ? bit : 0);
	above->full = (above->full & ~bit) | (~word ? 0 : bit);
}

/*
 * map_set() in a mixed word; false if the word would not stay mixed, and then nothing
 * has changed
 */
static inline bool map_set_mixed(struct map *m, u64 lo, u64 hi, bool set)
{
	u64 mask = bits_mask(lo & WORD_MASK, hi - lo);
	u64 word = with_bits(m->words[lo >> WORD_SHIFT], mask, set);

	if (!word || !~word)
		return false;
	m->words[lo >> WORD_SHIFT] = word;
	return true;
}

/* map_set() for granules that one word of level 1 describes */
static __always_inline void map_set_near(struct map *m, unsigned int level,
					 u64 lo, u64 last, bool set)
{
	u64 left = lo >> WORD_SHIFT, right = last >> WORD_SHIFT, mask;
	struct map_state *s = &m->state[1][left >> WORD_SHIFT];
	bool mixed = level < 2;

	for (; level > 1; level--)
		map_push_down(m, level, lo >> map_shift(level));
	if (left == right) {
		mask = mask_from(lo) & mask_up_to(last);
		map_change_word(m, left, mask, set, s);
	} else {
		mask = words_between(left, right);
		if (lo & WORD_MASK)
			map_change_word(m, left, mask_from(lo), set, s);
		else
			mask |= 1ull << (left & WORD_MASK);
		if (~last & WORD_MASK)
			map_change_word(m, right, mask_up_to(last), set, s);
		else
			mask |= 1ull << (right & WORD_MASK);
		map_fill(m, 1, left >> WORD_SHIFT, mask, set);
	}
	if (!mixed || !s->some || !~s->full)
		map_sum_up(m, 2, left >> WORD_SHIFT);
}

/*
 * map_set() for any other granules: the words of level 1 at both ends first, then in
 * each level the words between them that no higher word describes.
 */
static noinline void map_set_far(struct map *m, unsigned int level, u64 lo,
				 u64 last, bool set)
{
	u64 left = lo >> map_shift(2), right = last >> map_shift(2), i;
	u64 first = right << map_shift(2);

	map_set_near(m, level, lo, ((left + 1) << map_shift(2)) - 1, set);
	map_set_near(m, map_depth(m, 1, first), first, last, set);
	for (level = 1; level < m->top && right - left > 1; level++) {
		u64 after = ~1ull << (left & WORD_MASK);
		u64 before = (1ull << (right & WORD_MASK)) - 1;

		left >>= WORD_SHIFT;
		right >>= WORD_SHIFT;
		if (left == right) {
			map_fill(m, level + 1, left, after & before, set);
		} else {
			map_fill(m, level + 1, left, after, set);
			map_fill(m, level + 1, right, before, set);
		}
		map_sum_up(m, level + 2, left);
		map_sum_up(m, level + 2, right);
	}
	for (i = left + 1; i < right; i++)
		map_fill(m, level, i, ~0ull, set);
}

/* Set or clear [@lo, @hi), which is not empty. @level is map_level() of it. */
static __always_inline void map_set(struct map *m, unsigned int level, u64 lo,
				    u64 hi, bool set)
{
	if (!level && map_set_mixed(m, lo, hi, set))
		return;
	if (map_near(lo, hi))
		map_set_near(m, level, lo, hi - 1, set);
	else
		map_set_far(m, level, lo, hi - 1, set);
}

/* Bits of word @i of @level below which some granule is 1, or 0 */
static inline u64 map_any(const struct map *m, unsigned int level, u64 i,
			  bool set)
{
	if (!level)
		return set ? m->words[i] : ~m->words[i];
	return set ? m->state[level][i].some : ~m->state[level][i].full;
}

/* Are all granules below bit @i of @level 1, or 0? */
static inline bool map_all(const struct map *m, unsigned int level, u64 i,
			   bool set)
{
	const struct map_state *s;

	if (!level)
		return true;
	s = &m->state[level][i >> WORD_SHIFT];
	return (set ? s->full : ~s->some) >> (i & WORD_MASK) & 1;
}

/* The highest level, from @level up, in which a word ends at @pos */
static inline unsigned int map_climb(const struct map *m, u64 pos,
				     unsigned int level)
{
	while (level < m->top && !(pos & ((1ull << map_shift(level + 1)) - 1)))
		level++;
	return level;
}

/*
 * The first granule at or after @pos that is 1, or 0; m->nr if there is none. If @high,
 * one more than the last such granule below @pos; 0 if there is none. @level is not
 * less than map_depth() of the first granule that is read.
 */
static __always_inline u64 map_find(const struct map *m, unsigned int level,
				    u64 pos, bool set, bool high)
{
	u64 i, word;

	while (high ? pos > 0 : pos < m->nr) {
		i = (pos - high) >> map_shift(level);
		word = map_any(m, level, i >> WORD_SHIFT, set);
		word &= high ? mask_up_to(i) : mask_from(i);
		if (!word) {
			i = high ? i & ~(u64)WORD_MASK : (i | WORD_MASK) + 1;
			pos = i << map_shift(level);
			level = map_climb(m, pos, level);
			continue;
		}
		if (!(word >> (i & WORD_MASK) & 1)) {
			i &= ~(u64)WORD_MASK;
			i += high ? fls64(word) - 1 : __ffs64(word);
			pos = (i + high) << map_shift(level);
		}
		if (map_all(m, level, i, set))
			break;
		level--;
	}
	return min(pos, m->nr);
}

static u64 map_next(const struct map *m, u64 pos, bool set)
{
	return map_find(m, m->top, pos, set, false);
}

/*
 * map_is_set() for the granules up to @last, which one word of level 1 describes. If
 * they are part of one word, that word is not mixed.
 */
static inline bool map_is_set_near(const struct map *m, u64 lo, u64 last)
{
	u64 left = lo >> WORD_SHIFT, right = last >> WORD_SHIFT, clear;
	const struct map_state *s = &m->state[1][left >> WORD_SHIFT];

	clear = ~map_true_word(m, s, left) & mask_from(lo);
	clear |= ~map_true_word(m, s, right) & mask_up_to(last);
	clear |= ~s->full & words_between(left, right);
	return !clear;
}

/* Are all granules of [@lo, @hi) 1? @level is map_level() of it. */
static inline bool map_is_set(const struct map *m, unsigned int level, u64 lo,
			      u64 hi)
{
	if (!level) {
		return !(~m->words[lo >> WORD_SHIFT] &
			 bits_mask(lo & WORD_MASK, hi - lo));
	}
	if (map_one_word(lo, hi))
		return map_all(m, level, lo >> map_shift(level), true);
	if (level == 1 && map_near(lo, hi))
		return map_is_set_near(m, lo, hi - 1);
	return map_find(m, level, lo, false, false) >= hi;
}

/*
 * First granule of the run of 0 that ends before @lo, which is 1; @lo if there is no
 * such run. @level is map_level() of a part that begins at @lo.
 */
static inline u64 map_run_start(const struct map *m, unsigned int level, u64 lo)
{
	return map_find(m, map_climb(m, lo, level), lo, true, true);
}

/* Number of 1s up to @last; one word of level 1 describes all of them. */
static inline u64 map_count_near(const struct map *m, u64 lo, u64 last)
{
	u64 left = lo >> WORD_SHIFT, right = last >> WORD_SHIFT, n = 0, i, word;
	const struct map_state *s = &m->state[1][left >> WORD_SHIFT];

	for (i = left; i <= right; i++) {
		word = map_true_word(m, s, i);
		word &= i == left ? mask_from(lo) : ~0ull;
		word &= i == right ? mask_up_to(last) : ~0ull;
		n += hweight64(word);
	}
	return n;
}

/*
 * Number of 1s in [@lo, @hi): one step per word, or one per larger part that is all 0
 * or all 1
 */
static noinline u64 map_count_far(const struct map *m, u64 lo, u64 hi)
{
	unsigned int level, shift;
	u64 n = 0, stop;

	for (; lo < hi; lo = stop) {
		level = map_depth(m, 1, lo);
		shift = map_shift(max(level, 2u));
		stop = min(hi, ((lo >> shift) + 1) << shift);
		if (level == 1)
			n += map_count_near(m, lo, stop - 1);
		else if (map_all(m, level, lo >> shift, true))
			n += stop - lo;
	}
	return n;
}

/*
 * The bits of [@lo, @hi), which is part of one word and not empty, from bit 0 up.
 * @level is map_level() of it.
 */
static inline u64 map_bits(const struct map *m, unsigned int level, u64 lo,
			   u64 hi)
{
	u64 mask = bits_mask(0, hi - lo);

	if (level)
		return map_all(m, level, lo >> map_shift(level), true) ? mask :
									 0;
	return m->words[lo >> WORD_SHIFT] >> (lo & WORD_MASK) & mask;
}

/*
 * Number of 1s in [@lo, @hi), which is not empty; @level is map_level() of it.
 */
static inline u64 map_count_at(const struct map *m, unsigned int level, u64 lo,
			       u64 hi)
{
	if (!map_one_word(lo, hi))
		return map_count_far(m, lo, hi);
	return hweight64(map_bits(m, level, lo, hi));
}

static inline u64 map_count(const struct map *m, u64 lo, u64 hi)
{
	return map_count_at(m, map_level(m, lo, hi), lo, hi);
}

/*
 * The top level for @nr granules. It is at least 1, because the bits of a word are
 * stale if it is all 0 or all 1.
 */
static unsigned int map_top(u64 nr)
{
	unsigned int level = 1;

	for (nr = words_for(words_for(nr)); nr > MAP_TOP_WORDS;
	     nr = words_for(nr))
		level++;
	return level;
}

/* Number of summaries on all levels */
static u64 map_states(u64 nr)
{
	unsigned int level = map_top(nr);
	u64 sum = 0;

	for (nr = words_for(nr); level--; sum += nr)
		nr = words_for(nr);
	return sum;
}

/*
 * Make all granules 0; bits past the end read as 1. @states are zero, @words may hold
 * anything.
 */
static void map_init(struct map *m, u64 nr, struct map_state *states,
		     u64 *words)
{
	u64 count = nr, last = (count - 1) >> WORD_SHIFT;
	bool mixed = count & WORD_MASK;
	unsigned int level;

	m->nr = nr;
	m->top = map_top(nr);
	m->words = words;
	m->words[last] = mixed ? mask_from(count) : 0;
	for (level = 1; level <= m->top; level++) {
		m->state[level] = states;
		count = last + 1;
		last = (count - 1) >> WORD_SHIFT;
		states += last + 1;
		if (count & WORD_MASK)
			map_fill(m, level, last, mask_from(count), true);
		if (mixed)
			m->state[level][last].some |=
				1ull << ((count - 1) & WORD_MASK);
		mixed |= count & WORD_MASK;
	}
}
