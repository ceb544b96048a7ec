// SPDX-License-Identifier: GPL-2.0
/*
 * Longest wait of a tenant (the victim) in ALLOC, FREE and INFO beside another tenant
 * (the offender), over its longest wait beside a process that spins. Beside that process
 * the wait is a turn of the process, which a tick ends. Each pass has its longest wait,
 * in any of the calls; the result is the median of the passes.
 *
 * The guest has one processor, on which an instruction takes a nanosecond, so no wait
 * contains other work of the host. A wait for a lock, or for a processor whose task holds
 * a lock, is as long as on a machine with more processors. If the guest has two
 * processors, each runs a process of the offender, or a process that spins. The victim
 * runs on the first.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define PASSES 5
#define PASS_NS 120000000ull
#define MAX_RIVALS 2
#define LIVE 64 /* buffers of the victim */
#define MANY 20000
#define BLOCKS 32000
#define CONTEXTS 32
#define FAILS_ONCE_IN 16 /* one of so many calls of the victim is to fail */
#define KEPT 16 /* buffers that a context caches */
#define SLEEPERS 200 /* threads of the offender that sleep in a call */
#define MAPPINGS 2000

static unsigned int
	nr_rivals; /* processes of the offender, one on each processor */

/* State of an offender. Its processes are forked, and share the contexts. */
struct tenant {
	const struct device *dev;
	uint64_t capacity;
	int fd;
	int pipe[2];
	int contexts[CONTEXTS];
	unsigned int rival; /* index of this process */
	int stream;
	pid_t sleepers; /* process whose threads sleep, or 0 */
	uint64_t seed;
};

/* prepare() is called once, then each process calls act() again and again. */
struct offender {
	const char *name;
	void (*prepare)(struct tenant *t);
	void (*act)(struct tenant *t);
};

/* --- offenders ------------------------------------------------------------ */

static void spin(struct tenant *t)
{
	t->seed++;
}

/* Pin the first page of a buffer, on a device with page structures. */
static void pin(struct tenant *t, void *page)
{
	struct iovec piece = { page, 4096 };

	if (pipe(t->pipe))
		die(errno, "pipe");
	if (vmsplice(t->pipe[1], &piece, 1, 0) == 4096)
		return;
	if (errno != EFAULT || t->dev != &devices[NOPAGES])
		die(errno, "vmsplice");
}

/* Free small buffers on 500 pages, of which the first is pinned. */
static void prepare_pinned(struct tenant *t)
{
	uint64_t *addresses = calloc(BLOCKS, sizeof(*addresses)), last = -1ull;
	struct accmem_alloc a;
	unsigned int i;
	void *page;

	for (i = 0; i < BLOCKS; i++) {
		a = buffer_alloc(t->fd, 64, 0);
		addresses[i] = a.address;
		if (a.mmap_offset == last)
			continue;
		last = a.mmap_offset;
		page = buffer_map(t->fd, &a, 4096);
		*(volatile char *)page = 1;
		if (!i)
			pin(t, page);
		munmap(page, 4096);
	}
	for (i = 0; i < BLOCKS; i++)
		buffer_free(t->fd, addresses[i]);
	buffer_alloc(t->fd, 4096, 0); /* so that act_failing() fails */
	free(addresses);
}

static void act_failing(struct tenant *t)
{
	struct accmem_alloc a = { .length = t->capacity };

	if (buffer_request(t->fd, &a) != ENOMEM)
		die(0, "more than there is was had");
}

/* Free every other buffer of many, so that addresses and memory have holes. */
static void prepare_fragments(struct tenant *t)
{
	uint64_t *addresses = calloc(MANY, sizeof(*addresses));
	unsigned int i;

	for (i = 0; i < MANY; i++)
		addresses[i] = buffer_alloc(t->fd, KIB(4), 0).address;
	for (i = 0; i < MANY; i += 2)
		buffer_free(t->fd, addresses[i]);
	free(addresses);
}

static void act_fragments(struct tenant *t)
{
	uint64_t a = buffer_alloc(t->fd, KIB(8), 0).address;

	buffer_free(t->fd, buffer_alloc(t->fd, KIB(12), 0).address);
	buffer_free(t->fd, a);
}

/* Allocate a buffer at every 256 KiB of half of the device. */
static void prepare_aligned(struct tenant *t)
{
	uint64_t i;

	for (i = 0; i < t->capacity / 2 / KIB(256); i++) {
		struct accmem_alloc a = { .length = KIB(4),
					  .alignment = KIB(256) };

		if (buffer_request(t->fd, &a))
			return;
	}
}

/* No hole between the buffers has this size and alignment. */
static void act_aligned(struct tenant *t)
{
	struct accmem_alloc a = { .length = KIB(200), .alignment = KIB(256) };

	if (!buffer_request(t->fd, &a))
		buffer_free(t->fd, a.address);
}

static void act_big(struct tenant *t)
{
	struct accmem_alloc a = buffer_alloc(t->fd, t->capacity / 8, 0);

	buffer_touch(t->fd, &a, t->capacity / 8);
	buffer_free(t->fd, a.address);
}

static void act_sysfs(struct tenant *t)
{
	static const char *const names[] = { "free_bytes", "largest_free_run",
					     "live_bytes", "buffers",
					     "contexts" };

	device_number(t->dev, names[t->seed++ % 5]);
}

static void prepare_contexts(struct tenant *t)
{
	int i;

	for (i = 0; i < CONTEXTS; i++)
		t->contexts[i] = device_open(t->dev);
}

/* Fill the caches of many contexts. */
static void act_cached(struct tenant *t)
{
	uint64_t addresses[KEPT];
	int i, fd;

	fd = t->contexts[(nr_rivals * t->seed++ + t->rival) % CONTEXTS];
	for (i = 0; i < KEPT; i++)
		addresses[i] = buffer_alloc(fd, KIB(32), 0).address;
	for (i = 0; i < KEPT; i++)
		buffer_free(fd, addresses[i]);
}

/* Open a context, allocate and map buffers, and close it without freeing them. */
static void act_contexts(struct tenant *t)
{
	int fd = device_open(t->dev), i;
	struct accmem_alloc a;

	for (i = 0; i < 200; i++) {
		a = buffer_alloc(fd, KIB(4), 0);
		if (i % 10 == 0)
			buffer_touch(fd, &a, KIB(4));
	}
	close(fd);
}

/* Start a process whose threads call @sleep, which does not return. */
static void start_sleepers(struct tenant *t, void *(*sleep)(void *t))
{
	pthread_attr_t small;
	pthread_t thread;
	int i;

	t->sleepers = fork();
	if (t->sleepers < 0)
		die(errno, "fork");
	if (t->sleepers) {
		usleep(300000);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, KIB(64));
	for (i = 0; i < SLEEPERS; i++)
		if (pthread_create(&thread, &small, sleep, t))
			die(0, "no thread");
	for (;;)
		pause();
}

/* Wait for more than the others leave: the tenant's own buffer is in the way. */
static void *wait_in_vain(void *arg)
{
	struct tenant *t = arg;
	struct accmem_alloc a = { .length = t->capacity,
				  .flags = ACCMEM_ALLOC_WAIT };

	die(buffer_request(t->fd, &a), "a wait has ended");
}

static void prepare_waiters(struct tenant *t)
{
	buffer_alloc(t->fd, KIB(4), 0);
	start_sleepers(t, wait_in_vain);
}

static void act_pairs(struct tenant *t)
{
	buffer_free(t->fd, buffer_alloc(t->fd, KIB(8), 0).address);
}

/* Map a page again and again, beside a freed page that is pinned. */
static void prepare_mappings(struct tenant *t)
{
	struct accmem_alloc pinned = buffer_alloc(t->fd, 4096, 0);
	struct accmem_alloc mapped = buffer_alloc(t->fd, 4096, 0);
	void *page = buffer_map(t->fd, &pinned, 4096);
	unsigned int i;

	*(volatile char *)page = 1;
	pin(t, page);
	for (i = 0; i < MAPPINGS; i++)
		*(volatile char *)buffer_map(t->fd, &mapped, 4096) = 1;
	munmap(page, 4096);
	buffer_free(t->fd, pinned.address);
}

/* Put a buffer in the middle, so that no run is longer than half of the device. */
static void prepare_drains(struct tenant *t)
{
	struct accmem_info info;
	struct accmem_alloc a = { .length = KIB(4),
				  .flags = ACCMEM_ALLOC_FIXED };

	device_info(t->fd, &info);
	a.address = info.address_base + t->capacity / 2;
	if (buffer_request(t->fd, &a))
		die(0, "the middle of the device is taken");
}

/* Free memory suffices, but not in one run: caches of others cannot help. */
static void act_drains(struct tenant *t)
{
	struct accmem_alloc a = { .length = t->capacity / 4 * 3,
				  .flags = ACCMEM_ALLOC_CONTIGUOUS };

	if (!buffer_request(t->fd, &a))
		buffer_free(t->fd, a.address);
}

static int stream_open(struct tenant *t)
{
	struct accmem_stream_create req = { .size = sizeof(req) };

	if (ioctl(t->fd, ACCMEM_IOC_STREAM_CREATE, &req))
		die(errno, "stream");
	return req.fd;
}

static void *wait_for_position(void *arg)
{
	struct tenant *t = arg;
	struct accmem_stream_wait req = { .size = sizeof(req),
					  .position = -1ull };

	ioctl(t->stream, ACCMEM_IOC_STREAM_WAIT, &req);
	die(errno, "a wait has ended");
}

static void *poll_stream(void *arg)
{
	struct tenant *t = arg;
	struct pollfd fd = { .fd = t->stream, .events = POLLIN };

	while (poll(&fd, 1, -1) >= 0)
		;
	die(errno, "poll");
}

static void prepare_signals(struct tenant *t)
{
	t->stream = stream_open(t);
	start_sleepers(t, wait_for_position);
}

static void prepare_pollers(struct tenant *t)
{
	struct accmem_stream_wait req = { .size = sizeof(req),
					  .flags = ACCMEM_STREAM_NONBLOCK,
					  .position = -1ull };

	t->stream = stream_open(t);
	/* poll() reports this position, which is never reached */
	if (!ioctl(t->stream, ACCMEM_IOC_STREAM_WAIT, &req) || errno != EAGAIN)
		die(errno, "STREAM_WAIT");
	start_sleepers(t, poll_stream);
}

static void act_signals(struct tenant *t)
{
	struct accmem_stream_signal req = { .size = sizeof(req),
					    .position = t->seed++ };

	/* of two processes that share the stream, one is behind */
	if (ioctl(t->stream, ACCMEM_IOC_STREAM_SIGNAL, &req) && errno != ERANGE)
		die(errno, "STREAM_SIGNAL");
}

static void prepare_imports(struct tenant *t)
{
	t->stream = stream_open(t);
}

/* Export a position that is reached, and import it for the next one. */
static void act_imports(struct tenant *t)
{
	struct accmem_stream_export export = { .size = sizeof(export) };
	struct accmem_stream_import import = { .size = sizeof(import),
					       .position = t->seed++ };

	if (ioctl(t->stream, ACCMEM_IOC_STREAM_EXPORT, &export))
		die(errno, "STREAM_EXPORT");
	import.fd = export.fd;
	if (ioctl(t->stream, ACCMEM_IOC_STREAM_IMPORT, &import) &&
	    errno != ERANGE)
		die(errno, "STREAM_IMPORT");
	close(export.fd);
}

static const struct offender spinner = { .name = "spin", .act = spin };

static const struct offender offenders[] = {
	{ "pinned", prepare_pinned, act_failing },
	{ "fragments", prepare_fragments, act_fragments },
	{ "aligned", prepare_aligned, act_aligned },
	{ "big", NULL, act_big },
	{ "sysfs", NULL, act_sysfs },
	{ "cached", prepare_contexts, act_cached },
	{ "contexts", NULL, act_contexts },
	{ "waiters", prepare_waiters, act_pairs },
	{ "mappings", prepare_mappings, act_failing },
	{ "drains", prepare_drains, act_drains },
	{ "signals", prepare_signals, act_signals },
	{ "pollers", prepare_pollers, act_signals },
	{ "imports", prepare_imports, act_imports },
};

#define NR_OFFENDERS (sizeof(offenders) / sizeof(*offenders))

static void rivals_start(const struct offender *o, struct tenant *t,
			 pid_t *pids)
{
	unsigned int i;

	for (i = 0; i < nr_rivals; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die(errno, "fork");
		if (pids[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin_to(i);
		t->rival = i;
		for (;;)
			o->act(t);
	}
	usleep(50000);
}

/* Kill a process of the offender, which must not have ended by itself. */
static void kill_process(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (!WIFSIGNALED(status))
		die(0, "an offender has given up");
}

static void rivals_end(pid_t *pids)
{
	unsigned int i;

	for (i = 0; i < nr_rivals; i++)
		kill_process(pids[i]);
}

static void tenant_open(struct tenant *t, const struct device *dev)
{
	struct accmem_info info;
	int i;

	*t = (struct tenant){ .dev = dev, .fd = device_open(dev), .seed = 1 };
	t->pipe[0] = -1;
	t->pipe[1] = -1;
	t->stream = -1;
	for (i = 0; i < CONTEXTS; i++)
		t->contexts[i] = -1;
	device_info(t->fd, &info);
	t->capacity = info.capacity;
}

static void tenant_close(struct tenant *t)
{
	int i;

	if (t->sleepers)
		kill_process(t->sleepers);
	close(t->stream);
	close(t->pipe[0]);
	close(t->pipe[1]);
	for (i = 0; i < CONTEXTS; i++)
		close(t->contexts[i]);
	close(t->fd);
}

/* --- the victim ----------------------------------------------------------- */

enum { ALLOC, FREE, INFO, FAILING, NR_CALLS };
static const char *const call_names[NR_CALLS] = { "ALLOC", "FREE", "INFO",
						  "failing ALLOC" };

/* Longest waits in ms: of each call in each pass, and of any call in each pass */
struct waits {
	double longest[NR_CALLS][PASSES];
	double any[PASSES];
};

struct victim {
	int fd;
	uint64_t live[LIVE];
	uint64_t seed;
};

static void note(double *longest, uint64_t since)
{
	double ms = (clock_now() - since) / 1e6;

	if (ms > *longest)
		*longest = ms;
}

/* Request the whole device, which must fail. */
static void fail(struct victim *v, uint64_t capacity, double *longest)
{
	struct accmem_alloc a = { .length = capacity };
	uint64_t since = clock_now();

	if (buffer_request(v->fd, &a) != ENOMEM)
		die(0, "more than there is was had");
	note(longest, since);
}

/*
 * Free one of the victim's buffers, allocate another, and call INFO. Sometimes, make an
 * ALLOC that fails.
 */
static void make_calls(struct victim *v, struct waits *w, unsigned int i)
{
	uint64_t *slot = &v->live[random_next(&v->seed) % LIVE], since;
	struct accmem_alloc a = {
		.length = KIB(4) + random_next(&v->seed) % KIB(124),
	};
	struct accmem_info info;
	int err;

	if (*slot) {
		since = clock_now();
		buffer_free(v->fd, *slot);
		note(&w->longest[FREE][i], since);
	}
	since = clock_now();
	err = buffer_request(v->fd, &a);
	*slot = err ? 0 : a.address;
	note(&w->longest[ALLOC][i], since);
	if (err && err != ENOMEM)
		die(err, "ALLOC of the victim");
	since = clock_now();
	device_info(v->fd, &info);
	note(&w->longest[INFO][i], since);
	if (*slot && random_next(&v->seed) % FAILS_ONCE_IN == 0)
		fail(v, info.capacity, &w->longest[FAILING][i]);
}

static void wait_beside(struct victim *v, const struct offender *o,
			struct tenant *t, struct waits *w)
{
	pid_t pids[MAX_RIVALS];
	unsigned int i;
	uint64_t end;

	memset(w, 0, sizeof(*w));
	rivals_start(o, t, pids);
	for (i = 0; i < PASSES; i++) {
		end = clock_now() + PASS_NS;
		do {
			make_calls(v, w, i);
		} while (clock_now() < end);
	}
	rivals_end(pids);
}

/* Return the median over all passes of the longest wait in any call. */
static double longest_wait(struct waits *w)
{
	unsigned int i, j;

	for (i = 0; i < PASSES; i++) {
		w->any[i] = 0;
		for (j = 0; j < NR_CALLS; j++)
			if (w->longest[j][i] > w->any[i])
				w->any[i] = w->longest[j][i];
	}
	return quantile(w->any, PASSES, 0.5);
}

static void print_waits(const char *name, const struct device *dev,
			struct waits *w)
{
	unsigned int i;

	printf("# %s-%s:", name, dev->kind);
	for (i = 0; i < NR_CALLS; i++)
		printf(" %s %.2f", call_names[i],
		       quantile(w->longest[i], PASSES, 0.5));
	printf(" ms\n");
}

/* Measure a victim on @dev beside an offender on @other, which may be the same device. */
static double measure(const char *name, const struct offender *o,
		      const struct device *dev, const struct device *other)
{
	struct victim v = { .fd = device_open(dev), .seed = 1 };
	struct tenant t;
	struct waits w;

	tenant_open(&t, other);
	if (o->prepare)
		o->prepare(&t);
	wait_beside(&v, o, &t, &w);
	tenant_close(&t);
	close(v.fd);
	print_waits(name, dev, &w);
	device_settle(dev);
	device_settle(other);
	return longest_wait(&w);
}

/* Round to a tenth, since a wait of two turns also contains the time of the call. */
static double in_tenths(double value)
{
	return (int)(value * 10 + 0.5) / 10.0;
}

/*
 * The floor is the least wait of the three devices beside a spinning process: on a device
 * that clears freed memory, the clearing for the victim may add a turn.
 */
void bench_waits(void)
{
	static const char *const on_phys = "-on-phys";
	double floor = 1e9, wait;
	unsigned int i, j;
	char name[64];

	nr_rivals = sysconf(_SC_NPROCESSORS_ONLN) < 2 ? 1 : 2;
	pin_to(0);
	for (i = 0; i < NR_DEVICES; i++)
		device_settle(&devices[i]);
	for (i = 0; i < NR_DEVICES; i++) {
		const struct device *dev = &devices[i];

		wait = measure("wait-spin", &spinner, dev, dev);
		figure("wait-spin", dev, wait, "ms");
		if (wait < floor)
			floor = wait;
	}
	for (i = 0; i < NR_OFFENDERS; i++) {
		for (j = 0; j <= NR_DEVICES; j++) {
			bool cross = j == NR_DEVICES;
			unsigned int at = cross ? EMULATED : j;

			snprintf(name, sizeof(name), "wait-%s%s",
				 offenders[i].name, cross ? on_phys : "");
			wait = measure(name, &offenders[i], &devices[at],
				       &devices[cross ? PHYS : j]);
			goal_most(name, &devices[at], in_tenths(wait / floor),
				  2.0);
		}
	}
}
