// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * KUnit: the Tensor Memory arbiter. The stories of cases.h; random calls, and every
 * call in every state of small worlds, are held against the reference on the host.
 */
#include <kunit/test.h>
#include <linux/slab.h>

/* a copy of its own: the module under test exports nothing */
#include "lib/columns/strict.c"
#include "lib/columns/state.c"
#include "lib/columns/deadlock.c"
#include "lib/columns/alloc.c"
#include "lib/columns/columns.c"
#include "lib/columns/launch.c"
#include "cases.h"

static void case_name(const struct columns_case *k, char *name)
{
	strscpy(name, k->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(columns, columns_cases, case_name);

static void columns_stories(struct kunit *test)
{
	const struct columns_case *k = test->param_value;
	struct columns_world *world;
	struct columns_failure f;

	world = kunit_kzalloc(test, sizeof(*world), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, world);
	if (!columns_run(world, k, &f))
		KUNIT_FAIL(test, "step %u: %lld, not %lld", f.step, f.got,
			   f.wanted);
}

static void columns_init_refuses(struct kunit *test)
{
	struct accmem_columns_sm sm;
	struct accmem_columns c;

	KUNIT_EXPECT_EQ(test, -EINVAL,
			accmem_columns_init(&c, &sm, 0, 512, false, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			accmem_columns_init(&c, &sm, 1, 0, false, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			accmem_columns_init(&c, &sm, 1, 48, false, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			accmem_columns_init(&c, &sm, 1, 2080, false, 0));
	KUNIT_EXPECT_EQ(test, 0,
			accmem_columns_init(&c, &sm, 1, 2048, false, 0));
}

static struct kunit_case columns_tests[] = {
	KUNIT_CASE_PARAM(columns_stories, columns_gen_params),
	KUNIT_CASE(columns_init_refuses),
	{}
};

static struct kunit_suite columns_suite = {
	.name = "accmem_columns",
	.test_cases = columns_tests,
};

kunit_test_suite(columns_suite);
