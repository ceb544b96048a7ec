/* SPDX-License-Identifier: GPL-2.0 */
/* device_bench: what its files share. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <linux/accmem.h>

#define KIB(x) ((uint64_t)(x) << 10)
#define MIB(x) ((uint64_t)(x) << 20)

/**
 * struct device - one of the kinds of device that are compared
 * @kind: what its figures are called
 * @path: of its file; the last part is its name in sysfs
 */
struct device {
	const char *kind;
	const char *path;
};

enum { EMULATED, PHYS, NOPAGES, NR_DEVICES };
extern const struct device devices[NR_DEVICES];

/* The groups of figures, one a run of the program. */
void bench_calls(void);
void bench_growth(void);
void bench_handoff(void);
void bench_moves(void);
void bench_shares(void);
void bench_sharing(void);
void bench_waits(void);
/* @argc and @argv: what stands after "packing" */
void bench_packing(int argc, char **argv);

/* Exits with a message; @err is an errno value, or 0. */
noreturn void die(int err, const char *format, ...);
uint64_t clock_now(void);
uint32_t random_next(uint64_t *state);
void pin_to(unsigned int cpu);
/* The order changes. */
double quantile(double *values, unsigned int n, double q);

/* A figure without a goal, and one with. */
void figure(const char *name, const struct device *dev, double value,
	    const char *unit);
void goal_most(const char *name, const struct device *dev, double value,
	       double limit);
void goal_least(const char *name, const struct device *dev, double value,
		double limit);
void goal_skipped(const char *name, const struct device *dev, double limit);

/* Between these two, instructions so far that were not idle */
void meter_start(void);
uint64_t meter_now(void);
void meter_stop(void);
/* Until nothing is left to be done for what was freed before. */
void meter_rest(void);
/* instructions of a null ioctl on the file */
double meter_null_ioctl(int fd);

int device_open(const struct device *dev);
/* A number in sysfs, where that is wherever its class is; -1 if there is none */
int64_t device_number(const struct device *dev, const char *name);
/* Until nothing of it waits to be cleared. */
void device_settle(const struct device *dev);
void device_info(int fd, struct accmem_info *info);
void null_ioctl(int fd);

/* 0 or an errno value */
int buffer_request(int fd, struct accmem_alloc *request);
/* Exits when there is none. */
struct accmem_alloc buffer_alloc(int fd, uint64_t length, uint32_t flags);
void buffer_free(int fd, uint64_t address);
void *buffer_map(int fd, const struct accmem_alloc *buffer, size_t length);
/* Maps it, writes to its first byte, takes the mapping down. */
void buffer_touch(int fd, const struct accmem_alloc *buffer, size_t length);

#endif /* BENCH_H */
