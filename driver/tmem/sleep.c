// SPDX-License-Identifier: GPL-2.0
/*
 * Waits of CTAs' calls: in their callers, and in nobody.
 *
 * A caller sleeps without the lock until its call has ended, its deadline has
 * passed, a signal has come, or its process has closed the CTA. It takes the lock
 * again to leave: what the arbiter decided meanwhile wins.
 *
 * Where a signal has the call made again, the wait goes on without its caller,
 * who takes it up again or, after ACCMEM_CTA_RESTART_MS, has lost it. Queued
 * calls have no caller at all. Both end by a work item of the CTA.
 *
 * Locks: accmem_tmem.lock.
 */
#include <linux/fdtable.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>

#include "core/sleep.h"
#include "internal.h"
#include "trace/tmem_trace.h"

#define SLEEP_LOOK (24 * 3600 * HZ)

/* does anybody want to know how long a wait is? */
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
 * accmem_cta_begin_wait() - note when a call began to wait
 * @cta: the CTA, in whose call nobody sleeps
 */
void accmem_cta_begin_wait(struct accmem_cta *cta)
{
	sleep_begin(cta);
}

static int sleep_is_file(const void *wanted, struct file *file, unsigned int fd)
{
	return file == wanted;
}

/* has the process a descriptor? This looks at all that it has of any file. */
static bool sleep_has_descriptor(const struct accmem_cta *cta)
{
	return iterate_fd(current->files, 0, sleep_is_file, cta->file);
}

/**
 * accmem_cta_may_be_closed() - may a process have closed its descriptors of a CTA?
 * @cta: the CTA, in whose call the current process is; the lock is held
 *
 * Copies of a descriptor that other processes close count for it, and a program that
 * is started closes its copies: one that was seen after that is remembered.
 *
 * Return: false if the process has one; else accmem_cta_is_open() knows.
 */
bool accmem_cta_may_be_closed(const struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	return cta->nr_closed && (cta->last_files != current->files ||
				  cta->last_nr_closed != cta->nr_closed);
}

/**
 * accmem_cta_is_open() - has the current process a descriptor of a CTA?
 * @cta: the CTA, whose file the caller holds
 * @nr_closed: of the CTA, read under the lock before
 *
 * Return: whether it has.
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
 * Has the process closed its last descriptor? That it closed any is forgotten
 * first: one that is closed during the walk is looked for again.
 */
static bool sleep_was_cut_off(struct accmem_cta *cta)
{
	WRITE_ONCE(cta->recheck_fds, false);
	/* pairs with the lock of the table, under which a descriptor goes */
	smp_mb();
	return !sleep_has_descriptor(cta);
}

/* 0 when it is done, else why the wait is to be given up */
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

/* is the call over, as far as its caller has to wait? */
static bool sleep_is_over(const struct accmem_cta *cta)
{
	return !accmem_columns_waiting(&cta->c) ||
	       cta->c.call == ACCMEM_CALL_RESERVED;
}

static void sleep_expire(struct accmem_cta *cta, u64 delay)
{
	/* no timer is for longer than some days: it is set again then */
	delay = min_t(u64, delay, SLEEP_LOOK);
	cta->expires = get_jiffies_64() + delay;
	mod_delayed_work(system_highpri_wq, &cta->expiry, delay);
}

/* the wait goes on without its caller; false if it is to be given up */
static bool sleep_leave_behind(struct accmem_cta *cta,
			       const struct accmem_cta_call *call)
{
	unsigned long patience = msecs_to_jiffies(ACCMEM_CTA_RESTART_MS);

	if (!accmem_syscall_restarts())
		return false;
	cta->call = *call;
	cta->wait = ACCMEM_CTA_INTERRUPTED;
	WRITE_ONCE(cta->caller, get_pid(task_pid(current)));
	sleep_expire(cta, patience);
	return true;
}

/**
 * accmem_cta_sleep() - wait for a call to end, in its caller
 * @cta: the CTA
 * @call: its call, which waits
 * @deadline_ns: for how long, or 0
 *
 * Called, and returns, with the lock held. Drops it.
 *
 * Return: the result of the call, 0 of one that has a reservation to confirm, or
 * why the wait was given up. After -ERESTARTSYS the CTA may be
 * ACCMEM_CTA_INTERRUPTED: then the call goes on.
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
	cta->wait = ACCMEM_CTA_ASLEEP;
	cta->waiter = current;
	cta->done = false;
	cta->recheck_fds = false;
	may_be_closed = accmem_cta_may_be_closed(cta);
	accmem_tmem_wake(tmem);
	spin_unlock(&tmem->lock);

	/* closed between the call's beginning and here? */
	if (unlikely(may_be_closed) && !accmem_cta_is_open(cta, nr_closed))
		err = -ECANCELED;
	else
		err = sleep_until_done(cta, deadline_ns, &sleeps);

	spin_lock(&tmem->lock);
	cta->wait = ACCMEM_CTA_IDLE;
	if (sleep_is_over(cta))
		err = accmem_columns_collect(&cta->c);
	else if (!err)
		/* a reservation that is none any more: the wait goes on */
		err = -EINPROGRESS;
	else if (err != -ERESTARTSYS || !sleep_leave_behind(cta, call))
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

static void sleep_end_interruption(struct accmem_cta *cta)
{
	put_pid(cta->caller);
	WRITE_ONCE(cta->caller, NULL);
	cta->wait = ACCMEM_CTA_IDLE;
}

/* a wait that nobody will take up again; what it has led to has been, all the same */
static void sleep_drop(struct accmem_cta *cta)
{
	int err = -EINTR;

	sleep_end_interruption(cta);
	if (!accmem_columns_cancel(&cta->tmem->columns, &cta->c))
		err = accmem_columns_collect(&cta->c);
	accmem_cta_conclude(cta, &cta->call, err);
	accmem_columns_returned(&cta->c);
}

/**
 * accmem_cta_resume() - take up an interrupted call again
 * @cta: the CTA; the lock is held
 * @call: the call that is made now
 *
 * An interrupted call that is not this one is given up, if it is of the same
 * thread, or its time is over.
 *
 * Return: whether @call goes on where it was.
 */
bool accmem_cta_resume(struct accmem_cta *cta,
		       const struct accmem_cta_call *call)
{
	bool mine = accmem_cta_is_interrupted(cta);

	if (cta->wait != ACCMEM_CTA_INTERRUPTED)
		return false;
	if (mine && sleep_is_same_call(&cta->call, call)) {
		sleep_end_interruption(cta);
		return true;
	}
	if (mine || accmem_cta_is_overdue(cta))
		sleep_drop(cta);
	return false;
}

/**
 * accmem_cta_give_up() - nobody will take an interrupted call up again
 * @cta: the CTA; the lock is held
 */
void accmem_cta_give_up(struct accmem_cta *cta)
{
	if (cta->wait == ACCMEM_CTA_INTERRUPTED)
		sleep_drop(cta);
}

/**
 * accmem_cta_resumed() - how far a call has come that was taken up again
 * @cta: the CTA; the lock is held
 *
 * Return: its result; 0 of a reservation; -EINPROGRESS if it waits on.
 */
int accmem_cta_resumed(struct accmem_cta *cta)
{
	return sleep_is_over(cta) ? accmem_columns_collect(&cta->c) :
				    -EINPROGRESS;
}

/**
 * accmem_cta_expire_at() - end the wait of a call that nobody sleeps in
 * @cta: the CTA; the lock is held
 * @deadline_ns: when, or 0 for never
 */
void accmem_cta_expire_at(struct accmem_cta *cta, u64 deadline_ns)
{
	u64 now, delay = 0;

	if (!deadline_ns) {
		cta->expires = get_jiffies_64() + MAX_JIFFY_OFFSET;
		return;
	}
	now = ktime_get_ns();
	if (deadline_ns > now)
		delay = nsecs_to_jiffies64(deadline_ns - now) + 1;
	sleep_expire(cta, delay);
}

/* a queued call; but where ticks came late, there were fewer than the time has */
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
 * accmem_cta_expired() - the time of a call that nobody sleeps in is up
 * @work: accmem_cta.expiry
 *
 * The work item may be that of an older call: then it comes again. An interrupted
 * call that has a result holds up nobody, and keeps it for its thread.
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
			sleep_drop(cta);
	} else if (cta->wait == ACCMEM_CTA_IN_QUEUE) {
		sleep_time_out(cta);
	}
	accmem_tmem_wake(tmem);
out:
	spin_unlock(&tmem->lock);
}
