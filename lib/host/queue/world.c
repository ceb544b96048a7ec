// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A queue of waiters, and a reference beside it that does the same in a simple way: an
 * array in order, sorted anew whenever it changes. The world has memory, whose bytes are
 * free or allocated, and users with a limit each. The program checks after every call:
 *
 * - the queue has the order, the sums and the reservation of the reference;
 * - no waiter sleeps that could be served: that fits into the bytes that are free and
 *   neither promised nor held, and has not tried since;
 * - the front is not bypassed more often than the bound while a reservation could begin;
 * - during a reservation no other request takes held bytes;
 * - a reservation lasts no longer than it may, refuses nothing while its waiter is
 *   suspended, and costs its waiter the place if it ends unserved.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/kernel.h>

#include "lib/queue/queue.h"
#include "world.h"
#include "world_types.h"

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
	    (w->r.of && !w->r.suspended && w->r.of != e))
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
	u64 promised = 0, least = U64_MAX;
	unsigned int i, nr = 0, nr_starved = 0;

	for (i = 0; i < WAITERS; i++) {
		const struct entry *e = &w->e[i];

		if (!e->in)
			continue;
		nr++;
		nr_starved += !e->limited;
		if (!e->limited)
			least = min(least, e->w.need);
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
	check(w, w->q.least == least, "the smallest need");
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

static struct entry *reserved_for(const struct world *w)
{
	return w->r.suspended ? NULL : w->r.of;
}

/* can the waiter be served when all others have freed their memory? */
static bool may_reserve(const struct accmem_queue_waiter *q)
{
	const struct entry *e = list_entry(q, const struct entry, w);

	return e->world->held[e->user] + q->need <= CAPACITY;
}

static void check_reservation(struct world *w)
{
	struct entry *e = reserved_for(w);

	check(w, to_entry(w->q.reserved) == e, "reserved for this one");
	check(w, to_entry(w->q.suspended) == (w->r.suspended ? w->r.of : NULL),
	      "suspended for this one");
	check(w, w->q.until == w->r.until, "for this time");
	check(w, !e || w->q.held == w->r.held, "so much is held");
	if (e)
		check(w, e->in && !e->limited, "reserved for one who is short");
}

/* the bytes that an entry may not have */
static u64 promised_before(const struct world *w, const struct entry *e)
{
	const struct entry *of = reserved_for(w);
	u64 promised = w->q.promised, held = w->r.held;

	if (of == e)
		return 0;
	if (of && of->state == ACCMEM_QUEUE_AWAKE)
		return promised - of->w.need + max(held, of->w.need);
	return of ? promised + held : promised;
}

/* nobody sleeps who could be served */
static void check_nobody_is_forgotten(struct world *w)
{
	unsigned int i;

	for (i = 0; i < WAITERS; i++) {
		const struct entry *e = &w->e[i];

		if (!e->in || e->state != ACCMEM_QUEUE_ASLEEP || e->stale)
			continue;
		check(w, !fits(&e->w, promised_before(w, e), w),
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

static void wake(struct world *w)
{
	struct accmem_queue_waiter *q;
	unsigned int steps;
	struct entry *e;
	u64 own;

	w->q.cursor = accmem_queue_walk(&w->q, NULL);
	do {
		steps = 1 + rng_below(w->draw, 4);
		while ((q = accmem_queue_next(&w->q, &w->q.cursor, &steps, fits,
					      w))) {
			e = to_entry(q);
			check(w, e->in && e->state == ACCMEM_QUEUE_ASLEEP,
			      "a sleeper is woken");
			check(w, !e->stale, "for a reason");
			own = e == reserved_for(w) ? 0 : q->need;
			check(w, fits(q, promised_before(w, e) - own, w),
			      "with bytes that are not held");
			e->state = ACCMEM_QUEUE_AWAKE;
		}
	} while (w->q.cursor);
	check(w, w->q.promised <= CAPACITY * WAITERS, "promises are kept");
}

static bool is_reserved_for(const struct world *w, const struct entry *e)
{
	return w->r.of == e;
}

/*
 * the virtual time: the turn of the latest entry that was served, or an earlier turn of an entry
 * that is neither limited nor suspended
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

/* the entry moves behind the next front and a credit, or behind all others */
static void naive_demote(struct world *w, struct entry *e)
{
	struct entry *last = NULL, *next = NULL;
	u64 to = naive_now(w) + CREDIT;

	while ((next = naive_next(w, next)))
		last = next;
	next = e;
	while ((next = naive_next(w, next)))
		if (!next->limited && next->state != ACCMEM_QUEUE_SERVED)
			break;
	if (next && to < next->turn)
		to = next->turn;
	if (to > last->turn)
		to = last->turn;
	e->bypassed = 0;
	if (e->turn < to)
		e->turn = to;
	e->order = ++w->arrivals;
	if (w->ahead[e->user] < e->turn + e->length)
		w->ahead[e->user] = e->turn + e->length;
}

/* each unused reservation doubles the time until the next one */
static bool is_banned(const struct world *w, unsigned int user)
{
	u64 time = RESERVE;
	unsigned int i;

	for (i = 1; i < w->unused[user]; i++)
		time *= 2;
	return w->unused[user] && w->now < w->ended[user] + time;
}

/* the front has reached the bound: reserve, or let the next one be the front */
static void naive_reserve_if_due(struct world *w)
{
	struct entry *e = naive_front(w);
	u32 bypassed;

	if (!e || w->r.of || w->now < w->r.until || e->bypassed < BOUND ||
	    e->state == ACCMEM_QUEUE_SUSPENDED)
		return;
	if (!is_banned(w, e->user) && may_reserve(&e->w)) {
		w->r = (struct reservation){ .of = e,
					     .until = w->now + RESERVE };
		return;
	}
	bypassed = e->bypassed;
	naive_demote(w, e);
	if (naive_front(w) != e && naive_front(w)->bypassed < bypassed)
		naive_front(w)->bypassed = bypassed;
}

static void naive_unreserve(struct world *w, bool used)
{
	struct entry *e = w->r.of;
	u64 pause = RESERVE, refused = 0;

	if (w->r.refused)
		refused = w->now - w->r.refused;
	if (pause < PAUSE * refused)
		pause = PAUSE * refused;
	w->r = (struct reservation){ .until = used ? 0 : w->now + pause };
	naive_memory_freed(w);
	if (used) {
		w->unused[e->user] -= !!w->unused[e->user];
		return;
	}
	w->ended[e->user] = w->now;
	w->unused[e->user] += w->unused[e->user] <= DOUBLINGS;
	naive_demote(w, e);
}

/* memory of a user comes back, and is held if memory is reserved */
static void naive_hold(struct world *w, unsigned int user, u64 n)
{
	naive_memory_freed(w);
	if (!reserved_for(w) || !n)
		return;
	w->r.held += n;
	w->r.stalled[0] = 0;
	if (w->r.of->user != user)
		w->r.stalled[1] = 0;
}

static void naive_count_bypass(struct world *w, const struct entry *served)
{
	struct entry *front = naive_front(w);

	if (!front || front == served)
		return;
	front->bypassed++;
	naive_reserve_if_due(w);
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
	e->world = w;
	accmem_queue_enter(&w->q, &e->w, &w->users[e->user], need);
	if (rng_below(w->draw, 2)) {
		e->state = ACCMEM_QUEUE_ASLEEP;
		accmem_queue_enter_asleep(&w->q, &e->w);
	}
}

static void leave(struct world *w, struct entry *e, bool served)
{
	struct entry *front = naive_front(w), *next;
	bool was_first = front == e || e->state == ACCMEM_QUEUE_SERVED;
	unsigned int i;

	if (is_reserved_for(w, e))
		naive_unreserve(w, served);
	e->in = false;
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
	next = naive_front(w);
	if (served && front && !was_first) {
		front->bypassed++;
		naive_reserve_if_due(w);
	} else if (!served && was_first && next &&
		   next->bypassed < e->bypassed) {
		next->bypassed = e->bypassed;
	}
	naive_reserve_if_due(w);
	accmem_queue_leave(&w->q, &e->w, served, w->now);
}

/* what is reserved for another is not there */
static bool has_room(const struct world *w, const struct entry *e)
{
	const struct entry *of = reserved_for(w);
	u64 held = of && of != e ? w->r.held : 0;

	return w->free >= e->w.need && w->free - e->w.need >= held;
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
	e->ended = ++w->tries;
	e->limited = limited;
	if (limited && is_reserved_for(w, e))
		naive_unreserve(w, false);
	naive_reserve_if_due(w);
	accmem_queue_sleep(&w->q, &e->w, limited, w->now);
}

static void free_some(struct world *w)
{
	unsigned int user = rng_below(w->draw, USERS);
	u64 n = min(w->held[user] - (w->taker == user ? w->taken : 0),
		    1 + rng_below(w->draw, 16 * UNIT));

	w->held[user] -= n;
	w->free += n;
	accmem_queue_memory_freed(&w->q, &w->users[user], n);
	accmem_queue_charge_dropped(&w->users[user]);
	naive_hold(w, user, n);
	naive_charge_dropped(w, user);
}

/* a request takes memory piece by piece */
static void take_some(struct world *w)
{
	u64 n = 1 + rng_below(w->draw, 16 * UNIT);

	if (w->taken || w->free < n)
		return;
	w->taker = rng_below(w->draw, USERS);
	if (w->held[w->taker] + n > LIMIT)
		return;
	w->returned_from = w->tries;
	w->taken = n;
	w->free -= n;
	w->held[w->taker] += n;
}

/* and fails: those who tried meanwhile try again, and nobody else */
static void return_it(struct world *w)
{
	unsigned int i;

	if (!w->taken)
		return;
	w->free += w->taken;
	w->held[w->taker] -= w->taken;
	w->taken = 0;
	for (i = 0; i < WAITERS; i++) {
		struct entry *e = &w->e[i];

		e->stale &= e->state != ACCMEM_QUEUE_AWAKE &&
			    e->ended <= w->returned_from;
		if (e->in)
			accmem_queue_memory_missed(&w->q, &e->w,
						   w->returned_from);
	}
}

/* what a user frees goes to the first who waits, if that needs just as much */
static void hand_over(struct world *w)
{
	unsigned int user = rng_below(w->draw, USERS);
	struct entry *e = naive_first(w);

	check(w, to_entry(accmem_queue_first(&w->q)) == e, "who is first");
	if (!e || w->held[user] < e->w.need || !fits_limit(w, e) || w->taken)
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
	accmem_queue_memory_freed(&w->q, &w->users[e->user], e->w.need);
	accmem_queue_charge_dropped(&w->users[e->user]);
	naive_hold(w, e->user, e->w.need);
	naive_charge_dropped(w, e->user);
	if (rng_below(w->draw, 2))
		try(w, e);
	else
		leave(w, e, false);
}

/* may a user take memory, or is it held? a reservation may end with the question */
static bool naive_permit(struct world *w, unsigned int user, u64 n)
{
	u64 *stalled = &w->r.stalled[w->r.of->user != user];

	if (w->free < n || w->free - n >= w->r.held)
		return true;
	if (!*stalled)
		*stalled = w->now;
	if (!w->r.refused)
		w->r.refused = w->now;
	if (w->now - *stalled < STALL && may_reserve(&w->r.of->w))
		return false;
	naive_unreserve(w, false);
	return true;
}

/* somebody who does not wait */
static void barge(struct world *w)
{
	unsigned int user = rng_below(w->draw, USERS);
	u64 n = 1 + rng_below(w->draw, 8 * UNIT);
	struct entry *front;
	bool may = true;

	if (reserved_for(w)) {
		may = naive_permit(w, user, n);
		check(w,
		      accmem_queue_permit(&w->q, &w->users[user], n, w->free,
					  w->now) == may,
		      "held bytes are refused");
	}
	if (!may || w->free < n || w->held[user] + n > LIMIT)
		return;
	w->free -= n;
	w->held[user] += n;
	front = naive_front(w);
	if (front && naive_turn(w, user, n / UNIT + 1) >= front->turn)
		naive_count_bypass(w, NULL);
	accmem_queue_count_bypass(&w->q, &w->users[user], n, w->now);
}

static void tick(struct world *w)
{
	bool ended;

	/* usually a short time, in which a reservation stalls; now and then a long one */
	w->now += rng_below(w->draw, rng_below(w->draw, 4) ? STALL : RESERVE);
	ended = w->r.of && w->now >= w->r.until;
	if (ended)
		naive_unreserve(w, false);
	else
		naive_reserve_if_due(w);
	check(w, accmem_queue_tick(&w->q, w->now) == ended,
	      "a reservation ends in time");
}

static void suspend(struct world *w, struct entry *e)
{
	if (is_reserved_for(w, e)) {
		w->r.suspended = true;
		naive_memory_freed(w);
	}
	e->state = ACCMEM_QUEUE_SUSPENDED;
	accmem_queue_suspend(&w->q, &e->w);
}

static void resume(struct world *w, struct entry *e)
{
	e->state = ACCMEM_QUEUE_AWAKE;
	if (is_reserved_for(w, e) && w->now >= w->r.until)
		naive_unreserve(w, false);
	else if (is_reserved_for(w, e))
		w->r.suspended = false;
	naive_reserve_if_due(w);
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
	switch (rng_below(w->draw, 11)) {
	case 0:
	case 1:
		free_some(w);
		break;
	case 8:
		hand_over(w);
		break;
	case 9:
		take_some(w);
		break;
	case 10:
		return_it(w);
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
	w->q.may_reserve = may_reserve;
	w->q.credit = CREDIT * UNIT;
	for (w->step = 0; w->step < steps && !rng_is_spent(draw); w->step++)
		step(w);
	free(w);
}
