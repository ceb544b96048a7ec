// SPDX-License-Identifier: GPL-2.0
/*
 * Synchronous clearing: an allocation zeroes its dirty memory.
 *
 * The allocating task first zeroes CLEAR_SYNC_ALONE chunks alone. If more chunks are
 * dirty, it starts work items on other processors, and then the task and the work items
 * each zero the next dirty chunk until none is left.
 *
 * The number of work items has three limits: CLEAR_SYNC_HELPERS, the processors that
 * the task may run on, less one, and for the whole carveout the online processors, less
 * one. At the end the task waits only for work items that have started, so that on a
 * busy machine it zeroes its memory alone.
 *
 * Locking: sync.lock > the carveout's lock.
 */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/workqueue.h>

#include "core/carveout.h"
#include "core/engine.h"
#include "core/revoke.h"
#include "internal.h"
#include "memory/clear.h"

#define CLEAR_SYNC_ALONE 4u /* chunks too few for a work item */
#define CLEAR_SYNC_HELPERS 3u /* work items of one request, at most */

/*
 * struct clear_sync - dirty memory of one request
 * @bo: its buffer object
 * @clear: function that zeroes a run
 * @lock: guards the fields below
 * @at: offset in the carveout up to which the memory was assigned to a task
 * @end: end of the memory; equal to @at when nothing is left to assign
 * @err: error of the first run that could not be cleared, or 0
 */
struct clear_sync {
	struct accmem_bo *bo;
	accmem_clear_run_fn clear;
	struct mutex lock; /* the fields below */
	u64 at;
	u64 end;
	int err;
};

/* A work item that zeroes chunks of one request. */
struct clear_sync_helper {
	struct work_struct work;
	struct clear_sync *sync;
};

/* Find the next dirty chunk from *@at on, and set *@at to its end. */
static bool clear_sync_find(struct accmem_carveout *cv, u64 *at, u64 end,
			    struct accmem_run *dirty)
{
	if (*at >= end || !accmem_clear_next(cv, *at, end - *at, dirty))
		return false;
	*at = dirty->start + dirty->size;
	return true;
}

static bool clear_sync_next(struct clear_sync *sync, struct accmem_run *dirty)
{
	bool found;

	mutex_lock(&sync->lock);
	found = clear_sync_find(sync->bo->cv, &sync->at, sync->end, dirty);
	if (!found)
		sync->end = sync->at;
	mutex_unlock(&sync->lock);
	return found;
}

/* Assign no more memory. @err: the reason, or 0. */
static void clear_sync_end(struct clear_sync *sync, int err)
{
	mutex_lock(&sync->lock);
	sync->end = sync->at;
	sync->err = sync->err ?: err;
	mutex_unlock(&sync->lock);
}

/*
 * Zero a run, by the device or by the processor. @helped: true in a work item, false in
 * the allocating task.
 */
static int clear_sync_clear_run(struct accmem_bo *bo, accmem_clear_run_fn clear,
				const struct accmem_run *dirty, bool helped)
{
	int err = accmem_engine_clear(bo->cv, dirty->start, dirty->size);
	int section = accmem_bo_enter(bo);

	if (section < 0)
		return section;
	if (err)
		err = clear(bo, dirty);
	if (!err)
		accmem_clear_done(bo->cv, dirty, helped);
	accmem_exit(section);
	cond_resched();
	return err;
}

static void clear_sync_work(struct work_struct *work)
{
	struct clear_sync *sync =
		container_of(work, struct clear_sync_helper, work)->sync;
	struct accmem_run dirty;
	int err;

	while (clear_sync_next(sync, &dirty)) {
		err = clear_sync_clear_run(sync->bo, sync->clear, &dirty, true);
		if (err)
			clear_sync_end(sync, err);
	}
}

static bool clear_sync_may_have_helper(struct accmem_carveout *cv)
{
	if (atomic_inc_return(&cv->cleaner.helpers) < (int)num_online_cpus())
		return true;
	atomic_dec(&cv->cleaner.helpers);
	return false;
}

static unsigned int clear_sync_start_helpers(struct clear_sync *sync,
					     struct clear_sync_helper *helpers)
{
	unsigned int most =
		min(cpumask_weight(current->cpus_ptr) - 1, CLEAR_SYNC_HELPERS);
	unsigned int nr;

	for (nr = 0; nr < most && clear_sync_may_have_helper(sync->bo->cv);
	     nr++) {
		helpers[nr].sync = sync;
		INIT_WORK_ONSTACK(&helpers[nr].work, clear_sync_work);
		queue_work(accmem_wq, &helpers[nr].work);
	}
	return nr;
}

static void clear_sync_end_helpers(struct clear_sync *sync,
				   struct clear_sync_helper *helpers,
				   unsigned int nr, int err)
{
	clear_sync_end(sync, err);
	while (nr--) {
		cancel_work_sync(&helpers[nr].work);
		destroy_work_on_stack(&helpers[nr].work);
		atomic_dec(&sync->bo->cv->cleaner.helpers);
	}
}

static noinline_for_stack int
clear_sync_clear_with_help(struct accmem_bo *bo, accmem_clear_run_fn clear,
			   u64 at, u64 end)
{
	struct clear_sync sync = {
		.bo = bo, .clear = clear, .at = at, .end = end
	};
	struct clear_sync_helper helpers[CLEAR_SYNC_HELPERS];
	struct accmem_run dirty;
	unsigned int nr;
	int err = 0;

	mutex_init(&sync.lock);
	nr = clear_sync_start_helpers(&sync, helpers);
	while (!err && clear_sync_next(&sync, &dirty)) {
		err = clear_sync_clear_run(bo, clear, &dirty, false);
		if (fatal_signal_pending(current))
			err = -EINTR;
	}
	clear_sync_end_helpers(&sync, helpers, nr, err);
	mutex_destroy(&sync.lock);
	return sync.err;
}

/**
 * accmem_clear_sync() - zero the dirty parts of newly allocated memory
 * @bo: the buffer object, private to the caller; mapped into the kernel if @clear
 *	needs that
 * @run: a run of @bo
 * @clear: function that zeroes a dirty run
 *
 * The function ends early if the caller is killed.
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 * Return: 0, -EINTR, or the error of @clear.
 */
int accmem_clear_sync(struct accmem_bo *bo, const struct accmem_run *run,
		      accmem_clear_run_fn clear)
{
	u64 at = run->start, end = at + run->size;
	struct accmem_run dirty;
	unsigned int nr;
	int err;

	for (nr = 0; nr < CLEAR_SYNC_ALONE; nr++) {
		if (!clear_sync_find(bo->cv, &at, end, &dirty))
			return 0;
		if (fatal_signal_pending(current))
			return -EINTR;
		err = clear_sync_clear_run(bo, clear, &dirty, false);
		if (err)
			return err;
	}
	return clear_sync_clear_with_help(bo, clear, at, end);
}
