/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * In which words free runs of a class of size begin, for accmem_buddy.c only.
 *
 * Most classes have a bitmap of words. Listed classes, whose runs have 128 granules
 * or more, have a list of their words instead, the latest first. It costs no
 * metadata: the second word of such a run is free as a whole, which the map says
 * above it, and so its own 64 bits are there for the links.
 */
#ifndef ACCMEM_BUDDY_CLASSES_H
#define ACCMEM_BUDDY_CLASSES_H

#include <linux/build_bug.h>

#include "accmem_buddy_starts.h"

/*
 * One for each size below 8, then four for each power of two. Which of these a run
 * is cannot be predicted, so there is no branch for it.
 */
static inline unsigned int class_of(u64 n)
{
	unsigned int shift = fls64(n | 4) - 3;

	return (shift << 2) + (n >> shift);
}

/* The least size of a class */
static inline u64 class_size(unsigned int class)
{
	unsigned int shift = max(class >> 2, 1u) - 1;

	return (u64)(class - (shift << 2)) << shift;
}

/* A shorter run may have no word of its own. */
static_assert(4 << ((ACCMEM_BUDDY_LISTED >> 2) - 1) >= 2 << WORD_SHIFT);

static inline bool is_listed(unsigned int class)
{
	return class >= ACCMEM_BUDDY_LISTED;
}

static inline bool has_class(const struct accmem_buddy *b, unsigned int class)
{
	return b->classes[class >> WORD_SHIFT] >> (class & WORD_MASK) & 1;
}

/* The first class from @class on that has a run; ACCMEM_BUDDY_CLASSES if none */
static inline unsigned int next_class(const struct accmem_buddy *b,
				      unsigned int class)
{
	unsigned int i = class >> WORD_SHIFT;
	u64 word = b->classes[i] & ~0ull << (class & WORD_MASK);

	while (!word) {
		if (++i == ARRAY_SIZE(b->classes))
			return ACCMEM_BUDDY_CLASSES;
		word = b->classes[i];
	}
	return (i << WORD_SHIFT) + __ffs64(word);
}

static inline struct starts starts_of(const struct accmem_buddy *b,
				      unsigned int class)
{
	return starts_at(b->index + b->stride * (class - 1), words_for(b->nr));
}

static inline void class_add(struct accmem_buddy *b, unsigned int class)
{
	b->classes[class >> WORD_SHIFT] |= 1ull << (class & WORD_MASK);
}

static inline void class_del(struct accmem_buddy *b, unsigned int class)
{
	b->classes[class >> WORD_SHIFT] &= ~(1ull << (class & WORD_MASK));
}

/* A run of the class begins in word @at. */
static __always_inline void start_add(struct accmem_buddy *b,
				      unsigned int class, u64 at)
{
	if (!starts_add(starts_of(b, class), &b->starts[class], at))
		return;
	touch(1);
	class_add(b, class);
}

/* None does any more, if @gone. */
static __always_inline void start_del(struct accmem_buddy *b,
				      unsigned int class, u64 at, bool gone)
{
	if (!starts_del(starts_of(b, class), &b->starts[class], at, gone))
		return;
	touch(1);
	class_del(b, class);
}

/* Lists */

#define NO_WORD U32_MAX /* of 2^26 at most */

static inline void lists_init(struct accmem_buddy *b)
{
	unsigned int i;

	for (i = 0; i < ACCMEM_BUDDY_CLASSES; i++)
		b->first[i] = NO_WORD;
}

/* The words of the runs before and after the one that begins in word @i */
static inline u32 link_prev(const struct accmem_buddy *b, u64 i)
{
	return b->used[i + 1] >> 32;
}

static inline u32 link_next(const struct accmem_buddy *b, u64 i)
{
	touch(1);
	return b->used[i + 1];
}

static inline void link_set(struct accmem_buddy *b, u64 i, u32 prev, u32 next)
{
	touch(1);
	b->used[i + 1] = (u64)prev << 32 | next;
}

/* A run of a listed class begins in word @i; the map shows it already. */
static void list_add_run(struct accmem_buddy *b, unsigned int class, u32 i)
{
	u32 next = b->first[class];

	touch(2);
	link_set(b, i, NO_WORD, next);
	if (next != NO_WORD)
		link_set(b, next, i, link_next(b, next));
	b->first[class] = i;
	class_add(b, class);
}

/* To be called before the map changes. */
static void list_del_run(struct accmem_buddy *b, unsigned int class, u32 i)
{
	u32 prev = link_prev(b, i), next = link_next(b, i);

	if (next != NO_WORD)
		link_set(b, next, prev, link_next(b, next));
	if (prev != NO_WORD) {
		link_set(b, prev, link_prev(b, prev), next);
		return;
	}
	touch(1);
	b->first[class] = next;
	if (next == NO_WORD)
		class_del(b, class);
}

#endif /* ACCMEM_BUDDY_CLASSES_H */
