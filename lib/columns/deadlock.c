// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_columns: deadlocks among requests of the shared discipline.
 *
 * Assume that every CTA that does not wait for columns gives back all it holds;
 * so does one that waits for a peer, which can still come. Then, again and
 * again, let every request be met that could be, and its CTA give back all.
 * The requests that are left wait for each other.
 *
 * That is done twice. With the bypass bounds, what is left may be held up by a
 * spent bound only, whose owner waits for the columns of what it holds up: one
 * that holds columns and fits now is granted against the bound, and one that does
 * not fit will when the columns of others come back. To serve one that holds none
 * would bring nothing back, and starve the older. Without the bounds, what is left
 * waits for columns that nobody will give back: the newest that holds any gets
 * -EDEADLK.
 *
 * Only what holds columns can be waited for, so there is nothing to do while no
 * queued request does.
 */
#include <linux/errno.h>
#include <linux/kernel.h>

#include "internal.h"

/*
 * struct search - one of the two
 * @c: the arbiter
 * @bounds: bypass bounds count
 * @left: requests that are left
 * @again: SMs that are to be looked at
 */
struct search {
	struct accmem_columns *c;
	bool bounds;
	u32 left;
	struct accmem_columns_sm *again;
};

static void deadlock_look_again(struct search *s, struct accmem_columns_sm *sm)
{
	if (sm->again)
		return;
	sm->again = true;
	sm->next_again = s->again;
	s->again = sm;
}

/* a CTA of a request, the youngest so far that wants columns of its SM */
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
	sm->spent = sm->oldest;
	sm->all = true;
	deadlock_look_again(s, sm);
}

/* only those who wait hold anything */
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

/* the request that a CTA belongs to */
static struct accmem_columns_cta *
deadlock_request_of(struct accmem_columns_cta *cta)
{
	return cta->leads ? cta : cta->peer;
}

/* is a CTA of @w younger than a request for its SM that is left and spent? */
static bool deadlock_held_up_on(struct search *s,
				const struct accmem_columns_cta *w,
				struct accmem_columns_sm *sm)
{
	const struct accmem_columns_cta *old;

	for (; sm->spent; sm->spent = sm->spent->beside) {
		s->c->looks++;
		old = deadlock_request_of(sm->spent);
		if (old->left && old->spent)
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
	return !s->bounds || (!deadlock_held_up_on(s, w, sm) &&
			      (!other || !deadlock_held_up_on(s, w, other)));
}

/* what it holds comes back, and it holds nobody up */
static void deadlock_assume_free(struct search *s,
				 const struct accmem_columns_cta *cta,
				 bool spent)
{
	struct accmem_columns_sm *sm = accmem_sm_of(s->c, cta);

	sm->assumed &= ~cta->held;
	if (cta->held)
		sm->all = true;
	if (cta->held || spent)
		deadlock_look_again(s, sm);
}

static void deadlock_meet(struct search *s, struct accmem_columns_cta *w)
{
	w->left = false;
	s->left--;
	deadlock_assume_free(s, w, w->spent);
	if (w->group == 2)
		deadlock_assume_free(s, w->peer, w->spent);
}

/*
 * Meet what can be met of the requests for an SM: of all, or only of those that
 * are younger than the last one that held others up.
 */
static void deadlock_look(struct search *s, struct accmem_columns_sm *sm)
{
	struct accmem_columns_cta *cta = sm->all ? sm->oldest : sm->from, *w;

	sm->all = false;
	for (; cta; cta = cta->beside) {
		s->c->looks++;
		w = deadlock_request_of(cta);
		if (!w->left)
			continue;
		if (deadlock_can_be_met(s, w))
			deadlock_meet(s, w);
		else if (s->bounds && w->spent)
			break;
	}
	sm->from = cta;
}

/*
 * Returns how many requests are left.
 *
 * As columns only come back, the order makes no difference. All requests for an
 * SM are looked at once, and again when some of its columns have come back: as
 * often as it has units, at most.
 */
static u32 deadlock_reduce(struct accmem_columns *c, bool bounds)
{
	struct search s = { .c = c, .bounds = bounds, .left = c->nr_queued };
	struct accmem_columns_sm *sm;

	deadlock_assume(&s);
	while ((sm = s.again)) {
		s.again = sm->next_again;
		sm->again = false;
		deadlock_look(&s, sm);
	}
	return s.left;
}

/*
 * Grant the oldest that fits of what is left and holds columns: nobody waits for
 * one that holds none.
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

/* true when a step was made that may let others go on */
bool accmem_columns_break_deadlock(struct accmem_columns *c)
{
	/* what is left without the bounds is left with them, too */
	if (!deadlock_reduce(c, true))
		return false;
	if (deadlock_force(c))
		return true;
	return deadlock_reduce(c, false) && deadlock_refuse(c);
}
