// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_columns: hazards, calls that would not work on hardware.
 *
 * Strict mode does not change the results of calls. A hazard is recorded in the CTA
 * that has made the call, as a bit of enum accmem_columns_hazard. The caller of the
 * arbiter reports the hazard.
 *
 * Locking: none; the caller serialises.
 */
#include <linux/kernel.h>
#include <linux/list.h>

#include "internal.h"

/*
 * Find a CTA of another launch that would have the SM's permit in the exclusive
 * discipline: the CTA has allocated, and neither relinquished nor exited.
 */
static const struct accmem_columns_cta *
strict_find_permit_owner(const struct accmem_columns *c,
			 const struct accmem_columns_cta *cta)
{
	const struct accmem_columns_cta *other;

	list_for_each_entry(other, &c->sms[cta->sm].ctas, link) {
		if (other->last && !other->relinquished &&
		    other->launch != cta->launch)
			return other;
	}
	return NULL;
}

/*
 * Check the first alloc of a CTA. On hardware this alloc takes the permit, and its warp
 * is the warp that makes all later calls.
 */
static void strict_first_grant(const struct accmem_columns *c,
			       struct accmem_columns_cta *cta)
{
	const struct accmem_columns_cta *owner;

	cta->first_warp = cta->warp;
	owner = c->exclusive ? NULL : strict_find_permit_owner(c, cta);
	if (!owner)
		return;
	cta->permit_owner = owner->launch;
	cta->hazards |= ACCMEM_HAZARD_PERMIT;
}

static void strict_check_warp(struct accmem_columns_cta *cta)
{
	if (cta->warp != cta->first_warp)
		cta->hazards |= ACCMEM_HAZARD_WARP;
}

/* Check an alloc at its grant. @cta->last still belongs to the alloc before it. */
void accmem_strict_grant(const struct accmem_columns *c,
			 struct accmem_columns_cta *cta)
{
	if (cta->last)
		strict_check_warp(cta);
	else
		strict_first_grant(c, cta);
	cta->unreturned = true;
}

/* Check a call that must not come before the peer's alloc has returned. */
static void strict_check_peer(struct accmem_columns_cta *cta)
{
	if (cta->peer && cta->peer->unreturned)
		cta->hazards |= ACCMEM_HAZARD_PEER;
}

/* Check a dealloc that breaks no other rule, at its begin. */
void accmem_strict_dealloc(struct accmem_columns_cta *cta)
{
	strict_check_warp(cta);
	strict_check_peer(cta);
}

/* Check an exit. */
void accmem_strict_exit(struct accmem_columns_cta *cta)
{
	strict_check_peer(cta);
}
