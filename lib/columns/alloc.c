// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_columns: alloc, and grants to queued requests.
 *
 * Each SM has a queue of the requests that wait for its permit or its columns, by age.
 * A pair is one request, in the queues of both SMs. A request that is at its bypass
 * bound reserves its SMs: no younger request is granted columns there.
 *
 * A pass walks the queues of the SMs on which a request may have become possible, in
 * the order of age over all of them, as if they were one queue. The SMs are in a heap (a
 * skew heap) by the age of the next request of each.
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
	return accmem_sm_of(c, w)->first_at_bound ||
	       (w->group == 2 && accmem_sm_of(c, w->peer)->first_at_bound);
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

	if (accmem_columns_contends(c, w) && accmem_columns_is_blocked(c, w))
		return;
	if (c->exclusive && !accmem_columns_obtain_permit(c, w))
		return;
	unit = accmem_columns_fits(c, w, w->columns);
	if (unit >= 0)
		accmem_columns_grant(c, w, unit);
}

/* Merge two heaps. */
static struct accmem_columns_sm *alloc_merge(struct accmem_columns_sm *a,
					     struct accmem_columns_sm *b)
{
	struct accmem_columns_sm *heap, **at = &heap, *rest;

	while (a && b) {
		if (b->at < a->at)
			swap(a, b);
		*at = a;
		rest = a->right;
		a->right = a->left;
		at = &a->left;
		a = rest;
	}
	*at = a ?: b;
	return heap;
}

/* Put an SM into the heap, unless the pass has checked all requests of its queue. */
static struct accmem_columns_sm *alloc_push(struct accmem_columns *c,
					    struct accmem_columns_sm *heap,
					    struct accmem_columns_sm *sm)
{
	sm->walked = sm->cursor != &sm->queue && (c->exclusive || ~sm->used);
	if (!sm->walked)
		return heap;
	sm->at = list_entry(sm->cursor, struct accmem_columns_cta, queue)->age;
	sm->left = NULL;
	sm->right = NULL;
	return alloc_merge(heap, sm);
}

/* Add the SMs on which a request may have become possible since the last call. */
static struct accmem_columns_sm *alloc_add_dirty(struct accmem_columns *c,
						 struct accmem_columns_sm *heap)
{
	struct accmem_columns_sm *sm;

	while ((sm = c->dirty)) {
		c->dirty = sm->next_dirty;
		sm->dirty = false;
		sm->cursor = sm->queue.next;
		heap = alloc_push(c, heap, sm);
	}
	return heap;
}

/*
 * Grant all queued requests that can be met, in one pass. A grant may move the cursors of
 * other SMs, so the age of an SM in the heap may be too low.
 */
static void alloc_run_pass(struct accmem_columns *c)
{
	struct accmem_columns_sm *heap = NULL, *sm;
	struct accmem_columns_cta *cta;

	while ((heap = alloc_add_dirty(c, heap))) {
		c->checks++;
		sm = heap;
		heap = alloc_merge(sm->left, sm->right);
		cta = list_entry(sm->cursor, struct accmem_columns_cta, queue);
		if (sm->cursor != &sm->queue && cta->age == sm->at) {
			sm->cursor = sm->cursor->next;
			alloc_grant_queued(c, accmem_columns_request_of(cta));
		}
		heap = alloc_push(c, heap, sm);
	}
}

/*
 * Grant all queued requests that can be met on the SMs that were touched, and resolve
 * deadlocks.
 */
void accmem_columns_grant_all(struct accmem_columns *c)
{
	do {
		alloc_run_pass(c);
	} while (!c->exclusive && accmem_columns_break_deadlock(c));
	accmem_columns_forget_touched(c);
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
	if (peer)
		accmem_columns_note_change(c, accmem_sm_of(c, peer));
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
	int err;

	err = alloc_check_alloc(c, cta, columns);
	if (err)
		return err;
	cta->columns = columns;
	cta->passed = 0;
	cta->age = c->arrivals++;
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
		 * An older request that has reached its bound by this grant
		 * may now block a request for whose columns that older request
		 * waits: search for a deadlock.
		 */
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
	accmem_columns_run_queue(c);
	accmem_columns_forget_done(cta);
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
