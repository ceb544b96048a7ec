// SPDX-License-Identifier: MIT
/*
 * What each thread has at hand of a pool: blocks and short spans that it takes and
 * puts back without a lock, and that move to and from the pool many at a time.
 *
 * A thread's caches end with the thread; those of a pool lose it when it is destroyed
 * and are freed by their thread later.
 *
 * Lock order: caches_lock > accmem_pool.lock.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "pool/pool.h"
#include "pool/cache.h"

/* Keeps a pool and the caches that threads have of it together. */
static pthread_mutex_t caches_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t caches_once = PTHREAD_ONCE_INIT;
static pthread_key_t caches_key;
static int caches_error;

/* Those of the thread, the one used last first. */
__thread struct pool_cache *accmem_caches;

/* Pages of the spans in a bin, 0 for a class of blocks. */
static uint32_t bin_pages(uint32_t bin)
{
	bin %= POOL_BINS_OF_SORT;
	return bin < POOL_NR_CLASSES ? 0 : bin - POOL_NR_CLASSES + 1;
}

static uint64_t bin_size(uint32_t bin)
{
	uint32_t pages = bin_pages(bin);

	return pages ? pages * POOL_PAGE :
		       accmem_slab_size(bin % POOL_BINS_OF_SORT);
}

/* How many come and go at a time: some tens of KiB, but one at least. */
static uint32_t bin_batch(uint32_t bin)
{
	uint32_t pages = bin_pages(bin), half = POOL_BIN_SLOTS / 2;

	if (!pages)
		return half;
	return pages > 8 ? 1 : 8 / pages;
}

/* What happened without the lock is counted; with it held. */
static void cache_count(struct accmem_pool *pool, struct pool_cache *cache)
{
	pool->stats.allocations += cache->allocations;
	pool->stats.releases += cache->releases;
	pool_store(&cache->allocations, 0);
	pool_store(&cache->releases, 0);
	accmem_pool_count_live(pool, cache->live);
	__atomic_store_n(&cache->live, 0, __ATOMIC_RELAXED);
}

/* The first @count of a bin go back; with the lock held. */
static void bin_flush(struct accmem_pool *pool, struct pool_cache *cache,
		      uint32_t bin, uint32_t count)
{
	struct pool_bin *b = &cache->bins[bin];
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (bin_pages(bin))
			accmem_span_give(pool, b->slots[i].offset);
		else
			accmem_slab_give(pool, b->slots[i].offset);
	}
	b->count -= count;
	memmove(b->slots, b->slots + count, b->count * sizeof(b->slots[0]));
	cache->bytes -= count * bin_size(bin);
}

/* One in @share of each bin stays; with the lock held. */
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

/* Whoever needs memory has asked for what threads have. */
static void cache_obey(struct accmem_pool *pool, struct pool_cache *cache)
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

/* The arena of the fewest threads. */
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

	accmem_caches = NULL;
	pthread_mutex_lock(&caches_lock);
	for (; cache; cache = next) {
		next = cache->next_of_thread;
		pool = cache->pool;
		if (pool) {
			pthread_mutex_lock(&pool->lock);
			cache_count(pool, cache);
			cache_flush(pool, cache, 0);
			cache_unlink(pool, cache);
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

/* Takes the pool's out of the thread's list, and what has no pool any more. */
static struct pool_cache *cache_find(struct accmem_pool *pool)
{
	struct pool_cache **link = &accmem_caches, *cache, *found = NULL;

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

struct pool_cache *accmem_cache_get(struct accmem_pool *pool)
{
	struct pool_cache *cache = cache_find(pool);

	if (!cache)
		cache = cache_create(pool);
	if (cache) {
		cache->next_of_thread = accmem_caches;
		accmem_caches = cache;
	}
	/* in the list again, or the first is another one now, or there is none */
	pthread_setspecific(caches_key, accmem_caches);
	return cache;
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
	uint32_t sort = bin / POOL_BINS_OF_SORT, pages = bin_pages(bin);
	int batch = bin_batch(bin), n;

	if (pages)
		n = take_spans(pool, cache->arena, sort, pages, b->slots,
			       batch);
	else
		n = accmem_slab_take(pool, cache->arena, sort,
				     bin % POOL_BINS_OF_SORT, b->slots, batch);
	if (n < 0)
		return n;
	b->count = n;
	cache->bytes += n * bin_size(bin);
	return 0;
}

int accmem_cache_fill(struct accmem_pool *pool, struct pool_cache *cache,
		      uint32_t bin)
{
	int ret;

	pthread_mutex_lock(&pool->lock);
	cache_obey(pool, cache);
	if (pool->stats.reserved_bytes)
		accmem_yield_start(pool);
	ret = bin_refill(pool, cache, bin);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}

/* There is no room for another in a bin, or too much in all of them. */
void accmem_cache_drain(struct accmem_pool *pool, struct pool_cache *cache,
			uint32_t bin)
{
	pthread_mutex_lock(&pool->lock);
	cache_obey(pool, cache);
	if (cache->bins[bin].count >= cache_limit(bin))
		bin_flush(pool, cache, bin, (cache->bins[bin].count + 1) / 2);
	if (cache->bytes > POOL_CACHE_BYTES)
		cache_flush(pool, cache, 2);
	if (pool_keep_bytes(pool) != ACCMEM_POOL_KEEP_ALL)
		accmem_region_shrink(pool, pool_keep_bytes(pool));
	pthread_mutex_unlock(&pool->lock);
}

void accmem_cache_flush_own(struct accmem_pool *pool)
{
	struct pool_cache *cache = accmem_caches;

	while (cache && cache->pool != pool)
		cache = cache->next_of_thread;
	if (!cache)
		return;
	cache_count(pool, cache);
	cache_flush(pool, cache, 0);
}

void accmem_cache_lock(void)
{
	pthread_mutex_lock(&caches_lock);
}

void accmem_cache_unlock(void)
{
	pthread_mutex_unlock(&caches_lock);
}

/*
 * At the pool's end, and in a child, whose other threads are the parent's; with
 * caches_lock held.
 */
void accmem_cache_disown(struct accmem_pool *pool)
{
	struct pool_cache *cache;
	uint32_t i;

	for (cache = pool->caches; cache; cache = cache->next_of_pool)
		__atomic_store_n(&cache->pool, NULL, __ATOMIC_RELAXED);
	pool->caches = NULL;
	for (i = 0; i < POOL_NR_ARENAS; i++)
		pool->arenas[i].threads = 0;
}
