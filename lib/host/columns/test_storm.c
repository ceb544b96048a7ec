// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Random calls by many CTAs on a few SMs, in settings drawn at random.
 *
 * Arguments: calls (200000), seed (from the clock).
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../model.h"
#include "world.h"

#define ROUND 500 /* calls in one setting */

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

int main(int argc, char **argv)
{
	unsigned long long most = argc > 1 ? strtoull(argv[1], NULL, 0) :
					     200000;

	seed = argc > 2 ? strtoull(argv[2], NULL, 0) :
			  (unsigned long long)time(NULL);
	draw.state = seed;
	printf("seed %llu, %llu calls\n", seed, most);
	while (columns_world.step < most)
		columns_world_play(ROUND);
	printf("ok storm: %llu grants, %llu EDEADLK, %llu given up\n",
	       columns_world.grants, columns_world.refusals,
	       columns_world.timeouts);
	printf("1 passed, 0 failed\n");
	return 0;
}
