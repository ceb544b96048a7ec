// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The allocator agrees with the naive reference after every one of many random
 * calls, in many small ranges one after the other.
 */
#include <stdio.h>
#include <time.h>

#include "../campaign.h"
#include "world.h"

#define OPS_A_WORLD 2000

int main(int argc, char **argv)
{
	u64 ops = 300000, seed = time(NULL), done, said = 0;
	time_t last = time(NULL);
	struct rng draw = {};
	char origin[80];

	if (!campaign_options(argc, argv, &ops, &seed))
		return 2;
	printf("property: %llu operations, seed %llu\n", ops, seed);
	fflush(stdout);
	for (done = 0; done < ops; done += OPS_A_WORLD) {
		draw.state = seed + done / OPS_A_WORLD;
		snprintf(origin, sizeof(origin), "--ops %u --seed %llu",
			 OPS_A_WORLD, draw.state);
		world_run(origin, &draw, OPS_A_WORLD);
		if (time(NULL) - last < 5 || done == said)
			continue;
		last = time(NULL);
		said = done;
		fprintf(stderr, "property: %llu of %llu\n", done, ops);
	}
	printf("property: agrees with the reference after each of %llu operations\n",
	       done);
	printf("1 passed, 0 failed\n");
	return 0;
}
