// SPDX-License-Identifier: GPL-2.0
/*
 * End of calls of CTAs: wake-ups, statistics and trace events.
 *
 * After each arbiter call, accmem_tmem_wake_done() walks the CTAs whose calls have
 * ended:
 *  - a sleeping caller is woken;
 *  - a queued call becomes a completion, which read() returns;
 *  - an interrupted call is left alone: the restarted system call collects the result.
 * The task that ends a call counts and traces the result of the call under the lock, in the
 * order of the arbiter's decisions: the task's own call first, then the calls of others. A
 * caller that wakes up later would trace a dealloc after the grant of the same columns to
 * another CTA.
 *
 * Then the polls on the SMs that have changed are checked (poll.c). Those who poll, read or
 * count completions are notified after the lock is dropped (notify.c). No other task is woken.
 *
 * Locking: accmem_tmem.lock is held in each function.
 */
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "internal.h"
#include "trace/tmem_trace.h"

/*
 * Return the duration of the wait for the trace events. If the events were disabled
 * when the wait began, the precision is a tick: an exact clock would cost time in
 * each wait.
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

/* Return true if the peer has not joined the call that is cancelled. */
static bool wake_is_alone(const struct accmem_columns_cta *c)
{
	return c->group == 2 && (!c->peer || !accmem_columns_waiting(c->peer));
}

static void wake_note_alone(struct accmem_cta *cta)
{
	/* accmem_tmem_report() reads the value without the lock. */
	WRITE_ONCE(cta->alone, wake_is_alone(&cta->c));
}

/**
 * accmem_cta_withdraw() - cancel a call that waits
 * @cta: the CTA
 *
 * The function records whether the peer had joined before it cancels the call: the
 * peer's call may end together with this call.
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_withdraw(struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	wake_note_alone(cta);
	accmem_columns_cancel(&cta->tmem->columns, &cta->c);
}

/* Count a failure. EAGAIN of a call whose deadline has passed becomes ETIMEDOUT. */
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
 * accmem_cta_conclude() - count and trace the result of a call
 * @cta: the CTA; after -EBUSY another call of the CTA is in progress
 * @call: the call
 * @err: the result of the arbiter, or the error that ended the wait
 *
 * Context: tmem->lock is held. Does not sleep.
 *
 * Return: the result of the call.
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
 * accmem_cta_complete() - make the completion of a queued call
 * @cta: the CTA
 * @err: the result of the call
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_complete(struct accmem_cta *cta, int err)
{
	lockdep_assert_held(&cta->tmem->lock);
	accmem_cta_check_hazards(cta);
	cta->result = accmem_cta_conclude(cta, &cta->call, err);
	if (!err && cta->call.op == ACCMEM_CTA_OP_ALLOC)
		cta->call.address = cta->c.address;
	cta->wait = ACCMEM_CTA_COMPLETED;
	accmem_cta_notify(cta);
}

/**
 * accmem_cta_end_interruption() - end the time in which a call has no caller
 * @cta: the CTA, in state ACCMEM_CTA_INTERRUPTED
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_end_interruption(struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	put_pid(cta->caller);
	WRITE_ONCE(cta->caller, NULL);
	cta->wait = ACCMEM_CTA_IDLE;
}

/**
 * accmem_cta_drop() - end an interrupted call that no thread will resume
 * @cta: the CTA
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_drop(struct accmem_cta *cta)
{
	int err = -EINTR;

	lockdep_assert_held(&cta->tmem->lock);
	accmem_cta_end_interruption(cta);
	if (!accmem_columns_cancel(&cta->tmem->columns, &cta->c))
		err = accmem_columns_collect(&cta->c);
	if (!accmem_cta_was_concluded(cta))
		accmem_cta_conclude(cta, &cta->call, err);
	accmem_columns_returned(&cta->c);
	accmem_cta_wake_poll(cta);
}

/**
 * accmem_cta_is_orphan() - check if the thread of an interrupted call has ended
 * @cta: the CTA, in state ACCMEM_CTA_INTERRUPTED
 *
 * Context: tmem->lock is held. Does not sleep.
 *
 * Return: true if it has, so that no thread will resume the call.
 */
bool accmem_cta_is_orphan(const struct accmem_cta *cta)
{
	struct task_struct *task;
	bool ended;

	lockdep_assert_held(&cta->tmem->lock);
	rcu_read_lock();
	task = pid_task(cta->caller, PIDTYPE_PID);
	/* Racy read: a thread that is found alive here may end at any time. */
	ended = !task || data_race(task->flags) & PF_EXITING;
	rcu_read_unlock();
	return ended;
}

/**
 * accmem_cta_drop_orphan() - end an interrupted call whose thread has ended
 * @cta: the CTA
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_drop_orphan(struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	if (cta->wait == ACCMEM_CTA_INTERRUPTED && accmem_cta_is_orphan(cta))
		accmem_cta_drop(cta);
}

/* Count and trace the result of a call whose caller sleeps or handles a signal. */
static void wake_conclude(struct accmem_cta *cta)
{
	accmem_cta_check_hazards(cta);
	cta->c.result = accmem_cta_conclude(cta, &cta->call, cta->c.result);
	cta->concluded = true;
}

/*
 * Conclude a call that has ended, and wake its caller. An interrupted call is collected
 * when the system call restarts.
 */
static void wake_one(struct accmem_cta *cta)
{
	if (cta->wait == ACCMEM_CTA_IN_QUEUE) {
		accmem_cta_complete(cta, accmem_columns_collect(&cta->c));
		return;
	}
	if (cta->c.call == ACCMEM_CALL_DONE)
		wake_conclude(cta);
	else
		/* Columns are reserved for the call, which needs its thread. */
		accmem_cta_drop_orphan(cta);
	if (cta->wait == ACCMEM_CTA_ASLEEP) {
		/*
		 * The task is valid: it sets another state under the lock before
		 * it returns.
		 */
		WRITE_ONCE(cta->done, true);
		wake_up_process(cta->waiter);
	}
}

/**
 * accmem_tmem_wake_done() - wake the callers whose calls have ended
 * @tmem: the Tensor Memory, after an arbiter call
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_tmem_wake_done(struct accmem_tmem *tmem)
{
	struct accmem_columns_sm *sm;
	struct accmem_columns_cta *c;

	lockdep_assert_held(&tmem->lock);
	while ((c = accmem_columns_next_done(&tmem->columns)))
		wake_one(accmem_to_cta(c));
	while ((sm = accmem_columns_next_changed(&tmem->columns)))
		accmem_tmem_check_polls(tmem, sm);
}
