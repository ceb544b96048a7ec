// SPDX-License-Identifier: MIT
/*
 * A program for any SYCL 2020: it adds two vectors in device memory, and a third one
 * in shared memory where the device has that. With accmem it is compiled by
 *
 *	c++ -std=c++17 sycl.cpp $(pkg-config --cflags --libs accmem-sycl)
 *
 * The device is $ACCMEM_DEVICE, or /dev/accmem0.
 */
#include <sycl/sycl.hpp>

#include <iostream>
#include <numeric>
#include <vector>

static const std::size_t N = 100000;

/* Explicit movement: the host copies to the device and back. */
static long add_in_device_memory(sycl::queue &q)
{
	std::vector<int> a(N, 1), b(N), sums(N);
	int *x = sycl::malloc_device<int>(N, q);
	int *y = sycl::malloc_device<int>(N, q);

	if (!x || !y)
		throw std::bad_alloc();
	std::iota(b.begin(), b.end(), 0);
	sycl::event copied = q.copy(a.data(), x, N);
	sycl::event added =
		q.parallel_for(sycl::range<1>(N),
			       { copied, q.copy(b.data(), y, N) },
			       [=](sycl::id<1> i) { x[i] += y[i]; });

	q.copy(x, sums.data(), N, added).wait();
	sycl::free(x, q);
	sycl::free(y, q);
	return std::accumulate(sums.begin(), sums.end(), 0L);
}

/* Implicit movement: a container of the C++ library that both sides use. */
static long add_in_shared_memory(sycl::queue &q)
{
	sycl::usm_allocator<int, sycl::usm::alloc::shared> allocator(q);
	std::vector<int, decltype(allocator)> sums(N, 1, allocator);
	int *x = sums.data();

	q.parallel_for(sycl::range<1>(N), [=](sycl::id<1> i) { x[i] += i; })
		.wait();
	return std::accumulate(sums.begin(), sums.end(), 0L);
}

int main()
{
	try {
		sycl::queue q;
		const sycl::device device = q.get_device();

		std::cout << device.get_info<sycl::info::device::name>()
			  << '\n';
		std::cout << "device memory: " << add_in_device_memory(q)
			  << '\n';
		std::cout << "shared memory: ";
		if (device.has(sycl::aspect::usm_shared_allocations))
			std::cout << add_in_shared_memory(q) << '\n';
		else
			std::cout << "this device has none\n";
	} catch (const std::exception &e) {
		std::cerr << e.what() << '\n';
		return 1;
	}
	return 0;
}
