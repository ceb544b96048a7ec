// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The rules of the Tensor Memory arbiter told the naive way: where there is room,
 * whose turn it is, what a grant is, and what a deadlock is.
 */
#include <errno.h>
#include <string.h>

#include "reference_rules.h"

/* the CTAs of a request: one, or both of a pair */
struct members {
	int cta[2];
	int nr;
};

static struct members members_of(const struct reference *r, int i)
{
	struct members m = { .cta = { i }, .nr = 1 };

	if (r->cta[i].group == 2 && r->cta[i].peer != REFERENCE_NOBODY)
		m.cta[m.nr++] = r->cta[i].peer;
	return m;
}

void reference_finish(struct reference *r, int i, int result)
{
	r->cta[i].stage = REFERENCE_OVER;
	r->cta[i].result = result;
	r->cta[i].told = true;
}

/* --- where there is room -------------------------------------------------- */

/* where a CTA looks for room: what is not of those in @left counts as free */
struct place {
	const struct reference *r;
	struct members m;
	const bool *left; /* or NULL: nothing does */
};

static bool is_free(const struct place *p, int cta, u32 u)
{
	int owner = p->r->unit[p->r->cta[cta].sm][u].owner;

	return owner == REFERENCE_NOBODY || (p->left && !p->left[owner]);
}

static bool run_is_free(const struct place *p, u32 start, u32 n)
{
	u32 u;
	int k;

	if (start + n > p->r->units)
		return false;
	for (k = 0; k < p->m.nr; k++) {
		for (u = start; u < start + n; u++) {
			if (!is_free(p, p->m.cta[k], u))
				return false;
		}
	}
	return true;
}

/* units of the largest free block, aligned to its size, that the run is in */
static u32 block_around(const struct place *p, u32 start, u32 n)
{
	while (run_is_free(p, start / (2 * n) * (2 * n), 2 * n))
		n *= 2;
	return n;
}

/* the first run in the smallest free block, or -1 */
static int find_room(const struct reference *r, int i, const bool *left)
{
	struct place p = { .r = r, .m = members_of(r, i), .left = left };
	u32 n = r->cta[i].columns / 32, start, block, smallest = ~0u;
	int found = -1;

	for (start = 0; start + n <= r->units; start += n) {
		if (!run_is_free(&p, start, n))
			continue;
		block = block_around(&p, start, n);
		if (block < smallest) {
			smallest = block;
			found = start;
		}
	}
	return found;
}

static bool held_by(const struct reference *r, const struct members *m, u32 u)
{
	int k;

	for (k = 0; k < m->nr; k++) {
		if (r->unit[r->cta[m->cta[k]].sm][u].owner == m->cta[k])
			return true;
	}
	return false;
}

bool reference_could_ever_fit(const struct reference *r, int i, u32 columns)
{
	u32 n = columns / 32, start, u;
	struct members m = members_of(r, i);

	for (start = 0; start + n <= r->units; start += n) {
		for (u = start; u < start + n && !held_by(r, &m, u); u++)
			;
		if (u == start + n)
			return true;
	}
	return false;
}

static bool holds(const struct reference *r, int i)
{
	struct members m = members_of(r, i);
	u32 u;

	for (u = 0; u < r->units; u++) {
		if (held_by(r, &m, u))
			return true;
	}
	return false;
}

/* --- permits and order ---------------------------------------------------- */

static bool has_permits(const struct reference *r, int i)
{
	struct members m = members_of(r, i);
	int k;

	for (k = 0; k < m.nr; k++) {
		if (r->permit[r->cta[m.cta[k]].sm] != m.cta[k])
			return false;
	}
	return true;
}

static bool permits_free(const struct reference *r, int i)
{
	struct members m = members_of(r, i);
	int k;

	for (k = 0; k < m.nr; k++) {
		if (r->permit[r->cta[m.cta[k]].sm] != REFERENCE_NOBODY)
			return false;
	}
	return true;
}

void reference_drop_permit(struct reference *r, int i)
{
	if (r->permit[r->cta[i].sm] == i)
		r->permit[r->cta[i].sm] = REFERENCE_NOBODY;
	r->cta[i].obtained_permit = false;
}

/* does it queue for what the discipline makes CTAs queue for? */
static bool contends(const struct reference *r, int i)
{
	return !r->exclusive || !has_permits(r, i);
}

static bool is_at_bound(const struct reference *r, int i)
{
	return contends(r, i) && r->cta[i].bypassed >= r->bound;
}

static bool share_an_sm(const struct reference *r, int a, int b)
{
	struct members m = members_of(r, a), n = members_of(r, b);
	int k, l;

	for (k = 0; k < m.nr; k++) {
		for (l = 0; l < n.nr; l++) {
			if (r->cta[m.cta[k]].sm == r->cta[n.cta[l]].sm)
				return true;
		}
	}
	return false;
}

/* is there an older request, among @left if given, not to be passed by @i? */
static bool held_up(const struct reference *r, int i, const bool *left)
{
	u32 q;

	for (q = 0; q < r->nr_queued && r->queue[q] != i; q++) {
		int old = r->queue[q];

		if ((!left || left[old]) && is_at_bound(r, old) &&
		    share_an_sm(r, old, i))
			return true;
	}
	return false;
}

/* @i has what the older ones that want the same of it have not got yet */
static void pass(struct reference *r, int i)
{
	u32 q;

	for (q = 0; q < r->nr_queued && r->queue[q] != i; q++) {
		int old = r->queue[q];

		if (!share_an_sm(r, old, i) || !contends(r, old))
			continue;
		r->bypasses++;
		if (r->cta[old].bypassed < r->bound)
			r->cta[old].bypassed++;
	}
}

/* --- the queue ------------------------------------------------------------ */

void reference_enqueue(struct reference *r, int i)
{
	struct members m = members_of(r, i);
	int k;

	for (k = 0; k < m.nr; k++) {
		r->cta[m.cta[k]].stage = REFERENCE_IN_QUEUE;
		r->cta[m.cta[k]].bypassed = 0;
	}
	r->queue[r->nr_queued++] = i;
}

/* the request that @i is in, if it is queued */
static void dequeue(struct reference *r, int i)
{
	u32 q, to = 0;

	for (q = 0; q < r->nr_queued; q++) {
		int w = r->queue[q];

		if (w != i && (r->cta[w].group == 1 || r->cta[w].peer != i))
			r->queue[to++] = w;
	}
	r->nr_queued = to;
}

void reference_withdraw(struct reference *r, int i)
{
	struct members m = members_of(r, i);
	u32 u;
	int k;

	dequeue(r, i);
	for (k = 0; k < m.nr; k++) {
		struct reference_unit *unit = r->unit[r->cta[m.cta[k]].sm];

		for (u = 0; u < r->units; u++) {
			if (unit[u].owner == m.cta[k] && unit[u].reserved)
				unit[u] = (struct reference_unit){
					.owner = REFERENCE_NOBODY,
				};
		}
		if (r->cta[m.cta[k]].obtained_permit)
			reference_drop_permit(r, m.cta[k]);
	}
}

/* --- granting ------------------------------------------------------------- */

bool reference_commit(struct reference *r, int i)
{
	struct members m = members_of(r, i);
	u32 u;
	int k;

	for (k = 0; k < m.nr; k++) {
		if (r->cta[m.cta[k]].stage != REFERENCE_STORED)
			return false;
	}
	for (k = 0; k < m.nr; k++) {
		struct reference_cta *x = &r->cta[m.cta[k]];

		for (u = 0; u < r->units; u++) {
			if (r->unit[x->sm][u].owner == m.cta[k])
				r->unit[x->sm][u].reserved = false;
		}
		x->last = x->columns;
		x->obtained_permit = false;
		reference_finish(r, m.cta[k], 0);
	}
	return true;
}

static void grant(struct reference *r, int i, u32 start)
{
	u32 u, n = r->cta[i].columns / 32;
	struct members m = members_of(r, i);
	int k;

	if (!r->exclusive)
		pass(r, i);
	dequeue(r, i);
	for (k = 0; k < m.nr; k++) {
		struct reference_cta *x = &r->cta[m.cta[k]];

		for (u = start; u < start + n; u++)
			r->unit[x->sm][u] = (struct reference_unit){
				.owner = m.cta[k],
				.starts = u == start,
				.reserved = true,
			};
		x->address = start * 32;
		x->stage = x->stores ? REFERENCE_TO_STORE : REFERENCE_STORED;
	}
	if (reference_commit(r, i))
		return;
	for (k = 0; k < m.nr; k++) {
		struct reference_cta *x = &r->cta[m.cta[k]];

		x->told = x->stage == REFERENCE_TO_STORE;
	}
}

static void take_permits(struct reference *r, int i)
{
	struct members m = members_of(r, i);
	int k;

	pass(r, i);
	for (k = 0; k < m.nr; k++) {
		r->permit[r->cta[m.cta[k]].sm] = m.cta[k];
		r->cta[m.cta[k]].obtained_permit = true;
	}
}

/* can @i have its turn, be it for columns or for its permits? */
static bool has_turn(const struct reference *r, int i)
{
	if (contends(r, i) && held_up(r, i, NULL))
		return false;
	return !contends(r, i) || !r->exclusive || permits_free(r, i);
}

/* the oldest that can get anything gets it; false when there is none */
static bool serve_one(struct reference *r)
{
	bool took;
	u32 q;

	for (q = 0; q < r->nr_queued; q++) {
		int i = r->queue[q], start;

		if (!has_turn(r, i))
			continue;
		took = r->exclusive && contends(r, i);
		if (took)
			take_permits(r, i);
		start = find_room(r, i, NULL);
		if (start >= 0)
			grant(r, i, start);
		if (took || start >= 0)
			return true;
	}
	return false;
}

bool reference_would_be_met(const struct reference *r, int i)
{
	return has_turn(r, i) && find_room(r, i, NULL) >= 0;
}

/* --- deadlock ------------------------------------------------------------- */

static void leave(const struct reference *r, int i, bool *left, bool in)
{
	struct members m = members_of(r, i);
	int k;

	for (k = 0; k < m.nr; k++)
		left[m.cta[k]] = in;
}

/* the requests, and their peers, that are not met even when the rest is free */
static void reduce(struct reference *r, bool bounds, bool *left)
{
	bool progress;
	u32 q;

	memset(left, 0, REFERENCE_CTAS * sizeof(*left));
	for (q = 0; q < r->nr_queued; q++)
		leave(r, r->queue[q], left, true);
	do {
		progress = false;
		for (q = 0; q < r->nr_queued; q++) {
			int i = r->queue[q];

			if (!left[i] || find_room(r, i, left) < 0 ||
			    (bounds && held_up(r, i, left)))
				continue;
			leave(r, i, left, false);
			progress = true;
		}
	} while (progress);
}

static void fail_request(struct reference *r, int i, int err)
{
	struct members m = members_of(r, i);
	int k;

	reference_withdraw(r, i);
	for (k = 0; k < m.nr; k++)
		reference_finish(r, m.cta[k], err);
}

/* one step that resolves something; false when nothing is to be resolved */
static bool resolve_one(struct reference *r)
{
	bool left[REFERENCE_CTAS];
	int newest = REFERENCE_NOBODY, start;
	u32 q;

	reduce(r, true, left);
	for (q = 0; q < r->nr_queued; q++) {
		if (!left[r->queue[q]] || !holds(r, r->queue[q]))
			continue;
		start = find_room(r, r->queue[q], NULL);
		if (start < 0)
			continue;
		r->forced++;
		grant(r, r->queue[q], start);
		return true;
	}
	reduce(r, false, left);
	for (q = 0; q < r->nr_queued; q++) {
		if (left[r->queue[q]] && holds(r, r->queue[q]))
			newest = r->queue[q];
	}
	if (newest == REFERENCE_NOBODY)
		return false;
	r->deadlocks++;
	fail_request(r, newest, -EDEADLK);
	return true;
}

void reference_after_event(struct reference *r)
{
	while (serve_one(r) || (!r->exclusive && resolve_one(r)))
		;
}

const char *reference_check_rest(const struct reference *r)
{
	struct reference next = *r;

	if (serve_one(&next))
		return "a request waits that could be served";
	if (!r->exclusive && resolve_one(&next))
		return "requests wait for each other";
	return NULL;
}
