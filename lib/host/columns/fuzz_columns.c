// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * libFuzzer target: each choice of the world is drawn from the input, which
 * is as many calls as it has bytes. A result that the reference does not
 * give is a crash.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../rng.h"
#include "world.h"

static struct rng draw;

unsigned int below(unsigned int n)
{
	return rng_below(&draw, n);
}

void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	draw = (struct rng){ .input = data, .left = size };
	columns_world_play(size);
	return 0;
}
