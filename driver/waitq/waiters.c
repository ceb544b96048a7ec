// SPDX-License-Identifier: GPL-2.0
/*
 * Waiters: the ALLOC calls that wait for memory, and their wake-up.
 *
 * lib/queue decides the order. A waiter that is woken tries again in its own call
 * (alloc/wait.c). A call that frees memory or lowers a charge first tests whether
 * the device has a waiter, or the user has one on another device. If so, it wakes those
 * waiters whose request could succeed by the check in demand.c, so that one free usually
 * wakes one waiter. It looks at a bounded number of waiters at the front of the queue; a
 * work item looks at the others. Dropped pins, which nothing notifies, are found by a
 * scan once a second. wake.c has the calls of those who free and allocate.
 *
 * No change is missed: a waiter is counted before its last attempt, and this attempt
 * takes the lock under which other calls free memory.
 *
 * Locks: accmem_waiters.lock of a device is above the carveout's lock.
 */
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "core/carveout.h"
#include "internal.h"
#include "trace/trace.h"
#include "waitq/waiters.h"

#define ACCMEM_WAIT_BYPASS_BOUND 16u
#define ACCMEM_WAITERS_PER_USER 256 /* on all devices */
#define ACCMEM_WAIT_RESTART_MS 1000u /* until a call must be repeated */

#define WAITERS_SCAN_PERIOD HZ

static unsigned int waiters_reserve_ms = 1000;
module_param_named(waiter_reserve_ms, waiters_reserve_ms, uint, 0644);
MODULE_PARM_DESC(waiter_reserve_ms,
		 "ms to keep memory for who waits (0: never; default 1000)");

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

/* Time to the end of the reservation, active or suspended, or to the next scan. */
static unsigned long waiters_delay(const struct accmem_queue *q)
{
	const unsigned long period = WAITERS_SCAN_PERIOD;
	u64 now = ktime_get_ns();

	if (!q->reserved && !q->suspended)
		return period;
	return min(period, nsecs_to_jiffies(q->until - min(now, q->until)) + 1);
}

static void waiters_schedule(struct accmem_waiters *ws)
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
		waiters_schedule(ws);
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

/* Wake a waiter, which is to try or has received memory by a handoff. */
static void waiter_wake(struct accmem_waiter *w)
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
		waiter_wake(accmem_waiter_of(q));
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

/* Look at all waiters, and release the lock after each ACCMEM_QUEUE_STEPS. */
static void waiters_walk(struct accmem_waiters *ws, bool by_scan)
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

static void waiters_walk_work(struct work_struct *work)
{
	struct accmem_waiters *ws =
		container_of(work, struct accmem_waiters, walk);

	spin_lock(&ws->lock);
	waiters_walk(ws, false);
	spin_unlock(&ws->lock);
}

/* Does the run match the request of the waiter? */
static bool waiter_can_do_with(const struct accmem_waiter *w,
			       const struct accmem_carveout *cv,
			       const struct accmem_run *run, u32 cache_mode)
{
	const struct accmem_layout *layout = &w->handoff.layout;
	bool identity = cv->translation == ACCMEM_TRANSLATION_IDENTITY;

	return w->handoff.bo && w->handoff.carveouts & BIT(cv->index) &&
	       run->size == layout->footprint &&
	       accmem_carveout_mode(cv, w->req.cache_mode) == cache_mode &&
	       IS_ALIGNED(run->start, layout->page_size) &&
	       (!identity || IS_ALIGNED(run->start, layout->alignment));
}

/**
 * accmem_waiters_try_handoff() - hand memory to a waiter before the memory is freed
 * @cv: carveout
 * @run: memory that is about to be freed
 * @cache_mode: cache mode of the memory
 * @give: callback that moves the memory to accmem_handoff.bo of the waiter; returns
 *	false if this is impossible. It must not sleep.
 * @arg: argument of @give
 *
 * Only the first waiter of the queue is considered, and only if its request has exactly
 * the size, the cache mode and the alignment of the run.
 *
 * Context: Not in an interrupt. Takes and releases accmem_waiters.lock. Does not sleep.
 * Return: true if the waiter has received the memory.
 */
bool accmem_waiters_try_handoff(struct accmem_carveout *cv,
				const struct accmem_run *run, u32 cache_mode,
				bool (*give)(struct accmem_waiter *w,
					     void *arg),
				void *arg)
{
	struct accmem_waiters *ws = cv->waiters;
	struct accmem_queue_waiter *q;
	bool given;

	spin_lock(&ws->lock);
	q = accmem_queue_first(&ws->queue);
	given = q &&
		waiter_can_do_with(accmem_waiter_of(q), cv, run, cache_mode) &&
		give(accmem_waiter_of(q), arg);
	if (given) {
		accmem_waiter_of(q)->handoff.given = true;
		ws->stats.handed_over++;
		accmem_queue_serve(&ws->queue, q);
		waiter_wake(accmem_waiter_of(q));
	}
	spin_unlock(&ws->lock);
	return given;
}

static struct accmem_queue_user *waiter_user(const struct accmem_waiter *w)
{
	return &w->account->user->waiting[w->ws->index];
}

/* Apply the module parameter, which may have changed. */
static void waiters_set_reserve(struct accmem_waiters *ws, u64 now)
{
	u64 reserve_ms = READ_ONCE(waiters_reserve_ms);

	accmem_queue_set_reserve(&ws->queue, reserve_ms * NSEC_PER_MSEC, now);
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
	waiters_set_reserve(ws, w->since);
	/*
	 * Fair queueing: the turn of a user that had no waiter begins at most this
	 * many bytes before the turn that was served last.
	 */
	ws->queue.credit = waiters_capacity(ws->carveouts);
	accmem_queue_enter(&ws->queue, &w->q, waiter_user(w), need);
	trace_accmem_wait(w);
	WRITE_ONCE(ws->nr, ws->queue.nr);
	if (ws->queue.nr == 1)
		waiters_schedule(ws);
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

/*
 * Remove a waiter. @err is its error, or 0 if it was served. The caller runs the queue
 * afterwards.
 */
static void waiter_unlink(struct accmem_waiter *w, int err)
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
	waiter_unlink(w, err);
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
 * accmem_waiters_resume() - find the waiter of a call that a signal interrupted
 * @ctx: context
 * @req: request
 *
 * The call is recognised by the thread, the context and the request.
 *
 * Context: Process context. Takes and releases accmem_waiters.lock. Does not sleep.
 * Return: the waiter, which is awake and has to try; NULL if this is another call.
 */
struct accmem_waiter *accmem_waiters_resume(struct accmem_context *ctx,
					    const struct accmem_alloc *req)
{
	struct accmem_waiters *ws = ctx->account->waiters;
	struct accmem_waiter *w, *found = NULL;
	pid_t pid = task_pid_nr(current);

	spin_lock(&ws->lock);
	list_for_each_entry(w, &ws->away, link) {
		if (w->ctx != ctx || w->pid != pid ||
		    memcmp(&w->req, req, sizeof(*req)))
			continue;
		found = w;
		list_del_init(&w->link);
		w->task = current;
		w->woken = true;
		accmem_queue_resume(&ws->queue, &w->q, ktime_get_ns());
		accmem_waiters_run_queue(w->ws);
		break;
	}
	spin_unlock(&ws->lock);
	return found;
}

/*
 * Free interrupted waiters: those of @ctx, or if @ctx is NULL, those whose call was not
 * repeated in time. The queue runs once, since a run may search all folios of a carveout.
 */
static void waiters_drop(struct accmem_waiters *ws, struct accmem_context *ctx)
{
	struct accmem_waiter *w, *next;
	bool any = false;

	lockdep_assert_held(&ws->lock);
	list_for_each_entry_safe(w, next, &ws->away, link) {
		if (ctx ? w->ctx != ctx : time_before(jiffies, w->away_until))
			continue;
		list_del(&w->link);
		waiter_unlink(w, -ERESTARTSYS);
		kfree(w);
		any = true;
	}
	if (any)
		accmem_waiters_run_queue(ws);
}

/**
 * accmem_waiters_drop_interrupted() - free the interrupted waiters of a context
 * @ctx: context that ends; no call sleeps in it
 *
 * Context: Process context. Takes and releases accmem_waiters.lock. Does not sleep.
 */
void accmem_waiters_drop_interrupted(struct accmem_context *ctx)
{
	struct accmem_waiters *ws = ctx->account->waiters;

	spin_lock(&ws->lock);
	waiters_drop(ws, ctx);
	spin_unlock(&ws->lock);
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

static void waiters_work(struct work_struct *work)
{
	struct accmem_waiters *ws =
		container_of(work, struct accmem_waiters, work.work);
	u64 now = ktime_get_ns();

	spin_lock(&ws->lock);
	waiters_drop(ws, NULL);
	waiters_set_reserve(ws, now);
	accmem_queue_tick(&ws->queue, now);
	/* Waiters that the end of a reservation lets try do not count as found by scan. */
	accmem_waiters_run_queue(ws);
	accmem_queue_memory_freed(&ws->queue, NULL, 0);
	accmem_queue_limits_raised(&ws->queue);
	waiters_walk(ws, true);
	if (ws->queue.nr)
		waiters_schedule(ws);
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
