// SPDX-License-Identifier: GPL-2.0
/*
 * What calls that sleep share: a deadline to sleep to, and whether one that a signal
 * interrupts will be made again.
 *
 * Locks: the current process's siglock.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>

#include "core/sleep.h"

/**
 * accmem_sleep_until() - sleep, in the state that the caller has set
 * @deadline_ns: CLOCK_MONOTONIC, not 0: without a deadline, call schedule()
 *
 * Return: whether something woke the caller; false when the deadline has passed.
 */
bool accmem_sleep_until(u64 deadline_ns)
{
	ktime_t expires = min_t(u64, deadline_ns, KTIME_MAX);

	return schedule_hrtimeout_range_clock(&expires, current->timer_slack_ns,
					      HRTIMER_MODE_ABS,
					      CLOCK_MONOTONIC);
}

/* does the default action of a signal let the call be made again? */
static bool sleep_restarts_by_default(int sig)
{
	return sig_kernel_stop(sig) || sig_kernel_ignore(sig) || sig == SIGCONT;
}

/**
 * accmem_syscall_restarts() - will a call be made again that ends with -ERESTARTSYS?
 *
 * Not if the action of any signal that is to be delivered is a handler without
 * SA_RESTART, or death. Where that changes before the signal is delivered, the
 * answer was wrong.
 *
 * Return: whether it will.
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
