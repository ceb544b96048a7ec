// SPDX-License-Identifier: MIT
/*
 * What a pool keeps of what is released to it: on the device in $ACCMEM_DEVICE, and with
 * FAKE_DEVICE over fake_device.c.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pool_tests.h"

static void what_is_kept_does_not_stand_in_the_way(void)
{
	struct accmem_pool *pool = new_pool(0);
	static void *p[FILL_MAX];
	size_t n = fill(pool, p, FILL_MAX, FILL_LENGTH), i;
	void *large;

	CHECK(n * FILL_LENGTH > get_capacity() * 9 / 10);
	for (i = 0; i < n; i++)
		CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
	/* a buffer of the kernel's: the pool gives back what it has */
	large = accmem_pool_malloc(pool, get_capacity() * 3 / 4);
	CHECK(large);
	CHECK_EQ(accmem_pool_release(pool, large), 0);
	/* spans of another length: the free ones are joined */
	n = fill(pool, p, FILL_MAX, 2 * FILL_LENGTH);
	CHECK(n * 2 * FILL_LENGTH > get_capacity() * 9 / 10);
	while (n--)
		CHECK_EQ(accmem_pool_release(pool, p[n]), 0);
	end(pool);
}

static void trim_gives_back(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_info info;
	void *p = accmem_pool_malloc(pool, 20 * MIB);
	void *q = accmem_pool_malloc(pool, 100);

	CHECK(p && q);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK(get_stats(pool).reserved_bytes >= 20 * MIB);
	CHECK(accmem_pool_trim(pool, 8 * MIB) >= 10 * MIB);
	CHECK(get_stats(pool).reserved_bytes >= 8 * MIB);
	CHECK_EQ(accmem_pool_release(pool, q), 0);
	CHECK(accmem_pool_trim(pool, 0));
	CHECK_EQ(get_stats(pool).reserved_bytes, 0);
	CHECK_EQ(accmem_get_info(context, 0, &info), 0);
	CHECK_EQ(info.context_bytes, 0);
	end(pool);
}

static void no_more_is_kept_than_was_said(void)
{
	struct accmem_pool_options options = { .size = sizeof(options),
					       .keep_bytes = 4 * MIB };
	struct accmem_pool *pool;
	void *p;

	CHECK_EQ(accmem_open(NULL, &context), 0);
	CHECK_EQ(accmem_pool_create(context, &options, &pool), 0);
	p = accmem_pool_malloc(pool, 30 * MIB);
	CHECK(p);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK(get_stats(pool).reserved_bytes <= 6 * MIB);
	end(pool);
}

static void calls_of_the_kernel_are_few(void)
{
	struct accmem_pool *pool = new_pool(0);
	uint64_t before = 0;
	void *p[100];
	size_t i, round;

	for (round = 0; round < 20; round++) {
		if (round == 1)
			before = get_stats(pool).kernel_calls;
		for (i = 0; i < ARRAY_SIZE(p); i++)
			p[i] = accmem_pool_malloc(pool, 1 + i * 5000);
		for (i = 0; i < ARRAY_SIZE(p); i++)
			CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
	}
	CHECK_EQ(get_stats(pool).kernel_calls, before);
	end(pool);
}

/* What the pool keeps is the device's again, before a request is refused or waits. */
static void what_is_kept_is_given_back_for_what_is_no_piece(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req = { .length = get_capacity() / 8,
					   .flags = ACCMEM_ALLOC_RESIZABLE };
	struct accmem_pool_request waits = {
		.length = get_capacity() / 4 * 3,
		.flags = ACCMEM_ALLOC_RESIZABLE | ACCMEM_ALLOC_WAIT,
	};
	void *kept[3];
	size_t i;

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	for (i = 0; i < ARRAY_SIZE(kept); i++)
		kept[i] = accmem_pool_malloc(pool, get_capacity() / 4);
	for (i = 0; i < ARRAY_SIZE(kept); i++)
		CHECK_EQ(accmem_pool_release(pool, kept[i]), 0);
	CHECK(get_stats(pool).reserved_bytes > get_capacity() / 2);
	CHECK_EQ(accmem_pool_reallocate(pool, &req.pointer, get_capacity() / 2),
		 0);
	CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	for (i = 0; i < ARRAY_SIZE(kept); i++)
		kept[i] = accmem_pool_malloc(pool, get_capacity() / 4);
	for (i = 0; i < ARRAY_SIZE(kept); i++)
		CHECK_EQ(accmem_pool_release(pool, kept[i]), 0);
	CHECK(get_stats(pool).reserved_bytes > get_capacity() / 2);
	CHECK_EQ(accmem_pool_allocate(pool, &waits), 0);
	CHECK_EQ(accmem_pool_release(pool, waits.pointer), 0);
	end(pool);
}

/* Leave at most 128 MiB to the pool. Returns the bytes that are left. */
static uint64_t leave_room(uint64_t *rest)
{
	uint64_t capacity = get_capacity(), room = capacity / 2;

	if (room > 128 * MIB)
		room = 128 * MIB;
	CHECK_EQ(accmem_malloc(context, capacity - room, rest), 0);
	return room;
}

static void all_memory_is_one_allocation(void)
{
	struct accmem_pool *pool = new_pool(0);
	uint64_t rest, room = leave_room(&rest), less;
	void *p;

	for (less = 0; less <= 8192; less = less ? 2 * less : 64) {
		p = accmem_pool_malloc(pool, room - less);
		CHECK(p);
		CHECK_EQ(accmem_pool_release(pool, p), 0);
	}
	CHECK_EQ(accmem_release(context, rest), 0);
	end(pool);
}

/*
 * The only free span that is long enough is the first one that was freed, and behind many
 * that are a little too short. All have one list: 128 to 135 pages.
 */
static void a_span_that_fits_is_found_among_many(void)
{
	const size_t page = 4096, fits = 135, short_by_a_bit = 128;
	struct accmem_pool *pool = new_pool(0);
	static void *spans[512], *between[8192];
	uint64_t rest;
	size_t n = 0, m = 0;

	leave_room(&rest);
	spans[n++] = accmem_pool_malloc(pool, fits * page);
	do {
		between[m++] = accmem_pool_malloc(pool, 17 * page);
		spans[n++] = accmem_pool_malloc(pool, short_by_a_bit * page);
	} while (spans[n - 1] && n < ARRAY_SIZE(spans));
	CHECK(n > 30 && n < ARRAY_SIZE(spans));
	while (m < ARRAY_SIZE(between) &&
	       (between[m] = accmem_pool_malloc(pool, 17 * page)))
		m++;
	/* the last one, and the pieces behind it, are the end of the region */
	n -= 2;
	for (m = 0; m < n; m++)
		CHECK_EQ(accmem_pool_release(pool, spans[m]), 0);
	spans[0] = accmem_pool_malloc(pool, (fits - 2) * page);
	CHECK(spans[0]);
	CHECK_EQ(accmem_release(context, rest), 0);
	end(pool);
}

static void another_pool_of_the_context_gives_back(void)
{
	struct accmem_pool *pool = new_pool(0), *other = new_pool(0);
	uint64_t rest, room = leave_room(&rest);
	void *p = accmem_pool_malloc(other, room / 2);

	CHECK(p);
	CHECK_EQ(accmem_pool_release(other, p), 0);
	CHECK(accmem_pool_malloc(pool, room / 4 * 3));
	CHECK_EQ(accmem_release(context, rest), 0);
	accmem_pool_destroy(other);
	end(pool);
}

static void steps_of_other_sizes_do_not_run_out(void)
{
	struct accmem_pool *pool = new_pool(0);
	unsigned int seed = 7, step;
	uint64_t rest, room = leave_room(&rest), left, length;
	void *p[64];
	int n;

	for (step = 0; step < 60; step++) {
		left = room / 100 * 88;
		for (n = 0; n < 64; n++) {
			length = room / 256 + rand_r(&seed) % (room / 64);
			if (length > left)
				break;
			p[n] = accmem_pool_malloc(pool, length);
			CHECK(p[n]);
			left -= length;
		}
		while (n--)
			CHECK_EQ(accmem_pool_release(pool, p[n]), 0);
	}
	CHECK_EQ(accmem_release(context, rest), 0);
	end(pool);
}

static void a_large_one_fits_again_after_small_ones(void)
{
	struct accmem_pool *pool = new_pool(0);
	uint64_t rest, room = leave_room(&rest);
	void *large = accmem_pool_malloc(pool, room / 100 * 60);
	int i;

	CHECK(large);
	CHECK_EQ(accmem_pool_release(pool, large), 0);
	for (i = 0; i < 20; i++) {
		CHECK(accmem_pool_malloc(pool, room / 200));
		CHECK(accmem_pool_malloc(pool, 50000));
		CHECK(accmem_pool_malloc(pool, 300));
	}
	large = accmem_pool_malloc(pool, room / 100 * 80);
	CHECK(large);
	CHECK_EQ(accmem_release(context, rest), 0);
	end(pool);
}

/* Small blocks, short spans and long spans take turns, each with nearly all the memory. */
static void sizes_take_turns(void)
{
	static const size_t lengths[] = { 2000, 40000, 3 * MIB };
	struct accmem_pool *pool = new_pool(0);
	uint64_t rest, room = leave_room(&rest);
	static void *p[65536];
	size_t i, n, most;

	for (i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		most = room / 100 * 88 /
		       (lengths[i % ARRAY_SIZE(lengths)] + 64);
		for (n = 0; n < most && n < ARRAY_SIZE(p); n++) {
			p[n] = accmem_pool_malloc(pool,
						  lengths[i %
							  ARRAY_SIZE(lengths)]);
			CHECK(p[n]);
		}
		while (n--)
			CHECK_EQ(accmem_pool_release(pool, p[n]), 0);
	}
	CHECK(get_stats(pool).kernel_calls < 2000);
	CHECK_EQ(accmem_release(context, rest), 0);
	end(pool);
}

struct cacher {
	struct accmem_pool *pool;
	pthread_barrier_t step;
};

/* Fill the thread's cache, then make calls that the cache does not serve. */
static void *cache_then_bypass(void *argument)
{
	struct cacher *c = argument;
	void *p[3];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK(p[i] = accmem_pool_malloc(c->pool, 65536));
	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK_EQ(accmem_pool_release(c->pool, p[i]), 0);
	pthread_barrier_wait(&c->step);
	/* the pool is trimmed */
	pthread_barrier_wait(&c->step);
	p[0] = accmem_pool_malloc(c->pool, 100 * 4096);
	CHECK_EQ(accmem_pool_release(c->pool, p[0]), 0);
	pthread_barrier_wait(&c->step);
	pthread_barrier_wait(&c->step);
	return NULL;
}

/* A thread empties its cache at its next call that the cache does not serve. */
static void a_cache_is_emptied_by_any_call(void)
{
	struct cacher c = { .pool = new_pool(0) };
	pthread_t thread;

	pthread_barrier_init(&c.step, NULL, 2);
	CHECK_EQ(pthread_create(&thread, NULL, cache_then_bypass, &c), 0);
	pthread_barrier_wait(&c.step);
	accmem_pool_trim(c.pool, 0);
	CHECK(get_stats(c.pool).reserved_bytes);
	pthread_barrier_wait(&c.step);
	pthread_barrier_wait(&c.step);
	accmem_pool_trim(c.pool, 0);
	CHECK_EQ(get_stats(c.pool).reserved_bytes, 0);
	pthread_barrier_wait(&c.step);
	pthread_join(thread, NULL);
	end(c.pool);
}

static void *use_a_little(void *pool)
{
	void *p = accmem_pool_malloc(pool, 40000);

	CHECK_EQ(accmem_pool_release(pool, p), 0);
	return NULL;
}

/* What a thread's cache had is more than the pool may keep. */
static void the_end_of_a_thread_keeps_no_more(void)
{
	struct accmem_pool_options options = { .size = sizeof(options),
					       .keep_bytes = 1 };
	struct accmem_pool *pool;
	pthread_t thread;

	CHECK_EQ(accmem_open(NULL, &context), 0);
	CHECK_EQ(accmem_pool_create(context, &options, &pool), 0);
	CHECK_EQ(pthread_create(&thread, NULL, use_a_little, pool), 0);
	pthread_join(thread, NULL);
	/* a byte to keep is a page, and the last page of a region is not used */
	CHECK(get_stats(pool).reserved_bytes <= 2 * 4096);
	end(pool);
}

static void the_peak_stays(void)
{
	struct accmem_pool *pool = new_pool(0);
	uint64_t peak;
	void *p[32];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK(p[i] = accmem_pool_malloc(pool, 64));
	peak = get_stats(pool).peak_live_bytes;
	CHECK(peak >= 32 * 64);
	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
	CHECK_EQ(get_stats(pool).live_bytes, 0);
	CHECK_EQ(get_stats(pool).peak_live_bytes, peak);
	accmem_pool_reset_peaks(pool);
	CHECK_EQ(get_stats(pool).peak_live_bytes, 0);
	end(pool);
}

#ifdef FAKE_DEVICE
/* A region of shared memory keeps its length: no call asks for another one. */
static void shared_memory_is_not_resized(void)
{
	struct accmem_pool_options options = { .size = sizeof(options),
					       .keep_bytes = 1 };
	struct accmem_pool_request req = { .length = 100 * 4096,
					   .kind = ACCMEM_KIND_SHARED };
	struct accmem_pool *pool;
	uint64_t calls;
	void *first;

	fake_kinds = true;
	CHECK_EQ(accmem_open(NULL, &context), 0);
	CHECK_EQ(accmem_pool_create(context, &options, &pool), 0);
	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	first = req.pointer;
	calls = get_stats(pool).kernel_calls;
	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	CHECK_EQ(get_stats(pool).kernel_calls, calls);
	CHECK_EQ(accmem_pool_release(pool, first), 0);
	CHECK_EQ(get_stats(pool).reserved_bytes, 0);
	end(pool);
}

/* Nobody holds failed memory, and nobody can give it back. */
static void failed_memory_is_not_held_by_others(void)
{
	struct accmem_pool *pool;

	fake_retired = 4096;
	pool = new_pool(0);
	CHECK(!accmem_pool_malloc(pool, get_capacity()));
	CHECK(strstr(accmem_last_error(), "others 0;"));
	end(pool);
}
#endif

int main(void)
{
	static const struct test tests[] = {
		ROW(a_cache_is_emptied_by_any_call),
		ROW(the_end_of_a_thread_keeps_no_more),
		ROW(the_peak_stays),
#ifdef FAKE_DEVICE
		ROW(shared_memory_is_not_resized),
		ROW(failed_memory_is_not_held_by_others),
#endif
		ROW(what_is_kept_does_not_stand_in_the_way),
		ROW(all_memory_is_one_allocation),
		ROW(a_span_that_fits_is_found_among_many),
		ROW(another_pool_of_the_context_gives_back),
		ROW(steps_of_other_sizes_do_not_run_out),
		ROW(a_large_one_fits_again_after_small_ones),
		ROW(sizes_take_turns),
		ROW(trim_gives_back),
		ROW(no_more_is_kept_than_was_said),
		ROW(calls_of_the_kernel_are_few),
		ROW(what_is_kept_is_given_back_for_what_is_no_piece),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
