/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * In which words free runs of a class of size begin, for accmem_buddy.c only.
 *
 * Most classes have a bitmap, with a bit a word, and a bit for 64 of its words
 * above. Listed classes, whose runs have 128 granules or more, have a list of
 * their words instead, the latest first. It costs no metadata: the second word
 * of such a run is free as a whole, which the map says above it, and so its own
 * 64 bits are there for the links.
 */
#ifndef ACCMEM_BUDDY_CLASSES_H
#define ACCMEM_BUDDY_CLASSES_H

#include <linux/build_bug.h>

#include "accmem_buddy_map.h"

#define NOWHERE (~0ull)

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

/**
 * struct starts - one class's bitmap of words, of a level
 * @words: its words, below the topmost level
 * @nr: how many; the topmost level has one, which is in the instance
 */
struct starts {
	u64 *words;
	u64 nr;
};

static inline struct starts starts_of(const struct accmem_buddy *b,
				      unsigned int class)
{
	struct starts p;

	p.nr = words_for(words_for(b->nr));
	p.words = b->index + b->stride * (class - 1);
	return p;
}

static inline struct starts starts_above(struct starts p)
{
	p.words += p.nr;
	p.nr = words_for(p.nr);
	return p;
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
static void start_add(struct accmem_buddy *b, unsigned int class, u64 at)
{
	struct starts p = starts_of(b, class);
	u64 old;

	for (; p.nr > 1; p = starts_above(p)) {
		touch(1);
		old = p.words[at >> WORD_SHIFT];
		p.words[at >> WORD_SHIFT] = old | 1ull << (at & WORD_MASK);
		if (old)
			return;
		at >>= WORD_SHIFT;
	}
	touch(2);
	b->starts[class] |= 1ull << at;
	class_add(b, class);
}

/* None does any more. */
static void start_del(struct accmem_buddy *b, unsigned int class, u64 at)
{
	struct starts p = starts_of(b, class);

	for (; p.nr > 1; p = starts_above(p)) {
		touch(1);
		p.words[at >> WORD_SHIFT] &= ~(1ull << (at & WORD_MASK));
		if (p.words[at >> WORD_SHIFT])
			return;
		at >>= WORD_SHIFT;
	}
	touch(2);
	b->starts[class] &= ~(1ull << at);
	if (!b->starts[class])
		class_del(b, class);
}

/**
 * struct walk - through the words where runs of a class begin, upwards
 * @level: bitmaps from the lowest level up
 * @word: what is left of a word of each level
 * @at: which word that is
 * @top: the topmost level
 */
struct walk {
	u64 *level[ACCMEM_BUDDY_LEVELS];
	u64 word[ACCMEM_BUDDY_LEVELS];
	u64 at[ACCMEM_BUDDY_LEVELS];
	unsigned int top;
};

static inline void walk_init(const struct accmem_buddy *b, struct walk *w,
			     unsigned int class)
{
	struct starts p = starts_of(b, class);
	unsigned int level;

	for (level = 0; p.nr > 1; p = starts_above(p)) {
		w->word[level] = 0;
		w->level[level++] = p.words;
	}
	touch(1);
	w->top = level;
	w->word[level] = b->starts[class];
	w->at[level] = 0;
}

/* The next word where a run of the class begins; NOWHERE */
static inline u64 walk_next(struct walk *w)
{
	unsigned int level = 0;
	u64 at;

	while (!w->word[level])
		if (level++ == w->top)
			return NOWHERE;
	for (;;) {
		at = (w->at[level] << WORD_SHIFT) + __ffs64(w->word[level]);
		w->word[level] &= w->word[level] - 1;
		if (!level--)
			return at;
		touch(1);
		w->at[level] = at;
		w->word[level] = w->level[level][at];
	}
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
