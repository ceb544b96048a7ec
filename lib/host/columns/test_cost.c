// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * How often one call checks at a queued request in its searches for deadlocks, in
 * settings made to be hard: counted, so that the figures are the same everywhere.
 * The limits are a quarter above what they were when this was written.
 */
#include <linux/errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/columns/columns.h"

#define SMS 256u /* ACCMEM_TMEM_SMS_MAX */
#define CTAS 2048u /* ACCMEM_TMEM_CTAS_MAX, of a context */

#define HOLDERS 5 /* of 512, 256, ... 32 columns */

static struct accmem_columns c;
static struct accmem_columns_sm sms[SMS];
static struct accmem_columns_cta ctas[CTAS];
static u32 nr_ctas;
static int failed;

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

	must(!c.deadlocks && !c.done, "all go on waiting");
	failed += !ok;
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
	report("ring-of-pairs", before, 1903);
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
	report("units-one-by-one", before, 17912);
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
	while (nr_ctas < CTAS) {
		before = c.checks;
		wait(launch_one(0), ACCMEM_COLUMNS_MAX);
	}
	report("every-request-at-its-bound", before, 10234);
}

int main(void)
{
	a_ring_of_pairs();
	units_come_back_one_by_one();
	every_request_is_at_its_bound();
	printf("%d passed, %d failed\n", 4 - failed, failed);
	return !!failed;
}
