// SPDX-License-Identifier: GPL-2.0
/*
 * mmap: map buffers into processes.
 *
 * A mapping belongs to a buffer object, not to a buffer: it shows the memory of a whole
 * buffer, or a slab page with small buffers. The mapping holds a reference to the
 * buffer object, and so outlives FREE. If the buffer was freed, the memory is freed
 * with its last mapping.
 *
 * Faults are served by the backing of the carveout, or by memory/shared.c for shared
 * memory. A fault on revoked memory ends in SIGBUS.
 *
 * Locking: mmap_lock of the process, then ctx->lock for the lookup. The last unmap
 * takes the locks that freeing memory needs.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/sizes.h>

#include "compat/compat.h"
#include "core/cache_mode.h"
#include "core/carveout.h"
#include "core/revoke.h"
#include "memory/bo.h"
#include "memory/mapping.h"
#include "memory/resize.h"
#include "memory/shared.h"
#include "mmap.h"
#include "trace/trace.h"
#include "types/backing_types.h"
#include "vm/buffer.h"
#include "vm/context.h"

/* Serve a fault, unless the memory is revoked. */
static vm_fault_t mmap_serve(struct vm_fault *vmf,
			     vm_fault_t (*serve)(struct accmem_bo *bo,
						 struct vm_fault *vmf))
{
	struct accmem_bo *bo = vmf->vma->vm_private_data;
	int section = accmem_bo_enter(bo);
	vm_fault_t ret;

	if (section < 0)
		return VM_FAULT_SIGBUS;
	ret = serve(bo, vmf);
	accmem_exit(section);
	return ret;
}

static vm_fault_t mmap_fault(struct vm_fault *vmf)
{
	struct accmem_bo *bo = vmf->vma->vm_private_data;

	accmem_bo_wait_pin_check(bo);
	return mmap_serve(vmf, bo->cv->ops->fault);
}

/*
 * Map no page around a fault: only the pages that a fault asks for are there. The
 * kernel calls fault() under the lock of the VMA only for a VMA with this operation.
 * Without the operation it would retry the fault under mmap_lock.
 */
static vm_fault_t mmap_map_pages(struct vm_fault *vmf, pgoff_t start,
				 pgoff_t end)
{
	return 0;
}

/* Called when a VMA is split, moved, or copied to another process. */
static void mmap_open(struct vm_area_struct *vma)
{
	accmem_bo_get(vma->vm_private_data);
}

static void mmap_close(struct vm_area_struct *vma)
{
	accmem_bo_put_user(vma->vm_private_data);
}

/*
 * Access the memory for a debugger: ptrace() and /proc/PID/mem call this for a mapping
 * without page structures. The kernel does not check the rights of the mapping before.
 */
static int mmap_access(struct vm_area_struct *vma, unsigned long address,
		       void *data, int size, int write)
{
	struct accmem_bo *bo = vma->vm_private_data;
	u64 offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) - bo->offset +
		     (address - vma->vm_start);
	u64 end = READ_ONCE(bo->size);
	int section, err;

	if (!(vma->vm_flags & (write ? VM_WRITE : VM_MAYREAD)) || offset >= end)
		return -EIO;
	size = min3((u64)size, end - offset, (u64)vma->vm_end - address);
	section = accmem_bo_enter(bo);
	if (section < 0)
		return -EIO;
	err = bo->cv->ops->access(bo, offset, data, size, write);
	accmem_exit(section);
	return err ?: size;
}

static vm_fault_t __maybe_unused mmap_huge_fault(struct vm_fault *vmf,
						 unsigned int order)
{
	struct accmem_bo *bo = vmf->vma->vm_private_data;
	int section;
	vm_fault_t ret;

	if (!bo->cv->ops->huge_fault)
		return VM_FAULT_FALLBACK;
	section = accmem_bo_enter(bo);
	if (section < 0)
		return VM_FAULT_SIGBUS;
	ret = bo->cv->ops->huge_fault(bo, vmf, order);
	accmem_exit(section);
	return ret;
}

/* Return true if @vma contains the aligned GiB around an offset of the address_space. */
static bool mmap_may_have_1g(struct vm_area_struct *vma, u64 offset)
{
	u64 first = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 start = round_down(offset, (u64)SZ_1G);

	return start >= first &&
	       start + SZ_1G <= first + (vma->vm_end - vma->vm_start);
}

/*
 * Remove an entry of 1 GiB that the split would cut. A fault of another thread must not
 * make it again before the VMA is split. The caller holds mmap_lock for writing.
 */
static int mmap_may_split(struct vm_area_struct *vma, unsigned long address)
{
	u64 offset =
		((u64)vma->vm_pgoff << PAGE_SHIFT) + (address - vma->vm_start);

	if (!mmap_may_have_1g(vma, offset))
		return 0;
	accmem_vma_start_write(vma);
	accmem_mapping_drop_1g(vma->vm_file->f_mapping, offset);
	return 0;
}

/*
 * mremap() would report an entry of 1 GiB as a bad one, and lose it. So such entries are
 * removed before, and faults map the memory at the new address. fork() can copy them.
 */
static void mmap_frames_open(struct vm_area_struct *vma)
{
	u64 size = vma->vm_end - vma->vm_start;

	mmap_open(vma);
	if (ACCMEM_HUGE_FRAMES && size >= SZ_1G && vma->vm_mm == current->mm)
		unmap_mapping_range(vma->vm_file->f_mapping,
				    (u64)vma->vm_pgoff << PAGE_SHIFT, size, 1);
}

/* Mappings of memory without page structures */
static const struct vm_operations_struct mmap_frames_vm_ops = {
	.open = mmap_frames_open,
	.close = mmap_close,
	.may_split = mmap_may_split,
	.fault = mmap_fault,
	ACCMEM_HUGE_FAULT(mmap_huge_fault),
	.map_pages = mmap_map_pages,
	.access = mmap_access,
};

static const struct vm_operations_struct mmap_vm_ops = {
	.open = mmap_open,
	.close = mmap_close,
	.fault = mmap_fault,
	.map_pages = mmap_map_pages,
	.access = mmap_access,
};

static vm_fault_t mmap_shared_fault(struct vm_fault *vmf)
{
	return mmap_serve(vmf, accmem_shared_fault);
}

static vm_fault_t mmap_shared_mkwrite(struct vm_fault *vmf)
{
	return mmap_serve(vmf, accmem_shared_mkwrite);
}

/* Because page_mkwrite() is set, the kernel maps pages that are read as read-only. */
static const struct vm_operations_struct mmap_shared_vm_ops = {
	.open = mmap_open,
	.close = mmap_close,
	.fault = mmap_shared_fault,
	.map_pages = mmap_map_pages,
	.page_mkwrite = mmap_shared_mkwrite,
};

/*
 * Return the buffer object at a published address, with a reference. It counts as
 * mapped from here on: it does not enter the cache when it is freed, and its pages may
 * be pinned.
 */
static struct accmem_bo *mmap_find_bo(struct accmem_context *ctx, u64 address)
{
	struct accmem_bo *bo;

	spin_lock(&ctx->lock);
	bo = accmem_buffer_reach(ctx, address);
	if (!IS_ERR(bo))
		accmem_bo_set_mapped(bo);
	spin_unlock(&ctx->lock);
	return bo;
}

/* Set up the VMA. On success the VMA owns the caller's reference. */
static int mmap_bo(struct accmem_bo *bo, struct vm_area_struct *vma, u64 offset)
{
	/*
	 * VM_DONTEXPAND also prevents the kernel from merging adjacent VMAs of one
	 * file.
	 */
	unsigned long set = VM_DONTEXPAND;
	u64 size = vma->vm_end - vma->vm_start;
	u64 end = READ_ONCE(bo->size);
	struct file *file;
	int err;

	/*
	 * READ_ONCE: a REALLOC may shrink the buffer object at any time. Faults check
	 * the size again.
	 */
	if (offset >= end || size > end - offset)
		return -ENXIO;
	err = bo->cv->ops->map ? bo->cv->ops->map(bo) : 0;
	if (err)
		return err;
	file = accmem_mapping_file(bo->account);
	if (IS_ERR(file))
		return PTR_ERR(file);
	vma->vm_ops = bo->shared ? &mmap_shared_vm_ops : &mmap_vm_ops;
	if (!accmem_has_pages(bo->cv) && !bo->shared) {
		vma->vm_ops = &mmap_frames_vm_ops;
		/* Without page structures a core dump would show zeros. */
		set |= VM_PFNMAP | VM_DONTDUMP;
		/* Huge entries, but if the administrator or the program forbids them */
		if (ACCMEM_HUGE_FRAMES)
			set |= VM_HUGEPAGE;
	}
	accmem_vm_flags_mod(vma, set, VM_MAYEXEC);
	vma->vm_page_prot =
		accmem_cache_mode_pgprot(bo->cache_mode, vma->vm_page_prot);
	vma->vm_private_data = bo;
	vma_set_file(vma, file);
	fput(file);
	trace_accmem_map(bo, offset, size);
	return 0;
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
	int err;

	/*
	 * A file that is opened read-only has no VM_SHARED: check VM_MAYSHARE instead.
	 */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	if (!accmem_context_is_valid(ctx))
		return accmem_revoked_error(ctx->carveouts);
	if (offset >= ctx->carveouts->address_span)
		return -ENXIO;
	bo = mmap_find_bo(ctx, ctx->carveouts->address_base + offset);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	err = mmap_bo(bo, vma, offset - bo->offset);
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
