// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_columns: changes of the arbiter's state.
 *
 * Each function makes one change and updates everything that depends on it: an SM's
 * units and permit, the queue with its counters, and the call of each CTA. The callers
 * (deadlock.c, alloc.c, columns.c) decide which change is made. In strict mode, grants
 * are checked for hazards in strict.c.
 *
 * Locking: none; the caller serialises.
 */
#include <linux/kernel.h>
#include <linux/log2.h>

#include "internal.h"

/* --- room ----------------------------------------------------------------- */

/*
 * Find @units free units (a power of two) in the complement of @busy, at a multiple of
 * @units. The search is a best fit: it returns the lowest of the smallest free blocks
 * that fit, so that large blocks stay whole. Return -1 if there is none.
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

	if (!fit) /* usual case when many CTAs share an SM */
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

/* Return the units used on the SM of the request, or on either SM of a pair. */
static u64 state_busy(struct accmem_columns *c,
		      const struct accmem_columns_cta *w)
{
	u64 used = accmem_sm_of(c, w)->used;

	return w->group == 2 ? used | accmem_sm_of(c, w->peer)->used : used;
}

/*
 * Find @columns on the SM of @w, or on both SMs of a pair. Return -1 if there are
 * none.
 */
int accmem_columns_fits(struct accmem_columns *c,
			const struct accmem_columns_cta *w, u32 columns)
{
	return accmem_columns_find(state_busy(c, w),
				   columns / ACCMEM_COLUMNS_UNIT);
}

/* --- the end of a call ---------------------------------------------------- */

static inline void state_complete(struct accmem_columns *c,
				  struct accmem_columns_cta *cta)
{
	cta->next_done = NULL;
	*c->done_tail = cta;
	c->done_tail = &cta->next_done;
}

void accmem_columns_finish(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, int result)
{
	cta->call = ACCMEM_CALL_DONE;
	cta->result = result;
	state_complete(c, cta);
}

/* Remove @cta from the completed CTAs: the caller returns the result, or drops it. */
void accmem_columns_forget_done(struct accmem_columns *c,
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

/*
 * End the call of @cta. A call with a reservation is not put on the list of completed
 * CTAs: its accmem_columns_confirm() returns the result.
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

/*
 * Fail the calls of both CTAs of a pair. The peer waits in a call that does not
 * match.
 */
int accmem_columns_fail_both(struct accmem_columns *c,
			     struct accmem_columns_cta *peer, int err)
{
	accmem_columns_finish(c, peer, err);
	return err;
}

/* --- permits (exclusive) -------------------------------------------------- */

void accmem_columns_drop_permit(struct accmem_columns *c,
				struct accmem_columns_cta *cta)
{
	struct accmem_columns_sm *sm = accmem_sm_of(c, cta);

	if (sm->permit == cta)
		sm->permit = NULL;
	cta->obtained_permit = false;
}

static void state_grant_permit(struct accmem_columns *c,
			       struct accmem_columns_cta *cta)
{
	accmem_sm_of(c, cta)->permit = cta;
	cta->obtained_permit = true;
}

/* Release the permit that a failed alloc has obtained. */
static void state_release_permit(struct accmem_columns *c,
				 struct accmem_columns_cta *cta)
{
	if (cta->obtained_permit)
		accmem_columns_drop_permit(c, cta);
}

/* --- the queue ------------------------------------------------------------ */

static bool state_uses_sm(const struct accmem_columns_cta *w, u32 sm)
{
	return w->sm == sm || (w->group == 2 && w->peer->sm == sm);
}

/* Return true if two requests want columns of the same SM. */
static bool state_share_sm(const struct accmem_columns_cta *a,
			   const struct accmem_columns_cta *b)
{
	return state_uses_sm(a, b->sm) ||
	       (b->group == 2 && state_uses_sm(a, b->peer->sm));
}

/* Reserve the SMs of @w until the end of this pass: no younger request gets columns. */
void accmem_columns_reserve_sm(struct accmem_columns *c,
			       const struct accmem_columns_cta *w)
{
	accmem_sm_of(c, w)->stamp = c->pass;
	if (w->group == 2)
		accmem_sm_of(c, w->peer)->stamp = c->pass;
}

static void state_set_at_bound(struct accmem_columns *c,
			       struct accmem_columns_cta *w, bool at_bound)
{
	u32 one = at_bound ? 1 : -1;

	if (w->at_bound == at_bound)
		return;
	w->at_bound = at_bound;
	accmem_sm_of(c, w)->nr_at_bound += one;
	if (w->group == 2)
		accmem_sm_of(c, w->peer)->nr_at_bound += one;
	c->nr_at_bound += one;
	if (at_bound)
		accmem_columns_reserve_sm(c, w);
}

void accmem_columns_enqueue(struct accmem_columns *c,
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
		state_set_at_bound(c, w, accmem_columns_contends(c, w));
}

static void state_dequeue(struct accmem_columns *c,
			  struct accmem_columns_cta *w)
{
	if (w->at_bound)
		state_set_at_bound(c, w, false);
	c->nr_holding -= w->counted;
	c->nr_queued--;
	list_del_init(&w->queue);
	w->leads = false;
}

static struct accmem_columns_cta *
state_pair_leader(struct accmem_columns_cta *cta)
{
	return cta->leads ? cta : cta->peer;
}

/* Fail a queued request with @err, for both CTAs of a pair. */
void accmem_columns_fail(struct accmem_columns *c, struct accmem_columns_cta *w,
			 int err)
{
	state_dequeue(c, w);
	state_release_permit(c, w);
	accmem_columns_finish(c, w, err);
	if (w->group == 2) {
		state_release_permit(c, w->peer);
		accmem_columns_finish(c, w->peer, err);
	}
}

/* Count a bypass for each older request that queues for an SM of @w. */
static u32 state_count_bypasses(struct accmem_columns *c,
				struct accmem_columns_cta *w)
{
	struct accmem_columns_cta *older;
	u32 passed = 0;

	list_for_each_entry(older, &c->queue, queue) {
		if (older == w)
			break;
		if (!state_share_sm(older, w) ||
		    !accmem_columns_contends(c, older))
			continue;
		passed++;
		/* A forced grant does not raise the count above the bound. */
		if (older->at_bound)
			continue;
		if (++older->bypassed >= c->bypass_bound)
			state_set_at_bound(c, older, true);
	}
	c->bypasses += passed;
	return passed;
}

/*
 * Exclusive discipline: obtain the permits of @w if they are free. Return true if @w
 * has its permits.
 */
bool accmem_columns_obtain_permit(struct accmem_columns *c,
				  struct accmem_columns_cta *w)
{
	if (accmem_columns_has_permit(c, w))
		return true;
	if (!accmem_columns_permit_free(c, w))
		return false;
	state_set_at_bound(c, w, false);
	w->passed = state_count_bypasses(c, w);
	state_grant_permit(c, w);
	if (w->group == 2)
		state_grant_permit(c, w->peer);
	return true;
}

/* --- columns -------------------------------------------------------------- */

/* Change the units that a CTA holds. No other function writes cta->held. */
void accmem_columns_set_held(struct accmem_columns *c,
			     struct accmem_columns_cta *cta, u64 held)
{
	u64 before = cta->held;

	cta->held = held;
	if (accmem_sm_of(c, cta)->watched && held != before)
		c->held_changed(cta, held ^ before);
}

/* Turn a reservation into an allocation. */
static inline void state_commit_one(struct accmem_columns *c,
				    struct accmem_columns_cta *cta)
{
	accmem_columns_set_held(c, cta, cta->held | cta->reserved);
	cta->starts |= 1ull << cta->address / ACCMEM_COLUMNS_UNIT;
	cta->reserved = 0;
	if (c->strict)
		accmem_strict_grant(c, cta);
	cta->last = cta->columns;
	cta->obtained_permit = false;
	cta->call = ACCMEM_CALL_NONE;
}

/* Turn a reservation into an allocation if both callers have stored the address. */
bool accmem_columns_commit(struct accmem_columns *c,
			   struct accmem_columns_cta *w)
{
	struct accmem_columns_cta *peer = w->group == 2 ? w->peer : NULL;

	if (w->call != ACCMEM_CALL_STORED ||
	    (peer && peer->call != ACCMEM_CALL_STORED))
		return false;
	state_commit_one(c, w);
	if (peer)
		state_commit_one(c, peer);
	return true;
}

static void state_reserve(struct accmem_columns *c,
			  struct accmem_columns_cta *cta, u32 columns, u32 unit)
{
	u64 mask = accmem_columns_mask(columns) << unit;

	accmem_sm_of(c, cta)->used |= mask;
	cta->reserved = mask;
	cta->address = unit * ACCMEM_COLUMNS_UNIT;
	cta->call = cta->stores ? ACCMEM_CALL_RESERVED : ACCMEM_CALL_STORED;
}

static void state_unreserve_one(struct accmem_columns *c,
				struct accmem_columns_cta *cta)
{
	accmem_sm_of(c, cta)->used &= ~cta->reserved;
	cta->reserved = 0;
	state_release_permit(c, cta);
}

/* Release the columns of a reservation and the permits that the call has obtained. */
static void state_unreserve(struct accmem_columns *c,
			    struct accmem_columns_cta *w)
{
	state_unreserve_one(c, w);
	if (w->group == 2)
		state_unreserve_one(c, w->peer);
}

/*
 * Remove a waiting call from the queue and release its permits and columns, also those
 * of a peer that has joined the call. Return that peer, or NULL.
 */
struct accmem_columns_cta *
accmem_columns_withdraw(struct accmem_columns *c,
			struct accmem_columns_cta *cta)
{
	if (cta->call == ACCMEM_CALL_QUEUED)
		state_dequeue(c, state_pair_leader(cta));
	else if (!accmem_columns_is_reserved(cta))
		return NULL;
	state_unreserve(c, cta);
	return cta->group == 2 ? cta->peer : NULL;
}

/* Complete a CTA that has waited for columns, or let it confirm its reservation. */
static inline void state_complete_granted(struct accmem_columns *c,
					  struct accmem_columns_cta *cta)
{
	if (cta->call == ACCMEM_CALL_NONE)
		accmem_columns_finish(c, cta, 0);
	else if (cta->call == ACCMEM_CALL_RESERVED)
		state_complete(c, cta);
}

/*
 * Grant a request the columns from @unit on. A request that is not in the queue is the
 * call in progress: its caller gets the result directly.
 */
void accmem_columns_grant(struct accmem_columns *c,
			  struct accmem_columns_cta *w, u32 unit)
{
	bool waited = w->leads;

	if (!c->exclusive && !list_empty(&c->queue) &&
	    !list_is_first(&w->queue, &c->queue))
		w->passed += state_count_bypasses(c, w);
	if (waited)
		state_dequeue(c, w);
	state_reserve(c, w, w->columns, unit);
	if (w->group == 2)
		state_reserve(c, w->peer, w->columns, unit);
	accmem_columns_commit(c, w);
	if (waited)
		state_complete_granted(c, w);
	if (w->group == 2)
		state_complete_granted(c, w->peer);
}
