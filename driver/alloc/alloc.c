// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC.
 *
 * A request is served from what is pending on its stream, if it names one, else
 * from the context's cache, else by a new buffer; a larger one that may lie anywhere
 * empties the cache before, so that it is placed where there is room. What is tried
 * before it fails is in reclaim.c. Where one carveout has nothing for it, the next one
 * is asked.
 *
 * Locks: the context's, for a moment at a time.
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

/* requests from this size on see what the context's cache has */
#define ALLOC_DRAIN_MIN ((u64)SZ_16K)

/* a buffer that is to be made */
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

/* each of these says where a buffer is to be */
#define ALLOC_PLACES (ACCMEM_ALLOC_TOP_DOWN | ACCMEM_ALLOC_FIXED)
#define ALLOC_CLASSES (ACCMEM_ALLOC_HIGH_BANDWIDTH | ACCMEM_ALLOC_LOW_BANDWIDTH)

/* the carveout whose device address a request names: bit i for carveout i */
static u32 alloc_carveout_at(struct accmem_context *ctx, u64 address)
{
	struct accmem_carveout *cv;

	accmem_for_each_carveout(cv, ctx->carveouts)
	{
		if (address - cv->address_base < cv->address_span)
			return BIT(cv->index);
	}
	return 0;
}

/* those that the kind and the flags leave */
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
 * accmem_alloc_carveouts() - the carveouts that may serve a request
 * @ctx: the context
 * @req: the request; every field may hold anything
 *
 * Return: bit i for carveout i; 0 where the request names none that there is.
 */
u32 accmem_alloc_carveouts(struct accmem_context *ctx,
			   const struct accmem_alloc *req)
{
	return alloc_carveouts(ctx, req);
}

/* those of the class that is preferred, where there are any left */
static u32 alloc_prefer_class(struct accmem_context *ctx,
			      const struct accmem_alloc *req, u32 left)
{
	unsigned int class = req->flags & ACCMEM_ALLOC_HIGH_BANDWIDTH ?
				     ACCMEM_BANDWIDTH_HIGH :
				     ACCMEM_BANDWIDTH_LOW;

	return left & ctx->carveouts->of_class[class] ?: left;
}

/* Which of the carveouts @left, of which there is one, is asked next? */
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
	accmem_for_each_carveout(cv, ctx->carveouts)
	{
		if (carveouts & BIT(cv->index))
			span = max(span, cv->address_span);
	}
	return req->reserve <= span;
}

/* of other kinds than device memory */
static noinline int alloc_check_kind(struct accmem_context *ctx,
				     const struct accmem_alloc *req)
{
	if (req->kind > ACCMEM_KIND_SHARED)
		return -EINVAL;
	if (!ctx->carveouts->host_mask)
		return -EOPNOTSUPP;
	/* it has two sides, of the same size */
	if (req->kind == ACCMEM_KIND_SHARED)
		return req->flags & ACCMEM_ALLOC_RESIZABLE || req->reserve ||
				       req->cache_mode != ACCMEM_CACHE_WB ?
			       -EOPNOTSUPP :
			       0;
	/* there is nothing to choose from */
	return req->carveout || req->flags & (ALLOC_CLASSES |
					      ACCMEM_ALLOC_CARVEOUT) ?
		       -EINVAL :
		       0;
}

/* as accmem_alloc_check(); @carveouts gets those that may serve the request */
static inline int alloc_check(struct accmem_context *ctx,
			      const struct accmem_alloc *req, u32 *carveouts)
{
	if (req->flags & ~ACCMEM_ALLOC_FLAGS)
		return -EINVAL;
	if ((req->flags & ALLOC_PLACES) == ALLOC_PLACES ||
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
 * accmem_alloc_check() - check what does not depend on sizes, nor on carveouts
 * @ctx: the context
 * @req: the request; every field may hold anything
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
 * What is to grow, or has a side on the host, shares no granule; and a piece that moves
 * is a page of 2 MiB on either side, if there is one. An alignment that is none stays
 * one.
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
 * accmem_alloc_layout() - what a request becomes
 * @cv: the carveout
 * @req: the request, which has been checked
 * @page_policy: enum accmem_page_policy
 * @layout: out
 *
 * Return: as accmem_layout(); -EOPNOTSUPP where the carveout has not the cache mode;
 * -ENOSPC where it has not the addresses to grow into.
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
 * accmem_alloc_check_fixed() - may a buffer have the address asked for?
 * @ctx: the context
 * @cv: the carveout
 * @req: the request, with ACCMEM_ALLOC_FIXED
 * @layout: what it becomes
 *
 * Return: 0; -EINVAL, -EEXIST as ACCMEM_IOC_ALLOC; -EADDRNOTAVAIL where the address may
 * be of what is free but hidden.
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

/* once more where it may be of what is free but hidden */
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

/* The cache would serve another address. */
static struct accmem_buffer *alloc_fixed(struct accmem_context *ctx,
					 struct accmem_carveout *cv,
					 const struct accmem_alloc *req,
					 struct accmem_layout *layout)
{
	int err = 0;

	/* an address that excludes large pages, where they are only preferred */
	if (layout->may_fall_back &&
	    !IS_ALIGNED(req->address, layout->alignment))
		err = accmem_alloc_layout(cv, req, ACCMEM_PAGE_NORMAL_ONLY,
					  layout);
	if (!err)
		err = alloc_find_fixed(ctx, cv, req, layout);
	return err ? ERR_PTR(err) : alloc_create_any(ctx, cv, req, layout);
}

/* what is kept is room that a large request had better see */
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

	/* what is shared is not kept */
	buf = req->kind == ACCMEM_KIND_SHARED ?
		      NULL :
		      accmem_cache_take(ctx, cv, req, layout);
	if (buf)
		return buf;
	alloc_drain_cache(ctx, cv, layout->footprint);
	return alloc_create_any(ctx, cv, req, layout);
}

/**
 * accmem_alloc_min_layout() - what can a request not do with less than?
 * @cv: the carveout
 * @req: the request, which has been checked
 * @layout: out: the least that will do
 *
 * Return: 0, or an error of ACCMEM_IOC_ALLOC that no memory would change.
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
	/* what is at an address is not chosen; what is shared is not handed on */
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
 * Of what carveouts have answered, what the caller is told: a limit before a lack of
 * memory, which can be waited for, before what can not. 0 for what no other carveout
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
 * accmem_alloc_try() - allocate a buffer, unless that has to wait
 * @ctx: the context
 * @req: the request; every field may hold anything
 * @stream: of the context, with ACCMEM_ALLOC_STREAM; else NULL
 *
 * Return: as accmem_alloc(), but -ENOSPC for a lack of device memory.
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
 * accmem_alloc_count_failure() - a request has failed for lack of memory
 * @ctx: the context
 * @req: the request, which has been checked
 *
 * It counts where it was asked for first.
 */
void accmem_alloc_count_failure(struct accmem_context *ctx,
				const struct accmem_alloc *req)
{
	u32 carveouts = alloc_carveouts(ctx, req);

	accmem_count_failure(alloc_next_carveout(ctx, req, carveouts));
}

/**
 * accmem_alloc_notify_failed() - a request has ended
 * @ctx: the context
 * @req: the request
 * @buf: what became of it
 *
 * One that fails may have had memory for a while, which was given back silently.
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
 * @req: the request; every field may hold anything
 * @stream: of the context, with ACCMEM_ALLOC_STREAM; else NULL
 *
 * Does not wait: it passes those who do.
 *
 * Return: the buffer, at its address, for accmem_alloc_publish() or
 * accmem_alloc_discard(); or an error of ACCMEM_IOC_ALLOC.
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

/* flags that leave open where it is, and what is there */
#define ALLOC_OPEN_FLAGS                                                    \
	(ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32 |                       \
	 ACCMEM_ALLOC_CONTIGUOUS | ACCMEM_ALLOC_RESIZABLE | ALLOC_CLASSES | \
	 ACCMEM_ALLOC_CARVEOUT | ACCMEM_ALLOC_WAIT | ACCMEM_ALLOC_STREAM)

/* any memory of its size will do that has the alignment */
static bool alloc_is_open(const struct accmem_alloc *req,
			  const struct accmem_layout *layout)
{
	return req->kind == ACCMEM_KIND_DEVICE && !layout->small &&
	       !req->reserve && !(req->flags & ~ALLOC_OPEN_FLAGS);
}

/**
 * accmem_alloc_handoff_layout() - what may a request that waits be given as it is?
 * @ctx: the context
 * @req: the request, which has been checked
 * @carveouts: where it can be served
 * @layout: out: what it becomes there
 *
 * Return: in which of @carveouts; 0 where it has to be chosen for the request.
 */
u32 accmem_alloc_handoff_layout(struct accmem_context *ctx,
				const struct accmem_alloc *req, u32 carveouts,
				struct accmem_layout *layout)
{
	struct accmem_layout other;
	struct accmem_carveout *cv;
	u32 found = 0;

	accmem_for_each_carveout(cv, ctx->carveouts)
	{
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
 * accmem_alloc_publish() - the address of a buffer has been told
 * @ctx: the context
 * @buf: the buffer; from here on other threads may free it
 */
void accmem_alloc_publish(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	spin_lock(&ctx->lock);
	accmem_buffer_publish(ctx, buf);
	spin_unlock(&ctx->lock);
}
