/* SPDX-License-Identifier: MIT */
/* What the test programs of pools share. */
#ifndef ACCMEM_RUNTIME_POOL_TESTS_H
#define ACCMEM_RUNTIME_POOL_TESTS_H

#include <accmem_pool.h>
#include <errno.h>
#include <stdint.h>

#include "test.h"
#ifdef FAKE_DEVICE
#include "fake_device.h"
#endif

#define MIB 1048576ull

static struct accmem_context *context;

static inline struct accmem_pool *new_pool(uint32_t flags)
{
	struct accmem_pool_options options = { .size = sizeof(options),
					       .flags = flags };
	struct accmem_pool *pool;

	if (!context)
		CHECK_EQ(accmem_open(NULL, &context), 0);
	CHECK_EQ(accmem_pool_create(context, &options, &pool), 0);
	return pool;
}

/* All memory has gone back when the pool has. */
static inline void end(struct accmem_pool *pool)
{
	struct accmem_info info;

	accmem_pool_destroy(pool);
	CHECK_EQ(accmem_get_info(context, 0, &info), 0);
	CHECK_EQ(info.context_bytes, 0);
	accmem_close(context);
	context = NULL;
}

static inline uint64_t get_capacity(void)
{
	struct accmem_info info;

	CHECK_EQ(accmem_get_info(context, 0, &info), 0);
	return info.capacity;
}

static inline struct accmem_pool_stats get_stats(struct accmem_pool *pool)
{
	struct accmem_pool_stats stats;

	accmem_pool_get_stats(pool, &stats);
	return stats;
}

/* As many as there are, of a length that divides nothing. */
static inline size_t fill(struct accmem_pool *pool, void **pointers, size_t max,
			  size_t length)
{
	size_t n = 0;

	while (n < max && (pointers[n] = accmem_pool_malloc(pool, length)))
		n++;
	CHECK(n < max);
	CHECK_EQ(errno, ENOMEM);
	return n;
}

#define FILL_LENGTH (3 * MIB + 4096)
#define FILL_MAX 1024

#endif /* ACCMEM_RUNTIME_POOL_TESTS_H */
