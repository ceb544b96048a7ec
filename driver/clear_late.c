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

#include "carveout.h"
#include "clear.h"
#include "clear_late.h"
#include "memory.h"

#define LATE_ALONE 4u /* chunks that are not worth a work item */
#define LATE_HELPERS 7u /* of one request, at most */

/*
 * struct late - what one request has to clear
 * @mem: its memory
 * @clear: how
 * @lock: guards @at and @end; above the carveout's lock
 * @at: what lies before has been given out
 * @end: where it ends; @at when nothing more is to be given out
 */
struct late {
	struct accmem_memory *mem;
	accmem_clear_run_fn clear;
	struct mutex lock;
	u64 at;
	u64 end;
};

/* a work item that clears some of it */
struct late_helper {
	struct work_struct work;
	struct late *late;
};

static bool late_next(struct late *late, struct accmem_run *dirty)
{
	bool found;

	mutex_lock(&late->lock);
	found = late->at < late->end &&
		accmem_clear_next(late->mem->cv, late->at,
				  late->end - late->at, dirty);
	late->at = found ? dirty->start + dirty->size : late->end;
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
static bool late_clear_next(struct late *late, bool helped)
{
	struct accmem_run dirty;

	if (!late_next(late, &dirty))
		return false;
	late->clear(late->mem, &dirty);
	accmem_clear_done(late->mem->cv, &dirty, helped);
	cond_resched();
	return true;
}

/* no more than @most chunks; whether there may be more */
static bool late_clear(struct late *late, u64 most, int *err)
{
	while (most--) {
		if (fatal_signal_pending(current)) {
			*err = -EINTR;
			return false;
		}
		if (!late_clear_next(late, false))
			return false;
	}
	return true;
}

static void late_work(struct work_struct *work)
{
	struct late *late =
		container_of(work, struct late_helper, work)->late;

	while (late_clear_next(late, true))
		;
}

static bool late_may_have_helper(struct accmem_carveout *cv)
{
	return atomic_add_unless(&cv->clear_helpers, 1,
				 (int)num_online_cpus() - 1);
}

static unsigned int late_start_helpers(struct late *late,
				       struct late_helper *helpers)
{
	unsigned int most = min(cpumask_weight(current->cpus_ptr) - 1,
				LATE_HELPERS);
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

static int late_clear_with_help(struct late *late)
{
	struct late_helper helpers[LATE_HELPERS];
	unsigned int nr = late_start_helpers(late, helpers);
	int err = 0;

	late_clear(late, U64_MAX, &err);
	late_end_helpers(late, helpers, nr);
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
	struct late late = {
		.mem = mem,
		.clear = clear,
		.at = run->start,
		.end = run->start + run->size,
	};
	int err = 0;

	mutex_init(&late.lock);
	if (late_clear(&late, LATE_ALONE, &err))
		err = late_clear_with_help(&late);
	mutex_destroy(&late.lock);
	return err;
}
