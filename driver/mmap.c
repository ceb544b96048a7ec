// SPDX-License-Identifier: GPL-2.0
/*
 * mmap: map buffers into processes.
 *
 * A mapping belongs to a buffer object, not to a buffer: it shows the memory of a whole
 * buffer, or a slab page with small buffers. The mapping holds a reference to the
 * buffer object, and so outlives FREE. If the buffer was freed, the memory is freed
 * with its last mapping. memory/vma.c sets up the VMA.
 *
 * Locking: mmap_lock of the process, then ctx->lock for the lookup.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sizes.h>

#include "compat/compat.h"
#include "core/revoke.h"
#include "memory/bo.h"
#include "memory/vma.h"
#include "mmap.h"
#include "vm/buffer.h"
#include "vm/context.h"

/*
 * Return the buffer object at a published address, with a reference, and the offset in
 * it. It counts as mapped from here on: it does not enter the cache when it is freed, and
 * its pages may be pinned.
 */
static struct accmem_bo *mmap_find_bo(struct accmem_context *ctx, u64 address,
				      u64 *offset, u64 *room)
{
	struct accmem_bo *bo;

	spin_lock(&ctx->lock);
	bo = accmem_buffer_reach(ctx, address, offset, room);
	if (!IS_ERR(bo))
		accmem_bo_set_mapped(bo);
	spin_unlock(&ctx->lock);
	return bo;
}

/**
 * accmem_mmap() - map a buffer or a part of it
 * @file: the device's file
 * @vma: the VMA; its offset is the mmap offset of the buffer
 *
 * Context: Process context. The caller holds mmap_lock. Takes and releases ctx->lock.
 * May sleep.
 *
 * Return: 0; -EINVAL for a private mapping, -EACCES for an executable mapping, -ENXIO
 * if the range is not inside one buffer, -ENFILE, -ENOMEM; -ENODEV, -ECONNRESET if the
 * memory of the context is revoked.
 */
int accmem_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct accmem_context *ctx = file->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct accmem_bo *bo;
	u64 room;
	int err;

	err = accmem_vma_check(vma);
	if (err)
		return err;
	if (!accmem_context_is_valid(ctx))
		return accmem_revoked_error(ctx->carveouts);
	if (offset >= ctx->carveouts->address_span)
		return -ENXIO;
	bo = mmap_find_bo(ctx, ctx->carveouts->address_base + offset, &offset,
			  &room);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	err = vma->vm_end - vma->vm_start > room ?
		      -ENXIO :
		      accmem_vma_set_up(vma, bo, offset);
	if (err)
		accmem_bo_put_user(bo);
	return err;
}

/**
 * accmem_mmap_area() - choose the address of a mapping
 * @file: the device's file
 * @address: a hint, or the address of MAP_FIXED
 * @size: bytes
 * @pgoff: mmap offset in pages
 * @flags: flags of mmap()
 *
 * The address is congruent with the offset modulo 1 GiB if the mapping contains an aligned
 * GiB, and modulo 2 MiB otherwise, so that one entry can map as much.
 *
 * Context: Process context. The caller holds mmap_lock.
 * Return: the address; -ENOMEM.
 */
unsigned long accmem_mmap_area(struct file *file, unsigned long address,
			       unsigned long size, unsigned long pgoff,
			       unsigned long flags)
{
	u64 offset = (u64)pgoff << PAGE_SHIFT;
	unsigned long at;

	if (size >= SZ_1G && offset < ACCMEM_MAX_SPAN &&
	    round_up(offset, (u64)SZ_1G) + SZ_1G <= offset + size) {
		at = accmem_folio_area(file, address, size + SZ_1G, pgoff,
				       flags);
		if (!IS_ERR_VALUE(at) && at != address)
			return at + ((offset - at) & (SZ_1G - 1));
	}
	return accmem_folio_area(file, address, size, pgoff, flags);
}
