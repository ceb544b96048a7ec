// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that allocate, map, pin and fork, and that are killed at random points.
 * When all of them have ended, every carveout must be free completely.
 *
 * Environment: ACCMEM_STORM, the number of processes (default 1000, scaled).
 */
#include <sys/prctl.h>

#include "accmem_test.h"

#define AT_ONCE 8
#define BUFS 16
#define TAKEN 24 /* buffers from one killed process to the next */

static const char *const devices[] = { ACCMEM_DEV_EMULATED, ACCMEM_DEV_PHYS,
				       ACCMEM_DEV_NOPAGES };

/* counts of buffers and mappings, shared by all processes */
static unsigned int *taken, *mapped;

struct storm {
	int fd;
	int pipes[2];
	uint64_t random;
	struct {
		struct accmem_alloc a;
		char *p;
	} buf[BUFS];
};

static void drop(struct storm *s, unsigned int i)
{
	/* frees first or unmaps first, at random */
	if (s->buf[i].p && accmem_random(&s->random) & 1) {
		munmap(s->buf[i].p, s->buf[i].a.length);
		s->buf[i].p = NULL;
	}
	accmem_ioctl_free(s->fd, s->buf[i].a.address);
	if (s->buf[i].p)
		munmap(s->buf[i].p, s->buf[i].a.length);
	memset(&s->buf[i], 0, sizeof(s->buf[i]));
}

static void take(struct storm *s, unsigned int i)
{
	struct accmem_alloc *a = &s->buf[i].a;
	unsigned int shift = accmem_random(&s->random) % 11;

	a->length = accmem_random(&s->random) % (4096u << shift) + 1;
	/* some of the small buffers share granules */
	if (a->length > 2048 || accmem_random(&s->random) & 1)
		a->length = ALIGN_UP(a->length, 4096);
	a->flags = accmem_random(&s->random) & ACCMEM_ALLOC_TOP_DOWN;
	if (accmem_random(&s->random) % 8 == 0)
		a->flags |= ACCMEM_ALLOC_POPULATE;
	if (accmem_ioctl_alloc(s->fd, a)) {
		a->address = 0;
		return;
	}
	__atomic_add_fetch(taken, 1, __ATOMIC_RELAXED);
	s->buf[i].p = accmem_mmap(s->fd, a, a->length, RW);
	if (s->buf[i].p)
		__atomic_add_fetch(mapped, 1, __ATOMIC_RELAXED);
}

static void use(struct storm *s, unsigned int i)
{
	struct iovec iov = { s->buf[i].p, 4096 };
	struct accmem_query q;
	volatile uint64_t at;

	if (!s->buf[i].p)
		return;
	switch (accmem_random(&s->random) % 6) {
	case 0:
		vmsplice(s->pipes[1], &iov, 1, SPLICE_F_NONBLOCK);
		break;
	case 1:
		munmap(s->buf[i].p + s->buf[i].a.length / 2 / 4096 * 4096,
		       4096);
		break;
	case 2:
		accmem_ioctl_query(s->fd, s->buf[i].a.address + 1, &q);
		break;
	case 3:
		madvise(s->buf[i].p, s->buf[i].a.length, MADV_DONTNEED);
		break;
	default:
		/* a part of it may be gone */
		for (at = 0; accmem_try_touch(s->buf[i].p, &at,
					      s->buf[i].a.length, 16 * 4096);)
			at += 16 * 4096;
	}
}

/* runs until it is killed; forks once, and the child does the same */
static void run_until_killed(const char *path, uint64_t seed)
{
	struct storm s = { .random = seed };
	unsigned int step, i;

	s.fd = accmem_dev_open(path, O_RDWR);
	if (s.fd < 0 || pipe(s.pipes))
		_exit(1);
	for (step = 0;; step++) {
		i = accmem_random(&s.random) % BUFS;
		if (!s.buf[i].a.address)
			take(&s, i);
		else if (accmem_random(&s.random) % 3)
			use(&s, i);
		else
			drop(&s, i);
		if (step == 12 && fork() == 0)
			s.random ^= 0x5555;
	}
}

static pid_t start(const char *path, uint64_t seed)
{
	pid_t pid = fork();

	/* parent and child both do so, so that the group exists before it is killed */
	setpgid(pid, pid);
	if (pid)
		return pid;
	/* the process that kills must not starve */
	setpriority(PRIO_PROCESS, 0, 15);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_until_killed(path, seed);
	_exit(0);
}

static void finish(pid_t pid)
{
	/* a higher priority, to die at once */
	setpriority(PRIO_PGRP, pid, -5);
	kill(-pid, SIGKILL);
}

/* waits until the processes have allocated so many more buffers, or for a while */
static void let_take(unsigned int more)
{
	unsigned int before = __atomic_load_n(taken, __ATOMIC_RELAXED), i;

	for (i = 0; i < 1000; i++) {
		if (__atomic_load_n(taken, __ATOMIC_RELAXED) - before >= more)
			break;
		usleep(100);
	}
}

TEST(storm)
{
	const char *env = getenv("ACCMEM_STORM");
	unsigned int n = env ? strtoul(env, NULL, 10) : accmem_scale(1000), i;
	uint64_t seed = accmem_seed(), random = seed, began = accmem_ms();
	pid_t pids[AT_ONCE] = { 0 }, dying[AT_ONCE] = { 0 };

	ASSERT_LT(0, n);
	taken = mmap(NULL, 4096, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, taken);
	mapped = taken + 1;
	/* orphans become children of this process, so that it can wait for all */
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	for (i = 0; i < ARRAY_SIZE(devices); i++) {
		ASSERT_TRUE(accmem_is_idle(devices[i], 10000));
	}

	for (i = 0; i < n; i++) {
		unsigned int slot = accmem_random(&random) % AT_ONCE;

		/* while the other processes go on */
		if (dying[slot])
			waitpid(dying[slot], NULL, 0);
		if (pids[slot])
			finish(pids[slot]);
		dying[slot] = pids[slot];
		pids[slot] = start(devices[i % 3], seed + i);
		ASSERT_LT(0, pids[slot]);
		let_take(accmem_random(&random) % TAKEN);
		if (i % 250 == 249)
			printf("# %u processes, %llu ms\n", i + 1,
			       (unsigned long long)(accmem_ms() - began));
	}
	for (i = 0; i < AT_ONCE; i++)
		if (pids[i])
			finish(pids[i]);
	while (waitpid(-1, NULL, 0) > 0)
		;
	ASSERT_EQ(ECHILD, errno);
	printf("# %u buffers, %u mappings\n", *taken, *mapped);
	/* most processes live long enough for a buffer */
	EXPECT_LT(n / 4, *taken);
	EXPECT_LT(n / 4, *mapped);
	for (i = 0; i < ARRAY_SIZE(devices); i++) {
		EXPECT_TRUE(accmem_is_idle(devices[i], 30000));
	}
}

/* A process is killed in the middle of one long call. */
TEST(killed_in_a_call)
{
	unsigned int i, rounds = accmem_scale(40), device;
	struct accmem_alloc a;
	pid_t pid;
	int fd;

	for (i = 0; i < rounds; i++) {
		device = i % 3;
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			fd = accmem_dev_open(devices[device], O_RDWR);
			for (;;) {
				/* clears or makes present 64 MiB */
				if (accmem_alloc_bytes(fd, MIB(64),
						       ACCMEM_ALLOC_POPULATE,
						       &a))
					_exit(1);
				accmem_ioctl_free(fd, a.address);
			}
		}
		usleep(1000 + i * 700);
		kill(pid, SIGKILL);
		EXPECT_EQ(128 + SIGKILL, accmem_wait_child(pid));
	}
	for (i = 0; i < ARRAY_SIZE(devices); i++) {
		EXPECT_TRUE(accmem_is_idle(devices[i], 30000));
	}
}

/* Exit with many buffers and mappings, and a file that it has sent to itself. */
TEST(exit_with_everything)
{
	unsigned int i, j, bufs = accmem_scale(2000);
	struct accmem_alloc a;
	pid_t pid;
	int fd;

	/* a process has room for 65,530 mappings */
	bufs = bufs < 60000 ? bufs : 60000;
	for (i = 0; i < ARRAY_SIZE(devices); i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			fd = accmem_dev_open(devices[i], O_RDWR);
			for (j = 0; j < bufs; j++) {
				if (accmem_alloc_bytes(fd, 4096 + j % 5 * 4096,
						       0, &a))
					_exit(1);
				if (j % 3)
					continue;
				memset(accmem_mmap(fd, &a, 4096, RW), 1, 4096);
			}
			_exit(0);
		}
		EXPECT_EQ(0, accmem_wait_child(pid));
		EXPECT_TRUE(accmem_is_idle(devices[i], 10000));
	}
}

ACCMEM_HARNESS_MAIN
