// SPDX-License-Identifier: GPL-2.0
/*
 * Costs of ALLOC, FREE and page faults on the BAR of a PCI device, compared with a reserved
 * range; costs of a pin for a provider; and costs of IMPORT, compared with ALLOC. The guest has
 * one processor, on which an instruction takes a nanosecond.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

#define PINS 19200
#define IMPORTS 2000
#define PINS_PARAMETER "/sys/module/accmem_test_provider/parameters/pins"

/* The devices that are not in devices[] */
static const struct device bar = { "ivshmem", "/dev/accmem3" };
static const struct device provider = { "provider", "/dev/accmem4" };

static void rest(void)
{
	meter_rest();
	device_settle(&bar);
	device_settle(&provider);
}

/* --- pairs ---------------------------------------------------------------- */

static double pair(const struct device *dev)
{
	int fd = device_open(dev);
	double cost = meter_pair(fd);

	close(fd);
	return cost;
}

static double mixed(const struct device *dev)
{
	rest();
	return 1e6 / meter_mixed(dev);
}

/* Compare ALLOC and FREE on the BAR with a range that has no page structures either. */
static void measure_pairs(void)
{
	const struct device *nopages = &devices[NOPAGES];
	double cost;

	cost = pair(&bar);
	figure("pair", &bar, cost, "instructions");
	goal_most("pair-over-nopages", &bar, cost / pair(nopages), 1.1);
	cost = mixed(&bar);
	figure("mixed", &bar, cost, "instructions");
	goal_most("mixed-over-nopages", &bar, cost / mixed(nopages), 1.1);
}

/* --- faults --------------------------------------------------------------- */

/* Return the faults of a process that writes to each page of a new mapping. */
static long faults_of(int fd, const struct accmem_alloc *buffer, size_t length)
{
	volatile char *p = buffer_map(fd, buffer, length);
	struct rusage before, after;
	size_t at;

	getrusage(RUSAGE_SELF, &before);
	for (at = 0; at < length; at += 4096)
		p[at] = 1;
	getrusage(RUSAGE_SELF, &after);
	munmap((void *)p, length);
	return after.ru_minflt - before.ru_minflt;
}

/*
 * Count the faults of all of the BAR, and of a mapping that is too short for an entry of
 * 1 GiB. Linux 6.1 has no such entries.
 */
static void measure_faults(void)
{
	const char *kernel = getenv("ACCMEM_KERNEL");
	bool has_1g = kernel && strcmp(kernel, "stock-6.1");
	size_t part = GIB(1) - MIB(2);
	int fd = device_open(&bar);
	struct accmem_alloc a = buffer_alloc(fd, GIB(1), 0);

	goal_most("faults-of-1g", &bar, faults_of(fd, &a, GIB(1)),
		  has_1g ? 2 : 512);
	goal_most("faults-of-1022m", &bar, faults_of(fd, &a, part), 511);
	close(fd);
}

/* --- pins ----------------------------------------------------------------- */

/* Return the cost of a part of 4 KiB, where a call pins @parts of them. */
static double pin_cost(int fd, uint64_t address, unsigned int parts,
		       bool fenced)
{
	int param = open(PINS_PARAMETER, O_WRONLY | O_CLOEXEC), n;
	uint64_t start;
	char text[96];

	n = snprintf(text, sizeof(text), "%d %llu 4096 %u %u %d", fd,
		     (unsigned long long)address, PINS, parts, fenced);
	start = meter_now();
	if (param < 0 || write(param, text, n) != n)
		die(errno, PINS_PARAMETER);
	/* A worker may end the pins. */
	usleep(100000);
	close(param);
	return (double)(meter_now() - start) / PINS;
}

/* Measure jobs of one part without a fence and with one, and jobs of 64 parts. */
static void measure_pins(void)
{
	int fd = device_open(&provider);
	struct accmem_alloc a = buffer_alloc(fd, MIB(1), 0);

	goal_most("pin-unpin", &provider, pin_cost(fd, a.address, 1, false),
		  800);
	goal_most("pin-fence-unpin", &provider,
		  pin_cost(fd, a.address, 1, true), 1060);
	goal_most("pin-fence-unpin-64", &provider,
		  pin_cost(fd, a.address, 64, true), 400);
	close(fd);
}

/* --- imports -------------------------------------------------------------- */

static uint64_t addresses[IMPORTS];

static double alloc_cost(int fd)
{
	uint64_t start = meter_now();
	unsigned int i;

	for (i = 0; i < IMPORTS; i++)
		addresses[i] = buffer_alloc(fd, KIB(4), 0).address;
	return (double)(meter_now() - start) / IMPORTS;
}

static uint64_t import(int fd, int dma_buf, uint64_t offset)
{
	struct accmem_import_buffer req = { .size = sizeof(req),
					    .fd = dma_buf,
					    .offset = offset,
					    .length = KIB(4) };

	if (ioctl(fd, ACCMEM_IOC_IMPORT, &req))
		die(errno, "IMPORT");
	return req.address;
}

static double import_cost(int fd, int dma_buf)
{
	uint64_t start = meter_now();
	unsigned int i;

	for (i = 0; i < IMPORTS; i++)
		addresses[i] = import(fd, dma_buf, i * KIB(4));
	return (double)(meter_now() - start) / IMPORTS;
}

static double import_pair_cost(int fd, int dma_buf)
{
	uint64_t start = meter_now();
	unsigned int i;

	for (i = 0; i < IMPORTS; i++)
		buffer_free(fd, import(fd, dma_buf, 0));
	return (double)(meter_now() - start) / IMPORTS;
}

static void free_all(int fd)
{
	unsigned int i;

	for (i = 0; i < IMPORTS; i++)
		buffer_free(fd, addresses[i]);
}

static int export(int fd, uint64_t address)
{
	struct accmem_export_buffer req = { .size = sizeof(req),
					    .address = address };

	if (ioctl(fd, ACCMEM_IOC_EXPORT, &req))
		die(errno, "EXPORT");
	return req.fd;
}

/*
 * Compare IMPORT of parts of a dma-buf with ALLOC of as many buffers, more than the
 * context's cache has; and IMPORT and FREE with ALLOC and FREE that the cache serves. The
 * first round warms up.
 */
static void measure_imports(const struct device *dev)
{
	int from = device_open(dev), fd = device_open(dev), dma_buf, i;
	struct accmem_alloc a = buffer_alloc(from, IMPORTS * KIB(4), 0);
	double alloc, cost;

	dma_buf = export(from, a.address);
	for (i = 0; i < 2; i++) {
		alloc = alloc_cost(fd);
		free_all(fd);
		cost = import_cost(fd, dma_buf);
		free_all(fd);
	}
	figure("import", dev, cost, "instructions");
	goal_most("import-over-alloc", dev, cost / alloc, 2);
	cost = import_pair_cost(fd, dma_buf);
	figure("import-pair", dev, cost, "instructions");
	goal_most("import-pair-over-pair", dev, cost / meter_pair(fd), 2);
	close(dma_buf);
	close(from);
	close(fd);
}

void bench_provider(void)
{
	meter_start();
	rest();
	measure_pairs();
	measure_pins();
	measure_imports(&devices[NOPAGES]);
	measure_imports(&bar);
	measure_faults();
	meter_stop();
}
