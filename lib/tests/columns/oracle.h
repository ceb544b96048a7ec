/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What must hold of the Tensor Memory arbiter after every call, told the naive
 * way: loops over columns instead of words, and every definition spelled out.
 * It reads the arbiter's state and shares no code with it.
 */
#ifndef ACCMEM_COLUMNS_ORACLE_H
#define ACCMEM_COLUMNS_ORACLE_H

#include <linux/kernel.h>
#include <linux/string.h>

#include "lib/columns/columns.h"

#define ORACLE_SMS 4
#define ORACLE_UNITS 64
#define ORACLE_REQUESTS 64

/* which units of an SM are taken */
struct oracle_sm {
	bool taken[ORACLE_UNITS];
};

struct oracle {
	const struct accmem_columns *c;
	struct oracle_sm now[ORACLE_SMS];
	struct oracle_sm later[ORACLE_SMS]; /* as a search assumes */
	const struct accmem_columns_cta *request[ORACLE_REQUESTS];
	bool left[ORACLE_REQUESTS];
	unsigned int nr;
	const char *wrong;
};

static inline unsigned int oracle_units(const struct oracle *o)
{
	return o->c->columns / 32;
}

static inline bool oracle_bit(u64 word, unsigned int n)
{
	return (word >> n) & 1;
}

static inline void oracle_set(struct oracle_sm *sm, u64 units, bool taken)
{
	unsigned int i;

	for (i = 0; i < ORACLE_UNITS; i++) {
		if (oracle_bit(units, i))
			sm->taken[i] = taken;
	}
}

/* is there an aligned run of @n units, free on both @a and @b? */
static inline bool oracle_run(const struct oracle *o, const struct oracle_sm *a,
			      const struct oracle_sm *b, unsigned int n)
{
	unsigned int start, i;

	for (start = 0; start + n <= oracle_units(o); start += n) {
		for (i = 0; i < n; i++) {
			if (a->taken[start + i] || b->taken[start + i])
				break;
		}
		if (i == n)
			return true;
	}
	return false;
}

static inline bool oracle_fits(const struct oracle *o,
			       const struct oracle_sm *sms,
			       const struct accmem_columns_cta *w)
{
	unsigned int other = w->group == 2 ? w->peer->sm : w->sm;

	return oracle_run(o, &sms[w->sm], &sms[other], w->columns / 32);
}

static inline bool oracle_on(const struct accmem_columns_cta *w, u32 sm)
{
	return w->sm == sm || (w->group == 2 && w->peer->sm == sm);
}

static inline bool oracle_meet(const struct oracle *o,
			       const struct accmem_columns_cta *a,
			       const struct accmem_columns_cta *b)
{
	u32 sm;

	for (sm = 0; sm < o->c->nr_sms; sm++) {
		if (oracle_on(a, sm) && oracle_on(b, sm))
			return true;
	}
	return false;
}

static inline bool oracle_has_permit(const struct oracle *o,
				     const struct accmem_columns_cta *w)
{
	return o->c->sms[w->sm].permit == w &&
	       (w->group == 1 || o->c->sms[w->peer->sm].permit == w->peer);
}

static inline bool oracle_spent(const struct oracle *o,
				const struct accmem_columns_cta *w)
{
	if (o->c->exclusive && oracle_has_permit(o, w))
		return false;
	return w->bypassed >= o->c->bypass_bound;
}

/* is something older, among those with @left, not to be passed by request n? */
static inline bool oracle_held_up(const struct oracle *o, unsigned int n,
				  const bool *left)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if ((!left || left[i]) && oracle_spent(o, o->request[i]) &&
		    oracle_meet(o, o->request[i], o->request[n]))
			return true;
	}
	return false;
}

static inline void oracle_assume(struct oracle *o,
				 const struct accmem_columns_cta *w,
				 bool taken)
{
	oracle_set(&o->later[w->sm], w->held, taken);
	if (w->group == 2)
		oracle_set(&o->later[w->peer->sm], w->peer->held, taken);
}

/* the reduction of the definition; what remains is in @left */
static inline unsigned int oracle_reduce(struct oracle *o, bool bounds)
{
	unsigned int i, remain = o->nr;
	bool progress;

	memset(o->later, 0, sizeof(o->later));
	for (i = 0; i < o->nr; i++) {
		o->left[i] = true;
		oracle_assume(o, o->request[i], true);
	}
	do {
		progress = false;
		for (i = 0; i < o->nr && !progress; i++) {
			if (!o->left[i] ||
			    !oracle_fits(o, o->later, o->request[i]) ||
			    (bounds && oracle_held_up(o, i, o->left)))
				continue;
			o->left[i] = false;
			oracle_assume(o, o->request[i], false);
			progress = true;
			remain--;
		}
	} while (progress);
	return remain;
}

/* keeps the first that does not hold */
static inline void oracle_expect(struct oracle *o, bool holds, const char *what)
{
	if (!holds && !o->wrong)
		o->wrong = what;
}

#define ORACLE(o, condition) oracle_expect(o, condition, #condition)

/* what a call has that is neither over nor waits any more for columns */
static inline void oracle_check_reserved(struct oracle *o,
					 const struct accmem_columns_cta *cta)
{
	bool reserved = cta->call == ACCMEM_CALL_RESERVED ||
			cta->call == ACCMEM_CALL_STORED;
	unsigned int i, n = 0;

	for (i = 0; i < ORACLE_UNITS; i++) {
		if (!oracle_bit(cta->reserved, i))
			continue;
		ORACLE(o, !o->now[cta->sm].taken[i]);
		n++;
	}
	ORACLE(o, n == (reserved ? cta->columns / 32 : 0));
	oracle_set(&o->now[cta->sm], cta->reserved, true);
	if (cta->call == ACCMEM_CALL_STORED && cta->group == 2)
		ORACLE(o, cta->peer->call == ACCMEM_CALL_RESERVED);
	else
		ORACLE(o, cta->call != ACCMEM_CALL_STORED);
	if (reserved && cta->group == 2)
		ORACLE(o, cta->reserved == cta->peer->reserved);
	/* nothing that a call took outlives it */
	ORACLE(o, cta->took_permit ?
			  reserved || cta->call == ACCMEM_CALL_QUEUED :
			  true);
}

/* the allocations of one CTA */
static inline void oracle_check_cta(struct oracle *o,
				    const struct accmem_columns_cta *cta)
{
	unsigned int i, n = 0;

	ORACLE(o, !(cta->starts & ~cta->held));
	for (i = 0; i < ORACLE_UNITS; i++) {
		if (!oracle_bit(cta->held, i)) {
			n = 0;
			continue;
		}
		ORACLE(o, i < oracle_units(o));
		/* columns never granted twice */
		ORACLE(o, !o->now[cta->sm].taken[i]);
		ORACLE(o, !oracle_bit(cta->reserved, i));
		ORACLE(o, n || oracle_bit(cta->starts, i));
		n++;
	}
	oracle_set(&o->now[cta->sm], cta->held, true);
	oracle_check_reserved(o, cta);
	if (cta->peer) {
		ORACLE(o, cta->peer->peer == cta);
		ORACLE(o, cta->held == cta->peer->held);
		ORACLE(o, cta->starts == cta->peer->starts);
	}
	if (o->c->exclusive && (cta->held || cta->reserved) &&
	    !cta->relinquished)
		ORACLE(o, o->c->sms[cta->sm].permit == cta);
	if (cta->relinquished && accmem_columns_waiting(cta))
		ORACLE(o, cta->call == ACCMEM_CALL_JOIN_DEALLOC);
}

/* nobody waits who need not */
static inline void oracle_check_queue(struct oracle *o)
{
	const struct accmem_columns *c = o->c;
	unsigned int i;

	for (i = 0; i < o->nr; i++) {
		const struct accmem_columns_cta *w = o->request[i];
		u32 other = w->group == 2 ? w->peer->sm : w->sm;

		ORACLE(o, w->call == ACCMEM_CALL_QUEUED);
		ORACLE(o, w->bypassed <= c->bypass_bound);
		if (c->exclusive && oracle_has_permit(o, w))
			ORACLE(o, !oracle_fits(o, o->now, w));
		else if (c->exclusive)
			ORACLE(o, c->sms[w->sm].permit || c->sms[other].permit ||
			       oracle_held_up(o, i, NULL));
		else
			ORACLE(o, !oracle_fits(o, o->now, w) ||
			       oracle_held_up(o, i, NULL));
	}
}

/* does the request's CTA hold columns, or the peer? */
static inline bool oracle_holds(const struct accmem_columns_cta *w)
{
	unsigned int i;

	for (i = 0; i < ORACLE_UNITS; i++) {
		if (oracle_bit(w->held, i) ||
		    (w->group == 2 && oracle_bit(w->peer->held, i)))
			return true;
	}
	return false;
}

/*
 * No wait without an end. Of those that wait for each other because of a spent
 * bound, only one that holds columns resolves anything by being served.
 */
static inline void oracle_check_deadlock(struct oracle *o)
{
	unsigned int i;

	if (o->c->exclusive)
		return;
	ORACLE(o, !oracle_reduce(o, false));
	oracle_reduce(o, true);
	for (i = 0; i < o->nr; i++)
		ORACLE(o, !o->left[i] || !oracle_holds(o->request[i]) ||
		       !oracle_fits(o, o->now, o->request[i]));
}

static inline void oracle_gather(struct oracle *o,
				 const struct accmem_columns *c)
{
	const struct accmem_columns_cta *cta;
	unsigned int i, n = 0;
	u32 sm;

	memset(o, 0, sizeof(*o));
	o->c = c;
	list_for_each_entry(cta, &c->ctas, link) {
		oracle_check_cta(o, cta);
		n++;
	}
	ORACLE(o, n == c->nr_ctas);
	list_for_each_entry(cta, &c->queue, queue) {
		ORACLE(o, o->nr < ORACLE_REQUESTS - 1);
		if (!o->wrong)
			o->request[o->nr++] = cta;
	}
	ORACLE(o, o->nr == c->nr_queued);
	for (sm = 0; sm < c->nr_sms; sm++) {
		for (i = 0; i < oracle_units(o); i++)
			ORACLE(o, o->now[sm].taken[i] ==
			       oracle_bit(c->sms[sm].used, i));
	}
}

/* NULL, or what does not hold */
static inline const char *oracle_check(struct oracle *o,
				       const struct accmem_columns *c)
{
	oracle_gather(o, c);
	if (!o->wrong)
		oracle_check_queue(o);
	if (!o->wrong)
		oracle_check_deadlock(o);
	return o->wrong;
}

/*
 * Was it right to refuse @w, were it in the queue still as the newest? True
 * only where nothing else has changed since.
 */
static inline bool oracle_was_deadlock(struct oracle *o,
				       const struct accmem_columns_cta *w)
{
	o->request[o->nr++] = w;
	oracle_reduce(o, false);
	return o->left[--o->nr];
}

#endif /* ACCMEM_COLUMNS_ORACLE_H */
