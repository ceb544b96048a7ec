/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Usage: free bytes, the longest free run and charges for reports.
 */
#ifndef ACCMEM_ALLOC_USAGE_H
#define ACCMEM_ALLOC_USAGE_H

#include <linux/types.h>

struct accmem_carveout;
struct accmem_context;

void accmem_usage_space(struct accmem_context *ctx, u32 carveouts,
			u64 *free_bytes, u64 *largest_run);
u64 accmem_usage_longest(struct accmem_carveout *cv, u64 account);
u64 accmem_usage_charged(struct accmem_context *ctx);

#endif /* ACCMEM_ALLOC_USAGE_H */
