// SPDX-License-Identifier: GPL-2.0
/*
 * Background work of the waiters of a device: scans, and the rest of long runs.
 *
 * A scan once a second, and at the end of a reservation, finds memory that nothing has
 * notified, for example memory whose pins were dropped.
 */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/workqueue.h>

#include "internal.h"
#include "waitq/waiters.h"

#define ACCMEM_WAIT_BYPASS_BOUND 16u

static void waiters_walk_work(struct work_struct *work)
{
	struct accmem_waiters *ws =
		container_of(work, struct accmem_waiters, walk);

	spin_lock(&ws->lock);
	accmem_waiters_walk(ws, false);
	spin_unlock(&ws->lock);
}

static void waiters_work(struct work_struct *work)
{
	struct accmem_waiters *ws =
		container_of(work, struct accmem_waiters, work.work);
	u64 now = ktime_get_ns();

	spin_lock(&ws->lock);
	accmem_waiters_drop(ws, NULL);
	accmem_waiters_set_reserve(ws, now);
	accmem_queue_tick(&ws->queue, now);
	/* Waiters that the end of a reservation lets try do not count as found by scan. */
	accmem_waiters_run_queue(ws);
	accmem_queue_memory_freed(&ws->queue, NULL, 0);
	accmem_queue_limits_raised(&ws->queue);
	accmem_waiters_walk(ws, true);
	if (ws->queue.nr)
		accmem_waiters_schedule(ws);
	spin_unlock(&ws->lock);
}

/* Can the waiter be served if all other accounts free their memory? */
static bool waiter_may_reserve(const struct accmem_queue_waiter *q)
{
	const struct accmem_waiter *w = accmem_waiter_of(q);
	const struct accmem_carveout *cv;
	u64 own;

	for (cv = w->ws->carveouts->cvs; cv < w->ws->carveouts->end; cv++) {
		if (!(w->demand.carveouts & BIT(cv->index)))
			continue;
		/* Racy read without the carveout's lock: the question is asked again. */
		own = data_race(w->account->memory[cv->index].allocated);
		if (q->need <= cv->capacity - own)
			return true;
	}
	return false;
}

/**
 * accmem_waiters_init() - initialise the waiters of a device
 * @ws: waiters, zeroed
 * @carveouts: carveouts of the device
 * @index: number of the device
 *
 * Context: Process context.
 */
void accmem_waiters_init(struct accmem_waiters *ws,
			 struct accmem_carveouts *carveouts, unsigned int index)
{
	ws->carveouts = carveouts;
	ws->index = index;
	spin_lock_init(&ws->lock);
	accmem_queue_init(&ws->queue, ACCMEM_WAIT_BYPASS_BOUND);
	ws->queue.may_reserve = waiter_may_reserve;
	INIT_LIST_HEAD(&ws->pressure_clients);
	INIT_LIST_HEAD(&ws->away);
	INIT_DELAYED_WORK(&ws->work, waiters_work);
	INIT_WORK(&ws->walk, waiters_walk_work);
}

/**
 * accmem_waiters_stop() - stop the background work of a device's waiters
 * @ws: waiters of a device on which no call waits
 *
 * Context: Process context. Sleeps until the work has ended.
 */
void accmem_waiters_stop(struct accmem_waiters *ws)
{
	cancel_delayed_work_sync(&ws->work);
	cancel_work_sync(&ws->walk);
}
