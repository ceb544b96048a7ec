// SPDX-License-Identifier: MIT
/*
 * Refill: find memory when the free spans of the thread's arena do not suffice.
 *
 * The sources are tried in this order: pending pieces whose position has been reached,
 * arenas without threads, growth of the heap, the other heaps of the sort, and reclaim
 * from all caches. Reclaim also frees regions and free ends of regions; the heap then
 * grows into their memory. At last all free spans are compared, while the searches before
 * compare a few of each length. If all fails, alloc.c makes a direct allocation.
 *
 * Locking: accmem_pool.lock, held by all callers of accmem_pool_span_alloc() and taken by
 * accmem_pool_cache_fill().
 */
#include <errno.h>

#include "pool/base.h"
#include "pool/pending.h"
#include "pool/reclaim.h"
#include "pool/refill.h"
#include "pool/region.h"
#include "pool/slab.h"
#include "pool/span.h"

/* Allocate a free span of another arena: of one without threads, or of any. */
static bool try_other_arenas(struct accmem_pool *pool, bool any, uint32_t sort,
			     uint32_t pages, uint32_t alignment,
			     struct pool_slot *slot)
{
	uint32_t arena;

	for (arena = 0; arena < POOL_NR_ARENAS; arena++)
		if ((any || !pool->arenas[arena].threads) &&
		    accmem_pool_span_try_alloc(pool,
					       pool_heap_of(arena, sort, pages),
					       pages, alignment, slot))
			return true;
	return false;
}

/* Allocate a free span of any heap of the sort, also of one for other lengths. */
static bool try_all_heaps(struct accmem_pool *pool, uint32_t sort,
			  uint32_t pages, uint32_t alignment,
			  struct pool_slot *slot)
{
	uint32_t heap;

	for (heap = sort; heap < POOL_NR_HEAPS; heap += POOL_NR_SORTS)
		if (accmem_pool_span_search(pool, heap, pages, alignment, slot))
			return true;
	return false;
}

static int grow_span(struct accmem_pool *pool, uint32_t heap, uint32_t pages,
		     uint32_t alignment, struct pool_slot *slot)
{
	uint32_t first;
	int ret = accmem_pool_region_grow(pool, &pool->heaps[heap], pages,
					  alignment, &first);

	if (ret)
		return ret;
	/* a pool of one step has little memory to free, and needs no thread */
	if (pool->stats.reserved_bytes > POOL_STEP_PAGES * POOL_PAGE)
		accmem_pool_reclaim_start(pool);
	accmem_pool_span_init(pool, heap, first, pages, slot);
	return 0;
}

int accmem_pool_span_alloc(struct accmem_pool *pool, uint32_t arena,
			   uint32_t sort, uint32_t pages, uint32_t alignment,
			   struct pool_slot *slot)
{
	uint32_t heap = pool_heap_of(arena, sort, pages);
	int ret;

	if (accmem_pool_span_try_alloc(pool, heap, pages, alignment, slot))
		return 0;
	if (accmem_pool_pending_reap(pool) &&
	    accmem_pool_span_try_alloc(pool, heap, pages, alignment, slot))
		return 0;
	if (try_other_arenas(pool, false, sort, pages, alignment, slot))
		return 0;
	ret = grow_span(pool, heap, pages, alignment, slot);
	if (!ret || try_other_arenas(pool, true, sort, pages, alignment, slot))
		return 0;
	if (!pool_is_short(ret))
		return ret;
	if (accmem_pool_reclaim(pool))
		ret = grow_span(pool, heap, pages, alignment, slot);
	/* reclaim leaves only what is free in front of live pieces */
	return ret && try_all_heaps(pool, sort, pages, alignment, slot) ? 0 :
									  ret;
}

/* Create a slab. Its span may belong to any heap of the sort. */
static int create_slab(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		       uint32_t size_class, struct pool_slab **result)
{
	struct pool_slab *slab = accmem_pool_slab_alloc(pool);
	struct pool_slot slot;
	int ret;

	if (!slab)
		return -ENOMEM;
	ret = accmem_pool_span_alloc(pool, arena, sort, POOL_SLAB_PAGES, 1,
				     &slot);
	if (ret) {
		accmem_pool_slab_free(pool, slab);
		return ret;
	}
	accmem_pool_slab_init(pool, slab, slot.offset, size_class);
	*result = slab;
	return 0;
}

/* Find a slab with free blocks, or create one. If both fail, use any heap's slab. */
static int find_slab(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t size_class, struct pool_slab **slab)
{
	uint32_t heap = pool_heap_of(arena, sort, POOL_SLAB_PAGES);
	int ret;

	*slab = pool->heaps[heap].slabs[size_class];
	if (*slab)
		return 0;
	ret = create_slab(pool, arena, sort, size_class, slab);
	for (heap = sort; ret && heap < POOL_NR_HEAPS; heap += POOL_NR_SORTS) {
		*slab = pool->heaps[heap].slabs[size_class];
		if (*slab)
			return 0;
	}
	return ret;
}

static int alloc_blocks(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
			uint32_t size_class, struct pool_slot *slots, int count)
{
	struct pool_slab *slab;
	int ret = find_slab(pool, arena, sort, size_class, &slab);

	return ret ? ret :
		     accmem_pool_slab_alloc_blocks(pool, slab, slots, count);
}

/* Number of entries that one refill adds: some tens of KiB, but one entry at least. */
static uint32_t bin_batch(uint32_t bin)
{
	uint32_t pages = pool_bin_pages(bin), half = POOL_BIN_SLOTS / 2;

	if (!pages)
		return half;
	return pages > 8 ? 1 : 8 / pages;
}

/* Allocate up to @count spans. Returns their number, or the error of the first. */
static int alloc_spans(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		       uint32_t pages, struct pool_slot *slots, int count)
{
	int ret, n;

	for (n = 0; n < count; n++) {
		ret = accmem_pool_span_alloc(pool, arena, sort, pages, 1,
					     &slots[n]);
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
		n = alloc_spans(pool, cache->arena, sort, pages, b->slots,
				batch);
	else
		n = alloc_blocks(pool, cache->arena, sort,
				 bin % POOL_BINS_OF_SORT, b->slots, batch);
	if (n < 0)
		return n;
	b->count = n;
	cache->bytes += n * pool_bin_size(bin);
	return 0;
}

int accmem_pool_cache_fill(struct accmem_pool *pool, struct pool_cache *cache,
			   uint32_t bin)
{
	int ret;

	pthread_mutex_lock(&pool->lock);
	accmem_pool_cache_sync(pool, cache);
	if (pool->stats.reserved_bytes)
		accmem_pool_reclaim_start(pool);
	ret = bin_refill(pool, cache, bin);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}
