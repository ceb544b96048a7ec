/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The world of the random test of the queue: the queue, and what the reference knows.
 */
#ifndef ACCMEM_QUEUE_WORLD_TYPES_H
#define ACCMEM_QUEUE_WORLD_TYPES_H

#include "lib/queue/queue.h"

#define WAITERS 12
#define USERS 3
#define UNIT 4096ull
#define CAPACITY (64 * UNIT)
#define LIMIT (40 * UNIT)
#define CREDIT 16
#define BOUND 4
#define RESERVE 500
#define STALL (RESERVE / 200)
#define PAUSE 200
#define DOUBLINGS 6

/* what the reference knows of a waiter */
struct entry {
	struct accmem_queue_waiter w;
	const struct world *world;
	bool in;
	unsigned int user;
	u64 turn;
	u64 length; /* of its turn */
	u64 order; /* of arrival, or of when it lost its place */
	enum accmem_queue_state state;
	bool limited;
	u32 bypassed;
	bool stale; /* nothing has changed since it tried */
	u64 ended; /* serial number of its last try that failed */
};

/* what the reference knows of the reservation */
struct reservation {
	struct entry *of; /* or NULL */
	bool suspended;
	u64 held;
	u64 until;
	u64 refused; /* since when requests are refused */
	u64 stalled[2]; /* since when no memory was gained: own user, others */
};

struct world {
	const char *origin;
	u64 step;
	struct rng *draw;
	struct accmem_queue q;
	struct accmem_queue_user users[USERS];
	u64 held[USERS];
	u64 ahead[USERS]; /* where a user's turns end */
	u64 turn; /* where the latest that was served began */
	u64 first; /* where everybody was when nobody waited */
	struct entry e[WAITERS];
	u64 arrivals;
	u64 free;
	u64 now;
	struct reservation r;
	unsigned int unused[USERS];
	u64 ended[USERS]; /* when the last unused reservation of a user ended */
	u64 tries;
	u64 returned_from; /* tries before a request took what it gives back */
	u64 taken; /* by that request, now */
	unsigned int taker;
};

#endif /* ACCMEM_QUEUE_WORLD_TYPES_H */
