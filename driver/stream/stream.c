// SPDX-License-Identifier: GPL-2.0
/*
 * Streams: timelines with a count, and frees that wait for the count.
 *
 * A position is a value of the count. Userspace signals positions by STREAM_SIGNAL; the
 * kernel reaches claimed positions when imported fences signal (fence.c). Waiters and
 * pending frees are in trees, sorted by position. When the count grows, the caller wakes
 * the waiters of the reached positions in batches, and no others. It moves the reached
 * frees to a list in batches, and finishes the frees without stream->lock (pending.c).
 *
 * States: open -> ended -> freed. A stream ends when its file is closed or its context
 * ends. Userspace can then signal no more positions, but claimed positions are still
 * reached. The frees that wait for other positions are finished after the claimed
 * positions are reached.
 *
 * Locking: stream->finishing is a mutex above all locks of a free. stream->lock is a
 * spinlock below ctx->lock. Interrupt handlers take neither spinlock.
 */
#include <linux/device.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "core/account.h"
#include "core/carveout.h"
#include "internal.h"
#include "stream/stream.h"
#include "trace/trace.h"

#define STREAM_BATCH \
	64u /* frees or waiters that are handled before the lock is released */

/**
 * accmem_stream_create() - allocate a stream
 * @ctx: the context
 * @id: number of the stream in the context
 *
 * Context: Process context. May sleep.
 * Return: the stream, with a reference; NULL when the kernel is out of memory.
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
	get_device(stream->accounts->device);
	stream->user = ctx->account->user;
	accmem_user_get(stream->user);
	stream->due = ctx->due;
	stream->context = ctx->account->id;
	stream->id = id;
	stream->fences = dma_fence_context_alloc(1);
	init_waitqueue_head(&stream->polls);
	stream->poll = 1;
	mutex_init(&stream->finishing);
	spin_lock_init(&stream->lock);
	INIT_LIST_HEAD(&stream->steps);
	stream->waiters = RB_ROOT_CACHED;
	stream->pending = RB_ROOT_CACHED;
	spin_lock_init(&stream->exports_lock);
	stream->exports = RB_ROOT;
	return stream;
}

static void stream_release(struct kref *refs)
{
	struct accmem_stream *stream =
		container_of(refs, struct accmem_stream, refs);

	mutex_destroy(&stream->finishing);
	accmem_user_put(stream->user);
	put_device(stream->accounts->device);
	kfree_rcu(stream, rcu);
}

/**
 * accmem_stream_put() - drop a reference to a stream
 * @stream: the stream
 *
 * Context: Any context. Does not sleep.
 */
void accmem_stream_put(struct accmem_stream *stream)
{
	kref_put(&stream->refs, stream_release);
}

/*
 * Has the stream reached a position, or will the position never be reached? The latter
 * is certain when the stream has ended and no imported fence is left.
 */
static bool stream_is_past(const struct accmem_stream *stream, u64 position)
{
	lockdep_assert_held(&stream->lock);
	return stream->reached >= position ||
	       (stream->ended && list_empty(&stream->steps));
}

/**
 * accmem_stream_reach() - set the count of a stream
 * @stream: the stream; the caller calls accmem_stream_flush() afterwards
 * @position: new value of the count
 *
 * Context: Process context. The caller holds stream->lock. Does not sleep.
 */
void accmem_stream_reach(struct accmem_stream *stream, u64 position)
{
	/* Racy read: wait_poll() sets @poll, and then checks the count under the lock. */
	u64 poll = READ_ONCE(stream->poll);

	lockdep_assert_held(&stream->lock);
	if (stream->reached < poll && position >= poll)
		stream->notify = true;
	WRITE_ONCE(stream->reached, position);
}

static struct accmem_stream_waiter *to_waiter(const struct rb_node *node)
{
	return rb_entry_safe(node, struct accmem_stream_waiter, node);
}

static bool waiter_is_before(struct rb_node *a, const struct rb_node *b)
{
	return to_waiter(a)->position < to_waiter(b)->position;
}

static void waiter_erase(struct accmem_stream *stream,
			 struct accmem_stream_waiter *waiter)
{
	lockdep_assert_held(&stream->lock);
	rb_erase_cached(&waiter->node, &stream->waiters);
	RB_CLEAR_NODE(&waiter->node);
}

/**
 * accmem_stream_enqueue() - add a waiter, which is woken when its position is past
 * @stream: the stream
 * @waiter: the waiter. It checks its position before it sleeps.
 *
 * Context: Process context. Takes and releases stream->lock. Does not sleep.
 */
void accmem_stream_enqueue(struct accmem_stream *stream,
			   struct accmem_stream_waiter *waiter)
{
	spin_lock(&stream->lock);
	rb_add_cached(&waiter->node, &stream->waiters, waiter_is_before);
	spin_unlock(&stream->lock);
}

/**
 * accmem_stream_dequeue() - remove a waiter, unless it was woken
 * @stream: the stream
 * @waiter: the waiter; no other task accesses it from here on
 *
 * Context: Process context. Takes and releases stream->lock. Does not sleep.
 */
void accmem_stream_dequeue(struct accmem_stream *stream,
			   struct accmem_stream_waiter *waiter)
{
	spin_lock(&stream->lock);
	if (!RB_EMPTY_NODE(&waiter->node))
		waiter_erase(stream, waiter);
	spin_unlock(&stream->lock);
}

/*
 * Wake a batch of waiters whose position is past. Return true if there may be more. The
 * lock keeps a waiter, which is on its task's stack, until its task is woken.
 */
static bool stream_wake_some(struct accmem_stream *stream)
{
	struct accmem_stream_waiter *first;
	unsigned int nr = 0;

	spin_lock(&stream->lock);
	while (nr < STREAM_BATCH &&
	       (first = to_waiter(rb_first_cached(&stream->waiters))) &&
	       stream_is_past(stream, first->position)) {
		waiter_erase(stream, first);
		wake_up_process(first->task);
		nr++;
	}
	spin_unlock(&stream->lock);
	return nr == STREAM_BATCH;
}

/* Wake the callers of poll() if their result has changed. */
static void stream_wake_polls(struct accmem_stream *stream)
{
	bool notify;

	spin_lock(&stream->lock);
	notify = stream->notify;
	stream->notify = false;
	spin_unlock(&stream->lock);
	if (notify)
		wake_up_all(&stream->polls);
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

/*
 * Move a batch of reached frees to the list @due. Return true if there may be
 * more reached frees.
 */
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
 * accmem_stream_flush() - wake waiters and collect the reached frees of a stream
 * @stream: the stream, whose count has grown, or which has ended
 * @due: out: list to which the reached frees are added
 *
 * Context: Process context. Takes and releases stream->lock. May sleep.
 */
void accmem_stream_flush(struct accmem_stream *stream, struct llist_head *due)
{
	stream_wake_polls(stream);
	while (stream_wake_some(stream))
		cond_resched();
	while (stream_take_due(stream, due))
		cond_resched();
}

/*
 * Collect the reached frees of one stream in the list of the device. A thread in
 * STREAM_SIGNAL holds @finishing until the frees that the thread collected are
 * finished. So these frees are finished when this function has the mutex.
 */
static void stream_flush_own(struct accmem_stream *stream)
{
	if (mutex_lock_killable(&stream->finishing))
		return;
	while (stream_take_due(stream, &stream->due->list))
		cond_resched();
	mutex_unlock(&stream->finishing);
}

/**
 * accmem_stream_flush_all() - collect the reached frees of all streams of a context
 * @ctx: the context
 *
 * When the function returns, each reached free is finished or in the list of due frees
 * of the device. If the caller is being killed, the function skips streams whose mutex
 * is busy.
 *
 * Context: Process context. Takes and releases @finishing and @lock of each stream. May
 * sleep.
 */
void accmem_stream_flush_all(struct accmem_context *ctx)
{
	struct accmem_due *due = ctx->due;
	struct accmem_stream *stream;
	unsigned long id = 0;

	while ((stream = accmem_stream_next(ctx, &id))) {
		stream_flush_own(stream);
		accmem_stream_put(stream);
		cond_resched();
	}
	/* the worker finishes the due frees that the caller leaves in the list */
	if (!llist_empty(&due->list))
		queue_work(accmem_wq, &due->work);
}

/**
 * accmem_stream_signal() - set the count of a stream for userspace
 * @stream: the stream
 * @position: new value of the count
 * @due: out: list to which the reached frees are added; the caller finishes the frees
 *	before it releases @stream->finishing
 *
 * Context: Process context. The caller holds stream->finishing. Takes and releases
 * stream->lock. May sleep.
 * Return: 0; -ERANGE when @position is not greater than the count; -EBUSY when a
 * claimed position is not reached yet; -ECANCELED when the stream has ended.
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
		accmem_stream_reach(stream, position);
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
 * accmem_stream_end() - end a stream: userspace can signal no more positions
 * @stream: the stream, which may have ended before
 * @due: out: list to which the frees are added that have nothing to wait for any more
 *
 * If positions are claimed, the frees that wait for later positions become due when the
 * last claimed position is reached.
 *
 * Context: Process context. Takes and releases stream->lock. May sleep.
 */
void accmem_stream_end(struct accmem_stream *stream, struct llist_head *due)
{
	spin_lock(&stream->lock);
	WRITE_ONCE(stream->ended, true);
	stream->notify = true;
	spin_unlock(&stream->lock);
	accmem_stream_flush(stream, due);
}

static bool stream_is_before(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct accmem_pending, node)->deps[0].position <
	       rb_entry(b, struct accmem_pending, node)->deps[0].position;
}

/**
 * accmem_stream_defer() - let a free wait for the position of its first dependency
 * @stream: the stream of the dependency
 * @pending: the free; another thread can finish the free as soon as the function has
 *	added it to the stream
 *
 * Context: Process context. Takes and releases stream->lock. Does not sleep.
 * Return: true if the free waits; false if the position is reached, or never will be.
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
 * accmem_stream_pop() - remove a deferred free that fits a request
 * @stream: the stream
 * @fits: function that says whether a free fits; called under stream->lock
 * @arg: argument of @fits
 *
 * The function examines the frees with the highest positions, STREAM_BATCH at most.
 *
 * Context: Process context. Takes and releases stream->lock. Does not sleep.
 * Return: the free, which belongs to the caller from here on; NULL if none fits.
 */
struct accmem_pending *
accmem_stream_pop(struct accmem_stream *stream,
		  bool (*fits)(struct accmem_pending *pending, void *arg),
		  void *arg)
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
 * accmem_stream_check() - check whether a stream has reached a position
 * @stream: the stream
 * @position: the position
 *
 * Context: Process context. Takes and releases stream->lock. Does not sleep.
 * Return: 0 when the position is reached; -ECANCELED when the stream has ended, all
 * claimed positions are reached, and @position is not; -EAGAIN otherwise.
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
 * accmem_stream_query() - report the state of a stream
 * @stream: the stream
 * @query: out: counts, state, error and number of the stream
 *
 * Context: Process context. Takes and releases stream->lock. Does not sleep.
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
	query->id = stream->id;
}

/**
 * accmem_stream_next() - iterate over the streams of a context with an open file
 * @ctx: the context
 * @id: in: stream number at which the search begins; out: number at which the next call
 *	continues
 *
 * Context: Any context. Does not sleep.
 * Return: the stream, with a reference; NULL when there are no more streams.
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
