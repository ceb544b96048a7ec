// SPDX-License-Identifier: GPL-2.0
/*
 * Per-context caches of freed buffers.
 *
 * A buffer that was never mapped is kept, whole and prepared, when its context
 * frees it; a request of the same layout, flags and cache mode takes it as it
 * is. Such a pair of calls writes nothing that another context writes: neither
 * the carveout's lock nor the user's counters. Nor does it depend on how many
 * buffers there are: what is kept stays at its address.
 *
 * What is kept has no name, so FREE, QUERY and mmap do not know it. It stays
 * charged, and live to its carveout; but it is counted, by
 * processor, so that whoever asks is told that it is free, and whoever is about
 * to fail drains the caches before.
 *
 * Nothing is cleared: no other context had it, and no mapping showed it.
 *
 * Locks: the context's lock guards its cache, which anybody may drain.
 */
#include <linux/kernel.h>

#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "vm/buffer.h"
#include "vm/cache.h"
#include "vm/context.h"
#include "waitq/waiters.h"

/*
 * A larger one would be missed by those who look for room, who then break up
 * what is left: traces need 1 to 4 % more memory.
 */
#define CACHE_BUFFER_MAX ((u64)SZ_64K)

/* What is cached is free to all who ask, and to what its context is charged. */
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

	/*
	 * The pages of emulated memory are the host's: not for keeping. Who asks
	 * for an address is not served with another.
	 */
	return !accmem_waiters_present() &&
	       !(buf->flags & ACCMEM_ALLOC_FIXED) &&
	       buf->layout.footprint <= CACHE_BUFFER_MAX &&
	       !accmem_bo_was_mapped(bo) && xa_empty(&bo->pages);
}

static void cache_take_out(struct accmem_context *ctx,
			   struct accmem_buffer *buf)
{
	lockdep_assert_held(&ctx->lock);
	list_del(&buf->pending.cached);
	WRITE_ONCE(ctx->nr_cached, ctx->nr_cached - 1);
	cache_count(ctx, buf, false);
}

/* the buffer has no address then */
static void cache_remove(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	cache_take_out(ctx, buf);
	accmem_buffer_remove(ctx, buf);
}

/**
 * accmem_cache_put() - keep a buffer that has been freed
 * @ctx: the context, whose lock is held
 * @buf: the buffer, which is not published
 *
 * Return: the buffer that is to be destroyed, which was removed: NULL if @buf
 * was kept, the one kept longest if @buf took its place, or @buf.
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
	const struct accmem_bo *bo = accmem_buffer_bo(buf);

	return accmem_buffer_fits(buf, bo, cv, req, layout) &&
	       /* since it was freed, its slab page may have been mapped */
	       !accmem_bo_was_mapped(bo);
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

/**
 * accmem_cache_take() - serve a request with a buffer that was kept
 * @ctx: the context
 * @cv: the carveout
 * @req: the request
 * @layout: what it became
 *
 * Return: the buffer, as accmem_buffer_create() makes one; NULL if none fits.
 */
struct accmem_buffer *accmem_cache_take(struct accmem_context *ctx,
					struct accmem_carveout *cv,
					const struct accmem_alloc *req,
					const struct accmem_layout *layout)
{
	struct accmem_buffer *buf;

	if (!READ_ONCE(ctx->nr_cached))
		return NULL;
	spin_lock(&ctx->lock);
	buf = cache_find(ctx, cv, req, layout);
	if (buf) {
		cache_take_out(ctx, buf);
		buf->length = req->length;
		buf->layout = *layout;
	}
	spin_unlock(&ctx->lock);
	if (!buf)
		return NULL;
	/* it was freed and is allocated again */
	accmem_count_frees(cv, 1);
	accmem_count_allocs(cv, 1);
	return buf;
}

/**
 * accmem_cache_drain() - give back what a cache holds
 * @ctx: the context. Sleeps, allocates nothing.
 * @cv: of which carveout; NULL for all
 *
 * Return: how many buffers that were; at most 16.
 */
unsigned int accmem_cache_drain(struct accmem_context *ctx,
				const struct accmem_carveout *cv)
{
	struct accmem_buffer *buf, *next;
	unsigned int nr = 0;
	LIST_HEAD(list);

	/* one who waits has to be sure that nothing is left */
	if (!READ_ONCE(ctx->nr_cached) && !accmem_waiters_present())
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
