/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's test harness, made cheaper for machines on which a process costs a
 * tenth of a second. The original harness forks twice for a test of a fixture: one
 * process runs the test, and the other waits for it. Here the process that would wait
 * runs the test itself, and exits with its result. The original harness also maps the
 * state of each test separately, and every fork copies all of these mappings. Here one
 * mapping holds the state of all tests. selftests/lib/check-harness shows that the
 * results are the same.
 */
#include_next <kselftest_harness.h>

#ifndef ACCMEM_KSELFTEST_HARNESS_H
#define ACCMEM_KSELFTEST_HARNESS_H

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ACCMEM_HARNESS_BYTES (1 << 20)

static inline bool accmem_is_called(const char *caller, const char *start)
{
	return !strncmp(caller, start, strlen(start));
}

/*
 * wrapper_FIXTURE_TEST() forks a process for the test, but is already in a process of the
 * test. Here the fork returns 0, as in a child. The value is volatile, since the caller
 * reads it again after a longjmp().
 */
static inline pid_t accmem_harness_fork(const char *caller)
{
	static volatile pid_t child;

	return accmem_is_called(caller, "wrapper_") ? child : (fork)();
}

/* Outside of tests, _metadata is this constant; in a test, it is the test's parameter. */
enum accmem_harness { _metadata };

#define accmem_harness_test()                                                 \
	__builtin_choose_expr(                                                \
		__builtin_types_compatible_p(__typeof__(_metadata),           \
					     struct __test_metadata *),       \
		_metadata, NULL)

/* Exit at the end of a test with its result, which is in the shared state. */
static inline _Noreturn void
accmem_harness_exit(const char *caller, const struct __test_metadata *test,
		    int status)
{
	if (accmem_is_called(caller, "wrapper_"))
		status = test->exit_code;
	(_exit)(status);
}

/* Allocate the state of a test, for _register_FIXTURE_TEST(), from one mapping. */
static inline void *accmem_harness_mmap(const char *caller, void *address,
					size_t length, int prot, int flags,
					int fd, off_t offset)
{
	static char *next, *end;
	void *state = next;

	if (!accmem_is_called(caller, "_register_"))
		return (mmap)(address, length, prot, flags, fd, offset);
	length = (length + 63) & ~(size_t)63;
	if ((size_t)(end - next) < length) {
		state = (mmap)(NULL, ACCMEM_HARNESS_BYTES, prot, flags, fd, 0);
		if (state == MAP_FAILED)
			return state;
		end = (char *)state + ACCMEM_HARNESS_BYTES;
	}
	next = (char *)state + length;
	return state;
}

#define fork() accmem_harness_fork(__func__)
#define _exit(status)                                                      \
	accmem_harness_exit(__func__, accmem_harness_test(), status)
#define mmap(address, length, prot, flags, fd, offset)                     \
	accmem_harness_mmap(__func__, address, length, prot, flags, fd, offset)

#endif /* ACCMEM_KSELFTEST_HARNESS_H */
