// SPDX-License-Identifier: MIT
/*
 * The adaptors over one version of TensorRT's interfaces, called as TensorRT calls
 * them: by the interface. Built and run for each version and language standard.
 */
#include <accmem_tensorrt.hpp>

#include <cstdlib>
#include <cstring>

#include "test.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void check_sync(nvinfer1::IGpuAllocator &gpu)
{
	const uint32_t resizable =
		1u << (uint32_t)nvinfer1::AllocatorFlag::kRESIZABLE;
	void *p = gpu.allocate(100000, 256, resizable), *q;

	CHECK(p);
	memset(p, 1, 100000);
	CHECK(q = gpu.reallocate(p, 256, 200000));
	CHECK_EQ(static_cast<char *>(q)[99999], 1);
	CHECK(gpu.deallocate(q));
	CHECK(gpu.deallocate(nullptr));
	CHECK(!gpu.allocate(0, 0, 0));
#if NV_TENSORRT_MAJOR < 10
	gpu.free(gpu.allocate(64, 0, 0));
#else
	CHECK(!gpu.deallocate(q));
	CHECK(p = gpu.allocateAsync(64, 64, 0, nullptr));
	CHECK(gpu.deallocateAsync(p, nullptr));
	CHECK_EQ(strcmp(gpu.getInterfaceInfo().kind, "IGpuAllocator"), 0);
#endif
}

static void by_the_interface()
{
	accmem::tensorrt::GpuAllocator gpu;

	check_sync(gpu);
#if NV_TENSORRT_MAJOR >= 10
	accmem::tensorrt::GpuAsyncAllocator async;

	check_sync(async);
#endif
}

int main()
{
	static const struct test tests[] = {
		{ "by_the_interface", by_the_interface },
	};

	setenv("ACCMEM_DEVICE", "/dev/accmem-fake", 1);
	return test_main(tests, ARRAY_SIZE(tests));
}
