// SPDX-License-Identifier: GPL-2.0
/*
 * The phys backing without page structures: memory of any cache mode, which is
 * mapped by frame number and cannot be pinned.
 *
 * The kernel maps a memory with the memory's own cache mode from when somebody first
 * reaches it, or when it has to be cleared, until it goes. That makes the mode known for
 * the range, which is where user mappings take it from on x86. Most memory is the
 * device's alone and clean, and has no use for it. What a memory has grown by is mapped
 * in the same way: the mapping is one, and a new one for each of many steps would take
 * longer with each.
 *
 * Locks: accmem_bo.lock guards the kernel's mapping, and the end of the memory
 * while a device has access.
 */
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/pagemap.h>

#include "compat/compat.h"
#include "core/cache_mode.h"
#include "internal.h"
#include "memory/clear.h"

/* @bo->lock is held, or nobody else knows of it. Undone by frames_release(). */
static int frames_map(struct accmem_bo *bo, u64 size)
{
	phys_addr_t phys = bo->cv->phys + bo->run.start;
	void __iomem *io =
		accmem_cache_mode_ioremap(bo->cache_mode, phys, size);

	if (!io)
		return -ENOMEM;
	swap(bo->io, io);
	WRITE_ONCE(bo->io_size, size);
	if (io)
		iounmap(io);
	return 0;
}

/* The kernel's mapping is to have all up to @end, which is not beyond the memory. */
static int frames_map_up_to(struct accmem_bo *bo, u64 end)
{
	u64 size = READ_ONCE(bo->size);

	lockdep_assert_held(&bo->lock);
	if (end <= bo->io_size)
		return 0;
	return end <= size ? frames_map(bo, size) : -ENXIO;
}

/* what the kernel has mapped */
static void frames_clear_mapped(struct accmem_bo *bo, u64 offset, u64 size)
{
	if (bo->cache_mode == ACCMEM_CACHE_WB)
		accmem_phys_zero((__force void *)bo->io + offset, size);
	else
		memset_io(bo->io + offset, 0, size);
}

static void frames_clear_dirty(struct accmem_bo *bo,
			       const struct accmem_run *run)
{
	frames_clear_mapped(bo, run->start - bo->run.start, run->size);
}

/* has to be cleared */
static bool frames_is_dirty(struct accmem_bo *bo, const struct accmem_run *run)
{
	struct accmem_run dirty;

	return accmem_clear_next(bo->cv, run->start, run->size, &dirty);
}

static int frames_init(struct accmem_bo *bo)
{
	/* first: what is given back after a failure is this account's, too */
	accmem_clear_invalidate_others(bo->cv, &bo->run, bo->account->id);
	if (!frames_is_dirty(bo, &bo->run))
		return 0;
	return frames_map(bo, bo->run.size) ?:
		       accmem_clear_sync(bo, &bo->run, frames_clear_dirty);
}

/* A fault has no way to say that there is no memory. */
static int frames_map_all(struct accmem_bo *bo)
{
	int err;

	mutex_lock(&bo->lock);
	err = frames_map_up_to(bo, READ_ONCE(bo->size));
	mutex_unlock(&bo->lock);
	return err;
}

static int frames_clear_range(struct accmem_bo *bo, u64 offset, u64 size)
{
	int err;

	mutex_lock(&bo->lock);
	err = frames_map_up_to(bo, offset + size);
	if (!err)
		frames_clear_mapped(bo, offset, size);
	mutex_unlock(&bo->lock);
	return err;
}

static int frames_access_locked(struct accmem_bo *bo, u64 offset, void *data,
				u64 size, bool write)
{
	int err;

	if (offset + size > READ_ONCE(bo->size))
		return -ENXIO;
	err = frames_map_up_to(bo, offset + size);
	if (err)
		return err;
	if (write) {
		accmem_phys_touch(bo, offset, size);
		memcpy_toio(bo->io + offset, data, size);
	} else {
		memcpy_fromio(data, bo->io + offset, size);
	}
	return 0;
}

static int frames_access(struct accmem_bo *bo, u64 offset, void *data, u64 size,
			 bool write)
{
	int err;

	mutex_lock(&bo->lock);
	err = frames_access_locked(bo, offset, data, size, write);
	mutex_unlock(&bo->lock);
	return err;
}

/* a line written back later would undo what the next owner does */
static void frames_flush(struct accmem_bo *bo)
{
	void *address = (__force void *)bo->io;
	u64 at, size;

	for (at = 0; at < bo->io_size; at += size) {
		size = min_t(u64, bo->io_size - at, ACCMEM_CHUNK);
		accmem_flush_cache(address + at, size);
		cond_resched();
	}
}

/* what has never been mapped is a part that was split off, or nobody has reached */
static void frames_release(struct accmem_bo *bo)
{
	if (!bo->io)
		return;
	if (bo->cache_mode == ACCMEM_CACHE_WB)
		frames_flush(bo);
	iounmap(bo->io);
}

/*
 * What was mapped of memory that goes back: with nothing of it in the cache, and no
 * mapping beside those of whoever gets it. Where there is no memory for another
 * mapping it stays, until the memory's is changed or goes.
 */
static void frames_extend_undo(struct accmem_bo *bo)
{
	mutex_lock(&bo->lock);
	if (bo->io_size > bo->run.size) {
		if (bo->cache_mode == ACCMEM_CACHE_WB)
			frames_flush(bo);
		frames_map(bo, bo->run.size);
	}
	mutex_unlock(&bo->lock);
}

static int frames_extend(struct accmem_bo *bo, const struct accmem_run *more)
{
	int err;

	accmem_clear_invalidate_others(bo->cv, more, bo->account->id);
	if (!frames_is_dirty(bo, more))
		return 0;
	mutex_lock(&bo->lock);
	err = frames_map(bo, bo->run.size + more->size);
	mutex_unlock(&bo->lock);
	if (!err)
		err = accmem_clear_sync(bo, more, frames_clear_dirty);
	if (err)
		frames_extend_undo(bo);
	return err;
}

static int frames_split(struct accmem_bo *bo, struct accmem_bo *rest)
{
	u64 size = bo->size - rest->size;

	if (bo->io_size <= size)
		return 0;
	if (frames_map(rest, rest->size))
		return -ENOMEM;
	if (frames_map(bo, size)) {
		iounmap(rest->io);
		rest->io = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int frames_clear_free(struct accmem_carveout *cv, u64 offset, u64 size)
{
	void __iomem *io = ioremap_wc(cv->phys + offset, size);

	if (!io)
		return -ENOMEM;
	memset_io(io, 0, size);
	iounmap(io);
	return 0;
}

/* where the part of a mapping ends that its memory has */
static unsigned long frames_mapping_end(struct accmem_bo *bo,
					struct vm_area_struct *vma)
{
	u64 before = ((u64)vma->vm_pgoff << PAGE_SHIFT) - bo->offset;
	u64 size = READ_ONCE(bo->size);

	if (size <= before)
		return vma->vm_start;
	return vma->vm_start +
	       min_t(u64, size - before, vma->vm_end - vma->vm_start);
}

/* The kernel's mapping says of what cache mode those of users are. */
static vm_fault_t frames_address(struct accmem_bo *bo, u64 end)
{
	int err;

	if (end <= READ_ONCE(bo->io_size))
		return 0;
	mutex_lock(&bo->lock);
	err = frames_map_up_to(bo, end);
	mutex_unlock(&bo->lock);
	/* it has shrunk meanwhile: the next fault sees where it ends */
	return err == -ENOMEM ? VM_FAULT_SIGBUS : err ? VM_FAULT_NOPAGE : 0;
}

/* all of the 2 MiB around the fault, as far as the mapping goes */
static vm_fault_t frames_insert(struct accmem_bo *bo, struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long base = round_down(vmf->address, ACCMEM_FOLIO);
	unsigned long from = max(base, vma->vm_start);
	unsigned long past = frames_mapping_end(bo, vma);
	unsigned long end = min(base + (ACCMEM_FOLIO - 1), past - 1);
	u64 start = accmem_phys_offset_at(bo->cv, vma->vm_pgoff);
	unsigned long pfn = PHYS_PFN(bo->cv->phys + start);
	struct accmem_run shown = {
		.start = start + (from - vma->vm_start),
		.size = end + 1 - from,
	};
	unsigned long addr;
	vm_fault_t ret;

	if (vmf->address >= past)
		return VM_FAULT_SIGBUS;
	ret = frames_address(bo, shown.start + shown.size - bo->run.start);
	if (ret)
		return ret;
	accmem_clear_mark_dirty(bo->cv, &shown);
	ret = vmf_insert_pfn(vma, vmf->address & PAGE_MASK,
			     pfn + ((vmf->address - vma->vm_start) >>
				    PAGE_SHIFT));
	for (addr = from; addr < end && ret == VM_FAULT_NOPAGE;
	     addr += PAGE_SIZE)
		ret = vmf_insert_pfn(vma, addr,
				     pfn + ((addr - vma->vm_start) >>
					    PAGE_SHIFT));
	return ret;
}

static vm_fault_t frames_fault(struct accmem_bo *bo, struct vm_fault *vmf)
{
	struct address_space *mapping = vmf->vma->vm_file->f_mapping;
	vm_fault_t ret;

	filemap_invalidate_lock_shared(mapping);
	ret = frames_insert(bo, vmf);
	filemap_invalidate_unlock_shared(mapping);
	return ret;
}

/* faults hold the lock of the mapping */
static void frames_sync_faults(struct accmem_bo *rest)
{
	struct file *file = READ_ONCE(rest->account->file);

	if (!file)
		return;
	filemap_invalidate_lock(file->f_mapping);
	filemap_invalidate_unlock(file->f_mapping);
}

/* nobody can have a reference to what has no page */
const struct accmem_backing_ops accmem_phys_frames_ops = {
	.init = frames_init,
	.fault = frames_fault,
	.map = frames_map_all,
	.clear_range = frames_clear_range,
	.access = frames_access,
	.extend = frames_extend,
	.split = frames_split,
	.sync_faults = frames_sync_faults,
	.release = frames_release,
	.clear = frames_clear_free,
	.destroy = accmem_phys_release_range,
};
