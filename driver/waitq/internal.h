/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that only waitq/ uses.
 *
 * The feasibility check of waiters (demand.c), the wait times (times.c), the queue of a
 * device (waiters.c), and a change of the limits (wake.c).
 */
#ifndef ACCMEM_WAITQ_INTERNAL_H
#define ACCMEM_WAITQ_INTERNAL_H

#include <linux/types.h>

struct accmem_carveout;
struct accmem_queue_waiter;
struct accmem_waiters;

/* demand.c */
u64 accmem_demand_free_bytes(struct accmem_carveout *cv);
bool accmem_demand_can_be_met(const struct accmem_queue_waiter *q, u64 promised,
			      void *arg);

/* times.c */
void accmem_wait_times_count(struct accmem_waiters *ws, u64 ns);

/* waiters.c */
void accmem_waiters_run_queue(struct accmem_waiters *ws);

/* wake.c */
void accmem_waiters_limits_raised(void);

#endif /* ACCMEM_WAITQ_INTERNAL_H */
