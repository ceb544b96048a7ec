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

#include "columns.h"
#include "internal.h"

/* --- room ----------------------------------------------------------------- */

/*
 * Room for @units (a power of two) outside of @busy, at a multiple of their
 * number: in the smallest free block that has it, so that large ones stay
 * whole, and the lowest of these. -1: none.
 */
int accmem_columns_find(u64 busy, u32 units)
{
	/* bits at the multiples of 1, 2, 4, ... */
	static const u64 aligned[] = {
		~0ull,
		0x5555555555555555ull,
		0x1111111111111111ull,
		0x0101010101010101ull,
		0x0001000100010001ull,
		0x0000000100000001ull,
		1,
	};
	unsigned int level = ilog2(units), width;
	u64 fit = ~busy, whole, alone;

	if (!fit) /* as it is when many share an SM */
		return -1;
	for (width = 1; width < units; width *= 2)
		fit &= fit >> width;
	fit &= aligned[level];
	if (!fit)
		return -1;
	for (; width < 64 && fit & (fit - 1); width *= 2) {
		whole = fit & (fit >> width) & aligned[++level];
		alone = fit & ~(whole | whole << width);
		if (alone)
			return __ffs64(alone);
		fit = whole;
	}
	return __ffs64(fit);
}

static bool alloc_spent_for_newcomer(struct accmem_columns *c,
				     const struct accmem_columns_cta *w)
{
	return accmem_sm_of(c, w)->nr_spent ||
	       (w->group == 2 && accmem_sm_of(c, w->peer)->nr_spent);
}

/* --- permits (exclusive) -------------------------------------------------- */

static bool alloc_has_permit(struct accmem_columns *c,
			     const struct accmem_columns_cta *cta)
{
	return !c->exclusive || accmem_sm_of(c, cta)->permit == cta;
}

/* does the request still queue for what its discipline queues for? */
static bool alloc_contends(struct accmem_columns *c,
			   const struct accmem_columns_cta *w)
{
	return !c->exclusive || !alloc_has_permit(c, w);
}

static bool alloc_permit_free(struct accmem_columns *c,
			      const struct accmem_columns_cta *w)
{
	return !accmem_sm_of(c, w)->permit &&
	       (w->group == 1 || !accmem_sm_of(c, w->peer)->permit);
}

static void alloc_take_permit(struct accmem_columns *c,
			      struct accmem_columns_cta *cta)
{
	accmem_sm_of(c, cta)->permit = cta;
	cta->took_permit = true;
}

/* an alloc has failed: a permit that it took goes back */
static void alloc_untake_permit(struct accmem_columns *c,
				struct accmem_columns_cta *cta)
{
	if (cta->took_permit)
		accmem_columns_drop_permit(c, cta);
}

/* --- the queue ------------------------------------------------------------ */

static bool alloc_uses_sm(const struct accmem_columns_cta *w, u32 sm)
{
	return w->sm == sm || (w->group == 2 && w->peer->sm == sm);
}

/* do two requests want columns of one SM? */
static bool alloc_share_sm(const struct accmem_columns_cta *a,
			   const struct accmem_columns_cta *b)
{
	return alloc_uses_sm(a, b->sm) ||
	       (b->group == 2 && alloc_uses_sm(a, b->peer->sm));
}

/* from here to the end of this pass the SMs of @w are for nobody younger */
static void alloc_keep(struct accmem_columns *c,
		       const struct accmem_columns_cta *w)
{
	accmem_sm_of(c, w)->stamp = c->pass;
	if (w->group == 2)
		accmem_sm_of(c, w->peer)->stamp = c->pass;
}

static bool alloc_is_kept(struct accmem_columns *c,
			  const struct accmem_columns_cta *w)
{
	return accmem_sm_of(c, w)->stamp == c->pass ||
	       (w->group == 2 && accmem_sm_of(c, w->peer)->stamp == c->pass);
}

static void alloc_count_spent(struct accmem_columns *c,
			      struct accmem_columns_cta *w, bool spent)
{
	u32 one = spent ? 1 : -1;

	if (w->spent == spent)
		return;
	w->spent = spent;
	accmem_sm_of(c, w)->nr_spent += one;
	if (w->group == 2)
		accmem_sm_of(c, w->peer)->nr_spent += one;
	c->nr_spent += one;
	if (spent)
		alloc_keep(c, w);
}

static void alloc_enqueue(struct accmem_columns *c,
			  struct accmem_columns_cta *w)
{
	w->call = ACCMEM_CALL_QUEUED;
	w->leads = true;
	w->bypassed = 0;
	list_add_tail(&w->queue, &c->queue);
	c->nr_queued++;
	if (w->group == 2) {
		w->peer->call = ACCMEM_CALL_QUEUED;
		w->peer->leads = false;
		w->peer->bypassed = 0;
	}
	w->counted = accmem_columns_holds(w);
	c->nr_holding += w->counted;
	if (!c->bypass_bound)
		alloc_count_spent(c, w, alloc_contends(c, w));
}

static void alloc_dequeue(struct accmem_columns *c,
			  struct accmem_columns_cta *w)
{
	if (w->spent)
		alloc_count_spent(c, w, false);
	c->nr_holding -= w->counted;
	c->nr_queued--;
	list_del_init(&w->queue);
	w->leads = false;
}

static struct accmem_columns_cta *alloc_leader(struct accmem_columns_cta *cta)
{
	return cta->leads ? cta : cta->peer;
}

/*
 * The call of @cta ends, whose caller may be about to confirm a reservation: it
 * is not told then, for it finds out.
 */
void accmem_columns_end(struct accmem_columns *c,
			struct accmem_columns_cta *cta, int result)
{
	if (cta->call != ACCMEM_CALL_RESERVED) {
		accmem_columns_finish(c, cta, result);
		return;
	}
	cta->call = ACCMEM_CALL_DONE;
	cta->result = result;
}

/* a request in the queue ends with @err, for both of a pair */
void accmem_columns_fail(struct accmem_columns *c, struct accmem_columns_cta *w,
			 int err)
{
	alloc_dequeue(c, w);
	alloc_untake_permit(c, w);
	accmem_columns_finish(c, w, err);
	if (w->group == 2) {
		alloc_untake_permit(c, w->peer);
		accmem_columns_finish(c, w->peer, err);
	}
}

/* --- granting ------------------------------------------------------------- */

/* @w is served before everything older that queues for one of its SMs */
static u32 alloc_pass_by(struct accmem_columns *c, struct accmem_columns_cta *w)
{
	struct accmem_columns_cta *older;
	u32 passed = 0;

	list_for_each_entry(older, &c->queue, queue) {
		if (older == w)
			break;
		if (!alloc_share_sm(older, w) || !alloc_contends(c, older))
			continue;
		passed++;
		/* a grant against the bound does not stretch it */
		if (older->spent)
			continue;
		if (++older->bypassed >= c->bypass_bound)
			alloc_count_spent(c, older, true);
	}
	c->bypasses += passed;
	return passed;
}

static void alloc_reserve(struct accmem_columns *c,
			  struct accmem_columns_cta *cta, u32 columns, u32 unit)
{
	u64 mask = accmem_columns_mask(columns) << unit;

	accmem_sm_of(c, cta)->used |= mask;
	cta->reserved = mask;
	cta->address = unit * ACCMEM_COLUMNS_UNIT;
	cta->call = cta->stores ? ACCMEM_CALL_RESERVED : ACCMEM_CALL_STORED;
}

static void alloc_unreserve_one(struct accmem_columns *c,
				struct accmem_columns_cta *cta)
{
	accmem_sm_of(c, cta)->used &= ~cta->reserved;
	cta->reserved = 0;
	alloc_untake_permit(c, cta);
}

/* the columns of a reservation, and the permits that it took, go back */
static void alloc_unreserve(struct accmem_columns *c,
			    struct accmem_columns_cta *w)
{
	alloc_unreserve_one(c, w);
	if (w->group == 2)
		alloc_unreserve_one(c, w->peer);
}

/*
 * What a call that waits has, and a peer that has joined it: its place in the
 * queue, permits, columns. Returns that peer, or NULL.
 */
struct accmem_columns_cta *
accmem_columns_withdraw(struct accmem_columns *c,
			struct accmem_columns_cta *cta)
{
	if (cta->call == ACCMEM_CALL_QUEUED)
		alloc_dequeue(c, alloc_leader(cta));
	else if (!accmem_columns_is_reserved(cta))
		return NULL;
	alloc_unreserve(c, cta);
	return cta->group == 2 ? cta->peer : NULL;
}

/* the units that are taken on the SM, or on either of a pair's */
static u64 alloc_busy(struct accmem_columns *c,
		      const struct accmem_columns_cta *w)
{
	u64 used = accmem_sm_of(c, w)->used;

	return w->group == 2 ? used | accmem_sm_of(c, w->peer)->used : used;
}

int accmem_columns_fits(struct accmem_columns *c,
			const struct accmem_columns_cta *w)
{
	return accmem_columns_find(alloc_busy(c, w),
				   w->columns / ACCMEM_COLUMNS_UNIT);
}

/* a CTA that waited for columns has them, or is to store their address */
static inline void alloc_tell_granted(struct accmem_columns *c,
				      struct accmem_columns_cta *cta)
{
	if (cta->call == ACCMEM_CALL_NONE)
		accmem_columns_finish(c, cta, 0);
	else if (cta->call == ACCMEM_CALL_RESERVED)
		accmem_columns_tell(c, cta);
}

/*
 * Grant columns from @unit on to a request. One that is not in the queue is the
 * call in progress, which needs not be told.
 */
void accmem_columns_grant(struct accmem_columns *c,
			  struct accmem_columns_cta *w, u32 unit)
{
	bool waited = w->leads;

	if (!c->exclusive && !list_empty(&c->queue) &&
	    !list_is_first(&w->queue, &c->queue))
		w->passed += alloc_pass_by(c, w);
	if (waited)
		alloc_dequeue(c, w);
	alloc_reserve(c, w, w->columns, unit);
	if (w->group == 2)
		alloc_reserve(c, w->peer, w->columns, unit);
	accmem_columns_commit(c, w);
	if (waited)
		alloc_tell_granted(c, w);
	if (w->group == 2)
		alloc_tell_granted(c, w->peer);
}

/* In the exclusive discipline: does @w have its permits, now at the latest? */
static bool alloc_obtain_permit(struct accmem_columns *c,
				struct accmem_columns_cta *w)
{
	if (alloc_has_permit(c, w))
		return true;
	if (!alloc_permit_free(c, w))
		return false;
	alloc_count_spent(c, w, false);
	w->passed = alloc_pass_by(c, w);
	alloc_take_permit(c, w);
	if (w->group == 2)
		alloc_take_permit(c, w->peer);
	return true;
}

static void alloc_serve(struct accmem_columns *c, struct accmem_columns_cta *w)
{
	int unit;

	if (alloc_contends(c, w) && alloc_is_kept(c, w))
		return;
	if (c->exclusive && !alloc_obtain_permit(c, w))
		return;
	unit = accmem_columns_fits(c, w);
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
			alloc_keep(c, w);
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

	if (alloc_contends(c, w) && alloc_spent_for_newcomer(c, w))
		return false;
	if (!alloc_has_permit(c, w) && !alloc_permit_free(c, w))
		return false;
	unit = accmem_columns_fits(c, w);
	if (unit < 0)
		return false;
	if (c->exclusive)
		alloc_obtain_permit(c, w);
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
			accmem_columns_settle(c);
		return alloc_outcome(cta);
	}
	if (!wait)
		return -EAGAIN;
	alloc_enqueue(c, cta);
	/* it cannot be met now; but it may take a permit, or be a deadlock */
	if (!c->exclusive && !c->nr_holding)
		return -EINPROGRESS;
	accmem_columns_settle(c);
	accmem_columns_forget_done(c, cta);
	if (cta->call == ACCMEM_CALL_DONE)
		return accmem_columns_collect(cta);
	return alloc_outcome(cta);
}

bool accmem_columns_would_grant(struct accmem_columns *c,
				const struct accmem_columns_cta *cta,
				u32 columns)
{
	u64 used;

	if (alloc_check_alloc(c, cta, columns))
		return false;
	/* a pair's alloc waits for the peer's, whatever is free */
	if (cta->group == 2 &&
	    (!cta->peer || cta->peer->call != ACCMEM_CALL_JOIN_ALLOC))
		return false;
	used = alloc_busy(c, cta);
	if (alloc_contends(c, cta) && alloc_spent_for_newcomer(c, cta))
		return false;
	if (!alloc_has_permit(c, cta) && !alloc_permit_free(c, cta))
		return false;
	return accmem_columns_find(used, columns / ACCMEM_COLUMNS_UNIT) >= 0;
}
