// SPDX-License-Identifier: GPL-2.0
/*
 * Cache of freed buffers, which a context reuses for later requests.
 *
 * When a context frees a buffer that was never mapped, the cache can retain the buffer
 * with its memory and its device address. A later request of the context with the same
 * layout, flags and cache mode gets the buffer unchanged. Such a FREE and ALLOC write
 * no data that other contexts write: neither the carveout's lock nor the counters of
 * the user. The cost does not depend on the number of buffers.
 *
 * A cached buffer is not published, so FREE, QUERY and mmap() do not find it. The
 * buffer stays charged, and its bo stays live in the carveout. Per-CPU counters of the
 * carveout sum up the cached bytes, so that INFO reports them as free. A request drains
 * the caches before it fails. A cached buffer is cleared when it is used again, if
 * ACCESS or REALLOC has written to it; no other context has used its memory.
 *
 * Locking: ctx->lock protects the cache of a context. Any task may drain any cache.
 */
#include <linux/kernel.h>

#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/contents.h"
#include "vm/buffer.h"
#include "vm/cache.h"
#include "vm/context.h"
#include "waitq/waiters.h"

/*
 * Size of the largest cached buffer. The allocator cannot use cached memory, so larger
 * cached buffers make it split other free blocks: recorded traces then need 1 to 4 %
 * more memory.
 */
#define CACHE_BUFFER_MAX ((u64)SZ_64K)

/*
 * Count a buffer that enters (@cached) or leaves the cache. The driver reports cached
 * bytes as free, both in the counters of the carveout and in those of the context.
 */
static void cache_count(struct accmem_context *ctx, struct accmem_buffer *buf,
			bool cached)
{
	struct accmem_carveout *cv = accmem_buffer_carveout(buf);
	s64 bytes = buf->layout.footprint;

	lockdep_assert_held(&ctx->lock);
	accmem_count_frees(cv, cached ? 1 : -1);
	if (buf->layout.small) {
		accmem_slab_set_cached(ctx, buf, cached);
		return;
	}
	accmem_ctx_count_cached(ctx, cv, cached ? bytes : -bytes);
}

static bool cache_may_add(const struct accmem_buffer *buf)
{
	struct accmem_bo *bo = accmem_buffer_bo(buf);
	const struct accmem_account *account = bo->account;

	/*
	 * A waiter may need the memory. A cached FIXED buffer would fit FIXED requests
	 * only, which ask for other addresses. Pages of an emulated carveout are
	 * ordinary memory of the host, which the cache must not retain. An ACCESS in
	 * progress may still write.
	 */
	return !accmem_waiters_present(account->waiters, account->user) &&
	       !(buf->flags & ACCMEM_ALLOC_FIXED) &&
	       buf->layout.footprint <= CACHE_BUFFER_MAX &&
	       !accmem_bo_was_mapped(bo) && !accmem_bo_has_users(bo) &&
	       xa_empty(&bo->pages);
}

static void cache_take_out(struct accmem_context *ctx,
			   struct accmem_buffer *buf)
{
	lockdep_assert_held(&ctx->lock);
	list_del(&buf->pending.cached);
	WRITE_ONCE(ctx->nr_cached, ctx->nr_cached - 1);
	cache_count(ctx, buf, false);
}

/* Remove a buffer from the cache and free its device addresses. */
static void cache_remove(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	cache_take_out(ctx, buf);
	accmem_buffer_remove(ctx, buf);
}

/**
 * accmem_cache_put() - add a freed buffer to the cache of its context
 * @ctx: the context
 * @buf: the buffer, which is not published
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: the buffer that the caller must destroy, already removed: the oldest cached
 * buffer if the cache was full; @buf if it cannot be cached; NULL if @buf was cached
 * and the cache was not full.
 */
struct accmem_buffer *accmem_cache_put(struct accmem_context *ctx,
				       struct accmem_buffer *buf)
{
	struct accmem_buffer *oldest = NULL;

	lockdep_assert_held(&ctx->lock);
	if (!cache_may_add(buf)) {
		accmem_buffer_remove(ctx, buf);
		return buf;
	}
	if (ctx->nr_cached == ACCMEM_CACHE_BUFFERS) {
		oldest = list_last_entry(&ctx->cache, struct accmem_buffer,
					 pending.cached);
		cache_remove(ctx, oldest);
	}
	list_add(&buf->pending.cached, &ctx->cache);
	WRITE_ONCE(ctx->nr_cached, ctx->nr_cached + 1);
	cache_count(ctx, buf, true);
	return oldest;
}

static bool cache_fits(const struct accmem_buffer *buf,
		       const struct accmem_carveout *cv,
		       const struct accmem_alloc *req,
		       const struct accmem_layout *layout)
{
	struct accmem_bo *bo = accmem_buffer_bo(buf);

	return accmem_buffer_fits(buf, bo, cv, req, layout) &&
	       /* a mapping of its slab page may have been made after the free */
	       !accmem_bo_was_mapped(bo) &&
	       /* few runs: see cache_may_add() */
	       !accmem_bo_has_failed(bo, 0, bo->size);
}

static struct accmem_buffer *cache_find(struct accmem_context *ctx,
					const struct accmem_carveout *cv,
					const struct accmem_alloc *req,
					const struct accmem_layout *layout)
{
	struct accmem_buffer *buf;

	lockdep_assert_held(&ctx->lock);
	list_for_each_entry(buf, &ctx->cache, pending.cached) {
		if (cache_fits(buf, cv, req, layout))
			return buf;
	}
	return NULL;
}

/*
 * Zero the bytes of a buffer that was taken out of the cache. Return false if the caller
 * is being killed, and the buffer is destroyed. A slab page stays marked as written:
 * other buffers of the page contain data.
 */
static bool cache_clear(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	struct accmem_bo *bo = accmem_buffer_bo(buf);

	if (!accmem_bo_was_written(bo))
		return true;
	if (accmem_bo_clear(bo, buf->address - buf->va->start,
			    buf->layout.footprint)) {
		spin_lock(&ctx->lock);
		accmem_buffer_remove(ctx, buf);
		spin_unlock(&ctx->lock);
		accmem_buffer_destroy(ctx, buf);
		return false;
	}
	if (!buf->layout.small)
		accmem_bo_set_written(bo, false);
	return true;
}

/**
 * accmem_cache_take() - serve a request with a cached buffer
 * @ctx: the context
 * @cv: the carveout
 * @req: the request
 * @layout: the layout of the request
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 * Return: a buffer in the state of a buffer of accmem_buffer_create(); NULL if no
 * cached buffer fits, or if the caller is being killed.
 */
struct accmem_buffer *accmem_cache_take(struct accmem_context *ctx,
					struct accmem_carveout *cv,
					const struct accmem_alloc *req,
					const struct accmem_layout *layout)
{
	struct accmem_buffer *buf;

	/* Racy read: a missed buffer only means that the request is served anew. */
	if (!READ_ONCE(ctx->nr_cached))
		return NULL;
	spin_lock(&ctx->lock);
	buf = cache_find(ctx, cv, req, layout);
	if (buf) {
		cache_take_out(ctx, buf);
		accmem_buffer_reuse(buf, req, layout);
	}
	spin_unlock(&ctx->lock);
	if (!buf)
		return NULL;
	/*
	 * cache_take_out() has subtracted the free that cache_count() added. Count
	 * both calls now: the FREE of the cached buffer, and this ALLOC.
	 */
	accmem_count_frees(cv, 1);
	accmem_count_allocs(cv, 1);
	return cache_clear(ctx, buf) ? buf : NULL;
}

/**
 * accmem_cache_drain() - destroy the cached buffers of a context
 * @ctx: the context
 * @cv: the carveout whose buffers are destroyed; NULL for all carveouts
 *
 * The function allocates nothing.
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 * Return: the number of destroyed buffers, at most ACCMEM_CACHE_BUFFERS.
 */
unsigned int accmem_cache_drain(struct accmem_context *ctx,
				const struct accmem_carveout *cv)
{
	struct accmem_buffer *buf, *next;
	unsigned int nr = 0;
	LIST_HEAD(list);

	/*
	 * Racy read: a missed buffer only makes this drain less useful. A waiter
	 * must not miss a buffer, so the lock is taken when there are waiters.
	 */
	if (!READ_ONCE(ctx->nr_cached) &&
	    !accmem_waiters_present(ctx->account->waiters, ctx->account->user))
		return 0;
	spin_lock(&ctx->lock);
	list_for_each_entry_safe_reverse(buf, next, &ctx->cache,
					 pending.cached) {
		if (cv && accmem_buffer_carveout(buf) != cv)
			continue;
		cache_remove(ctx, buf);
		list_add(&buf->pending.cached, &list);
	}
	spin_unlock(&ctx->lock);
	list_for_each_entry_safe(buf, next, &list, pending.cached) {
		list_del(&buf->pending.cached);
		accmem_buffer_destroy(ctx, buf);
		nr++;
	}
	return nr;
}
