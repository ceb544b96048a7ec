// SPDX-License-Identifier: GPL-2.0
/*
 * STREAM_WAIT: sleep until a stream reaches a position.
 *
 * A waiter adds itself with its position to the wait queue of the stream. When the
 * count grows, each waiter's wake function checks the position of the waiter, so only
 * waiters whose position is reached wake up. All waiters wake up when the stream ends.
 * If the position is reached at the same time as a signal arrives or the deadline
 * passes, the wait succeeds.
 *
 * A NONBLOCK call does not sleep. It sets the position that a later poll() of the file
 * waits for.
 *
 * Locking: the lock of the wait queue protects the queue.
 */
#include <linux/sched/signal.h>

#include <linux/accmem.h>

#include "core/sleep.h"
#include "internal.h"
#include "stream/stream.h"

/**
 * struct sleeper - a STREAM_WAIT call that sleeps
 * @entry: entry in accmem_stream.wait
 * @stream: the stream
 * @position: position that the call waits for
 */
struct sleeper {
	struct wait_queue_entry entry;
	struct accmem_stream *stream;
	u64 position;
};

static int sleeper_wake(struct wait_queue_entry *entry, unsigned int mode,
			int sync, void *key)
{
	struct sleeper *sleeper = container_of(entry, struct sleeper, entry);

	/* Lockless reads: the count and @ended change before the wake-up. */
	if (!accmem_stream_has_reached(sleeper->stream, sleeper->position) &&
	    !READ_ONCE(sleeper->stream->ended))
		return 0;
	return default_wake_function(entry, mode, sync, key);
}

/*
 * Sleep until the position is reached or cannot be reached any more. Return the result
 * of accmem_stream_check(), -ETIMEDOUT after the deadline, or -ERESTARTSYS for a
 * signal.
 */
static int sleeper_sleep(struct sleeper *sleeper, u64 deadline_ns)
{
	bool passed = false;
	int err;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		err = accmem_stream_check(sleeper->stream, sleeper->position);
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

/*
 * Serve a NONBLOCK call. The position for poll() is stored before the check: if the
 * stream reaches the position after the check, a poll() that follows reports it.
 */
static int wait_poll(struct accmem_stream *stream, u64 position)
{
	int err;

	WRITE_ONCE(stream->poll, position);
	err = accmem_stream_check(stream, position);
	/* a thread that sleeps in poll() has checked the previous position: wake it */
	if (!err && wq_has_sleeper(&stream->wait))
		wake_up_all(&stream->wait);
	return err;
}

/**
 * accmem_stream_wait() - wait until a stream reaches a position
 * @stream: the stream
 * @req: the request, whose flags are valid
 *
 * Context: Process context. Takes and releases stream->lock. May sleep.
 * Return: 0; -EAGAIN for NONBLOCK when the position is not reached; -ETIMEDOUT after
 * the deadline; -ERESTARTSYS for a signal; -ECANCELED as accmem_stream_check().
 */
int accmem_stream_wait(struct accmem_stream *stream,
		       const struct accmem_stream_wait *req)
{
	struct sleeper sleeper = {
		.stream = stream,
		.position = req->position,
	};
	int err;

	if (req->flags & ACCMEM_STREAM_NONBLOCK)
		return wait_poll(stream, req->position);
	err = accmem_stream_check(stream, req->position);
	if (err != -EAGAIN)
		return err;
	init_waitqueue_func_entry(&sleeper.entry, sleeper_wake);
	sleeper.entry.private = current;
	add_wait_queue(&stream->wait, &sleeper.entry);
	err = sleeper_sleep(&sleeper, req->deadline_ns);
	remove_wait_queue(&stream->wait, &sleeper.entry);
	return err;
}
