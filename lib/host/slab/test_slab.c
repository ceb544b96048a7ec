// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The slab agrees with its reference after each of many random calls; every
 * pattern of free slots of a narrow granule is placed in as the naive way
 * would; and mixed sizes share granules instead of each having its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../campaign.h"
#include "lib/slab/slab.h"
#include "world.h"

#define OPS_A_WORLD 2000
#define SLOT ((unsigned int)ACCMEM_SLAB_SLOT_SIZE)

static int passed, failed;

static void verdict(const char *name, bool ok)
{
	printf("%s slab: %s\n", ok ? "ok" : "FAILED", name);
	if (ok)
		passed++;
	else
		failed++;
}

static void agrees_with_the_reference(u64 ops, u64 seed)
{
	campaign_worlds("slab", ops, seed, OPS_A_WORLD, slab_world_run);
	verdict("agrees with the reference, at a bounded cost", true);
}

/* every word of 14 slots, the rest used, for every size in it */
static bool every_pattern_is_served(void)
{
	struct accmem_slab s;
	struct accmem_slab_granule g, *got;
	unsigned int word, n, i, run, most, offset;
	bool fits;

	for (word = 0; word < 1u << 14; word++) {
		for (n = 1; n <= 14; n++) {
			accmem_slab_init(&s);
			accmem_slab_add(&s, &g);
			if (accmem_slab_alloc(&s, 4096, 64, &offset) != &g)
				return false;
			for (most = run = i = 0; i < 14; i++) {
				if (!(word & 1u << i)) {
					run = 0;
					continue;
				}
				accmem_slab_free(&s, &g, i * SLOT, SLOT);
				run++;
				most = run > most ? run : most;
			}
			got = accmem_slab_alloc(&s, n * SLOT, 64, &offset);
			fits = n <= most;
			if (fits != !!got)
				return false;
			for (i = 0; got && i < n; i++)
				if (!(word & 1u << (offset / SLOT + i)))
					return false;
		}
	}
	return true;
}

/* blocks of every size up to half a granule, in random order, at one time */
static bool mixed_sizes_share_granules(void)
{
	enum { N = 20000 };
	struct accmem_slab_granule *g = calloc(N, sizeof(*g));
	struct rng r = { .state = 7 };
	unsigned int nr = 0, offset, size, i;
	u64 asked = 0;
	struct accmem_slab s;

	if (!g)
		abort();
	accmem_slab_init(&s);
	for (i = 0; i < N; i++) {
		size = SLOT * (1 + rng_below(&r, 32) * rng_below(&r, 32) / 32);
		asked += size;
		while (!accmem_slab_alloc(&s, size, 64, &offset))
			accmem_slab_add(&s, &g[nr++]);
	}
	free(g);
	printf("slab: %llu bytes in %u granules, ratio %.4f\n", asked, nr,
	       nr * 4096.0 / asked);
	return nr * 4096.0 <= asked * 1.01;
}

/* a hole that fits exactly is taken before a longer run is cut */
static bool exact_holes_first(void)
{
	struct accmem_slab s;
	struct accmem_slab_granule g;
	unsigned int offset;

	accmem_slab_init(&s);
	accmem_slab_add(&s, &g);
	accmem_slab_alloc(&s, 4096, 64, &offset);
	accmem_slab_free(&s, &g, 3 * SLOT, 9 * SLOT);
	accmem_slab_free(&s, &g, 40 * SLOT, 4 * SLOT);
	return accmem_slab_alloc(&s, 4 * SLOT, 64, &offset) == &g &&
	       offset == 40 * SLOT;
}

int main(int argc, char **argv)
{
	u64 ops = 300000, seed = time(NULL);

	if (!campaign_options(argc, argv, &ops, &seed))
		return 2;
	agrees_with_the_reference(ops, seed);
	verdict("every pattern of slots is served", every_pattern_is_served());
	verdict("mixed sizes share granules", mixed_sizes_share_granules());
	verdict("exact holes first", exact_holes_first());
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
