/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A queue in a small world of memory and users, beside its reference. */
#ifndef QUEUE_WORLD_H
#define QUEUE_WORLD_H

#include "../rng.h"

/*
 * Makes @steps random calls, or as many as @draw has numbers for, and aborts where the
 * queue and its reference differ, or a rule is broken. @origin says how to make the
 * same calls again.
 */
void queue_world_run(const char *origin, struct rng *draw, u64 steps);

#endif /* QUEUE_WORLD_H */
