/* SPDX-License-Identifier: GPL-2.0 */
/*
 * FREE: free a published buffer, or discard an unpublished one.
 */
#ifndef ACCMEM_ALLOC_FREE_H
#define ACCMEM_ALLOC_FREE_H

#include <linux/types.h>

struct accmem_buffer;
struct accmem_context;
struct accmem_dep;

int accmem_free(struct accmem_context *ctx, u64 address,
		const struct accmem_dep *dep);
void accmem_alloc_discard(struct accmem_context *ctx,
			  struct accmem_buffer *buf);

#endif /* ACCMEM_ALLOC_FREE_H */
