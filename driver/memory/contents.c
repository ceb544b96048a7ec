// SPDX-License-Identifier: GPL-2.0
/*
 * Contents: zero, populate and copy the memory of buffer objects in use.
 *
 * Where the kernel has addresses of the memory, bytes are copied directly, else through
 * a buffer, with the access operation of the backing. A long operation ends early when
 * the caller is being killed.
 *
 * Locking: none here. The caller keeps the buffer objects from being shrunk, so that an
 * access never fails with -ENXIO.
 *
 * Memory that has failed is neither read nor written. Memory that fails while it is read
 * ends the copy with -EHWPOISON.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include "core/engine.h"
#include "core/failed.h"
#include "core/revoke.h"
#include "memory/clear.h"
#include "memory/contents.h"
#include "types/backing_types.h"
#include "types/bo_types.h"

#define CONTENTS_CHUNK \
	((u64)SZ_2M) /* bytes between two checks for a fatal signal */
#define CONTENTS_BUFFER ((u64)SZ_64K)

/**
 * accmem_bo_access() - read, write or zero bytes of a buffer object
 * @bo: the buffer object
 * @offset: offset in @bo, in bytes
 * @data: bytes to write, or room for the bytes to read; NULL to zero
 * @size: number of bytes
 * @write: true to write or zero
 *
 * Context: Process context. May sleep.
 * Return: 0; -ENXIO beyond the end of @bo; -EHWPOISON if some of the memory has failed;
 * -ECONNRESET, -ENODEV if the memory is revoked or its contents are lost; -ENOMEM.
 */
int accmem_bo_access(struct accmem_bo *bo, u64 offset, void *data, u64 size,
		     bool write)
{
	int section = accmem_bo_enter(bo), err;

	if (section < 0)
		return section;
	err = bo->cv->ops->access(bo, offset, data, size, write);
	accmem_exit(section);
	return err;
}

/**
 * accmem_bo_clear() - zero a part of a buffer object
 * @bo: the buffer object
 * @offset: offset in @bo, in bytes
 * @size: bytes to zero
 *
 * Context: Process context. May sleep.
 * Return: 0; -EHWPOISON if some of the memory has failed; -ENOMEM, -EINTR; -ECONNRESET,
 * -ENODEV as accmem_bo_access().
 */
int accmem_bo_clear(struct accmem_bo *bo, u64 offset, u64 size)
{
	u64 done, part;
	int err;

	for (done = 0; done < size; done += part) {
		if (fatal_signal_pending(current))
			return -EINTR;
		part = min(size - done, CONTENTS_CHUNK);
		err = accmem_bo_access(bo, offset + done, NULL, part, true);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

/**
 * accmem_bo_populate() - make the missing pages of a buffer object
 * @bo: the buffer object, of host memory, or with ACCMEM_FEATURE_FIRST_TOUCH
 * @offset: offset of the first page, in bytes
 * @end: offset of the end of the last page, in bytes
 *
 * After -ENOBUFS the caller may reclaim memory and try again.
 *
 * Context: Process context. May sleep.
 * Return: 0; -ENOBUFS if the host has no page, or if a limit on its pages is reached;
 * -EHWPOISON if a page that is present has failed; -EINTR.
 */
int accmem_bo_populate(struct accmem_bo *bo, u64 offset, u64 end)
{
	void *address;
	u64 part;

	for (; offset < end; offset += part) {
		if (fatal_signal_pending(current))
			return -EINTR;
		address = bo->cv->ops->kernel_address(bo, offset, true, &part);
		if (!address)
			return -ENOBUFS;
		if (IS_ERR(address))
			return PTR_ERR(address);
		cond_resched();
	}
	return 0;
}

/* Copy between addresses of the kernel. A missing page of @from is zero, as in @to. */
static int contents_copy_bytes(struct accmem_bo *to, u64 to_offset,
			       struct accmem_bo *from, u64 from_offset,
			       u64 size)
{
	void *source, *target;
	u64 part, room;

	for (; size; size -= part, to_offset += part, from_offset += part) {
		source = from->cv->ops->kernel_address(from, from_offset, false,
						       &part);
		part = min(part, size);
		if (!source)
			continue;
		target =
			to->cv->ops->kernel_address(to, to_offset, true, &room);
		if (!target)
			return -ENOMEM;
		part = min(part, room);
		if (IS_ERR(source) || IS_ERR(target) ||
		    copy_mc_to_kernel(target, source, part))
			return -EHWPOISON;
	}
	return 0;
}

static int contents_copy_directly(struct accmem_bo *to, u64 to_offset,
				  struct accmem_bo *from, u64 from_offset,
				  u64 size)
{
	int source = accmem_bo_enter(from), target, err;

	if (source < 0)
		return source;
	target = accmem_bo_enter(to);
	err = target < 0 ? target :
			   contents_copy_bytes(to, to_offset, from, from_offset,
					       size);
	if (target >= 0)
		accmem_exit(target);
	accmem_exit(source);
	return err;
}

static int contents_copy_through_buffer(struct accmem_bo *to, u64 to_offset,
					struct accmem_bo *from, u64 from_offset,
					u64 size)
{
	void *bytes = kvmalloc(CONTENTS_BUFFER, GFP_KERNEL);
	u64 done, part;
	int err = 0;

	if (!bytes)
		return -ENOMEM;
	for (done = 0; done < size && !err; done += part) {
		part = min(size - done, CONTENTS_BUFFER);
		err = accmem_bo_access(from, from_offset + done, bytes, part,
				       false);
		if (!err)
			err = accmem_bo_access(to, to_offset + done, bytes,
					       part, true);
	}
	kvfree(bytes);
	return err;
}

/* Let the device copy between buffer objects of one run. */
static int contents_copy_by_engine(struct accmem_bo *to, u64 to_offset,
				   struct accmem_bo *from, u64 from_offset,
				   u64 size)
{
	const struct accmem_run written = { to->run.start + to_offset, size };

	if (!accmem_engine_copies(to->cv, from->cv) || to->nr_runs != 1 ||
	    from->nr_runs != 1)
		return -EOPNOTSUPP;
	accmem_clear_mark_dirty(to->cv, &written);
	return accmem_engine_copy(to->cv, written.start, from->cv,
				  from->run.start + from_offset, size);
}

static int contents_copy(struct accmem_bo *to, u64 to_offset,
			 struct accmem_bo *from, u64 from_offset, u64 size)
{
	if (!contents_copy_by_engine(to, to_offset, from, from_offset, size))
		return 0;
	if (to->cv->ops->kernel_address && from->cv->ops->kernel_address)
		return contents_copy_directly(to, to_offset, from, from_offset,
					      size);
	return contents_copy_through_buffer(to, to_offset, from, from_offset,
					    size);
}

/**
 * accmem_bo_copy() - copy bytes from one buffer object to another
 * @to: the destination, of the same account as @from; its bytes are zero
 * @to_offset: offset in @to, in bytes
 * @from: the source
 * @from_offset: offset in @from, in bytes
 * @size: bytes to copy
 *
 * Context: Process context. May sleep.
 * Return: 0; -EHWPOISON if some of the memory has failed; -ENOMEM, -EINTR; -ECONNRESET,
 * -ENODEV as accmem_bo_access().
 */
int accmem_bo_copy(struct accmem_bo *to, u64 to_offset, struct accmem_bo *from,
		   u64 from_offset, u64 size)
{
	u64 done, part;
	int err;

	for (done = 0; done < size; done += part) {
		if (fatal_signal_pending(current))
			return -EINTR;
		part = min(size - done, CONTENTS_CHUNK);
		if (accmem_bo_has_failed(from, from_offset + done, part) ||
		    accmem_bo_has_failed(to, to_offset + done, part))
			return -EHWPOISON;
		err = contents_copy(to, to_offset + done, from,
				    from_offset + done, part);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}
