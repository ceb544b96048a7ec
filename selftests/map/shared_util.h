/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for shared memory: a buffer with its mapping, counters of what has moved
 * since a test began, and accesses of the device. The functions return 0 or a negative
 * errno value. Every test ends with all memory free, on both sides.
 */
#ifndef SHARED_UTIL_H
#define SHARED_UTIL_H

#include "accmem_test.h"

#define PIECE MIB(2)
/* two pieces and a short one */
#define LENGTH (2 * PIECE + KIB(12))

static inline int alloc_shared(int fd, uint64_t length, struct accmem_alloc *a)
{
	*a = (struct accmem_alloc){ .length = length,
				    .kind = ACCMEM_KIND_SHARED };
	return accmem_ioctl_alloc(fd, a);
}

/* bytes that were moved since the test began, or moves without a copy */
#define TO_DEVICE()                                              \
	(accmem_sysfs(variant->path, "shared_to_device_bytes") - \
	 self->to_device)
#define TO_HOST() \
	(accmem_sysfs(variant->path, "shared_to_host_bytes") - self->to_host)
#define CLEAN() \
	(accmem_sysfs(variant->path, "shared_clean_moves") - self->clean)

static inline int device_access(int fd, uint64_t address, void *data,
				uint64_t length, uint32_t op)
{
	struct accmem_access access = {
		.size = sizeof(access),
		.address = address,
		.length = length,
		.data = op == ACCMEM_ACCESS_FILL ? *(unsigned char *)data :
						   (uintptr_t)data,
		.op = op,
	};

	return accmem_ioctl_access(fd, &access);
}

static inline int device_read(int fd, uint64_t address, void *data,
			      uint64_t length)
{
	return device_access(fd, address, data, length, ACCMEM_ACCESS_READ);
}

static inline int device_write(int fd, uint64_t address, void *data,
			       uint64_t length)
{
	return device_access(fd, address, data, length, ACCMEM_ACCESS_WRITE);
}

/* reads one byte as the device; the byte, or -errno */
static inline int device_get(int fd, uint64_t address)
{
	unsigned char byte;
	int ret = device_read(fd, address, &byte, 1);

	return ret ?: byte;
}

static inline int device_set(int fd, uint64_t address, unsigned char byte)
{
	return device_write(fd, address, &byte, 1);
}

static inline int prefetch(int fd, uint64_t address, uint64_t length,
			   uint32_t flags)
{
	struct accmem_prefetch req = { .size = sizeof(req),
				       .flags = flags,
				       .address = address,
				       .length = length };

	return accmem_ioctl(fd, ACCMEM_IOC_PREFETCH, &req);
}

static inline int advise(int fd, uint64_t address, uint64_t length,
			 uint32_t advice)
{
	struct accmem_advise req = { .size = sizeof(req),
				     .address = address,
				     .length = length,
				     .advice = advice };

	return accmem_ioctl(fd, ACCMEM_IOC_ADVISE, &req);
}

static inline long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static inline char load(const volatile char *p)
{
	return *p;
}

/* @to_device, @to_host and @clean are counters from the begin of the test. */
#define SHARED_FIXTURE(fixture)                                                \
	FIXTURE(fixture)                                                       \
	{                                                                      \
		int fd;                                                        \
		struct accmem_alloc a;                                         \
		char *map;                                                     \
		int64_t to_device, to_host, clean;                             \
	};                                                                     \
	ACCMEM_VARIANTS(fixture);                                              \
	FIXTURE_SETUP(fixture)                                                 \
	{                                                                      \
		self->fd = accmem_opened(variant->path);                       \
		ASSERT_EQ(0, alloc_shared(self->fd, LENGTH, &self->a));        \
		self->map = accmem_mmap_huge(self->fd, &self->a, LENGTH);      \
		ASSERT_NE(NULL, self->map);                                    \
		self->to_device =                                              \
			accmem_sysfs(variant->path, "shared_to_device_bytes"); \
		self->to_host =                                                \
			accmem_sysfs(variant->path, "shared_to_host_bytes");   \
		self->clean =                                                  \
			accmem_sysfs(variant->path, "shared_clean_moves");     \
	}                                                                      \
	FIXTURE_TEARDOWN(fixture)                                              \
	{                                                                      \
		struct accmem_info info;                                       \
		if (self->map)                                                 \
			munmap(self->map, LENGTH);                             \
		if (self->a.address)                                           \
			EXPECT_EQ(0, accmem_ioctl_free(self->fd,               \
						       self->a.address));      \
		ASSERT_EQ(0, accmem_info_of(self->fd, 0, &info));              \
		EXPECT_EQ(info.capacity, info.free_bytes);                     \
		EXPECT_EQ(0, info.context_bytes);                              \
		ASSERT_EQ(0,                                                   \
			  accmem_info_of(self->fd, ACCMEM_INFO_HOST, &info));  \
		EXPECT_EQ(info.capacity, info.free_bytes);                     \
		close(self->fd);                                               \
		EXPECT_TRUE(accmem_is_idle(variant->path, 20000));             \
		EXPECT_EQ(-1,                                                  \
			  accmem_sysfs_wait(variant->path,                     \
					    "host/resident_bytes", 0, 20000)); \
		EXPECT_EQ(0, accmem_sysfs(variant->path, "host/live_bytes"));  \
	}

#endif /* SHARED_UTIL_H */
