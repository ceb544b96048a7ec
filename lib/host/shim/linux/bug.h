/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_BUG_H
#define ACCMEM_SHIM_BUG_H

#include <stdio.h>
#include <stdlib.h>

/* In a test the impossible is a failure at once. */
#define WARN_ON_ONCE(condition)                                                \
	({                                                                     \
		if (condition) {                                               \
			fprintf(stderr, "%s:%d: WARN_ON_ONCE(%s)\n", __FILE__, \
				__LINE__, #condition);                         \
			abort();                                               \
		}                                                              \
		0;                                                             \
	})

#endif
