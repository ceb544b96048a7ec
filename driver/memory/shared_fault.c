// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults of shared memory.
 *
 * Locks: see shared.c. A fault comes with mmap_lock, or the lock of the mapping.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "internal.h"
#include "memory/shared.h"

static u64 shared_fault_offset(const struct accmem_bo *bo,
			       const struct vm_fault *vmf)
{
	return ((u64)vmf->pgoff << PAGE_SHIFT) - bo->offset;
}

/**
 * accmem_shared_fault() - serve a page fault of a mapping of shared memory
 * @bo: the memory
 * @vmf: the fault
 *
 * Return: VM_FAULT_LOCKED; VM_FAULT_SIGBUS where the page cannot be had.
 */
vm_fault_t accmem_shared_fault(struct accmem_bo *bo, struct vm_fault *vmf)
{
	struct accmem_bo *host = bo->shared->host;
	vm_fault_t ret;

	if (accmem_shared_hold(bo, shared_fault_offset(bo, vmf),
			       vmf->flags & FAULT_FLAG_WRITE))
		return VM_FAULT_SIGBUS;
	ret = host->cv->ops->fault(host, vmf);
	accmem_shared_drop(bo);
	return ret;
}

/**
 * accmem_shared_mkwrite() - a page that a mapping shows is to be written to
 * @bo: the memory
 * @vmf: the fault, with the page, to which the caller has a reference
 *
 * Where the piece is held, the page is taken down, and the fault comes again without a
 * reference.
 *
 * Return: VM_FAULT_LOCKED or VM_FAULT_NOPAGE.
 */
vm_fault_t accmem_shared_mkwrite(struct accmem_bo *bo, struct vm_fault *vmf)
{
	u64 offset = shared_fault_offset(bo, vmf);

	if (!accmem_shared_try_hold(bo, offset, true)) {
		unmap_mapping_range(vmf->vma->vm_file->f_mapping,
				    bo->offset + offset, PAGE_SIZE, 1);
		return VM_FAULT_NOPAGE;
	}
	lock_page(vmf->page);
	accmem_shared_drop(bo);
	return VM_FAULT_LOCKED;
}
