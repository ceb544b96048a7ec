// SPDX-License-Identifier: MIT
/*
 * Refilling: where a span, or blocks for a thread's cache, come from when none are free
 * in the thread's own arena. In this order: memory that streams have reached, other
 * arenas, the kernel, and what other caches hold.
 *
 * Locking: accmem_pool.lock, held by all callers of accmem_span_take() and taken by
 * accmem_cache_fill().
 */
#include <errno.h>

#include "pool/base.h"
#include "pool/pending.h"
#include "pool/reclaim.h"
#include "pool/refill.h"
#include "pool/region.h"
#include "pool/slab.h"
#include "pool/span.h"

/* What is free in other arenas: in those that no thread has, or in any. */
static bool span_try_others(struct accmem_pool *pool, bool any, uint32_t sort,
			    uint32_t pages, uint32_t alignment,
			    struct pool_slot *slot)
{
	uint32_t arena;

	for (arena = 0; arena < POOL_NR_ARENAS; arena++)
		if ((any || !pool->arenas[arena].threads) &&
		    accmem_span_try(pool, arena, sort, pages, alignment, slot))
			return true;
	return false;
}

static int span_grow(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t pages, uint32_t alignment, struct pool_slot *slot)
{
	uint32_t heap = pool_heap_of(arena, sort, pages), first;
	int ret = accmem_region_grow(pool, &pool->heaps[heap], pages, alignment,
				     &first);

	if (ret)
		return ret;
	/* the memory of the first step alone is not worth a thread */
	if (pool->stats.reserved_bytes > POOL_STEP_PAGES * POOL_PAGE)
		accmem_yield_start(pool);
	accmem_span_set(pool, heap, first, pages, slot);
	return 0;
}

int accmem_span_take(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t pages, uint32_t alignment, struct pool_slot *slot)
{
	uint64_t bytes;
	int ret;

	if (accmem_span_try(pool, arena, sort, pages, alignment, slot))
		return 0;
	if (accmem_pending_reap(pool) &&
	    accmem_span_try(pool, arena, sort, pages, alignment, slot))
		return 0;
	if (span_try_others(pool, false, sort, pages, alignment, slot))
		return 0;
	ret = span_grow(pool, arena, sort, pages, alignment, slot);
	if (!ret || span_try_others(pool, true, sort, pages, alignment, slot))
		return 0;
	if (!pool_is_short(ret))
		return ret;
	bytes = accmem_pool_reclaim(pool);
	if (accmem_span_try(pool, arena, sort, pages, alignment, slot))
		return 0;
	if (bytes)
		ret = span_grow(pool, arena, sort, pages, alignment, slot);
	return ret;
}

/* A slab in a span of any arena. */
static int slab_create(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		       uint32_t size_class, struct pool_slab **result)
{
	struct pool_slab *slab = accmem_slab_alloc(pool);
	struct pool_slot slot;
	int ret;

	if (!slab)
		return -ENOMEM;
	ret = accmem_span_take(pool, arena, sort, POOL_SLAB_PAGES, 1, &slot);
	if (ret) {
		accmem_slab_free(pool, slab);
		return ret;
	}
	accmem_slab_create(pool, slab, slot.offset, size_class);
	*result = slab;
	return 0;
}

/* One with free blocks; before it fails, another arena's. */
static int slab_find(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t size_class, struct pool_slab **slab)
{
	uint32_t heap = pool_heap_of(arena, sort, POOL_SLAB_PAGES), i;
	int ret;

	*slab = pool->heaps[heap].slabs[size_class];
	if (*slab)
		return 0;
	ret = slab_create(pool, arena, sort, size_class, slab);
	for (i = 0; ret && i < POOL_NR_ARENAS; i++) {
		heap = pool_heap_of(i, sort, POOL_SLAB_PAGES);
		*slab = pool->heaps[heap].slabs[size_class];
		if (*slab)
			return 0;
	}
	return ret;
}

static int slab_take(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t size_class, struct pool_slot *slots, int count)
{
	struct pool_slab *slab;
	int ret = slab_find(pool, arena, sort, size_class, &slab);

	return ret ? ret : accmem_slab_pop(pool, slab, slots, count);
}

/* How many come and go at a time: some tens of KiB, but one at least. */
static uint32_t bin_batch(uint32_t bin)
{
	uint32_t pages = pool_bin_pages(bin), half = POOL_BIN_SLOTS / 2;

	if (!pages)
		return half;
	return pages > 8 ? 1 : 8 / pages;
}

/* As many as come at a time, or the first error. */
static int take_spans(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		      uint32_t pages, struct pool_slot *slots, int count)
{
	int ret, n;

	for (n = 0; n < count; n++) {
		ret = accmem_span_take(pool, arena, sort, pages, 1, &slots[n]);
		if (ret)
			return n ? n : ret;
	}
	return n;
}

static int bin_refill(struct accmem_pool *pool, struct pool_cache *cache,
		      uint32_t bin)
{
	struct pool_bin *b = &cache->bins[bin];
	uint32_t sort = bin / POOL_BINS_OF_SORT, pages = pool_bin_pages(bin);
	int batch = bin_batch(bin), n;

	if (pages)
		n = take_spans(pool, cache->arena, sort, pages, b->slots,
			       batch);
	else
		n = slab_take(pool, cache->arena, sort, bin % POOL_BINS_OF_SORT,
			      b->slots, batch);
	if (n < 0)
		return n;
	b->count = n;
	cache->bytes += n * pool_bin_size(bin);
	return 0;
}

int accmem_cache_fill(struct accmem_pool *pool, struct pool_cache *cache,
		      uint32_t bin)
{
	int ret;

	pthread_mutex_lock(&pool->lock);
	accmem_cache_sync(pool, cache);
	if (pool->stats.reserved_bytes)
		accmem_yield_start(pool);
	ret = bin_refill(pool, cache, bin);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}
