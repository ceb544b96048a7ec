/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared memory: device memory with a copy on the host, which moves to whoever
 * touches it.
 */
#ifndef ACCMEM_SHARED_H
#define ACCMEM_SHARED_H

#include <linux/mm_types.h>
#include <linux/types.h>

struct accmem_memory;

int accmem_shared_create(struct accmem_memory *mem);
void accmem_shared_place(struct accmem_memory *mem);
int accmem_shared_access(struct accmem_memory *mem, u64 offset, void *data,
			 u64 size, bool write);
int accmem_shared_move(struct accmem_memory *mem, u64 offset, u64 size,
		       bool to_device);
int accmem_shared_stay(struct accmem_memory *mem, u64 offset, u64 size,
		       bool stay);

/* for shared_fault.c */
int accmem_shared_hold(struct accmem_memory *mem, u64 offset, bool write);
bool accmem_shared_try_hold(struct accmem_memory *mem, u64 offset, bool write);
void accmem_shared_drop(struct accmem_memory *mem);

/* shared_fault.c */
vm_fault_t accmem_shared_fault(struct accmem_memory *mem, struct vm_fault *vmf);
vm_fault_t accmem_shared_mkwrite(struct accmem_memory *mem,
				 struct vm_fault *vmf);

#endif /* ACCMEM_SHARED_H */
