// SPDX-License-Identifier: GPL-2.0
/*
 * A buffer that grows in place.
 *
 * It grows by what lies right behind its memory, or, where addresses are mapped, by
 * memory from anywhere: its addresses have to go on, its memory need not.
 *
 * Locks: the context's, for a moment at a time; accmem_bo.lock.
 */
#include <linux/kernel.h>

#include "internal.h"
#include "memory/bo.h"
#include "memory/clear.h"
#include "memory/resize.h"
#include "vm/buffer.h"
#include "vm/va.h"
#include "waitq/waiters.h"

/* what is added to a memory */
struct growth {
	struct accmem_context *ctx;
	struct accmem_buffer *buf;
	u64 size; /* of the memory, when it has grown */
	u32 page_size;
	struct accmem_run behind; /* what lies right behind it, or */
	struct accmem_bo *more; /* another memory, or NULL */
	bool replaces; /* @more is to take the place of all there is */
	bool insists; /* it fails if what it needs is not there */
};

static bool growth_is_identity(const struct accmem_buffer *buf)
{
	return accmem_buffer_carveout(buf)->translation ==
	       ACCMEM_TRANSLATION_IDENTITY;
}

/* memory of @size bytes, anywhere */
static int growth_create(struct growth *g, u64 size)
{
	struct accmem_bo *bo = accmem_buffer_bo(g->buf);
	const struct accmem_bo_spec spec = {
		.size = size,
		.alignment = g->page_size,
		.page_size = g->page_size,
		.huge = bo->huge,
		.flags = g->buf->flags &
			 (ACCMEM_ALLOC_CONTIGUOUS | ACCMEM_ALLOC_TOP_DOWN),
		.cache_mode = bo->cache_mode,
	};

	g->more = accmem_bo_create(g->ctx->account, bo->cv, &spec);
	return PTR_ERR_OR_ZERO(g->more);
}

static int growth_take(void *arg)
{
	struct growth *g = arg;
	struct accmem_bo *bo = accmem_buffer_bo(g->buf);
	int err = accmem_bo_extend_prepare(bo, g->size - bo->size, g->page_size,
					   &g->behind);

	g->more = NULL;
	if (err != -ENOSPC)
		return err;
	/* before it fails, all that is free but hidden is given back */
	if (growth_is_identity(g->buf))
		return g->insists ? -ENOSPC : ACCMEM_NO_ROOM;
	g->replaces = g->buf->flags & ACCMEM_ALLOC_CONTIGUOUS;
	return growth_create(g, g->replaces ? g->size : g->size - bo->size);
}

/* once more with nothing in its way that is free but hidden */
static int growth_find_room(struct growth *g)
{
	struct accmem_carveout *cv = accmem_buffer_carveout(g->buf);
	int err;

	accmem_reclaim_addresses(g->ctx, cv);
	accmem_clear_pause(cv);
	err = accmem_reclaim_retry(g->ctx, cv, g->size, growth_take, g);
	accmem_clear_resume(cv);
	return err;
}

static int growth_get(struct growth *g)
{
	struct accmem_bo *bo = accmem_buffer_bo(g->buf);
	int err = accmem_reclaim_retry(g->ctx, bo->cv, g->size - bo->size,
				       growth_take, g);

	if (err == ACCMEM_NO_ROOM)
		err = growth_find_room(g);
	return err == -ENOSPC ? ACCMEM_NO_ROOM : err;
}

/* how many device addresses it has with @size bytes */
static u64 growth_addresses(const struct accmem_buffer *buf, u64 size)
{
	return accmem_carveout_addresses(accmem_buffer_carveout(buf), size,
					 buf->reserve);
}

/**
 * accmem_growth_place() - give a buffer the device addresses of another size
 * @ctx: the context, whose lock is held
 * @buf: the buffer, alone in its place
 * @size: bytes of its memory; what is reserved counts besides
 *
 * Return: as accmem_va_resize().
 */
int accmem_growth_place(struct accmem_context *ctx, struct accmem_buffer *buf,
			u64 size)
{
	return accmem_va_resize(ctx, buf->va, growth_addresses(buf, size));
}

static int growth_lock_place(struct accmem_context *ctx,
			     struct accmem_buffer *buf, u64 size)
{
	int err;

	spin_lock(&ctx->lock);
	err = accmem_growth_place(ctx, buf, size);
	spin_unlock(&ctx->lock);
	return err ? ACCMEM_NO_ROOM : 0;
}

/* is a buffer behind it in the way, which is not free? */
static bool growth_is_blocked(struct accmem_context *ctx,
			      struct accmem_buffer *buf, u64 size)
{
	u64 end = buf->va->start + buf->va->size;
	int err;

	size = growth_addresses(buf, size);
	spin_lock(&ctx->lock);
	err = accmem_va_check(ctx, end, buf->va->start + size - end);
	spin_unlock(&ctx->lock);
	return err == -EEXIST;
}

/* once more without what is behind it and free, but hidden */
static int growth_find_place(struct accmem_context *ctx,
			     struct accmem_buffer *buf, u64 size)
{
	int err;

	/* those of a reservation are there from the beginning */
	if (size <= buf->va->size)
		return 0;
	err = growth_lock_place(ctx, buf, size);
	if (!err || growth_is_blocked(ctx, buf, size))
		return err;
	accmem_reclaim_addresses(ctx, accmem_buffer_carveout(buf));
	return growth_lock_place(ctx, buf, size);
}

/* with identity translation, whose memory it is decides whose address */
static void growth_follow(struct growth *g)
{
	u64 size = accmem_buffer_bo(g->buf)->size;

	lockdep_assert_held(&g->ctx->lock);
	if (growth_is_identity(g->buf))
		WARN_ON_ONCE(accmem_growth_place(g->ctx, g->buf, size));
}

/* what was taken behind the buffer's memory becomes a part of it */
static void growth_extend(struct growth *g)
{
	struct accmem_bo *bo = accmem_buffer_bo(g->buf);

	spin_lock(&g->ctx->lock);
	accmem_bo_extend(bo, &g->behind);
	growth_follow(g);
	spin_unlock(&g->ctx->lock);
}

/* what was taken elsewhere becomes a part of it, or all of it */
static int growth_join(struct growth *g)
{
	struct accmem_bo *bo = accmem_buffer_bo(g->buf);
	int err = 0;

	if (!g->replaces)
		err = accmem_bo_join_prepare(bo, g->more);
	if (err) {
		accmem_bo_put(g->more);
		return err;
	}
	spin_lock(&g->ctx->lock);
	if (g->replaces)
		accmem_bo_swap_runs(bo, g->more);
	else
		accmem_bo_join(bo, g->more);
	spin_unlock(&g->ctx->lock);
	if (g->replaces)
		accmem_bo_put(g->more);
	else
		accmem_bo_destroy_empty(g->more);
	return 0;
}

static int growth_take_more(struct growth *g)
{
	struct accmem_bo *bo = accmem_buffer_bo(g->buf);
	u64 step = g->size - bo->size;
	int err;

	err = growth_get(g);
	if (!err && g->more)
		err = growth_join(g);
	else if (!err)
		growth_extend(g);
	if (!err)
		accmem_waiters_count_bypass(bo->cv, g->ctx->account->user,
					    step);
	return err;
}

/*
 * What the memory is to have at least. A mapping from when it was longer may show all
 * of a page of 2 MiB with one entry, so that the memory has to have all of it.
 */
static u64 growth_size(struct accmem_bo *bo, u64 size)
{
	u64 whole;

	if (size >= bo->max_size || !bo->cv->ops->shrink_floor)
		return size;
	mutex_lock(&bo->lock);
	whole = bo->cv->ops->shrink_floor(bo, size);
	mutex_unlock(&bo->lock);
	return whole <= bo->max_size ? whole : size;
}

/**
 * accmem_growth_make() - let a buffer grow in place
 * @ctx: the context
 * @buf: the buffer, which is marked as resizing. Sleeps.
 * @page_size: of what is added, in bytes
 * @insists: it does not get another address instead
 * @size: in: bytes that its memory is to have; out: that it has, on success, at least as
 *	many
 *
 * Return: 0; ACCMEM_NO_ROOM where what lies behind it is in the way; -ENOMEM; -EDQUOT;
 * -EINTR. On failure it is what it was.
 */
int accmem_growth_make(struct accmem_context *ctx, struct accmem_buffer *buf,
		       u32 page_size, bool insists, u64 *size)
{
	struct accmem_bo *bo = accmem_buffer_bo(buf);
	struct growth g = {
		.ctx = ctx,
		.buf = buf,
		.size = growth_size(bo, *size),
		.page_size = page_size,
		.insists = insists,
	};
	bool mapped = !growth_is_identity(buf);
	int err = 0;

	*size = g.size;
	if (mapped)
		err = growth_find_place(ctx, buf, g.size);
	if (err)
		return err;
	err = growth_take_more(&g);
	if (err && mapped)
		growth_lock_place(ctx, buf, bo->size);
	return err;
}
