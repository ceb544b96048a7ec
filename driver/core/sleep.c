// SPDX-License-Identifier: GPL-2.0
/*
 * Sleeping calls: deadlines, and restarts of interrupted calls.
 *
 * accmem_sleep_until() sleeps until an absolute deadline. accmem_syscall_restarts()
 * predicts whether the kernel repeats a call that ends with -ERESTARTSYS, so that a
 * waiter can keep its place in the queue.
 *
 * Locks: siglock of the current process.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>

#include "core/sleep.h"

/**
 * accmem_sleep_until() - sleep until a deadline
 * @deadline_ns: time of CLOCK_MONOTONIC, not 0; without a deadline, use schedule()
 *
 * The caller has set the state of the task.
 *
 * Context: Process context. Sleeps.
 * Return: true if the task was woken; false if the deadline has passed.
 */
bool accmem_sleep_until(u64 deadline_ns)
{
	ktime_t expires = min_t(u64, deadline_ns, KTIME_MAX);

	return schedule_hrtimeout_range_clock(&expires, current->timer_slack_ns,
					      HRTIMER_MODE_ABS,
					      CLOCK_MONOTONIC);
}

/* Does the kernel repeat the call after the default action of the signal? */
static bool sleep_restarts_by_default(int sig)
{
	return sig_kernel_stop(sig) || sig_kernel_ignore(sig) || sig == SIGCONT;
}

/**
 * accmem_syscall_restarts() - predict whether -ERESTARTSYS repeats the call
 *
 * The call is not repeated if any pending signal that is not blocked has a handler
 * without SA_RESTART or kills the process. The prediction is wrong if a signal arrives
 * or an action changes before the signal is delivered.
 *
 * Context: Process context. Takes and releases siglock. Does not sleep.
 * Return: true if the kernel will repeat the call.
 */
bool accmem_syscall_restarts(void)
{
	struct sighand_struct *sighand =
		rcu_dereference_protected(current->sighand, true);
	const struct k_sigaction *action;
	sigset_t pending;
	bool restarts = true;
	int sig;

	if (fatal_signal_pending(current))
		return false;
	spin_lock_irq(&sighand->siglock);
	sigorsets(&pending, &current->pending.signal,
		  &current->signal->shared_pending.signal);
	sigandnsets(&pending, &pending, &current->blocked);
	for (sig = 1; sig <= _NSIG && restarts; sig++) {
		if (!sigismember(&pending, sig))
			continue;
		action = &sighand->action[sig - 1];
		if (action->sa.sa_handler == SIG_DFL)
			restarts = sleep_restarts_by_default(sig);
		else if (action->sa.sa_handler != SIG_IGN)
			restarts = action->sa.sa_flags & SA_RESTART;
	}
	spin_unlock_irq(&sighand->siglock);
	return restarts;
}
