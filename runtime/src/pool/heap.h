/* SPDX-License-Identifier: MIT */
/* Free spans of a heap. The caller holds the lock of the heap's arena. */
#ifndef ACCMEM_RUNTIME_POOL_HEAP_H
#define ACCMEM_RUNTIME_POOL_HEAP_H

#include "pool/types.h"

/* Spans of each list that a search compares: usually, and before a request fails. */
#define POOL_SCAN_FEW 24
#define POOL_SCAN_ALL UINT32_MAX

/*
 * Take @pages aligned pages. @scan: POOL_SCAN_FEW, which may miss them, or POOL_SCAN_ALL.
 * Returns the first page, or POOL_NONE.
 */
uint32_t accmem_pool_heap_alloc(struct accmem_pool *pool,
				struct pool_heap *heap, uint32_t pages,
				uint32_t alignment, uint32_t scan);

/* Add pages that are new, or that were taken. */
void accmem_pool_heap_add(struct accmem_pool *pool, struct pool_heap *heap,
			  uint32_t first, uint32_t pages);

/* Remove the pages from @from on of the free span that ends before @end. */
void accmem_pool_heap_remove(struct accmem_pool *pool, struct pool_heap *heap,
			     uint32_t from, uint32_t end);

/* The first page of the free span that ends before @end, or @end. */
uint32_t accmem_pool_heap_free_start(const struct accmem_pool *pool,
				     uint32_t end);

#endif /* ACCMEM_RUNTIME_POOL_HEAP_H */
