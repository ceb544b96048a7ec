/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers of the tests of failed memory: the place of a buffer in its carveout, a read that
 * returns the signal that it raised, and the file retire.
 */
#ifndef FAILED_UTIL_H
#define FAILED_UTIL_H

#include <setjmp.h>

#include "accmem_test.h"

#define GRANULE 4096ull

/* A run of the file retired. */
struct failed_run {
	uint64_t offset;
	uint64_t size;
	char status[16];
	char cause[16];
};

/* Read line @n of the file retired. */
static inline bool failed_line(const char *path, unsigned int n,
			       struct failed_run *run)
{
	unsigned long long offset, size;
	char file[256], text[256];
	bool found = false;
	FILE *f;

	accmem_sysfs_file(path, "carveout0/retired", file, sizeof(file));
	f = fopen(file, "r");
	if (!f)
		return false;
	while (!found && fgets(text, sizeof(text), f))
		found = !n--;
	fclose(f);
	if (!found || sscanf(text, "%llx %llx %15s %15s", &offset, &size,
			     run->status, run->cause) != 4)
		return false;
	run->offset = offset;
	run->size = size;
	return true;
}

/* true if the granule at @offset is listed with this status */
static inline bool failed_is(const char *path, uint64_t offset,
			     const char *status)
{
	struct failed_run run;
	unsigned int n;

	for (n = 0; failed_line(path, n, &run); n++) {
		if (offset >= run.offset && offset < run.offset + run.size)
			return !strcmp(run.status, status);
	}
	return false;
}

/* The start of the longest part of the carveout in which nothing has failed. */
static inline uint64_t failed_longest_gap(const char *path, uint64_t capacity)
{
	uint64_t at = 0, best = 0, longest = 0;
	struct failed_run run;
	unsigned int n;

	for (n = 0; at < capacity; n++) {
		if (!failed_line(path, n, &run))
			run = (struct failed_run){ .offset = capacity };
		if (run.offset > at && run.offset - at > longest) {
			longest = run.offset - at;
			best = at;
		}
		at = run.offset + run.size;
	}
	return best;
}

static inline int retire(const char *path, uint64_t offset, uint64_t size)
{
	char file[256], text[64];

	accmem_sysfs_file(path, "carveout0/retire", file, sizeof(file));
	snprintf(text, sizeof(text), "%llu %llu", (unsigned long long)offset,
		 (unsigned long long)size);
	return accmem_write_file(file, text);
}

/*
 * Allocates a buffer and returns its place in the carveout, or ~0. With identity
 * translation the address says it. Else the buffer gets the longest free run, all memory
 * being free, and has at least @length bytes.
 */
static inline uint64_t place(int fd, const char *path, uint64_t length,
			     uint32_t flags, struct accmem_alloc *a)
{
	bool mapped;
	struct accmem_info info;

	if (accmem_drain(fd) || accmem_ioctl_info(fd, &info))
		return ~0ull;
	mapped = info.translation == ACCMEM_TRANSLATION_MAPPED;
	if (accmem_alloc_bytes(fd, mapped ? info.largest_run : length,
			       flags | ACCMEM_ALLOC_CONTIGUOUS, a))
		return ~0ull;
	return mapped ? failed_longest_gap(path, info.capacity) :
			a->address - info.address_base;
}

static sigjmp_buf failed_jump;
static siginfo_t failed_info;

static inline void failed_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	failed_info = *info;
	siglongjmp(failed_jump, 1);
}

/* true if a read of @p raises SIGBUS for failed memory, and says where */
static inline bool read_fails(const volatile char *p)
{
	struct sigaction sa = { .sa_sigaction = failed_signal,
				.sa_flags = SA_SIGINFO };
	struct sigaction old;
	bool failed = true;

	sigaction(SIGBUS, &sa, &old);
	memset(&failed_info, 0, sizeof(failed_info));
	if (!sigsetjmp(failed_jump, 1)) {
		(void)*p;
		failed = false;
	}
	sigaction(SIGBUS, &old, NULL);
	if (!failed || failed_info.si_addr != (void *)p)
		return false;
	/* A kernel without CONFIG_MEMORY_FAILURE has no code for it. */
	if (access("/proc/sys/vm/memory_failure_early_kill", F_OK))
		return failed_info.si_code == BUS_ADRERR;
	return failed_info.si_code == BUS_MCEERR_AR &&
	       failed_info.si_addr_lsb == 12;
}

/* Takes all memory, and returns the sum of the buffers; ~0 if one contains @offset. */
static inline uint64_t take_all_but(int fd, uint64_t base, uint64_t offset,
				    bool identity)
{
	static struct accmem_alloc bufs[4096];
	uint64_t sum = 0;
	int nr = accmem_take_all(fd, ACCMEM_CACHE_WB, bufs, 4096), i;

	for (i = 0; i < nr; i++) {
		uint64_t at = bufs[i].address - base;

		if (identity && offset >= at && offset < at + bufs[i].footprint)
			return ~0ull;
		sum += bufs[i].footprint;
	}
	for (i = 0; i < nr; i++)
		accmem_ioctl_free(fd, bufs[i].address);
	return nr < 0 ? ~0ull : sum;
}

static inline int access_at(int fd, uint64_t address, uint64_t length,
			    uint32_t op, void *data, uint64_t *done)
{
	struct accmem_access x = {
		.address = address,
		.length = length,
		.op = op,
		.data = (uintptr_t)data,
	};
	int ret = accmem_ioctl_access(fd, &x);

	if (done)
		*done = x.done;
	return ret;
}

#endif /* FAILED_UTIL_H */
