/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Which blocks wait in the order cache, and which of those have to go, for
 * accmem_buddy.c only. What was tried is in EXPERIMENTS.md.
 */
#ifndef ACCMEM_BUDDY_PARK_H
#define ACCMEM_BUDDY_PARK_H

#include "accmem_buddy_cache.h"
#include "accmem_buddy_change.h"

static noinline void unpark_one(struct accmem_buddy *b, u16 id)
{
	u64 n = b->kept[id].n, lo = parked_lend(b, id);

	kept_forget(b, id);
	merge_at(b, lo, n);
}

static void unpark_all(struct accmem_buddy *b)
{
	const struct accmem_buddy_kept *k = NULL;

	while ((k = parked_each(b, k)))
		unpark_one(b, k - b->kept);
	if (b->nr_kept)
		return;
	b->nr_ids = 0;
	b->stack[0] = 0;
}

/* 2 GiB */
#define PARKED_FREE BIT_ULL(19)

/*
 * What is not merged costs room, and the more the smaller a range is. There is none of
 * it while less than this is free, no less than half of the range and no more than
 * three quarters.
 */
static inline u64 parked_free_min(u64 nr)
{
	return clamp_t(u64, PARKED_FREE, nr >> 1, nr - (nr >> 2));
}

static inline bool is_short(const struct accmem_buddy *b)
{
	return b->nr_free < b->short_of;
}

/*
 * Large blocks that wait may be pieces of the room that a larger one needs, or
 * leaves: one of the largest that are smaller goes. Those that are not large, and
 * larger ones, hardly stand in its way.
 */
static inline u16 largest_smaller(struct accmem_buddy *b, u64 n)
{
	u64 large = (b->nr >> (PARKED_SHARE_SHIFT + 2)) + 1;

	n = parked_size(b, large, min_t(u64, n - 1, b->parked_max));
	return n ? b->stack[n] : 0;
}

/*
 * As many blocks came back to a full cache as it holds, with no request between
 * them: nobody waits for blocks. Until a request comes none is parked, and of
 * those that are one goes at a time.
 */
static inline bool is_ebb(const struct accmem_buddy *b)
{
	return b->ebb == b->room;
}

/* Before @n granules are cut from the free runs, or join them */
static void unpark_some(struct accmem_buddy *b, u64 n)
{
	u16 id;

	if (!b->nr_parked)
		return;
	if (is_short(b) || is_ebb(b))
		id = kept_next_out(b, false);
	else
		id = largest_smaller(b, n);
	if (id)
		unpark_one(b, id);
}

/* One block less on the full stacks, but not for another of its size */
static noinline bool make_room(struct accmem_buddy *b, u64 n)
{
	u16 id = kept_next_out(b, false);

	b->ebb++;
	if (!id || b->kept[id].n == n)
		return false;
	unpark_one(b, id);
	return true;
}

/* May a block of @n granules wait now? */
static inline bool has_room(struct accmem_buddy *b, u64 n)
{
	if (n > b->parked_max || is_short(b) || is_ebb(b))
		return false;
	return b->nr_parked != b->room || make_room(b, n);
}

/* Whether a block that was not kept waits now */
static bool park(struct accmem_buddy *b, u64 lo, u64 n)
{
	u16 id = has_room(b, n) ? kept_add(b, lo, n) : 0;

	if (id)
		parked_push(b, id, n);
	return id;
}

#endif /* ACCMEM_BUDDY_PARK_H */
