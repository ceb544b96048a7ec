// SPDX-License-Identifier: GPL-2.0
/*
 * Tests with every outcome, most of them failures: selftests/lib/check-harness compares
 * the results of these tests in two harnesses.
 */
#include <sys/wait.h>

#include "kselftest_harness.h"

FIXTURE(sample)
{
	int value;
};

FIXTURE_VARIANT(sample)
{
	int value;
};

FIXTURE_VARIANT_ADD(sample, one)
{
	.value = 1,
};
FIXTURE_VARIANT_ADD(sample, two)
{
	.value = 2,
};
FIXTURE_VARIANT_ADD(sample, no_setup)
{
	.value = -1,
};

FIXTURE_SETUP(sample)
{
	ASSERT_LT(0, variant->value);
	self->value = variant->value;
}

FIXTURE_TEARDOWN(sample)
{
	TH_LOG("teardown");
	EXPECT_LT(0, self->value);
}

static int in_a_child(int status)
{
	pid_t pid = fork();

	if (!pid)
		_exit(status);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

TEST_F(sample, is_as_expected)
{
	EXPECT_EQ(variant->value, self->value);
}

TEST_F(sample, is_not_as_expected)
{
	EXPECT_EQ(7, self->value);
}

TEST_F(sample, asserts)
{
	ASSERT_EQ(7, self->value);
}

TEST_F(sample, crashes)
{
	raise(SIGSEGV);
}

TEST_F(sample, exits_badly)
{
	_exit(KSFT_FAIL);
}

TEST_F(sample, is_skipped)
{
	SKIP(return, "on purpose");
}

TEST_F(sample, teardown_fails)
{
	self->value = -1;
}

TEST_F_TIMEOUT(sample, hangs, 1)
{
	for (;;)
		pause();
}

TEST_F(sample, has_a_child)
{
	EXPECT_EQ(5, in_a_child(5));
}

TEST_F(sample, child_asserts)
{
	pid_t pid = fork();

	if (!pid)
		ASSERT_EQ(7, self->value);
	waitpid(pid, NULL, 0);
}

TEST(without_a_fixture)
{
	EXPECT_EQ(5, in_a_child(5));
}

TEST_SIGNAL(dies_as_it_should, SIGUSR1)
{
	raise(SIGUSR1);
}

TEST_HARNESS_MAIN
