/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the files of accmem_columns share. */
#ifndef ACCMEM_COLUMNS_INTERNAL_H
#define ACCMEM_COLUMNS_INTERNAL_H

#include <linux/bitops.h>
#include <linux/list.h>

#include "columns.h"

int accmem_columns_find(u64 busy, u32 units);
int accmem_columns_fits(struct accmem_columns *c,
			const struct accmem_columns_cta *w);
void accmem_columns_grant(struct accmem_columns *c,
			  struct accmem_columns_cta *w, u32 unit);
struct accmem_columns_cta *
accmem_columns_withdraw(struct accmem_columns *c,
			struct accmem_columns_cta *cta);
void accmem_columns_fail(struct accmem_columns *c, struct accmem_columns_cta *w,
			 int err);
void accmem_columns_end(struct accmem_columns *c,
			struct accmem_columns_cta *cta, int result);
void accmem_columns_serve(struct accmem_columns *c);
bool accmem_columns_break_deadlock(struct accmem_columns *c);
void accmem_strict_grant(const struct accmem_columns *c,
			 struct accmem_columns_cta *cta);
void accmem_strict_dealloc(struct accmem_columns_cta *cta);
void accmem_strict_exit(struct accmem_columns_cta *cta);

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

static inline u64 accmem_columns_mask(u32 columns)
{
	return (1ull << columns / ACCMEM_COLUMNS_UNIT) - 1;
}

static inline void accmem_columns_drop_permit(struct accmem_columns *c,
					      struct accmem_columns_cta *cta)
{
	struct accmem_columns_sm *sm = accmem_sm_of(c, cta);

	if (sm->permit == cta)
		sm->permit = NULL;
	cta->took_permit = false;
}

static inline bool
accmem_columns_is_reserved(const struct accmem_columns_cta *cta)
{
	return cta->call == ACCMEM_CALL_RESERVED ||
	       cta->call == ACCMEM_CALL_STORED;
}

static inline void accmem_columns_tell(struct accmem_columns *c,
				       struct accmem_columns_cta *cta)
{
	cta->next_done = NULL;
	*c->done_tail = cta;
	c->done_tail = &cta->next_done;
}

static inline void accmem_columns_finish(struct accmem_columns *c,
					 struct accmem_columns_cta *cta,
					 int result)
{
	cta->call = ACCMEM_CALL_DONE;
	cta->result = result;
	accmem_columns_tell(c, cta);
}

/* the caller gets the result of @cta at once, or never */
static inline void accmem_columns_forget_done(struct accmem_columns *c,
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

/* what a CTA holds changes: nowhere else */
static inline void accmem_columns_hold(struct accmem_columns *c,
				       struct accmem_columns_cta *cta, u64 held)
{
	u64 before = cta->held;

	cta->held = held;
	if (accmem_sm_of(c, cta)->watched && held != before)
		c->held_changed(cta, held ^ before);
}

/* a reservation becomes an allocation */
static inline void accmem_columns_give(struct accmem_columns *c,
				       struct accmem_columns_cta *cta)
{
	accmem_columns_hold(c, cta, cta->held | cta->reserved);
	cta->starts |= 1ull << cta->address / ACCMEM_COLUMNS_UNIT;
	cta->reserved = 0;
	if (c->strict)
		accmem_strict_grant(c, cta);
	cta->last = cta->columns;
	cta->took_permit = false;
	cta->call = ACCMEM_CALL_NONE;
}

/* each side has its address: the columns are theirs */
static inline bool accmem_columns_commit(struct accmem_columns *c,
					 struct accmem_columns_cta *w)
{
	struct accmem_columns_cta *peer = w->group == 2 ? w->peer : NULL;

	if (w->call != ACCMEM_CALL_STORED ||
	    (peer && peer->call != ACCMEM_CALL_STORED))
		return false;
	accmem_columns_give(c, w);
	if (peer)
		accmem_columns_give(c, peer);
	return true;
}

/* the peer is at a place where it never should have been */
static inline int accmem_columns_fail_both(struct accmem_columns *c,
					   struct accmem_columns_cta *peer,
					   int err)
{
	accmem_columns_finish(c, peer, err);
	return err;
}

/* after each event that may let somebody in the queue go on */
static inline void accmem_columns_settle(struct accmem_columns *c)
{
	if (!list_empty(&c->queue))
		accmem_columns_serve(c);
}

#endif /* ACCMEM_COLUMNS_INTERNAL_H */
