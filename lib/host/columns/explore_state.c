// SPDX-License-Identifier: GPL-2.0 OR MIT
/* States of a small world, packed and unpacked; see explore.h. */
#include <stdlib.h>
#include <string.h>

#include <linux/bitops.h>

#include "explore.h"

#define CTAS REFERENCE_CTAS
#define NO_PEER 7

/* --- what decides the future ---------------------------------------------- */

static void normalise_call(const struct reference *r, struct reference_cta *x,
			   bool leads)
{
	bool alloc = x->stage == REFERENCE_AT_ALLOC ||
		     x->stage == REFERENCE_IN_QUEUE ||
		     x->stage == REFERENCE_TO_STORE ||
		     x->stage == REFERENCE_STORED;
	bool granted = x->stage == REFERENCE_TO_STORE ||
		       x->stage == REFERENCE_STORED;

	if (!alloc) {
		x->stores = false;
		x->may_wait = false;
	}
	if (!alloc && x->stage != REFERENCE_AT_DEALLOC)
		x->columns = 0;
	if (!granted && x->stage != REFERENCE_AT_DEALLOC)
		x->address = 0;
	if (x->stage != REFERENCE_IN_QUEUE || !leads ||
	    (r->exclusive && r->permit[x->sm] == x - r->cta))
		x->bypassed = 0;
	x->result = 0;
}

static u32 place_of(const struct reference *r, u32 i)
{
	u32 q;

	for (q = 0; q < r->nr_queued; q++) {
		if (r->queue[q] == (int)i)
			return q + 1;
	}
	return 0;
}

static bool has_units(const struct reference *r, u32 i)
{
	u32 u;

	for (u = 0; u < r->units; u++) {
		if (r->unit[r->cta[i].sm][u].owner == (int)i)
			return true;
	}
	return false;
}

static bool has_nothing(const struct reference *r, u32 i)
{
	const struct reference_cta *x = &r->cta[i];

	return x->stage == REFERENCE_IDLE && r->permit[x->sm] != (int)i &&
	       !has_units(r, i);
}

/* who has nothing and does nothing might as well not have been launched yet */
static void forget_idle(struct reference *r)
{
	bool idle[CTAS];
	u32 i;

	for (i = 0; i < CTAS; i++) {
		const struct reference_cta *x = &r->cta[i];

		idle[i] = x->live && has_nothing(r, i) &&
			  (x->peer == REFERENCE_NOBODY ||
			   has_nothing(r, x->peer));
	}
	for (i = 0; i < CTAS; i++) {
		if (idle[i])
			memset(&r->cta[i], 0, sizeof(r->cta[i]));
	}
}

void explore_normalise(const struct setting *s, struct reference *r)
{
	u32 i;

	for (i = 0; i < CTAS; i++) {
		struct reference_cta *x = &r->cta[i];

		if (!x->live)
			continue;
		if (s->fold && x->stage == REFERENCE_OVER)
			x->stage = REFERENCE_IDLE;
		normalise_call(r, x, place_of(r, i));
		/* nothing is compared with it after relinquish */
		if (s->fold || x->relinquished)
			x->last = 0;
	}
	if (s->fold)
		forget_idle(r);
	for (i = r->nr_queued; i < CTAS; i++)
		r->queue[i] = 0;
	r->forced = 0;
	r->deadlocks = 0;
	r->bypasses = 0;
}

/* --- packing -------------------------------------------------------------- */

struct bits {
	u64 word;
	unsigned int at;
};

static void bits_put(struct bits *b, u32 value, unsigned int width)
{
	b->word |= (u64)value << b->at;
	b->at += width;
}

static u32 bits_get(struct bits *b, unsigned int width)
{
	u32 value = (b->word >> b->at) & ((1u << width) - 1);

	b->at += width;
	return value;
}

/* 0, 32, 64, 128 columns in two bits */
static u32 size_code(u32 columns)
{
	return columns < 128 ? columns / 32 : 3;
}

static u32 size_of(u32 code)
{
	return code < 3 ? code * 32 : 128;
}

/* nothing, the start of an allocation, the rest of one, a reservation */
static u32 unit_code(const struct reference_unit *unit, u32 i)
{
	if (unit->owner != (int)i)
		return 0;
	if (unit->reserved)
		return 3;
	return unit->starts ? 1 : 2;
}

/* what is known of a CTA without naming an SM or another CTA */
static u64 pack_alone(const struct reference *r, u32 i)
{
	const struct reference_cta *x = &r->cta[i];
	struct bits b = {};
	u32 u;

	if (!x->live)
		return 0;
	bits_put(&b, 1, 1);
	bits_put(&b, x->group - 1, 1);
	bits_put(&b, x->peer_gone, 1);
	bits_put(&b, x->relinquished, 1);
	bits_put(&b, x->stage, 3);
	bits_put(&b, x->stores, 1);
	bits_put(&b, x->may_wait, 1);
	bits_put(&b, x->obtained_permit, 1);
	bits_put(&b, size_code(x->last), 2);
	bits_put(&b, size_code(x->columns), 2);
	bits_put(&b, x->address / 32, 2);
	bits_put(&b, x->bypassed, 2);
	bits_put(&b, place_of(r, i), 3);
	bits_put(&b, r->permit[x->sm] == (int)i, 1);
	for (u = 0; u < REFERENCE_UNITS; u++)
		bits_put(&b, unit_code(&r->unit[x->sm][u], i), 2);
	return b.word;
}

#define ALONE_BITS (22 + 2 * REFERENCE_UNITS)

static u64 mix(u64 key, u64 value)
{
	key = (key ^ value) * 0x9e3779b97f4a7c15ull;
	return key ^ (key >> 29);
}

/* @sign says what a CTA is like; from here on also its surroundings */
static void look_around(const struct reference *r, u64 *sign)
{
	u64 beside[REFERENCE_SMS] = {}, next[CTAS];
	u32 i;

	for (i = 0; i < CTAS; i++) {
		if (r->cta[i].live)
			beside[r->cta[i].sm] += mix(1, sign[i]);
	}
	for (i = 0; i < CTAS; i++) {
		const struct reference_cta *x = &r->cta[i];

		next[i] = x->live ? mix(sign[i], beside[x->sm]) : 0;
		if (x->live && x->peer != REFERENCE_NOBODY) {
			next[i] = mix(next[i], sign[x->peer]);
			next[i] = mix(next[i], beside[r->cta[x->peer].sm]);
		}
	}
	memcpy(sign, next, sizeof(next));
}

/* by what they are like; those that are not live come last */
static void sort_by(const u64 *sign, u32 *order)
{
	u32 i, j, k;

	for (i = 0; i < CTAS; i++) {
		for (j = i; j && sign[order[j - 1]] < sign[i]; j--)
			;
		for (k = i; k > j; k--)
			order[k] = order[k - 1];
		order[j] = i;
	}
}

void explore_pack(const struct reference *r, struct packed *p)
{
	u32 order[CTAS], place[CTAS], sm_name[REFERENCE_SMS], names = 0, i;
	u64 alone[CTAS], sign[CTAS];

	for (i = 0; i < CTAS; i++)
		alone[i] = pack_alone(r, i);
	memcpy(sign, alone, sizeof(sign));
	look_around(r, sign);
	look_around(r, sign);
	sort_by(sign, order);
	for (i = 0; i < REFERENCE_SMS; i++)
		sm_name[i] = REFERENCE_SMS;
	for (i = 0; i < CTAS; i++) {
		const struct reference_cta *x = &r->cta[order[i]];

		place[order[i]] = i;
		if (x->live && sm_name[x->sm] == REFERENCE_SMS)
			sm_name[x->sm] = names++;
	}
	for (i = 0; i < CTAS; i++) {
		const struct reference_cta *x = &r->cta[order[i]];
		struct bits b = { .word = alone[order[i]], .at = ALONE_BITS };

		if (x->live) {
			bits_put(&b, sm_name[x->sm], 2);
			bits_put(&b,
				 x->peer == REFERENCE_NOBODY ? NO_PEER :
							       place[x->peer],
				 3);
		}
		p->cta[i] = b.word;
	}
}

/* --- unpacking ------------------------------------------------------------ */

static void unpack_unit(struct reference_unit *unit, u32 code, u32 i,
			u32 address)
{
	if (!code)
		return;
	unit->owner = i;
	unit->reserved = code == 3;
	unit->starts = code == 1;
	if (code == 3)
		unit->starts = address;
}

static void unpack_cta(struct reference *r, u64 word, u32 i, u32 *place)
{
	struct reference_cta *x = &r->cta[i];
	struct bits b = { .word = word };
	u32 units, u, peer;
	bool permit;

	x->live = bits_get(&b, 1);
	x->group = bits_get(&b, 1) + 1;
	x->peer_gone = bits_get(&b, 1);
	x->relinquished = bits_get(&b, 1);
	x->stage = bits_get(&b, 3);
	x->stores = bits_get(&b, 1);
	x->may_wait = bits_get(&b, 1);
	x->obtained_permit = bits_get(&b, 1);
	x->last = size_of(bits_get(&b, 2));
	x->columns = size_of(bits_get(&b, 2));
	x->address = 32 * bits_get(&b, 2);
	x->bypassed = bits_get(&b, 2);
	*place = bits_get(&b, 3);
	permit = bits_get(&b, 1);
	units = bits_get(&b, 2 * REFERENCE_UNITS);
	x->sm = bits_get(&b, 2);
	peer = bits_get(&b, 3);
	x->peer = peer == NO_PEER ? REFERENCE_NOBODY : (int)peer;
	if (permit)
		r->permit[x->sm] = i;
	for (u = 0; u < REFERENCE_UNITS; u++)
		unpack_unit(&r->unit[x->sm][u], units >> 2 * u & 3, i,
			    u == x->address / 32);
	/* names that only peers have in common */
	x->launch = x->group;
	x->cluster = x->peer != REFERENCE_NOBODY && peer < i ? peer : i;
	x->rank = x->cluster != i;
}

void explore_unpack(const struct setting *s, const struct packed *p,
		    struct reference *r)
{
	u32 i, place;

	reference_init(r, s->nr_sms, s->units * 32, s->exclusive, s->bound);
	for (i = 0; i < CTAS; i++) {
		if (!p->cta[i])
			continue;
		unpack_cta(r, p->cta[i], i, &place);
		if (!place)
			continue;
		r->queue[place - 1] = i;
		r->nr_queued++;
	}
}

/* --- the arbiter in a state ----------------------------------------------- */

static bool is_at_bound(const struct reference *r, u32 i)
{
	const struct reference_cta *x = &r->cta[i];

	if (r->exclusive && r->permit[x->sm] == (int)i)
		return false;
	return x->bypassed >= r->bound;
}

static void build_cta(const struct reference *r, struct world *w, u32 i)
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
	const struct reference_cta *x = &r->cta[i];
	struct accmem_columns_cta *cta = &w->cta[i];
	u32 u;

	cta->launch = x->launch;
	cta->cluster = x->cluster;
	cta->rank = x->rank;
	cta->sm = x->sm;
	cta->group = x->group;
	if (accmem_columns_launch(&w->c, cta))
		abort();
	cta->last = x->last;
	cta->relinquished = x->relinquished;
	cta->peer_gone = x->peer_gone;
	cta->obtained_permit = x->obtained_permit;
	cta->stores = x->stores;
	cta->may_wait = x->may_wait;
	cta->call = calls[x->stage];
	cta->columns = x->columns;
	cta->address = x->address;
	cta->bypassed = x->bypassed;
	for (u = 0; u < r->units; u++) {
		const struct reference_unit *unit = &r->unit[x->sm][u];

		if (unit->owner != (int)i)
			continue;
		w->sms[x->sm].used |= 1ull << u;
		if (unit->reserved)
			cta->reserved |= 1ull << u;
		else
			cta->held |= 1ull << u;
		if (unit->starts && !unit->reserved)
			cta->starts |= 1ull << u;
	}
}

static void build_queue(struct world *w, struct accmem_columns_cta *cta,
			const struct accmem_columns_cta *leader)
{
	struct accmem_columns_sm *sm = &w->sms[cta->sm];

	cta->age = w->c.arrivals;
	list_add_tail(&cta->queue, &sm->queue);
	sm->nr_pairs += cta->group == 2;
	sm->nr_holding += leader->counted;
	if (leader->at_bound && !sm->first_at_bound)
		sm->first_at_bound = cta;
}

static void build_request(const struct reference *r, struct world *w, u32 i)
{
	struct accmem_columns_cta *cta = &w->cta[i];

	cta->leads = true;
	cta->counted = cta->held || (cta->group == 2 && cta->peer->held);
	cta->at_bound = is_at_bound(r, i);
	w->c.nr_queued++;
	build_queue(w, cta, cta);
	if (cta->group == 2)
		build_queue(w, cta->peer, cta);
	w->c.arrivals++;
}

void explore_build(const struct reference *r, struct world *w)
{
	u32 i;

	memset(w, 0, sizeof(*w));
	accmem_columns_init(&w->c, w->sms, r->nr_sms, r->units * 32,
			    r->exclusive, r->bound);
	for (i = 0; i < CTAS; i++) {
		if (r->cta[i].live)
			build_cta(r, w, i);
	}
	for (i = 0; i < r->nr_queued; i++)
		build_request(r, w, r->queue[i]);
	for (i = 0; i < r->nr_sms; i++) {
		w->sms[i].polled = true;
		if (r->permit[i] != REFERENCE_NOBODY)
			w->sms[i].permit = &w->cta[r->permit[i]];
	}
}

static bool holds(const struct reference *r, u32 i)
{
	const struct reference_cta *x = &r->cta[i];
	u32 u;

	for (u = 0; u < r->units; u++) {
		const struct reference_unit *unit = &r->unit[x->sm][u];

		if (unit->owner == (int)i && !unit->reserved)
			return true;
	}
	return false;
}

static bool request_holds(const struct reference *r, u32 i)
{
	return holds(r, i) ||
	       (r->cta[i].group == 2 && holds(r, r->cta[i].peer));
}

/* what an SM has counted of its queue, whose order is right */
static const char *check_sm(const struct reference *r, const struct world *w,
			    const struct accmem_columns_sm *sm)
{
	const struct accmem_columns_cta *cta, *leader, *first = NULL;
	u32 pairs = 0, holding = 0, n;

	list_for_each_entry(cta, &sm->queue, queue) {
		leader = cta->leads ? cta : cta->peer;
		n = leader - w->cta;
		if (!first && is_at_bound(r, n))
			first = cta;
		if (cta->age != leader->age)
			return "the age of a pair";
		pairs += cta->group == 2;
		holding += request_holds(r, n);
	}
	if (sm->first_at_bound != first)
		return "the first request at its bound for an SM";
	if (sm->nr_pairs != pairs)
		return "the number of those queued for an SM in pairs";
	if (sm->nr_holding != holding)
		return "the number of those queued for an SM that hold columns";
	return NULL;
}

const char *explore_check_derived(const struct reference *r,
				  const struct world *w)
{
	const char *what;
	u32 i;

	for (i = 0; i < r->nr_sms; i++) {
		what = check_sm(r, w, &w->sms[i]);
		if (what)
			return what;
	}
	for (i = 0; i < r->nr_queued; i++) {
		u32 n = r->queue[i];

		if (w->cta[n].at_bound != is_at_bound(r, n))
			return "whether a request may be passed";
	}
	for (i = 0; i < CTAS; i++) {
		if (r->cta[i].live && w->cta[i].leads != (place_of(r, i) != 0))
			return "who leads a request";
	}
	return NULL;
}
