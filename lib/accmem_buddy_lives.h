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
 * A program that does not repeat itself tells less: the larger a block, the sooner
 * it goes. A size times its lifetime is taken for the mean of those that ended.
 *
 * The range has units. A big block has at least the size of one, so that no two
 * begin in the same unit, nor end there: what is known of it is kept by the unit in
 * which it begins. That may be wrong where a block was given back in parts, or with
 * others, until another begins there; it changes where a request is served, but not
 * whether.
 */
#ifndef ACCMEM_BUDDY_LIVES_H
#define ACCMEM_BUDDY_LIVES_H

#include <linux/bits.h>
#include <linux/hash.h>
#include <linux/limits.h>
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

/* Blocks of which the mean is taken, and the most that one counts for */
#define LIFE_MEAN 1024
#define AREA_MAX BIT_ULL(53)

/* Events after which a range that had a large block is one that has none */
#define LARGE_LATELY 1024

/*
 * Events that a block lives as long as nothing is known, and the most otherwise: of
 * two that live as long, the one that is there goes before the one that comes.
 */
#define LIFE_UNKNOWN BIT_ULL(40)

static inline void lives_init(struct accmem_buddy *b)
{
	while ((b->nr - 1) >> b->unit_shift >= ACCMEM_BUDDY_UNITS)
		b->unit_shift++;
	b->large = max(1ull, (b->nr >> 5) + (b->nr >> 7));
}

/* Has a block of @n granules a unit to itself? */
static inline bool is_big(const struct accmem_buddy *b, u64 n)
{
	return n >> b->unit_shift;
}

static inline bool had_large(const struct accmem_buddy *b)
{
	return b->large_at && b->now - b->large_at < LARGE_LATELY;
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
static inline bool place_stays(const struct accmem_buddy *b, u16 place, u32 age)
{
	u64 life = class_size(b->lessons[place]);

	touch(1);
	return !life || life >= (u64)age + LIFE_STAYS;
}

/* The lifetime of a block of @n granules, from its size alone */
static inline u64 size_life(const struct accmem_buddy *b, u64 n)
{
	if (!b->nr_ended)
		return LIFE_UNKNOWN;
	return min(b->sum / b->nr_ended / n, LIFE_UNKNOWN);
}

/* The big block that ends where granule @lo begins; NULL if none is known */
static inline const struct accmem_buddy_life *
life_below(const struct accmem_buddy *b, u64 lo)
{
	const struct accmem_buddy_life *life;

	if (!lo)
		return NULL;
	touch(2);
	life = &b->lives[(lo - 1) >> b->unit_shift];
	life = &b->lives[life->begins];
	return life->n && (u64)life->lo + life->n == lo ? life : NULL;
}

/* The one that begins at granule @hi */
static inline const struct accmem_buddy_life *
life_above(const struct accmem_buddy *b, u64 hi)
{
	const struct accmem_buddy_life *life;

	if (hi == b->nr)
		return NULL;
	touch(1);
	life = &b->lives[hi >> b->unit_shift];
	return life->n && life->lo == hi ? life : NULL;
}

static inline u32 life_age(const struct accmem_buddy *b,
			   const struct accmem_buddy_life *life)
{
	return b->now - life->born;
}

/* What is not known to stay goes. */
static inline bool life_stays(const struct accmem_buddy *b,
			      const struct accmem_buddy_life *life)
{
	return life && place_stays(b, life->place, life_age(b, life));
}

/*
 * How many events it will live on, from its size alone; what is not known stays.
 * One that is overdue lives on for a quarter of its age.
 */
static inline u64 life_rest(const struct accmem_buddy *b,
			    const struct accmem_buddy_life *life)
{
	u64 whole, age;

	if (!life)
		return U64_MAX;
	whole = size_life(b, life->n);
	age = life_age(b, life);
	return whole > age ? whole - age : age / 4;
}

/* A big block is made; it is accounted for. */
static noinline void life_begins(struct accmem_buddy *b, u64 lo, u64 n)
{
	u64 begins = lo >> b->unit_shift, ends = (lo + n - 1) >> b->unit_shift;
	struct accmem_buddy_life *life = &b->lives[begins];

	/* of a range of 2^32 granules that is one block nothing is known: n is 0 */
	touch(2);
	life->lo = lo;
	life->n = n;
	life->place = life_place(b, n);
	b->lives[ends].begins = begins;
	life_event(b, class_of(n));
	life->born = b->now;
	if (n >= b->large)
		b->large_at = b->now;
}

/* It is given back. What is not given back as it was made teaches nothing. */
static noinline void life_ends(struct accmem_buddy *b, u64 lo, u64 n)
{
	struct accmem_buddy_life *life = &b->lives[lo >> b->unit_shift];
	unsigned int class, faded;
	u8 *lesson;
	u64 age;

	touch(1);
	if (life->n != n || life->lo != lo)
		return;
	life->n = 0;
	life_event(b, EVENT_ENDS | class_of(n));
	age = life_age(b, life);
	class = class_of(age);
	lesson = &b->lessons[life->place];
	faded = *lesson - min_t(unsigned int, *lesson, LESSON_FADES);
	touch(2);
	*lesson = max(class, faded);
	if (b->nr_ended == LIFE_MEAN)
		b->sum -= b->sum / LIFE_MEAN;
	else
		b->nr_ended++;
	b->sum += min(age * n, AREA_MAX);
}

/* What begins at @lo now is no block of a request. */
static inline void life_forget(struct accmem_buddy *b, u64 lo)
{
	struct accmem_buddy_life *life = &b->lives[lo >> b->unit_shift];

	touch(1);
	if (life->lo == lo)
		life->n = 0;
}

#endif /* ACCMEM_BUDDY_LIVES_H */
