// SPDX-License-Identifier: MIT
/*
 * sycl::usm_allocator on a device: rows S10 to S16 of Documentation/conformance.rst,
 * and containers of the C++ library over it.
 */
#include "sycl_test.hpp"

#include <fstream>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

template <typename T, alloc Kind, std::size_t Alignment = 0>
using allocator = sycl::usm_allocator<T, Kind, Alignment>;

template <typename T, typename = void>
struct is_complete : std::false_type {};
template <typename T>
struct is_complete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

struct wide {
	alignas(512) int value;
};

/* S10 */
static_assert(is_complete<allocator<int, alloc::host>>::value);
static_assert(is_complete<allocator<int, alloc::shared>>::value);
static_assert(!is_complete<allocator<int, alloc::device>>::value);
static_assert(!is_complete<allocator<int, alloc::unknown>>::value);

template <alloc Kind>
struct shape {
	using type = allocator<int, Kind, 128>;
	using traits = std::allocator_traits<type>;

	static_assert(!std::is_default_constructible_v<type>);
	static_assert(std::is_copy_constructible_v<type>);
	static_assert(std::is_copy_assignable_v<type>);
	static_assert(std::is_nothrow_move_constructible_v<type>);
	static_assert(std::is_same_v<typename traits::value_type, int>);
	static_assert(traits::propagate_on_container_copy_assignment::value);
	static_assert(traits::propagate_on_container_move_assignment::value);
	static_assert(traits::propagate_on_container_swap::value);
	static_assert(!traits::is_always_equal::value);
	static_assert(std::is_constructible_v<type, sycl::context, sycl::device>);
	static_assert(std::is_constructible_v<type, sycl::context, sycl::device,
					      sycl::property_list>);
	static_assert(std::is_constructible_v<type, sycl::queue>);
	static_assert(std::is_constructible_v<type, sycl::queue,
					      sycl::property_list>);
	/* S11: kind and alignment are kept */
	static_assert(
		std::is_same_v<typename traits::template rebind_alloc<double>,
			       allocator<double, Kind, 128>>);
	static_assert(
		std::is_constructible_v<allocator<double, Kind, 128>, type>);
	static_assert(!std::is_constructible_v<allocator<int, Kind, 64>, type>);
};

template struct shape<alloc::host>;
template struct shape<alloc::shared>;

static_assert(!std::is_constructible_v<allocator<int, alloc::shared>,
				       allocator<int, alloc::host>>);

bool aligned(const void *pointer, std::size_t alignment)
{
	return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

template <typename A>
void check_alignment(A a, std::size_t alignment)
{
	for (std::size_t count : { 1, 2, 3, 100 }) {
		auto *p = a.allocate(count);

		CHECK(p && aligned(p, alignment));
		a.deallocate(p, count);
	}
}

/* S11: the larger of the type's and the allocator's, also after a rebind. */
template <alloc Kind>
void s11_alignment(const sycl::queue &q)
{
	using a = allocator<char, Kind, 1024>;
	using b = allocator<wide, Kind, 8>;
	using rebound =
		typename std::allocator_traits<a>::template rebind_alloc<double>;
	using wider =
		typename std::allocator_traits<b>::template rebind_alloc<wide>;

	check_alignment(a(q), 1024);
	check_alignment(rebound(a(q)), 1024);
	check_alignment(b(q), alignof(wide));
	check_alignment(wider(b(q)), alignof(wide));
	check_alignment(allocator<char, Kind>(q), 1);
}

using type_of_shared = allocator<int, alloc::shared>;

/* S12, S13: what the constructors throw. */
template <alloc Kind>
void s12_s13_constructors(const sycl::queue &q)
{
	using type = allocator<int, Kind>;
	const sycl::context ctx = q.get_context();

	CHECK_THROWS(type(ctx, stranger()), invalid);
	if (has(q, Kind)) {
		type made(ctx, q.get_device()), by_queue(q);

		CHECK(made == by_queue);
		CHECK(type(q, sycl::property_list{}) == made);
		CHECK(type(ctx, q.get_device(), sycl::property_list{}) == made);
		return;
	}
	CHECK_THROWS(type(ctx, q.get_device()), feature_not_supported);
	CHECK_THROWS(type(q), feature_not_supported);
}

/* S15 */
template <alloc Kind, alloc Other>
void s15_equality(const sycl::queue &q)
{
	const sycl::device dev = q.get_device();
	const sycl::context other(dev);
	allocator<int, Kind> a(q), b(q), c(a), elsewhere(other, dev);
	allocator<double, Kind> rebound(a);
	allocator<int, Kind, 256> larger(q);
	allocator<int, Other> different(q);

	CHECK(a == b && a == c && a == rebound);
	CHECK(!(a != b) && !(a != c) && !(a != rebound));
	CHECK(a != elsewhere && !(a == elsewhere));
	CHECK(a != larger && a != different);
	CHECK(!(a == larger) && !(a == different));
	elsewhere = a;
	CHECK(elsewhere == a);
	allocator<int, Kind> moved(std::move(elsewhere));
	CHECK(moved == a && elsewhere == a);
}

/* What is of the allocator's memory is known to be. */
template <alloc Kind>
void containers(const sycl::queue &q)
{
	const sycl::context ctx = q.get_context();
	allocator<int, Kind> a(q);
	std::vector<int, allocator<int, Kind>> v(a);
	std::list<int, allocator<int, Kind>> l(a);
	using pair = std::pair<const int, int>;
	std::unordered_map<int, int, std::hash<int>, std::equal_to<int>,
			   allocator<pair, Kind>>
		u(a);
	std::map<int, int, std::less<int>, allocator<pair, Kind>> m(a);
	auto s = std::allocate_shared<std::pair<int, int>>(a, 1, 2);
	long sum = 0;

	for (int i = 0; i < 1000; i++) {
		v.push_back(i);
		l.push_front(i);
		u[i] = i;
		m[i] = i;
	}
	for (int i = 0; i < 1000; i++)
		sum += v[i] + u.at(i) + m.at(i);
	for (int i : l)
		sum += i;
	CHECK_EQ(sum, 4 * 499500);
	CHECK_EQ(s->second, 2);
	CHECK_EQ(sycl::get_pointer_type(v.data(), ctx), Kind);
	CHECK_EQ(sycl::get_pointer_type(&l.front(), ctx), Kind);
	CHECK_EQ(sycl::get_pointer_type(&u.at(7), ctx), Kind);
	CHECK_EQ(sycl::get_pointer_type(&m.at(7), ctx), Kind);
	CHECK_EQ(sycl::get_pointer_type(s.get(), ctx), Kind);

	auto copy = v;
	std::vector<int, allocator<int, Kind>> w(
		allocator<int, Kind>(sycl::context(q.get_device()),
				     q.get_device()));

	w.push_back(1);
	w = std::move(copy); /* with the allocator: nothing is copied */
	CHECK(w == v && w.get_allocator() == v.get_allocator());
	std::swap(w, v);
	CHECK_EQ(w.size(), 1000);
}

/* A container of strings over two levels, shrunk and grown. */
template <alloc Kind>
void nested_containers(const sycl::queue &q)
{
	using string = std::basic_string<char, std::char_traits<char>,
					 allocator<char, Kind>>;
	allocator<char, Kind> a(q);
	std::vector<string, allocator<string, Kind>> v(a);

	for (int i = 0; i < 100; i++)
		v.push_back(string(10 * i, 'x', a));
	for (int i = 0; i < 100; i++)
		CHECK_EQ(v[i].size(), 10 * i);
	v.erase(v.begin(), v.begin() + 50);
	v.shrink_to_fit();
	CHECK_EQ(v[0].size(), 500);
}

/* What cannot be had is an exception, as an Allocator has it. */
template <alloc Kind>
void failures(const sycl::queue &q)
{
	allocator<int, Kind> a(q);
	std::vector<int, allocator<int, Kind>> v(a);
	int local = 0;

	CHECK_THROWS(a.allocate(SIZE_MAX), memory_allocation);
	CHECK_THROWS(a.allocate(SIZE_MAX / sizeof(int)), memory_allocation);
	CHECK_THROWS(a.deallocate(&local, 1), invalid);
	v.assign(10, 7);
	CHECK_THROWS(v.reserve(v.max_size() / 2), memory_allocation);
	CHECK_EQ(v.size(), 10);
	CHECK_EQ(v[9], 7);
}

template <template <alloc> typename Test>
void for_both(bool needed)
{
	sycl::queue q;

	if (!needed || has(q, alloc::host))
		Test<alloc::host>::run(q);
	if (!needed || has(q, alloc::shared))
		Test<alloc::shared>::run(q);
}

#define FOR_BOTH(name, call, needed)                             \
	template <alloc Kind>                                    \
	struct name##_of {                                       \
		static void run(const sycl::queue &q) { call; }  \
	};                                                       \
	void name()                                              \
	{                                                        \
		use_kinds(true);                                 \
		for_both<name##_of>(needed);                     \
	}

FOR_BOTH(s11_alignment_is_kept_by_rebind, s11_alignment<Kind>(q), true)
FOR_BOTH(s12_s13_constructors_throw, s12_s13_constructors<Kind>(q), false)
FOR_BOTH(containers_live_in_usm, containers<Kind>(q), true)
FOR_BOTH(nested_containers_live_in_usm, nested_containers<Kind>(q), true)
FOR_BOTH(failures_are_exceptions, failures<Kind>(q), true)

void s13_constructors_throw_without_the_kind()
{
	use_kinds(false);
	sycl::queue q;

	s12_s13_constructors<alloc::host>(q);
	s12_s13_constructors<alloc::shared>(q);
}

#ifdef FAKE_DEVICE
/* S13: the device of an allocator of host memory has no meaning. */
void s13_any_device_of_the_context_has_the_kind()
{
	static int opened;

	opened = 0;
	fake_second = true;
	fake_open_busy = [] { fake_kinds = opened++ > 0; };
	sycl::device without = sycl::device::from_path(FAKE_DEVICE_PATH);
	sycl::device with = sycl::device::from_path("/dev/accmem1");

	opened = 0;
	{
		sycl::context ctx(std::vector<sycl::device>{ without, with });
		allocator<int, alloc::host> a(ctx, without), b(ctx, with);

		CHECK_THROWS(type_of_shared(ctx, without),
			     feature_not_supported);
		for (auto &each : { a, b }) {
			allocator<int, alloc::host> some(each);
			int *p = some.allocate(10);

			CHECK(p);
			some.deallocate(p, 10);
		}
	}
	fake_open_busy = nullptr;
	fake_second = false;
}
#endif

void s15_allocators_are_equal_if_their_memory_is_the_same()
{
	use_kinds(true);
	sycl::queue q;

	if (!has(q, alloc::host) || !has(q, alloc::shared))
		return;
	s15_equality<alloc::host, alloc::shared>(q);
	s15_equality<alloc::shared, alloc::host>(q);
}

/* S10: by the assertions above; and those that exist can be used. */
void s10_it_exists_for_host_and_shared_only()
{
	use_kinds(true);
	sycl::queue q;

	CHECK((is_complete<allocator<int, alloc::host>>::value));
	CHECK((is_complete<allocator<int, alloc::shared>>::value));
	CHECK((!is_complete<allocator<int, alloc::device>>::value));
	if (has(q, alloc::host))
		check_alignment(allocator<int, alloc::host>(q), alignof(int));
	if (has(q, alloc::shared))
		check_alignment(allocator<int, alloc::shared>(q), alignof(int));
}

/* S16, the host's part: both kinds are read and written by the host as they are. */
void s16_host_and_shared_are_the_hosts_too()
{
	use_kinds(true);
	sycl::queue q;

	for (alloc kind : { alloc::host, alloc::shared }) {
		if (!has(q, kind))
			continue;
		int *p = sycl::malloc<int>(10000, q, kind);

		CHECK(p != nullptr);
		for (int i = 0; i < 10000; i++)
			p[i] = i;
		q.parallel_for(10000, [=](sycl::id<1> i) { p[i] += 1; }).wait();
		for (int i = 0; i < 10000; i++)
			CHECK_EQ(p[i], i + 1);
		sycl::free(p, q);
	}
}

/* A counter of the driver; -1 where there is none, or it is not for us to know. */
long moved_bytes(const char *name)
{
	std::ifstream file(std::string("/sys/class/accmem/accmem0/") + name);
	long value;

	return file >> value ? value : -1;
}

/* The device's part of a move, by its address. */
int device_access(int *pointer, int *data, std::size_t bytes, std::uint32_t op)
{
	accmem_pool_block block;
	accmem_access access = {};

	if (accmem_pool_find(pointer, &block))
		return -1;
	access.address = accmem_pool_address(block.pool, pointer);
	access.length = bytes;
	access.data = reinterpret_cast<std::uintptr_t>(data);
	access.op = op;
	return accmem_device_access(accmem_pool_context(block.pool), &access);
}

/* S16: shared memory moves between both sides by itself; counters of the driver show it. */
void s16_shared_memory_moves_by_itself()
{
	use_kinds(true);
	sycl::queue q;

	if (!has(q, alloc::shared))
		return;
	constexpr int count = 1500000; /* of several pieces */
	std::vector<int> data(count);
	int *p = sycl::malloc_shared<int>(count, q);
	const long to_device = moved_bytes("shared_to_device_bytes");
	const long to_host = moved_bytes("shared_to_host_bytes");
	const std::size_t bytes = count * sizeof(int);

	CHECK(p != nullptr);
	for (int round = 1; round < 4; round++) {
		for (int i = 0; i < count; i++)
			p[i] = i * round;
		q.prefetch(p, bytes).wait();
		CHECK_EQ(device_access(p, data.data(), bytes,
				       ACCMEM_ACCESS_READ),
			 0);
		for (int i = 0; i < count; i++)
			data[i]++;
		CHECK_EQ(device_access(p, data.data(), bytes,
				       ACCMEM_ACCESS_WRITE),
			 0);
		for (int i = 0; i < count; i += 501)
			CHECK_EQ(p[i], i * round + 1);
	}
	q.mem_advise(p, bytes, ACCMEM_ADVICE_STAY).wait();
	q.mem_advise(p, bytes, 12345).wait();
	if (to_device >= 0) {
		CHECK(moved_bytes("shared_to_device_bytes") - to_device >=
		      long(3 * bytes));
		CHECK(moved_bytes("shared_to_host_bytes") - to_host >=
		      long(3 * bytes));
	}
	sycl::free(p, q);
}

#define TEST(name) { #name, name }

const struct test tests[] = {
	TEST(s10_it_exists_for_host_and_shared_only),
	TEST(s11_alignment_is_kept_by_rebind),
	TEST(s12_s13_constructors_throw),
	TEST(s13_constructors_throw_without_the_kind),
#ifdef FAKE_DEVICE
	TEST(s13_any_device_of_the_context_has_the_kind),
#endif
	TEST(s15_allocators_are_equal_if_their_memory_is_the_same),
	TEST(s16_host_and_shared_are_the_hosts_too),
	TEST(s16_shared_memory_moves_by_itself),
	TEST(containers_live_in_usm),
	TEST(nested_containers_live_in_usm),
	TEST(failures_are_exceptions),
};

} // namespace

int main()
{
	return test_main(tests, ARRAY_SIZE(tests));
}
