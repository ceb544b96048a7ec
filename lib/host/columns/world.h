/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A world of CTAs that make the calls which the program around it draws, held
 * against the reference call by call.
 */
#ifndef COLUMNS_WORLD_H
#define COLUMNS_WORLD_H

#include <stdbool.h>

/**
 * struct columns_world - what has happened so far
 * @step: calls made
 * @grants: and so on: how often each thing that can happen has
 */
struct columns_world {
	unsigned long long step;
	unsigned long long grants;
	unsigned long long waits_granted;
	unsigned long long passed_by;
	unsigned long long forced;
	unsigned long long deadlocks;
	unsigned long long deadlocks_of_pairs;
	unsigned long long given_up;
	unsigned long long reservations;
	unsigned long long reservations_of_pairs;
	unsigned long long half_stored;
	unsigned long long stored_at_old_address;
	unsigned long long lost;
	unsigned long long lost_by_peer;
	unsigned long long lost_by_both;
	unsigned long long given_up_while_reserved;
	unsigned long long peer_back_at_alloc;
	unsigned long long peer_could_not_wait;
	unsigned long long relinquished_while_reserved;
	unsigned long long unlike_collectives;
	unsigned long long alloc_meets_last_dealloc;
	unsigned long long unlike_operands;
	unsigned long long peer_exits;
	unsigned long long never_fits;
	unsigned long long columns_grow;
	unsigned long long too_late;
	unsigned long long permits_handed_on;
	unsigned long long permits_taken_back;
	unsigned long long resets;
	unsigned long long resets_of_reserved;
};

/* One of them; the last has no name */
struct columns_event {
	const char *name;
	const unsigned long long *count;
};

extern const struct columns_event columns_events[];
extern struct columns_world columns_world;
/*
 * After one call of so many the reference is asked whether anything is left to do; the
 * arbiter is compared with it after each.
 */
extern unsigned int columns_world_check_every;

/* one setting, and @calls calls in it */
void columns_world_play(unsigned int calls);

/* From the program around it: a choice below @n, and what to do when not */
unsigned int below(unsigned int n);
void must(bool condition, const char *what);

#endif /* COLUMNS_WORLD_H */
