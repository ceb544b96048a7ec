/* SPDX-License-Identifier: MIT */
/* Allocation from a thread's cache, and the sources of its memory. */
#ifndef ACCMEM_RUNTIME_POOL_REFILL_H
#define ACCMEM_RUNTIME_POOL_REFILL_H

#include "pool/cache.h"

/*
 * Allocate a span for a thread of @arena, and grow the heap if necessary. The caller holds
 * the lock.
 */
int accmem_pool_span_alloc(struct accmem_pool *pool, uint32_t arena,
			   uint32_t sort, uint32_t pages, uint32_t alignment,
			   struct pool_slot *slot);

/* Fill an empty bin. Takes the lock. */
int accmem_pool_cache_fill(struct accmem_pool *pool, struct pool_cache *cache,
			   uint32_t bin);

/* Allocate the last entry of a bin that is not empty. */
static inline uint64_t cache_pop(struct pool_cache *cache, uint32_t bin,
				 uint64_t size, uint64_t length, bool small)
{
	struct pool_bin *b = &cache->bins[bin];
	struct pool_slot *slot = &b->slots[--b->count];

	if (small)
		__atomic_store_n(slot->length16, length, __ATOMIC_RELAXED);
	else
		pool_store(slot->length64, length);
	cache->bytes -= size;
	__atomic_store_n(&cache->live, cache->live + size, __ATOMIC_RELAXED);
	pool_store(&cache->allocations, cache->allocations + 1);
	return slot->offset;
}

/* Allocate @length bytes, at most POOL_CACHED_PAGES pages. */
static inline int cache_allocate(struct accmem_pool *pool, uint32_t sort,
				 uint64_t length, uint64_t *offset)
{
	bool small = length <= POOL_SMALL_MAX;
	uint64_t size = accmem_pool_size_usable(length);
	uint32_t bin = sort * POOL_BINS_OF_SORT;
	struct pool_cache *cache = cache_of(pool);
	int ret;

	if (!cache)
		return -ENOMEM;
	bin += small ? accmem_pool_size_class(length) :
		       POOL_NR_CLASSES - 1 + (size >> POOL_PAGE_SHIFT);
	if (!cache->bins[bin].count) {
		ret = accmem_pool_cache_fill(pool, cache, bin);
		if (ret)
			return ret;
	}
	*offset = cache_pop(cache, bin, size, length, small);
	return 0;
}

#endif /* ACCMEM_RUNTIME_POOL_REFILL_H */
