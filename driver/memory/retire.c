// SPDX-License-Identifier: GPL-2.0
/*
 * Retirement: take memory that has failed out of use.
 *
 * Free memory is retired at once: it leaves the free space for good. Memory in use is
 * pending until its free:
 *
 * - its mappings are removed, and a fault on it raises SIGBUS;
 * - ACCESS and copies of the kernel fail with -EHWPOISON; clearing at an allocation leaves
 *   the failed memory out;
 * - caches of freed buffers are drained, and no freed buffer that has failed is reused;
 * - the good memory of the same buffer stays in use, and is mapped again by faults;
 * - the free retires the failed granules, and frees the others (memory/runs.c).
 *
 * A page that is pinned stays reachable for the device that has pinned it.
 *
 * Failures of memory with a physical address are remembered until the module is unloaded
 * (remember.c).
 *
 * Order: the failure is recorded first. Then the locks under which faults and accesses
 * check for failures are taken and released: those that have not seen the record are over.
 * Then the mappings are removed. Memory of the emulated backing has no such lock: a fault
 * that was under way may map a page of it, which does no harm since the memory itself has
 * not failed (the kernel knows the pages that have).
 *
 * Locking: remember_lock > accmem_failed.lock > cleaner.lock > the carveout's lock;
 * accmem_failed.lock > folio lock, invalidate_lock. The cleaner has no chunk while its lock
 * is held, so that all memory is either free or of a buffer object.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/pagemap.h>
#include <linux/ratelimit.h>

#include "core/account.h"
#include "core/carveout.h"
#include "core/failed.h"
#include "internal.h"
#include "memory/mapping.h"
#include "memory/retire.h"
#include "trace/trace.h"
#include "types/backing_types.h"

/* With mapped translation, offsets do not tell where the memory is mapped: remove all. */
static void retire_unmap_account(struct accmem_carveout *cv,
				 struct accmem_account *account, u64 offset,
				 u64 size)
{
	struct file *file = READ_ONCE(account->file);
	struct address_space *mapping;

	if (!file)
		return;
	mapping = file->f_mapping;
	filemap_invalidate_lock(mapping);
	filemap_invalidate_unlock(mapping);
	if (cv->translation != ACCMEM_TRANSLATION_IDENTITY) {
		unmap_mapping_range(mapping, 0, 0, 1);
		return;
	}
	offset += accmem_carveout_mmap_base(cv);
	accmem_mapping_drop_1g(mapping, offset);
	accmem_mapping_drop_1g(mapping, offset + size);
	unmap_mapping_range(mapping, offset, size, 1);
}

static void retire_unmap(struct accmem_carveout *cv, u64 offset, u64 size)
{
	struct accmem_account *account;
	unsigned long id = 0;

	while ((account = accmem_account_next(cv->carveouts->accounts, &id))) {
		retire_unmap_account(cv, account, offset, size);
		accmem_account_put(account);
		cond_resched();
	}
}

/* Record all granules of a range. Set *@pending if one of them is in use. */
static int retire_record(struct accmem_carveout *cv, u64 offset, u64 size,
			 enum accmem_cause cause, bool *pending)
{
	u64 end = offset + size;
	int err = 0, ret;

	mutex_lock(&cv->cleaner.lock);
	for (; offset < end; offset += ACCMEM_GRANULE) {
		ret = accmem_failed_add(cv, offset, cause);
		if (ret > 0)
			*pending = true;
		else if (ret < 0 && ret != -EEXIST)
			err = ret;
		cond_resched();
	}
	mutex_unlock(&cv->cleaner.lock);
	return err;
}

static int retire_range(struct accmem_carveout *cv, u64 offset, u64 size,
			enum accmem_cause cause)
{
	struct accmem_failed_bytes bytes;
	bool pending = false;
	int err;

	mutex_lock(&cv->failed.lock);
	if (cv->failed.stopped) {
		mutex_unlock(&cv->failed.lock);
		return -ENODEV;
	}
	err = retire_record(cv, offset, size, cause, &pending);
	if (cv->ops->isolate)
		cv->ops->isolate(cv, offset, size);
	if (pending)
		retire_unmap(cv, offset, size);
	mutex_unlock(&cv->failed.lock);
	if (pending)
		cv->failed.drain(cv);
	accmem_retire_bytes(cv, &bytes);
	trace_accmem_retire(cv, offset, size, cause, bytes.retired,
			    bytes.pending);
	return err;
}

/**
 * accmem_retire() - take a part of a carveout out of use
 * @cv: the carveout
 * @offset: offset in the carveout, in bytes
 * @size: size in bytes; all granules that contain a byte of the part are retired
 * @cause: how the caller knows that the memory has failed
 *
 * The memory may be free, in use or retired already. The function does not wait for
 * memory in use: it is pending when the function returns, and retired when it is freed.
 *
 * Context: Process context. The caller holds no lock of accmem, no folio lock and no
 * mmap_lock. Takes accmem_cleaner.lock, whose holder may wait for a fence of the device.
 * May sleep.
 * Return: 0; -EINVAL if the part is empty or not inside the carveout; -ENOMEM if some of
 * it could not be recorded; -ENODEV if the carveout is being destroyed.
 */
int accmem_retire(struct accmem_carveout *cv, u64 offset, u64 size,
		  enum accmem_cause cause)
{
	int err = 0;
	u64 end;

	if (!size || check_add_overflow(offset, size, &end) ||
	    end > cv->capacity)
		return -EINVAL;
	offset = round_down(offset, ACCMEM_GRANULE);
	size = round_up(end, ACCMEM_GRANULE) - offset;
	if (cv->ops->physical_at)
		err = accmem_remember(cv->ops->physical_at(cv, offset), size,
				      cause);
	err = retire_range(cv, offset, size, cause) ?: err;
	pr_notice_ratelimited("%s: %llu bytes at %#llx of carveout %u have failed\n",
			      cv->carveouts->accounts->name, size, offset,
			      cv->index);
	return err;
}

static int retire_remembered_part(void *arg, u64 start, u64 size,
				  enum accmem_cause cause)
{
	struct accmem_carveout *cv = arg;

	return retire_range(cv, start - cv->ops->physical_at(cv, 0), size,
			    cause);
}

/**
 * accmem_retire_remembered() - retire the memory of a new carveout that has failed before
 * @cv: the carveout, complete, all of it free
 *
 * Context: Process context. Takes and releases remember_lock. May sleep.
 * Return: 0, -ENOMEM.
 */
int accmem_retire_remembered(struct accmem_carveout *cv)
{
	return accmem_remember_each(cv->ops->physical_at(cv, 0), cv->capacity,
				    retire_remembered_part, cv);
}

/**
 * accmem_retire_bytes() - read how much memory of a carveout has failed
 * @cv: the carveout
 * @bytes: out: the bytes, of one moment
 *
 * Context: Not in an interrupt. Takes and releases the carveout's lock. Does not sleep.
 */
void accmem_retire_bytes(struct accmem_carveout *cv,
			 struct accmem_failed_bytes *bytes)
{
	accmem_carveout_lock(cv);
	bytes->retired = cv->bytes[ACCMEM_RETIRED];
	bytes->pending = cv->failed.pending;
	bytes->lost = cv->failed.lost;
	accmem_carveout_unlock(cv);
}

/**
 * accmem_retire_init() - initialise the record of failures of a carveout
 * @cv: the carveout
 * @drain: called without locks after memory in use has failed, to drain the caches of
 *	freed buffers
 *
 * Context: Any context. Does not sleep.
 */
void accmem_retire_init(struct accmem_carveout *cv,
			void (*drain)(struct accmem_carveout *cv))
{
	cv->failed.drain = drain;
	mutex_init(&cv->failed.lock);
	xa_init(&cv->failed.granules);
}

/**
 * accmem_retire_stop() - let the carveout be destroyed
 * @cv: the carveout, of which no memory is in use
 *
 * Failures are only remembered from here on.
 *
 * Context: Process context. Waits for accmem_retire(). May sleep.
 */
void accmem_retire_stop(struct accmem_carveout *cv)
{
	mutex_lock(&cv->failed.lock);
	cv->failed.stopped = true;
	mutex_unlock(&cv->failed.lock);
	WARN_ON_ONCE(cv->failed.pending);
}

/**
 * accmem_retire_destroy() - free the record of failures of a carveout
 * @cv: the carveout; its backing is destroyed, so that no failure is reported any more
 *
 * Context: Process context. May sleep.
 */
void accmem_retire_destroy(struct accmem_carveout *cv)
{
	xa_destroy(&cv->failed.granules);
	mutex_destroy(&cv->failed.lock);
}
