// SPDX-License-Identifier: GPL-2.0
/*
 * Pending frees: buffers whose free waits for a position or a fence.
 *
 * A program can free a buffer with a dependency: a position of a stream, or a fence.
 * The buffer is then unpublished, but keeps its memory, its device addresses and its
 * charge until the dependency signals. A request on the same stream can reuse the
 * buffer early. The buffer then keeps the dependency, and its next free waits for both
 * dependencies.
 *
 * States: pending -> due -> finished (destroyed), or pending -> reused by a request. A
 * list of the device holds due frees. A worker finishes them, and so does a request
 * that is about to fail. A STREAM_SIGNAL call finishes the frees that the call made
 * due. Each pending free holds its context and the module. This file allocates nothing.
 *
 * Locking: due->lock > ctx->lock > stream->lock. No fence is called under a spinlock.
 */
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "stream/pending.h"
#include "stream/stream.h"
#include "trace/trace.h"
#include "vm/buffer.h"
#include "vm/context.h"

#define PENDING_LOOKS 64u /* candidates whose pages a request checks */

static struct accmem_buffer *pending_buffer(struct accmem_pending *pending)
{
	return container_of(pending, struct accmem_buffer, pending);
}

/**
 * accmem_dep_put() - drop the reference of a dependency and empty the dependency
 * @dep: the dependency; counts as signalled from here on
 *
 * Context: Any context. Does not sleep.
 */
void accmem_dep_put(struct accmem_dep *dep)
{
	if (dep->position)
		accmem_stream_put(dep->stream);
	else
		dma_fence_put(dep->fence);
	*dep = (struct accmem_dep){};
}

/*
 * Add a dependency to a free, which then waits for both. The caller's reference passes
 * to the free. Two positions of one stream become one dependency: the higher position.
 */
static void pending_add_dep(struct accmem_pending *pending,
			    const struct accmem_dep *dep)
{
	struct accmem_dep *first = &pending->deps[0];

	if (accmem_dep_is_signaled(first)) {
		*first = *dep;
		pending->deps[1] = (struct accmem_dep){};
	} else if (dep->position && first->position &&
		   dep->stream == first->stream) {
		first->position = max(first->position, dep->position);
		accmem_stream_put(dep->stream);
	} else {
		pending->deps[1] = *dep;
	}
}

static void pending_count(struct accmem_context *ctx, struct accmem_buffer *buf,
			  bool pending)
{
	u64 size = buf->layout.footprint;

	lockdep_assert_held(&ctx->lock);
	ctx->nr_pending += pending ? 1 : -1;
	ctx->pending_bytes += pending ? size : -size;
}

/**
 * __accmem_pending_add() - make a buffer pending if a dependency has not signalled
 * @ctx: the context
 * @buf: the buffer, which is not published
 * @dep: the dependency of this free, or an empty dependency; the caller's reference
 *	passes to the buffer
 *
 * Slow path of accmem_pending_add(): @dep or a dependency of @buf is not empty.
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: true if the buffer is pending; false if there is nothing to wait for.
 */
bool __accmem_pending_add(struct accmem_context *ctx, struct accmem_buffer *buf,
			  const struct accmem_dep *dep)
{
	struct accmem_pending *pending = &buf->pending;
	struct accmem_dep *kept = &pending->deps[0];

	lockdep_assert_held(&ctx->lock);
	/* the buffer was reused early: drop the old dependency if it has signalled */
	if (kept->position &&
	    accmem_stream_has_reached(kept->stream, kept->position))
		accmem_dep_put(kept);
	if (!accmem_dep_is_signaled(dep))
		pending_add_dep(pending, dep);
	if (accmem_dep_is_signaled(kept))
		return false;
	/* the open file of the context holds a reference to the module already */
	__module_get(THIS_MODULE);
	accmem_context_get(ctx);
	pending->ctx = ctx;
	atomic64_inc(&ctx->account->user->pending);
	pending_count(ctx, buf, true);
	accmem_buffer_set_pending(ctx, buf, true);
	trace_accmem_pend(ctx, buf);
	return true;
}

/* Destroy the buffer of a free whose dependencies have all signalled. */
static void pending_end(struct accmem_pending *pending)
{
	struct accmem_buffer *buf = pending_buffer(pending);
	struct accmem_context *ctx = pending->ctx;

	spin_lock(&ctx->lock);
	pending_count(ctx, buf, false);
	accmem_buffer_remove(ctx, buf);
	spin_unlock(&ctx->lock);
	accmem_buffer_destroy(ctx, buf);
	/*
	 * Decrement the count after the destruction. A request at a limit ignores
	 * due frees when the count is 0, so the charge must be dropped before.
	 */
	atomic64_dec(&ctx->account->user->pending);
	accmem_context_put(ctx);
	module_put(THIS_MODULE);
}

/*
 * Start to wait for the first dependency. Return false if the dependency has signalled.
 * If true is returned, another thread may have finished the free already.
 */
static bool pending_wait(struct accmem_pending *pending)
{
	struct accmem_dep *dep = &pending->deps[0];

	if (dep->position)
		return accmem_stream_defer(dep->stream, pending);
	return accmem_pending_arm(pending);
}

/*
 * Start to wait for the next dependency that has not signalled. Return false if all
 * dependencies have signalled. If true is returned, another thread may have finished
 * the free already.
 */
static bool pending_waits_on(struct accmem_pending *pending)
{
	while (!accmem_dep_is_signaled(&pending->deps[0])) {
		if (pending_wait(pending))
			return true;
		accmem_dep_put(&pending->deps[0]);
		swap(pending->deps[0], pending->deps[1]);
	}
	return false;
}

/* Let a free wait for its next dependency, or finish the free. */
static void pending_go_on(struct accmem_pending *pending)
{
	if (!pending_waits_on(pending))
		pending_end(pending);
}

/**
 * accmem_pending_start() - start to wait for the dependencies of a pending buffer
 * @buf: the buffer of accmem_pending_add(); the buffer may be destroyed from here on
 *
 * Context: Process context. Takes and releases the context's lock and the stream's
 * lock. May sleep.
 */
void accmem_pending_start(struct accmem_buffer *buf)
{
	pending_go_on(&buf->pending);
}

/* struct wanted - a request on a stream that may reuse a pending buffer */
struct wanted {
	const struct accmem_carveout *cv;
	const struct accmem_alloc *req;
	const struct accmem_layout *layout;
};

/*
 * Can a request reuse the buffer of a pending free? The buffer must fit the request,
 * must wait for no second dependency, and must have neither a mapping nor a call in
 * progress.
 */
static bool pending_fits(struct accmem_pending *pending, void *arg)
{
	const struct wanted *wanted = arg;
	struct accmem_buffer *buf = pending_buffer(pending);
	struct accmem_bo *bo = accmem_buffer_bo(buf);

	/* Nor can an import, whose flags no request has. */
	return accmem_dep_is_signaled(&pending->deps[1]) &&
	       accmem_buffer_fits(buf, bo, wanted->cv, wanted->req,
				  wanted->layout) &&
	       !bo->shared && kref_read(&bo->refs) == 1;
}

static bool pending_is_usable(struct accmem_bo *bo)
{
	return accmem_bo_is_idle(bo) && !accmem_bo_has_failed(bo, 0, bo->size);
}

/*
 * Find a pending buffer that a request can reuse. The buffer is removed from the
 * stream, so that its free cannot finish. Buffers that fit, but whose pages are pinned or have
 * failed, are removed as well until the search ends, so that the search does not find them
 * again.
 */
static struct accmem_buffer *pending_find(struct accmem_stream *stream,
					  struct wanted *wanted)
{
	struct accmem_buffer *buf = NULL;
	struct accmem_pending *pending;
	unsigned int left = PENDING_LOOKS;
	LLIST_HEAD(pinned);

	while (left-- &&
	       (pending = accmem_stream_pop(stream, pending_fits, wanted))) {
		/* the checks read all pages and runs: too long to run under a spinlock */
		buf = pending_buffer(pending);
		if (pending_is_usable(accmem_buffer_bo(buf)))
			break;
		llist_add(&pending->due, &pinned);
		buf = NULL;
	}
	accmem_pending_finish(&pinned);
	return buf;
}

/**
 * accmem_pending_take() - serve a request with a buffer that is pending on its stream
 * @ctx: the context
 * @cv: the carveout
 * @stream: the stream of the request
 * @req: the request
 * @layout: the layout of the request
 *
 * Context: Process context. Takes and releases ctx->lock and stream->lock. May sleep.
 * Return: a buffer in the state of a buffer of accmem_buffer_create(), except that it
 * keeps its contents and its dependency; NULL if no buffer fits.
 */
struct accmem_buffer *accmem_pending_take(struct accmem_context *ctx,
					  struct accmem_carveout *cv,
					  struct accmem_stream *stream,
					  const struct accmem_alloc *req,
					  const struct accmem_layout *layout)
{
	struct wanted wanted = { .cv = cv, .req = req, .layout = layout };
	struct accmem_buffer *buf = pending_find(stream, &wanted);

	if (!buf)
		return NULL;
	spin_lock(&ctx->lock);
	pending_count(ctx, buf, false);
	accmem_buffer_set_pending(ctx, buf, false);
	buf->pending.ctx = NULL;
	accmem_buffer_reuse(buf, req, layout);
	spin_unlock(&ctx->lock);
	atomic64_dec(&ctx->account->user->pending);
	/* the caller's open file holds references to the context and to the module */
	accmem_context_put(ctx);
	module_put(THIS_MODULE);
	/* count both calls: the FREE that was pending, and this ALLOC */
	accmem_count_frees(cv, 1);
	accmem_count_allocs(cv, 1);
	return buf;
}

/**
 * accmem_pending_finish() - finish the frees of a list
 * @due: the list, which belongs to the caller; empty afterwards
 *
 * A free with another dependency that has not signalled waits again.
 *
 * Context: Process context. Takes and releases the locks of contexts and streams. May
 * sleep.
 */
void accmem_pending_finish(struct llist_head *due)
{
	struct accmem_pending *pending, *next;

	llist_for_each_entry_safe(pending, next, llist_del_all(due), due) {
		pending_go_on(pending);
		cond_resched();
	}
}

/*
 * Finish one due free, or a part of the free, or let the free wait for its next
 * dependency. If there are more pages to free, the function
 * puts the free back into the list and returns false; the next holder of due->lock
 * continues. This bounds the time for which due->lock is held.
 */
static bool pending_finish_due(struct accmem_due *due,
			       struct accmem_pending *pending)
{
	lockdep_assert_held(&due->lock);
	if (pending_waits_on(pending))
		return true;
	if (accmem_buffer_release_pages(pending_buffer(pending))) {
		llist_add(&pending->due, &due->list);
		return false;
	}
	pending_end(pending);
	return true;
}

/*
 * Take one free from the list of due frees and finish the free, or collect more due
 * frees if the list is empty. Decrement *@left when a free is finished. Return false if
 * no free is due, or if the caller is being killed. due->lock is held while a due
 * free is in no list, so a thread that takes the lock finds all due frees in the lists.
 */
static bool pending_finish_one(struct accmem_due *due, unsigned int *left)
{
	struct llist_node *node;
	bool found = true;

	/* mutex_lock_killable() checks for signals only if it waits. */
	if (fatal_signal_pending(current) || mutex_lock_killable(&due->lock))
		return false;
	node = llist_del_first(&due->list);
	if (!node)
		found = accmem_pending_collect_signaled(due);
	else if (pending_finish_due(due,
				    llist_entry(node, struct accmem_pending,
						due)))
		--*left;
	mutex_unlock(&due->lock);
	cond_resched();
	return found;
}

static bool pending_has_due(const struct accmem_due *due)
{
	return !llist_empty(&due->list) || !llist_empty(&due->signaled);
}

/**
 * accmem_pending_finish_some() - finish a bounded number of due frees of a device
 * @due: due frees of the device
 * @max: highest number of frees to finish
 *
 * Context: Process context. Takes and releases due->lock. May sleep.
 * Return: true if @max frees were finished, so that more may be due; false if no free
 * is due, or if the caller is being killed.
 */
bool accmem_pending_finish_some(struct accmem_due *due, unsigned int max)
{
	while (max && pending_finish_one(due, &max))
		;
	/*
	 * The worker may have found the list empty and stopped while the caller
	 * handled a free that went back into the list: queue the worker again.
	 */
	if (pending_has_due(due))
		queue_work(accmem_wq, &due->work);
	return !max;
}

static void pending_work(struct work_struct *work)
{
	struct accmem_due *due = container_of(work, struct accmem_due, work);

	while (accmem_pending_finish_some(due, UINT_MAX))
		;
}

/**
 * accmem_pending_init() - initialise the pending frees of a device
 * @due: due frees of the device
 *
 * Context: Process context.
 */
void accmem_pending_init(struct accmem_due *due)
{
	init_llist_head(&due->list);
	init_llist_head(&due->signaled);
	mutex_init(&due->lock);
	INIT_WORK(&due->work, pending_work);
}

/**
 * accmem_pending_stop() - stop the worker that finishes due frees
 * @due: due frees of the device, whose memory is all free
 *
 * Context: Process context. May sleep.
 */
void accmem_pending_stop(struct accmem_due *due)
{
	cancel_work_sync(&due->work);
	mutex_destroy(&due->lock);
}
