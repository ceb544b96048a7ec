// SPDX-License-Identifier: MIT
/*
 * Caches: free blocks and short spans of a pool that one thread holds.
 *
 * A thread allocates from its cache and releases to it without a lock. Blocks and spans
 * move between a cache and its pool in batches. A cache ends with its thread. If its pool
 * ends first, the cache is disconnected, and its thread frees it later.
 *
 * Lock order: caches_lock > accmem_pool.lock.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "pool/base.h"
#include "pool/cache.h"
#include "pool/region.h"
#include "pool/slab.h"
#include "pool/span.h"

/* Protects pool_cache.pool: the connection of a cache to its pool. */
static pthread_mutex_t caches_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t caches_once = PTHREAD_ONCE_INIT;
static pthread_key_t caches_key;
static int caches_error;

/* The caches of the calling thread, the most recently used first. */
__thread struct pool_cache *accmem_pool_caches;

/* Add the cache's counts to the pool's. The caller holds the pool's lock. */
static void cache_count(struct accmem_pool *pool, struct pool_cache *cache)
{
	pool->stats.allocations += cache->allocations;
	pool->stats.releases += cache->releases;
	pool_store(&cache->allocations, 0);
	pool_store(&cache->releases, 0);
	accmem_pool_count_live(pool, cache->live);
	__atomic_store_n(&cache->live, 0, __ATOMIC_RELAXED);
}

/* Free the first @count entries of a bin. The caller holds the pool's lock. */
static void bin_flush(struct accmem_pool *pool, struct pool_cache *cache,
		      uint32_t bin, uint32_t count)
{
	struct pool_bin *b = &cache->bins[bin];
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (pool_bin_pages(bin))
			accmem_pool_span_free(pool, b->slots[i].offset);
		else
			accmem_pool_slab_free_block(pool, b->slots[i].offset);
	}
	b->count -= count;
	memmove(b->slots, b->slots + count, b->count * sizeof(b->slots[0]));
	cache->bytes -= count * pool_bin_size(bin);
}

/* Free all entries of each bin but one in @share. The caller holds the pool's lock. */
static void cache_flush(struct accmem_pool *pool, struct pool_cache *cache,
			uint32_t share)
{
	uint32_t bin, count;

	for (bin = 0; bin < POOL_NR_BINS; bin++) {
		count = cache->bins[bin].count;
		if (count)
			bin_flush(pool, cache, bin,
				  share ? count - count / share : count);
	}
}

/* A changed epoch means that a request needs the memory in all caches. */
void accmem_pool_cache_sync(struct accmem_pool *pool, struct pool_cache *cache)
{
	uint32_t epoch = __atomic_load_n(&pool->epoch, __ATOMIC_RELAXED);

	cache_count(pool, cache);
	if (cache->epoch != epoch)
		cache_flush(pool, cache, 0);
	cache->epoch = epoch;
}

static void cache_unlink(struct accmem_pool *pool, struct pool_cache *cache)
{
	struct pool_cache **link;

	for (link = &pool->caches; *link != cache;
	     link = &(*link)->next_of_pool)
		;
	*link = cache->next_of_pool;
	pool->arenas[cache->arena].threads--;
}

/* The thread joins the arena with the fewest threads. */
static void cache_link(struct accmem_pool *pool, struct pool_cache *cache)
{
	uint32_t i, best = 0;

	for (i = 1; i < POOL_NR_ARENAS; i++)
		if (pool->arenas[i].threads < pool->arenas[best].threads)
			best = i;
	cache->arena = best;
	pool->arenas[best].threads++;
	cache->next_of_pool = pool->caches;
	pool->caches = cache;
}

static void thread_ends(void *first)
{
	struct pool_cache *cache = first, *next;
	struct accmem_pool *pool;

	accmem_pool_caches = NULL;
	pthread_mutex_lock(&caches_lock);
	for (; cache; cache = next) {
		next = cache->next_of_thread;
		pool = cache->pool;
		if (pool) {
			pthread_mutex_lock(&pool->lock);
			cache_count(pool, cache);
			cache_flush(pool, cache, 0);
			cache_unlink(pool, cache);
			accmem_pool_region_drop_excess(pool);
			pthread_mutex_unlock(&pool->lock);
		}
		munmap(cache, sizeof(*cache));
	}
	pthread_mutex_unlock(&caches_lock);
}

static void make_key(void)
{
	caches_error = pthread_key_create(&caches_key, thread_ends);
}

static struct pool_cache *cache_create(struct accmem_pool *pool)
{
	struct pool_cache *cache;

	if (pthread_once(&caches_once, make_key) || caches_error)
		return NULL;
	cache = mmap(NULL, sizeof(*cache), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (cache == MAP_FAILED)
		return NULL;
	if (pthread_setspecific(caches_key, cache)) {
		munmap(cache, sizeof(*cache));
		return NULL;
	}
	cache->pool = pool;
	pthread_mutex_lock(&pool->lock);
	cache->epoch = pool->epoch;
	cache_link(pool, cache);
	pthread_mutex_unlock(&pool->lock);
	return cache;
}

/* Take the pool's cache out of the thread's list, and free disconnected caches. */
static struct pool_cache *cache_find(struct accmem_pool *pool)
{
	struct pool_cache **link = &accmem_pool_caches, *cache, *found = NULL;

	pthread_mutex_lock(&caches_lock);
	while ((cache = *link)) {
		if (cache->pool && cache->pool != pool) {
			link = &cache->next_of_thread;
			continue;
		}
		*link = cache->next_of_thread;
		if (cache->pool)
			found = cache;
		else
			munmap(cache, sizeof(*cache));
	}
	pthread_mutex_unlock(&caches_lock);
	return found;
}

struct pool_cache *accmem_pool_cache_get(struct accmem_pool *pool)
{
	struct pool_cache *cache = cache_find(pool);

	if (!cache)
		cache = cache_create(pool);
	if (cache) {
		cache->next_of_thread = accmem_pool_caches;
		accmem_pool_caches = cache;
	}
	if (caches_error)
		return cache;
	/* the list's first cache has changed, or the list is empty */
	pthread_setspecific(caches_key, accmem_pool_caches);
	return cache;
}

/* A bin is full, or all bins together hold too much. */
void accmem_pool_cache_drain(struct accmem_pool *pool, struct pool_cache *cache,
			     uint32_t bin)
{
	pthread_mutex_lock(&pool->lock);
	accmem_pool_cache_sync(pool, cache);
	if (cache->bins[bin].count >= cache_limit(bin))
		bin_flush(pool, cache, bin, (cache->bins[bin].count + 1) / 2);
	if (cache->bytes > POOL_CACHE_BYTES)
		cache_flush(pool, cache, 2);
	accmem_pool_region_drop_excess(pool);
	pthread_mutex_unlock(&pool->lock);
}

static struct pool_cache *cache_own(const struct accmem_pool *pool)
{
	struct pool_cache *cache = accmem_pool_caches;

	while (cache && cache->pool != pool)
		cache = cache->next_of_thread;
	return cache;
}

void accmem_pool_cache_sync_own(struct accmem_pool *pool)
{
	struct pool_cache *cache = cache_own(pool);

	if (cache)
		accmem_pool_cache_sync(pool, cache);
}

void accmem_pool_cache_flush_own(struct accmem_pool *pool)
{
	struct pool_cache *cache = cache_own(pool);

	if (!cache)
		return;
	cache_count(pool, cache);
	cache_flush(pool, cache, 0);
}

void accmem_pool_cache_lock(void)
{
	pthread_mutex_lock(&caches_lock);
}

void accmem_pool_cache_unlock(void)
{
	pthread_mutex_unlock(&caches_lock);
}

/* The other threads of a child are the parent's, and so are their caches. */
void accmem_pool_cache_disown(struct accmem_pool *pool)
{
	struct pool_cache *cache;
	uint32_t i;

	for (cache = pool->caches; cache; cache = cache->next_of_pool)
		__atomic_store_n(&cache->pool, NULL, __ATOMIC_RELAXED);
	pool->caches = NULL;
	for (i = 0; i < POOL_NR_ARENAS; i++)
		pool->arenas[i].threads = 0;
}
