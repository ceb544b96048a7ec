/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for streams and fences. There is one function for each call; it returns 0 or
 * a descriptor, or a negative errno value. accmem_test_fence.ko makes fences of
 * another driver.
 */
#ifndef STREAM_UTIL_H
#define STREAM_UTIL_H

#include <err.h>
#include <libgen.h>

#include <linux/sync_file.h>

#include "accmem_test.h"
#include "../../driver/tests/test_fence.h"

#define TEST_FENCE_DEVICE "/dev/test-fence"

static inline uint64_t stream_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static inline uint64_t stream_in_ms(uint64_t ms)
{
	return stream_now() + ms * 1000000;
}

/* a descriptor */
static inline int stream_create(int fd)
{
	struct accmem_stream_create req = { .size = sizeof(req) };
	int ret = accmem_ioctl(fd, ACCMEM_IOC_STREAM_CREATE, &req);

	return ret ?: req.fd;
}

/* the same, and ends the program on failure */
static inline int stream_created(int fd)
{
	int stream = stream_create(fd);

	if (stream < 0)
		err(1, "stream");
	return stream;
}

static inline int stream_signal(int stream, uint64_t position)
{
	struct accmem_stream_signal req = { .size = sizeof(req),
					    .position = position };

	return accmem_ioctl(stream, ACCMEM_IOC_STREAM_SIGNAL, &req);
}

static inline struct accmem_stream_query stream_query(int stream)
{
	struct accmem_stream_query req = { .size = sizeof(req) };

	if (accmem_ioctl(stream, ACCMEM_IOC_STREAM_QUERY, &req))
		abort();
	return req;
}

static inline int stream_wait(int stream, uint64_t position, uint32_t flags,
			      uint64_t deadline_ns)
{
	struct accmem_stream_wait req = { .size = sizeof(req),
					  .flags = flags,
					  .position = position,
					  .deadline_ns = deadline_ns };

	return accmem_ioctl(stream, ACCMEM_IOC_STREAM_WAIT, &req);
}

static inline int stream_try(int stream, uint64_t position)
{
	return stream_wait(stream, position, ACCMEM_STREAM_NONBLOCK, 0);
}

/* waits for a position that a worker reaches; fails after a minute */
static inline int stream_settle(int stream, uint64_t position)
{
	return stream_wait(stream, position, 0, stream_in_ms(60000));
}

static inline int stream_import(int stream, uint64_t position, int sync_file)
{
	struct accmem_stream_import req = { .size = sizeof(req),
					    .position = position,
					    .fd = sync_file };

	return accmem_ioctl(stream, ACCMEM_IOC_STREAM_IMPORT, &req);
}

/* a descriptor */
static inline int stream_export(int stream, uint64_t position)
{
	struct accmem_stream_export req = { .size = sizeof(req),
					    .position = position };
	int err = accmem_ioctl(stream, ACCMEM_IOC_STREAM_EXPORT, &req);

	return err ?: req.fd;
}

static inline int stream_free(int fd, uint64_t address, int stream,
			      uint64_t position)
{
	struct accmem_free req = { .size = sizeof(req),
				   .flags = ACCMEM_FREE_STREAM,
				   .address = address,
				   .fd = stream,
				   .position = position };

	return accmem_ioctl(fd, ACCMEM_IOC_FREE, &req);
}

static inline int fence_free(int fd, uint64_t address, int sync_file)
{
	struct accmem_free req = { .size = sizeof(req),
				   .flags = ACCMEM_FREE_FENCE,
				   .address = address,
				   .fd = sync_file };

	return accmem_ioctl(fd, ACCMEM_IOC_FREE, &req);
}

static inline int stream_alloc(int fd, int stream, struct accmem_alloc *a)
{
	a->flags |= ACCMEM_ALLOC_STREAM;
	a->stream = stream;
	return accmem_ioctl_alloc(fd, a);
}

/* --- fences of another driver ---------------------------------------------- */

/* opens the device that makes fences, and loads its module if necessary */
static inline int fence_device(void)
{
	return accmem_open_test_device(TEST_FENCE_DEVICE,
				       "accmem_test_fence.ko");
}

/* makes a fence; its sync_file, or -errno */
static inline int fence_create(int device, uint32_t *id)
{
	struct test_fence_create req = {};

	*id = 0;
	if (ioctl(device, TEST_FENCE_CREATE, &req))
		return -errno;
	*id = req.id;
	return req.fd;
}

/* the same, and ends the program on failure */
static inline int fence_created(int device, uint32_t *id)
{
	int file = fence_create(device, id);

	if (file < 0)
		err(1, "fence");
	return file;
}

static inline int fence_signal(int device, uint32_t id, int error,
			       uint32_t flags)
{
	struct test_fence_signal req = { .id = id, .error = error,
					 .flags = flags };

	return ioctl(device, TEST_FENCE_SIGNAL, &req) ? -errno : 0;
}

/* the number of callbacks of a fence that has not signalled, or -errno */
static inline int fence_callbacks(int device, uint32_t id)
{
	struct test_fence_count req = { .id = id };

	return ioctl(device, TEST_FENCE_COUNT, &req) ? -errno :
						       (int)req.callbacks;
}

/* 0 before the fence has signalled; then 1, or its error */
static inline int fence_status(int sync_file)
{
	struct sync_file_info info = {};

	if (ioctl(sync_file, SYNC_IOC_FILE_INFO, &info))
		abort();
	return info.status;
}

/* waits up to a minute for the fence; its status */
static inline int fence_settle(int sync_file)
{
	struct pollfd pollfd = { .fd = sync_file, .events = POLLIN };

	poll(&pollfd, 1, 60000);
	return fence_status(sync_file);
}

/* the number of pending bytes of the device */
static inline int64_t stream_pending(const char *path)
{
	return accmem_sysfs(path, "pending_bytes");
}

/* allocates a buffer; must not fail */
static inline struct accmem_alloc stream_allocate(int fd, uint64_t length)
{
	struct accmem_alloc a = { .length = length };

	if (accmem_ioctl_alloc(fd, &a))
		abort();
	return a;
}

/*
 * A fixture with a context, one of its streams, and the device that makes fences. A
 * test that closes the context or the stream sets the descriptor to -1.
 */
#define STREAM_FIXTURE(fixture)                                         \
	FIXTURE(fixture)                                                \
	{                                                               \
		int fd, stream, fences;                                 \
		struct accmem_info info;                                \
	};                                                              \
	ACCMEM_VARIANTS(fixture);                                       \
	FIXTURE_SETUP(fixture)                                          \
	{                                                               \
		self->fd = accmem_opened(variant->path);                \
		ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info)); \
		self->stream = stream_created(self->fd);                \
		self->fences = fence_device();                          \
		ASSERT_LE(0, self->fences);                             \
	}                                                               \
	FIXTURE_TEARDOWN(fixture)                                       \
	{                                                               \
		EXPECT_TRUE(accmem_accounts_balance(variant->path));    \
		close(self->fences);                                    \
		close(self->stream);                                    \
		close(self->fd);                                        \
		EXPECT_TRUE(accmem_is_idle(variant->path, 30000));      \
	}

#endif /* STREAM_UTIL_H */
