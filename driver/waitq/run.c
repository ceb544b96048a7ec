// SPDX-License-Identifier: GPL-2.0
/*
 * Runs of the queue: which waiters are woken, and when.
 *
 * A call that frees memory, lowers a charge or changes the queue runs the queue. A run wakes
 * those waiters whose request could succeed by the check in demand.c, so that one free
 * usually wakes one waiter. It looks at a bounded number of waiters at the front of the
 * queue; a work item looks at the others (scan.c).
 *
 * Locks: accmem_waiters.lock of a device is above the carveout's lock.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>

#include "core/carveout.h"
#include "internal.h"
#include "trace/trace.h"
#include "waitq/waiters.h"

#define WAITERS_SCAN_PERIOD HZ

static unsigned int waiters_reserve_ms = 1000;
module_param_named(waiter_reserve_ms, waiters_reserve_ms, uint, 0644);
MODULE_PARM_DESC(waiter_reserve_ms,
		 "ms to keep memory for who waits (0: never; default 1000)");

/**
 * accmem_waiters_set_reserve() - apply the module parameter, which may have changed
 * @ws: waiters of the device
 * @now: the time in nanoseconds
 *
 * Context: ws->lock is held.
 */
void accmem_waiters_set_reserve(struct accmem_waiters *ws, u64 now)
{
	u64 reserve_ms = READ_ONCE(waiters_reserve_ms);

	accmem_queue_set_reserve(&ws->queue, reserve_ms * NSEC_PER_MSEC, now);
}

/* Time to the end of the reservation, active or suspended, or to the next scan. */
static unsigned long waiters_delay(const struct accmem_queue *q)
{
	const unsigned long period = WAITERS_SCAN_PERIOD;
	u64 now = ktime_get_ns();

	if (!q->reserved && !q->suspended)
		return period;
	return min(period, nsecs_to_jiffies(q->until - min(now, q->until)) + 1);
}

/**
 * accmem_waiters_schedule() - set the time of the next scan of the queue
 * @ws: waiters of the device
 *
 * The scan runs at the end of the reservation, but after one second at the latest.
 *
 * Context: ws->lock is held.
 */
void accmem_waiters_schedule(struct accmem_waiters *ws)
{
	unsigned long delay = waiters_delay(&ws->queue);

	ws->due = jiffies + delay;
	mod_delayed_work(accmem_wq, &ws->work, delay);
}

/*
 * Run the work when the reservation ends, if this is before its next run. An earlier
 * run is not postponed; it schedules the run after it.
 */
static void waiters_schedule_end(struct accmem_waiters *ws)
{
	if (time_before(jiffies + waiters_delay(&ws->queue), ws->due))
		accmem_waiters_schedule(ws);
}

/* Publish the reservation of the queue for accmem_waiters_permit(). */
static void waiters_reserve(struct accmem_waiters *ws)
{
	struct accmem_account *reserved_for = NULL;
	u32 reserved_in = 0;

	if (ws->queue.reserved) {
		reserved_for = accmem_waiter_of(ws->queue.reserved)->account;
		reserved_in =
			accmem_waiter_of(ws->queue.reserved)->demand.carveouts;
	}
	if (reserved_for && reserved_for != ws->reserved_for)
		waiters_schedule_end(ws);
	WRITE_ONCE(ws->reserved_in, reserved_in);
	WRITE_ONCE(ws->reserved_for, reserved_for);
}

/**
 * accmem_waiter_wake() - wake a waiter, which is to try or has received memory by a handoff
 * @w: waiter
 *
 * Context: accmem_waiters.lock is held.
 */
void accmem_waiter_wake(struct accmem_waiter *w)
{
	lockdep_assert_held(&w->ws->lock);
	w->ws->stats.wakeups++;
	trace_accmem_wake(w);
	/* The task exists: it takes accmem_waiters.lock before it leaves. */
	WRITE_ONCE(w->woken, true);
	wake_up_process(w->task);
}

/*
 * Wake the waiters that are to try, from @at on, after a look at no more than
 * ACCMEM_QUEUE_STEPS waiters.
 */
static void waiters_wake_from(struct accmem_waiters *ws,
			      struct accmem_queue_waiter **at, bool by_scan)
{
	unsigned int steps = ACCMEM_QUEUE_STEPS;
	struct accmem_queue_waiter *q;

	lockdep_assert_held(&ws->lock);
	ws->scan.known = 0;
	while ((q = accmem_queue_next(&ws->queue, at, &steps,
				      accmem_demand_can_be_met, &ws->scan))) {
		accmem_waiter_of(q)->by_scan = by_scan;
		accmem_waiter_wake(accmem_waiter_of(q));
	}
}

/**
 * accmem_waiters_run_queue() - wake the waiters that are to try
 * @ws: waiters of the device
 *
 * Also publishes the reservation. Called after each change of the queue.
 *
 * Context: ws->lock is held. Takes and releases the locks of carveouts.
 */
void accmem_waiters_run_queue(struct accmem_waiters *ws)
{
	struct accmem_queue_waiter *at = accmem_queue_walk(&ws->queue, NULL);

	lockdep_assert_held(&ws->lock);
	waiters_reserve(ws);
	waiters_wake_from(ws, &at, false);
	if (at)
		queue_work(accmem_wq, &ws->walk);
}

/**
 * accmem_waiters_walk() - wake all waiters that are to try
 * @ws: waiters of the device
 * @by_scan: a scan wakes the waiters, not a change of the queue
 *
 * The function releases the lock after each ACCMEM_QUEUE_STEPS waiters.
 *
 * Context: Process context. The caller holds ws->lock, which is released and taken again.
 * Takes and releases the locks of carveouts. Sleeps.
 */
void accmem_waiters_walk(struct accmem_waiters *ws, bool by_scan)
{
	struct accmem_queue_waiter **at = &ws->queue.cursor;

	lockdep_assert_held(&ws->lock);
	*at = accmem_queue_walk(&ws->queue, NULL);
	waiters_wake_from(ws, at, by_scan);
	while (*at) {
		spin_unlock(&ws->lock);
		cond_resched();
		spin_lock(&ws->lock);
		waiters_wake_from(ws, at, by_scan);
	}
}
