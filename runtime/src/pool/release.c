// SPDX-License-Identifier: MIT
/*
 * Release of allocations.
 *
 * A piece goes to the thread's cache, to its heap, or to the list of pending pieces; a
 * direct allocation goes to the driver.
 *
 * Locking: accmem_pool.lock, where the thread's cache cannot take the piece.
 */
#include <errno.h>
#include <string.h>

#include "core/stream.h"
#include "pool/base.h"
#include "pool/cache.h"
#include "pool/direct.h"
#include "pool/error.h"
#include "pool/history.h"
#include "pool/pending.h"
#include "pool/piece.h"
#include "pool/region.h"
#include "pool/release.h"
#include "pool/span.h"

#define SITE __builtin_return_address(0)

/* Count in the thread's cache; in the pool if the thread has no memory for a cache. */
static void count_release(struct accmem_pool *pool, uint64_t usable)
{
	struct pool_cache *cache = cache_of(pool);

	if (cache) {
		cache_check_epoch(pool, cache);
		pool_store(&cache->releases, cache->releases + 1);
		cache_count_span(pool, cache, -(int64_t)usable);
		return;
	}
	accmem_pool_count_live(pool, -(int64_t)usable);
	pthread_mutex_lock(&pool->lock);
	pool->stats.releases++;
	pthread_mutex_unlock(&pool->lock);
}

static int release_span(struct accmem_pool *pool, uint64_t offset, uint64_t tag)
{
	uint64_t usable;
	int ret;

	if (pool_load(&pool->table[offset >> POOL_PAGE_SHIFT].value) &
	    POOL_EARLY64)
		return -EBUSY;
	ret = accmem_pool_span_release(pool, offset, tag, &usable);
	if (ret < 0)
		return ret;
	/* in a child, live bytes do not include inherited allocations */
	count_release(pool, ret ? 0 : usable);
	if (pool_keep_bytes(pool) != ACCMEM_POOL_KEEP_ALL) {
		pthread_mutex_lock(&pool->lock);
		accmem_pool_region_drop_excess(pool);
		pthread_mutex_unlock(&pool->lock);
	}
	return 0;
}

/*
 * -ESRCH: no piece is there; -ENOMEM: the thread has no cache; -EBUSY: a request got the
 * piece early.
 */
static int release_to_cache(struct accmem_pool *pool, uint64_t offset)
{
	uint64_t tag = pool_tag_at(pool, offset);

	if (pool_tag_type(tag) == POOL_PAGE_SLAB)
		return cache_release_block(pool, pool_tag_slab(tag), offset);
	if (pool_tag_type(tag) == POOL_PAGE_SPAN && !(offset % POOL_PAGE)) {
		if (pool_tag_pages(tag) > POOL_CACHED_PAGES ||
		    tag & POOL_INHERITED)
			return release_span(pool, offset, tag);
		return cache_release_span(pool, offset, tag);
	}
	return accmem_pool_piece_lookup(pool, offset, NULL) ? -ESRCH : -EINVAL;
}

/* Release without a cache. A release does not fail for want of memory. */
static int release_uncached(struct accmem_pool *pool, uint64_t offset)
{
	uint64_t usable;
	bool early;
	int ret;

	pthread_mutex_lock(&pool->lock);
	ret = accmem_pool_piece_detach(pool, offset, &usable, &early);
	if (!ret) {
		accmem_pool_piece_free(pool, offset);
		accmem_pool_count_live(pool, -(int64_t)usable);
		accmem_pool_region_drop_excess(pool);
	}
	if (ret >= 0)
		pool->stats.releases++;
	pthread_mutex_unlock(&pool->lock);
	return ret < 0 ? ret : 0;
}

/* Release a piece that a request got early: work on the stream may still use it. */
static int release_early(struct accmem_pool *pool, uint64_t offset)
{
	int ret;

	pthread_mutex_lock(&pool->lock);
	ret = accmem_pool_pending_return(pool, offset);
	accmem_pool_region_drop_excess(pool);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}

int accmem_pool_piece_release(struct accmem_pool *pool, uint64_t offset)
{
	int ret;

	if (offset >= pool->span)
		return -ENOENT;
	ret = release_to_cache(pool, offset);
	if (ret == -EBUSY)
		return release_early(pool, offset);
	return ret == -ENOMEM ? release_uncached(pool, offset) : ret;
}

static int release(struct accmem_pool *pool, void *pointer, const void *site)
{
	struct pool_origin origin = {};
	struct accmem_free req = {};
	int ret;

	if (pool->history)
		origin = accmem_pool_history_released(pool, pointer, 0, site);
	ret = accmem_pool_piece_release(pool, pool_offset_of(pool, pointer));
	if (ret == -ESRCH)
		ret = accmem_pool_direct_release(pool, pointer, &req);
	if (ret && pool->history)
		accmem_pool_history_release_failed(pool, pointer, origin, ret);
	return ret ? accmem_pool_bad_pointer("release", pointer, ret) : 0;
}

int accmem_pool_release(struct accmem_pool *pool, void *pointer)
{
	return release(pool, pointer, SITE);
}

static int release_reached(struct accmem_pool *pool, uint64_t offset)
{
	int ret = accmem_pool_piece_release(pool, offset);

	/* another thread has released it meanwhile */
	return ret == -ESRCH ? -ENOENT : ret;
}

/* Release a piece at a position of a stream; at once if that is reached. */
static int release_piece_at(struct accmem_pool *pool, uint64_t offset,
			    int stream, uint64_t position)
{
	struct accmem_stream_query query;
	int ret = accmem_query_stream(stream, &query);

	if (ret)
		return ret == -ENOTTY ? -EINVAL : ret;
	if (query.reached >= position || query.state & ACCMEM_STREAM_ENDED)
		return release_reached(pool, offset);
	pthread_mutex_lock(&pool->lock);
	ret = accmem_pool_pending_add(pool, offset, stream, position);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}

/* If the pointer is valid, the error is about the stream. */
static int release_at_failed(struct accmem_pool *pool, void *pointer,
			     int stream, int error)
{
	struct accmem_pool_block block;

	if (accmem_pool_lookup(pool, pointer, &block) ||
	    block.pointer != pointer)
		return accmem_pool_bad_pointer("release", pointer, error);
	accmem_set_last_error("release of %p at a position of stream %d: %s",
			      pointer, stream, strerror(-error));
	return error;
}

int accmem_pool_release_at(struct accmem_pool *pool, void *pointer, int stream,
			   uint64_t position)
{
	struct accmem_free req = { .flags = ACCMEM_FREE_STREAM,
				   .fd = stream,
				   .position = position };
	uint64_t offset = pool_offset_of(pool, pointer);
	struct pool_origin origin = {};
	int ret;

	/* another thread may get the memory as soon as it is pending */
	if (pool->history)
		origin = accmem_pool_history_released(pool, pointer, stream,
						      SITE);
	if (!accmem_pool_piece_lookup(pool, offset, NULL))
		ret = release_piece_at(pool, offset, stream, position);
	else if (offset < pool->span)
		ret = accmem_pool_direct_release(pool, pointer, &req);
	else
		ret = -ENOENT;
	if (ret && pool->history)
		accmem_pool_history_release_failed(pool, pointer, origin, ret);
	return ret ? release_at_failed(pool, pointer, stream, ret) : 0;
}
