// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Many CTAs on a few SMs, in a setting drawn by the program around it: each
 * result is held against the oracle; at the end everybody leaves, and every
 * column is free.
 */
#include <errno.h>
#include <string.h>

#include <linux/bitops.h>
#include <linux/list.h>

#include "../../tests/columns_oracle.h"
#include "world.h"

#define CTAS 24

static struct accmem_columns c;
static struct accmem_columns_sm sms[ORACLE_SMS];
static struct accmem_columns_cta cta[CTAS];
static bool live[CTAS];
static struct oracle oracle;
static unsigned int greed; /* of eight that would give back, so many ask */

struct columns_world columns_world;

static void count(int result)
{
	columns_world.grants += !result;
	columns_world.refusals += result == -EDEADLK;
}

static void judge(void)
{
	struct accmem_columns_cta *done;
	const char *what;

	while ((done = accmem_columns_next_done(&c))) {
		must(done->call == ACCMEM_CALL_DONE ||
			     done->call == ACCMEM_CALL_RESERVED,
		     "a wait that is not over");
		if (done->call == ACCMEM_CALL_DONE)
			count(accmem_columns_collect(done));
	}
	what = oracle_check(&oracle, &c);
	must(!what, what ?: "");
}

/* mostly where there is room for it, sometimes where there cannot be */
static void launch(unsigned int i)
{
	int err;

	cta[i] = (struct accmem_columns_cta){ .sm = below(c.nr_sms) };
	cta[i].group = 1 + (i % 4 < 2 && c.nr_sms > 1);
	cta[i].launch = cta[i].group;
	cta[i].cluster = i / 4;
	cta[i].rank = i % 4;
	switch (below(32)) {
	case 0:
		cta[i].sm = c.nr_sms;
		break;
	case 1:
		cta[i].group = 0;
		break;
	case 2:
		cta[i].launch ^= 3;
		break;
	case 3:
		cta[i].rank ^= 1;
		break;
	}
	err = accmem_columns_launch(&c, &cta[i]);
	must(err == (cta[i].sm == c.nr_sms ? -ENXIO : err), "no such SM");
	must(cta[i].group || err == -EINVAL, "no such group");
	live[i] = !err;
}

/* mostly what it holds, sometimes anything */
static void dealloc(struct accmem_columns_cta *x)
{
	unsigned int unit, columns = 32u << below(5);

	if (!x->starts || !below(8)) {
		accmem_columns_dealloc(&c, x, below(c.columns + 64), columns,
				       below(2));
		return;
	}
	unit = below(c.columns / 32);
	while (!((x->starts >> unit) & 1))
		unit = (unit + 1) % (c.columns / 32);
	columns = 32;
	while (accmem_columns_dealloc(&c, x, unit * 32, columns, true) ==
		       -EMSGSIZE &&
	       columns < 512)
		columns *= 2;
}

/* whoever is told that it will be served is served, unless its peer disagrees */
static void try_alloc(struct accmem_columns_cta *x, u32 columns)
{
	bool served = accmem_columns_would_grant(&c, x, columns);
	int err = accmem_columns_alloc(&c, x, columns, false);

	count(err);
	must(err != -EINPROGRESS || x->call == ACCMEM_CALL_STORED,
	     "a wait that was not wanted");
	must(!served || !err || err == -EINPROGRESS ||
		     (x->group == 2 && err == -EBADR),
	     "not served, though it could be");
}

/* whether the address could be stored; a while after, others having called */
static void confirm(struct accmem_columns_cta *x)
{
	count(accmem_columns_confirm(&c, x, x->address, below(8)));
}

static void alloc(struct accmem_columns_cta *x, u32 columns)
{
	if (below(2)) {
		count(accmem_columns_alloc(&c, x, columns, true));
		return;
	}
	if (!accmem_columns_reserve(&c, x, columns, true) && below(4))
		confirm(x);
}

/* the call that the peer waits for */
static void join(struct accmem_columns_cta *x)
{
	struct accmem_columns_cta *peer = x->peer;

	if (peer->call == ACCMEM_CALL_JOIN_ALLOC)
		alloc(x, peer->columns);
	else
		accmem_columns_dealloc(&c, x, peer->address, peer->columns,
				       true);
}

static bool is_awaited(const struct accmem_columns_cta *x)
{
	return x->call == ACCMEM_CALL_NONE && x->peer &&
	       accmem_columns_waiting(x->peer);
}

/* a second call while one waits, or the end of the wait */
static void disturb(struct accmem_columns_cta *x)
{
	switch (below(8)) {
	case 0:
		must(accmem_columns_alloc(&c, x, 32, true) == -EBUSY,
		     "two calls at once");
		return;
	case 1:
		must(accmem_columns_dealloc(&c, x, 0, 32, true) == -EBUSY,
		     "two calls at once");
		return;
	case 2:
		accmem_columns_relinquish(&c, x);
		return;
	case 3:
		must(accmem_columns_cancel(&c, x), "cannot be cancelled");
		columns_world.timeouts++;
		return;
	}
}

/* mostly what rule P8 lets it ask for */
static u32 some_columns(const struct accmem_columns_cta *x)
{
	u32 columns = 32u << below(5);

	while (columns > x->last && x->last && below(8))
		columns /= 2;
	return columns;
}

static void one_call(unsigned int i)
{
	struct accmem_columns_cta *x = &cta[i];

	if (!live[i]) {
		launch(i);
		return;
	}
	if ((x->call == ACCMEM_CALL_RESERVED && below(4)) ||
	    x->call == ACCMEM_CALL_DONE) {
		confirm(x);
		return;
	}
	if (accmem_columns_waiting(x)) {
		disturb(x);
		return;
	}
	if (is_awaited(x) && below(4)) {
		join(x);
		return;
	}
	switch (below(16)) {
	case 0:
		if (below(8) < greed)
			return;
		accmem_columns_exit(&c, x);
		live[i] = false;
		return;
	case 1:
		accmem_columns_relinquish(&c, x);
		return;
	case 2:
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
		accmem_columns_alloc(&c, x, below(700), below(2));
		return;
	case 8:
	case 9:
		try_alloc(x, some_columns(x));
		return;
	default:
		alloc(x, some_columns(x));
	}
}

static bool is_reset(int err)
{
	return err == -ECONNRESET;
}

/* everything fails, and nobody is left waiting */
static void end_of_the_context(void)
{
	struct accmem_columns_cta late = { .group = 1 };
	u32 i;

	accmem_columns_reset(&c);
	judge();
	must(is_reset(accmem_columns_launch(&c, &late)), "a late launch");
	for (i = 0; i < CTAS; i++) {
		struct accmem_columns_cta *x = &cta[i];

		if (!live[i])
			continue;
		must(!accmem_columns_would_grant(&c, x, 32), "a late promise");
		must(is_reset(accmem_columns_alloc(&c, x, 32, true)),
		     "a late alloc");
		must(is_reset(accmem_columns_dealloc(&c, x, 0, 32, true)),
		     "a late dealloc");
		must(is_reset(accmem_columns_relinquish(&c, x)),
		     "a late relinquish");
	}
}

void columns_world_play(unsigned int calls)
{
	u32 i, columns = 32 * (1 + below(below(4) ? 18 : 64));

	memset(live, 0, sizeof(live));
	must(accmem_columns_init(&c, sms, 1, columns + 1, false, 0) == -EINVAL,
	     "columns that are no units");
	must(!accmem_columns_init(&c, sms, 1 + below(ORACLE_SMS), columns,
				  below(3) == 0, below(2) ? below(5) : 64),
	     "init");
	greed = below(8);
	for (i = 0; i < calls; i++, columns_world.step++) {
		one_call(below(CTAS));
		/* results wait until somebody looks */
		if (below(8))
			judge();
	}
	judge();
	if (!below(4))
		end_of_the_context();
	for (i = 0; i < CTAS; i++) {
		if (!live[i])
			continue;
		accmem_columns_cancel(&c, &cta[i]);
		accmem_columns_exit(&c, &cta[i]);
		live[i] = false;
		judge();
	}
	for (i = 0; i < c.nr_sms; i++)
		must(accmem_columns_free(&c, i) == columns, "columns lost");
}
