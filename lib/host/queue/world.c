// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A queue of waiters, and beside it the same told the naive way: an array in order,
 * which is sorted anew whenever it changes. The world has memory, whose bytes are
 * free or held, and users with a limit each. After every call:
 *
 * - the queue is in the order of the reference, and its sums are those of it;
 * - nobody sleeps who could be served: who fits what is free and not promised, and
 *   has not tried since that was so, unless memory is reserved for another;
 * - nobody bypassed the front more often than the bound while memory could be reserved,
 *   and nobody else was woken while it was;
 * - a reservation lasts no longer than it may, is suspended while its waiter is,
 *   and costs its waiter the place if it ends unserved.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/kernel.h>

#include "lib/queue/queue.h"
#include "world.h"

#define WAITERS 12
#define USERS 3
#define UNIT 4096ull
#define CAPACITY (64 * UNIT)
#define LIMIT (40 * UNIT)
#define CREDIT 16
#define BOUND 4
#define RESERVE 50

/* what the reference knows of a waiter */
struct entry {
	struct accmem_queue_waiter w;
	bool in;
	unsigned int user;
	u64 turn;
	u64 length; /* of its turn */
	u64 order; /* of arrival, or of when it lost its place */
	enum accmem_queue_state state;
	bool limited;
	u32 bypassed;
	bool stale; /* nothing has changed since it tried */
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
};

static void check(const struct world *w, bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "FAILED: queue: %s: step %llu: %s\n", w->origin,
		(unsigned long long)w->step, what);
	abort();
}

static struct entry *to_entry(struct accmem_queue_waiter *q)
{
	return q ? list_entry(q, struct entry, w) : NULL;
}

/* the reference's order: is @a before @b? */
static bool is_before(const struct entry *a, const struct entry *b)
{
	return a->turn < b->turn || (a->turn == b->turn && a->order < b->order);
}

/* the first entry behind @after, or of all; NULL at the end */
static struct entry *naive_next(struct world *w, const struct entry *after)
{
	struct entry *best = NULL;
	unsigned int i;

	for (i = 0; i < WAITERS; i++) {
		struct entry *e = &w->e[i];

		if (!e->in || (after && !is_before(after, e)))
			continue;
		if (!best || is_before(e, best))
			best = e;
	}
	return best;
}

static struct entry *naive_front(struct world *w)
{
	struct entry *e = NULL;

	while ((e = naive_next(w, e)) &&
	       (e->limited || e->state == ACCMEM_QUEUE_SERVED))
		;
	return e;
}

/* whose turn comes before all others', if it sleeps, and may have anything */
static struct entry *naive_first(struct world *w)
{
	struct entry *e = NULL;

	while ((e = naive_next(w, e)) && e->state == ACCMEM_QUEUE_SERVED)
		;
	if (!e || e->state != ACCMEM_QUEUE_ASLEEP ||
	    (w->q.reserved && w->q.reserved != &e->w))
		return NULL;
	return e;
}

static bool fits_limit(const struct world *w, const struct entry *e)
{
	return w->held[e->user] + e->w.need <= LIMIT;
}

static bool fits(const struct accmem_queue_waiter *q, u64 promised, void *arg)
{
	const struct entry *e = list_entry(q, const struct entry, w);
	struct world *w = arg;

	return fits_limit(w, e) && w->free >= promised &&
	       w->free - promised >= q->need;
}

static void check_sums(struct world *w)
{
	u64 promised = 0;
	unsigned int i, nr = 0, nr_starved = 0;

	for (i = 0; i < WAITERS; i++) {
		const struct entry *e = &w->e[i];

		if (!e->in)
			continue;
		nr++;
		nr_starved += !e->limited;
		if (e->state == ACCMEM_QUEUE_AWAKE)
			promised += e->w.need;
		check(w, e->w.state == e->state, "its state");
		check(w, e->w.limited == e->limited, "why it waits");
		check(w, e->w.bypassed == e->bypassed,
		      "how often it was bypassed");
	}
	check(w, w->q.nr == nr, "the number of waiters");
	check(w, w->q.nr_starved == nr_starved, "the number of the short ones");
	check(w, w->q.promised == promised, "what is promised");
}

static void check_order(struct world *w)
{
	struct accmem_queue_waiter *q = NULL;
	struct entry *e = NULL;

	do {
		q = accmem_queue_walk(&w->q, q);
		e = naive_next(w, e);
		check(w, to_entry(q) == e, "the order");
	} while (q);
}

/* one that is about to leave, which lets the next one have what it is due */
static bool has_served(const struct world *w)
{
	unsigned int i;

	for (i = 0; i < WAITERS; i++)
		if (w->e[i].in && w->e[i].state == ACCMEM_QUEUE_SERVED)
			return true;
	return false;
}

static void check_reservation(struct world *w)
{
	struct entry *front = naive_front(w), *e = to_entry(w->q.reserved);

	if (e) {
		check(w, e->in && !e->limited, "reserved for one who is short");
		check(w, e->state != ACCMEM_QUEUE_SUSPENDED, "who is there");
		check(w, w->now <= w->q.until + RESERVE, "for a time");
	} else if (w->q.suspended) {
		e = to_entry(w->q.suspended);
		check(w, e->in && e->state == ACCMEM_QUEUE_SUSPENDED,
		      "suspended for a suspended waiter");
	} else if (front && front->state != ACCMEM_QUEUE_SUSPENDED &&
		   w->now >= w->q.until && !has_served(w)) {
		check(w, front->bypassed < BOUND, "the bound is kept");
	}
}

/* nobody sleeps who could be served */
static void check_nobody_is_forgotten(struct world *w)
{
	struct entry *reserved = to_entry(w->q.reserved);
	unsigned int i;

	for (i = 0; i < WAITERS; i++) {
		const struct entry *e = &w->e[i];

		if (!e->in || e->state != ACCMEM_QUEUE_ASLEEP || e->stale)
			continue;
		check(w,
		      (reserved && reserved != e) ||
			      !fits(&e->w, w->q.promised, w),
		      "nobody is forgotten");
	}
}

/* memory has come back: all who are short may try again */
static void naive_memory_freed(struct world *w)
{
	unsigned int i;

	for (i = 0; i < WAITERS; i++)
		w->e[i].stale &= w->e[i].limited;
}

static void naive_charge_dropped(struct world *w, unsigned int user)
{
	unsigned int i;

	for (i = 0; i < WAITERS; i++)
		if (w->e[i].user == user && w->e[i].limited)
			w->e[i].stale = false;
}

/* after a call: a reservation that has gone leaves memory to the others */
static void notice_reservation(struct world *w,
			       const struct accmem_queue_waiter *before)
{
	if (before && w->q.reserved != before)
		naive_memory_freed(w);
}

static void wake(struct world *w)
{
	struct accmem_queue_waiter *reserved = w->q.reserved, *q = NULL;
	struct entry *e;

	while ((q = accmem_queue_next(&w->q, q, fits, w))) {
		e = to_entry(q);
		check(w, e->in && e->state == ACCMEM_QUEUE_ASLEEP,
		      "a sleeper is woken");
		check(w, !e->stale, "for a reason");
		check(w, !reserved || q == reserved, "reserved for another");
		e->state = ACCMEM_QUEUE_AWAKE;
	}
	check(w, w->q.promised <= CAPACITY * WAITERS, "promises are kept");
}

static void naive_count_bypass(struct world *w, const struct entry *served)
{
	struct entry *front = naive_front(w);

	if (front && front != served)
		front->bypassed++;
}

/*
 * the latest turn that was served, or an earlier one of somebody who is there and waits
 */
static u64 naive_now(const struct world *w)
{
	u64 now = w->turn;
	unsigned int i;

	for (i = 0; i < WAITERS; i++) {
		const struct entry *e = &w->e[i];

		if (e->in && !e->limited &&
		    e->state != ACCMEM_QUEUE_SUSPENDED && e->turn < now)
			now = e->turn;
	}
	return now;
}

/* where the next turn of a user begins, which is @length long */
static u64 naive_turn(struct world *w, unsigned int user, u64 length)
{
	u64 now = naive_now(w), since = now > CREDIT ? now - CREDIT : 0;
	u64 turn;

	if (since < w->first)
		since = w->first;
	turn = w->ahead[user] > since ? w->ahead[user] : since;

	w->ahead[user] = turn + length;
	return turn;
}

static void enter(struct world *w, struct entry *e)
{
	u64 need = 1 + rng_below(w->draw, LIMIT);

	e->user = rng_below(w->draw, USERS);
	e->length = need / UNIT + 1;
	e->turn = naive_turn(w, e->user, e->length);
	e->order = ++w->arrivals;
	e->in = true;
	e->limited = false;
	e->bypassed = 0;
	e->stale = false;
	e->state = ACCMEM_QUEUE_AWAKE;
	accmem_queue_enter(&w->q, &e->w, &w->users[e->user], need);
	if (rng_below(w->draw, 2)) {
		e->state = ACCMEM_QUEUE_ASLEEP;
		accmem_queue_enter_asleep(&w->q, &e->w);
	}
}

static bool is_reserved_for(const struct world *w, const struct entry *e)
{
	return w->q.reserved == &e->w || w->q.suspended == &e->w;
}

/* a reservation has ended unserved: its waiter is behind all others */
static void naive_demote(struct world *w, struct entry *e)
{
	struct entry *last = NULL, *next = NULL;

	while ((next = naive_next(w, next)))
		last = next;
	e->bypassed = 0;
	e->turn = last->turn;
	e->order = ++w->arrivals;
	if (w->ahead[e->user] < e->turn + e->length)
		w->ahead[e->user] = e->turn + e->length;
	naive_memory_freed(w);
}

static void leave(struct world *w, struct entry *e, bool served)
{
	bool was_first = naive_front(w) == e || e->state == ACCMEM_QUEUE_SERVED;
	struct entry *next;
	unsigned int i;

	if (served && !was_first)
		naive_count_bypass(w, e);
	if (!served && is_reserved_for(w, e))
		naive_demote(w, e);
	e->in = false;
	next = naive_front(w);
	if (!served && was_first && next && next->bypassed < e->bypassed)
		next->bypassed = e->bypassed;
	if (served && w->turn < e->turn)
		w->turn = e->turn;
	if (!served && w->ahead[e->user] == e->turn + e->length)
		w->ahead[e->user] = e->turn;
	/* when nobody waits, all are equal */
	for (i = 0; !naive_next(w, NULL) && i < USERS; i++) {
		if (w->turn < w->ahead[i])
			w->turn = w->ahead[i];
		w->first = w->turn;
	}
	accmem_queue_leave(&w->q, &e->w, served, w->now);
}

/* what is reserved for another is not there */
static bool has_room(const struct world *w, const struct entry *e)
{
	return w->free >= e->w.need &&
	       (!w->q.reserved || w->q.reserved == &e->w);
}

static void try(struct world *w, struct entry *e)
{
	bool limited = !fits_limit(w, e), vain = limited || !has_room(w, e);

	accmem_queue_start_try(&w->q, &e->w);
	e->state = ACCMEM_QUEUE_AWAKE;
	if (!vain) {
		w->free -= e->w.need;
		w->held[e->user] += e->w.need;
		leave(w, e, true);
		return;
	}
	e->state = ACCMEM_QUEUE_ASLEEP;
	e->stale = true;
	e->limited = limited;
	if (limited && is_reserved_for(w, e))
		naive_demote(w, e);
	accmem_queue_sleep(&w->q, &e->w, limited, w->now);
}

static void free_some(struct world *w)
{
	unsigned int user = rng_below(w->draw, USERS);
	u64 n = min(w->held[user], 1 + rng_below(w->draw, 16 * UNIT));

	w->held[user] -= n;
	w->free += n;
	accmem_queue_memory_freed(&w->q);
	accmem_queue_charge_dropped(&w->users[user]);
	naive_memory_freed(w);
	naive_charge_dropped(w, user);
}

/* what a user frees goes to the first who waits, if that needs just as much */
static void hand_over(struct world *w)
{
	unsigned int user = rng_below(w->draw, USERS);
	struct entry *e = naive_first(w);

	check(w, to_entry(accmem_queue_first(&w->q)) == e, "who is first");
	if (!e || w->held[user] < e->w.need || !fits_limit(w, e))
		return;
	w->held[user] -= e->w.need;
	w->held[e->user] += e->w.need;
	e->state = ACCMEM_QUEUE_SERVED;
	accmem_queue_serve(&w->q, &e->w);
	accmem_queue_charge_dropped(&w->users[user]);
	naive_charge_dropped(w, user);
}

/* the handoff is of no use to the waiter */
static void refuse(struct world *w, struct entry *e)
{
	w->held[e->user] -= e->w.need;
	w->free += e->w.need;
	accmem_queue_memory_freed(&w->q);
	accmem_queue_charge_dropped(&w->users[e->user]);
	naive_memory_freed(w);
	naive_charge_dropped(w, e->user);
	if (rng_below(w->draw, 2))
		try(w, e);
	else
		leave(w, e, false);
}

/* somebody who does not wait */
static void barge(struct world *w)
{
	unsigned int user = rng_below(w->draw, USERS);
	u64 n = 1 + rng_below(w->draw, 8 * UNIT);
	const struct entry *front = naive_front(w);

	if (w->q.reserved || w->free < n || w->held[user] + n > LIMIT)
		return;
	w->free -= n;
	w->held[user] += n;
	if (front && naive_turn(w, user, n / UNIT + 1) >= front->turn)
		naive_count_bypass(w, NULL);
	accmem_queue_count_bypass(&w->q, &w->users[user], n, w->now);
}

static void tick(struct world *w)
{
	struct entry *e = to_entry(w->q.reserved ?: w->q.suspended);
	bool ended;

	w->now += rng_below(w->draw, RESERVE);
	ended = e && w->now >= w->q.until;
	check(w, accmem_queue_tick(&w->q, w->now) == ended,
	      "a reservation ends in time");
	if (ended)
		naive_demote(w, e);
}

static void suspend(struct world *w, struct entry *e)
{
	e->state = ACCMEM_QUEUE_SUSPENDED;
	accmem_queue_suspend(&w->q, &e->w);
}

static void resume(struct world *w, struct entry *e)
{
	bool late = w->q.suspended == &e->w && w->now >= w->q.until;

	if (late)
		naive_demote(w, e);
	e->state = ACCMEM_QUEUE_AWAKE;
	accmem_queue_resume(&w->q, &e->w, w->now);
}

/* what a waiter does next */
static void act(struct world *w, struct entry *e)
{
	if (!e->in)
		enter(w, e);
	else if (e->state == ACCMEM_QUEUE_SERVED && rng_below(w->draw, 4))
		leave(w, e, true);
	else if (e->state == ACCMEM_QUEUE_SERVED)
		refuse(w, e);
	else if (!rng_below(w->draw, 8))
		leave(w, e, false);
	else if (e->state == ACCMEM_QUEUE_SUSPENDED)
		resume(w, e);
	else if (e->state == ACCMEM_QUEUE_AWAKE)
		try(w, e);
	else if (!rng_below(w->draw, 4))
		suspend(w, e);
}

static void step(struct world *w)
{
	struct accmem_queue_waiter *before = w->q.reserved;

	switch (rng_below(w->draw, 9)) {
	case 0:
	case 1:
		free_some(w);
		break;
	case 8:
		hand_over(w);
		break;
	case 2:
		barge(w);
		break;
	case 3:
		tick(w);
		break;
	default:
		act(w, &w->e[rng_below(w->draw, WAITERS)]);
		break;
	}
	notice_reservation(w, before);
	wake(w);
	check_sums(w);
	check_order(w);
	check_reservation(w);
	check_nobody_is_forgotten(w);
}

void queue_world_run(const char *origin, struct rng *draw, u64 steps)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->origin = origin;
	w->draw = draw;
	w->free = CAPACITY;
	accmem_queue_init(&w->q, BOUND);
	w->q.reserve_ns = RESERVE;
	w->q.credit = CREDIT * UNIT;
	for (w->step = 0; w->step < steps && !rng_is_spent(draw); w->step++)
		step(w);
	free(w);
}
