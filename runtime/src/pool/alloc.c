// SPDX-License-Identifier: MIT
/*
 * Allocation and reallocation from a pool.
 *
 * A request is served as a piece if a piece can have its options (is_piece()): from the
 * thread's cache, from the free spans of the thread's arena, or by a refill (refill.c).
 * All other requests are direct allocations, and may wait in the driver. So are requests
 * that found no room for a piece: the driver may have room for a buffer of that length.
 *
 * Before a request fails for want of memory, the pools of the context free what they keep,
 * and the request waits in the driver for a moment (MOMENT_NS), if it is one that does not
 * wait otherwise: the driver then asks other contexts for memory that they keep.
 *
 * Locking: accmem_pool.lock, where the thread's cache and the arena have no memory.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "core/buffer.h"
#include "core/call.h"
#include "core/request_error.h"
#include "pool/base.h"
#include "pool/cache.h"
#include "pool/direct.h"
#include "pool/error.h"
#include "pool/history.h"
#include "pool/pending.h"
#include "pool/piece.h"
#include "pool/pool.h"
#include "pool/reclaim.h"
#include "pool/refill.h"
#include "pool/region.h"
#include "pool/release.h"
#include "pool/size.h"
#include "pool/span.h"

#define ROUNDING (ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32)
#define HUGE_FROM (1ull << 20) /* up to here normal pages */
#define REUSE_SCAN 64 /* pending pieces that a request compares first */
#define TURN_NS 1000000000ull /* as often as a reclaim thread scans at least */
#define MOMENT_NS 100000000ull /* for the reclaim threads of other contexts */
#define SITE __builtin_return_address(0)

/**
 * struct piece_plan - the piece that serves a request
 * @sort: enum pool_sort
 * @length: bytes, rounded as the request asks
 * @pages: number of pages of a span, or 0 for a block
 * @alignment: alignment of the span, in pages
 */
struct piece_plan {
	uint32_t sort;
	uint64_t length;
	uint32_t pages;
	uint32_t alignment;
};

static uint32_t sort_of(const struct accmem_pool_request *req)
{
	if (req->kind == ACCMEM_KIND_HOST)
		return POOL_HOST;
	if (req->kind == ACCMEM_KIND_SHARED)
		return POOL_SHARED;
	return req->page_policy == ACCMEM_PAGE_NORMAL_ONLY ? POOL_NORMAL :
							     POOL_DEVICE;
}

/* Can a piece serve the request? The driver serves, or refuses, all others. */
static bool is_piece(const struct accmem_pool *pool,
		     const struct accmem_pool_request *req)
{
	return !(pool->flags & ACCMEM_POOL_DIRECT) && !req->exportable &&
	       req->length && req->length <= POOL_LARGE_MAX &&
	       !(req->flags & ~ROUNDING) &&
	       (req->flags & ROUNDING) != ACCMEM_ALLOC_TAIL32 &&
	       !(req->alignment & (req->alignment - 1)) &&
	       req->alignment <= POOL_HUGE_PAGES * POOL_PAGE &&
	       req->alignment <= pool->granted &&
	       req->kind <= ACCMEM_KIND_SHARED &&
	       (req->page_policy == ACCMEM_PAGE_ANY ||
		req->page_policy == ACCMEM_PAGE_HUGE_FIRST ||
		(req->page_policy == ACCMEM_PAGE_NORMAL_ONLY &&
		 req->kind == ACCMEM_KIND_DEVICE)) &&
	       req->cache_mode == ACCMEM_CACHE_WB && !req->carveout &&
	       !req->reserve && !req->deadline_ns;
}

static struct piece_plan plan_piece(const struct accmem_pool_request *req)
{
	struct piece_plan w = { .sort = sort_of(req),
				.length = req->length,
				.alignment = 1 };

	if (req->flags & ACCMEM_ALLOC_ROUND32)
		w.length = (w.length + 31) & -32ull;
	if (req->flags & ACCMEM_ALLOC_TAIL32)
		w.length += 32;
	if (w.length > POOL_SMALL_MAX || req->alignment > POOL_UNIT)
		w.pages = (w.length + POOL_PAGE - 1) >> POOL_PAGE_SHIFT;
	if (req->alignment > POOL_PAGE)
		w.alignment = req->alignment >> POOL_PAGE_SHIFT;
	if (req->page_policy == ACCMEM_PAGE_HUGE_FIRST &&
	    req->length > HUGE_FROM && w.sort == POOL_DEVICE) {
		w.pages = (w.pages + POOL_HUGE_PAGES - 1) & -POOL_HUGE_PAGES;
		w.alignment = POOL_HUGE_PAGES;
	}
	return w;
}

/* A piece with the alignment of a page is a span, even if a block has enough bytes. */
static bool is_aligned_to_page(const struct piece_plan *w)
{
	return w->alignment > 1 || (w->pages && w->length <= POOL_SMALL_MAX);
}

/* The arena of a span that threads do not cache, see POOL_NR_ARENAS. */
static uint32_t arena_of(const struct accmem_pool *pool,
			 const struct pool_cache *cache,
			 const struct piece_plan *w)
{
	return pool->identity && w->pages > POOL_CACHED_PAGES ? 0 :
								cache->arena;
}

/* The arena has no such span: allocate it with the pool's lock. */
static int alloc_span_locked(struct accmem_pool *pool,
			     const struct piece_plan *w, uint32_t arena,
			     struct pool_slot *slot)
{
	int ret;

	pthread_mutex_lock(&pool->lock);
	ret = accmem_pool_span_alloc(pool, arena, w->sort, w->pages,
				     w->alignment, slot);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}

/* Allocate a span that threads do not cache. */
static int allocate_span(struct accmem_pool *pool, const struct piece_plan *w,
			 uint64_t *offset)
{
	struct pool_cache *cache = cache_of(pool);
	struct pool_slot slot;
	uint32_t arena;
	int ret;

	if (!cache)
		return -ENOMEM;
	cache_check_epoch(pool, cache);
	arena = arena_of(pool, cache, w);
	if (!accmem_pool_span_try_alloc(pool,
					pool_heap_of(arena, w->sort, w->pages),
					w->pages, w->alignment, &slot)) {
		ret = alloc_span_locked(pool, w, arena, &slot);
		if (ret)
			return ret;
	}
	pool_store(slot.length64, w->length);
	pool_store(&cache->allocations, cache->allocations + 1);
	cache_count_span(pool, cache, w->pages * POOL_PAGE);
	*offset = slot.offset;
	return 0;
}

/* Reuse one of the first @scan pieces that are pending on the request's stream. */
static bool reuse(struct accmem_pool *pool,
		  const struct accmem_pool_request *req,
		  const struct piece_plan *w, uint32_t scan, uint64_t *offset,
		  uint64_t *position)
{
	bool found;

	/* pending pieces include blocks, which have no such alignment */
	if (!req->on_stream || is_aligned_to_page(w))
		return false;
	pthread_mutex_lock(&pool->lock);
	found = pool->pending &&
		accmem_pool_pending_reuse(pool, w->sort, w->length, req->stream,
					  scan, offset, position);
	pthread_mutex_unlock(&pool->lock);
	return found;
}

static int allocate_piece(struct accmem_pool *pool,
			  struct accmem_pool_request *req, uint64_t *offset,
			  uint64_t *position)
{
	struct piece_plan w = plan_piece(req);
	int ret;

	if (reuse(pool, req, &w, REUSE_SCAN, offset, position))
		return 0;
	if (is_aligned_to_page(&w) || w.pages > POOL_CACHED_PAGES)
		ret = allocate_span(pool, &w, offset);
	else
		ret = cache_allocate(pool, w.sort, w.length, offset);
	if (pool_is_short(ret) &&
	    reuse(pool, req, &w, UINT32_MAX, offset, position))
		return 0;
	return ret;
}

static int allocate_now(struct accmem_pool *pool,
			struct accmem_pool_request *req)
{
	int ret = accmem_pool_direct_allocate(pool, req);

	return pool_is_short(ret) && accmem_pool_reclaim_all(pool) ?
		       accmem_pool_direct_allocate(pool, req) :
		       ret;
}

/* Allocate with the WAIT and the deadline of @wait in place of those of the request. */
static int allocate_as(struct accmem_pool *pool,
		       struct accmem_pool_request *req, uint32_t wait,
		       uint64_t deadline_ns,
		       int (*call)(struct accmem_pool *pool,
				   struct accmem_pool_request *req))
{
	struct accmem_pool_request as = *req;
	int ret;

	as.flags = (req->flags & ~ACCMEM_ALLOC_WAIT) | wait;
	as.deadline_ns = deadline_ns;
	ret = call(pool, &as);
	if (ret)
		return ret;
	as.flags = req->flags;
	as.deadline_ns = req->deadline_ns;
	*req = as;
	return 0;
}

/* The driver's clock: in a time namespace, CLOCK_MONOTONIC differs from it. */
static uint64_t now_ns(struct accmem_pool *pool)
{
	struct accmem_info info;

	return accmem_query_info(pool->ctx, 0, &info) ? 0 : info.now_ns;
}

/* Wait in the driver for a second at most. 1: no memory yet, but the deadline is later. */
static int wait_one_turn(struct accmem_pool *pool,
			 struct accmem_pool_request *req)
{
	uint64_t until = now_ns(pool) + TURN_NS;
	int ret;

	if (req->deadline_ns && req->deadline_ns <= until)
		return accmem_pool_direct_allocate(pool, req);
	ret = allocate_as(pool, req, ACCMEM_ALLOC_WAIT, until,
			  accmem_pool_direct_allocate);
	return ret == -ETIMEDOUT ? 1 : ret;
}

/*
 * Wait in the driver while the reclaim thread frees memory of the pool. Without a thread,
 * this thread does that work once a second, and queues again at the end.
 */
static int wait_for_reclaim(struct accmem_pool *pool,
			    struct accmem_pool_request *req)
{
	int ret;

	do {
		/* includes memory that was released since the last turn */
		accmem_pool_reclaim_all(pool);
		ret = accmem_pool_reclaim_wake(pool) ?
			      accmem_pool_direct_allocate(pool, req) :
			      wait_one_turn(pool, req);
	} while (ret > 0);
	return ret;
}

/*
 * While a request waits, the driver asks other contexts for memory, the pool frees all
 * that is released (pool_keep_bytes()), and the reclaim thread frees memory that streams
 * reach. No request overtakes a request of the same pool that waits already.
 */
static int wait_in_queue(struct accmem_pool *pool,
			 struct accmem_pool_request *req)
{
	int ret = -ENOMEM;

	if (!pool_waits(pool))
		ret = allocate_as(pool, req, 0, 0, allocate_now);
	if (!pool_is_short(ret))
		return ret;
	__atomic_fetch_add(&pool->waiting, 1, __ATOMIC_SEQ_CST);
	ret = wait_for_reclaim(pool, req);
	__atomic_fetch_sub(&pool->waiting, 1, __ATOMIC_RELAXED);
	return ret;
}

static int allocate_or_wait(struct accmem_pool *pool,
			    struct accmem_pool_request *req)
{
	int ret;

	if (pool->flags & ACCMEM_POOL_DIRECT)
		return accmem_pool_direct_allocate(pool, req);
	ret = wait_in_queue(pool, req);
	/* the wait had no access to other threads' caches */
	if (ret != -ETIMEDOUT || !accmem_pool_reclaim_all(pool))
		return ret;
	ret = allocate_as(pool, req, 0, 0, allocate_now);
	return pool_is_short(ret) ? -ETIMEDOUT : ret;
}

/*
 * Could other contexts free the memory that a request lacks? If it found no room for its
 * reservation only, the caller tries again with a smaller one.
 */
static bool others_may_help(struct accmem_pool *pool,
			    const struct accmem_pool_request *req)
{
	struct accmem_info info, host;
	uint64_t held;

	if (accmem_sum_info(pool->ctx, &info) ||
	    !(info.features & ACCMEM_FEATURE_WAIT))
		return false;
	if (req->reserve > req->length &&
	    accmem_info_has_room(&info, req->length))
		return false;
	if (accmem_query_host(pool->ctx, &host))
		host = (struct accmem_info){};
	/* failed memory is neither free nor held by anybody */
	held = info.capacity - info.free_bytes - info.retired_bytes +
	       host.capacity - host.free_bytes - host.retired_bytes;
	return held > info.context_bytes &&
	       req->length <= (req->kind == ACCMEM_KIND_HOST ? host.capacity :
							       info.capacity);
}

/*
 * Wait in the driver for a moment, by @call. While this request is counted as a waiter, the
 * pool keeps no memory that its other threads release.
 */
static int wait_a_moment(struct accmem_pool *pool,
			 struct accmem_pool_request *req,
			 int (*call)(struct accmem_pool *pool,
				     struct accmem_pool_request *req))
{
	int ret;

	__atomic_fetch_add(&pool->waiting, 1, __ATOMIC_SEQ_CST);
	ret = allocate_as(pool, req, ACCMEM_ALLOC_WAIT,
			  now_ns(pool) + MOMENT_NS, call);
	__atomic_fetch_sub(&pool->waiting, 1, __ATOMIC_RELAXED);
	/* no memory in that time, no place in the queue, or a signal */
	return ret == -ETIMEDOUT || ret == -EAGAIN || ret == -EINTR ? -ENOMEM :
								      ret;
}

static int allocate_buffer(struct accmem_pool *pool,
			   struct accmem_pool_request *req)
{
	int ret;

	if (req->flags & ACCMEM_ALLOC_WAIT)
		return allocate_or_wait(pool, req);
	ret = allocate_now(pool, req);
	if (ret == -ENOMEM && others_may_help(pool, req))
		ret = wait_a_moment(pool, req, accmem_pool_direct_allocate);
	return ret;
}

/* Free a piece that could not be mapped. Work on @stream may use it until @position. */
static void free_unmappable(struct accmem_pool *pool, uint64_t offset,
			    int stream, uint64_t position)
{
	if (!position) {
		accmem_pool_piece_release(pool, offset);
		return;
	}
	pthread_mutex_lock(&pool->lock);
	/* if this fails for want of memory, the piece is lost */
	accmem_pool_pending_add(pool, offset, stream, position);
	pthread_mutex_unlock(&pool->lock);
}

static int allocate(struct accmem_pool *pool, struct accmem_pool_request *req,
		    bool direct)
{
	uint64_t offset, position = 0;
	struct piece_plan w;
	int ret;

	if (pool_broken_rule(req))
		return -EINVAL;
	if (direct || !is_piece(pool, req))
		return allocate_buffer(pool, req);
	ret = allocate_piece(pool, req, &offset, &position);
	if (pool_is_short(ret))
		return allocate_buffer(pool, req);
	if (!ret && req->mapped) {
		ret = accmem_pool_piece_map(pool, offset);
		if (ret)
			free_unmappable(pool, offset, req->stream, position);
	}
	if (ret)
		return ret;
	req->pointer = pool->window + offset;
	req->address = pool->base + offset;
	req->position = position;
	w = plan_piece(req);
	req->usable = w.pages ? w.pages * POOL_PAGE :
				accmem_pool_size_usable(w.length);
	return 0;
}

static int allocate_and_note(struct accmem_pool *pool,
			     struct accmem_pool_request *req, bool direct,
			     const void *site)
{
	int ret;

	req->size = sizeof(*req);
	ret = allocate(pool, req, direct);
	if (!ret) {
		if (pool->history)
			accmem_pool_history_allocated(pool, req->pointer,
						      req->length,
						      req->on_stream ?
							      req->stream :
							      0,
						      site);
		return 0;
	}
	pthread_mutex_lock(&pool->lock);
	pool->stats.failures++;
	pthread_mutex_unlock(&pool->lock);
	return accmem_pool_fail(pool, req, ret);
}

int accmem_pool_allocate(struct accmem_pool *pool,
			 struct accmem_pool_request *req)
{
	return allocate_and_note(pool, req, false, SITE);
}

int accmem_pool_allocate_buffer(struct accmem_pool *pool,
				struct accmem_pool_request *req)
{
	return allocate_and_note(pool, req, true, SITE);
}

static void *malloc_by_request(struct accmem_pool *pool, size_t length,
			       const void *site)
{
	struct accmem_pool_request req = { .length = length };
	int ret = allocate_and_note(pool, &req, false, site);

	if (!ret)
		return req.pointer;
	errno = -ret;
	return NULL;
}

void *accmem_pool_malloc(struct accmem_pool *pool, size_t length)
{
	const uint32_t slow = ACCMEM_POOL_DIRECT | ACCMEM_POOL_LEAKS |
			      ACCMEM_POOL_HISTORY;
	struct piece_plan w = { .sort = POOL_DEVICE,
				.length = length,
				.alignment = 1 };
	uint64_t offset;

	if (pool->flags & slow || !length || length > POOL_LARGE_MAX)
		return malloc_by_request(pool, length, SITE);
	if (length <= POOL_CACHED_PAGES * POOL_PAGE) {
		if (!cache_allocate(pool, w.sort, length, &offset))
			return pool->window + offset;
		return malloc_by_request(pool, length, SITE);
	}
	w.pages = (length + POOL_PAGE - 1) >> POOL_PAGE_SHIFT;
	if (!allocate_span(pool, &w, &offset))
		return pool->window + offset;
	return malloc_by_request(pool, length, SITE);
}

/*
 * REALLOC does not wait. Let a buffer wait in its place, free the buffer, and try again
 * with what other contexts have freed, which they may have done even if the wait failed.
 * -EAGAIN: the wait succeeded, but the REALLOC is short of memory still.
 */
static int reallocate_after(struct accmem_pool *pool,
			    struct accmem_pool_request *req, void **pointer,
			    size_t length)
{
	int waited, ret;

	if (!others_may_help(pool, req))
		return -ENOMEM;
	waited = wait_a_moment(pool, req, accmem_pool_direct_probe);
	ret = accmem_pool_direct_reallocate(pool, pointer, length);
	return ret == -ENOMEM && !waited ? -EAGAIN : ret;
}

/*
 * Growth in place needs the bytes that the allocation lacks, in its carveout. If it has to
 * move, it needs all bytes of the new length, in any carveout that its flags allow.
 */
static int reallocate_later(struct accmem_pool *pool, void **pointer,
			    size_t length)
{
	const uint32_t place = ACCMEM_ALLOC_HIGH_BANDWIDTH |
			       ACCMEM_ALLOC_LOW_BANDWIDTH |
			       ACCMEM_ALLOC_CARVEOUT;
	struct accmem_pool_request req;
	struct accmem_query query;
	int ret;

	if (accmem_query_address(pool->ctx, accmem_pool_address(pool, *pointer),
				 &query) ||
	    length <= query.usable)
		return -ENOMEM;
	req = (struct accmem_pool_request){
		.length = length - query.usable,
		.kind = query.kind,
		.flags = query.kind == ACCMEM_KIND_DEVICE ?
				 ACCMEM_ALLOC_CARVEOUT :
				 0,
		.carveout = query.carveout,
		.page_policy = query.page_policy,
		.cache_mode = query.cache_mode,
	};
	ret = reallocate_after(pool, &req, pointer, length);
	if (ret != -EAGAIN)
		return ret;
	req.length = length;
	req.flags = query.alloc_flags & place;
	ret = reallocate_after(pool, &req, pointer, length);
	return ret == -EAGAIN ? -ENOMEM : ret;
}

int accmem_pool_reallocate(struct accmem_pool *pool, void **pointer,
			   size_t length)
{
	const struct accmem_alloc asked = { .length = length };
	struct pool_origin origin = {};
	struct accmem_pool_block block;
	void *before = *pointer;
	int ret;

	/* another thread may get the address as soon as the allocation has moved */
	if (pool->history)
		origin = accmem_pool_history_released(pool, before, 0, SITE);
	ret = accmem_pool_piece_lookup(pool, pool_offset_of(pool, before),
				       &block);
	if (!ret)
		ret = block.pointer == before ? -EPERM : -EINVAL;
	else
		ret = accmem_pool_direct_reallocate(pool, pointer, length);
	if (pool_is_short(ret) && accmem_pool_reclaim_all(pool))
		ret = accmem_pool_direct_reallocate(pool, pointer, length);
	if (ret == -ENOMEM)
		ret = reallocate_later(pool, pointer, length);
	if (ret && pool->history)
		accmem_pool_history_release_failed(pool, before, origin, ret);
	if (ret == -ENOENT || (ret == -EINVAL && length) || ret == -EPERM)
		return accmem_pool_bad_pointer("reallocation", before, ret);
	if (ret)
		return accmem_fail_request(pool->ctx, "reallocation", &asked, 0,
					   ret);
	if (pool->history)
		accmem_pool_history_allocated(pool, *pointer, length, 0, SITE);
	return 0;
}
