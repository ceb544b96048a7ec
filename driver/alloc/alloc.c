// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC: find or create a buffer for a request.
 *
 * The driver tries the carveouts that the request allows, one after another, until one
 * of them serves the request. In each carveout it tries these sources in this order:
 *
 * - a pending free of the stream that the request names (stream/pending.c);
 * - the cache of freed buffers of the context (vm/cache.c);
 * - a new buffer (vm/buffer.c).
 *
 * A request of at least ALLOC_DRAIN_MIN bytes drains the cache before it creates a new
 * buffer, so that the allocator can use that space. reclaim.c frees memory and retries
 * before a request fails. wait.c sleeps if the caller asked for it.
 *
 * Locking: ctx->lock, for single steps. No lock is held from one step to the next.
 */
#include <linux/kernel.h>

#include "alloc/alloc.h"
#include "alloc/plan.h"
#include "alloc/reclaim.h"
#include "core/carveout.h"
#include "internal.h"
#include "stream/pending.h"
#include "vm/buffer.h"
#include "vm/cache.h"
#include "vm/lookup.h"
#include "waitq/waiters.h"

/* Requests of at least this size drain the context's cache first. */
#define ALLOC_DRAIN_MIN ((u64)SZ_16K)

/* The arguments of alloc_create_once(), and the buffer that it creates. */
struct creation {
	struct accmem_context *ctx;
	struct accmem_carveout *cv;
	const struct accmem_alloc *req;
	const struct accmem_layout *layout;
	struct accmem_buffer *buf;
};

static int alloc_create_once(void *arg)
{
	struct creation *c = arg;

	c->buf = accmem_buffer_create(c->ctx, c->cv, c->req, c->layout);
	return PTR_ERR_OR_ZERO(c->buf);
}

static struct accmem_buffer *alloc_create(struct accmem_context *ctx,
					  struct accmem_carveout *cv,
					  const struct accmem_alloc *req,
					  const struct accmem_layout *layout)
{
	struct creation c = {
		.ctx = ctx,
		.cv = cv,
		.req = req,
		.layout = layout,
	};
	int err = accmem_reclaim_retry(ctx, cv, layout->footprint,
				       alloc_create_once, &c);

	return err ? ERR_PTR(err) : c.buf;
}

static struct accmem_buffer *alloc_create_any(struct accmem_context *ctx,
					      struct accmem_carveout *cv,
					      const struct accmem_alloc *req,
					      struct accmem_layout *layout)
{
	struct accmem_buffer *buf = alloc_create(ctx, cv, req, layout);
	int err = PTR_ERR_OR_ZERO(buf);

	/* Normal pages need less memory, and fewer bytes of a limit. */
	if ((err != -ENOMEM && err != -ENOSPC && err != -EDQUOT) ||
	    !layout->may_fall_back)
		return buf;
	err = accmem_plan_layout(cv, req, ACCMEM_PAGE_NORMAL_ONLY, layout);
	return err ? ERR_PTR(err) : alloc_create(ctx, cv, req, layout);
}

/* Check the address. If only freed buffers may occupy it, free them and check again. */
static int alloc_find_fixed(struct accmem_context *ctx,
			    const struct accmem_carveout *cv,
			    const struct accmem_alloc *req,
			    const struct accmem_layout *layout)
{
	int err = accmem_plan_check_fixed(ctx, cv, req, layout);

	if (err == -EADDRNOTAVAIL) {
		accmem_reclaim_addresses(ctx, cv);
		err = accmem_plan_check_fixed(ctx, cv, req, layout);
	}
	return err == -EADDRNOTAVAIL ? -EEXIST : err;
}

/*
 * Create a buffer at a fixed address. The cache is not asked: its buffers have
 * addresses.
 */
static struct accmem_buffer *alloc_fixed(struct accmem_context *ctx,
					 struct accmem_carveout *cv,
					 const struct accmem_alloc *req,
					 struct accmem_layout *layout)
{
	int err = alloc_find_fixed(ctx, cv, req, layout);

	/*
	 * The address rules out large pages, or the addresses behind the buffer are not
	 * free. The layout only prefers large pages: use normal pages.
	 */
	if ((err == -EINVAL || err == -EEXIST) && layout->may_fall_back) {
		err = accmem_plan_layout(cv, req, ACCMEM_PAGE_NORMAL_ONLY,
					 layout);
		if (!err)
			err = alloc_find_fixed(ctx, cv, req, layout);
	}
	return err ? ERR_PTR(err) : alloc_create_any(ctx, cv, req, layout);
}

/*
 * A cached buffer can split the space that a large request needs: drain the cache
 * first. READ_ONCE: the count is read without ctx->lock. A stale value costs at most a
 * drain that frees nothing, or a missing drain; reclaim drains the cache again if
 * the allocation fails.
 */
static void alloc_drain_cache(struct accmem_context *ctx,
			      struct accmem_carveout *cv, u64 size)
{
	if (size >= ALLOC_DRAIN_MIN && READ_ONCE(ctx->nr_cached))
		accmem_cache_drain(ctx, cv);
}

static struct accmem_buffer *alloc_anywhere(struct accmem_context *ctx,
					    struct accmem_carveout *cv,
					    const struct accmem_alloc *req,
					    struct accmem_layout *layout)
{
	struct accmem_buffer *buf;

	/* The cache never holds shared memory. */
	buf = req->kind == ACCMEM_KIND_SHARED ?
		      NULL :
		      accmem_cache_take(ctx, cv, req, layout);
	if (buf)
		return buf;
	alloc_drain_cache(ctx, cv, layout->footprint);
	return alloc_create_any(ctx, cv, req, layout);
}

static struct accmem_buffer *alloc_in(struct accmem_context *ctx,
				      struct accmem_carveout *cv,
				      const struct accmem_plan *plan)
{
	const struct accmem_alloc *req = plan->req;
	struct accmem_layout layout;
	struct accmem_buffer *buf;
	int err = accmem_plan_layout(cv, req, req->page_policy, &layout);

	if (err)
		return ERR_PTR(err);
	/* A pending free is not used for a fixed address, nor for shared memory. */
	if (plan->stream && !(req->flags & ACCMEM_ALLOC_FIXED) &&
	    req->kind != ACCMEM_KIND_SHARED) {
		buf = accmem_pending_take(ctx, cv, plan->stream, req, &layout);
		if (buf)
			return buf;
	}
	return req->flags & ACCMEM_ALLOC_FIXED ?
		       alloc_fixed(ctx, cv, req, &layout) :
		       alloc_anywhere(ctx, cv, req, &layout);
}

/*
 * Rank the error of a carveout. If all carveouts fail, the caller gets the error of the
 * highest rank: a limit, then a shortage that the caller can wait for, then a shortage
 * that it cannot wait for. Rank 0 means success, or an error that no other carveout
 * would change.
 */
static unsigned int alloc_rank(int err)
{
	switch (err) {
	case -EDQUOT:
		return 4;
	case -ENOSPC:
		return 3;
	case -ENOMEM:
		return 2;
	case -EOPNOTSUPP:
		return 1;
	default:
		return 0;
	}
}

/**
 * accmem_alloc_try() - allocate a buffer without sleeping for memory
 * @ctx: the context
 * @plan: the plan of the request
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 *
 * Return: as accmem_alloc(), but -ENOSPC if device memory is short.
 */
struct accmem_buffer *accmem_alloc_try(struct accmem_context *ctx,
				       const struct accmem_plan *plan)
{
	u32 left = plan->carveouts;
	struct accmem_carveout *cv;
	struct accmem_buffer *buf;
	int err, worst = 0;

	do {
		cv = accmem_plan_next_carveout(ctx, plan->req, left);
		left &= ~BIT(cv->index);
		buf = alloc_in(ctx, cv, plan);
		err = PTR_ERR_OR_ZERO(buf);
		if (!alloc_rank(err))
			return buf;
		if (alloc_rank(err) > alloc_rank(worst))
			worst = err;
	} while (left);
	return ERR_PTR(worst);
}

/**
 * accmem_alloc_count_failure() - count a request that found no memory
 * @ctx: the context
 * @plan: the plan of the request
 *
 * The failure is counted in the carveout that was tried first.
 *
 * Context: Process context. Takes no lock.
 */
void accmem_alloc_count_failure(struct accmem_context *ctx,
				const struct accmem_plan *plan)
{
	struct accmem_carveout *first;

	first = accmem_plan_next_carveout(ctx, plan->req, plan->carveouts);
	accmem_count_failure(first);
}

/**
 * accmem_alloc() - allocate a buffer
 * @ctx: the context
 * @plan: the plan of the request, which is without ACCMEM_ALLOC_WAIT
 *
 * The call does not queue behind waiters. A request that is served while waiters sleep
 * is counted as a bypass.
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 *
 * Return: the buffer, with its device address but not published; the caller passes it
 * to accmem_alloc_publish() or accmem_alloc_discard(). Or an error of ACCMEM_IOC_ALLOC.
 */
struct accmem_buffer *accmem_alloc(struct accmem_context *ctx,
				   const struct accmem_plan *plan)
{
	struct accmem_buffer *buf = accmem_alloc_try(ctx, plan);

	if (!IS_ERR(buf)) {
		accmem_waiters_count_bypass(accmem_buffer_carveout(buf),
					    ctx->account->user,
					    buf->layout.footprint);
		return buf;
	}
	if (buf == ERR_PTR(-ENOSPC))
		buf = ERR_PTR(-ENOMEM);
	if (buf == ERR_PTR(-ENOMEM))
		accmem_alloc_count_failure(ctx, plan);
	return buf;
}

/**
 * accmem_alloc_publish() - publish a buffer whose address user space has received
 * @ctx: the context
 * @buf: the buffer; once published, another thread may free it
 *
 * Context: Process context. Takes and releases ctx->lock.
 */
void accmem_alloc_publish(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	spin_lock(&ctx->lock);
	accmem_buffer_publish(ctx, buf);
	spin_unlock(&ctx->lock);
}
