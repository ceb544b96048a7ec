// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of a CTA: alloc, dealloc, relinquish, query, and their waits.
 *
 * The arbiter decides under the lock; a call that has to wait names its task
 * as the CTA's waiter and sleeps without the lock until it is marked done, the
 * deadline has passed, a signal has come, or its process has closed the CTA. It
 * takes the lock again to leave: what the arbiter decided meanwhile wins.
 *
 * Locks: accmem_tmem.lock, never while the user's memory is touched.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "context.h"
#include "tmem.h"
#include "tmem_trace.h"

/* may the call wait? not when its deadline has passed */
static bool may_wait(u32 flags, u64 deadline_ns)
{
	if (flags & ACCMEM_CTA_NONBLOCK)
		return false;
	return !deadline_ns || ktime_get_ns() < deadline_ns;
}

/*
 * Has the process closed its last descriptor? That it closed any is forgotten
 * first: one that is closed during the walk is looked for again.
 */
static bool was_cut_off(struct accmem_cta *cta)
{
	WRITE_ONCE(cta->look, false);
	/* pairs with the lock of the table, under which a descriptor goes */
	smp_mb();
	return !accmem_cta_is_open(cta);
}

/* 0 when it is done, else why the wait is to be given up */
static int sleep_until_done(struct accmem_cta *cta, u64 deadline_ns, u64 *sleeps)
{
	ktime_t expires = min_t(u64, deadline_ns, KTIME_MAX);
	int err = 0;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (READ_ONCE(cta->done) || err)
			break;
		if (READ_ONCE(cta->look)) {
			__set_current_state(TASK_RUNNING);
			if (was_cut_off(cta)) {
				err = -ECANCELED;
				break;
			}
			/* the sleep goes on */
			if (*sleeps)
				--*sleeps;
			continue;
		}
		if (signal_pending(current)) {
			err = -ERESTARTSYS;
			break;
		}
		++*sleeps;
		if (!deadline_ns)
			schedule();
		else if (!schedule_hrtimeout_range_clock(&expires,
							 current->timer_slack_ns,
							 HRTIMER_MODE_ABS,
							 CLOCK_MONOTONIC))
			err = -ETIMEDOUT;
	}
	__set_current_state(TASK_RUNNING);
	return err;
}

static void count_sleep(struct accmem_cta *cta, u64 sleeps, int err)
{
	accmem_tmem_count(cta, ACCMEM_STAT(waits));
	cta->stats.wakeups += sleeps;
	cta->tmem->stats.wakeups += sleeps;
	switch (err) {
	case 0:
		accmem_tmem_count(cta, ACCMEM_STAT(woken_grant));
		break;
	case -ETIMEDOUT:
		accmem_tmem_count(cta, ACCMEM_STAT(woken_timeout));
		break;
	case -ERESTARTSYS:
		accmem_tmem_count(cta, ACCMEM_STAT(woken_signal));
		break;
	case -EDEADLK:
		accmem_tmem_count(cta, ACCMEM_STAT(woken_deadlock));
		break;
	case -ECONNRESET:
		accmem_tmem_count(cta, ACCMEM_STAT(woken_reset));
		break;
	default:
		accmem_tmem_count(cta, ACCMEM_STAT(woken_exit));
		break;
	}
}

/* does anybody want to know how long a wait is? */
static bool is_traced(void)
{
	return trace_accmem_tmem_grant_enabled() ||
	       trace_accmem_tmem_dealloc_enabled() ||
	       trace_accmem_tmem_timeout_enabled();
}

/* called, and returns, with the lock held; the result of the call */
static int wait_for_result(struct accmem_cta *cta, u64 deadline_ns)
	__must_hold(&cta->tmem->lock)
{
	struct accmem_tmem *tmem = cta->tmem;
	u64 sleeps = 0;
	bool was_closed;
	int err;

	lockdep_assert_held(&tmem->lock);
	cta->waiter = current;
	cta->done = false;
	cta->look = false;
	was_closed = cta->was_closed;
	cta->since = get_jiffies_64();
	cta->since_ns = is_traced() ? ktime_get_ns() : 0;
	accmem_tmem_wake(tmem);
	spin_unlock(&tmem->lock);

	/* closed between the call's beginning and here? */
	if (unlikely(was_closed) && !accmem_cta_is_open(cta))
		err = -ECANCELED;
	else
		err = sleep_until_done(cta, deadline_ns, &sleeps);

	spin_lock(&tmem->lock);
	if (!accmem_columns_cancel(&tmem->columns, &cta->c))
		err = accmem_columns_collect(&cta->c);
	cta->waiter = NULL;
	if (sleeps)
		count_sleep(cta, sleeps, err);
	return err;
}

/* the peer has not come to the call that is given up; under the lock */
static bool is_alone(const struct accmem_columns_cta *c)
{
	return c->group == 2 && (!c->peer || !accmem_columns_waiting(c->peer));
}

/*
 * Counts what became of a call, under the lock. What the caller is told, and
 * why: whoever did not wait has met his deadline, too.
 */
static int settle_call(struct accmem_cta *cta, u64 deadline_ns, int err,
		       bool *alone)
{
	if (err == -EAGAIN && deadline_ns)
		err = -ETIMEDOUT;
	*alone = err == -ETIMEDOUT && is_alone(&cta->c);
	if (err == -ETIMEDOUT)
		accmem_tmem_count(cta, ACCMEM_STAT(timeouts));
	else if (err == -EDEADLK)
		accmem_tmem_count(cta, ACCMEM_STAT(deadlocks));
	else if (accmem_tmem_is_misuse(err))
		accmem_tmem_count(cta, ACCMEM_STAT(misuses));
	return err;
}

/* the alloc was granted: counts it; under the lock */
static void granted(struct accmem_cta *cta)
{
	u32 passed = cta->c.passed;

	accmem_tmem_count(cta, ACCMEM_STAT(grants));
	if (!passed)
		return;
	cta->stats.bypasses += passed;
	cta->tmem->stats.bypasses += passed;
	trace_accmem_tmem_bypass(cta, passed);
}

/*
 * How long the last wait was, for the trace; to a tick, if nobody was tracing
 * when it began: clocks are not free.
 */
static u64 waited_ns(const struct accmem_cta *cta)
{
	if (!is_traced())
		return 0;
	if (cta->since_ns)
		return ktime_get_ns() - cta->since_ns;
	return jiffies64_to_nsecs(get_jiffies_64() - cta->since);
}

static void trace_failure(struct accmem_cta *cta, u32 columns, u32 address,
			  u64 waited, int err)
{
	if (err == -ETIMEDOUT)
		trace_accmem_tmem_timeout(cta, columns, address, waited);
	else
		trace_accmem_tmem_fail(cta, columns, err);
}

static int alloc_columns(struct accmem_cta *cta,
			 const struct accmem_cta_alloc *req, u32 *address,
			 bool *alone)
{
	struct accmem_tmem *tmem = cta->tmem;
	bool wait = may_wait(req->flags, req->deadline_ns);
	u32 columns = req->columns;
	u64 waited = 0;
	int err;

	spin_lock(&tmem->lock);
	err = accmem_columns_alloc(&tmem->columns, &cta->c, columns, wait);
	if (err == -EINPROGRESS) {
		err = wait_for_result(cta, req->deadline_ns);
		waited = waited_ns(cta);
	}
	accmem_tmem_wake(tmem);
	if (!err) {
		*address = cta->c.address;
		granted(cta);
	} else {
		if (err == -EAGAIN)
			cta->poll_columns = columns;
		err = settle_call(cta, req->deadline_ns, err, alone);
	}
	spin_unlock(&tmem->lock);
	if (err)
		trace_failure(cta, columns, 0, waited, err);
	else
		trace_accmem_tmem_grant(cta, columns, *address, waited);
	return err;
}

static void take_back(struct accmem_cta *cta, u32 address, u32 columns)
{
	struct accmem_tmem *tmem = cta->tmem;

	spin_lock(&tmem->lock);
	accmem_columns_undo(&tmem->columns, &cta->c, address, columns);
	accmem_tmem_wake(tmem);
	spin_unlock(&tmem->lock);
}

static int bad_destination(struct accmem_cta *cta)
{
	spin_lock(&cta->tmem->lock);
	accmem_tmem_count(cta, ACCMEM_STAT(misuses));
	spin_unlock(&cta->tmem->lock);
	return -EFAULT;
}

/**
 * accmem_cta_alloc() - allocate columns and store their address
 * @cta: the CTA
 * @req: checked for flags and reserved fields
 *
 * The destination is written before, too: a bad one is found before the wait,
 * and before the peer has its columns.
 *
 * Return: 0, or an error as <linux/accmem.h> lists them.
 */
int accmem_cta_alloc(struct accmem_cta *cta, const struct accmem_cta_alloc *req)
{
	u32 __user *destination = u64_to_user_ptr(req->destination);
	bool alone = false;
	u32 address = 0;
	int err;

	trace_accmem_tmem_request(cta, req->columns);
	if (put_user(address, destination)) {
		err = bad_destination(cta);
		goto report;
	}
	err = alloc_columns(cta, req, &address, &alone);
	if (err)
		goto report;
	if (unlikely(put_user(address, destination))) {
		take_back(cta, address, req->columns);
		err = bad_destination(cta);
		goto report;
	}
	return 0;

report:
	accmem_tmem_report(cta, ACCMEM_CTA_OP_ALLOC, 0, req->columns, err,
			   alone);
	return err;
}

/**
 * accmem_cta_dealloc() - give columns back
 * @cta: the CTA
 * @req: checked for flags
 *
 * Return: 0, or an error as <linux/accmem.h> lists them.
 */
int accmem_cta_dealloc(struct accmem_cta *cta,
		       const struct accmem_cta_dealloc *req)
{
	struct accmem_tmem *tmem = cta->tmem;
	bool wait = may_wait(req->flags, req->deadline_ns);
	bool alone = false;
	u64 waited = 0;
	int err;

	spin_lock(&tmem->lock);
	err = accmem_columns_dealloc(&tmem->columns, &cta->c, req->address,
				     req->columns, wait);
	if (err == -EINPROGRESS) {
		err = wait_for_result(cta, req->deadline_ns);
		waited = waited_ns(cta);
	}
	accmem_tmem_wake(tmem);
	if (err)
		err = settle_call(cta, req->deadline_ns, err, &alone);
	spin_unlock(&tmem->lock);
	if (!err) {
		trace_accmem_tmem_dealloc(cta, req->columns, req->address,
					  waited);
		return 0;
	}
	trace_failure(cta, req->columns, req->address, waited, err);
	accmem_tmem_report(cta, ACCMEM_CTA_OP_DEALLOC, req->address,
			   req->columns, err, alone);
	return err;
}

/**
 * accmem_cta_relinquish() - give up the right to allocate
 * @cta: the CTA
 *
 * Return: 0; -EPROTO when the peer was waiting in alloc; -ECONNRESET.
 */
int accmem_cta_relinquish(struct accmem_cta *cta)
{
	struct accmem_tmem *tmem = cta->tmem;
	bool alone;
	int err;

	spin_lock(&tmem->lock);
	err = accmem_columns_relinquish(&tmem->columns, &cta->c);
	accmem_tmem_wake(tmem);
	if (err)
		err = settle_call(cta, 0, err, &alone);
	spin_unlock(&tmem->lock);
	if (err)
		accmem_tmem_report(cta, ACCMEM_CTA_OP_RELINQUISH, 0, 0, err,
				   false);
	return err;
}

static u32 state_bits(const struct accmem_columns *c,
		      const struct accmem_columns_cta *cta)
{
	return (cta->relinquished ? ACCMEM_CTA_RELINQUISHED : 0) |
	       (c->sms[cta->sm].permit == cta ? ACCMEM_CTA_PERMIT : 0) |
	       (accmem_columns_waiting(cta) ? ACCMEM_CTA_WAITING : 0) |
	       (cta->peer ? ACCMEM_CTA_PEER : 0) |
	       (cta->peer_gone ? ACCMEM_CTA_PEER_GONE : 0) |
	       (c->ended ? ACCMEM_CTA_RESET : 0);
}

/**
 * accmem_cta_query() - describe a CTA and its SM
 * @cta: the CTA
 * @req: filled in
 */
void accmem_cta_query(struct accmem_cta *cta, struct accmem_cta_query *req)
{
	struct accmem_tmem *tmem = cta->tmem;
	const struct accmem_columns_cta *lead = &cta->c;

	req->launch = cta->c.launch;
	req->cluster = cta->c.cluster;
	req->rank = cta->c.rank;
	req->sm = cta->c.sm;
	req->cta_group = cta->c.group;
	req->columns = tmem->columns.columns;
	spin_lock(&tmem->lock);
	if (cta->c.call == ACCMEM_CALL_QUEUED && !cta->c.leads)
		lead = cta->c.peer;
	req->state = state_bits(&tmem->columns, &cta->c);
	req->held = hweight64(cta->c.held) * ACCMEM_TMEM_UNIT;
	req->last = cta->c.last;
	req->free = accmem_columns_free(&tmem->columns, cta->c.sm);
	req->waiting = tmem->columns.nr_queued;
	req->bypassed = lead->call == ACCMEM_CALL_QUEUED ? lead->bypassed : 0;
	spin_unlock(&tmem->lock);
}
