// SPDX-License-Identifier: MIT
/*
 * The provider for the Unified Memory Framework, on /dev/accmem0 or the device in
 * $ACCMEM_DEVICE; with FAKE_DEVICE over fake_device.c.
 */
#define _GNU_SOURCE
#include <accmem_umf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter_tests.h"
#include "test.h"
#ifdef FAKE_DEVICE
#include "fake_device.h"
#endif

#define MIB 1048576ull

#if UMF_MINOR == 10
#define umf_ops_free ext.free
#else
#define umf_ops_free free
#endif
#ifndef UMF_PROVIDER_OPS_VERSION_CURRENT
#define UMF_PROVIDER_OPS_VERSION_CURRENT UMF_VERSION_CURRENT
#endif

static const umf_memory_provider_ops_t *ops;
static void *provider;

static void make_provider(void)
{
	ops = accmem_umf_provider_ops();
	CHECK_EQ(ops->version, UMF_PROVIDER_OPS_VERSION_CURRENT);
	CHECK_EQ(ops->initialize(NULL, &provider), UMF_RESULT_SUCCESS);
}

static void *umf_take(size_t size)
{
	void *pointer = NULL;

	ops->alloc(provider, size, 0, &pointer);
	return pointer;
}

static int umf_give(void *pointer, size_t size)
{
	return ops->umf_ops_free(provider, pointer, size);
}

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
