// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_columns: what is harmless here and would not be on hardware.
 *
 * The results of calls do not change: what is found is noted in the CTA whose call
 * it was, for the caller to report. Each rule has its bit of enum
 * accmem_columns_hazard.
 */
#include <linux/kernel.h>
#include <linux/list.h>

#include "internal.h"

/*
 * A CTA of another launch that has the SM's permit, were the discipline exclusive:
 * it has allocated, and neither relinquished nor exited.
 */
static const struct accmem_columns_cta *
strict_find_keeper(const struct accmem_columns *c,
		   const struct accmem_columns_cta *cta)
{
	const struct accmem_columns_cta *other;

	list_for_each_entry(other, &c->ctas, link) {
		if (other->sm == cta->sm && other->last &&
		    !other->relinquished && other->launch != cta->launch)
			return other;
	}
	return NULL;
}

/*
 * The first alloc of a CTA takes the permit, and says which warp it is that
 * allocates and frees.
 */
static void strict_first_grant(const struct accmem_columns *c,
			       struct accmem_columns_cta *cta)
{
	const struct accmem_columns_cta *keeper;

	cta->first_warp = cta->warp;
	keeper = c->exclusive ? NULL : strict_find_keeper(c, cta);
	if (!keeper)
		return;
	cta->keeper = keeper->launch;
	cta->hazards |= ACCMEM_HAZARD_PERMIT;
}

static void strict_check_warp(struct accmem_columns_cta *cta)
{
	if (cta->warp != cta->first_warp)
		cta->hazards |= ACCMEM_HAZARD_WARP;
}

/* columns are granted to @cta; @cta->last is of its alloc before */
void accmem_strict_grant(const struct accmem_columns *c,
			 struct accmem_columns_cta *cta)
{
	if (cta->last)
		strict_check_warp(cta);
	else
		strict_first_grant(c, cta);
	cta->unreturned = true;
}

/* @cta does what it should not before the peer's alloc has returned */
static void strict_check_peer(struct accmem_columns_cta *cta)
{
	if (cta->peer && cta->peer->unreturned)
		cta->hazards |= ACCMEM_HAZARD_PEER;
}

/* a dealloc of @cta that breaks no rule has begun */
void accmem_strict_dealloc(struct accmem_columns_cta *cta)
{
	strict_check_warp(cta);
	strict_check_peer(cta);
}

/* @cta exits */
void accmem_strict_exit(struct accmem_columns_cta *cta)
{
	strict_check_peer(cta);
}
