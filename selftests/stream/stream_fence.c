// SPDX-License-Identifier: GPL-2.0
/*
 * Streams and fences of the kernel. accmem_test_fence.ko makes the foreign fences and
 * signals them as a driver does: from a process or an interrupt, with an error or
 * without one, or never.
 */
#include "stream_util.h"

#define PATIENCE_MS 20000

STREAM_FIXTURE(stream_fence)

static bool comes_free(const char *path)
{
	return accmem_sysfs_wait(path, "pending_bytes", 0, PATIENCE_MS) == -1 &&
	       accmem_sysfs_wait(path, "buffers", 0, PATIENCE_MS) == -1;
}

/* --- FREE after a fence ---------------------------------------------------- */

static void free_after(struct __test_metadata *_metadata, const char *path,
		       int fd, int fences, int error, uint32_t flags,
		       uint64_t length)
{
	struct accmem_alloc a = stream_allocate(fd, length);
	uint64_t bytes = length < 4096 ? 4096 : length;
	struct accmem_query q;
	uint32_t id;
	int file = fence_created(fences, &id);

	ASSERT_EQ(0, fence_free(fd, a.address, file));
	/* the driver references the fence, not its file */
	close(file);
	EXPECT_EQ(-ENOENT, accmem_ioctl_query(fd, a.address, &q));
	EXPECT_EQ(bytes, stream_pending(path));
	accmem_drain(fd);
	EXPECT_EQ(bytes, stream_pending(path));
	ASSERT_EQ(0, fence_signal(fences, id, error, flags));
	EXPECT_TRUE(comes_free(path));
}

TEST_F(stream_fence, t10_free_waits_for_its_fence)
{
	free_after(_metadata, variant->path, self->fd, self->fences, 0, 0,
		   MIB(2));
	free_after(_metadata, variant->path, self->fd, self->fences, 0, 0, 64);
}

TEST_F(stream_fence, a_fence_may_signal_in_an_interrupt)
{
	free_after(_metadata, variant->path, self->fd, self->fences, 0,
		   TEST_FENCE_IRQ, MIB(2));
}

TEST_F(stream_fence, a_fence_that_is_an_error_has_signalled)
{
	free_after(_metadata, variant->path, self->fd, self->fences, -EIO, 0,
		   MIB(2));
}

TEST_F(stream_fence, a_fence_of_the_past_is_a_plain_free)
{
	int64_t start = accmem_sysfs(variant->path, "free_bytes");
	struct accmem_alloc a;
	int error, file;
	uint32_t id;

	for (error = 0; error >= -EIO; error -= EIO) {
		a = stream_allocate(self->fd, MIB(1));
		file = fence_created(self->fences, &id);
		ASSERT_EQ(0, fence_signal(self->fences, id, error, 0));
		ASSERT_EQ(0, fence_free(self->fd, a.address, file));
		EXPECT_EQ(start, accmem_sysfs(variant->path, "free_bytes"));
		close(file);
	}
}

/* An ALLOC that would fail frees due memory first. */
TEST_F(stream_fence, an_alloc_that_would_fail_finds_what_is_due)
{
	struct accmem_alloc *bufs = calloc(4096, sizeof(*bufs));
	unsigned int i, rounds = accmem_scale(20);
	struct accmem_alloc a;
	uint32_t id;
	int file, n;

	n = accmem_take_all(self->fd, ACCMEM_CACHE_WB, bufs, 4096);
	ASSERT_LT(0, n);
	a.address = bufs[0].address;
	for (i = 0; i < rounds + 1; i++) {
		file = fence_created(self->fences, &id);
		ASSERT_EQ(0, fence_free(self->fd, a.address, file));
		a = (struct accmem_alloc){ .length = bufs[0].footprint };
		ASSERT_EQ(-ENOMEM, accmem_ioctl_alloc(self->fd, &a));
		ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
		a = (struct accmem_alloc){ .length = bufs[0].footprint };
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
		close(file);
	}
	free(bufs);
}

/* An ALLOC that finds no device address frees due memory first. */
TEST_F(stream_fence, an_alloc_without_addresses_finds_what_is_due)
{
	struct accmem_info info;
	unsigned int i, rounds = accmem_scale(20);
	uint32_t id;
	int file;

	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	for (i = 0; i < rounds + 1; i++) {
		struct accmem_alloc a = { .length = 4096,
					  .flags = ACCMEM_ALLOC_RESIZABLE,
					  .reserve = info.address_span };

		file = fence_created(self->fences, &id);
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
		ASSERT_EQ(0, fence_free(self->fd, a.address, file));
		ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
		close(file);
	}
}

/* The memory is freed after a fence, and at a position of a stream. */
TEST_F(stream_fence, an_address_whose_free_is_due_can_be_had)
{
	static const uint64_t lengths[] = { MIB(2), 4096, 64 };
	unsigned int i, rounds = accmem_scale(20);
	struct accmem_alloc a, b;
	uint32_t id;
	int file;

	for (i = 0; i < 6 * (rounds + 1); i++) {
		file = fence_created(self->fences, &id);
		a = stream_allocate(self->fd, lengths[i % 3]);
		if (i % 2) {
			ASSERT_EQ(0, stream_free(self->fd, a.address,
						 self->stream, i));
		} else {
			ASSERT_EQ(0, fence_free(self->fd, a.address, file));
		}
		b = (struct accmem_alloc){ .length = lengths[i % 3],
					   .flags = ACCMEM_ALLOC_FIXED,
					   .address = a.address };
		ASSERT_EQ(-EEXIST, accmem_ioctl_alloc(self->fd, &b));
		ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
		if (i % 2)
			ASSERT_EQ(0, stream_import(self->stream, i, file));
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &b));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
		close(file);
	}
}

/* --- imported fences ------------------------------------------------------- */

TEST_F(stream_fence, an_import_claims_positions)
{
	uint32_t id;
	int file = fence_created(self->fences, &id);

	ASSERT_EQ(0, stream_signal(self->stream, 3));
	EXPECT_EQ(-ERANGE, stream_import(self->stream, 0, file));
	EXPECT_EQ(-ERANGE, stream_import(self->stream, 3, file));
	ASSERT_EQ(0, stream_import(self->stream, 10, file));
	EXPECT_EQ(3, stream_query(self->stream).reached);
	EXPECT_EQ(10, stream_query(self->stream).claimed);
	EXPECT_EQ(-ERANGE, stream_import(self->stream, 10, file));
	EXPECT_EQ(-EBUSY, stream_signal(self->stream, 4));
	EXPECT_EQ(-EBUSY, stream_signal(self->stream, 10));
	EXPECT_EQ(-EBUSY, stream_signal(self->stream, 11));
	EXPECT_EQ(-ERANGE, stream_signal(self->stream, 3));
	EXPECT_EQ(-EAGAIN, stream_try(self->stream, 4));
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, TEST_FENCE_IRQ));
	EXPECT_EQ(0, stream_settle(self->stream, 10));
	EXPECT_EQ(10, stream_query(self->stream).reached);
	EXPECT_EQ(-EAGAIN, stream_try(self->stream, 11));
	EXPECT_EQ(0, stream_signal(self->stream, 11));
	close(file);
}

TEST_F(stream_fence, an_import_wants_a_sync_file)
{
	EXPECT_EQ(-EBADF, stream_import(self->stream, 1, -1));
	EXPECT_EQ(-EINVAL, stream_import(self->stream, 1, self->stream));
	EXPECT_EQ(-EINVAL, stream_import(self->stream, 1, self->fd));
	EXPECT_EQ(0, stream_query(self->stream).claimed);
}

TEST_F(stream_fence, a_fence_of_the_past_reaches_at_once)
{
	uint32_t id;
	int file = fence_created(self->fences, &id);

	ASSERT_EQ(0, fence_signal(self->fences, id, -EIO, 0));
	ASSERT_EQ(0, stream_import(self->stream, 7, file));
	EXPECT_EQ(7, stream_query(self->stream).reached);
	EXPECT_EQ(-EIO, stream_query(self->stream).error);
	close(file);
}

/* Positions are reached in order, whichever fence signals first. */
TEST_F(stream_fence, positions_come_in_order)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));
	struct accmem_alloc b = stream_allocate(self->fd, MIB(1));
	int first, second;
	uint32_t ids[2];

	first = fence_create(self->fences, &ids[0]);
	second = fence_create(self->fences, &ids[1]);
	ASSERT_EQ(0, stream_import(self->stream, 1, first));
	ASSERT_EQ(0, stream_import(self->stream, 2, second));
	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 1));
	ASSERT_EQ(0, stream_free(self->fd, b.address, self->stream, 2));
	ASSERT_EQ(0, fence_signal(self->fences, ids[1], 0, 0));
	EXPECT_EQ(-ETIMEDOUT, stream_wait(self->stream, 1, 0,
					  stream_in_ms(30)));
	EXPECT_EQ(MIB(2), stream_pending(variant->path));
	ASSERT_EQ(0, fence_signal(self->fences, ids[0], 0, 0));
	EXPECT_EQ(0, stream_settle(self->stream, 2));
	EXPECT_TRUE(comes_free(variant->path));
	close(first);
	close(second);
}

static void *wait_for_five(void *arg)
{
	return (void *)(intptr_t)stream_settle(*(int *)arg, 5);
}

TEST_F(stream_fence, an_import_wakes_waiters)
{
	pthread_t thread;
	uint32_t id;
	int file = fence_create(self->fences, &id);
	void *ret;

	ASSERT_EQ(0, stream_import(self->stream, 5, file));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_five,
				    &self->stream));
	usleep(10000);
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, TEST_FENCE_IRQ));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	close(file);
}

TEST_F(stream_fence, many_imports)
{
	uint32_t ids[200];
	unsigned int i, n = ARRAY_SIZE(ids);

	for (i = 0; i < n; i++) {
		int file = fence_created(self->fences, &ids[i]);

		ASSERT_EQ(0, stream_import(self->stream, 2 * i + 1, file));
		close(file);
	}
	for (i = n; i--;)
		ASSERT_EQ(0, fence_signal(self->fences, ids[i], 0, i % 2));
	EXPECT_EQ(0, stream_settle(self->stream, 2 * n - 1));
	EXPECT_EQ(2 * n - 1, stream_query(self->stream).reached);
}

/* --- exported fences ------------------------------------------------------- */

/* A position that only userspace could signal cannot be exported. */
TEST_F(stream_fence, userspace_positions_are_not_exported)
{
	uint32_t id;
	int file = fence_create(self->fences, &id);

	EXPECT_EQ(-EPERM, stream_export(self->stream, 1));
	EXPECT_EQ(-EPERM, stream_export(self->stream, ~0ull));
	ASSERT_EQ(0, stream_import(self->stream, 5, file));
	EXPECT_EQ(-EPERM, stream_export(self->stream, 6));
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
	ASSERT_EQ(0, stream_settle(self->stream, 5));
	EXPECT_EQ(-EPERM, stream_export(self->stream, 6));
	close(file);
}

TEST_F(stream_fence, exports_signal_with_their_positions)
{
	int files[2], out[4];
	unsigned int i;
	uint32_t ids[2];

	for (i = 0; i < 2; i++) {
		files[i] = fence_create(self->fences, &ids[i]);
		ASSERT_EQ(0, stream_import(self->stream, 10 * (i + 1),
					   files[i]));
	}
	/* 20, 15, 10, 5 */
	for (i = 0; i < 4; i++) {
		out[i] = stream_export(self->stream, 20 - 5 * i);
		ASSERT_LE(0, out[i]);
		EXPECT_EQ(FD_CLOEXEC, fcntl(out[i], F_GETFD));
		EXPECT_EQ(0, fence_status(out[i]));
	}
	ASSERT_EQ(0, fence_signal(self->fences, ids[0], 0, 0));
	EXPECT_EQ(1, fence_settle(out[3]));
	EXPECT_EQ(1, fence_settle(out[2]));
	EXPECT_EQ(0, fence_status(out[1]));
	EXPECT_EQ(0, fence_status(out[0]));
	ASSERT_EQ(0, fence_signal(self->fences, ids[1], -EIO, 0));
	EXPECT_EQ(-EIO, fence_settle(out[1]));
	EXPECT_EQ(-EIO, fence_settle(out[0]));
	EXPECT_EQ(-EIO, stream_query(self->stream).error);
	for (i = 0; i < 4; i++)
		close(out[i]);
	/* an export that is made afterwards says the same */
	for (i = 0; i < 4; i++) {
		out[i] = stream_export(self->stream, 20 - 5 * i);
		EXPECT_EQ(i < 2 ? -EIO : 1, fence_status(out[i]));
		close(out[i]);
	}
	for (i = 0; i < 2; i++)
		close(files[i]);
}

TEST_F(stream_fence, what_is_reached_is_exported_as_signalled)
{
	int file;

	ASSERT_EQ(0, stream_signal(self->stream, 3));
	file = stream_export(self->stream, 2);
	ASSERT_LE(0, file);
	EXPECT_EQ(1, fence_status(file));
	close(file);
}

/* the name of the driver; newer kernels drop it when the fence has signalled */
TEST_F(stream_fence, an_export_says_whose_it_is)
{
	struct sync_fence_info fence = {};
	struct sync_file_info info = { .num_fences = 1,
				       .sync_fence_info = (uintptr_t)&fence };
	uint32_t id;
	int imported = fence_create(self->fences, &id), file;

	ASSERT_EQ(0, stream_import(self->stream, 1, imported));
	file = stream_export(self->stream, 1);
	ASSERT_LE(0, file);
	ASSERT_EQ(0, ioctl(file, SYNC_IOC_FILE_INFO, &info));
	EXPECT_STREQ("accmem", fence.driver_name);
	EXPECT_EQ(0, strncmp(fence.obj_name, variant->path + 5, 7));
	close(file);
	close(imported);
}

/* A context of another device waits for the exported fence. */
TEST_F(stream_fence, another_device_may_wait)
{
	const char *elsewhere = strcmp(variant->path, ACCMEM_DEV_PHYS) ?
					ACCMEM_DEV_PHYS : ACCMEM_DEV_EMULATED;
	int other = accmem_dev_open(elsewhere, O_RDWR);
	int stream = stream_create(other), file, out;
	struct accmem_alloc a = stream_allocate(other, MIB(1));
	struct accmem_alloc b = stream_allocate(other, MIB(1));
	uint32_t id;

	file = fence_create(self->fences, &id);
	ASSERT_EQ(0, stream_import(self->stream, 1, file));
	out = stream_export(self->stream, 1);
	ASSERT_LE(0, out);
	ASSERT_EQ(0, fence_free(other, a.address, out));
	ASSERT_EQ(0, stream_import(stream, 1, out));
	ASSERT_EQ(0, stream_free(other, b.address, stream, 1));
	EXPECT_EQ(MIB(2), stream_pending(elsewhere));
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
	EXPECT_TRUE(comes_free(elsewhere));
	close(out);
	close(file);
	close(stream);
	close(other);
}

/* No fence is signalled inside the callback of another, so a chain may have any length. */
TEST_F(stream_fence, a_long_chain)
{
	unsigned int i, n = 400;
	int stream, file, last;
	uint32_t id;

	file = fence_created(self->fences, &id);
	for (i = 0, last = file; i < n; i++) {
		stream = stream_created(self->fd);
		ASSERT_EQ(0, stream_import(stream, 1, last));
		close(last);
		last = stream_export(stream, 1);
		ASSERT_LE(0, last);
		/* the chain goes on when all files are closed */
		close(stream);
	}
	EXPECT_EQ(0, fence_status(last));
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, TEST_FENCE_IRQ));
	EXPECT_EQ(1, fence_settle(last));
	close(last);
}

/* --- both, and the end ----------------------------------------------------- */

TEST_F(stream_fence, t10_a_position_and_a_fence)
{
	struct accmem_alloc a, b;
	unsigned int fence_first;
	uint32_t id;
	int file;

	for (fence_first = 0; fence_first < 2; fence_first++) {
		uint64_t at = fence_first + 1;

		a = stream_allocate(self->fd, MIB(1));
		b = (struct accmem_alloc){ .length = MIB(1) };
		file = fence_create(self->fences, &id);
		ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream,
					 at));
		ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
		ASSERT_EQ(a.address, b.address);
		ASSERT_EQ(0, fence_free(self->fd, b.address, file));
		ASSERT_EQ(0, fence_first ?
				     fence_signal(self->fences, id, 0, 0) :
				     stream_signal(self->stream, at));
		usleep(20000);
		EXPECT_EQ(MIB(1), stream_pending(variant->path));
		ASSERT_EQ(0, fence_first ?
				     stream_signal(self->stream, at) :
				     fence_signal(self->fences, id, 0, 0));
		EXPECT_TRUE(comes_free(variant->path));
		close(file);
	}
}

/* Frees that wait for a kernel fence wait for it, also after the context has ended. */
TEST_F(stream_fence, t10_the_end_of_the_context_waits_for_the_kernel)
{
	struct accmem_alloc a[4];
	unsigned int i;
	uint32_t id;
	int file = fence_create(self->fences, &id);
	char context[24];

	snprintf(context, sizeof(context), "%lld",
		 (long long)accmem_fdinfo(self->fd, "context"));
	for (i = 0; i < 4; i++)
		a[i] = stream_allocate(self->fd, i == 3 ? 64 : MIB(1));
	ASSERT_EQ(0, stream_import(self->stream, 5, file));
	ASSERT_EQ(0, fence_free(self->fd, a[0].address, file));
	ASSERT_EQ(0, stream_free(self->fd, a[1].address, self->stream, 4));
	/* a free after the claimed position, in the order of the stream */
	ASSERT_EQ(0, stream_free(self->fd, a[2].address, self->stream, 9));
	ASSERT_EQ(0, fence_free(self->fd, a[3].address, file));
	close(self->fd);
	self->fd = -1;
	usleep(20000);
	EXPECT_EQ(3 * MIB(1) + 4096, stream_pending(variant->path));
	EXPECT_EQ(3 * MIB(1) + 4096,
		  accmem_run_bytes(variant->path, "pending", context));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "contexts"));
	EXPECT_EQ(-EAGAIN, stream_try(self->stream, 5));
	/* positions of userspace are cancelled after the claimed one */
	EXPECT_EQ(-EAGAIN, stream_try(self->stream, 9));
	EXPECT_EQ(-ETIMEDOUT, stream_wait(self->stream, 9, 0,
					  stream_in_ms(50)));
	EXPECT_EQ(-ECANCELED, stream_import(self->stream, 20, file));
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
	EXPECT_EQ(0, stream_settle(self->stream, 5));
	EXPECT_EQ(-ECANCELED, stream_settle(self->stream, 9));
	EXPECT_TRUE(comes_free(variant->path));
	close(file);
}

TEST_F(stream_fence, t10_the_close_of_a_stream_waits_for_the_kernel)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));
	uint32_t id;
	int file = fence_create(self->fences, &id), out;

	ASSERT_EQ(0, stream_import(self->stream, 5, file));
	out = stream_export(self->stream, 5);
	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 9));
	close(self->stream);
	self->stream = -1;
	usleep(20000);
	EXPECT_EQ(MIB(1), stream_pending(variant->path));
	EXPECT_EQ(0, fence_status(out));
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
	EXPECT_EQ(1, fence_settle(out));
	EXPECT_TRUE(comes_free(variant->path));
	close(file);
	close(out);
}

/* So does a buffer that took memory which waits for a kernel fence. */
TEST_F(stream_fence, t10_the_end_of_the_context_keeps_what_was_taken)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));
	struct accmem_alloc b = { .length = MIB(1) };
	uint32_t id;
	int file = fence_create(self->fences, &id);

	ASSERT_EQ(0, stream_import(self->stream, 5, file));
	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 5));
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	ASSERT_EQ(a.address, b.address);
	close(self->fd);
	self->fd = -1;
	close(self->stream);
	self->stream = -1;
	usleep(20000);
	EXPECT_EQ(MIB(1), stream_pending(variant->path));
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
	EXPECT_TRUE(comes_free(variant->path));
	close(file);
}

static int die_with_fences(void *arg)
{
	int *fds = arg, fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR), i;
	int stream = stream_create(fd);

	ACCMEM_MUST(!stream_import(stream, 3, fds[0]));
	for (i = 0; i < 50; i++) {
		struct accmem_alloc a = { .length = i % 3 ? 4096 : 64 };

		ACCMEM_MUST(!accmem_ioctl_alloc(fd, &a));
		if (i % 2)
			ACCMEM_MUST(!fence_free(fd, a.address, fds[0]));
		else
			ACCMEM_MUST(!stream_free(fd, a.address, stream, i));
	}
	raise(SIGKILL);
	return 1;
}

TEST_F(stream_fence, a_killed_process_waits_for_the_kernel)
{
	const char *path = ACCMEM_DEV_EMULATED;
	uint32_t id;
	int file = fence_create(self->fences, &id);

	EXPECT_EQ(128 + SIGKILL, accmem_in_child(die_with_fences, &file));
	EXPECT_LT(0, stream_pending(path));
	usleep(20000);
	EXPECT_LT(0, stream_pending(path));
	EXPECT_TRUE(accmem_accounts_balance(path));
	ASSERT_EQ(0, fence_signal(self->fences, id, -EIO, TEST_FENCE_IRQ));
	EXPECT_TRUE(comes_free(path));
	close(file);
}

/* There is no timeout: a fence that never signals keeps the memory. */
TEST_F(stream_fence, a_fence_that_does_not_come_keeps_the_memory)
{
	int64_t usual = accmem_param("overdue_ms");
	struct accmem_alloc a = stream_allocate(self->fd, MIB(2));
	uint32_t id;
	int file = fence_create(self->fences, &id);

	ASSERT_EQ(0, accmem_param_set("overdue_ms", 50));
	ASSERT_EQ(0, fence_free(self->fd, a.address, file));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "quarantined_bytes",
					MIB(2), PATIENCE_MS));
	close(self->fd);
	self->fd = -1;
	usleep(200000);
	EXPECT_EQ(MIB(2), accmem_sysfs(variant->path, "quarantined_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "quarantined_bytes", 0,
					PATIENCE_MS));
	EXPECT_EQ(0, accmem_param_set("overdue_ms", usual));
	close(file);
}

ACCMEM_HARNESS_MAIN
