// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The index of free runs.
 *
 * A run belongs to the word in which it begins. Two structures find a run: by size the
 * classes of size_classes.inc.c, and by address the tree of longest runs. The tree holds the
 * longest run that begins in each word, and above that the maximum of each eight
 * entries.
 *
 * One run is in neither structure: the wilderness, a large run. Most requests without a
 * better fit are cut from it, and most of these blocks merge with it again. Each search
 * checks the wilderness as well.
 *
 * For the index, two kinds of words of the map are valid even where a level above
 * describes them: words in which a run begins, and words in which a run ends that began
 * in an earlier word.
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

/* The level with one entry, for @nr granules */
static unsigned int longest_top(u64 nr)
{
	unsigned int level = 1;

	while ((nr - 1) >> (WORD_SHIFT + EIGHT_SHIFT * level))
		level++;
	return level;
}

/* Entries of a level below the top, rounded up to whole families of eight */
static u64 longest_count(u64 nr, unsigned int level)
{
	nr = (nr - 1) >> (WORD_SHIFT + EIGHT_SHIFT * level);
	return (nr | (EIGHT - 1)) + 1;
}

/*
 * Size of a run as an entry. Only a whole range, as the wilderness, has 2^32 granules.
 */
static inline u32 longest_value(u64 n)
{
	return min_t(u64, n, U32_MAX);
}

/* Maximum of a family; the caller has just read or written a part of it. */
static inline u32 longest_of_eight(const u32 *family)
{
	u32 a = max(family[0], family[1]), b = max(family[2], family[3]);
	u32 c = max(family[4], family[5]), d = max(family[6], family[7]);

	return max(max(a, b), max(c, d));
}

/*
 * Record a run of @new granules in word @i that is longer than all others of the word.
 * The levels at which it is the longest are unpredictable, so the loop has no branch.
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

/* Set the longest run of word @i to @new. */
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
 * Bit k of the result says whether entry k of the family of entry @i has at least @n.
 * The entries are unpredictable, so there is no branch.
 */
static inline unsigned int longest_family(const struct buddy *b,
					  unsigned int level, u64 i, u32 n)
{
	const u32 *f = &b->longest[level][i & ~(u64)(EIGHT - 1)];

	return (f[0] >= n) | (f[1] >= n) << 1 | (f[2] >= n) << 2 |
	       (f[3] >= n) << 3 | (f[4] >= n) << 4 | (f[5] >= n) << 5 |
	       (f[6] >= n) << 6 | (f[7] >= n) << 7;
}

/*
 * Descend from entry @i of @level to the first or the last word below with at least @n.
 */
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
 * The first word from @i on in which a run of @n granules begins; if @high, the last
 * such word below @i; NOWHERE if there is none
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

/* Runs of a word */

/**
 * struct word_runs - the runs that begin in a word
 * @inside: granules of the runs that end before the word does
 * @tail: first bit of the run that reaches the end of the word; 64 if there is
 *	none
 * @tail_size: granules of that run, in this word and later ones
 */
struct word_runs {
	u64 inside;
	unsigned int tail;
	u64 tail_size;
};

/*
 * Does the first run of word @i, if its first granule is free, begin in an earlier
 * word?
 */
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
 * Size of the run that begins in word @i and has its last @high granules. The result is
 * wrong for the wilderness, which the caller leaves out. The tree is up to date for
 * word @i.
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
 * Free granules of word @i, without the run that begins in an earlier word. Whether
 * there is such a run is unpredictable, so there is no branch.
 */
static inline u64 word_free_bits(const struct buddy *b, u64 i)
{
	u64 word = ~b->used.words[i];

	return word & (word + word_continued(b, i));
}

/* Bits of a run in word @i, if the run begins in it */
static inline u64 word_run_bits(const struct run *run, u64 i)
{
	unsigned int bit = run->start & WORD_MASK;

	if (!run->size || run->start >> WORD_SHIFT != i)
		return 0;
	return bits_mask(bit, min_t(u64, run->size, 64 - bit));
}

/* The runs of word @i whose bits are in @word */
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

/* The runs that begin in word @i, without the wilderness */
static struct word_runs word_runs_in(const struct buddy *b, u64 i)
{
	struct run wild = wild_run(b);

	return word_runs_of(b, i,
			    word_free_bits(b, i) & ~word_run_bits(&wild, i));
}

/*
 * Size of the free run that begins at @pos, where the granule before @pos is used; else
 * 0
 */
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

/* Bit i of the result says whether bits i to i + @n - 1 of @word are set. */
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

/* Length of the longest run of set bits */
static inline u64 bits_longest(u64 word)
{
	u64 n = 0;

	while (word) {
		word &= word >> 1;
		n++;
	}
	return n;
}

/* First bits of the runs of @class, which is not listed, in a word */
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

/* The run that ends inside word @i and has its bit @bit */
static inline struct run word_run_around(const struct word_runs *g, u64 i,
					 unsigned int bit)
{
	u64 below = ~g->inside & ((1ull << bit) - 1);

	return word_run_at(g, i, fls64(below));
}

/* First bits of all runs of a word */
static inline u64 word_starts(const struct word_runs *g)
{
	u64 tail = g->tail_size ? 1ull << g->tail : 0;

	return (g->inside & ~(g->inside << 1)) | tail;
}

/* Adding and removing */

/**
 * struct removed - updates that follow the removal of a run
 * @word: word in which the run began; NOWHERE if there was no run
 * @longest: the longest other run of the word
 * @class: class of the run
 * @last: the class is not listed, and no other run of it begins in the word
 */
struct removed {
	u64 word;
	u64 longest;
	unsigned int class;
	bool last;
};

/*
 * Remove a run from its list, if it is in one, and compute the updates that follow.
 * Called while the map still shows the run, and @also, which is removed at the same
 * time; the size of @also is 0 if there is no such run.
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

/* Correct the updates for a new run that begins in the same word. */
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

/* Make the map valid at the start of a run; the map has @run already. */
static inline void index_show_start(struct buddy *b, const struct run *run)
{
	u64 i = run->start >> WORD_SHIFT;

	if (run->start & WORD_MASK)
		return;
	word_set_continued(b, i, false);
	if (run->size >= 64)
		b->used.words[i] = 0;
}

/* Make the map valid at the end of a run. */
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

/*
 * Add a run to the index. Called when the map shows @run, and before index_remove_end()
 * of the removed runs.
 */
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
