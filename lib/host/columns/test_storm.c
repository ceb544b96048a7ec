// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Random calls by many CTAs on a few SMs, in settings drawn at random. Each thing
 * that can happen has to.
 *
 * Arguments: calls (200000), seed (from the clock), after how many calls the
 * reference is asked whether anything is left to do (1).
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../rng.h"
#include "world.h"

#define ROUND 500 /* calls in one setting */
#define ENOUGH 200000 /* calls in which everything happens */

static struct rng draw;
static unsigned long long seed;

unsigned int below(unsigned int n)
{
	return rng_below(&draw, n);
}

void must(bool condition, const char *what)
{
	if (condition)
		return;
	printf("not ok storm: %s (seed %llu, step %llu)\n", what, seed,
	       columns_world.step);
	printf("0 passed, 1 failed\n");
	exit(1);
}

/* how often each has happened; false when one never has */
static bool report(void)
{
	const struct columns_event *event;
	bool all = true;

	for (event = columns_events; event->name; event++) {
		printf("# %s: %llu\n", event->name, *event->count);
		all = all && *event->count;
	}
	return all;
}

int main(int argc, char **argv)
{
	unsigned long long most = argc > 1 ? strtoull(argv[1], NULL, 0) :
					     ENOUGH;
	unsigned long long mark = 100000000;

	setvbuf(stdout, NULL, _IOLBF, 0);
	seed = argc > 2 ? strtoull(argv[2], NULL, 0) :
			  (unsigned long long)time(NULL);
	if (argc > 3)
		columns_world_check_every = atoi(argv[3]);
	draw.state = seed;
	printf("seed %llu, %llu calls\n", seed, most);
	while (columns_world.step < most) {
		columns_world_play(ROUND);
		if (columns_world.step < mark)
			continue;
		printf("# %llu calls\n", columns_world.step);
		mark += 100000000;
	}
	if (!report() && most >= ENOUGH)
		must(false, "something never happened");
	printf("ok storm: %llu calls, no difference\n", columns_world.step);
	printf("1 passed, 0 failed\n");
	return 0;
}
