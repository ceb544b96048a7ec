// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Dirty marks: a bit a granule, and above each eight words, and each eight of these,
 * how many are dirty. They know nothing of what is free, and what finds free runs knows
 * nothing of marks.
 *
 * A node that is wholly dirty or wholly clean speaks for its children, which are then
 * stale; mark_push_down() makes them true before one of them changes.
 */

/* Granules of a node of @level, as a shift; words are level 0 */
static inline unsigned int mark_shift(unsigned int level)
{
	return WORD_SHIFT + EIGHT_SHIFT * level;
}

static inline u64 mark_span(unsigned int level)
{
	return 1ull << mark_shift(level);
}

/* Nodes of a level, whole families of eight always */
static inline u64 mark_family_count(u64 nr, unsigned int level)
{
	return (((nr - 1) >> mark_shift(level)) | (EIGHT - 1)) + 1;
}

/* The highest level that starts at @pos */
static inline unsigned int mark_climb(const struct buddy *b, u64 pos,
				      unsigned int level)
{
	while (level < b->top && !(pos & (mark_span(level + 1) - 1)))
		level++;
	return level;
}

/* Dirty granules of a node */
static inline u64 mark_count(const struct buddy *b, unsigned int level, u64 i)
{
	if (level == b->top)
		return b->nr_dirty;
	return level ? b->marks[level][i] : hweight64(b->dirty[i]);
}

static inline void mark_fill(struct buddy *b, unsigned int level, u64 i,
			     bool set)
{
	if (level == b->top)
		b->nr_dirty = set ? mark_span(level) : 0;
	else if (level)
		b->marks[level][i] = set ? mark_span(level) : 0;
	else
		b->dirty[i] = set ? ~0ull : 0;
}

static inline void mark_bits(struct buddy *b, u64 i, u64 mask, bool set)
{
	if (set)
		b->dirty[i] |= mask;
	else
		b->dirty[i] &= ~mask;
}

/* Returns whether the node's count changed. */
static inline bool mark_sum_up(struct buddy *b, unsigned int level, u64 i)
{
	u64 sum = 0, first = i << EIGHT_SHIFT;
	unsigned int k;

	for (k = 0; k < EIGHT; k++)
		sum += mark_count(b, level - 1, first + k);
	if (level == b->top) {
		b->nr_dirty = sum;
		return true;
	}
	if (b->marks[level][i] == sum)
		return false;
	b->marks[level][i] = sum;
	return true;
}

static inline void mark_push_down(struct buddy *b, unsigned int level, u64 i)
{
	u64 count = mark_count(b, level, i), first = i << EIGHT_SHIFT;
	unsigned int k;

	if (count && count != mark_span(level))
		return;
	for (k = 0; k < EIGHT; k++)
		mark_fill(b, level - 1, first + k, count);
}

/* The nodes of @level in which [@lo, @hi) begins and ends */
static inline void mark_ends(struct buddy *b, unsigned int level, u64 lo,
			     u64 hi, bool set)
{
	u64 left = lo >> mark_shift(level);
	u64 right = (hi - 1) >> mark_shift(level);

	if (level) {
		mark_fill(b, level, left, set);
		mark_fill(b, level, right, set);
	} else if (left == right) {
		mark_bits(b, left, bits_mask(lo & WORD_MASK, hi - lo), set);
	} else {
		mark_bits(b, left, ~0ull << (lo & WORD_MASK), set);
		mark_bits(b, right,
			  ~0ull >> (WORD_MASK - ((hi - 1) & WORD_MASK)), set);
	}
}

/*
 * The nodes of one level strictly between the two ends, as far as they are
 * siblings of one of these: the others are below a parent that is covered.
 */
static inline void mark_between(struct buddy *b, unsigned int level, u64 left,
				u64 right, bool set)
{
	u64 i, stop = min(right, (left | (EIGHT - 1)) + 1);

	for (i = left + 1; i < stop; i++)
		mark_fill(b, level, i, set);
	for (i = max(stop, right & ~(u64)(EIGHT - 1)); i < right; i++)
		mark_fill(b, level, i, set);
}

static inline bool mark_one_word(u64 lo, u64 hi)
{
	return lo >> WORD_SHIFT == (hi - 1) >> WORD_SHIFT;
}

/* The marks of [@lo, @hi), which lies in one word, as bits of that word */
static u64 mark_word(const struct buddy *b, u64 lo, u64 hi)
{
	u64 mask = bits_mask(lo & WORD_MASK, hi - lo), i = lo >> WORD_SHIFT;
	unsigned int level = b->top, shift = EIGHT_SHIFT * level;
	u64 count = b->nr_dirty;

	for (;;) {
		if (!count)
			return 0;
		if (count == (u64)(WORD_MASK + 1) << shift)
			return mask;
		shift -= EIGHT_SHIFT;
		if (!--level)
			return b->dirty[i] & mask;
		count = b->marks[level][i >> shift];
	}
}

/* mark_set() inside of one word: what changes there changes every count above it. */
static void mark_set_near(struct buddy *b, u64 lo, u64 hi, bool set)
{
	u64 i = lo >> WORD_SHIFT, change;
	unsigned int level;

	for (level = b->top; level; level--)
		mark_push_down(b, level, lo >> mark_shift(level));
	change = hweight64(b->dirty[i]);
	mark_bits(b, i, bits_mask(lo & WORD_MASK, hi - lo), set);
	change = hweight64(b->dirty[i]) - change;
	if (!change)
		return;
	for (level = 1; level < b->top; level++)
		b->marks[level][lo >> mark_shift(level)] += change;
	b->nr_dirty += change;
}

/* Marks every granule of [@lo, @hi), which is not empty, dirty or clean. */
static void mark_set(struct buddy *b, u64 lo, u64 hi, bool set)
{
	unsigned int level, shift, base = 0;
	bool changed = true;
	u64 left, right;

	if (mark_one_word(lo, hi)) {
		mark_set_near(b, lo, hi, set);
		return;
	}
	/* Down to the level at which the range consists of whole nodes */
	while (base + 1 < b->top && !((lo | hi) & (mark_span(base + 1) - 1)))
		base++;
	for (level = b->top; level > base; level--) {
		shift = mark_shift(level);
		left = lo >> shift;
		right = (hi - 1) >> shift;
		mark_push_down(b, level, left);
		if (right != left)
			mark_push_down(b, level, right);
	}
	mark_ends(b, base, lo, hi, set);
	for (level = base; level < b->top; level++) {
		shift = mark_shift(level);
		left = lo >> shift;
		right = (hi - 1) >> shift;
		if (left == right && !changed)
			return;
		mark_between(b, level, left, right, set);
		left >>= EIGHT_SHIFT;
		right >>= EIGHT_SHIFT;
		changed = mark_sum_up(b, level + 1, left);
		if (left != right)
			changed |= mark_sum_up(b, level + 1, right);
	}
}

/* The first granule in [@pos, @hi) that is dirty, or clean; @hi */
static u64 mark_next(const struct buddy *b, u64 pos, u64 hi, bool dirty)
{
	unsigned int level = b->top, shift;
	u64 count, word;

	if (pos < hi && mark_one_word(pos, hi)) {
		word = mark_word(b, pos, hi) >> (pos & WORD_MASK);
		word = (dirty ? word : ~word);
		return word ? min(hi, pos + __ffs64(word)) : hi;
	}
	while (pos < hi) {
		shift = mark_shift(level);
		count = mark_count(b, level, pos >> shift);
		if (count == (dirty ? 1ull << shift : 0))
			return pos;
		if (count != (dirty ? 0 : 1ull << shift)) {
			if (level) {
				level--;
				continue;
			}
			word = b->dirty[pos >> WORD_SHIFT];
			word = (dirty ? word : ~word) >> (pos & WORD_MASK);
			if (word)
				return min(hi, pos + __ffs64(word));
		}
		pos = ((pos >> shift) + 1) << shift;
		level = mark_climb(b, pos, level);
	}
	return hi;
}

/* Dirty granules of [@lo, @hi) */
static u64 mark_count_dirty(const struct buddy *b, u64 lo, u64 hi)
{
	unsigned int level = b->top, shift;
	u64 n = 0, count, end, stop;

	if (!b->nr_dirty || lo == hi)
		return 0;
	if (mark_one_word(lo, hi))
		return hweight64(mark_word(b, lo, hi));
	while (lo < hi) {
		shift = mark_shift(level);
		count = mark_count(b, level, lo >> shift);
		end = ((lo >> shift) + 1) << shift;
		stop = min(hi, end);
		if (stop - lo == 1ull << shift) {
			n += count;
		} else if (count == 1ull << shift) {
			n += stop - lo;
		} else if (count && level) {
			level--;
			continue;
		} else if (count) {
			n += hweight64(b->dirty[lo >> WORD_SHIFT] &
				       bits_mask(lo & WORD_MASK, stop - lo));
		}
		lo = stop;
		level = mark_climb(b, lo, level);
	}
	return n;
}
