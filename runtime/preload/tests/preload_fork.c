// SPDX-License-Identifier: MIT
/* Forks beside locks, descriptors and handlers of the program: tests of preload_test. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload_tests.h"

/* Forks that run no handlers */
void fork_without_handlers(void)
{
	pid_t (*calls[2])(void) = { _Fork, NULL }, child;
	char *p = malloc(MIB);
	int i, status;

	for (i = 0; i < 2; i++) {
		fill(p, MIB, 1);
		child = calls[i] ? calls[i]() :
				   syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (!child) {
			if (!is_filled(p, MIB, 1))
				_exit(1);
			memset(p, 0, MIB);
			_exit(0);
		}
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
		CHECK(is_filled(p, MIB, 1));
	}
	free(p);
}

/* A child that shares the descriptors leaves them open. */
void fork_with_shared_descriptors(void)
{
	char *p = malloc(MIB);
	pid_t child;
	int status;

	child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (!child)
		_exit(0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	free(p);
	p = malloc(MIB);
	CHECK(is_on_device(p));
	free(p);
}

void forks_that_fail(void)
{
	char *p = malloc(MIB);

	errno = 0;
	CHECK_EQ(syscall(SYS_clone, CLONE_NEWNS | CLONE_FS, 0, 0, 0, 0), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK(is_on_device(p));
	free(p);
}

/* What handlers of pthread_atfork() do to blocks */
static struct {
	pthread_mutex_t lock;
	char *written; /* the child writes to it */
	char *freed; /* the child frees it */
	char *freed_before; /* freed before the fork */
} atfork = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void before_fork(void)
{
	pthread_mutex_lock(&atfork.lock);
	free(atfork.freed_before);
	atfork.freed_before = NULL;
}

static void after_fork(void)
{
	pthread_mutex_unlock(&atfork.lock);
}

static void in_child(void)
{
	pthread_mutex_unlock(&atfork.lock);
	*atfork.written = 'c';
	free(atfork.freed);
}

static void *allocate_locked(void *done)
{
	while (!atomic_load((atomic_bool *)done)) {
		pthread_mutex_lock(&atfork.lock);
		free(malloc(MIB));
		pthread_mutex_unlock(&atfork.lock);
		usleep(1);
	}
	return NULL;
}

static bool has_written(char *p)
{
	return *p == 'c' && is_filled(p + 1, MIB - 1, 2);
}

void handlers_of_a_fork(void)
{
	atomic_bool done = false;
	pthread_t thread;
	int i;

	CHECK_EQ(pthread_atfork(before_fork, after_fork, in_child), 0);
	atfork.written = malloc(MIB);
	atfork.freed = malloc(MIB);
	fill(atfork.written + 1, MIB - 1, 2);
	fill(atfork.freed, MIB, 3);
	*atfork.written = 'p';
	CHECK_EQ(pthread_create(&thread, NULL, allocate_locked, &done), 0);
	for (i = 0; i < 20; i++) {
		atfork.freed_before = malloc(MIB);
		CHECK_EQ(status_of_fork(has_written, atfork.written), 0);
		CHECK_EQ(*atfork.written, 'p');
		CHECK(is_filled(atfork.freed, MIB, 3));
	}
	done = true;
	CHECK_EQ(pthread_join(thread, NULL), 0);
	free(malloc(MIB));
	free(atfork.written);
	free(atfork.freed);
}

static void *read_lines(void *done)
{
	FILE *f = fopen("/dev/null", "r");

	while (!atomic_load((atomic_bool *)done)) {
		flockfile(f);
		free(malloc(MIB));
		funlockfile(f);
		usleep(1);
	}
	fclose(f);
	return NULL;
}

static void *flush_files(void *done)
{
	while (!atomic_load((atomic_bool *)done)) {
		fflush(NULL);
		usleep(1);
	}
	return NULL;
}

/* A fork takes the lock of all files, whose owner waits for one file. */
void fork_beside_files(void)
{
	atomic_bool done = false;
	pthread_t threads[2];
	char *p = malloc(MIB);
	int i;

	fill(p, MIB, 1);
	CHECK_EQ(pthread_create(&threads[0], NULL, read_lines, &done), 0);
	CHECK_EQ(pthread_create(&threads[1], NULL, flush_files, &done), 0);
	for (i = 0; i < 30; i++)
		CHECK_EQ(status_of_fork(allocates, NULL), 0);
	done = true;
	CHECK_EQ(pthread_join(threads[0], NULL), 0);
	CHECK_EQ(pthread_join(threads[1], NULL), 0);
	CHECK(is_filled(p, MIB, 1));
	free(p);
}

static atomic_int handled;

static void fork_in_handler(int signal)
{
	(void)signal;
	CHECK_EQ(status_of_fork(allocates, NULL), 0);
	handled++;
}

/* A signal waits until the interrupted call has released its lock. */
void fork_in_a_signal_handler(void)
{
	struct sigaction action = { .sa_handler = fork_in_handler,
				    .sa_flags = SA_RESTART };
	unsigned int i, rounds = test_scale(40) + 10;
	struct itimerval timer = { 0 };
	char *p;

	sigaction(SIGALRM, &action, NULL);
	for (i = 0; i < rounds; i++) {
		timer.it_value.tv_usec = 10 + 37 * i;
		setitimer(ITIMER_REAL, &timer, NULL);
		p = malloc((i % 8 + 1) * MIB);
		p[MIB - 1] = 1;
		free(p);
	}
	while (!handled)
		sched_yield();
}
