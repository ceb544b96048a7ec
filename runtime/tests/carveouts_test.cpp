// SPDX-License-Identifier: MIT
/*
 * What the library says of a device with several carveouts, and of one with little host
 * memory: carveouts.sh of the selftests makes both. On any other device the tests hold as
 * well, and show less.
 */
#include <accmem_pool.h>

#include <csignal>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static const uint64_t MIB = 1048576;

/* More would take the test too long. */
static const uint64_t LITTLE = 256 * MIB;

static accmem_context *open_context()
{
	accmem_context *ctx;

	CHECK_EQ(accmem_open(nullptr, &ctx), 0);
	return ctx;
}

static accmem_pool *new_pool(accmem_context *ctx)
{
	accmem_pool *pool;

	CHECK_EQ(accmem_pool_create(ctx, nullptr, &pool), 0);
	return pool;
}

/* Bytes of host memory that the device offers, 0 for none. */
static uint64_t host_capacity(accmem_context *ctx)
{
	accmem_info info = {};

	info.size = sizeof(info);
	info.flags = ACCMEM_INFO_HOST;
	return ioctl(accmem_fd(ctx), ACCMEM_IOC_INFO, &info) ? 0 :
							       info.capacity;
}

/* Keep @bytes of host memory in a pool, not allocated, until the process ends. */
static void keep_host(uint64_t bytes, int ready)
{
	accmem_pool *pool = new_pool(open_context());
	accmem_pool_request req = {};
	void *pieces[16];

	req.length = bytes / 16;
	req.kind = ACCMEM_KIND_HOST;
	for (void *&piece : pieces) {
		CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
		piece = req.pointer;
	}
	for (void *piece : pieces)
		CHECK_EQ(accmem_pool_release(pool, piece), 0);
	CHECK_EQ(write(ready, "", 1), 1);
	for (;;)
		pause();
}

static pid_t start_keeper(uint64_t bytes)
{
	int ready[2];
	pid_t child;
	char byte;

	CHECK_EQ(pipe(ready), 0);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
		keep_host(bytes, ready[1]);
	}
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

/* A resize asks other contexts for memory of the allocation's kind. */
static void host_memory_that_others_keep_serves_a_resize()
{
	accmem_context *ctx = open_context();
	const uint64_t eighth = host_capacity(ctx) / 8;
	accmem_pool_request req = {};
	accmem_pool *pool;
	pid_t child;

	if (!eighth || 8 * eighth > LITTLE)
		return;
	pool = new_pool(ctx);
	req.length = 5 * eighth;
	req.kind = ACCMEM_KIND_HOST;
	req.flags = ACCMEM_ALLOC_RESIZABLE;
	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	child = start_keeper(2 * eighth);
	CHECK_EQ(accmem_pool_reallocate(pool, &req.pointer, 7 * eighth), 0);
	CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(waitpid(child, nullptr, 0), child);
	accmem_pool_destroy(pool);
	accmem_close(ctx);
}

int main()
{
	static const struct test tests[] = {
		ROW(host_memory_that_others_keep_serves_a_resize),
	};

	return test_main(tests, ARRAY_SIZE(tests));
}
