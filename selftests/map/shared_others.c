// SPDX-License-Identifier: GPL-2.0
/*
 * Shared memory together with other features. A pinned page does not move. Accesses by
 * the kernel, mappings and streams find the memory on whichever side it is.
 */
#include <linux/io_uring.h>

#include "shared_util.h"
#include "stream_util.h"

SHARED_FIXTURE(shared_others)

#define CALLS 30

/* a thread that wants a pinned piece as the device, and how often it was refused */
struct wanting {
	int fd;
	uint64_t address;
	unsigned int busy;
	unsigned int state; /* odd while a call is in progress */
	bool stop;
};

/* allocates nearly all host memory as shared memory; false if the device is too small */
static bool alloc_nearly_all(int fd, struct accmem_alloc *a)
{
	struct accmem_info device, host;

	return !accmem_info_of(fd, 0, &device) &&
	       !accmem_info_of(fd, ACCMEM_INFO_HOST, &host) &&
	       host.free_bytes + PIECE < device.free_bytes &&
	       !alloc_shared(fd, (host.free_bytes / PIECE - 1) * PIECE, a);
}

/* waits until a worker that frees due memory of the context has finished */
static bool context_has(int fd, uint64_t bytes)
{
	uint64_t until = accmem_ms() + 20000;
	struct accmem_info info = {};

	while (!accmem_info_of(fd, 0, &info) && info.context_bytes != bytes &&
	       accmem_ms() < until)
		usleep(1000);
	return info.context_bytes == bytes;
}

/* A request that is short of host memory frees due memory first. */
TEST_F(shared_others, host_memory_whose_free_is_due)
{
	unsigned int i, rounds = accmem_scale(10);
	int fences = fence_device(), file;
	struct accmem_alloc all, b;
	struct accmem_info info;
	uint32_t id;

	ASSERT_LE(0, fences);
	ASSERT_EQ(0, accmem_info_of(self->fd, 0, &info));
	for (i = 0; i < rounds + 1; i++) {
		if (!alloc_nearly_all(self->fd, &all))
			return;
		EXPECT_EQ(-ENOMEM, alloc_shared(self->fd, 2 * PIECE, &b));
		file = fence_created(fences, &id);
		ASSERT_EQ(0, fence_free(self->fd, all.address, file));
		ASSERT_EQ(0, fence_signal(fences, id, 0, 0));
		ASSERT_EQ(0, alloc_shared(self->fd, 2 * PIECE, &b));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
		close(file);
	}
	EXPECT_TRUE(context_has(self->fd, info.context_bytes));
	close(fences);
}

/* A request that is short of host memory scans the context's own quarantine first. */
TEST_F(shared_others, host_memory_in_quarantine)
{
	struct accmem_alloc all, b;
	int fds[2];

	if (!alloc_nearly_all(self->fd, &all))
		return;
	ASSERT_EQ(0, accmem_free_pinned(self->fd, &all, fds));
	/* the worker scans seldom by then */
	sleep(2);
	EXPECT_EQ(-ENOMEM, alloc_shared(self->fd, 2 * PIECE, &b));
	accmem_unpin(fds);
	ASSERT_EQ(0, alloc_shared(self->fd, 2 * PIECE, &b));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
}

/* The bytes before the piece that stays are written, and counted. */
TEST_F(shared_others, an_access_ends_at_a_piece_that_stays)
{
	struct accmem_access fill = { .address = self->a.address + PIECE - 100,
				      .length = 200,
				      .op = ACCMEM_ACCESS_FILL,
				      .data = 9 };
	int fds[2];

	memset(self->map, 7, LENGTH);
	ASSERT_TRUE(accmem_pin(fds, self->map + PIECE, 4096));
	EXPECT_EQ(-EBUSY, accmem_ioctl_access(self->fd, &fill));
	EXPECT_EQ(100, fill.done);
	EXPECT_EQ(7, load(self->map + PIECE - 101));
	EXPECT_EQ(9, load(self->map + PIECE - 100));
	EXPECT_EQ(9, load(self->map + PIECE - 1));
	EXPECT_EQ(7, load(self->map + PIECE));
	accmem_unpin(fds);
}

TEST_F(shared_others, a_pinned_page_stays)
{
	char page[4096];
	int fds[2];

	memset(self->map, 7, LENGTH);
	ASSERT_TRUE(accmem_pin(fds, self->map, 4096));
	EXPECT_EQ(-EBUSY, device_get(self->fd, self->a.address));
	EXPECT_EQ(-EBUSY, device_set(self->fd, self->a.address + 1, 1));
	EXPECT_EQ(-EBUSY, prefetch(self->fd, self->a.address, LENGTH, 0));
	EXPECT_EQ(0, TO_DEVICE());
	/* its contents are kept, and other pieces move */
	EXPECT_EQ(7, load(self->map + 1));
	self->map[1] = 8;
	EXPECT_EQ(7, device_get(self->fd, self->a.address + PIECE));
	ASSERT_EQ(4096, read(fds[0], page, 4096));
	EXPECT_EQ(8, page[1]);
	EXPECT_EQ(8, device_get(self->fd, self->a.address + 1));
	accmem_unpin(fds);
}

static void *want_pinned(void *arg)
{
	struct wanting *w = arg;
	unsigned int i;

	for (i = 0; i < CALLS && !__atomic_load_n(&w->stop, __ATOMIC_RELAXED);
	     i++) {
		__atomic_add_fetch(&w->state, 1, __ATOMIC_SEQ_CST);
		w->busy += device_get(w->fd, w->address) == -EBUSY;
		__atomic_add_fetch(&w->state, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/*
 * While the device wants a pinned piece, for 100 ms each time, both sides access the
 * other pieces. In one call at least, none of these accesses waits for long.
 */
TEST_F(shared_others, a_pinned_page_keeps_nobody_from_other_pieces)
{
	struct wanting w = { .fd = self->fd, .address = self->a.address };
	uint64_t last = 2 * PIECE; /* the short piece */
	uint64_t longest[CALLS + 1] = {}, least = ~0ull, begin, ms;
	unsigned int state = 0, before, i;
	pthread_t thread;
	int fds[2];

	memset(self->map, 7, LENGTH);
	ASSERT_TRUE(accmem_pin(fds, self->map, 4096));
	ASSERT_EQ(0, pthread_create(&thread, NULL, want_pinned, &w));
	while (state < 2 * CALLS && least >= 70) {
		before = state;
		begin = accmem_ms();
		ASSERT_EQ(0, device_set(self->fd, self->a.address + last, 1));
		self->map[last] = 2;
		ms = accmem_ms() - begin;
		state = __atomic_load_n(&w.state, __ATOMIC_SEQ_CST);
		/* in all calls during which it waited */
		for (i = before / 2; i <= state / 2; i++)
			longest[i] = ms > longest[i] ? ms : longest[i];
		/* the calls that have ended */
		for (i = before / 2; i < state / 2; i++)
			least = longest[i] < least ? longest[i] : least;
	}
	__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(w.state / 2, w.busy);
	TH_LOG("%llu ms", (unsigned long long)least);
	EXPECT_GT(70, least);
	accmem_unpin(fds);
}

/* registers a buffer with io_uring, which pins its pages; 0 or -errno */
static int register_buffer(void *p, size_t size, int *ring)
{
	struct io_uring_params params = {};
	struct iovec part = { .iov_base = p, .iov_len = size };
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &limit);
	*ring = syscall(SYS_io_uring_setup, 1, &params);
	if (*ring < 0)
		return -errno;
	return syscall(SYS_io_uring_register, *ring, IORING_REGISTER_BUFFERS,
		       &part, 1) ?
		       -errno :
		       0;
}

/* A long-term pin is refused, or the page stays. */
TEST_F(shared_others, a_pin_for_good_is_refused_or_stays)
{
	int ring, err;

	self->map[0] = 7;
	err = register_buffer(self->map, 4096, &ring);
	if (ring < 0)
		SKIP(return, "this kernel has no io_uring");
	/* 6.1 registers no pages of files */
	if (err && err != -EOPNOTSUPP)
		EXPECT_EQ(-EFAULT, err);
	EXPECT_EQ(err ? 7 : -EBUSY, device_get(self->fd, self->a.address));
	/* closing the ring unpins the page some time later */
	syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL,
		0);
	EXPECT_EQ(7, device_get(self->fd, self->a.address));
	close(ring);
}

/* Faults of the kernel bring a piece back as well. */
TEST_F(shared_others, read_and_write_reach_it_wherever_it_is)
{
	char *data = malloc(LENGTH);
	int fd = memfd_create("shared", 0);

	ASSERT_LE(0, fd);
	ASSERT_NE(NULL, data);
	accmem_fill(data, LENGTH, 3);
	ASSERT_EQ(0, device_write(self->fd, self->a.address, data, LENGTH));
	ASSERT_EQ(LENGTH, pwrite(fd, self->map, LENGTH, 0));
	memset(data, 0, LENGTH);
	ASSERT_EQ(LENGTH, pread(fd, data, LENGTH, 0));
	EXPECT_EQ(-1, accmem_check(data, LENGTH, 3));
	memset(data, 1, LENGTH);
	ASSERT_EQ(0, device_write(self->fd, self->a.address, data, LENGTH));
	ASSERT_EQ(LENGTH, pread(fd, self->map, LENGTH, 0));
	ASSERT_EQ(0, device_read(self->fd, self->a.address, data, LENGTH));
	EXPECT_EQ(-1, accmem_check(data, LENGTH, 3));
	close(fd);
	free(data);
}

/* A cached buffer of device memory does not serve shared memory. */
TEST_F(shared_others, a_freed_buffer_of_device_memory_is_none)
{
	struct accmem_alloc a = { .length = 4096, .alignment = 4096 };
	struct accmem_query q;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	a.kind = ACCMEM_KIND_SHARED;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &q));
	EXPECT_EQ(ACCMEM_KIND_SHARED, q.kind);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	a.kind = ACCMEM_KIND_DEVICE;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &q));
	EXPECT_EQ(ACCMEM_KIND_DEVICE, q.kind);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

TEST_F(shared_others, the_call_s_own_memory_may_be_shared)
{
	/* The device's access has its source or destination in the same piece. */
	memcpy(self->map, "hello", 6);
	ASSERT_EQ(0,
		  device_write(self->fd, self->a.address + 100, self->map, 6));
	EXPECT_STREQ("hello", self->map + 100);
	ASSERT_EQ(0, device_read(self->fd, self->a.address + 100,
				 self->map + 200, 6));
	EXPECT_STREQ("hello", self->map + 200);
	EXPECT_EQ('h', device_get(self->fd, self->a.address + 200));
}

TEST_F(shared_others, mappings_show_the_same_wherever_they_are)
{
	char *second = accmem_mapped(self->fd, &self->a, LENGTH);
	char *third = accmem_mmap(self->fd, &self->a, LENGTH, PROT_READ);

	ASSERT_NE(NULL, third);
	self->map[0] = 1;
	second[1] = 2;
	EXPECT_EQ(2, device_get(self->fd, self->a.address + 1));
	EXPECT_EQ(1, load(third));
	ASSERT_EQ(0, device_set(self->fd, self->a.address, 3));
	EXPECT_EQ(3, load(third));
	EXPECT_EQ(3, load(second));
	second[0] = 4;
	EXPECT_EQ(4, load(self->map));
	EXPECT_EQ(SIGSEGV, accmem_try_write(third, 1));
	ASSERT_EQ(0, mprotect(self->map, LENGTH, PROT_READ));
	EXPECT_EQ(4, device_get(self->fd, self->a.address));
	EXPECT_EQ(4, load(self->map));
	ASSERT_EQ(0, mprotect(self->map, LENGTH, RW));
	self->map[0] = 5;
	EXPECT_EQ(5, device_get(self->fd, self->a.address));
	munmap(second, LENGTH);
	munmap(third, LENGTH);
}

TEST_F(shared_others, a_child_writes_to_the_same)
{
	pid_t pid;

	self->map[0] = 1;
	ASSERT_EQ(1, device_get(self->fd, self->a.address));
	pid = fork();
	if (!pid) {
		self->map[0] = 2;
		_exit(load(self->map) != 2 ||
		      device_set(self->fd, self->a.address + 1, 3));
	}
	EXPECT_EQ(0, accmem_wait_child(pid));
	EXPECT_EQ(2, load(self->map));
	EXPECT_EQ(3, load(self->map + 1));
}

TEST_F(shared_others, a_mapping_outlives_free)
{
	char *data = malloc(LENGTH);

	ASSERT_NE(NULL, data);
	accmem_fill(data, LENGTH, 4);
	ASSERT_EQ(0, device_write(self->fd, self->a.address, data, LENGTH));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(-ENOENT, device_get(self->fd, self->a.address));
	self->a.address = 0;
	EXPECT_EQ(-1, accmem_check(self->map, LENGTH, 4));
	self->map[0] = 1;
	EXPECT_EQ(LENGTH, accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_EQ(LENGTH, accmem_sysfs(variant->path, "host/detached_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	free(data);
}

/* Both sides of a freed buffer wait for its position. */
TEST_F(shared_others, both_sides_wait_for_a_position)
{
	static const char *const states[] = { "pending_bytes", "detached_bytes",
					      "live_bytes" };
	int stream = stream_create(self->fd);
	unsigned int i;
	char host[64];

	ASSERT_EQ(0, stream_free(self->fd, self->a.address, stream, 1));
	self->a.address = 0;
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		snprintf(host, sizeof(host), "host/%s", states[i]);
		EXPECT_EQ(i ? 0 : LENGTH,
			  accmem_sysfs(variant->path, states[i]));
		EXPECT_EQ(i ? 0 : LENGTH, accmem_sysfs(variant->path, host));
	}
	ASSERT_EQ(0, stream_signal(stream, 1));
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		snprintf(host, sizeof(host), "host/%s", states[i]);
		EXPECT_EQ(i == 1 ? LENGTH : 0,
			  accmem_sysfs(variant->path, states[i]));
		EXPECT_EQ(i == 1 ? LENGTH : 0,
			  accmem_sysfs(variant->path, host));
	}
	close(stream);
}

TEST_F(shared_others, a_pin_outlives_free_and_the_mapping)
{
	char page[4096];
	int fds[2];

	memset(self->map, 7, 4096);
	ASSERT_TRUE(accmem_pin(fds, self->map, 4096));
	munmap(self->map, LENGTH);
	self->map = NULL;
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	self->a.address = 0;
	EXPECT_EQ(LENGTH,
		  accmem_sysfs(variant->path, "host/quarantined_bytes"));
	ASSERT_EQ(4096, read(fds[0], page, 4096));
	EXPECT_EQ(7, page[4095]);
	accmem_unpin(fds);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "host/quarantined_bytes",
					0, 20000));
}

TEST_F(shared_others, a_stream_hands_none_of_it_on)
{
	int stream = stream_create(self->fd);
	struct accmem_alloc a = { .length = LENGTH,
				  .flags = ACCMEM_ALLOC_STREAM,
				  .stream = stream };
	struct accmem_query q;

	ASSERT_LE(0, stream);
	munmap(self->map, LENGTH);
	self->map = NULL;
	ASSERT_EQ(0, stream_free(self->fd, self->a.address, stream, 1));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_NE(self->a.address, a.address);
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &q));
	EXPECT_EQ(ACCMEM_KIND_DEVICE, q.kind);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(0, stream_signal(stream, 1));
	self->a.address = 0;
	close(stream);
}

ACCMEM_HARNESS_MAIN
