// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_queue: turns, bypasses and reservations of waiters.
 *
 * queue.h describes the order of waiters, the states and the calls. A turn is a point
 * on a virtual time axis, whose unit is 4 KiB of requested memory. accmem_queue.waiters
 * is sorted by the begin of each waiter's turn.
 *
 * Locking: none; the caller serialises.
 */
#include <linux/kernel.h>

#include "queue.h"

#define QUEUE_TURN_SHIFT 12
/*
 * A reservation without gain lasts this part of its time, and the pause after it is this
 * many times as long as it refused memory. At most one in a hundred requests is to be
 * refused, and a refusal takes half the time of an allocation and a free.
 */
#define QUEUE_SHARE 200u
#define QUEUE_MAX_DOUBLINGS 6u

void accmem_queue_init(struct accmem_queue *q, u32 bound)
{
	*q = (struct accmem_queue){ .bound = bound, .least = U64_MAX };
	INIT_LIST_HEAD(&q->waiters);
}

void accmem_queue_set_reserve(struct accmem_queue *q, u64 reserve_ns, u64 now)
{
	q->reserve_ns = reserve_ns;
	q->until = min(q->until, now + reserve_ns);
}

struct accmem_queue_waiter *accmem_queue_walk(struct accmem_queue *q,
					      struct accmem_queue_waiter *w)
{
	struct list_head *next = w ? w->link.next : q->waiters.next;

	return next == &q->waiters ?
		       NULL :
		       list_entry(next, struct accmem_queue_waiter, link);
}

/* Return the first waiter after @w, or of all, that no limit blocks and that is not served. */
static struct accmem_queue_waiter *
queue_front_after(struct accmem_queue *q, struct accmem_queue_waiter *w)
{
	do {
		w = accmem_queue_walk(q, w);
	} while (w && (w->limited || w->state == ACCMEM_QUEUE_SERVED));
	return w;
}

struct accmem_queue_waiter *accmem_queue_front(struct accmem_queue *q)
{
	return queue_front_after(q, NULL);
}

/* Return the length of a turn. The unit is so large that a turn never overflows. */
static u64 queue_length_of(u64 bytes)
{
	return (bytes >> QUEUE_TURN_SHIFT) + 1;
}

/*
 * Return the current virtual time: the turn of the latest waiter served, or the turn of
 * the first waiter that is neither limited nor suspended, if that is earlier.
 */
static u64 queue_turn(struct accmem_queue *q)
{
	struct accmem_queue_waiter *w = NULL;

	do {
		w = accmem_queue_walk(q, w);
	} while (w && (w->limited || w->state == ACCMEM_QUEUE_SUSPENDED));
	return w ? min(q->turn, w->turn) : q->turn;
}

/* Charge @user a turn for @bytes. Return the begin of the turn. */
static u64 queue_charge_turn(struct accmem_queue *q,
			     struct accmem_queue_user *user, u64 bytes)
{
	u64 now = queue_turn(q);
	u64 credit = min(now, q->credit >> QUEUE_TURN_SHIFT);
	u64 turn = max(now - credit, q->first_turn);

	turn = max(turn, user->turn);
	user->turn = turn + queue_length_of(bytes);
	q->last_turn = max(q->last_turn, user->turn);
	return turn;
}

/*
 * Account the turn of a waiter that has left. A turn that was not served is
 * refunded if it is the last turn of the user. In an empty queue no user is ahead of
 * another.
 */
static void queue_end_turn(struct accmem_queue *q,
			   struct accmem_queue_waiter *w, bool served)
{
	struct accmem_queue_user *user = w->user;

	if (served)
		q->turn = max(q->turn, w->turn);
	else if (user->turn == w->turn + queue_length_of(w->need))
		user->turn = w->turn;
	if (q->nr)
		return;
	q->turn = q->last_turn;
	q->first_turn = q->last_turn;
}

/* Insert a waiter behind all waiters whose turn begins at the same time or earlier. */
static void queue_insert(struct accmem_queue *q, struct accmem_queue_waiter *w)
{
	struct list_head *at = q->waiters.prev;

	while (at != &q->waiters &&
	       list_entry(at, struct accmem_queue_waiter, link)->turn > w->turn)
		at = at->prev;
	list_add(&w->link, at);
}

static void queue_remove(struct accmem_queue *q, struct accmem_queue_waiter *w)
{
	if (q->cursor == w)
		q->cursor = accmem_queue_walk(q, w);
	list_del(&w->link);
}

static void queue_set_state(struct accmem_queue *q,
			    struct accmem_queue_waiter *w,
			    enum accmem_queue_state state)
{
	if (w->state == ACCMEM_QUEUE_AWAKE)
		q->promised -= w->need;
	if (state == ACCMEM_QUEUE_AWAKE)
		q->promised += w->need;
	w->state = state;
}

static void queue_find_least(struct accmem_queue *q)
{
	struct accmem_queue_waiter *w = NULL;

	q->least = U64_MAX;
	while ((w = accmem_queue_walk(q, w))) {
		if (!w->limited)
			q->least = min(q->least, w->need);
	}
}

static void queue_set_limited(struct accmem_queue *q,
			      struct accmem_queue_waiter *w, bool limited)
{
	if (w->limited == limited)
		return;
	w->limited = limited;
	if (!limited) {
		q->nr_starved++;
		q->least = min(q->least, w->need);
		return;
	}
	q->nr_starved--;
	if (w->need == q->least)
		queue_find_least(q);
}

/* Is @user another user than that of the reserved waiter? */
static bool queue_is_other(const struct accmem_queue *q,
			   const struct accmem_queue_user *user)
{
	return q->reserved->user != user;
}

static bool queue_can_be_served(const struct accmem_queue *q,
				const struct accmem_queue_waiter *w)
{
	return !q->may_reserve || q->may_reserve(w);
}

/*
 * Move a waiter back, with a count of 0: to the tail, but not further than behind the next front
 * and the turns of one credit. Otherwise a user with many waiters could push the turns of
 * another user back as far as it likes.
 */
static void queue_demote(struct accmem_queue *q, struct accmem_queue_waiter *w)
{
	struct accmem_queue_waiter *last =
		list_entry(q->waiters.prev, struct accmem_queue_waiter, link);
	struct accmem_queue_waiter *next = queue_front_after(q, w);
	u64 most = queue_turn(q) + (q->credit >> QUEUE_TURN_SHIFT);
	bool at_cursor = q->cursor == w;

	if (next)
		most = max(most, next->turn);
	w->bypassed = 0;
	w->turn = max(w->turn, min(last->turn, most));
	w->user->turn = max(w->user->turn, w->turn + queue_length_of(w->need));
	q->last_turn = max(q->last_turn, w->user->turn);
	queue_remove(q, w);
	queue_insert(q, w);
	/* The walk has not come to @w, which is the last again. */
	if (at_cursor && !q->cursor)
		q->cursor = w;
}

/*
 * A request that has bypassed @w, which is no longer the front, has bypassed the next
 * front, too.
 */
static void queue_inherit_bypasses(struct accmem_queue *q, u32 bypassed)
{
	struct accmem_queue_waiter *front = accmem_queue_front(q);

	if (front)
		front->bypassed = max(front->bypassed, bypassed);
}

/* Move a front that may have no reservation back, so that the next one may. */
static void queue_skip(struct accmem_queue *q, struct accmem_queue_waiter *w)
{
	u32 bypassed = w->bypassed;

	queue_demote(q, w);
	if (accmem_queue_front(q) != w)
		queue_inherit_bypasses(q, bypassed);
}

static void queue_reserve(struct accmem_queue *q, struct accmem_queue_waiter *w,
			  u64 now)
{
	q->reserved = w;
	q->held = 0;
	q->refused = 0;
	q->stalled[0] = 0;
	q->stalled[1] = 0;
	q->until = now + q->reserve_ns;
	q->reservations++;
}

/* Return true if the last reservation of @user was unused, a short time ago. */
static bool queue_is_banned(const struct accmem_queue *q,
			    const struct accmem_queue_user *user, u64 now)
{
	return now < user->until &&
	       now - user->ended < q->reserve_ns << (user->unused - 1);
}

static void queue_reserve_if_due(struct accmem_queue *q, u64 now)
{
	struct accmem_queue_waiter *w = accmem_queue_front(q);

	if (!w || q->reserved || q->suspended || !q->reserve_ns ||
	    now < q->until)
		return;
	if (w->bypassed < q->bound || w->state == ACCMEM_QUEUE_SUSPENDED)
		return;
	if (queue_is_banned(q, w->user, now) || !queue_can_be_served(q, w))
		queue_skip(q, w);
	else
		queue_reserve(q, w, now);
}

static bool queue_is_reserved_for(const struct accmem_queue *q,
				  const struct accmem_queue_waiter *w)
{
	return q->reserved == w || q->suspended == w;
}

/* A reservation of @user has ended unserved: postpone the next ones. */
static void queue_postpone(struct accmem_queue *q,
			   struct accmem_queue_user *user, u64 now)
{
	u64 refused = q->refused ? now - q->refused : 0;

	q->expired++;
	q->until = now + max(q->reserve_ns, QUEUE_SHARE * refused);
	user->ended = now;
	user->unused = min(user->unused + 1, QUEUE_MAX_DOUBLINGS + 1);
	user->until = now + (q->reserve_ns << (user->unused - 1));
}

/*
 * End the reservation of @w, if there is one, so that other waiters may use the
 * memory. If the reservation ends unserved, move @w back.
 */
static void queue_unreserve(struct accmem_queue *q,
			    struct accmem_queue_waiter *w, bool used, u64 now)
{
	if (!queue_is_reserved_for(q, w))
		return;
	q->reserved = NULL;
	q->suspended = NULL;
	q->held = 0;
	q->seq++;
	if (!used) {
		queue_postpone(q, w->user, now);
		queue_demote(q, w);
		return;
	}
	q->until = 0;
	if (w->user->unused && !--w->user->unused)
		w->user->until = 0;
}

/* Return true if the reservation has refused for too long what it cannot use. */
static bool queue_is_stalled(const struct accmem_queue *q, u64 since, u64 now)
{
	return now - since >= q->reserve_ns / QUEUE_SHARE ||
	       !queue_can_be_served(q, q->reserved);
}

bool accmem_queue_permit(struct accmem_queue *q,
			 const struct accmem_queue_user *user, u64 size,
			 u64 free, u64 now)
{
	u64 *stalled = &q->stalled[queue_is_other(q, user)];

	if (free < size || free - size >= q->held)
		return true;
	*stalled = *stalled ?: now;
	q->refused = q->refused ?: now;
	if (!queue_is_stalled(q, *stalled, now))
		return false;
	queue_unreserve(q, q->reserved, false, now);
	return true;
}

void accmem_queue_memory_freed(struct accmem_queue *q,
			       const struct accmem_queue_user *user, u64 bytes)
{
	q->seq++;
	if (!q->reserved || !bytes)
		return;
	q->held += bytes;
	q->stalled[0] = 0;
	if (queue_is_other(q, user))
		q->stalled[1] = 0;
}

void accmem_queue_enter(struct accmem_queue *q, struct accmem_queue_waiter *w,
			struct accmem_queue_user *user, u64 need)
{
	*w = (struct accmem_queue_waiter){ .need = need, .user = user };
	w->turn = queue_charge_turn(q, user, need);
	user->nr++;
	queue_insert(q, w);
	q->nr++;
	q->nr_starved++;
	q->least = min(q->least, need);
	w->state = ACCMEM_QUEUE_ASLEEP;
	accmem_queue_start_try(q, w);
}

void accmem_queue_start_try(struct accmem_queue *q,
			    struct accmem_queue_waiter *w)
{
	queue_set_state(q, w, ACCMEM_QUEUE_AWAKE);
	w->seen = q->seq;
	w->user_seen = w->user->seq;
}

void accmem_queue_sleep(struct accmem_queue *q, struct accmem_queue_waiter *w,
			bool limited, u64 now)
{
	w->ended = ++q->tries;
	queue_set_limited(q, w, limited);
	if (limited)
		queue_unreserve(q, w, false, now);
	queue_set_state(q, w, ACCMEM_QUEUE_ASLEEP);
	queue_reserve_if_due(q, now);
}

struct accmem_queue_waiter *accmem_queue_first(struct accmem_queue *q)
{
	struct accmem_queue_waiter *w = NULL;

	do {
		w = accmem_queue_walk(q, w);
	} while (w && w->state == ACCMEM_QUEUE_SERVED);
	if (!w || w->state != ACCMEM_QUEUE_ASLEEP ||
	    (q->reserved && q->reserved != w))
		return NULL;
	return w;
}

void accmem_queue_serve(struct accmem_queue *q, struct accmem_queue_waiter *w)
{
	queue_set_state(q, w, ACCMEM_QUEUE_SERVED);
}

void accmem_queue_enter_asleep(struct accmem_queue *q,
			       struct accmem_queue_waiter *w)
{
	w->seen = q->seq - 1;
	w->user_seen = w->user->seq - 1;
	queue_set_state(q, w, ACCMEM_QUEUE_ASLEEP);
}

void accmem_queue_suspend(struct accmem_queue *q, struct accmem_queue_waiter *w)
{
	if (q->reserved == w) {
		q->reserved = NULL;
		q->suspended = w;
		q->seq++;
	}
	queue_set_state(q, w, ACCMEM_QUEUE_SUSPENDED);
}

void accmem_queue_resume(struct accmem_queue *q, struct accmem_queue_waiter *w,
			 u64 now)
{
	queue_set_state(q, w, ACCMEM_QUEUE_AWAKE);
	if (q->suspended == w && now >= q->until) {
		queue_unreserve(q, w, false, now);
	} else if (q->suspended == w) {
		q->suspended = NULL;
		q->reserved = w;
	}
	queue_reserve_if_due(q, now);
}

static void queue_count_bypass(struct accmem_queue *q,
			       struct accmem_queue_waiter *front, u64 now)
{
	front->bypassed++;
	q->bypasses++;
	queue_reserve_if_due(q, now);
}

void accmem_queue_leave(struct accmem_queue *q, struct accmem_queue_waiter *w,
			bool served, u64 now)
{
	struct accmem_queue_waiter *front = accmem_queue_front(q);
	bool was_first = front == w || w->state == ACCMEM_QUEUE_SERVED;

	queue_unreserve(q, w, served, now);
	queue_set_state(q, w, ACCMEM_QUEUE_ASLEEP);
	queue_set_limited(q, w, true);
	queue_remove(q, w);
	w->user->nr--;
	q->nr--;
	queue_end_turn(q, w, served);
	if (served && front && !was_first)
		queue_count_bypass(q, front, now);
	else if (!served && was_first)
		queue_inherit_bypasses(q, w->bypassed);
	queue_reserve_if_due(q, now);
}

void accmem_queue_count_bypass(struct accmem_queue *q,
			       struct accmem_queue_user *user, u64 got, u64 now)
{
	struct accmem_queue_waiter *front = accmem_queue_front(q);

	if (front && queue_charge_turn(q, user, got) >= front->turn)
		queue_count_bypass(q, front, now);
}

void accmem_queue_limits_raised(struct accmem_queue *q)
{
	struct accmem_queue_waiter *w = NULL;

	while ((w = accmem_queue_walk(q, w)))
		accmem_queue_charge_dropped(w->user);
}

bool accmem_queue_tick(struct accmem_queue *q, u64 now)
{
	struct accmem_queue_waiter *w = q->reserved ?: q->suspended;

	if (w && now >= q->until) {
		queue_unreserve(q, w, false, now);
		return true;
	}
	queue_reserve_if_due(q, now);
	return false;
}

/* Return true if the waiter is asleep and the reason of its wait may have ended. */
static bool queue_is_candidate(const struct accmem_queue *q,
			       const struct accmem_queue_waiter *w)
{
	if (w->state != ACCMEM_QUEUE_ASLEEP)
		return false;
	return w->limited ? w->user_seen != w->user->seq : w->seen != q->seq;
}

/*
 * Return the bytes that @w may not have: promised to awake waiters, or held for the
 * reserved waiter. The reserved waiter competes with the others that are awake.
 */
static u64 queue_promised_before(const struct accmem_queue *q,
				 const struct accmem_queue_waiter *w)
{
	const struct accmem_queue_waiter *reserved = q->reserved;
	bool awake = reserved && reserved->state == ACCMEM_QUEUE_AWAKE;

	if (!reserved)
		return q->promised;
	if (reserved == w)
		return 0;
	return q->promised - (awake ? reserved->need : 0) +
	       max(q->held, awake ? reserved->need : 0);
}

struct accmem_queue_waiter *
accmem_queue_next(struct accmem_queue *q, struct accmem_queue_waiter **at,
		  unsigned int *steps,
		  bool (*fits)(const struct accmem_queue_waiter *w,
			       u64 promised, void *arg),
		  void *arg)
{
	struct accmem_queue_waiter *w;

	while ((w = *at) && *steps) {
		*at = accmem_queue_walk(q, w);
		--*steps;
		if (!queue_is_candidate(q, w) ||
		    !fits(w, queue_promised_before(q, w), arg))
			continue;
		queue_set_state(q, w, ACCMEM_QUEUE_AWAKE);
		return w;
	}
	return NULL;
}
