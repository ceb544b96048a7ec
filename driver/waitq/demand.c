// SPDX-License-Identifier: GPL-2.0
/*
 * Prospects: could a waiter be served, for all that can be told without trying?
 *
 * It may be served from what its context has; else its limits must allow it, and one of
 * its carveouts must have as much, besides what others were promised, in pieces that
 * are large enough. It is to try as well where that would tell it something new: that a
 * limit holds it up, or none does any more. What is looked up of a carveout is kept for
 * the others that wait (struct accmem_scan).
 *
 * Locks: accmem_waiters_lock is held by the callers; the carveout's.
 */
#include <linux/kernel.h>

#include "core/account.h"
#include "core/carveout.h"
#include "internal.h"
#include "types/context_types.h"
#include "waitq/demand.h"

/**
 * accmem_demand_free_bytes() - what is free of a carveout, or will be at once
 * @cv: the carveout
 *
 * Return: bytes.
 */
u64 accmem_demand_free_bytes(struct accmem_carveout *cv)
{
	u64 free;

	accmem_carveout_lock(cv);
	free = accmem_buddy_free_bytes(&cv->buddy) + cv->clearing;
	accmem_carveout_unlock(cv);
	return free;
}

/*
 * The longest run that an account could have, or a bound of it. Where folios have no
 * owners it is the same for all.
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

/* is the very piece of the carveout free that a request names? */
static bool demand_has_piece(struct accmem_carveout *cv, u64 start, u64 size)
{
	struct accmem_run run;
	bool free;

	accmem_carveout_lock(cv);
	free = accmem_buddy_free_around(&cv->buddy, start, &run);
	accmem_carveout_unlock(cv);
	return free && run.start + run.size - start >= size;
}

/* has its context slab pages that it may be served from? */
static bool demand_has_slab(const struct accmem_waiter *w)
{
	struct accmem_carveout *cv;
	u64 pages;
	s64 room;

	accmem_for_each_carveout(cv, w->ws->carveouts)
	{
		const struct accmem_ctx_carveout *h =
			accmem_ctx_carveout_of(w->ctx, cv);

		if (!(w->demand.carveouts & BIT(cv->index)))
			continue;
		/* without the context's lock: a look follows each change */
		pages = data_race(h->nr_waiting); /* see above */
		room = data_race(h->slab_room); /* likewise */
		if (pages || room > 0)
			return true;
	}
	return false;
}

/* may it be served from what its context has? */
static bool demand_has_own(const struct accmem_waiter *w)
{
	/* without the context's lock: a look follows each change */
	u64 pending = data_race(w->ctx->nr_pending); /* see above */

	if (w->req.flags & ACCMEM_ALLOC_STREAM && pending)
		return true;
	return w->demand.small && demand_has_slab(w);
}

/* could a carveout have @need bytes for it? */
static bool demand_fits_in(const struct accmem_waiter *w,
			   struct accmem_scan *scan, struct accmem_carveout *cv,
			   u64 promised)
{
	bool identity = cv->translation == ACCMEM_TRANSLATION_IDENTITY;
	u64 free = demand_free(scan, cv), need = w->q.need;

	/* what was promised may have been elsewhere: then it is asked again */
	if (free < promised || free - promised < need)
		return false;
	if (identity && w->req.flags & ACCMEM_ALLOC_FIXED)
		return demand_has_piece(cv, w->req.address - cv->address_base,
					need);
	return !(identity || w->req.flags & ACCMEM_ALLOC_CONTIGUOUS) ||
	       demand_longest(scan, cv, w->account) >= need;
}

/* may it lie in what is charged already, as things are? */
static bool demand_is_charged(const struct accmem_demand *p,
			      const struct accmem_account *account)
{
	return p->small || (p->owned && atomic64_read(&account->bytes));
}

/**
 * accmem_demand_exceeds_limits() - is a limit below what a request needs?
 * @p: what it needs
 * @account: the account
 * @exempt: the user's limits do not count
 *
 * Return: whether no charge that sinks would be enough.
 */
bool accmem_demand_exceeds_limits(const struct accmem_demand *p,
				  const struct accmem_account *account,
				  bool exempt)
{
	u64 charge = demand_is_charged(p, account) ? p->footprint : p->charge;

	return accmem_charge_exceeds_limit(p->other_side + charge, exempt);
}

/* what it would be charged at least, as things are */
static u64 demand_least_charge(const struct accmem_waiter *w)
{
	const struct accmem_demand *p = &w->demand;

	return p->other_side +
	       (demand_is_charged(p, w->account) ? 0 : p->charge);
}

/*
 * Is what holds it up, a limit or a lack of memory, not what it was told by its last
 * try? Others count on that: it finds out by another one.
 */
static bool demand_has_turned(const struct accmem_waiter *w, bool limited)
{
	return limited != w->q.limited ||
	       (limited && accmem_demand_exceeds_limits(&w->demand, w->account,
							w->exempt));
}

/* of what a carveout has: what is reserved for another is in that one's alone */
static u64 demand_promised_in(const struct accmem_waiter *w,
			      const struct accmem_carveout *cv, u64 promised)
{
	const struct accmem_queue *queue = &w->ws->queue;

	if (promised == ACCMEM_QUEUE_RESERVED &&
	    !(accmem_waiter_of(queue->reserved)->demand.carveouts &
	      BIT(cv->index)))
		return queue->promised;
	return promised;
}

/**
 * accmem_demand_can_be_met() - could a waiter be served?
 * @q: the waiter
 * @promised: bytes that others are to have first
 * @arg: struct accmem_scan
 *
 * For accmem_queue_next().
 *
 * Return: false where a try would be in vain, and tell nothing new.
 */
bool accmem_demand_can_be_met(const struct accmem_queue_waiter *q, u64 promised,
			      void *arg)
{
	const struct accmem_waiter *w = accmem_waiter_of(q);
	struct accmem_carveout *cv;
	bool limited;

	if (demand_has_own(w))
		return true;
	limited = !accmem_charge_fits(w->account, demand_least_charge(w), 1,
				      w->exempt);
	if (demand_has_turned(w, limited))
		return true;
	if (limited)
		return false;
	accmem_for_each_carveout(cv, w->ws->carveouts)
	{
		if (w->demand.carveouts & BIT(cv->index) &&
		    demand_fits_in(w, arg, cv,
				   demand_promised_in(w, cv, promised)))
			return true;
	}
	return false;
}
