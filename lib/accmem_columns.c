// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_columns: the Tensor Memory arbiter as a state machine.
 *
 * The columns of an SM are a word of units. One queue for all SMs holds the
 * requests that wait for a permit or for columns, by age; a pair is one request
 * and led by one of its CTAs. After each event columns_settle() serves what can
 * be served, and then looks for a deadlock (accmem_columns_deadlock.c has the
 * rules).
 *
 * A request whose bypass bound is spent keeps its SMs for itself: nothing
 * younger is granted there. In the exclusive discipline what is queued for is
 * the permit; who has it waits for columns in nobody's way.
 *
 * A grant is a reservation until each side has its address where it wants it:
 * only then the columns are held, the permits that the call took are kept, and
 * the number of columns bounds the next alloc. What ends a call before gives all
 * of it back, so nothing that a CTA was told of is ever taken away again.
 *
 * Takes no lock: the caller serialises.
 */
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>

#include "accmem_columns.h"
#include "accmem_columns_internal.h"

int accmem_columns_init(struct accmem_columns *c,
			struct accmem_columns_sm *sms, u32 nr_sms, u32 columns,
			bool exclusive, u32 bypass_bound)
{
	u32 i, units = columns / ACCMEM_COLUMNS_UNIT;

	if (!nr_sms || !columns || columns % ACCMEM_COLUMNS_UNIT ||
	    columns > ACCMEM_COLUMNS_SM_MAX)
		return -EINVAL;
	*c = (struct accmem_columns){
		.sms = sms,
		.nr_sms = nr_sms,
		.columns = columns,
		.absent = units < 64 ? ~0ull << units : 0,
		.exclusive = exclusive,
		.bypass_bound = bypass_bound,
	};
	INIT_LIST_HEAD(&c->ctas);
	INIT_LIST_HEAD(&c->queue);
	c->done_tail = &c->done;
	for (i = 0; i < nr_sms; i++)
		sms[i] = (struct accmem_columns_sm){ .used = c->absent };
	return 0;
}

/*
 * Room for @units (a power of two) outside of @busy, at a multiple of their
 * number: in the smallest free block that has it, so that large ones stay
 * whole, and the lowest of these. -1: none.
 */
int accmem_columns_find(u64 busy, u32 units)
{
	/* bits at the multiples of 1, 2, 4, ... */
	static const u64 aligned[] = {
		~0ull,		     0x5555555555555555ull,
		0x1111111111111111ull, 0x0101010101010101ull,
		0x0001000100010001ull, 0x0000000100000001ull,
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

static u64 columns_units_mask(u32 columns)
{
	return (1ull << columns / ACCMEM_COLUMNS_UNIT) - 1;
}

static bool columns_spent_for_newcomer(struct accmem_columns *c,
				       const struct accmem_columns_cta *w)
{
	return accmem_sm_of(c, w)->nr_spent ||
	       (w->group == 2 && accmem_sm_of(c, w->peer)->nr_spent);
}

/* --- permits (exclusive) -------------------------------------------------- */

static bool columns_has_permit(struct accmem_columns *c,
			       const struct accmem_columns_cta *cta)
{
	return !c->exclusive || accmem_sm_of(c, cta)->permit == cta;
}

/* does the request still queue for what its discipline queues for? */
static bool columns_contends(struct accmem_columns *c,
			     const struct accmem_columns_cta *w)
{
	return !c->exclusive || !columns_has_permit(c, w);
}

static bool columns_permit_free(struct accmem_columns *c,
				const struct accmem_columns_cta *w)
{
	return !accmem_sm_of(c, w)->permit &&
	       (w->group == 1 || !accmem_sm_of(c, w->peer)->permit);
}

static void columns_take_permit(struct accmem_columns *c,
				struct accmem_columns_cta *cta)
{
	accmem_sm_of(c, cta)->permit = cta;
	cta->took_permit = true;
}

static void columns_drop_permit(struct accmem_columns *c,
				struct accmem_columns_cta *cta)
{
	struct accmem_columns_sm *sm = accmem_sm_of(c, cta);

	if (sm->permit == cta)
		sm->permit = NULL;
	cta->took_permit = false;
}

/* an alloc has failed: a permit that it took goes back */
static void columns_untake_permit(struct accmem_columns *c,
				  struct accmem_columns_cta *cta)
{
	if (cta->took_permit)
		columns_drop_permit(c, cta);
}

/* --- the queue ------------------------------------------------------------ */

static bool columns_uses_sm(const struct accmem_columns_cta *w, u32 sm)
{
	return w->sm == sm || (w->group == 2 && w->peer->sm == sm);
}

/* do two requests want columns of one SM? */
static bool columns_share_sm(const struct accmem_columns_cta *a,
			     const struct accmem_columns_cta *b)
{
	return columns_uses_sm(a, b->sm) ||
	       (b->group == 2 && columns_uses_sm(a, b->peer->sm));
}

/* from here to the end of this pass the SMs of @w are for nobody younger */
static void columns_keep(struct accmem_columns *c,
			 const struct accmem_columns_cta *w)
{
	accmem_sm_of(c, w)->stamp = c->pass;
	if (w->group == 2)
		accmem_sm_of(c, w->peer)->stamp = c->pass;
}

static bool columns_is_kept(struct accmem_columns *c,
			    const struct accmem_columns_cta *w)
{
	return accmem_sm_of(c, w)->stamp == c->pass ||
	       (w->group == 2 && accmem_sm_of(c, w->peer)->stamp == c->pass);
}

static void columns_count_spent(struct accmem_columns *c,
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
		columns_keep(c, w);
}

static void columns_enqueue(struct accmem_columns *c,
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
		columns_count_spent(c, w, columns_contends(c, w));
}

static void columns_dequeue(struct accmem_columns *c,
			    struct accmem_columns_cta *w)
{
	if (w->spent)
		columns_count_spent(c, w, false);
	c->nr_holding -= w->counted;
	c->nr_queued--;
	list_del_init(&w->queue);
	w->leads = false;
}

static void columns_tell(struct accmem_columns *c,
			 struct accmem_columns_cta *cta)
{
	cta->next_done = NULL;
	*c->done_tail = cta;
	c->done_tail = &cta->next_done;
}

static void columns_finish(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, int result)
{
	cta->call = ACCMEM_CALL_DONE;
	cta->result = result;
	columns_tell(c, cta);
}

/* the caller gets the result of @cta at once, or never */
static void columns_forget_done(struct accmem_columns *c,
				struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta **at = &c->done;

	while (*at && *at != cta)
		at = &(*at)->next_done;
	if (!*at)
		return;
	*at = cta->next_done;
	if (!*at)
		c->done_tail = at;
}

static struct accmem_columns_cta *columns_leader(struct accmem_columns_cta *cta)
{
	return cta->leads ? cta : cta->peer;
}

/*
 * The call of @cta ends, whose caller may be about to confirm a reservation: it
 * is not told then, for it finds out.
 */
static void columns_end(struct accmem_columns *c,
			struct accmem_columns_cta *cta, int result)
{
	if (cta->call != ACCMEM_CALL_RESERVED) {
		columns_finish(c, cta, result);
		return;
	}
	cta->call = ACCMEM_CALL_DONE;
	cta->result = result;
}

/* a request in the queue ends with @err, for both of a pair */
void accmem_columns_fail(struct accmem_columns *c, struct accmem_columns_cta *w,
			 int err)
{
	columns_dequeue(c, w);
	columns_untake_permit(c, w);
	columns_finish(c, w, err);
	if (w->group == 2) {
		columns_untake_permit(c, w->peer);
		columns_finish(c, w->peer, err);
	}
}

/* --- granting ------------------------------------------------------------- */

/* @w is served before everything older that queues for one of its SMs */
static u32 columns_pass_by(struct accmem_columns *c,
			   struct accmem_columns_cta *w)
{
	struct accmem_columns_cta *older;
	u32 passed = 0;

	list_for_each_entry(older, &c->queue, queue) {
		if (older == w)
			break;
		if (!columns_share_sm(older, w) || !columns_contends(c, older))
			continue;
		passed++;
		/* a grant against the bound does not stretch it */
		if (older->spent)
			continue;
		if (++older->bypassed >= c->bypass_bound)
			columns_count_spent(c, older, true);
	}
	c->bypasses += passed;
	return passed;
}

static bool columns_is_reserved(const struct accmem_columns_cta *cta)
{
	return cta->call == ACCMEM_CALL_RESERVED ||
	       cta->call == ACCMEM_CALL_STORED;
}

static void columns_reserve(struct accmem_columns *c,
			    struct accmem_columns_cta *cta, u32 columns,
			    u32 unit)
{
	u64 mask = columns_units_mask(columns) << unit;

	accmem_sm_of(c, cta)->used |= mask;
	cta->reserved = mask;
	cta->address = unit * ACCMEM_COLUMNS_UNIT;
	cta->call = cta->stores ? ACCMEM_CALL_RESERVED : ACCMEM_CALL_STORED;
}

/* what a CTA holds changes: nowhere else */
static inline void columns_hold(struct accmem_columns *c,
				struct accmem_columns_cta *cta, u64 held)
{
	u64 before = cta->held;

	cta->held = held;
	if (c->held_changed && held != before)
		c->held_changed(cta, held ^ before);
}

/* a reservation becomes an allocation */
static void columns_give(struct accmem_columns *c,
			 struct accmem_columns_cta *cta)
{
	columns_hold(c, cta, cta->held | cta->reserved);
	cta->starts |= 1ull << cta->address / ACCMEM_COLUMNS_UNIT;
	cta->reserved = 0;
	cta->last = cta->columns;
	cta->took_permit = false;
	cta->call = ACCMEM_CALL_NONE;
}

/* each side has its address: the columns are theirs */
static inline bool columns_commit(struct accmem_columns *c,
				  struct accmem_columns_cta *w)
{
	struct accmem_columns_cta *peer = w->group == 2 ? w->peer : NULL;

	if (w->call != ACCMEM_CALL_STORED ||
	    (peer && peer->call != ACCMEM_CALL_STORED))
		return false;
	columns_give(c, w);
	if (peer)
		columns_give(c, peer);
	return true;
}

static void columns_unreserve_one(struct accmem_columns *c,
				  struct accmem_columns_cta *cta)
{
	accmem_sm_of(c, cta)->used &= ~cta->reserved;
	cta->reserved = 0;
	columns_untake_permit(c, cta);
}

/* the columns of a reservation, and the permits that it took, go back */
static void columns_unreserve(struct accmem_columns *c,
			      struct accmem_columns_cta *w)
{
	columns_unreserve_one(c, w);
	if (w->group == 2)
		columns_unreserve_one(c, w->peer);
}

static void columns_take(struct accmem_columns *c,
			 struct accmem_columns_cta *cta, u32 columns, u32 unit)
{
	u64 mask = columns_units_mask(columns) << unit;

	accmem_sm_of(c, cta)->used &= ~mask;
	columns_hold(c, cta, cta->held & ~mask);
	cta->starts &= ~(1ull << unit);
}

/* the units that are taken on the SM, or on either of a pair's */
static u64 columns_busy(struct accmem_columns *c,
			const struct accmem_columns_cta *w)
{
	u64 used = accmem_sm_of(c, w)->used;

	return w->group == 2 ? used | accmem_sm_of(c, w->peer)->used : used;
}

int accmem_columns_fits(struct accmem_columns *c,
			const struct accmem_columns_cta *w)
{
	return accmem_columns_find(columns_busy(c, w),
				   w->columns / ACCMEM_COLUMNS_UNIT);
}

/* a CTA that waited for columns has them, or is to store their address */
static inline void columns_tell_granted(struct accmem_columns *c,
					struct accmem_columns_cta *cta)
{
	if (cta->call == ACCMEM_CALL_NONE)
		columns_finish(c, cta, 0);
	else if (cta->call == ACCMEM_CALL_RESERVED)
		columns_tell(c, cta);
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
		w->passed += columns_pass_by(c, w);
	if (waited)
		columns_dequeue(c, w);
	columns_reserve(c, w, w->columns, unit);
	if (w->group == 2)
		columns_reserve(c, w->peer, w->columns, unit);
	columns_commit(c, w);
	if (waited)
		columns_tell_granted(c, w);
	if (w->group == 2)
		columns_tell_granted(c, w->peer);
}

/* In the exclusive discipline: does @w have its permits, now at the latest? */
static bool columns_obtain_permit(struct accmem_columns *c,
				  struct accmem_columns_cta *w)
{
	if (columns_has_permit(c, w))
		return true;
	if (!columns_permit_free(c, w))
		return false;
	columns_count_spent(c, w, false);
	w->passed = columns_pass_by(c, w);
	columns_take_permit(c, w);
	if (w->group == 2)
		columns_take_permit(c, w->peer);
	return true;
}

static void columns_serve(struct accmem_columns *c,
			  struct accmem_columns_cta *w)
{
	int unit;

	if (columns_contends(c, w) && columns_is_kept(c, w))
		return;
	if (c->exclusive && !columns_obtain_permit(c, w))
		return;
	unit = accmem_columns_fits(c, w);
	if (unit >= 0)
		accmem_columns_grant(c, w, unit);
}

/* one pass over the queue serves everything that can be met */
static void columns_serve_all(struct accmem_columns *c)
{
	struct accmem_columns_cta *w, *next;

	c->pass++;
	list_for_each_entry_safe(w, next, &c->queue, queue) {
		columns_serve(c, w);
		if (w->leads && w->spent)
			columns_keep(c, w);
	}
}

static void columns_settle(struct accmem_columns *c)
{
	if (list_empty(&c->queue))
		return;
	do {
		columns_serve_all(c);
	} while (!c->exclusive && c->nr_holding &&
		 accmem_columns_break_deadlock(c));
}

/*
 * Grant a request that has just come, if it can be met without waiting. It
 * takes no permit for nothing.
 */
static bool columns_grant_at_once(struct accmem_columns *c,
				  struct accmem_columns_cta *w)
{
	int unit;

	if (columns_contends(c, w) && columns_spent_for_newcomer(c, w))
		return false;
	if (!columns_has_permit(c, w) && !columns_permit_free(c, w))
		return false;
	unit = accmem_columns_fits(c, w);
	if (unit < 0)
		return false;
	if (c->exclusive)
		columns_obtain_permit(c, w);
	accmem_columns_grant(c, w, unit);
	return true;
}

/* --- alloc ---------------------------------------------------------------- */

static inline int columns_check_alloc(struct accmem_columns *c,
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
static bool columns_never_fits(struct accmem_columns *c,
			       const struct accmem_columns_cta *cta,
			       u32 columns)
{
	u64 own = cta->held;

	if (cta->group == 2 && cta->peer)
		own |= cta->peer->held;
	if (!own) /* the usual case, cheaply */
		return columns > c->columns;
	return accmem_columns_find(c->absent | own,
				   columns / ACCMEM_COLUMNS_UNIT) < 0;
}

/* the peer is at a place where it never should have been */
static int columns_fail_both(struct accmem_columns *c,
			     struct accmem_columns_cta *peer, int err)
{
	columns_finish(c, peer, err);
	return err;
}

/* 0 when the peer has joined, else what the alloc comes to */
static int columns_meet_for_alloc(struct accmem_columns *c,
				  struct accmem_columns_cta *cta, bool wait)
{
	struct accmem_columns_cta *peer = cta->peer;

	if (cta->peer_gone)
		return -EPIPE;
	if (peer && peer->call == ACCMEM_CALL_JOIN_DEALLOC)
		return columns_fail_both(c, peer, -EPROTO);
	if (peer && peer->relinquished)
		return -EPROTO;
	if (peer && peer->call == ACCMEM_CALL_JOIN_ALLOC) {
		if (peer->columns != cta->columns)
			return columns_fail_both(c, peer, -EBADR);
		return 0;
	}
	if (!wait)
		return -EAGAIN;
	cta->call = ACCMEM_CALL_JOIN_ALLOC;
	return -EINPROGRESS;
}

/* what a call that has been granted columns, or not yet, returns */
static int columns_outcome(const struct accmem_columns_cta *cta)
{
	if (cta->call == ACCMEM_CALL_NONE ||
	    cta->call == ACCMEM_CALL_RESERVED)
		return 0;
	return -EINPROGRESS;
}

int accmem_columns_request(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 columns,
			   bool stores, bool wait)
{
	u32 spent = c->nr_spent;
	int err;

	err = columns_check_alloc(c, cta, columns);
	if (err)
		return err;
	cta->columns = columns;
	cta->passed = 0;
	cta->stores = stores;
	if (columns_never_fits(c, cta, columns)) {
		if (cta->group == 2 && cta->peer &&
		    cta->peer->call == ACCMEM_CALL_JOIN_ALLOC)
			return columns_fail_both(c, cta->peer, -ENOSPC);
		return -ENOSPC;
	}
	if (cta->group == 2) {
		err = columns_meet_for_alloc(c, cta, wait);
		if (err)
			return err;
	}
	if (columns_grant_at_once(c, cta)) {
		/* whom it has passed too often may hold up what it waits for */
		if (c->nr_spent != spent && c->nr_holding)
			columns_settle(c);
		return columns_outcome(cta);
	}
	if (!wait)
		return -EAGAIN;
	columns_enqueue(c, cta);
	/* it cannot be met now; but it may take a permit, or be a deadlock */
	if (!c->exclusive && !c->nr_holding)
		return -EINPROGRESS;
	columns_settle(c);
	columns_forget_done(c, cta);
	if (cta->call == ACCMEM_CALL_DONE)
		return accmem_columns_collect(cta);
	return columns_outcome(cta);
}

/* --- dealloc -------------------------------------------------------------- */

/* units from the start of an allocation to its end */
static u32 columns_length_at(const struct accmem_columns_cta *cta, u32 unit)
{
	u64 end = ~(cta->held >> unit) | ((cta->starts >> unit) & ~1ull);

	return __ffs64(end);
}

static int columns_check_dealloc(struct accmem_columns *c,
				 struct accmem_columns_cta *cta, u32 address,
				 u32 columns)
{
	u32 unit = address / ACCMEM_COLUMNS_UNIT;
	u64 bit;

	if (address >= c->columns) /* a lane, too */
		return -ENXIO;
	bit = 1ull << unit;
	if (!(cta->held & bit))
		return accmem_sm_of(c, cta)->used & bit ? -EACCES : -ENOENT;
	if (address % ACCMEM_COLUMNS_UNIT || !(cta->starts & bit))
		return -EADDRNOTAVAIL;
	if (columns_length_at(cta, unit) * ACCMEM_COLUMNS_UNIT != columns)
		return -EMSGSIZE;
	return 0;
}

/* 0 when the peer has joined, else what the dealloc comes to */
static int columns_meet_for_dealloc(struct accmem_columns *c,
				    struct accmem_columns_cta *cta, u32 address,
				    u32 columns, bool wait)
{
	struct accmem_columns_cta *peer = cta->peer;

	if (cta->peer_gone)
		return -EPIPE;
	if (peer && peer->call == ACCMEM_CALL_JOIN_DEALLOC) {
		if (peer->address != address || peer->columns != columns)
			return columns_fail_both(c, peer, -EBADR);
		return 0;
	}
	if (!wait)
		return -EAGAIN;
	cta->call = ACCMEM_CALL_JOIN_DEALLOC;
	cta->address = address;
	cta->columns = columns;
	return -EINPROGRESS;
}

int accmem_columns_dealloc(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 address,
			   u32 columns, bool wait)
{
	struct accmem_columns_cta *peer = cta->group == 2 ? cta->peer : NULL;
	u32 unit = address / ACCMEM_COLUMNS_UNIT;
	int err;

	if (c->ended)
		return -ECONNRESET;
	if (cta->call != ACCMEM_CALL_NONE)
		return -EBUSY;
	/* before the operands: the peer must not be left waiting (P20) */
	if (peer && peer->call == ACCMEM_CALL_JOIN_ALLOC)
		return columns_fail_both(c, peer, -EPROTO);
	err = columns_check_dealloc(c, cta, address, columns);
	if (err)
		return err;
	if (cta->group == 2) {
		err = columns_meet_for_dealloc(c, cta, address, columns, wait);
		if (err)
			return err;
		columns_take(c, peer, columns, unit);
		columns_finish(c, peer, 0);
	}
	columns_take(c, cta, columns, unit);
	columns_settle(c);
	return 0;
}

/* --- the end of rights, waits, CTAs --------------------------------------- */

/* a CTA's alloc has not come to its end */
static bool columns_in_alloc(const struct accmem_columns_cta *cta)
{
	return cta->call == ACCMEM_CALL_JOIN_ALLOC ||
	       cta->call == ACCMEM_CALL_QUEUED || columns_is_reserved(cta);
}

/*
 * What a call that waits has, and a peer that has joined it: its place in the
 * queue, permits, columns. Returns that peer, or NULL.
 */
static struct accmem_columns_cta *columns_withdraw(struct accmem_columns *c,
						   struct accmem_columns_cta *cta)
{
	if (cta->call == ACCMEM_CALL_QUEUED)
		columns_dequeue(c, columns_leader(cta));
	else if (!columns_is_reserved(cta))
		return NULL;
	columns_unreserve(c, cta);
	return cta->group == 2 ? cta->peer : NULL;
}

/* a wait ends with @err; a peer that has joined it ends with @peer_err */
static void columns_end_wait(struct accmem_columns *c,
			     struct accmem_columns_cta *cta, int err,
			     int peer_err)
{
	struct accmem_columns_cta *peer = columns_withdraw(c, cta);

	if (peer)
		columns_end(c, peer, peer_err);
	columns_end(c, cta, err);
}

static int columns_confirm_lost(struct accmem_columns *c,
				struct accmem_columns_cta *cta)
{
	columns_end_wait(c, cta, -EFAULT, -EFAULT);
	columns_forget_done(c, cta);
	columns_settle(c);
	return accmem_columns_collect(cta);
}

int accmem_columns_confirm(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 address,
			   bool stored)
{
	if (c->done)
		columns_forget_done(c, cta);
	if (cta->call == ACCMEM_CALL_DONE)
		return accmem_columns_collect(cta);
	if (!stored)
		return columns_confirm_lost(c, cta);
	if (cta->call != ACCMEM_CALL_RESERVED || cta->address != address)
		return -EINPROGRESS;
	cta->call = ACCMEM_CALL_STORED;
	if (!columns_commit(c, cta))
		return -EINPROGRESS;
	if (cta->group == 2)
		columns_finish(c, cta->peer, 0);
	return 0;
}

int accmem_columns_relinquish(struct accmem_columns *c,
			      struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta *peer = cta->group == 2 ? cta->peer : NULL;
	bool both = peer && columns_in_alloc(peer);

	if (c->ended)
		return -ECONNRESET;
	if (columns_in_alloc(cta))
		columns_end_wait(c, cta, -ECANCELED, -EPROTO);
	else if (both)
		columns_finish(c, peer, -EPROTO);
	cta->relinquished = true;
	columns_drop_permit(c, cta);
	columns_settle(c);
	return both ? -EPROTO : 0;
}

bool accmem_columns_cancel(struct accmem_columns *c,
			   struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta *peer;

	if (!accmem_columns_waiting(cta))
		return false;
	peer = columns_withdraw(c, cta);
	if (peer) {
		/* told of a reservation that it has no more */
		columns_forget_done(c, peer);
		peer->call = ACCMEM_CALL_JOIN_ALLOC;
	}
	columns_forget_done(c, cta);
	cta->call = ACCMEM_CALL_NONE;
	columns_settle(c);
	return true;
}

void accmem_columns_reset(struct accmem_columns *c)
{
	struct accmem_columns_cta *cta;
	u32 i;

	list_for_each_entry(cta, &c->ctas, link) {
		if (accmem_columns_waiting(cta))
			columns_end_wait(c, cta, -ECONNRESET, -ECONNRESET);
	}
	list_for_each_entry(cta, &c->ctas, link) {
		columns_hold(c, cta, 0);
		cta->starts = 0;
	}
	for (i = 0; i < c->nr_sms; i++) {
		c->sms[i].used = c->absent;
		c->sms[i].permit = NULL;
	}
	c->ended = true;
}

/* --- CTAs come and go ----------------------------------------------------- */

static bool columns_same_cluster(const struct accmem_columns_cta *a,
				 const struct accmem_columns_cta *b)
{
	return a->launch == b->launch && a->cluster == b->cluster;
}

/* 0, or why @cta cannot be in a launch with @other; finds the peer */
static int columns_compare(struct accmem_columns_cta *cta,
			   struct accmem_columns_cta *other)
{
	if (other->launch != cta->launch)
		return 0;
	if (other->group != cta->group)
		return -EPROTOTYPE;
	if (cta->group == 1 || !columns_same_cluster(cta, other))
		return 0;
	if (other->rank == cta->rank)
		return -EEXIST;
	if ((other->rank ^ 1) != cta->rank)
		return 0;
	if (other->peer_gone)
		return -EEXIST;
	if (other->sm == cta->sm)
		return -EADDRINUSE;
	cta->peer = other;
	return 0;
}

int accmem_columns_launch(struct accmem_columns *c,
			  struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta *other;
	int err;

	if (c->ended)
		return -ECONNRESET;
	if (cta->group != 1 && cta->group != 2)
		return -EINVAL;
	if (cta->sm >= c->nr_sms)
		return -ENXIO;
	*cta = (struct accmem_columns_cta){
		.launch = cta->launch,
		.cluster = cta->cluster,
		.rank = cta->rank,
		.sm = cta->sm,
		.group = cta->group,
	};
	list_for_each_entry(other, &c->ctas, link) {
		err = columns_compare(cta, other);
		if (err)
			return err;
	}
	INIT_LIST_HEAD(&cta->queue);
	list_add_tail(&cta->link, &c->ctas);
	c->nr_ctas++;
	if (cta->peer)
		cta->peer->peer = cta;
	return 0;
}

u64 accmem_columns_exit(struct accmem_columns *c,
			struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta *peer = cta->peer;
	u64 held = cta->held;

	/* the caller broke its word: let nothing dangle */
	if (WARN_ON_ONCE(accmem_columns_waiting(cta)))
		columns_end_wait(c, cta, -ECANCELED, -EPIPE);
	if (cta->call == ACCMEM_CALL_DONE)
		columns_forget_done(c, cta);
	if (peer) {
		if (accmem_columns_waiting(peer))
			columns_finish(c, peer, -EPIPE);
		peer->peer = NULL;
		peer->peer_gone = true;
	}
	accmem_sm_of(c, cta)->used &= ~held;
	columns_hold(c, cta, 0);
	cta->starts = 0;
	columns_drop_permit(c, cta);
	list_del_init(&cta->link);
	c->nr_ctas--;
	columns_settle(c);
	return held;
}

bool accmem_columns_would_grant(struct accmem_columns *c,
				const struct accmem_columns_cta *cta,
				u32 columns)
{
	u64 used;

	if (columns_check_alloc(c, cta, columns))
		return false;
	/* a pair's alloc waits for the peer's, whatever is free */
	if (cta->group == 2 && (!cta->peer || cta->peer->call !=
						      ACCMEM_CALL_JOIN_ALLOC))
		return false;
	used = columns_busy(c, cta);
	if (columns_contends(c, cta) && columns_spent_for_newcomer(c, cta))
		return false;
	if (!columns_has_permit(c, cta) && !columns_permit_free(c, cta))
		return false;
	return accmem_columns_find(used, columns / ACCMEM_COLUMNS_UNIT) >= 0;
}

u32 accmem_columns_free(const struct accmem_columns *c, u32 sm)
{
	return (64 - hweight64(c->sms[sm].used)) * ACCMEM_COLUMNS_UNIT;
}
