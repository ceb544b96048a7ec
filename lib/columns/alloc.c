// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_columns: alloc, and grants to queued requests.
 *
 * One queue for all SMs has the requests that wait for a permit or for columns, by age.
 * A pair is one request, and one of its CTAs (the leader) is in the queue. A request
 * that is at its bypass bound reserves its SMs: no younger request is
 * granted columns there.
 *
 * In the shared discipline requests queue for columns. In the exclusive discipline
 * requests queue for the permit; the CTA that has the permit then waits for columns and
 * blocks no other request.
 *
 * Locking: none; the caller serialises.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>

#include "internal.h"

static bool alloc_sm_at_bound(struct accmem_columns *c,
			      const struct accmem_columns_cta *w)
{
	return accmem_sm_of(c, w)->nr_at_bound ||
	       (w->group == 2 && accmem_sm_of(c, w->peer)->nr_at_bound);
}

/* Return true if a new request may be granted before the queued requests. */
static inline bool alloc_has_turn(struct accmem_columns *c,
				  const struct accmem_columns_cta *w)
{
	if (accmem_columns_contends(c, w) && alloc_sm_at_bound(c, w))
		return false;
	return accmem_columns_has_permit(c, w) ||
	       accmem_columns_permit_free(c, w);
}

/* --- granting ------------------------------------------------------------- */

static void alloc_grant_queued(struct accmem_columns *c,
			       struct accmem_columns_cta *w)
{
	int unit;

	if (accmem_columns_contends(c, w) &&
	    accmem_columns_sm_is_reserved(c, w))
		return;
	if (c->exclusive && !accmem_columns_obtain_permit(c, w))
		return;
	unit = accmem_columns_fits(c, w, w->columns);
	if (unit >= 0)
		accmem_columns_grant(c, w, unit);
}

/* Grant all queued requests that can be met, in one pass over the queue. */
static void alloc_run_pass(struct accmem_columns *c)
{
	struct accmem_columns_cta *w, *next;

	c->pass++;
	list_for_each_entry_safe(w, next, &c->queue, queue) {
		alloc_grant_queued(c, w);
		if (w->leads && w->at_bound)
			accmem_columns_reserve_sm(c, w);
	}
}

/* Grant all queued requests that can be met, and resolve deadlocks. */
void accmem_columns_grant_all(struct accmem_columns *c)
{
	do {
		alloc_run_pass(c);
	} while (!c->exclusive && c->nr_holding &&
		 accmem_columns_break_deadlock(c));
}

/*
 * Grant a new request if it can be met without a wait. The permit is obtained only
 * if the columns fit, too.
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

/*
 * Return true if the request can never fit. Only the CTA and its peer can free the
 * columns that they hold, and both are about to wait.
 */
static bool alloc_never_fits(struct accmem_columns *c,
			     const struct accmem_columns_cta *cta, u32 columns)
{
	u64 own = cta->held;

	if (cta->group == 2 && cta->peer)
		own |= cta->peer->held;
	if (!own) /* usual case */
		return columns > c->columns;
	return accmem_columns_find(c->absent | own,
				   columns / ACCMEM_COLUMNS_UNIT) < 0;
}

/*
 * Join the alloc of the peer. Return 0 if both are present, else the result of the
 * call.
 */
static int alloc_join_peer(struct accmem_columns *c,
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

/* Return the result of a call after a grant or after it was queued. */
static int alloc_result(const struct accmem_columns_cta *cta)
{
	if (cta->call == ACCMEM_CALL_NONE || cta->call == ACCMEM_CALL_RESERVED)
		return 0;
	return -EINPROGRESS;
}

int accmem_columns_request(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 columns,
			   bool stores, bool wait)
{
	u32 at_bound = c->nr_at_bound;
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
		err = alloc_join_peer(c, cta, wait);
		if (err)
			return err;
	}
	if (alloc_grant_at_once(c, cta)) {
		/*
		 * An older request has reached its bound by this grant. It
		 * may now block a request for whose columns that older request
		 * waits: search for a deadlock.
		 */
		if (c->nr_at_bound != at_bound && c->nr_holding)
			accmem_columns_run_queue(c);
		return alloc_result(cta);
	}
	if (!wait)
		return -EAGAIN;
	accmem_columns_enqueue(c, cta);
	/*
	 * The request cannot be granted now. It may obtain a permit or be in a
	 * deadlock.
	 */
	if (!c->exclusive && !c->nr_holding)
		return -EINPROGRESS;
	accmem_columns_run_queue(c);
	accmem_columns_forget_done(c, cta);
	if (cta->call == ACCMEM_CALL_DONE)
		return accmem_columns_collect(cta);
	return alloc_result(cta);
}

bool accmem_columns_would_grant(struct accmem_columns *c,
				const struct accmem_columns_cta *cta,
				u32 columns)
{
	if (alloc_check_alloc(c, cta, columns))
		return false;
	/* An alloc of a pair waits for the peer's alloc, even if columns are free. */
	if (cta->group == 2 &&
	    (!cta->peer || cta->peer->call != ACCMEM_CALL_JOIN_ALLOC))
		return false;
	return alloc_has_turn(c, cta) &&
	       accmem_columns_fits(c, cta, columns) >= 0;
}
