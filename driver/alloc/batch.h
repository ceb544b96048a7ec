/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BATCH: many allocations and frees in one call.
 */
#ifndef ACCMEM_ALLOC_BATCH_H
#define ACCMEM_ALLOC_BATCH_H

struct accmem_batch;
struct accmem_context;

int accmem_batch(struct accmem_context *ctx, struct accmem_batch *req);

#endif /* ACCMEM_ALLOC_BATCH_H */
