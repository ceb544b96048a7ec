// SPDX-License-Identifier: GPL-2.0
/*
 * Streams: the count of a timeline, and the frees that wait for it.
 *
 * Owns struct accmem_stream. Whoever reaches a position takes what waits for it
 * out, some at a time, and hands it on in a list: a free is finished without the
 * lock of the stream. A request of the context that would fail takes out what nobody
 * has yet, and waits for who has.
 *
 * Locks: accmem_stream.finishing > all that a free takes; accmem_stream.lock, a spinlock
 * below the context's, never taken in an interrupt.
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include "core/carveout.h"
#include "internal.h"
#include "stream/stream.h"
#include "trace/trace.h"

#define STREAM_BATCH 64u /* frees taken out, or looked at, in one hold */

/**
 * accmem_stream_create() - make a stream
 * @ctx: its context
 * @id: its number there
 *
 * Return: the stream, with a reference, or NULL.
 */
struct accmem_stream *accmem_stream_create(struct accmem_context *ctx, u64 id)
{
	struct accmem_stream *stream;

	stream = kzalloc(sizeof(*stream), GFP_KERNEL_ACCOUNT);
	if (!stream)
		return NULL;
	kref_init(&stream->refs);
	stream->ctx = ctx;
	stream->accounts = ctx->account->accounts;
	stream->due = ctx->due;
	stream->context = ctx->account->id;
	stream->id = id;
	stream->fences = dma_fence_context_alloc(1);
	init_waitqueue_head(&stream->wait);
	stream->poll = 1;
	mutex_init(&stream->finishing);
	spin_lock_init(&stream->lock);
	INIT_LIST_HEAD(&stream->steps);
	stream->exports = RB_ROOT_CACHED;
	stream->pending = RB_ROOT_CACHED;
	return stream;
}

static void stream_release(struct kref *refs)
{
	struct accmem_stream *stream =
		container_of(refs, struct accmem_stream, refs);

	mutex_destroy(&stream->finishing);
	kfree_rcu(stream, rcu);
}

/**
 * accmem_stream_put() - drop a reference
 * @stream: the stream. In any context.
 */
void accmem_stream_put(struct accmem_stream *stream)
{
	kref_put(&stream->refs, stream_release);
}

/* Has a position been reached, or will it never be? */
static bool stream_is_past(const struct accmem_stream *stream, u64 position)
{
	lockdep_assert_held(&stream->lock);
	return stream->reached >= position ||
	       (stream->ended && list_empty(&stream->steps));
}

static struct accmem_pending *stream_first(struct accmem_stream *stream)
{
	struct rb_node *node = rb_first_cached(&stream->pending);

	return rb_entry_safe(node, struct accmem_pending, node);
}

static void stream_remove(struct accmem_stream *stream,
			  struct accmem_pending *pending)
{
	lockdep_assert_held(&stream->lock);
	rb_erase_cached(&pending->node, &stream->pending);
	stream->nr_pending--;
}

/* some of what is due; false when that was all */
static bool stream_take_due(struct accmem_stream *stream,
			    struct llist_head *due)
{
	struct accmem_pending *first;
	unsigned int nr = 0;

	spin_lock(&stream->lock);
	while (nr < STREAM_BATCH && (first = stream_first(stream)) &&
	       stream_is_past(stream, first->deps[0].position)) {
		stream_remove(stream, first);
		llist_add(&first->due, due);
		nr++;
	}
	spin_unlock(&stream->lock);
	return nr == STREAM_BATCH;
}

/**
 * accmem_stream_flush() - the count has grown, or the stream has ended
 * @stream: the stream
 * @due: out: what waited for that, added
 */
void accmem_stream_flush(struct accmem_stream *stream, struct llist_head *due)
{
	if (wq_has_sleeper(&stream->wait))
		wake_up_all(&stream->wait);
	while (stream_take_due(stream, due))
		cond_resched();
}

/* It takes nothing from who reaches a position, who has said when all of that is free. */
static void stream_settle_own(struct accmem_stream *stream)
{
	if (mutex_lock_killable(&stream->finishing))
		return;
	while (stream_take_due(stream, &stream->due->list))
		cond_resched();
	mutex_unlock(&stream->finishing);
}

/**
 * accmem_stream_flush_all() - have all be due that a context's streams have reached
 * @ctx: the context. Sleeps.
 *
 * What is due is free when this returns, or in the list of the device, unless the caller
 * is being killed.
 */
void accmem_stream_flush_all(struct accmem_context *ctx)
{
	struct accmem_due *due = ctx->due;
	struct accmem_stream *stream;
	unsigned long id = 0;

	while ((stream = accmem_stream_next(ctx, &id))) {
		stream_settle_own(stream);
		accmem_stream_put(stream);
		cond_resched();
	}
	/* for what the caller leaves there */
	if (!llist_empty(&due->list))
		queue_work(accmem_wq, &due->work);
}

/**
 * accmem_stream_signal() - userspace reaches a position
 * @stream: the stream
 * @position: what the count becomes
 * @due: out: frees that waited for it, added, to be finished with the lock
 *	@finishing held
 *
 * Return: 0; -ERANGE, -EBUSY, -ECANCELED as <linux/accmem.h> says.
 */
int accmem_stream_signal(struct accmem_stream *stream, u64 position,
			 struct llist_head *due)
{
	int err = 0;

	lockdep_assert_held(&stream->finishing);
	spin_lock(&stream->lock);
	if (stream->ended) {
		err = -ECANCELED;
	} else if (position <= stream->reached) {
		err = -ERANGE;
	} else if (!list_empty(&stream->steps)) {
		err = -EBUSY;
	} else {
		WRITE_ONCE(stream->reached, position);
		stream->claimed = position;
	}
	spin_unlock(&stream->lock);
	if (err)
		return err;
	trace_accmem_stream_reach(stream, position);
	accmem_stream_flush(stream, due);
	return 0;
}

/**
 * accmem_stream_end() - nobody will signal userspace's positions any more
 * @stream: the stream, which may have ended
 * @due: out: frees that waited for one, added; where positions are claimed,
 *	they come when these are reached
 */
void accmem_stream_end(struct accmem_stream *stream, struct llist_head *due)
{
	spin_lock(&stream->lock);
	WRITE_ONCE(stream->ended, true);
	spin_unlock(&stream->lock);
	accmem_stream_flush(stream, due);
}

static bool stream_is_before(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct accmem_pending, node)->deps[0].position <
	       rb_entry(b, struct accmem_pending, node)->deps[0].position;
}

/**
 * accmem_stream_defer() - have a free wait for the position that is its gate
 * @stream: the stream
 * @pending: the free; from here on it may be finished at any moment
 *
 * Return: false when there is nothing to wait for.
 */
bool accmem_stream_defer(struct accmem_stream *stream,
			 struct accmem_pending *pending)
{
	bool waits;

	spin_lock(&stream->lock);
	waits = !stream_is_past(stream, pending->deps[0].position);
	if (waits) {
		rb_add_cached(&pending->node, &stream->pending,
			      stream_is_before);
		stream->nr_pending++;
	}
	spin_unlock(&stream->lock);
	return waits;
}

/**
 * accmem_stream_pop_deferred() - undo accmem_stream_defer() of a free that suits
 * @stream: the stream
 * @fits: does it? Called under the stream's lock.
 * @arg: for @fits
 *
 * Only the latest ones are looked at.
 *
 * Return: the free, which is the caller's, or NULL.
 */
struct accmem_pending *accmem_stream_pop_deferred(
	struct accmem_stream *stream,
	bool (*fits)(struct accmem_pending *pending, void *arg), void *arg)
{
	struct accmem_pending *pending, *found = NULL;
	unsigned int nr = 0;
	struct rb_node *node;

	spin_lock(&stream->lock);
	for (node = rb_last(&stream->pending.rb_root);
	     node && nr++ < STREAM_BATCH; node = rb_prev(node)) {
		pending = rb_entry(node, struct accmem_pending, node);
		if (!fits(pending, arg))
			continue;
		stream_remove(stream, pending);
		found = pending;
		break;
	}
	spin_unlock(&stream->lock);
	return found;
}

/**
 * accmem_stream_check() - what has become of a position
 * @stream: the stream
 * @position: the position
 *
 * Return: 0 when it is reached, -ECANCELED when nobody will reach it and all that are
 * claimed are reached, else -EAGAIN.
 */
int accmem_stream_check(struct accmem_stream *stream, u64 position)
{
	int err = -EAGAIN;

	spin_lock(&stream->lock);
	if (stream->reached >= position)
		err = 0;
	else if (stream_is_past(stream, position))
		err = -ECANCELED;
	spin_unlock(&stream->lock);
	return err;
}

/**
 * accmem_stream_query() - describe a stream
 * @stream: the stream
 * @query: filled in
 */
void accmem_stream_query(struct accmem_stream *stream,
			 struct accmem_stream_query *query)
{
	spin_lock(&stream->lock);
	query->reached = stream->reached;
	query->claimed = stream->claimed;
	query->pending = stream->nr_pending;
	query->state = stream->ended ? ACCMEM_STREAM_ENDED : 0;
	query->error = stream->error;
	spin_unlock(&stream->lock);
}

/**
 * accmem_stream_next() - walk through the open streams of a context
 * @ctx: the context
 * @id: number of the stream to begin with; of the next one on return
 *
 * Return: the stream, with a reference, or NULL at the end.
 */
struct accmem_stream *accmem_stream_next(struct accmem_context *ctx,
					 unsigned long *id)
{
	struct xarray *streams = &ctx->streams;
	struct accmem_stream *stream;

	rcu_read_lock();
	stream = xa_find(streams, id, ULONG_MAX, XA_PRESENT);
	while (stream && !kref_get_unless_zero(&stream->refs))
		stream = xa_find_after(streams, id, ULONG_MAX, XA_PRESENT);
	rcu_read_unlock();
	++*id;
	return stream;
}
