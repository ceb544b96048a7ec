// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Dirty marks: a separate map with a bit for each granule that may not be zero.
 *
 * The marks are independent of the free runs: a change of a mark does not change a run,
 * and no search for a run reads the marks.
 */

/* Is [@offset, @offset + @size) a part of the range? */
static bool dirty_is_part(const struct buddy *b, u64 offset, u64 size)
{
	u64 lo = offset >> ACCMEM_GRANULE_SHIFT;
	u64 n = size >> ACCMEM_GRANULE_SHIFT;

	return !WARN_ON_ONCE((offset | size) & (ACCMEM_GRANULE - 1)) &&
	       !WARN_ON_ONCE(lo > b->nr || n > b->nr - lo) && n;
}

void accmem_buddy_mark_held(struct accmem_buddy *range, u64 offset, u64 size,
			    bool dirty)
{
	struct buddy *b = buddy_of(range);
	u64 lo = offset >> ACCMEM_GRANULE_SHIFT;
	u64 n = size >> ACCMEM_GRANULE_SHIFT, target = dirty ? n : 0, marked;
	unsigned int level;

	if (!dirty_is_part(b, offset, size))
		return;
	level = map_level(&b->dirty, lo, lo + n);
	marked = map_count_at(&b->dirty, level, lo, lo + n);
	if (marked == target)
		return;
	b->nr_dirty += target - marked;
	map_set(&b->dirty, level, lo, lo + n, dirty);
}

void accmem_buddy_mark_dirty(struct accmem_buddy *range, u64 offset, u64 size)
{
	u64 lo = offset >> ACCMEM_GRANULE_SHIFT, end;
	u64 hi = lo + (size >> ACCMEM_GRANULE_SHIFT);
	struct buddy *b = buddy_of(range);

	if (!dirty_is_part(b, offset, size))
		return;
	if (cached_overlaps(b, lo, hi))
		cached_merge_all(b);
	while ((lo = map_next(&b->used, lo, false)) < hi) {
		end = min(hi, map_next(&b->used, lo, true));
		b->nr_free_dirty += end - lo - map_count(&b->dirty, lo, end);
		lo = end;
	}
	accmem_buddy_mark_held(range, offset, size, true);
}

/*
 * Narrow [*@lo, *@hi) to its first dirty run; the interval may be part of one word.
 */
static bool dirty_next(const struct buddy *b, u64 *lo, u64 *hi)
{
	unsigned int level = map_level(&b->dirty, *lo, *hi);
	u64 bits;

	if (map_one_word(*lo, *hi)) {
		bits = map_bits(&b->dirty, level, *lo, *hi);
		if (!bits)
			return false;
		*lo += __ffs64(bits);
		*hi = *lo + low_ones(bits >> __ffs64(bits));
		return true;
	}
	*lo = map_find(&b->dirty, level, *lo, true, false);
	if (*lo >= *hi)
		return false;
	*hi = min(*hi, map_next(&b->dirty, *lo, false));
	return true;
}

bool accmem_buddy_next_dirty(const struct accmem_buddy *range, u64 offset,
			     u64 size, u64 max, struct accmem_run *run)
{
	const struct buddy *b = buddy_of(range);
	u64 lo = offset >> ACCMEM_GRANULE_SHIFT, hi;
	u64 n = size >> ACCMEM_GRANULE_SHIFT;
	u64 most = max >> ACCMEM_GRANULE_SHIFT;

	if (!b->nr_dirty || lo >= b->nr || !n || !most)
		return false;
	hi = lo + min(n, b->nr - lo);
	if (!dirty_next(b, &lo, &hi))
		return false;
	run_bytes(run, lo, lo + min(hi - lo, most));
	return true;
}

bool accmem_buddy_is_dirty(const struct accmem_buddy *range, u64 offset,
			   u64 size)
{
	const struct buddy *b = buddy_of(range);
	u64 lo = offset >> ACCMEM_GRANULE_SHIFT;
	u64 n = size >> ACCMEM_GRANULE_SHIFT;

	return b->nr_dirty && lo < b->nr && n <= b->nr - lo && n &&
	       map_is_set(&b->dirty, map_level(&b->dirty, lo, lo + n), lo,
			  lo + n);
}

u64 accmem_buddy_free_dirty_bytes(const struct accmem_buddy *range)
{
	return buddy_of(range)->nr_free_dirty << ACCMEM_GRANULE_SHIFT;
}

/* Free and dirty runs that one call tries */
#define ALLOC_DIRTY_STEPS 32

int accmem_buddy_alloc_dirty(struct accmem_buddy *range, u64 max,
			     struct accmem_run *run)
{
	struct buddy *b = buddy_of(range);
	u64 limit = max >> ACCMEM_GRANULE_SHIFT, lo, hi;
	unsigned int steps;
	struct candidate cand;

	if (!limit)
		return -EINVAL;
	if (!b->nr_free_dirty)
		return -ENOENT;
	cached_merge_all(b);
	for (steps = 0; steps < ALLOC_DIRTY_STEPS; steps++) {
		lo = map_next(&b->used, b->cursor, false);
		lo = map_next(&b->dirty, lo, true);
		b->cursor = lo < b->nr ? lo : 0;
		cand.run = index_run_around(b, lo);
		if (!cand.run.size)
			continue;
		cand.at = lo;
		hi = min(lo + limit, cand.run.start + cand.run.size);
		hi = min(hi, map_next(&b->dirty, lo, false));
		split_alloc(b, &cand, hi - lo, ACCMEM_BUDDY_CLEANER);
		lifetime_forget(b, lo);
		run_bytes(run, lo, hi);
		b->cursor = hi < b->nr ? hi : 0;
		return 0;
	}
	return -EAGAIN;
}
