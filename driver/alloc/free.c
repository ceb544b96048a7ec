// SPDX-License-Identifier: GPL-2.0
/*
 * FREE: remove a buffer from its context and free its memory.
 *
 * FREE unpublishes the buffer under ctx->lock: from there on no other call can find it.
 * The buffer then goes one of three ways:
 *
 * - It becomes a pending free, if its dependency has not signalled.
 * - It enters the context's cache of freed buffers (vm/cache.c).
 * - It is destroyed, and its memory is freed.
 *
 * FREE allocates nothing, so a lack of memory cannot make it fail.
 *
 * Locking: ctx->lock, for single steps.
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

/*
 * Free an unpublished buffer's address. Return false if the buffer has to wait instead.
 */
static bool free_remove(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	const struct accmem_dep none = {};

	lockdep_assert_held(&ctx->lock);
	if (accmem_pending_add(ctx, buf, &none))
		return false;
	accmem_buffer_remove(ctx, buf);
	return true;
}

/* Start the wait of a pending free, and wake waiters that may use it. */
static void free_start(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	accmem_pending_start(buf);
	/* A request on the same stream may reuse the pending memory and its charge. */
	accmem_waiters_wake(ctx->account->waiters, ctx->account->user);
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
 * accmem_alloc_discard() - free a buffer whose address user space did not receive
 * @ctx: the context
 * @buf: the buffer; it is destroyed, or becomes a pending free again
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
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
 * accmem_alloc_find() - find the buffer at an address, to free or resize it
 * @ctx: the context
 * @address: the device address of the buffer
 *
 * Context: The caller holds ctx->lock.
 *
 * Return: the buffer; -ENOENT if there is no buffer, -EINVAL if @address is inside a
 * buffer, -EBUSY if a REALLOC of the buffer is in progress.
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
 * accmem_free() - free the buffer at an address
 * @ctx: the context
 * @address: the device address of the buffer
 * @dep: the dependency that the free waits for; may be signalled already. On
 *	success the function takes over its reference.
 *
 * Allocates nothing.
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 *
 * Return: 0 or an error of accmem_alloc_find().
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
 * accmem_alloc_replace() - publish a new buffer and free the old one
 * @ctx: the context
 * @old: a published buffer that is marked as resizing; it is freed
 * @fresh: an unpublished buffer; it is published
 *
 * Both happen in one critical section: no other thread finds both buffers, or neither.
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
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
