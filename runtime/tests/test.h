/* SPDX-License-Identifier: MIT */
/* A test program in a page: TAP lines, and totals at the end. */
#ifndef ACCMEM_RUNTIME_TEST_H
#define ACCMEM_RUNTIME_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
#define TEST_NORETURN
extern "C" {
#else
#include <stdnoreturn.h>
#define TEST_NORETURN noreturn
#endif

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

struct test {
	const char *name;
	void (*run)(void);
};

/* A test by the name of its function */
#define ROW(function)               \
	{                           \
#function, function \
	}

/* Runs every test in a process of its own; the exit status of main(). */
int test_main(const struct test *tests, size_t count);

/* $ACCMEM_SCALE per cent of a count, which is at least 1 and no more than all of it. */
unsigned int test_scale(unsigned int count);

/*
 * Start a process that calls @keep and then sleeps, with what it has taken. Returns when
 * @keep has returned. The process ends with the test, or by test_stop_keeper().
 */
pid_t test_start_keeper(void (*keep)(const void *argument),
			const void *argument);
void test_stop_keeper(pid_t keeper);

/* Ends the running test as failed. */
TEST_NORETURN void test_fail(const char *file, int line, const char *what,
			     long long got, long long want);

#ifdef __cplusplus
}
#endif

/*
 * Check that a call on a pool returns 0. A call waits 100 ms for other processes to give memory
 * back. On a busy machine the other process may need longer: then the call is made again.
 */
#define CHECK_COMES(call)                                           \
	do {                                                        \
		int ret_ = -ENOMEM;                                 \
		for (int i_ = 0; i_ < 200 && ret_ == -ENOMEM; i_++) \
			ret_ = (call);                              \
		CHECK_EQ(ret_, 0);                                  \
	} while (0)

#define CHECK_EQ(got, want)                                               \
	do {                                                              \
		long long got_ = (long long)(got);                        \
		long long want_ = (long long)(want);                      \
		if (got_ != want_)                                        \
			test_fail(__FILE__, __LINE__, #got, got_, want_); \
	} while (0)

#define CHECK(condition) CHECK_EQ(!!(condition), 1)

#endif /* ACCMEM_RUNTIME_TEST_H */
