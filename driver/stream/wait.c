// SPDX-License-Identifier: GPL-2.0
/*
 * STREAM_WAIT: sleep until a stream reaches a position.
 *
 * A waiter adds itself to the tree of the stream, which is sorted by position. When the
 * count grows, the waiters of the reached positions are woken and no others. When the
 * stream ends, they are woken as soon as no claimed position is left. If the position is
 * reached at the same time as a signal arrives or the deadline passes, the wait succeeds.
 * Sleeping calls are charged to the user of the stream.
 *
 * A NONBLOCK call does not sleep. It sets the position that a later poll() of the file
 * waits for.
 *
 * Locking: stream->lock protects the tree.
 */
#include <linux/sched/signal.h>

#include <uapi/linux/accmem.h>

#include "core/account.h"
#include "core/sleep.h"
#include "internal.h"
#include "stream/stream.h"

/*
 * Sleep until the position is reached or cannot be reached any more. Return the result
 * of accmem_stream_check(), -ETIMEDOUT after the deadline, or -ERESTARTSYS for a
 * signal.
 */
static int wait_sleep(struct accmem_stream *stream, u64 position,
		      u64 deadline_ns)
{
	bool passed = false;
	int err;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		err = accmem_stream_check(stream, position);
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
	if (!err && wq_has_sleeper(&stream->polls))
		wake_up_all(&stream->polls);
	return err;
}

/**
 * accmem_stream_wait() - wait until a stream reaches a position
 * @stream: the stream
 * @req: the request, whose flags are valid
 *
 * Context: Process context. Takes and releases stream->lock. May sleep.
 * Return: 0; -EAGAIN for NONBLOCK when the position is not reached; -ETIMEDOUT after
 * the deadline; -ERESTARTSYS for a signal; -EDQUOT when the user has the highest
 * permitted number of sleeping calls; -ECANCELED as accmem_stream_check().
 */
int accmem_stream_wait(struct accmem_stream *stream,
		       const struct accmem_stream_wait *req)
{
	struct accmem_stream_waiter waiter = {
		.position = req->position,
		.task = current,
	};
	int err;

	if (req->flags & ACCMEM_STREAM_NONBLOCK)
		return wait_poll(stream, req->position);
	err = accmem_stream_check(stream, req->position);
	if (err != -EAGAIN)
		return err;
	err = accmem_charge_wait(stream->user);
	if (err)
		return err;
	accmem_stream_enqueue(stream, &waiter);
	err = wait_sleep(stream, req->position, req->deadline_ns);
	accmem_stream_dequeue(stream, &waiter);
	accmem_uncharge_wait(stream->user);
	return err;
}
