// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Many CTAs on a few SMs, in a setting drawn by the program around it. Every
 * call is made to the arbiter and to the reference, as both.c does. At the end
 * everybody leaves, and every column is free.
 */
#include <errno.h>

#include "both.h"
#include "world.h"

static unsigned int nr_ctas; /* that may be launched */
static unsigned int greed; /* of eight that would give back, so many ask */
static unsigned int sizes; /* how many of 32, 64, ... are asked for */

struct columns_world columns_world;
unsigned int columns_world_check_every = 1;

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

/* --- after a call --------------------------------------------------------- */

/* those who are told go on: with their result, or to store an address */
static void deliver(struct accmem_columns_cta *done)
{
	struct reference_cta *wanted = &both.reference.cta[number(done)];
	bool over = done->call == ACCMEM_CALL_DONE;
	int result;

	must(wanted->told, "told, and there is nothing to tell");
	wanted->told = false;
	must(over || done->call == ACCMEM_CALL_RESERVED,
	     "a wait that is not over");
	/* it is on its way to store what it was told of before, or is slow */
	if (both.storing[number(done)] != NO_ADDRESS || (over && !below(8)))
		return;
	result = accmem_columns_collect(done);
	if (over)
		must(result == reference_collect(&both.reference, number(done)),
		     "another result");
	columns_world.waits_granted += !result;
	both_note(done, result);
}

static void judge(void)
{
	struct accmem_columns_cta *done;
	const char *what;

	while ((done = accmem_columns_next_done(&both.c)))
		deliver(done);
	what = both_compare();
	must(!what, what ?: "");
	if (columns_world.step % columns_world_check_every)
		return;
	what = reference_check_rest(&both.reference);
	must(!what, what ?: "");
}

/* --- what a CTA does ------------------------------------------------------ */

static bool is_live(unsigned int i)
{
	return both.reference.cta[i].live;
}

/* mostly where there is room for it, sometimes where there cannot be */
static void launch(unsigned int i)
{
	struct accmem_columns_cta *x = &both.cta[i];

	*x = (struct accmem_columns_cta){ .sm = below(both.c.nr_sms) };
	x->group = 1 + (i % 4 < 2 && both.c.nr_sms > 1);
	x->launch = x->group;
	x->cluster = i / 4;
	x->rank = i % 4;
	switch (below(32)) {
	case 0:
		x->sm = both.c.nr_sms;
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
	both.storing[i] = NO_ADDRESS;
	both.told_held[i] = 0;
	both.denied[i] = false;
	both_launch(x);
}

/* mostly what it holds, sometimes anything */
static void dealloc(struct accmem_columns_cta *x)
{
	unsigned int unit, columns = 32u << below(5);

	if (!x->starts || !below(8)) {
		both_dealloc(x, below(both.c.columns + 64), columns, below(2));
		return;
	}
	unit = below(both.c.columns / 32);
	while (!((x->starts >> unit) & 1))
		unit = (unit + 1) % (both.c.columns / 32);
	columns = 32;
	while (both_dealloc(x, unit * 32, columns, below(8)) == -EMSGSIZE &&
	       columns < 512)
		columns *= 2;
}

/* whoever is told that it will be served is served, unless its peer disagrees */
static void try_alloc(struct accmem_columns_cta *x, u32 columns)
{
	bool served = both_would_grant(x, columns);
	int err = both_alloc(x, columns, false, below(2));

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
	both_confirm(x, both.storing[number(x)], below(4) != 0);
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

	for (i = 0; i < REFERENCE_CTAS; i++) {
		if (!is_live(i) || both.cta[i].sm != x->sm ||
		    both.cta[i].group == 2 ||
		    both.cta[i].call != ACCMEM_CALL_NONE)
			continue;
		both_alloc(&both.cta[i], 32, false, false);
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
	if (both.storing[number(x)] != NO_ADDRESS)
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
		if (both.c.exclusive && !below(2))
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
	struct accmem_columns_cta *x = &both.cta[i];

	if (!is_live(i))
		launch(i);
	else if (x->call == ACCMEM_CALL_DONE && !below(8))
		both_exit(x);
	else if ((both.storing[i] != NO_ADDRESS ||
		  x->call == ACCMEM_CALL_DONE) &&
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

	for (i = 0; i < REFERENCE_CTAS; i++)
		columns_world.resets_of_reserved += is_live(i) &&
						    is_reserved(&both.cta[i]);
	both_reset();
	judge();
	must(is_reset(accmem_columns_launch(&both.c, &late)), "a late launch");
	for (i = 0; i < REFERENCE_CTAS; i++) {
		struct accmem_columns_cta *x = &both.cta[i];

		if (!is_live(i))
			continue;
		must(!accmem_columns_would_grant(&both.c, x, 32),
		     "a late promise");
		must(is_reset(both_alloc(x, 32, true, false)), "a late alloc");
		must(is_reset(both_dealloc(x, 0, 32, true)), "a late dealloc");
		must(is_reset(both_relinquish(x)), "a late relinquish");
	}
}

static void everybody_leaves(void)
{
	u32 i;

	for (i = 0; i < REFERENCE_CTAS; i++) {
		if (!is_live(i))
			continue;
		both_cancel(&both.cta[i]);
		both_exit(&both.cta[i]);
		judge();
	}
	for (i = 0; i < both.c.nr_sms; i++)
		must(accmem_columns_free(&both.c, i) == both.c.columns,
		     "columns lost");
}

static void begin(void)
{
	u32 columns = 32 * (1 + below(below(4) ? 18 : 64));
	u32 nr_sms = 1 + below(REFERENCE_SMS), bound = below(2) ? below(5) : 64;
	bool exclusive = below(3) == 0;

	both_init(nr_sms, columns, exclusive, bound);
	greed = below(8);
	sizes = 1 + below(5);
	nr_ctas = below(2) ? 2 + below(6) : REFERENCE_CTAS;
}

void columns_world_play(unsigned int calls)
{
	const struct accmem_columns_cta *permit;
	u32 i;

	begin();
	for (i = 0; i < calls; i++, columns_world.step++) {
		permit = both.sms[0].permit;
		one_call(below(nr_ctas));
		columns_world.permits_handed_on += permit &&
						   both.sms[0].permit &&
						   both.sms[0].permit != permit;
		/* results wait until somebody looks */
		if (below(8))
			judge();
	}
	judge();
	if (!below(4))
		end_of_the_context();
	everybody_leaves();
}
