// SPDX-License-Identifier: GPL-2.0
/*
 * Waiters: the ALLOC calls that wait for memory.
 *
 * lib/queue decides the order. A waiter that is woken tries again in its own call
 * (alloc/wait.c). A call that frees memory or lowers a charge first tests whether the device
 * has a waiter, or the user has one on another device. If so, it runs the queue (run.c). wake.c
 * has the calls of those who free and allocate.
 *
 * No change is missed: a waiter is counted before its last attempt, and this attempt
 * takes the lock under which other calls free memory.
 *
 * Locks: accmem_waiters.lock of a device is above the carveout's lock.
 */
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/sched.h>

#include "internal.h"
#include "trace/trace.h"
#include "waitq/waiters.h"

#define ACCMEM_WAITERS_PER_USER 256 /* on all devices */
#define ACCMEM_WAIT_RESTART_MS 1000u /* until a call must be repeated */

static u64 waiters_capacity(const struct accmem_carveouts *carveouts)
{
	const struct accmem_carveout *cv;
	u64 capacity = 0;

	for (cv = carveouts->cvs; cv < carveouts->end; cv++)
		capacity += cv->capacity;
	return capacity;
}

/* Count a waiter as short of memory, or not. Returns true if it has become short. */
static bool waiter_set_short(struct accmem_waiter *w, bool is_short)
{
	struct accmem_waiters *ws = w->ws;

	lockdep_assert_held(&ws->lock);
	if (w->is_short == is_short)
		return false;
	w->is_short = is_short;
	if (!is_short) {
		ws->nr_starved--;
		w->account->nr_starved--;
		return false;
	}
	w->account->nr_starved++;
	ws->nr_shortages++;
	if (!ws->nr_starved++)
		ws->pressure_seq++;
	return true;
}

static struct accmem_queue_user *waiter_user(const struct accmem_waiter *w)
{
	return &w->account->user->waiting[w->ws->index];
}

/**
 * accmem_waiters_enter() - add a waiter to the queue
 * @w: waiter, initialised by the caller; must not be freed before it leaves the queue
 * @defer: the waiter has not tried yet, and sleeps until its turn comes
 *
 * Without @defer, the waiter is awake and tries once more.
 *
 * Context: Process context, of the task that waits. Takes and releases
 * accmem_waiters.lock. Does not sleep.
 * Return: 0; -EAGAIN if the user has too many waiters.
 */
int accmem_waiters_enter(struct accmem_waiter *w, bool defer)
{
	u64 need = max_t(u64, w->demand.footprint, ACCMEM_GRANULE);
	struct accmem_waiters *ws = w->ws;

	if (!atomic_add_unless(&w->account->user->nr_waiting, 1,
			       ACCMEM_WAITERS_PER_USER))
		return -EAGAIN;
	spin_lock(&ws->lock);
	w->task = current;
	w->woken = true;
	w->since = ktime_get_ns();
	ws->stats.waits++;
	accmem_waiters_set_reserve(ws, w->since);
	/*
	 * Fair queueing: the turn of a user that had no waiter begins at most this
	 * many bytes before the turn that was served last.
	 */
	ws->queue.credit = waiters_capacity(ws->carveouts);
	accmem_queue_enter(&ws->queue, &w->q, waiter_user(w), need);
	trace_accmem_wait(w);
	WRITE_ONCE(ws->nr, ws->queue.nr);
	if (ws->queue.nr == 1)
		accmem_waiters_schedule(ws);
	if (defer) {
		w->woken = false;
		accmem_queue_enter_asleep(&ws->queue, &w->q);
		waiter_set_short(w, true);
		accmem_waiters_run_queue(w->ws);
	}
	spin_unlock(&ws->lock);
	/*
	 * A call that frees memory and still reads accmem_waiters.nr as 0 has
	 * released the carveout's lock already. The attempt that follows takes the
	 * same lock, and finds this memory. A call that uncharges bytes on another
	 * device and still reads accmem_user.nr_waiting as 0 has uncharged them
	 * already: the attempt finds the lower charge. Pairs with the barrier in
	 * accmem_uncharge().
	 */
	smp_mb();
	return 0;
}

/**
 * accmem_waiters_start_try() - start an attempt of a waiter that was woken
 * @w: waiter
 *
 * If the waiter has received memory by a handoff, it uses this memory instead of
 * trying. If the memory turns out to be of no use, the caller calls this again.
 *
 * Context: Process context. Takes and releases accmem_waiters.lock. Does not sleep.
 * Return: true if the waiter has received memory.
 */
bool accmem_waiters_start_try(struct accmem_waiter *w)
{
	bool given;

	spin_lock(&w->ws->lock);
	given = w->handoff.given;
	w->handoff.given = false;
	if (!given)
		accmem_queue_start_try(&w->ws->queue, &w->q);
	spin_unlock(&w->ws->lock);
	return given;
}

/**
 * accmem_waiters_sleep() - put a waiter back to sleep after a failed attempt
 * @w: waiter; it may be woken at once
 * @limited: a limit made the attempt fail, not a shortage
 *
 * The function marks the waiter as asleep; the caller then sleeps.
 *
 * Context: Process context. Takes and releases accmem_waiters.lock. Does not sleep.
 * Return: true if the waiter has become short of memory with this attempt, so that the
 * caller has to notify the other contexts.
 */
bool accmem_waiters_sleep(struct accmem_waiter *w, bool limited)
{
	struct accmem_waiters *ws = w->ws;
	bool newly_short;

	spin_lock(&ws->lock);
	ws->stats.in_vain++;
	w->woken = false;
	accmem_queue_sleep(&ws->queue, &w->q, limited, ktime_get_ns());
	newly_short = waiter_set_short(w, !limited);
	accmem_waiters_run_queue(ws);
	spin_unlock(&ws->lock);
	return newly_short;
}

/**
 * accmem_waiter_unlink() - remove a waiter from the queue
 * @w: waiter
 * @err: its error, or 0 if it was served
 *
 * The caller runs the queue afterwards.
 *
 * Context: accmem_waiters.lock is held.
 */
void accmem_waiter_unlink(struct accmem_waiter *w, int err)
{
	struct accmem_waiters *ws = w->ws;
	u64 now = ktime_get_ns();

	lockdep_assert_held(&ws->lock);
	waiter_set_short(w, false);
	accmem_queue_leave(&ws->queue, &w->q, !err, now);
	trace_accmem_wait_end(w, now, err);
	accmem_wait_times_count(ws, now - w->since);
	WRITE_ONCE(ws->nr, ws->queue.nr);
	atomic_dec(&w->account->user->nr_waiting);
}

static void waiter_remove(struct accmem_waiter *w, int err)
{
	accmem_waiter_unlink(w, err);
	accmem_waiters_run_queue(w->ws);
}

/**
 * accmem_waiters_leave() - remove a waiter after its last attempt
 * @w: waiter
 * @err: error of the attempt, or 0 if the waiter was served
 *
 * Context: Process context. Takes and releases accmem_waiters.lock. Does not sleep.
 */
void accmem_waiters_leave(struct accmem_waiter *w, int err)
{
	struct accmem_waiters *ws = w->ws;

	spin_lock(&ws->lock);
	if (!err) {
		ws->stats.served++;
		ws->stats.by_scan += w->by_scan;
	}
	waiter_remove(w, err);
	spin_unlock(&ws->lock);
}

/**
 * accmem_waiters_cancel() - end the sleep of a waiter at a deadline or a signal
 * @w: waiter
 * @err: -ETIMEDOUT, -ERESTARTSYS for a signal, or the error of a revocation
 * @restarts: the kernel will repeat the call. The waiter stays in the queue and no
 *	longer belongs to the caller; accmem_handoff.bo does.
 * @has_tried: the waiter has tried, and has not slept since
 *
 * Without @restarts, the waiter is removed from the queue.
 *
 * Context: Process context. Takes and releases accmem_waiters.lock. Does not sleep.
 * Return: true if the wait has ended; false if the waiter was woken meanwhile, in which
 * case it must try.
 */
bool accmem_waiters_cancel(struct accmem_waiter *w, int err, bool restarts,
			   bool has_tried)
{
	struct accmem_waiters *ws = w->ws;
	bool was_woken;

	spin_lock(&ws->lock);
	was_woken = w->handoff.given || (w->woken && !has_tried);
	if (!was_woken) {
		if (err == -ETIMEDOUT)
			ws->stats.timeouts++;
		else if (err == -ERESTARTSYS)
			ws->stats.signals++;
		if (restarts) {
			w->handoff.bo = NULL;
			w->pid = task_pid_nr(current);
			w->away_until =
				jiffies +
				msecs_to_jiffies(ACCMEM_WAIT_RESTART_MS);
			list_add_tail(&w->link, &ws->away);
			accmem_queue_suspend(&ws->queue, &w->q);
			accmem_waiters_run_queue(w->ws);
		} else {
			waiter_remove(w, err);
		}
	}
	spin_unlock(&ws->lock);
	return !was_woken;
}

/**
 * accmem_waiters_revoke() - wake all waiters of a device whose memory is revoked
 * @ws: waiters of the device
 *
 * A waiter that sleeps finds the revocation, and leaves the queue with its error.
 *
 * Context: Process context. Takes and releases accmem_waiters.lock. Does not sleep.
 */
void accmem_waiters_revoke(struct accmem_waiters *ws)
{
	struct accmem_queue_waiter *q = NULL;
	struct accmem_waiter *w;

	spin_lock(&ws->lock);
	while ((q = accmem_queue_walk(&ws->queue, q))) {
		w = accmem_waiter_of(q);
		/* The task of an interrupted call may be gone. */
		if (list_empty(&w->link))
			wake_up_process(w->task);
	}
	spin_unlock(&ws->lock);
}

/**
 * accmem_waiters_shortfall() - compute the memory that other accounts wait for
 * @account: account whose own waiters do not count
 * @nr: out: number of waiters of other accounts that are short of memory
 *
 * Context: accmem_waiters.lock is held. Takes and releases the locks of carveouts.
 * Return: bytes that the waiters need beyond the free bytes that are not promised. If
 * there are enough free bytes, but in runs that are too short, the bytes that the
 * first waiter needs. 0 if no other account waits.
 */
u64 accmem_waiters_shortfall(const struct accmem_account *account,
			     unsigned int *nr)
{
	struct accmem_waiters *ws = account->waiters;
	struct accmem_queue *queue = &ws->queue;
	struct accmem_queue_waiter *q = NULL;
	u64 need = 0, first = 0, free = 0;
	struct accmem_carveout *cv;
	u32 carveouts = 0;

	lockdep_assert_held(&ws->lock);
	*nr = 0;
	while ((q = accmem_queue_walk(queue, q))) {
		const struct accmem_waiter *w = accmem_waiter_of(q);

		/* The bytes that an awake waiter needs count as promised. */
		if (!w->is_short || w->account == account ||
		    q->state == ACCMEM_QUEUE_AWAKE ||
		    q->state == ACCMEM_QUEUE_SERVED)
			continue;
		first = first ?: q->need;
		need += q->need;
		carveouts |= w->demand.carveouts;
		++*nr;
	}
	for (cv = ws->carveouts->cvs; cv < ws->carveouts->end; cv++) {
		if (carveouts & BIT(cv->index))
			free += accmem_demand_free_bytes(cv);
	}
	free -= min(free, queue->promised);
	return need > free ? need - free : first;
}
