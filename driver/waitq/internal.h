/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that only waitq/ uses.
 *
 * The feasibility check of waiters (demand.c), the wait times (times.c), runs of the queue
 * (run.c), waiters (waiters.c, interrupted.c), and a change of the limits (wake.c).
 */
#ifndef ACCMEM_WAITQ_INTERNAL_H
#define ACCMEM_WAITQ_INTERNAL_H

#include <linux/types.h>

struct accmem_carveout;
struct accmem_context;
struct accmem_queue_waiter;
struct accmem_waiter;
struct accmem_waiters;

/* demand.c */
u64 accmem_demand_free_bytes(struct accmem_carveout *cv);
bool accmem_demand_can_be_met(const struct accmem_queue_waiter *q, u64 promised,
			      void *arg);

/* times.c */
void accmem_wait_times_count(struct accmem_waiters *ws, u64 ns);

/* run.c */
void accmem_waiters_set_reserve(struct accmem_waiters *ws, u64 now);
void accmem_waiters_schedule(struct accmem_waiters *ws);
void accmem_waiter_wake(struct accmem_waiter *w);
void accmem_waiters_run_queue(struct accmem_waiters *ws);
void accmem_waiters_walk(struct accmem_waiters *ws, bool by_scan);

/* waiters.c */
void accmem_waiter_unlink(struct accmem_waiter *w, int err);

/* interrupted.c */
void accmem_waiters_drop(struct accmem_waiters *ws, struct accmem_context *ctx);

/* wake.c */
void accmem_waiters_limits_raised(void);

#endif /* ACCMEM_WAITQ_INTERNAL_H */
