// SPDX-License-Identifier: GPL-2.0
/*
 * Gain of a second processor: the calls of two contexts on two processors, over the
 * calls of one context on one processor. The gain of pairs of ALLOC and FREE is compared
 * with the gain of null ioctls, which share only the machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define PASSES 15
#define SLICES 6 /* slices of a pass, for each kind of call and number of workers */
#define SLICE_NS 20000000ull
#define BATCH 8 /* calls between two readings of the clock */
#define WARM 500
#define WORKERS 2 /* one for each processor */

enum call { NULL_IOCTL, PAIR, NR_KINDS };

/* Order for a worker: the calls of a slice */
struct order {
	enum call call;
	unsigned int workers; /* number of workers with this order */
	unsigned int turn; /* value of *started before this order */
};

struct worker {
	pid_t pid;
	int orders, answers; /* this process's ends of pipes */
};

/* Number of slices that workers have started, in shared memory */
static atomic_uint *started;

static void make_call(int fd, enum call call)
{
	if (call == NULL_IOCTL)
		null_ioctl(fd);
	else
		buffer_free(fd, buffer_alloc(fd, KIB(4), 0).address);
}

/* Make calls for a slice, which begins when all workers are there. Return their number. */
static uint64_t obey(int fd, const struct order *order)
{
	uint64_t calls = 0, end;
	int i;

	++*started;
	while (*started < order->turn + order->workers)
		;
	end = clock_now() + SLICE_NS;
	do {
		for (i = 0; i < BATCH; i++)
			make_call(fd, order->call);
		calls += BATCH;
	} while (clock_now() < end);
	return calls;
}

/* Run a worker, in a process and with a context of its own. */
static void work(const struct device *dev, unsigned int cpu, int in, int out)
{
	int fd = device_open(dev), i;
	struct order order;
	uint64_t calls;

	pin_to(cpu);
	for (i = 0; i < WARM; i++)
		make_call(fd, PAIR);
	while (read(in, &order, sizeof(order)) == sizeof(order)) {
		calls = obey(fd, &order);
		if (write(out, &calls, sizeof(calls)) != sizeof(calls))
			break;
	}
	_exit(0);
}

static void worker_start(struct worker *w, const struct device *dev,
			 unsigned int cpu)
{
	int orders[2], answers[2];

	if (pipe2(orders, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
		die(errno, "pipe");
	w->pid = fork();
	if (w->pid < 0)
		die(errno, "fork");
	if (!w->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work(dev, cpu, orders[0], answers[1]);
	}
	close(orders[0]);
	close(answers[1]);
	w->orders = orders[1];
	w->answers = answers[0];
}

static void worker_end(struct worker *w)
{
	kill(w->pid, SIGKILL);
	waitpid(w->pid, NULL, 0);
	close(w->orders);
	close(w->answers);
}

/* Return the number of calls that @n workers make in a slice, from worker @first on. */
static double slice(struct worker *workers, unsigned int first, unsigned int n,
		    enum call call)
{
	struct order order = { .call = call, .workers = n, .turn = *started };
	uint64_t calls, sum = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		if (write(workers[(first + i) % WORKERS].orders, &order,
			  sizeof(order)) != sizeof(order))
			die(errno, "an order");
	for (i = 0; i < n; i++) {
		if (read(workers[(first + i) % WORKERS].answers, &calls,
			 sizeof(calls)) != sizeof(calls))
			die(0, "a worker has failed");
		sum += calls;
	}
	return sum;
}

/*
 * Compute the gain of each kind of call. The kinds take turns, so that other work of the
 * host slows all of them.
 */
static void measure_pass(struct worker *workers, double *gain)
{
	double one[NR_KINDS] = {}, two[NR_KINDS] = {};
	unsigned int i;
	int call;

	for (i = 0; i < SLICES; i++) {
		for (call = 0; call < NR_KINDS; call++) {
			one[call] += slice(workers, i, 1, call);
			two[call] += slice(workers, i, 2, call);
		}
	}
	for (call = 0; call < NR_KINDS; call++)
		gain[call] = two[call] / one[call];
}

/*
 * Equal gains differ from pass to pass. The upper quartile is below 1 if the gain of
 * pairs is less than the gain of null ioctls in more than three of four passes.
 */
static void measure(const struct device *dev)
{
	double pairs[PASSES], nulls[PASSES], ratio[PASSES], gain[NR_KINDS];
	struct worker workers[WORKERS];
	unsigned int i;

	for (i = 0; i < WORKERS; i++)
		worker_start(&workers[i], dev, i);
	for (i = 0; i < PASSES; i++) {
		measure_pass(workers, gain);
		nulls[i] = gain[NULL_IOCTL];
		pairs[i] = gain[PAIR];
		ratio[i] = pairs[i] / nulls[i];
	}
	for (i = 0; i < WORKERS; i++)
		worker_end(&workers[i]);
	figure("gain-of-null-ioctls", dev, quantile(nulls, PASSES, 0.5),
	       "median");
	figure("gain-of-pairs", dev, quantile(pairs, PASSES, 0.5), "median");
	figure("gain-over-null-ioctls", dev, quantile(ratio, PASSES, 0.5),
	       "median");
	goal_least("gain-over-null-ioctls", dev, quantile(ratio, PASSES, 0.75),
		   1.0);
}

void bench_sharing(void)
{
	int i;

	started = mmap(NULL, sizeof(*started), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (started == MAP_FAILED)
		die(errno, "mmap");
	for (i = 0; i < NR_DEVICES; i++)
		device_settle(&devices[i]);
	for (i = 0; i < NR_DEVICES; i++)
		measure(&devices[i]);
}
