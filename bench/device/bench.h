/* SPDX-License-Identifier: GPL-2.0 */
/* device_bench: types and functions that its files share. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <linux/accmem.h>

#define KIB(x) ((uint64_t)(x) << 10)
#define MIB(x) ((uint64_t)(x) << 20)
#define GIB(x) ((uint64_t)(x) << 30)

/**
 * struct device - a device of one of the kinds that are compared
 * @kind: kind of the device, the last part of the names of its figures
 * @path: path of its file; the last part is the name of the device in sysfs
 */
struct device {
	const char *kind;
	const char *path;
};

enum { EMULATED, PHYS, NOPAGES, NR_DEVICES };
extern const struct device devices[NR_DEVICES];

/* The groups of figures. Each run of the program measures one group. */
void bench_calls(void);
void bench_growth(void);
void bench_handoff(void);
void bench_moves(void);
void bench_provider(void);
void bench_shares(void);
void bench_sharing(void);
void bench_waits(void);
/* @argc and @argv: the arguments after "packing" */
void bench_packing(int argc, char **argv);

/* Exit with a message; @err is an errno value, or 0. */
noreturn void die(int err, const char *format, ...);
uint64_t clock_now(void);
uint32_t random_next(uint64_t *state);
void pin_to(unsigned int cpu);
/* Return a quantile of @values, and sort them. */
double quantile(double *values, unsigned int n, double q);

/* Print a figure without a goal, or a figure with a goal. */
void figure(const char *name, const struct device *dev, double value,
	    const char *unit);
void goal_most(const char *name, const struct device *dev, double value,
	       double limit);
void goal_least(const char *name, const struct device *dev, double value,
		double limit);

/*
 * meter_now() returns the number of instructions so far that were not idle. It may be
 * called between the two other functions.
 */
void meter_start(void);
uint64_t meter_now(void);
void meter_stop(void);
/* Return the instructions of ALLOC and FREE of 4 KiB, which the context's cache serves. */
double meter_pair(int fd);
/* Replace buffers of 4 KiB to 512 KiB at random; return the replacements in 10^6 instructions. */
double meter_mixed(const struct device *dev);
/* Wait until the devices have no work left for memory that was freed before. */
void meter_rest(void);
/*
 * Wait as meter_rest() does. Return the instructions since @start: those of the work that was
 * left are included, and those of the ticks of the wait are not.
 */
uint64_t meter_end(uint64_t start);
/* Return the instructions of a null ioctl on the file. */
double meter_null_ioctl(int fd);

int device_open(const struct device *dev);
/* Return a number of the device in sysfs, in any class; -1 if there is none. */
int64_t device_number(const struct device *dev, const char *name);
/* Wait until no free memory of the device is dirty. Exit if the device does not clear it. */
void device_settle(const struct device *dev);
void device_info(int fd, struct accmem_info *info);
void null_ioctl(int fd);

/* ALLOC. Return 0 or an errno value. */
int buffer_request(int fd, struct accmem_alloc *request);
/* ALLOC. Exit if it fails. */
struct accmem_alloc buffer_alloc(int fd, uint64_t length, uint32_t flags);
void buffer_free(int fd, uint64_t address);
void *buffer_map(int fd, const struct accmem_alloc *buffer, size_t length);
/* Map a buffer, write to its first byte, and unmap it. */
void buffer_touch(int fd, const struct accmem_alloc *buffer, size_t length);

#endif /* BENCH_H */
