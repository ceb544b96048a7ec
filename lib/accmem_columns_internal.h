/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the two files of accmem_columns share. */
#ifndef ACCMEM_COLUMNS_INTERNAL_H
#define ACCMEM_COLUMNS_INTERNAL_H

#include <linux/bitops.h>

#include "accmem_columns.h"

int accmem_columns_find(u64 busy, u32 units);
int accmem_columns_fits(struct accmem_columns *c,
			const struct accmem_columns_cta *w);
void accmem_columns_grant(struct accmem_columns *c,
			  struct accmem_columns_cta *w, u32 unit);
void accmem_columns_fail(struct accmem_columns *c, struct accmem_columns_cta *w,
			 int err);
bool accmem_columns_break_deadlock(struct accmem_columns *c);

static inline struct accmem_columns_sm *
accmem_sm_of(struct accmem_columns *c, const struct accmem_columns_cta *cta)
{
	return &c->sms[cta->sm];
}

/* does a request's CTA, or its peer, hold columns? */
static inline bool accmem_columns_holds(const struct accmem_columns_cta *w)
{
	return w->held || (w->group == 2 && w->peer->held);
}

static inline bool accmem_columns_uses(const struct accmem_columns_cta *w,
				       u32 sm)
{
	return w->sm == sm || (w->group == 2 && w->peer->sm == sm);
}

/* do two requests want columns of one SM? */
static inline bool accmem_columns_share(const struct accmem_columns_cta *a,
					const struct accmem_columns_cta *b)
{
	return accmem_columns_uses(a, b->sm) ||
	       (b->group == 2 && accmem_columns_uses(a, b->peer->sm));
}

/* from here to the end of this pass the SMs of @w are for nobody younger */
static inline void accmem_columns_keep(struct accmem_columns *c,
				       const struct accmem_columns_cta *w)
{
	accmem_sm_of(c, w)->stamp = c->pass;
	if (w->group == 2)
		accmem_sm_of(c, w->peer)->stamp = c->pass;
}

static inline bool accmem_columns_kept(struct accmem_columns *c,
				       const struct accmem_columns_cta *w)
{
	return accmem_sm_of(c, w)->stamp == c->pass ||
	       (w->group == 2 && accmem_sm_of(c, w->peer)->stamp == c->pass);
}

#endif /* ACCMEM_COLUMNS_INTERNAL_H */
