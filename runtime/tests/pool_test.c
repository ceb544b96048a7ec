// SPDX-License-Identifier: MIT
/*
 * Pools on a device: /dev/accmem0, or the one in $ACCMEM_DEVICE. Built with
 * FAKE_DEVICE they run on the host over fake_device.c instead.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pool_tests.h"

static uint32_t both[] = { 0, ACCMEM_POOL_DIRECT };

static void options_are_checked(void)
{
	struct accmem_pool_options options = { .size = sizeof(options),
					       .flags = 0x80 };
	struct accmem_pool *pool = new_pool(0);

	CHECK_EQ(accmem_pool_create(context, &options, &pool), -EINVAL);
	options.flags = 0;
	options.size = 4;
	CHECK_EQ(accmem_pool_create(context, &options, &pool), -EINVAL);
	end(pool);
	accmem_pool_destroy(NULL);
}

static void
pointers_and_addresses_differ_by_a_constant(struct accmem_pool *pool)
{
	void *a = accmem_pool_malloc(pool, 100);
	void *b = accmem_pool_malloc(pool, 3 * MIB);

	CHECK(a && b);
	CHECK_EQ((intptr_t)b - (intptr_t)a,
		 (int64_t)(accmem_pool_address(pool, b) -
			   accmem_pool_address(pool, a)));
	CHECK(accmem_pool_pointer(pool, accmem_pool_address(pool, a)) == a);
	CHECK_EQ(accmem_pool_address(pool, &a), 0);
	CHECK(!accmem_pool_pointer(pool, 1));
	CHECK_EQ(accmem_pool_release(pool, a), 0);
	CHECK_EQ(accmem_pool_release(pool, b), 0);
}

static void lookup_finds_interior(struct accmem_pool *pool)
{
	static const size_t lengths[] = {
		1, 63, 64, 2048, 2049, 4096, 10000, 65536, 3 * MIB, 40 * MIB
	};
	struct accmem_pool_block block;
	char *p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		p = accmem_pool_malloc(pool, lengths[i]);
		CHECK(p);
		CHECK_EQ((uintptr_t)p % 64, 0);
		CHECK_EQ(accmem_pool_lookup(pool, p + lengths[i] - 1, &block),
			 0);
		CHECK(block.pointer == p);
		CHECK_EQ(block.length, lengths[i]);
		CHECK(block.usable >= lengths[i]);
		CHECK_EQ(block.kind, ACCMEM_KIND_DEVICE);
		CHECK(block.pool == pool);
		CHECK_EQ(accmem_pool_usable_size(pool, p), block.usable);
		CHECK_EQ(accmem_pool_find(p, &block), 0);
		CHECK_EQ(accmem_pool_release(pool, p), 0);
		CHECK_EQ(accmem_pool_lookup(pool, p, &block), -ENOENT);
		CHECK_EQ(accmem_pool_find(p, &block), -ENOENT);
	}
	CHECK_EQ(accmem_pool_find(&block, NULL), -ENOENT);
}

static void bad_pointers_are_refused(struct accmem_pool *pool)
{
	static const size_t lengths[] = { 64, 5000, MIB };
	size_t i;
	char *p;

	CHECK_EQ(accmem_pool_release(pool, NULL), -ENOENT);
	CHECK_EQ(accmem_pool_release(pool, &p), -ENOENT);
	CHECK_EQ(accmem_pool_release(pool, (void *)-64), -ENOENT);
	CHECK_EQ(accmem_pool_map(pool, &p), -ENOENT);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		p = accmem_pool_malloc(pool, lengths[i]);
		CHECK_EQ(accmem_pool_release(pool, p + 1), -EINVAL);
		CHECK_EQ(accmem_pool_release(pool, p + lengths[i] - 1),
			 -EINVAL);
		CHECK(strstr(accmem_last_error(), "into an allocation"));
		CHECK_EQ(accmem_pool_release(pool, p), 0);
		CHECK_EQ(accmem_pool_release(pool, p), -ENOENT);
	}
}

static void bad_requests_are_refused(struct accmem_pool *pool)
{
	struct accmem_pool_request req = { .length = 0 };

	CHECK_EQ(accmem_pool_allocate(pool, &req), -EINVAL);
	CHECK(!accmem_pool_malloc(pool, 0));
	CHECK_EQ(errno, EINVAL);
	req.length = 64;
	req.flags = ACCMEM_ALLOC_FIXED;
	CHECK_EQ(accmem_pool_allocate(pool, &req), -EINVAL);
	CHECK(!accmem_pool_malloc(pool, SIZE_MAX / 2));
	CHECK(*accmem_last_error());
}

static void memory_is_mapped_on_demand(struct accmem_pool *pool)
{
	struct accmem_pool_request req = { .length = 100, .mapped = 1 };
	char *p = accmem_pool_malloc(pool, 3 * MIB);

	CHECK_EQ(accmem_pool_map(pool, p + 5), 0);
	CHECK_EQ(accmem_pool_map(pool, p), 0);
	memset(p, 7, 3 * MIB);
	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	memset(req.pointer, 8, 100);
	CHECK_EQ(p[3 * MIB - 1], 7);
	CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
}

static void resizable_keeps_its_bytes(struct accmem_pool *pool)
{
	struct accmem_pool_request req = { .length = MIB,
					   .mapped = 1,
					   .flags = ACCMEM_ALLOC_RESIZABLE };
	struct accmem_pool_block block;
	void *p;

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	p = req.pointer;
	memset(p, 9, MIB);
	CHECK_EQ(accmem_pool_reallocate(pool, &p, 2 * MIB), 0);
	CHECK_EQ(((char *)p)[MIB - 1], 9);
	((char *)p)[2 * MIB - 1] = 3;
	CHECK_EQ(accmem_pool_lookup(pool, (char *)p + MIB, &block), 0);
	CHECK(block.pointer == p);
	CHECK_EQ(block.length, 2 * MIB);
	CHECK_EQ(accmem_pool_reallocate(pool, &p, 4096), 0);
	CHECK_EQ(((char *)p)[4095], 9);
	CHECK_EQ(accmem_pool_reallocate(pool, &p, 0), -EINVAL);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK_EQ(accmem_pool_reallocate(pool, &p, 4096), -ENOENT);
}

static void exhaustion_says_what_there_is(struct accmem_pool *pool)
{
	struct accmem_info info;

	CHECK_EQ(accmem_get_info(context, 0, &info), 0);
	CHECK(!accmem_pool_malloc(pool, info.capacity + info.granule));
	CHECK_EQ(errno, ENOMEM);
	CHECK(strstr(accmem_last_error(), "largest run"));
	CHECK(strstr(accmem_last_error(), "accmem_pool_trim()"));
}

static void stats_count(struct accmem_pool *pool)
{
	struct accmem_pool_stats stats;
	void *p = accmem_pool_malloc(pool, MIB);

	accmem_pool_get_stats(pool, &stats);
	CHECK_EQ(stats.allocations, 1);
	CHECK(stats.live_bytes >= MIB);
	CHECK(stats.reserved_bytes >= MIB);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	accmem_pool_get_stats(pool, &stats);
	CHECK_EQ(stats.releases, 1);
	CHECK_EQ(stats.live_bytes, 0);
	CHECK(stats.peak_live_bytes >= MIB);
	accmem_pool_reset_peaks(pool);
	accmem_pool_get_stats(pool, &stats);
	CHECK_EQ(stats.peak_live_bytes, 0);
}

/* The parent's stays the parent's, and the child's own is another. */
static void a_child_has_memory_of_its_own(struct accmem_pool *pool)
{
	static const size_t lengths[] = { 64, 5000, MIB };
	size_t i;
	int status;
	char *p, *q;
	pid_t pid;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		p = accmem_pool_malloc(pool, lengths[i]);
		CHECK_EQ(accmem_pool_map(pool, p), 0);
		*p = 1;
		CHECK_EQ(accmem_pool_release(pool,
					     accmem_pool_malloc(pool,
								lengths[i])),
			 0);
		pid = fork();
		if (!pid) {
			CHECK_EQ(*p, 1);
			q = accmem_pool_malloc(pool, lengths[i]);
			CHECK(q && q != p);
			CHECK_EQ(accmem_pool_map(pool, q), 0);
			*q = 2;
			CHECK_EQ(accmem_pool_release(pool, p), 0);
			CHECK_EQ(accmem_pool_release(pool, p), -ENOENT);
			CHECK_EQ(accmem_pool_release(pool, q), 0);
			accmem_pool_destroy(pool);
			_exit(0);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
		CHECK_EQ(*p, 1);
		CHECK_EQ(accmem_pool_release(pool, p), 0);
	}
}

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

static int open_stream(void)
{
	int stream;

	CHECK_EQ(accmem_open_stream(context, &stream), 0);
	return stream;
}

static struct accmem_pool_request allocate_on(struct accmem_pool *pool,
					      int stream, uint64_t length)
{
	struct accmem_pool_request req = { .length = length,
					   .on_stream = 1,
					   .stream = stream };

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	return req;
}

static void a_release_waits_for_its_position(void)
{
	static const size_t lengths[] = { 64, 5000, MIB };
	struct accmem_pool *pool = new_pool(0);
	int stream = open_stream(), other = open_stream();
	struct accmem_pool_request req;
	size_t i, j;
	void *p, *q;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		p = accmem_pool_malloc(pool, lengths[i]);
		CHECK_EQ(accmem_pool_release_at(pool, p, stream, i + 1), 0);
		CHECK_EQ(accmem_pool_release(pool, p), -ENOENT);
		CHECK_EQ(accmem_pool_lookup(pool, p, NULL), -ENOENT);
		CHECK(get_stats(pool).pending_bytes >= lengths[i]);
		for (j = 0; j < 100; j++) {
			q = accmem_pool_malloc(pool, lengths[i]);
			CHECK(q && q != p);
			CHECK_EQ(accmem_pool_release(pool, q), 0);
		}
		req = allocate_on(pool, other, lengths[i]);
		CHECK(req.pointer != p);
		CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
		/* the stream itself may have it at once */
		req = allocate_on(pool, stream, lengths[i]);
		CHECK(req.pointer == p);
		CHECK_EQ(req.position, i + 1);
		CHECK_EQ(get_stats(pool).pending_bytes, 0);
		CHECK_EQ(accmem_pool_release_at(pool, p, stream, i + 1), 0);
		CHECK_EQ(accmem_signal(stream, i + 1), 0);
		accmem_pool_trim(pool, ACCMEM_POOL_KEEP_ALL);
		CHECK_EQ(get_stats(pool).pending_bytes, 0);
		/* a position that is reached is not waited for */
		p = accmem_pool_malloc(pool, lengths[i]);
		CHECK_EQ(accmem_pool_release_at(pool, p, stream, i + 1), 0);
		CHECK_EQ(get_stats(pool).pending_bytes, 0);
	}
	p = accmem_pool_malloc(pool, 64);
	CHECK_EQ(accmem_pool_release_at(pool, p, -1, 1), -EBADF);
	CHECK_EQ(accmem_pool_release_at(pool, (char *)p + 1, stream, 9),
		 -EINVAL);
	CHECK_EQ(accmem_pool_release_at(pool, NULL, stream, 9), -ENOENT);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	close(stream);
	close(other);
	end(pool);
}

/* Of its size, and with a smaller alignment than is asked for on its stream */
static void a_block_that_waits_is_not_aligned(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req = { .length = 100,
					   .mapped = 1,
					   .on_stream = 1 };
	char *p[2];
	size_t i;

	req.stream = open_stream();
	for (i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = accmem_pool_malloc(pool, 100);
	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK_EQ(accmem_pool_release_at(pool, p[i], req.stream, 1), 0);
	for (req.alignment = 256; req.alignment <= 4096; req.alignment *= 2) {
		CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
		CHECK(req.pointer != p[0] && req.pointer != p[1]);
		CHECK_EQ((uintptr_t)req.pointer % req.alignment, 0);
		memset(req.pointer, 1, req.usable);
		CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	}
	/* what is not aligned may have them */
	req.alignment = 0;
	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	CHECK(req.pointer == p[0] || req.pointer == p[1]);
	CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	CHECK_EQ(accmem_signal(req.stream, 1), 0);
	close(req.stream);
	end(pool);
}

static void streams_are_joined_before_a_request_fails(void)
{
	struct accmem_pool *pool = new_pool(0);
	int stream[2] = { open_stream(), open_stream() };
	static void *p[FILL_MAX];
	size_t n = fill(pool, p, FILL_MAX, FILL_LENGTH), i;

	for (i = 0; i < n; i++)
		CHECK_EQ(accmem_pool_release_at(pool, p[i], stream[i % 2], 1),
			 0);
	CHECK(!accmem_pool_malloc(pool, FILL_LENGTH));
	CHECK_EQ(accmem_signal(stream[0], 1), 0);
	CHECK_EQ(accmem_signal(stream[1], 1), 0);
	p[0] = accmem_pool_malloc(pool, get_capacity() * 3 / 4);
	CHECK(p[0]);
	CHECK_EQ(accmem_pool_release(pool, p[0]), 0);
	close(stream[0]);
	close(stream[1]);
	end(pool);
}

/* A stream that is none is no reason to take the mapping away. */
static void a_release_that_is_refused_changes_nothing(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req = { .length = 3 * MIB,
					   .flags = ACCMEM_ALLOC_RESIZABLE,
					   .mapped = 1 };
	unsigned char *p;

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	p = req.pointer;
	p[5] = 77;
	CHECK_EQ(accmem_pool_release_at(pool, p, -1, 1), -EBADF);
	CHECK_EQ(p[5], 77);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
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

static void no_descriptor_is_opened_for_an_allocation(void)
{
	const struct rlimit few = { 64, 64 };
	struct accmem_pool *pool;
	static void *p[2000];
	size_t i;

	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	pool = new_pool(0);
	for (i = 0; i < ARRAY_SIZE(p); i++) {
		p[i] = accmem_pool_malloc(pool, 1 + i * 16);
		CHECK(p[i]);
		CHECK_EQ(accmem_pool_map(pool, p[i]), 0);
	}
	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
	end(pool);
}

static void a_lookup_finds_what_was_reallocated(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req = {
		.length = 3 * MIB,
		.page_policy = ACCMEM_PAGE_HUGE_FIRST,
		.flags = ACCMEM_ALLOC_RESIZABLE | ACCMEM_ALLOC_ROUND32 |
			 ACCMEM_ALLOC_TAIL32,
	};
	struct accmem_pool_block block;

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	CHECK_EQ(accmem_pool_lookup(pool, req.pointer, &block), 0);
	CHECK_EQ(block.length, 3 * MIB + 32);
	CHECK_EQ(block.page_size, 2 * MIB);
	CHECK_EQ(accmem_pool_reallocate(pool, &req.pointer, 5000), 0);
	CHECK_EQ(accmem_pool_lookup(pool, req.pointer, &block), 0);
	CHECK_EQ(block.length, 5024 + 32);
	CHECK_EQ(block.usable, 5024 + 32);
	CHECK_EQ(block.page_size, 4096);
	CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
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

static void growth_in_steps_copies_nothing(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req = { .length = 65536,
					   .mapped = 1,
					   .flags = ACCMEM_ALLOC_RESIZABLE,
					   .reserve = 16 * MIB };
	void *p;
	size_t i;

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	p = req.pointer;
	*(char *)p = 77;
	for (i = 2; i <= 256; i++)
		CHECK_EQ(accmem_pool_reallocate(pool, &p, i * 65536), 0);
	CHECK(p == req.pointer);
	CHECK_EQ(*(char *)p, 77);
	((char *)p)[16 * MIB - 1] = 1;
	CHECK_EQ(get_stats(pool).copied_bytes, 0);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	p = accmem_pool_malloc(pool, 5000);
	CHECK_EQ(accmem_pool_reallocate(pool, &p, 6000), -EPERM);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	end(pool);
}

static void alignments_are_honoured(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req;
	uint64_t alignment;

	for (alignment = 1; alignment <= 4 * MIB; alignment *= 2) {
		req = (struct accmem_pool_request){ .length = 100,
						    .alignment = alignment };
		CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
		CHECK_EQ((uintptr_t)req.address % alignment, 0);
		CHECK(alignment > 2 * MIB ||
		      (uintptr_t)req.pointer % alignment == 0);
		CHECK(req.usable >= 100);
		CHECK_EQ(accmem_pool_usable_size(pool, req.pointer),
			 req.usable);
		CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	}
	req = (struct accmem_pool_request){ .length = 100, .alignment = 48 };
	CHECK_EQ(accmem_pool_allocate(pool, &req), -EINVAL);
	end(pool);
}

#ifdef FAKE_DEVICE
#define ADDRESSES (32ull << 30) /* of the device */

/* Room for the window, and not for one that is aligned to 1 GiB */
static void an_alignment_is_that_of_the_pointer(void)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit limit = unlimited;
	struct accmem_pool_request req;
	struct accmem_pool *pool;
	unsigned long pages;
	FILE *statm;
	int ret;

	statm = fopen("/proc/self/statm", "r");
	CHECK(statm);
	CHECK_EQ(fscanf(statm, "%lu", &pages), 1);
	fclose(statm);
	limit.rlim_cur = pages * 4096ull + 2 * ADDRESSES + 512 * MIB;
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
	pool = new_pool(0);
	CHECK_EQ(setrlimit(RLIMIT_AS, &unlimited), 0);
	req = (struct accmem_pool_request){ .length = 100 };
	for (req.alignment = MIB; req.alignment <= 1024 * MIB;
	     req.alignment *= 2) {
		ret = accmem_pool_allocate(pool, &req);
		CHECK(ret == 0 || ret == -EINVAL);
		CHECK(ret == 0 || req.alignment > 2 * MIB);
		if (ret)
			continue;
		CHECK_EQ((uintptr_t)req.pointer % req.alignment, 0);
		CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	}
	end(pool);
}
#endif

/* A kind that the device has is the CPU's at once; one that it has not is refused. */
static void check_kind(struct accmem_pool *pool, uint32_t kind,
		       uint64_t feature)
{
	static const size_t lengths[] = { 1, 64, 5000, MIB, 5 * MIB };
	struct accmem_pool_block block;
	struct accmem_pool_request req;
	struct accmem_info info;
	size_t i;

	CHECK_EQ(accmem_get_info(context, 0, &info), 0);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		req = (struct accmem_pool_request){ .length = lengths[i],
						    .kind = kind };
		if (!(info.features & feature)) {
			CHECK_EQ(accmem_pool_allocate(pool, &req), -EOPNOTSUPP);
			continue;
		}
		CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
		memset(req.pointer, i + 1, lengths[i]);
		CHECK_EQ(accmem_pool_lookup(pool, req.pointer, &block), 0);
		CHECK_EQ(block.kind, kind);
		CHECK_EQ(((char *)req.pointer)[lengths[i] - 1], i + 1);
		CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
		CHECK_EQ(accmem_pool_release(pool, req.pointer), -ENOENT);
	}
}

static void kinds_are_what_they_are(struct accmem_pool *pool)
{
	check_kind(pool, ACCMEM_KIND_HOST, ACCMEM_FEATURE_HOST);
	check_kind(pool, ACCMEM_KIND_SHARED, ACCMEM_FEATURE_SHARED);
}

/* All that was written to @file. */
static char *text_of(FILE *file)
{
	static char text[1 << 20];
	size_t n;

	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	return text;
}

static unsigned int count_of(const char *text, const char *word)
{
	unsigned int n = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		n++;
	}
	return n;
}

/* The numbers after @word, added up. */
static unsigned long long sum_of(const char *text, const char *word)
{
	unsigned long long sum = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		sum += strtoull(text, NULL, 10);
	}
	return sum;
}

static void a_snapshot_has_everything(void)
{
	struct accmem_pool *pool = new_pool(ACCMEM_POOL_HISTORY);
	FILE *file = tmpfile();
	void *p[4], *freed;
	const char *text;
	size_t i;

	CHECK(file);
	freed = accmem_pool_malloc(pool, 300);
	p[0] = accmem_pool_malloc(pool, 100);
	p[1] = accmem_pool_malloc(pool, 5000);
	p[2] = accmem_pool_malloc(pool, MIB);
	p[3] = accmem_pool_malloc(pool, 300);
	CHECK_EQ(accmem_pool_release(pool, freed), 0);
	CHECK_EQ(accmem_pool_snapshot(pool, fileno(file)), 0);
	text = text_of(file);
	CHECK_EQ(count_of(text, "active_allocated"), 4);
	CHECK_EQ(count_of(text, "\"action\": \"alloc\""), 5);
	CHECK_EQ(count_of(text, "free_completed"), 1);
	CHECK_EQ(count_of(text, "\"requested_size\": 5000"), 1);
	/* the blocks of the segments are all that they have */
	CHECK_EQ(sum_of(strstr(text, "segments"), "\"total_size\": "),
		 get_stats(pool).reserved_bytes);
	*strstr(text_of(file), "device_traces") = '\0';
	CHECK_EQ(sum_of(text, " \"size\": "), get_stats(pool).reserved_bytes);
	text = text_of(file);
	CHECK_EQ(count_of(text, "{"), count_of(text, "}"));
	CHECK_EQ(count_of(text, "["), count_of(text, "]"));
	CHECK_EQ(accmem_pool_snapshot(pool, -1), -EBADF);
	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
	fclose(file);
	end(pool);
}

static void leaks_are_told_with_their_call_sites(void)
{
	struct accmem_pool *pool = new_pool(ACCMEM_POOL_LEAKS);
	FILE *file = tmpfile();
	void *p = accmem_pool_malloc(pool, 100);
	void *q = accmem_pool_malloc(pool, 5 * MIB);

	CHECK(file && p && q);
	CHECK_EQ(accmem_pool_report_leaks(pool, fileno(file)), 2);
	CHECK_EQ(count_of(text_of(file), "bytes not released"), 2);
	CHECK_EQ(count_of(text_of(file), "allocated by"), 2);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK_EQ(accmem_pool_release(pool, q), 0);
	CHECK_EQ(accmem_pool_report_leaks(pool, fileno(file)), 0);
	fclose(file);
	end(pool);
}

typedef void pool_test(struct accmem_pool *pool);

/* Whatever a pool does, it does with pools off as well. */
static void run_both(pool_test *test)
{
	struct accmem_pool *pool;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(both); i++) {
		pool = new_pool(both[i]);
		test(pool);
		end(pool);
	}
}

#ifdef FAKE_DEVICE
/* What there was has gone with it, and nothing is left to be released twice. */
static void what_a_gone_device_had_is_gone(struct accmem_pool *pool)
{
	struct accmem_pool_request resizable = {
		.length = MIB, .flags = ACCMEM_ALLOC_RESIZABLE
	};
	struct accmem_pool_request long_one = { .length = 300 * MIB };
	void *small = accmem_pool_malloc(pool, 100);
	void *span = accmem_pool_malloc(pool, MIB), *again;
	void *at = accmem_pool_malloc(pool, 2 * MIB);
	int stream;

	CHECK(small && span && at);
	CHECK_EQ(accmem_open_stream(context, &stream), 0);
	CHECK_EQ(accmem_pool_allocate(pool, &resizable), 0);
	again = resizable.pointer;
	fake_gone = true;
	CHECK_EQ(accmem_pool_allocate(pool, &long_one), -ENODEV);
	CHECK(strstr(accmem_last_error(), strerror(ENODEV)));
	CHECK(!accmem_pool_malloc(pool, 200 * MIB));
	CHECK_EQ(errno, ENODEV);
	CHECK_EQ(accmem_pool_reallocate(pool, &again, 2 * MIB), -ENODEV);
	CHECK_EQ(again, resizable.pointer);
	CHECK_EQ(accmem_pool_lookup(pool, span, NULL), 0);
	CHECK_EQ(accmem_pool_release_at(pool, at, stream, 5), 0);
	CHECK_EQ(accmem_pool_release(pool, small), 0);
	CHECK_EQ(accmem_pool_release(pool, span), 0);
	CHECK_EQ(accmem_pool_release(pool, again), 0);
	CHECK_EQ(accmem_pool_release(pool, again), -ENOENT);
	CHECK_EQ(accmem_pool_release(pool, at), -ENOENT);
	accmem_pool_trim(pool, 0);
	CHECK_EQ(get_stats(pool).live_bytes, 0);
	CHECK_EQ(get_stats(pool).reserved_bytes, 0);
	CHECK_EQ(get_stats(pool).pending_bytes, 0);
	CHECK_EQ(accmem_pool_yield(pool), 0);
	close(stream);
}

static void a_device_may_go(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(both); i++) {
		struct accmem_pool *pool = new_pool(both[i]);

		what_a_gone_device_had_is_gone(pool);
		accmem_pool_destroy(pool);
		CHECK_EQ(accmem_pool_create(context, NULL, &pool), -ENODEV);
		accmem_close(context);
		CHECK_EQ(accmem_open(NULL, &context), -ENODEV);
		context = NULL;
		fake_gone = false;
	}
}
#endif

#define BOTH(test)                    \
	static void test##_both(void) \
	{                             \
		run_both(test);       \
	}
#define ROW_BOTH(test)             \
	{                          \
#test, test##_both \
	}

BOTH(pointers_and_addresses_differ_by_a_constant)
BOTH(lookup_finds_interior)
BOTH(bad_pointers_are_refused)
BOTH(bad_requests_are_refused)
BOTH(memory_is_mapped_on_demand)
BOTH(resizable_keeps_its_bytes)
BOTH(exhaustion_says_what_there_is)
BOTH(stats_count)
BOTH(kinds_are_what_they_are)
BOTH(a_child_has_memory_of_its_own)

int main(void)
{
	static const struct test tests[] = {
		ROW(options_are_checked),
		ROW_BOTH(pointers_and_addresses_differ_by_a_constant),
		ROW_BOTH(lookup_finds_interior),
		ROW_BOTH(bad_pointers_are_refused),
		ROW_BOTH(bad_requests_are_refused),
		ROW_BOTH(memory_is_mapped_on_demand),
		ROW_BOTH(resizable_keeps_its_bytes),
		ROW_BOTH(exhaustion_says_what_there_is),
		ROW_BOTH(stats_count),
		ROW_BOTH(kinds_are_what_they_are),
		ROW_BOTH(a_child_has_memory_of_its_own),
		ROW(what_is_kept_does_not_stand_in_the_way),
		ROW(trim_gives_back),
		ROW(no_more_is_kept_than_was_said),
#ifdef FAKE_DEVICE
		ROW(a_device_may_go),
#endif
		ROW(a_release_waits_for_its_position),
		ROW(a_block_that_waits_is_not_aligned),
		ROW(streams_are_joined_before_a_request_fails),
		ROW(a_release_that_is_refused_changes_nothing),
		ROW(what_is_kept_is_given_back_for_what_is_no_piece),
		ROW(memory_goes_to_those_who_wait),
#ifdef FAKE_DEVICE
		ROW(what_comes_back_later_goes_to_those_who_wait),
#endif
		ROW(all_pools_of_a_context_yield),
		ROW(a_passive_pool_yields_when_it_is_called),
		ROW(no_descriptor_is_opened_for_an_allocation),
		ROW(a_lookup_finds_what_was_reallocated),
		ROW(calls_of_the_kernel_are_few),
		ROW(growth_in_steps_copies_nothing),
		ROW(alignments_are_honoured),
#ifdef FAKE_DEVICE
		ROW(an_alignment_is_that_of_the_pointer),
#endif
		ROW(a_snapshot_has_everything),
		ROW(leaks_are_told_with_their_call_sites),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
