// SPDX-License-Identifier: GPL-2.0
/*
 * REALLOC: resize a buffer in place, or move it to another address.
 *
 * accmem_realloc_prepare() marks the buffer as resizing: FREE and another REALLOC of it
 * fail with -EBUSY, QUERY and mmap still work. A buffer with memory of its own grows in
 * place if its addresses can be extended and, with identity translation, the memory
 * behind it is free (growth.c). Otherwise a new buffer is allocated, the bytes that fit
 * are copied, and the new buffer replaces the old one, which is freed.
 *
 * The answer goes to user space after prepare. accmem_realloc_commit() then only
 * changes names or frees memory. It can fail in one case: a shrink needs memory to
 * split the buffer object, and finds none. The buffer is unchanged then.
 * accmem_realloc_cancel() undoes prepare.
 *
 * Locking: ctx->lock for single steps; bo->lock while a buffer object is split.
 */
#include <linux/kernel.h>

#include "alloc/alloc.h"
#include "alloc/free.h"
#include "alloc/plan.h"
#include "alloc/realloc.h"
#include "alloc/reclaim.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/contents.h"
#include "memory/resize.h"
#include "stream/stream.h"
#include "trace/trace.h"
#include "vm/buffer.h"
#include "vm/slab.h"
#include "waitq/waiters.h"

static u64 realloc_offset_of(const struct accmem_buffer *buf)
{
	return buf->address - buf->va->start;
}

/* Find the buffer at @address and mark it as resizing. */
static struct accmem_buffer *realloc_mark(struct accmem_context *ctx,
					  u64 address)
{
	struct accmem_buffer *buf = accmem_alloc_find(ctx, address);
	struct accmem_bo *bo;

	lockdep_assert_held(&ctx->lock);
	if (IS_ERR(buf))
		return buf;
	if (!(buf->flags & ACCMEM_ALLOC_RESIZABLE))
		return ERR_PTR(-EPERM);
	bo = accmem_buffer_bo(buf);
	bo->nr_runs_before = bo->nr_runs;
	buf->resizing = true;
	return buf;
}

static struct accmem_buffer *realloc_begin(struct accmem_context *ctx,
					   u64 address)
{
	struct accmem_buffer *buf;

	spin_lock(&ctx->lock);
	buf = realloc_mark(ctx, address);
	spin_unlock(&ctx->lock);
	return buf;
}

/* Grow the buffer in place. */
static int realloc_grow(struct accmem_context *ctx, struct accmem_resize *r)
{
	/*
	 * If the old size is no multiple of the page size, the memory that is added
	 * starts inside a page: its alignment does not matter.
	 */
	u32 page_size = IS_ALIGNED(r->old_size, r->layout.page_size) ?
				r->layout.page_size :
				ACCMEM_GRANULE;

	return accmem_growth_make(ctx, r->buf, page_size, r->insists,
				  &r->layout.footprint);
}

/*
 * End the resize. The buffer gets the layout and the length of @r, or keeps its own if
 * @r is NULL.
 */
static void realloc_finish(struct accmem_context *ctx,
			   struct accmem_buffer *buf,
			   const struct accmem_resize *r)
{
	u64 before = buf->layout.footprint;

	lockdep_assert_held(&ctx->lock);
	if (r) {
		buf->layout = r->layout;
		buf->length = r->length;
	}
	if (!buf->layout.small)
		buf->layout.footprint = accmem_buffer_bo(buf)->size;
	accmem_ctx_carveout_of(ctx, accmem_buffer_carveout(buf))
		->published_bytes += buf->layout.footprint - before;
	buf->resizing = false;
	if (r)
		trace_accmem_realloc(ctx, buf, buf->address, 0);
}

static void realloc_lock_finish(struct accmem_context *ctx,
				struct accmem_buffer *buf,
				const struct accmem_resize *r)
{
	bool gives_units;

	spin_lock(&ctx->lock);
	gives_units = r && r->layout.small &&
		      r->layout.footprint < buf->layout.footprint;
	if (gives_units)
		accmem_slab_shrink(ctx, buf, r->layout.footprint);
	realloc_finish(ctx, buf, r);
	spin_unlock(&ctx->lock);
	if (gives_units)
		accmem_waiters_wake(ctx->account->waiters, ctx->account->user);
}

/* Split @bo at @size. Return -EAGAIN if the caller has to try again. */
static int realloc_split(struct accmem_context *ctx, struct accmem_buffer *buf,
			 struct accmem_bo *rest, u64 size)
{
	struct accmem_bo *bo = accmem_buffer_bo(buf);
	bool done;
	int err;

	lockdep_assert_held(&bo->lock);
	err = accmem_bo_split_prepare(bo, rest, size);
	if (err)
		return err;
	spin_lock(&ctx->lock);
	done = accmem_bo_split(bo, rest);
	if (done)
		accmem_growth_place(ctx, buf, bo->size);
	spin_unlock(&ctx->lock);
	if (!done) {
		accmem_bo_split_abort(rest);
		return -EAGAIN;
	}
	return 0;
}

/*
 * Free the memory beyond @size and end the resize. On failure the buffer stays marked.
 */
static int realloc_shrink(struct accmem_context *ctx, struct accmem_buffer *buf,
			  u64 size, const struct accmem_resize *r)
{
	struct accmem_bo *bo = accmem_buffer_bo(buf), *rest;
	int err;

	rest = accmem_bo_create_empty(ctx->account, bo->cv, 0);
	if (!rest)
		return -ENOMEM;
	do {
		mutex_lock(&bo->lock);
		err = realloc_split(ctx, buf, rest, size);
		mutex_unlock(&bo->lock);
	} while (err == -EAGAIN);
	if (err)
		accmem_bo_destroy_empty(rest);
	else
		accmem_bo_split_finish(bo, rest);
	if (err && err != -ENODATA)
		return err;
	/* From here on the buffer may be resized again or freed. */
	realloc_lock_finish(ctx, buf, r);
	return 0;
}

/*
 * End the resize with the old size. Memory that cannot be freed stays with the buffer.
 */
static void realloc_undo(struct accmem_context *ctx, struct accmem_buffer *buf,
			 u64 size)
{
	if (buf->layout.small || size == accmem_buffer_bo(buf)->size ||
	    realloc_shrink(ctx, buf, size, NULL))
		realloc_lock_finish(ctx, buf, NULL);
}

static int realloc_populate(void *arg)
{
	const struct accmem_resize *r = arg;

	struct accmem_bo *bo = accmem_buffer_bo(r->buf);

	return accmem_bo_populate(bo, r->old_size, bo->size);
}

/* Zero the bytes beyond the old end, and populate the memory that was added. */
static int realloc_make_ready(struct accmem_context *ctx,
			      struct accmem_resize *r)
{
	struct accmem_buffer *buf = r->buf;
	struct accmem_bo *bo = accmem_buffer_bo(buf);
	u64 from = buf->layout.usable;
	u64 to = min(r->layout.usable, buf->layout.footprint);
	int err = 0;

	if (from < to && accmem_bo_was_written(bo))
		err = accmem_bo_clear(bo, realloc_offset_of(buf) + from,
				      to - from);
	if (!err && bo->size > r->old_size &&
	    accmem_must_populate(bo->cv, buf->flags))
		err = accmem_reclaim_retry(ctx, bo->cv, bo->size - r->old_size,
					   realloc_populate, r);
	return err;
}

/*
 * Return true if the memory was freed with a dependency that has not signalled: work on
 * that stream may still access the memory.
 */
static bool realloc_has_dep(const struct accmem_buffer *buf)
{
	const struct accmem_dep *dep = &buf->pending.deps[0];

	if (accmem_dep_is_signaled(dep))
		return false;
	return !dep->position ||
	       accmem_stream_check(dep->stream, dep->position) == -EAGAIN;
}

static bool realloc_fits_in_place(const struct accmem_resize *r)
{
	const struct accmem_buffer *buf = r->buf;

	if (!IS_ALIGNED(buf->address, r->layout.alignment))
		return false;
	if (buf->layout.small)
		return r->layout.small &&
		       r->layout.footprint <= buf->layout.footprint;
	return true;
}

static int realloc_in_place(struct accmem_context *ctx, struct accmem_resize *r)
{
	int err = 0;

	if (!realloc_fits_in_place(r))
		return ACCMEM_NO_ROOM;
	if (realloc_has_dep(r->buf))
		r->layout.footprint =
			max(r->layout.footprint, r->buf->layout.footprint);
	if (!r->layout.small && r->layout.footprint > r->old_size)
		err = realloc_grow(ctx, r);
	return err ?: realloc_make_ready(ctx, r);
}

/* Copy the bytes that fit. */
static int realloc_copy(struct accmem_context *ctx, struct accmem_resize *r)
{
	struct accmem_bo *to = accmem_buffer_bo(r->fresh);
	u64 size = min(r->buf->layout.usable, r->fresh->layout.usable);
	int err;

	spin_lock(&ctx->lock);
	accmem_bo_set_written(to, true);
	spin_unlock(&ctx->lock);
	err = accmem_bo_copy(to, realloc_offset_of(r->fresh),
			     accmem_buffer_bo(r->buf),
			     realloc_offset_of(r->buf), size);
	if (!err)
		r->copied = size;
	return err;
}

static int realloc_move(struct accmem_context *ctx, struct accmem_resize *r,
			const struct accmem_alloc *req)
{
	struct accmem_plan plan;
	int err;

	err = accmem_plan_make(ctx, req, &plan);
	if (err)
		return err;
	r->carveouts = plan.carveouts;
	r->fresh = accmem_alloc(ctx, &plan);
	err = PTR_ERR_OR_ZERO(r->fresh);
	if (err) {
		r->fresh = NULL;
		return err;
	}
	/* realloc_request() drops a reservation shorter than the length: restore it. */
	r->fresh->reserve = r->buf->reserve;
	/*
	 * A pin or an export is reported only if nothing else prevents the move: this
	 * check comes last.
	 */
	if (accmem_bo_is_exported(accmem_buffer_bo(r->buf)) ||
	    accmem_bo_is_pinned(accmem_buffer_bo(r->buf)))
		err = -EBUSY;
	else
		err = realloc_copy(ctx, r);
	if (err) {
		accmem_alloc_discard(ctx, r->fresh);
		r->fresh = NULL;
	}
	return err;
}

/* Return the ALLOC request that describes the resized buffer. */
static struct accmem_alloc realloc_request(const struct accmem_buffer *buf,
					   u64 length)
{
	return (struct accmem_alloc){
		.flags = buf->flags & ~ACCMEM_ALLOC_FIXED,
		.length = length,
		.alignment = buf->alignment,
		.page_policy = buf->page_policy,
		.cache_mode = accmem_buffer_bo(buf)->cache_mode,
		.kind = accmem_buffer_carveout(buf)->kind,
		.carveout = accmem_carveout_number(accmem_buffer_carveout(buf)),
		.reserve = buf->reserve >= length ? buf->reserve : 0,
	};
}

/* A buffer that got normal pages as a fallback keeps normal pages. */
static u32 realloc_policy(const struct accmem_buffer *buf)
{
	if (buf->page_policy == ACCMEM_PAGE_HUGE_FIRST &&
	    buf->layout.huge == ACCMEM_HUGE_NEVER)
		return ACCMEM_PAGE_NORMAL_ONLY;
	return buf->page_policy;
}

/*
 * Compute the layout of the resized buffer. A buffer with memory of its own stays in
 * place when it becomes small: it keeps a granule and does not move to a slab page.
 */
static int realloc_layout(const struct accmem_buffer *buf,
			  const struct accmem_alloc *req,
			  struct accmem_layout *layout)
{
	int err = accmem_plan_layout(accmem_buffer_carveout(buf), req,
				     realloc_policy(buf), layout);

	if (!err && layout->small && !buf->layout.small) {
		layout->small = false;
		layout->footprint = round_up(layout->footprint, ACCMEM_GRANULE);
	}
	return err;
}

/* Return true if an attempt failed for lack of room, and has not changed the buffer. */
static bool realloc_lacks_room(const struct accmem_resize *r, int err)
{
	return (err == ACCMEM_NO_ROOM || err == -ENOMEM || err == -EDQUOT ||
		err == -EBUSY) &&
	       accmem_buffer_bo(r->buf)->size == r->old_size;
}

/*
 * The request is about to fail with @err: try in place once more. With identity
 * translation, caches of others may hold the memory behind the buffer, which growth
 * drains only if the buffer must not move; and the attempt to move may have freed it. If
 * large pages are only preferred, normal pages need less memory, and no alignment.
 */
static int realloc_stay(struct accmem_context *ctx, struct accmem_resize *r,
			const struct accmem_alloc *req, int err)
{
	struct accmem_carveout *cv = accmem_buffer_carveout(r->buf);

	if (r->layout.may_fall_back) {
		if (accmem_plan_layout(cv, req, ACCMEM_PAGE_NORMAL_ONLY,
				       &r->layout))
			return err;
	} else if (r->insists ||
		   cv->translation != ACCMEM_TRANSLATION_IDENTITY) {
		return err;
	}
	r->insists = true;
	return realloc_in_place(ctx, r) ? err : 0;
}

static int realloc_resize(struct accmem_context *ctx,
			  const struct accmem_realloc *call,
			  struct accmem_resize *r)
{
	const struct accmem_alloc req = realloc_request(r->buf, call->length);
	int err;

	r->carveouts = BIT(accmem_buffer_carveout(r->buf)->index);
	err = realloc_layout(r->buf, &req, &r->layout);
	if (err)
		return err;
	err = realloc_in_place(ctx, r);
	if (err == ACCMEM_NO_ROOM && !r->insists)
		err = realloc_move(ctx, r, &req);
	if (err && realloc_lacks_room(r, err))
		err = realloc_stay(ctx, r, &req, err);
	return err == ACCMEM_NO_ROOM ? -ENOMEM : err;
}

/**
 * accmem_realloc_prepare() - grow a buffer, or allocate its replacement
 * @ctx: the context
 * @req: the request; its flags have been checked, its length has not
 * @r: out: the REALLOC in progress, for accmem_realloc_commit() or
 *	accmem_realloc_cancel()
 *
 * Context: Process context. Takes and releases ctx->lock and bo->lock. May sleep.
 *
 * Return: 0; an error of ACCMEM_IOC_REALLOC, and the buffer is unchanged.
 */
int accmem_realloc_prepare(struct accmem_context *ctx,
			   const struct accmem_realloc *req,
			   struct accmem_resize *r)
{
	int err;

	*r = (struct accmem_resize){
		.length = req->length,
		.carveouts = ctx->carveouts->device_mask,
		.insists = req->flags & ACCMEM_REALLOC_IN_PLACE,
	};
	r->buf = realloc_begin(ctx, req->address);
	if (IS_ERR(r->buf))
		return PTR_ERR(r->buf);
	r->old_size = accmem_buffer_bo(r->buf)->size;
	err = realloc_resize(ctx, req, r);
	if (err)
		realloc_undo(ctx, r->buf, r->old_size);
	return err;
}

/**
 * accmem_realloc_describe() - fill in the answer of a REALLOC in progress
 * @r: the REALLOC, after accmem_realloc_prepare()
 * @req: out: the answer
 *
 * A fault between this call and accmem_realloc_commit() may raise the footprint, by
 * less than 2 MiB.
 *
 * Context: Process context. Takes no lock.
 */
void accmem_realloc_describe(const struct accmem_resize *r,
			     struct accmem_realloc *req)
{
	const struct accmem_buffer *buf = r->fresh ?: r->buf;
	const struct accmem_layout *layout = r->fresh ? &buf->layout :
							&r->layout;
	struct accmem_bo *bo = accmem_buffer_bo(buf);

	req->address = buf->address;
	req->usable = layout->usable;
	req->footprint = layout->footprint;
	req->nr_runs = bo->nr_runs;
	if (!layout->small && layout->footprint != bo->size)
		req->footprint = accmem_bo_shrink_floor(bo, layout->footprint,
							&req->nr_runs);
	req->mmap_offset = accmem_buffer_mmap_offset(buf);
	req->free_bytes = 0;
	req->largest_run = 0;
	req->page_size = layout->page_size;
	req->copied = r->copied;
}

/**
 * accmem_realloc_commit() - complete a REALLOC
 * @ctx: the context
 * @r: the REALLOC, after accmem_realloc_prepare()
 *
 * Context: Process context. Takes and releases ctx->lock and bo->lock. May sleep.
 *
 * Return: 0; -ENOMEM, and the buffer is unchanged.
 */
int accmem_realloc_commit(struct accmem_context *ctx, struct accmem_resize *r)
{
	struct accmem_buffer *buf = r->buf;
	u64 size = r->layout.footprint;
	int err;

	if (r->fresh) {
		trace_accmem_realloc(ctx, r->fresh, buf->address, r->copied);
		accmem_alloc_replace(ctx, buf, r->fresh);
		return 0;
	}
	if (buf->layout.small || size == accmem_buffer_bo(buf)->size) {
		realloc_lock_finish(ctx, buf, r);
		return 0;
	}
	err = realloc_shrink(ctx, buf, size, r);
	if (err)
		realloc_lock_finish(ctx, buf, NULL);
	return err;
}

/**
 * accmem_realloc_cancel() - undo accmem_realloc_prepare()
 * @ctx: the context
 * @r: the REALLOC, after accmem_realloc_prepare()
 *
 * Context: Process context. Takes and releases ctx->lock and bo->lock. May sleep.
 */
void accmem_realloc_cancel(struct accmem_context *ctx, struct accmem_resize *r)
{
	if (r->fresh)
		accmem_alloc_discard(ctx, r->fresh);
	realloc_undo(ctx, r->buf, r->old_size);
}
