// SPDX-License-Identifier: GPL-2.0
/*
 * Growth of a buffer within its reservation, in small steps: the cost of a step in
 * instructions (meter.c), and the number of bytes that are copied.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench.h"

#define FROM MIB(1)
#define TO MIB(256)
#define STEP KIB(64)

/* Grow a buffer to @length. Return the number of bytes copied. */
static uint64_t grow(int fd, struct accmem_alloc *a, uint64_t length)
{
	struct accmem_realloc req = { .size = sizeof(req),
				      .address = a->address,
				      .length = length };

	if (ioctl(fd, ACCMEM_IOC_REALLOC, &req))
		die(errno, "REALLOC to %llu bytes", (unsigned long long)length);
	a->address = req.address;
	return req.copied;
}

static void measure_growth(const struct device *dev)
{
	struct accmem_alloc a = { .length = FROM,
				  .flags = ACCMEM_ALLOC_RESIZABLE,
				  .reserve = TO };
	uint64_t length, copied = 0, start;
	int fd = device_open(dev);
	double cost, null;

	device_settle(dev);
	null = meter_null_ioctl(fd);
	if (buffer_request(fd, &a))
		die(0, "no buffer to grow");
	start = meter_now();
	for (length = FROM + STEP; length <= TO; length += STEP)
		copied += grow(fd, &a, length);
	cost = (double)(meter_now() - start) / ((TO - FROM) / STEP);
	figure("growth-step", dev, cost, "instructions");
	goal_most("growth-step", dev, cost / null, 4.6);
	goal_most("growth-copied", dev, copied, 0);
	close(fd);
}

void bench_growth(void)
{
	unsigned int i;

	meter_start();
	for (i = 0; i < NR_DEVICES; i++) {
		meter_rest();
		measure_growth(&devices[i]);
	}
	meter_stop();
}
