/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contents: zero, populate and copy the memory of buffer objects in use.
 */
#ifndef ACCMEM_MEMORY_CONTENTS_H
#define ACCMEM_MEMORY_CONTENTS_H

#include <linux/types.h>

struct accmem_bo;

int accmem_bo_access(struct accmem_bo *bo, u64 offset, void *data, u64 size,
		     bool write);
int accmem_bo_clear(struct accmem_bo *bo, u64 offset, u64 size);
int accmem_bo_populate(struct accmem_bo *bo, u64 offset, u64 end);
int accmem_bo_copy(struct accmem_bo *to, u64 to_offset, struct accmem_bo *from,
		   u64 from_offset, u64 size);

#endif /* ACCMEM_MEMORY_CONTENTS_H */
