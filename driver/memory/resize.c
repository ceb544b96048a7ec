// SPDX-License-Identifier: GPL-2.0
/*
 * Resizing: buffer objects that grow, shrink or move.
 *
 * Grow: if the memory directly behind the buffer object is free, accmem_bo_extend()
 * adds it. Otherwise the caller allocates a second buffer object, and
 * accmem_bo_join() moves its runs to the end of the first.
 *
 * Shrink: a split moves the memory beyond the new end to a second buffer object. The
 * second buffer object is freed, or quarantined while its pages are pinned.
 *
 * Both have two steps. The prepare step may fail. The second step changes what other
 * tasks see; the caller makes it under the lock that guards the names.
 *
 * Faults: a fault checks the size of the buffer object under the lock of the page, or
 * of the address_space if there are no pages. After the split has changed the size,
 * accmem_bo_split_finish() takes and releases each of these locks and then unmaps the
 * rest. From then on no fault maps memory beyond the new end.
 *
 * Locking: accmem_bo.lock > the carveout's lock; folio lock. The caller holds
 * accmem_bo.lock for a split. The carveout's lock guards the size and the runs.
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
#include "types/backing_types.h"

#define RESIZE_PATIENCE \
	msecs_to_jiffies(30) /* until a reference counts as a pin */

/* Return true if the runs of @more start directly behind those of @bo. */
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
 * accmem_bo_join_prepare() - make room for the runs of a second buffer object
 * @bo: the buffer object, with mapped translation; only the caller resizes it
 * @more: the second buffer object, of the same account and cache mode, without
 *	mappings and without pages
 *
 * Context: Process context. May sleep.
 * Return: 0; -ENOMEM, with @bo unchanged.
 */
int accmem_bo_join_prepare(struct accmem_bo *bo, struct accmem_bo *more)
{
	unsigned int nr = bo->nr_runs + more->nr_runs;
	struct accmem_run *runs, *old = bo->runs;

	if (resize_touches(bo, more))
		nr--;
	if (nr <= max(bo->max_runs, 1u))
		return 0;
	nr = max(nr, 2 * bo->nr_runs);
	runs = resize_new_runs(nr);
	if (!runs)
		return -ENOMEM;
	memcpy(runs, old, bo->nr_runs * sizeof(*runs));
	/* accmem_failed_in_bo() reads the runs under the lock. */
	accmem_carveout_lock(bo->cv);
	bo->runs = runs;
	accmem_carveout_unlock(bo->cv);
	bo->max_runs = nr;
	if (old != &bo->run)
		kvfree(old);
	return 0;
}

static void resize_set_size(struct accmem_bo *bo, u64 size)
{
	lockdep_assert_held(&bo->cv->lock);
	WRITE_ONCE(bo->size, size);
}

/**
 * accmem_bo_join() - move the runs of one buffer object to the end of another
 * @bo: the buffer object that grows
 * @more: the second buffer object, as for accmem_bo_join_prepare(); empty on return,
 *	for accmem_bo_destroy_empty()
 *
 * Context: Takes and releases the carveout's lock. Does not sleep.
 */
void accmem_bo_join(struct accmem_bo *bo, struct accmem_bo *more)
{
	struct accmem_carveout *cv = bo->cv;
	unsigned int touches = resize_touches(bo, more);
	unsigned int nr = more->nr_runs - touches;

	/* Nobody else changes the runs, and readers stop before the new ones. */
	memcpy(bo->runs + bo->nr_runs, more->runs + touches,
	       nr * sizeof(*bo->runs));
	accmem_carveout_lock(cv);
	if (touches)
		accmem_runs_last(bo)->size += more->runs[0].size;
	bo->nr_runs += nr;
	accmem_runs_set_only(bo);
	resize_set_size(bo, bo->size + more->size);
	resize_set_size(more, 0);
	accmem_carveout_unlock(cv);
}

/**
 * accmem_bo_swap_runs() - exchange the runs of two buffer objects
 * @bo: a buffer object with one run
 * @other: another one with one run, of the same account
 *
 * No index of the caller may find @bo or @other by its runs.
 *
 * Context: Takes and releases the carveout's lock. Does not sleep.
 */
void accmem_bo_swap_runs(struct accmem_bo *bo, struct accmem_bo *other)
{
	struct accmem_carveout *cv = bo->cv;
	u64 size = bo->size;

	WARN_ON_ONCE(bo->nr_runs != 1 || other->nr_runs != 1);
	accmem_carveout_lock(cv);
	swap(bo->runs[0], other->runs[0]);
	accmem_runs_set_only(bo);
	accmem_runs_set_only(other);
	resize_set_size(bo, other->size);
	resize_set_size(other, size);
	accmem_carveout_unlock(cv);
}

/* Find the run in which the first @size bytes end; @kept: their bytes in this run. */
static unsigned int resize_find(const struct accmem_bo *bo, u64 size, u64 *kept)
{
	unsigned int i;

	for (i = 0; size > bo->runs[i].size; i++)
		size -= bo->runs[i].size;
	*kept = size;
	return i;
}

/* Return the size in bytes of @bo after a shrink to @size. */
static u64 resize_floor(struct accmem_bo *bo, u64 size)
{
	if (accmem_bo_is_exported(bo))
		return bo->size;
	if (!bo->cv->ops->shrink_floor)
		return size;
	return min(bo->cv->ops->shrink_floor(bo, size), bo->size);
}

/**
 * accmem_bo_shrink_floor() - compute the size after a shrink
 * @bo: the buffer object; only the caller resizes it
 * @size: requested size in bytes, not 0, at most the present size
 * @nr_runs: out: number of runs after the shrink
 *
 * The result is larger than @size if a folio must stay whole, or if the memory is exported.
 * A fault may change the result later.
 *
 * Context: Does not sleep.
 * Return: size after the shrink, in bytes.
 */
u64 accmem_bo_shrink_floor(struct accmem_bo *bo, u64 size,
			   unsigned int *nr_runs)
{
	u64 kept;

	if (size < bo->size)
		size = resize_floor(bo, size);
	*nr_runs = resize_find(bo, size, &kept) + 1;
	return size;
}

/* Copy the runs of @bo beyond @size bytes to @rest. */
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
 * accmem_bo_split_prepare() - prepare the split of a buffer object
 * @bo: the buffer object; only the caller resizes it
 * @rest: an empty buffer object of the same account, for the memory beyond @size
 * @size: smallest size of @bo after the split in bytes, not 0
 *
 * On success the caller calls accmem_bo_split(), and then accmem_bo_split_finish() or
 * accmem_bo_split_abort(). The caller holds accmem_bo.lock from this call to
 * accmem_bo_split(), so that no fault adds a page.
 *
 * Context: Process context. The caller holds accmem_bo.lock of @bo. May sleep.
 * Return: 0; -ENODATA if no memory can be freed; -ENOMEM.
 */
int accmem_bo_split_prepare(struct accmem_bo *bo, struct accmem_bo *rest,
			    u64 size)
{
	const struct accmem_backing_ops *ops = bo->cv->ops;
	int err = -ENODATA;

	lockdep_assert_held(&bo->lock);
	size = resize_floor(bo, size);
	if (size < bo->size)
		err = resize_copy_rest(bo, rest, size);
	if (err)
		return err;
	rest->size = bo->size - size;
	rest->offset = bo->offset + size;
	rest->huge = bo->huge;
	rest->cache_mode = bo->cache_mode;
	rest->epoch = bo->epoch;
	err = ops->split ? ops->split(bo, rest) : 0;
	if (err)
		resize_drop_rest(rest);
	return err;
}

/**
 * accmem_bo_split() - split a buffer object
 * @bo: the buffer object
 * @rest: the second buffer object from accmem_bo_split_prepare(); live on success
 *
 * The split fails if a mapping of @bo was made after accmem_bo_split_prepare(), and
 * more of @bo must stay because of this mapping. The caller then calls
 * accmem_bo_split_abort() and starts again.
 *
 * Context: The caller holds accmem_bo.lock of @bo, and the lock under which
 * accmem_bo.mapped is set. Takes and releases the carveout's lock. Does not sleep.
 * Return: true on success; false if nothing was changed.
 */
bool accmem_bo_split(struct accmem_bo *bo, struct accmem_bo *rest)
{
	struct accmem_carveout *cv = bo->cv;
	u64 size = bo->size - rest->size;
	unsigned int first = bo->nr_runs - rest->nr_runs;
	u64 kept = rest->runs[0].start - bo->runs[first].start;

	lockdep_assert_held(&bo->lock);
	if (resize_floor(bo, size) > size)
		return false;
	rest->written = accmem_bo_was_written(bo);
	/* A revocation waits for faults that began before the split, until @rest is unmapped. */
	if (accmem_bo_was_mapped(bo))
		accmem_bo_set_mapped(rest);
	accmem_carveout_lock(cv);
	if (kept)
		bo->runs[first++].size = kept;
	bo->nr_runs = first;
	accmem_runs_set_only(bo);
	bo->max_size = max(bo->max_size, bo->size);
	resize_set_size(bo, size);
	accmem_carveout_unlock(cv);
	return true;
}

/**
 * accmem_bo_split_abort() - undo accmem_bo_split_prepare()
 * @rest: the second buffer object; empty on return
 *
 * accmem_bo_split_prepare() has divided the kernel's mapping (accmem_bo.io). The function
 * removes the part of @rest, and the next access to these bytes of @bo maps the part again.
 *
 * Context: Process context. May sleep.
 */
void accmem_bo_split_abort(struct accmem_bo *rest)
{
	xa_destroy(&rest->pages);
	if (rest->io)
		rest->cv->ops->release(rest, ACCMEM_RELEASE_ALL);
	resize_drop_rest(rest);
}

static void resize_unmap(struct accmem_bo *bo, u64 offset, u64 size)
{
	struct file *file = READ_ONCE(bo->account->file);

	if (file)
		unmap_mapping_range(file->f_mapping, bo->offset + offset, size,
				    1);
}

/**
 * accmem_bo_split_finish() - unmap and free the split-off memory
 * @bo: the buffer object, after accmem_bo_split()
 * @rest: the second buffer object; the function frees or quarantines it
 *
 * Context: Process context. The caller does not hold accmem_bo.lock. May sleep.
 */
void accmem_bo_split_finish(struct accmem_bo *bo, struct accmem_bo *rest)
{
	bo->cv->ops->split_finish(bo, rest);
	if (rest->mapped)
		resize_unmap(bo, bo->size, rest->size);
	accmem_bo_detach(rest);
}

/* Return true if references to pages of @bo remain for RESIZE_PATIENCE. */
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
 * accmem_bo_is_pinned() - check for pins of a buffer object
 * @bo: the buffer object; the function unmaps it, and faults map it again
 *
 * A fault or a page table walk may have a reference to a page for a moment. The
 * function therefore repeats the check until RESIZE_PATIENCE has passed. New faults
 * wait meanwhile in accmem_bo_wait_pin_check().
 *
 * Context: Process context. May sleep.
 * Return: true if a page is pinned, or if the caller is being killed.
 */
bool accmem_bo_is_pinned(struct accmem_bo *bo)
{
	bool pinned;

	if (!accmem_bo_was_mapped(bo) || !bo->cv->ops->is_idle)
		return false;
	atomic_inc(&bo->pin_checks);
	pinned = resize_check_pins(bo);
	if (atomic_dec_and_test(&bo->pin_checks))
		wake_up_var(&bo->pin_checks);
	return pinned;
}

/**
 * accmem_bo_wait_pin_check() - wait in a fault for accmem_bo_is_pinned()
 * @bo: the buffer object
 *
 * The wait ends after twice RESIZE_PATIENCE, so that a program that calls REALLOC in a
 * loop does not keep other processes from the memory.
 *
 * Context: Process context. The caller has no reference to a page of @bo, which would
 * look like a pin. May sleep.
 */
void accmem_bo_wait_pin_check(struct accmem_bo *bo)
{
	if (atomic_read(&bo->pin_checks))
		wait_var_event_timeout(&bo->pin_checks,
				       !atomic_read(&bo->pin_checks),
				       2 * RESIZE_PATIENCE);
}
