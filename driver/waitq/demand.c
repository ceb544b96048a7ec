// SPDX-License-Identifier: GPL-2.0
/*
 * Demand: feasibility checks for waiters.
 *
 * Before a waiter is woken, the functions here estimate from counters whether its
 * request could succeed. A waiter passes the check in one of three cases:
 *
 * - its context has slab pages or pending frees that may serve the request;
 * - the limits permit the charge, and one of its carveouts has enough memory in runs
 *   that are long enough, in addition to the bytes promised to other waiters;
 * - the reason for waiting, a limit or a shortage, has changed since its last attempt.
 *
 * A false positive costs one attempt, after which the waiter sleeps again. The values
 * read from a carveout are kept in struct accmem_scan for the other waiters.
 *
 * Locks: the callers hold accmem_waiters.lock; the carveout's lock is taken below it.
 */
#include <linux/kernel.h>

#include "core/account.h"
#include "core/carveout.h"
#include "internal.h"
#include "types/context_types.h"
#include "waitq/demand.h"

/**
 * accmem_demand_free_bytes() - count the free bytes of a carveout
 * @cv: carveout
 *
 * Bytes that the cleaner has are included, since they will be free within moments.
 *
 * Context: Not in an interrupt. Takes and releases cv->lock. Does not sleep.
 * Return: bytes.
 */
u64 accmem_demand_free_bytes(struct accmem_carveout *cv)
{
	u64 free;

	accmem_carveout_lock(cv);
	free = accmem_buddy_free_bytes(&cv->buddy) + cv->cleaner.bytes_held;
	accmem_carveout_unlock(cv);
	return free;
}

/*
 * Return the length of the longest run that an account can allocate, or an upper bound.
 * In a carveout whose folios have no owner the value is the same for all accounts.
 */
static u64 demand_longest(struct accmem_scan *scan, struct accmem_carveout *cv,
			  const struct accmem_account *account)
{
	const struct accmem_account *known = scan->of[cv->index].account;
	u64 cursor = 0, longest = 0;

	if (known == account || (known && !cv->owners))
		return scan->of[cv->index].longest;
	accmem_carveout_lock(cv);
	if (accmem_buddy_largest_run_of(&cv->buddy, account->id, &cursor,
					&longest))
		longest = U64_MAX;
	accmem_carveout_unlock(cv);
	scan->of[cv->index].account = account;
	scan->of[cv->index].longest = longest;
	return longest;
}

static u64 demand_free(struct accmem_scan *scan, struct accmem_carveout *cv)
{
	u32 bit = BIT(cv->index);

	if (!(scan->known & bit)) {
		scan->known |= bit;
		scan->of[cv->index].free = accmem_demand_free_bytes(cv);
		scan->of[cv->index].account = NULL;
	}
	return scan->of[cv->index].free;
}

/* Return true if the range of the carveout that a FIXED request names is free. */
static bool demand_has_range(struct accmem_carveout *cv, u64 start, u64 size)
{
	struct accmem_run run;
	bool free;

	accmem_carveout_lock(cv);
	free = accmem_buddy_free_around(&cv->buddy, start, &run);
	accmem_carveout_unlock(cv);
	return free && run.start + run.size - start >= size;
}

/* Return true if the context has a slab page that may serve the request. */
static bool demand_has_slab(const struct accmem_waiter *w)
{
	struct accmem_carveout *cv;
	u64 pages;
	s64 room;

	for (cv = w->ws->carveouts->cvs; cv < w->ws->carveouts->end; cv++) {
		const struct accmem_ctx_carveout *h =
			accmem_ctx_carveout_of(w->ctx, cv);

		if (!(w->demand.carveouts & BIT(cv->index)))
			continue;
		/*
		 * Racy reads without the context's lock: the call that frees slots
		 * starts another scan, so a stale value only delays the wake-up.
		 */
		pages = data_race(h->nr_waiting); /* may be stale */
		room = data_race(h->slab_room); /* may be stale */
		if (pages || room > 0)
			return true;
	}
	return false;
}

/* Return true if memory that the context already has may serve the request. */
static bool demand_has_own(const struct accmem_waiter *w)
{
	/*
	 * Racy read without the context's lock: a FREE that becomes pending starts
	 * another scan, so a stale value only delays the wake-up.
	 */
	u64 pending =
		data_race(w->ctx->nr_pending); /* stale: delays the wake-up */

	if (w->req.flags & ACCMEM_ALLOC_STREAM && pending)
		return true;
	return w->demand.small && demand_has_slab(w);
}

/* Return true if a carveout may have enough memory besides the promised bytes. */
static bool demand_fits_in(const struct accmem_waiter *w,
			   struct accmem_scan *scan, struct accmem_carveout *cv,
			   u64 promised)
{
	bool identity = cv->translation == ACCMEM_TRANSLATION_IDENTITY;
	u64 free = demand_free(scan, cv), need = w->q.need;

	/*
	 * The promised bytes may be in another carveout. Then this check is too
	 * strict, and a scan after the promise has ended repeats it.
	 */
	if (free < promised || free - promised < need)
		return false;
	if (identity && w->req.flags & ACCMEM_ALLOC_FIXED)
		return demand_has_range(cv, w->req.address - cv->address_base,
					need);
	return !(identity || w->req.flags & ACCMEM_ALLOC_CONTIGUOUS) ||
	       demand_longest(scan, cv, w->account) >= need;
}

/* Return true if the request may fit into memory that is already charged. */
static bool demand_is_charged(const struct accmem_demand *p,
			      const struct accmem_account *account)
{
	return p->small || (p->owned && atomic64_read(&account->bytes));
}

/**
 * accmem_demand_exceeds_limits() - check whether a request can never be charged
 * @p: demand of the request
 * @account: account
 * @exempt: the limits of the user do not apply
 *
 * Context: Any context. Does not sleep.
 * Return: true if a limit is lower than the request alone needs, so that no uncharge
 * would help.
 */
bool accmem_demand_exceeds_limits(const struct accmem_demand *p,
				  const struct accmem_account *account,
				  bool exempt)
{
	u64 charge = demand_is_charged(p, account) ? p->footprint : p->charge;

	return accmem_charge_exceeds_limit(p->other_side + charge, exempt);
}

/* Return the smallest number of bytes that the request may be charged now. */
static u64 demand_least_charge(const struct accmem_waiter *w)
{
	const struct accmem_demand *p = &w->demand;

	return p->other_side +
	       (demand_is_charged(p, w->account) ? 0 : p->charge);
}

/*
 * Return true if the reason for waiting has changed since the last attempt, from a
 * limit to a shortage or back, or if a limit has become lower than the request needs.
 * The waiter then has to try, since only an attempt records the new reason, which
 * decides whether the waiter counts as bypassed.
 */
static bool demand_has_turned(const struct accmem_waiter *w, bool limited)
{
	return limited != w->q.limited ||
	       (limited && accmem_demand_exceeds_limits(&w->demand, w->account,
							w->exempt));
}

/*
 * Return the promised bytes that apply to a carveout. A reservation for another waiter
 * only applies to the carveouts which that waiter can use.
 */
static u64 demand_promised_in(const struct accmem_waiter *w,
			      const struct accmem_carveout *cv, u64 promised)
{
	const struct accmem_waiters *ws = w->ws;

	return !ws->queue.reserved || ws->reserved_in & BIT(cv->index) ?
		       promised :
		       min(promised, ws->queue.promised);
}

/**
 * accmem_demand_can_be_met() - check whether an attempt of a waiter may succeed
 * @q: waiter
 * @promised: bytes that are promised to other waiters
 * @arg: struct accmem_scan
 *
 * A callback of accmem_queue_next().
 *
 * Context: accmem_waiters.lock is held. Takes and releases the locks of carveouts.
 * Return: false if an attempt would fail for the same reason as the last attempt.
 */
bool accmem_demand_can_be_met(const struct accmem_queue_waiter *q, u64 promised,
			      void *arg)
{
	const struct accmem_waiter *w = accmem_waiter_of(q);
	struct accmem_carveout *cv;
	bool limited;

	lockdep_assert_held(&w->ws->lock);
	if (demand_has_own(w))
		return true;
	limited = !accmem_charge_fits(w->account, demand_least_charge(w), 1,
				      w->exempt);
	if (demand_has_turned(w, limited))
		return true;
	if (limited)
		return false;
	for (cv = w->ws->carveouts->cvs; cv < w->ws->carveouts->end; cv++) {
		if (w->demand.carveouts & BIT(cv->index) &&
		    demand_fits_in(w, arg, cv,
				   demand_promised_in(w, cv, promised)))
			return true;
	}
	return false;
}
