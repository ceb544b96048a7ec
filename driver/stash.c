// SPDX-License-Identifier: GPL-2.0
/*
 * Stashes: what a context freed last, kept for what it allocates next.
 *
 * A buffer that nobody refers to and that was never mapped is kept, whole and
 * prepared, when its context frees it; a request of the same layout, flags and
 * cache mode takes it as it is. Such a pair of calls writes nothing that
 * another context writes: neither the carveout's lock nor the user's counters.
 *
 * What is kept has no name, so FREE, QUERY and mmap do not know it. It stays
 * charged and its carveout counts it as live, but whoever is about to fail for
 * lack of memory or over a limit, or to say how much is free, drains the
 * stashes before, so that nobody ever sees it as anything but free.
 *
 * Nothing is cleared: no other context had it, and no mapping showed it.
 *
 * Owns accmem_stash_drain_lock, which is held from where stashes are emptied to
 * where the last of their memory is free: it is in no stash then, and whoever is
 * about to fail for lack of it waits.
 *
 * Locks: accmem_stash_drain_lock > device.lock or users_lock > stash.lock, and
 * context.lock > stash.lock. The memory goes back under the first alone.
 */
#include <linux/kernel.h>
#include <linux/mutex.h>

#include "accmem_drv.h"

#define STASH_BUFFERS 16u
#define STASH_BUFFER_MAX ((u64)SZ_2M)

DEFINE_MUTEX(accmem_stash_drain_lock); /* memory on its way out */

static void account(struct accmem_context *ctx, u64 hits)
{
	struct accmem_carveout *cv = accmem_context_carveout(ctx);

	accmem_carveout_lock(cv);
	cv->allocs += hits;
	cv->frees += hits;
	accmem_carveout_unlock(cv);
}

/**
 * accmem_stash_init() - make an empty stash
 * @stash: the stash
 */
void accmem_stash_init(struct accmem_stash *stash)
{
	spin_lock_init(&stash->lock);
	INIT_LIST_HEAD(&stash->buffers);
}

/**
 * accmem_stash_collect() - empty the stash of a context
 * @ctx: the context
 * @list: where its buffers go, for accmem_stash_release(); the caller holds
 *	accmem_stash_drain_lock until then
 */
void accmem_stash_collect(struct accmem_context *ctx, struct list_head *list)
{
	struct accmem_stash *stash = &ctx->stash;
	u64 hits;

	lockdep_assert_held(&accmem_stash_drain_lock);
	if (!READ_ONCE(stash->nr) && !READ_ONCE(stash->hits))
		return;
	spin_lock(&stash->lock);
	list_splice_init(&stash->buffers, list);
	WRITE_ONCE(stash->nr, 0);
	hits = stash->hits;
	WRITE_ONCE(stash->hits, 0);
	spin_unlock(&stash->lock);
	if (hits)
		account(ctx, hits);
}

/**
 * accmem_stash_release() - give back what stashes held
 * @list: filled by accmem_stash_collect(). Sleeps, allocates nothing.
 */
void accmem_stash_release(struct list_head *list)
{
	struct accmem_buffer *buf, *next;

	list_for_each_entry_safe(buf, next, list, link) {
		list_del_init(&buf->link);
		accmem_buffer_detach(buf);
		cond_resched();
	}
}

/**
 * accmem_stash_drain() - give back what the stash of one context holds
 * @ctx: the context
 */
void accmem_stash_drain(struct accmem_context *ctx)
{
	LIST_HEAD(list);

	mutex_lock(&accmem_stash_drain_lock);
	accmem_stash_collect(ctx, &list);
	accmem_stash_release(&list);
	mutex_unlock(&accmem_stash_drain_lock);
}

/**
 * accmem_stash_drain_device() - give back what all stashes of a device hold
 * @dev: the device
 *
 * To be called, without locks, before a request fails for lack of memory and
 * before anybody is told how much is free.
 */
void accmem_stash_drain_device(struct accmem_device *dev)
{
	struct accmem_context *ctx;
	LIST_HEAD(list);

	mutex_lock(&accmem_stash_drain_lock);
	mutex_lock(&dev->lock);
	list_for_each_entry(ctx, &dev->contexts, link)
		accmem_stash_collect(ctx, &list);
	mutex_unlock(&dev->lock);
	accmem_stash_release(&list);
	mutex_unlock(&accmem_stash_drain_lock);
}

/* did a mapping ever show it? */
static bool untouched(const struct accmem_buffer *buf)
{
	const struct accmem_buffer *own = buf->sheet ? &buf->sheet->buf : buf;

	return !READ_ONCE(own->mapped);
}

/**
 * accmem_stash_put() - keep a buffer that has just lost its name
 * @ctx: the context, whose lock is held
 * @buf: the buffer, with the reference that was the name's
 *
 * Return: the buffer that accmem_buffer_detach() is to be called for: NULL if
 * @buf was kept, the one kept longest if @buf took its place, or @buf.
 */
struct accmem_buffer *accmem_stash_put(struct accmem_context *ctx,
				       struct accmem_buffer *buf)
{
	struct accmem_stash *stash = &ctx->stash;
	struct accmem_buffer *oldest = NULL;

	lockdep_assert_held(&ctx->lock);
	/* without a name nobody can get a reference any more */
	if (buf->layout.footprint > STASH_BUFFER_MAX ||
	    kref_read(&buf->refs) > 1)
		return buf;
	/* what the last holder did before it let go: it may have mapped it */
	smp_acquire__after_ctrl_dep();
	if (!untouched(buf))
		return buf;
	/* the host's own memory is not for keeping */
	if (!xa_empty(&buf->pages))
		return buf;
	spin_lock(&stash->lock);
	if (stash->nr == STASH_BUFFERS) {
		oldest = list_last_entry(&stash->buffers, struct accmem_buffer,
					 link);
		list_del_init(&oldest->link);
	} else {
		WRITE_ONCE(stash->nr, stash->nr + 1);
	}
	list_add(&buf->link, &stash->buffers);
	spin_unlock(&stash->lock);
	return oldest;
}

static bool fits(const struct accmem_buffer *buf,
		 const struct accmem_alloc *req,
		 const struct accmem_layout *layout)
{
	return buf->layout.footprint == layout->footprint &&
	       buf->layout.alignment == layout->alignment &&
	       buf->layout.page_size == layout->page_size &&
	       buf->layout.small == layout->small &&
	       buf->page_policy == req->page_policy &&
	       buf->cache_mode == req->cache_mode && buf->flags == req->flags;
}

/**
 * accmem_stash_take() - serve a request with a buffer that was kept
 * @ctx: the context
 * @req: the request; flags, cache mode and carveout were checked
 *
 * Return: the buffer, ready, with the reference of a new one; NULL if none
 * fits.
 */
struct accmem_buffer *accmem_stash_take(struct accmem_context *ctx,
					const struct accmem_alloc *req)
{
	struct accmem_layout_request wanted = {
		.length = req->length,
		.alignment = req->alignment,
		.page_policy = req->page_policy,
		.flags = req->flags,
	};
	struct accmem_stash *stash = &ctx->stash;
	struct accmem_buffer *buf, *found = NULL;
	struct accmem_layout layout;

	if (!READ_ONCE(stash->nr) ||
	    accmem_layout(&wanted, &accmem_context_carveout(ctx)->caps,
			  &layout))
		return NULL;
	spin_lock(&stash->lock);
	list_for_each_entry(buf, &stash->buffers, link) {
		/* since it was freed, its sheet may have been mapped */
		if (fits(buf, req, &layout) && untouched(buf)) {
			found = buf;
			break;
		}
	}
	if (found) {
		list_del_init(&found->link);
		WRITE_ONCE(stash->nr, stash->nr - 1);
		WRITE_ONCE(stash->hits, stash->hits + 1);
		found->length = req->length;
		found->page_policy = req->page_policy;
		found->layout = layout;
	}
	spin_unlock(&stash->lock);
	return found;
}
