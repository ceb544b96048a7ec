// SPDX-License-Identifier: GPL-2.0
/*
 * FREE.
 *
 * A buffer loses its name, and waits then for what it is freed after, goes to the
 * context's cache, or is given back. What is found by its name under the context's lock
 * is the caller's alone from there on; nothing is allocated, so that FREE does not fail.
 *
 * Locks: the context's, for a moment at a time.
 */
#include <linux/kernel.h>

#include "alloc/alloc.h"
#include "alloc/free.h"
#include "internal.h"
#include "stream/pending.h"
#include "vm/buffer.h"
#include "vm/cache.h"
#include "vm/lookup.h"
#include "waitq/waiters.h"

/* The address of a buffer goes that is not published, unless it has to wait. */
static bool free_remove(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	const struct accmem_dep none = {};

	lockdep_assert_held(&ctx->lock);
	if (accmem_pending_add(ctx, buf, &none))
		return false;
	accmem_buffer_remove(ctx, buf);
	return true;
}

/* it begins to wait */
static void free_start(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	accmem_pending_start(buf);
	/* a request on the stream may have it, and its charge */
	accmem_waiters_wake_freed(ctx->account->waiters, ctx->account->user);
}

static void free_finish(struct accmem_context *ctx, struct accmem_buffer *buf,
			bool goes)
{
	if (goes)
		accmem_buffer_destroy(ctx, buf);
	else
		free_start(ctx, buf);
}

/**
 * accmem_alloc_discard() - the address of a buffer could not be told
 * @ctx: the context
 * @buf: the buffer, which goes, or waits as it did before
 */
void accmem_alloc_discard(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	bool goes;

	spin_lock(&ctx->lock);
	goes = free_remove(ctx, buf);
	spin_unlock(&ctx->lock);
	free_finish(ctx, buf, goes);
}

/**
 * accmem_alloc_find() - the buffer that a call may take
 * @ctx: the context, whose lock is held
 * @address: its device address
 *
 * Return: the buffer; -ENOENT when there is none, -EINVAL when @address is inside
 * one, -EBUSY when a REALLOC of it is in progress.
 */
struct accmem_buffer *accmem_alloc_find(struct accmem_context *ctx, u64 address)
{
	struct accmem_buffer *buf = accmem_buffer_find(ctx, address);

	if (!buf)
		return ERR_PTR(-ENOENT);
	if (buf->address < address)
		return ERR_PTR(-EINVAL);
	return buf->resizing ? ERR_PTR(-EBUSY) : buf;
}

/**
 * accmem_free() - free a buffer by its name
 * @ctx: the context
 * @address: its device address
 * @dep: what it waits for, with a reference that is taken over on success; may
 *	be open
 *
 * Return: 0; an error of accmem_alloc_find(). Allocates nothing.
 */
int accmem_free(struct accmem_context *ctx, u64 address,
		const struct accmem_dep *dep)
{
	struct accmem_buffer *buf, *goes = NULL;
	bool waits = false;

	spin_lock(&ctx->lock);
	buf = accmem_alloc_find(ctx, address);
	if (!IS_ERR(buf)) {
		accmem_buffer_unpublish(ctx, buf);
		waits = accmem_pending_add(ctx, buf, dep);
		if (!waits)
			goes = accmem_cache_put(ctx, buf);
	}
	spin_unlock(&ctx->lock);
	if (waits)
		free_start(ctx, buf);
	else if (goes)
		accmem_buffer_destroy(ctx, goes);
	return PTR_ERR_OR_ZERO(buf);
}

/**
 * accmem_alloc_replace() - a buffer takes the place of another
 * @ctx: the context
 * @old: a published buffer, which alone is the caller's; is freed
 * @fresh: a new buffer, which is published
 */
void accmem_alloc_replace(struct accmem_context *ctx, struct accmem_buffer *old,
			  struct accmem_buffer *fresh)
{
	bool goes;

	spin_lock(&ctx->lock);
	old->resizing = false;
	accmem_buffer_unpublish(ctx, old);
	accmem_buffer_publish(ctx, fresh);
	goes = free_remove(ctx, old);
	spin_unlock(&ctx->lock);
	free_finish(ctx, old, goes);
}
