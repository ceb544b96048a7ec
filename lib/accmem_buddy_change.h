/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * How free runs change, for accmem_buddy.c only: granules are cut from one, or
 * become one with their neighbours. Both see to it that the map, the indexes, the
 * wilderness and the counts say the same.
 */
#ifndef ACCMEM_BUDDY_CHANGE_H
#define ACCMEM_BUDDY_CHANGE_H

#include "accmem_buddy_marks.h"
#include "accmem_buddy_place.h"

static inline void account_take(struct accmem_buddy *b, u64 lo, u64 n)
{
	if (b->nr_free_dirty)
		b->nr_free_dirty -= count_dirty(b, lo, lo + n);
	if (n >= b->large)
		b->nr_large = min(b->nr_large, b->nr - b->nr_free) + n;
	b->nr_free -= n;
}

static inline void account_give(struct accmem_buddy *b, u64 lo, u64 n)
{
	if (b->nr_dirty)
		b->nr_free_dirty += count_dirty(b, lo, lo + n);
	b->nr_free += n;
	/* What is given back whole was not always taken so: never below 0 */
	if (n >= b->large)
		b->nr_large -= min(n, b->nr_large);
}

/* A run is the wilderness from now on; there is none, or it was part of this. */
static inline void wild_set(struct accmem_buddy *b, const struct span *run)
{
	b->wild_start = run->start;
	b->wild_size = run->size;
}

/* Cuts @n granules out of a free run: what is left of it are up to two. */
static void cut(struct accmem_buddy *b, const struct spot *spot, u64 n)
{
	const struct span *run = &spot->run;
	u64 end = run->start + run->size, stop = spot->at + n;
	struct span before = { run->start, spot->at - run->start };
	struct span after = { stop, end - stop }, none = {};
	struct gone gone = { .word = NOWHERE }, no_other = gone;
	bool wild = is_wild(b, run);
	unsigned int level;

	if (!wild)
		run_going(b, run, &none, &gone);
	/* where a run begins inside a word, the word has what is used as well */
	level = !is_one_word(spot->at, stop);
	if (spot->at != run->start || !(spot->at & WORD_MASK))
		level = map_level(b, spot->at, stop);
	map_set(b, level, spot->at, stop, true);
	/* at the other ends of these the map has what it had */
	if (before.size)
		run_show_end(b, &before);
	if (after.size)
		run_show_start(b, &after);
	if (wild) {
		if (before.size > after.size)
			swap(before, after);
		wild_set(b, &after);
		if (before.size)
			run_add(b, &before, &gone, &no_other);
		return;
	}
	if (before.size)
		run_add(b, &before, &gone, &no_other);
	if (after.size)
		run_add(b, &after, &gone, &no_other);
	run_gone(b, &gone);
}

/* If a run is the wilderness, it is none that the indexes have. */
static inline bool leave_wild(const struct accmem_buddy *b, struct span *run)
{
	if (!run->size || !is_wild(b, run))
		return false;
	run->size = 0;
	return true;
}

/* A run of @size granules is no more in word @i, whose runs @g has. */
static inline void class_left(struct accmem_buddy *b, const struct begun *g,
			      u64 i, u64 size)
{
	unsigned int class = class_of(size);

	start_del(b, class, i, !begin_class(g, class));
}

/*
 * merge() of a part of a mixed word, where the run that comes of it neither begins
 * nor ends with the word, and where neither it nor a neighbour is the wilderness:
 * what is free before and after this word has nothing to do with it.
 */
static noinline bool merge_inside(struct accmem_buddy *b, u64 lo, u64 n)
{
	unsigned int bit = lo & WORD_MASK, first;
	u64 i = lo >> WORD_SHIFT, used, left, right, size;
	struct begun g = {};

	touch(1);
	used = b->used[i] & ~bits_mask(bit, n);
	first = fls64(used & ~mask_from(lo));
	if (!first || !(used >> bit) || b->wild_start >> WORD_SHIFT == i)
		return false;
	left = bit - first;
	right = __ffs64(used >> bit) - n;
	size = left + n + right;
	if (size > b->wild_size)
		return false;
	b->used[i] = used;
	start_add(b, class_of(size), i);
	if (left || right)
		g = begun_in_mixed(b, i);
	if (left)
		class_left(b, &g, i, left);
	if (right)
		class_left(b, &g, i, right);
	touch(1);
	if (b->longest[0][i] < size)
		longest_raise(b, i, size);
	return true;
}

/* merge() where it may be anywhere */
static noinline void merge_across(struct accmem_buddy *b, unsigned int level,
				  u64 lo, u64 n)
{
	struct span left, right, run, wild = wilderness(b);
	struct gone left_gone = { .word = NOWHERE }, right_gone = left_gone;
	struct gone no_gone = left_gone;
	bool in_wild, displaces;
	u64 hi = lo + n;

	right.start = hi;
	right.size = size_from(b, hi);
	run.start = run_start(b, level, lo);
	run.size = hi + right.size - run.start;
	left.start = run.start;
	left.size = lo - run.start;
	in_wild = leave_wild(b, &left) || leave_wild(b, &right);
	if (left.size)
		run_going(b, &left, &right, &left_gone);
	if (right.size)
		run_going(b, &right, &left, &right_gone);
	map_set(b, level, lo, hi, false);
	displaces = !in_wild && run.size > wild.size;
	run_show(b, &run);
	if (in_wild || displaces)
		wild_set(b, &run);
	else
		run_add(b, &run, &left_gone, &right_gone);
	run_gone(b, &left_gone);
	run_gone(b, &right_gone);
	if (displaces && wild.size)
		run_add(b, &wild, &no_gone, &no_gone);
}

/*
 * Makes used granules free, in one run with both neighbours. @level is
 * map_level() of them.
 */
static inline void merge(struct accmem_buddy *b, unsigned int level, u64 lo,
			 u64 n)
{
	bool at_end = !(lo & WORD_MASK) || !((lo + n) & WORD_MASK);

	if (level || at_end || !merge_inside(b, lo, n))
		merge_across(b, level, lo, n);
}

static void take(struct accmem_buddy *b, const struct spot *spot, u64 n)
{
	account_take(b, spot->at, n);
	cut(b, spot, n);
}

static void merge_at(struct accmem_buddy *b, u64 lo, u64 n)
{
	merge(b, map_level(b, lo, lo + n), lo, n);
}

#endif /* ACCMEM_BUDDY_CHANGE_H */
