// SPDX-License-Identifier: MIT
/*
 * Pools and those who wait for memory: on the device in $ACCMEM_DEVICE, and with
 * FAKE_DEVICE over fake_device.c.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "pool_tests.h"

/* A pool that keeps almost everything, while another context wants it. */
static void memory_goes_to_those_who_wait(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct accmem_pool *pool = new_pool(0);
	uint64_t most = get_capacity() / 8 * 7;
	void *p = accmem_pool_malloc(pool, most / 4);
	void *q = accmem_pool_malloc(pool, most / 4);
	int tries = 10000;

	CHECK(p && q);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK_EQ(accmem_pool_release(pool, q), 0);
	CHECK(get_stats(pool).reserved_bytes >= most / 4 * 2);
#ifdef FAKE_DEVICE
	fake_wait_for(1);
#else
	struct accmem_alloc req = { .length = most,
				    .flags = ACCMEM_ALLOC_WAIT };
	struct accmem_context *other;

	CHECK_EQ(accmem_open(NULL, &other), 0);
	CHECK_EQ(accmem_allocate(other, &req), 0);
	accmem_close(other);
#endif
	while (!get_stats(pool).yielded_bytes && --tries)
		nanosleep(&pause, NULL);
	CHECK(get_stats(pool).yielded_bytes >= most / 4 * 2);
	CHECK_EQ(get_stats(pool).reserved_bytes, 0);
#ifdef FAKE_DEVICE
	fake_wait_for(0);
#endif
	end(pool);
}

#ifdef FAKE_DEVICE
static void check_yielded(struct accmem_pool *pool)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int tries = 10000;

	while (get_stats(pool).reserved_bytes && --tries)
		nanosleep(&pause, NULL);
	CHECK_EQ(get_stats(pool).reserved_bytes, 0);
}

/* The pool is told once, and is at rest when nobody waits any more. */
static void what_comes_back_later_goes_to_those_who_wait(void)
{
	const struct timespec second = { .tv_sec = 1 };
	struct accmem_pool *pool = new_pool(0);
	uint64_t calls;
	void *p;
	int i;

	p = accmem_pool_malloc(pool, 8 * MIB);
	fake_wait_for(1);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(accmem_pool_release(pool, p), 0);
		check_yielded(pool);
		p = accmem_pool_malloc(pool, 8 * MIB);
	}
	fake_wait_for(0);
	nanosleep(&second, NULL);
	calls = fake_calls();
	nanosleep(&second, NULL);
	CHECK_EQ(fake_calls(), calls);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	end(pool);
}
#endif

/* The driver tells a context of it once. */
static void all_pools_of_a_context_yield(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct accmem_pool *pool[3] = { new_pool(0), new_pool(0), new_pool(0) };
	int tries = 10000;
	size_t i;
	void *p;

	for (i = 0; i < ARRAY_SIZE(pool); i++) {
		p = accmem_pool_malloc(pool[i], 8 * MIB);
		CHECK_EQ(accmem_pool_release(pool[i], p), 0);
	}
	/* the one that has registered last */
	accmem_pool_destroy(pool[2]);
#ifdef FAKE_DEVICE
	fake_wait_for(1);
#else
	struct accmem_alloc req = { .length = get_capacity(),
				    .flags = ACCMEM_ALLOC_WAIT };
	struct accmem_context *other;

	CHECK_EQ(accmem_open(NULL, &other), 0);
	CHECK_EQ(accmem_allocate(other, &req), 0);
	accmem_close(other);
#endif
	while (get_stats(pool[0]).reserved_bytes +
		       get_stats(pool[1]).reserved_bytes &&
	       --tries)
		nanosleep(&pause, NULL);
	CHECK_EQ(get_stats(pool[0]).reserved_bytes, 0);
	CHECK_EQ(get_stats(pool[1]).reserved_bytes, 0);
#ifdef FAKE_DEVICE
	fake_wait_for(0);
#endif
	accmem_pool_destroy(pool[1]);
	end(pool[0]);
}

static void a_passive_pool_yields_when_it_is_called(void)
{
	struct accmem_pool *pool = new_pool(ACCMEM_POOL_PASSIVE);
	void *p = accmem_pool_malloc(pool, 8 * MIB);

	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK_EQ(accmem_pool_yield(pool), 0);
	CHECK(get_stats(pool).reserved_bytes);
#ifdef FAKE_DEVICE
	fake_wait_for(1);
	CHECK(accmem_pool_yield(pool) >= 8 * MIB);
	fake_wait_for(0);
	CHECK_EQ(get_stats(pool).reserved_bytes, 0);
#endif
	end(pool);
}

int main(void)
{
	static const struct test tests[] = {
		ROW(memory_goes_to_those_who_wait),
#ifdef FAKE_DEVICE
		ROW(what_comes_back_later_goes_to_those_who_wait),
#endif
		ROW(all_pools_of_a_context_yield),
		ROW(a_passive_pool_yields_when_it_is_called),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
