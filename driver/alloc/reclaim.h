/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reclaim: free memory for a request before the request fails.
 */
#ifndef ACCMEM_ALLOC_RECLAIM_H
#define ACCMEM_ALLOC_RECLAIM_H

#include <linux/types.h>

struct accmem_carveout;
struct accmem_context;

int accmem_reclaim_retry(struct accmem_context *ctx, struct accmem_carveout *cv,
			 u64 size, int (*take)(void *arg), void *arg);
void accmem_reclaim_end(struct accmem_context *ctx);
void accmem_reclaim_failed(struct accmem_carveout *cv);

#endif /* ACCMEM_ALLOC_RECLAIM_H */
