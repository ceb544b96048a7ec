// SPDX-License-Identifier: GPL-2.0
/*
 * What an entry of a batch costs, in instructions (see meter.c).
 *
 * A pool is refilled by a batch of ALLOCs and torn down by a batch of FREEs,
 * many times over; the memory is never mapped.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench.h"

#define COUNT ACCMEM_BATCH_MAX
#define ROUNDS 50
#define LIVE 20000 /* other buffers of the context */

static struct accmem_batch_alloc allocs[COUNT];
static struct accmem_batch_free frees[COUNT];

static void run(int fd, uint32_t op, uint32_t flags)
{
	struct accmem_batch req = {
		.size = sizeof(req),
		.flags = flags,
		.op = op,
		.count = COUNT,
		.entries = op == ACCMEM_BATCH_ALLOC ? (uintptr_t)allocs :
						      (uintptr_t)frees,
		.entry_size = op == ACCMEM_BATCH_ALLOC ? sizeof(allocs[0]) :
							 sizeof(frees[0]),
	};

	if (ioctl(fd, ACCMEM_IOC_BATCH, &req) || req.done != COUNT)
		die(errno, "BATCH");
}

static void check_results(void)
{
	unsigned int i;

	for (i = 0; i < COUNT; i++) {
		if (allocs[i].result || frees[i].result)
			die(0, "a batch did not do all that it was to");
		frees[i].address = allocs[i].address;
	}
}

/* instructions of an ALLOC, and of a FREE, in batches of @flags */
static void entry_costs(int fd, uint32_t flags, double *alloc, double *free)
{
	uint64_t start, spent[2] = {};
	unsigned int i;

	memset(allocs, 0, sizeof(allocs));
	memset(frees, 0, sizeof(frees));
	for (i = 0; i < COUNT; i++)
		allocs[i].length = KIB(4);
	for (i = 0; i <= ROUNDS; i++) {
		/* the first round is for warmth */
		if (i == 1)
			memset(spent, 0, sizeof(spent));
		start = meter_now();
		run(fd, ACCMEM_BATCH_ALLOC, flags);
		spent[0] += meter_now() - start;
		check_results();
		start = meter_now();
		run(fd, ACCMEM_BATCH_FREE, flags);
		spent[1] += meter_now() - start;
	}
	*alloc = (double)spent[0] / ROUNDS / COUNT;
	*free = (double)spent[1] / ROUNDS / COUNT;
}

/*
 * Where there are no page structures, there are no rows: there is no goal for it.
 */
static void report(const char *name, const struct device *dev, double cost,
		   double null)
{
	figure(name, dev, cost, "instructions");
	if (dev == &devices[NOPAGES])
		figure(name, dev, cost / null, "null_ioctls");
	else
		goal_most(name, dev, cost / null, 0.6);
}

static void measure(const struct device *dev)
{
	int fd = device_open(dev), i;
	double null, alloc, free;

	device_settle(dev);
	null = meter_null_ioctl(fd);
	entry_costs(fd, 0, &alloc, &free);
	report("batch-alloc", dev, alloc, null);
	report("batch-free", dev, free, null);
	entry_costs(fd, ACCMEM_BATCH_ATOMIC, &alloc, &free);
	report("batch-alloc-atomic", dev, alloc, null);
	report("batch-free-atomic", dev, free, null);
	for (i = 0; i < LIVE; i++)
		buffer_alloc(fd, KIB(4), 0);
	entry_costs(fd, 0, &alloc, &free);
	report("batch-alloc-20000-live", dev, alloc, null);
	report("batch-free-20000-live", dev, free, null);
	close(fd);
}

void bench_batches(void)
{
	int i;

	meter_start();
	for (i = 0; i < NR_DEVICES; i++) {
		meter_rest();
		measure(&devices[i]);
	}
	meter_stop();
}
