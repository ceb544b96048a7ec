// SPDX-License-Identifier: GPL-2.0
/*
 * Failed memory: the failed granules of a carveout.
 *
 * A failed granule is pending while it is in use, and retired when it is freed. A granule
 * that was free when it failed is retired at once. Retired granules count as bytes in the
 * state ACCMEM_RETIRED, and the allocator never hands them out. A granule stays retired
 * until the carveout is destroyed.
 *
 * The records are values of an xarray, by number of the granule: the cause, and whether the
 * granule is retired.
 *
 * Locking: the carveout's lock guards the records and the counts. Readers of the records
 * need no lock.
 */
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/xarray.h>

#include "core/carveout.h"
#include "core/failed.h"

#define FAILED_IS_RETIRED BIT(8) /* in a value, besides the cause */
#define FAILED_BATCH 64u /* granules that one part contains at most */

static unsigned long failed_index(u64 offset)
{
	return offset >> ACCMEM_GRANULE_SHIFT;
}

/* The entry exists, so that no memory is allocated. */
static void failed_set(struct accmem_carveout *cv, u64 offset,
		       unsigned long value)
{
	void *old;

	lockdep_assert_held(&cv->lock);
	old = xa_store(&cv->failed.granules, failed_index(offset),
		       xa_mk_value(value), GFP_NOWAIT);
	WARN_ON_ONCE(xa_is_err(old));
}

static void failed_retire_one(struct accmem_carveout *cv, u64 offset,
			      unsigned long cause)
{
	failed_set(cv, offset, cause | FAILED_IS_RETIRED);
	WRITE_ONCE(cv->bytes[ACCMEM_RETIRED],
		   cv->bytes[ACCMEM_RETIRED] + ACCMEM_GRANULE);
}

static void failed_record(struct accmem_carveout *cv, u64 offset,
			  enum accmem_cause cause)
{
	lockdep_assert_held(&cv->lock);
	WRITE_ONCE(cv->failed.nr, cv->failed.nr + 1);
	if (!accmem_buddy_retire(&cv->buddy, offset)) {
		failed_retire_one(cv, offset, cause);
		return;
	}
	failed_set(cv, offset, cause);
	cv->failed.pending += ACCMEM_GRANULE;
}

/**
 * accmem_failed_add() - record that a granule has failed
 * @cv: the carveout
 * @offset: the granule, in bytes
 * @cause: how the driver knows
 *
 * If the granule is free, it is retired.
 *
 * Context: Process context. The caller holds accmem_failed.lock. Takes and releases the
 * carveout's lock. May sleep.
 * Return: 1 if the granule is pending, 0 if it is retired; -EEXIST if it was recorded
 * before; -ENOMEM, which is counted in accmem_failed.lost.
 */
int accmem_failed_add(struct accmem_carveout *cv, u64 offset,
		      enum accmem_cause cause)
{
	int err;
	u64 pending;

	lockdep_assert_held(&cv->failed.lock);
	if (xa_load(&cv->failed.granules, failed_index(offset)))
		return -EEXIST;
	err = xa_reserve(&cv->failed.granules, failed_index(offset),
			 GFP_KERNEL);
	accmem_carveout_lock(cv);
	pending = cv->failed.pending;
	if (err)
		cv->failed.lost += ACCMEM_GRANULE;
	else
		failed_record(cv, offset, cause);
	pending = cv->failed.pending - pending;
	accmem_carveout_unlock(cv);
	return err ?: !!pending;
}

/**
 * accmem_failed_next() - find the next failed granules
 * @cv: the carveout
 * @offset: offset at which the search begins
 * @end: offset at which it ends
 * @most: bytes of @run, at most
 * @run: out: the granules from the first on that have failed without a gap, for the same
 *	cause, and are in the same state
 *
 * Context: Any context. Takes no lock. Does not sleep.
 * Return: true if there are any.
 */
bool accmem_failed_next(struct accmem_carveout *cv, u64 offset, u64 end,
			u64 most, struct accmem_failed_run *run)
{
	unsigned long last = failed_index(end - 1);
	unsigned long first = failed_index(offset), stop;
	void *found;

	if (offset >= end)
		return false;
	found = xa_find(&cv->failed.granules, &first, last, XA_PRESENT);
	if (!found)
		return false;
	last = min(last, first + (unsigned long)failed_index(most) - 1);
	for (stop = first + 1; stop <= last; stop++) {
		if (xa_load(&cv->failed.granules, stop) != found)
			break;
	}
	run->start = (u64)first << ACCMEM_GRANULE_SHIFT;
	run->size = (u64)(stop - first) << ACCMEM_GRANULE_SHIFT;
	run->cause = xa_to_value(found) & ~FAILED_IS_RETIRED;
	run->is_retired = xa_to_value(found) & FAILED_IS_RETIRED;
	return true;
}

/**
 * accmem_failed_in_bo() - check a part of a buffer object
 * @bo: the buffer object
 * @offset: offset in @bo, in bytes
 * @size: bytes; what is beyond the end of @bo has not failed
 *
 * Callers use accmem_bo_has_failed(), which costs less while nothing has failed.
 *
 * Context: Takes and releases the carveout's lock, which guards the runs. Does not sleep.
 * Return: true if a granule of the part has failed.
 */
bool accmem_failed_in_bo(struct accmem_bo *bo, u64 offset, u64 size)
{
	u64 end = offset + size, at = 0, from, to;
	struct accmem_carveout *cv = bo->cv;
	struct accmem_failed_run failed;
	const struct accmem_run *run;
	bool found = false, more = true;
	unsigned int i = 0, stop;

	/* Between two parts a REALLOC may change the number of runs, but not those before. */
	while (more && !found) {
		accmem_carveout_lock(cv);
		stop = min(bo->nr_runs, i + FAILED_BATCH);
		for (; i < stop && at < end && !found; i++) {
			run = &bo->runs[i];
			from = max(offset, at);
			to = min(end, at + run->size);
			if (from < to)
				found = accmem_failed_next(cv,
							   run->start + from -
								   at,
							   run->start + to - at,
							   ACCMEM_GRANULE,
							   &failed);
			at += run->size;
		}
		more = i < bo->nr_runs && at < end;
		accmem_carveout_unlock(cv);
	}
	return found;
}

/**
 * accmem_failed_cut() - split memory at the borders of failed granules
 * @cv: the carveout
 * @part: in: where the memory starts; out: its first part, of good granules or of failed
 *	ones, of which there are a bounded number
 * @end: where the memory ends
 *
 * Context: The caller holds the carveout's lock, if failed granules must not be added
 * meanwhile. Does not sleep.
 * Return: true if the granules of @part have failed.
 */
bool accmem_failed_cut(struct accmem_carveout *cv, struct accmem_run *part,
		       u64 end)
{
	struct accmem_failed_run run;

	part->size = end - part->start;
	if (!accmem_any_failed(cv) ||
	    !accmem_failed_next(cv, part->start, end,
				FAILED_BATCH * ACCMEM_GRANULE, &run))
		return false;
	if (run.start > part->start) {
		part->size = run.start - part->start;
		return false;
	}
	part->size = run.size;
	return true;
}

/**
 * accmem_failed_retire() - retire failed granules that were just freed
 * @cv: the carveout
 * @run: the granules, all pending
 *
 * Context: The caller holds the carveout's lock since before the free. Does not sleep.
 */
void accmem_failed_retire(struct accmem_carveout *cv,
			  const struct accmem_run *run)
{
	u64 at, end = run->start + run->size;
	void *entry;

	lockdep_assert_held(&cv->lock);
	for (at = run->start; at < end; at += ACCMEM_GRANULE) {
		entry = xa_load(&cv->failed.granules, failed_index(at));
		if (WARN_ON_ONCE(accmem_buddy_retire(&cv->buddy, at)))
			continue;
		failed_retire_one(cv, at, xa_to_value(entry));
		cv->failed.pending -= ACCMEM_GRANULE;
	}
}
