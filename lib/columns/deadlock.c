// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_columns: deadlocks among requests of the shared discipline.
 *
 * A search simulates the future:
 *  1. Each CTA that does not wait for columns frees all its columns. A CTA that waits
 *     for its peer does so, too, because the peer can still come.
 *  2. Each request that can be met is granted, and its CTA then frees all its columns.
 *     This step is repeated until no request can be met.
 * The requests that are left wait for each other.
 *
 * There are two searches:
 *  - With the bypass bounds. A request may be left only because a request that has
 *    reached its bound blocks it, and waits for its columns. The oldest request
 *    left that holds columns and fits now is granted against the bound. A request that
 *    does not fit will fit when columns of others are freed. A request that holds no
 *    columns is not granted: it would free none, and starve the older request.
 *  - Without the bounds. The requests left wait for columns that no CTA will free. The
 *    newest that holds columns fails with -EDEADLK.
 *
 * A deadlock needs a queued request whose CTA holds columns. There is no search while
 * the queue has no such request.
 *
 * Locking: none; the caller serialises.
 */
#include <linux/errno.h>
#include <linux/kernel.h>

#include "internal.h"

/*
 * struct search - a deadlock search
 * @c: the arbiter
 * @bounds: the bypass bounds count
 * @left: number of requests that are left
 * @to_check: list of SMs to check
 */
struct search {
	struct accmem_columns *c;
	bool bounds;
	u32 left;
	struct accmem_columns_sm *to_check;
};

static void deadlock_queue_sm(struct search *s, struct accmem_columns_sm *sm)
{
	if (sm->listed)
		return;
	sm->listed = true;
	sm->next_to_check = s->to_check;
	s->to_check = sm;
}

/* Add a CTA of a request to its SM's list. The CTA is the youngest so far. */
static void deadlock_assume_held(struct search *s,
				 struct accmem_columns_cta *cta)
{
	struct accmem_columns_sm *sm = accmem_sm_of(s->c, cta);

	sm->assumed |= cta->held;
	cta->beside = NULL;
	if (sm->youngest)
		sm->youngest->beside = cta;
	else
		sm->oldest = cta;
	sm->youngest = cta;
	sm->blocking = sm->oldest;
	sm->all = true;
	deadlock_queue_sm(s, sm);
}

/* Start a search: only CTAs with a queued request hold columns. */
static void deadlock_assume(struct search *s)
{
	struct accmem_columns *c = s->c;
	struct accmem_columns_cta *w;
	u32 i, age = 0;

	for (i = 0; i < c->nr_sms; i++) {
		c->sms[i].assumed = c->absent;
		c->sms[i].oldest = NULL;
		c->sms[i].youngest = NULL;
	}
	list_for_each_entry(w, &c->queue, queue) {
		w->left = true;
		w->age = age++;
		deadlock_assume_held(s, w);
		if (w->group == 2)
			deadlock_assume_held(s, w->peer);
	}
}

/* Return the leader of the request that a CTA belongs to. */
static struct accmem_columns_cta *
deadlock_request_of(struct accmem_columns_cta *cta)
{
	return cta->leads ? cta : cta->peer;
}

/*
 * Return true if an older request for the SM is left and at its bound, and so blocks
 * @w.
 */
static bool deadlock_is_blocked_on(struct search *s,
				   const struct accmem_columns_cta *w,
				   struct accmem_columns_sm *sm)
{
	const struct accmem_columns_cta *old;

	for (; sm->blocking; sm->blocking = sm->blocking->beside) {
		s->c->checks++;
		old = deadlock_request_of(sm->blocking);
		if (old->left && old->at_bound)
			return old->age < w->age;
	}
	return false;
}

static bool deadlock_can_be_met(struct search *s,
				const struct accmem_columns_cta *w)
{
	struct accmem_columns_sm *sm = accmem_sm_of(s->c, w), *other = NULL;
	u64 busy = sm->assumed;

	if (w->group == 2) {
		other = accmem_sm_of(s->c, w->peer);
		busy |= other->assumed;
	}
	if (accmem_columns_find(busy, w->columns / ACCMEM_COLUMNS_UNIT) < 0)
		return false;
	return !s->bounds || (!deadlock_is_blocked_on(s, w, sm) &&
			      (!other || !deadlock_is_blocked_on(s, w, other)));
}

/* The CTA frees its columns and blocks no other request any more. */
static void deadlock_assume_free(struct search *s,
				 const struct accmem_columns_cta *cta,
				 bool at_bound)
{
	struct accmem_columns_sm *sm = accmem_sm_of(s->c, cta);

	sm->assumed &= ~cta->held;
	if (cta->held)
		sm->all = true;
	if (cta->held || at_bound)
		deadlock_queue_sm(s, sm);
}

static void deadlock_meet(struct search *s, struct accmem_columns_cta *w)
{
	w->left = false;
	s->left--;
	deadlock_assume_free(s, w, w->at_bound);
	if (w->group == 2)
		deadlock_assume_free(s, w->peer, w->at_bound);
}

/*
 * Meet requests for an SM that can be met. If columns were freed, check all requests.
 * Otherwise check only the requests younger than the last one that blocked others.
 */
static void deadlock_check_sm(struct search *s, struct accmem_columns_sm *sm)
{
	struct accmem_columns_cta *cta = sm->all ? sm->oldest : sm->from, *w;

	sm->all = false;
	for (; cta; cta = cta->beside) {
		s->c->checks++;
		w = deadlock_request_of(cta);
		if (!w->left)
			continue;
		if (deadlock_can_be_met(s, w))
			deadlock_meet(s, w);
		else if (s->bounds && w->at_bound)
			break;
	}
	sm->from = cta;
}

/*
 * Run a search. Return the number of requests that are left.
 *
 * The order of the SMs makes no difference, since columns are only freed. All requests
 * for an SM are checked once, and again whenever columns of the SM were freed: at most
 * as often as the SM has units.
 */
static u32 deadlock_reduce(struct accmem_columns *c, bool bounds)
{
	struct search s = { .c = c, .bounds = bounds, .left = c->nr_queued };
	struct accmem_columns_sm *sm;

	deadlock_assume(&s);
	while ((sm = s.to_check)) {
		s.to_check = sm->next_to_check;
		sm->listed = false;
		deadlock_check_sm(&s, sm);
	}
	return s.left;
}

/*
 * Grant the oldest request that is left, fits and holds columns. No request waits for
 * a request that holds no columns.
 */
static bool deadlock_force(struct accmem_columns *c)
{
	struct accmem_columns_cta *w;
	int unit;

	list_for_each_entry(w, &c->queue, queue) {
		if (!w->left || !accmem_columns_holds(w))
			continue;
		unit = accmem_columns_fits(c, w, w->columns);
		if (unit >= 0) {
			c->forced++;
			accmem_columns_grant(c, w, unit);
			return true;
		}
	}
	return false;
}

static bool deadlock_refuse(struct accmem_columns *c)
{
	struct accmem_columns_cta *w, *newest = NULL;

	list_for_each_entry(w, &c->queue, queue) {
		if (w->left && accmem_columns_holds(w))
			newest = w;
	}
	if (!newest)
		return false;
	c->deadlocks++;
	accmem_columns_fail(c, newest, -EDEADLK);
	return true;
}

/* Resolve a deadlock. Return true if this may let other requests be granted. */
bool accmem_columns_break_deadlock(struct accmem_columns *c)
{
	/* A request left without the bounds is also left with them. */
	if (!deadlock_reduce(c, true))
		return false;
	if (deadlock_force(c))
		return true;
	return deadlock_reduce(c, false) && deadlock_refuse(c);
}
