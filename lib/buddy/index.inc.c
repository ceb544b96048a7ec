// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The index of free runs.
 *
 * A run belongs to the word in which it begins. Two structures find it: by size
 * classes.inc.c, and by address the tree of longest runs, which has the longest run of
 * each word, and above that the maximum of eight.
 *
 * One run is in neither: the wilderness, a large one from which most of what finds no
 * better place is cut, and with which most of it merges again. Each search looks at it
 * besides.
 *
 * Some words of the map are kept true for this, whatever is above them: those in which
 * a run begins, and those in which a run ends that began before.
 */

static inline struct run wild_run(const struct buddy *b)
{
	return (struct run){ b->wild_start, b->wild_size };
}

static inline bool wild_is(const struct buddy *b, const struct run *run)
{
	return b->wild_size && run->start == b->wild_start;
}

/* Longest runs */

#define EIGHT_SHIFT 3
#define EIGHT 8u

/* The level of one entry, for @nr granules */
static unsigned int longest_top(u64 nr)
{
	unsigned int level = 1;

	while ((nr - 1) >> (WORD_SHIFT + EIGHT_SHIFT * level))
		level++;
	return level;
}

/* Entries of a level below that one, always whole families of eight */
static u64 longest_count(u64 nr, unsigned int level)
{
	nr = (nr - 1) >> (WORD_SHIFT + EIGHT_SHIFT * level);
	return (nr | (EIGHT - 1)) + 1;
}

/* For requests: a run of 2^32 granules is a whole range, and the wilderness. */
static inline u32 longest_value(u64 n)
{
	return min_t(u64, n, U32_MAX);
}

/* The caller has touched one of their four words. */
static inline u32 longest_of_eight(const u32 *family)
{
	u32 a = max(family[0], family[1]), b = max(family[2], family[3]);
	u32 c = max(family[4], family[5]), d = max(family[6], family[7]);

	return max(max(a, b), max(c, d));
}

/*
 * Word @i has a run of @new granules, which is longer than any before. Up to
 * which level it is the longest cannot be predicted, so there is no branch for it.
 */
static inline void longest_raise(struct buddy *b, u64 i, u32 new)
{
	unsigned int level;
	u32 *longest;

	for (level = 0; level <= b->top; level++) {
		longest = &b->longest[level][i];
		*longest = max(*longest, new);
		i >>= EIGHT_SHIFT;
	}
}

/* Word @i's longest run is @new from now on. */
static void longest_set(struct buddy *b, u64 i, u32 new)
{
	u32 old = b->longest[0][i], *above;
	unsigned int level;

	if (new > old) {
		longest_raise(b, i, new);
		return;
	}
	b->longest[0][i] = new;
	for (level = 1; level <= b->top && new != old; level++) {
		above = &b->longest[level][i >> EIGHT_SHIFT];
		if (*above != old)
			return;
		i &= ~(u64)(EIGHT - 1);
		new = longest_of_eight(&b->longest[level - 1][i]);
		*above = new;
		i >>= EIGHT_SHIFT;
	}
}

static inline u32 longest_in_range(const struct buddy *b)
{
	return b->longest[b->top][0];
}

/*
 * Bit k of the result: entry k of the family of entry @i has at least @n. Which
 * one does cannot be predicted, so there is no branch for each.
 */
static inline unsigned int longest_family(const struct buddy *b,
					  unsigned int level, u64 i, u32 n)
{
	const u32 *f = &b->longest[level][i & ~(u64)(EIGHT - 1)];

	return (f[0] >= n) | (f[1] >= n) << 1 | (f[2] >= n) << 2 |
	       (f[3] >= n) << 3 | (f[4] >= n) << 4 | (f[5] >= n) << 5 |
	       (f[6] >= n) << 6 | (f[7] >= n) << 7;
}

/* Down from entry @i of @level to the first or last word below with at least @n */
static inline u64 longest_down(const struct buddy *b, unsigned int level, u64 i,
			       u32 n, bool high)
{
	unsigned int family;

	while (level--) {
		i <<= EIGHT_SHIFT;
		family = longest_family(b, level, i, n);
		i += high ? fls64(family) - 1 : __ffs64(family);
	}
	return i;
}

/*
 * The first word from @i on in which a run of @n granules begins, or if @high, the last
 * one below @i; NOWHERE
 */
static u64 longest_word(const struct buddy *b, u64 i, u32 n, bool high)
{
	unsigned int level;

	for (level = 0; level < b->top; level++, i >>= EIGHT_SHIFT)
		for (; i & (EIGHT - 1); i += high ? -1 : 1)
			if (b->longest[level][i - high] >= n)
				return longest_down(b, level, i - high, n,
						    high);
	if ((high ? !i : i) || longest_in_range(b) < n)
		return NOWHERE;
	return longest_down(b, level, 0, n, high);
}

/* The runs of a word */

/**
 * struct word_runs - the runs that begin in a word
 * @inside: granules of those that end before the word does
 * @tail: bit at which the one that reaches the end begins; 64 if none does
 * @tail_size: its granules, in this word and after
 */
struct word_runs {
	u64 inside;
	unsigned int tail;
	u64 tail_size;
};

/* Does the run at the beginning of word @i, if there is one, begin before? */
static inline bool word_continued(const struct buddy *b, u64 i)
{
	return b->continued[i >> WORD_SHIFT] >> (i & WORD_MASK) & 1;
}

static inline void word_set_continued(struct buddy *b, u64 i, bool set)
{
	u64 *word = &b->continued[i >> WORD_SHIFT];

	*word = with_bits(*word, 1ull << (i & WORD_MASK), set);
}

/*
 * Of the run that has the last @high granules of word @i, and begins there. For
 * the wilderness, of which nothing is known here, the answer is to be left out.
 * The caller counts the word of the longest run.
 */
static inline u64 word_tail_size(const struct buddy *b, u64 i,
				 unsigned int high)
{
	u32 longest = b->longest[0][i];

	if (longest >= 64)
		return longest;
	if (i + 1 == words_for(b->nr) || !word_continued(b, i + 1))
		return high;
	return high + low_ones(~b->used.words[i + 1]);
}

/*
 * Free granules of word @i, but for the run that begins before it. Whether one does
 * cannot be predicted: no branch.
 */
static inline u64 word_free_bits(const struct buddy *b, u64 i)
{
	u64 word = ~b->used.words[i];

	return word & (word + word_continued(b, i));
}

/* What a run has of word @i, if it begins there: bits */
static inline u64 word_run_bits(const struct run *run, u64 i)
{
	unsigned int bit = run->start & WORD_MASK;

	if (!run->size || run->start >> WORD_SHIFT != i)
		return 0;
	return bits_mask(bit, min_t(u64, run->size, 64 - bit));
}

/* Those of which word @i has the bits @word */
static inline struct word_runs word_runs_of(const struct buddy *b, u64 i,
					    u64 word)
{
	unsigned int high = high_ones(word);
	struct word_runs g = { .inside = word, .tail = 64 - high };

	if (high) {
		g.inside &= ~(~0ull << g.tail);
		g.tail_size = word_tail_size(b, i, high);
	}
	return g;
}

/* All but the wilderness */
static struct word_runs word_runs_in(const struct buddy *b, u64 i)
{
	struct run wild = wild_run(b);

	return word_runs_of(b, i,
			    word_free_bits(b, i) & ~word_run_bits(&wild, i));
}

/* Of the free run that begins at @pos, if the one before is used; else 0 */
static inline u64 index_size_at(const struct buddy *b, u64 pos)
{
	unsigned int bit = pos & WORD_MASK;
	u64 i = pos >> WORD_SHIFT, word;

	if (pos == b->wild_start && b->wild_size)
		return b->wild_size;
	if (pos == b->nr || !b->longest[0][i])
		return 0;
	word = b->used.words[i] >> bit;
	return word ? __ffs64(word) : word_tail_size(b, i, 64 - bit);
}

/* Bit i of the result: bits i to i + @n - 1 of @word are set. */
static inline u64 bits_runs(u64 word, u64 n)
{
	unsigned int left = n - 1, have, step;

	if (n > 64)
		return 0;
	for (have = 1; have < 64; have <<= 1) {
		step = min(have, left);
		word &= word >> step;
		left -= step;
	}
	return word;
}

/* Bits of word @i whose granules are multiples of @align */
static inline u64 bits_aligned(u64 i, u64 align)
{
	u64 bits = 1, step;

	if (align > 64)
		return !((i << WORD_SHIFT) & (align - 1));
	for (step = align; step < 64; step <<= 1)
		bits |= bits << step;
	return bits;
}

/* Does a run hold @n granules at a multiple of @align? */
static inline bool run_holds(const struct run *run, u64 n, u64 align)
{
	return ALIGN(run->start, align) + n <= run->start + run->size;
}

/* The longest run of bits */
static inline u64 bits_longest(u64 word)
{
	u64 n = 0;

	while (word) {
		word &= word >> 1;
		n++;
	}
	return n;
}

/* Where runs of @class, which is not listed, begin in a word */
static inline u64 word_class_starts(const struct word_runs *g,
				    unsigned int class)
{
	u64 least = class_size(class), more = class_size(class + 1) - least;
	u64 begin = bits_runs(g->inside, least);

	begin &= ~(begin >> more | g->inside << 1);
	if (class_of(g->tail_size) == class)
		begin |= 1ull << g->tail;
	return begin;
}

static inline struct run word_run_at(const struct word_runs *g, u64 i,
				     unsigned int bit)
{
	struct run run;

	run.start = (i << WORD_SHIFT) + bit;
	run.size = bit == g->tail ? g->tail_size : low_ones(g->inside >> bit);
	return run;
}

/* The run that ends inside and has bit @bit of word @i */
static inline struct run word_run_around(const struct word_runs *g, u64 i,
					 unsigned int bit)
{
	u64 below = ~g->inside & ((1ull << bit) - 1);

	return word_run_at(g, i, fls64(below));
}

/* Where runs begin in a word */
static inline u64 word_starts(const struct word_runs *g)
{
	u64 tail = g->tail_size ? 1ull << g->tail : 0;

	return (g->inside & ~(g->inside << 1)) | tail;
}

/* Adding and removing */

/**
 * struct removed - what to update when a run is removed
 * @word: where it began; NOWHERE if there was none
 * @longest: the longest other run there
 * @class: the run's class
 * @last: the class is not listed, and no other run of it begins there
 */
struct removed {
	u64 word;
	u64 longest;
	unsigned int class;
	bool last;
};

/*
 * Takes a run out of its list, if it is in one, and works out what else follows.
 * To be called while the map still has it, and @also, which goes too: its size
 * is 0 if none does.
 */
static __always_inline void index_remove_begin(struct buddy *b,
					       const struct run *run,
					       const struct run *also,
					       struct removed *removed)
{
	u64 i = run->start >> WORD_SHIFT, word;
	struct run wild = wild_run(b);
	struct word_runs g;

	removed->word = i;
	removed->class = class_of(run->size);
	removed->longest = 0;
	removed->last = !class_is_listed(removed->class);
	if (!removed->last)
		class_list_del(b, removed->class, i);
	word = word_free_bits(b, i) & ~word_run_bits(run, i) &
	       ~word_run_bits(also, i);
	if (!word)
		return;
	g = word_runs_of(b, i, word & ~word_run_bits(&wild, i));
	removed->longest = b->longest[0][i];
	if (max(run->size, also->size) >= removed->longest)
		removed->longest = max(bits_longest(g.inside), g.tail_size);
	if (removed->last)
		removed->last = !word_class_starts(&g, removed->class);
}

/* What does not follow when @run is there instead, and begins in that word */
static inline bool index_remove_but(struct removed *removed,
				    const struct run *run, unsigned int class)
{
	if (removed->word != run->start >> WORD_SHIFT)
		return false;
	removed->longest = max(removed->longest, run->size);
	if (removed->class == class)
		removed->last = false;
	return true;
}

/* What the map keeps true, for these, where a run begins; it has @run already. */
static inline void index_show_start(struct buddy *b, const struct run *run)
{
	u64 i = run->start >> WORD_SHIFT;

	if (run->start & WORD_MASK)
		return;
	word_set_continued(b, i, false);
	if (run->size >= 64)
		b->used.words[i] = 0;
}

/* And where it ends */
static inline void index_show_end(struct buddy *b, const struct run *run)
{
	u64 i = run->start >> WORD_SHIFT, end = run->start + run->size;

	if (end & WORD_MASK ? end >> WORD_SHIFT != i : end < b->nr)
		word_set_continued(b, end >> WORD_SHIFT, end & WORD_MASK);
}

static inline void index_show(struct buddy *b, const struct run *run)
{
	index_show_start(b, run);
	index_show_end(b, run);
}

/* To be called when the map shows @run, and before index_remove_end() of these. */
static __always_inline void index_add(struct buddy *b, const struct run *run,
				      struct removed *one,
				      struct removed *other)
{
	unsigned int class = class_of(run->size);
	u64 i = run->start >> WORD_SHIFT;
	bool same_word = index_remove_but(one, run, class);

	same_word |= index_remove_but(other, run, class);
	if (class_is_listed(class))
		class_list_add(b, class, i);
	else
		class_word_add(b, class, i);
	if (!same_word && b->longest[0][i] < longest_value(run->size))
		longest_raise(b, i, longest_value(run->size));
}

static __always_inline void index_remove_end(struct buddy *b,
					     const struct removed *removed)
{
	if (removed->word == NOWHERE)
		return;
	longest_set(b, removed->word, longest_value(removed->longest));
	if (removed->last)
		class_word_del(b, removed->class, removed->word, true);
}

/* The run of 64 granules or more that begins in word @i */
static inline struct run index_long_run(const struct buddy *b, u64 i)
{
	struct run run;

	run.start = (i << WORD_SHIFT) + 64 - high_ones(~b->used.words[i]);
	run.size = b->longest[0][i];
	return run;
}
