// SPDX-License-Identifier: GPL-2.0
/*
 * Growth: enlarge a buffer without changing its device address.
 *
 * With identity translation a device address is an offset in the carveout: the buffer
 * grows only if the memory right behind it is free. With mapped translation only the
 * device addresses have to continue. The memory is extended in place if it can be, else
 * memory from elsewhere is appended. A contiguous buffer gets new memory of the full
 * size instead.
 *
 * On failure the buffer is unchanged.
 *
 * Locking: ctx->lock for single steps; bo->lock while the backing computes how much a
 * mapping may show.
 */
#include <linux/kernel.h>

#include "alloc/reclaim.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/clear.h"
#include "memory/quarantine.h"
#include "memory/resize.h"
#include "types/backing_types.h"
#include "vm/buffer.h"
#include "vm/va.h"
#include "waitq/waiters.h"

/* A growth in progress, and the memory that it has allocated. */
struct growth {
	struct accmem_context *ctx;
	struct accmem_buffer *buf;
	u64 size; /* of the buffer object, after the growth */
	u32 page_size;
	struct accmem_run
		behind; /* memory right behind the bo, if @more is NULL */
	struct accmem_bo *more; /* memory from elsewhere, or NULL */
	bool replaces; /* @more replaces all runs of the bo */
	bool insists; /* the buffer must not move: fail instead */
};

static bool growth_is_identity(const struct accmem_buffer *buf)
{
	return accmem_buffer_carveout(buf)->translation ==
	       ACCMEM_TRANSLATION_IDENTITY;
}

/* Allocate a buffer object of @size bytes at any offset. */
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

static int growth_alloc(void *arg)
{
	struct growth *g = arg;
	struct accmem_bo *bo = accmem_buffer_bo(g->buf);
	int err = accmem_bo_extend_prepare(bo, g->size - bo->size, g->page_size,
					   &g->behind);

	g->more = NULL;
	if (err != -ENOSPC)
		return err;
	/* The caller frees cached buffers and pending frees before it fails. */
	if (growth_is_identity(g->buf))
		return g->insists ? -ENOSPC : ACCMEM_NO_ROOM;
	g->replaces = g->buf->flags & ACCMEM_ALLOC_CONTIGUOUS;
	return growth_create(g, g->replaces ? g->size : g->size - bo->size);
}

/*
 * Free the cached buffers, the pending frees and the quarantined memory of the context
 * that may lie behind the buffer, pause the cleaner, and try again. While the buffer is
 * mapped, freed memory of the context in its last folio stays in quarantine.
 */
static int growth_find_room(struct growth *g)
{
	struct accmem_carveout *cv = accmem_buffer_carveout(g->buf);
	int err;

	accmem_reclaim_addresses(g->ctx, cv);
	accmem_quarantine_scan_account(cv, g->ctx->account);
	accmem_clear_pause(cv);
	err = accmem_reclaim_retry(g->ctx, cv, g->size, growth_alloc, g);
	accmem_clear_resume(cv);
	return err;
}

static int growth_get(struct growth *g)
{
	struct accmem_bo *bo = accmem_buffer_bo(g->buf);
	int err = accmem_reclaim_retry(g->ctx, bo->cv, g->size - bo->size,
				       growth_alloc, g);

	if (err == ACCMEM_NO_ROOM)
		err = growth_find_room(g);
	return err == -ENOSPC ? ACCMEM_NO_ROOM : err;
}

/* Return the number of device addresses that @buf needs for @size bytes of memory. */
static u64 growth_addresses(const struct accmem_buffer *buf, u64 size)
{
	return accmem_carveout_addresses(accmem_buffer_carveout(buf), size,
					 buf->reserve);
}

/**
 * accmem_growth_place() - resize the device address range of a buffer
 * @ctx: the context
 * @buf: the buffer; no other buffer shares its address range
 * @size: the bytes of memory of the buffer; addresses that it reserved are added
 *
 * Context: The caller holds ctx->lock.
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

/* Return true if a published buffer occupies addresses that the growth needs. */
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

/*
 * Extend the address range. If only freed buffers are in the way, free them and retry.
 */
static int growth_find_place(struct accmem_context *ctx,
			     struct accmem_buffer *buf, u64 size)
{
	int err;

	/* Reserved addresses have belonged to the buffer since its allocation. */
	if (size <= buf->va->size)
		return 0;
	err = growth_lock_place(ctx, buf, size);
	if (!err || growth_is_blocked(ctx, buf, size))
		return err;
	accmem_reclaim_addresses(ctx, accmem_buffer_carveout(buf));
	return growth_lock_place(ctx, buf, size);
}

/*
 * With identity translation the addresses follow from the memory: extend the address
 * range.
 */
static void growth_follow(struct growth *g)
{
	u64 size = accmem_buffer_bo(g->buf)->size;

	lockdep_assert_held(&g->ctx->lock);
	if (growth_is_identity(g->buf))
		WARN_ON_ONCE(accmem_growth_place(g->ctx, g->buf, size));
}

/* Append the memory right behind the buffer object to it. */
static void growth_extend(struct growth *g)
{
	struct accmem_bo *bo = accmem_buffer_bo(g->buf);

	spin_lock(&g->ctx->lock);
	accmem_bo_extend(bo, &g->behind);
	growth_follow(g);
	spin_unlock(&g->ctx->lock);
}

/* Append memory from elsewhere to the buffer object, or replace its runs. */
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

static int growth_alloc_more(struct growth *g)
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
 * Return the size to grow to. If the buffer object was longer before, a mapping may
 * still show a whole page of 2 MiB with one entry: the buffer object has to own all of
 * that page.
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
 * accmem_growth_make() - grow a buffer in place
 * @ctx: the context
 * @buf: the buffer, marked as resizing
 * @page_size: the page size of the memory that is added, in bytes
 * @insists: the caller does not move the buffer if it cannot grow in place
 * @size: in: the bytes of memory that the buffer needs; out: the bytes that it has
 *	after success, which may be more
 *
 * On failure the buffer is unchanged.
 *
 * Context: Process context. Takes and releases ctx->lock and bo->lock. May sleep.
 *
 * Return: 0; ACCMEM_NO_ROOM if the buffer cannot grow at its address; -ENOMEM; -EDQUOT;
 * -EINTR.
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
	err = growth_alloc_more(&g);
	if (err && mapped)
		growth_lock_place(ctx, buf, bo->size);
	return err;
}
