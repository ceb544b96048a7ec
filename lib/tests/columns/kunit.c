// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * KUnit: the Tensor Memory arbiter. The stories of cases.h, and random
 * calls held against the oracle.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>

/* a copy of its own: the module under test exports nothing */
#include "lib/columns/strict.c"
#include "lib/columns/state.c"
#include "lib/columns/deadlock.c"
#include "lib/columns/alloc.c"
#include "lib/columns/columns.c"
#include "lib/columns/launch.c"
#include "cases.h"
#include "oracle.h"

#define CTAS 12
#define CALLS 5000

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

struct storm {
	struct accmem_columns c;
	struct accmem_columns_sm sms[2];
	struct accmem_columns_cta cta[CTAS];
	bool live[CTAS];
	struct oracle oracle;
	struct rnd_state random;
};

static u32 below(struct storm *s, u32 n)
{
	return prandom_u32_state(&s->random) % n;
}

static void storm_launch(struct storm *s, unsigned int i)
{
	bool pair = i % 3 != 2;

	s->cta[i] = (struct accmem_columns_cta){
		.launch = pair, .cluster = i / 3, .rank = i % 3,
		.sm = pair ? i % 3 : below(s, 2), .group = 1 + pair,
	};
	s->live[i] = !accmem_columns_launch(&s->c, &s->cta[i]);
}

static void storm_call(struct storm *s, unsigned int i)
{
	struct accmem_columns_cta *cta = &s->cta[i];
	u32 unit = below(s, 16);

	if (!s->live[i]) {
		storm_launch(s, i);
	} else if (accmem_columns_waiting(cta)) {
		if (!below(s, 4))
			accmem_columns_cancel(&s->c, cta);
	} else if (!below(s, 12)) {
		accmem_columns_exit(&s->c, cta);
		s->live[i] = false;
	} else if (!below(s, 12)) {
		accmem_columns_relinquish(&s->c, cta);
	} else if (below(s, 2)) {
		accmem_columns_dealloc(&s->c, cta, unit * 32,
				       32 << below(s, 4), below(s, 2));
	} else {
		accmem_columns_alloc(&s->c, cta, 32 << below(s, 5),
				     below(s, 4));
	}
}

static void storm_run(struct kunit *test, struct storm *s, bool exclusive)
{
	struct accmem_columns_cta *done;
	const char *what;
	unsigned int i;

	prandom_seed_state(&s->random, 17 + exclusive);
	KUNIT_ASSERT_EQ(test, 0,
			accmem_columns_init(&s->c, s->sms, 2, 512, exclusive,
					    3));
	for (i = 0; i < CALLS; i++) {
		storm_call(s, below(s, CTAS));
		while ((done = accmem_columns_next_done(&s->c)))
			accmem_columns_collect(done);
		what = oracle_check(&s->oracle, &s->c);
		if (what) {
			KUNIT_FAIL(test, "call %u: %s", i, what);
			return;
		}
	}
}

static void columns_storm_shared(struct kunit *test)
{
	struct storm *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	storm_run(test, s, false);
}

static void columns_storm_exclusive(struct kunit *test)
{
	struct storm *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	storm_run(test, s, true);
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
	KUNIT_CASE(columns_storm_shared),
	KUNIT_CASE(columns_storm_exclusive),
	KUNIT_CASE(columns_init_refuses),
	{}
};

static struct kunit_suite columns_suite = {
	.name = "accmem_columns",
	.test_cases = columns_tests,
};

kunit_test_suite(columns_suite);
