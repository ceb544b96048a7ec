/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Which granules are used: a bit a granule, and above each word of 64 what it
 * holds, for accmem_buddy.c only.
 *
 * A level's bits stand for the words of the level below. A word that is wholly
 * used or wholly free is described by the level above it, and its own contents
 * are then stale, as is everything below: so a large range costs a few words,
 * and creation writes one word a level. A word is made true again before a part
 * of it changes. Until then a word of granules may have something else in it:
 * accmem_buddy_classes.h keeps links in some that are wholly free.
 */
#ifndef ACCMEM_BUDDY_MAP_H
#define ACCMEM_BUDDY_MAP_H

#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/minmax.h>

#include "accmem_buddy.h"

/* Host tests count the metadata words that an operation touches. */
#ifdef ACCMEM_BUDDY_COUNT
extern u64 accmem_buddy_touched;
#define touch(words) ((void)(accmem_buddy_touched += (words)))
#else
#define touch(words) ((void)(words))
#endif

/*
 * At most, on the level above which there is none. Tests have fewer, for more
 * levels above a small range.
 */
#ifndef MAP_TOP_WORDS
#define MAP_TOP_WORDS 16
#endif

#define WORD_SHIFT 6
#define WORD_MASK 63u

/**
 * struct accmem_buddy_state - what 64 words of the level below hold
 * @some: of which words a bit is set
 * @full: of which words all are
 */
struct accmem_buddy_state {
	u64 some;
	u64 full;
};

/* @count low bits, 1 to 64 of them, from bit @first on */
static inline u64 bits_mask(unsigned int first, unsigned int count)
{
	return (~0ull >> (64 - count)) << first;
}

/* From granule @lo of its word on, and up to @last of its word */
static inline u64 mask_from(u64 lo)
{
	return ~0ull << (lo & WORD_MASK);
}

static inline u64 mask_up_to(u64 last)
{
	return ~0ull >> (WORD_MASK - (last & WORD_MASK));
}

/* Of words of which one word speaks, those after @left and before @right */
static inline u64 words_between(u64 left, u64 right)
{
	return left == right ? 0 :
			       (1ull << (right & WORD_MASK)) -
				       (2ull << (left & WORD_MASK));
}

/* @word with the bits of @mask made 1s or 0s */
static inline u64 with_bits(u64 word, u64 mask, bool set)
{
	return (word | mask) & ~(set ? 0 : mask);
}

static inline unsigned int low_ones(u64 word)
{
	return ~word ? __ffs64(~word) : 64;
}

static inline unsigned int high_ones(u64 word)
{
	return 64 - fls64(~word);
}

static inline u64 words_for(u64 bits)
{
	return (bits + WORD_MASK) >> WORD_SHIFT;
}

/* Granules that a bit of @level stands for, as a shift */
static inline unsigned int map_shift(unsigned int level)
{
	return WORD_SHIFT * level;
}

static inline void map_push_down(struct accmem_buddy *b, unsigned int level,
				 u64 i)
{
	struct accmem_buddy_state *above = &b->state[level][i >> WORD_SHIFT];
	u64 bit = 1ull << (i & WORD_MASK), fill;

	touch(1);
	if (above->some & bit && !(above->full & bit))
		return;
	fill = above->full & bit ? ~0ull : 0;
	touch(1);
	if (level == 1) {
		b->used[i] = fill;
		return;
	}
	b->state[level - 1][i].some = fill;
	b->state[level - 1][i].full = fill;
}

/* Says in the level above what word @i of the level below @level holds. */
static inline void map_sum_up(struct accmem_buddy *b, unsigned int level, u64 i)
{
	struct accmem_buddy_state *above = &b->state[level][i >> WORD_SHIFT];
	u64 bit = 1ull << (i & WORD_MASK), some, full;

	touch(1);
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
static inline void map_fill(struct accmem_buddy *b, unsigned int level, u64 i,
			    unsigned int first, unsigned int last, bool set)
{
	u64 mask = bits_mask(first, last - first + 1);
	struct accmem_buddy_state *s;

	touch(1);
	if (!level) {
		b->used[i] = with_bits(b->used[i], mask, set);
		return;
	}
	s = &b->state[level][i];
	s->some = with_bits(s->some, mask, set);
	s->full = with_bits(s->full, mask, set);
}

/* Bits @first to @last of @level, without the words that lie in between */
static inline void map_fill_ends(struct accmem_buddy *b, unsigned int level,
				 u64 first, u64 last, bool set)
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
static inline void map_fill_between(struct accmem_buddy *b, unsigned int level,
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
static inline bool map_is_mixed(const struct accmem_buddy *b,
				unsigned int level, u64 i)
{
	const struct accmem_buddy_state *s = &b->state[level][i >> WORD_SHIFT];

	return (s->some & ~s->full) >> (i & WORD_MASK) & 1;
}

/* Was it mixed, and is it still? @level is above the first. */
static inline bool map_stays_mixed(const struct accmem_buddy *b,
				   unsigned int level, u64 i)
{
	const struct accmem_buddy_state *s = &b->state[level - 1][i];

	return s->some && ~s->full && map_is_mixed(b, level, i);
}

/*
 * The lowest level, from @least up, whose word for @pos is true: what lies below
 * is alike, or it is @least.
 */
static inline unsigned int map_depth_from(const struct accmem_buddy *b,
					  unsigned int least, u64 pos)
{
	unsigned int level = b->map_top;

	while (level > least &&
	       map_is_mixed(b, level, pos >> map_shift(level))) {
		touch(1);
		level--;
	}
	return level;
}

static inline unsigned int map_depth(const struct accmem_buddy *b, u64 pos)
{
	return map_depth_from(b, 0, pos);
}

static inline bool is_one_word(u64 lo, u64 hi)
{
	return lo >> WORD_SHIFT == (hi - 1) >> WORD_SHIFT;
}

/* Does one word of level 1 speak of it? */
static inline bool is_near(u64 lo, u64 hi)
{
	return lo >> map_shift(2) == (hi - 1) >> map_shift(2);
}

/*
 * From where [@lo, @hi) is looked at and changed: level 0 where it is part of a
 * mixed word; else the lowest level from 1 up whose word for @lo is true. Which of
 * several words are mixed cannot be predicted, so there is no branch for that.
 */
static inline unsigned int map_level(const struct accmem_buddy *b, u64 lo,
				     u64 hi)
{
	return map_depth_from(b, !is_one_word(lo, hi), lo);
}

/* From @level up, which is above the first, after word @i below has changed */
static inline void map_sum_up_from(struct accmem_buddy *b, unsigned int level,
				   u64 i)
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
static inline void map_change_word(struct accmem_buddy *b, u64 i, u64 mask,
				   bool used, struct accmem_buddy_state *above)
{
	u64 bit = 1ull << (i & WORD_MASK), word = b->used[i];

	touch(1);
	word = above->some & bit ? word : 0;
	word = above->full & bit ? ~0ull : word;
	word = with_bits(word, mask, used);
	b->used[i] = word;
	above->some = (above->some & ~bit) | (word ? bit : 0);
	above->full = (above->full & ~bit) | (~word ? 0 : bit);
}

/* map_set() in a word that is mixed and stays it; whether it does */
static inline bool map_set_mixed(struct accmem_buddy *b, u64 lo, u64 hi,
				 bool used)
{
	u64 mask = bits_mask(lo & WORD_MASK, hi - lo);
	u64 word = with_bits(b->used[lo >> WORD_SHIFT], mask, used);

	touch(1);
	if (!word || !~word)
		return false;
	b->used[lo >> WORD_SHIFT] = word;
	return true;
}

/* map_set() for granules of which one word of level 1 speaks */
static __always_inline void map_set_near(struct accmem_buddy *b,
					 unsigned int level, u64 lo, u64 last,
					 bool used)
{
	u64 left = lo >> WORD_SHIFT, right = last >> WORD_SHIFT, mask;
	struct accmem_buddy_state *s = &b->state[1][left >> WORD_SHIFT];
	bool mixed = level < 2;

	for (; level > 1; level--)
		map_push_down(b, level, lo >> map_shift(level));
	touch(2);
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
static noinline void map_set_far(struct accmem_buddy *b, u64 lo, u64 last,
				 bool used)
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
static inline bool is_side_by_side(u64 lo, u64 hi)
{
	return ((hi - 1) >> map_shift(2)) - (lo >> map_shift(2)) == 1;
}

/* map_set() for these */
static noinline void map_set_two(struct accmem_buddy *b, unsigned int level,
				 u64 lo, u64 hi, bool used)
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
static __always_inline void map_set(struct accmem_buddy *b, unsigned int level,
				    u64 lo, u64 hi, bool used)
{
	if (!level && map_set_mixed(b, lo, hi, used))
		return;
	if (is_near(lo, hi))
		map_set_near(b, level, lo, hi - 1, used);
	else if (is_side_by_side(lo, hi))
		map_set_two(b, level, lo, hi, used);
	else
		map_set_far(b, lo, hi - 1, used);
}

/* Of word @i of @level the bits below which something is used, or free */
static inline u64 map_any(const struct accmem_buddy *b, unsigned int level,
			  u64 i, bool used)
{
	touch(1);
	if (!level)
		return used ? b->used[i] : ~b->used[i];
	return used ? b->state[level][i].some : ~b->state[level][i].full;
}

/* Is all below bit @i of @level used, or free? */
static inline bool map_all(const struct accmem_buddy *b, unsigned int level,
			   u64 i, bool used)
{
	const struct accmem_buddy_state *s;

	if (!level)
		return true;
	s = &b->state[level][i >> WORD_SHIFT];
	return (used ? s->full : ~s->some) >> (i & WORD_MASK) & 1;
}

/* The highest level in which a word borders on @pos, from @level up */
static inline unsigned int map_climb(const struct accmem_buddy *b, u64 pos,
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
static __always_inline u64 map_next(const struct accmem_buddy *b,
				    unsigned int level, u64 pos, bool used)
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
static inline u64 map_word_used(const struct accmem_buddy *b,
				const struct accmem_buddy_state *s, u64 i)
{
	touch(1);
	return b->used[i] | -(s->full >> (i & WORD_MASK) & 1);
}

/*
 * map_is_used() for granules up to @last of which one word of level 1 speaks. If
 * they are part of one word, it is not mixed.
 */
static inline bool map_is_used_near(const struct accmem_buddy *b, u64 lo,
				    u64 last)
{
	u64 left = lo >> WORD_SHIFT, right = last >> WORD_SHIFT, unused;
	const struct accmem_buddy_state *s = &b->state[1][left >> WORD_SHIFT];

	touch(1);
	unused = ~s->some >> (left & WORD_MASK) & 1;
	unused |= ~s->some >> (right & WORD_MASK) & 1;
	unused |= ~map_word_used(b, s, left) & mask_from(lo);
	unused |= ~map_word_used(b, s, right) & mask_up_to(last);
	unused |= ~s->full & words_between(left, right);
	return !unused;
}

/* Are all of [@lo, @hi) used? */
static inline bool map_is_used(const struct accmem_buddy *b, unsigned int level,
			       u64 lo, u64 hi)
{
	if (!level) {
		touch(1);
		return !(~b->used[lo >> WORD_SHIFT] &
			 bits_mask(lo & WORD_MASK, hi - lo));
	}
	if (level == 1 && is_near(lo, hi))
		return map_is_used_near(b, lo, hi - 1);
	return map_next(b, level, lo, false) >= hi;
}

/*
 * One more than the last granule below @pos that is used, or free; 0. @level is
 * not less than map_depth() of the granule before @pos.
 */
static __always_inline u64 map_prev(const struct accmem_buddy *b,
				    unsigned int level, u64 pos, bool used)
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
static inline u64 run_start(const struct accmem_buddy *b, unsigned int level,
			    u64 lo)
{
	u64 i = lo >> WORD_SHIFT, word;

	if (level) {
		word = map_word_used(b, &b->state[1][i >> WORD_SHIFT], i);
	} else {
		touch(1);
		word = b->used[i];
	}
	word &= (1ull << (lo & WORD_MASK)) - 1;
	if (level < 2 && word)
		return (lo & ~(u64)WORD_MASK) + fls64(word);
	return map_prev(b, map_climb(b, lo, level), lo, true);
}

static u64 next_free(const struct accmem_buddy *b, u64 pos)
{
	return map_next(b, b->map_top, pos, false);
}

static u64 next_used(const struct accmem_buddy *b, u64 pos)
{
	return map_next(b, b->map_top, pos, true);
}

/* Where the free run that ends at @pos begins; @pos when none does */
static u64 free_before(const struct accmem_buddy *b, u64 pos)
{
	return map_prev(b, b->map_top, pos, true);
}

/* All is free; what words have past the end reads as used. */
static void map_init(struct accmem_buddy *b)
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

#endif /* ACCMEM_BUDDY_MAP_H */
