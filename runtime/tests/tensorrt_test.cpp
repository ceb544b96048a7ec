// SPDX-License-Identifier: MIT
/*
 * TensorRT's allocator calls on a device: /dev/accmem0, or the one in $ACCMEM_DEVICE;
 * with FAKE_DEVICE over fake_device.c. Rows T1 to T11, by the plain class and, where
 * they are about the interface, by the adaptors.
 */
#include <accmem_tensorrt.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "test.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#ifdef FAKE_DEVICE
extern "C" {
#include "fake_device.h"
}
#define ALIGNMENT 512u /* it does not tell more */
#else
#define ALIGNMENT 1024u /* more than each allocation has */
#endif

using accmem::tensorrt::Allocator;
using accmem::tensorrt::GpuAllocator;
using accmem::tensorrt::GpuAsyncAllocator;
using accmem::tensorrt::kRESIZABLE;

static const uint64_t KIB = 1024, MIB = 1024 * KIB;
static const uint64_t STEP = 64 * KIB;
static const int STEPS = 1000, THREADS = 4, ROUNDS = 200, TRIES = 3000;

/* stream handles, whose values mean nothing */
static int names[3];
static void *const stream = &names[0], *const other_stream = &names[1];

static accmem_info info_of(const Allocator &a)
{
	accmem_info info;

	CHECK_EQ(accmem_get_info(accmem_pool_context(a.pool()), 0, &info), 0);
	return info;
}

static accmem_pool_stats stats_of(const Allocator &a)
{
	accmem_pool_stats stats;

	accmem_pool_get_stats(a.pool(), &stats);
	return stats;
}

/* So much that a device has it once and not twice. */
static uint64_t most_of(const Allocator &a)
{
	return info_of(a).capacity / 8 * 5;
}

/* Memory that was mapped is free some time after its release. */
static void *allocate_soon(Allocator &a, uint64_t size)
{
	const timespec pause = { 0, 10000000 };
	void *p = nullptr;
	int i;

	for (i = 0; i < TRIES && !p; i++) {
		p = a.allocate(size, 0, 0);
		if (!p)
			nanosleep(&pause, nullptr);
	}
	return p;
}

static void fill(void *p, uint64_t from, uint64_t to, int value)
{
	memset(static_cast<char *>(p) + from, value, to - from);
}

static bool holds(const void *p, uint64_t from, uint64_t to, int value)
{
	const unsigned char *bytes = static_cast<const unsigned char *>(p);

	for (; from < to; from++)
		if (bytes[from] != value)
			return false;
	return true;
}

static void t1_nothing_is_null()
{
	Allocator a;

	CHECK(!a.allocate(0, 0, 0));
	CHECK(!a.allocate(0, 256, kRESIZABLE));
	CHECK(!a.allocateAsync(0, 0, 0, nullptr));
	CHECK(!a.allocateAsync(0, 0, 0, stream));
	CHECK_EQ(stats_of(a).allocations, 0);
}

static void t2_what_cannot_be_met_is_null()
{
	Allocator a;
	std::vector<void *> all;
	void *p;

	CHECK(!a.allocate(info_of(a).capacity + 1, 0, 0));
	CHECK(strstr(accmem_last_error(), "more than the device has"));
	CHECK(!a.allocate(0, 0, 0));
	CHECK(strstr(accmem_last_error(), "length is 0"));
	CHECK(!a.allocate(64, 3, kRESIZABLE));
	CHECK(strstr(accmem_last_error(), "alignment 3"));
	CHECK(!a.allocate(64, 0, 1u << 31));
	CHECK(strstr(accmem_last_error(), "flags 0x80000000"));
	CHECK(!a.allocate(UINT64_MAX, 0, 0));
	CHECK(!a.allocate(UINT64_MAX, 0, kRESIZABLE));
	CHECK(!a.allocate(UINT64_MAX / 2, 512, kRESIZABLE));
	CHECK(!a.allocateAsync(UINT64_MAX - 4096, 0, 0, stream));
	while ((p = a.allocate(info_of(a).capacity / 16, 0, 0)))
		all.push_back(p);
	CHECK(all.size() >= 15);
	for (void *each : all)
		CHECK(a.deallocate(each));
	CHECK(p = allocate_soon(a, most_of(a)));
	CHECK(a.deallocate(p));
}

static void t3_alignment_is_honoured()
{
	Allocator a;
	uint64_t alignment;
	void *p;

	for (alignment = 1; alignment <= 4 * MIB; alignment *= 2) {
		for (uint32_t flags : { 0u, kRESIZABLE }) {
			CHECK(p = a.allocate(100, alignment, flags));
			CHECK_EQ((uintptr_t)p % alignment, 0);
			CHECK(a.deallocate(p));
			CHECK(p = a.allocateAsync(5000, alignment, flags,
						  stream));
			CHECK_EQ((uintptr_t)p % alignment, 0);
			CHECK(a.deallocate(p));
		}
	}
	CHECK(p = a.allocate(100, 0, 0));
	CHECK(a.deallocate(p));
	for (uint64_t bad : { 3ull, 96ull, 257ull, ~0ull }) {
		CHECK(!a.allocate(100, bad, 0));
		CHECK(!a.allocate(100, bad, kRESIZABLE));
		CHECK(!a.allocateAsync(100, bad, 0, stream));
	}
#ifndef FAKE_DEVICE
	CHECK(!a.allocate(100, 1ull << 63, 0));
#endif
	/* a flag that nobody knows is no wish to be passed over */
	CHECK(!a.allocate(100, 0, 2));
	CHECK(!a.allocate(100, 0, kRESIZABLE | 1u << 31));
}

static void t4_only_resizable_is_resized()
{
	Allocator a;
	void *fixed = a.allocate(MIB, 256, 0);
	void *growing = a.allocate(MIB, 256, kRESIZABLE);

	CHECK(fixed && growing);
	fill(fixed, 0, MIB, 1);
	CHECK(!a.reallocate(fixed, 256, 2 * MIB));
	CHECK(!a.reallocate(fixed, 256, MIB / 2));
	CHECK(holds(fixed, 0, MIB, 1));
	CHECK(a.reallocate(growing, 256, 2 * MIB));
	CHECK(a.deallocate(fixed));
}

static void t5_reallocate_keeps_the_bytes_in_both()
{
	Allocator a;
	char *p = static_cast<char *>(a.allocate(MIB, 512, kRESIZABLE));
	char *q;

	CHECK(p);
	fill(p, 0, MIB, 1);
	CHECK(q = static_cast<char *>(a.reallocate(p, 512, 3 * MIB + 1)));
	CHECK(q == p);
	CHECK(holds(q, 0, MIB, 1));
	fill(q, MIB, 3 * MIB + 1, 2);
	CHECK(q = static_cast<char *>(a.reallocate(q, 512, 2 * MIB)));
	CHECK(q == p);
	CHECK(holds(q, 0, MIB, 1));
	CHECK(holds(q, MIB, 2 * MIB, 2));
	CHECK(a.deallocate(q));
}

/* Without a reservation, and with somebody behind it, there is no other way. */
static void t5_what_is_in_the_way_is_moved_from()
{
	Allocator::Options options = Allocator::defaults();
	std::vector<void *> all, blockers;
	uint64_t size = 64 * KIB;
	void *p, *q;
	int moved = 0;

	options.reserve_bytes = 1;
	Allocator a(nullptr, options);

	for (int i = 0; i < 16; i++) {
		CHECK(p = a.allocate(size, ALIGNMENT, kRESIZABLE));
		fill(p, 0, size, i);
		all.push_back(p);
	}
	for (int i = 0; i < 16; i++) {
		q = a.reallocate(all[i], ALIGNMENT, 64 * size);
		CHECK(q);
		moved += q != all[i];
		CHECK_EQ((uintptr_t)q % ALIGNMENT, 0);
		CHECK(holds(q, 0, size, i));
		fill(q, size, 64 * size, i);
		if (q != all[i])
			CHECK(!a.deallocate(all[i]));
		all[i] = q;
	}
	for (int i = 0; i < 16; i++) {
		CHECK(holds(all[i], 0, 64 * size, i));
		CHECK(a.deallocate(all[i]));
	}
#ifdef FAKE_DEVICE
	CHECK(moved > 0);
	CHECK(stats_of(a).copied_bytes > 0);
#endif
}

static void t6_failure_leaves_it_untouched()
{
	Allocator a;
	void *p = a.allocate(MIB, 512, kRESIZABLE);
	accmem_pool_block before, after;

	CHECK(p);
	fill(p, 0, MIB, 7);
	CHECK_EQ(accmem_pool_lookup(a.pool(), p, &before), 0);
	CHECK(!a.reallocate(p, 512, info_of(a).capacity + 1));
	CHECK(!a.reallocate(p, 512, UINT64_MAX));
	CHECK(!a.reallocate(p, 512, 0));
	CHECK(!a.reallocate(p, 48, 2 * MIB));
	/* more than it was asked to have: that would not outlive a move */
	CHECK(!a.reallocate(p, 1ull << 40, 2 * MIB));
	CHECK_EQ(accmem_pool_lookup(a.pool(), p, &after), 0);
	CHECK_EQ(memcmp(&before, &after, sizeof(before)), 0);
	CHECK(holds(p, 0, MIB, 7));
	fill(p, 0, MIB, 8);
	/* and what is no allocation at all */
	CHECK(!a.reallocate(nullptr, 0, MIB));
	CHECK(!a.reallocate(static_cast<char *>(p) + 64, 0, MIB));
	CHECK(!a.reallocate(&a, 0, MIB));
	CHECK(a.deallocate(p));
	CHECK(!a.reallocate(p, 0, MIB));
}

static void t7_growth_by_small_steps_copies_nothing()
{
	Allocator a;
	const uint64_t free_bytes = info_of(a).free_bytes;
	char *p = static_cast<char *>(a.allocate(STEP, 512, kRESIZABLE));
	const int steps = test_scale(STEPS);
	uint64_t size = STEP;

	CHECK(p);
	/* addresses are reserved, memory is not */
	CHECK(info_of(a).free_bytes + 4 * MIB >= free_bytes);
	for (int step = 1; step < steps; step++) {
		p[size - 1] = (char)step;
		CHECK(a.reallocate(p, 512, size + STEP) == p);
		size += STEP;
	}
	for (int step = 1; step < steps; step++)
		CHECK_EQ(p[step * STEP - 1], (char)step);
	CHECK_EQ(stats_of(a).copied_bytes, 0);
	CHECK(info_of(a).free_bytes <= free_bytes - size);
	CHECK(a.deallocate(p));
}

/* With default reservations for all of these, no addresses would be left. */
static void t7_reservations_leave_addresses_to_others()
{
	Allocator a;
	const accmem_info info = info_of(a);
	const int number = test_scale(520);
	void *p;

	if (info.translation != ACCMEM_TRANSLATION_MAPPED)
		return;
	for (int i = 0; i < number; i++)
		CHECK(a.allocate(4 * KIB, 0, kRESIZABLE));
	CHECK(p = a.allocate(info.capacity / 2, 0, 0));
	CHECK(a.deallocate(p));
	CHECK(p = a.allocate(4 * KIB, 0, kRESIZABLE));
	CHECK(a.reallocate(p, 0, info.capacity / 2));
}

static void t8_deallocate_says_whether_it_did()
{
	Allocator a, b;
	char *p = static_cast<char *>(a.allocate(5000, 0, 0));
	char *small = static_cast<char *>(a.allocate(40, 0, 0));
	char *foreign = static_cast<char *>(b.allocate(5000, 0, 0));
	void *heap = malloc(64);

	CHECK(p && small && foreign);
	CHECK(a.deallocate(nullptr));
	CHECK(a.deallocateAsync(nullptr, stream));
	for (void *bad : { (void *)(p + 64), (void *)(p + 4999),
			   (void *)(small + 1), heap, (void *)&a,
			   (void *)64, (void *)-64 }) {
		CHECK(!a.deallocate(bad));
		CHECK(!a.deallocateAsync(bad, stream));
		CHECK(!a.deallocateAsync(bad, nullptr));
	}
	CHECK(a.deallocate(p));
	CHECK(!a.deallocate(p));
	CHECK(!a.deallocateAsync(p, stream));
	CHECK(a.deallocateAsync(small, stream));
	CHECK(!a.deallocateAsync(small, stream));
	CHECK(!a.deallocate(small));
	CHECK(b.deallocate(foreign));
	CHECK_EQ(stats_of(a).live_bytes, 0);
	free(heap);
}

/* The interface's default would allocate and free at once (T9). */
template <class Interface>
static void check_async(Interface &gpu, Allocator &a, cudaStream_t at)
{
	const uint64_t size = most_of(a);
	void *p = allocate_soon(a, size);

	CHECK(gpu.deallocateAsync(p, at));
	CHECK(!gpu.allocateAsync(size, 256, 0,
				 reinterpret_cast<cudaStream_t>(&names[2])));
#ifndef FAKE_DEVICE /* which does not reuse what is pending */
	CHECK(p = gpu.allocateAsync(size, 256, 0, at));
	CHECK(gpu.deallocateAsync(p, at));
#endif
}

static void t9_asynchronous_calls_are_real()
{
	const cudaStream_t at = reinterpret_cast<cudaStream_t>(stream);

	{
		GpuAllocator gpu;
		nvinfer1::IGpuAllocator &base = gpu;

		check_async(base, gpu.allocator(), at);
	}
	GpuAsyncAllocator gpu(std::make_shared<Allocator>());
	nvinfer1::IGpuAsyncAllocator &base = gpu;

	CHECK(base.deallocate(allocate_soon(gpu.allocator(),
					    most_of(gpu.allocator()))));
	check_async(base, gpu.allocator(), at);
	CHECK_EQ(strcmp(base.getInterfaceInfo().kind, "IGpuAllocator"), 0);
}

static void t10_free_waits_for_its_position()
{
	Allocator a;
	uint64_t first, second;
	void *p = a.allocate(most_of(a), 0, 0);

	CHECK_EQ(accmem_streams_mark(a.streams(), stream, &first), 0);
	CHECK(p);
	CHECK(a.deallocateAsync(p, stream));
	CHECK(!a.allocate(most_of(a), 0, 0));
	/* the point before the release, and another stream's */
	CHECK_EQ(accmem_streams_reach(a.streams(), stream, first), 0);
	CHECK_EQ(accmem_streams_mark(a.streams(), other_stream, &first), 0);
	CHECK_EQ(accmem_streams_reach(a.streams(), other_stream, first), 0);
	CHECK(!a.allocate(most_of(a), 0, 0));
	CHECK(!a.deallocate(p));

	CHECK_EQ(accmem_streams_mark(a.streams(), stream, &first), 0);
	CHECK_EQ(accmem_streams_mark(a.streams(), stream, &second), 0);
	CHECK_EQ(accmem_streams_reach(a.streams(), stream, second), 0);
	CHECK_EQ(accmem_streams_reach(a.streams(), stream, first), 0);
	CHECK(p = allocate_soon(a, most_of(a)));
	CHECK(a.deallocate(p));
}

static void t10_free_waits_for_a_bound_stream()
{
	Allocator a;
	accmem_streams *streams = a.streams();
	void *p = a.allocate(most_of(a), 0, 0);
	int fd;

	CHECK_EQ(accmem_open_stream(accmem_pool_context(a.pool()), &fd), 0);
	CHECK_EQ(accmem_streams_bind(streams, nullptr, fd, 4), 0);
	CHECK_EQ(accmem_streams_bind(streams, nullptr, fd, 5), 0);
	CHECK(a.deallocateAsync(p, nullptr));
	CHECK_EQ(accmem_signal(fd, 4), 0);
	CHECK(!a.allocate(most_of(a), 0, 0));
#ifndef FAKE_DEVICE
	CHECK(p = a.allocateAsync(most_of(a), 0, 0, nullptr));
	CHECK(a.deallocateAsync(p, nullptr));
#endif
	/* work that is submitted later is nothing to it */
	CHECK_EQ(accmem_streams_bind(streams, nullptr, fd, 9), 0);
	CHECK_EQ(accmem_signal(fd, 5), 0);
	CHECK(p = allocate_soon(a, most_of(a)));
	CHECK(a.deallocate(p));
	close(fd);
}

/* Nothing is known to run on the default stream. */
static void t10_the_default_stream_has_no_work()
{
	Allocator a;
	void *p;

	for (int i = 0; i < 3; i++) {
		CHECK(p = allocate_soon(a, most_of(a)));
		CHECK(a.deallocateAsync(p, nullptr));
	}
}

static void a_stream_that_is_gone_frees()
{
	Allocator a;
	void *p = a.allocate(most_of(a), 0, 0);

	CHECK(a.deallocateAsync(p, stream));
	CHECK(!a.allocate(most_of(a), 0, 0));
	CHECK_EQ(accmem_streams_forget(a.streams(), stream), 0);
	CHECK_EQ(accmem_streams_forget(a.streams(), stream), -ENOENT);
	CHECK(p = allocate_soon(a, most_of(a)));
	CHECK(a.deallocate(p));
}

/* A stream that cannot be made leaves the memory with its owner. */
static void no_descriptors_no_release()
{
	Allocator a;
	void *p = a.allocate(5000, 0, 0);
	rlimit limit, none;
	int fd = dup(0);

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = fd;
	close(fd);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
#ifndef FAKE_DEVICE
	CHECK(!a.deallocateAsync(p, stream));
	CHECK(strstr(accmem_last_error(), "no stream"));
	fill(p, 0, 5000, 1);
#endif
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	CHECK(a.deallocateAsync(p, stream));
}

static void work(Allocator *a, unsigned int seed)
{
	void *held[8] = {}, *p;
	uint64_t position;
	uint64_t size[8];

	for (unsigned int round = 0; round < test_scale(ROUNDS); round++) {
		const unsigned int i = rand_r(&seed) % 8;
		void *at = rand_r(&seed) % 2 ? stream : other_stream;
		const bool resizable = i % 2;

		if (!held[i]) {
			size[i] = 1 + rand_r(&seed) % (64 * KIB);
			held[i] = a->allocateAsync(
				size[i], 256, resizable ? kRESIZABLE : 0, at);
			CHECK(held[i]);
			fill(held[i], 0, size[i], i);
			continue;
		}
		CHECK(holds(held[i], 0, size[i], i));
		if (resizable && rand_r(&seed) % 2) {
			CHECK(p = a->reallocate(held[i], 256, 2 * size[i]));
			fill(p, size[i], 2 * size[i], i);
			size[i] *= 2;
			held[i] = p;
		}
		if (rand_r(&seed) % 4 == 0) {
			CHECK_EQ(accmem_streams_mark(a->streams(), at,
						     &position),
				 0);
			CHECK_EQ(accmem_streams_reach(a->streams(), at,
						      position),
				 0);
		}
		CHECK(rand_r(&seed) % 2 ? a->deallocate(held[i]) :
					  a->deallocateAsync(held[i], at));
		held[i] = nullptr;
	}
	for (void *each : held)
		CHECK(a->deallocate(each));
}

static void t11_threads_share_an_allocator()
{
	Allocator a;
	std::vector<std::thread> threads;

	static_assert(noexcept(a.allocate(1, 0, 0)) &&
			      noexcept(a.reallocate(nullptr, 0, 1)) &&
			      noexcept(a.deallocate(nullptr)) &&
			      noexcept(a.allocateAsync(1, 0, 0, nullptr)) &&
			      noexcept(a.deallocateAsync(nullptr, nullptr)),
		      "T11");
	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(work, &a, i);
	for (std::thread &each : threads)
		each.join();
	CHECK_EQ(stats_of(a).live_bytes, 0);
}

/* What the child reports of its streams is nothing to the parent's memory. */
static void a_child_goes_its_own_way()
{
	Allocator a;
	void *held = a.allocate(MIB, 0, 0);
	void *p = a.allocate(most_of(a), 0, 0), *q;
	uint64_t position;
	int status;
	pid_t pid;

	CHECK(held && p);
	fill(held, 0, MIB, 5);
	CHECK(a.deallocateAsync(p, stream));
	pid = fork();
	if (!pid) {
		CHECK(holds(held, 0, MIB, 5));
		CHECK_EQ(accmem_streams_reach(a.streams(), stream, 1),
			 -ENOENT);
		CHECK_EQ(accmem_streams_mark(a.streams(), stream, &position),
			 0);
		CHECK_EQ(accmem_streams_reach(a.streams(), stream, position),
			 0);
		CHECK(q = a.allocate(MIB, 0, 0));
		fill(q, 0, MIB, 6);
		CHECK(a.deallocateAsync(q, stream));
		CHECK(!a.allocate(most_of(a), 0, 0));
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK(!a.allocate(most_of(a), 0, 0));
	CHECK(holds(held, 0, MIB, 5));
	CHECK_EQ(accmem_streams_mark(a.streams(), stream, &position), 0);
	CHECK_EQ(accmem_streams_reach(a.streams(), stream, position), 0);
	CHECK(p = allocate_soon(a, most_of(a)));
	CHECK(a.deallocate(p));
	CHECK(a.deallocate(held));
}

static void allocators_are_owned_once()
{
	Allocator empty = Allocator::closed(), a = Allocator::closed();
	void *p;

	CHECK(!empty);
	CHECK(!empty.allocate(64, 0, 0));
	CHECK(!empty.reallocate(&empty, 0, 64));
	CHECK(empty.deallocate(nullptr));
	CHECK(!empty.deallocate(&empty));
	CHECK_EQ(empty.open("/dev/null/nothing"), -ENOTDIR);
	CHECK_EQ(a.open(), 0);
	CHECK(p = a.allocate(64, 0, 0));
	empty = std::move(a);
	CHECK(empty.deallocate(p));

	Allocator over(*empty.pool());
	CHECK(p = over.allocate(64, 0, 0));
	CHECK(empty.deallocate(p));
	try {
		Allocator none("/dev/null/nothing");
		CHECK(false);
	} catch (const std::system_error &error) {
		CHECK_EQ(error.code().value(), ENOTDIR);
	}
}

static void options_are_checked()
{
	Allocator a;
	accmem_tensorrt *core;
	Allocator::Options options = Allocator::defaults();

	options.size--;
	CHECK_EQ(accmem_tensorrt_create(a.pool(), &options, &core), -EINVAL);
	options = Allocator::defaults();
	options.flags = 2;
	CHECK_EQ(accmem_tensorrt_create(a.pool(), &options, &core), -EINVAL);
	options = Allocator::defaults();
	options.carveout = 99;
	CHECK_EQ(accmem_tensorrt_create(a.pool(), &options, &core), -EINVAL);
	options = Allocator::defaults();
	options.reserved = 1;
	CHECK_EQ(accmem_tensorrt_create(a.pool(), &options, &core), -EINVAL);
	options = Allocator::defaults();
	options.flags = ACCMEM_TENSORRT_UNMAPPED;

	Allocator unmapped(*a.pool(), options);
	void *p = unmapped.allocate(MIB, 0, 0);

	CHECK(p);
	CHECK_EQ(accmem_pool_map(a.pool(), p), 0);
	fill(p, 0, MIB, 1);
	CHECK(unmapped.deallocate(p));
}

#ifdef FAKE_DEVICE
static void a_device_may_go()
{
	Allocator a;
	void *fixed = a.allocate(MIB, 0, 0);
	void *growing = a.allocate(MIB, 0, kRESIZABLE);
	void *async = a.allocateAsync(MIB, 0, 0, stream);

	CHECK(fixed && growing && async);
	fake_gone = true;
	CHECK(!a.allocate(200 * MIB, 0, 0));
	CHECK(!a.allocate(MIB, 0, kRESIZABLE));
	CHECK(!a.allocateAsync(200 * MIB, 0, 0, other_stream));
	CHECK(!a.reallocate(growing, 0, 2 * MIB));
	CHECK(a.deallocate(fixed));
	CHECK(!a.deallocate(fixed));
	CHECK(a.deallocate(growing));
	CHECK(!a.deallocate(growing));
	CHECK(a.deallocateAsync(async, other_stream));
	CHECK(!a.deallocateAsync(async, other_stream));
	CHECK_EQ(stats_of(a).live_bytes, 0);
	CHECK_EQ(stats_of(a).pending_bytes, 0);
}
#endif

int main()
{
	static const struct test tests[] = {
		ROW(t1_nothing_is_null),
		ROW(t2_what_cannot_be_met_is_null),
		ROW(t3_alignment_is_honoured),
		ROW(t4_only_resizable_is_resized),
		ROW(t5_reallocate_keeps_the_bytes_in_both),
		ROW(t5_what_is_in_the_way_is_moved_from),
		ROW(t6_failure_leaves_it_untouched),
		ROW(t7_growth_by_small_steps_copies_nothing),
		ROW(t7_reservations_leave_addresses_to_others),
		ROW(t8_deallocate_says_whether_it_did),
		ROW(t9_asynchronous_calls_are_real),
		ROW(t10_free_waits_for_its_position),
		ROW(t10_free_waits_for_a_bound_stream),
		ROW(t10_the_default_stream_has_no_work),
		ROW(a_stream_that_is_gone_frees),
		ROW(no_descriptors_no_release),
		ROW(t11_threads_share_an_allocator),
		ROW(a_child_goes_its_own_way),
		ROW(allocators_are_owned_once),
#ifdef FAKE_DEVICE
		ROW(a_device_may_go),
#endif
		ROW(options_are_checked),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
