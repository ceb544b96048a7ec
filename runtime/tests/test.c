// SPDX-License-Identifier: MIT
/*
 * Runs tests one after the other, each in a child process: a crash is a
 * failed test, and what a test leaves open or limits ends with it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define TIMEOUT_SECONDS 300

void test_fail(const char *file, int line, const char *what, long long got,
	       long long want)
{
	printf("# %s:%d: %s is %lld, not %lld\n", file, line, what, got, want);
	fflush(stdout);
	_exit(1);
}

unsigned int test_scale(unsigned int count)
{
	const char *text = getenv("ACCMEM_SCALE");
	unsigned long percent = text ? strtoul(text, NULL, 10) : 100;
	unsigned int scaled = percent < 100 ? count * percent / 100 : count;

	return scaled ? scaled : 1;
}

pid_t test_start_keeper(void (*keep)(const void *argument),
			const void *argument)
{
	int ready[2];
	pid_t child;
	char byte;

	CHECK_EQ(pipe(ready), 0);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
		keep(argument);
		CHECK_EQ(write(ready[1], "", 1), 1);
		for (;;)
			pause();
	}
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

void test_stop_keeper(pid_t keeper)
{
	CHECK_EQ(kill(keeper, SIGKILL), 0);
	CHECK_EQ(waitpid(keeper, NULL, 0), keeper);
}

static bool passes(const struct test *test)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(TIMEOUT_SECONDS);
		test->run();
		fflush(stdout);
		/* By exit, so that a leak checker has its say. */
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFSIGNALED(status))
		printf("# killed by signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int test_main(const struct test *tests, size_t count)
{
	size_t i, passed = 0;

	printf("TAP version 13\n1..%zu\n", count);
	for (i = 0; i < count; i++) {
		bool good = passes(&tests[i]);

		passed += good;
		printf("%s %zu %s\n", good ? "ok" : "not ok", i + 1,
		       tests[i].name);
	}
	printf("%zu passed, %zu failed\n", passed, count - passed);
	return passed != count;
}
