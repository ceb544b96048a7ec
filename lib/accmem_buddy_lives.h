/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * How long big blocks live, for accmem_buddy.c only: foreseen, so that placement
 * can keep those that stay apart from those that go.
 *
 * A program that repeats itself asks for the same sizes and gives them back in the
 * same order, and each block lives about as long as the last one in its place. A
 * place is the class of size of a request and the latest events before it: big
 * blocks that were made or given back. Each has a lesson, the longest lifetime that
 * was seen there lately; time is counted in events. Where nothing was learned yet a
 * block is taken for one that stays, as programs begin with what they keep.
 *
 * The range has units, of which every big block has a whole one, wherever it
 * lies. Its first and its last one are labelled with its place and its birth. That
 * costs no metadata: the first word of the unit is wholly used, which the map says
 * above it, and so its own 64 bits are there for the label. Labels are hints. What is
 * given back in parts leaves some that are wrong, until a big block begins or ends
 * in that unit again; they change where a request is served, but not whether.
 */
#ifndef ACCMEM_BUDDY_LIVES_H
#define ACCMEM_BUDDY_LIVES_H

#include <linux/hash.h>
#include <linux/log2.h>

#include "accmem_buddy_classes.h"

/* Bits of an event in the order: a class, and whether it ends; of four in all */
#define EVENT_SHIFT 8
#define EVENT_ENDS 0x80

static_assert(ACCMEM_BUDDY_CLASSES <= EVENT_ENDS);

/* Events that a block which stays lives through, at least */
#define LIFE_STAYS 32

/* A lesson is forgotten by so many classes at once: an octave. */
#define LESSON_FADES 4

static inline unsigned int unit_shift(u64 nr)
{
	unsigned int shift = WORD_SHIFT;

	while (nr >> shift > ACCMEM_BUDDY_UNITS)
		shift++;
	return shift;
}

/* Has a block of @n granules a whole unit, wherever it lies? */
static inline bool is_big(const struct accmem_buddy *b, u64 n)
{
	return n >= b->big;
}

/* The place of a big request that would come now */
static inline u16 life_place(const struct accmem_buddy *b, u64 n)
{
	return hash_32(b->order << EVENT_SHIFT | class_of(n),
		       ilog2(ACCMEM_BUDDY_LESSONS));
}

static inline void life_event(struct accmem_buddy *b, unsigned int event)
{
	b->order = b->order << EVENT_SHIFT | event;
	b->now++;
}

/* Does a block of @age stay that was made in @place? */
static inline bool life_stays(const struct accmem_buddy *b, u16 place, u32 age)
{
	u64 life = class_size(b->lessons[place]);

	touch(1);
	return !life || life >= (u64)age + LIFE_STAYS;
}

/* Labels */

static inline u64 *label_of(const struct accmem_buddy *b, u64 unit)
{
	touch(1);
	return &b->used[unit << (b->unit_shift - WORD_SHIFT)];
}

static inline bool has_label(const struct accmem_buddy *b, u64 unit)
{
	touch(1);
	return unit < ACCMEM_BUDDY_UNITS &&
	       b->labelled[unit >> WORD_SHIFT] >> (unit & WORD_MASK) & 1;
}

static inline u16 label_place(u64 label)
{
	return label & (ACCMEM_BUDDY_LESSONS - 1);
}

static inline u32 label_age(const struct accmem_buddy *b, u64 label)
{
	return b->now - (u32)(label >> 32);
}

/* The first whole unit from granule @lo on, and the one after the last below @hi */
static inline u64 unit_from(const struct accmem_buddy *b, u64 lo)
{
	return (lo + (1ull << b->unit_shift) - 1) >> b->unit_shift;
}

static inline u64 unit_below(const struct accmem_buddy *b, u64 hi)
{
	return hi >> b->unit_shift;
}

static inline void label_set(struct accmem_buddy *b, u64 unit, u64 label)
{
	touch(1);
	b->labelled[unit >> WORD_SHIFT] |= 1ull << (unit & WORD_MASK);
	*label_of(b, unit) = label;
}

static inline void label_clear(struct accmem_buddy *b, u64 unit)
{
	touch(1);
	b->labelled[unit >> WORD_SHIFT] &= ~(1ull << (unit & WORD_MASK));
}

static inline bool unit_stays(const struct accmem_buddy *b, u64 unit)
{
	u64 label;

	if (!has_label(b, unit))
		return false;
	label = *label_of(b, unit);
	return life_stays(b, label_place(label), label_age(b, label));
}

/* Does a big block below granule @lo stay, or above @hi? Others go. */
static inline bool stays_below(const struct accmem_buddy *b, u64 lo)
{
	u64 unit = unit_below(b, lo);

	return unit && unit_stays(b, unit - 1);
}

static inline bool stays_above(const struct accmem_buddy *b, u64 hi)
{
	return unit_stays(b, unit_from(b, hi));
}

/* A big block is made; the map has it already. */
static noinline void life_begins(struct accmem_buddy *b, u64 lo, u64 n)
{
	u64 label = (u64)b->now << 32 | life_place(b, n);

	life_event(b, class_of(n));
	label_set(b, unit_from(b, lo), label);
	label_set(b, unit_below(b, lo + n) - 1, label);
}

/* It is given back: to be called before the map changes. */
static noinline void life_ends(struct accmem_buddy *b, u64 lo, u64 n)
{
	u64 first = unit_from(b, lo), label;
	unsigned int class, faded;
	u8 *lesson;

	life_event(b, EVENT_ENDS | class_of(n));
	if (has_label(b, first)) {
		label = *label_of(b, first);
		class = class_of(label_age(b, label));
		lesson = &b->lessons[label_place(label)];
		faded = *lesson - min_t(unsigned int, *lesson, LESSON_FADES);
		touch(1);
		*lesson = max(class, faded);
	}
	label_clear(b, first);
	label_clear(b, unit_below(b, lo + n) - 1);
}

#endif /* ACCMEM_BUDDY_LIVES_H */
