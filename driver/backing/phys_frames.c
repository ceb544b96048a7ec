// SPDX-License-Identifier: GPL-2.0
/*
 * Phys backing without page structures: memory mapped by frame number.
 *
 * The memory can have any cache mode and cannot be pinned.
 *
 * The kernel maps the memory of a buffer object (accmem_bo.io) with its cache mode
 * when the memory is first cleared, accessed or mapped by a program. The mapping stays
 * until the release, or until the device is gone: the range then may be mapped with another
 * cache mode. The mapping registers the cache mode of the range; on x86, user mappings
 * get their cache mode from there. Memory that is clean and that only a device uses
 * has no kernel mapping.
 *
 * A buffer object that has grown gets one new mapping of all its memory. One mapping
 * for each step of the growth would make each step slower than the last.
 *
 * User mappings have entries of 1 GiB, 2 MiB or 4 KiB. Code that unmaps a part of a buffer
 * object calls accmem_mapping_drop_1g() before, at both ends of the part.
 *
 * Locking: accmem_bo.lock is held while a kernel mapping is made, and keeps the size unchanged
 * while a device accesses the memory. A fault holds the invalidate lock of the
 * address_space while it compares with the size and inserts frames that have not failed.
 */
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/pagemap.h>

#include "compat/compat.h"
#include "core/cache_mode.h"
#include "core/failed.h"
#include "core/revoke.h"
#include "internal.h"
#include "memory/clear.h"
#include "memory/mapping.h"

/* Exchange the kernel mapping with *@io. */
static void frames_set_io(struct accmem_bo *bo, void __iomem **io, u64 size)
{
	struct accmem_carveout *cv = bo->cv;

	accmem_carveout_lock(cv);
	swap(bo->io, *io);
	WRITE_ONCE(bo->io_size, size);
	if (list_empty(&bo->io_link))
		list_add_tail(&bo->io_link, &cv->kernel_maps);
	accmem_carveout_unlock(cv);
}

/* Take the kernel mapping, which the caller unmaps, from a buffer object that has one. */
static void __iomem *frames_take_io(struct accmem_bo *bo)
{
	void __iomem *io = bo->io;

	lockdep_assert_held(&bo->cv->lock);
	bo->io = NULL;
	WRITE_ONCE(bo->io_size, 0);
	list_del_init(&bo->io_link);
	return io;
}

static int frames_map_now(struct accmem_bo *bo, u64 size)
{
	phys_addr_t phys = accmem_phys_at(bo->cv, bo->run.start);
	void __iomem *io =
		accmem_cache_mode_ioremap(bo->cache_mode, phys, size);

	if (!io)
		return -ENOMEM;
	frames_set_io(bo, &io, size);
	if (io)
		iounmap(io);
	return 0;
}

/*
 * Map the first @size bytes into the kernel. The caller holds @bo->lock, or @bo is
 * private to it. frames_release() undoes the mapping. frames_drop() runs when no code is in a
 * section, so that no mapping is made after it.
 */
static int frames_map(struct accmem_bo *bo, u64 size)
{
	int section = accmem_section_begin(), err = -ENOMEM;

	if (!READ_ONCE(bo->cv->carveouts->gone))
		err = frames_map_now(bo, size);
	accmem_exit(section);
	return err;
}

/* Map @bo into the kernel if the mapping ends before @end. -ENXIO beyond the size. */
static int frames_map_up_to(struct accmem_bo *bo, u64 end)
{
	u64 size = READ_ONCE(bo->size);

	lockdep_assert_held(&bo->lock);
	if (end <= bo->io_size)
		return 0;
	return end <= size ? frames_map(bo, size) : -ENXIO;
}

/*
 * Zero memory through a mapping that is not cached. On arm64 the cache may still have clean
 * lines of the last owner, which a later owner with a cached mapping would read: drop them.
 * x86 processors do that themselves.
 */
static void frames_zero_io(struct accmem_carveout *cv, void __iomem *io,
			   u64 size)
{
	memset_io(io, 0, size);
	if (IS_ENABLED(CONFIG_ARM64) && cv->cache_modes & BIT(ACCMEM_CACHE_WB))
		accmem_phys_flush((__force void *)io, size);
}

/* Zero bytes that the kernel mapping contains. */
static void frames_clear_mapped(struct accmem_bo *bo, u64 offset, u64 size)
{
	if (bo->cache_mode == ACCMEM_CACHE_WB)
		accmem_phys_zero((__force void *)bo->io + offset, size);
	else
		frames_zero_io(bo->cv, bo->io + offset, size);
}

static int frames_clear_dirty(struct accmem_bo *bo,
			      const struct accmem_run *run)
{
	frames_clear_mapped(bo, run->start - bo->run.start, run->size);
	return 0;
}

/* Return true if some of @run must be cleared. */
static bool frames_is_dirty(struct accmem_bo *bo, const struct accmem_run *run)
{
	struct accmem_run dirty;

	return accmem_clear_next(bo->cv, run->start, run->size, &dirty);
}

/* Map all of @bo into the kernel before mmap(): a fault cannot return -ENOMEM. */
static int frames_map_all(struct accmem_bo *bo)
{
	int err;

	mutex_lock(&bo->lock);
	err = frames_map_up_to(bo, READ_ONCE(bo->size));
	mutex_unlock(&bo->lock);
	return err;
}

/* Read memory; write-back memory may turn out to have failed. */
static int frames_read(struct accmem_bo *bo, u64 offset, void *data, u64 size)
{
	void __iomem *from = bo->io + offset;

	if (bo->cache_mode != ACCMEM_CACHE_WB)
		memcpy_fromio(data, from, size);
	else if (copy_mc_to_kernel(data, (__force void *)from, size))
		return -EHWPOISON;
	return 0;
}

/* Write memory. memcpy_toio() copies four or eight bytes at a time, for memory of a device. */
static void frames_write(struct accmem_bo *bo, u64 offset, const void *data,
			 u64 size)
{
	void __iomem *to = bo->io + offset;

	if (bo->cache_mode == ACCMEM_CACHE_WB)
		memcpy((__force void *)to, data, size);
	else
		memcpy_toio(to, data, size);
}

static int frames_access_locked(struct accmem_bo *bo, u64 offset, void *data,
				u64 size, bool write)
{
	int err;

	if (offset + size > READ_ONCE(bo->size))
		return -ENXIO;
	if (accmem_bo_has_failed(bo, offset, size))
		return -EHWPOISON;
	err = frames_map_up_to(bo, offset + size);
	if (err)
		return err;
	if (!data) {
		frames_clear_mapped(bo, offset, size);
	} else if (write) {
		accmem_phys_touch(bo, offset, size);
		frames_write(bo, offset, data, size);
	} else {
		return frames_read(bo, offset, data, size);
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

/*
 * A cache line that is written back later would overwrite data of the next owner. In the
 * section the kernel mapping stays, unless the device is gone.
 */
static void frames_flush(struct accmem_bo *bo)
{
	int section = accmem_section_begin();

	if (!READ_ONCE(bo->cv->carveouts->gone))
		accmem_phys_flush((__force void *)bo->io, bo->io_size);
	accmem_exit(section);
}

/* Remove a kernel mapping, if it is not NULL. */
static void frames_unmap(u32 cache_mode, void __iomem *io, u64 size)
{
	if (!io)
		return;
	if (cache_mode == ACCMEM_CACHE_WB)
		accmem_phys_flush((__force void *)io, size);
	iounmap(io);
}

/* Without a kernel mapping, only the device used the memory, or it was split off. */
static bool frames_release(struct accmem_bo *bo, enum accmem_release which)
{
	void __iomem *io;
	int section;
	u64 size;

	if (which != ACCMEM_RELEASE_ALL || !READ_ONCE(bo->io_size))
		return false;
	/* In a section: frames_drop() finds the mapping, or it is gone before. */
	section = accmem_section_begin();
	accmem_carveout_lock(bo->cv);
	size = bo->io_size;
	io = frames_take_io(bo);
	accmem_carveout_unlock(bo->cv);
	frames_unmap(bo->cache_mode, io, size);
	accmem_exit(section);
	return false;
}

/* Memory that is gone may be mapped by others, with another cache mode. */
static void frames_drop(struct accmem_carveout *cv)
{
	struct accmem_bo *bo;
	void __iomem *io;
	u32 cache_mode;
	u64 size;

	accmem_carveout_lock(cv);
	while ((bo = list_first_entry_or_null(&cv->kernel_maps,
					      struct accmem_bo, io_link))) {
		cache_mode = bo->cache_mode;
		size = bo->io_size;
		io = frames_take_io(bo);
		accmem_carveout_unlock(cv);
		frames_unmap(cache_mode, io, size);
		cond_resched();
		accmem_carveout_lock(cv);
	}
	accmem_carveout_unlock(cv);
}

/*
 * Remove the run behind @bo from the kernel mapping, after init() has failed. The run
 * is freed: its cache lines must be written back, and the mapping must not overlap that
 * of the next owner. If memory for a new mapping is short, the larger mapping stays
 * until @bo is mapped again or released. A new bo has no run behind it.
 */
static void frames_init_undo(struct accmem_bo *bo)
{
	mutex_lock(&bo->lock);
	if (bo->io_size > bo->run.size) {
		if (bo->cache_mode == ACCMEM_CACHE_WB)
			frames_flush(bo);
		frames_map(bo, bo->run.size);
	}
	mutex_unlock(&bo->lock);
}

static int frames_init(struct accmem_bo *bo, const struct accmem_run *run)
{
	int err;

	/* Invalidate first: after a failure the memory is freed as this account's. */
	accmem_clear_invalidate_others(bo->cv, run, bo->account->id);
	if (!frames_is_dirty(bo, run))
		return 0;
	mutex_lock(&bo->lock);
	err = frames_map(bo, run->start + run->size - bo->run.start);
	mutex_unlock(&bo->lock);
	if (!err)
		err = accmem_clear_sync(bo, run, frames_clear_dirty);
	if (err)
		frames_init_undo(bo);
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
		frames_release(rest, ACCMEM_RELEASE_ALL);
		return -ENOMEM;
	}
	return 0;
}

static int frames_clear_free(struct accmem_carveout *cv, u64 offset, u64 size)
{
	void __iomem *io = ioremap_wc(accmem_phys_at(cv, offset), size);

	if (!io)
		return -ENOMEM;
	frames_zero_io(cv, io, size);
	iounmap(io);
	return 0;
}

/* Address in @vma at which the memory of @bo ends. */
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

/* Map up to @end into the kernel, since that mapping sets the users' cache mode. */
static vm_fault_t frames_address(struct accmem_bo *bo, u64 end)
{
	int err;

	if (end <= READ_ONCE(bo->io_size))
		return 0;
	mutex_lock(&bo->lock);
	err = frames_map_up_to(bo, end);
	mutex_unlock(&bo->lock);
	/* -ENXIO: @bo has shrunk. The next fault finds the new end. */
	return err == -ENOMEM ? VM_FAULT_SIGBUS : err ? VM_FAULT_NOPAGE : 0;
}

/* Insert the frame at @addr, unless it has failed. */
static vm_fault_t frames_insert_one(struct accmem_bo *bo,
				    struct vm_area_struct *vma,
				    unsigned long addr)
{
	u64 offset = accmem_phys_offset_at(bo->cv, vma->vm_pgoff) +
		     (addr - vma->vm_start);

	if (accmem_has_failed(bo->cv, offset, PAGE_SIZE))
		return VM_FAULT_HWPOISON;
	return vmf_insert_pfn(vma, addr,
			      PHYS_PFN(accmem_phys_at(bo->cv, offset)));
}

/* Insert the faulting frame, and then the others of its 2 MiB in the mapping. */
static vm_fault_t frames_insert(struct accmem_bo *bo, struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long base = round_down(vmf->address, ACCMEM_FOLIO);
	unsigned long from = max(base, vma->vm_start);
	unsigned long past = frames_mapping_end(bo, vma);
	unsigned long end = min(base + (ACCMEM_FOLIO - 1), past - 1);
	u64 start = accmem_phys_offset_at(bo->cv, vma->vm_pgoff);
	struct accmem_run shown = {
		.start = start + (from - vma->vm_start),
		.size = end + 1 - from,
	};
	unsigned long addr = vmf->address & PAGE_MASK;
	vm_fault_t ret;

	if (vmf->address >= past)
		return VM_FAULT_SIGBUS;
	ret = frames_address(bo, shown.start + shown.size - bo->run.start);
	if (ret)
		return ret;
	accmem_clear_mark_dirty(bo->cv, &shown);
	ret = frames_insert_one(bo, vma, addr);
	for (addr = from; addr < end && ret == VM_FAULT_NOPAGE;
	     addr += PAGE_SIZE) {
		ret = frames_insert_one(bo, vma, addr);
		/* Leave out a frame beside the faulting one that has failed. */
		if (ret == VM_FAULT_HWPOISON)
			ret = VM_FAULT_NOPAGE;
	}
	return ret;
}

/* Insert one entry of @order, if it maps memory of @bo only. */
static vm_fault_t frames_insert_huge(struct accmem_bo *bo, struct vm_fault *vmf,
				     unsigned int order)
{
	struct vm_area_struct *vma = vmf->vma;
	u64 size = PAGE_SIZE << order;
	unsigned long base = round_down(vmf->address, size);
	unsigned long past = frames_mapping_end(bo, vma);
	struct accmem_run shown = { .size = size };
	unsigned long pfn;
	vm_fault_t ret;

	if (base < vma->vm_start || past < base || past - base < size)
		return VM_FAULT_FALLBACK;
	shown.start = accmem_phys_offset_at(bo->cv, vma->vm_pgoff) +
		      (base - vma->vm_start);
	pfn = PHYS_PFN(accmem_phys_at(bo->cv, shown.start));
	if (!IS_ALIGNED(accmem_phys_at(bo->cv, 0) | shown.start, size) ||
	    !accmem_may_insert_huge(pfn, order) ||
	    accmem_has_failed(bo->cv, shown.start, size))
		return VM_FAULT_FALLBACK;
	ret = frames_address(bo, shown.start + size - bo->run.start);
	if (ret)
		return ret;
	accmem_clear_mark_dirty(bo->cv, &shown);
	return accmem_insert_huge(vmf, pfn, order);
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

static vm_fault_t frames_huge_fault(struct accmem_bo *bo, struct vm_fault *vmf,
				    unsigned int order)
{
	struct address_space *mapping = vmf->vma->vm_file->f_mapping;
	vm_fault_t ret;

	filemap_invalidate_lock_shared(mapping);
	ret = frames_insert_huge(bo, vmf, order);
	filemap_invalidate_unlock_shared(mapping);
	return ret;
}

/*
 * Faults hold the invalidate lock shared; an exclusive lock waits for them. Later faults
 * make no entry that reaches beyond the new end.
 */
static void frames_split_finish(struct accmem_bo *bo, struct accmem_bo *rest)
{
	struct file *file = READ_ONCE(bo->account->file);

	if (!file || !rest->mapped)
		return;
	filemap_invalidate_lock(file->f_mapping);
	filemap_invalidate_unlock(file->f_mapping);
	accmem_mapping_drop_1g(file->f_mapping, rest->offset);
}

/* No is_idle: memory without page structures cannot be referenced. */
const struct accmem_backing_ops accmem_phys_frames_ops = {
	.fault = frames_fault,
	.huge_fault = frames_huge_fault,
	.access = frames_access,
	.init = frames_init,
	.map = frames_map_all,
	.physical = accmem_phys_physical,
	.release = frames_release,
	.split = frames_split,
	.split_finish = frames_split_finish,
	.clear = frames_clear_free,
	.drop = frames_drop,
	.destroy = accmem_phys_destroy,
	.physical_at = accmem_phys_physical_at,
};
