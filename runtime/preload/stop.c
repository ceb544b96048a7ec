// SPDX-License-Identifier: MIT
/*
 * All other threads stand still: each gets a signal, in whose handler it waits.
 *
 * The signal is one of the real-time signals, which the wrappers of sigprocmask()
 * take out of every mask. Threads are found in /proc, again and again until there
 * is none that was not sent the signal, since those that run may start others.
 *
 * A thread that does not stop in time (one that waits for all signals in
 * sigwait(), or has masked them behind the C library's back) makes the whole fail:
 * nothing is guessed.
 *
 * Locking: the heap's lock, held by the caller.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"

#define THREADS_MAX 4096u
#define PATIENCE_NS 2000000000ll
#define TASKS "/proc/self/task"

/* what getdents64() fills in */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t length;
	uint8_t type;
	char name[];
};

static atomic_uint stopping; /* a number for each stop, 0 between them */
static unsigned int stops;
static pid_t threads[THREADS_MAX];
static atomic_bool stopped[THREADS_MAX];
static atomic_uint nr_threads;
static struct sigaction before;

int stop_signal(void)
{
	return SIGRTMAX - 1;
}

static void stop_handler(int signal)
{
	unsigned int stop = atomic_load(&stopping), i, count;
	pid_t self = syscall(SYS_gettid);
	int error = errno;

	(void)signal;
	count = atomic_load(&nr_threads);
	for (i = 0; stop && i < count; i++)
		if (threads[i] == self)
			atomic_store(&stopped[i], true);
	while (stop && atomic_load(&stopping) == stop)
		syscall(SYS_futex, &stopping, FUTEX_WAIT_PRIVATE, stop, NULL,
			NULL, 0);
	errno = error;
}

/* By number of links: two, and one for each thread; by the C library without /proc. */
bool stop_is_alone(void)
{
	struct stat st;

	return stat(TASKS, &st) ? __libc_single_threaded : st.st_nlink == 3;
}

static bool stop_knows(pid_t thread)
{
	unsigned int i;

	for (i = 0; i < nr_threads; i++)
		if (threads[i] == thread)
			return true;
	return false;
}

/* Sends the signal to one that has not got it yet, or has ended; -1 on failure. */
static int stop_thread(pid_t thread)
{
	unsigned int i = nr_threads;

	if (thread <= 0 || thread == syscall(SYS_gettid) || stop_knows(thread))
		return 0;
	if (i == THREADS_MAX)
		return -1;
	threads[i] = thread;
	atomic_store(&stopped[i], false);
	atomic_store(&nr_threads, i + 1);
	if (!syscall(SYS_tgkill, getpid(), thread, stop_signal()))
		return 1;
	/* EAGAIN: the user has as many signals under way as may be */
	if (errno != ESRCH)
		return -1;
	atomic_store(&stopped[i], true);
	return 1;
}

/* How many were sent the signal now; -1 on failure. */
static int stop_pass(void)
{
	int dir = open(TASKS, O_RDONLY | O_DIRECTORY | O_CLOEXEC), sent = 0;
	_Alignas(8) char buffer[4096];
	long length, at;

	if (dir < 0)
		return -1;
	while ((length = syscall(SYS_getdents64, dir, buffer, sizeof(buffer))) >
	       0) {
		for (at = 0; at < length && sent >= 0;) {
			struct entry *entry = (struct entry *)(buffer + at);
			int new = stop_thread(atoi(entry->name));

			sent = new < 0 ? -1 : sent + new;
			at += entry->length;
		}
	}
	close(dir);
	return length < 0 ? -1 : sent;
}

static int64_t stop_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Of a thread's state, the letter; 0 if that cannot be known. */
static char stop_state(pid_t thread)
{
	char path[64], text[64], *start = path + sizeof(path) - sizeof("/stat");
	ssize_t length;
	int fd;

	memcpy(start, "/stat", sizeof("/stat"));
	do {
		*--start = '0' + thread % 10;
	} while (thread /= 10);
	start -= sizeof(TASKS);
	memcpy(start, TASKS "/", sizeof(TASKS));
	fd = open(start, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	length = read(fd, text, sizeof(text));
	close(fd);
	/* it comes after a name in brackets, which may have some itself */
	start = length > 0 ? memrchr(text, ')', length) : NULL;
	return start && start + 2 < text + length ? start[2] : 0;
}

/* The first thread takes signals until the last has ended. */
static bool stop_has_ended(pid_t thread)
{
	char state;

	if (syscall(SYS_tgkill, getpid(), thread, 0))
		return errno == ESRCH;
	state = stop_state(thread);
	return state == 'Z' || state == 'X';
}

/* Until all that were sent the signal have stopped, or ended. */
static bool stop_wait(int64_t deadline)
{
	const struct timespec nap = { .tv_nsec = 200000 };
	unsigned int i = 0;

	while (i < nr_threads) {
		if (atomic_load(&stopped[i]) || stop_has_ended(threads[i])) {
			i++;
			continue;
		}
		if (stop_now() > deadline)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

void stop_end(void)
{
	atomic_store(&stopping, 0);
	syscall(SYS_futex, &stopping, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL,
		0);
	sigaction(stop_signal(), &before, NULL);
}

/* The handler stays: a thread may get the signal yet, and it would end all. */
static int stop_fail(void)
{
	atomic_store(&stopping, 0);
	syscall(SYS_futex, &stopping, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL,
		0);
	return -EAGAIN;
}

int stop_world(void)
{
	struct sigaction action = { .sa_handler = stop_handler,
				    .sa_flags = SA_RESTART | SA_ONSTACK };
	int64_t deadline = stop_now() + PATIENCE_NS;
	int sent;

	sigfillset(&action.sa_mask);
	atomic_store(&nr_threads, 0);
	atomic_store(&stopping, ++stops ? stops : ++stops);
	/* a /proc of another PID namespace does not know the caller's number */
	if (!stop_state(syscall(SYS_gettid)) ||
	    sigaction(stop_signal(), &action, &before))
		return stop_fail();
	do {
		sent = stop_pass();
		if (sent < 0 || !stop_wait(deadline))
			return stop_fail();
	} while (sent);
	return 0;
}

/* One that was masked when the program was started. */
void stop_start(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, stop_signal());
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
