/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared memory: pieces that move between the host and the device.
 *
 * accmem_shared_create() adds a host side to new device memory. The calls that access or
 * move memory use the other functions. shared.c describes the pieces.
 */
#ifndef ACCMEM_MEMORY_SHARED_H
#define ACCMEM_MEMORY_SHARED_H

#include <linux/types.h>

struct accmem_bo;

int accmem_shared_create(struct accmem_bo *bo);
void accmem_shared_place(struct accmem_bo *bo);
int accmem_shared_access(struct accmem_bo *bo, u64 offset, void *data, u64 size,
			 bool write);
int accmem_shared_move(struct accmem_bo *bo, u64 offset, u64 size,
		       bool to_device);
int accmem_shared_stay(struct accmem_bo *bo, u64 offset, u64 size, bool stay);

#endif /* ACCMEM_MEMORY_SHARED_H */
