// SPDX-License-Identifier: MIT
/*
 * libaccmem on a device: /dev/accmem0, or the one in $ACCMEM_DEVICE. Built
 * with FAKE_DEVICE it runs on the host over fake_device.c instead.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tcgen05.h>
#include <time.h>
#include <unistd.h>

#include <accmem_pool.h>

#include "runtime_tests.h"

#define THREADS 4
#define THREAD_ROUNDS 300
#define FORKS 50

static unsigned int seed;

static void wait_for(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void open_errors(void)
{
	struct accmem_context *ctx;

	CHECK_EQ(accmem_open("/dev/accmem-missing", &ctx), -ENOENT);
	CHECK_EQ(accmem_open("/dev/null", &ctx), -ENOTTY);
	CHECK_EQ(setenv("ACCMEM_DEVICE", "/dev/accmem-missing", 1), 0);
	CHECK_EQ(accmem_open(NULL, &ctx), -ENOENT);
	accmem_close(NULL);
}

static void info_is_consistent(void)
{
	struct accmem_context *ctx = open_device();
	struct accmem_info info = get_info(ctx);

	CHECK(info.address_base);
	CHECK_EQ(info.address_base % (1024 * MIB), 0);
	CHECK(info.address_span >= info.capacity);
	CHECK(info.free_bytes <= info.capacity);
	CHECK_EQ(accmem_get_info(ctx, info.nr_carveouts, &info), -EINVAL);
	accmem_close(ctx);
}

/* Each call of accmem.h that fails says what it was about, and why. */
static void failed_calls_have_words(void)
{
	const uint64_t address = 0x123000;
	struct accmem_realloc again = { .address = address, .length = 1 };
	struct accmem_alloc req = { .length = 64, .alignment = 3 };
	struct accmem_context *ctx = open_device(), *none;
	struct accmem_query query;
	struct accmem_info info;
	uint64_t made;
	void *pointer;

	CHECK_EQ(accmem_open("/dev/accmem-none", &none), -ENOENT);
	CHECK(strstr(accmem_last_error(), "/dev/accmem-none: "));
	CHECK_EQ(accmem_get_info(ctx, 99, &info), -EINVAL);
	CHECK(strstr(accmem_last_error(), "carveout 99"));
	CHECK_EQ(accmem_allocate(ctx, &req), -EINVAL);
	CHECK(strstr(accmem_last_error(), "alignment 3 is no power of two"));
	CHECK_EQ(accmem_get_info(ctx, 0, &info), 0);
	CHECK_EQ(accmem_malloc(ctx, info.capacity + 1, &made), -ENOMEM);
	CHECK(strstr(accmem_last_error(), "more than the device has"));
	accmem_set_last_error("call: %s", accmem_last_error());
	CHECK(!strncmp(accmem_last_error(), "call: ", 6));
	CHECK(strstr(accmem_last_error(), "more than the device has"));
	accmem_set_last_error("%s", "");
	CHECK_EQ(accmem_release(ctx, address), -ENOENT);
	CHECK(strstr(accmem_last_error(), "release of address 0x123000"));
	CHECK_EQ(accmem_reallocate(ctx, &again), -ENOENT);
	CHECK(strstr(accmem_last_error(), "reallocation of address 0x123000"));
	CHECK_EQ(accmem_get_query(ctx, address, &query), -ENOENT);
	CHECK(strstr(accmem_last_error(), "query of address 0x123000"));
	CHECK_EQ(accmem_map(ctx, address, RW, &pointer), -ENOENT);
	CHECK(strstr(accmem_last_error(), "map of address 0x123000"));
	CHECK_EQ(accmem_map(ctx, address, 0, &pointer), -EINVAL);
	CHECK(strstr(accmem_last_error(), "access rights 0"));
	CHECK_EQ(accmem_unmap(ctx, address), -ENOENT);
	CHECK(strstr(accmem_last_error(), "unmap of address 0x123000"));
	CHECK_EQ(accmem_signal(-1, 5), -EBADF);
	CHECK(strstr(accmem_last_error(), "position 5"));
	CHECK_EQ(accmem_release_at(ctx, address, -1, 7), -EBADF);
	CHECK(strstr(accmem_last_error(), "position 7 of stream -1"));
	accmem_close(ctx);
}

static void release_gives_back(void)
{
	struct accmem_context *ctx = open_device();
	struct accmem_info before, after;
	uint64_t address;

	wait_until_all_is_free(ctx);
	before = get_info(ctx);
	address = new_buffer(ctx, 3 * MIB);
	after = get_info(ctx);
	CHECK(after.free_bytes <= before.free_bytes - 3 * MIB);
	CHECK_EQ(accmem_release(ctx, address), 0);
	/* It was never mapped, so nobody can have pinned it. */
	CHECK_EQ(get_info(ctx).free_bytes, before.free_bytes);
	CHECK_EQ(accmem_release(ctx, address), -ENOENT);
	accmem_close(ctx);
}

static void release_of_interior_changes_nothing(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	unsigned char *pointer = map(ctx, address);

	pointer[5] = 99;
	CHECK_EQ(accmem_release(ctx, address + 5), -EINVAL);
	CHECK_EQ(accmem_unmap(ctx, address + 5), -EINVAL);
	CHECK_EQ(pointer[5], 99);
	CHECK_EQ(accmem_release(ctx, address), 0);
	accmem_close(ctx);
}

static void allocate_errors(void)
{
	struct accmem_context *ctx = open_device();
	struct accmem_alloc req = { .length = 0 };
	struct accmem_info info;

	wait_until_all_is_free(ctx);
	info = get_info(ctx);
	CHECK_EQ(accmem_allocate(ctx, &req), -EINVAL);
	req.length = info.capacity + info.granule;
	CHECK_EQ(accmem_allocate(ctx, &req), -ENOMEM);
	CHECK_EQ(req.free_bytes, info.free_bytes);
	CHECK(req.largest_run && req.largest_run <= req.free_bytes);
	accmem_close(ctx);
}

static void query_finds_interior(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, 10000);
	struct accmem_query query;

	CHECK_EQ(accmem_get_query(ctx, address + 9999, &query), 0);
	CHECK_EQ(query.base, address);
	CHECK_EQ(query.offset, 9999);
	CHECK_EQ(query.length, 10000);
	CHECK_EQ(accmem_release(ctx, address), 0);
	CHECK_EQ(accmem_get_query(ctx, address, &query), -ENOENT);
	accmem_close(ctx);
}

static void contexts_do_not_know_each_other(void)
{
	struct accmem_context *ctx = open_device(), *other = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	void *pointer;

	CHECK_EQ(accmem_map(other, address, RW, &pointer), -ENOENT);
	CHECK_EQ(accmem_release(other, address), -ENOENT);
	map(ctx, address)[0] = 1;
	accmem_close(other);
	CHECK_EQ(accmem_release(ctx, address), 0);
	accmem_close(ctx);
}

static void close_unmaps_and_frees(void)
{
	struct accmem_context *ctx = open_device(), *other = open_device();
	unsigned char *pointer = map(ctx, new_buffer(ctx, MIB));

	new_buffer(ctx, 3 * MIB);
	accmem_close(ctx);
	CHECK(!readable(pointer));
	CHECK(unclaimed(pointer));
	wait_until_all_is_free(other);
	accmem_close(other);
}

static void fork_shares_the_context(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	unsigned char *pointer = map(ctx, address);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		pointer[0] = 42;
		/* The child's unmap is the child's only. */
		CHECK_EQ(accmem_unmap(ctx, address), 0);
		CHECK(map(ctx, address) == pointer);
		pointer[1] = 43;
		accmem_close(ctx);
		_exit(0);
	}
	wait_for(pid);
	CHECK_EQ(pointer[0], 42);
	CHECK_EQ(pointer[1], 43);
	CHECK_EQ(accmem_release(ctx, address), 0);
	accmem_close(ctx);
}

static bool begun, stop;

static void *allocate_and_map(void *argument)
{
	struct accmem_context *ctx = argument;

	__atomic_store_n(&begun, true, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint64_t address = new_buffer(ctx, 4096);

		map(ctx, address)[0] = 1;
		CHECK_EQ(accmem_release(ctx, address), 0);
	}
	return NULL;
}

static void child_of_a_threaded_process_can_allocate(void)
{
	struct accmem_context *ctx = open_device();
	pthread_t thread;
	unsigned int i, rounds = test_scale(FORKS);

	CHECK_EQ(pthread_create(&thread, NULL, allocate_and_map, ctx), 0);
	/* at its beginning a thread has locks of sanitizers */
	while (!__atomic_load_n(&begun, __ATOMIC_RELAXED))
		sched_yield();
	for (i = 0; i < rounds; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			alarm(60);
			map(ctx, new_buffer(ctx, 4096))[0] = 1;
			_exit(0);
		}
		wait_for(pid);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	accmem_close(ctx);
}

struct worker {
	struct accmem_context *ctx;
	unsigned int seed;
	pthread_t thread;
};

static void *work(void *argument)
{
	struct worker *w = argument;
	unsigned int i, rounds = test_scale(THREAD_ROUNDS);

	for (i = 0; i < rounds; i++) {
		size_t length = 1 + rand_r(&w->seed) % (64 * 1024);
		uint64_t address = new_buffer(w->ctx, length);
		unsigned char *pointer = map(w->ctx, address);
		unsigned char mark = rand_r(&w->seed);

		CHECK_EQ(pointer[length - 1], 0);
		memset(pointer, mark, length);
		if (mark & 1) {
			CHECK_EQ(accmem_unmap(w->ctx, address), 0);
			pointer = map(w->ctx, address);
		}
		CHECK_EQ(pointer[0], mark);
		CHECK_EQ(pointer[length - 1], mark);
		CHECK_EQ(accmem_release(w->ctx, address), 0);
	}
	return NULL;
}

static void threads_share_a_context(void)
{
	struct accmem_context *ctx = open_device();
	struct worker workers[THREADS];
	int i;

	for (i = 0; i < THREADS; i++) {
		workers[i].ctx = ctx;
		workers[i].seed = seed + i;
		CHECK(!pthread_create(&workers[i].thread, NULL, work,
				      &workers[i]));
	}
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
	wait_until_all_is_free(ctx);
	accmem_close(ctx);
}

/* More descriptors than one, each used and closed by its own thread. */
static void *open_and_close(void *unused)
{
	int i;

	for (i = 0; i < 50; i++)
		accmem_close(open_device());
	return unused;
}

static void contexts_are_closed_while_streams_move(void)
{
	struct accmem_context *ctx = open_device();
	pthread_t thread;
	uint64_t position = 0;
	int stream;

	CHECK_EQ(accmem_open_stream(ctx, &stream), 0);
	CHECK_EQ(pthread_create(&thread, NULL, open_and_close, NULL), 0);
	while (pthread_tryjoin_np(thread, NULL))
		CHECK_EQ(accmem_signal(stream, ++position), 0);
	close(stream);
	accmem_close(ctx);
}

#ifndef FAKE_DEVICE
static struct accmem_stream_query get_stream(int stream)
{
	struct accmem_stream_query query;

	CHECK_EQ(accmem_get_stream(stream, &query), 0);
	return query;
}

static void release_at_a_position(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	unsigned char *pointer = map(ctx, address);
	struct accmem_alloc req = { .length = MIB };
	struct accmem_query query;
	int stream;

	CHECK_EQ(accmem_open_stream(ctx, &stream), 0);
	CHECK_EQ(accmem_release_at(ctx, address, -1, 1), -EBADF);
	CHECK_EQ(accmem_release_at(ctx, address + 64, stream, 1), -EINVAL);
	CHECK_EQ(accmem_release_at(ctx, address, stream, 5), 0);
	CHECK(!readable(pointer));
	CHECK_EQ(accmem_get_query(ctx, address, &query), -ENOENT);
	CHECK_EQ(get_stream(stream).pending, 1);
	CHECK_EQ(accmem_allocate_on(ctx, stream, &req), 0);
	CHECK_EQ(req.address, address);
	CHECK_EQ(req.position, 5);
	CHECK_EQ(get_stream(stream).pending, 0);
	CHECK_EQ(accmem_release(ctx, address), 0);
	CHECK_EQ(get_stream(stream).pending, 1);
	CHECK_EQ(accmem_signal(stream, 5), 0);
	CHECK_EQ(get_stream(stream).pending, 0);
	wait_until_all_is_free(ctx);
	close(stream);
	accmem_close(ctx);
}

static void streams_are_waited_for(void)
{
	struct accmem_context *ctx = open_device();
	int stream;

	CHECK_EQ(accmem_open_stream(ctx, &stream), 0);
	CHECK_EQ(accmem_try_wait(stream, 1), -EAGAIN);
	CHECK_EQ(accmem_wait_until(stream, 1, 1), -ETIMEDOUT);
	CHECK_EQ(accmem_signal(stream, 3), 0);
	CHECK_EQ(accmem_signal(stream, 3), -ERANGE);
	CHECK_EQ(get_stream(stream).reached, 3);
	CHECK_EQ(accmem_try_wait(stream, 3), 0);
	CHECK_EQ(accmem_wait(stream, 3), 0);
	CHECK_EQ(accmem_wait_until(stream, 2, 0), 0);
	accmem_close(ctx);
	CHECK_EQ(accmem_wait(stream, 4), -ECANCELED);
	close(stream);
}

/* A fence of the past: the kernel signals nothing else by itself. */
static void fences_go_both_ways(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	int stream, other, fence;

	CHECK_EQ(accmem_open_stream(ctx, &stream), 0);
	CHECK_EQ(accmem_open_stream(ctx, &other), 0);
	CHECK_EQ(accmem_export_fence(stream, 1, &fence), -EPERM);
	CHECK_EQ(accmem_signal(stream, 1), 0);
	CHECK_EQ(accmem_export_fence(stream, 1, &fence), 0);
	CHECK_EQ(accmem_import_fence(other, 7, stream), -EINVAL);
	CHECK_EQ(accmem_import_fence(other, 7, fence), 0);
	CHECK_EQ(accmem_wait(other, 7), 0);
	CHECK_EQ(accmem_import_fence(other, 7, fence), -ERANGE);
	CHECK_EQ(accmem_release_after(ctx, address, stream), -EINVAL);
	CHECK_EQ(accmem_release_after(ctx, address, fence), 0);
	wait_until_all_is_free(ctx);
	close(fence);
	close(other);
	close(stream);
	accmem_close(ctx);
}
#else
/* what was allocated for CTAs that were not launched is a leak otherwise */
static void a_cluster_is_all_or_nothing(void)
{
	struct accmem_context *ctx = open_device();
	struct tcgen05_place places[2] = {
		{ .launch = 5, .cluster = 6, .rank = 0, .cta_group = 2 },
		{ .launch = 5, .cluster = 6, .rank = 1, .cta_group = 2 },
	};
	struct tcgen05_cta *ctas[2];
	unsigned int i;

	CHECK_EQ(tcgen05_launch_cluster(ctx, places, 0, ctas), -EINVAL);
	CHECK_EQ(tcgen05_launch_cluster(ctx, places, 65, ctas), -EINVAL);
	places[1].sm = 2;
	CHECK_EQ(tcgen05_launch_cluster(ctx, places, 2, ctas), -ENXIO);
	places[1].sm = 1;
	for (i = 0; i < 3; i++) {
		places[1].launch += i == 0;
		places[1].cluster += i == 1;
		places[1].cta_group -= i == 2;
		CHECK_EQ(tcgen05_launch_cluster(ctx, places, 2, ctas), -EINVAL);
		places[1].launch = 5;
		places[1].cluster = 6;
		places[1].cta_group = 2;
	}
	CHECK_EQ(tcgen05_launch_cluster(ctx, places, 2, ctas), 0);
	CHECK(tcgen05_fd(ctas[0]) != tcgen05_fd(ctas[1]));
	tcgen05_exit(ctas[0]);
	tcgen05_exit(ctas[1]);
	accmem_close(ctx);
}
#endif /* FAKE_DEVICE */

static void *open_cancelled(void *result)
{
	/* at its next cancellation point */
	CHECK_EQ(pthread_cancel(pthread_self()), 0);
	CHECK_EQ(accmem_open(NULL, result), 0);
	pthread_testcancel();
	return NULL;
}

/* Nobody else could close what it has opened. */
static void who_is_cancelled_has_opened_all_of_a_device_or_nothing(void)
{
	struct accmem_context *ctx = NULL;
	pthread_t thread;
	void *result;

#ifdef FAKE_DEVICE
	fake_open_busy = pthread_testcancel;
#endif
	CHECK_EQ(pthread_create(&thread, NULL, open_cancelled, &ctx), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK(ctx);
	accmem_close(ctx);
}

#ifdef FAKE_DEVICE
static void a_device_may_go(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, 65536), other;
	struct accmem_query query;
	struct accmem_info info;
	int stream;

	map(ctx, address)[0] = 1;
	CHECK_EQ(accmem_open_stream(ctx, &stream), 0);
	fake_gone = true;
	CHECK_EQ(accmem_get_info(ctx, 0, &info), -ENODEV);
	CHECK_EQ(accmem_malloc(ctx, 4096, &other), -ENODEV);
	CHECK_EQ(accmem_get_query(ctx, address, &query), -ENODEV);
	CHECK_EQ(accmem_signal(stream, 1), -ECANCELED);
	/* a buffer is released whatever has become of the device */
	CHECK_EQ(accmem_release_at(ctx, address, stream, 2), 0);
	CHECK_EQ(accmem_release(ctx, address), -ENOENT);
	close(stream);
	accmem_close(ctx);
	CHECK_EQ(accmem_open(NULL, &ctx), -ENODEV);
}
#endif

static const struct test tests[] = {
	{ "open_errors", open_errors },
	{ "info_is_consistent", info_is_consistent },
	{ "failed_calls_have_words", failed_calls_have_words },
	{ "release_gives_back", release_gives_back },
	{ "release_of_interior_changes_nothing",
	  release_of_interior_changes_nothing },
	{ "allocate_errors", allocate_errors },
	{ "query_finds_interior", query_finds_interior },
	{ "contexts_do_not_know_each_other", contexts_do_not_know_each_other },
	{ "close_unmaps_and_frees", close_unmaps_and_frees },
	{ "fork_shares_the_context", fork_shares_the_context },
	{ "child_of_a_threaded_process_can_allocate",
	  child_of_a_threaded_process_can_allocate },
	{ "threads_share_a_context", threads_share_a_context },
	{ "contexts_are_closed_while_streams_move",
	  contexts_are_closed_while_streams_move },
	ROW(who_is_cancelled_has_opened_all_of_a_device_or_nothing),
#ifndef FAKE_DEVICE
	{ "release_at_a_position", release_at_a_position },
	{ "streams_are_waited_for", streams_are_waited_for },
	{ "fences_go_both_ways", fences_go_both_ways },
#else
	{ "a_cluster_is_all_or_nothing", a_cluster_is_all_or_nothing },
	{ "a_device_may_go", a_device_may_go },
#endif
};

int main(int argc, char **argv)
{
	seed = time(NULL);
	if (argc > 1)
		seed = strtoul(argv[1], NULL, 0);
#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	printf("# seed %u\n", seed);
	return test_main(tests, ARRAY_SIZE(tests));
}
