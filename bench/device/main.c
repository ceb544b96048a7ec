// SPDX-License-Identifier: GPL-2.0
/*
 * What ALLOC and FREE cost on the kinds of device, against floors of the same
 * boot. Runs in the guests of bench/run-device, as root.
 *
 *   device_bench calls			where time counts instructions
 *   device_bench growth			likewise
 *   device_bench handoff		likewise
 *   device_bench shares			likewise
 *   device_bench moves			on two processors
 *   device_bench sharing		on two processors
 *   device_bench waits			on two processors
 *   device_bench packing MODULE KIND ADDRESS SIZE TRACE=BYTES...
 *					no module is loaded; the range is
 *					reserved; BYTES is what lib/ needs
 *
 * Figures are lines `bench=NAME UNIT=VALUE`, goals lines `goal=NAME value=X
 * limit=Y result=met|short|skipped`.
 */
#include <errno.h>
#include <linux/kernel.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "bench.h"

static const struct {
	const char *name;
	void (*run)(void);
} groups[] = {
	{ "calls", bench_calls },   { "growth", bench_growth },
	{ "handoff", bench_handoff }, { "sharing", bench_sharing },
	{ "shares", bench_shares },   { "waits", bench_waits },
	{ "moves", bench_moves },
};

/*
 * A mapping that has a page of a page table for itself costs 3,000 instructions more
 * than one beside others, and where mappings come to lie is left to chance.
 */
static void begin_without_chance(char **argv)
{
	int persona = personality(0xffffffff);

	if (persona & ADDR_NO_RANDOMIZE)
		return;
	if (personality(persona | ADDR_NO_RANDOMIZE) < 0)
		die(errno, "personality");
	execv("/proc/self/exe", argv);
	die(errno, "exec");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned int i;

	begin_without_chance(argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "packing")) {
		bench_packing(argc - 2, argv + 2);
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		if (!strcmp(what, groups[i].name)) {
			groups[i].run();
			return 0;
		}
	}
	die(0,
	    "calls, growth, handoff, moves, sharing, shares, waits or packing");
}
