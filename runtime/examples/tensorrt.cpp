// SPDX-License-Identifier: MIT
/*
 * What TensorRT does with an allocator: a buffer that grows where it is, and memory
 * that is given back when the work on a stream is done. With TensorRT itself,
 * accmem::tensorrt::GpuAsyncAllocator over the same class goes to setGpuAllocator().
 */
#define ACCMEM_TENSORRT_ADAPTORS 0
#include <accmem_tensorrt.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

using accmem::tensorrt::Allocator;
using accmem::tensorrt::kRESIZABLE;

static const uint64_t STEP = 64 << 10;

static void check(bool good, const char *what)
{
	if (!good) {
		fprintf(stderr, "accmem-tensorrt: %s: %s\n", what,
			accmem_last_error());
		exit(EXIT_FAILURE);
	}
}

static void grow(Allocator &allocator)
{
	void *const first = allocator.allocate(STEP, 256, kRESIZABLE);
	void *buffer = first;
	accmem_pool_stats stats;

	check(first, "allocate");
	memset(first, 1, STEP);
	for (int step = 2; step <= 100; step++) {
		buffer = allocator.reallocate(buffer, 256, step * STEP);
		check(buffer, "reallocate");
	}
	accmem_pool_get_stats(allocator.pool(), &stats);
	printf("100 steps: address %s, %llu bytes copied\n",
	       buffer == first ? "kept" : "changed",
	       (unsigned long long)stats.copied_bytes);
	check(allocator.deallocate(buffer), "deallocate");
}

static void use_stream(Allocator &allocator)
{
	int handle; /* stands for a cudaStream_t */
	uint64_t position;
	accmem_streams *const streams = allocator.streams();
	void *const buffer = allocator.allocateAsync(1 << 20, 256, 0, &handle);

	check(buffer, "allocateAsync");
	/* ... work that uses the buffer is submitted to the stream ... */
	check(allocator.deallocateAsync(buffer, &handle), "deallocateAsync");
	check(!accmem_streams_mark(streams, &handle, &position), "mark");
	/* ... and is waited for, or calls back ... */
	check(!accmem_streams_reach(streams, &handle, position), "reach");
	printf("released after position %llu of the stream\n",
	       (unsigned long long)position);
}

int main(int argc, char **argv)
{
	Allocator allocator = Allocator::closed();

	check(!allocator.open(argc > 1 ? argv[1] : nullptr), "open");
	grow(allocator);
	use_stream(allocator);
	return 0;
}
