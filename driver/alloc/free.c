// SPDX-License-Identifier: GPL-2.0
/*
 * FREE, of one buffer or of many.
 *
 * A buffer loses its name, and waits then for what it is freed after, goes to the
 * context's cache, or is given back. What is found by its name under the context's lock
 * is the caller's alone from there on; nothing is allocated, so that FREE does not fail.
 *
 * Locks: the context's, for a moment at a time.
 */
#include <linux/kernel.h>
#include <linux/sched.h>

#include "alloc/alloc.h"
#include "alloc/free.h"
#include "internal.h"
#include "stream/pending.h"
#include "vm/buffer.h"
#include "vm/cache.h"
#include "vm/lookup.h"
#include "waitq/waiters.h"

/*
 * Takes the addresses of buffers away that are not published. Those that have to
 * wait keep theirs, and come last then; returns how many do not.
 */
static unsigned int free_remove(struct accmem_context *ctx,
				struct accmem_buffer **bufs, unsigned int nr)
{
	const struct accmem_gate none = {};
	unsigned int i, goes = 0;

	lockdep_assert_held(&ctx->lock);
	for (i = 0; i < nr; i++) {
		if (accmem_pending_add(ctx, bufs[i], &none))
			continue;
		swap(bufs[goes], bufs[i]);
		goes++;
	}
	accmem_buffer_remove_all(ctx, bufs, goes);
	return goes;
}

/* the first @goes of @nr buffers go, the others begin to wait */
static void free_finish(struct accmem_context *ctx, struct accmem_buffer **bufs,
			unsigned int nr, unsigned int goes)
{
	unsigned int i;

	accmem_buffer_destroy_all(ctx, bufs, goes);
	for (i = goes; i < nr; i++)
		accmem_pending_start(bufs[i]);
	/* requests on a stream may have what is pending on it */
	if (goes < nr)
		accmem_waiters_came_back(ctx->dev, ctx->account->user);
}

/* buffers that are not published, and that nobody can find */
static void free_destroy(struct accmem_context *ctx,
			 struct accmem_buffer **bufs, unsigned int nr)
{
	unsigned int i, some, goes;

	for (i = 0; i < nr; i += some) {
		some = min(nr - i, ACCMEM_MANY);
		spin_lock(&ctx->lock);
		goes = free_remove(ctx, bufs + i, some);
		spin_unlock(&ctx->lock);
		free_finish(ctx, bufs + i, some, goes);
		cond_resched();
	}
}

/**
 * accmem_alloc_discard() - addresses of buffers could not be told
 * @ctx: the context
 * @bufs: the buffers, which go, or wait as they did before
 * @nr: how many
 */
void accmem_alloc_discard(struct accmem_context *ctx,
			  struct accmem_buffer **bufs, unsigned int nr)
{
	free_destroy(ctx, bufs, nr);
}

/* the buffer that has @address, or an error of FREE; @near is a guess */
static struct accmem_buffer *free_find(struct accmem_context *ctx,
				       struct accmem_buffer *near, u64 address)
{
	struct accmem_buffer *buf = accmem_name_find_near(ctx, near, address);

	if (!buf)
		return ERR_PTR(-ENOENT);
	if (buf->address < address)
		return ERR_PTR(-EINVAL);
	return buf->resizing ? ERR_PTR(-EBUSY) : buf;
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
	return free_find(ctx, NULL, address);
}

/**
 * accmem_free() - free a buffer by its name
 * @ctx: the context
 * @address: its device address
 * @gate: what it waits for, with a reference that is taken over on success; may
 *	be open
 *
 * Return: 0; an error of accmem_alloc_find(). Allocates nothing.
 */
int accmem_free(struct accmem_context *ctx, u64 address,
		const struct accmem_gate *gate)
{
	struct accmem_buffer *buf, *goes = NULL;
	bool waits = false;

	spin_lock(&ctx->lock);
	buf = free_find(ctx, NULL, address);
	if (!IS_ERR(buf)) {
		accmem_name_unpublish(ctx, buf);
		waits = accmem_pending_add(ctx, buf, gate);
		if (!waits)
			goes = accmem_cache_put(ctx, buf);
	}
	spin_unlock(&ctx->lock);
	if (waits) {
		accmem_pending_start(buf);
		/* a request on the stream may have it, and its charge */
		accmem_waiters_came_back(ctx->dev, ctx->account->user);
	} else if (goes) {
		accmem_buffer_destroy(ctx, goes);
	}
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
	unsigned int goes;

	spin_lock(&ctx->lock);
	old->resizing = false;
	accmem_name_unpublish(ctx, old);
	accmem_name_publish(ctx, fresh);
	goes = free_remove(ctx, &old, 1);
	spin_unlock(&ctx->lock);
	free_finish(ctx, &old, 1, goes);
}

/**
 * accmem_free_each() - free buffers by their names
 * @ctx: the context
 * @addresses: their device addresses
 * @results: of each, what accmem_free() would have returned; in: an error, with
 *	which the address is not looked at, or 0
 * @nr: how many, up to ACCMEM_MANY
 *
 * None is kept in the cache: who frees many wants room. Allocates nothing.
 */
void accmem_free_each(struct accmem_context *ctx, const u64 *addresses,
		      int *results, unsigned int nr)
{
	struct accmem_buffer *bufs[ACCMEM_MANY], *buf, *last = NULL;
	unsigned int i, goes, found = 0;

	spin_lock(&ctx->lock);
	for (i = 0; i < nr; i++) {
		if (results[i])
			continue;
		buf = free_find(ctx, last, addresses[i]);
		results[i] = PTR_ERR_OR_ZERO(buf);
		if (results[i])
			continue;
		accmem_name_unpublish(ctx, buf);
		last = buf;
		bufs[found++] = buf;
	}
	goes = free_remove(ctx, bufs, found);
	spin_unlock(&ctx->lock);
	free_finish(ctx, bufs, found, goes);
}

/* Hides as many buffers as can be found, of which @bufs has as many then. */
static unsigned int free_hide(struct accmem_context *ctx, const u64 *addresses,
			      struct accmem_buffer **bufs, unsigned int nr,
			      int *err)
{
	struct accmem_buffer *last = NULL;
	unsigned int i;

	lockdep_assert_held(&ctx->lock);
	for (i = 0; i < nr; i++) {
		bufs[i] = free_find(ctx, last, addresses[i]);
		*err = PTR_ERR_OR_ZERO(bufs[i]);
		if (*err)
			break;
		accmem_name_hide(ctx, bufs[i], true);
		last = bufs[i];
	}
	return i;
}

/**
 * accmem_free_all() - free buffers by their names, all of them or none
 * @ctx: the context
 * @addresses: their device addresses
 * @bufs: room for @nr buffers
 * @nr: how many
 * @at_fault: out: on failure, which of them could not be freed
 *
 * Holds the context's lock until all have been found: nobody sees a part of
 * them gone.
 *
 * Return: 0; what accmem_free() would have returned of the first that is not to
 * be freed; -ENOENT for one that was there before.
 */
int accmem_free_all(struct accmem_context *ctx, const u64 *addresses,
		    struct accmem_buffer **bufs, unsigned int nr,
		    unsigned int *at_fault)
{
	unsigned int i, found;
	int err = 0;

	spin_lock(&ctx->lock);
	found = free_hide(ctx, addresses, bufs, nr, &err);
	for (i = 0; i < found; i++) {
		if (err)
			accmem_name_hide(ctx, bufs[i], false);
		else
			accmem_name_unpublish(ctx, bufs[i]);
	}
	spin_unlock(&ctx->lock);
	*at_fault = found;
	if (!err)
		free_destroy(ctx, bufs, nr);
	return err;
}
