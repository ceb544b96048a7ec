/* SPDX-License-Identifier: MIT */
/* What the test programs of contexts share. */
#ifndef ACCMEM_RUNTIME_RUNTIME_TESTS_H
#define ACCMEM_RUNTIME_RUNTIME_TESTS_H

#include <accmem.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "test.h"
#ifdef FAKE_DEVICE
#include "fake_device.h"
#endif

#define RW (PROT_READ | PROT_WRITE)
#define MIB 1048576ull
#define WAIT_TRIES 3000 /* of 10 ms */

static inline struct accmem_context *open_device(void)
{
	struct accmem_context *ctx;

	CHECK_EQ(accmem_open(NULL, &ctx), 0);
	return ctx;
}

static inline struct accmem_info get_info(struct accmem_context *ctx)
{
	struct accmem_info info;

	CHECK_EQ(accmem_get_info(ctx, 0, &info), 0);
	return info;
}

/*
 * Memory that was mapped may become free some time after its release, when it
 * is known that nobody has it pinned. No other program uses the device now.
 */
static inline void wait_until_all_is_free(struct accmem_context *ctx)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	struct accmem_info info;
	int tries = WAIT_TRIES;

	do {
		info = get_info(ctx);
		if (info.free_bytes == info.capacity)
			return;
		nanosleep(&pause, NULL);
	} while (--tries);
	CHECK_EQ(info.free_bytes, info.capacity);
}

static inline uint64_t new_buffer(struct accmem_context *ctx, uint64_t length)
{
	uint64_t address;

	CHECK_EQ(accmem_malloc(ctx, length, &address), 0);
	return address;
}

static inline unsigned char *map(struct accmem_context *ctx, uint64_t address)
{
	void *pointer;

	CHECK_EQ(accmem_map(ctx, address, RW, &pointer), 0);
	return pointer;
}

/* Asks the kernel to read a byte there, so that a refusal is no signal. */
static inline bool readable(const void *pointer)
{
	bool good;
	int pipes[2];

	CHECK_EQ(pipe(pipes), 0);
	good = write(pipes[1], pointer, 1) == 1;
	close(pipes[0]);
	close(pipes[1]);
	return good;
}

/* Would the kernel give this page to the next that asks for memory? */
static inline bool unclaimed(void *pointer)
{
	void *p = mmap(pointer, 4096, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		       0);

	if (p == MAP_FAILED)
		return false;
	munmap(p, 4096);
	return p == pointer;
}

#endif /* ACCMEM_RUNTIME_RUNTIME_TESTS_H */
