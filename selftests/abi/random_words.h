/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Words for random calls: numbers, flags, and addresses and descriptors that other
 * threads and processes have stored.
 */
#ifndef RANDOM_WORDS_H
#define RANDOM_WORDS_H

#include <stdint.h>
#include <string.h>
#include <time.h>

#include "accmem_util.h"

#define BUFFERS 64 /* buffers in the pool */
#define FILES 16 /* files of a process: streams, fences, CTAs */

struct known {
	uint64_t address;
	uint64_t offset;
	uint64_t length;
};

/* data of all processes, accessed without a lock */
struct pool {
	struct known bufs[BUFFERS];
	uint64_t calls;
	uint64_t good;
	uint32_t stop;
};

/* shared by the threads of a process */
static struct pool *pool;
static int files[FILES];

static __thread uint64_t seed;
static __thread char *bytes; /* nothing else is mapped near them */

static inline uint32_t below(uint32_t n)
{
	return accmem_random(&seed) % n;
}

static inline bool one_in(uint32_t n)
{
	return !below(n);
}

static inline uint64_t some_length(void)
{
	switch (below(8)) {
	case 0:
		return below(16);
	case 1:
	case 2:
		return below(8192);
	case 3:
	case 4:
		return KIB(4) * (1 + below(64));
	case 5:
		return MIB(2) * (1 + below(3));
	case 6:
		return MIB(2) + KIB(4) * below(16);
	default:
		return 1ull << below(34);
	}
}

static inline struct known some_buffer(void)
{
	return pool->bufs[below(BUFFERS)];
}

static inline uint64_t soon(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec + below(3000000);
}

static inline int some_file(void)
{
	return __atomic_load_n(&files[below(FILES)], __ATOMIC_RELAXED);
}

static inline uint64_t some_word(void)
{
	switch (below(10)) {
	case 0:
		return 0;
	case 1:
		return below(8);
	case 2:
		return 1ull << below(64);
	case 3:
		return ~0ull - below(8);
	case 4:
		return some_length();
	case 5:
		return some_buffer().address + (one_in(2) ? 0 : below(1 << 22));
	case 6:
		return (uintptr_t)bytes + below(64);
	case 7:
		return some_file();
	case 8:
		return soon();
	default:
		return (uint64_t)accmem_random(&seed) << 32 |
		       accmem_random(&seed);
	}
}

/* sometimes replaces a word of the argument, but not its size */
static inline void spoil(void *arg, size_t size)
{
	uint64_t word = some_word();

	if (!one_in(4))
		return;
	if (one_in(2))
		memcpy((char *)arg + 4 * (1 + below(size / 4 - 1)), &word, 4);
	else
		memcpy((char *)arg + 8 * (1 + below(size / 8 - 1)), &word, 8);
}

#endif /* RANDOM_WORDS_H */
