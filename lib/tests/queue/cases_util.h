/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the cases of the queue share. */
#ifndef ACCMEM_QUEUE_CASES_UTIL_H
#define ACCMEM_QUEUE_CASES_UTIL_H

#include "lib/queue/queue.h"

#define GRANULE 4096ull
#define BOUND 3

/* so much is free */
static bool fits(const struct accmem_queue_waiter *w, u64 promised, void *arg)
{
	const u64 *free = arg;

	return *free >= promised && *free - promised >= w->need;
}

typedef bool fits_fn(const struct accmem_queue_waiter *w, u64 promised,
		     void *arg);

/* the first waiter to wake, of all */
static struct accmem_queue_waiter *next(struct accmem_queue *q, fits_fn *may,
					void *arg)
{
	struct accmem_queue_waiter *at = accmem_queue_walk(q, NULL);
	unsigned int steps = ACCMEM_QUEUE_STEPS;

	return accmem_queue_next(q, &at, &steps, may, arg);
}

static void sleep_in(struct accmem_queue *q, struct accmem_queue_waiter *w,
		     struct accmem_queue_user *user, u64 need)
{
	accmem_queue_enter(q, w, user, need);
	accmem_queue_sleep(q, w, false, 0);
}

#endif /* ACCMEM_QUEUE_CASES_UTIL_H */
