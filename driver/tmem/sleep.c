// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting calls of CTAs: sleeping callers, interrupted calls, timeouts.
 *
 * A caller sleeps without the lock. The sleep ends when the call has ended, the
 * deadline has passed, a signal has arrived, or the process has closed its last
 * descriptor of the CTA. The caller then locks and reads the decision of the arbiter,
 * which has priority over the reason of the wake-up.
 *
 * If a signal restarts the system call, the call stays in the arbiter without a caller
 * (ACCMEM_CTA_INTERRUPTED). The restarted system call resumes the call and its place
 * in the queue. After ACCMEM_CTA_RESTART_MS a call that still waits is cancelled. A call
 * whose thread has ended is cancelled when another thread calls or polls the CTA, or when
 * the arbiter grants it.
 *
 * Queued calls (queue.c) have no caller. The work item accmem_cta.expiry ends a
 * queued or interrupted call that has timed out.
 *
 * Locking: accmem_tmem.lock.
 */
#include <linux/fdtable.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>

#include "core/carveout.h"
#include "core/sleep.h"
#include "internal.h"
#include "trace/tmem_trace.h"

#define SLEEP_CHECK (24 * 3600 * HZ)

/* Return true if a trace event needs the exact duration of a wait. */
static bool sleep_is_traced(void)
{
	return trace_accmem_tmem_grant_enabled() ||
	       trace_accmem_tmem_dealloc_enabled() ||
	       trace_accmem_tmem_timeout_enabled();
}

static __always_inline void sleep_begin(struct accmem_cta *cta)
{
	cta->since = get_jiffies_64();
	cta->since_ns = sleep_is_traced() ? ktime_get_ns() : 0;
	cta->waited = true;
}

/**
 * accmem_cta_begin_wait() - record when a queued call begins to wait
 * @cta: the CTA
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_begin_wait(struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	sleep_begin(cta);
}

static int sleep_is_file(const void *wanted, struct file *file, unsigned int fd)
{
	return file == wanted;
}

/*
 * Return true if the process has a descriptor of the CTA. Walks the descriptor
 * table.
 */
static bool sleep_has_descriptor(const struct accmem_cta *cta)
{
	return iterate_fd(current->files, 0, sleep_is_file, cta->file);
}

/**
 * accmem_cta_may_be_closed() - check if descriptors of a CTA may have been closed
 * @cta: the CTA, in whose call the current process is
 *
 * nr_closed counts the descriptors that any process closes, including the copies that
 * exec() closes. The result is false if no descriptor was closed, or if
 * accmem_cta_is_open() has found a descriptor of this process since then.
 *
 * Context: tmem->lock is held. Does not sleep.
 *
 * Return: false if the process has a descriptor. After true, accmem_cta_is_open()
 * finds out.
 */
bool accmem_cta_may_be_closed(const struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	return cta->nr_closed && (cta->last_files != current->files ||
				  cta->last_nr_closed != cta->nr_closed);
}

/**
 * accmem_cta_is_open() - search for a descriptor of a CTA in the current process
 * @cta: the CTA, whose file the caller holds
 * @nr_closed: cta->nr_closed, read under the lock before
 *
 * Context: Process context. Takes and releases files->file_lock, then tmem->lock. Does
 * not sleep.
 *
 * Return: true if the process has a descriptor.
 */
bool accmem_cta_is_open(struct accmem_cta *cta, unsigned int nr_closed)
{
	if (!sleep_has_descriptor(cta))
		return false;
	spin_lock(&cta->tmem->lock);
	cta->last_files = current->files;
	cta->last_nr_closed = nr_closed;
	spin_unlock(&cta->tmem->lock);
	return true;
}

/*
 * Return true if the process has closed its last descriptor. recheck_fds is cleared
 * before the search: a close during the search sets it again, and the search is
 * repeated.
 */
static bool sleep_was_cut_off(struct accmem_cta *cta)
{
	WRITE_ONCE(cta->recheck_fds, false);
	/* Pairs with files->file_lock, under which a descriptor is removed. */
	smp_mb();
	return !sleep_has_descriptor(cta);
}

/* Sleep until the call has ended. Return 0, or the error that ends the wait. */
static int sleep_until_done(struct accmem_cta *cta, u64 deadline_ns,
			    u64 *sleeps)
{
	int err = 0;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (READ_ONCE(cta->done) || err)
			break;
		if (READ_ONCE(cta->recheck_fds)) {
			__set_current_state(TASK_RUNNING);
			if (sleep_was_cut_off(cta)) {
				err = -ECANCELED;
				break;
			}
			/* The wake-up was for the search only: do not count it. */
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
		else if (!accmem_sleep_until(deadline_ns))
			err = -ETIMEDOUT;
	}
	__set_current_state(TASK_RUNNING);
	return err;
}

static void sleep_count(struct accmem_cta *cta, u64 sleeps, int err)
{
	accmem_tmem_count(cta, ACCMEM_STAT(waits));
	cta->stats.wakeups += sleeps;
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

/* Return true if the caller need not wait: the call has ended, or has a reservation. */
static bool sleep_is_over(const struct accmem_cta *cta)
{
	return !accmem_columns_waiting(&cta->c) ||
	       cta->c.call == ACCMEM_CALL_RESERVED;
}

static void sleep_expire(struct accmem_cta *cta, u64 delay)
{
	/* A timer of at most a day: accmem_cta_expired() sets the timer again. */
	delay = min_t(u64, delay, SLEEP_CHECK);
	cta->expires = get_jiffies_64() + delay;
	mod_delayed_work(accmem_wq, &cta->expiry, delay);
}

/*
 * Leave the call in the arbiter without its caller. Return false if the system call
 * will not restart, so that the call must be cancelled.
 */
static bool sleep_leave_behind(struct accmem_cta *cta)
{
	unsigned long patience = msecs_to_jiffies(ACCMEM_CTA_RESTART_MS);

	if (!accmem_syscall_restarts())
		return false;
	cta->wait = ACCMEM_CTA_INTERRUPTED;
	WRITE_ONCE(cta->caller, get_pid(task_pid(current)));
	sleep_expire(cta, patience);
	return true;
}

/**
 * accmem_cta_sleep() - sleep until a call has ended
 * @cta: the CTA
 * @call: the call, which waits in the arbiter
 * @deadline_ns: deadline on CLOCK_MONOTONIC, or 0 for none
 *
 * Context: Process context. tmem->lock is held at entry and return, and dropped for
 * the sleep.
 *
 * Return: the result of the call; 0 if the call has a reservation to confirm;
 * -EINPROGRESS if the peer has cancelled the reservation, so that the call still
 * waits; or the error that ended the wait. After -ERESTARTSYS the CTA may be
 * ACCMEM_CTA_INTERRUPTED: then the call is still in the arbiter.
 */
int accmem_cta_sleep(struct accmem_cta *cta, const struct accmem_cta_call *call,
		     u64 deadline_ns) __must_hold(&cta->tmem->lock)
{
	struct accmem_tmem *tmem = cta->tmem;
	unsigned int nr_closed = cta->nr_closed;
	bool may_be_closed;
	u64 sleeps = 0;
	int err;

	lockdep_assert_held(&tmem->lock);
	if (!cta->waited)
		sleep_begin(cta);
	cta->call = *call;
	cta->wait = ACCMEM_CTA_ASLEEP;
	cta->waiter = current;
	cta->done = false;
	cta->recheck_fds = false;
	may_be_closed = accmem_cta_may_be_closed(cta);
	accmem_tmem_wake(tmem);
	accmem_tmem_unlock(tmem);

	/* A descriptor may have been closed since the system call began. */
	if (unlikely(may_be_closed) && !accmem_cta_is_open(cta, nr_closed))
		err = -ECANCELED;
	else
		err = sleep_until_done(cta, deadline_ns, &sleeps);

	spin_lock(&tmem->lock);
	cta->wait = ACCMEM_CTA_IDLE;
	if (sleep_is_over(cta))
		err = accmem_columns_collect(&cta->c);
	else if (!err)
		/* The reservation was cancelled: the call still waits. */
		err = -EINPROGRESS;
	else if (err != -ERESTARTSYS || !sleep_leave_behind(cta))
		accmem_cta_withdraw(cta);
	if (sleeps)
		sleep_count(cta, sleeps, err);
	return err;
}

static bool sleep_is_same_call(const struct accmem_cta_call *a,
			       const struct accmem_cta_call *b)
{
	return a->op == b->op && a->flags == b->flags &&
	       a->columns == b->columns && a->address == b->address &&
	       a->deadline_ns == b->deadline_ns &&
	       a->destination == b->destination;
}

/**
 * accmem_cta_resume() - resume an interrupted call
 * @cta: the CTA
 * @call: the call that the current thread makes
 *
 * An interrupted call that differs from @call is ended in three cases: it is of the
 * current thread, or of a thread that has ended, or it has timed out.
 *
 * Context: tmem->lock is held. Does not sleep.
 *
 * Return: true if @call was interrupted and now has its caller again.
 */
bool accmem_cta_resume(struct accmem_cta *cta,
		       const struct accmem_cta_call *call)
{
	bool mine = accmem_cta_is_interrupted(cta);

	lockdep_assert_held(&cta->tmem->lock);
	if (cta->wait != ACCMEM_CTA_INTERRUPTED)
		return false;
	if (mine && sleep_is_same_call(&cta->call, call)) {
		accmem_cta_end_interruption(cta);
		return true;
	}
	if (mine || accmem_cta_is_overdue(cta) || accmem_cta_is_orphan(cta))
		accmem_cta_drop(cta);
	return false;
}

/**
 * accmem_cta_give_up() - end an interrupted call that no thread will resume
 * @cta: the CTA
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_give_up(struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	if (cta->wait == ACCMEM_CTA_INTERRUPTED)
		accmem_cta_drop(cta);
}

/**
 * accmem_cta_resumed() - get the state of a call that was resumed
 * @cta: the CTA
 *
 * Context: tmem->lock is held. Does not sleep.
 *
 * Return: the call's result; 0 for a reservation; -EINPROGRESS if the call waits.
 */
int accmem_cta_resumed(struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	return sleep_is_over(cta) ? accmem_columns_collect(&cta->c) :
				    -EINPROGRESS;
}

/**
 * accmem_cta_expire_at() - set the deadline of a queued call
 * @cta: the CTA
 * @deadline_ns: deadline on CLOCK_MONOTONIC, or 0 for none
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_expire_at(struct accmem_cta *cta, u64 deadline_ns)
{
	u64 now, delay = 0;

	lockdep_assert_held(&cta->tmem->lock);
	if (!deadline_ns) {
		cta->expires = get_jiffies_64() + MAX_JIFFY_OFFSET;
		return;
	}
	now = ktime_get_ns();
	if (deadline_ns > now)
		delay = nsecs_to_jiffies64(deadline_ns - now) + 1;
	sleep_expire(cta, delay);
}

/*
 * Time out a queued call. The timer counts ticks and may fire before the deadline on
 * CLOCK_MONOTONIC: set the timer again then.
 */
static void sleep_time_out(struct accmem_cta *cta)
{
	if (ktime_get_ns() < cta->call.deadline_ns) {
		accmem_cta_expire_at(cta, cta->call.deadline_ns);
		return;
	}
	accmem_cta_withdraw(cta);
	accmem_cta_complete(cta, -ETIMEDOUT);
}

/**
 * accmem_cta_expired() - time out a queued or interrupted call
 * @work: accmem_cta.expiry
 *
 * The work item may have been queued for an older call of the CTA: then the call in
 * progress is not overdue, and has a work item queued if it needs one. An interrupted
 * call that has a result is not ended: the result is for its thread.
 *
 * Context: Workqueue. Takes and releases tmem->lock. Does not sleep.
 */
void accmem_cta_expired(struct work_struct *work)
{
	struct accmem_cta *cta =
		container_of(to_delayed_work(work), struct accmem_cta, expiry);
	struct accmem_tmem *tmem = cta->tmem;

	spin_lock(&tmem->lock);
	if (!accmem_cta_is_overdue(cta))
		goto out;
	if (cta->wait == ACCMEM_CTA_INTERRUPTED) {
		if (accmem_columns_waiting(&cta->c))
			accmem_cta_drop(cta);
	} else if (cta->wait == ACCMEM_CTA_IN_QUEUE) {
		sleep_time_out(cta);
	}
	accmem_tmem_wake(tmem);
	accmem_cta_wake_poll(cta);
	accmem_tmem_notify_later(tmem);
out:
	spin_unlock(&tmem->lock);
}
