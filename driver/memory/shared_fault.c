// SPDX-License-Identifier: GPL-2.0
/*
 * Shared memory: page faults of user mappings.
 *
 * A fault moves the piece to the host, locks the page and returns it. The first write
 * to a page that is mapped read-only faults again (accmem_shared_mkwrite()).
 *
 * Locking: the order is in shared.c. The kernel calls a fault handler with mmap_lock
 * or with the lock of the VMA held.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "internal.h"
#include "types/backing_types.h"

static u64 shared_fault_offset(const struct accmem_bo *bo,
			       const struct vm_fault *vmf)
{
	return ((u64)vmf->pgoff << PAGE_SHIFT) - bo->offset;
}

/**
 * accmem_shared_fault() - handle a page fault in a mapping of shared memory
 * @bo: the shared buffer object
 * @vmf: the fault
 *
 * Context: Fault handler. Takes and releases accmem_piece.lock. May sleep.
 * Return: VM_FAULT_LOCKED; VM_FAULT_SIGBUS if the page cannot be made;
 * VM_FAULT_HWPOISON if the page has failed, or the device's side of its piece.
 */
vm_fault_t accmem_shared_fault(struct accmem_bo *bo, struct vm_fault *vmf)
{
	struct accmem_bo *host = bo->shared->host;
	u64 offset = shared_fault_offset(bo, vmf);
	vm_fault_t ret;
	int err;

	err = accmem_shared_hold(bo, offset, vmf->flags & FAULT_FLAG_WRITE);
	if (err)
		return err == -EHWPOISON ? VM_FAULT_HWPOISON : VM_FAULT_SIGBUS;
	ret = host->cv->ops->fault(host, vmf);
	accmem_shared_drop(bo, offset);
	return ret;
}

/**
 * accmem_shared_mkwrite() - handle the first write to a page mapped read-only
 * @bo: the shared buffer object
 * @vmf: the fault, with the page, to which the caller has a reference
 *
 * If another task has the lock of the piece, or if the piece cannot be moved, the
 * function unmaps the page. The program then faults again, without a page reference.
 *
 * Context: Fault handler. Tries to acquire accmem_piece.lock, and releases it. May
 * sleep.
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
	accmem_shared_drop(bo, offset);
	return VM_FAULT_LOCKED;
}
