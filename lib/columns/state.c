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

/* --- SMs that have changed ------------------------------------------------ */

/* An alloc on the SM may have become possible: the caller may have to know. */
void accmem_columns_note_change(struct accmem_columns *c,
				struct accmem_columns_sm *sm)
{
	if (!sm->polled || sm->changed)
		return;
	sm->changed = true;
	sm->next_changed = c->changed;
	c->changed = sm;
}

/*
 * The call in progress has changed the SM of @cta: look for deadlocks there, and if it
 * is @dirty, for queued requests that can be granted. A pass that walks the queue of
 * the SM has only requests before it that the change cannot help.
 */
void accmem_columns_touch(struct accmem_columns *c,
			  const struct accmem_columns_cta *cta, bool dirty)
{
	struct accmem_columns_sm *sm = accmem_sm_of(c, cta);

	if (dirty)
		accmem_columns_note_change(c, sm);
	if (list_empty(&sm->queue))
		return;
	if (!sm->touched) {
		sm->touched = true;
		sm->next_touched = c->touched;
		c->touched = sm;
	}
	if (dirty && !sm->dirty && !sm->walked) {
		sm->dirty = true;
		sm->next_dirty = c->dirty;
		c->dirty = sm;
	}
}

/* The call in progress has done what its changes have made possible. */
void accmem_columns_forget_touched(struct accmem_columns *c)
{
	struct accmem_columns_sm *sm;

	for (; (sm = c->touched); c->touched = sm->next_touched) {
		sm->touched = false;
		sm->dirty = false;
	}
	c->dirty = NULL;
}

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
	list_add_tail(&cta->done, &c->done);
}

void accmem_columns_finish(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, int result)
{
	cta->call = ACCMEM_CALL_DONE;
	cta->result = result;
	state_complete(c, cta);
}

/* Remove @cta from the completed CTAs: the caller returns the result, or drops it. */
void accmem_columns_forget_done(struct accmem_columns_cta *cta)
{
	list_del_init(&cta->done);
}

/* End the call of @cta. Its reservation, if it has one, may not be collected yet. */
void accmem_columns_end(struct accmem_columns *c,
			struct accmem_columns_cta *cta, int result)
{
	if (cta->call == ACCMEM_CALL_RESERVED)
		accmem_columns_forget_done(cta);
	accmem_columns_finish(c, cta, result);
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

	if (sm->permit == cta) {
		sm->permit = NULL;
		accmem_columns_touch(c, cta, true);
	}
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

/*
 * The request of @cta reaches its bound, or does not block others any more: update the
 * first such request of the SM.
 */
static void state_update_first(struct accmem_columns *c,
			       struct accmem_columns_cta *cta, bool at_bound)
{
	struct accmem_columns_sm *sm = accmem_sm_of(c, cta);
	struct list_head *at = &cta->queue;

	if (at_bound &&
	    (!sm->first_at_bound || cta->age < sm->first_at_bound->age))
		sm->first_at_bound = cta;
	accmem_columns_touch(c, cta, !at_bound);
	if (at_bound || sm->first_at_bound != cta)
		return;
	sm->first_at_bound = NULL;
	while ((at = at->next) != &sm->queue && !sm->first_at_bound) {
		c->checks++;
		cta = list_entry(at, struct accmem_columns_cta, queue);
		if (accmem_columns_request_of(cta)->at_bound)
			sm->first_at_bound = cta;
	}
}

static void state_set_at_bound(struct accmem_columns *c,
			       struct accmem_columns_cta *w, bool at_bound)
{
	if (w->at_bound == at_bound)
		return;
	w->at_bound = at_bound;
	state_update_first(c, w, at_bound);
	if (w->group == 2)
		state_update_first(c, w->peer, at_bound);
}

static void state_enqueue_one(struct accmem_columns *c,
			      struct accmem_columns_cta *cta, bool holds)
{
	struct accmem_columns_sm *sm = accmem_sm_of(c, cta);

	cta->call = ACCMEM_CALL_QUEUED;
	cta->bypassed = 0;
	list_add_tail(&cta->queue, &sm->queue);
	sm->nr_pairs += cta->group == 2;
	sm->nr_holding += holds;
	/* In the exclusive discipline the request may obtain a permit. */
	accmem_columns_touch(c, cta, c->exclusive);
}

void accmem_columns_enqueue(struct accmem_columns *c,
			    struct accmem_columns_cta *w)
{
	w->leads = true;
	w->counted = accmem_columns_holds(w);
	c->nr_queued++;
	state_enqueue_one(c, w, w->counted);
	if (w->group == 2) {
		w->peer->leads = false;
		w->peer->age = w->age;
		state_enqueue_one(c, w->peer, w->counted);
	}
	if (!c->bypass_bound)
		state_set_at_bound(c, w, accmem_columns_contends(c, w));
}

static void state_dequeue_one(struct accmem_columns *c,
			      struct accmem_columns_cta *cta, bool held)
{
	struct accmem_columns_sm *sm = accmem_sm_of(c, cta);

	/* A deadlock may be left on each of the SMs that a pair has connected. */
	accmem_columns_touch(c, cta, false);
	if (sm->cursor == &cta->queue)
		sm->cursor = cta->queue.next;
	list_del_init(&cta->queue);
	sm->nr_pairs -= cta->group == 2;
	sm->nr_holding -= held;
}

static void state_dequeue(struct accmem_columns *c,
			  struct accmem_columns_cta *w)
{
	state_set_at_bound(c, w, false);
	state_dequeue_one(c, w, w->counted);
	if (w->group == 2)
		state_dequeue_one(c, w->peer, w->counted);
	c->nr_queued--;
	w->leads = false;
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

/*
 * Count a bypass for each request of the SM of @cta that is older than @w, except for
 * those that queue for the SM of @counted, too.
 */
static u32 state_count_bypasses_on(struct accmem_columns *c,
				   const struct accmem_columns_cta *w,
				   const struct accmem_columns_cta *cta,
				   const struct accmem_columns_cta *counted)
{
	struct accmem_columns_cta *at, *older;
	u32 passed = 0;

	list_for_each_entry(at, &accmem_sm_of(c, cta)->queue, queue) {
		c->checks++;
		if (at->age >= w->age)
			break;
		older = accmem_columns_request_of(at);
		if (counted && at->group == 2 && at->peer->sm == counted->sm)
			continue;
		if (!accmem_columns_contends(c, older))
			continue;
		passed++;
		/* A forced grant does not raise the count above the bound. */
		if (older->at_bound)
			continue;
		if (++older->bypassed >= c->bypass_bound)
			state_set_at_bound(c, older, true);
	}
	return passed;
}

/* Count a bypass for each older request that queues for an SM of @w. */
static u32 state_count_bypasses(struct accmem_columns *c,
				struct accmem_columns_cta *w)
{
	u32 passed = state_count_bypasses_on(c, w, w, NULL);

	if (w->group == 2)
		passed += state_count_bypasses_on(c, w, w->peer, w);
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

/* Free units of a CTA's SM, a bit each. */
void accmem_columns_free_units(struct accmem_columns *c,
			       const struct accmem_columns_cta *cta, u64 units)
{
	if (!units)
		return;
	accmem_sm_of(c, cta)->used &= ~units;
	accmem_columns_touch(c, cta, true);
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
	accmem_columns_free_units(c, cta, cta->reserved);
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
		state_dequeue(c, accmem_columns_request_of(cta));
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

	if (!c->exclusive)
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
