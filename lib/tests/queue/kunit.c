// SPDX-License-Identifier: GPL-2.0
/*
 * The queue of waiters in the kernel: its rules as told in cases.h. The random
 * ones, beside a reference, are the host's. Compiled with the core, which exports
 * nothing.
 */
#include <kunit/test.h>

#include "lib/queue/queue.c"
#include "cases.h"

static void case_to_desc(const struct queue_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(queue, queue_cases, case_to_desc);

static void queue_keeps_its_rules(struct kunit *test)
{
	const struct queue_case *c = test->param_value;

	KUNIT_EXPECT_TRUE(test, c->holds());
}

static struct kunit_case queue_kunit_cases[] = {
	KUNIT_CASE_PARAM(queue_keeps_its_rules, queue_gen_params),
	{}
};

static struct kunit_suite queue_suite = {
	.name = "accmem_queue",
	.test_cases = queue_kunit_cases,
};

kunit_test_suite(queue_suite);
