// SPDX-License-Identifier: GPL-2.0
/*
 * Wait times: a histogram of how long ALLOC calls have waited.
 *
 * Each device has one. A call is counted when its wait ends: with memory, at its
 * deadline, by a signal, or with another error. A call that the kernel repeats after a
 * signal is one wait, and its length contains the time that the signal took. If the program
 * does not repeat such a call, the wait ends when the waiter is dropped, a second later. The
 * bounds of the buckets are fixed, so that the histogram has a fixed size.
 *
 * Locking: accmem_waiters.lock guards the counters.
 */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>

#include "internal.h"
#include "waitq/waiters.h"

/* Upper bound of a bucket. The last bucket has none. */
static u64 times_bound_ms(unsigned int bucket)
{
	return 1ull << (2 * bucket);
}

/**
 * accmem_wait_times_count() - count a wait that has ended
 * @ws: waiters of the device
 * @ns: length of the wait
 *
 * Context: ws->lock is held.
 */
void accmem_wait_times_count(struct accmem_waiters *ws, u64 ns)
{
	unsigned int bucket = 0;

	lockdep_assert_held(&ws->lock);
	while (bucket < ACCMEM_NR_WAIT_TIMES - 1 &&
	       ns > times_bound_ms(bucket) * NSEC_PER_MSEC)
		bucket++;
	ws->times.nr[bucket]++;
	ws->times.sum_ns += ns;
}

/**
 * accmem_wait_times_show() - print the wait times of a device
 * @m: file
 * @ws: waiters of the device
 *
 * Context: Process context. Takes and releases ws->lock.
 */
void accmem_wait_times_show(struct seq_file *m, struct accmem_waiters *ws)
{
	struct accmem_wait_times times;
	unsigned int i;

	spin_lock(&ws->lock);
	times = ws->times;
	spin_unlock(&ws->lock);
	for (i = 0; i < ACCMEM_NR_WAIT_TIMES - 1; i++)
		seq_printf(m, "%llu %llu\n", times_bound_ms(i), times.nr[i]);
	seq_printf(m, "inf %llu\nsum_ns %llu\n", times.nr[i], times.sum_ns);
}
