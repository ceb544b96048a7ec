// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The queue of waiters agrees with its reference after each of many random calls, and
 * keeps to its rules in cases that are told one by one.
 */
#include <stdio.h>
#include <time.h>

#include "../campaign.h"
#include "accmem_queue.h"
#include "world.h"

#define OPS_A_WORLD 2000
#define BOUND 3

static int passed, failed;

static void verdict(const char *name, bool ok)
{
	printf("%s queue: %s\n", ok ? "ok" : "FAILED", name);
	if (ok)
		passed++;
	else
		failed++;
}

static void agrees_with_the_reference(u64 ops, u64 seed)
{
	campaign_worlds("queue", ops, seed, OPS_A_WORLD, queue_world_run);
	verdict("agrees with the reference, and keeps its rules", true);
}

/* so much is free */
static bool fits(const struct accmem_queue_waiter *w, u64 promised, void *arg)
{
	const u64 *free = arg;

	return *free >= promised + w->need;
}

static void sleep_in(struct accmem_queue *q, struct accmem_queue_waiter *w,
		     struct accmem_queue_user *user, u64 need)
{
	accmem_queue_enter(q, w, user, need);
	accmem_queue_sleep(q, w, false, 0);
}

static bool users_take_turns(void)
{
	struct accmem_queue_waiter a[3], b[2], *order[5];
	struct accmem_queue_user x = {}, y = {};
	struct accmem_queue q;
	u64 free = 5;
	int i;

	accmem_queue_init(&q, BOUND);
	for (i = 0; i < 3; i++)
		sleep_in(&q, &a[i], &x, 1);
	for (i = 0; i < 2; i++)
		sleep_in(&q, &b[i], &y, 1);
	accmem_queue_came_back(&q);
	for (i = 0; i < 5; i++)
		order[i] = accmem_queue_next(&q, i ? order[i - 1] : NULL, fits,
					     &free);
	return order[0] == &a[0] && order[1] == &b[0] && order[2] == &a[1] &&
	       order[3] == &b[1] && order[4] == &a[2] &&
	       !accmem_queue_next(&q, NULL, fits, &free);
}

/* a user with one request at a time has its turn after one of the other's */
static bool a_loop_has_every_second_turn(void)
{
	struct accmem_queue_waiter a[4], b;
	struct accmem_queue_user x = {}, y = {};
	struct accmem_queue q;
	u64 free = 1;
	int i;

	accmem_queue_init(&q, BOUND);
	for (i = 0; i < 4; i++)
		sleep_in(&q, &a[i], &x, 1);
	for (i = 0; i < 3; i++) {
		sleep_in(&q, &b, &y, 1);
		accmem_queue_came_back(&q);
		if (accmem_queue_next(&q, NULL, fits, &free) != &a[i])
			return false;
		accmem_queue_leave(&q, &a[i], true, 0);
		accmem_queue_came_back(&q);
		if (accmem_queue_next(&q, NULL, fits, &free) != &b)
			return false;
		accmem_queue_leave(&q, &b, true, 0);
	}
	return true;
}

static bool the_bound_reserves(void)
{
	struct accmem_queue_waiter large, small;
	struct accmem_queue_user x = {}, y = {};
	struct accmem_queue q;
	u64 free = 1;
	int i;

	accmem_queue_init(&q, BOUND);
	q.reserve_ns = 10;
	sleep_in(&q, &large, &x, 4);
	for (i = 0; i < BOUND; i++) {
		if (q.reserved)
			return false;
		accmem_queue_pass(&q, 100);
	}
	sleep_in(&q, &small, &y, 1);
	accmem_queue_came_back(&q);
	if (q.reserved != &large || accmem_queue_next(&q, NULL, fits, &free))
		return false;
	/* unserved, it ends, and its waiter is the last one */
	if (accmem_queue_tick(&q, 109) || !accmem_queue_tick(&q, 110))
		return false;
	if (q.reserved || accmem_queue_walk(&q, NULL) != &small ||
	    accmem_queue_next(&q, NULL, fits, &free) != &small)
		return false;
	accmem_queue_leave(&q, &small, true, 111);
	/* nothing is reserved for as long again */
	for (i = 0; i < BOUND; i++)
		accmem_queue_pass(&q, 112);
	if (q.reserved)
		return false;
	accmem_queue_tick(&q, 120);
	return q.reserved == &large;
}

/* a change during a try is seen after it */
static bool a_change_during_a_try_counts(void)
{
	struct accmem_queue_waiter w;
	struct accmem_queue_user x = {};
	struct accmem_queue q;
	u64 free = 1;

	accmem_queue_init(&q, BOUND);
	accmem_queue_enter(&q, &w, &x, 1);
	accmem_queue_begin(&q, &w);
	accmem_queue_came_back(&q);
	accmem_queue_sleep(&q, &w, false, 0);
	if (accmem_queue_next(&q, NULL, fits, &free) != &w)
		return false;
	accmem_queue_begin(&q, &w);
	accmem_queue_sleep(&q, &w, false, 0);
	if (accmem_queue_next(&q, NULL, fits, &free))
		return false;
	/* of a limit, too */
	accmem_queue_came_back(&q);
	accmem_queue_next(&q, NULL, fits, &free);
	accmem_queue_begin(&q, &w);
	accmem_queue_sank(&x);
	accmem_queue_sleep(&q, &w, true, 0);
	return accmem_queue_next(&q, NULL, fits, &free) == &w;
}

int main(int argc, char **argv)
{
	u64 ops = 300000, seed = time(NULL);

	if (!campaign_options(argc, argv, &ops, &seed))
		return 2;
	agrees_with_the_reference(ops, seed);
	verdict("users take turns", users_take_turns());
	verdict("a loop has every second turn", a_loop_has_every_second_turn());
	verdict("the bound reserves, for a time", the_bound_reserves());
	verdict("a change during a try counts", a_change_during_a_try_counts());
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
