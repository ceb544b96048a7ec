// SPDX-License-Identifier: GPL-2.0
/*
 * VMAs: user mappings of buffer objects.
 *
 * A VMA maps a part of one buffer object and holds a reference to the buffer object. The
 * file of the VMA is the mapping file of the account (mapping.c).
 *
 * Faults are served by the backing of the carveout, or by shared_fault.c for shared
 * memory. A fault on revoked memory ends in SIGBUS.
 *
 * Locking: mmap_lock of the process. The last unmap takes the locks that freeing memory
 * needs.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sizes.h>

#include "compat/compat.h"
#include "core/cache_mode.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/contents.h"
#include "memory/mapping.h"
#include "memory/vma.h"
#include "trace/trace.h"
#include "types/backing_types.h"

/* Serve a fault, unless the memory is revoked. */
static vm_fault_t vma_serve(struct vm_fault *vmf,
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

static vm_fault_t vma_fault(struct vm_fault *vmf)
{
	struct accmem_bo *bo = vmf->vma->vm_private_data;

	accmem_bo_wait_pin_check(bo);
	return vma_serve(vmf, bo->cv->ops->fault);
}

/*
 * Map no page around a fault: only the pages that a fault asks for are there. The
 * kernel calls fault() under the lock of the VMA only for a VMA with this operation.
 * Without the operation it would retry the fault under mmap_lock.
 */
static vm_fault_t vma_map_pages(struct vm_fault *vmf, pgoff_t start,
				pgoff_t end)
{
	return 0;
}

/* Called when a VMA is split, moved, or copied to another process. */
static void vma_open(struct vm_area_struct *vma)
{
	accmem_bo_get(vma->vm_private_data);
}

static void vma_close(struct vm_area_struct *vma)
{
	accmem_bo_put_user(vma->vm_private_data);
}

/*
 * Access the memory for a debugger: ptrace() and /proc/PID/mem call this for a mapping
 * without page structures. The kernel does not check the rights of the mapping before.
 */
static int vma_access(struct vm_area_struct *vma, unsigned long address,
		      void *data, int size, int write)
{
	struct accmem_bo *bo = vma->vm_private_data;
	u64 offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) - bo->offset +
		     (address - vma->vm_start);
	u64 end = READ_ONCE(bo->size);
	int err;

	if (!(vma->vm_flags & (write ? VM_WRITE : VM_MAYREAD)) || offset >= end)
		return -EIO;
	size = min3((u64)size, end - offset, (u64)vma->vm_end - address);
	err = accmem_bo_access(bo, offset, data, size, write);
	return err ?: size;
}

static vm_fault_t __maybe_unused vma_huge_fault(struct vm_fault *vmf,
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
static bool vma_may_have_1g(struct vm_area_struct *vma, u64 offset)
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
static int vma_may_split(struct vm_area_struct *vma, unsigned long address)
{
	u64 offset =
		((u64)vma->vm_pgoff << PAGE_SHIFT) + (address - vma->vm_start);

	if (!vma_may_have_1g(vma, offset))
		return 0;
	accmem_vma_start_write(vma);
	accmem_mapping_drop_1g(vma->vm_file->f_mapping, offset);
	return 0;
}

/*
 * mremap() would report an entry of 1 GiB as a bad one, and lose it. So such entries are
 * removed before, and faults map the memory at the new address. fork() can copy them. Another
 * process may map more of the memory: entries at both ends are removed whole, as
 * accmem_mapping_drop_1g() does.
 */
static void vma_frames_open(struct vm_area_struct *vma)
{
	u64 size = vma->vm_end - vma->vm_start;
	u64 first = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 start = round_down(first, (u64)SZ_1G);
	u64 end = round_up(first + size, (u64)SZ_1G);

	vma_open(vma);
	if (ACCMEM_HUGE_FRAMES && size >= SZ_1G && vma->vm_mm == current->mm)
		unmap_mapping_range(vma->vm_file->f_mapping, start, end - start,
				    1);
}

/* Mappings of memory without page structures */
static const struct vm_operations_struct vma_frames_ops = {
	.open = vma_frames_open,
	.close = vma_close,
	.may_split = vma_may_split,
	.fault = vma_fault,
	ACCMEM_HUGE_FAULT(vma_huge_fault),
	.map_pages = vma_map_pages,
	.access = vma_access,
};

static const struct vm_operations_struct vma_ops = {
	.open = vma_open,
	.close = vma_close,
	.fault = vma_fault,
	.map_pages = vma_map_pages,
	.access = vma_access,
};

static vm_fault_t vma_shared_fault(struct vm_fault *vmf)
{
	return vma_serve(vmf, accmem_shared_fault);
}

static vm_fault_t vma_shared_mkwrite(struct vm_fault *vmf)
{
	return vma_serve(vmf, accmem_shared_mkwrite);
}

/* Because page_mkwrite() is set, the kernel maps pages that are read as read-only. */
static const struct vm_operations_struct vma_shared_ops = {
	.open = vma_open,
	.close = vma_close,
	.fault = vma_shared_fault,
	.map_pages = vma_map_pages,
	.page_mkwrite = vma_shared_mkwrite,
};

/**
 * accmem_vma_check() - check the kind of a mapping
 * @vma: the VMA, in the mmap() call that makes it
 *
 * Context: Process context. The caller holds mmap_lock. Does not sleep.
 * Return: 0; -EINVAL for a private mapping, -EACCES for an executable mapping.
 */
int accmem_vma_check(const struct vm_area_struct *vma)
{
	/* A file that is opened read-only has no VM_SHARED: check VM_MAYSHARE instead. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	return vma->vm_flags & VM_EXEC ? -EACCES : 0;
}

/**
 * accmem_vma_set_up() - map a part of a buffer object
 * @vma: the VMA, which accmem_vma_check() has accepted
 * @bo: the buffer object, which counts as mapped already. On success the VMA owns the
 *	caller's reference.
 * @offset: offset in @bo at which the VMA begins, in bytes
 *
 * Context: Process context. The caller holds mmap_lock. May sleep.
 * Return: 0; -ENXIO if @bo ends before the VMA, -ENFILE, -ENOMEM.
 */
int accmem_vma_set_up(struct vm_area_struct *vma, struct accmem_bo *bo,
		      u64 offset)
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
	vma->vm_ops = bo->shared ? &vma_shared_ops : &vma_ops;
	if (!accmem_has_pages(bo->cv) && !bo->shared) {
		vma->vm_ops = &vma_frames_ops;
		/* Without page structures a core dump would show zeros. */
		set |= VM_PFNMAP | VM_DONTDUMP;
		/* Huge entries, but if the administrator or the program forbids them */
		if (ACCMEM_HUGE_FRAMES)
			set |= VM_HUGEPAGE;
	}
	accmem_vm_flags_mod(vma, set, VM_MAYEXEC);
	vma->vm_page_prot = accmem_cache_mode_pgprot(accmem_bo_mapping_mode(bo),
						     vma->vm_page_prot);
	vma->vm_pgoff = (bo->offset + offset) >> PAGE_SHIFT;
	vma->vm_private_data = bo;
	vma_set_file(vma, file);
	fput(file);
	trace_accmem_map(bo, offset, size);
	return 0;
}
