/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Cases of the queue: reservations, and what a walk finds. */
#ifndef ACCMEM_QUEUE_RESERVE_CASES_H
#define ACCMEM_QUEUE_RESERVE_CASES_H

#include "lib/tests/queue/cases_util.h"

#define RESERVE 1000 /* and 5, if others are refused and nothing is gained */

static bool the_bound_reserves(void)
{
	struct accmem_queue_waiter large, small;
	struct accmem_queue_user x = {}, y = {};
	struct accmem_queue q;
	u64 free = 1;
	int i;

	accmem_queue_init(&q, BOUND);
	q.reserve_ns = RESERVE;
	sleep_in(&q, &large, &x, 4);
	for (i = 0; i < BOUND; i++) {
		if (q.reserved)
			return false;
		accmem_queue_count_bypass(&q, &y, 1, 100);
	}
	sleep_in(&q, &small, &y, 1);
	accmem_queue_memory_freed(&q, &y, 1);
	if (q.reserved != &large || next(&q, fits, &free))
		return false;
	/* unserved, it ends, and its waiter is the last one */
	if (accmem_queue_tick(&q, 1099) || !accmem_queue_tick(&q, 1100))
		return false;
	if (q.reserved || accmem_queue_walk(&q, NULL) != &small ||
	    next(&q, fits, &free) != &small)
		return false;
	accmem_queue_leave(&q, &small, true, 1101);
	/* nothing is reserved for as long again */
	for (i = 0; i < BOUND; i++)
		accmem_queue_count_bypass(&q, &y, 1, 1102);
	if (q.reserved)
		return false;
	accmem_queue_tick(&q, 2100);
	return q.reserved == &large;
}

/* for a request that needs 4 bytes, memory is reserved at 100, and 1 byte is held */
struct reserved {
	struct accmem_queue q;
	struct accmem_queue_user x, y;
	struct accmem_queue_waiter large, small;
};

static bool reserve(struct reserved *r)
{
	int i;

	*r = (struct reserved){};
	accmem_queue_init(&r->q, BOUND);
	r->q.reserve_ns = RESERVE;
	sleep_in(&r->q, &r->large, &r->x, 4);
	for (i = 0; i < BOUND; i++)
		accmem_queue_count_bypass(&r->q, &r->y, 1, 100);
	sleep_in(&r->q, &r->small, &r->y, 1);
	accmem_queue_memory_freed(&r->q, &r->y, 1);
	return r->q.reserved == &r->large;
}

/* the reservation is over, nothing is reserved until 2100, and the small one is first */
static bool has_expired_at_1100(const struct reserved *r)
{
	return !r->q.reserved && r->q.expired == 1 && r->q.until == 2100 &&
	       r->q.waiters.next == &r->small.link;
}

/* Bytes that were free before are for everybody; freed bytes are held. */
static bool a_reservation_holds_freed_bytes_alone(void)
{
	struct reserved r;
	u64 free = 2;

	if (!reserve(&r) || r.q.held != 1)
		return false;
	if (!accmem_queue_permit(&r.q, &r.y, 1, 2, 101) ||
	    accmem_queue_permit(&r.q, &r.y, 2, 2, 101) ||
	    accmem_queue_permit(&r.q, &r.y, 1, 1, 101))
		return false;
	return next(&r.q, fits, &free) == &r.small;
}

/* 5 after the first refusal others get the memory, unless more was freed. */
static bool a_reservation_without_gain_ends(void)
{
	struct reserved r;

	if (!reserve(&r) || accmem_queue_permit(&r.q, &r.y, 1, 1, 500) ||
	    accmem_queue_permit(&r.q, &r.y, 1, 1, 504))
		return false;
	accmem_queue_memory_freed(&r.q, &r.y, 1);
	if (accmem_queue_permit(&r.q, &r.y, 1, 2, 600) ||
	    accmem_queue_permit(&r.q, &r.y, 1, 2, 604) ||
	    !accmem_queue_permit(&r.q, &r.y, 1, 2, 605))
		return false;
	/* 105 of refusals: nothing is reserved for 200 times as long */
	return !r.q.reserved && r.q.until == 605 + 200 * 105;
}

/* What a user frees itself does not make its reservation last. */
static bool own_frees_are_no_gain_against_others(void)
{
	struct reserved r;

	if (!reserve(&r) || accmem_queue_permit(&r.q, &r.y, 1, 1, 500))
		return false;
	accmem_queue_memory_freed(&r.q, &r.x, 1);
	return accmem_queue_permit(&r.q, &r.y, 1, 2, 505) && !r.q.reserved;
}

static bool cannot(const struct accmem_queue_waiter *w)
{
	return !w;
}

/* A request that cannot be served has no reservation, and makes way for the next. */
static bool what_cannot_be_served_reserves_nothing(void)
{
	struct reserved r;
	int i;

	/* it may be found out later */
	if (!reserve(&r))
		return false;
	r.q.may_reserve = cannot;
	if (!accmem_queue_permit(&r.q, &r.y, 1, 1, 101) || r.q.reserved)
		return false;
	accmem_queue_tick(&r.q, r.q.until);
	for (i = 0; i < 2 * BOUND; i++)
		accmem_queue_count_bypass(&r.q, &r.y, 4 * GRANULE, r.q.until);
	return !r.q.reserved && r.q.reservations == 1;
}

/* Each unused reservation of a user doubles the time until its next one. */
static bool unused_reservations_are_rarer_each_time(void)
{
	struct reserved r;
	u64 now = 100, end, pause = RESERVE;
	int i, n;

	if (!reserve(&r))
		return false;
	accmem_queue_leave(&r.q, &r.small, false, now);
	for (i = 0; i < 5; i++, pause *= 2) {
		now = r.q.until;
		if (!accmem_queue_tick(&r.q, now))
			return false;
		for (end = now + pause; now < end; now += RESERVE / 10) {
			if (r.q.reserved)
				return false;
			for (n = 0; n <= BOUND; n++)
				accmem_queue_count_bypass(&r.q, &r.y, GRANULE,
							  now);
		}
		for (n = 0; n <= 2 * BOUND; n++)
			accmem_queue_count_bypass(&r.q, &r.y, GRANULE, now);
		if (!r.q.reserved)
			return false;
	}
	return true;
}

/* A waiter tries again, once, only if its try was while another request held the memory. */
static bool returned_memory_wakes_who_missed_it(void)
{
	struct accmem_queue_waiter before, during;
	struct accmem_queue_user x = {}, y = {};
	struct accmem_queue q;
	u64 free = 4, since;

	accmem_queue_init(&q, BOUND);
	sleep_in(&q, &before, &x, 1);
	accmem_queue_enter(&q, &during, &y, 1);
	since = q.tries;
	accmem_queue_sleep(&q, &during, false, 0);
	if (next(&q, fits, &free))
		return false;
	accmem_queue_memory_missed(&q, &before, since);
	accmem_queue_memory_missed(&q, &during, since);
	if (next(&q, fits, &free) != &during || next(&q, fits, &free))
		return false;
	/* the waiter fails again, and gives its memory back */
	accmem_queue_start_try(&q, &during);
	accmem_queue_memory_missed(&q, &before, q.tries);
	accmem_queue_sleep(&q, &during, false, 0);
	return !next(&q, fits, &free);
}

/* A walk of many waiters goes on where it stopped, without those that left. */
static bool a_walk_goes_on_where_it_stopped(void)
{
	static struct accmem_queue_waiter w[4];
	struct accmem_queue_user x = {};
	unsigned int steps = 2;
	struct accmem_queue q;
	u64 free = 1;
	int i;

	accmem_queue_init(&q, BOUND);
	for (i = 0; i < 4; i++)
		sleep_in(&q, &w[i], &x, i < 3 ? 2 : 1);
	accmem_queue_memory_freed(&q, NULL, 0);
	q.cursor = &w[0];
	if (accmem_queue_next(&q, &q.cursor, &steps, fits, &free) ||
	    q.cursor != &w[2])
		return false;
	accmem_queue_leave(&q, &w[2], false, 0);
	steps = 2;
	return accmem_queue_next(&q, &q.cursor, &steps, fits, &free) == &w[3] &&
	       !q.cursor && steps == 1;
}

static bool a_waiter_suspended_for_a_moment_keeps_the_reservation(void)
{
	struct reserved r;
	u64 free = 1;

	if (!reserve(&r))
		return false;
	accmem_queue_suspend(&r.q, &r.large);
	/* other waiters may use the memory meanwhile */
	if (r.q.reserved || next(&r.q, fits, &free) != &r.small)
		return false;
	accmem_queue_sleep(&r.q, &r.small, false, 106);
	accmem_queue_resume(&r.q, &r.large, 107);
	return r.q.reserved == &r.large && r.q.until == 1100 &&
	       r.q.reservations == 1;
}

static bool a_suspended_waiter_keeps_it_no_longer_than_others(void)
{
	struct reserved r;

	if (!reserve(&r))
		return false;
	accmem_queue_suspend(&r.q, &r.large);
	if (accmem_queue_tick(&r.q, 1099) || !accmem_queue_tick(&r.q, 1100) ||
	    !has_expired_at_1100(&r))
		return false;
	if (!reserve(&r))
		return false;
	accmem_queue_suspend(&r.q, &r.large);
	accmem_queue_resume(&r.q, &r.large, 1100);
	return has_expired_at_1100(&r);
}

/* Does a waiter lose its reservation if it leaves unserved and comes again? */
static bool has_expired_by_leaving(bool suspended)
{
	struct reserved r;

	if (!reserve(&r))
		return false;
	if (suspended)
		accmem_queue_suspend(&r.q, &r.large);
	accmem_queue_leave(&r.q, &r.large, false, 1100);
	sleep_in(&r.q, &r.large, &r.x, 4);
	return has_expired_at_1100(&r);
}

/* A waiter that leaves its reservation unused has no better place for its next request. */
static bool a_reservation_that_is_left_costs_the_place(void)
{
	struct reserved r;

	/* the same for a suspended waiter */
	if (!has_expired_by_leaving(false) || !has_expired_by_leaving(true))
		return false;
	/* and for a waiter that a limit blocks */
	if (!reserve(&r))
		return false;
	accmem_queue_sleep(&r.q, &r.large, true, 1100);
	return has_expired_at_1100(&r);
}

/*
 * A user with many waiters takes part while a reservation of another ends unused. When these
 * waiters have gone, the other is not behind where they were.
 */
static bool an_unused_reservation_costs_a_credit_at_most(void)
{
	static struct accmem_queue_waiter many[20];
	struct accmem_queue_user z = {};
	struct reserved r;
	int i;

	r = (struct reserved){};
	accmem_queue_init(&r.q, BOUND);
	r.q.reserve_ns = RESERVE;
	r.q.credit = 2 * GRANULE;
	sleep_in(&r.q, &r.large, &r.x, 4 * GRANULE);
	for (i = 0; i < 20; i++)
		sleep_in(&r.q, &many[i], &z, 16 * GRANULE);
	for (i = 0; i < BOUND; i++)
		accmem_queue_count_bypass(&r.q, &r.y, GRANULE, 100);
	if (r.q.reserved != &r.large || !accmem_queue_tick(&r.q, 1100))
		return false;
	for (i = 0; i < 20; i++)
		accmem_queue_leave(&r.q, &many[i], false, 1100);
	/* a turn of 2 granules each: the third one is behind */
	for (i = 0; i < 3; i++) {
		sleep_in(&r.q, &r.small, &r.y, GRANULE);
		if (i < 2)
			accmem_queue_leave(&r.q, &r.small, true, 1100);
	}
	return r.q.waiters.next == &r.large.link;
}

/* A waiter that moves back while a walk is at it is not left out by the walk. */
static bool a_walk_does_not_lose_who_moves_back(void)
{
	struct accmem_queue_user x = {}, y = {};
	struct accmem_queue_waiter w, limited;
	unsigned int steps = 2;
	struct accmem_queue q;
	u64 free = 1;
	int i;

	accmem_queue_init(&q, BOUND);
	q.reserve_ns = RESERVE;
	q.may_reserve = cannot;
	accmem_queue_enter(&q, &limited, &x, 1);
	accmem_queue_sleep(&q, &limited, true, 0);
	sleep_in(&q, &w, &x, 1);
	accmem_queue_memory_freed(&q, NULL, 0);
	q.cursor = &w;
	for (i = 0; i < BOUND; i++)
		accmem_queue_count_bypass(&q, &y, GRANULE, 100);
	return accmem_queue_next(&q, &q.cursor, &steps, fits, &free) == &w;
}

/* The user of an unused reservation is not behind another one when nobody waits any more. */
static bool an_empty_queue_forgets_unused_reservations(void)
{
	struct accmem_queue_waiter a, b;
	struct reserved r;
	u64 free = 4;

	if (!reserve(&r) || !accmem_queue_tick(&r.q, 1100))
		return false;
	accmem_queue_leave(&r.q, &r.small, false, 1100);
	accmem_queue_leave(&r.q, &r.large, true, 1100);
	sleep_in(&r.q, &a, &r.x, 1);
	sleep_in(&r.q, &b, &r.y, 1);
	accmem_queue_memory_freed(&r.q, NULL, 0);
	return next(&r.q, fits, &free) == &a;
}

/* The pauses of a user do not become longer for ever. */
static bool pauses_are_bounded(void)
{
	struct reserved r;
	u64 now = 100;
	int i, n;

	if (!reserve(&r))
		return false;
	accmem_queue_leave(&r.q, &r.small, false, now);
	for (i = 0; i < 80; i++) {
		if (!accmem_queue_tick(&r.q, r.q.until))
			return false;
		now = max(r.q.until, r.x.until);
		if (now - r.x.ended > RESERVE << 6)
			return false;
		for (n = 0; n <= 2 * BOUND; n++)
			accmem_queue_count_bypass(&r.q, &r.y, GRANULE, now);
		if (!r.q.reserved)
			return false;
	}
	return true;
}

/* A time that becomes shorter makes the pauses shorter, too. */
static bool a_shorter_time_ends_a_pause(void)
{
	struct reserved r;
	int n;

	if (!reserve(&r))
		return false;
	accmem_queue_leave(&r.q, &r.small, false, 100);
	if (!accmem_queue_tick(&r.q, 1100))
		return false;
	accmem_queue_set_reserve(&r.q, 10, 1100);
	for (n = 0; n <= 2 * BOUND; n++)
		accmem_queue_count_bypass(&r.q, &r.y, GRANULE, 1120);
	return r.q.reserved == &r.large;
}

/* A time that changes makes a reservation shorter, and never longer. */
static bool a_reservation_lasts_no_longer_than_is_said(void)
{
	struct reserved r;

	if (!reserve(&r))
		return false;
	accmem_queue_set_reserve(&r.q, 5000, 101);
	if (r.q.until != 1100)
		return false;
	accmem_queue_set_reserve(&r.q, 300, 102);
	return !accmem_queue_tick(&r.q, 401) && accmem_queue_tick(&r.q, 402);
}

/* one has what it needs, whatever is held */
static bool is_that_one(const struct accmem_queue_waiter *w, u64 promised,
			void *arg)
{
	return w == arg && promised == 1;
}

/* Who needs no held byte is woken; promises to others do not hold up the reserved one. */
static bool a_reservation_holds_up_nobody_who_needs_nothing_of_it(void)
{
	struct reserved r;
	u64 free = 4;

	if (!reserve(&r))
		return false;
	accmem_queue_memory_freed(&r.q, NULL, 0);
	if (next(&r.q, is_that_one, &r.small) != &r.small)
		return false;
	return next(&r.q, fits, &free) == &r.large;
}

/*
 * One after another may give up at the front: who is behind them was bypassed as well.
 */
static bool who_gives_up_leaves_its_bypasses_to_the_next(void)
{
	struct accmem_queue_waiter hasty, patient;
	struct accmem_queue_user x = {}, y = {}, z = {};
	struct accmem_queue q;
	int i;

	accmem_queue_init(&q, BOUND);
	q.reserve_ns = RESERVE;
	sleep_in(&q, &hasty, &x, 4);
	sleep_in(&q, &patient, &y, 4);
	for (i = 0; i < BOUND - 1; i++)
		accmem_queue_count_bypass(&q, &z, GRANULE, 100);
	accmem_queue_leave(&q, &hasty, false, 100);
	if (q.reserved)
		return false;
	accmem_queue_count_bypass(&q, &z, GRANULE, 100);
	return q.reserved == &patient;
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
	accmem_queue_start_try(&q, &w);
	accmem_queue_memory_freed(&q, NULL, 0);
	accmem_queue_sleep(&q, &w, false, 0);
	if (next(&q, fits, &free) != &w)
		return false;
	accmem_queue_start_try(&q, &w);
	accmem_queue_sleep(&q, &w, false, 0);
	if (next(&q, fits, &free))
		return false;
	/* of a limit, too */
	accmem_queue_memory_freed(&q, NULL, 0);
	next(&q, fits, &free);
	accmem_queue_start_try(&q, &w);
	accmem_queue_charge_dropped(&x);
	accmem_queue_sleep(&q, &w, true, 0);
	return next(&q, fits, &free) == &w;
}

#endif /* ACCMEM_QUEUE_RESERVE_CASES_H */
