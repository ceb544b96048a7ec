/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Rules of the queue of waiters, told one by one: the KUnit suite and the host test
 * walk the same cases.
 */
#ifndef ACCMEM_QUEUE_CASES_H
#define ACCMEM_QUEUE_CASES_H

#include "lib/tests/queue/reserve_cases.h"

static bool users_take_turns(void)
{
	static struct accmem_queue_waiter a[3], b[2];
	struct accmem_queue_waiter *w = NULL;
	struct accmem_queue_user x = {}, y = {};
	struct accmem_queue q;
	u64 free = 5;
	int i;

	accmem_queue_init(&q, BOUND);
	for (i = 0; i < 3; i++)
		sleep_in(&q, &a[i], &x, 1);
	for (i = 0; i < 2; i++)
		sleep_in(&q, &b[i], &y, 1);
	accmem_queue_memory_freed(&q, NULL, 0);
	for (i = 0; i < 5; i++) {
		w = next(&q, fits, &free);
		if (w != (i % 2 ? &b[i / 2] : &a[i / 2]))
			return false;
	}
	return !next(&q, fits, &free);
}

/* a user with one request at a time has its turn after one of the other's */
static bool a_loop_has_every_second_turn(void)
{
	static struct accmem_queue_waiter a[4], b;
	struct accmem_queue_user x = {}, y = {};
	struct accmem_queue q;
	u64 free = 1;
	int i;

	accmem_queue_init(&q, BOUND);
	for (i = 0; i < 4; i++)
		sleep_in(&q, &a[i], &x, 1);
	for (i = 0; i < 3; i++) {
		sleep_in(&q, &b, &y, 1);
		accmem_queue_memory_freed(&q, NULL, 0);
		if (next(&q, fits, &free) != &a[i])
			return false;
		accmem_queue_leave(&q, &a[i], true, 0);
		accmem_queue_memory_freed(&q, NULL, 0);
		if (next(&q, fits, &free) != &b)
			return false;
		accmem_queue_leave(&q, &b, true, 0);
	}
	return true;
}

/* who asks for little is served as many bytes as who asks for much, not as often */
static bool turns_are_as_long_as_requests(void)
{
	struct accmem_queue_waiter large, small;
	struct accmem_queue_user x = {}, y = {};
	struct accmem_queue q;
	u64 free = 64 * GRANULE;
	int i;

	accmem_queue_init(&q, BOUND);
	sleep_in(&q, &large, &x, 16 * GRANULE - 1);
	accmem_queue_memory_freed(&q, NULL, 0);
	if (next(&q, fits, &free) != &large)
		return false;
	sleep_in(&q, &small, &y, GRANULE - 1);
	accmem_queue_leave(&q, &large, true, 0);
	sleep_in(&q, &large, &x, 16 * GRANULE - 1);
	for (i = 0; i < 16; i++) {
		accmem_queue_memory_freed(&q, NULL, 0);
		if (next(&q, fits, &free) != &small)
			return false;
		accmem_queue_leave(&q, &small, true, 0);
		sleep_in(&q, &small, &y, GRANULE - 1);
	}
	accmem_queue_memory_freed(&q, NULL, 0);
	return !large.bypassed && next(&q, fits, &free) == &large;
}

/*
 * Who was not there for a while catches up with the others, but for a credit. Somebody
 * whom a limit holds up all the time keeps the queue from being empty, and no more.
 */
static bool a_credit_is_all_that_is_caught_up(void)
{
	static struct accmem_queue_waiter a, b[3], keep;
	struct accmem_queue_user x = {}, y = {}, z = {};
	struct accmem_queue q;
	u64 free = 64 * GRANULE;
	int i;

	accmem_queue_init(&q, BOUND);
	q.credit = 2 * GRANULE;
	accmem_queue_enter(&q, &keep, &z, 64 * GRANULE);
	accmem_queue_sleep(&q, &keep, true, 0);
	for (i = 0; i < 10; i++) {
		sleep_in(&q, &a, &x, GRANULE - 1);
		accmem_queue_leave(&q, &a, true, 0);
	}
	/* its next turn would be the eleventh, the other's are 8 to 10 */
	for (i = 0; i < 3; i++)
		sleep_in(&q, &b[i], &y, GRANULE - 1);
	sleep_in(&q, &a, &x, GRANULE - 1);
	for (i = 0; i < 3; i++) {
		accmem_queue_memory_freed(&q, NULL, 0);
		if (next(&q, fits, &free) != &b[i])
			return false;
		accmem_queue_leave(&q, &b[i], true, 0);
		sleep_in(&q, &b[i], &y, GRANULE - 1);
	}
	accmem_queue_memory_freed(&q, NULL, 0);
	return next(&q, fits, &free) == &a;
}

/*
 * One waits for much, one is served meanwhile, out of its turn. A third, who
 * waits again and again for little, has all its turns before the first: it is not taken
 * along by the second.
 */
static bool out_of_turn_leaves_nobody_behind(void)
{
	struct accmem_queue_waiter much, taker, little;
	struct accmem_queue_user x = {}, y = {}, z = {};
	struct accmem_queue q;
	u64 free = 64 * GRANULE;
	int i;

	accmem_queue_init(&q, 100);
	q.credit = 8 * GRANULE;
	/* so that its next turn is the eighth */
	sleep_in(&q, &much, &x, 8 * GRANULE - 1);
	sleep_in(&q, &little, &z, GRANULE - 1);
	accmem_queue_leave(&q, &much, true, 0);
	sleep_in(&q, &much, &x, 32 * GRANULE);
	for (i = 0; i < 7; i++) {
		sleep_in(&q, &taker, &y, 16 * GRANULE);
		accmem_queue_leave(&q, &taker, true, 0);
		accmem_queue_leave(&q, &little, true, 0);
		sleep_in(&q, &little, &z, GRANULE - 1);
		accmem_queue_memory_freed(&q, NULL, 0);
		if (next(&q, fits, &free) != &little)
			return false;
	}
	return true;
}

/* Who does not wait and has had less than the front is in turn, and bypasses nobody. */
static bool only_out_of_turn_is_a_bypass(void)
{
	struct accmem_queue_waiter much, rest;
	struct accmem_queue_user x = {}, y = {};
	struct accmem_queue q;
	int i;

	accmem_queue_init(&q, BOUND);
	q.credit = 64 * GRANULE;
	sleep_in(&q, &much, &x, 8 * GRANULE - 1);
	sleep_in(&q, &rest, &x, GRANULE);
	accmem_queue_leave(&q, &much, true, 0);
	for (i = 0; i < 8; i++)
		accmem_queue_count_bypass(&q, &y, GRANULE - 1, 0);
	if (rest.bypassed)
		return false;
	accmem_queue_count_bypass(&q, &y, GRANULE - 1, 0);
	return rest.bypassed == 1;
}

/* what somebody had while nobody else waited is held against nobody */
static bool an_empty_queue_owes_nothing(void)
{
	struct accmem_queue_user x = {}, y = {};
	struct accmem_queue_waiter a, b;
	struct accmem_queue q;
	u64 free = 64 * GRANULE;

	accmem_queue_init(&q, BOUND);
	q.credit = 64 * GRANULE;
	sleep_in(&q, &a, &x, 16 * GRANULE);
	accmem_queue_leave(&q, &a, true, 0);
	sleep_in(&q, &a, &x, GRANULE);
	sleep_in(&q, &b, &y, GRANULE);
	accmem_queue_memory_freed(&q, NULL, 0);
	return next(&q, fits, &free) == &a;
}

static const struct queue_case {
	const char *name;
	bool (*holds)(void);
} queue_cases[] = {
	{ "users take turns", users_take_turns },
	{ "a loop has every second turn", a_loop_has_every_second_turn },
	{ "turns are as long as requests", turns_are_as_long_as_requests },
	{ "a credit is all that is caught up",
	  a_credit_is_all_that_is_caught_up },
	{ "out of turn leaves nobody behind",
	  out_of_turn_leaves_nobody_behind },
	{ "only out of turn is a bypass", only_out_of_turn_is_a_bypass },
	{ "an empty queue owes nothing", an_empty_queue_owes_nothing },
	{ "the bound reserves, for a time", the_bound_reserves },
	{ "a reservation holds freed bytes alone",
	  a_reservation_holds_freed_bytes_alone },
	{ "a reservation without gain ends", a_reservation_without_gain_ends },
	{ "own frees are no gain against others",
	  own_frees_are_no_gain_against_others },
	{ "what cannot be served reserves nothing",
	  what_cannot_be_served_reserves_nothing },
	{ "unused reservations are rarer each time",
	  unused_reservations_are_rarer_each_time },
	{ "returned memory wakes who missed it",
	  returned_memory_wakes_who_missed_it },
	{ "a walk goes on where it stopped", a_walk_goes_on_where_it_stopped },
	{ "a waiter suspended for a moment keeps the reservation",
	  a_waiter_suspended_for_a_moment_keeps_the_reservation },
	{ "a suspended waiter keeps it no longer than others",
	  a_suspended_waiter_keeps_it_no_longer_than_others },
	{ "a reservation that is left costs the place",
	  a_reservation_that_is_left_costs_the_place },
	{ "an unused reservation costs a credit at most",
	  an_unused_reservation_costs_a_credit_at_most },
	{ "a walk does not lose who moves back",
	  a_walk_does_not_lose_who_moves_back },
	{ "an empty queue forgets unused reservations",
	  an_empty_queue_forgets_unused_reservations },
	{ "pauses are bounded", pauses_are_bounded },
	{ "a shorter time ends a pause", a_shorter_time_ends_a_pause },
	{ "a reservation lasts no longer than is said",
	  a_reservation_lasts_no_longer_than_is_said },
	{ "a reservation holds up nobody who needs nothing of it",
	  a_reservation_holds_up_nobody_who_needs_nothing_of_it },
	{ "who gives up leaves its bypasses to the next",
	  who_gives_up_leaves_its_bypasses_to_the_next },
	{ "a change during a try counts", a_change_during_a_try_counts },
};

#endif /* ACCMEM_QUEUE_CASES_H */
