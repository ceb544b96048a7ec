// SPDX-License-Identifier: GPL-2.0
/*
 * What ALLOC and FREE cost on the kinds of device, against floors of the same
 * boot. Runs in the guests of bench/run-device, as root.
 *
 *   device_bench calls			where time counts instructions
 *   device_bench batches			likewise
 *   device_bench growth			likewise
 *   device_bench handoff		likewise
 *   device_bench sharing		on two processors
 *   device_bench waits			on two processors
 *   device_bench packing MODULE KIND ADDRESS SIZE TRACE=BYTES...
 *					no module is loaded; the range is
 *					reserved; BYTES is what lib/ needs
 *
 * Figures are lines `bench=NAME UNIT=VALUE`, goals lines `goal=NAME value=X
 * limit=Y result=met|short|skipped`.
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "calls"))
		bench_calls();
	else if (!strcmp(what, "batches"))
		bench_batches();
	else if (!strcmp(what, "growth"))
		bench_growth();
	else if (!strcmp(what, "sharing"))
		bench_sharing();
	else if (!strcmp(what, "handoff"))
		bench_handoff();
	else if (!strcmp(what, "waits"))
		bench_waits();
	else if (!strcmp(what, "packing"))
		bench_packing(argc - 2, argv + 2);
	else
		die(0,
		    "calls, batches, growth, handoff, sharing, waits or packing");
	return 0;
}
