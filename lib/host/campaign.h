/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Programs with a random campaign: what they are told (--ops N and --seed S), worlds. */
#ifndef CAMPAIGN_H
#define CAMPAIGN_H

#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rng.h"

/* False if that is not what the arguments are: the usage has been printed. */
static inline bool campaign_options(int argc, char **argv, u64 *ops, u64 *seed)
{
	int i;

	for (i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--ops"))
			*ops = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--seed"))
			*seed = strtoull(argv[i + 1], NULL, 0);
		else
			break;
	}
	if (i == argc)
		return true;
	fprintf(stderr, "usage: %s [--ops N] [--seed S]\n", argv[0]);
	return false;
}

/* One world after the other, of @a_world calls; one that disagrees ends the program. */
static inline void
campaign_worlds(const char *what, u64 ops, u64 seed, u64 a_world,
		void (*run)(const char *origin, struct rng *draw, u64 calls))
{
	struct rng draw = {};
	char origin[80];
	u64 done;

	printf("%s: %llu operations, seed %llu\n", what, ops, seed);
	fflush(stdout);
	for (done = 0; done < ops; done += a_world) {
		draw.state = seed + done / a_world;
		snprintf(origin, sizeof(origin), "--ops %llu --seed %llu",
			 a_world, draw.state);
		run(origin, &draw, a_world);
	}
}

#endif /* CAMPAIGN_H */
