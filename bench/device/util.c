// SPDX-License-Identifier: GPL-2.0
/* Functions that the benchmarks of devices share; bench.h describes them. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

const struct device devices[NR_DEVICES] = {
	[EMULATED] = { "emulated", "/dev/accmem0" },
	[PHYS] = { "phys", "/dev/accmem1" },
	[NOPAGES] = { "nopages", "/dev/accmem2" },
};

void die(int err, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "device_bench: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, err ? ": %s\n" : "\n", strerror(err));
	exit(2);
}

uint64_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

uint32_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

void pin_to(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die(errno, "processor %u", cpu);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double quantile(double *values, unsigned int n, double q)
{
	qsort(values, n, sizeof(*values), compare);
	return values[(unsigned int)((n - 1) * q + 0.5)];
}

void figure(const char *name, const struct device *dev, double value,
	    const char *unit)
{
	printf("bench=%s-%s %s=%.*f\n", name, dev->kind, unit,
	       value < 100 ? 3 : 0, value);
	fflush(stdout);
}

static void print_goal(const char *name, const struct device *dev, double value,
		       double limit, bool met)
{
	printf("goal=%s-%s value=%.3f limit=%.3f result=%s\n", name, dev->kind,
	       value, limit, met ? "met" : "short");
	fflush(stdout);
}

void goal_most(const char *name, const struct device *dev, double value,
	       double limit)
{
	print_goal(name, dev, value, limit, value <= limit);
}

void goal_least(const char *name, const struct device *dev, double value,
		double limit)
{
	print_goal(name, dev, value, limit, value >= limit);
}

int device_open(const struct device *dev)
{
	int fd = open(dev->path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		die(errno, "%s", dev->path);
	return fd;
}

int64_t device_number(const struct device *dev, const char *name)
{
	static const char *const classes[] = { "accmem", "misc" };
	char path[128], text[32];
	ssize_t n = -1;
	unsigned int i;
	int fd;

	for (i = 0; i < 2 && n < 0; i++) {
		snprintf(path, sizeof(path), "/sys/class/%s/%s/%s", classes[i],
			 dev->path + strlen("/dev/"), name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n < 0)
		return -1;
	text[n] = '\0';
	return strtoll(text, NULL, 10);
}

/* If dirty_bytes does not change for this time, the device does not clear memory. */
#define SETTLE_NS 5000000000ull

void device_settle(const struct device *dev)
{
	int64_t dirty = device_number(dev, "dirty_bytes"), before = dirty;
	uint64_t since = clock_now();

	while (dirty > 0 && clock_now() - since < SETTLE_NS) {
		usleep(10000);
		dirty = device_number(dev, "dirty_bytes");
		if (dirty != before)
			since = clock_now();
		before = dirty;
	}
	if (dirty < 0)
		die(0, "%s: no dirty_bytes in sysfs", dev->path);
	if (dirty)
		die(0, "%s: %lld bytes stay dirty", dev->path,
		    (long long)dirty);
}

void device_info(int fd, struct accmem_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	if (ioctl(fd, ACCMEM_IOC_INFO, info))
		die(errno, "INFO");
}

void null_ioctl(int fd)
{
	if (!ioctl(fd, _IO(0, 0), NULL) || errno != ENOTTY)
		die(errno, "an unknown ioctl");
}

int buffer_request(int fd, struct accmem_alloc *request)
{
	request->size = sizeof(*request);
	return ioctl(fd, ACCMEM_IOC_ALLOC, request) ? errno : 0;
}

struct accmem_alloc buffer_alloc(int fd, uint64_t length, uint32_t flags)
{
	struct accmem_alloc request = { .length = length, .flags = flags };
	int err = buffer_request(fd, &request);

	if (err)
		die(err, "ALLOC of %llu", (unsigned long long)length);
	return request;
}

void buffer_free(int fd, uint64_t address)
{
	struct accmem_free request = { .size = sizeof(request),
				       .address = address };

	if (ioctl(fd, ACCMEM_IOC_FREE, &request))
		die(errno, "FREE");
}

void *buffer_map(int fd, const struct accmem_alloc *buffer, size_t length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       buffer->mmap_offset);

	if (p == MAP_FAILED)
		die(errno, "mmap");
	return p;
}

void buffer_touch(int fd, const struct accmem_alloc *buffer, size_t length)
{
	volatile char *p = buffer_map(fd, buffer, length);

	*p = 1;
	munmap((void *)p, length);
}
