// SPDX-License-Identifier: GPL-2.0
/*
 * How calls of CTAs end: who is woken, what is counted and traced.
 *
 * After each call on the arbiter, those whose calls it has ended are told: a
 * sleeper is woken, a queued call becomes a completion to be read, and one that a
 * signal has interrupted is left alone, for the call finds out when it is made
 * again. Nobody is woken for nothing.
 *
 * Locks: accmem_tmem.lock is held throughout.
 */
#include <linux/ktime.h>
#include <linux/poll.h>

#include "compat/compat.h"
#include "internal.h"
#include "trace/tmem_trace.h"

static bool wake_is_polled(struct accmem_cta *cta)
{
	/* who comes now takes the lock after it is in the wait queue */
	return waitqueue_active(&cta->poll);
}

/**
 * accmem_cta_would_grant() - would the alloc be granted that somebody polls for?
 * @cta: the CTA; the lock is held
 *
 * A result that nobody has come back for in time is in no call's way.
 */
bool accmem_cta_would_grant(struct accmem_cta *cta)
{
	enum accmem_columns_call call = cta->c.call;
	bool granted;

	if (cta->wait == ACCMEM_CTA_INTERRUPTED && accmem_cta_is_overdue(cta) &&
	    !accmem_columns_waiting(&cta->c))
		cta->c.call = ACCMEM_CALL_NONE;
	granted = accmem_columns_would_grant(&cta->tmem->columns, &cta->c,
					     cta->poll_columns);
	cta->c.call = call;
	return granted;
}

/* is there anything to read for those who poll? */
static void wake_pollers(struct accmem_tmem *tmem)
{
	struct accmem_cta *cta, *next;

	list_for_each_entry_safe(cta, next, &tmem->pollers, poll_link) {
		if (accmem_cta_is_queued(cta) || !wake_is_polled(cta)) {
			list_del_init(&cta->poll_link);
			continue;
		}
		if (!accmem_cta_would_grant(cta))
			continue;
		list_del_init(&cta->poll_link);
		wake_up_interruptible_all(&cta->poll);
	}
}

/*
 * One that a signal has interrupted finds out when it is made again, and one whose
 * caller runs when that goes on.
 */
static void wake_one(struct accmem_cta *cta)
{
	if (cta->wait == ACCMEM_CTA_ASLEEP) {
		/* it leaves with the lock taken, so its task is still there */
		WRITE_ONCE(cta->done, true);
		wake_up_process(cta->waiter);
	} else if (cta->wait == ACCMEM_CTA_IN_QUEUE) {
		accmem_cta_complete(cta, accmem_columns_collect(&cta->c));
	}
}

/**
 * accmem_tmem_wake_done() - tell those whose calls have ended, and nobody else
 * @tmem: the Tensor Memory, after a call on its arbiter
 */
void accmem_tmem_wake_done(struct accmem_tmem *tmem)
{
	struct accmem_columns_cta *c;

	lockdep_assert_held(&tmem->lock);
	while ((c = accmem_columns_next_done(&tmem->columns)))
		wake_one(accmem_to_cta(c));
	wake_pollers(tmem);
}

/*
 * How long the wait was, for the trace; to a tick, if nobody was tracing when it
 * began: clocks are not free.
 */
static u64 wake_waited_ns(const struct accmem_cta *cta)
{
	if (!cta->waited)
		return 0;
	if (cta->since_ns)
		return ktime_get_ns() - cta->since_ns;
	return jiffies64_to_nsecs(get_jiffies_64() - cta->since);
}

static noinline void wake_count_passes(struct accmem_cta *cta, u32 passed)
{
	cta->stats.bypasses += passed;
	trace_accmem_tmem_bypass(cta, passed);
}

static void wake_count_failure(struct accmem_cta *cta, int err)
{
	if (err == -ETIMEDOUT)
		accmem_tmem_count(cta, ACCMEM_STAT(timeouts));
	else if (err == -EDEADLK)
		accmem_tmem_count(cta, ACCMEM_STAT(deadlocks));
	else if (accmem_tmem_is_misuse(err))
		accmem_tmem_count(cta, ACCMEM_STAT(misuses));
}

/* the peer has not come to the call that is given up */
static bool wake_is_alone(const struct accmem_columns_cta *c)
{
	return c->group == 2 && (!c->peer || !accmem_columns_waiting(c->peer));
}

static void wake_note_alone(struct accmem_cta *cta)
{
	/* read without the lock, for a message */
	WRITE_ONCE(cta->alone, wake_is_alone(&cta->c));
}

/**
 * accmem_cta_withdraw() - give up a call that waits
 * @cta: the CTA; the lock is held
 *
 * Whether the peer has come is noted first: where it may not wait, its call ends
 * with this one.
 */
void accmem_cta_withdraw(struct accmem_cta *cta)
{
	wake_note_alone(cta);
	accmem_columns_cancel(&cta->tmem->columns, &cta->c);
}

/* a call that does not wait because its deadline has passed is out of time */
static noinline int wake_conclude_failure(struct accmem_cta *cta,
					  const struct accmem_cta_call *call,
					  int err)
{
	if (err == -EAGAIN && call->deadline_ns) {
		wake_note_alone(cta);
		err = -ETIMEDOUT;
	}
	wake_count_failure(cta, err);
	if (err == -ETIMEDOUT)
		trace_accmem_tmem_timeout(cta, call->columns, call->address,
					  wake_waited_ns(cta));
	else
		trace_accmem_tmem_fail(cta, call->columns, err);
	return err;
}

/**
 * accmem_cta_conclude() - count and trace what became of a call
 * @cta: the CTA, which may have another call in progress after -EBUSY
 * @call: the call
 * @err: as the arbiter has it, or why the wait was given up
 *
 * Return: the call's result.
 */
int accmem_cta_conclude(struct accmem_cta *cta,
			const struct accmem_cta_call *call, int err)
{
	lockdep_assert_held(&cta->tmem->lock);
	if (unlikely(err))
		return wake_conclude_failure(cta, call, err);
	if (call->op == ACCMEM_CTA_OP_ALLOC) {
		accmem_tmem_count(cta, ACCMEM_STAT(grants));
		if (unlikely(cta->c.passed))
			wake_count_passes(cta, cta->c.passed);
		if (trace_accmem_tmem_grant_enabled())
			trace_accmem_tmem_grant(cta, call->columns,
						cta->c.address,
						wake_waited_ns(cta));
	} else if (trace_accmem_tmem_dealloc_enabled()) {
		trace_accmem_tmem_dealloc(cta, call->columns, call->address,
					  wake_waited_ns(cta));
	}
	return 0;
}

/**
 * accmem_cta_complete() - a queued call has ended
 * @cta: the CTA
 * @err: with what
 */
void accmem_cta_complete(struct accmem_cta *cta, int err)
{
	accmem_cta_check_hazards(cta);
	cta->result = accmem_cta_conclude(cta, &cta->call, err);
	if (!err && cta->call.op == ACCMEM_CTA_OP_ALLOC)
		cta->call.address = cta->c.address;
	cta->wait = ACCMEM_CTA_COMPLETED;
	if (cta->eventfd)
		accmem_eventfd_signal(cta->eventfd);
	wake_up_interruptible_poll(&cta->poll, EPOLLIN | EPOLLRDNORM);
}

/**
 * accmem_cta_disconnect() - its peer has gone, or it was reset
 * @cta: the CTA: those who poll it are told, whatever they poll for
 */
void accmem_cta_disconnect(struct accmem_cta *cta)
{
	wake_up_interruptible_all(&cta->poll);
}
