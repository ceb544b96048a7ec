// SPDX-License-Identifier: GPL-2.0 OR MIT
/* libFuzzer target: the input is the numbers that the calls are drawn from. */
#include "world.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct rng draw = { .input = data, .left = size };

	queue_world_run("fuzzer input", &draw, ~0ull);
	return 0;
}
