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
#include <linux/string.h>

#include "alloc/alloc.h"
#include "core/cache_mode.h"
#include "core/carveout.h"
#include "internal.h"
#include "stream/pending.h"
#include "vm/buffer.h"
#include "vm/cache.h"
#include "vm/lookup.h"
#include "vm/va.h"
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

/*
 * Flags that fix the placement, and flags that prefer a bandwidth. At most one of each.
 */
#define ALLOC_PLACEMENTS (ACCMEM_ALLOC_TOP_DOWN | ACCMEM_ALLOC_FIXED)
#define ALLOC_CLASSES (ACCMEM_ALLOC_HIGH_BANDWIDTH | ACCMEM_ALLOC_LOW_BANDWIDTH)

/* Return the carveout that contains @address as a mask (bit i for carveout i), or 0. */
static u32 alloc_carveout_at(struct accmem_context *ctx, u64 address)
{
	struct accmem_carveout *cv;

	for (cv = ctx->carveouts->cvs;
	     cv < accmem_carveouts_end(ctx->carveouts); cv++) {
		if (address - cv->address_base < cv->address_span)
			return BIT(cv->index);
	}
	return 0;
}

/* Return the carveouts that the kind and the flags of the request allow, as a mask. */
static noinline u32 alloc_choose_carveouts(struct accmem_context *ctx,
					   const struct accmem_alloc *req)
{
	u32 carveouts = ctx->carveouts->device_mask;

	if (req->kind == ACCMEM_KIND_HOST)
		carveouts = ctx->carveouts->host_mask;
	if (req->flags & ACCMEM_ALLOC_FIXED)
		carveouts &= alloc_carveout_at(ctx, req->address);
	if (req->flags & ACCMEM_ALLOC_CARVEOUT)
		carveouts &= BIT(req->carveout);
	return carveouts;
}

static inline u32 alloc_carveouts(struct accmem_context *ctx,
				  const struct accmem_alloc *req)
{
	if (req->carveout >= ctx->carveouts->nr_device)
		return 0;
	if (req->flags & (ACCMEM_ALLOC_FIXED | ACCMEM_ALLOC_CARVEOUT) ||
	    req->kind != ACCMEM_KIND_DEVICE)
		return alloc_choose_carveouts(ctx, req);
	return ctx->carveouts->device_mask;
}

/**
 * accmem_alloc_carveouts() - find the carveouts that may serve a request
 * @ctx: the context
 * @req: the request; no field has been checked
 *
 * Context: Process context. Takes no lock.
 *
 * Return: a mask with bit i for carveout i; 0 if the request names a carveout that does
 * not exist.
 */
u32 accmem_alloc_carveouts(struct accmem_context *ctx,
			   const struct accmem_alloc *req)
{
	return alloc_carveouts(ctx, req);
}

/*
 * Return the carveouts of the preferred bandwidth class, or @left if none is of that
 * class.
 */
static u32 alloc_prefer_class(struct accmem_context *ctx,
			      const struct accmem_alloc *req, u32 left)
{
	unsigned int class = req->flags & ACCMEM_ALLOC_HIGH_BANDWIDTH ?
				     ACCMEM_BANDWIDTH_HIGH :
				     ACCMEM_BANDWIDTH_LOW;

	return left & ctx->carveouts->of_class[class] ?: left;
}

/* Return the next carveout to try. @left is a mask of carveouts and is not 0. */
static inline struct accmem_carveout *
alloc_next_carveout(struct accmem_context *ctx, const struct accmem_alloc *req,
		    u32 left)
{
	if (req->flags & ALLOC_CLASSES)
		left = alloc_prefer_class(ctx, req, left);
	return &ctx->carveouts->cvs[left & BIT(req->carveout) ? req->carveout :
								__ffs(left)];
}

static bool alloc_reserve_is_valid(struct accmem_context *ctx,
				   const struct accmem_alloc *req,
				   u32 carveouts)
{
	struct accmem_carveout *cv;
	u64 span = 0;

	if (!(req->flags & ACCMEM_ALLOC_RESIZABLE) ||
	    req->reserve < req->length)
		return false;
	for (cv = ctx->carveouts->cvs;
	     cv < accmem_carveouts_end(ctx->carveouts); cv++) {
		if (carveouts & BIT(cv->index))
			span = max(span, cv->address_span);
	}
	return req->reserve <= span;
}

/* Check a request for host memory or shared memory. */
static noinline int alloc_check_kind(struct accmem_context *ctx,
				     const struct accmem_alloc *req)
{
	if (req->kind > ACCMEM_KIND_SHARED)
		return -EINVAL;
	if (!ctx->carveouts->host_mask)
		return -EOPNOTSUPP;
	/* Shared memory needs equal device and host memory: it cannot be resized. */
	if (req->kind == ACCMEM_KIND_SHARED)
		return req->flags & ACCMEM_ALLOC_RESIZABLE || req->reserve ||
				       req->cache_mode != ACCMEM_CACHE_WB ?
			       -EOPNOTSUPP :
			       0;
	/* A device has only one carveout of host memory: no carveout may be chosen. */
	return req->carveout || req->flags & (ALLOC_CLASSES |
					      ACCMEM_ALLOC_CARVEOUT) ?
		       -EINVAL :
		       0;
}

/* Check @req as accmem_alloc_check() does. @carveouts returns the carveouts to try. */
static inline int alloc_check(struct accmem_context *ctx,
			      const struct accmem_alloc *req, u32 *carveouts)
{
	if (req->flags & ~ACCMEM_ALLOC_FLAGS)
		return -EINVAL;
	if ((req->flags & ALLOC_PLACEMENTS) == ALLOC_PLACEMENTS ||
	    (req->flags & ALLOC_CLASSES) == ALLOC_CLASSES)
		return -EINVAL;
	if ((req->stream && !(req->flags & ACCMEM_ALLOC_STREAM)) ||
	    (req->deadline_ns && !(req->flags & ACCMEM_ALLOC_WAIT)))
		return -EINVAL;
	if (!accmem_cache_mode_is_valid(req->cache_mode))
		return -EINVAL;
	if (req->kind != ACCMEM_KIND_DEVICE) {
		int err = alloc_check_kind(ctx, req);

		if (err)
			return err;
	}
	*carveouts = alloc_carveouts(ctx, req);
	if (!*carveouts ||
	    (req->reserve && !alloc_reserve_is_valid(ctx, req, *carveouts)))
		return -EINVAL;
	return 0;
}

/**
 * accmem_alloc_check() - check the fields that need no carveout
 * @ctx: the context
 * @req: the request; no field has been checked
 *
 * Sizes and alignments are checked later, by accmem_alloc_layout().
 *
 * Context: Process context. Takes no lock.
 *
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int accmem_alloc_check(struct accmem_context *ctx,
		       const struct accmem_alloc *req)
{
	u32 carveouts;

	return alloc_check(ctx, req, &carveouts);
}

/*
 * Return the alignment that the layout has to respect. A buffer that reserves addresses
 * to grow into, or that is shared with the host, must not share a granule with another
 * buffer. Shared memory moves in pieces: a piece of 2 MiB needs that alignment on both
 * sides. An invalid alignment is passed through, so that accmem_layout() rejects it.
 */
static u64 alloc_alignment(const struct accmem_alloc *req)
{
	u64 least = 0;

	if (req->kind == ACCMEM_KIND_SHARED && req->length >= ACCMEM_FOLIO)
		least = ACCMEM_FOLIO;
	else if (req->kind == ACCMEM_KIND_SHARED || req->reserve)
		least = ACCMEM_GRANULE;
	return req->alignment & (req->alignment - 1) ?
		       req->alignment :
		       max(req->alignment, least);
}

/**
 * accmem_alloc_layout() - compute the layout of a request in a carveout
 * @cv: the carveout
 * @req: the request, checked by accmem_alloc_check()
 * @page_policy: enum accmem_page_policy, instead of the policy of @req
 * @layout: out: the layout
 *
 * Context: Process context. Takes no lock.
 *
 * Return: 0 or an error of accmem_layout(); -EOPNOTSUPP if the carveout does not
 * support the cache mode; -ENOSPC if the reservation is larger than the address range
 * of the carveout.
 */
int accmem_alloc_layout(const struct accmem_carveout *cv,
			const struct accmem_alloc *req, u32 page_policy,
			struct accmem_layout *layout)
{
	const struct accmem_layout_request wanted = {
		.length = req->length,
		.alignment = alloc_alignment(req),
		.page_policy = page_policy,
		.flags = req->flags,
	};

	if (req->reserve > cv->address_span)
		return -ENOSPC;
	if (!(cv->cache_modes & BIT(req->cache_mode)))
		return -EOPNOTSUPP;
	return accmem_layout(&wanted, &cv->caps, layout);
}

/**
 * accmem_alloc_check_fixed() - check the address of an ACCMEM_ALLOC_FIXED request
 * @ctx: the context
 * @cv: the carveout
 * @req: the request, with ACCMEM_ALLOC_FIXED
 * @layout: the layout of the request
 *
 * Context: Process context. Takes and releases ctx->lock.
 *
 * Return: 0 if the addresses are free; -EINVAL or -EEXIST as ACCMEM_IOC_ALLOC;
 * -EADDRNOTAVAIL if only freed buffers may occupy the addresses: buffers in the cache,
 * or pending frees. accmem_reclaim_addresses() may free these.
 */
int accmem_alloc_check_fixed(struct accmem_context *ctx,
			     const struct accmem_carveout *cv,
			     const struct accmem_alloc *req,
			     const struct accmem_layout *layout)
{
	u64 offset = req->address - cv->address_base, span = cv->address_span;
	u64 size =
		accmem_carveout_addresses(cv, layout->footprint, req->reserve);
	int err;

	if (!IS_ALIGNED(req->address, layout->alignment) || size > span ||
	    offset > span - size)
		return -EINVAL;
	spin_lock(&ctx->lock);
	err = accmem_va_check(ctx, req->address, size);
	spin_unlock(&ctx->lock);
	return err;
}

static struct accmem_buffer *alloc_create_any(struct accmem_context *ctx,
					      struct accmem_carveout *cv,
					      const struct accmem_alloc *req,
					      struct accmem_layout *layout)
{
	struct accmem_buffer *buf = alloc_create(ctx, cv, req, layout);
	int err = PTR_ERR_OR_ZERO(buf);

	if ((err != -ENOMEM && err != -ENOSPC) || !layout->may_fall_back)
		return buf;
	err = accmem_alloc_layout(cv, req, ACCMEM_PAGE_NORMAL_ONLY, layout);
	return err ? ERR_PTR(err) : alloc_create(ctx, cv, req, layout);
}

/* Check the address. If only freed buffers may occupy it, free them and check again. */
static int alloc_find_fixed(struct accmem_context *ctx,
			    const struct accmem_carveout *cv,
			    const struct accmem_alloc *req,
			    const struct accmem_layout *layout)
{
	int err = accmem_alloc_check_fixed(ctx, cv, req, layout);

	if (err == -EADDRNOTAVAIL) {
		accmem_reclaim_addresses(ctx, cv);
		err = accmem_alloc_check_fixed(ctx, cv, req, layout);
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
	int err = 0;

	/*
	 * The address rules out large pages. The layout only prefers them: use normal
	 * pages.
	 */
	if (layout->may_fall_back &&
	    !IS_ALIGNED(req->address, layout->alignment))
		err = accmem_alloc_layout(cv, req, ACCMEM_PAGE_NORMAL_ONLY,
					  layout);
	if (!err)
		err = alloc_find_fixed(ctx, cv, req, layout);
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

/**
 * accmem_alloc_min_layout() - compute the smallest layout that satisfies a request
 * @cv: the carveout
 * @req: the request, checked by accmem_alloc_check()
 * @layout: out: the layout; with normal pages if large pages are only preferred
 *
 * Context: Process context. Takes no lock.
 *
 * Return: 0, or an error of accmem_alloc_layout(). Freeing memory does not change it.
 */
int accmem_alloc_min_layout(const struct accmem_carveout *cv,
			    const struct accmem_alloc *req,
			    struct accmem_layout *layout)
{
	int err = accmem_alloc_layout(cv, req, req->page_policy, layout);

	if (!err && layout->may_fall_back)
		err = accmem_alloc_layout(cv, req, ACCMEM_PAGE_NORMAL_ONLY,
					  layout);
	return err;
}

static struct accmem_buffer *alloc_in(struct accmem_context *ctx,
				      struct accmem_carveout *cv,
				      const struct accmem_alloc *req,
				      struct accmem_stream *stream)
{
	struct accmem_layout layout;
	struct accmem_buffer *buf;
	int err = accmem_alloc_layout(cv, req, req->page_policy, &layout);

	if (err)
		return ERR_PTR(err);
	/* A pending free is not used for a fixed address, nor for shared memory. */
	if (stream && !(req->flags & ACCMEM_ALLOC_FIXED) &&
	    req->kind != ACCMEM_KIND_SHARED) {
		buf = accmem_pending_take(ctx, cv, stream, req, &layout);
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
 * @req: the request; no field has been checked
 * @stream: the stream of @ctx that @req names with ACCMEM_ALLOC_STREAM; else NULL
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 *
 * Return: as accmem_alloc(), but -ENOSPC if device memory is short.
 */
struct accmem_buffer *accmem_alloc_try(struct accmem_context *ctx,
				       const struct accmem_alloc *req,
				       struct accmem_stream *stream)
{
	struct accmem_carveout *cv;
	struct accmem_buffer *buf;
	int err, worst = 0;
	u32 left;

	err = alloc_check(ctx, req, &left);
	if (!err && req->flags & ACCMEM_ALLOC_STREAM && !stream)
		err = -EINVAL;
	if (err)
		return ERR_PTR(err);
	do {
		cv = alloc_next_carveout(ctx, req, left);
		left &= ~BIT(cv->index);
		buf = alloc_in(ctx, cv, req, stream);
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
 * @req: the request, checked by accmem_alloc_check()
 *
 * The failure is counted in the carveout that was tried first.
 *
 * Context: Process context. Takes no lock.
 */
void accmem_alloc_count_failure(struct accmem_context *ctx,
				const struct accmem_alloc *req)
{
	u32 carveouts = alloc_carveouts(ctx, req);

	accmem_count_failure(alloc_next_carveout(ctx, req, carveouts));
}

/**
 * accmem_alloc_notify_failed() - wake waiters after a request failed
 * @ctx: the context
 * @req: the request
 * @buf: the result of the request: a buffer or an error
 *
 * A request that fails may have allocated memory for a short time and freed it again
 * without waking a waiter. A waiter that tried in that time found no memory: this
 * function wakes it.
 *
 * Context: Process context. Takes and releases accmem_waiters_lock.
 */
void accmem_alloc_notify_failed(struct accmem_context *ctx,
				const struct accmem_alloc *req,
				const struct accmem_buffer *buf)
{
	if (buf == ERR_PTR(-ENOMEM) || buf == ERR_PTR(-EINTR) ||
	    (buf == ERR_PTR(-EDQUOT) && req->kind == ACCMEM_KIND_SHARED))
		accmem_waiters_wake_freed(ctx->account->waiters,
					  ctx->account->user);
}

/**
 * accmem_alloc() - allocate a buffer
 * @ctx: the context
 * @req: the request, without ACCMEM_ALLOC_WAIT; no field has been checked
 * @stream: the stream of @ctx that @req names with ACCMEM_ALLOC_STREAM; else NULL
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
				   const struct accmem_alloc *req,
				   struct accmem_stream *stream)
{
	struct accmem_buffer *buf;

	if (req->flags & ACCMEM_ALLOC_WAIT)
		return ERR_PTR(-EINVAL);
	buf = accmem_alloc_try(ctx, req, stream);
	if (!IS_ERR(buf)) {
		accmem_waiters_count_bypass(accmem_buffer_carveout(buf),
					    ctx->account->user,
					    buf->layout.footprint);
		return buf;
	}
	accmem_alloc_notify_failed(ctx, req, buf);
	if (buf == ERR_PTR(-ENOSPC))
		buf = ERR_PTR(-ENOMEM);
	if (buf == ERR_PTR(-ENOMEM))
		accmem_alloc_count_failure(ctx, req);
	return buf;
}

/* Flags that restrict neither the offset nor the contents of the memory. */
#define ALLOC_OPEN_FLAGS                                                    \
	(ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32 |                       \
	 ACCMEM_ALLOC_CONTIGUOUS | ACCMEM_ALLOC_RESIZABLE | ALLOC_CLASSES | \
	 ACCMEM_ALLOC_CARVEOUT | ACCMEM_ALLOC_WAIT | ACCMEM_ALLOC_STREAM)

/* Return true if any memory of the right size and alignment satisfies the request. */
static bool alloc_is_open(const struct accmem_alloc *req,
			  const struct accmem_layout *layout)
{
	return req->kind == ACCMEM_KIND_DEVICE && !layout->small &&
	       !req->reserve && !(req->flags & ~ALLOC_OPEN_FLAGS);
}

/**
 * accmem_alloc_handoff_layout() - find a layout that allows a handoff
 * @ctx: the context
 * @req: the request, checked by accmem_alloc_check()
 * @carveouts: a mask of the carveouts that can serve the request
 * @layout: out: the layout in the carveouts that are returned
 *
 * Context: Process context. Takes no lock.
 *
 * Return: a mask of those @carveouts whose freed memory can be handed over as it is; 0
 * if the allocator has to place the request.
 */
u32 accmem_alloc_handoff_layout(struct accmem_context *ctx,
				const struct accmem_alloc *req, u32 carveouts,
				struct accmem_layout *layout)
{
	struct accmem_layout other;
	struct accmem_carveout *cv;
	u32 found = 0;

	for (cv = ctx->carveouts->cvs;
	     cv < accmem_carveouts_end(ctx->carveouts); cv++) {
		if (!(carveouts & BIT(cv->index)) ||
		    accmem_alloc_layout(cv, req, req->page_policy, &other) ||
		    !alloc_is_open(req, &other))
			continue;
		if (!found)
			*layout = other;
		if (!memcmp(layout, &other, sizeof(other)))
			found |= BIT(cv->index);
	}
	return found;
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
