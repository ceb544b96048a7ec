// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * How many queued requests and CTAs one call looks at, in settings made to be hard, and
 * beside many that wait on other SMs: counted, so that the figures are the same
 * everywhere. The limits of the former are a quarter above what they were when this was
 * written.
 */
#include <linux/errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/columns/columns.h"

#define SMS 256u /* ACCMEM_TMEM_SMS_MAX */
#define CTAS 8192u /* ACCMEM_TMEM_CTAS_MAX, of a context */
#define WAITERS 16u /* on an SM, of those beside which a call is measured */

#define HOLDERS 5 /* of 512, 256, ... 32 columns */

static struct accmem_columns c;
static struct accmem_columns_sm sms[SMS];
static struct accmem_columns_cta ctas[CTAS];
static u32 nr_ctas;
static int reported, failed;

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	printf("not ok cost: %s\n0 passed, 1 failed\n", what);
	exit(1);
}

static void begin(u32 nr_sms, u32 columns, u32 bound)
{
	must(!accmem_columns_init(&c, sms, nr_sms, columns, false, bound),
	     "an arbiter");
	nr_ctas = 0;
}

static struct accmem_columns_cta *launch(u32 sm, u32 group, u32 cluster,
					 u32 rank)
{
	struct accmem_columns_cta *cta = &ctas[nr_ctas++];

	must(nr_ctas <= CTAS, "not too many CTAs");
	*cta = (struct accmem_columns_cta){
		.launch = group,
		.cluster = cluster,
		.rank = rank,
		.sm = sm,
		.group = group,
	};
	must(!accmem_columns_launch(&c, cta), "a launch");
	return cta;
}

/* A CTA alone has a cluster of its own. */
static struct accmem_columns_cta *launch_one(u32 sm)
{
	return launch(sm, 1, CTAS + nr_ctas, 0);
}

static u32 take(struct accmem_columns_cta *cta, u32 columns)
{
	must(!accmem_columns_alloc(&c, cta, columns, false), "an alloc");
	return cta->address;
}

static void wait(struct accmem_columns_cta *cta, u32 columns)
{
	must(accmem_columns_alloc(&c, cta, columns, true) == -EINPROGRESS,
	     "a wait");
}

static void give_back(struct accmem_columns_cta *cta, u32 address)
{
	must(!accmem_columns_dealloc(&c, cta, address, ACCMEM_COLUMNS_UNIT,
				     false),
	     "a dealloc");
}

/* Looks since there were @before, for all that are queued */
static void report(const char *name, u64 before, u64 limit)
{
	u64 checks = c.checks - before;
	bool ok = checks <= limit;

	must(!c.deadlocks && list_empty(&c.done), "all go on waiting");
	failed += !ok;
	reported++;
	printf("%s cost=%s queued=%u checks=%llu limit=%llu\n",
	       ok ? "ok" : "not ok", name, c.nr_queued,
	       (unsigned long long)checks, (unsigned long long)limit);
}

/* Unit k mod 3 of the SMs that pair k is on, which has no other choice */
static struct accmem_columns_cta *make_pair(u32 k, u32 nr)
{
	struct accmem_columns_cta *filler = launch_one((k + 1) % nr), *pair;
	u32 unit, at, taken = 0;

	while (!accmem_columns_alloc(&c, filler, ACCMEM_COLUMNS_UNIT, false)) {
		unit = filler->address / ACCMEM_COLUMNS_UNIT;
		taken |= 1 << unit;
	}
	at = k % 3 * ACCMEM_COLUMNS_UNIT;
	must(taken & 1 << k % 3, "the unit is free");
	give_back(filler, at);
	pair = launch(k, 2, k, 0);
	launch((k + 1) % nr, 2, k, 1);
	wait(pair, ACCMEM_COLUMNS_UNIT);
	must(!accmem_columns_alloc(&c, pair->peer, ACCMEM_COLUMNS_UNIT, true),
	     "a pair's alloc");
	must(accmem_columns_next_done(&c) == pair, "and of the other");
	must(!accmem_columns_collect(pair) && pair->address == at,
	     "it is where it was to be");
	accmem_columns_exit(&c, filler);
	return pair;
}

/*
 * A ring of pairs on SMs of three units. What pair k wants, a unit of both, is
 * there as soon as a neighbour goes. Only one does not wait, those beside it came
 * last, and those opposite first: each can be met only after nearly all that came
 * later.
 */
static void a_ring_of_pairs(void)
{
	static const u32 nr = SMS - SMS % 3;
	struct accmem_columns_cta *pair[SMS];
	u64 before = 0;
	u32 k, i;

	begin(nr, 3 * ACCMEM_COLUMNS_UNIT, 64);
	for (k = 0; k < nr; k++)
		pair[k] = make_pair(k, nr);
	for (i = 0; i < nr - 1; i++) {
		k = i & 1 ? nr / 2 + (i + 1) / 2 : nr / 2 - i / 2;
		wait(pair[k], ACCMEM_COLUMNS_UNIT);
		before = c.checks;
		wait(pair[k]->peer, ACCMEM_COLUMNS_UNIT);
	}
	report("ring-of-pairs", before, 3172);
}

/*
 * Each of the CTAs that hold an SM wants as many columns again as it has, and can
 * get them when all that came later have gone. Those that hold nothing want what
 * is there only when all have.
 */
static void units_come_back_one_by_one(void)
{
	struct accmem_columns_cta *holder[HOLDERS], *other;
	u32 k, columns = ACCMEM_COLUMNS_MAX;
	u64 before;

	begin(1, 2 * columns, 64);
	for (k = 0; k < HOLDERS; k++) {
		holder[k] = launch_one(0);
		take(holder[k], columns >> k);
	}
	other = launch_one(0);
	take(other, ACCMEM_COLUMNS_UNIT);
	while (nr_ctas < CTAS)
		wait(launch_one(0), ACCMEM_COLUMNS_MAX);
	before = c.checks;
	report("nobody-who-holds-waits", before, 0);
	for (k = 0; k < HOLDERS; k++) {
		before = c.checks;
		wait(holder[k], columns >> k);
	}
	report("units-one-by-one", before, 81910);
}

/* Nothing may be passed: each request holds up all that came later. */
static void every_request_is_at_its_bound(void)
{
	struct accmem_columns_cta *holder, *other;
	u64 before = 0;

	begin(1, ACCMEM_COLUMNS_MAX, 0);
	holder = launch_one(0);
	other = launch_one(0);
	take(holder, ACCMEM_COLUMNS_MAX / 2);
	take(other, ACCMEM_COLUMNS_UNIT);
	wait(holder, ACCMEM_COLUMNS_MAX / 2);
	while (nr_ctas < CTAS / 4) {
		before = c.checks;
		wait(launch_one(0), ACCMEM_COLUMNS_MAX);
	}
	report("every-request-at-its-bound", before, 15358);
}

/* Many requests reach their deadline, and leave the queue one after another. */
static void requests_that_time_out(void)
{
	struct accmem_columns_cta *holder;
	u32 k, first;
	u64 before;

	begin(1, 2 * ACCMEM_COLUMNS_UNIT, 64);
	holder = launch_one(0);
	take(holder, ACCMEM_COLUMNS_UNIT);
	take(launch_one(0), ACCMEM_COLUMNS_UNIT);
	for (first = nr_ctas; nr_ctas < CTAS;)
		wait(launch_one(0), ACCMEM_COLUMNS_UNIT);
	wait(holder, ACCMEM_COLUMNS_UNIT);
	before = c.checks;
	for (k = first; k < CTAS; k++)
		must(accmem_columns_cancel(&c, &ctas[k]), "a cancellation");
	report("requests-that-time-out", before, 0);
}

/* a call on the last SM, or a launch there, that is to look at nobody */
static void look_at_nobody(const char *name, u64 before)
{
	report(name, before, 0);
}

/*
 * On all SMs but the last as many wait as there can be, each of which holds a unit
 * (@holding) or none. What they do is no matter of the last SM.
 */
static void calls_beside_others(bool holding)
{
	struct accmem_columns_cta *cta, *waiter[WAITERS];
	u32 columns = WAITERS * ACCMEM_COLUMNS_UNIT, sm, k, address;
	u64 before;

	begin(SMS, columns, 64);
	for (sm = 0; sm < SMS - 1; sm++) {
		if (!holding)
			take(launch_one(sm), columns);
		for (k = 0; k < WAITERS; k++) {
			waiter[k] = launch_one(sm);
			if (holding)
				take(waiter[k], ACCMEM_COLUMNS_UNIT);
		}
		/* the last one of those that hold does not wait */
		for (k = 0; k < WAITERS - holding; k++)
			wait(waiter[k], ACCMEM_COLUMNS_UNIT);
	}
	cta = launch_one(SMS - 1);
	before = c.checks;
	address = take(cta, ACCMEM_COLUMNS_UNIT);
	look_at_nobody("alloc-beside-others", before);
	before = c.checks;
	give_back(cta, address);
	look_at_nobody("dealloc-beside-others", before);
	before = c.checks;
	accmem_columns_exit(&c, cta);
	look_at_nobody("exit-beside-others", before);
}

/* A launch looks at one CTA of its own, however many there are. */
static void launches_beside_others(void)
{
	u64 before, most = 0;

	begin(SMS, ACCMEM_COLUMNS_MAX, 64);
	while (nr_ctas < CTAS) {
		before = c.checks;
		launch_one(nr_ctas % SMS);
		if (c.checks - before > most)
			most = c.checks - before;
	}
	report("launch-beside-others", c.checks - most, 80);
}

int main(void)
{
	calls_beside_others(false);
	calls_beside_others(true);
	launches_beside_others();
	a_ring_of_pairs();
	units_come_back_one_by_one();
	every_request_is_at_its_bound();
	requests_that_time_out();
	printf("%d passed, %d failed\n", reported - failed, failed);
	return !!failed;
}
