/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that is allocated ahead of growth.
 */
#ifndef ACCMEM_VM_PREALLOC_H
#define ACCMEM_VM_PREALLOC_H

#include <linux/types.h>

#define ACCMEM_AHEAD_BUFFERS 8u /* that something is taken ahead of, likewise */

struct accmem_buffer;
struct accmem_carveout;
struct accmem_context;
struct accmem_memory;

void accmem_ahead_take(struct accmem_context *ctx, struct accmem_buffer *buf,
		       u64 step);
bool accmem_ahead_use(struct accmem_context *ctx, struct accmem_memory *mem,
		      u64 size, u64 page_size);
void accmem_ahead_drop(struct accmem_context *ctx, struct accmem_memory *mem);
unsigned int accmem_ahead_drain(struct accmem_context *ctx,
				const struct accmem_carveout *cv);

#endif /* ACCMEM_VM_PREALLOC_H */
