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
 * that fits now is granted against the bound, and one that does not will fit
 * when the columns of others come back. Without the bounds, what is left waits
 * for columns that nobody will give back: the newest that holds any gets
 * -EDEADLK.
 *
 * Only what holds columns can be waited for, so there is nothing to do while no
 * queued request does.
 */
#include <linux/errno.h>
#include <linux/kernel.h>

#include "accmem_columns_internal.h"

static void assume_held(struct accmem_columns *c,
			const struct accmem_columns_cta *w)
{
	accmem_sm_of(c, w)->assumed |= w->held;
	if (w->group == 2)
		accmem_sm_of(c, w->peer)->assumed |= w->peer->held;
}

static void assume_free(struct accmem_columns *c,
			const struct accmem_columns_cta *w)
{
	accmem_sm_of(c, w)->assumed &= ~w->held;
	if (w->group == 2)
		accmem_sm_of(c, w->peer)->assumed &= ~w->peer->held;
}

/* only those who wait hold anything */
static void assume(struct accmem_columns *c)
{
	struct accmem_columns_cta *w;
	u32 i;

	for (i = 0; i < c->nr_sms; i++)
		c->sms[i].assumed = c->absent;
	list_for_each_entry(w, &c->queue, queue) {
		w->left = true;
		assume_held(c, w);
	}
}

static bool assumed_fit(struct accmem_columns *c,
			const struct accmem_columns_cta *w)
{
	u64 busy = accmem_sm_of(c, w)->assumed;

	if (w->group == 2)
		busy |= accmem_sm_of(c, w->peer)->assumed;
	return accmem_columns_find(busy,
				   w->columns / ACCMEM_COLUMNS_UNIT) >= 0;
}

/* one pass over the queue; false when it found nothing that could be met */
static bool reduce_once(struct accmem_columns *c, bool bounds)
{
	struct accmem_columns_cta *w;
	bool progress = false;

	c->pass++;
	list_for_each_entry(w, &c->queue, queue) {
		if (!w->left)
			continue;
		if (!accmem_columns_kept(c, w) && assumed_fit(c, w)) {
			w->left = false;
			assume_free(c, w);
			progress = true;
		} else if (bounds && w->spent) {
			accmem_columns_keep(c, w);
		}
	}
	return progress;
}

static void reduce(struct accmem_columns *c, bool bounds)
{
	assume(c);
	while (reduce_once(c, bounds))
		;
}

/* grant the oldest that fits of what is left */
static bool force(struct accmem_columns *c)
{
	struct accmem_columns_cta *w;
	int unit;

	list_for_each_entry(w, &c->queue, queue) {
		unit = w->left ? accmem_columns_fits(c, w) : -1;
		if (unit >= 0) {
			c->forced++;
			accmem_columns_grant(c, w, unit);
			return true;
		}
	}
	return false;
}

static bool refuse(struct accmem_columns *c)
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
	reduce(c, true);
	if (force(c))
		return true;
	reduce(c, false);
	return refuse(c);
}
