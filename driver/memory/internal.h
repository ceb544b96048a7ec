/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that only memory/ uses.
 */
#ifndef ACCMEM_MEMORY_INTERNAL_H
#define ACCMEM_MEMORY_INTERNAL_H

#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "core/carveout.h"
#include "types/memory_types.h"

#define ACCMEM_OVERDUE_FIRST_LOOK msecs_to_jiffies(100)

struct accmem_run;

/* memory.c */
void accmem_memory_set_overdue(struct accmem_memory *mem);
void accmem_memory_free(struct accmem_memory *mem);

/* runs.c */
int accmem_runs_take(struct accmem_memory *mem,
		     const struct accmem_memory_spec *spec);
int accmem_run_take_behind(struct accmem_memory *mem, u64 size, u64 page_size,
			   struct accmem_run *more);
void accmem_run_give_back(struct accmem_memory *mem,
			  const struct accmem_run *run);
void accmem_runs_give(struct accmem_memory *mem);
void accmem_runs_drop(struct accmem_memory *mem);
int accmem_runs_hand_over(struct accmem_memory *from, struct accmem_memory *to,
			  bool exempt);

/* clear.c */
void accmem_clear_release_units(struct accmem_carveout *cv,
				const struct accmem_run *run, u64 account,
				bool mapped);
void accmem_clear_release(struct accmem_carveout *cv,
			  const struct accmem_run *run, u64 account);

/* shared.c */
int accmem_shared_hold(struct accmem_memory *mem, u64 offset, bool write);
bool accmem_shared_try_hold(struct accmem_memory *mem, u64 offset, bool write);
void accmem_shared_drop(struct accmem_memory *mem);

/* Memory has become pending: it is looked at from now on. Does not sleep. */
static inline void accmem_overdue_watch(struct accmem_carveout *cv)
{
	if (!delayed_work_pending(&cv->overdue_work))
		queue_delayed_work(accmem_wq, &cv->overdue_work,
				   ACCMEM_OVERDUE_FIRST_LOOK);
}

/* it has accmem_memory.run, and nothing else */
static inline void accmem_runs_set_one(struct accmem_memory *mem)
{
	mem->runs = &mem->run;
	mem->nr_runs = 1;
}

static inline struct accmem_run *accmem_runs_last(struct accmem_memory *mem)
{
	return &mem->runs[mem->nr_runs - 1];
}

/* what lies behind the last one is a part of it; the carveout's lock is held */
static inline void accmem_runs_lengthen(struct accmem_memory *mem, u64 size)
{
	lockdep_assert_held(&mem->cv->lock);
	accmem_runs_last(mem)->size += size;
	if (mem->nr_runs == 1)
		mem->run = mem->runs[0];
	WRITE_ONCE(mem->size, mem->size + size);
}

#endif /* ACCMEM_MEMORY_INTERNAL_H */
