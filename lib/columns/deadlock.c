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
 * The SMs that the call in progress has touched are searched, and all SMs that queued
 * pairs connect with them: no request for another SM can wait for one of these. Between
 * calls no deadlock is left, so the other SMs have none.
 *
 * A deadlock needs a queued request whose CTA holds columns. There is no search while
 * the queues of these SMs have no such request.
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
 * @sms: list of the SMs that are searched
 * @to_check: list of SMs to check
 */
struct search {
	struct accmem_columns *c;
	bool bounds;
	u32 left;
	struct accmem_columns_sm *sms;
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

/* Start a search on an SM: only CTAs with a queued request hold columns. */
static void deadlock_assume_sm(struct search *s, struct accmem_columns_sm *sm)
{
	struct accmem_columns_cta *cta;

	sm->assumed = s->c->absent;
	list_for_each_entry(cta, &sm->queue, queue) {
		s->c->checks++;
		sm->assumed |= cta->held;
		cta->left = cta->leads;
		s->left += cta->leads;
	}
	sm->blocking = sm->queue.next;
	sm->from = sm->queue.next;
	sm->all = true;
	deadlock_queue_sm(s, sm);
}

static inline struct accmem_columns_cta *deadlock_cta(struct list_head *link)
{
	return list_entry(link, struct accmem_columns_cta, queue);
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

	for (; sm->blocking != &sm->queue; sm->blocking = sm->blocking->next) {
		s->c->checks++;
		old = accmem_columns_request_of(deadlock_cta(sm->blocking));
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
	struct list_head *at = sm->all ? sm->queue.next : sm->from;
	struct accmem_columns_cta *w;

	sm->all = false;
	for (; at != &sm->queue; at = at->next) {
		s->c->checks++;
		w = accmem_columns_request_of(deadlock_cta(at));
		if (!w->left)
			continue;
		if (deadlock_can_be_met(s, w))
			deadlock_meet(s, w);
		else if (s->bounds && w->at_bound)
			break;
	}
	sm->from = at;
}

/*
 * Run a search. Return the number of requests that are left.
 *
 * The order of the SMs makes no difference, since columns are only freed. All requests
 * for an SM are checked once, and again whenever columns of the SM were freed: at most
 * as often as the SM has units.
 */
static u32 deadlock_reduce(struct search *s, bool bounds)
{
	struct accmem_columns_sm *sm;

	s->bounds = bounds;
	s->left = 0;
	for (sm = s->sms; sm; sm = sm->next_connected)
		deadlock_assume_sm(s, sm);
	while ((sm = s->to_check)) {
		s->to_check = sm->next_to_check;
		sm->listed = false;
		deadlock_check_sm(s, sm);
	}
	return s->left;
}

/*
 * Find a request that is left and holds columns: with @fits the oldest that fits now,
 * without it the newest.
 */
static struct accmem_columns_cta *deadlock_pick(struct search *s, bool fits)
{
	struct accmem_columns_cta *w, *found = NULL;
	struct accmem_columns_sm *sm;
	bool older;

	for (sm = s->sms; sm; sm = sm->next_connected) {
		list_for_each_entry(w, &sm->queue, queue) {
			s->c->checks++;
			if (!w->left || !accmem_columns_holds(w))
				continue;
			older = found && w->age < found->age;
			if (found && older != fits)
				continue;
			if (!fits ||
			    accmem_columns_fits(s->c, w, w->columns) >= 0)
				found = w;
		}
	}
	return found;
}

/*
 * Grant the oldest request that is left, fits and holds columns. No request waits for
 * a request that holds no columns.
 */
static bool deadlock_force(struct search *s)
{
	struct accmem_columns_cta *w = deadlock_pick(s, true);

	if (!w)
		return false;
	s->c->forced++;
	accmem_columns_grant(s->c, w, accmem_columns_fits(s->c, w, w->columns));
	return true;
}

static bool deadlock_refuse(struct search *s)
{
	struct accmem_columns_cta *newest = deadlock_pick(s, false);

	if (!newest)
		return false;
	s->c->deadlocks++;
	accmem_columns_fail(s->c, newest, -EDEADLK);
	return true;
}

static struct accmem_columns_sm **
deadlock_connect(struct accmem_columns_sm **tail, struct accmem_columns_sm *sm)
{
	if (sm->connected)
		return tail;
	sm->connected = true;
	sm->next_connected = NULL;
	*tail = sm;
	return &sm->next_connected;
}

/*
 * Make the list of SMs to search. Return false if no queued request of them is of CTAs
 * that hold columns.
 */
static bool deadlock_collect(struct search *s)
{
	struct accmem_columns_sm *sm, **tail = &s->sms;
	struct accmem_columns_cta *cta;
	bool holding = false;

	for (sm = s->c->touched; sm; sm = sm->next_touched)
		tail = deadlock_connect(tail, sm);
	for (sm = s->sms; sm; sm = sm->next_connected) {
		holding |= sm->nr_holding;
		if (!sm->nr_pairs)
			continue;
		list_for_each_entry(cta, &sm->queue, queue) {
			s->c->checks++;
			if (cta->group == 2)
				tail = deadlock_connect(tail,
							accmem_sm_of(s->c,
								     cta->peer));
		}
	}
	return holding;
}

static bool deadlock_resolve(struct search *s)
{
	/* A request left without the bounds is also left with them. */
	if (!deadlock_reduce(s, true))
		return false;
	if (deadlock_force(s))
		return true;
	return deadlock_reduce(s, false) && deadlock_refuse(s);
}

/* Resolve a deadlock. Return true if this may let other requests be granted. */
bool accmem_columns_break_deadlock(struct accmem_columns *c)
{
	struct search s = { .c = c };
	struct accmem_columns_sm *sm;
	bool resolved = deadlock_collect(&s) && deadlock_resolve(&s);

	for (sm = s.sms; sm; sm = sm->next_connected)
		sm->connected = false;
	return resolved;
}
