/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buffer objects: functions that only memory/ uses.
 *
 * bo.c creates and frees a buffer object, runs.c allocates and frees its runs,
 * clear.c records which granules are dirty, shared.c moves shared memory between the
 * host and the device, vma.c makes and serves user mappings, and remember.c has the
 * physical memory that has failed.
 */
#ifndef ACCMEM_MEMORY_INTERNAL_H
#define ACCMEM_MEMORY_INTERNAL_H

#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/mm_types.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "core/carveout.h"
#include "core/revoke.h"
#include "memory/bo.h"
#include "types/bo_types.h"

#define ACCMEM_OVERDUE_FIRST_SCAN msecs_to_jiffies(100)

struct accmem_account;
struct accmem_run;
struct file;
struct vm_fault;

/* bo.c */
void accmem_bo_set_overdue(struct accmem_bo *bo);
void accmem_bo_free(struct accmem_bo *bo);

/* runs.c */
int accmem_runs_alloc(struct accmem_bo *bo, const struct accmem_bo_spec *spec);
int accmem_run_alloc_at_end(struct accmem_bo *bo, u64 size, u64 page_size,
			    struct accmem_run *more);
void accmem_run_free(struct accmem_bo *bo, const struct accmem_run *run,
		     u64 since);
void accmem_runs_free(struct accmem_bo *bo);
void accmem_runs_forget(struct accmem_bo *bo);
int accmem_runs_hand_over(struct accmem_bo *from, struct accmem_bo *to,
			  bool exempt);

/* runs_list.c */
void accmem_unnamed_add(struct accmem_bo *bo);
void accmem_unnamed_remove(struct accmem_bo *bo);

/* mapping.c */
struct file *accmem_mapping_file(struct accmem_account *account);

/* resize.c */
void accmem_bo_wait_pin_check(struct accmem_bo *bo);

/* clear.c */
void accmem_clear_release_chunks(struct accmem_carveout *cv,
				 const struct accmem_run *run, u64 account,
				 bool written);
void accmem_clear_release(struct accmem_carveout *cv,
			  const struct accmem_run *run, u64 account);

/* remember.c */

/* Called for a part of a range; an error ends the iteration. */
typedef int (*accmem_remember_fn)(void *arg, u64 start, u64 size,
				  enum accmem_cause cause);

int accmem_remember(u64 start, u64 size, enum accmem_cause cause);
int accmem_remember_each(u64 start, u64 size, accmem_remember_fn fn, void *arg);

/* shared.c */
int accmem_shared_hold(struct accmem_bo *bo, u64 offset, bool write);
bool accmem_shared_try_hold(struct accmem_bo *bo, u64 offset, bool write);
void accmem_shared_drop(struct accmem_bo *bo, u64 offset);

/* shared_fault.c */
vm_fault_t accmem_shared_fault(struct accmem_bo *bo, struct vm_fault *vmf);
vm_fault_t accmem_shared_mkwrite(struct accmem_bo *bo, struct vm_fault *vmf);

/*
 * Start the check for overdue memory, after a buffer object has become pending.
 * Context: Any; does not sleep.
 */
static inline void accmem_overdue_watch(struct accmem_carveout *cv)
{
	if (!delayed_work_pending(&cv->overdue_work))
		queue_delayed_work(accmem_wq, &cv->overdue_work,
				   ACCMEM_OVERDUE_FIRST_SCAN);
}

/* May bytes differ from zero: were they written, or lost at a reset? */
static inline bool accmem_bo_is_unknown(const struct accmem_bo *bo)
{
	return accmem_bo_was_written(bo) || accmem_bo_is_stale(bo);
}

/* The buffer object has one run, accmem_bo.run, and no array of runs. */
static inline void accmem_runs_set_one(struct accmem_bo *bo)
{
	bo->runs = &bo->run;
	bo->nr_runs = 1;
}

static inline struct accmem_run *accmem_runs_last(struct accmem_bo *bo)
{
	return &bo->runs[bo->nr_runs - 1];
}

/*
 * If the only run of a bo is in an array, copy the run to @run. If the run is @run itself, @run
 * is not written, since accesses read the start of the run without the lock.
 */
static inline void accmem_runs_set_only(struct accmem_bo *bo)
{
	if (bo->nr_runs == 1 && bo->runs != &bo->run)
		bo->run = bo->runs[0];
}

/* Add @size bytes, which lie directly behind the last run, to the last run. */
static inline void accmem_runs_extend(struct accmem_bo *bo, u64 size)
{
	lockdep_assert_held(&bo->cv->lock);
	accmem_runs_last(bo)->size += size;
	accmem_runs_set_only(bo);
	WRITE_ONCE(bo->size, bo->size + size);
}

#endif /* ACCMEM_MEMORY_INTERNAL_H */
