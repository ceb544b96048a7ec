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

#endif /* ACCMEM_COLUMNS_INTERNAL_H */
