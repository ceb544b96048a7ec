/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Functions that the files of lib/columns share.
 *
 * A file calls only functions of the files listed before it here. columns.c calls all
 * of these functions.
 */
#ifndef ACCMEM_COLUMNS_INTERNAL_H
#define ACCMEM_COLUMNS_INTERNAL_H

#include <linux/bitops.h>
#include <linux/list.h>

#include "columns.h"

/* strict.c */
void accmem_strict_grant(const struct accmem_columns *c,
			 struct accmem_columns_cta *cta);
void accmem_strict_dealloc(struct accmem_columns_cta *cta);
void accmem_strict_exit(struct accmem_columns_cta *cta);

/* state.c */
void accmem_columns_note_change(struct accmem_columns *c,
				struct accmem_columns_sm *sm);
void accmem_columns_touch(struct accmem_columns *c,
			  const struct accmem_columns_cta *cta, bool dirty);
void accmem_columns_forget_touched(struct accmem_columns *c);
int accmem_columns_find(u64 busy, u32 units);
int accmem_columns_fits(struct accmem_columns *c,
			const struct accmem_columns_cta *w, u32 columns);
void accmem_columns_finish(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, int result);
void accmem_columns_forget_done(struct accmem_columns_cta *cta);
void accmem_columns_end(struct accmem_columns *c,
			struct accmem_columns_cta *cta, int result);
int accmem_columns_fail_both(struct accmem_columns *c,
			     struct accmem_columns_cta *peer, int err);
void accmem_columns_drop_permit(struct accmem_columns *c,
				struct accmem_columns_cta *cta);
void accmem_columns_enqueue(struct accmem_columns *c,
			    struct accmem_columns_cta *w);
void accmem_columns_fail(struct accmem_columns *c, struct accmem_columns_cta *w,
			 int err);
bool accmem_columns_obtain_permit(struct accmem_columns *c,
				  struct accmem_columns_cta *w);
void accmem_columns_set_held(struct accmem_columns *c,
			     struct accmem_columns_cta *cta, u64 held);
void accmem_columns_free_units(struct accmem_columns *c,
			       const struct accmem_columns_cta *cta, u64 units);
bool accmem_columns_commit(struct accmem_columns *c,
			   struct accmem_columns_cta *w);
struct accmem_columns_cta *
accmem_columns_withdraw(struct accmem_columns *c,
			struct accmem_columns_cta *cta);
void accmem_columns_grant(struct accmem_columns *c,
			  struct accmem_columns_cta *w, u32 unit);

/* launch.c */
void accmem_columns_leave(struct accmem_columns *c,
			  struct accmem_columns_cta *cta);

/* deadlock.c */
bool accmem_columns_break_deadlock(struct accmem_columns *c);

/* alloc.c */
void accmem_columns_grant_all(struct accmem_columns *c);

/*
 * Grant queued requests of the SMs that were touched. Call this after each event that
 * may let a request be granted.
 */
static inline void accmem_columns_run_queue(struct accmem_columns *c)
{
	if (c->touched)
		accmem_columns_grant_all(c);
}

static inline struct accmem_columns_sm *
accmem_sm_of(struct accmem_columns *c, const struct accmem_columns_cta *cta)
{
	return &c->sms[cta->sm];
}

/* Return the leader of the queued request that a CTA belongs to. */
static inline struct accmem_columns_cta *
accmem_columns_request_of(struct accmem_columns_cta *cta)
{
	return cta->leads ? cta : cta->peer;
}

/* Return true if the CTA of a request, or its peer, holds columns. */
static inline bool accmem_columns_holds(const struct accmem_columns_cta *w)
{
	return w->held || (w->group == 2 && w->peer->held);
}

static inline u64 accmem_columns_mask(u32 columns)
{
	return (1ull << columns / ACCMEM_COLUMNS_UNIT) - 1;
}

static inline bool
accmem_columns_is_reserved(const struct accmem_columns_cta *cta)
{
	return cta->call == ACCMEM_CALL_RESERVED ||
	       cta->call == ACCMEM_CALL_STORED;
}

static inline bool
accmem_columns_has_permit(struct accmem_columns *c,
			  const struct accmem_columns_cta *cta)
{
	return !c->exclusive || accmem_sm_of(c, cta)->permit == cta;
}

/*
 * Return true if the request waits for a place: for columns in the shared discipline,
 * for the permit in the exclusive one.
 */
static inline bool accmem_columns_contends(struct accmem_columns *c,
					   const struct accmem_columns_cta *w)
{
	return !c->exclusive || !accmem_columns_has_permit(c, w);
}

static inline bool
accmem_columns_permit_free(struct accmem_columns *c,
			   const struct accmem_columns_cta *w)
{
	return !accmem_sm_of(c, w)->permit &&
	       (w->group == 1 || !accmem_sm_of(c, w->peer)->permit);
}

/* Return true if a request older than @w has reached its bound on the SM. */
static inline bool
accmem_columns_sm_is_reserved(const struct accmem_columns_sm *sm,
			      const struct accmem_columns_cta *w)
{
	return sm->first_at_bound && sm->first_at_bound->age < w->age;
}

/* Return true if an older request that has reached its bound blocks the request. */
static inline bool accmem_columns_is_blocked(struct accmem_columns *c,
					     const struct accmem_columns_cta *w)
{
	return accmem_columns_sm_is_reserved(accmem_sm_of(c, w), w) ||
	       (w->group == 2 &&
		accmem_columns_sm_is_reserved(accmem_sm_of(c, w->peer), w));
}

#endif /* ACCMEM_COLUMNS_INTERNAL_H */
