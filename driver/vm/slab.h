/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Small buffers: parts of slab pages.
 */
#ifndef ACCMEM_VM_SLAB_H
#define ACCMEM_VM_SLAB_H

#include <linux/types.h>

struct accmem_buffer;
struct accmem_carveout;
struct accmem_context;

void accmem_slab_shrink(struct accmem_context *ctx, struct accmem_buffer *buf,
			u64 footprint);
bool accmem_slab_is_cached(const struct accmem_buffer *buf);
void accmem_slab_reap(struct accmem_context *ctx, bool force);
u64 accmem_slab_room(struct accmem_context *ctx,
		     const struct accmem_carveout *cv, u64 *largest);

#endif /* ACCMEM_VM_SLAB_H */
