// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that grows, shrinks, or is copied.
 *
 * Where it cannot grow by what lies right behind it (accmem_memory_extend()), it
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
 * Locks: accmem_memory.lock, which the caller holds for a split, > the carveout's;
 * folio lock.
 */
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/wait_bit.h>

#include "core/carveout.h"
#include "internal.h"
#include "memory/memory.h"
#include "memory/quarantine.h"
#include "memory/resize.h"

#define RESIZE_CHUNK \
	((u64)SZ_2M) /* copied or cleared between two looks around */
#define RESIZE_BUFFER ((u64)SZ_64K)
#define RESIZE_PATIENCE msecs_to_jiffies(30) /* with who seems to have a pin */

/* does @more lie right behind a memory? */
static bool resize_touches(struct accmem_memory *mem,
			   const struct accmem_memory *more)
{
	const struct accmem_run *last = accmem_runs_last(mem);

	return last->start + last->size == more->runs[0].start;
}

static struct accmem_run *resize_new_runs(unsigned int nr)
{
	return kvmalloc_array(nr, sizeof(struct accmem_run),
			      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
}

/**
 * accmem_memory_join_prepare() - get ready to join two memories
 * @mem: the memory, which the caller alone resizes; of mapped translation
 * @more: what it gets at its end: of the same account and cache mode, mapped
 *	nowhere, and without pages
 *
 * Return: 0; -ENOMEM, and nothing has changed.
 */
int accmem_memory_join_prepare(struct accmem_memory *mem,
			       struct accmem_memory *more)
{
	unsigned int nr = mem->nr_runs + more->nr_runs;
	struct accmem_run *runs;

	if (resize_touches(mem, more))
		nr--;
	if (nr <= max(mem->max_runs, 1u))
		return 0;
	nr = max(nr, 2 * mem->nr_runs);
	runs = resize_new_runs(nr);
	if (!runs)
		return -ENOMEM;
	memcpy(runs, mem->runs, mem->nr_runs * sizeof(*runs));
	if (mem->runs != &mem->run)
		kvfree(mem->runs);
	mem->runs = runs;
	mem->max_runs = nr;
	return 0;
}

static void resize_set_size(struct accmem_memory *mem, u64 size)
{
	lockdep_assert_held(&mem->cv->lock);
	WRITE_ONCE(mem->size, size);
}

/**
 * accmem_memory_join() - join two memories
 * @mem: the memory
 * @more: as for accmem_memory_join_prepare(); empty then, for
 *	accmem_memory_destroy_empty()
 *
 * Does not sleep.
 */
void accmem_memory_join(struct accmem_memory *mem, struct accmem_memory *more)
{
	struct accmem_carveout *cv = mem->cv;
	const struct accmem_run *from = more->runs;
	unsigned int nr = more->nr_runs;

	accmem_carveout_lock(cv);
	if (resize_touches(mem, more)) {
		accmem_runs_last(mem)->size += from->size;
		from++;
		nr--;
	}
	memcpy(mem->runs + mem->nr_runs, from, nr * sizeof(*from));
	mem->nr_runs += nr;
	if (mem->nr_runs == 1)
		mem->run = mem->runs[0];
	resize_set_size(mem, mem->size + more->size);
	resize_set_size(more, 0);
	accmem_carveout_unlock(cv);
}

/**
 * accmem_memory_swap_runs() - change what is behind two memories
 * @mem: a memory
 * @other: another of the same account. Neither is found by its runs. Does not
 *	sleep.
 */
void accmem_memory_swap_runs(struct accmem_memory *mem,
			     struct accmem_memory *other)
{
	struct accmem_carveout *cv = mem->cv;
	u64 size = mem->size;

	WARN_ON_ONCE(mem->nr_runs != 1 || other->nr_runs != 1);
	accmem_carveout_lock(cv);
	swap(mem->runs[0], other->runs[0]);
	mem->run = mem->runs[0];
	other->run = other->runs[0];
	resize_set_size(mem, other->size);
	resize_set_size(other, size);
	accmem_carveout_unlock(cv);
}

/* the run that @size bytes end in, and how much of it they have */
static unsigned int resize_find(const struct accmem_memory *mem, u64 size,
				u64 *kept)
{
	unsigned int i;

	for (i = 0; size > mem->runs[i].size; i++)
		size -= mem->runs[i].size;
	*kept = size;
	return i;
}

/**
 * accmem_memory_keep() - what a memory has when it has shrunk
 * @mem: the memory, which the caller alone resizes
 * @size: bytes that it is to have at least, not 0, at most what it has
 * @nr_runs: out: runs
 *
 * Return: bytes; more than @size where a part cannot be given back, which a fault
 * may change.
 */
u64 accmem_memory_keep(struct accmem_memory *mem, u64 size,
		       unsigned int *nr_runs)
{
	u64 kept;

	if (size < mem->size && mem->cv->ops->keep)
		size = min(mem->cv->ops->keep(mem, size), mem->size);
	*nr_runs = resize_find(mem, size, &kept) + 1;
	return size;
}

/* @rest gets runs: what @mem has beyond @size */
static int resize_copy_rest(struct accmem_memory *mem,
			    struct accmem_memory *rest, u64 size)
{
	unsigned int first, nr;
	u64 kept;

	first = resize_find(mem, size, &kept);
	nr = mem->nr_runs - first;
	rest->runs = &rest->run;
	if (nr > 1) {
		rest->runs = resize_new_runs(nr);
		if (!rest->runs) {
			rest->runs = NULL;
			return -ENOMEM;
		}
	}
	memcpy(rest->runs, mem->runs + first, nr * sizeof(*rest->runs));
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

static void resize_drop_rest(struct accmem_memory *rest)
{
	if (rest->runs != &rest->run)
		kvfree(rest->runs);
	rest->runs = NULL;
	rest->nr_runs = 0;
	rest->size = 0;
}

/**
 * accmem_memory_split_prepare() - get ready to split a memory
 * @mem: the memory, which the caller alone resizes
 * @rest: an empty memory of the same account; gets what is beyond @size
 * @size: bytes that @mem keeps at least, not 0
 *
 * The lock of @mem is held until the memory is split, so that no page appears. On
 * success accmem_memory_split() follows, and accmem_memory_split_end() or
 * accmem_memory_split_abort().
 *
 * Return: 0; -ENODATA where nothing can be given back; -ENOMEM.
 */
int accmem_memory_split_prepare(struct accmem_memory *mem,
				struct accmem_memory *rest, u64 size)
{
	const struct accmem_backing_ops *ops = mem->cv->ops;
	int err = -ENODATA;

	lockdep_assert_held(&mem->lock);
	if (ops->keep)
		size = min(ops->keep(mem, size), mem->size);
	if (size < mem->size)
		err = resize_copy_rest(mem, rest, size);
	if (err)
		return err;
	rest->size = mem->size - size;
	rest->offset = mem->offset + size;
	rest->huge = mem->huge;
	rest->cache_mode = mem->cache_mode;
	err = ops->split ? ops->split(mem, rest) : 0;
	if (err)
		resize_drop_rest(rest);
	return err;
}

/**
 * accmem_memory_split() - split a memory
 * @mem: the memory; the lock is held, too, under which it becomes mapped
 * @rest: as for accmem_memory_split_prepare(); live then
 *
 * Return: false if nothing was done, for @mem has been mapped meanwhile, and more
 * of it stays: accmem_memory_split_abort() and another attempt follow.
 */
bool accmem_memory_split(struct accmem_memory *mem, struct accmem_memory *rest)
{
	struct accmem_carveout *cv = mem->cv;
	u64 kept, size = mem->size - rest->size;

	if (cv->ops->keep && cv->ops->keep(mem, size) > size)
		return false;
	rest->mapped = accmem_memory_was_mapped(mem);
	accmem_carveout_lock(cv);
	mem->nr_runs = resize_find(mem, size, &kept) + 1;
	accmem_runs_last(mem)->size = kept;
	if (mem->nr_runs == 1)
		mem->run = mem->runs[0];
	mem->longest = max(mem->longest, mem->size);
	resize_set_size(mem, size);
	accmem_carveout_unlock(cv);
	return true;
}

/**
 * accmem_memory_split_abort() - undo accmem_memory_split_prepare()
 * @rest: is empty again; the kernel maps it not, for that leaves nothing to stay
 */
void accmem_memory_split_abort(struct accmem_memory *rest)
{
	xa_destroy(&rest->pages);
	resize_drop_rest(rest);
}

/**
 * accmem_memory_split_end() - forget the pages of what a memory has lost
 * @mem: the memory, after accmem_memory_split(); its lock is held
 */
void accmem_memory_split_end(struct accmem_memory *mem)
{
	lockdep_assert_held(&mem->lock);
	if (mem->cv->ops->trim)
		mem->cv->ops->trim(mem);
}

static void resize_unmap(struct accmem_memory *mem, u64 offset, u64 size)
{
	struct file *file = READ_ONCE(mem->account->file);

	if (file)
		unmap_mapping_range(file->f_mapping, mem->offset + offset, size,
				    1);
}

/**
 * accmem_memory_split_finish() - give back what a memory has lost
 * @mem: the memory, after accmem_memory_split_end(), without its lock
 * @rest: goes, or is quarantined. Sleeps.
 */
void accmem_memory_split_finish(struct accmem_memory *mem,
				struct accmem_memory *rest)
{
	if (rest->mapped) {
		mem->cv->ops->pass_faults(rest);
		resize_unmap(mem, mem->size, rest->size);
	}
	accmem_memory_detach(rest);
}

/* do pages stay with somebody while faults wait, for as long as a pin is not gone? */
static bool resize_look_for_pins(struct accmem_memory *mem)
{
	unsigned long until = jiffies + RESIZE_PATIENCE;

	for (;;) {
		resize_unmap(mem, 0, mem->size);
		if (accmem_reap_is_idle(mem))
			return false;
		if (time_after(jiffies, until) || fatal_signal_pending(current))
			return true;
		schedule_timeout_killable(1);
	}
}

/**
 * accmem_memory_is_pinned() - has anybody pages of a memory?
 * @mem: the memory, whose mappings are taken down, and come back by a fault
 *
 * A fault, or a walk of page tables, has a page for a moment: that is waited for, and
 * new faults wait meanwhile.
 *
 * Return: whether somebody has, or the caller is being killed. Sleeps.
 */
bool accmem_memory_is_pinned(struct accmem_memory *mem)
{
	bool pinned;

	if (!accmem_memory_was_mapped(mem) || !mem->cv->ops->idle)
		return false;
	atomic_inc(&mem->asked);
	pinned = resize_look_for_pins(mem);
	if (atomic_dec_and_test(&mem->asked))
		wake_up_var(&mem->asked);
	return pinned;
}

/**
 * accmem_memory_await_answer() - have a fault wait for accmem_memory_is_pinned()
 * @mem: the memory, to no page of which the caller has a reference. Sleeps, for a
 *	bounded time: who asks on and on does not keep others from the memory.
 */
void accmem_memory_await_answer(struct accmem_memory *mem)
{
	if (atomic_read(&mem->asked))
		wait_var_event_timeout(&mem->asked, !atomic_read(&mem->asked),
				       2 * RESIZE_PATIENCE);
}

/* through memory of the kernel's, as a device would copy */
static int resize_copy_through(struct accmem_memory *to, u64 to_offset,
			       struct accmem_memory *from, u64 from_offset,
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
 * accmem_memory_copy() - copy from a memory to another one
 * @to: the memory that gets the bytes: of the same account
 * @to_offset: where in it
 * @from: the memory that they are in
 * @from_offset: where in it
 * @size: how many. Sleeps.
 *
 * Return: 0; -ENOMEM, -EINTR.
 */
int accmem_memory_copy(struct accmem_memory *to, u64 to_offset,
		       struct accmem_memory *from, u64 from_offset, u64 size)
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
 * accmem_memory_clear() - clear a part of a memory that is in use
 * @mem: the memory
 * @offset: where, in bytes
 * @size: how many. Sleeps.
 *
 * Return: 0; -ENOMEM, -EINTR.
 */
int accmem_memory_clear(struct accmem_memory *mem, u64 offset, u64 size)
{
	u64 done, part;
	int err;

	for (done = 0; done < size; done += part) {
		if (fatal_signal_pending(current))
			return -EINTR;
		part = min(size - done, RESIZE_CHUNK);
		err = mem->cv->ops->zero(mem, offset + done, part);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}
