/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A world of CTAs that make the calls which the program around it draws.
 */
#ifndef COLUMNS_WORLD_H
#define COLUMNS_WORLD_H

#include <stdbool.h>

/**
 * struct columns_world - what has happened so far
 * @step: calls made
 * @grants: allocations granted
 * @refusals: those refused with EDEADLK
 * @timeouts: waits that were given up
 */
struct columns_world {
	unsigned long long step;
	unsigned long long grants;
	unsigned long long refusals;
	unsigned long long timeouts;
};

extern struct columns_world columns_world;

/* one setting, and @calls calls in it */
void columns_world_play(unsigned int calls);

/* From the program around it: a choice below @n, and what to do when not */
unsigned int below(unsigned int n);
void must(bool condition, const char *what);

#endif /* COLUMNS_WORLD_H */
