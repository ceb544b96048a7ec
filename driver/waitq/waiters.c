// SPDX-License-Identifier: GPL-2.0
/*
 * Who waits for memory, and who is woken when some comes back.
 *
 * lib/queue decides whose turn it is; a waiter that is woken tries in its own
 * call (wait.c). Whoever gives memory back, or lowers a charge, asks whether anybody
 * waits, which is one test. A waiter is woken where it could be served, for all that can
 * be told without trying, so that one free wakes one waiter. What nobody tells of
 * (pins that go, a charge that was made and undone by others) is found once a
 * second.
 *
 * Nothing is missed: a waiter is counted before its last try, and the try takes the
 * lock under which others give back.
 *
 * Locks: accmem_waiters_lock guards the queues of all devices, since a limit is a user's,
 * and a user's memory is on several. It is above the carveout's lock.
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
#define ACCMEM_WAITERS_PER_USER 256u /* of a device */
#define ACCMEM_WAIT_RESTART_MS 1000u /* for a call to be made again */

#define WAITERS_SCAN_PERIOD HZ

static unsigned int waiters_reserve_ms = 1000;
module_param_named(waiter_reserve_ms, waiters_reserve_ms, uint, 0644);
MODULE_PARM_DESC(waiter_reserve_ms,
		 "ms to keep memory for who waits (0: never; default 1000)");

DEFINE_SPINLOCK(accmem_waiters_lock); /* queues, and the two below */
static LIST_HEAD(waiters_busy);
unsigned int accmem_nr_waiting;

static u64 waiters_capacity(const struct accmem_carveouts *carveouts)
{
	const struct accmem_carveout *cv;
	u64 capacity = 0;

	accmem_for_each_carveout(cv, carveouts) capacity += cv->capacity;
	return capacity;
}

/* true where it becomes so */
static bool waiter_set_short(struct accmem_waiter *w, bool is_short)
{
	struct accmem_waiters *ws = w->ws;

	lockdep_assert_held(&accmem_waiters_lock);
	if (w->is_short == is_short)
		return false;
	w->is_short = is_short;
	if (!is_short) {
		ws->nr_starved--;
		w->account->nr_starved--;
		return false;
	}
	w->account->nr_starved++;
	if (!ws->nr_starved++)
		ws->pressure_seq++;
	return true;
}

/* until a reservation, also one that is suspended, ends; at most until the next look */
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

/* A look that is due before is not put off: it sees to what comes after it. */
static void waiters_schedule_end(struct accmem_waiters *ws)
{
	if (time_before(jiffies + waiters_delay(&ws->queue), ws->due))
		waiters_schedule(ws);
}

/* memory is reserved for the one that the queue says, where that may be served */
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

/* it is to try, or has been given what it needs */
static void waiter_wake(struct accmem_waiter *w)
{
	lockdep_assert_held(&accmem_waiters_lock);
	w->ws->stats.wakeups++;
	trace_accmem_wake(w);
	/* it leaves with the lock taken, so its task is still there */
	WRITE_ONCE(w->woken, true);
	wake_up_process(w->task);
}

/* after each call on the queue: who is woken, and for whom memory is reserved */
static void waiters_run_queue(struct accmem_waiters *ws)
{
	struct accmem_queue_waiter *q = NULL;

	lockdep_assert_held(&accmem_waiters_lock);
	waiters_reserve(ws);
	if (!ws->queue.nr)
		return;
	ws->scan.known = 0;
	while ((q = accmem_queue_next(&ws->queue, q, accmem_demand_can_be_met,
				      &ws->scan)))
		waiter_wake(accmem_waiter_of(q));
}

/* would it have got just this, had it been free? */
static bool waiter_can_do_with(const struct accmem_waiter *w,
			       const struct accmem_carveout *cv,
			       const struct accmem_run *run, u32 cache_mode)
{
	const struct accmem_layout *layout = &w->handoff.layout;
	bool identity = cv->translation == ACCMEM_TRANSLATION_IDENTITY;

	return w->handoff.bo && w->handoff.carveouts & BIT(cv->index) &&
	       run->size == layout->footprint &&
	       w->req.cache_mode == cache_mode &&
	       IS_ALIGNED(run->start, layout->page_size) &&
	       (!identity || IS_ALIGNED(run->start, layout->alignment));
}

/**
 * accmem_waiters_try_handoff() - memory is about to become free
 * @cv: where
 * @run: the memory
 * @cache_mode: its cache mode
 * @give: gives it to a waiter, in accmem_handoff.bo; false where it cannot. Does not sleep.
 * @arg: for @give
 *
 * The first who waits gets it as it is, if it has the size asked for.
 *
 * Return: whether it was given.
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

	spin_lock(&accmem_waiters_lock);
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
	spin_unlock(&accmem_waiters_lock);
	return given;
}

/**
 * __accmem_waiters_permit() - may memory of a carveout be taken for an account?
 * @cv: the carveout
 * @account: the account
 *
 * For accmem_waiters_permit().
 *
 * Return: false where it is reserved for another's waiter.
 */
bool __accmem_waiters_permit(const struct accmem_carveout *cv,
			     const struct accmem_account *account)
{
	const struct accmem_waiters *ws = cv->waiters;
	const struct accmem_account *reserved_for = READ_ONCE(ws->reserved_for);

	return !reserved_for || reserved_for == account ||
	       !(READ_ONCE(ws->reserved_in) & BIT(cv->index));
}

/**
 * __accmem_waiters_wake() - something has come back
 * @dev: the device
 * @user: who is charged less; NULL for nobody
 * @memory: memory of @dev is free, too
 *
 * For accmem_waiters_wake_freed().
 */
void __accmem_waiters_wake(struct accmem_waiters *ws, struct accmem_user *user,
			   bool memory)
{
	struct accmem_waiters *other;

	spin_lock(&accmem_waiters_lock);
	list_for_each_entry(other, &waiters_busy, busy) {
		struct accmem_queue_user *own =
			user ? &user->waiting[other->index] : NULL;
		bool is_here = memory && other == ws;

		if (!is_here && !(own && own->nr))
			continue;
		if (is_here)
			accmem_queue_came_back(&other->queue);
		if (own)
			accmem_queue_sank(own);
		waiters_run_queue(other);
	}
	spin_unlock(&accmem_waiters_lock);
}

/**
 * accmem_waiters_limits_raised() - a limit has changed
 */
void accmem_waiters_limits_raised(void)
{
	struct accmem_waiters *ws;

	spin_lock(&accmem_waiters_lock);
	list_for_each_entry(ws, &waiters_busy, busy) {
		accmem_queue_limits_rose(&ws->queue);
		waiters_run_queue(ws);
	}
	spin_unlock(&accmem_waiters_lock);
}

/**
 * __accmem_waiters_count_bypass() - somebody who does not wait was given memory
 * @cv: where
 * @user: whose it is
 * @got: bytes
 *
 * For accmem_waiters_count_bypass(). It passes nobody who waits for other carveouts.
 */
void __accmem_waiters_count_bypass(struct accmem_carveout *cv,
				   struct accmem_user *user, u64 got)
{
	struct accmem_waiters *ws = cv->waiters;
	struct accmem_queue *queue = &ws->queue;
	struct accmem_queue_waiter *front;

	spin_lock(&accmem_waiters_lock);
	front = accmem_queue_front(queue);
	if (front &&
	    accmem_waiter_of(front)->demand.carveouts & BIT(cv->index)) {
		accmem_queue_pass(queue, &user->waiting[ws->index], got,
				  ktime_get_ns());
		waiters_run_queue(ws);
	}
	spin_unlock(&accmem_waiters_lock);
}

static struct accmem_queue_user *waiter_user(const struct accmem_waiter *w)
{
	return &w->account->user->waiting[w->ws->index];
}

/* the parameter may have changed */
static void waiters_set_reserve(struct accmem_waiters *ws, u64 now)
{
	u64 reserve_ms = READ_ONCE(waiters_reserve_ms);

	accmem_queue_set_reserve(&ws->queue, reserve_ms * NSEC_PER_MSEC, now);
}

/**
 * accmem_waiters_enter() - begin to wait
 * @w: the waiter, filled in; it stays where it is until it leaves
 * @defer: it has not tried, and does so when its turn comes
 *
 * Return: 0; -EAGAIN where the user has too many.
 */
int accmem_waiters_enter(struct accmem_waiter *w, bool defer)
{
	u64 need = max_t(u64, w->demand.footprint, ACCMEM_GRANULE);
	struct accmem_waiters *ws = w->ws;

	spin_lock(&accmem_waiters_lock);
	if (waiter_user(w)->nr >= ACCMEM_WAITERS_PER_USER) {
		spin_unlock(&accmem_waiters_lock);
		return -EAGAIN;
	}
	w->task = current;
	w->woken = true;
	w->since = ktime_get_ns();
	ws->stats.waits++;
	waiters_set_reserve(ws, w->since);
	/* who asks for little is not there for all that others get meanwhile */
	ws->queue.credit = waiters_capacity(ws->carveouts);
	accmem_queue_enter(&ws->queue, &w->q, waiter_user(w), need);
	trace_accmem_wait(w);
	WRITE_ONCE(accmem_nr_waiting, accmem_nr_waiting + 1);
	if (ws->queue.nr == 1) {
		list_add_tail(&ws->busy, &waiters_busy);
		waiters_schedule(ws);
	}
	if (defer) {
		w->woken = false;
		accmem_queue_enter_asleep(&ws->queue, &w->q);
		waiter_set_short(w, true);
		waiters_run_queue(w->ws);
	}
	spin_unlock(&accmem_waiters_lock);
	/*
	 * Whoever does not see that somebody waits has given back before the try
	 * that follows looks there, under the same lock.
	 */
	smp_mb();
	return 0;
}

/**
 * accmem_waiters_start_try() - a waiter that was woken is about to try
 * @w: the waiter
 *
 * Return: whether it need not, since it has been given what it asked for. If that is of
 * no use, this is called again.
 */
bool accmem_waiters_start_try(struct accmem_waiter *w)
{
	bool given;

	spin_lock(&accmem_waiters_lock);
	given = w->handoff.given;
	w->handoff.given = false;
	if (!given)
		accmem_queue_start_try(&w->ws->queue, &w->q);
	spin_unlock(&accmem_waiters_lock);
	return given;
}

/**
 * accmem_waiters_sleep() - a waiter that was woken has tried in vain
 * @w: the waiter; it may be woken at once
 * @limited: a limit was the reason
 *
 * Return: whether it is short of memory since this try, so that others are to be told.
 */
bool accmem_waiters_sleep(struct accmem_waiter *w, bool limited)
{
	struct accmem_waiters *ws = w->ws;
	bool newly_short;

	spin_lock(&accmem_waiters_lock);
	ws->stats.in_vain++;
	w->woken = false;
	accmem_queue_sleep(&ws->queue, &w->q, limited, ktime_get_ns());
	newly_short = waiter_set_short(w, !limited);
	waiters_run_queue(w->ws);
	spin_unlock(&accmem_waiters_lock);
	return newly_short;
}

/* @err: why, or 0 if it was served */
static void waiter_remove(struct accmem_waiter *w, int err)
{
	struct accmem_waiters *ws = w->ws;
	u64 now = ktime_get_ns();

	lockdep_assert_held(&accmem_waiters_lock);
	waiter_set_short(w, false);
	accmem_queue_leave(&ws->queue, &w->q, !err, now);
	trace_accmem_wait_end(w, now, err);
	WRITE_ONCE(accmem_nr_waiting, accmem_nr_waiting - 1);
	if (!ws->queue.nr)
		list_del_init(&ws->busy);
	waiters_run_queue(w->ws);
}

/**
 * accmem_waiters_leave() - a waiter that has tried waits no more
 * @w: the waiter
 * @err: what became of it
 */
void accmem_waiters_leave(struct accmem_waiter *w, int err)
{
	spin_lock(&accmem_waiters_lock);
	if (!err)
		w->ws->stats.served++;
	waiter_remove(w, err);
	spin_unlock(&accmem_waiters_lock);
}

/**
 * accmem_waiters_cancel() - a waiter has slept long enough
 * @w: the waiter
 * @err: -ETIMEDOUT, or -ERESTARTSYS for a signal
 * @restarts: the call will be made again: then the waiter stays in its place, and is
 *	not the caller's any more, who keeps accmem_handoff.bo
 * @has_tried: it has, and has not slept since
 *
 * Return: false if it was woken in its sleep, which counts more: it is to try.
 */
bool accmem_waiters_cancel(struct accmem_waiter *w, int err, bool restarts,
			   bool has_tried)
{
	struct accmem_waiters *ws = w->ws;
	bool was_woken;

	spin_lock(&accmem_waiters_lock);
	was_woken = w->handoff.given || (w->woken && !has_tried);
	if (!was_woken) {
		if (err == -ETIMEDOUT)
			ws->stats.timeouts++;
		else
			ws->stats.signals++;
		if (restarts) {
			w->handoff.bo = NULL;
			w->pid = task_pid_nr(current);
			w->away_until =
				jiffies +
				msecs_to_jiffies(ACCMEM_WAIT_RESTART_MS);
			list_add_tail(&w->link, &ws->away);
			accmem_queue_suspend(&ws->queue, &w->q);
			waiters_run_queue(w->ws);
		} else {
			waiter_remove(w, err);
		}
	}
	spin_unlock(&accmem_waiters_lock);
	return !was_woken;
}

/**
 * accmem_waiters_resume() - take up a call again that a signal has interrupted
 * @ctx: the context
 * @req: the call
 *
 * Return: its waiter, which is to try; NULL if this is another call.
 */
struct accmem_waiter *accmem_waiters_resume(struct accmem_context *ctx,
					    const struct accmem_alloc *req)
{
	struct accmem_waiters *ws = ctx->account->waiters;
	struct accmem_waiter *w, *found = NULL;
	pid_t pid = task_pid_nr(current);

	spin_lock(&accmem_waiters_lock);
	list_for_each_entry(w, &ws->away, link) {
		if (w->ctx != ctx || w->pid != pid ||
		    memcmp(&w->req, req, sizeof(*req)))
			continue;
		found = w;
		list_del_init(&w->link);
		w->task = current;
		w->woken = true;
		accmem_queue_resume(&ws->queue, &w->q, ktime_get_ns());
		waiters_run_queue(w->ws);
		break;
	}
	spin_unlock(&accmem_waiters_lock);
	return found;
}

/* waiters that are away, of @ctx, or that have been for too long */
static void waiters_drop(struct accmem_waiters *ws, struct accmem_context *ctx)
{
	struct accmem_waiter *w, *next;

	lockdep_assert_held(&accmem_waiters_lock);
	list_for_each_entry_safe(w, next, &ws->away, link) {
		if (ctx ? w->ctx != ctx : time_before(jiffies, w->away_until))
			continue;
		list_del(&w->link);
		waiter_remove(w, -ERESTARTSYS);
		kfree(w);
	}
}

/**
 * accmem_waiters_drop_interrupted() - a context ends
 * @ctx: the context, in which nobody sleeps
 */
void accmem_waiters_drop_interrupted(struct accmem_context *ctx)
{
	spin_lock(&accmem_waiters_lock);
	waiters_drop(ctx->account->waiters, ctx);
	spin_unlock(&accmem_waiters_lock);
}

/**
 * accmem_waiters_shortfall() - what others than an account wait for
 * @account: the account; the lock of all waiters is held
 * @nr: out: how many waiters that are
 *
 * Return: bytes that are missing: what they need beyond what is free and not
 * promised, or where the pieces are too small, what the first of them needs.
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

	lockdep_assert_held(&accmem_waiters_lock);
	*nr = 0;
	while ((q = accmem_queue_walk(queue, q))) {
		const struct accmem_waiter *w = accmem_waiter_of(q);

		/* what one that tries needs is promised to it */
		if (!w->is_short || w->account == account ||
		    q->state == ACCMEM_QUEUE_AWAKE ||
		    q->state == ACCMEM_QUEUE_SERVED)
			continue;
		first = first ?: q->need;
		need += q->need;
		carveouts |= w->demand.carveouts;
		++*nr;
	}
	accmem_for_each_carveout(cv, ws->carveouts)
	{
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

	spin_lock(&accmem_waiters_lock);
	waiters_drop(ws, NULL);
	waiters_set_reserve(ws, now);
	accmem_queue_tick(&ws->queue, now);
	accmem_queue_came_back(&ws->queue);
	accmem_queue_limits_rose(&ws->queue);
	waiters_run_queue(ws);
	if (ws->queue.nr)
		waiters_schedule(ws);
	spin_unlock(&accmem_waiters_lock);
}

/**
 * accmem_waiters_init() - get ready for waiters
 * @ws: of a device
 * @carveouts: the carveouts of the device
 * @index: number of the device
 */
void accmem_waiters_init(struct accmem_waiters *ws,
			 struct accmem_carveouts *carveouts, unsigned int index)
{
	ws->carveouts = carveouts;
	ws->index = index;
	accmem_queue_init(&ws->queue, ACCMEM_WAIT_BYPASS_BOUND);
	INIT_LIST_HEAD(&ws->busy);
	INIT_LIST_HEAD(&ws->pressure_clients);
	INIT_LIST_HEAD(&ws->away);
	INIT_DELAYED_WORK(&ws->work, waiters_work);
}

/**
 * accmem_waiters_stop() - undo accmem_waiters_init()
 * @ws: of a device, which nobody waits for
 */
void accmem_waiters_stop(struct accmem_waiters *ws)
{
	cancel_delayed_work_sync(&ws->work);
}
