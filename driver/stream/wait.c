// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for a position of a stream.
 *
 * A waiter queues itself with its position and is woken when that has been
 * reached, or when the stream has ended; whoever reaches a position wakes those
 * only who wait for it. What has been reached wins over a signal or a deadline
 * that came at the same time.
 *
 * Locks: that of the wait queue.
 */
#include <linux/sched/signal.h>

#include <linux/accmem.h>

#include "core/sleep.h"
#include "internal.h"
#include "stream/stream.h"

/**
 * struct waiter - one call that waits
 * @entry: in accmem_stream.wait
 * @stream: the stream
 * @position: the position
 */
struct waiter {
	struct wait_queue_entry entry;
	struct accmem_stream *stream;
	u64 position;
};

static int waiter_wake(struct wait_queue_entry *entry, unsigned int mode,
		       int sync, void *key)
{
	struct waiter *waiter = container_of(entry, struct waiter, entry);

	if (!accmem_stream_has_reached(waiter->stream, waiter->position) &&
	    !READ_ONCE(waiter->stream->ended))
		return 0;
	return default_wake_function(entry, mode, sync, key);
}

/* what became of the position; or why the wait is to be given up */
static int waiter_sleep(struct waiter *waiter, u64 deadline_ns)
{
	bool passed = false;
	int err;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		err = accmem_stream_check(waiter->stream, waiter->position);
		if (err != -EAGAIN)
			break;
		err = passed ? -ETIMEDOUT : -ERESTARTSYS;
		if (passed || signal_pending(current))
			break;
		if (!deadline_ns)
			schedule();
		else if (!accmem_sleep_until(deadline_ns))
			passed = true;
	}
	__set_current_state(TASK_RUNNING);
	return err;
}

/* poll() is about the position before it is looked at: it misses nothing then */
static int waiter_ask(struct accmem_stream *stream, u64 position)
{
	int err;

	WRITE_ONCE(stream->poll, position);
	err = accmem_stream_check(stream, position);
	/* who sleeps in poll() already went by another one */
	if (!err && wq_has_sleeper(&stream->wait))
		wake_up_all(&stream->wait);
	return err;
}

/**
 * accmem_stream_wait() - wait until a position is reached
 * @stream: the stream
 * @req: checked for flags
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT, -ERESTARTSYS, -ECANCELED.
 */
int accmem_stream_wait(struct accmem_stream *stream,
		       const struct accmem_stream_wait *req)
{
	struct waiter waiter = {
		.stream = stream,
		.position = req->position,
	};
	int err;

	if (req->flags & ACCMEM_STREAM_NONBLOCK)
		return waiter_ask(stream, req->position);
	err = accmem_stream_check(stream, req->position);
	if (err != -EAGAIN)
		return err;
	init_waitqueue_func_entry(&waiter.entry, waiter_wake);
	waiter.entry.private = current;
	add_wait_queue(&stream->wait, &waiter.entry);
	err = waiter_sleep(&waiter, req->deadline_ns);
	remove_wait_queue(&stream->wait, &waiter.entry);
	return err;
}
