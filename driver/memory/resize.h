/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that grows, shrinks, moves or is split.
 */
#ifndef ACCMEM_MEMORY_RESIZE_H
#define ACCMEM_MEMORY_RESIZE_H

#include <linux/types.h>

struct accmem_memory;

int accmem_memory_join_prepare(struct accmem_memory *mem,
			       struct accmem_memory *more);
void accmem_memory_join(struct accmem_memory *mem, struct accmem_memory *more);
void accmem_memory_swap_runs(struct accmem_memory *mem,
			     struct accmem_memory *other);
u64 accmem_memory_keep(struct accmem_memory *mem, u64 size,
		       unsigned int *nr_runs);
int accmem_memory_split_prepare(struct accmem_memory *mem,
				struct accmem_memory *rest, u64 size);
bool accmem_memory_split(struct accmem_memory *mem, struct accmem_memory *rest);
void accmem_memory_split_abort(struct accmem_memory *rest);
void accmem_memory_split_end(struct accmem_memory *mem);
void accmem_memory_split_finish(struct accmem_memory *mem,
				struct accmem_memory *rest);
bool accmem_memory_is_pinned(struct accmem_memory *mem);
void accmem_memory_await_answer(struct accmem_memory *mem);
int accmem_memory_copy(struct accmem_memory *to, u64 to_offset,
		       struct accmem_memory *from, u64 from_offset, u64 size);
int accmem_memory_clear(struct accmem_memory *mem, u64 offset, u64 size);

#endif /* ACCMEM_MEMORY_RESIZE_H */
