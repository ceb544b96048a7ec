// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a context: the last reference to its file has gone.
 *
 * Its streams end, so that what only userspace could signal is over. Every name
 * goes, and with the names what nobody has mapped or pinned. Frees that wait for
 * the kernel to signal keep the context, other memory keeps the account.
 *
 * Locks: the context's lock, for some buffers at a time.
 */
#include <linux/sched.h>

#include "alloc/pressure.h"
#include "alloc/reclaim.h"
#include "close.h"
#include "stream/pending.h"
#include "stream/stream.h"
#include "tmem/tmem.h"
#include "vm/buffer.h"
#include "vm/context.h"
#include "vm/lookup.h"
#include "waitq/waiters.h"

static void close_streams(struct accmem_context *ctx)
{
	struct accmem_stream *stream;
	unsigned long id = 0;
	LLIST_HEAD(due);

	while ((stream = accmem_stream_next(ctx, &id))) {
		accmem_stream_end(stream, &due);
		accmem_stream_put(stream);
		accmem_pending_finish(&due);
		cond_resched();
	}
}

/* a buffer from @address on, if there is one near; it has no name any more */
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
 * accmem_context_end() - the last reference to the file has gone
 * @ctx: the context; the caller's reference goes with it
 *
 * Every name goes; memory follows as its mappings, pins and fences go.
 */
void accmem_context_end(struct accmem_context *ctx)
{
	/* while others find it: what it kept is free, also of what is pending */
	accmem_reclaim_end(ctx);
	rcu_assign_pointer(ctx->account->context, NULL);
	atomic_dec(&ctx->account->accounts->nr_contexts);
	accmem_tmem_end(ctx);
	accmem_pressure_end(ctx);
	accmem_waiters_drop_interrupted(ctx);
	close_streams(ctx);
	close_buffers(ctx);
	accmem_context_put(ctx);
}
