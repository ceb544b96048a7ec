// SPDX-License-Identifier: MIT
/*
 * A program with the preload library under it: what the calls of the heap promise,
 * where the memory is, and what a fork gets. It is run by accmem run; every test
 * is a process of its own (test.c), and a fork by that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define KIB 1024ul
#define MIB (1024 * KIB)

/* Is it a mapping of the device, shared, as the kernel tells it? */
static bool is_on_device(const void *pointer)
{
	uintptr_t start, end, at = (uintptr_t)pointer;
	char line[512], mode[5];
	bool found = false;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (!found && fgets(line, sizeof(line), maps))
		found = sscanf(line, "%lx-%lx %4s", &start, &end, mode) == 3 &&
			at >= start && at < end;
	fclose(maps);
	return found && mode[3] == 's' && strstr(line, "accmem");
}

static void fill(char *p, size_t size, unsigned int seed)
{
	size_t i;

	for (i = 0; i < size; i++)
		p[i] = (char)(i * 7 + i / 4096 + seed);
}

static bool is_filled(const char *p, size_t size, unsigned int seed)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (p[i] != (char)(i * 7 + i / 4096 + seed))
			return false;
	return true;
}

/* what the compiler must not know: that no object is so large */
static volatile size_t huge = SIZE_MAX / 2;

static void large_is_on_device(void)
{
	char *large = malloc(MIB), *small = malloc(1000);

	CHECK(is_on_device(large));
	CHECK(is_on_device(large + MIB - 1));
	CHECK(!is_on_device(small));
	CHECK(malloc_usable_size(large) >= MIB);
	fill(large, MIB, 1);
	CHECK(is_filled(large, MIB, 1));
	free(large);
	free(small);
}

static void aligned_is_aligned(void)
{
	size_t alignment;
	void *p;

	for (alignment = 32; alignment <= 8 * KIB; alignment *= 2) {
		CHECK_EQ(posix_memalign(&p, alignment, 64 * KIB), 0);
		CHECK_EQ((uintptr_t)p % alignment, 0);
		CHECK(is_on_device(p));
		free(p);
	}
	p = valloc(64 * KIB);
	CHECK(is_on_device(p));
	free(p);
	p = aligned_alloc(64, 64 * KIB);
	CHECK(is_on_device(p));
	free(p);
	CHECK_EQ(posix_memalign(&p, 24, 64 * KIB), EINVAL);
}

static void calloc_is_zero(void)
{
	char *p = malloc(MIB);
	size_t i;

	memset(p, 0xff, MIB);
	free(p);
	p = calloc(1, MIB);
	CHECK(is_on_device(p));
	for (i = 0; i < MIB; i++)
		CHECK_EQ(p[i], 0);
	free(p);
	errno = 0;
	CHECK(!calloc(huge, 3));
	CHECK_EQ(errno, ENOMEM);
}

static void realloc_keeps(void)
{
	static const size_t sizes[] = { 1000,	   200 * KIB, MIB,  3 * MIB,
					500 * KIB, 64 * KIB,  2000, 2 * MIB };
	char *p = malloc(100);
	size_t i, old = 100;

	fill(p, old, 3);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		p = realloc(p, sizes[i]);
		CHECK(p);
		CHECK(is_filled(p, old < sizes[i] ? old : sizes[i], 3));
		CHECK(malloc_usable_size(p) >= sizes[i]);
		old = sizes[i];
		fill(p, old, 3);
	}
	errno = 0;
	CHECK(!reallocarray(p, huge, 3));
	CHECK_EQ(errno, ENOMEM);
	CHECK(!realloc(p, huge));
	CHECK(is_filled(p, old, 3));
	free(p);
}

/* What does not fit is the ordinary heap's. */
static void full_falls_back(void)
{
	enum { COUNT = 400 };
	static char *p[COUNT];
	bool fell_back = false;
	int i;

	for (i = 0; i < COUNT; i++) {
		p[i] = malloc(16 * MIB);
		CHECK(p[i]);
		p[i][0] = (char)i;
		if (!is_on_device(p[i])) {
			fell_back = true;
			break;
		}
	}
	CHECK(fell_back);
	CHECK(i > 0);
	do {
		CHECK_EQ(p[i][0], (char)i);
		free(p[i]);
	} while (i--);
	p[0] = malloc(16 * MIB);
	CHECK(is_on_device(p[0]));
	free(p[0]);
}

/* Each has what there was at the fork, and neither sees what the other writes. */
static void fork_copies(void)
{
	char *p = malloc(MIB);
	int go[2], status;
	pid_t child;
	char c;

	fill(p, MIB, 5);
	CHECK_EQ(pipe(go), 0);
	child = fork();
	if (!child) {
		if (read(go[0], &c, 1) != 1 || !is_filled(p, MIB, 5))
			_exit(1);
		fill(p, MIB, 6);
		free(p);
		p = malloc(MIB);
		_exit(is_on_device(p) ? 0 : 2);
	}
	CHECK(child > 0);
	CHECK(is_on_device(p));
	fill(p, MIB, 7);
	CHECK_EQ(write(go[1], "x", 1), 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK(is_filled(p, MIB, 7));
	free(p);
}

/* Where the C library alone knows that there is one thread. */
static void fork_without_proc(void)
{
	char *p = malloc(MIB), root[] = "/tmp/accmem-root-XXXXXX";
	pid_t child;
	int status;

	fill(p, MIB, 3);
	CHECK(mkdtemp(root));
	CHECK_EQ(chdir(root), 0);
	CHECK_EQ(rmdir(root), 0);
	if (chroot(".")) {
		CHECK_EQ(errno, EPERM);
		return;
	}
	child = fork();
	if (!child)
		_exit(!is_filled(p, MIB, 3));
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	free(p);
}

static void *allocate_when_cancelled(void *argument)
{
	pthread_cancel(pthread_self());
	free(malloc(MIB));
	return argument;
}

/* The first allocation of a child opens the device. */
static void malloc_is_no_cancellation_point(void)
{
	pthread_t thread;
	void *result;
	int status;
	pid_t child;

	child = fork();
	if (!child) {
		alarm(60);
		CHECK_EQ(pthread_create(&thread, NULL, allocate_when_cancelled,
					&status),
			 0);
		CHECK_EQ(pthread_join(thread, &result), 0);
		CHECK(result == &status);
		CHECK(is_on_device(malloc(MIB)));
		_exit(0);
	}
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static atomic_bool end_writers;

/* Writes a number at the front and, afterwards, at the back. */
static void *write_pairs(void *argument)
{
	_Atomic uint64_t *pair = argument;
	uint64_t i;

	for (i = 1; !atomic_load(&end_writers); i++) {
		atomic_store(&pair[0], i);
		atomic_store(&pair[MIB / 8 - 1], i);
	}
	return NULL;
}

/* Never are the two further apart than the writer lets them be. */
static bool is_snapshot(_Atomic uint64_t *pair)
{
	uint64_t front = pair[0], back = pair[MIB / 8 - 1];

	return front == back || front == back + 1;
}

static void fork_with_threads(void)
{
	_Atomic uint64_t *pairs[4];
	pthread_t threads[4];
	sigset_t all;
	int i, status;
	pid_t child;

	/* threads that mask what they can, as those of libraries do */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (i = 0; i < 4; i++) {
		pairs[i] = calloc(1, MIB);
		CHECK(is_on_device(pairs[i]));
		CHECK_EQ(pthread_create(&threads[i], NULL, write_pairs,
					pairs[i]),
			 0);
	}
	usleep(10000);
	child = fork();
	if (!child) {
		for (i = 0; i < 4; i++)
			if (!is_snapshot(pairs[i]) || is_on_device(pairs[i]))
				_exit(1);
		_exit(0);
	}
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK(!is_on_device(pairs[0]));
	end_writers = true;
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		CHECK_EQ(pairs[i][0], pairs[i][MIB / 8 - 1]);
		free(pairs[i]);
	}
}

/* What the kernel says of the first thread of the process. */
static char state_of_first(void)
{
	char path[64], line[512] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	file = fopen(path, "re");
	CHECK(file && fgets(line, sizeof(line), file));
	fclose(file);
	return strrchr(line, ')')[2];
}

static void *fork_and_exit(void *argument)
{
	int status;
	pid_t child;

	while (state_of_first() != 'Z')
		usleep(1000);
	child = fork();
	if (!child)
		_exit(!is_filled(argument, MIB, 4));
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	exit(0);
}

static void fork_after_the_first_thread(void)
{
	char *p = malloc(MIB);
	pthread_t thread;

	fill(p, MIB, 4);
	CHECK_EQ(pthread_create(&thread, NULL, fork_and_exit, p), 0);
	pthread_exit(NULL);
}

/* A thread that takes the signal that would stop it: no child, and nothing lost. */
static void *wait_for_all(void *argument)
{
	sigset_t all;
	int signal;

	(void)argument;
	sigfillset(&all);
	for (;;)
		sigwait(&all, &signal);
	return NULL;
}

static void fork_is_refused(void)
{
	char *p = malloc(MIB);
	pthread_t thread;

	fill(p, MIB, 9);
	CHECK_EQ(pthread_create(&thread, NULL, wait_for_all, NULL), 0);
	usleep(50000);
	errno = 0;
	CHECK_EQ(fork(), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK(is_filled(p, MIB, 9));
	free(p);
}

static void *wait_for_byte(void *pipe)
{
	char byte;

	CHECK_EQ(read(*(int *)pipe, &byte, 1), 1);
	return NULL;
}

/* A thread cannot be told to stop: no child as long as that is so. */
static void fork_without_signals(void)
{
	struct rlimit before, none;
	char *p = malloc(MIB);
	pthread_t thread;
	int ends[2], status;
	pid_t child;

	fill(p, MIB, 7);
	CHECK_EQ(pipe(ends), 0);
	CHECK_EQ(pthread_create(&thread, NULL, wait_for_byte, ends), 0);
	CHECK_EQ(getrlimit(RLIMIT_SIGPENDING, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	errno = 0;
	CHECK_EQ(fork(), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK(is_on_device(p) && is_filled(p, MIB, 7));
	CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &before), 0);
	child = fork();
	if (!child)
		_exit(!is_filled(p, MIB, 7));
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK(!is_on_device(p) && is_filled(p, MIB, 7));
	CHECK_EQ(write(ends[1], p, 1), 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	free(p);
}

/* Its threads have other numbers in /proc, where they are not found. */
static void fork_in_a_pid_namespace(void)
{
	char *p = malloc(MIB);
	pthread_t thread;
	int status;
	pid_t child;

	if (unshare(CLONE_NEWPID)) {
		CHECK_EQ(errno, EPERM);
		return;
	}
	child = fork();
	if (!child) {
		free(p);
		p = calloc(1, MIB);
		CHECK(is_on_device(p));
		CHECK_EQ(pthread_create(&thread, NULL, write_pairs, p), 0);
		errno = 0;
		CHECK_EQ(fork(), -1);
		CHECK_EQ(errno, EAGAIN);
		CHECK(is_on_device(p));
		_exit(0);
	}
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	free(p);
}

/* What is mapped stays, and what comes is the ordinary heap's. */
static void descriptors_are_closed(void)
{
	char *p = malloc(MIB), *q;

	fill(p, MIB, 2);
	closefrom(3);
	CHECK(is_filled(p, MIB, 2));
	q = malloc(MIB);
	CHECK(q && !is_on_device(q));
	free(q);
	free(p);
}

static void *churn(void *argument)
{
	unsigned int seed = (uintptr_t)argument, i, rounds = test_scale(400);
	char *p[8] = { NULL };

	for (i = 0; i < rounds; i++) {
		unsigned int k = rand_r(&seed) % 8;
		size_t size = 100 * KIB + rand_r(&seed) % (400 * KIB);

		free(p[k]);
		p[k] = malloc(size);
		if (!p[k])
			return NULL;
		memset(p[k], k, 64);
		p[k] = realloc(p[k], size + size / 2);
		if (!p[k] || p[k][0] != (char)k || p[k][63] != (char)k)
			return NULL;
	}
	for (i = 0; i < 8; i++)
		free(p[i]);
	return argument;
}

static void threads_share(void)
{
	pthread_t threads[4];
	uintptr_t i;
	void *result;

	for (i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, churn,
					(void *)(i + 1)),
			 0);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(pthread_join(threads[i], &result), 0);
		CHECK_EQ((uintptr_t)result, i + 1);
	}
}

int main(void)
{
	static const struct test tests[] = {
		{ "large memory is on the device, small is not",
		  large_is_on_device },
		{ "aligned memory is aligned", aligned_is_aligned },
		{ "calloc of what was used is zero", calloc_is_zero },
		{ "realloc keeps the bytes", realloc_keeps },
		{ "what does not fit falls back", full_falls_back },
		{ "fork: two heaps", fork_copies },
		{ "fork without /proc", fork_without_proc },
		{ "malloc is no cancellation point",
		  malloc_is_no_cancellation_point },
		{ "fork with threads: what there was at one moment",
		  fork_with_threads },
		{ "fork after the end of the first thread",
		  fork_after_the_first_thread },
		{ "fork is refused where a thread cannot be stopped",
		  fork_is_refused },
		{ "fork is refused where a thread cannot be signalled",
		  fork_without_signals },
		{ "fork is refused where threads are not found",
		  fork_in_a_pid_namespace },
		{ "the program closes the descriptor", descriptors_are_closed },
		{ "threads allocate, resize and free", threads_share },
	};

	return test_main(tests, ARRAY_SIZE(tests));
}
