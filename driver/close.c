// SPDX-License-Identifier: GPL-2.0
/*
 * Close: end a context when the last reference to its file is dropped.
 *
 * Closing drains the context's cache, then ends its streams, so that positions which
 * only user space could reach are cancelled. Then every buffer is unpublished. Memory
 * without mappings, pins and dependencies is freed at once. A pending free that waits
 * for a fence of the kernel keeps the context alive. Memory that is still mapped or
 * pinned keeps the account alive.
 *
 * Locking: ctx->lock for one step of the walk at a time.
 */
#include <linux/sched.h>

#include "alloc/pressure.h"
#include "alloc/reclaim.h"
#include "close.h"
#include "stream/file.h"
#include "stream/pending.h"
#include "tmem/tmem.h"
#include "vm/buffer.h"
#include "vm/context.h"
#include "vm/lookup.h"
#include "waitq/waiters.h"

/*
 * Unpublish the next buffer from *@address on, and return it, or NULL if no buffer is
 * near. @waits returns true if the buffer became a pending free.
 */
static struct accmem_buffer *close_take_next(struct accmem_context *ctx,
					     u64 *address, bool *waits)
{
	const struct accmem_dep none = {};
	struct accmem_buffer *buf;

	spin_lock(&ctx->lock);
	buf = accmem_buffer_next(ctx, address);
	if (buf) {
		accmem_buffer_unpublish(ctx, buf);
		*waits = accmem_pending_add(ctx, buf, &none);
		if (!*waits)
			accmem_buffer_remove(ctx, buf);
	}
	spin_unlock(&ctx->lock);
	return buf;
}

static void close_buffers(struct accmem_context *ctx)
{
	struct accmem_buffer *buf;
	u64 address = 0;
	bool waits;

	while (address != ACCMEM_ADDRESS_NONE) {
		buf = close_take_next(ctx, &address, &waits);
		if (buf && waits)
			accmem_pending_start(buf);
		else if (buf)
			accmem_buffer_destroy(ctx, buf);
		cond_resched();
	}
}

/**
 * accmem_context_end() - end a context whose file was closed
 * @ctx: the context; the caller's reference is dropped
 *
 * Unpublishes all buffers. Their memory is freed when its mappings, pins and
 * dependencies are gone.
 *
 * Context: Process context. Takes and releases ctx->lock and the locks of the parts
 * that are ended. May sleep.
 */
void accmem_context_end(struct accmem_context *ctx)
{
	/*
	 * Drain the cache while other contexts can still find this one: they count its
	 * cached buffers as free.
	 */
	accmem_reclaim_end(ctx);
	rcu_assign_pointer(ctx->account->context, NULL);
	atomic_dec(&ctx->account->accounts->nr_contexts);
	accmem_tmem_end(ctx);
	accmem_pressure_end(ctx);
	accmem_waiters_drop_interrupted(ctx);
	accmem_streams_end(ctx);
	close_buffers(ctx);
	accmem_context_put(ctx);
}
