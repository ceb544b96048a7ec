// SPDX-License-Identifier: MIT
/*
 * What the library says of a device with several carveouts, and of one with little host
 * memory: carveouts.sh of the selftests makes both. On any other device the tests hold as
 * well, and show less.
 */
#include <acl/acl.h>
#include <accmem_sycl.hpp>
#include <accmem_torch.h>

#include <algorithm>
#include <sys/ioctl.h>
#include <unistd.h>

#include "test.h"

static const uint64_t MIB = 1048576;

/* More would take the test too long. */
static const uint64_t LITTLE = 256 * MIB;

static accmem_context *open_context()
{
	accmem_context *ctx;

	CHECK_EQ(accmem_open(nullptr, &ctx), 0);
	return ctx;
}

static accmem_pool *new_pool(accmem_context *ctx)
{
	accmem_pool *pool;

	CHECK_EQ(accmem_pool_create(ctx, nullptr, &pool), 0);
	return pool;
}

/* Bytes of host memory that the device offers, 0 for none. */
static uint64_t host_capacity(accmem_context *ctx)
{
	accmem_info info = {};

	info.size = sizeof(info);
	info.flags = ACCMEM_INFO_HOST;
	return ioctl(accmem_fd(ctx), ACCMEM_IOC_INFO, &info) ? 0 :
							       info.capacity;
}

/* Keep host memory in a pool, not allocated, until the process ends. */
static void keep_host(const void *bytes)
{
	accmem_pool *pool = new_pool(open_context());
	accmem_pool_request req = {};
	void *pieces[16];

	req.length = *static_cast<const uint64_t *>(bytes) / 16;
	req.kind = ACCMEM_KIND_HOST;
	for (void *&piece : pieces) {
		CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
		piece = req.pointer;
	}
	for (void *piece : pieces)
		CHECK_EQ(accmem_pool_release(pool, piece), 0);
}

/* A resize asks other contexts for memory of the allocation's kind. */
static void host_memory_that_others_keep_serves_a_resize()
{
	accmem_context *ctx = open_context();
	const uint64_t eighth = host_capacity(ctx) / 8;
	const uint64_t kept = 2 * eighth;
	accmem_pool_request req = {};
	accmem_pool *pool;
	pid_t child;

	if (!eighth || 8 * eighth > LITTLE)
		return;
	pool = new_pool(ctx);
	req.length = 5 * eighth;
	req.kind = ACCMEM_KIND_HOST;
	req.flags = ACCMEM_ALLOC_RESIZABLE;
	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	child = test_start_keeper(keep_host, &kept);
	CHECK_COMES(accmem_pool_reallocate(pool, &req.pointer, 7 * eighth));
	CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	test_stop_keeper(child);
	accmem_pool_destroy(pool);
	accmem_close(ctx);
}

/* Capacities of all carveouts. */
static std::vector<uint64_t> capacities()
{
	accmem_context *ctx = open_context();
	std::vector<uint64_t> all;
	accmem_info info = {};

	info.nr_carveouts = 1;
	for (uint32_t i = 0; i < info.nr_carveouts; i++) {
		CHECK_EQ(accmem_get_info(ctx, i, &info), 0);
		all.push_back(info.capacity);
	}
	accmem_close(ctx);
	return all;
}

static uint64_t sum(const std::vector<uint64_t> &all)
{
	uint64_t bytes = 0;

	for (uint64_t one : all)
		bytes += one;
	return bytes;
}

static void a_fraction_is_of_all_carveouts()
{
	const uint64_t bytes = sum(capacities());
	void *p;

	CHECK_EQ(accmem_torch_set_memory_fraction(0.5, 0), 0);
	CHECK(!accmem_torch_alloc(bytes / 2 + MIB, 0, nullptr));
	p = accmem_torch_alloc(bytes / 2 - MIB, 0, nullptr);
	CHECK(p);
	accmem_torch_free(p, 0, 0, nullptr);
	CHECK_EQ(accmem_torch_bad_frees(), 0);
}

/* Before a context of the device is open, and as a context tells it. */
static void sycl_has_the_memory_of_all_carveouts()
{
	const std::vector<uint64_t> all = capacities();
	const accmem::sycl::device closed, open;
	const accmem::sycl::context ctx(open);

	for (const accmem::sycl::device &dev : { closed, open }) {
		CHECK_EQ(dev.get_info<accmem::sycl::info::device::
					      global_mem_size>(),
			 sum(all));
		CHECK_EQ(dev.get_info<accmem::sycl::info::device::
					      max_mem_alloc_size>(),
			 *std::max_element(all.begin(), all.end()));
	}
}

static size_t acl_free(aclrtMemAttr attr)
{
	size_t bytes, total;

	CHECK_EQ(aclrtGetMemInfo(attr, &bytes, &total), 0);
	CHECK(bytes <= total);
	return bytes;
}

/* Take all but 4 MiB of the first carveout. */
static accmem_context *take_first_carveout(uint64_t capacity)
{
	accmem_context *ctx = open_context();
	accmem_alloc req = {};

	req.length = capacity - 4 * MIB;
	req.flags = ACCMEM_ALLOC_CARVEOUT;
	CHECK_EQ(accmem_allocate(ctx, &req), 0);
	return ctx;
}

/* Memory that the pool keeps is free memory of its carveout's class, and of no other. */
static void kept_memory_is_free_in_its_class()
{
	const std::vector<uint64_t> all = capacities();
	accmem_context *other;
	size_t fast, slow;
	void *p;

	if (all.size() < 2)
		return;
	other = take_first_carveout(all[0]);
	fast = acl_free(ACL_HBM_MEM);
	slow = acl_free(ACL_DDR_MEM);
	CHECK(fast <= 4 * MIB && slow > 32 * MIB);
	CHECK_EQ(aclrtMalloc(&p, 32 * MIB, ACL_MEM_MALLOC_HUGE_FIRST), 0);
	CHECK(acl_free(ACL_DDR_MEM) <= slow - 32 * MIB);
	CHECK_EQ(aclrtFree(p), 0);
	CHECK_EQ(acl_free(ACL_HBM_MEM), fast);
	CHECK_EQ(acl_free(ACL_DDR_MEM), slow);
	accmem_close(other);
}

int main()
{
	static const struct test tests[] = {
		ROW(host_memory_that_others_keep_serves_a_resize),
		ROW(a_fraction_is_of_all_carveouts),
		ROW(sycl_has_the_memory_of_all_carveouts),
		ROW(kept_memory_is_free_in_its_class),
	};

	return test_main(tests, ARRAY_SIZE(tests));
}
