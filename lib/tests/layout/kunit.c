// SPDX-License-Identifier: GPL-2.0
/*
 * accmem_layout() against its table: conformance A1, A2, A3, A5, A11, A13, each
 * bad input alone, and each overflow.
 */
#include <kunit/test.h>

#include "cases.h"

static void case_to_desc(const struct layout_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(layout, layout_cases, case_to_desc);

static void layout_is_what_the_table_says(struct kunit *test)
{
	const struct layout_case *c = test->param_value;

	KUNIT_EXPECT_STREQ(test, layout_case_wrong(c) ?: "nothing", "nothing");
}

/* A second call with what the first one gave changes nothing more. */
static void rounding_is_idempotent(struct kunit *test)
{
	struct accmem_layout_caps caps = { ALL_PAGES, GIB };
	struct accmem_layout_request req = {};
	struct accmem_layout one, two;
	u32 policy;
	u64 length;

	for (policy = 0; policy <= ACCMEM_PAGE_HUGE1G_ONLY; policy++) {
		for (length = 1; length < 3 * GIB; length += length / 3 + 1) {
			req.page_policy = policy;
			req.length = length;
			req.alignment = 0;
			KUNIT_ASSERT_EQ(test, 0,
					accmem_layout(&req, &caps, &one));
			req.length = one.footprint;
			req.alignment = one.alignment;
			if (policy == ACCMEM_PAGE_HUGE_FIRST && length <= M)
				req.page_policy = ACCMEM_PAGE_NORMAL_ONLY;
			KUNIT_ASSERT_EQ(test, 0,
					accmem_layout(&req, &caps, &two));
			KUNIT_EXPECT_EQ(test, one.footprint, two.footprint);
			KUNIT_EXPECT_EQ(test, one.alignment, two.alignment);
		}
	}
}

static struct kunit_case layout_kunit_cases[] = {
	KUNIT_CASE_PARAM(layout_is_what_the_table_says, layout_gen_params),
	KUNIT_CASE(rounding_is_idempotent),
	{}
};

static struct kunit_suite layout_suite = {
	.name = "accmem_layout",
	.test_cases = layout_kunit_cases,
};

kunit_test_suite(layout_suite);
