// SPDX-License-Identifier: GPL-2.0
/*
 * Shares of three tenants that request all memory of a device and wait for it. The share
 * of a tenant is the sum, over its buffers, of bytes times lifetime, over a third of the
 * device.
 *
 * Each tenant is a user of its own. The first requests the largest buffer that it may
 * have, the second large buffers, the third small buffers. Each tenant always has a few
 * requests that wait. All tenants free a buffer after the same time, HELD_NS.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define TENANTS 3
#define FIRST_USER 2001
#define ASKING 4 /* threads that request memory */
#define MOST_LIVE 4096
#define HELD_NS 50000000ull /* lifetime of a buffer */
#define WARM_NS 1000000000ull
#define TIME_NS 8000000000ull
#define FAIR_PART 0.25 /* least part of the fair share */

struct held {
	uint64_t address;
	uint64_t size;
	uint64_t since;
};

/*
 * A tenant. @held is a ring of its buffers. The threads that request memory move @tail,
 * under @lock; the thread that frees buffers moves @head.
 */
struct tenant {
	pthread_mutex_t lock;
	int fd;
	uint64_t size;
	uint64_t start, end;
	double byte_ns; /* share, from start to end */
	struct held held[MOST_LIVE];
	unsigned int head, tail;
};

struct shares {
	double byte_ns[TENANTS];
};

static void sleep_until(uint64_t ns)
{
	struct timespec at = { ns / 1000000000, ns % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void count(struct tenant *t, const struct held *h, uint64_t now)
{
	uint64_t from = h->since > t->start ? h->since : t->start;
	uint64_t to = now < t->end ? now : t->end;

	if (to > from)
		t->byte_ns += (double)h->size * (to - from);
}

/* Thread: free each buffer HELD_NS after its allocation. */
static void *give_back(void *arg)
{
	struct tenant *t = arg;
	struct held *h;

	while (clock_now() < t->end) {
		if (t->head == __atomic_load_n(&t->tail, __ATOMIC_ACQUIRE)) {
			usleep(1000);
			continue;
		}
		h = &t->held[t->head % MOST_LIVE];
		sleep_until(h->since + HELD_NS);
		count(t, h, clock_now());
		buffer_free(t->fd, h->address);
		__atomic_store_n(&t->head, t->head + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void keep(struct tenant *t, const struct accmem_alloc *a)
{
	pthread_mutex_lock(&t->lock);
	t->held[t->tail % MOST_LIVE] =
		(struct held){ a->address, a->footprint, clock_now() };
	__atomic_store_n(&t->tail, t->tail + 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&t->lock);
}

static void ask(struct tenant *t)
{
	struct accmem_alloc a = { .length = t->size,
				  .flags = ACCMEM_ALLOC_WAIT,
				  .deadline_ns = t->end };
	int err;

	if (__atomic_load_n(&t->tail, __ATOMIC_ACQUIRE) -
		    __atomic_load_n(&t->head, __ATOMIC_ACQUIRE) >=
	    MOST_LIVE - ASKING) {
		usleep(1000);
		return;
	}
	err = buffer_request(t->fd, &a);
	if (err == ETIMEDOUT)
		return;
	if (err)
		die(err, "an ALLOC that waits");
	keep(t, &a);
}

static void *ask_on(void *arg)
{
	struct tenant *t = arg;

	while (clock_now() < t->end)
		ask(t);
	return NULL;
}

/* Run a tenant until its end. Return its share in bytes times ns. */
static double live(const struct device *dev, unsigned int user, uint64_t size,
		   uint64_t start)
{
	static struct tenant t = { .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t threads[ASKING + 1];
	unsigned int i;

	if (setgroups(0, NULL) || setgid(user) || setuid(user))
		die(errno, "another user");
	t.fd = device_open(dev);
	t.size = size;
	t.start = start + WARM_NS;
	t.end = t.start + TIME_NS;
	sleep_until(start);
	for (i = 0; i <= ASKING; i++) {
		if (pthread_create(&threads[i], NULL, i ? ask_on : give_back,
				   &t))
			die(0, "no thread");
	}
	for (i = 0; i <= ASKING; i++)
		pthread_join(threads[i], NULL);
	for (; t.head != t.tail; t.head++)
		count(&t, &t.held[t.head % MOST_LIVE], t.end);
	return t.byte_ns;
}

static pid_t start_tenant(const struct device *dev, unsigned int i,
			  uint64_t size, uint64_t start, struct shares *s)
{
	pid_t pid = fork();

	if (pid < 0)
		die(errno, "fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	s->byte_ns[i] = live(dev, FIRST_USER + i, size, start);
	_exit(0);
}

static uint64_t device_capacity(const struct device *dev)
{
	struct accmem_info info;
	int fd = device_open(dev);

	device_info(fd, &info);
	close(fd);
	return info.capacity;
}

static void share(const struct device *dev, struct shares *s)
{
	static const char *const names[TENANTS] = { "largest", "large",
						    "small" };
	uint64_t capacity = device_capacity(dev);
	const uint64_t sizes[TENANTS] = { capacity, capacity / 8, MIB(1) };
	uint64_t start = clock_now() + 100000000;
	pid_t pids[TENANTS];
	unsigned int i;
	char name[64];
	int status;

	for (i = 0; i < TENANTS; i++)
		pids[i] = start_tenant(dev, i, sizes[i], start, s);
	for (i = 0; i < TENANTS; i++) {
		waitpid(pids[i], &status, 0);
		if (status)
			die(0, "a tenant has failed");
	}
	for (i = 0; i < TENANTS; i++) {
		snprintf(name, sizeof(name), "share-of-%s-requests", names[i]);
		goal_least(name, dev,
			   s->byte_ns[i] * TENANTS / capacity / TIME_NS,
			   FAIR_PART);
	}
}

void bench_shares(void)
{
	struct shares *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int i;

	if (s == MAP_FAILED)
		die(errno, "mmap");
	for (i = 0; i < NR_DEVICES; i++) {
		if (chmod(devices[i].path, 0666))
			die(errno, "chmod");
		share(&devices[i], s);
	}
	munmap(s, sizeof(*s));
}
