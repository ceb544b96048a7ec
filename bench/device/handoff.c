// SPDX-License-Identifier: GPL-2.0
/*
 * Time from a FREE to the return of an ALLOC that waits for the memory in another
 * process, over the time from the wake of a futex to the return of the process that
 * sleeps in it.
 *
 * The guest has one processor, on which an instruction takes a nanosecond. Two processes
 * take turns on it. A process stores the time before it passes the turn.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 200
#define PIECE KIB(4)

/* Memory that the two processes share */
struct shared {
	uint32_t turn; /* futex; the value tells which process has the turn */
	uint64_t since;
	double took[ROUNDS];
};

static void futex_wait(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == value)
		syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void futex_set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Sleep. On one processor, the other process runs until it sleeps. */
static void let_sleep(void)
{
	usleep(2000);
}

static pid_t start(void (*run)(struct shared *s, int fd), struct shared *s,
		   int fd)
{
	pid_t pid = fork();

	if (pid < 0)
		die(errno, "fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin_to(0);
	run(s, fd);
	_exit(0);
}

static void end(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	if (status)
		die(0, "the process that waits has failed");
}

static void sleep_in_futex(struct shared *s, int fd)
{
	unsigned int i;

	(void)fd;
	for (i = 0; i < ROUNDS; i++) {
		futex_wait(&s->turn, 2 * i);
		s->took[i] = clock_now() - s->since;
		futex_set(&s->turn, 2 * i + 2);
	}
}

static double hand_over_futex(struct shared *s)
{
	pid_t pid = start(sleep_in_futex, s, -1);
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		let_sleep();
		s->since = clock_now();
		futex_set(&s->turn, 2 * i + 1);
		futex_wait(&s->turn, 2 * i + 1);
	}
	end(pid);
	return quantile(s->took, ROUNDS, 0.5);
}

static void sleep_in_alloc(struct shared *s, int fd)
{
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		struct accmem_alloc a = { .length = PIECE,
					  .flags = ACCMEM_ALLOC_WAIT };

		if (buffer_request(fd, &a))
			exit(1);
		s->took[i] = clock_now() - s->since;
		buffer_free(fd, a.address);
		futex_set(&s->turn, 2 * i + 2);
		futex_wait(&s->turn, 2 * i + 2);
	}
}

static double hand_over_memory(struct shared *s, int fd, int other)
{
	struct accmem_alloc a = buffer_alloc(fd, PIECE, 0);
	unsigned int i;
	pid_t pid;

	s->turn = 1;
	pid = start(sleep_in_alloc, s, other);
	for (i = 0; i < ROUNDS; i++) {
		let_sleep();
		s->since = clock_now();
		buffer_free(fd, a.address);
		futex_wait(&s->turn, 2 * i + 1);
		a = buffer_alloc(fd, PIECE, 0);
		futex_set(&s->turn, 2 * i + 3);
	}
	buffer_free(fd, a.address);
	end(pid);
	return quantile(s->took, ROUNDS, 0.5);
}

/* Allocate all memory but PIECE bytes. Return the context with this memory. */
static int take_all_but_one(const struct device *dev)
{
	int fd = device_open(dev), spare = device_open(dev);
	struct accmem_alloc piece = { .length = PIECE,
				      .flags = ACCMEM_ALLOC_TOP_DOWN };
	struct accmem_info info;

	if (buffer_request(spare, &piece))
		die(0, "no memory");
	for (;;) {
		device_info(fd, &info);
		if (!info.largest_run)
			break;
		buffer_alloc(fd, info.largest_run, ACCMEM_ALLOC_CONTIGUOUS);
	}
	close(spare);
	return fd;
}

static void measure(const struct device *dev, struct shared *s, double floor)
{
	int all, fd, other;
	double took;

	device_settle(dev);
	all = take_all_but_one(dev);
	fd = device_open(dev);
	other = device_open(dev);
	took = hand_over_memory(s, fd, other);
	figure("handoff", dev, took, "ns");
	goal_most("handoff-over-futex", dev, took / floor, 1.3);
	close(other);
	close(fd);
	close(all);
}

void bench_handoff(void)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int i;
	double floor;

	if (s == MAP_FAILED)
		die(errno, "mmap");
	pin_to(0);
	floor = hand_over_futex(s);
	printf("# a futex: %.0f ns\n", floor);
	for (i = 0; i < NR_DEVICES; i++)
		measure(&devices[i], s, floor);
	munmap(s, sizeof(*s));
}
