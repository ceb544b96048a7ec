/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cache of the freed buffers of a context.
 */
#ifndef ACCMEM_VM_CACHE_H
#define ACCMEM_VM_CACHE_H

#include <linux/types.h>

#define ACCMEM_CACHE_BUFFERS 16u /* most cached buffers of a context */

struct accmem_alloc;
struct accmem_buffer;
struct accmem_carveout;
struct accmem_context;
struct accmem_layout;

struct accmem_buffer *accmem_cache_put(struct accmem_context *ctx,
				       struct accmem_buffer *buf);
struct accmem_buffer *accmem_cache_take(struct accmem_context *ctx,
					struct accmem_carveout *cv,
					const struct accmem_alloc *req,
					const struct accmem_layout *layout);
unsigned int accmem_cache_drain(struct accmem_context *ctx,
				const struct accmem_carveout *cv);

#endif /* ACCMEM_VM_CACHE_H */
