/* SPDX-License-Identifier: GPL-2.0 */
/*
 * VMAs: user mappings of buffer objects.
 */
#ifndef ACCMEM_MEMORY_VMA_H
#define ACCMEM_MEMORY_VMA_H

#include <linux/types.h>

struct accmem_bo;
struct vm_area_struct;

int accmem_vma_check(const struct vm_area_struct *vma);
int accmem_vma_set_up(struct vm_area_struct *vma, struct accmem_bo *bo,
		      u64 offset);

#endif /* ACCMEM_MEMORY_VMA_H */
