/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pending frees: buffers whose free waits for a position or a fence.
 */
#ifndef ACCMEM_STREAM_PENDING_H
#define ACCMEM_STREAM_PENDING_H

#include <linux/types.h>

#include "types/buffer_types.h"
#include "types/stream_types.h"

struct accmem_alloc;
struct accmem_layout;
struct llist_head;

void accmem_dep_put(struct accmem_dep *dep);
bool __accmem_pending_add(struct accmem_context *ctx, struct accmem_buffer *buf,
			  const struct accmem_dep *dep);
void accmem_pending_start(struct accmem_buffer *buf);
struct accmem_buffer *accmem_pending_take(struct accmem_context *ctx,
					  struct accmem_carveout *cv,
					  struct accmem_stream *stream,
					  const struct accmem_alloc *req,
					  const struct accmem_layout *layout);
bool accmem_pending_finish_some(struct accmem_due *due, unsigned int max);
void accmem_pending_init(struct accmem_due *due);
void accmem_pending_stop(struct accmem_due *due);

/**
 * accmem_pending_add() - make a buffer pending if a dependency has not signalled
 * @ctx: the context
 * @buf: the buffer, which is not published
 * @dep: the dependency of this free, or an empty dependency; the caller's reference
 *	passes to the buffer
 *
 * A buffer that was reused early has another dependency: that of the free whose memory
 * the buffer reuses. The buffer then waits for both.
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: true if the buffer is pending: the caller then releases ctx->lock and calls
 * accmem_pending_start(). False if there is nothing to wait for.
 */
static inline bool accmem_pending_add(struct accmem_context *ctx,
				      struct accmem_buffer *buf,
				      const struct accmem_dep *dep)
{
	if (accmem_dep_is_signaled(dep) &&
	    accmem_dep_is_signaled(&buf->pending.deps[0]))
		return false;
	return __accmem_pending_add(ctx, buf, dep);
}

#endif /* ACCMEM_STREAM_PENDING_H */
