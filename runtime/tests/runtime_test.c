// SPDX-License-Identifier: MIT
/*
 * libaccmem on a device: /dev/accmem0, or the one in $ACCMEM_DEVICE. Built
 * with FAKE_DEVICE it runs on the host over fake_device.c instead, with tests
 * that make a system call fail.
 */
#define _GNU_SOURCE
#include <accmem.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tcgen05.h>
#include <time.h>
#include <unistd.h>

#include "test.h"
#ifdef FAKE_DEVICE
#include "fake_device.h"
#endif

#define RW (PROT_READ | PROT_WRITE)
#define MIB 1048576ull
#define THREADS 4
#define THREAD_ROUNDS 300
#define FORKS 50
#define WAIT_TRIES 3000 /* of 10 ms */

static unsigned int seed;

static struct accmem_context *open_device(void)
{
	struct accmem_context *ctx;

	CHECK_EQ(accmem_open(NULL, &ctx), 0);
	return ctx;
}

static struct accmem_info get_info(struct accmem_context *ctx)
{
	struct accmem_info info;

	CHECK_EQ(accmem_get_info(ctx, 0, &info), 0);
	return info;
}

/*
 * Memory that was mapped may become free some time after its release, when it
 * is known that nobody has it pinned. No other program uses the device now.
 */
static void wait_until_all_is_free(struct accmem_context *ctx)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	struct accmem_info info;
	int tries = WAIT_TRIES;

	do {
		info = get_info(ctx);
		if (info.free_bytes == info.capacity)
			return;
		nanosleep(&pause, NULL);
	} while (--tries);
	CHECK_EQ(info.free_bytes, info.capacity);
}

static uint64_t new_buffer(struct accmem_context *ctx, uint64_t length)
{
	uint64_t address;

	CHECK_EQ(accmem_malloc(ctx, length, &address), 0);
	return address;
}

static unsigned char *map(struct accmem_context *ctx, uint64_t address)
{
	void *pointer;

	CHECK_EQ(accmem_map(ctx, address, RW, &pointer), 0);
	return pointer;
}

/* Asks the kernel to read a byte there, so that a refusal is no signal. */
static bool readable(const void *pointer)
{
	bool good;
	int pipes[2];

	CHECK_EQ(pipe(pipes), 0);
	good = write(pipes[1], pointer, 1) == 1;
	close(pipes[0]);
	close(pipes[1]);
	return good;
}

/* Would the kernel give this page to the next that asks for memory? */
static bool unclaimed(void *pointer)
{
	void *p = mmap(pointer, 4096, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		       0);

	if (p == MAP_FAILED)
		return false;
	munmap(p, 4096);
	return p == pointer;
}

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

static void pointers_and_addresses_differ_by_a_constant(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t a = new_buffer(ctx, 12345), b = new_buffer(ctx, 2 * MIB);
	unsigned char *p = map(ctx, a), *q = map(ctx, b);

	CHECK_EQ((intptr_t)q - (intptr_t)p, (int64_t)(b - a));
	CHECK_EQ(((uintptr_t)p - a) % (2 * MIB), 0);
	accmem_close(ctx);
}

static void contents_outlive_a_mapping(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	unsigned char *pointer = map(ctx, address);
	size_t i;

	for (i = 0; i < MIB; i++)
		CHECK_EQ(pointer[i], 0);
	for (i = 0; i < MIB; i++)
		pointer[i] = i * 7;
	CHECK_EQ(accmem_unmap(ctx, address), 0);
	pointer = map(ctx, address);
	for (i = 0; i < MIB; i++)
		CHECK_EQ(pointer[i], (unsigned char)(i * 7));
	accmem_close(ctx);
}

static void unmap_keeps_the_reservation(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	unsigned char *pointer = map(ctx, address);

	CHECK(readable(pointer));
	CHECK_EQ(accmem_unmap(ctx, address), 0);
	CHECK(!readable(pointer));
	CHECK(!unclaimed(pointer));
	CHECK_EQ(accmem_unmap(ctx, address), -ENOENT);
	CHECK(map(ctx, address) == pointer);
	CHECK_EQ(accmem_release(ctx, address), 0);
	CHECK(!readable(pointer));
	CHECK(!unclaimed(pointer));
	accmem_close(ctx);
}

static uint64_t resizable_buffer(struct accmem_context *ctx, uint64_t length)
{
	struct accmem_alloc req = { .length = length,
				    .flags = ACCMEM_ALLOC_RESIZABLE };

	CHECK_EQ(accmem_allocate(ctx, &req), 0);
	return req.address;
}

static uint64_t resize(struct accmem_context *ctx, uint64_t address,
		       uint64_t length)
{
	struct accmem_realloc req = { .address = address, .length = length };

	CHECK_EQ(accmem_reallocate(ctx, &req), 0);
	return req.address;
}

static void resized_in_place_stays_mapped(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = resizable_buffer(ctx, 8 * MIB);
	unsigned char *pointer = map(ctx, address);

	memset(pointer, 7, 8 * MIB);
	CHECK_EQ(resize(ctx, address, 2 * MIB), address);
	CHECK_EQ(pointer[0], 7);
	CHECK_EQ(pointer[2 * MIB - 1], 7);
	/* what it has no more is another's, whose mapping is not in its way */
	CHECK(!readable(pointer + 6 * MIB));
	CHECK(!unclaimed(pointer + 6 * MIB));
	CHECK_EQ(accmem_unmap(ctx, address), 0);
	CHECK(map(ctx, address) == pointer);
	CHECK_EQ(pointer[2 * MIB - 1], 7);
	CHECK_EQ(accmem_release(ctx, address), 0);
	CHECK(!readable(pointer));
	accmem_close(ctx);
}

static void moved_is_unmapped(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = resizable_buffer(ctx, 256), moved, other;
	unsigned char *pointer;

	other = new_buffer(ctx, 256);
	pointer = map(ctx, other);
	memset(pointer, 9, 256);
	pointer = map(ctx, address);
	memset(pointer, 8, 256);
	moved = resize(ctx, address, 64 * 1024);
	CHECK(moved != address);
	CHECK_EQ(accmem_unmap(ctx, address), -ENOENT);
	pointer = map(ctx, moved);
	CHECK_EQ(pointer[0], 8);
	CHECK_EQ(pointer[255], 8);
	CHECK_EQ(pointer[256], 0);
	pointer = map(ctx, other);
	CHECK_EQ(pointer[255], 9);
	accmem_close(ctx);
}

static void resize_that_fails_changes_nothing(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = resizable_buffer(ctx, 4096);
	struct accmem_realloc req = { .address = address };
	unsigned char *pointer = map(ctx, address);

	pointer[4095] = 5;
	req.length = get_info(ctx).capacity * 2;
	CHECK_EQ(accmem_reallocate(ctx, &req), -ENOMEM);
	CHECK(map(ctx, address) == pointer);
	CHECK_EQ(pointer[4095], 5);
	req.address = address + 1;
	req.length = 4096;
	CHECK(accmem_reallocate(ctx, &req) != 0);
	CHECK_EQ(pointer[4095], 5);
	accmem_close(ctx);
}

static void map_twice_adds_rights(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, 4096);
	void *first, *second;

	CHECK_EQ(accmem_map(ctx, address, PROT_READ, &first), 0);
	CHECK_EQ(accmem_map(ctx, address, PROT_WRITE, &second), 0);
	CHECK(first == second);
	*(char *)second = 1;
	CHECK_EQ(accmem_map(ctx, address, PROT_READ, &second), 0);
	CHECK(first == second);
	*(char *)second = 2;
	accmem_close(ctx);
}

/* Some of them share a page, whose mapping is one. */
static void small_buffers_are_mapped_each(void)
{
	enum { N = 40 };
	struct accmem_context *ctx = open_device();
	uint64_t address[N];
	unsigned char *p[N];
	unsigned int i, j;

	for (i = 0; i < N; i++)
		address[i] = new_buffer(ctx, 30 * i + 1);
	for (i = 0; i < N; i++) {
		CHECK_EQ(accmem_unmap(ctx, address[i]), -ENOENT);
		p[i] = map(ctx, address[i]);
		CHECK_EQ(p[i] - p[0], address[i] - address[0]);
		for (j = 0; j < 30 * i + 1; j++)
			CHECK_EQ(p[i][j], 0);
		memset(p[i], i + 1, 30 * i + 1);
		CHECK(map(ctx, address[i]) == p[i]);
	}
	for (i = 0; i < N; i += 2) {
		CHECK_EQ(accmem_unmap(ctx, address[i] + 1), -EINVAL);
		CHECK_EQ(accmem_unmap(ctx, address[i]), 0);
		CHECK_EQ(accmem_unmap(ctx, address[i]), -ENOENT);
	}
	for (i = 1; i < N; i += 2)
		for (j = 0; j < 30 * i + 1; j++)
			CHECK_EQ(p[i][j], i + 1);
	for (i = 0; i < N; i++) {
		CHECK(map(ctx, address[i]) == p[i]);
		CHECK_EQ(p[i][30 * i], i + 1);
		CHECK_EQ(accmem_release(ctx, address[i]), 0);
	}
	wait_until_all_is_free(ctx);
	accmem_close(ctx);
}

static void map_errors(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, 2 * 4096);
	void *pointer;

	CHECK_EQ(accmem_map(ctx, address, RW | PROT_EXEC, &pointer), -EINVAL);
	CHECK_EQ(accmem_map(ctx, address + 4096, RW, &pointer), -EINVAL);
	CHECK_EQ(accmem_release(ctx, address), 0);
	CHECK_EQ(accmem_map(ctx, address, RW, &pointer), -ENOENT);
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

static void works_without_a_window(void)
{
	struct accmem_context *ctx;
	struct rlimit limit;
	unsigned long pages;
	unsigned char *p, *q;
	FILE *statm;

	statm = fopen("/proc/self/statm", "r");
	CHECK(statm);
	CHECK_EQ(fscanf(statm, "%lu", &pages), 1);
	fclose(statm);
	limit.rlim_cur = pages * 4096ull + 32 * MIB;
	limit.rlim_max = limit.rlim_cur;
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);

	ctx = open_device();
	p = map(ctx, new_buffer(ctx, MIB));
	q = map(ctx, new_buffer(ctx, MIB));
	memset(p, 1, MIB);
	memset(q, 2, MIB);
	CHECK_EQ(p[MIB - 1], 1);
	CHECK_EQ(q[0], 2);
	accmem_close(ctx);
	CHECK(unclaimed(p));
	CHECK(unclaimed(q));
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
/* On a real device the address may not come back soon enough to tell. */
static void stale_mapping_goes_when_its_address_is_reused(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	unsigned char *pointer = map(ctx, address);
	struct accmem_free req = { .size = sizeof(req), .address = address };

	CHECK_EQ(ioctl(accmem_fd(ctx), ACCMEM_IOC_FREE, &req), 0);
	CHECK(readable(pointer));
	CHECK_EQ(new_buffer(ctx, 4096), address);
	CHECK(!readable(pointer));
	CHECK(!readable(pointer + MIB - 1));
	CHECK_EQ(accmem_unmap(ctx, address), -ENOENT);
	accmem_close(ctx);
}

static void failed_map_leaves_no_hole(bool *fail)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	unsigned char *pointer = map(ctx, address);
	void *unused;

	CHECK_EQ(accmem_unmap(ctx, address), 0);
	*fail = true;
	CHECK_EQ(accmem_map(ctx, address, RW, &unused), -ENOMEM);
	CHECK(!unclaimed(pointer));
	CHECK(!readable(pointer));
	CHECK(map(ctx, address) == pointer);
	accmem_close(ctx);
}

static void failed_mmap_leaves_no_hole(void)
{
	failed_map_leaves_no_hole(&fake_fail_mmap);
}

static void failed_mremap_leaves_no_hole(void)
{
	failed_map_leaves_no_hole(&fake_fail_mremap);
}

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

#define MANY 100u

static void name_many(struct accmem_batch_free *f,
		      const struct accmem_batch_alloc *a, unsigned int n)
{
	unsigned int i;

	memset(f, 0, n * sizeof(*f));
	for (i = 0; i < n; i++)
		f[i].address = a[i].address;
}

static void many_come_and_go(void)
{
	struct accmem_context *ctx = open_device();
	struct accmem_batch_alloc a[MANY] = {};
	struct accmem_batch_free f[MANY];
	unsigned char *pointer;
	unsigned int i;
	uint32_t done;

	for (i = 0; i < MANY; i++)
		a[i].length = i == 7 ? 0 : 4096 + i;
	CHECK_EQ(accmem_allocate_many(ctx, 0, a, MANY, &done), 0);
	CHECK_EQ(done, MANY);
	for (i = 0; i < MANY; i++)
		CHECK_EQ(a[i].result, i == 7 ? -EINVAL : 0);
	pointer = map(ctx, a[20].address);
	memset(pointer, 1, 4096);
	map(ctx, a[21].address);
	name_many(f, a, MANY);
	CHECK_EQ(accmem_release_many(ctx, 0, f, MANY, &done), 0);
	CHECK_EQ(done, MANY);
	for (i = 0; i < MANY; i++)
		CHECK_EQ(f[i].result, i == 7 ? -ENOENT : 0);
	CHECK_EQ(accmem_unmap(ctx, a[20].address), -ENOENT);
	CHECK_EQ(accmem_unmap(ctx, a[21].address), -ENOENT);
	wait_until_all_is_free(ctx);
	CHECK_EQ(accmem_allocate_many(ctx, 0, a, ACCMEM_BATCH_MAX + 1, NULL),
		 -EINVAL);
	accmem_close(ctx);
}

/* What an atomic call did not free stays mapped. */
static void many_all_or_none(void)
{
	struct accmem_context *ctx = open_device();
	struct accmem_batch_alloc a[MANY] = {};
	struct accmem_batch_free f[MANY];
	unsigned char *pointer;
	unsigned int i;
	uint32_t done;

	for (i = 0; i < MANY; i++)
		a[i].length = i == 50 ? 0 : 4096;
	CHECK_EQ(accmem_allocate_many(ctx, ACCMEM_BATCH_ATOMIC, a, MANY, &done),
		 -EINVAL);
	CHECK_EQ(done, 50);
	wait_until_all_is_free(ctx);
	a[50].length = 4096;
	CHECK_EQ(accmem_allocate_many(ctx, ACCMEM_BATCH_ATOMIC, a, MANY, &done),
		 0);
	pointer = map(ctx, a[3].address);
	pointer[5] = 9;
	name_many(f, a, MANY);
	f[60].address = 4096;
	CHECK_EQ(accmem_release_many(ctx, ACCMEM_BATCH_ATOMIC, f, MANY, &done),
		 -ENOENT);
	CHECK_EQ(done, 60);
	CHECK_EQ(pointer[5], 9);
	CHECK_EQ(map(ctx, a[3].address) == pointer, 1);
	f[60].address = a[60].address;
	CHECK_EQ(accmem_release_many(ctx, ACCMEM_BATCH_ATOMIC, f, MANY, NULL),
		 0);
	CHECK_EQ(accmem_unmap(ctx, a[3].address), -ENOENT);
	wait_until_all_is_free(ctx);
	accmem_close(ctx);
}

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
	CHECK_EQ(accmem_signal(stream, 1), -ENODEV);
	CHECK_EQ(accmem_release_at(ctx, address, stream, 2), -ENODEV);
	CHECK_EQ(accmem_release(ctx, address), -ENODEV);
	close(stream);
	accmem_close(ctx);
	CHECK_EQ(accmem_open(NULL, &ctx), -ENODEV);
}
#endif

static const struct test tests[] = {
	{ "open_errors", open_errors },
	{ "info_is_consistent", info_is_consistent },
	{ "release_gives_back", release_gives_back },
	{ "release_of_interior_changes_nothing",
	  release_of_interior_changes_nothing },
	{ "allocate_errors", allocate_errors },
	{ "query_finds_interior", query_finds_interior },
	{ "pointers_and_addresses_differ_by_a_constant",
	  pointers_and_addresses_differ_by_a_constant },
	{ "contents_outlive_a_mapping", contents_outlive_a_mapping },
	{ "unmap_keeps_the_reservation", unmap_keeps_the_reservation },
	{ "resized_in_place_stays_mapped", resized_in_place_stays_mapped },
	{ "moved_is_unmapped", moved_is_unmapped },
	{ "resize_that_fails_changes_nothing",
	  resize_that_fails_changes_nothing },
	{ "map_twice_adds_rights", map_twice_adds_rights },
	{ "small_buffers_are_mapped_each", small_buffers_are_mapped_each },
	{ "map_errors", map_errors },
	{ "many_come_and_go", many_come_and_go },
	{ "many_all_or_none", many_all_or_none },
	{ "contexts_do_not_know_each_other", contexts_do_not_know_each_other },
	{ "close_unmaps_and_frees", close_unmaps_and_frees },
	{ "works_without_a_window", works_without_a_window },
	{ "fork_shares_the_context", fork_shares_the_context },
	{ "child_of_a_threaded_process_can_allocate",
	  child_of_a_threaded_process_can_allocate },
	{ "threads_share_a_context", threads_share_a_context },
	ROW(who_is_cancelled_has_opened_all_of_a_device_or_nothing),
#ifndef FAKE_DEVICE
	{ "release_at_a_position", release_at_a_position },
	{ "streams_are_waited_for", streams_are_waited_for },
	{ "fences_go_both_ways", fences_go_both_ways },
#else
	{ "stale_mapping_goes_when_its_address_is_reused",
	  stale_mapping_goes_when_its_address_is_reused },
	{ "failed_mmap_leaves_no_hole", failed_mmap_leaves_no_hole },
	{ "failed_mremap_leaves_no_hole", failed_mremap_leaves_no_hole },
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
