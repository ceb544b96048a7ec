/* SPDX-License-Identifier: MIT */
/* Regions. The caller holds the pool's lock. */
#ifndef ACCMEM_RUNTIME_POOL_REGION_H
#define ACCMEM_RUNTIME_POOL_REGION_H

#include "pool/types.h"

/* Pages by which a region grows at least. */
#define POOL_STEP_PAGES 512u

/* Grow a heap, and allocate a span of it. @first: out: first page of the span. */
int accmem_pool_region_grow(struct accmem_pool *pool, struct pool_heap *heap,
			    uint32_t pages, uint32_t alignment,
			    uint32_t *first);

/* Free unused memory until @keep_bytes of it are left. Returns the bytes. */
uint64_t accmem_pool_region_shrink(struct accmem_pool *pool,
				   uint64_t keep_bytes);

/* Free what the pool has above what it may keep. The caller holds the lock. */
void accmem_pool_region_drop_excess(struct accmem_pool *pool);

/* Map the region that @page is in for the CPU, an inherited region included. */
int accmem_pool_region_map(struct accmem_pool *pool, uint32_t page);

/*
 * In a child of fork(): the inherited regions in these pages are gone, because the child
 * was given their addresses.
 */
void accmem_pool_region_drop_inherited(struct accmem_pool *pool, uint32_t first,
				       uint32_t pages);

/* In a child of fork(): all regions belong to the parent. */
void accmem_pool_region_disown(struct accmem_pool *pool);
void accmem_pool_region_destroy_all(struct accmem_pool *pool);

#endif /* ACCMEM_RUNTIME_POOL_REGION_H */
