/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ALLOC: find or create a buffer for a request.
 */
#ifndef ACCMEM_ALLOC_H
#define ACCMEM_ALLOC_H

struct accmem_buffer;
struct accmem_context;
struct accmem_plan;

struct accmem_buffer *accmem_alloc(struct accmem_context *ctx,
				   const struct accmem_plan *plan);
void accmem_alloc_publish(struct accmem_context *ctx,
			  struct accmem_buffer *buf);

#endif /* ACCMEM_ALLOC_H */
