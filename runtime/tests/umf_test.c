// SPDX-License-Identifier: MIT
/*
 * The provider for the Unified Memory Framework, on /dev/accmem0 or the device in
 * $ACCMEM_DEVICE; with FAKE_DEVICE over fake_device.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "adapter_tests.h"
#include "test.h"
#include "umf_tests.h"

#define THREADS 4

static void umf_replays_models(void)
{
	const struct adapter umf = { umf_take, umf_give };

	make_provider();
	replay_all(&umf, accmem_umf_pool(provider));
	ops->finalize(provider);
}

static void umf_allocates(void)
{
	size_t alignment;
	void *p;

	make_provider();
	for (alignment = 1; alignment <= 4 * MIB; alignment *= 2) {
		CHECK_EQ(ops->alloc(provider, 4096, alignment, &p),
			 UMF_RESULT_SUCCESS);
		CHECK_EQ((uintptr_t)p % alignment, 0);
		memset(p, 1, 4096);
		CHECK_EQ(umf_give(p, 4096), UMF_RESULT_SUCCESS);
	}
	CHECK_EQ(ops->alloc(provider, 4096, 3, &p),
		 UMF_RESULT_ERROR_INVALID_ALIGNMENT);
	CHECK_EQ(ops->alloc(provider, 0, 0, &p),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ops->alloc(provider, 1ull << 50, 0, &p),
		 UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
	CHECK_EQ(ops->alloc(provider, SIZE_MAX, 0, &p),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	ops->finalize(provider);
}

static void umf_frees_what_it_allocated(void)
{
	char *p;

	make_provider();
	p = umf_take(5000);
	CHECK(p);
	CHECK_EQ(umf_give(p + 64, 5000), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(p, 4999), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(&p, 5000), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(NULL, 0), UMF_RESULT_SUCCESS);
	memset(p, 1, 5000);
	CHECK_EQ(umf_give(p, 5000), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_give(p, 5000), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	p = umf_take(64);
	CHECK_EQ(umf_give(p, 0), UMF_RESULT_SUCCESS);
	ops->finalize(provider);
}

/* All of an allocation at a multiple of the page size, next to another one. */
static void umf_aligns_to_any_multiple_of_a_page(void)
{
	static const size_t sizes[] = { 1, 4096 + 64, 3 * 4096, 5 * MIB };
	struct accmem_pool_stats stats;
	size_t alignment, i;
	char *p, *q;

	make_provider();
	for (alignment = 3 * 4096; alignment < 3 * MIB; alignment *= 5) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			CHECK_EQ(ops->alloc(provider, sizes[i], alignment,
					    (void **)&p),
				 UMF_RESULT_SUCCESS);
			CHECK_EQ(ops->alloc(provider, sizes[i], alignment,
					    (void **)&q),
				 UMF_RESULT_SUCCESS);
			CHECK_EQ((uintptr_t)p % alignment, 0);
			memset(p, 1, sizes[i]);
			memset(q, 2, sizes[i]);
			CHECK_EQ(p[sizes[i] - 1], 1);
			CHECK_EQ(umf_give(p, sizes[i]), UMF_RESULT_SUCCESS);
			CHECK_EQ(umf_give(q, 0), UMF_RESULT_SUCCESS);
		}
	}
	CHECK_EQ(ops->alloc(provider, SIZE_MAX, 3 * 4096, (void **)&p),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ops->alloc(provider, 0, 3 * 4096, (void **)&p),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ops->alloc(provider, 1ull << 50, 3 * 4096, (void **)&p),
		 UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
	CHECK_EQ(ops->alloc(provider, 4096, 4096 + 64, (void **)&p),
		 UMF_RESULT_ERROR_INVALID_ALIGNMENT);
	accmem_pool_get_stats(accmem_umf_pool(provider), &stats);
	CHECK_EQ(stats.live_bytes, 0);
	ops->finalize(provider);
}

/* Neither a second free, nor one of the bytes before the allocation. */
static void umf_frees_an_aligned_allocation_once(void)
{
	const size_t alignment = 3 * 4096;
	struct accmem_pool_block block;
	struct accmem_pool *pool;
	char *p, *q;

	make_provider();
	pool = accmem_umf_pool(provider);
	CHECK_EQ(ops->alloc(provider, 5000, alignment, (void **)&p), 0);
	CHECK_EQ(ops->alloc(provider, 5000, alignment, (void **)&q), 0);
	CHECK_EQ(umf_give(p, 4999), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(p + 64, 5000), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(accmem_pool_lookup(pool, p, &block), 0);
	if (block.pointer != p) {
		CHECK_EQ(umf_give(block.pointer, 0),
			 UMF_RESULT_ERROR_INVALID_ARGUMENT);
		CHECK_EQ(umf_give(block.pointer, block.length),
			 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	}
	memset(p, 1, 5000);
	CHECK_EQ(umf_give(p, 5000), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_give(p, 5000), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(p, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	/* what is left is freed with the provider */
	ops->finalize(provider);
}

static uint64_t live_bytes(void)
{
	struct accmem_pool_stats stats;

	accmem_pool_get_stats(accmem_umf_pool(provider), &stats);
	return stats.live_bytes;
}

/* The memory is the pool's when the last part is freed. */
static void umf_frees_split_parts_one_by_one(void)
{
	char *p, *q;

	make_provider();
	p = umf_take(65536);
	q = umf_take(65536);
	memset(p, 1, 65536);
	CHECK_EQ(umf_split(p, 65536, 16384), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_split(p + 16384, 49152, 4096), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_give(p, 65536), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(p + 4096, 4096), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(p, 16384), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_give(p, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(p + 20480, 45056), UMF_RESULT_SUCCESS);
	CHECK_EQ(live_bytes(), 2 * 65536);
	memset(p + 16384, 2, 4096);
	CHECK_EQ(umf_give(p + 16384, 0), UMF_RESULT_SUCCESS);
	CHECK_EQ(live_bytes(), 65536);
	CHECK_EQ(umf_give(p + 16384, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(q, 65536), UMF_RESULT_SUCCESS);
	ops->finalize(provider);
}

static void umf_refuses_to_split_what_is_no_allocation(void)
{
	char *p;

	make_provider();
	p = umf_take(65536);
	CHECK_EQ(umf_split(p, 65536, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_split(p, 65536, 65536), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_split(p, 65535, 4096), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_split(p, 0, 4096), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_split(p + 4096, 61440, 4096),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_split(&p, 65536, 4096), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK(strstr(accmem_last_error(), "no such allocation"));
	CHECK_EQ(umf_split(p, 65536, 4096), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_give(p, 4096), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_split(p, 4096, 64), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(p + 4096, 61440), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_split(p, 65536, 4096), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(live_bytes(), 0);
	ops->finalize(provider);
}

static void umf_merges_only_what_was_one(void)
{
	char *p, *q;

	make_provider();
	p = umf_take(65536);
	q = umf_take(65536);
	CHECK_EQ(umf_merge(p < q ? p : q, p < q ? q : p, 2 * 65536),
		 UMF_RESULT_ERROR_NOT_SUPPORTED);
	CHECK_EQ(umf_split(p, 65536, 4096), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_split(p + 4096, 61440, 4096), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_merge(p + 4096, p, 8192), UMF_RESULT_ERROR_NOT_SUPPORTED);
	CHECK_EQ(umf_merge(p, p + 8192, 61440), UMF_RESULT_ERROR_NOT_SUPPORTED);
	CHECK_EQ(umf_merge(p, p + 4096, 8191),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_merge(p, p + 4096, 8192), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_give(p + 4096, 4096), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_merge(p, p + 8192, 65536), UMF_RESULT_SUCCESS);
	memset(p, 1, 65536);
	CHECK_EQ(umf_give(p, 65536), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_split(q, 65536, 4096), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_give(q, 4096), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_merge(q, q + 4096, 65536),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(q + 4096, 61440), UMF_RESULT_SUCCESS);
	CHECK_EQ(live_bytes(), 0);
	ops->finalize(provider);
}

/* Divide into pages, and join or free these in a random order. */
static void *umf_split_work(void *argument)
{
	enum { PAGES = 16 };
	unsigned int seed = *(int *)argument, i;
	size_t pages[PAGES];
	int round;
	char *p;

	for (round = 0; round < 200; round++) {
		p = umf_take(PAGES * 4096);
		CHECK(p);
		memset(p, seed, PAGES * 4096);
		for (i = 0; i < PAGES - 1; i++)
			CHECK_EQ(umf_split(p + i * 4096, (PAGES - i) * 4096,
					   4096),
				 UMF_RESULT_SUCCESS);
		for (i = 0; i < PAGES; i++)
			pages[i] = 1;
		for (i = 0; i < PAGES - 1; i += 2) {
			if (rand_r(&seed) % 2)
				continue;
			CHECK_EQ(umf_merge(p + i * 4096, p + (i + 1) * 4096,
					   8192),
				 UMF_RESULT_SUCCESS);
			pages[i] = 2;
			pages[i + 1] = 0;
		}
		for (i = 5; i < 5 + PAGES * 3; i += 3)
			if (pages[i % PAGES])
				CHECK_EQ(umf_give(p + i % PAGES * 4096,
						  pages[i % PAGES] * 4096),
					 UMF_RESULT_SUCCESS);
	}
	return NULL;
}

static void umf_threads_split(void)
{
	int seeds[THREADS] = { 1, 2, 3, 4 }, i;
	pthread_t threads[THREADS];

	make_provider();
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, umf_split_work,
					&seeds[i]),
			 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(live_bytes(), 0);
	ops->finalize(provider);
}

#if UMF_MINOR >= 100
#if UMF_MINOR >= 101
#define NO_SUCH_PATH UMF_RESULT_ERROR_INVALID_CTL_PATH
#else
#define NO_SUCH_PATH UMF_RESULT_ERROR_NOT_SUPPORTED
#endif

static umf_result_t ctl(umf_ctl_query_type_t type, const char *name, void *arg,
			size_t size, ...)
{
	umf_result_t result;
	va_list args;

	va_start(args, size);
	result = ops->ext_ctl(provider, CTL_QUERY_PROGRAMMATIC, name, arg, size,
			      type, args);
	va_end(args);
	return result;
}

static size_t ctl_read(const char *name)
{
	size_t value = 0;

	CHECK_EQ(ctl(CTL_QUERY_READ, name, &value, sizeof(value)),
		 UMF_RESULT_SUCCESS);
	return value;
}

static void umf_ctl_reads_statistics_and_the_pool(void)
{
	void *p, *q;
	char byte;

	make_provider();
	CHECK_EQ(ctl_read("pool"), (uintptr_t)accmem_umf_pool(provider));
	p = umf_take(5 * MIB);
	q = umf_take(3 * MIB);
	CHECK_EQ(ctl_read("stats.allocated_memory"), 8 * MIB);
	CHECK_EQ(umf_give(p, 5 * MIB), UMF_RESULT_SUCCESS);
	CHECK(ctl_read("stats.peak_memory") >= 8 * MIB);
	CHECK_EQ(ctl(CTL_QUERY_RUNNABLE, "stats.peak_memory.reset", NULL, 0),
		 UMF_RESULT_SUCCESS);
	CHECK_EQ(ctl_read("stats.peak_memory"), 3 * MIB);
	CHECK_EQ(umf_give(q, 3 * MIB), UMF_RESULT_SUCCESS);
	CHECK_EQ(ctl(CTL_QUERY_READ, "pool", &byte, 1),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ctl(CTL_QUERY_READ, "pool", NULL, 8),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ctl(CTL_QUERY_READ, "stats", &byte, 1), NO_SUCH_PATH);
	CHECK_EQ(ctl(CTL_QUERY_WRITE, "pool", &p, 8), NO_SUCH_PATH);
	CHECK_EQ(ctl(CTL_QUERY_RUNNABLE, "post_initialize", NULL, 0),
		 NO_SUCH_PATH);
	ops->finalize(provider);
}
#endif

static void umf_pages(void)
{
	size_t size, least;
	void *p;

	make_provider();
	CHECK_EQ(ops->get_min_page_size(provider, NULL, &least), 0);
	CHECK_EQ(least, 4096);
	CHECK_EQ(ops->get_recommended_page_size(provider, 1, &size), 0);
	CHECK_EQ(size, 4096);
	CHECK_EQ(ops->get_recommended_page_size(provider, 2 * MIB, &size), 0);
	CHECK(size == 4096 || size == 2 * MIB);
	p = umf_take(4096);
	CHECK_EQ(ops->get_min_page_size(provider, p, &size), 0);
	CHECK_EQ(size, 4096);
	CHECK_EQ(ops->get_min_page_size(provider, &p, &size),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(p, 4096), 0);
#if UMF_MINOR >= 102
	CHECK_EQ(ops->get_cache_line_size(provider, &size), 0);
	CHECK_EQ(size, 64);
#endif
	ops->finalize(provider);
}

static const char *name_of(void)
{
#if UMF_MINOR >= 100
	const char *name;

	CHECK_EQ(ops->get_name(provider, &name), UMF_RESULT_SUCCESS);
	return name;
#else
	return ops->get_name(provider);
#endif
}

static void umf_parameters(void)
{
	struct accmem_umf_params params = { .size = sizeof(params) };
	const char *message;
	void *second;
	int32_t error;

	make_provider();
	CHECK(!strcmp(name_of(), "accmem"));
	params.size--;
	CHECK_EQ(ops->initialize(&params, &second),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	params.size++;
	params.unmapped = 2;
	CHECK_EQ(ops->initialize(&params, &second),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	params.unmapped = 1;
	params.carveout = 99;
	CHECK_EQ(ops->initialize(&params, &second),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	params.carveout = 0;
	params.device = "/dev/null/nothing";
	CHECK_EQ(ops->initialize(&params, &second),
		 UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
	ops->get_last_native_error(provider, &message, &error);
	CHECK_EQ(error, ENOTDIR);
	CHECK(message);
	params.device = "/dev/accmem-none";
	CHECK_EQ(ops->initialize(&params, &second),
		 UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
	ops->get_last_native_error(provider, &message, &error);
	CHECK_EQ(error, ENOENT);
	CHECK(strstr(message, "/dev/accmem-none: "));
	CHECK(strstr(message, strerror(ENOENT)));
	/* another over the same pool */
	params.pool = accmem_umf_pool(provider);
	CHECK_EQ(ops->initialize(&params, &second), UMF_RESULT_SUCCESS);
	CHECK(accmem_umf_pool(second) == params.pool);
	ops->finalize(second);
	CHECK_EQ(umf_give(umf_take(64), 64), UMF_RESULT_SUCCESS);
	ops->finalize(provider);
}

#ifdef FAKE_DEVICE
/* What a call of the library returns. */
static int no_memory;

int __wrap_accmem_pool_allocate(struct accmem_pool *pool,
				struct accmem_pool_request *req)
{
	return no_memory ?: __real_accmem_pool_allocate(pool, req);
}

/* A limit that is reached, and a wait that ended, as memory that is not there. */
static void umf_has_one_result_for_no_memory(void)
{
	static const int errors[] = { -ENOMEM, -EDQUOT, -ETIMEDOUT };
	size_t i;
	void *p;

	make_provider();
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		no_memory = errors[i];
		CHECK_EQ(ops->alloc(provider, 64, 0, &p),
			 UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
	}
	no_memory = -EIO;
	CHECK_EQ(ops->alloc(provider, 64, 0, &p),
		 UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
	no_memory = 0;
	CHECK_EQ(umf_give(umf_take(64), 64), UMF_RESULT_SUCCESS);
	ops->finalize(provider);
}

static void umf_device_may_go(void)
{
	void *p, *q;

	make_provider();
	p = umf_take(MIB);
	fake_gone = true;
	CHECK_EQ(ops->alloc(provider, 200 * MIB, 0, &q),
		 UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
	CHECK_EQ(umf_give(p, MIB), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_give(p, MIB), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	ops->finalize(provider);
	CHECK(ops->initialize(NULL, &provider) != UMF_RESULT_SUCCESS);
}
#endif

int main(void)
{
	static const struct test tests[] = {
		ROW(umf_replays_models),
		ROW(umf_allocates),
		ROW(umf_frees_what_it_allocated),
		ROW(umf_aligns_to_any_multiple_of_a_page),
		ROW(umf_frees_an_aligned_allocation_once),
		ROW(umf_frees_split_parts_one_by_one),
		ROW(umf_refuses_to_split_what_is_no_allocation),
		ROW(umf_merges_only_what_was_one),
		ROW(umf_threads_split),
#if UMF_MINOR >= 100
		ROW(umf_ctl_reads_statistics_and_the_pool),
#endif
		ROW(umf_pages),
		ROW(umf_parameters),
#ifdef FAKE_DEVICE
		ROW(umf_has_one_result_for_no_memory),
		ROW(umf_device_may_go),
#endif
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
	fake_capacity = 1024 * MIB;
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
