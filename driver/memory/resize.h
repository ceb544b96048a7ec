/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Resizing: buffer objects that grow, shrink or move.
 *
 * REALLOC grows a buffer object with accmem_bo_join() or accmem_bo_swap_runs(), and
 * shrinks it with the functions accmem_bo_split_*(), in the order in which they are
 * declared. resize.c describes the steps.
 */
#ifndef ACCMEM_MEMORY_RESIZE_H
#define ACCMEM_MEMORY_RESIZE_H

#include <linux/types.h>

struct accmem_bo;

int accmem_bo_join_prepare(struct accmem_bo *bo, struct accmem_bo *more);
void accmem_bo_join(struct accmem_bo *bo, struct accmem_bo *more);
void accmem_bo_swap_runs(struct accmem_bo *bo, struct accmem_bo *other);
u64 accmem_bo_shrink_floor(struct accmem_bo *bo, u64 size,
			   unsigned int *nr_runs);
int accmem_bo_split_prepare(struct accmem_bo *bo, struct accmem_bo *rest,
			    u64 size);
bool accmem_bo_split(struct accmem_bo *bo, struct accmem_bo *rest);
void accmem_bo_split_abort(struct accmem_bo *rest);
void accmem_bo_split_finish(struct accmem_bo *bo, struct accmem_bo *rest);
bool accmem_bo_is_pinned(struct accmem_bo *bo);

#endif /* ACCMEM_MEMORY_RESIZE_H */
