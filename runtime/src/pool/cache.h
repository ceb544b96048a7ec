/* SPDX-License-Identifier: MIT */
/* The caches of threads: release to a cache, and the cache's connection to its pool. */
#ifndef ACCMEM_RUNTIME_POOL_CACHE_H
#define ACCMEM_RUNTIME_POOL_CACHE_H

#include <errno.h>

#include "pool/base.h"
#include "pool/size.h"

/* The caches of the calling thread, the most recently used first. */
extern __thread struct pool_cache *accmem_pool_caches;

/* Number of pages of a span in the bin; 0 for a bin of blocks. */
static inline uint32_t pool_bin_pages(uint32_t bin)
{
	bin %= POOL_BINS_OF_SORT;
	return bin < POOL_NR_CLASSES ? 0 : bin - POOL_NR_CLASSES + 1;
}

static inline uint64_t pool_bin_size(uint32_t bin)
{
	uint32_t pages = pool_bin_pages(bin);

	return pages ? pages * POOL_PAGE :
		       accmem_pool_class_size(bin % POOL_BINS_OF_SORT);
}

/* Number of slots that a bin may use: 64 blocks, or 256 KiB of spans. */
static inline uint32_t cache_limit(uint32_t bin)
{
	static const uint8_t limits[POOL_CACHED_PAGES] = {
		64, 32, 21, 16, 12, 10, 9, 8, 7, 6, 5, 5, 4, 4, 4, 4,
	};

	bin %= POOL_BINS_OF_SORT;
	return bin < POOL_NR_CLASSES ? POOL_BIN_SLOTS :
				       limits[bin - POOL_NR_CLASSES];
}

/* Return the calling thread's cache, created if necessary; NULL: no memory. */
struct pool_cache *accmem_pool_cache_get(struct accmem_pool *pool);

/*
 * Report the cache's counts to the pool, and empty the cache if the pool's epoch has
 * changed. The caller holds the lock.
 */
void accmem_pool_cache_sync(struct accmem_pool *pool, struct pool_cache *cache);

/*
 * Free half of a bin that is full, and half of all bins if the cache holds more than
 * POOL_CACHE_BYTES. Takes the lock.
 */
void accmem_pool_cache_drain(struct accmem_pool *pool, struct pool_cache *cache,
			     uint32_t bin);

/*
 * accmem_pool_cache_sync() of the calling thread's cache, for a call that does not use the
 * cache. The caller holds the lock.
 */
void accmem_pool_cache_sync_own(struct accmem_pool *pool);

/* Empty the calling thread's cache. The caller holds the lock. */
void accmem_pool_cache_flush_own(struct accmem_pool *pool);

/* Take, and release, the lock that protects pool_cache.pool of all caches. */
void accmem_pool_cache_lock(void);
void accmem_pool_cache_unlock(void);

/*
 * Disconnect all caches from the pool: at the pool's end, and in a child of fork(). The
 * caller holds the lock of accmem_pool_cache_lock().
 */
void accmem_pool_cache_disown(struct accmem_pool *pool);

static inline struct pool_cache *cache_of(struct accmem_pool *pool)
{
	struct pool_cache *cache = accmem_pool_caches;

	if (cache && __atomic_load_n(&cache->pool, __ATOMIC_RELAXED) == pool)
		return cache;
	return accmem_pool_cache_get(pool);
}

/* Empty the cache if the pool's epoch has changed. Takes the lock. */
static inline void cache_check_epoch(struct accmem_pool *pool,
				     struct pool_cache *cache)
{
	if (cache->epoch == __atomic_load_n(&pool->epoch, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&pool->lock);
	accmem_pool_cache_sync(pool, cache);
	pthread_mutex_unlock(&pool->lock);
}

/*
 * Count a span that is not cached. The count goes to the pool when it exceeds a 64th of
 * the pool's live bytes.
 */
static inline void cache_count_span(struct accmem_pool *pool,
				    struct pool_cache *cache, int64_t bytes)
{
	int64_t live = cache->live + bytes;

	if ((uint64_t)(live < 0 ? -live : live) >
	    pool_load(&pool->live_bytes) / 64) {
		accmem_pool_count_live(pool, live);
		live = 0;
	}
	__atomic_store_n(&cache->live, live, __ATOMIC_RELAXED);
}

static inline void cache_push(struct accmem_pool *pool,
			      struct pool_cache *cache, uint32_t bin,
			      uint64_t size, struct pool_slot slot)
{
	struct pool_bin *b = &cache->bins[bin];

	b->slots[b->count++] = slot;
	cache->bytes += size;
	__atomic_store_n(&cache->live, cache->live - size, __ATOMIC_RELAXED);
	pool_store(&cache->releases, cache->releases + 1);
	if (b->count >= cache_limit(bin) || cache->bytes > POOL_CACHE_BYTES)
		accmem_pool_cache_drain(pool, cache, bin);
}

/* -EBUSY: a request got the piece early. */
static inline int cache_release_block(struct accmem_pool *pool,
				      struct pool_slab *slab, uint64_t offset)
{
	uint64_t inside = offset - slab->start;
	uint32_t index = inside * slab->inverse >> 32;
	struct pool_slot slot = { .offset = offset };
	struct pool_cache *cache;

	if (index >= slab->count)
		return -ENOENT;
	slot.length16 = &slab->length[index];
	if (inside != index * slab->size)
		return __atomic_load_n(slot.length16, __ATOMIC_RELAXED) ?
			       -EINVAL :
			       -ENOENT;
	if (__atomic_load_n(slot.length16, __ATOMIC_RELAXED) & POOL_EARLY16)
		return -EBUSY;
	cache = cache_of(pool);
	if (!cache)
		return -ENOMEM;
	/* if two threads release the same block, only one of them reads its length */
	if (!__atomic_exchange_n(slot.length16, 0, __ATOMIC_RELAXED))
		return -ENOENT;
	if (slab->inherited) {
		pool_store(&cache->releases, cache->releases + 1);
		return 0;
	}
	cache_push(pool, cache,
		   pool_slab_sort(slab) * POOL_BINS_OF_SORT + slab->size_class,
		   slab->size, slot);
	return 0;
}

/* Release a span of at most POOL_CACHED_PAGES pages. */
static inline int cache_release_span(struct accmem_pool *pool, uint64_t offset,
				     uint64_t tag)
{
	struct pool_page *entry = &pool->table[offset >> POOL_PAGE_SHIFT];
	uint32_t pages = pool_tag_pages(tag);
	struct pool_slot slot = { .offset = offset, .length64 = &entry->value };
	uint64_t length = pool_load(slot.length64);
	struct pool_cache *cache;

	if (length & POOL_EARLY64)
		return -EBUSY;
	/* another thread may have released the span: the entry is then that of a free span */
	if (!length || length > pages * POOL_PAGE)
		return -ENOENT;
	cache = cache_of(pool);
	if (!cache)
		return -ENOMEM;
	/* if two threads release the same span, only one of them clears its length */
	if (!__atomic_compare_exchange_n(slot.length64, &length, 0, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return -ENOENT;
	cache_push(pool, cache,
		   pool_tag_sort(tag) * POOL_BINS_OF_SORT + POOL_NR_CLASSES -
			   1 + pages,
		   pages * POOL_PAGE, slot);
	return 0;
}

#endif /* ACCMEM_RUNTIME_POOL_CACHE_H */
