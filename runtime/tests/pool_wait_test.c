// SPDX-License-Identifier: MIT
/*
 * Pools and those who wait for memory: on the device in $ACCMEM_DEVICE, and with
 * FAKE_DEVICE over fake_device.c.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

/* After a reset the query fails until the old buffers are free: they are freed. */
static void a_reset_does_not_keep_memory(void)
{
	struct accmem_pool *pool = new_pool(0);
	void *p = accmem_pool_malloc(pool, 8 * MIB);

	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK(get_stats(pool).reserved_bytes);
	fake_revoked = true;
	fake_wait_for(1);
	check_yielded(pool);
	fake_wait_for(0);
	end(pool);
}

/* A registration that fails during a reset is made later. */
static void a_registration_survives_a_reset(void)
{
	const struct timespec pause = { .tv_nsec = 150000000 };
	struct accmem_pool *pool = new_pool(0), *last = new_pool(0);
	void *p = accmem_pool_malloc(pool, 8 * MIB);
	void *q = accmem_pool_malloc(last, 8 * MIB);

	CHECK_EQ(accmem_pool_release(last, q), 0);
	fake_revoked = true;
	accmem_pool_destroy(last);
	fake_revoked = false;
	nanosleep(&pause, NULL);
	q = accmem_pool_malloc(pool, 16 * MIB);
	CHECK_EQ(accmem_pool_release(pool, q), 0);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	fake_wait_for(1);
	check_yielded(pool);
	fake_wait_for(0);
	end(pool);
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
	/* the thread of the pool may be late */
	for (i = 0; i < 20; i++) {
		calls = fake_calls();
		nanosleep(&second, NULL);
		if (fake_calls() == calls)
			break;
	}
	CHECK(i < 20);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	end(pool);
}
#endif

#ifndef FAKE_DEVICE
/* A part of the device's memory */
struct part {
	uint64_t eighths;
	bool allocated; /* or free in the pool */
};

static void keep(const void *argument)
{
	const struct part *part = argument;
	struct accmem_pool *pool;
	void *p[64];
	size_t i, n = 8 * part->eighths;

	/* the context of the parent, if there is one, stays the parent's */
	context = NULL;
	pool = new_pool(0);
	for (i = 0; i < n; i++) {
		p[i] = accmem_pool_malloc(pool, get_capacity() / 64);
		CHECK(p[i]);
	}
	for (i = 0; i < n && !part->allocated; i++)
		CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
}

/* Start a process that keeps memory until test_stop_keeper(). */
static pid_t start_keeper(uint64_t eighths, bool allocated)
{
	const struct part part = { eighths, allocated };

	return test_start_keeper(keep, &part);
}

static void what_another_process_keeps_is_had_without_wait(void)
{
	pid_t child = start_keeper(6, false);
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request half = { .length = get_capacity() / 2 };
	struct accmem_pool_request req = { .length = get_capacity() / 8,
					   .flags = ACCMEM_ALLOC_RESIZABLE };

	CHECK_COMES(accmem_pool_allocate(pool, &half));
	CHECK_EQ(accmem_pool_release(pool, half.pointer), 0);
	test_stop_keeper(child);

	child = start_keeper(6, false);
	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	CHECK_COMES(accmem_pool_reallocate(pool, &req.pointer, half.length));
	CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	test_stop_keeper(child);
	end(pool);
}

/* There is no room for the allocation and its new length at the same time. */
static void what_another_process_keeps_is_had_for_a_resize(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req = { .length = get_capacity() / 8 * 5,
					   .flags = ACCMEM_ALLOC_RESIZABLE };
	uint64_t length = get_capacity() / 16 * 13;
	pid_t child;

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	child = start_keeper(2, false);
	CHECK_COMES(accmem_pool_reallocate(pool, &req.pointer, length));
	/* the buffer that has waited is no allocation of the pool */
	CHECK_EQ(get_stats(pool).allocations, 1);
	CHECK_EQ(get_stats(pool).releases, 0);
	CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	test_stop_keeper(child);
	end(pool);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* The process that holds the memory cannot free it. */
static void a_request_without_wait_fails_after_a_moment(void)
{
	pid_t child = start_keeper(6, true);
	struct accmem_pool *pool = new_pool(0);
	uint64_t begin = now_ns();

	CHECK(!accmem_pool_malloc(pool, get_capacity() / 2));
	CHECK_EQ(errno, ENOMEM);
	CHECK(now_ns() - begin >= 50000000);
	CHECK(now_ns() - begin < 10000000000);
	test_stop_keeper(child);
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

#ifndef FAKE_DEVICE
/* The file of the fake device is always readable. */
static bool is_notified(int ms)
{
	struct pollfd file = { .fd = accmem_fd(context), .events = POLLIN };

	CHECK(poll(&file, 1, ms) >= 0);
	return file.revents & POLLIN;
}

static void *want_most_of_the_device(void *argument)
{
	struct accmem_alloc req = { .length = get_capacity() / 8 * 7,
				    .flags = ACCMEM_ALLOC_WAIT,
				    .deadline_ns = now_ns() + 60000000000 };
	struct accmem_context *other;

	CHECK_EQ(accmem_open(NULL, &other), 0);
	CHECK_EQ(accmem_allocate(other, &req), 0);
	accmem_close(other);
	return argument;
}

/* Of a larger allocation the pool would keep nothing. */
static void keep_half_of_the_device(struct accmem_pool *pool)
{
	void *p[32];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(p); i++) {
		p[i] = accmem_pool_malloc(pool, get_capacity() / 64);
		CHECK(p[i]);
	}
	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
	CHECK(get_stats(pool).reserved_bytes >= get_capacity() / 2);
}

static void a_notified_program_yields(struct accmem_pool *pool)
{
	pthread_t thread;

	keep_half_of_the_device(pool);
	CHECK(!is_notified(0));
	CHECK_EQ(pthread_create(&thread, NULL, want_most_of_the_device, NULL),
		 0);
	CHECK(is_notified(10000));
	CHECK(accmem_pool_yield(pool) >= get_capacity() / 2);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK(!is_notified(0));
}

/*
 * A pool with a thread replaces the registration of the passive pool. When the other pool
 * ends, the passive pool is registered again.
 */
static void a_program_with_a_passive_pool_is_notified(void)
{
	struct accmem_pool *pool = new_pool(ACCMEM_POOL_PASSIVE), *active;
	void *p;

	a_notified_program_yields(pool);
	active = new_pool(0);
	p = accmem_pool_malloc(active, 8 * MIB);
	CHECK(p);
	CHECK_EQ(accmem_pool_release(active, p), 0);
	accmem_pool_destroy(active);
	a_notified_program_yields(pool);
	accmem_pool_destroy(new_pool(ACCMEM_POOL_PASSIVE));
	a_notified_program_yields(pool);
	end(pool);
}
#endif

/* A request that waits in a thread of its own, which may begin if others may not */
struct sleeper {
	struct accmem_pool *pool;
	struct accmem_pool_request req;
	pthread_t thread;
	int fails;
	int ret;
};

static void *sleep_in_wait(void *argument)
{
	struct sleeper *s = argument;

#ifdef FAKE_DEVICE
	fake_fail_threads = s->fails;
#endif
	s->ret = accmem_pool_allocate(s->pool, &s->req);
	return NULL;
}

static void begin_to_wait(struct sleeper *s, uint64_t length)
{
	const struct timespec pause = { .tv_nsec = 100000000 };

#ifdef FAKE_DEVICE
	fake_waits = true;
	s->fails = fake_fail_threads;
	fake_fail_threads = 0;
#endif
	s->req.length = length;
	s->req.flags = ACCMEM_ALLOC_WAIT;
	CHECK_EQ(pthread_create(&s->thread, NULL, sleep_in_wait, s), 0);
	nanosleep(&pause, NULL);
}

static void end_of_wait(struct sleeper *s)
{
	struct timespec patience;

	clock_gettime(CLOCK_REALTIME, &patience);
	patience.tv_sec += 30;
	CHECK_EQ(pthread_timedjoin_np(s->thread, NULL, &patience), 0);
	CHECK_EQ(s->ret, 0);
	CHECK_EQ(accmem_pool_release(s->pool, s->req.pointer), 0);
	end(s->pool);
}

static void what_others_release_goes_to_who_waits(void)
{
	struct sleeper s = { .pool = new_pool(ACCMEM_POOL_PASSIVE) };
	uint64_t part = get_capacity() / 4;
	void *p[3];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(p); i++) {
		p[i] = accmem_pool_malloc(s.pool, part);
		CHECK(p[i]);
	}
	begin_to_wait(&s, 3 * part);
	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK_EQ(accmem_pool_release(s.pool, p[i]), 0);
	end_of_wait(&s);
}

/* Nobody calls the pool when the stream comes to it. */
static void wait_for_a_stream(void)
{
	struct sleeper s = { .pool = new_pool(0) };
	uint64_t part = get_capacity() / 8;
	void *p[7];
	int stream;
	size_t i;

	CHECK_EQ(accmem_open_stream(context, &stream), 0);
	for (i = 0; i < ARRAY_SIZE(p); i++) {
		p[i] = accmem_pool_malloc(s.pool, part);
		CHECK(p[i]);
		CHECK_EQ(accmem_pool_release_at(s.pool, p[i], stream, 1), 0);
	}
	begin_to_wait(&s, 6 * part);
	CHECK_EQ(accmem_signal(stream, 1), 0);
	end_of_wait(&s);
	close(stream);
}

static void what_a_stream_reaches_goes_to_who_waits(void)
{
	wait_for_a_stream();
}

/* In a child no thread looks at the streams of an inherited context: who waits does. */
static void a_child_looks_at_its_streams(void)
{
	int status;
	pid_t pid;

	CHECK_EQ(accmem_open(NULL, &context), 0);
	pid = fork();
	if (!pid) {
		alarm(60);
		wait_for_a_stream();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	accmem_close(context);
}

#ifdef FAKE_DEVICE
static void who_waits_looks_where_no_thread_does(void)
{
	fake_fail_threads = INT_MAX;
	wait_for_a_stream();
	CHECK(fake_fail_threads < INT_MAX - 1);
}

static void expect_no_place_in_line(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req = {
		.length = 2 * get_capacity() / 3,
		.flags = ACCMEM_ALLOC_WAIT,
	};
	void *p = accmem_pool_malloc(pool, req.length);

	CHECK(p);
	fake_waits = true;
	fake_full = true;
	alarm(20);
	CHECK_EQ(accmem_pool_allocate(pool, &req), -EAGAIN);
	alarm(0);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	end(pool);
}

static void who_cannot_wait_is_told(void)
{
	expect_no_place_in_line();
	/* nor does one who would look between turns */
	fake_fail_threads = INT_MAX;
	expect_no_place_in_line();
}
#endif

int main(void)
{
	static const struct test tests[] = {
		ROW(memory_goes_to_those_who_wait),
#ifdef FAKE_DEVICE
		ROW(what_comes_back_later_goes_to_those_who_wait),
		ROW(a_reset_does_not_keep_memory),
		ROW(a_registration_survives_a_reset),
#endif
#ifndef FAKE_DEVICE
		ROW(what_another_process_keeps_is_had_without_wait),
		ROW(what_another_process_keeps_is_had_for_a_resize),
		ROW(a_request_without_wait_fails_after_a_moment),
#endif
		ROW(all_pools_of_a_context_yield),
		ROW(a_passive_pool_yields_when_it_is_called),
#ifndef FAKE_DEVICE
		ROW(a_program_with_a_passive_pool_is_notified),
#endif
		ROW(what_others_release_goes_to_who_waits),
		ROW(what_a_stream_reaches_goes_to_who_waits),
		ROW(a_child_looks_at_its_streams),
#ifdef FAKE_DEVICE
		ROW(who_waits_looks_where_no_thread_does),
		ROW(who_cannot_wait_is_told),
#endif
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
