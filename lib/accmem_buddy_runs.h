/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Free runs by size and by place, for accmem_buddy.c only.
 *
 * A run belongs to the word in which it begins. Two structures find runs: the
 * words of each class of size, in accmem_buddy_classes.h, and here for each word
 * the longest run that begins in it, and above that the maximum of eight: which
 * run is long enough, in the order of addresses.
 *
 * One run is in neither: the wilderness, a large one from which most of what
 * finds no better place is cut, and with which most of it merges again. Each
 * search looks at it besides.
 *
 * The map keeps true what these need: the bits of each word in which a run
 * begins, and of each in which a run ends that began before it.
 */
#ifndef ACCMEM_BUDDY_RUNS_H
#define ACCMEM_BUDDY_RUNS_H

#include "accmem_buddy_classes.h"

#define EIGHT_SHIFT 3
#define EIGHT 8u

/* A run in granules; none has size 0 */
struct span {
	u64 start;
	u64 size;
};

static inline struct span wilderness(const struct accmem_buddy *b)
{
	return (struct span){ b->wild_start, b->wild_size };
}

static inline bool is_wild(const struct accmem_buddy *b, const struct span *run)
{
	return b->wild_size && run->start == b->wild_start;
}

/* Longest runs */

/* For requests: a run of 2^32 granules is a whole range, and the wilderness. */
static inline u32 longest_of(u64 n)
{
	return min_t(u64, n, U32_MAX);
}

/* The caller has touched one of their four words. */
static inline u32 most_of_eight(const u32 *family)
{
	u32 a = max(family[0], family[1]), b = max(family[2], family[3]);
	u32 c = max(family[4], family[5]), d = max(family[6], family[7]);

	touch(3);
	return max(max(a, b), max(c, d));
}

/*
 * Word @i has a run of @new granules, which is longer than any before. Up to
 * which level it is the longest cannot be predicted, so there is no branch for it.
 */
static inline void longest_raise(struct accmem_buddy *b, u64 i, u32 new)
{
	unsigned int level;
	u32 *longest;

	for (level = 0; level <= b->top; level++) {
		longest = &b->longest[level][i];
		touch(1);
		*longest = max(*longest, new);
		i >>= EIGHT_SHIFT;
	}
}

/* Word @i's longest run is @new from now on. */
static void longest_set(struct accmem_buddy *b, u64 i, u32 new)
{
	u32 old = b->longest[0][i], *above;
	unsigned int level;

	if (new > old) {
		longest_raise(b, i, new);
		return;
	}
	touch(1);
	b->longest[0][i] = new;
	for (level = 1; level <= b->top && new != old; level++) {
		above = &b->longest[level][i >> EIGHT_SHIFT];
		touch(1);
		if (*above != old)
			return;
		new = most_of_eight(&b->longest[level - 1]
						       [i & ~(u64)(EIGHT - 1)]);
		*above = new;
		i >>= EIGHT_SHIFT;
	}
}

static inline u32 longest_in_range(const struct accmem_buddy *b)
{
	return b->longest[b->top][0];
}

/*
 * Bit k of the result: entry k of the family of entry @i has at least @n. Which
 * one does cannot be predicted, so there is no branch for each.
 */
static inline unsigned int at_least(const struct accmem_buddy *b,
				    unsigned int level, u64 i, u32 n)
{
	const u32 *f = &b->longest[level][i & ~(u64)(EIGHT - 1)];

	touch(4);
	return (f[0] >= n) | (f[1] >= n) << 1 | (f[2] >= n) << 2 |
	       (f[3] >= n) << 3 | (f[4] >= n) << 4 | (f[5] >= n) << 5 |
	       (f[6] >= n) << 6 | (f[7] >= n) << 7;
}

/* Down from entry @i of @level to the first word below with at least @n */
static inline u64 longest_down(const struct accmem_buddy *b,
			       unsigned int level, u64 i, u32 n)
{
	while (level--) {
		i <<= EIGHT_SHIFT;
		i += __ffs64(at_least(b, level, i, n));
	}
	return i;
}

/* The first word from @i on in which a run of @n granules begins; NOWHERE */
static u64 word_next(const struct accmem_buddy *b, u64 i, u32 n)
{
	unsigned int level = 0;

	while (level < b->top) {
		if (!(i & (EIGHT - 1))) {
			i >>= EIGHT_SHIFT;
			level++;
			continue;
		}
		do {
			touch(1);
			if (b->longest[level][i] >= n)
				return longest_down(b, level, i, n);
		} while (++i & (EIGHT - 1));
	}
	if (i || longest_in_range(b) < n)
		return NOWHERE;
	return longest_down(b, level, 0, n);
}

/* The last word below @i in which a run of @n granules begins; NOWHERE */
static u64 word_prev(const struct accmem_buddy *b, u64 i, u32 n)
{
	unsigned int level = 0;

	for (;;) {
		if (!i)
			return NOWHERE;
		if (level < b->top && !(i & (EIGHT - 1))) {
			i >>= EIGHT_SHIFT;
			level++;
			continue;
		}
		touch(1);
		if (b->longest[level][--i] >= n)
			break;
	}
	while (level--) {
		i = (i << EIGHT_SHIFT) + EIGHT - 1;
		while (b->longest[level][i] < n)
			i--;
		touch((~i & (EIGHT - 1)) / 2 + 1);
	}
	return i;
}

/* The runs of a word */

/**
 * struct begun - the runs that begin in a word
 * @inside: granules of those that end before the word does
 * @tail: bit at which the one that reaches the end begins; 64 if none does
 * @tail_size: its granules, in this word and after
 */
struct begun {
	u64 inside;
	unsigned int tail;
	u64 tail_size;
};

/* Does the run at the beginning of word @i, if there is one, begin before? */
static inline bool is_continued(const struct accmem_buddy *b, u64 i)
{
	touch(1);
	return b->continued[i >> WORD_SHIFT] >> (i & WORD_MASK) & 1;
}

static inline void set_continued(struct accmem_buddy *b, u64 i, bool set)
{
	u64 bit = 1ull << (i & WORD_MASK);

	touch(1);
	if (set)
		b->continued[i >> WORD_SHIFT] |= bit;
	else
		b->continued[i >> WORD_SHIFT] &= ~bit;
}

/*
 * Of the run that has the last @high granules of word @i, and begins there. For
 * the wilderness, of which nothing is known here, the answer is to be left out.
 * The caller counts the word of the longest run.
 */
static inline u64 tail_size(const struct accmem_buddy *b, u64 i,
			    unsigned int high)
{
	u32 longest = b->longest[0][i];

	if (longest >= 64)
		return longest;
	if (i + 1 == words_for(b->nr) || !is_continued(b, i + 1))
		return high;
	touch(1);
	return high + low_ones(~b->used[i + 1]);
}

/* Leaves a run out of account that begins in word @i, if it does. */
static inline void leave_out(struct begun *g, u64 i, const struct span *run)
{
	unsigned int bit = run->start & WORD_MASK;

	if (!run->size || run->start >> WORD_SHIFT != i)
		return;
	if (bit == g->tail) {
		g->tail = 64;
		g->tail_size = 0;
	} else {
		g->inside &= ~bits_mask(bit, run->size);
	}
}

/* Free granules of word @i, but for the run that begins before it */
static inline u64 free_from_here(const struct accmem_buddy *b, u64 i)
{
	u64 word = ~b->used[i];

	touch(1);
	return word & 1 && is_continued(b, i) ? word & (word + 1) : word;
}

/* All but the wilderness */
static struct begun begun_in(const struct accmem_buddy *b, u64 i)
{
	struct begun g = { .inside = free_from_here(b, i) };
	struct span wild = wilderness(b);
	unsigned int high;

	high = high_ones(g.inside);
	g.tail = 64 - high;
	if (high) {
		g.inside &= ~(~0ull << g.tail);
		touch(1);
		g.tail_size = tail_size(b, i, high);
	}
	leave_out(&g, i, &wild);
	return g;
}

/*
 * The same for a mixed word in which the wilderness does not begin. Whether a run
 * comes from before it cannot be predicted: no branch.
 */
static inline struct begun begun_in_mixed(const struct accmem_buddy *b, u64 i)
{
	u64 word = ~b->used[i];
	unsigned int high;
	struct begun g;

	touch(1);
	word &= word + is_continued(b, i);
	high = high_ones(word);
	g.inside = word & ~0ull >> high;
	g.tail = 64 - high;
	g.tail_size = high ? tail_size(b, i, high) : 0;
	return g;
}

/* Of the free run that begins at @pos, if the one before is used; else 0 */
static inline u64 size_from(const struct accmem_buddy *b, u64 pos)
{
	unsigned int bit = pos & WORD_MASK;
	u64 i = pos >> WORD_SHIFT, word;

	if (pos == b->wild_start && b->wild_size)
		return b->wild_size;
	touch(1);
	if (pos == b->nr || !b->longest[0][i])
		return 0;
	touch(1);
	word = b->used[i] >> bit;
	return word ? __ffs64(word) : tail_size(b, i, 64 - bit);
}

/* Bit i of the result: bits i to i + @n - 1 of @word are set. */
static inline u64 runs_of(u64 word, u64 n)
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
static inline u64 aligned_bits(u64 i, u64 align)
{
	u64 bits = 1, step;

	if (align > 64)
		return !((i << WORD_SHIFT) & (align - 1));
	for (step = align; step < 64; step <<= 1)
		bits |= bits << step;
	return bits;
}

static inline u64 align_up(u64 n, u64 align)
{
	return (n + align - 1) & ~(align - 1);
}

/* Does a run hold @n granules at a multiple of @align? */
static inline bool span_holds(const struct span *run, u64 n, u64 align)
{
	return align_up(run->start, align) + n <= run->start + run->size;
}

/* The longest run of bits */
static inline u64 longest_inside(u64 word)
{
	u64 n = 0;

	while (word) {
		word &= word >> 1;
		n++;
	}
	return n;
}

/* Where runs of @class, which is not listed, begin in a word */
static inline u64 begin_class(const struct begun *g, unsigned int class)
{
	u64 least = class_size(class), more = class_size(class + 1) - least;
	u64 begin = runs_of(g->inside, least);

	begin &= ~(begin >> more | g->inside << 1);
	if (class_of(g->tail_size) == class)
		begin |= 1ull << g->tail;
	return begin;
}

static inline struct span span_inside(const struct begun *g, u64 i,
				      unsigned int bit)
{
	struct span run;

	run.start = (i << WORD_SHIFT) + bit;
	run.size = bit == g->tail ? g->tail_size : low_ones(g->inside >> bit);
	return run;
}

/* The run that ends inside and has bit @bit of word @i */
static inline struct span span_around(const struct begun *g, u64 i,
				      unsigned int bit)
{
	u64 below = ~g->inside & ((1ull << bit) - 1);

	return span_inside(g, i, fls64(below));
}

/* Adding and removing */

/**
 * struct gone - what follows from that a run is no more
 * @word: where it began; NOWHERE if there was none
 * @longest: the longest other run there
 * @class: the run's class
 * @last: the class is not listed, and no other run of it begins there
 */
struct gone {
	u64 word;
	u64 longest;
	unsigned int class;
	bool last;
};

/* What a run has of word @i, if it begins there: bits */
static inline u64 begun_bits(const struct span *run, u64 i)
{
	unsigned int bit = run->start & WORD_MASK;

	if (!run->size || run->start >> WORD_SHIFT != i)
		return 0;
	return bits_mask(bit, min_t(u64, run->size, 64 - bit));
}

/*
 * Takes a run out of its list, if it is in one, and works out what else follows.
 * To be called while the map still has it, and @also, which goes too: its size
 * is 0 if none does.
 */
static void run_going(struct accmem_buddy *b, const struct span *run,
		      const struct span *also, struct gone *gone)
{
	u64 i = run->start >> WORD_SHIFT;
	struct begun g;

	gone->word = i;
	gone->class = class_of(run->size);
	gone->longest = 0;
	gone->last = !is_listed(gone->class);
	if (!gone->last)
		list_del_run(b, gone->class, i);
	if (!(free_from_here(b, i) & ~begun_bits(run, i) &
	      ~begun_bits(also, i)))
		return;
	g = begun_in(b, i);
	leave_out(&g, i, run);
	leave_out(&g, i, also);
	gone->longest = b->longest[0][i];
	if (max(run->size, also->size) >= gone->longest)
		gone->longest = max(longest_inside(g.inside), g.tail_size);
	if (gone->last)
		gone->last = !begin_class(&g, gone->class);
}

/* What does not follow when @run is there instead, and begins in that word */
static inline bool gone_but(struct gone *gone, const struct span *run,
			    unsigned int class)
{
	if (gone->word != run->start >> WORD_SHIFT)
		return false;
	gone->longest = max(gone->longest, run->size);
	if (gone->class == class)
		gone->last = false;
	return true;
}

/* What the map keeps true, for these, where a run begins; it has @run already. */
static inline void run_show_start(struct accmem_buddy *b,
				  const struct span *run)
{
	u64 i = run->start >> WORD_SHIFT;

	if (run->start & WORD_MASK)
		return;
	set_continued(b, i, false);
	if (run->size >= 64)
		b->used[i] = 0;
}

/* And where it ends */
static inline void run_show_end(struct accmem_buddy *b, const struct span *run)
{
	u64 i = run->start >> WORD_SHIFT, end = run->start + run->size;

	if (end & WORD_MASK ? end >> WORD_SHIFT != i : end < b->nr)
		set_continued(b, end >> WORD_SHIFT, end & WORD_MASK);
}

static inline void run_show(struct accmem_buddy *b, const struct span *run)
{
	run_show_start(b, run);
	run_show_end(b, run);
}

/* To be called when the map shows @run, and before run_gone() of these. */
static __always_inline void run_add(struct accmem_buddy *b,
				    const struct span *run, struct gone *one,
				    struct gone *other)
{
	unsigned int class = class_of(run->size);
	u64 i = run->start >> WORD_SHIFT;
	bool same_word = gone_but(one, run, class);

	same_word |= gone_but(other, run, class);
	if (is_listed(class))
		list_add_run(b, class, i);
	else
		start_add(b, class, i);
	if (!same_word && b->longest[0][i] < longest_of(run->size))
		longest_raise(b, i, longest_of(run->size));
}

static __always_inline void run_gone(struct accmem_buddy *b,
				     const struct gone *gone)
{
	if (gone->word == NOWHERE)
		return;
	longest_set(b, gone->word, longest_of(gone->longest));
	if (gone->last)
		start_del(b, gone->class, gone->word, true);
}

/* Finding */

/*
 * The lowest run from @pos on that holds @n granules at a multiple of @align;
 * size 0 if none does that begins below @hi. @pos is not inside a run. One step
 * a word in which a run of @n granules begins: few if @align is 1.
 */
static struct span run_at_or_after(const struct accmem_buddy *b, u64 pos,
				   u64 hi, u64 n, u64 align)
{
	u64 i = pos >> WORD_SHIFT, mask = mask_from(pos), fits;
	struct begun g;
	struct span run;

	if (pos >= hi)
		return (struct span){};
	for (;; mask = ~0ull) {
		if (b->longest[0][i] >= longest_of(n)) {
			g = begun_in(b, i);
			fits = runs_of(g.inside, n) & aligned_bits(i, align);
			if (fits & mask)
				return span_around(&g, i, __ffs64(fits & mask));
			run = span_inside(&g, i, g.tail);
			if (g.tail_size && mask >> g.tail & 1 &&
			    span_holds(&run, n, align))
				return run;
		}
		i = word_next(b, i + 1, longest_of(n));
		if (i > (hi - 1) >> WORD_SHIFT)
			return (struct span){};
	}
}

/*
 * The highest such run that begins before @pos, which is not inside a run; size 0
 * if none does that begins from @lo on.
 */
static struct span run_before(const struct accmem_buddy *b, u64 pos, u64 lo,
			      u64 n, u64 align)
{
	u64 i = pos >> WORD_SHIFT, mask = ~mask_from(pos), fits;
	struct begun g;
	struct span run;

	for (;; mask = ~0ull) {
		if (mask && b->longest[0][i] >= longest_of(n)) {
			g = begun_in(b, i);
			run = span_inside(&g, i, g.tail);
			if (g.tail_size && mask >> g.tail & 1 &&
			    span_holds(&run, n, align))
				return run;
			fits = runs_of(g.inside, n) & aligned_bits(i, align);
			if (fits & mask)
				return span_around(&g, i,
						   fls64(fits & mask) - 1);
		}
		i = word_prev(b, i, longest_of(n));
		if (i == NOWHERE || i < lo >> WORD_SHIFT)
			return (struct span){};
	}
}

/* The run of 64 granules or more that begins in word @i */
static inline struct span long_run(const struct accmem_buddy *b, u64 i)
{
	struct span run;

	touch(2);
	run.start = (i << WORD_SHIFT) + 64 - high_ones(~b->used[i]);
	run.size = b->longest[0][i];
	return run;
}

#endif /* ACCMEM_BUDDY_RUNS_H */
