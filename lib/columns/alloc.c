// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_columns: who gets columns, and when.
 *
 * The columns of an SM are a word of units. One queue for all SMs holds the
 * requests that wait for a permit or for columns, by age; a pair is one request
 * and led by one of its CTAs. A request whose bypass bound is spent keeps its SMs
 * for itself: nothing younger is granted there. In the exclusive discipline what
 * is queued for is the permit; who has it waits for columns in nobody's way.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>

#include "internal.h"

static bool alloc_spent_for_newcomer(struct accmem_columns *c,
				     const struct accmem_columns_cta *w)
{
	return accmem_sm_of(c, w)->nr_spent ||
	       (w->group == 2 && accmem_sm_of(c, w->peer)->nr_spent);
}

/* May a request that has just come be met now, if there is room? */
static inline bool alloc_has_turn(struct accmem_columns *c,
				  const struct accmem_columns_cta *w)
{
	if (accmem_columns_contends(c, w) && alloc_spent_for_newcomer(c, w))
		return false;
	return accmem_columns_has_permit(c, w) ||
	       accmem_columns_permit_free(c, w);
}

/* --- granting ------------------------------------------------------------- */

static void alloc_serve(struct accmem_columns *c, struct accmem_columns_cta *w)
{
	int unit;

	if (accmem_columns_contends(c, w) && accmem_columns_is_kept(c, w))
		return;
	if (c->exclusive && !accmem_columns_obtain_permit(c, w))
		return;
	unit = accmem_columns_fits(c, w, w->columns);
	if (unit >= 0)
		accmem_columns_grant(c, w, unit);
}

/* one pass over the queue serves everything that can be met */
static void alloc_serve_all(struct accmem_columns *c)
{
	struct accmem_columns_cta *w, *next;

	c->pass++;
	list_for_each_entry_safe(w, next, &c->queue, queue) {
		alloc_serve(c, w);
		if (w->leads && w->spent)
			accmem_columns_reserve_sm(c, w);
	}
}

/* serve what can be met, and break the deadlocks that there are then */
void accmem_columns_serve(struct accmem_columns *c)
{
	do {
		alloc_serve_all(c);
	} while (!c->exclusive && c->nr_holding &&
		 accmem_columns_break_deadlock(c));
}

/*
 * Grant a request that has just come, if it can be met without waiting. It
 * takes no permit for nothing.
 */
static bool alloc_grant_at_once(struct accmem_columns *c,
				struct accmem_columns_cta *w)
{
	int unit;

	if (!alloc_has_turn(c, w))
		return false;
	unit = accmem_columns_fits(c, w, w->columns);
	if (unit < 0)
		return false;
	if (c->exclusive)
		accmem_columns_obtain_permit(c, w);
	accmem_columns_grant(c, w, unit);
	return true;
}

/* --- alloc ---------------------------------------------------------------- */

static inline int alloc_check_alloc(struct accmem_columns *c,
				    const struct accmem_columns_cta *cta,
				    u32 columns)
{
	if (c->ended)
		return -ECONNRESET;
	if (cta->call != ACCMEM_CALL_NONE)
		return -EBUSY;
	if (cta->relinquished)
		return -EPERM;
	if (columns < ACCMEM_COLUMNS_MIN || columns > ACCMEM_COLUMNS_MAX ||
	    !is_power_of_2(columns))
		return -EDOM;
	if (cta->last && columns > cta->last)
		return -ERANGE;
	return 0;
}

/* Nobody but this CTA can free what it holds, and it is going to wait. */
static bool alloc_never_fits(struct accmem_columns *c,
			     const struct accmem_columns_cta *cta, u32 columns)
{
	u64 own = cta->held;

	if (cta->group == 2 && cta->peer)
		own |= cta->peer->held;
	if (!own) /* the usual case, cheaply */
		return columns > c->columns;
	return accmem_columns_find(c->absent | own,
				   columns / ACCMEM_COLUMNS_UNIT) < 0;
}

/* 0 when the peer has joined, else what the alloc comes to */
static int alloc_meet_for_alloc(struct accmem_columns *c,
				struct accmem_columns_cta *cta, bool wait)
{
	struct accmem_columns_cta *peer = cta->peer;

	if (cta->peer_gone)
		return -EPIPE;
	if (peer && peer->call == ACCMEM_CALL_JOIN_DEALLOC)
		return accmem_columns_fail_both(c, peer, -EPROTO);
	if (peer && peer->relinquished)
		return -EPROTO;
	if (peer && peer->call == ACCMEM_CALL_JOIN_ALLOC) {
		if (peer->columns != cta->columns)
			return accmem_columns_fail_both(c, peer, -EBADR);
		return 0;
	}
	if (!wait)
		return -EAGAIN;
	cta->call = ACCMEM_CALL_JOIN_ALLOC;
	return -EINPROGRESS;
}

/* what a call that has been granted columns, or not yet, returns */
static int alloc_outcome(const struct accmem_columns_cta *cta)
{
	if (cta->call == ACCMEM_CALL_NONE || cta->call == ACCMEM_CALL_RESERVED)
		return 0;
	return -EINPROGRESS;
}

int accmem_columns_request(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 columns,
			   bool stores, bool wait)
{
	u32 spent = c->nr_spent;
	int err;

	err = alloc_check_alloc(c, cta, columns);
	if (err)
		return err;
	cta->columns = columns;
	cta->passed = 0;
	cta->stores = stores;
	cta->may_wait = wait;
	if (alloc_never_fits(c, cta, columns)) {
		if (cta->group == 2 && cta->peer &&
		    cta->peer->call == ACCMEM_CALL_JOIN_ALLOC)
			return accmem_columns_fail_both(c, cta->peer, -ENOSPC);
		return -ENOSPC;
	}
	if (cta->group == 2) {
		err = alloc_meet_for_alloc(c, cta, wait);
		if (err)
			return err;
	}
	if (alloc_grant_at_once(c, cta)) {
		/* whom it has passed too often may hold up what it waits for */
		if (c->nr_spent != spent && c->nr_holding)
			accmem_columns_run_queue(c);
		return alloc_outcome(cta);
	}
	if (!wait)
		return -EAGAIN;
	accmem_columns_enqueue(c, cta);
	/* it cannot be met now; but it may take a permit, or be a deadlock */
	if (!c->exclusive && !c->nr_holding)
		return -EINPROGRESS;
	accmem_columns_run_queue(c);
	accmem_columns_forget_done(c, cta);
	if (cta->call == ACCMEM_CALL_DONE)
		return accmem_columns_collect(cta);
	return alloc_outcome(cta);
}

bool accmem_columns_would_grant(struct accmem_columns *c,
				const struct accmem_columns_cta *cta,
				u32 columns)
{
	if (alloc_check_alloc(c, cta, columns))
		return false;
	/* a pair's alloc waits for the peer's, whatever is free */
	if (cta->group == 2 &&
	    (!cta->peer || cta->peer->call != ACCMEM_CALL_JOIN_ALLOC))
		return false;
	return alloc_has_turn(c, cta) &&
	       accmem_columns_fits(c, cta, columns) >= 0;
}
