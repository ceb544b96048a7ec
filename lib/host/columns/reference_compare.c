// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Does the arbiter stand where the reference does? */
#include "reference.h"

/* what the units say that a CTA has, as words */
struct words {
	u64 held;
	u64 starts;
	u64 reserved;
};

static struct words words_of(const struct reference *r, u32 i)
{
	const struct reference_unit *unit = r->unit[r->cta[i].sm];
	struct words w = {};
	u32 u;

	for (u = 0; u < r->units; u++) {
		if (unit[u].owner != (int)i)
			continue;
		if (unit[u].reserved)
			w.reserved |= 1ull << u;
		else
			w.held |= 1ull << u;
		if (unit[u].starts && !unit[u].reserved)
			w.starts |= 1ull << u;
	}
	return w;
}

static enum accmem_columns_call call_of(const struct reference_cta *x)
{
	static const enum accmem_columns_call calls[] = {
		[REFERENCE_IDLE] = ACCMEM_CALL_NONE,
		[REFERENCE_AT_ALLOC] = ACCMEM_CALL_JOIN_ALLOC,
		[REFERENCE_AT_DEALLOC] = ACCMEM_CALL_JOIN_DEALLOC,
		[REFERENCE_IN_QUEUE] = ACCMEM_CALL_QUEUED,
		[REFERENCE_TO_STORE] = ACCMEM_CALL_RESERVED,
		[REFERENCE_STORED] = ACCMEM_CALL_STORED,
		[REFERENCE_OVER] = ACCMEM_CALL_DONE,
	};

	return calls[x->stage];
}

static const char *compare_cta(const struct reference *r, u32 i,
			       const struct accmem_columns_cta *cta,
			       const struct accmem_columns_cta *first)
{
	const struct reference_cta *x = &r->cta[i];
	struct words w = words_of(r, i);
	int peer = cta->peer ? cta->peer - first : REFERENCE_NOBODY;

	if (cta->call != call_of(x))
		return "how far its call is";
	if (cta->held != w.held || cta->starts != w.starts)
		return "what it holds";
	if (cta->reserved != w.reserved)
		return "what is reserved for it";
	if (cta->address != x->address)
		return "the address";
	if (cta->last != x->last)
		return "the columns of its last alloc";
	if (cta->relinquished != x->relinquished)
		return "the right to allocate";
	if (peer != x->peer || cta->peer_gone != x->peer_gone)
		return "the peer";
	if (cta->obtained_permit != x->obtained_permit)
		return "whose call took the permit";
	if (cta->call != ACCMEM_CALL_NONE && cta->call != ACCMEM_CALL_DONE &&
	    cta->columns != x->columns)
		return "the columns it asks for";
	if (cta->call == ACCMEM_CALL_DONE && cta->result != x->result)
		return "the result";
	return NULL;
}

static bool is_for_sm(const struct reference *r, int i, u32 sm)
{
	const struct reference_cta *x = &r->cta[i];

	return x->sm == sm || (x->group == 2 && r->cta[x->peer].sm == sm);
}

/* an SM has those that are queued for it, by age */
static const char *compare_queue(const struct reference *r,
				 const struct accmem_columns_sm *sm, u32 name,
				 const struct accmem_columns_cta *first)
{
	const struct list_head *at = sm->queue.next;
	const struct accmem_columns_cta *w;
	u32 q;

	for (q = 0; q < r->nr_queued; q++) {
		if (!is_for_sm(r, r->queue[q], name))
			continue;
		if (at == &sm->queue)
			return "the length of a queue";
		w = list_entry(at, struct accmem_columns_cta, queue);
		at = at->next;
		if (w->sm != name)
			return "the SM of a queue";
		w = w->leads ? w : w->peer;
		if (w - first != r->queue[q])
			return "the order of a queue";
		if (w->bypassed != r->cta[r->queue[q]].bypassed)
			return "how often a request was passed";
	}
	return at == &sm->queue ? NULL : "the length of a queue";
}

static const char *compare_told(const struct reference *r,
				const struct accmem_columns *c,
				const struct accmem_columns_cta *first)
{
	const struct accmem_columns_cta *done;
	u32 i, nr = 0;

	list_for_each_entry(done, &c->done, done) {
		if (!r->cta[done - first].told || ++nr > REFERENCE_CTAS)
			return "who is told";
	}
	for (i = 0; i < REFERENCE_CTAS; i++)
		nr -= r->cta[i].told;
	return nr ? "somebody is not told" : NULL;
}

static const char *compare_sm(const struct reference *r,
			      const struct accmem_columns *c, u32 sm,
			      const struct accmem_columns_cta *first)
{
	const struct accmem_columns_cta *permit = c->sms[sm].permit;
	u64 taken = r->units < 64 ? ~0ull << r->units : 0;
	u32 u;

	if ((permit ? permit - first : REFERENCE_NOBODY) != r->permit[sm])
		return "who has the permit";
	for (u = 0; u < r->units; u++) {
		if (r->unit[sm][u].owner != REFERENCE_NOBODY)
			taken |= 1ull << u;
	}
	if (c->sms[sm].used != taken)
		return "the units that are taken";
	return compare_queue(r, &c->sms[sm], sm, first);
}

const char *reference_compare(const struct reference *r,
			      const struct accmem_columns *c,
			      const struct accmem_columns_cta *cta)
{
	u32 i, nr_ctas = 0;
	const char *what;

	for (i = 0; i < REFERENCE_CTAS; i++) {
		if (!r->cta[i].live)
			continue;
		nr_ctas++;
		what = compare_cta(r, i, &cta[i], cta);
		if (what)
			return what;
	}
	if (c->nr_ctas != nr_ctas)
		return "how many CTAs there are";
	if (c->nr_queued != r->nr_queued)
		return "how many are queued";
	if (c->touched || c->dirty)
		return "a change without a look at the queue";
	for (i = 0; i < r->nr_sms; i++) {
		what = compare_sm(r, c, i, cta);
		if (what)
			return what;
	}
	if (c->forced != r->forced || c->deadlocks != r->deadlocks ||
	    c->bypasses != r->bypasses)
		return "a count";
	return compare_told(r, c, cta);
}
