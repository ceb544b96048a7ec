// SPDX-License-Identifier: GPL-2.0
/*
 * Clearing by the request that gets dirty memory, which waits for it.
 *
 * Dirty chunks are given out one after another. The request takes them itself; when
 * it has cleared some and there are more, work items on other processors take them,
 * too: at most as many as the caller may run on, and no more at a time on a carveout
 * than the machine has processors besides one. None that has not begun by then is
 * waited for, so on a busy machine a request clears its memory alone.
 */
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/workqueue.h>

#include "core/carveout.h"
#include "internal.h"
#include "memory/clear.h"

#define LATE_ALONE 4u /* chunks that are not worth a work item */
#define LATE_HELPERS 3u /* of one request, at most */

/*
 * struct late - what one request has to clear
 * @bo: its memory
 * @clear: how
 * @lock: guards @at and @end; above the carveout's lock
 * @at: what lies before has been given out
 * @end: where it ends; @at when nothing more is given out
 */
struct late {
	struct accmem_bo *bo;
	accmem_clear_run_fn clear;
	struct mutex lock; /* what has been given out */
	u64 at;
	u64 end;
};

/* a work item that clears some of it */
struct clear_sync_helper {
	struct work_struct work;
	struct late *late;
};

/* The next dirty chunk from *@at on; *@at is behind it then */
static bool clear_sync_find(struct accmem_carveout *cv, u64 *at, u64 end,
			    struct accmem_run *dirty)
{
	if (*at >= end || !accmem_clear_next(cv, *at, end - *at, dirty))
		return false;
	*at = dirty->start + dirty->size;
	return true;
}

static bool clear_sync_next(struct late *late, struct accmem_run *dirty)
{
	bool found;

	mutex_lock(&late->lock);
	found = clear_sync_find(late->bo->cv, &late->at, late->end, dirty);
	if (!found)
		late->end = late->at;
	mutex_unlock(&late->lock);
	return found;
}

static void clear_sync_end(struct late *late)
{
	mutex_lock(&late->lock);
	late->end = late->at;
	mutex_unlock(&late->lock);
}

/* @helped: by somebody else than the request */
static void clear_sync_clear_run(struct accmem_bo *bo,
				 accmem_clear_run_fn clear,
				 const struct accmem_run *dirty, bool helped)
{
	clear(bo, dirty);
	accmem_clear_done(bo->cv, dirty, helped);
	cond_resched();
}

static void clear_sync_work(struct work_struct *work)
{
	struct late *late =
		container_of(work, struct clear_sync_helper, work)->late;
	struct accmem_run dirty;

	while (clear_sync_next(late, &dirty))
		clear_sync_clear_run(late->bo, late->clear, &dirty, true);
}

static bool clear_sync_may_have_helper(struct accmem_carveout *cv)
{
	if (atomic_inc_return(&cv->clear_helpers) < (int)num_online_cpus())
		return true;
	atomic_dec(&cv->clear_helpers);
	return false;
}

static unsigned int clear_sync_start_helpers(struct late *late,
					     struct clear_sync_helper *helpers)
{
	unsigned int most =
		min(cpumask_weight(current->cpus_ptr) - 1, LATE_HELPERS);
	unsigned int nr;

	for (nr = 0; nr < most && clear_sync_may_have_helper(late->bo->cv);
	     nr++) {
		helpers[nr].late = late;
		INIT_WORK_ONSTACK(&helpers[nr].work, clear_sync_work);
		queue_work(accmem_wq, &helpers[nr].work);
	}
	return nr;
}

static void clear_sync_end_helpers(struct late *late,
				   struct clear_sync_helper *helpers,
				   unsigned int nr)
{
	clear_sync_end(late);
	while (nr--) {
		cancel_work_sync(&helpers[nr].work);
		destroy_work_on_stack(&helpers[nr].work);
		atomic_dec(&late->bo->cv->clear_helpers);
	}
}

static noinline_for_stack int
clear_sync_clear_with_help(struct accmem_bo *bo, accmem_clear_run_fn clear,
			   u64 at, u64 end)
{
	struct late late = { .bo = bo, .clear = clear, .at = at, .end = end };
	struct clear_sync_helper helpers[LATE_HELPERS];
	struct accmem_run dirty;
	unsigned int nr;
	int err = 0;

	mutex_init(&late.lock);
	nr = clear_sync_start_helpers(&late, helpers);
	while (!err && clear_sync_next(&late, &dirty)) {
		clear_sync_clear_run(bo, clear, &dirty, false);
		if (fatal_signal_pending(current))
			err = -EINTR;
	}
	clear_sync_end_helpers(&late, helpers, nr);
	mutex_destroy(&late.lock);
	return err;
}

/**
 * accmem_clear_sync() - clear what is dirty of memory that was just allocated
 * @bo: the memory, which nobody else knows of yet; the kernel has mapped it where
 *	 @clear needs that
 * @run: a run of it
 * @clear: clears a dirty run
 *
 * Sleeps, and ends early when the caller is killed.
 *
 * Return: 0, or -EINTR.
 */
int accmem_clear_sync(struct accmem_bo *bo, const struct accmem_run *run,
		      accmem_clear_run_fn clear)
{
	u64 at = run->start, end = at + run->size;
	struct accmem_run dirty;
	unsigned int nr;

	for (nr = 0; nr < LATE_ALONE; nr++) {
		if (!clear_sync_find(bo->cv, &at, end, &dirty))
			return 0;
		if (fatal_signal_pending(current))
			return -EINTR;
		clear_sync_clear_run(bo, clear, &dirty, false);
	}
	return clear_sync_clear_with_help(bo, clear, at, end);
}
