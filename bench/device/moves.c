// SPDX-License-Identifier: GPL-2.0
/*
 * Moves of a piece of shared memory, compared with memcpy() of the same size in the same
 * guest; and page faults of a piece that moves without a copy. Each time is the best of
 * many.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "bench.h"

#define PIECE MIB(2)
#define ROUNDS 30

struct piece {
	int fd;
	struct accmem_alloc a;
	volatile char *map;
};

static double best(double a, double b)
{
	return a && a < b ? a : b;
}

/* Return the time of a memcpy() of ordinary memory, in ns. */
static double measure_memcpy(char *to, char *from, char byte)
{
	uint64_t start, took;

	memset(from, byte, PIECE);
	start = clock_now();
	memcpy(to, from, PIECE);
	took = clock_now() - start;
	if (to[PIECE - 1] != byte)
		die(0, "memcpy() has not copied");
	return took;
}

static void device_write(const struct piece *p, char byte)
{
	struct accmem_access req = { .size = sizeof(req),
				     .address = p->a.address,
				     .length = 1,
				     .data = (unsigned char)byte,
				     .op = ACCMEM_ACCESS_FILL };

	if (ioctl(p->fd, ACCMEM_IOC_ACCESS, &req))
		die(errno, "ACCESS");
}

/* PREFETCH the piece. Return the time in ns. */
static double move(const struct piece *p, uint32_t flags)
{
	struct accmem_prefetch req = { .size = sizeof(req),
				       .flags = flags,
				       .address = p->a.address,
				       .length = PIECE };
	uint64_t start = clock_now();

	if (ioctl(p->fd, ACCMEM_IOC_PREFETCH, &req))
		die(errno, "PREFETCH");
	return clock_now() - start;
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* Count the page faults of reading and then writing a piece that is valid on both sides. */
static long count_faults(const struct piece *p)
{
	long before;
	size_t at;

	p->map[0] = 1;
	move(p, 0);
	before = faults();
	for (at = 0; at < PIECE; at += 4096)
		p->map[at];
	for (at = 0; at < PIECE; at += 4096)
		p->map[at] = 1;
	return faults() - before;
}

static void measure_moves(const struct device *dev, char *to, char *from)
{
	struct piece p = { .fd = device_open(dev),
			   .a = { .length = PIECE,
				  .kind = ACCMEM_KIND_SHARED } };
	double to_device = 0, to_host = 0, copy = 0;
	unsigned int i;

	if (buffer_request(p.fd, &p.a))
		die(0, "no shared memory");
	p.map = buffer_map(p.fd, &p.a, PIECE);
	/* the first moves also allocate the pages of both sides; the best time leaves them out */
	for (i = 0; i < ROUNDS; i++) {
		copy = best(copy, measure_memcpy(to, from, i));
		p.map[0] = i;
		to_device = best(to_device, move(&p, 0));
		device_write(&p, i + 1);
		to_host = best(to_host, move(&p, ACCMEM_PREFETCH_HOST));
		if (p.map[0] != (char)(i + 1))
			die(0, "a byte was lost");
	}
	figure("memcpy-2m", dev, copy / 1000, "us");
	figure("move-to-device", dev, to_device / 1000, "us");
	figure("move-to-host", dev, to_host / 1000, "us");
	goal_least("move-to-device-speed", dev, copy / to_device, 0.8);
	goal_least("move-to-host-speed", dev, copy / to_host, 0.8);
	goal_most("faults-of-a-clean-piece", dev, count_faults(&p), 2);
	munmap((void *)p.map, PIECE);
	buffer_free(p.fd, p.a.address);
}

void bench_moves(void)
{
	char *from = aligned_alloc(PIECE, PIECE);
	char *to = aligned_alloc(PIECE, PIECE);
	unsigned int i;

	if (!from || !to)
		die(ENOMEM, "memory to copy");
	for (i = 0; i < NR_DEVICES; i++)
		measure_moves(&devices[i], to, from);
	free(from);
	free(to);
}
