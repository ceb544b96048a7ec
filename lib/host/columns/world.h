/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A world of CTAs that make the calls which the program around it draws, held
 * against the reference call by call, and against the oracle.
 */
#ifndef COLUMNS_WORLD_H
#define COLUMNS_WORLD_H

#include <stdbool.h>

/* What can happen, and should often; the names are printed */
#define COLUMNS_EVENTS(event)                                             \
	event(grants) event(waits_granted) event(passed_by) event(forced) \
	event(deadlocks) event(deadlocks_of_pairs) event(given_up)        \
	event(reservations) event(reservations_of_pairs)                  \
	event(half_stored) event(stored_at_old_address) event(lost)       \
	event(lost_by_peer) event(lost_by_both)                           \
	event(given_up_while_reserved) event(peer_back_at_alloc)          \
	event(relinquished_while_reserved) event(unlike_collectives)      \
	event(unlike_operands) event(peer_exits) event(never_fits)        \
	event(columns_grow) event(too_late) event(permits_handed_on)      \
	event(permits_taken_back) event(resets) event(resets_of_reserved)

/**
 * struct columns_world - what has happened so far
 * @step: calls made
 * @grants: and so on: how often each event has occurred
 */
struct columns_world {
	unsigned long long step;
#define COLUMNS_COUNTER(name) unsigned long long name;
	COLUMNS_EVENTS(COLUMNS_COUNTER)
#undef COLUMNS_COUNTER
};

extern struct columns_world columns_world;
/* The oracle is asked after one call of so many; the reference after each */
extern unsigned int columns_world_oracle_every;

/* one setting, and @calls calls in it */
void columns_world_play(unsigned int calls);

/* From the program around it: a choice below @n, and what to do when not */
unsigned int below(unsigned int n);
void must(bool condition, const char *what);

#endif /* COLUMNS_WORLD_H */
