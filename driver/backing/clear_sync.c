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
 * @mem: its memory
 * @clear: how
 * @lock: guards @at and @end; above the carveout's lock
 * @at: what lies before has been given out
 * @end: where it ends; @at when nothing more is given out
 */
struct late {
	struct accmem_memory *mem;
	accmem_clear_run_fn clear;
	struct mutex lock; /* what has been given out */
	u64 at;
	u64 end;
};

/* a work item that clears some of it */
struct late_helper {
	struct work_struct work;
	struct late *late;
};

/* The next dirty chunk from *@at on; *@at is behind it then */
static bool late_find(struct accmem_carveout *cv, u64 *at, u64 end,
		      struct accmem_run *dirty)
{
	if (*at >= end || !accmem_clear_next(cv, *at, end - *at, dirty))
		return false;
	*at = dirty->start + dirty->size;
	return true;
}

static bool late_next(struct late *late, struct accmem_run *dirty)
{
	bool found;

	mutex_lock(&late->lock);
	found = late_find(late->mem->cv, &late->at, late->end, dirty);
	if (!found)
		late->end = late->at;
	mutex_unlock(&late->lock);
	return found;
}

static void late_end(struct late *late)
{
	mutex_lock(&late->lock);
	late->end = late->at;
	mutex_unlock(&late->lock);
}

/* @helped: by somebody else than the request */
static void late_clear_run(struct accmem_memory *mem, accmem_clear_run_fn clear,
			   const struct accmem_run *dirty, bool helped)
{
	clear(mem, dirty);
	accmem_clear_done(mem->cv, dirty, helped);
	cond_resched();
}

static void late_work(struct work_struct *work)
{
	struct late *late = container_of(work, struct late_helper, work)->late;
	struct accmem_run dirty;

	while (late_next(late, &dirty))
		late_clear_run(late->mem, late->clear, &dirty, true);
}

static bool late_may_have_helper(struct accmem_carveout *cv)
{
	if (atomic_inc_return(&cv->clear_helpers) < (int)num_online_cpus())
		return true;
	atomic_dec(&cv->clear_helpers);
	return false;
}

static unsigned int late_start_helpers(struct late *late,
				       struct late_helper *helpers)
{
	unsigned int most =
		min(cpumask_weight(current->cpus_ptr) - 1, LATE_HELPERS);
	unsigned int nr;

	for (nr = 0; nr < most && late_may_have_helper(late->mem->cv); nr++) {
		helpers[nr].late = late;
		INIT_WORK_ONSTACK(&helpers[nr].work, late_work);
		queue_work(accmem_wq, &helpers[nr].work);
	}
	return nr;
}

static void late_end_helpers(struct late *late, struct late_helper *helpers,
			     unsigned int nr)
{
	late_end(late);
	while (nr--) {
		cancel_work_sync(&helpers[nr].work);
		destroy_work_on_stack(&helpers[nr].work);
		atomic_dec(&late->mem->cv->clear_helpers);
	}
}

static noinline_for_stack int late_clear_with_help(struct accmem_memory *mem,
						   accmem_clear_run_fn clear,
						   u64 at, u64 end)
{
	struct late late = { .mem = mem, .clear = clear, .at = at, .end = end };
	struct late_helper helpers[LATE_HELPERS];
	struct accmem_run dirty;
	unsigned int nr;
	int err = 0;

	mutex_init(&late.lock);
	nr = late_start_helpers(&late, helpers);
	while (!err && late_next(&late, &dirty)) {
		late_clear_run(mem, clear, &dirty, false);
		if (fatal_signal_pending(current))
			err = -EINTR;
	}
	late_end_helpers(&late, helpers, nr);
	mutex_destroy(&late.lock);
	return err;
}

/**
 * accmem_clear_late() - clear what is dirty of memory that was just allocated
 * @mem: the memory, which nobody else knows of yet; the kernel has mapped it where
 *	 @clear needs that
 * @run: a run of it
 * @clear: clears a dirty run
 *
 * Sleeps, and ends early when the caller is killed.
 *
 * Return: 0, or -EINTR.
 */
int accmem_clear_late(struct accmem_memory *mem, const struct accmem_run *run,
		      accmem_clear_run_fn clear)
{
	u64 at = run->start, end = at + run->size;
	struct accmem_run dirty;
	unsigned int nr;

	for (nr = 0; nr < LATE_ALONE; nr++) {
		if (!late_find(mem->cv, &at, end, &dirty))
			return 0;
		if (fatal_signal_pending(current))
			return -EINTR;
		late_clear_run(mem, clear, &dirty, false);
	}
	return late_clear_with_help(mem, clear, at, end);
}
