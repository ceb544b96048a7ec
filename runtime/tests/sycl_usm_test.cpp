// SPDX-License-Identifier: MIT
/*
 * SYCL's allocation functions on a device: rows S1 to S9, S14 and S15 of
 * Documentation/conformance.rst, and what is not allowed.
 */
#include "sycl_test.hpp"

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace {

const std::size_t MIB = 1048576;
const int THREADS = 4, ROUNDS = 300;

struct big {
	alignas(256) char bytes[256];
};

bool aligned(const void *pointer, std::size_t alignment)
{
	return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

/* It is there, of that kind, all of it can be used, and it is freed. */
void use(void *pointer, std::size_t bytes, alloc kind, const sycl::queue &q)
{
	CHECK(pointer != nullptr);
	CHECK(aligned(pointer, 64));
	CHECK_EQ(sycl::get_pointer_type(pointer, q.get_context()), kind);
	std::memset(pointer, 0x5a, bytes);
	sycl::free(pointer, q);
}

struct forms {
	sycl::queue &q;
	sycl::device dev = q.get_device();
	sycl::context ctx = q.get_context();
	sycl::property_list list{};
};

/* S1, S14: with and without a property_list. */
void device_forms(forms f)
{
	const alloc k = alloc::device;
	const std::size_t n = 1000, b = n * sizeof(int);

	use(sycl::malloc_device(b, f.dev, f.ctx), b, k, f.q);
	use(sycl::malloc_device(b, f.dev, f.ctx, f.list), b, k, f.q);
	use(sycl::malloc_device<int>(n, f.dev, f.ctx), b, k, f.q);
	use(sycl::malloc_device<int>(n, f.dev, f.ctx, f.list), b, k, f.q);
	use(sycl::malloc_device(b, f.q), b, k, f.q);
	use(sycl::malloc_device(b, f.q, f.list), b, k, f.q);
	use(sycl::malloc_device<int>(n, f.q), b, k, f.q);
	use(sycl::malloc_device<int>(n, f.q, f.list), b, k, f.q);
	use(sycl::aligned_alloc_device(128, b, f.dev, f.ctx), b, k, f.q);
	use(sycl::aligned_alloc_device(128, b, f.dev, f.ctx, f.list), b, k, f.q);
	use(sycl::aligned_alloc_device<int>(128, n, f.dev, f.ctx), b, k, f.q);
	use(sycl::aligned_alloc_device<int>(128, n, f.dev, f.ctx, f.list), b, k,
	    f.q);
	use(sycl::aligned_alloc_device(128, b, f.q), b, k, f.q);
	use(sycl::aligned_alloc_device(128, b, f.q, f.list), b, k, f.q);
	use(sycl::aligned_alloc_device<int>(128, n, f.q), b, k, f.q);
	use(sycl::aligned_alloc_device<int>(128, n, f.q, f.list), b, k, f.q);
}

void shared_forms(forms f)
{
	const alloc k = alloc::shared;
	const std::size_t n = 1000, b = n * sizeof(int);

	use(sycl::malloc_shared(b, f.dev, f.ctx), b, k, f.q);
	use(sycl::malloc_shared(b, f.dev, f.ctx, f.list), b, k, f.q);
	use(sycl::malloc_shared<int>(n, f.dev, f.ctx), b, k, f.q);
	use(sycl::malloc_shared<int>(n, f.dev, f.ctx, f.list), b, k, f.q);
	use(sycl::malloc_shared(b, f.q), b, k, f.q);
	use(sycl::malloc_shared(b, f.q, f.list), b, k, f.q);
	use(sycl::malloc_shared<int>(n, f.q), b, k, f.q);
	use(sycl::malloc_shared<int>(n, f.q, f.list), b, k, f.q);
	use(sycl::aligned_alloc_shared(128, b, f.dev, f.ctx), b, k, f.q);
	use(sycl::aligned_alloc_shared(128, b, f.dev, f.ctx, f.list), b, k, f.q);
	use(sycl::aligned_alloc_shared<int>(128, n, f.dev, f.ctx), b, k, f.q);
	use(sycl::aligned_alloc_shared<int>(128, n, f.dev, f.ctx, f.list), b, k,
	    f.q);
	use(sycl::aligned_alloc_shared(128, b, f.q), b, k, f.q);
	use(sycl::aligned_alloc_shared(128, b, f.q, f.list), b, k, f.q);
	use(sycl::aligned_alloc_shared<int>(128, n, f.q), b, k, f.q);
	use(sycl::aligned_alloc_shared<int>(128, n, f.q, f.list), b, k, f.q);
}

void host_forms(forms f)
{
	const alloc k = alloc::host;
	const std::size_t n = 1000, b = n * sizeof(int);

	use(sycl::malloc_host(b, f.ctx), b, k, f.q);
	use(sycl::malloc_host(b, f.ctx, f.list), b, k, f.q);
	use(sycl::malloc_host<int>(n, f.ctx), b, k, f.q);
	use(sycl::malloc_host<int>(n, f.ctx, f.list), b, k, f.q);
	use(sycl::malloc_host(b, f.q), b, k, f.q);
	use(sycl::malloc_host(b, f.q, f.list), b, k, f.q);
	use(sycl::malloc_host<int>(n, f.q), b, k, f.q);
	use(sycl::malloc_host<int>(n, f.q, f.list), b, k, f.q);
	use(sycl::aligned_alloc_host(128, b, f.ctx), b, k, f.q);
	use(sycl::aligned_alloc_host(128, b, f.ctx, f.list), b, k, f.q);
	use(sycl::aligned_alloc_host<int>(128, n, f.ctx), b, k, f.q);
	use(sycl::aligned_alloc_host<int>(128, n, f.ctx, f.list), b, k, f.q);
	use(sycl::aligned_alloc_host(128, b, f.q), b, k, f.q);
	use(sycl::aligned_alloc_host(128, b, f.q, f.list), b, k, f.q);
	use(sycl::aligned_alloc_host<int>(128, n, f.q), b, k, f.q);
	use(sycl::aligned_alloc_host<int>(128, n, f.q, f.list), b, k, f.q);
}

void kind_forms(forms f, alloc k)
{
	const std::size_t n = 1000, b = n * sizeof(int);

	use(sycl::malloc(b, f.dev, f.ctx, k), b, k, f.q);
	use(sycl::malloc(b, f.dev, f.ctx, k, f.list), b, k, f.q);
	use(sycl::malloc<int>(n, f.dev, f.ctx, k), b, k, f.q);
	use(sycl::malloc<int>(n, f.dev, f.ctx, k, f.list), b, k, f.q);
	use(sycl::malloc(b, f.q, k), b, k, f.q);
	use(sycl::malloc(b, f.q, k, f.list), b, k, f.q);
	use(sycl::malloc<int>(n, f.q, k), b, k, f.q);
	use(sycl::malloc<int>(n, f.q, k, f.list), b, k, f.q);
	use(sycl::aligned_alloc(128, b, f.dev, f.ctx, k), b, k, f.q);
	use(sycl::aligned_alloc(128, b, f.dev, f.ctx, k, f.list), b, k, f.q);
	use(sycl::aligned_alloc<int>(128, n, f.dev, f.ctx, k), b, k, f.q);
	use(sycl::aligned_alloc<int>(128, n, f.dev, f.ctx, k, f.list), b, k,
	    f.q);
	use(sycl::aligned_alloc(128, b, f.q, k), b, k, f.q);
	use(sycl::aligned_alloc(128, b, f.q, k, f.list), b, k, f.q);
	use(sycl::aligned_alloc<int>(128, n, f.q, k), b, k, f.q);
	use(sycl::aligned_alloc<int>(128, n, f.q, k, f.list), b, k, f.q);
}

/* S1, S14; a kind that the device lacks is the subject of the next test. */
void s1_s14_every_form_allocates()
{
	sycl::queue q;

	device_forms({ q });
	if (has(q, alloc::host))
		host_forms({ q });
	if (has(q, alloc::shared))
		shared_forms({ q });
	for (alloc kind : kinds)
		if (has(q, kind))
			kind_forms({ q }, kind);
	static_assert(
		std::is_same_v<decltype(sycl::malloc_device<big>(1, q)), big *>);
	static_assert(
		std::is_same_v<decltype(sycl::malloc_device(1, q)), void *>);
}

void check_lack(const sycl::queue &q, alloc kind)
{
	const sycl::device dev = q.get_device();
	const sycl::context ctx = q.get_context();

	CHECK_THROWS(sycl::malloc(8, q, kind), feature_not_supported);
	CHECK_THROWS(sycl::malloc<int>(8, dev, ctx, kind),
		     feature_not_supported);
	CHECK_THROWS(sycl::aligned_alloc(64, 8, q, kind),
		     feature_not_supported);
	CHECK_THROWS(sycl::aligned_alloc<int>(64, 8, dev, ctx, kind),
		     feature_not_supported);
	/* also 0 bytes, and what could not be had anyway */
	CHECK_THROWS(sycl::malloc(0, q, kind), feature_not_supported);
	CHECK_THROWS(sycl::malloc(SIZE_MAX, q, kind), feature_not_supported);
}

/* S5, S6: for each kind, the device's aspect is what decides. */
void s5_s6_a_kind_that_the_device_lacks_throws()
{
#ifdef FAKE_DEVICE
	use_kinds(false);
#endif
	sycl::queue q;

	CHECK(has(q, alloc::device));
	if (!has(q, alloc::host)) {
		check_lack(q, alloc::host);
		CHECK_THROWS(sycl::malloc_host(8, q), feature_not_supported);
		CHECK_THROWS(sycl::malloc_host<int>(8, q.get_context()),
			     feature_not_supported);
	}
	if (!has(q, alloc::shared)) {
		check_lack(q, alloc::shared);
		CHECK_THROWS(sycl::malloc_shared(8, q), feature_not_supported);
	}
#ifdef FAKE_DEVICE
	CHECK(!has(q, alloc::host) && !has(q, alloc::shared));
#endif
}

/* S5, S6: where it has the aspect, the same calls allocate. */
void s5_s6_a_kind_that_the_device_has_allocates()
{
	sycl::queue q;

	for (alloc kind : kinds)
		if (has(q, kind))
			use(sycl::malloc(8, q, kind), 8, kind, q);
	CHECK(sycl::malloc(8, q, alloc::unknown) == nullptr);
}

/* S6: the device is ignored for kind host, and for no other. */
void s6_host_memory_needs_no_device()
{
	sycl::queue q;
	sycl::context ctx = q.get_context();

	CHECK_THROWS(sycl::malloc(8, stranger(), ctx, alloc::device), invalid);
	CHECK_THROWS(sycl::malloc_device(8, stranger(), ctx), invalid);
	if (has(q, alloc::shared))
		CHECK_THROWS(sycl::malloc_shared(8, stranger(), ctx), invalid);
	if (has(q, alloc::host))
		use(sycl::malloc(8, stranger(), ctx, alloc::host), 8,
		    alloc::host, q);
}

/* A limit of contexts, which only the driver has; the fake device has little memory. */
void set_context_limit(std::size_t bytes)
{
	(void)bytes;
#ifndef FAKE_DEVICE
	FILE *file = fopen("/sys/module/accmem/parameters/max_bytes_per_context",
			   "w");

	CHECK(file);
	fprintf(file, "%zu\n", bytes);
	CHECK_EQ(fclose(file), 0);
#endif
}

/* S6: of the devices of a context, the first one that has any left. */
void s6_host_memory_is_of_any_device()
{
	const sycl::device first;
	const std::string path = first.impl()->path();
#ifdef FAKE_DEVICE
	const std::size_t limit =
		first.get_info<sycl::info::device::global_mem_size>();
	const alloc kind = alloc::host;
	fake_second = true;
#else
	/* a limit counts both kinds of memory */
	const std::size_t limit = 52 * MIB;
	const alloc kind = alloc::device;
#endif
	const sycl::device second = sycl::device::from_path(
		path == "/dev/accmem1" ? "/dev/accmem0" : "/dev/accmem1");

	if (!second.get_info<sycl::info::device::is_available>() ||
	    !first.has(sycl::aspect::usm_host_allocations) ||
	    !second.has(sycl::aspect::usm_host_allocations))
		return;
	sycl::context ctx({ first, second });
	set_context_limit(limit);
	void *p = sycl::malloc(limit - 4 * MIB, first, ctx, kind);
	void *q = sycl::malloc_host(8 * MIB, ctx);

	set_context_limit(0);
	CHECK(p && q);
	CHECK_EQ(accmem_pool_lookup(ctx.get_pool(second), q, nullptr), 0);
	CHECK_EQ(sycl::get_pointer_type(q, ctx), alloc::host);
	sycl::free(q, ctx);
	sycl::free(p, ctx);
}

/* S2: and nothing is lost by it. */
void s2_too_few_resources_is_null()
{
	sycl::queue q;
	const std::size_t all =
		q.get_device()
			.get_info<sycl::info::device::global_mem_size>();

	for (alloc kind : kinds) {
		if (!has(q, kind))
			continue;
		CHECK(sycl::malloc(SIZE_MAX, q, kind) == nullptr);
		CHECK(sycl::malloc(SIZE_MAX - 64, q, kind) == nullptr);
		CHECK(sycl::malloc<big>(SIZE_MAX / 2, q, kind) == nullptr);
		/* 256 times this is 2^64 + 256: the product must not wrap */
		CHECK(sycl::malloc<big>(SIZE_MAX / 256 + 2, q, kind) == nullptr);
	}
	CHECK(sycl::malloc_device(all + MIB, q) == nullptr);
	CHECK(*accmem_last_error() != 0);
	use(sycl::malloc_device(8 * MIB, q), 8 * MIB, alloc::device, q);
}

/* S2: a device that others have filled up. */
void s2_exhausted_device_is_null_and_recovers()
{
	sycl::queue q;
	std::vector<void *> held;

	while (void *p = sycl::malloc_device(16 * MIB, q))
		held.push_back(p);
	CHECK(held.size() > 4);
	CHECK(sycl::malloc_device(16 * MIB, q) == nullptr);
	CHECK(std::strstr(accmem_last_error(), "free") != nullptr);
	for (void *p : held)
		sycl::free(p, q);
	use(sycl::malloc_device(16 * MIB, q), MIB, alloc::device, q);
}

/* S3 */
void s3_bad_alignment_is_null()
{
	static const std::size_t bad[] = { 3, 5, 7, 9, 63, 65, 4095, 4097,
					   SIZE_MAX, std::size_t(1) << 40,
					   std::size_t(1) << 63 };
	sycl::queue q;

	for (alloc kind : kinds) {
		if (!has(q, kind))
			continue;
		for (std::size_t alignment : bad) {
			CHECK(sycl::aligned_alloc(alignment, 100, q, kind) ==
			      nullptr);
			CHECK(sycl::aligned_alloc<double>(alignment, 100, q,
							  kind) == nullptr);
			CHECK(sycl::aligned_alloc(alignment, 0, q, kind) ==
			      nullptr);
		}
	}
	CHECK(sycl::aligned_alloc_device(3, 100, q) == nullptr);
}

/* S3: and a good one is honoured, alone and by the type. */
void s3_good_alignment_is_honoured()
{
	sycl::queue q;

	for (std::size_t alignment = 1; alignment <= 2 * MIB; alignment *= 2) {
		void *p = sycl::aligned_alloc_device(alignment, 100, q);

		CHECK(p && aligned(p, alignment));
		sycl::free(p, q);
	}
	for (int i = 0; i < 8; i++) {
		big *p = sycl::aligned_alloc_device<big>(8, 3, q);

		CHECK(p && aligned(p, alignof(big)));
		sycl::free(p, q);
		p = sycl::malloc_device<big>(1, q);
		CHECK(p && aligned(p, alignof(big)));
		sycl::free(p, q);
	}
}

/* Where the interfaces disagree: alignment 0 is the default. */
void alignment_0_is_the_default()
{
	sycl::queue q;

	use(sycl::aligned_alloc_device(0, 100, q), 100, alloc::device, q);
	use(sycl::aligned_alloc_device<int>(0, 25, q), 100, alloc::device, q);
	use(sycl::aligned_alloc(0, 100, q, alloc::device), 100, alloc::device,
	    q);
}

/* S4, and where the interfaces disagree: size 0 is as of malloc(). */
void s4_size_0_is_as_of_malloc()
{
	sycl::queue q;
	std::set<void *> seen;

	for (alloc kind : kinds) {
		if (!has(q, kind))
			continue;
		seen.insert(sycl::malloc(0, q, kind));
		seen.insert(sycl::malloc<int>(0, q, kind));
		seen.insert(sycl::aligned_alloc(128, 0, q, kind));
	}
	seen.erase(nullptr);
	CHECK(!seen.empty());
	for (void *p : seen)
		sycl::free(p, q);
	for (void *p : seen)
		CHECK_EQ(sycl::get_pointer_type(p, q.get_context()),
			 alloc::unknown);
}

/* S7: of the same context only. */
void s7_free_refuses_what_is_not_of_the_context()
{
	sycl::device dev;
	sycl::context here(dev), there(dev);
	char *p = static_cast<char *>(sycl::malloc_device(10000, dev, here));
	int local = 0;

	CHECK(p != nullptr);
	CHECK_THROWS(sycl::free(p, there), invalid); /* foreign */
	CHECK_THROWS(sycl::free(p + 64, here), invalid); /* interior */
	CHECK_THROWS(sycl::free(p + 9999, here), invalid);
	CHECK_THROWS(sycl::free(&local, here), invalid); /* wild */
	CHECK_THROWS(sycl::free(reinterpret_cast<void *>(64), here), invalid);
	CHECK_THROWS(sycl::free(reinterpret_cast<void *>(-64), here), invalid);
	CHECK_EQ(sycl::get_pointer_type(p, here), alloc::device);
	std::memset(p, 1, 10000);
	sycl::free(p, here);
	CHECK_THROWS(sycl::free(p, here), invalid); /* twice */
}

void s7_what_free_throws_names_the_context()
{
	sycl::queue q;
	int local = 0;

	try {
		sycl::free(&local, q);
	} catch (const sycl::exception &e) {
		CHECK(e.code() == sycl::errc::invalid);
		CHECK(e.has_context());
		CHECK(e.get_context() == q.get_context());
		return;
	}
	CHECK(false);
}

/* S7, and where the interfaces disagree: free does not wait for work in flight. */
void s7_free_does_not_wait_for_work()
{
	sycl::queue q;
	std::atomic<bool> started{ false }, finish{ false };
	int *used = sycl::malloc_device<int>(1000, q);
	int *other = sycl::malloc_device<int>(1000, q);
	sycl::event e = q.single_task([=, &started, &finish] {
		used[0] = 1;
		started = true;
		while (!finish)
			std::this_thread::yield();
	});

	while (!started)
		std::this_thread::yield();
	sycl::free(other, q);
	sycl::free(used, q); /* comes back while the kernel runs */
	CHECK(e.get_info<sycl::info::event::command_execution_status>() ==
	      sycl::info::event_command_status::running);
	finish = true;
	e.wait();
}

/* S8 */
void s8_free_by_queue_uses_its_context()
{
	sycl::device dev;
	sycl::context here(dev), there(dev);
	sycl::queue q(here, dev), r(there, dev);
	void *p = sycl::malloc_device(100, dev, here);

	CHECK_THROWS(sycl::free(p, r), invalid);
	sycl::free(p, q);
	p = sycl::malloc_device(100, q);
	sycl::free(p, here);
	/* queues of one device that were given no context share one */
	sycl::queue a, b;

	p = sycl::malloc_device(100, a);
	sycl::free(p, b);
}

/* S9, and where the interfaces disagree: free of nullptr does nothing. */
void s9_free_of_null_does_nothing()
{
	sycl::queue q;

	sycl::free(nullptr, q);
	sycl::free(nullptr, q.get_context());
}

/* S15 */
void s15_pointers_are_known_by_kind_and_device()
{
	sycl::queue q;
	sycl::context ctx = q.get_context(), other(q.get_device());
	int local = 0;

	for (alloc kind : kinds) {
		for (std::size_t bytes : { std::size_t(1), std::size_t(100),
					   std::size_t(5000), 3 * MIB }) {
			if (!has(q, kind))
				continue;
			char *p = static_cast<char *>(
				sycl::malloc(bytes, q, kind));

			CHECK(p != nullptr);
			for (char *at : { p, p + bytes / 2, p + bytes - 1 }) {
				CHECK_EQ(sycl::get_pointer_type(at, ctx), kind);
				CHECK(sycl::get_pointer_device(at, ctx) ==
				      q.get_device());
				CHECK_EQ(sycl::get_pointer_type(at, other),
					 alloc::unknown);
				CHECK_THROWS(sycl::get_pointer_device(at, other),
					     invalid);
			}
			sycl::free(p, q);
			CHECK_EQ(sycl::get_pointer_type(p, ctx), alloc::unknown);
			CHECK_THROWS(sycl::get_pointer_device(p, ctx), invalid);
		}
	}
	CHECK_EQ(sycl::get_pointer_type(nullptr, ctx), alloc::unknown);
	CHECK_EQ(sycl::get_pointer_type(&local, ctx), alloc::unknown);
	CHECK_THROWS(sycl::get_pointer_device(nullptr, ctx), invalid);
	CHECK_THROWS(sycl::get_pointer_device(&local, ctx), invalid);
}

/* S7: the memory that is handed out and taken back is the thread's own. */
void threads_share_a_context()
{
	sycl::queue q;
	std::vector<std::thread> threads;

	for (int t = 0; t < THREADS; t++)
		threads.emplace_back([q, t] {
			for (int i = 1; i <= ROUNDS; i++) {
				const std::size_t n = 16 * (i % 50 + 1);
				int *p = sycl::malloc_device<int>(n, q);

				CHECK(p != nullptr);
				for (std::size_t k = 0; k < n; k++)
					p[k] = t;
				for (std::size_t k = 0; k < n; k++)
					CHECK_EQ(p[k], t);
				sycl::free(p, q);
			}
		});
	for (std::thread &thread : threads)
		thread.join();
}

#ifdef FAKE_DEVICE
void a_device_may_go()
{
	fake_capacity = 1ull << 30;

	sycl::queue q;
	char *p = sycl::malloc_device<char>(1 << 20, q);
	char *large = sycl::malloc_device<char>(300 << 20, q);

	CHECK(p && large);
	fake_gone = true;
	CHECK(!sycl::malloc_device(200 << 20, q));
	CHECK(!sycl::malloc_shared(200 << 20, q));
	CHECK(sycl::get_pointer_type(large, q.get_context()) == alloc::device);
	sycl::free(p, q);
	CHECK_THROWS(sycl::free(p, q), invalid);
	sycl::free(large, q);
	CHECK_THROWS(sycl::free(large, q), invalid);
	fake_gone = false;
}
#endif

/* A child frees what it has of its parent without taking it from it. */
void memory_after_fork_is_the_parents()
{
	sycl::queue q;
	int *p = sycl::malloc_device<int>(1000, q);

	p[0] = 42;
	in_child([&] {
		int *mine = sycl::malloc_device<int>(1000, q);

		CHECK(mine && mine != p);
		mine[0] = 1;
		CHECK_EQ(p[0], 42);
		sycl::free(mine, q);
		sycl::free(p, q);
	});
	CHECK_EQ(sycl::get_pointer_type(p, q.get_context()), alloc::device);
	CHECK_EQ(p[0], 42);
	sycl::free(p, q);
}

void no_device_is_a_runtime_error()
{
	setenv("ACCMEM_DEVICE", "/dev/accmem-of-nobody", 1);
	const bool others = !sycl::device::get_devices().empty();

	if (!others)
		CHECK_THROWS(sycl::queue(), runtime);
	CHECK_THROWS(sycl::queue(stranger()), runtime);
	CHECK_THROWS(sycl::context(stranger()), runtime);
	CHECK_THROWS(sycl::context(std::vector<sycl::device>{}), invalid);
	CHECK_THROWS(sycl::queue(sycl::gpu_selector_v), runtime);
}

template <void (*Test)()>
void run()
{
	use_kinds(true);
	Test();
}

#define TEST(name) { #name, run<name> }

const struct test tests[] = {
	TEST(s1_s14_every_form_allocates),
	TEST(s2_too_few_resources_is_null),
	TEST(s2_exhausted_device_is_null_and_recovers),
	TEST(s3_bad_alignment_is_null),
	TEST(s3_good_alignment_is_honoured),
	TEST(alignment_0_is_the_default),
	TEST(s4_size_0_is_as_of_malloc),
	TEST(s5_s6_a_kind_that_the_device_lacks_throws),
	TEST(s5_s6_a_kind_that_the_device_has_allocates),
	TEST(s6_host_memory_needs_no_device),
	TEST(s6_host_memory_is_of_any_device),
	TEST(s7_free_refuses_what_is_not_of_the_context),
	TEST(s7_what_free_throws_names_the_context),
	TEST(s7_free_does_not_wait_for_work),
	TEST(s8_free_by_queue_uses_its_context),
	TEST(s9_free_of_null_does_nothing),
	TEST(s15_pointers_are_known_by_kind_and_device),
	TEST(threads_share_a_context),
	TEST(memory_after_fork_is_the_parents),
#ifdef FAKE_DEVICE
	TEST(a_device_may_go),
#endif
	TEST(no_device_is_a_runtime_error),
};

} // namespace

int main()
{
	return test_main(tests, ARRAY_SIZE(tests));
}
