// SPDX-License-Identifier: MIT
/*
 * SYCL's queues on a device: memory operations, kernels over USM, events, errors, and
 * what a child of fork() may do.
 */
#include "sycl_test.hpp"

#include <cstring>
#include <future>
#include <numeric>
#include <unordered_set>
#include <vector>

namespace {

const std::size_t N = 5000;

std::vector<int> numbers()
{
	std::vector<int> v(N);

	std::iota(v.begin(), v.end(), 1);
	return v;
}

/* Host to device, on the device, and back; each form of dependencies. */
void memory_operations_move_bytes()
{
	sycl::queue q;
	std::vector<int> from = numbers(), to(N);
	int *a = sycl::malloc_device<int>(N, q);
	int *b = sycl::malloc_device<int>(N, q);
	sycl::event e = q.memcpy(a, from.data(), N * sizeof(int));
	sycl::event f = q.copy(a, b, N, e);

	q.memcpy(to.data(), b, N * sizeof(int), { e, f }).wait();
	CHECK(to == from);
	e = q.memset(a, 0xff, N * sizeof(int), std::vector<sycl::event>{ f });
	q.copy(a, to.data(), N, { e }).wait();
	CHECK_EQ(to[0], -1);
	CHECK_EQ(to[N - 1], -1);
	q.fill(a, 77, N, sycl::event{}).wait();
	q.fill(a + 1, char('x'), 2).wait();
	CHECK_EQ(a[0], 77);
	CHECK_EQ(a[N - 1], 77);
	CHECK(a[1] != 77 && a[2] == 77);
	q.memcpy(a, b, 0).wait(); /* nothing, at any pointer */
	q.memcpy(nullptr, nullptr, 0).wait();
	q.memset(nullptr, 0, 0).wait();
	CHECK_EQ(a[0], 77);
	sycl::free(a, q);
	sycl::free(b, q);
}

/* Hints, of memory of any kind; with none of anything else. */
void hints_are_taken_for_usm_only()
{
	sycl::queue q;
	int local = 0;

	for (alloc kind : kinds) {
		if (!has(q, kind))
			continue;
		char *p = static_cast<char *>(sycl::malloc(10000, q, kind));

		p[9999] = 1;
		sycl::event e = q.prefetch(p, 10000);
		q.mem_advise(p + 100, 100, 0, e).wait();
		CHECK_EQ(p[9999], 1);
		CHECK_THROWS(q.prefetch(p, 10000000), invalid);
		sycl::free(p, q);
		CHECK_THROWS(q.prefetch(p, 10000), invalid);
	}
	CHECK_THROWS(q.prefetch(&local, 4), invalid);
	CHECK_THROWS(q.mem_advise(&local, 4, 0), invalid);
	CHECK_THROWS(q.prefetch(nullptr, 4), invalid);
}

/* What can be seen to be wrong is refused when it is submitted. */
void bad_ranges_are_refused()
{
	sycl::queue q;
	sycl::queue other(sycl::context(q.get_device()), q.get_device());
	std::vector<char> host(1 << 20);
	char *p = sycl::malloc_device<char>(10000, q);

	CHECK_THROWS(q.memcpy(p, nullptr, 1), invalid);
	CHECK_THROWS(q.memcpy(nullptr, p, 1), invalid);
	CHECK_THROWS(q.memset(nullptr, 0, 1), invalid);
	CHECK_THROWS(q.fill(nullptr, 1, 1), invalid);
	CHECK_THROWS(q.memcpy(p, host.data(), 1 << 20), invalid);
	CHECK_THROWS(q.memcpy(host.data(), p, 1 << 20), invalid);
	CHECK_THROWS(q.memset(p + 9999, 0, 100000), invalid);
	CHECK_THROWS(q.memset(p, 0, SIZE_MAX), invalid);
	CHECK_THROWS(q.fill(p, 1.0, SIZE_MAX / 2), invalid);
	CHECK_THROWS(q.copy(reinterpret_cast<double *>(p),
			    reinterpret_cast<double *>(host.data()),
			    SIZE_MAX / 4),
		     invalid);
	CHECK_THROWS(q.submit([&](sycl::handler &h) { h.memset(nullptr, 0, 1); }),
		     invalid);
	sycl::free(p, q);
	CHECK_THROWS(q.memset(p, 0, 1), invalid);
	q.wait_and_throw();
}

void kernels_run_over_every_point()
{
	sycl::queue q;
	int *p = sycl::malloc_device<int>(N, q);
	int *cube = sycl::malloc_device<int>(2 * 3 * 4, q);

	q.fill(p, 0, N);
	q.parallel_for(sycl::range<1>(N), [=](sycl::id<1> i) { p[i] += i; });
	q.parallel_for(N, [=](auto i) { p[i] += 1; });
	q.parallel_for(sycl::range{ N }, [=](sycl::item<1> i) {
		p[i] += i.get_range(0) == N && i.get_linear_id() == i;
	});
	q.parallel_for<class by_number>(N, [=](std::size_t i) { p[i] += 1; });
	q.parallel_for<class by_int>(N, [=](int i) { p[i] += 1; }).wait();
	for (std::size_t i = 0; i < N; i++)
		CHECK_EQ(p[i], int(i) + 4);

	q.parallel_for({ 2, 3, 4 }, [=](sycl::id<3> i) {
		cube[(i[0] * 3 + i[1]) * 4 + i[2]] = i[0] * 100 + i[1] * 10 +
						     i[2];
	});
	q.parallel_for(sycl::range<2>(6, 4), [=](sycl::item<2> i) {
		cube[i.get_linear_id()] += i[1] == i.get_linear_id() % 4;
	 }).wait();
	CHECK_EQ(cube[0], 1);
	CHECK_EQ(cube[23], 124);
	CHECK_EQ(cube[13], 102);
	q.parallel_for(sycl::range<1>(0), [=](sycl::id<1>) { p[0] = -1; });
	q.single_task<class alone>([=] { p[1] = 9; }).wait();
	CHECK_EQ(p[0], 4);
	CHECK_EQ(p[1], 9);
	sycl::free(p, q);
	sycl::free(cube, q);
}

void kernels_run_in_groups()
{
	sycl::queue q;
	const sycl::nd_range<1> space{ 64, 16 };
	int *p = sycl::malloc_device<int>(64, q);

	q.parallel_for(space, [=](sycl::nd_item<1> i) {
		p[i.get_global_id(0)] = i.get_group(0) * 1000 +
					i.get_local_id(0);
	 }).wait();
	for (int i = 0; i < 64; i++)
		CHECK_EQ(p[i], i / 16 * 1000 + i % 16);
	q.parallel_for(sycl::nd_range<2>({ 4, 8 }, { 2, 4 }),
		       [=](sycl::nd_item<2> i) {
			       const sycl::group<2> g = i.get_group();

			       p[i.get_global_linear_id()] =
				       g.leader() * 1000 +
				       g.get_group_linear_id() * 100 +
				       g.get_local_linear_id();
		       })
		.wait();
	for (int i = 0; i < 32; i++) {
		const int row = i / 8, column = i % 8;
		const int group = row / 2 * 2 + column / 4;
		const int local = row % 2 * 4 + column % 4;

		CHECK_EQ(p[i], (local == 0) * 1000 + group * 100 + local);
	}
	CHECK_THROWS(q.parallel_for(sycl::nd_range<1>(64, 10),
				    [](sycl::nd_item<1>) {}),
		     nd_range);
	CHECK_THROWS(q.parallel_for(sycl::nd_range<1>(64, 0),
				    [](sycl::nd_item<1>) {}),
		     nd_range);
	sycl::free(p, q);
}

/* In words that programs use, which have to compile. */
void objects_answer_what_they_are()
{
	sycl::queue q({ sycl::property::queue::enable_profiling() });
	sycl::queue both({ sycl::property::queue::enable_profiling(),
			   sycl::property::queue::in_order() });
	const sycl::device dev = q.get_info<sycl::info::queue::device>();
	const sycl::context ctx = q.get_info<sycl::info::queue::context>();
	const sycl::platform plt(sycl::default_selector_v);

	CHECK(q.has_property<sycl::property::queue::enable_profiling>());
	CHECK(!q.is_in_order());
	CHECK(both.is_in_order());
	CHECK(dev == q.get_device());
	CHECK(ctx == q.get_context());
	CHECK(ctx.get_info<sycl::info::context::platform>() == plt);
	CHECK(ctx.get_info<sycl::info::context::devices>() ==
	      ctx.get_devices());
	CHECK(dev.get_info<sycl::info::device::platform>() == plt);
	CHECK_THROWS(sycl::platform(sycl::gpu_selector_v), runtime);
	CHECK_EQ(dev.get_info<sycl::info::device::max_work_item_sizes<2>>()[1],
		 dev.get_info<sycl::info::device::max_work_group_size>());
	CHECK_EQ(dev.get_info<sycl::info::device::sub_group_sizes>().size(), 1);
	CHECK(plt.get_info<sycl::info::platform::profile>() == "FULL_PROFILE");
}

void events_know_what_they_wait_for()
{
	sycl::queue q, other;
	std::promise<void> go;
	std::shared_future<void> gone = go.get_future().share();
	sycl::event first = other.submit([&](sycl::handler &h) {
		h.host_task([=] { gone.wait(); });
	});
	sycl::event second = q.submit([&](sycl::handler &h) {
		h.depends_on(first);
		h.host_task([] {});
	});

	CHECK(second.get_wait_list() == std::vector<sycl::event>{ first });
	CHECK(first.get_wait_list().empty());
	go.set_value();
	second.wait();
	CHECK(second.get_wait_list().empty());
	CHECK(sycl::event().get_wait_list().empty());
}

void command_groups_have_one_command()
{
	sycl::queue q{ sycl::property::queue::in_order{} };
	int *p = sycl::malloc_device<int>(N, q);
	std::vector<int> from = numbers(), to(N);

	CHECK(q.is_in_order());
	sycl::event e = q.submit([&](sycl::handler &h) {
		h.memcpy(p, from.data(), N * sizeof(int));
	});
	q.submit([&](sycl::handler &h) {
		h.depends_on(e);
		h.parallel_for<class twice>(sycl::range<1>(N),
					    [=](sycl::id<1> i) { p[i] *= 2; });
	});
	q.submit([&](sycl::handler &h) { h.single_task([=] { p[0]++; }); });
	q.submit([&](sycl::handler &h) { h.copy(p, to.data(), N); }).wait();
	CHECK_EQ(to[0], 3);
	CHECK_EQ(to[N - 1], 2 * int(N));
	q.submit([](sycl::handler &) {}).wait();
	CHECK_THROWS(q.submit([&](sycl::handler &h) {
		h.single_task([] {});
		h.single_task([] {});
	}),
		     invalid);
	sycl::free(p, q);
}

/* Across queues, whatever is submitted where. */
void events_order_commands_of_queues()
{
	sycl::queue q, r;
	std::atomic<bool> go{ false };
	int *p = sycl::malloc_device<int>(1, q);
	sycl::event first = q.single_task([=, &go] {
		while (!go)
			std::this_thread::yield();
		*p = 1;
	});
	sycl::event second = r.single_task(first, [=] { *p += 10; });
	sycl::event third = q.single_task({ first, second }, [=] { *p *= 2; });

	CHECK(second.get_info<sycl::info::event::command_execution_status>() !=
	      sycl::info::event_command_status::complete);
	go = true;
	sycl::event::wait({ first, second, third });
	CHECK_EQ(*p, 22);
	CHECK(third.get_info<sycl::info::event::command_execution_status>() ==
	      sycl::info::event_command_status::complete);
	CHECK(first == first && first != second);
	CHECK(sycl::event().get_info<
		      sycl::info::event::command_execution_status>() ==
	      sycl::info::event_command_status::complete);
	sycl::free(p, q);
}

void times_are_told_where_they_were_asked_for()
{
	sycl::queue q{ sycl::property::queue::enable_profiling{} }, r;
	sycl::event e = q.single_task([] {});

	CHECK(e.get_profiling_info<sycl::info::event_profiling::command_submit>() <=
	      e.get_profiling_info<sycl::info::event_profiling::command_start>());
	CHECK(e.get_profiling_info<sycl::info::event_profiling::command_start>() <=
	      e.get_profiling_info<sycl::info::event_profiling::command_end>());
	e = r.single_task([] {});
	CHECK_THROWS(
		e.get_profiling_info<sycl::info::event_profiling::command_end>(),
		invalid);
}

/* To the queue's handler, or the context's, when somebody asks, or at the queue's end. */
void errors_of_commands_go_to_the_handler()
{
	int seen = 0;
	const sycl::async_handler handler = [&](sycl::exception_list list) {
		for (const std::exception_ptr &e : list)
			CHECK_EQ(thrown([&] { std::rethrow_exception(e); }),
				 sycl::errc::kernel);
		seen += list.size();
	};
	const auto fails = [] {
		throw sycl::exception(sycl::make_error_code(sycl::errc::kernel),
				      "kernel");
	};
	sycl::device dev;
	sycl::queue q(dev, handler);
	sycl::queue r(sycl::context(dev, handler), dev);

	q.single_task(fails);
	q.single_task(fails);
	q.wait();
	CHECK_EQ(seen, 0);
	q.throw_asynchronous();
	CHECK_EQ(seen, 2);
	r.single_task(fails).wait_and_throw();
	r.wait_and_throw();
	CHECK_EQ(seen, 3);
	sycl::queue(dev, handler).single_task(fails);
	CHECK_EQ(seen, 4);
}

/* What was submitted is executed, also when nobody has the queue any more. */
void a_queue_may_go_before_its_commands()
{
	std::atomic<int> done{ 0 };
	{
		sycl::queue q;

		for (int i = 0; i < 100; i++)
			q.single_task([&done] { done++; });
	}
	CHECK_EQ(done, 100);
	{
		sycl::queue q;

		/* the last one that has the queue is its own thread */
		q.single_task([q, &done] {
			std::this_thread::sleep_for(
				std::chrono::milliseconds(20));
			done++;
		});
	}
	while (done != 101)
		std::this_thread::yield();
}

void threads_share_a_queue()
{
	sycl::queue q;
	std::vector<std::thread> threads;
	int *p = sycl::malloc_device<int>(4, q);

	q.fill(p, 0, 4).wait();
	for (int t = 0; t < 4; t++)
		threads.emplace_back([=]() mutable {
			for (int i = 0; i < 100; i++)
				q.single_task([=] { p[t]++; }).wait();
		});
	for (std::thread &thread : threads)
		thread.join();
	for (int t = 0; t < 4; t++)
		CHECK_EQ(p[t], 100);
	sycl::free(p, q);
}

/*
 * A child of fork() has a queue that works; commands of the parent are the parent's,
 * and count as complete.
 */
void a_child_of_fork_has_the_queue()
{
	sycl::queue q;
	std::atomic<bool> begun{ false }, go{ false };
	int *p = sycl::malloc_device<int>(N, q);
	sycl::event e = q.single_task([&] {
		begun = true;
		while (!go)
			std::this_thread::yield();
	});

	/* in the middle of a command: at a thread's beginning sanitizers have locks */
	while (!begun)
		std::this_thread::yield();
	in_child([&] {
		int *mine = sycl::malloc_device<int>(N, q);

		e.wait();
		q.wait();
		q.fill(mine, 5, N).wait();
		CHECK_EQ(mine[N - 1], 5);
		q.single_task(e, [=] { mine[0] = 6; });
		q.wait();
		CHECK_EQ(mine[0], 6);
		sycl::free(mine, q);
	});
	go = true;
	q.fill(p, 8, N).wait();
	CHECK_EQ(p[N - 1], 8);
	sycl::free(p, q);
}

/* A signal to the process goes to a thread of the program, as without a queue. */
void a_queue_takes_no_signals()
{
	sycl::queue q;
	sigset_t mine, its;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &mine), 0);
	q.single_task([&] { pthread_sigmask(SIG_BLOCK, nullptr, &its); }).wait();
	CHECK(sigismember(&its, SIGTERM) && sigismember(&its, SIGALRM));
	CHECK(!sigismember(&its, SIGSEGV) && !sigismember(&its, SIGFPE));
	CHECK(!sigismember(&mine, SIGTERM));
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &its), 0);
	CHECK(!sigismember(&its, SIGTERM));
}

/* Threads that make use of what all objects have in common, as long as @call runs */
template <typename Use, typename Call>
void while_others(Use use, Call call)
{
	std::atomic<bool> ends{ false };
	std::atomic<int> begun{ 0 };
	auto work = [&] {
		for (bool first = true; !ends; first = false) {
			use();
			begun += first;
		}
	};
	std::thread a(work), b(work);

	while (begun < 2)
		std::this_thread::yield();
	call();
	ends = true;
	a.join();
	b.join();
}

void children_are_forked_while_others_look_at_devices()
{
	sycl::device dev;
	auto look = [&] {
		sycl::context ctx = sycl::context::default_of(dev);

		CHECK(dev.get_info<sycl::info::device::global_mem_size>());
	};

	while_others(look, [&] {
		for (unsigned int i = 0; i < test_scale(100); i++)
			in_child([&] {
				alarm(20);
				look();
			});
	});
}

#ifdef FAKE_DEVICE
std::atomic<bool> held_up, go_on;

/* the thread that opens a device stays in it while the other one forks */
void hold_up()
{
	held_up = true;
	while (!go_on)
		std::this_thread::yield();
}

template <typename Use>
void fork_while_held_up(Use use)
{
	held_up = go_on = false;
	fake_open_busy = hold_up;
	std::thread thread(use);

	while (!held_up)
		std::this_thread::yield();
	in_child([&] {
		alarm(20);
		fake_open_busy = nullptr;
		use();
	});
	go_on = true;
	thread.join();
	fake_open_busy = nullptr;
}

/* Neither waits for a thread of the parent. */
void a_child_is_forked_while_a_device_is_opened()
{
	sycl::device dev = sycl::device::from_path(FAKE_DEVICE_PATH);

	fork_while_held_up([&] {
		CHECK(dev.get_info<sycl::info::device::global_mem_size>());
	});
	fork_while_held_up([&] { sycl::queue q(dev); });
}
#endif

void the_context_stays_for_what_was_submitted()
{
	static std::atomic<bool> go, done;
	int *p;

	go = done = false;
	{
		sycl::device dev;
		sycl::context ctx(dev);
		sycl::queue q(ctx, dev);

		p = sycl::malloc_device<int>(N, q);
		/* the last that has the queue is its first command */
		q.submit([&](sycl::handler &h) {
			h.host_task([q] {
				while (!go)
					std::this_thread::yield();
			});
		});
		q.single_task([p] {
			p[N - 1] = 5;
			done = p[N - 1] == 5;
		});
	}
	go = true;
	for (int i = 0; i < 10000 && !done; i++)
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	CHECK(done);
}

void a_child_of_fork_has_no_errors_of_its_parent()
{
	int reported = 0;
	sycl::queue q(sycl::device(), [&](sycl::exception_list list) {
		reported += list.size();
	});
	sycl::event e = q.single_task([] { throw std::runtime_error("mine"); });

	q.wait();
	in_child([&] {
		e.wait_and_throw();
		q.wait_and_throw();
		CHECK_EQ(reported, 0);
		q.single_task([] { throw std::runtime_error("the child's"); });
		q.wait_and_throw();
		CHECK_EQ(reported, 1);
	});
	CHECK_EQ(reported, 0);
	q.wait_and_throw();
	CHECK_EQ(reported, 1);
}

void objects_compare_and_hash()
{
	sycl::device dev;
	sycl::context ctx(dev), other(dev);
	sycl::queue q(ctx, dev), r(ctx, dev), s = q;

	CHECK(q == s && q != r);
	CHECK(ctx == q.get_context() && ctx != other);
	CHECK(dev == q.get_device() && dev != stranger());
	CHECK(ctx.get_devices() == std::vector<sycl::device>{ dev });
	CHECK_EQ((std::unordered_set<sycl::queue>{ q, r, s }.size()), 2);
	CHECK_EQ((std::unordered_set<sycl::context>{ ctx, other, ctx }.size()), 2);
	CHECK_EQ((std::unordered_set<sycl::device>{ dev, dev }.size()), 1);
	CHECK_THROWS(sycl::queue(ctx, stranger()), invalid);
	CHECK(sycl::queue(sycl::aspect_selector(
				  sycl::aspect::usm_device_allocations))
		      .get_device() == dev);
	CHECK(sycl::queue([](const sycl::device &) { return 3; }).get_device() ==
	      dev);
	CHECK(dev.is_accelerator() && dev.has(sycl::aspect::accelerator));
	CHECK(dev.get_info<sycl::info::device::usm_device_allocations>());
	CHECK(!dev.get_info<sycl::info::device::name>().empty());
	CHECK(!dev.get_platform().get_devices().empty());
}

/* A program that insists on a type finds the device, and other selectors do not. */
void devices_are_of_the_type_that_a_variable_names()
{
	setenv("ACCMEM_SYCL_DEVICE_TYPE", "gpu", 1);
	sycl::device dev(sycl::gpu_selector_v);

	CHECK(dev.is_gpu() && dev.has(sycl::aspect::gpu));
	CHECK(!dev.is_accelerator() && !dev.has(sycl::aspect::accelerator));
	CHECK(!dev.is_cpu() && !dev.has(sycl::aspect::cpu));
	CHECK(dev.get_info<sycl::info::device::device_type>() ==
	      sycl::info::device_type::gpu);
	CHECK(!sycl::device::get_devices(sycl::info::device_type::gpu).empty());
	CHECK(sycl::device::get_devices(sycl::info::device_type::accelerator)
		      .empty());
	CHECK_THROWS(sycl::device(sycl::accelerator_selector_v), runtime);
	sycl::queue q(sycl::gpu_selector_v);
	sycl::free(sycl::malloc_device(64, q), q);
}

void devices_are_accelerators_without_the_variable()
{
	unsetenv("ACCMEM_SYCL_DEVICE_TYPE");
	CHECK(sycl::device(sycl::accelerator_selector_v).is_accelerator());
	CHECK_THROWS(sycl::device(sycl::gpu_selector_v), runtime);
	CHECK_THROWS(sycl::device(sycl::cpu_selector_v), runtime);
}

void an_unknown_type_of_devices_is_refused()
{
	setenv("ACCMEM_SYCL_DEVICE_TYPE", "tpu", 1);
	CHECK_THROWS(sycl::device().is_gpu(), invalid);
	CHECK_THROWS(sycl::device(sycl::gpu_selector_v), invalid);
}

/* The bytes behind the requested ones are the pool's, for each way to write. */
void commands_end_with_the_requested_bytes()
{
	sycl::queue q;
	std::vector<char> host(10001);

	for (std::size_t size : { std::size_t(1), std::size_t(100),
				  std::size_t(5000), std::size_t(10000) }) {
		char *p = sycl::malloc_device<char>(size, q);
		char *r = sycl::malloc_device<char>(10001, q);

		q.memset(p, 1, size).wait();
		q.memcpy(p, host.data(), size).wait();
		q.copy(r, p, size).wait();
		CHECK_THROWS(q.memset(p, 0, size + 1), invalid);
		CHECK_THROWS(q.memset(p + size, 0, 1), invalid);
		CHECK_THROWS(q.memcpy(p, host.data(), size + 1), invalid);
		CHECK_THROWS(q.memcpy(host.data(), p, size + 1), invalid);
		CHECK_THROWS(q.copy(r, p, size + 1), invalid);
		CHECK_THROWS(q.fill(p, 'a', size + 1), invalid);
		sycl::free(p, q);
		sycl::free(r, q);
	}
}

bool looked_early;

/* As the constructor of a static object does in a file that does not know the headers */
__attribute__((constructor(101))) void look_early()
{
	looked_early =
		!sycl::detail::default_contexts::find("/dev/accmem-of-nobody");
}

void contexts_are_looked_up_before_headers_are_initialised()
{
	CHECK(looked_early);
}

template <void (*Test)()>
void run()
{
	use_kinds(true);
	Test();
}

#define TEST(name) { #name, run<name> }

const struct test tests[] = {
	TEST(memory_operations_move_bytes),
	TEST(hints_are_taken_for_usm_only),
	TEST(bad_ranges_are_refused),
	TEST(kernels_run_over_every_point),
	TEST(kernels_run_in_groups),
	TEST(objects_answer_what_they_are),
	TEST(events_know_what_they_wait_for),
	TEST(command_groups_have_one_command),
	TEST(events_order_commands_of_queues),
	TEST(times_are_told_where_they_were_asked_for),
	TEST(errors_of_commands_go_to_the_handler),
	TEST(a_queue_may_go_before_its_commands),
	TEST(threads_share_a_queue),
	TEST(a_queue_takes_no_signals),
	TEST(a_child_of_fork_has_the_queue),
	TEST(children_are_forked_while_others_look_at_devices),
#ifdef FAKE_DEVICE
	TEST(a_child_is_forked_while_a_device_is_opened),
#endif
	TEST(the_context_stays_for_what_was_submitted),
	TEST(a_child_of_fork_has_no_errors_of_its_parent),
	TEST(objects_compare_and_hash),
	TEST(contexts_are_looked_up_before_headers_are_initialised),
	TEST(devices_are_of_the_type_that_a_variable_names),
	TEST(devices_are_accelerators_without_the_variable),
	TEST(an_unknown_type_of_devices_is_refused),
	TEST(commands_end_with_the_requested_bytes),
};

} // namespace

int main()
{
	return test_main(tests, ARRAY_SIZE(tests));
}
