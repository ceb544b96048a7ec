/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ALLOC: find or create a buffer for a request.
 */
#ifndef ACCMEM_ALLOC_H
#define ACCMEM_ALLOC_H

#include <linux/types.h>

struct accmem_alloc;
struct accmem_buffer;
struct accmem_context;
struct accmem_stream;

int accmem_alloc_check(struct accmem_context *ctx,
		       const struct accmem_alloc *req);
struct accmem_buffer *accmem_alloc(struct accmem_context *ctx,
				   const struct accmem_alloc *req,
				   struct accmem_stream *stream);
u32 accmem_alloc_carveouts(struct accmem_context *ctx,
			   const struct accmem_alloc *req);
void accmem_alloc_publish(struct accmem_context *ctx,
			  struct accmem_buffer *buf);

#endif /* ACCMEM_ALLOC_H */
