// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Random calls by many CTAs on a few SMs, in settings drawn at random, each
 * result held against the oracle; at the end everybody leaves, and every column
 * is free.
 *
 * Arguments: calls (200000), seed (from the clock).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/bitops.h>
#include <linux/list.h>

#include "../../tests/columns_oracle.h"

#define CTAS 24
#define ROUND 500 /* calls in one setting */

static struct accmem_columns c;
static struct accmem_columns_sm sms[ORACLE_SMS];
static struct accmem_columns_cta cta[CTAS];
static bool live[CTAS];
static struct oracle oracle;
static unsigned long long state, seed, step;
static unsigned long long grants, refusals, timeouts;

static unsigned int below(unsigned int n)
{
	unsigned long long z = state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) % n;
}

static void must(bool condition, const char *what)
{
	if (condition)
		return;
	printf("not ok storm: %s (seed %llu, step %llu)\n", what, seed, step);
	printf("0 passed, 1 failed\n");
	exit(1);
}

static void count(int result)
{
	grants += !result;
	refusals += result == -EDEADLK;
}

static void judge(void)
{
	struct accmem_columns_cta *done;
	const char *what;

	while ((done = accmem_columns_next_done(&c))) {
		must(done->call == ACCMEM_CALL_DONE, "a wait that is not over");
		count(accmem_columns_collect(done));
	}
	what = oracle_check(&oracle, &c);
	must(!what, what ?: "");
}

static void launch(unsigned int i)
{
	cta[i] = (struct accmem_columns_cta){ .sm = below(c.nr_sms) };
	cta[i].group = 1 + (i % 4 < 2 && c.nr_sms > 1);
	cta[i].launch = cta[i].group;
	cta[i].cluster = i / 4;
	cta[i].rank = i % 4;
	live[i] = !accmem_columns_launch(&c, &cta[i]);
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
	do {
		unit = below(c.columns / 32);
	} while (!((x->starts >> unit) & 1));
	columns = 32;
	while (accmem_columns_dealloc(&c, x, unit * 32, columns, true) ==
		       -EMSGSIZE &&
	       columns < 512)
		columns *= 2;
}

static void one_call(unsigned int i)
{
	struct accmem_columns_cta *x = &cta[i];

	if (!live[i]) {
		launch(i);
		return;
	}
	if (accmem_columns_waiting(x)) {
		if (below(4))
			return;
		must(accmem_columns_cancel(&c, x), "cannot be cancelled");
		timeouts++;
		return;
	}
	switch (below(16)) {
	case 0:
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
		dealloc(x);
		return;
	case 7:
		accmem_columns_alloc(&c, x, below(700), below(2));
		return;
	default:
		count(accmem_columns_alloc(&c, x, 32u << below(5),
					   below(4) > 0));
	}
}

static void play_round(void)
{
	u32 i, columns = 32 * (1 + below(below(4) ? 18 : 64));

	memset(live, 0, sizeof(live));
	must(!accmem_columns_init(&c, sms, 1 + below(ORACLE_SMS), columns,
				  below(3) == 0, below(2) ? below(5) : 64),
	     "init");
	for (i = 0; i < ROUND; i++, step++) {
		one_call(below(CTAS));
		judge();
	}
	if (!below(4)) {
		accmem_columns_reset(&c);
		judge();
	}
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

int main(int argc, char **argv)
{
	unsigned long long most = argc > 1 ? strtoull(argv[1], NULL, 0) :
					     200000;

	seed = argc > 2 ? strtoull(argv[2], NULL, 0) :
			  (unsigned long long)time(NULL);
	state = seed;
	printf("seed %llu, %llu calls\n", seed, most);
	while (step < most)
		play_round();
	printf("ok storm: %llu grants, %llu EDEADLK, %llu given up\n", grants,
	       refusals, timeouts);
	printf("1 passed, 0 failed\n");
	return 0;
}
