// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Which freed blocks are parked, and which parked blocks are merged when.
 */

static noinline void parked_merge_one(struct buddy *b, u16 id)
{
	u64 n = b->kept[id].n, lo = parked_lend(b, id);

	kept_forget(b, id);
	change_merge_at(b, lo, n);
}

static void parked_merge_all(struct buddy *b)
{
	const struct kept_block *k = NULL;

	while ((k = parked_each(b, k)))
		parked_merge_one(b, k - b->kept);
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

static inline bool parked_is_short(const struct buddy *b)
{
	return b->nr_free < b->short_of;
}

/*
 * As many blocks came back to a full cache as it holds, with no request between
 * them: nobody waits for blocks. Until a request comes none is parked, and of
 * those that are one goes at a time.
 */
static inline bool parked_only_frees(const struct buddy *b)
{
	return b->frees_since_alloc == b->room;
}

/* Called before free runs change: while no block may be parked, merges one. */
static void parked_merge_some(struct buddy *b)
{
	u16 id = 0;

	if (b->nr_parked && (parked_is_short(b) || parked_only_frees(b)))
		id = kept_next_out(b, false);
	if (id)
		parked_merge_one(b, id);
}

/* One block less on the full stacks, but not for another of its size */
static noinline bool parked_make_room(struct buddy *b, u64 n)
{
	u16 id = kept_next_out(b, false);

	b->frees_since_alloc++;
	if (!id || b->kept[id].n == n)
		return false;
	parked_merge_one(b, id);
	return true;
}

/* May a block of @n granules wait now? */
static inline bool parked_has_room(struct buddy *b, u64 n)
{
	if (n > b->parked_max || parked_is_short(b) || parked_only_frees(b))
		return false;
	return b->nr_parked != b->room || parked_make_room(b, n);
}

/* Whether a block that was not kept waits now */
static bool parked_add(struct buddy *b, u64 lo, u64 n)
{
	u16 id = parked_has_room(b, n) ? kept_add(b, lo, n) : 0;

	if (id)
		parked_push(b, id, n);
	return id;
}
