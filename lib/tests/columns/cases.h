/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Stories about the Tensor Memory arbiter, for the KUnit suite and for the
 * host's tests: each is a list of calls with the results that they must have.
 * After every call exactly the waits that the story says are over, in that
 * order (GOT), and no other.
 */
#ifndef ACCMEM_COLUMNS_CASES_H
#define ACCMEM_COLUMNS_CASES_H

#include <linux/errno.h>
#include <linux/kernel.h>

#include "lib/columns/columns.h"

enum columns_op {
	OP_END,
	OP_LAUNCH, /* value: SM; more: launch */
	OP_PAIR, /* value: SM; more: rank */
	OP_MEMBER, /* of the next OP_CLUSTER; value: SM; more: rank */
	OP_CLUSTER, /* cta: not used; value: cta_group; more: launch */
	OP_CULPRIT, /* result: index of the member that could not be launched */
	OP_ALLOC, /* value: columns */
	OP_TRY, /* the same, without waiting */
	OP_DEALLOC, /* value: address; more: columns */
	OP_RELINQUISH,
	OP_EXIT, /* result: columns that it held */
	OP_CANCEL, /* result: whether it was waiting */
	OP_RESET,
	OP_RESERVE, /* an alloc that is to be confirmed; value: columns */
	OP_STORED, /* its address is stored; value: address */
	OP_LOST, /* it could not be; value: address */
	OP_GOT, /* the wait of this CTA is over */
	OP_TOLD, /* it is, and its caller, who stores an address, finds out later */
	OP_AT, /* result: address of its last alloc */
	OP_HELD, /* result: columns that it holds */
	OP_FREE, /* value: SM; result: free columns */
	OP_STRICT, /* look for hazards */
	OP_WARP, /* value: warp of the CTA's next calls */
	OP_RETURNED, /* the call of its alloc has returned */
	OP_HAZARDS, /* result: what was found since the last look */
	OP_FORCED, /* result: grants against the bound so far */
};

enum { A, B, C, D, E, F, NR_NAMES };

struct columns_step {
	enum columns_op op;
	unsigned int cta;
	u32 value;
	u32 more;
	int result;
};

struct columns_case {
	const char *name;
	u32 nr_sms;
	u32 columns;
	bool exclusive;
	u32 bound;
	struct columns_step steps[32];
};

/* a step is a word, a story a paragraph */
/* clang-format off */
#define WAITS (-EINPROGRESS)
#define LAUNCH(x, sm) { OP_LAUNCH, x, sm, 7, 0 }
#define LAUNCH_AS(x, sm, launch, r) { OP_LAUNCH, x, sm, launch, r }
#define PAIR(x, sm, rank) { OP_PAIR, x, sm, rank, 0 }
#define PAIR_IS(x, sm, rank, r) { OP_PAIR, x, sm, rank, r }
#define MEMBER(x, sm, rank) { OP_MEMBER, x, sm, rank, 0 }
#define CLUSTER(group, launch, r) { OP_CLUSTER, A, group, launch, r }
#define CULPRIT(n) { OP_CULPRIT, A, 0, 0, n }
#define ALLOC(x, n, r) { OP_ALLOC, x, n, 0, r }
#define TRY(x, n, r) { OP_TRY, x, n, 0, r }
#define DEALLOC(x, at, n, r) { OP_DEALLOC, x, at, n, r }
#define RELINQUISH(x, r) { OP_RELINQUISH, x, 0, 0, r }
#define EXIT(x, n) { OP_EXIT, x, 0, 0, n }
#define CANCEL(x, r) { OP_CANCEL, x, 0, 0, r }
#define RESET { OP_RESET, A, 0, 0, 0 }
#define RESERVE(x, n, r) { OP_RESERVE, x, n, 0, r }
#define STORED(x, at, r) { OP_STORED, x, at, 0, r }
#define LOST(x, at, r) { OP_LOST, x, at, 0, r }
#define GOT(x, r) { OP_GOT, x, 0, 0, r }
#define TOLD(x) { OP_TOLD, x, 0, 0, 0 }
#define AT(x, at) { OP_AT, x, 0, 0, at }
#define HELD(x, n) { OP_HELD, x, 0, 0, n }
#define FREE(sm, n) { OP_FREE, A, sm, 0, n }
#define STRICT { OP_STRICT, A, 0, 0, 0 }
#define WARP(x, n) { OP_WARP, x, n, 0, 0 }
#define RETURNED(x) { OP_RETURNED, x, 0, 0, 0 }
#define HAZARDS(x, bits) { OP_HAZARDS, x, 0, 0, bits }
#define FORCED(n) { OP_FORCED, A, 0, 0, n }

static const struct columns_case columns_cases[] = {
	/* --- one CTA --- */
	{ "p1_p6_units_of_32_from_column_0", 1, 512, false, 64, {
		LAUNCH(A, 0), ALLOC(A, 128, 0), AT(A, 0), ALLOC(A, 64, 0),
		AT(A, 128), ALLOC(A, 32, 0), AT(A, 192), ALLOC(A, 32, 0),
		AT(A, 224), FREE(0, 256), HELD(A, 256) } },
	{ "p2_large_blocks_stay_whole", 1, 512, false, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), ALLOC(A, 256, 0), ALLOC(B, 32, 0),
		AT(B, 256), DEALLOC(A, 0, 256, 0), LAUNCH(C, 0),
		ALLOC(C, 32, 0), AT(C, 288), ALLOC(A, 256, 0), AT(A, 0) } },
	{ "p7_columns_must_be_a_power_of_two", 1, 2048, false, 64, {
		LAUNCH(A, 0), TRY(A, 0, -EDOM), TRY(A, 16, -EDOM),
		TRY(A, 48, -EDOM), TRY(A, 96, -EDOM), TRY(A, 1024, -EDOM),
		TRY(A, 0x80000020, -EDOM), TRY(A, 512, 0) } },
	{ "p2_more_than_the_sm_has", 1, 96, false, 64, {
		LAUNCH(A, 0), ALLOC(A, 128, -ENOSPC), ALLOC(A, 64, 0) } },
	{ "p2_more_than_it_could_have_beside_its_own", 1, 512, false, 64, {
		LAUNCH(A, 0), ALLOC(A, 256, 0), ALLOC(A, 256, 0),
		ALLOC(A, 256, -ENOSPC), DEALLOC(A, 0, 256, 0),
		ALLOC(A, 256, 0) } },
	{ "p2_its_own_columns_in_the_way_of_an_aligned_run", 1, 96, false, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), ALLOC(B, 64, 0), ALLOC(A, 32, 0),
		AT(A, 64), DEALLOC(B, 0, 64, 0), ALLOC(B, 64, 0) } },
	{ "p8_columns_must_not_grow", 1, 512, false, 64, {
		LAUNCH(A, 0), ALLOC(A, 64, 0), DEALLOC(A, 0, 64, 0),
		ALLOC(A, 128, -ERANGE), ALLOC(A, 64, 0), ALLOC(A, 32, 0),
		ALLOC(A, 64, -ERANGE) } },
	{ "p8_an_alloc_whose_address_is_lost_does_not_count", 1, 512, false, 64, {
		LAUNCH(A, 0), RESERVE(A, 64, 0), AT(A, 0), FREE(0, 448),
		HELD(A, 0), LOST(A, 0, -EFAULT), FREE(0, 512),
		ALLOC(A, 128, 0) } },
	{ "p10_a_reservation_counts_once_it_is_stored", 1, 512, false, 64, {
		LAUNCH(A, 0), RESERVE(A, 64, 0), HELD(A, 0),
		ALLOC(A, 32, -EBUSY), DEALLOC(A, 0, 64, -EBUSY),
		STORED(A, 0, 0), HELD(A, 64), DEALLOC(A, 0, 64, 0),
		ALLOC(A, 128, -ERANGE) } },
	{ "p10_what_is_lost_serves_who_waits", 1, 512, false, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), RESERVE(A, 512, 0),
		RESERVE(B, 512, WAITS), LOST(A, 0, -EFAULT), GOT(B, 0),
		HELD(B, 0), STORED(B, 0, 0), HELD(B, 512) } },
	{ "p9_relinquish_before_the_address_is_stored", 1, 512, false, 64, {
		LAUNCH(A, 0), RESERVE(A, 64, 0), RELINQUISH(A, 0),
		TOLD(A), FREE(0, 512), STORED(A, 0, -ECANCELED),
		HELD(A, 0) } },
	{ "p9_no_alloc_after_relinquish", 1, 512, false, 64, {
		LAUNCH(A, 0), ALLOC(A, 64, 0), RELINQUISH(A, 0),
		ALLOC(A, 64, -EPERM), DEALLOC(A, 0, 64, 0), RELINQUISH(A, 0),
		FREE(0, 512) } },
	{ "p3_p18_p19_wrong_deallocs", 1, 512, false, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), ALLOC(A, 128, 0), ALLOC(B, 32, 0),
		AT(B, 128), DEALLOC(A, 256, 128, -ENOENT),
		DEALLOC(A, 32, 128, -EADDRNOTAVAIL),
		DEALLOC(A, 7, 128, -EADDRNOTAVAIL),
		DEALLOC(A, 128, 32, -EACCES), DEALLOC(A, 0, 64, -EMSGSIZE),
		DEALLOC(A, 0, 256, -EMSGSIZE), DEALLOC(A, 512, 128, -ENXIO),
		DEALLOC(A, 1 << 16, 128, -ENXIO), HELD(A, 128),
		DEALLOC(A, 0, 128, 0), DEALLOC(A, 0, 128, -ENOENT) } },
	{ "p3_neighbours_are_told_apart", 1, 512, false, 64, {
		LAUNCH(A, 0), ALLOC(A, 32, 0), ALLOC(A, 32, 0),
		DEALLOC(A, 0, 64, -EMSGSIZE), DEALLOC(A, 0, 32, 0), HELD(A, 32),
		DEALLOC(A, 32, 32, 0) } },
	{ "p5_exit_frees", 1, 512, false, 64, {
		LAUNCH(A, 0), ALLOC(A, 128, 0), ALLOC(A, 32, 0), EXIT(A, 160),
		FREE(0, 512) } },
	{ "p11_a_second_call_while_one_waits", 1, 512, false, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), ALLOC(B, 32, 0), AT(B, 0),
		ALLOC(A, 512, 0 + WAITS), ALLOC(A, 32, -EBUSY),
		DEALLOC(A, 0, 32, -EBUSY), DEALLOC(B, 0, 32, 0), GOT(A, 0),
		HELD(A, 512) } },
	{ "p2_576_columns", 1, 576, false, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), ALLOC(A, 512, 0), ALLOC(B, 64, 0),
		AT(B, 512), TRY(B, 32, -EAGAIN), DEALLOC(B, 512, 64, 0),
		FREE(0, 64) } },

	/* --- order --- */
	{ "p2_first_come_first_served", 1, 512, false, 0, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 0), ALLOC(A, 512, 0),
		ALLOC(B, 256, WAITS), ALLOC(C, 256, WAITS),
		DEALLOC(A, 0, 512, 0), GOT(B, 0), GOT(C, 0), AT(B, 0),
		AT(C, 256) } },
	{ "p2_bound_0_is_strict_order", 1, 512, false, 0, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 0), ALLOC(A, 32, 0),
		ALLOC(B, 512, WAITS), TRY(C, 32, -EAGAIN), ALLOC(C, 32, WAITS),
		DEALLOC(A, 0, 32, 0), GOT(B, 0), DEALLOC(B, 0, 512, 0),
		GOT(C, 0) } },
	{ "p2_a_request_is_passed_as_often_as_the_bound_says", 1, 512, false, 2, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 0), LAUNCH(D, 0),
		ALLOC(A, 32, 0), ALLOC(B, 512, WAITS), ALLOC(C, 32, 0),
		DEALLOC(C, 32, 32, 0), ALLOC(C, 32, 0), ALLOC(D, 32, WAITS),
		DEALLOC(C, 32, 32, 0), TRY(C, 32, -EAGAIN),
		DEALLOC(A, 0, 32, 0), GOT(B, 0), DEALLOC(B, 0, 512, 0),
		GOT(D, 0) } },
	{ "p2_a_bound_that_is_reached_blocks_its_own_sm_only", 2, 512, false, 0, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 1), ALLOC(A, 32, 0),
		ALLOC(B, 512, WAITS), ALLOC(C, 512, 0), FREE(1, 0) } },
	{ "p2_who_gives_up_holds_up_nobody", 1, 512, false, 0, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 0), ALLOC(A, 32, 0),
		ALLOC(B, 512, WAITS), ALLOC(C, 32, WAITS), CANCEL(B, true),
		GOT(C, 0), CANCEL(B, false) } },
	{ "p2_the_one_served_is_the_one_woken", 1, 512, false, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 0), LAUNCH(D, 0),
		ALLOC(A, 256, 0), ALLOC(D, 256, 0), ALLOC(B, 512, WAITS),
		ALLOC(C, 256, WAITS), DEALLOC(A, 0, 256, 0), GOT(C, 0),
		DEALLOC(D, 256, 256, 0), DEALLOC(C, 0, 256, 0), GOT(B, 0) } },

	/* --- deadlock --- */
	{ "p2_two_holders_who_want_each_others", 1, 512, false, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), ALLOC(A, 256, 0), ALLOC(B, 256, 0),
		ALLOC(A, 256, WAITS), ALLOC(B, 256, -EDEADLK),
		DEALLOC(B, 256, 256, 0), GOT(A, 0) } },
	{ "p2_the_newest_is_refused_not_the_last_to_come", 1, 512, false, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 0), ALLOC(A, 256, 0),
		ALLOC(B, 128, 0), ALLOC(C, 128, 0), ALLOC(A, 256, WAITS),
		ALLOC(B, 128, WAITS), ALLOC(C, 128, -EDEADLK),
		DEALLOC(C, 384, 128, 0), GOT(B, 0) } },
	{ "p2_a_holder_on_another_sm_hides_nothing", 2, 512, false, 64, {
		LAUNCH(C, 1), ALLOC(C, 32, 0), LAUNCH(A, 0), LAUNCH(B, 0),
		ALLOC(A, 256, 0), ALLOC(B, 256, 0), ALLOC(A, 256, WAITS),
		ALLOC(B, 256, -EDEADLK) } },
	{ "p2_a_holder_that_does_not_wait_is_no_deadlock", 1, 512, false, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 0), ALLOC(A, 256, 0),
		ALLOC(B, 128, 0), ALLOC(C, 128, 0), ALLOC(A, 128, WAITS),
		ALLOC(B, 128, WAITS), DEALLOC(C, 384, 128, 0), GOT(A, 0) } },
	{ "p2_a_waiter_that_holds_nothing_is_never_refused", 1, 512, false, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 0), ALLOC(A, 256, 0),
		ALLOC(B, 256, 0), ALLOC(A, 256, WAITS), ALLOC(C, 512, WAITS),
		ALLOC(B, 256, -EDEADLK), EXIT(B, 256), GOT(A, 0), EXIT(A, 512),
		GOT(C, 0) } },
	{ "p2_a_bound_that_is_reached_with_columns_free", 1, 512, false, 0, {
		LAUNCH(A, 0), LAUNCH(B, 0), ALLOC(A, 128, 0),
		ALLOC(B, 512, WAITS), ALLOC(A, 128, 0), FORCED(1),
		DEALLOC(A, 0, 128, 0), DEALLOC(A, 128, 128, 0), GOT(B, 0) } },
	{ "p2_a_bound_that_is_reached_and_columns_that_come_back", 1, 512, false, 0, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 0), ALLOC(A, 256, 0),
		ALLOC(C, 256, 0), ALLOC(B, 512, WAITS), ALLOC(A, 128, WAITS),
		FORCED(0), DEALLOC(C, 256, 256, 0), GOT(A, 0), FORCED(1),
		EXIT(A, 384), GOT(B, 0) } },
	{ "p2_who_holds_nothing_is_not_served_against_the_bound", 1, 128, false,
	  0, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 0), LAUNCH(D, 0),
		ALLOC(A, 64, 0), ALLOC(B, 32, 0), ALLOC(C, 128, WAITS),
		ALLOC(A, 64, WAITS), ALLOC(D, 32, WAITS), FORCED(0),
		DEALLOC(B, 64, 32, 0), GOT(A, 0), FORCED(1), EXIT(A, 128),
		GOT(C, 0), EXIT(C, 128), GOT(D, 0) } },
	{ "p2_a_newcomer_spends_the_bound_of_a_pair", 2, 512, false, 1, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 0), PAIR(D, 0, 0),
		PAIR(E, 1, 1), LAUNCH(F, 1), ALLOC(A, 256, 0), ALLOC(B, 32, 0),
		ALLOC(C, 256, WAITS), ALLOC(B, 32, 0), ALLOC(D, 512, WAITS),
		ALLOC(E, 512, WAITS), ALLOC(B, 32, WAITS), FORCED(0),
		ALLOC(F, 32, 0), GOT(B, 0), FORCED(1), EXIT(B, 96), GOT(C, 0),
		EXIT(A, 256), EXIT(F, 32), EXIT(C, 256), GOT(E, 0),
		GOT(D, 0) } },
	{ "p2_a_ring_over_two_sms", 2, 64, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), LAUNCH(C, 0), LAUNCH(D, 1),
		ALLOC(A, 32, WAITS), ALLOC(B, 32, 0), GOT(A, 0),
		ALLOC(C, 32, 0), AT(C, 32), ALLOC(A, 32, WAITS),
		ALLOC(B, 32, WAITS), ALLOC(C, 32, -EDEADLK), EXIT(C, 32),
		GOT(B, 0), GOT(A, 0) } },

	/* --- the exclusive discipline --- */
	{ "p9_exclusive_one_cta_at_a_time", 1, 512, true, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), ALLOC(A, 32, 0), TRY(B, 32, -EAGAIN),
		ALLOC(B, 32, WAITS), ALLOC(A, 32, 0), RELINQUISH(A, 0),
		GOT(B, 0), AT(B, 64) } },
	{ "p2_exclusive_exit_passes_the_permit_on", 1, 512, true, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), ALLOC(A, 32, 0),
		ALLOC(B, 32, WAITS), EXIT(A, 32), GOT(B, 0), AT(B, 0) } },
	{ "p2_exclusive_a_failed_alloc_releases_its_permit", 1, 512, true, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), LAUNCH(C, 0), ALLOC(A, 512, 0),
		RELINQUISH(A, 0), ALLOC(B, 32, WAITS), ALLOC(C, 32, WAITS),
		CANCEL(B, true), DEALLOC(A, 0, 512, 0), GOT(C, 0),
		TRY(B, 32, -EAGAIN) } },
	{ "p2_exclusive_one_whose_address_is_lost_too", 1, 512, true, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), RESERVE(A, 64, 0),
		LOST(A, 0, -EFAULT), ALLOC(B, 64, 0) } },
	{ "p2_exclusive_a_permit_of_an_older_alloc_is_kept", 1, 512, true, 64, {
		LAUNCH(A, 0), LAUNCH(B, 0), ALLOC(A, 32, 0),
		DEALLOC(A, 0, 32, 0), RESERVE(A, 32, 0), LOST(A, 0, -EFAULT),
		TRY(B, 32, -EAGAIN), RELINQUISH(A, 0), TRY(B, 32, 0) } },
	{ "p2_exclusive_holder_is_not_held_up_by_the_queue", 1, 512, true, 0, {
		LAUNCH(A, 0), LAUNCH(B, 0), ALLOC(A, 32, 0),
		ALLOC(B, 512, WAITS), ALLOC(A, 32, 0), ALLOC(A, 32, 0),
		EXIT(A, 96), GOT(B, 0) } },
	{ "p12_exclusive_a_pair_takes_both_permits_or_none", 2, 512, true, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), LAUNCH(C, 1), LAUNCH(D, 0),
		ALLOC(C, 32, 0), ALLOC(A, 32, WAITS), ALLOC(B, 32, WAITS),
		ALLOC(D, 32, 0), RELINQUISH(C, 0), RELINQUISH(D, 0), GOT(B, 0),
		GOT(A, 0), AT(A, 32), AT(B, 32) } },
	{ "p12_exclusive_a_pair_is_passed_as_the_bound_says", 2, 512, true, 1, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), LAUNCH(C, 1), LAUNCH(D, 0),
		LAUNCH(E, 0), ALLOC(C, 32, 0), ALLOC(A, 32, WAITS),
		ALLOC(B, 32, WAITS), ALLOC(D, 32, 0), EXIT(D, 32),
		ALLOC(E, 32, WAITS), EXIT(C, 32), GOT(B, 0), GOT(A, 0),
		RELINQUISH(A, 0), GOT(E, 0) } },

	/* --- pairs --- */
	{ "p12_a_pair_allocates_at_the_same_columns", 2, 512, false, 64, {
		LAUNCH(C, 0), ALLOC(C, 32, 0), PAIR(A, 0, 4), PAIR(B, 1, 5),
		ALLOC(A, 32, WAITS), FREE(0, 480), ALLOC(B, 32, 0), GOT(A, 0),
		AT(A, 32), AT(B, 32), FREE(0, 448), FREE(1, 480) } },
	{ "p12_a_pair_waits_for_both_sms", 2, 512, false, 64, {
		LAUNCH(C, 0), LAUNCH(D, 1), ALLOC(C, 256, 0), ALLOC(D, 32, 0),
		PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 512, WAITS),
		ALLOC(B, 512, WAITS), DEALLOC(C, 0, 256, 0),
		DEALLOC(D, 0, 32, 0), GOT(B, 0), GOT(A, 0) } },
	{ "p12_a_pair_has_its_columns_when_both_have_the_address", 2, 512,
	  false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), RESERVE(A, 64, WAITS),
		RESERVE(B, 64, 0), GOT(A, 0), STORED(B, 0, WAITS),
		ALLOC(B, 64, -EBUSY), HELD(B, 0), STORED(A, 0, 0), GOT(B, 0),
		HELD(A, 64), HELD(B, 64) } },
	{ "p10_a_pair_has_none_when_one_cannot_store_it", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), RESERVE(A, 64, WAITS),
		RESERVE(B, 64, 0), GOT(A, 0), STORED(B, 0, WAITS),
		LOST(A, 0, -EFAULT), GOT(B, -EFAULT), FREE(0, 512),
		FREE(1, 512), ALLOC(A, 128, WAITS), ALLOC(B, 128, 0),
		GOT(A, 0) } },
	{ "p10_neither_has_stored_it_yet", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), RESERVE(A, 64, WAITS),
		RESERVE(B, 64, 0), GOT(A, 0), LOST(A, 0, -EFAULT), TOLD(B),
		STORED(B, 0, -EFAULT), FREE(0, 512), FREE(1, 512) } },
	{ "p10_exclusive_a_lost_pair_releases_both_permits", 2, 512, true,
	  64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), LAUNCH(C, 0), LAUNCH(D, 1),
		RESERVE(A, 32, WAITS), RESERVE(B, 32, 0), GOT(A, 0),
		STORED(B, 0, WAITS), LOST(A, 0, -EFAULT), GOT(B, -EFAULT),
		ALLOC(C, 32, 0), ALLOC(D, 32, 0) } },
	{ "p10_exclusive_a_lost_pair_keeps_those_it_had", 2, 512, true, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), LAUNCH(C, 0), LAUNCH(D, 1),
		RESERVE(A, 32, WAITS), RESERVE(B, 32, 0), GOT(A, 0),
		STORED(B, 0, WAITS), STORED(A, 0, 0), GOT(B, 0),
		RESERVE(A, 32, WAITS), RESERVE(B, 32, 0), GOT(A, 0),
		LOST(B, 32, -EFAULT), TOLD(A), STORED(A, 32, -EFAULT),
		TRY(C, 32, -EAGAIN), TRY(D, 32, -EAGAIN), ALLOC(B, 32, WAITS),
		ALLOC(A, 32, 0), GOT(B, 0), HELD(A, 64) } },
	{ "p12_who_gives_up_before_the_peer_has_stored", 2, 512, false, 64, {
		LAUNCH(C, 0), PAIR(A, 0, 0), PAIR(B, 1, 1),
		RESERVE(A, 32, WAITS), RESERVE(B, 32, 0), GOT(A, 0),
		STORED(B, 0, WAITS), CANCEL(B, true), FREE(0, 512),
		STORED(A, 0, WAITS), ALLOC(C, 32, 0), RESERVE(B, 32, 0),
		GOT(A, 0), STORED(B, 32, WAITS), STORED(A, 32, 0), GOT(B, 0),
		AT(A, 32), HELD(A, 32) } },
	{ "p12_the_peer_comes_back_before_the_old_address_is_stored", 2, 512,
	  false, 64, {
		LAUNCH(C, 0), PAIR(A, 0, 0), PAIR(B, 1, 1),
		RESERVE(A, 32, WAITS), RESERVE(B, 32, 0), GOT(A, 0),
		CANCEL(B, true), ALLOC(C, 32, 0), RESERVE(B, 32, 0), GOT(A, 0),
		STORED(B, 32, WAITS), STORED(A, 0, WAITS), HELD(A, 0),
		AT(A, 32), STORED(A, 32, 0), GOT(B, 0), HELD(A, 32),
		HELD(B, 32) } },
	{ "p9_p12_relinquish_before_a_pair_has_stored", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), RESERVE(A, 64, WAITS),
		RESERVE(B, 64, 0), GOT(A, 0), STORED(B, 0, WAITS),
		RELINQUISH(A, -EPROTO), GOT(B, -EPROTO), TOLD(A),
		STORED(A, 0, -ECANCELED), FREE(0, 512), FREE(1, 512) } },
	{ "p12_one_of_a_pair_has_nowhere_to_store", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS),
		RESERVE(B, 64, 0), STORED(B, 0, 0), GOT(A, 0),
		RESERVE(A, 64, WAITS), ALLOC(B, 64, WAITS), GOT(A, 0),
		HELD(B, 64), STORED(A, 64, 0), GOT(B, 0), HELD(B, 128) } },
	{ "p4_dealloc_of_a_pair_waits_for_the_peer", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(B, 64, WAITS),
		ALLOC(A, 64, 0), GOT(B, 0), DEALLOC(A, 0, 64, WAITS),
		FREE(0, 448), DEALLOC(B, 0, 64, 0), GOT(A, 0), FREE(0, 512),
		FREE(1, 512) } },
	{ "p12_the_peer_asks_for_other_columns", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS),
		ALLOC(B, 32, -EBADR), GOT(A, -EBADR), ALLOC(A, 64, WAITS),
		ALLOC(B, 64, 0), GOT(A, 0) } },
	{ "p4_the_peer_frees_others", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS),
		ALLOC(B, 64, 0), GOT(A, 0), ALLOC(A, 64, WAITS),
		ALLOC(B, 64, 0), GOT(A, 0), DEALLOC(A, 0, 64, WAITS),
		DEALLOC(B, 64, 64, -EBADR), GOT(A, -EBADR), HELD(A, 128),
		HELD(B, 128) } },
	{ "p12_the_peer_exits", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS), EXIT(B, 0),
		GOT(A, -EPIPE), ALLOC(A, 64, -EPIPE) } },
	{ "p4_the_peer_exits_before_dealloc", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS),
		ALLOC(B, 64, 0), GOT(A, 0), DEALLOC(A, 0, 64, WAITS),
		EXIT(B, 64), GOT(A, -EPIPE), DEALLOC(A, 0, 64, -EPIPE),
		FREE(1, 512), EXIT(A, 64), FREE(0, 512) } },
	{ "p12_the_peer_relinquishes", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS),
		RELINQUISH(B, -EPROTO), GOT(A, -EPROTO), ALLOC(A, 64, -EPROTO),
		ALLOC(B, 64, -EPERM) } },
	{ "p9_relinquish_ends_the_own_wait", 2, 512, false, 64, {
		LAUNCH(C, 0), ALLOC(C, 32, 0), PAIR(A, 0, 0), PAIR(B, 1, 1),
		ALLOC(A, 512, WAITS), ALLOC(B, 512, WAITS),
		RELINQUISH(A, -EPROTO), GOT(B, -EPROTO), GOT(A, -ECANCELED),
		DEALLOC(C, 0, 32, 0) } },
	{ "p20_dealloc_while_the_peer_is_in_alloc", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS),
		ALLOC(B, 64, 0), GOT(A, 0), ALLOC(A, 64, WAITS),
		DEALLOC(B, 0, 64, -EPROTO), GOT(A, -EPROTO), HELD(A, 64),
		ALLOC(A, 64, WAITS), DEALLOC(B, 320, 64, -EPROTO),
		GOT(A, -EPROTO), DEALLOC(B, 0, 64, WAITS),
		ALLOC(A, 64, -EPROTO), GOT(B, -EPROTO), FREE(0, 448) } },
	{ "p12_alloc_after_relinquish_of_a_peer_in_dealloc", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS),
		ALLOC(B, 64, 0), GOT(A, 0), RELINQUISH(B, 0),
		DEALLOC(B, 0, 64, WAITS), ALLOC(A, 64, -EPROTO),
		GOT(B, -EPROTO), DEALLOC(B, 0, 64, WAITS), RELINQUISH(A, 0),
		DEALLOC(A, 0, 64, 0), GOT(B, 0), FREE(0, 512) } },
	{ "p12_who_gives_up_leaves_the_peer_waiting", 2, 512, false, 64, {
		LAUNCH(C, 0), ALLOC(C, 32, 0), PAIR(A, 0, 0), PAIR(B, 1, 1),
		ALLOC(A, 512, WAITS), ALLOC(B, 512, WAITS), CANCEL(A, true),
		DEALLOC(C, 0, 32, 0), FREE(0, 512), ALLOC(A, 512, 0),
		GOT(B, 0) } },
	{ "p12_who_gives_up_does_not_leave_waiting_who_may_not", 2, 512, false,
	  64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), RESERVE(A, 64, WAITS),
		TRY(B, 64, WAITS), GOT(A, 0), CANCEL(A, true), GOT(B, -EAGAIN),
		FREE(0, 512), FREE(1, 512), TRY(B, 64, -EAGAIN),
		RESERVE(A, 64, WAITS), ALLOC(B, 64, WAITS), GOT(A, 0),
		STORED(A, 0, 0), GOT(B, 0) } },
	{ "p12_a_pair_whose_peer_is_still_to_come_is_no_deadlock", 2, 512,
	  false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 256, WAITS),
		ALLOC(B, 256, 0), GOT(A, 0), LAUNCH(C, 0), ALLOC(C, 256, 0),
		ALLOC(A, 32, WAITS), ALLOC(C, 256, WAITS),
		ALLOC(B, 32, -EDEADLK), GOT(A, -EDEADLK) } },
	{ "p13_one_cta_group_a_launch", 2, 512, false, 64, {
		LAUNCH_AS(A, 0, 1, 0), PAIR_IS(B, 0, 0, 0),
		LAUNCH_AS(C, 0, 8, -EPROTOTYPE), LAUNCH_AS(C, 0, 9, 0),
		EXIT(B, 0), LAUNCH_AS(D, 0, 8, 0) } },
	{ "p19_ranks_and_peers", 4, 512, false, 64, {
		PAIR(A, 0, 2), PAIR_IS(B, 1, 2, -EEXIST),
		PAIR_IS(B, 0, 3, -EADDRINUSE), PAIR_IS(B, 9, 3, -ENXIO),
		PAIR(C, 0, 1), ALLOC(A, 32, WAITS), PAIR(B, 1, 3),
		ALLOC(B, 32, 0), GOT(A, 0), EXIT(B, 32),
		PAIR_IS(D, 2, 3, -EEXIST), EXIT(A, 32), PAIR(D, 2, 3) } },

	/* --- clusters as a whole --- */
	{ "p19_a_cluster_as_a_whole", 4, 512, false, 64, {
		MEMBER(A, 0, 2), MEMBER(B, 1, 1), MEMBER(C, 2, 3),
		MEMBER(D, 3, 0), CLUSTER(2, 8, 0), ALLOC(A, 32, WAITS),
		ALLOC(C, 32, 0), GOT(A, 0), ALLOC(B, 32, WAITS),
		ALLOC(D, 32, 0), GOT(B, 0), HELD(D, 32) } },
	{ "p19_nobody_joins_a_complete_cluster", 4, 512, false, 64, {
		MEMBER(A, 0, 0), MEMBER(B, 1, 1), CLUSTER(2, 8, 0),
		PAIR_IS(C, 2, 2, -EEXIST), PAIR_IS(C, 2, 0, -EEXIST), EXIT(B, 0),
		PAIR_IS(C, 2, 1, -EEXIST), PAIR_IS(C, 2, 3, -EEXIST),
		MEMBER(C, 2, 4), MEMBER(D, 3, 5), CLUSTER(2, 8, -EEXIST),
		EXIT(A, 0), PAIR(C, 2, 3), PAIR(D, 3, 2) } },
	{ "p19_a_cluster_that_has_ctas_cannot_be_launched", 4, 512, false, 64, {
		PAIR(C, 2, 2), MEMBER(A, 0, 0), MEMBER(B, 1, 1),
		CLUSTER(2, 8, -EEXIST), PAIR(D, 3, 3), EXIT(C, 0), EXIT(D, 0),
		MEMBER(A, 0, 0), MEMBER(B, 1, 1), CLUSTER(2, 8, 0) } },
	{ "p12_a_complete_cluster_has_no_half_pair", 4, 512, false, 64, {
		MEMBER(A, 0, 0), CLUSTER(2, 8, -EINVAL), MEMBER(A, 0, 0),
		MEMBER(B, 1, 1), MEMBER(C, 2, 2), CLUSTER(2, 8, -EINVAL),
		PAIR(C, 2, 2), ALLOC(C, 32, WAITS), PAIR(D, 3, 3),
		ALLOC(D, 32, 0), GOT(C, 0) } },
	{ "p19_one_that_cannot_be_launched_and_none_is", 2, 512, false, 64, {
		MEMBER(A, 0, 0), MEMBER(B, 1, 1), MEMBER(C, 2, 2),
		MEMBER(D, 0, 3), CLUSTER(2, 8, -ENXIO), CULPRIT(2),
		MEMBER(A, 0, 0), MEMBER(B, 0, 1), CLUSTER(2, 8, -EADDRINUSE),
		CULPRIT(1), MEMBER(A, 0, 0), MEMBER(B, 1, 1), MEMBER(C, 0, 0),
		CLUSTER(2, 8, -EEXIST), CULPRIT(2), MEMBER(A, 0, 0),
		CLUSTER(3, 8, -EINVAL), MEMBER(A, 0, 0), MEMBER(B, 1, 1),
		CLUSTER(2, 8, 0) } },
	{ "p13_a_cluster_has_the_launchs_cta_group", 2, 512, false, 64, {
		LAUNCH_AS(C, 0, 8, 0), MEMBER(A, 0, 0), MEMBER(B, 1, 1),
		CLUSTER(2, 8, -EPROTOTYPE), CULPRIT(0), MEMBER(A, 0, 0),
		MEMBER(B, 1, 1), CLUSTER(2, 9, 0) } },
	{ "p19_a_cluster_of_single_ctas", 1, 512, false, 64, {
		MEMBER(A, 0, 0), MEMBER(B, 0, 2), MEMBER(C, 0, 0),
		CLUSTER(1, 7, -EEXIST), CULPRIT(2), MEMBER(A, 0, 0),
		MEMBER(B, 0, 2), CLUSTER(1, 7, 0), ALLOC(A, 32, 0),
		ALLOC(B, 32, 0), LAUNCH_AS(C, 0, 7, -EEXIST),
		LAUNCH_AS(C, 0, 8, 0), EXIT(A, 32), LAUNCH_AS(D, 0, 7, -EEXIST),
		EXIT(B, 32), LAUNCH_AS(D, 0, 7, 0) } },
	{ "p2_no_cluster_after_the_end", 2, 512, false, 64, {
		RESET, MEMBER(A, 0, 0), MEMBER(B, 1, 1),
		CLUSTER(2, 8, -ECONNRESET) } },

	/* --- strict mode --- */
	{ "p12_strict_dealloc_before_the_peers_alloc_has_returned", 2, 512,
	  false, 64, {
		STRICT, PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS),
		ALLOC(B, 64, 0), GOT(A, 0), RETURNED(B),
		DEALLOC(B, 0, 64, WAITS), HAZARDS(B, ACCMEM_HAZARD_PEER),
		HAZARDS(A, 0), RETURNED(A), DEALLOC(A, 0, 64, 0), GOT(B, 0),
		HAZARDS(A, 0), HAZARDS(B, 0) } },
	{ "p12_strict_dealloc_after_both_have_returned", 2, 512, false, 64, {
		STRICT, PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS),
		ALLOC(B, 64, 0), GOT(A, 0), RETURNED(A), RETURNED(B),
		DEALLOC(B, 0, 64, WAITS), DEALLOC(A, 0, 64, 0), GOT(B, 0),
		EXIT(A, 0), EXIT(B, 0), HAZARDS(A, 0), HAZARDS(B, 0) } },
	{ "p12_strict_exit_before_the_peers_alloc_has_returned", 2, 512, false,
	  64, {
		STRICT, PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS),
		ALLOC(B, 64, 0), GOT(A, 0), RETURNED(B), EXIT(B, 64),
		HAZARDS(B, ACCMEM_HAZARD_PEER), HAZARDS(A, 0), EXIT(A, 64),
		HAZARDS(A, 0) } },
	{ "p12_strict_a_wait_that_failed_is_none", 2, 512, false, 64, {
		STRICT, PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS),
		EXIT(B, 0), GOT(A, -EPIPE), HAZARDS(B, 0) } },
	{ "p12_strict_a_dealloc_that_breaks_a_rule_is_that", 2, 512, false, 64, {
		STRICT, PAIR(A, 0, 0), PAIR(B, 1, 1), ALLOC(A, 64, WAITS),
		ALLOC(B, 64, 0), GOT(A, 0), RETURNED(B),
		DEALLOC(B, 0, 32, -EMSGSIZE), HAZARDS(B, 0) } },
	{ "p9_strict_an_alloc_that_would_wait_for_another_launch", 2, 512,
	  false, 64, {
		STRICT, LAUNCH_AS(A, 0, 5, 0), LAUNCH_AS(B, 0, 6, 0),
		LAUNCH_AS(C, 1, 6, 0), ALLOC(A, 32, 0), HAZARDS(A, 0),
		DEALLOC(A, 0, 32, 0), ALLOC(B, 32, 0),
		HAZARDS(B, ACCMEM_HAZARD_PERMIT), ALLOC(B, 32, 0),
		HAZARDS(B, 0), ALLOC(C, 32, 0), HAZARDS(C, 0) } },
	{ "p9_strict_after_relinquish_or_exit_it_would_not", 1, 512, false, 64, {
		STRICT, LAUNCH_AS(A, 0, 5, 0), LAUNCH_AS(B, 0, 6, 0),
		LAUNCH_AS(C, 0, 7, 0), LAUNCH_AS(D, 0, 7, 0), ALLOC(A, 32, 0),
		RELINQUISH(A, 0), ALLOC(B, 32, 0), HAZARDS(B, 0), EXIT(B, 32),
		ALLOC(C, 32, 0), HAZARDS(C, 0), ALLOC(D, 32, 0),
		HAZARDS(D, 0) } },
	{ "p9_strict_who_has_not_allocated_keeps_nothing", 1, 512, false, 64, {
		STRICT, LAUNCH_AS(A, 0, 5, 0), LAUNCH_AS(B, 0, 6, 0),
		TRY(A, 48, -EDOM), ALLOC(B, 32, 0), HAZARDS(B, 0) } },
	{ "p9_strict_exclusive_it_has_waited", 1, 512, true, 64, {
		STRICT, LAUNCH_AS(A, 0, 5, 0), LAUNCH_AS(B, 0, 6, 0),
		ALLOC(A, 32, 0), ALLOC(B, 32, WAITS), RELINQUISH(A, 0),
		GOT(B, 0), HAZARDS(B, 0) } },
	{ "p11_strict_another_warp", 1, 512, false, 64, {
		STRICT, LAUNCH(A, 0), WARP(A, 3), ALLOC(A, 64, 0),
		HAZARDS(A, 0), WARP(A, 4), ALLOC(A, 32, 0),
		HAZARDS(A, ACCMEM_HAZARD_WARP), DEALLOC(A, 0, 64, 0),
		HAZARDS(A, ACCMEM_HAZARD_WARP), WARP(A, 3),
		DEALLOC(A, 64, 32, 0), ALLOC(A, 32, 0), HAZARDS(A, 0) } },
	{ "p11_strict_an_alloc_that_failed_is_not_the_first", 1, 512, false, 64, {
		STRICT, LAUNCH(A, 0), WARP(A, 3), TRY(A, 48, -EDOM),
		WARP(A, 4), ALLOC(A, 32, 0), DEALLOC(A, 0, 32, 0),
		HAZARDS(A, 0) } },
	{ "p11_strict_each_of_a_pair_has_its_own", 2, 512, false, 64, {
		STRICT, PAIR(A, 0, 0), PAIR(B, 1, 1), WARP(A, 1), WARP(B, 2),
		ALLOC(A, 64, WAITS), ALLOC(B, 64, 0), GOT(A, 0), RETURNED(A),
		RETURNED(B), WARP(A, 2), DEALLOC(A, 0, 64, WAITS),
		DEALLOC(B, 0, 64, 0), GOT(A, 0),
		HAZARDS(A, ACCMEM_HAZARD_WARP), HAZARDS(B, 0) } },
	{ "p11_without_strict_mode_nothing_is_looked_for", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), LAUNCH(C, 1), ALLOC(C, 32, 0),
		ALLOC(A, 64, WAITS), WARP(B, 1), ALLOC(B, 64, 0), GOT(A, 0),
		WARP(B, 2), DEALLOC(B, 64, 64, WAITS), EXIT(C, 32),
		CANCEL(B, true), EXIT(B, 64), HAZARDS(A, 0), HAZARDS(B, 0),
		HAZARDS(C, 0) } },

	/* --- the end --- */
	{ "p2_reset_ends_every_wait", 2, 512, false, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), LAUNCH(C, 0), LAUNCH(D, 0),
		ALLOC(C, 512, 0), ALLOC(D, 32, WAITS), ALLOC(A, 32, WAITS),
		ALLOC(B, 32, WAITS), RESET, GOT(B, -ECONNRESET),
		GOT(A, -ECONNRESET), GOT(D, -ECONNRESET), FREE(0, 512),
		ALLOC(C, 32, -ECONNRESET), DEALLOC(C, 0, 512, -ECONNRESET),
		RELINQUISH(C, -ECONNRESET), PAIR_IS(E, 0, 9, -ECONNRESET),
		EXIT(A, 0), EXIT(B, 0), EXIT(C, 0), EXIT(D, 0) } },
	{ "p2_reset_before_the_address_is_stored", 2, 512, true, 64, {
		PAIR(A, 0, 0), PAIR(B, 1, 1), LAUNCH(C, 0),
		RESERVE(A, 32, WAITS), RESERVE(B, 32, 0), GOT(A, 0),
		STORED(B, 0, WAITS), RESERVE(C, 32, WAITS), RESET,
		GOT(B, -ECONNRESET), TOLD(A), GOT(C, -ECONNRESET),
		STORED(A, 0, -ECONNRESET), FREE(0, 512), FREE(1, 512),
		EXIT(A, 0), EXIT(B, 0), EXIT(C, 0) } },
};

/* clang-format on */

/* where a story went wrong */
struct columns_failure {
	unsigned int step;
	long long got;
	long long wanted;
};

struct columns_world {
	struct accmem_columns c;
	struct accmem_columns_sm sms[4];
	struct accmem_columns_cta cta[NR_NAMES];
	struct accmem_columns_cta *member[NR_NAMES];
	u32 nr_members;
	u32 culprit;
};

/* what each CTA holds as the arbiter has told, in the story being played */
static u64 columns_told[NR_NAMES];
static struct accmem_columns_cta *columns_told_from;

/* accmem_columns.held_changed */
static inline void columns_tell_held(struct accmem_columns_cta *cta, u64 units)
{
	columns_told[cta - columns_told_from] ^= units;
}

static inline bool columns_told_all(const struct columns_world *w)
{
	unsigned int i;

	for (i = 0; i < NR_NAMES; i++) {
		if (w->cta[i].held != columns_told[i])
			return false;
	}
	return true;
}

static inline void columns_listen(struct columns_world *w)
{
	unsigned int i;

	for (i = 0; i < NR_NAMES; i++)
		columns_told[i] = 0;
	columns_told_from = w->cta;
	w->c.held_changed = columns_tell_held;
	for (i = 0; i < ARRAY_SIZE(w->sms); i++)
		w->sms[i].watched = true;
}

static inline int columns_launch(struct columns_world *w,
				 const struct columns_step *s)
{
	struct accmem_columns_cta *cta = &w->cta[s->cta];

	cta->sm = s->value;
	if (s->op == OP_PAIR) {
		cta->launch = 8;
		cta->group = 2;
		cta->rank = s->more;
	} else {
		cta->launch = s->more;
		cta->group = 1;
	}
	return accmem_columns_launch(&w->c, cta);
}

static inline int columns_name_member(struct columns_world *w,
				      const struct columns_step *s)
{
	struct accmem_columns_cta *cta = &w->cta[s->cta];

	cta->sm = s->value;
	cta->rank = s->more;
	w->member[w->nr_members++] = cta;
	return 0;
}

static inline int columns_launch_members(struct columns_world *w,
					 const struct columns_step *s)
{
	u32 i, nr = w->nr_members;

	for (i = 0; i < nr; i++) {
		w->member[i]->group = s->value;
		w->member[i]->launch = s->more;
	}
	w->nr_members = 0;
	return accmem_columns_launch_cluster(&w->c, w->member, nr, &w->culprit);
}

/* the result of a wait that is over, unless its caller finds out later */
static inline int columns_take(const struct columns_step *s,
			       struct accmem_columns_cta *cta)
{
	return s->op == OP_GOT ? accmem_columns_collect(cta) : 0;
}

static inline long long columns_do(struct columns_world *w,
				   const struct columns_step *s)
{
	struct accmem_columns_cta *cta = &w->cta[s->cta], *done;
	struct accmem_columns *c = &w->c;

	switch (s->op) {
	case OP_LAUNCH:
	case OP_PAIR:
		return columns_launch(w, s);
	case OP_MEMBER:
		return columns_name_member(w, s);
	case OP_CLUSTER:
		return columns_launch_members(w, s);
	case OP_CULPRIT:
		return w->culprit;
	case OP_ALLOC:
		return accmem_columns_alloc(c, cta, s->value, true);
	case OP_TRY:
		return accmem_columns_alloc(c, cta, s->value, false);
	case OP_DEALLOC:
		return accmem_columns_dealloc(c, cta, s->value, s->more, true);
	case OP_RELINQUISH:
		return accmem_columns_relinquish(c, cta);
	case OP_EXIT:
		return 32 * hweight64(accmem_columns_exit(c, cta));
	case OP_CANCEL:
		return accmem_columns_cancel(c, cta);
	case OP_RESET:
		accmem_columns_reset(c);
		return 0;
	case OP_RESERVE:
		return accmem_columns_reserve(c, cta, s->value, true);
	case OP_STORED:
		return accmem_columns_confirm(c, cta, s->value, true);
	case OP_LOST:
		return accmem_columns_confirm(c, cta, s->value, false);
	case OP_GOT:
	case OP_TOLD:
		done = accmem_columns_next_done(c);
		return done == cta ? columns_take(s, cta) : 1000;
	case OP_AT:
		return cta->address;
	case OP_HELD:
		return 32 * hweight64(cta->held);
	case OP_FREE:
		return accmem_columns_free(c, s->value);
	case OP_STRICT:
		c->strict = true;
		return 0;
	case OP_WARP:
		cta->warp = s->value;
		return 0;
	case OP_RETURNED:
		accmem_columns_returned(cta);
		return 0;
	case OP_HAZARDS:
		return accmem_columns_collect_hazards(cta);
	case OP_FORCED:
		return c->forced;
	default:
		return 1001;
	}
}

/* true when everything went as the story says */
static inline bool columns_run(struct columns_world *w,
			       const struct columns_case *k,
			       struct columns_failure *f)
{
	const struct columns_step *s = k->steps;

	*w = (struct columns_world){};
	f->got = accmem_columns_init(&w->c, w->sms, k->nr_sms, k->columns,
				     k->exclusive, k->bound);
	f->wanted = 0;
	f->step = 0;
	columns_listen(w);
	for (; f->got == f->wanted && s->op != OP_END; s++) {
		f->step = s - k->steps;
		if (s->op != OP_GOT && s->op != OP_TOLD &&
		    !list_empty(&w->c.done)) {
			f->got = 1002;
			return false;
		}
		f->got = columns_do(w, s);
		f->wanted = s->result;
		if (!columns_told_all(w)) {
			f->got = 1003;
			return false;
		}
	}
	return f->got == f->wanted && list_empty(&w->c.done);
}

#endif /* ACCMEM_COLUMNS_CASES_H */
