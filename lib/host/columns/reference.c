// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The calls of the Tensor Memory arbiter told the naive way; see reference.h.
 */
#include <errno.h>
#include <string.h>

#include "reference_rules.h"

static bool in_alloc(const struct reference_cta *x)
{
	return x->stage == REFERENCE_AT_ALLOC ||
	       x->stage == REFERENCE_IN_QUEUE ||
	       x->stage == REFERENCE_TO_STORE || x->stage == REFERENCE_STORED;
}

static bool has_joined(const struct reference_cta *x)
{
	return in_alloc(x) && x->stage != REFERENCE_AT_ALLOC;
}

void reference_init(struct reference *r, u32 nr_sms, u32 columns,
		    bool exclusive, u32 bound)
{
	u32 sm, u;

	memset(r, 0, sizeof(*r));
	r->nr_sms = nr_sms;
	r->units = columns / 32;
	r->exclusive = exclusive;
	r->bound = bound;
	for (sm = 0; sm < nr_sms; sm++) {
		r->permit[sm] = REFERENCE_NOBODY;
		for (u = 0; u < r->units; u++)
			r->unit[sm][u].owner = REFERENCE_NOBODY;
	}
}

/* 0, or why there cannot be such a CTA beside @other */
static int check_beside(const struct reference_cta *other, u64 launch,
			u32 cluster, u32 rank, u32 sm, u32 group)
{
	if (other->launch != launch)
		return 0;
	if (other->group != group)
		return -EPROTOTYPE;
	if (group == 1 || other->cluster != cluster)
		return 0;
	if (other->rank == rank)
		return -EEXIST;
	if (other->rank / 2 != rank / 2)
		return 0;
	if (other->peer_gone)
		return -EEXIST;
	return other->sm == sm ? -EADDRINUSE : 0;
}

static bool are_peers(const struct reference_cta *a,
		      const struct reference_cta *b)
{
	return a->group == 2 && a->launch == b->launch &&
	       a->cluster == b->cluster && a->rank / 2 == b->rank / 2;
}

int reference_launch(struct reference *r, u32 i, u64 launch, u32 cluster,
		     u32 rank, u32 sm, u32 group)
{
	struct reference_cta *x = &r->cta[i];
	int err = 0, one;
	u32 k;

	if (r->ended)
		return -ECONNRESET;
	if (group < 1 || group > 2)
		return -EINVAL;
	if (sm >= r->nr_sms)
		return -ENXIO;
	for (k = 0; k < REFERENCE_CTAS; k++) {
		if (!r->cta[k].live)
			continue;
		one = check_beside(&r->cta[k], launch, cluster, rank, sm,
				   group);
		/* a taken rank is named before the peer's SM */
		if (one && (!err || one == -EEXIST))
			err = one;
	}
	if (err)
		return err;
	*x = (struct reference_cta){
		.live = true,
		.peer = REFERENCE_NOBODY,
		.launch = launch,
		.cluster = cluster,
		.rank = rank,
		.sm = sm,
		.group = group,
	};
	for (k = 0; k < REFERENCE_CTAS; k++) {
		if (k != i && r->cta[k].live && are_peers(x, &r->cta[k])) {
			x->peer = k;
			r->cta[k].peer = i;
		}
	}
	return 0;
}

u32 reference_exit(struct reference *r, u32 i)
{
	struct reference_cta *x = &r->cta[i];
	struct reference_unit *unit = r->unit[x->sm];
	u32 u, held = 0;

	if (x->peer != REFERENCE_NOBODY) {
		struct reference_cta *peer = &r->cta[x->peer];

		if (reference_waits(peer))
			reference_finish(r, x->peer, -EPIPE);
		peer->peer = REFERENCE_NOBODY;
		peer->peer_gone = true;
	}
	for (u = 0; u < r->units; u++) {
		if (unit[u].owner != (int)i)
			continue;
		unit[u] = (struct reference_unit){
			.owner = REFERENCE_NOBODY,
		};
		held++;
	}
	reference_drop_permit(r, i);
	*x = (struct reference_cta){};
	reference_after_event(r);
	return held;
}

static int check_alloc(const struct reference *r, u32 i, u32 columns)
{
	const struct reference_cta *x = &r->cta[i];
	u32 legal;

	if (r->ended)
		return -ECONNRESET;
	if (x->stage != REFERENCE_IDLE)
		return -EBUSY;
	if (x->relinquished)
		return -EPERM;
	for (legal = 32; legal <= 512; legal *= 2) {
		if (columns == legal)
			return x->last && columns > x->last ? -ERANGE : 0;
	}
	return -EDOM;
}

/* an error of both; @peer may have been waiting */
static int fail_peer(struct reference *r, int peer, int err)
{
	reference_finish(r, peer, err);
	return err;
}

/* 0: the peer has joined */
static int meet_in_alloc(struct reference *r, u32 i, u32 columns, bool wait)
{
	struct reference_cta *x = &r->cta[i], *peer;

	if (x->peer_gone)
		return -EPIPE;
	if (x->peer != REFERENCE_NOBODY) {
		peer = &r->cta[x->peer];
		if (peer->stage == REFERENCE_AT_DEALLOC)
			return fail_peer(r, x->peer, -EPROTO);
		if (peer->relinquished)
			return -EPROTO;
		if (peer->stage == REFERENCE_AT_ALLOC)
			return peer->columns == columns ?
				       0 :
				       fail_peer(r, x->peer, -EBADR);
	}
	if (!wait)
		return -EAGAIN;
	x->stage = REFERENCE_AT_ALLOC;
	return -EINPROGRESS;
}

/* what a call of @i that may have come to its end returns */
static int outcome(struct reference *r, u32 i)
{
	struct reference_cta *x = &r->cta[i];

	if (x->stage == REFERENCE_OVER)
		return reference_collect(r, i);
	x->told = false;
	return x->stage == REFERENCE_TO_STORE ? 0 : -EINPROGRESS;
}

int reference_alloc(struct reference *r, u32 i, u32 columns, bool wait,
		    bool stores)
{
	struct reference_cta *x = &r->cta[i];
	int err = check_alloc(r, i, columns);

	if (err)
		return err;
	x->columns = columns;
	x->stores = stores;
	x->may_wait = wait;
	if (!reference_could_ever_fit(r, i, columns)) {
		if (x->peer != REFERENCE_NOBODY &&
		    r->cta[x->peer].stage == REFERENCE_AT_ALLOC)
			return fail_peer(r, x->peer, -ENOSPC);
		return -ENOSPC;
	}
	if (x->group == 2) {
		err = meet_in_alloc(r, i, columns, wait);
		if (err)
			return err;
	}
	if (!wait && !reference_would_be_met(r, i))
		return -EAGAIN;
	reference_enqueue(r, i);
	reference_after_event(r);
	return outcome(r, i);
}

int reference_collect(struct reference *r, u32 i)
{
	r->cta[i].told = false;
	r->cta[i].stage = REFERENCE_IDLE;
	return r->cta[i].result;
}

int reference_confirm(struct reference *r, u32 i, u32 address, bool stored)
{
	struct reference_cta *x = &r->cta[i];

	x->told = false;
	if (x->stage == REFERENCE_OVER)
		return reference_collect(r, i);
	if (!stored) {
		bool joined = has_joined(x);

		reference_withdraw(r, i);
		if (joined && x->peer != REFERENCE_NOBODY)
			reference_finish(r, x->peer, -EFAULT);
		x->stage = REFERENCE_IDLE;
		reference_after_event(r);
		return -EFAULT;
	}
	if (x->stage != REFERENCE_TO_STORE || x->address != address)
		return -EINPROGRESS;
	x->stage = REFERENCE_STORED;
	return reference_commit(r, i) ? reference_collect(r, i) : -EINPROGRESS;
}

static int check_dealloc(const struct reference *r, u32 i, u32 address,
			 u32 columns)
{
	const struct reference_unit *unit = r->unit[r->cta[i].sm];
	u32 first = address / 32, u;

	if (first >= r->units)
		return -ENXIO;
	if (unit[first].owner == REFERENCE_NOBODY)
		return -ENOENT;
	if (unit[first].owner != (int)i)
		return -EACCES;
	if (address % 32 || !unit[first].starts)
		return -EADDRNOTAVAIL;
	for (u = first + 1; u < r->units; u++) {
		if (unit[u].owner != (int)i || unit[u].starts)
			break;
	}
	return columns == 32 * (u - first) ? 0 : -EMSGSIZE;
}

static void give_back(struct reference *r, u32 i, u32 address, u32 columns)
{
	u32 u;

	for (u = address / 32; u < (address + columns) / 32; u++)
		r->unit[r->cta[i].sm][u] = (struct reference_unit){
			.owner = REFERENCE_NOBODY,
		};
}

int reference_dealloc(struct reference *r, u32 i, u32 address, u32 columns,
		      bool wait)
{
	struct reference_cta *x = &r->cta[i], *peer = NULL;
	int err;

	if (r->ended)
		return -ECONNRESET;
	if (x->stage != REFERENCE_IDLE)
		return -EBUSY;
	if (x->peer != REFERENCE_NOBODY)
		peer = &r->cta[x->peer];
	if (peer && peer->stage == REFERENCE_AT_ALLOC)
		return fail_peer(r, x->peer, -EPROTO);
	err = check_dealloc(r, i, address, columns);
	if (err)
		return err;
	if (x->peer_gone)
		return -EPIPE;
	if (peer && peer->stage == REFERENCE_AT_DEALLOC) {
		if (peer->address != address || peer->columns != columns)
			return fail_peer(r, x->peer, -EBADR);
		give_back(r, x->peer, address, columns);
		reference_finish(r, x->peer, 0);
	} else if (peer) {
		if (!wait)
			return -EAGAIN;
		x->stage = REFERENCE_AT_DEALLOC;
		x->address = address;
		x->columns = columns;
		return -EINPROGRESS;
	}
	give_back(r, i, address, columns);
	reference_after_event(r);
	return 0;
}

int reference_relinquish(struct reference *r, u32 i)
{
	struct reference_cta *x = &r->cta[i];
	bool both;

	if (r->ended)
		return -ECONNRESET;
	both = x->peer != REFERENCE_NOBODY && in_alloc(&r->cta[x->peer]);
	if (in_alloc(x))
		reference_withdraw(r, i);
	if (both)
		reference_finish(r, x->peer, -EPROTO);
	if (in_alloc(x))
		reference_finish(r, i, -ECANCELED);
	x->relinquished = true;
	reference_drop_permit(r, i);
	reference_after_event(r);
	return both ? -EPROTO : 0;
}

bool reference_cancel(struct reference *r, u32 i)
{
	struct reference_cta *x = &r->cta[i];
	bool joined = has_joined(x) && x->peer != REFERENCE_NOBODY;

	if (!reference_waits(x))
		return false;
	reference_withdraw(r, i);
	if (joined && r->cta[x->peer].may_wait) {
		r->cta[x->peer].stage = REFERENCE_AT_ALLOC;
		r->cta[x->peer].told = false;
	} else if (joined) {
		reference_finish(r, x->peer, -EAGAIN);
	}
	x->stage = REFERENCE_IDLE;
	x->told = false;
	reference_after_event(r);
	return true;
}

void reference_reset(struct reference *r)
{
	u32 i, sm, u;

	for (i = 0; i < REFERENCE_CTAS; i++) {
		if (r->cta[i].live && reference_waits(&r->cta[i]))
			reference_finish(r, i, -ECONNRESET);
		r->cta[i].obtained_permit = false;
	}
	r->nr_queued = 0;
	for (sm = 0; sm < r->nr_sms; sm++) {
		r->permit[sm] = REFERENCE_NOBODY;
		for (u = 0; u < r->units; u++)
			r->unit[sm][u] = (struct reference_unit){
				.owner = REFERENCE_NOBODY,
			};
	}
	r->ended = true;
}

bool reference_would_grant(const struct reference *r, u32 i, u32 columns)
{
	struct reference asked = *r;
	struct reference_cta *x = &asked.cta[i];

	if (check_alloc(r, i, columns))
		return false;
	if (x->group == 2 && (x->peer == REFERENCE_NOBODY ||
			      asked.cta[x->peer].stage != REFERENCE_AT_ALLOC))
		return false;
	x->columns = columns;
	return reference_would_be_met(&asked, i);
}
