// SPDX-License-Identifier: GPL-2.0
/*
 * Pending frees: buffers without a name that wait for a position or a fence.
 *
 * A buffer that is freed at a gate which is shut loses its name and keeps all
 * else: its memory, its device addresses, its charge. It goes when the gate has
 * opened. A request on the stream may have it before; the gate then stays with
 * the buffer, and whatever frees it next waits for both.
 *
 * A gate opens in any context. What waited is put in a list of its device, which
 * a worker goes through, and whoever would fail for lack of memory. Userspace
 * that reaches a position finishes what that frees itself.
 *
 * Allocates nothing. Each pending free holds its context and the module.
 *
 * Locks: due_lock > the context's > the stream's; no fence is called under the last two.
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

#define PENDING_LOOKS 64u /* at pages of what suits a request */

static struct accmem_buffer *pending_buffer(struct accmem_pending *pending)
{
	return container_of(pending, struct accmem_buffer, pending);
}

/**
 * accmem_dep_put() - drop what a gate refers to
 * @dep: the gate, which is open from here on
 */
void accmem_dep_put(struct accmem_dep *dep)
{
	if (dep->position)
		accmem_stream_put(dep->stream);
	else
		dma_fence_put(dep->fence);
	*dep = (struct accmem_dep){};
}

/* both have to open: the reference of @dep is the buffer's from here on */
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
 * __accmem_pending_add() - free a buffer when its gates have opened
 * @ctx: the context, whose lock is held
 * @buf: the buffer, which is not published
 * @dep: what else it waits for, with a reference that is taken over; may be
 *	open
 *
 * For accmem_pending_add(), where a gate is shut, or was.
 *
 * Return: as accmem_pending_add().
 */
bool __accmem_pending_add(struct accmem_context *ctx, struct accmem_buffer *buf,
			  const struct accmem_dep *dep)
{
	struct accmem_pending *pending = &buf->pending;
	struct accmem_dep *kept = &pending->deps[0];

	lockdep_assert_held(&ctx->lock);
	/* of memory that it was cut from before its time */
	if (kept->position &&
	    accmem_stream_has_reached(kept->stream, kept->position))
		accmem_dep_put(kept);
	if (!accmem_dep_is_signaled(dep))
		pending_add_dep(pending, dep);
	if (accmem_dep_is_signaled(kept))
		return false;
	/* never the first reference: a file of ours is in use */
	__module_get(THIS_MODULE);
	accmem_context_get(ctx);
	pending->ctx = ctx;
	atomic64_inc(&ctx->account->user->pending);
	pending_count(ctx, buf, true);
	accmem_buffer_set_pending(ctx, buf, true);
	trace_accmem_pend(ctx, buf);
	return true;
}

/* the last gate has opened */
static void pending_end(struct accmem_pending *pending)
{
	struct accmem_buffer *buf = pending_buffer(pending);
	struct accmem_context *ctx = pending->ctx;

	spin_lock(&ctx->lock);
	pending_count(ctx, buf, false);
	accmem_buffer_remove(ctx, buf);
	spin_unlock(&ctx->lock);
	accmem_buffer_destroy(ctx, buf);
	/* only now: who is at a limit does not look for what is over */
	atomic64_dec(&ctx->account->user->pending);
	accmem_context_put(ctx);
	module_put(THIS_MODULE);
}

/* false if the first gate is open; else it is another's from here on */
static bool pending_wait(struct accmem_pending *pending)
{
	struct accmem_dep *dep = &pending->deps[0];

	if (dep->position)
		return accmem_stream_defer(dep->stream, pending);
	return accmem_pending_arm(pending);
}

/* for the next gate that is shut: then it is another's; false where none is left */
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

/* waits for the next gate that is shut, or is over */
static void pending_go_on(struct accmem_pending *pending)
{
	if (!pending_waits_on(pending))
		pending_end(pending);
}

/**
 * accmem_pending_start() - begin to wait
 * @buf: after accmem_pending_add(); from here on it may be gone
 */
void accmem_pending_start(struct accmem_buffer *buf)
{
	pending_go_on(&buf->pending);
}

/* what a request on a stream wants */
struct wanted {
	const struct accmem_carveout *cv;
	const struct accmem_alloc *req;
	const struct accmem_layout *layout;
};

/* does it suit, wait for nothing else, and is it mapped nowhere? */
static bool pending_fits(struct accmem_pending *pending, void *arg)
{
	const struct wanted *wanted = arg;
	struct accmem_buffer *buf = pending_buffer(pending);
	const struct accmem_bo *bo = accmem_buffer_bo(buf);

	return accmem_dep_is_signaled(&pending->deps[1]) &&
	       accmem_buffer_fits(buf, bo, wanted->cv, wanted->req,
				  wanted->layout) &&
	       !bo->shared && kref_read(&bo->refs) == 1;
}

/*
 * A buffer that suits, which waits for nothing while the caller has it. Others that do,
 * but for somebody who has their pages, are kept from the next look.
 */
static struct accmem_buffer *pending_find(struct accmem_stream *stream,
					  struct wanted *wanted)
{
	struct accmem_buffer *buf = NULL;
	struct accmem_pending *pending;
	unsigned int left = PENDING_LOOKS;
	LLIST_HEAD(pinned);

	while (left-- &&
	       (pending = accmem_stream_pop_deferred(stream, pending_fits,
						     wanted))) {
		/* one look at all of its pages, which is too long for a lock */
		buf = pending_buffer(pending);
		if (accmem_bo_is_idle(accmem_buffer_bo(buf)))
			break;
		llist_add(&pending->due, &pinned);
		buf = NULL;
	}
	accmem_pending_finish(&pinned);
	return buf;
}

/**
 * accmem_pending_take() - serve a request with what is pending on its stream
 * @ctx: the context
 * @cv: the carveout
 * @stream: a stream of the context
 * @req: the request
 * @layout: what it became
 *
 * Return: the buffer, as accmem_buffer_create() makes one, but for what is in it,
 * and with its gate; NULL if none fits.
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
	buf->length = req->length;
	buf->layout = *layout;
	spin_unlock(&ctx->lock);
	atomic64_dec(&ctx->account->user->pending);
	/* the caller's file holds both */
	accmem_context_put(ctx);
	module_put(THIS_MODULE);
	/* it was freed and is allocated again */
	accmem_count_frees(cv, 1);
	accmem_count_allocs(cv, 1);
	return buf;
}

/**
 * accmem_pending_finish() - finish frees whose gates have opened
 * @due: a list that nobody else has. Sleeps.
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
 * Some of its pages go first, and it is due again: whoever has the lock next goes on
 * with it, so that nobody holds it for long. False then.
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
 * One at a time is in nobody's list. Counts @left down for each that is over; false
 * at the end, or when being killed.
 */
static bool pending_finish_one(struct accmem_due *due, unsigned int *left)
{
	struct llist_node *node;
	bool found = true;

	if (mutex_lock_killable(&due->lock))
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
	return !llist_empty(&due->list) || !llist_empty(&due->signalled);
}

/**
 * accmem_pending_finish_some() - finish some of what is due on a device
 * @dev: the device. Sleeps.
 * @max: how many at most
 *
 * Return: whether there may be more.
 */
bool accmem_pending_finish_some(struct accmem_due *due, unsigned int max)
{
	while (max && pending_finish_one(due, &max))
		;
	/* the worker has not seen what the caller had in hand, and leaves */
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
 * accmem_pending_init() - get ready for pending frees
 * @dev: the device
 */
void accmem_pending_init(struct accmem_due *due)
{
	init_llist_head(&due->list);
	init_llist_head(&due->signalled);
	mutex_init(&due->lock);
	INIT_WORK(&due->work, pending_work);
}

/**
 * accmem_pending_stop() - undo accmem_pending_init()
 * @dev: the device, with all of its memory free
 */
void accmem_pending_stop(struct accmem_due *due)
{
	cancel_work_sync(&due->work);
	mutex_destroy(&due->lock);
}
