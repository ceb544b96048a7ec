// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The stories of lib/tests/columns/cases.h, in userspace under sanitizers. */
#include <stdio.h>

#include <linux/bitops.h>

#include "lib/tests/columns/cases.h"

int main(void)
{
	static struct columns_world world;
	struct columns_failure f;
	size_t i, passed = 0;

	printf("TAP version 13\n1..%zu\n", ARRAY_SIZE(columns_cases));
	for (i = 0; i < ARRAY_SIZE(columns_cases); i++) {
		const struct columns_case *k = &columns_cases[i];
		bool good = columns_run(&world, k, &f);

		passed += good;
		printf("%s %zu %s\n", good ? "ok" : "not ok", i + 1, k->name);
		if (!good)
			printf("# step %u: %lld, not %lld\n", f.step, f.got,
			       f.wanted);
	}
	printf("%zu passed, %zu failed\n", passed, i - passed);
	return passed != i;
}
