// SPDX-License-Identifier: MIT
/*
 * Tensor Memory by C++ objects, on /dev/accmem0 or the device in $ACCMEM_DEVICE. The
 * fake device has CTAs that can be launched, and no Tensor Memory.
 */
#include <tcgen05.hpp>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <thread>
#include <type_traits>
#include <unistd.h>

#include "test.h"

using namespace tcgen05;

template <class T> static constexpr bool moves_only()
{
	return std::is_nothrow_move_constructible<T>::value &&
	       std::is_nothrow_move_assignable<T>::value &&
	       !std::is_copy_constructible<T>::value &&
	       !std::is_copy_assignable<T>::value;
}

static_assert(moves_only<Context>() && moves_only<Cta>() &&
		      moves_only<Columns>() && moves_only<Warp>() &&
		      moves_only<Map>(),
	      "what ends something is owned once");

static int error_of(const std::function<void()> &call)
{
	try {
		call();
	} catch (const std::system_error &error) {
		return error.code().value();
	}
	return 0;
}

#ifdef FAKE_DEVICE
static Context two_sms()
{
	return Context();
}
#else
static Context two_sms()
{
	tcgen05_config config = {};

	config.nr_sms = 2;
	return Context(nullptr, config);
}
#endif

static void a_context_is_opened_or_not()
{
	Context context, other(std::move(context));

	CHECK(!context.get());
	CHECK(other.get());
	CHECK_EQ(error_of([] { Context none("/dev/null/nothing"); }), ENOTDIR);
}

static void a_cluster_is_all_or_nothing()
{
	const Context context = two_sms();
	const Launch launch(context, 1);
	std::vector<Cta> ctas = launch.cluster(0, { 0, 1 });
	int last;

	CHECK_EQ(ctas.size(), 2);
	CHECK(ctas[0].fd() >= 0 && ctas[1].fd() != ctas[0].fd());
	last = ctas[1].fd();
	CHECK_EQ(error_of([&] { launch.cluster(1, { 0, 9 }); }), ENXIO);
	CHECK_EQ(error_of([&] { launch.cluster(1, {}); }), EINVAL);
	/* nothing was left open */
	const int next = dup(0);

	CHECK_EQ(next, last + 1);
	close(next);
	ctas.clear();
	CHECK_EQ(dup(0), last - 1);
}

#ifndef FAKE_DEVICE

static uint32_t free_columns(const Cta &cta)
{
	return cta.query().free;
}

static void columns_end_with_their_object()
{
	const Context context = two_sms();
	Cta cta = Launch(context, 1).cta(0);

	{
		Columns a = cta.alloc(128), b = cta.alloc(64), c;

		CHECK_EQ(free_columns(cta), 512 - 192);
		CHECK(a && b && !c);
		CHECK_EQ(a.count(), 128);
		CHECK_EQ(a.address(), a.column());
		c = std::move(a);
		CHECK(!a && c);
		/* what it held goes when it is assigned to */
		c = std::move(b);
		CHECK_EQ(free_columns(cta), 512 - 64);
		Columns &same = c;
		c = std::move(same);
		CHECK_EQ(free_columns(cta), 512 - 64);
	}
	CHECK_EQ(free_columns(cta), 512);
}

static void dealloc_says_what_is_wrong()
{
	const Context context = two_sms();
	Cta cta = Launch(context, 1).cta(0);
	Columns columns = cta.alloc(64);
	const uint32_t address = columns.release();

	CHECK(!columns);
	columns.dealloc();
	CHECK_EQ(free_columns(cta), 512 - 64);

	Columns wrong(cta.get(), address, 32);

	CHECK_EQ(error_of([&] { wrong.dealloc(); }), EMSGSIZE);
	CHECK(wrong);
	wrong.release();
	Columns(cta.get(), address, 64).dealloc();
	CHECK_EQ(free_columns(cta), 512);
}

static void errors_are_thrown()
{
	const Context context = two_sms();
	Cta cta = Launch(context, 1).cta(0);

	Cta other = Launch(context, 3).cta(0);

	CHECK_EQ(error_of([&] { cta.alloc(48); }), EDOM);
	Columns columns = cta.alloc(512);
	CHECK_EQ(error_of([&] { cta.try_alloc(512); }), ENOSPC);
	CHECK(!other.try_alloc(512));
	CHECK_EQ(error_of([&] { other.alloc(512, 1); }), ETIMEDOUT);
	columns.dealloc();
	CHECK(other.try_alloc(512));
	CHECK_EQ(free_columns(cta), 512);
	cta.relinquish_alloc_permit();
	CHECK_EQ(error_of([&] { cta.alloc(32); }), EPERM);
	CHECK_EQ(error_of([&] { Launch(context, 1, 2).cta(1, 1, 0); }),
		 EPROTOTYPE);
	CHECK_EQ(error_of([&] { Launch(context, 2).cta(7); }), ENXIO);
	CHECK_EQ(error_of([&] { Warp(cta, 33); }), EINVAL);
}

static void an_address_goes_to_the_window()
{
	const Context context = two_sms();
	uint32_t window[8], outside;
	tcgen05_place place = Launch(context, 1).place(0);

	place.window = window;
	place.window_length = sizeof(window);
	Cta cta(context, place);
	Columns columns = cta.alloc(&window[3], 32);

	CHECK_EQ(window[3], columns.address());
	CHECK_EQ(error_of([&] { cta.alloc(&outside, 32); }), EFAULT);
}

static void a_pair_meets_in_each_call()
{
	const Context context = two_sms();
	std::vector<Cta> pair = Launch(context, 1, 2).cluster(0, { 0, 1 });
	std::thread peer([&] { pair[1].alloc(256); });

	pair[0].alloc(256);
	peer.join();
	CHECK_EQ(free_columns(pair[0]), 512);
	CHECK_EQ(free_columns(pair[1]), 512);
}

/* By a handler without SA_RESTART, which ends a wait. */
static void a_signal_does_not_lose_the_columns_of_a_pair()
{
	const Context context = two_sms();
	const Launch launch(context, 1, 2);
	std::vector<Cta> pair = launch.cluster(0, { 0, 1 });
	std::optional<Columns> mine, peers;
	struct sigaction action = {};

	action.sa_handler = [](int) {};
	CHECK_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
	alarm(60);
	std::thread first([&] {
		mine = pair[0].alloc(64);
		mine.reset();
	});
	peers = pair[1].alloc(64);
	for (int i = 0; i < 20; i++) {
		usleep(20000);
		CHECK_EQ(pthread_kill(first.native_handle(), SIGUSR1), 0);
	}
	CHECK_EQ(free_columns(pair[0]), 512 - 64);
	peers.reset();
	first.join();
	CHECK_EQ(free_columns(pair[0]), 512);
	CHECK_EQ(free_columns(pair[1]), 512);
}

static void a_warp_calls_together()
{
	const Context context = two_sms();
	Cta cta = Launch(context, 1).cta(0);
	Warp two(cta, 2), moved(std::move(two));
	std::vector<std::thread> lanes;
	uint32_t address = 0;

	for (unsigned int lane = 0; lane < 2; lane++)
		lanes.emplace_back([&, lane] {
			moved.alloc(lane, &address, 64);
			moved.dealloc(lane, address, 64);
			moved.relinquish_alloc_permit(lane);
		});
	for (std::thread &each : lanes)
		each.join();
	CHECK_EQ(free_columns(cta), 512);
	CHECK_EQ(error_of([&] { moved.alloc_all(&address, 64); }), EPERM);

	Cta other = Launch(context, 2).cta(0);
	Warp warp(other);

	warp.alloc_all(&address, 64);
	warp.dealloc_all(address, 64);
	warp.leave(3);
	CHECK_EQ(error_of([&] { warp.relinquish_all(); }), ESRCH);
}

static void an_instruction_has_the_group_of_its_launch()
{
	const Context context = two_sms();
	Cta cta = Launch(context, 1).cta(0);
	uint32_t address;

	CHECK_EQ(error_of([&] { cta.alloc(&address, 64, 0, 2); }), EPROTOTYPE);
	Columns columns = cta.alloc(&address, 64, 0, 1);
	CHECK_EQ(error_of([&] { columns.dealloc(0, 2); }), EPROTOTYPE);
	CHECK(columns);
	columns.dealloc(0, 1);
	CHECK_EQ(error_of([&] { cta.relinquish_alloc_permit(2); }), EPROTOTYPE);
	cta.alloc(64);
	cta.relinquish_alloc_permit(1);
	CHECK_EQ(error_of([&] { cta.alloc(64); }), EPERM);
}

static void queued_calls_have_completions()
{
	const Context context = two_sms();
	const Launch launch(context, 1);
	Cta cta = launch.cta(0), other = launch.cta(0);
	const int counter = eventfd(0, 0);
	Columns all = other.alloc(512);
	eventfd_t count = 0;

	cta.set_eventfd(counter);
	cta.queue_alloc(64, 0, 7);
	CHECK(cta.cancel());
	CHECK(!cta.cancel());
	CHECK_EQ(cta.next_completion()->result, -ECANCELED);
	CHECK_EQ(error_of([&] { cta.queue_alloc(64, 1); }), ETIMEDOUT);
	Warp(cta).queue_alloc_all(64, 0, 9);
	all.queue_dealloc();
	CHECK(!all);
	CHECK_EQ(other.next_completion()->result, 0);
	const accmem_cta_completion granted = *cta.next_completion();

	CHECK_EQ(granted.result, 0);
	CHECK_EQ(granted.user_data, 9);
	CHECK_EQ(cta.take(granted).release(), granted.address);
	Warp(cta).queue_dealloc_all(granted.address, 64);
	CHECK_EQ(cta.next_completion()->result, 0);
	CHECK_EQ(free_columns(cta), 512);
	CHECK_EQ(eventfd_read(counter, &count), 0);
	CHECK_EQ(count, 3);
	close(counter);
	CHECK_EQ(error_of([&] { cta.next_completion(); }), ENODATA);
	CHECK_EQ(fcntl(cta.fd(), F_SETFL, O_NONBLOCK), 0);
	Columns rest = other.alloc(512);
	cta.queue_alloc(64);
	CHECK(!cta.next_completion());
}

/* The first of a pair to free waits for the other, until the deadline. */
static void a_dealloc_has_a_deadline()
{
	const Context context = two_sms();
	std::vector<Cta> pair = Launch(context, 1, 2).cluster(0, { 0, 1 });
	std::optional<Columns> mine, peers;
	std::thread first([&] { mine = pair[0].alloc(64); });

	peers = pair[1].alloc(64);
	first.join();
	CHECK_EQ(error_of([&] { mine->dealloc(1); }), ETIMEDOUT);
	CHECK(*mine);
	mine->queue_dealloc();
	peers->dealloc();
	CHECK_EQ(pair[0].next_completion()->result, 0);
	CHECK_EQ(free_columns(pair[0]), 512);
}

static void a_map_tells_whose_columns_are()
{
	const Context context = two_sms();
	Cta cta = Launch(context, 1).cta(1);
	const uint64_t id = cta.query().id;
	const Map map(cta);
	Columns columns = cta.alloc(64);

	CHECK_EQ(map.owner(columns.column()), id);
	CHECK_EQ(map.owners(id, columns.column(), 64), TCGEN05_SELF);
	CHECK_EQ(map.owners(id, columns.column(), 96),
		 TCGEN05_SELF | TCGEN05_NOBODY);
	columns.dealloc();
	CHECK_EQ(map.owner(0), 0);
}

#endif

/* The lane waits for the other, and leaves no lock taken. */
static void a_lane_that_waits_may_be_cancelled()
{
	const Context context = two_sms();
	std::vector<Cta> ctas = Launch(context, 1).cluster(0, { 0 });
	tcgen05_warp *warp;

	alarm(60);
	CHECK_EQ(tcgen05_warp_create(ctas[0].get(), 2, &warp), 0);
	std::thread lane([warp] {
		tcgen05_warp_relinquish_alloc_permit(warp, 0);
	});
	usleep(100000);
	CHECK_EQ(pthread_cancel(lane.native_handle()), 0);
	usleep(100000);
	tcgen05_warp_relinquish_alloc_permit(warp, 1);
	lane.join();
	tcgen05_warp_destroy(warp);
}

/* The two calls leave a warp alone in which a lane is. */
static void a_warp_in_use_is_not_destroyed()
{
	const Context context = two_sms();
	std::vector<Cta> ctas = Launch(context, 1).cluster(0, { 0 });
	tcgen05_warp *warp;
	int ret = 0;

	alarm(60);
	CHECK_EQ(tcgen05_warp_create(ctas[0].get(), 2, &warp), 0);
	CHECK_EQ(tcgen05_warp_set_number(warp, 1), 0);
	std::thread lane([&] {
		ret = tcgen05_warp_relinquish_alloc_permit(warp, 0);
	});
	while (!tcgen05_warp_set_number(warp, 1))
		usleep(1000);
	CHECK_EQ(tcgen05_warp_set_number(warp, 2), -EBUSY);
	CHECK_EQ(tcgen05_warp_destroy(warp), -EBUSY);
	tcgen05_warp_leave(warp, 1);
	lane.join();
	CHECK_EQ(ret, -ESRCH);
	CHECK_EQ(tcgen05_warp_destroy(warp), 0);
	CHECK_EQ(tcgen05_warp_destroy(nullptr), 0);
}

int main()
{
	static const struct test tests[] = {
		ROW(a_context_is_opened_or_not),
		ROW(a_cluster_is_all_or_nothing),
		ROW(a_lane_that_waits_may_be_cancelled),
		ROW(a_warp_in_use_is_not_destroyed),
#ifndef FAKE_DEVICE
		ROW(columns_end_with_their_object),
		ROW(dealloc_says_what_is_wrong),
		ROW(errors_are_thrown),
		ROW(an_address_goes_to_the_window),
		ROW(a_pair_meets_in_each_call),
		ROW(a_signal_does_not_lose_the_columns_of_a_pair),
		ROW(a_warp_calls_together),
		ROW(an_instruction_has_the_group_of_its_launch),
		ROW(queued_calls_have_completions),
		ROW(a_dealloc_has_a_deadline),
		ROW(a_map_tells_whose_columns_are),
#endif
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", "/dev/accmem-fake", 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
