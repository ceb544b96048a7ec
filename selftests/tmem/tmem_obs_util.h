/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of what can be seen of Tensor Memory share: a context with CTAs of
 * which each has a number that is known.
 */
#ifndef TMEM_OBS_UTIL_H
#define TMEM_OBS_UTIL_H

#include "kselftest_harness.h"
#include "tmem_util.h"

/* @a and @b: CTAs 1 and 2, on SM 0; @p and @q: CTAs 3 and 4, a pair on SMs 1 and 2 */
#define TMEM_OBS_FIXTURE(fixture)                                      \
	FIXTURE(fixture)                                               \
	{                                                              \
		struct accmem_context *ctx;                            \
		struct tcgen05_cta *a, *b;                             \
		struct tcgen05_cta *p, *q;                             \
	};                                                             \
	FIXTURE_SETUP(fixture)                                         \
	{                                                              \
		self->ctx = tmem_open(3, 0, 0, 2);                     \
		ASSERT_NE(NULL, self->ctx);                            \
		self->a = tmem_single(self->ctx, 0);                   \
		self->b = tmem_single(self->ctx, 0);                   \
		self->p = tmem_peer(self->ctx, 1, 0);                  \
		self->q = tmem_peer(self->ctx, 2, 1);                  \
		ASSERT_TRUE(self->a && self->b && self->p && self->q); \
	}                                                              \
	FIXTURE_TEARDOWN(fixture)                                      \
	{                                                              \
		tcgen05_exit(self->a);                                 \
		tcgen05_exit(self->b);                                 \
		tcgen05_exit(self->p);                                 \
		tcgen05_exit(self->q);                                 \
		accmem_close(self->ctx);                               \
	}

#endif /* TMEM_OBS_UTIL_H */
