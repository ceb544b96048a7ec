// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Many CTAs on a few SMs, in a setting drawn by the program around it. Every
 * call is made to the arbiter and to the reference: the results and what they
 * come to are the same. At the end everybody leaves, and every column is free.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/bitops.h>
#include <linux/list.h>

#include "../../tests/columns_oracle.h"
#include "reference.h"
#include "world.h"

#define CTAS REFERENCE_CTAS

static struct accmem_columns c;
static struct accmem_columns_sm sms[ORACLE_SMS];
static struct accmem_columns_cta cta[CTAS];
static struct reference reference;
static struct oracle oracle;
/* the address that the thread in an alloc is about to store, or none */
static u32 storing[CTAS];
/* what the arbiter has told of what a CTA holds */
static u64 told_held[CTAS];
static unsigned int nr_ctas; /* that may be launched */
static unsigned int greed; /* of eight that would give back, so many ask */
static unsigned int sizes; /* how many of 32, 64, ... are asked for */

#define NO_ADDRESS (~0u)

struct columns_world columns_world;
unsigned int columns_world_oracle_every = 1;

#define EVENT(event)                         \
	{                                    \
#event, &columns_world.event \
	}

const struct columns_event columns_events[] = {
	EVENT(grants),
	EVENT(waits_granted),
	EVENT(passed_by),
	EVENT(forced),
	EVENT(deadlocks),
	EVENT(deadlocks_of_pairs),
	EVENT(given_up),
	EVENT(reservations),
	EVENT(reservations_of_pairs),
	EVENT(half_stored),
	EVENT(stored_at_old_address),
	EVENT(lost),
	EVENT(lost_by_peer),
	EVENT(lost_by_both),
	EVENT(given_up_while_reserved),
	EVENT(peer_back_at_alloc),
	EVENT(peer_could_not_wait),
	EVENT(relinquished_while_reserved),
	EVENT(unlike_collectives),
	EVENT(alloc_meets_last_dealloc),
	EVENT(unlike_operands),
	EVENT(peer_exits),
	EVENT(never_fits),
	EVENT(columns_grow),
	EVENT(too_late),
	EVENT(permits_handed_on),
	EVENT(permits_taken_back),
	EVENT(resets),
	EVENT(resets_of_reserved),
	{},
};

/* --- the arbiter and the reference, side by side -------------------------- */

static unsigned int number(const struct accmem_columns_cta *x)
{
	return x - cta;
}

static void differs(const char *call, const struct accmem_columns_cta *x,
		    int got, int wanted, const char *what)
{
	static char text[160];

	snprintf(text, sizeof(text), "%s of %u: %d, not %d: %s", call,
		 number(x), got, wanted, what ?: "the result");
	must(false, text);
}

static void held_changed(struct accmem_columns_cta *x, u64 units)
{
	told_held[number(x)] ^= units;
	must(units && told_held[number(x)] == x->held,
	     "what is told of what a CTA holds");
}

static void agree(const char *call, const struct accmem_columns_cta *x, int got,
		  int wanted)
{
	const char *what = reference_compare(&reference, &c, cta);

	if (got != wanted || what)
		differs(call, x, got, wanted, what);
	must(told_held[number(x)] == x->held, "a change that is not told");
}

static bool is_reserved(const struct accmem_columns_cta *x)
{
	return x->call == ACCMEM_CALL_RESERVED || x->call == ACCMEM_CALL_STORED;
}

static void count_result(const struct accmem_columns_cta *x, int result)
{
	columns_world.deadlocks += result == -EDEADLK;
	columns_world.deadlocks_of_pairs += result == -EDEADLK && x->group == 2;
	columns_world.unlike_collectives += result == -EPROTO;
	columns_world.unlike_operands += result == -EBADR;
	columns_world.peer_exits += result == -EPIPE;
	columns_world.never_fits += result == -ENOSPC;
	columns_world.columns_grow += result == -ERANGE;
	columns_world.too_late += result == -EPERM;
}

/* what an alloc or a wait has come to; the caller is to store an address */
static void note(struct accmem_columns_cta *x, int result)
{
	count_result(x, result);
	if (result == 0 && x->call == ACCMEM_CALL_RESERVED) {
		storing[number(x)] = x->address;
		columns_world.reservations++;
		columns_world.reservations_of_pairs += x->group == 2;
	} else if (result != -EINPROGRESS) {
		storing[number(x)] = NO_ADDRESS;
	}
}

static int both_launch(struct accmem_columns_cta *x)
{
	int err = accmem_columns_launch(&c, x);
	int wanted = reference_launch(&reference, number(x), x->launch,
				      x->cluster, x->rank, x->sm, x->group);

	/* both rules are broken, by different CTAs */
	if (err == -EADDRINUSE && wanted == -EEXIST)
		err = wanted;
	agree("launch", x, err, wanted);
	return err;
}

static void both_exit(struct accmem_columns_cta *x)
{
	u64 held = accmem_columns_exit(&c, x);
	u32 wanted = reference_exit(&reference, number(x));

	agree("exit", x, hweight64(held), wanted);
}

static int both_alloc(struct accmem_columns_cta *x, u32 columns, bool wait,
		      bool stores)
{
	u64 bypasses = c.bypasses, forced = c.forced;
	bool last = x->peer && x->peer->relinquished &&
		    x->peer->call == ACCMEM_CALL_JOIN_DEALLOC;
	int err = stores ? accmem_columns_reserve(&c, x, columns, wait) :
			   accmem_columns_alloc(&c, x, columns, wait);
	int wanted =
		reference_alloc(&reference, number(x), columns, wait, stores);

	agree("alloc", x, err, wanted);
	columns_world.passed_by += c.bypasses - bypasses;
	columns_world.forced += c.forced - forced;
	columns_world.grants += !err;
	columns_world.alloc_meets_last_dealloc += last && err == -EPROTO;
	if (err != -EBUSY)
		note(x, err);
	return err;
}

static int both_dealloc(struct accmem_columns_cta *x, u32 address, u32 columns,
			bool wait)
{
	int err = accmem_columns_dealloc(&c, x, address, columns, wait);

	agree("dealloc", x, err,
	      reference_dealloc(&reference, number(x), address, columns, wait));
	count_result(x, err);
	return err;
}

static int both_relinquish(struct accmem_columns_cta *x)
{
	bool reserved = is_reserved(x);
	int err = accmem_columns_relinquish(&c, x);

	agree("relinquish", x, err,
	      reference_relinquish(&reference, number(x)));
	columns_world.relinquished_while_reserved += reserved;
	return err;
}

static bool both_cancel(struct accmem_columns_cta *x)
{
	bool reserved = is_reserved(x), took = x->took_permit;
	struct accmem_columns_cta *peer = x->group == 2 ? x->peer : NULL;
	bool waited = accmem_columns_cancel(&c, x);

	agree("cancel", x, waited, reference_cancel(&reference, number(x)));
	storing[number(x)] = NO_ADDRESS;
	columns_world.given_up += waited;
	columns_world.given_up_while_reserved += reserved;
	columns_world.permits_taken_back += took;
	columns_world.peer_back_at_alloc +=
		reserved && peer && peer->call == ACCMEM_CALL_JOIN_ALLOC;
	columns_world.peer_could_not_wait += reserved && peer &&
					     peer->call == ACCMEM_CALL_DONE;
	return waited;
}

static void count_confirmed(struct accmem_columns_cta *x, int err, bool stored,
			    bool took)
{
	bool waits = err == -EINPROGRESS;

	columns_world.half_stored += waits && x->call == ACCMEM_CALL_STORED;
	columns_world.stored_at_old_address += waits &&
					       x->call == ACCMEM_CALL_RESERVED;
	columns_world.lost += err == -EFAULT && !stored;
	columns_world.permits_taken_back += err == -EFAULT && took;
	columns_world.grants += !err;
}

static int both_confirm(struct accmem_columns_cta *x, u32 address, bool stored)
{
	bool was_done = x->call == ACCMEM_CALL_DONE, took = x->took_permit;
	int err = accmem_columns_confirm(&c, x, address, stored);

	agree("confirm", x, err,
	      reference_confirm(&reference, number(x), address, stored));
	columns_world.lost_by_peer += was_done && err == -EFAULT && stored;
	columns_world.lost_by_both += was_done && err == -EFAULT && !stored;
	if (!was_done)
		count_confirmed(x, err, stored, took);
	note(x, err);
	if (err == -EINPROGRESS)
		storing[number(x)] = x->call == ACCMEM_CALL_RESERVED ?
					     x->address :
					     NO_ADDRESS;
	return err;
}

/* --- after a call --------------------------------------------------------- */

/* those who are told go on: with their result, or to store an address */
static void deliver(struct accmem_columns_cta *done)
{
	struct reference_cta *wanted = &reference.cta[number(done)];
	bool over = done->call == ACCMEM_CALL_DONE;
	int result;

	must(wanted->told, "told, and there is nothing to tell");
	wanted->told = false;
	must(over || done->call == ACCMEM_CALL_RESERVED,
	     "a wait that is not over");
	/* it is on its way to store what it was told of before, or is slow */
	if (storing[number(done)] != NO_ADDRESS || (over && !below(8)))
		return;
	result = accmem_columns_collect(done);
	if (over)
		must(result == reference_collect(&reference, number(done)),
		     "another result");
	columns_world.waits_granted += !result;
	note(done, result);
}

static void judge(void)
{
	struct accmem_columns_cta *done;
	const char *what;

	while ((done = accmem_columns_next_done(&c)))
		deliver(done);
	what = reference_compare(&reference, &c, cta);
	must(!what, what ?: "");
	if (columns_world.step % columns_world_oracle_every)
		return;
	what = oracle_check(&oracle, &c);
	must(!what, what ?: "");
}

/* --- what a CTA does ------------------------------------------------------ */

static bool is_live(unsigned int i)
{
	return reference.cta[i].live;
}

/* mostly where there is room for it, sometimes where there cannot be */
static void launch(unsigned int i)
{
	struct accmem_columns_cta *x = &cta[i];

	*x = (struct accmem_columns_cta){ .sm = below(c.nr_sms) };
	x->group = 1 + (i % 4 < 2 && c.nr_sms > 1);
	x->launch = x->group;
	x->cluster = i / 4;
	x->rank = i % 4;
	switch (below(32)) {
	case 0:
		x->sm = c.nr_sms;
		break;
	case 1:
		x->group = 0;
		break;
	case 2:
		x->launch ^= 3;
		break;
	case 3:
		x->rank ^= 1;
		break;
	}
	storing[i] = NO_ADDRESS;
	told_held[i] = 0;
	both_launch(x);
}

/* mostly what it holds, sometimes anything */
static void dealloc(struct accmem_columns_cta *x)
{
	unsigned int unit, columns = 32u << below(5);

	if (!x->starts || !below(8)) {
		both_dealloc(x, below(c.columns + 64), columns, below(2));
		return;
	}
	unit = below(c.columns / 32);
	while (!((x->starts >> unit) & 1))
		unit = (unit + 1) % (c.columns / 32);
	columns = 32;
	while (both_dealloc(x, unit * 32, columns, below(8)) == -EMSGSIZE &&
	       columns < 512)
		columns *= 2;
}

/* whoever is told that it will be served is served, unless its peer disagrees */
static void try_alloc(struct accmem_columns_cta *x, u32 columns)
{
	bool served = accmem_columns_would_grant(&c, x, columns);
	int err;

	must(served == reference_would_grant(&reference, number(x), columns),
	     "another promise");
	err = both_alloc(x, columns, false, below(2));
	must(err != -EINPROGRESS || x->call == ACCMEM_CALL_STORED,
	     "a wait that was not wanted");
	if (x->group == 2 && err == -EBADR) /* the peer asks for others */
		return;
	must(!served || !err || err == -EINPROGRESS,
	     "not served, though it could be");
}

/* whether the address could be stored; a while after, others having called */
static void confirm(struct accmem_columns_cta *x)
{
	both_confirm(x, storing[number(x)], below(4) != 0);
}

static void alloc(struct accmem_columns_cta *x, u32 columns)
{
	bool stores = below(4) != 0;

	if (!both_alloc(x, columns, true, stores) && stores && below(2))
		confirm(x);
}

/* the call that the peer waits for */
static void join(struct accmem_columns_cta *x)
{
	struct accmem_columns_cta *peer = x->peer;

	if (peer->call == ACCMEM_CALL_JOIN_ALLOC && !below(4))
		try_alloc(x, peer->columns);
	else if (peer->call == ACCMEM_CALL_JOIN_ALLOC)
		alloc(x, peer->columns);
	else
		both_dealloc(x, peer->address, peer->columns, true);
}

static bool is_awaited(const struct accmem_columns_cta *x)
{
	return x->call == ACCMEM_CALL_NONE && x->peer &&
	       accmem_columns_waiting(x->peer);
}

/* who has given up comes back, and somebody else has its columns by then */
static void come_back(struct accmem_columns_cta *x, u32 columns)
{
	u32 i;

	for (i = 0; i < CTAS; i++) {
		if (!is_live(i) || cta[i].sm != x->sm || cta[i].group == 2 ||
		    cta[i].call != ACCMEM_CALL_NONE)
			continue;
		both_alloc(&cta[i], 32, false, false);
		break;
	}
	both_alloc(x, columns, true, true);
}

static void give_up(struct accmem_columns_cta *x)
{
	bool again = is_reserved(x) && x->group == 2 && below(2);

	must(both_cancel(x), "cannot be cancelled");
	if (again)
		come_back(x, x->columns);
}

/* a second call while one waits, or the end of the wait */
static void disturb(struct accmem_columns_cta *x)
{
	switch (below(16)) {
	case 0:
		must(both_alloc(x, 32, true, false) == -EBUSY,
		     "two calls at once");
		return;
	case 1:
		must(both_dealloc(x, 0, 32, true) == -EBUSY,
		     "two calls at once");
		return;
	case 2:
		both_relinquish(x);
		return;
	case 3:
	case 4:
		give_up(x);
		return;
	}
}

/* the thread that was told of an address, or of the end of its wait */
static void go_on(struct accmem_columns_cta *x)
{
	if (storing[number(x)] != NO_ADDRESS)
		confirm(x);
	else
		both_confirm(x, 0, below(2));
}

/* mostly what rule P8 lets it ask for */
static u32 some_columns(const struct accmem_columns_cta *x)
{
	u32 columns = 32u << below(sizes);

	while (columns > x->last && x->last && below(8))
		columns /= 2;
	return columns;
}

/* it, or its peer, can give back, and go */
static void call_last(struct accmem_columns_cta *x)
{
	if (!x->relinquished && below(2)) {
		both_alloc(x, 32, true, true);
		return;
	}
	switch (below(8)) {
	case 0:
	case 1:
		both_alloc(x, 32, true, true);
		return;
	case 2:
		both_exit(x);
		return;
	default:
		dealloc(x);
	}
}

static void call(struct accmem_columns_cta *x)
{
	switch (below(16)) {
	case 0:
		if (below(8) >= greed)
			both_exit(x);
		return;
	case 1:
		if (c.exclusive && !below(2))
			both_relinquish(x);
		return;
	case 2:
		if (!below(8))
			both_relinquish(x);
		return;
	case 3:
	case 4:
	case 5:
	case 6:
		if (below(8) < greed)
			alloc(x, some_columns(x));
		else
			dealloc(x);
		return;
	case 7:
		both_alloc(x, below(700), below(2), below(2));
		return;
	case 8:
	case 9:
		try_alloc(x, some_columns(x));
		return;
	default:
		alloc(x, some_columns(x));
	}
}

static void one_call(unsigned int i)
{
	struct accmem_columns_cta *x = &cta[i];

	if (!is_live(i))
		launch(i);
	else if (x->call == ACCMEM_CALL_DONE && !below(8))
		both_exit(x);
	else if ((storing[i] != NO_ADDRESS || x->call == ACCMEM_CALL_DONE) &&
		 below(2))
		go_on(x);
	else if (accmem_columns_waiting(x))
		disturb(x);
	else if (is_awaited(x) && below(3))
		join(x);
	else if (x->relinquished || (x->peer && x->peer->relinquished))
		call_last(x);
	else if (!is_awaited(x) || below(2))
		call(x);
}

/* --- a world -------------------------------------------------------------- */

static bool is_reset(int err)
{
	return err == -ECONNRESET;
}

/* everything fails, and nobody is left waiting */
static void end_of_the_context(void)
{
	struct accmem_columns_cta late = { .group = 1 };
	u32 i;

	for (i = 0; i < CTAS; i++)
		columns_world.resets_of_reserved += is_live(i) &&
						    is_reserved(&cta[i]);
	accmem_columns_reset(&c);
	reference_reset(&reference);
	columns_world.resets++;
	judge();
	must(is_reset(accmem_columns_launch(&c, &late)), "a late launch");
	for (i = 0; i < CTAS; i++) {
		struct accmem_columns_cta *x = &cta[i];

		if (!is_live(i))
			continue;
		must(!accmem_columns_would_grant(&c, x, 32), "a late promise");
		must(is_reset(both_alloc(x, 32, true, false)), "a late alloc");
		must(is_reset(both_dealloc(x, 0, 32, true)), "a late dealloc");
		must(is_reset(both_relinquish(x)), "a late relinquish");
	}
}

static void everybody_leaves(void)
{
	u32 i;

	for (i = 0; i < CTAS; i++) {
		if (!is_live(i))
			continue;
		both_cancel(&cta[i]);
		both_exit(&cta[i]);
		judge();
	}
	for (i = 0; i < c.nr_sms; i++)
		must(accmem_columns_free(&c, i) == c.columns, "columns lost");
}

static void begin(void)
{
	u32 columns = 32 * (1 + below(below(4) ? 18 : 64));
	u32 nr_sms = 1 + below(ORACLE_SMS), bound = below(2) ? below(5) : 64;
	bool exclusive = below(3) == 0;
	u32 i;

	must(accmem_columns_init(&c, sms, 1, columns + 1, false, 0) == -EINVAL,
	     "columns that are no units");
	must(!accmem_columns_init(&c, sms, nr_sms, columns, exclusive, bound),
	     "init");
	reference_init(&reference, nr_sms, columns, exclusive, bound);
	memset(told_held, 0, sizeof(told_held));
	c.held_changed = held_changed;
	for (i = 0; i < nr_sms; i++)
		sms[i].watched = true;
	greed = below(8);
	sizes = 1 + below(5);
	nr_ctas = below(2) ? 2 + below(6) : CTAS;
}

void columns_world_play(unsigned int calls)
{
	const struct accmem_columns_cta *permit;
	u32 i;

	begin();
	for (i = 0; i < calls; i++, columns_world.step++) {
		permit = sms[0].permit;
		one_call(below(nr_ctas));
		columns_world.permits_handed_on += permit && sms[0].permit &&
						   sms[0].permit != permit;
		/* results wait until somebody looks */
		if (below(8))
			judge();
	}
	judge();
	if (!below(4))
		end_of_the_context();
	everybody_leaves();
}
