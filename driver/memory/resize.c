// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that grows, shrinks, or is copied.
 *
 * Where it cannot grow by what lies right behind it (accmem_bo_extend()), it
 * joins another memory, which has been taken and charged. It shrinks by a split: what
 * is beyond its new end becomes a memory of its own, which is given back, or
 * quarantined, as any is. What can fail of both is in a first step. The second changes
 * what others see, and is made under the lock that guards the memory's names.
 *
 * A fault checks the size under the lock of the page that it shows, or of the
 * mapping where there are no pages. Who shrinks a memory changes the size, passes
 * through these locks, and takes the mappings down: no fault shows the old end
 * after that.
 *
 * Locks: accmem_bo.lock, which the caller holds for a split, > the carveout's;
 * folio lock.
 */
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/wait_bit.h>

#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/quarantine.h"
#include "memory/resize.h"

#define RESIZE_CHUNK \
	((u64)SZ_2M) /* copied or cleared between two looks around */
#define RESIZE_BUFFER ((u64)SZ_64K)
#define RESIZE_PATIENCE msecs_to_jiffies(30) /* with who seems to have a pin */

/* does @more lie right behind a memory? */
static bool resize_touches(struct accmem_bo *bo, const struct accmem_bo *more)
{
	const struct accmem_run *last = accmem_runs_last(bo);

	return last->start + last->size == more->runs[0].start;
}

static struct accmem_run *resize_new_runs(unsigned int nr)
{
	return kvmalloc_array(nr, sizeof(struct accmem_run),
			      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
}

/**
 * accmem_bo_join_prepare() - get ready to join two memories
 * @bo: the memory, which the caller alone resizes; of mapped translation
 * @more: what it gets at its end: of the same account and cache mode, mapped
 *	nowhere, and without pages
 *
 * Return: 0; -ENOMEM, and nothing has changed.
 */
int accmem_bo_join_prepare(struct accmem_bo *bo, struct accmem_bo *more)
{
	unsigned int nr = bo->nr_runs + more->nr_runs;
	struct accmem_run *runs;

	if (resize_touches(bo, more))
		nr--;
	if (nr <= max(bo->max_runs, 1u))
		return 0;
	nr = max(nr, 2 * bo->nr_runs);
	runs = resize_new_runs(nr);
	if (!runs)
		return -ENOMEM;
	memcpy(runs, bo->runs, bo->nr_runs * sizeof(*runs));
	if (bo->runs != &bo->run)
		kvfree(bo->runs);
	bo->runs = runs;
	bo->max_runs = nr;
	return 0;
}

static void resize_set_size(struct accmem_bo *bo, u64 size)
{
	lockdep_assert_held(&bo->cv->lock);
	WRITE_ONCE(bo->size, size);
}

/**
 * accmem_bo_join() - join two memories
 * @bo: the memory
 * @more: as for accmem_bo_join_prepare(); empty then, for
 *	accmem_bo_destroy_empty()
 *
 * Does not sleep.
 */
void accmem_bo_join(struct accmem_bo *bo, struct accmem_bo *more)
{
	struct accmem_carveout *cv = bo->cv;
	const struct accmem_run *from = more->runs;
	unsigned int nr = more->nr_runs;

	accmem_carveout_lock(cv);
	if (resize_touches(bo, more)) {
		accmem_runs_last(bo)->size += from->size;
		from++;
		nr--;
	}
	memcpy(bo->runs + bo->nr_runs, from, nr * sizeof(*from));
	bo->nr_runs += nr;
	if (bo->nr_runs == 1)
		bo->run = bo->runs[0];
	resize_set_size(bo, bo->size + more->size);
	resize_set_size(more, 0);
	accmem_carveout_unlock(cv);
}

/**
 * accmem_bo_swap_runs() - change what is behind two memories
 * @bo: a memory
 * @other: another of the same account. Neither is found by its runs. Does not
 *	sleep.
 */
void accmem_bo_swap_runs(struct accmem_bo *bo, struct accmem_bo *other)
{
	struct accmem_carveout *cv = bo->cv;
	u64 size = bo->size;

	WARN_ON_ONCE(bo->nr_runs != 1 || other->nr_runs != 1);
	accmem_carveout_lock(cv);
	swap(bo->runs[0], other->runs[0]);
	bo->run = bo->runs[0];
	other->run = other->runs[0];
	resize_set_size(bo, other->size);
	resize_set_size(other, size);
	accmem_carveout_unlock(cv);
}

/* the run that @size bytes end in, and how much of it they have */
static unsigned int resize_find(const struct accmem_bo *bo, u64 size, u64 *kept)
{
	unsigned int i;

	for (i = 0; size > bo->runs[i].size; i++)
		size -= bo->runs[i].size;
	*kept = size;
	return i;
}

/**
 * accmem_bo_shrink_floor() - what a memory has when it has shrunk
 * @bo: the memory, which the caller alone resizes
 * @size: bytes that it is to have at least, not 0, at most what it has
 * @nr_runs: out: runs
 *
 * Return: bytes; more than @size where a part cannot be given back, which a fault
 * may change.
 */
u64 accmem_bo_shrink_floor(struct accmem_bo *bo, u64 size,
			   unsigned int *nr_runs)
{
	u64 kept;

	if (size < bo->size && bo->cv->ops->shrink_floor)
		size = min(bo->cv->ops->shrink_floor(bo, size), bo->size);
	*nr_runs = resize_find(bo, size, &kept) + 1;
	return size;
}

/* @rest gets runs: what @bo has beyond @size */
static int resize_copy_rest(struct accmem_bo *bo, struct accmem_bo *rest,
			    u64 size)
{
	unsigned int first, nr;
	u64 kept;

	first = resize_find(bo, size, &kept);
	nr = bo->nr_runs - first;
	rest->runs = &rest->run;
	if (nr > 1) {
		rest->runs = resize_new_runs(nr);
		if (!rest->runs) {
			rest->runs = NULL;
			return -ENOMEM;
		}
	}
	memcpy(rest->runs, bo->runs + first, nr * sizeof(*rest->runs));
	rest->runs[0].start += kept;
	rest->runs[0].size -= kept;
	rest->nr_runs = nr;
	if (!rest->runs[0].size) {
		rest->nr_runs--;
		memmove(rest->runs, rest->runs + 1,
			rest->nr_runs * sizeof(*rest->runs));
	}
	rest->run = rest->runs[0];
	return 0;
}

static void resize_drop_rest(struct accmem_bo *rest)
{
	if (rest->runs != &rest->run)
		kvfree(rest->runs);
	rest->runs = NULL;
	rest->nr_runs = 0;
	rest->size = 0;
}

/**
 * accmem_bo_split_prepare() - get ready to split a memory
 * @bo: the memory, which the caller alone resizes
 * @rest: an empty memory of the same account; gets what is beyond @size
 * @size: bytes that @bo keeps at least, not 0
 *
 * The lock of @bo is held until the memory is split, so that no page appears. On
 * success accmem_bo_split() follows, and accmem_bo_split_end() or
 * accmem_bo_split_abort().
 *
 * Return: 0; -ENODATA where nothing can be given back; -ENOMEM.
 */
int accmem_bo_split_prepare(struct accmem_bo *bo, struct accmem_bo *rest,
			    u64 size)
{
	const struct accmem_backing_ops *ops = bo->cv->ops;
	int err = -ENODATA;

	lockdep_assert_held(&bo->lock);
	if (ops->shrink_floor)
		size = min(ops->shrink_floor(bo, size), bo->size);
	if (size < bo->size)
		err = resize_copy_rest(bo, rest, size);
	if (err)
		return err;
	rest->size = bo->size - size;
	rest->offset = bo->offset + size;
	rest->huge = bo->huge;
	rest->cache_mode = bo->cache_mode;
	err = ops->split ? ops->split(bo, rest) : 0;
	if (err)
		resize_drop_rest(rest);
	return err;
}

/**
 * accmem_bo_split() - split a memory
 * @bo: the memory; the lock is held, too, under which it becomes mapped
 * @rest: as for accmem_bo_split_prepare(); live then
 *
 * Return: false if nothing was done, for @bo has been mapped meanwhile, and more
 * of it stays: accmem_bo_split_abort() and another attempt follow.
 */
bool accmem_bo_split(struct accmem_bo *bo, struct accmem_bo *rest)
{
	struct accmem_carveout *cv = bo->cv;
	u64 kept, size = bo->size - rest->size;

	if (cv->ops->shrink_floor && cv->ops->shrink_floor(bo, size) > size)
		return false;
	rest->mapped = accmem_bo_was_mapped(bo);
	accmem_carveout_lock(cv);
	bo->nr_runs = resize_find(bo, size, &kept) + 1;
	accmem_runs_last(bo)->size = kept;
	if (bo->nr_runs == 1)
		bo->run = bo->runs[0];
	bo->max_size = max(bo->max_size, bo->size);
	resize_set_size(bo, size);
	accmem_carveout_unlock(cv);
	return true;
}

/**
 * accmem_bo_split_abort() - undo accmem_bo_split_prepare()
 * @rest: is empty again; the kernel maps it not, for that leaves nothing to stay
 */
void accmem_bo_split_abort(struct accmem_bo *rest)
{
	xa_destroy(&rest->pages);
	resize_drop_rest(rest);
}

/**
 * accmem_bo_split_end() - forget the pages of what a memory has lost
 * @bo: the memory, after accmem_bo_split(); its lock is held
 */
void accmem_bo_split_end(struct accmem_bo *bo)
{
	lockdep_assert_held(&bo->lock);
	if (bo->cv->ops->trim)
		bo->cv->ops->trim(bo);
}

static void resize_unmap(struct accmem_bo *bo, u64 offset, u64 size)
{
	struct file *file = READ_ONCE(bo->account->file);

	if (file)
		unmap_mapping_range(file->f_mapping, bo->offset + offset, size,
				    1);
}

/**
 * accmem_bo_split_finish() - give back what a memory has lost
 * @bo: the memory, after accmem_bo_split_end(), without its lock
 * @rest: goes, or is quarantined. Sleeps.
 */
void accmem_bo_split_finish(struct accmem_bo *bo, struct accmem_bo *rest)
{
	if (rest->mapped) {
		bo->cv->ops->sync_faults(rest);
		resize_unmap(bo, bo->size, rest->size);
	}
	accmem_bo_detach(rest);
}

/* do pages stay with somebody while faults wait, for as long as a pin is not gone? */
static bool resize_check_pins(struct accmem_bo *bo)
{
	unsigned long until = jiffies + RESIZE_PATIENCE;

	for (;;) {
		resize_unmap(bo, 0, bo->size);
		if (accmem_quarantine_is_idle(bo))
			return false;
		if (time_after(jiffies, until) || fatal_signal_pending(current))
			return true;
		schedule_timeout_killable(1);
	}
}

/**
 * accmem_bo_is_pinned() - has anybody pages of a memory?
 * @bo: the memory, whose mappings are taken down, and come back by a fault
 *
 * A fault, or a walk of page tables, has a page for a moment: that is waited for, and
 * new faults wait meanwhile.
 *
 * Return: whether somebody has, or the caller is being killed. Sleeps.
 */
bool accmem_bo_is_pinned(struct accmem_bo *bo)
{
	bool pinned;

	if (!accmem_bo_was_mapped(bo) || !bo->cv->ops->check_idle)
		return false;
	atomic_inc(&bo->pin_checks);
	pinned = resize_check_pins(bo);
	if (atomic_dec_and_test(&bo->pin_checks))
		wake_up_var(&bo->pin_checks);
	return pinned;
}

/**
 * accmem_bo_wait_pin_check() - have a fault wait for accmem_bo_is_pinned()
 * @bo: the memory, to no page of which the caller has a reference. Sleeps, for a
 *	bounded time: who asks on and on does not keep others from the memory.
 */
void accmem_bo_wait_pin_check(struct accmem_bo *bo)
{
	if (atomic_read(&bo->pin_checks))
		wait_var_event_timeout(&bo->pin_checks,
				       !atomic_read(&bo->pin_checks),
				       2 * RESIZE_PATIENCE);
}

/* through memory of the kernel's, as a device would copy */
static int resize_copy_through(struct accmem_bo *to, u64 to_offset,
			       struct accmem_bo *from, u64 from_offset,
			       u64 size)
{
	void *bytes = kvmalloc(RESIZE_BUFFER, GFP_KERNEL);
	u64 done, part;
	int err = 0;

	if (!bytes)
		return -ENOMEM;
	for (done = 0; done < size && !err; done += part) {
		part = min(size - done, RESIZE_BUFFER);
		err = from->cv->ops->access(from, from_offset + done, bytes,
					    part, false);
		if (!err)
			err = to->cv->ops->access(to, to_offset + done, bytes,
						  part, true);
	}
	kvfree(bytes);
	return err;
}

/**
 * accmem_bo_copy() - copy from a memory to another one
 * @to: the memory that gets the bytes: of the same account
 * @to_offset: where in it
 * @from: the memory that they are in
 * @from_offset: where in it
 * @size: how many. Sleeps.
 *
 * Return: 0; -ENOMEM, -EINTR.
 */
int accmem_bo_copy(struct accmem_bo *to, u64 to_offset, struct accmem_bo *from,
		   u64 from_offset, u64 size)
{
	const struct accmem_backing_ops *ops = to->cv->ops;
	bool directly = ops->copy && from->cv->ops == ops;
	u64 done, part;
	int err;

	for (done = 0; done < size; done += part) {
		if (fatal_signal_pending(current))
			return -EINTR;
		part = min(size - done, RESIZE_CHUNK);
		err = directly ? ops->copy(to, to_offset + done, from,
					   from_offset + done, part) :
				 resize_copy_through(to, to_offset + done, from,
						     from_offset + done, part);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

/**
 * accmem_bo_clear() - clear a part of a memory that is in use
 * @bo: the memory
 * @offset: where, in bytes
 * @size: how many. Sleeps.
 *
 * Return: 0; -ENOMEM, -EINTR.
 */
int accmem_bo_clear(struct accmem_bo *bo, u64 offset, u64 size)
{
	u64 done, part;
	int err;

	for (done = 0; done < size; done += part) {
		if (fatal_signal_pending(current))
			return -EINTR;
		part = min(size - done, RESIZE_CHUNK);
		err = bo->cv->ops->clear_range(bo, offset + done, part);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}
