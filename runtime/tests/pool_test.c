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
#include <unistd.h>

#include "pool_tests.h"

static uint32_t both[] = { 0, ACCMEM_POOL_DIRECT };

static void options_are_checked(void)
{
	struct accmem_pool_options options = { .size = sizeof(options),
					       .flags = 0x80 };
	struct accmem_pool *pool = new_pool(0);

	CHECK_EQ(accmem_pool_create(context, &options, &pool), -EINVAL);
	CHECK(strstr(accmem_last_error(), "flags 0x80"));
	options.flags = 0;
	options.size = 4;
	CHECK_EQ(accmem_pool_create(context, &options, &pool), -EINVAL);
	CHECK(strstr(accmem_last_error(), "4 bytes"));
	end(pool);
	/* the size may be left to the library, as that of all structures */
	CHECK_EQ(accmem_open(NULL, &context), 0);
	options.size = 0;
	CHECK_EQ(accmem_pool_create(context, &options, &pool), 0);
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
	void *p = accmem_pool_malloc(pool, 64);
	struct accmem_info info;

	CHECK(p);
	CHECK_EQ(accmem_get_info(context, 0, &info), 0);
	CHECK(!accmem_pool_malloc(pool, info.capacity + info.granule));
	CHECK_EQ(errno, ENOMEM);
	CHECK(strstr(accmem_last_error(), "more than the device has"));
	CHECK(!accmem_pool_malloc(pool, info.capacity));
	CHECK_EQ(errno, ENOMEM);
	CHECK(strstr(accmem_last_error(), "largest run"));
	CHECK(strstr(accmem_last_error(), "accmem_pool_trim()"));
	CHECK_EQ(accmem_pool_release(pool, p), 0);
}

static void what_is_invalid_is_named(struct accmem_pool *pool)
{
	static const struct {
		struct accmem_pool_request req;
		const char *words;
	} rows[] = {
		{ { .length = 0 }, "length is 0" },
		{ { .length = 64, .alignment = 3 }, "alignment 3 is no power" },
		{ { .length = 64, .alignment = 1ull << 62 }, "is more than" },
		{ { .length = 64, .flags = 1u << 31 }, "flags 0x80000000" },
		{ { .length = 64, .mapped = 2 }, "are 0 or 1" },
		{ { .length = 64, .on_stream = 2 }, "are 0 or 1" },
		{ { .length = 64, .stream = 1 }, "without on_stream" },
		{ { .length = 64, .on_stream = 1, .stream = -1 },
		  "without a stream" },
		{ { .length = 64, .exportable = 2 }, "are 0 or 1" },
		{ { .length = 64, .exportable = 1, .on_stream = 1 },
		  "exclude" },
		{ { .length = 64, .flags = ACCMEM_ALLOC_FIXED },
		  "pools do not have" },
#ifndef FAKE_DEVICE
		{ { .length = 64, .flags = ACCMEM_ALLOC_TAIL32 },
		  "TAIL32 without ROUND32" },
		{ { .length = 64, .deadline_ns = 1 }, "deadline without WAIT" },
		{ { .length = 64, .kind = 7 }, "unknown kind 7" },
#endif
	};
	struct accmem_pool_request req;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		req = rows[i].req;
		CHECK_EQ(accmem_pool_allocate(pool, &req), -EINVAL);
		CHECK(strstr(accmem_last_error(), rows[i].words));
	}
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

#ifdef FAKE_DEVICE
/* A growth whose new part cannot be mapped changes nothing. */
static void growth_that_cannot_be_mapped_fails(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req = { .length = MIB,
					   .mapped = 1,
					   .reserve = 64 * MIB,
					   .flags = ACCMEM_ALLOC_RESIZABLE };
	struct accmem_pool_block block, before;
	void *p;

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	p = req.pointer;
	memset(p, 7, MIB);
	fake_fail_mmap = true;
	CHECK_EQ(accmem_pool_reallocate(pool, &p, 8 * MIB), -ENOMEM);
	CHECK(!fake_fail_mmap && p == req.pointer);
	CHECK_EQ(accmem_pool_lookup(pool, p, &block), 0);
	CHECK_EQ(block.length, MIB);
	CHECK_EQ(((char *)p)[MIB - 1], 7);
	CHECK_EQ(accmem_pool_reallocate(pool, &p, 8 * MIB), 0);
	memset(p, 8, 8 * MIB);
	CHECK_EQ(accmem_pool_release(pool, p), 0);

	/* the length that was requested is rounded again, and not its rounded length */
	req.flags |= ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32;
	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	p = req.pointer;
	CHECK_EQ(accmem_pool_lookup(pool, p, &before), 0);
	fake_fail_mmap = true;
	CHECK_EQ(accmem_pool_reallocate(pool, &p, 8 * MIB), -ENOMEM);
	CHECK_EQ(accmem_pool_lookup(pool, p, &block), 0);
	CHECK_EQ(block.length, before.length);
	CHECK_EQ(block.usable, before.usable);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	end(pool);
}
#endif

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
BOTH(what_is_invalid_is_named)
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
		ROW_BOTH(what_is_invalid_is_named),
		ROW_BOTH(stats_count),
		ROW_BOTH(kinds_are_what_they_are),
		ROW_BOTH(a_child_has_memory_of_its_own),
#ifdef FAKE_DEVICE
		ROW(a_device_may_go),
#endif
		ROW(no_descriptor_is_opened_for_an_allocation),
		ROW(a_lookup_finds_what_was_reallocated),
		ROW(growth_in_steps_copies_nothing),
		ROW(alignments_are_honoured),
#ifdef FAKE_DEVICE
		ROW(growth_that_cannot_be_mapped_fails),
		ROW(an_alignment_is_that_of_the_pointer),
#endif
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
