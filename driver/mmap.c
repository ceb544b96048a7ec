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

#include "memory/bo.h"
#include "memory/vma.h"
#include "mmap.h"
#include "vm/buffer.h"

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
 * if the range is not inside one buffer, -ENFILE, -ENOMEM.
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
