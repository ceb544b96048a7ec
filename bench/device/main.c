// SPDX-License-Identifier: GPL-2.0
/*
 * Costs of calls on the kinds of device, compared with floors of the same boot. The
 * program runs in the guests of bench/run-device, as root.
 *
 *   device_bench calls			time counts instructions
 *   device_bench growth			time counts instructions
 *   device_bench handoff		time counts instructions
 *   device_bench provider		time counts instructions; a BAR of 1 GiB
 *					and the test provider
 *   device_bench shares			time counts instructions
 *   device_bench waits			time counts instructions
 *   device_bench moves			two processors
 *   device_bench sharing		two processors
 *   device_bench packing MODULE KIND ADDRESS SIZE TRACE=BYTES...
 *					no module is loaded; the range is
 *					reserved; lib/ needs BYTES
 *
 * waits also runs on two processors (run-device waits-smp). Figures are lines `bench=NAME
 * UNIT=VALUE`, goals are lines `goal=NAME value=X limit=Y result=met|short`.
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
	{ "calls", bench_calls },     { "growth", bench_growth },
	{ "handoff", bench_handoff }, { "sharing", bench_sharing },
	{ "shares", bench_shares },   { "waits", bench_waits },
	{ "moves", bench_moves },     { "provider", bench_provider },
};

/*
 * A mapping that is alone in its page table costs 3,000 instructions more than a mapping
 * beside others. The kernel chooses the addresses of mappings at random, so the program
 * turns this off and executes itself again.
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
	die(0, "no such group of figures: %s", what);
}
