// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * libFuzzer target: each choice of the world is a byte of the input, and the
 * input is as many calls as it has bytes. A result that the oracle does not
 * give is a crash.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

static const uint8_t *next;
static size_t left;

unsigned int below(unsigned int n)
{
	unsigned int value = 0;

	if (left) {
		value = *next++;
		left--;
	}
	if (n > 256 && left) {
		value = value << 8 | *next++;
		left--;
	}
	return value % n;
}

void must(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	next = data;
	left = size;
	columns_world_play(size);
	return 0;
}
