// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The queue of waiters agrees with its reference after each of many random calls, and
 * keeps to its rules in cases that are told one by one.
 */
#include <stdio.h>
#include <time.h>

#include <linux/kernel.h>

#include "../campaign.h"
#include "lib/tests/queue/cases.h"
#include "world.h"

#define OPS_A_WORLD 2000

static int passed, failed;

static void verdict(const char *name, bool ok)
{
	printf("%s queue: %s\n", ok ? "ok" : "FAILED", name);
	if (ok)
		passed++;
	else
		failed++;
}

static void agrees_with_the_reference(u64 ops, u64 seed)
{
	campaign_worlds("queue", ops, seed, OPS_A_WORLD, queue_world_run);
	verdict("agrees with the reference, and keeps its rules", true);
}

int main(int argc, char **argv)
{
	u64 ops = 300000, seed = time(NULL);
	unsigned int i;

	if (!campaign_options(argc, argv, &ops, &seed))
		return 2;
	agrees_with_the_reference(ops, seed);
	for (i = 0; i < ARRAY_SIZE(queue_cases); i++)
		verdict(queue_cases[i].name, queue_cases[i].holds());
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
