// SPDX-License-Identifier: GPL-2.0
/*
 * Plan: the checks of an ALLOC, its carveouts and its layouts.
 *
 * ALLOC makes a plan once and keeps it while it tries and waits. The plan says where
 * the request may be served. The size depends on the carveout: accmem_plan_layout()
 * returns the layout that the request prefers there. accmem_plan_demand() collects the
 * smallest layouts for the queue of waiters.
 *
 * Locking: ctx->lock, while the address of a request is checked.
 */
#include <linux/kernel.h>
#include <linux/nospec.h>
#include <linux/string.h>

#include "alloc/plan.h"
#include "core/cache_mode.h"
#include "core/carveout.h"
#include "internal.h"
#include "vm/buffer.h"
#include "vm/va.h"

/*
 * Flags that fix the placement, and flags that prefer a bandwidth. At most one of each.
 */
#define PLAN_PLACEMENTS (ACCMEM_ALLOC_TOP_DOWN | ACCMEM_ALLOC_FIXED)
#define PLAN_CLASSES (ACCMEM_ALLOC_HIGH_BANDWIDTH | ACCMEM_ALLOC_LOW_BANDWIDTH)

/* Return the carveout that contains @address as a mask (bit i for carveout i), or 0. */
static u32 plan_carveout_at(struct accmem_context *ctx, u64 address)
{
	struct accmem_carveout *cv;

	for (cv = ctx->carveouts->cvs; cv < ctx->carveouts->end; cv++) {
		if (address - cv->address_base < cv->address_span)
			return BIT(cv->index);
	}
	return 0;
}

/* Return the carveouts that the kind and the flags of the request allow, as a mask. */
static noinline u32 plan_choose_carveouts(struct accmem_context *ctx,
					  const struct accmem_alloc *req)
{
	u32 carveouts = ctx->carveouts->device_mask;

	if (req->kind == ACCMEM_KIND_HOST)
		carveouts = ctx->carveouts->host_mask;
	if (req->flags & ACCMEM_ALLOC_FIXED)
		carveouts &= plan_carveout_at(ctx, req->address);
	if (req->flags & ACCMEM_ALLOC_CARVEOUT)
		carveouts &= BIT(req->carveout);
	return carveouts;
}

static inline u32 plan_carveouts(struct accmem_context *ctx,
				 const struct accmem_alloc *req)
{
	if (req->carveout >= ctx->carveouts->nr_device)
		return 0;
	if (req->flags & (ACCMEM_ALLOC_FIXED | ACCMEM_ALLOC_CARVEOUT) ||
	    req->kind != ACCMEM_KIND_DEVICE)
		return plan_choose_carveouts(ctx, req);
	return ctx->carveouts->device_mask;
}

/*
 * Return the carveouts of the preferred bandwidth class, or @left if none is of that
 * class.
 */
static u32 plan_prefer_class(struct accmem_context *ctx,
			     const struct accmem_alloc *req, u32 left)
{
	unsigned int class = req->flags & ACCMEM_ALLOC_HIGH_BANDWIDTH ?
				     ACCMEM_BANDWIDTH_HIGH :
				     ACCMEM_BANDWIDTH_LOW;

	return left & ctx->carveouts->of_class[class] ?: left;
}

/**
 * accmem_plan_next_carveout() - choose the next carveout to try
 * @ctx: the context
 * @req: the request, checked by accmem_plan_make()
 * @left: the carveouts of the plan that were not tried; not 0
 *
 * Context: Process context. Takes no lock.
 *
 * Return: the carveout.
 */
struct accmem_carveout *
accmem_plan_next_carveout(struct accmem_context *ctx,
			  const struct accmem_alloc *req, u32 left)
{
	u32 index;

	if (req->flags & PLAN_CLASSES)
		left = plan_prefer_class(ctx, req, left);
	if (!(left & BIT(req->carveout)))
		return &ctx->carveouts->cvs[__ffs(left)];
	index = array_index_nospec(req->carveout, ctx->carveouts->nr_device);
	return &ctx->carveouts->cvs[index];
}

static bool plan_reserve_is_valid(struct accmem_context *ctx,
				  const struct accmem_alloc *req, u32 carveouts)
{
	struct accmem_carveout *cv;
	u64 span = 0;

	if (!(req->flags & ACCMEM_ALLOC_RESIZABLE) ||
	    req->reserve < req->length)
		return false;
	for (cv = ctx->carveouts->cvs; cv < ctx->carveouts->end; cv++) {
		if (carveouts & BIT(cv->index))
			span = max(span, cv->address_span);
	}
	return req->reserve <= span;
}

/* Check a request for host memory or shared memory. */
static noinline int plan_check_kind(struct accmem_context *ctx,
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
	return req->carveout || req->flags &
					(PLAN_CLASSES | ACCMEM_ALLOC_CARVEOUT) ?
		       -EINVAL :
		       0;
}

static bool plan_flags_are_valid(const struct accmem_alloc *req)
{
	if (req->flags & ~ACCMEM_ALLOC_FLAGS)
		return false;
	if ((req->flags & PLAN_PLACEMENTS) == PLAN_PLACEMENTS ||
	    (req->flags & PLAN_CLASSES) == PLAN_CLASSES)
		return false;
	return (!req->stream || req->flags & ACCMEM_ALLOC_STREAM) &&
	       (!req->deadline_ns || req->flags & ACCMEM_ALLOC_WAIT);
}

/**
 * accmem_plan_make() - check a request and find the carveouts that may serve it
 * @ctx: the context
 * @req: the request; no field has been checked
 * @plan: out: the plan, without a stream
 *
 * Sizes and alignments are checked later, by accmem_plan_layout().
 *
 * Context: Process context. Takes no lock.
 *
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int accmem_plan_make(struct accmem_context *ctx, const struct accmem_alloc *req,
		     struct accmem_plan *plan)
{
	int err;

	if (!plan_flags_are_valid(req) ||
	    !accmem_cache_mode_is_valid(req->cache_mode))
		return -EINVAL;
	if (req->kind != ACCMEM_KIND_DEVICE) {
		err = plan_check_kind(ctx, req);
		if (err)
			return err;
	}
	plan->req = req;
	plan->stream = NULL;
	plan->carveouts = plan_carveouts(ctx, req);
	if (!plan->carveouts ||
	    (req->reserve && !plan_reserve_is_valid(ctx, req, plan->carveouts)))
		return -EINVAL;
	return 0;
}

/*
 * Return the alignment that the layout has to respect. A buffer that reserves addresses
 * to grow into, or that is shared with the host, must not share a granule with another
 * buffer. Shared memory moves in pieces: a piece of 2 MiB needs that alignment on both
 * sides. An invalid alignment is passed through, so that accmem_layout() rejects it.
 */
static u64 plan_alignment(const struct accmem_alloc *req)
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
 * accmem_plan_layout() - compute the layout of a request in a carveout
 * @cv: the carveout
 * @req: the request, checked by accmem_plan_make()
 * @page_policy: enum accmem_page_policy, instead of the policy of @req
 * @layout: out: the layout
 *
 * Context: Process context. Takes no lock.
 *
 * Return: 0 or an error of accmem_layout(); -EOPNOTSUPP if the carveout does not
 * support the cache mode; -ENOSPC if the reservation is larger than the address range
 * of the carveout.
 */
int accmem_plan_layout(const struct accmem_carveout *cv,
		       const struct accmem_alloc *req, u32 page_policy,
		       struct accmem_layout *layout)
{
	const struct accmem_layout_request wanted = {
		.length = req->length,
		.alignment = plan_alignment(req),
		.page_policy = page_policy,
		.flags = req->flags,
	};

	if (req->reserve > cv->address_span)
		return -ENOSPC;
	if (!(cv->cache_modes & BIT(accmem_carveout_mode(cv, req->cache_mode))))
		return -EOPNOTSUPP;
	return accmem_layout(&wanted, &cv->caps, layout);
}

/**
 * accmem_plan_check_fixed() - check the address of an ACCMEM_ALLOC_FIXED request
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
int accmem_plan_check_fixed(struct accmem_context *ctx,
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

/* Add a carveout, and the smallest layout of the request in it, to the demand. */
static void plan_add_demand(struct accmem_demand *p,
			    const struct accmem_carveout *cv,
			    const struct accmem_layout *layout)
{
	u64 charge = cv->owners ? round_up(layout->footprint, ACCMEM_FOLIO) :
				  layout->footprint;

	p->carveouts |= BIT(cv->index);
	p->footprint = min(p->footprint, layout->footprint);
	p->charge = min(p->charge, charge);
	p->owned |= !!cv->owners;
	p->small |= layout->small;
}

/* Compute the smallest layout: normal pages, if large pages are only preferred. */
static int plan_min_layout(const struct accmem_carveout *cv,
			   const struct accmem_alloc *req,
			   struct accmem_layout *layout)
{
	int err = accmem_plan_layout(cv, req, req->page_policy, layout);

	if (!err && layout->may_fall_back)
		err = accmem_plan_layout(cv, req, ACCMEM_PAGE_NORMAL_ONLY,
					 layout);
	return err;
}

/*
 * Compute the smallest layout, and check a fixed address. An address that a published
 * buffer occupies is an error: waiting for memory does not free it.
 */
static int plan_demand_in(struct accmem_context *ctx,
			  const struct accmem_carveout *cv,
			  const struct accmem_alloc *req,
			  struct accmem_layout *layout)
{
	int err = plan_min_layout(cv, req, layout);

	if (!err && req->flags & ACCMEM_ALLOC_FIXED)
		err = accmem_plan_check_fixed(ctx, cv, req, layout);
	return err == -EADDRNOTAVAIL ? 0 : err;
}

/**
 * accmem_plan_demand() - compute the minimum that a request needs
 * @ctx: the context
 * @plan: the plan
 * @demand: out: the demand
 *
 * Context: Process context. Takes and releases ctx->lock.
 *
 * Return: 0, or an error of ACCMEM_IOC_ALLOC that freed memory cannot change; -ENOSPC
 * if the request is larger than each carveout.
 */
int accmem_plan_demand(struct accmem_context *ctx,
		       const struct accmem_plan *plan,
		       struct accmem_demand *demand)
{
	const struct accmem_alloc *req = plan->req;
	struct accmem_layout layout;
	struct accmem_carveout *cv;
	int err, in_vain = -EOPNOTSUPP;

	*demand = (struct accmem_demand){ .footprint = U64_MAX,
					  .charge = U64_MAX };
	for (cv = ctx->carveouts->cvs; cv < ctx->carveouts->end; cv++) {
		if (!(plan->carveouts & BIT(cv->index)))
			continue;
		err = plan_demand_in(ctx, cv, req, &layout);
		if (err && err != -EOPNOTSUPP && err != -ENOSPC)
			return err;
		if (err != -EOPNOTSUPP)
			in_vain = -ENOSPC;
		if (!err && layout.footprint <= cv->capacity)
			plan_add_demand(demand, cv, &layout);
	}
	if (req->kind == ACCMEM_KIND_SHARED)
		demand->other_side = demand->footprint;
	return demand->carveouts ? 0 : in_vain;
}

/* Flags that restrict neither the offset nor the contents of the memory. */
#define PLAN_OPEN_FLAGS                                                    \
	(ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32 |                      \
	 ACCMEM_ALLOC_CONTIGUOUS | ACCMEM_ALLOC_RESIZABLE | PLAN_CLASSES | \
	 ACCMEM_ALLOC_CARVEOUT | ACCMEM_ALLOC_WAIT | ACCMEM_ALLOC_STREAM)

/* Return true if any memory of the right size and alignment satisfies the request. */
static bool plan_is_open(const struct accmem_alloc *req,
			 const struct accmem_layout *layout)
{
	return req->kind == ACCMEM_KIND_DEVICE && !layout->small &&
	       !req->reserve && !(req->flags & ~PLAN_OPEN_FLAGS);
}

/**
 * accmem_plan_handoff() - find a layout that allows a handoff
 * @ctx: the context
 * @req: the request, checked by accmem_plan_make()
 * @carveouts: a mask of the carveouts that can serve the request
 * @layout: out: the layout in the carveouts that are returned
 *
 * Context: Process context. Takes no lock.
 *
 * Return: a mask of those @carveouts whose freed memory can be handed over as it is; 0
 * if the allocator has to place the request.
 */
u32 accmem_plan_handoff(struct accmem_context *ctx,
			const struct accmem_alloc *req, u32 carveouts,
			struct accmem_layout *layout)
{
	struct accmem_layout other;
	struct accmem_carveout *cv;
	u32 found = 0;

	for (cv = ctx->carveouts->cvs; cv < ctx->carveouts->end; cv++) {
		if (!(carveouts & BIT(cv->index)) ||
		    accmem_plan_layout(cv, req, req->page_policy, &other) ||
		    !plan_is_open(req, &other))
			continue;
		if (!found)
			*layout = other;
		if (!memcmp(layout, &other, sizeof(other)))
			found |= BIT(cv->index);
	}
	return found;
}
