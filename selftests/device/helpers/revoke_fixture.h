/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fixture of the tests of revoked devices: a context with a mapped buffer, whose device
 * the test revokes. After each test the device is bound and idle, and has its old number.
 */
#ifndef REVOKE_FIXTURE_H
#define REVOKE_FIXTURE_H

#include "revoke_util.h"

#define LENGTH MIB(2)

FIXTURE(revoke)
{
	struct target target;
	struct accmem_info info;
	struct accmem_alloc a;
	uint64_t capacity;
	int fd;
	char *p;
};

ACCMEM_VARIANTS(revoke);

FIXTURE_SETUP(revoke)
{
	target_find(&self->target, variant->path);
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->capacity = accmem_sysfs(variant->path, "capacity");
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &self->a));
	self->p = accmem_mapped(self->fd, &self->a, LENGTH);
	memset(self->p, 0xa5, LENGTH);
}

FIXTURE_TEARDOWN(revoke)
{
	if (self->p)
		munmap(self->p, LENGTH);
	if (self->fd >= 0)
		close(self->fd);
	EXPECT_TRUE(target_restore(&self->target));
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	EXPECT_EQ(self->capacity, accmem_sysfs(variant->path, "free_bytes"));
}

#define RESET() ASSERT_EQ(0, device_reset(variant->path))
#define UNBIND() ASSERT_EQ(0, target_unbind(&self->target))

static inline void drop_mapping(char **p)
{
	munmap(*p, LENGTH);
	*p = NULL;
}

static inline void drop_file(int *fd)
{
	close(*fd);
	*fd = -1;
}

static inline int stream_made(int fd)
{
	struct accmem_stream_create req = { .size = sizeof(req) };

	return accmem_ioctl(fd, ACCMEM_IOC_STREAM_CREATE, &req) ?: req.fd;
}

/* The results of all calls of the device file that need a good context. */
static inline int all_calls(int fd, uint64_t address, int wanted)
{
	struct accmem_alloc a;
	struct accmem_info info;
	struct accmem_query q;
	struct accmem_realloc r;
	struct accmem_prefetch prefetch = { .size = sizeof(prefetch),
					    .address = address,
					    .length = 4096 };
	struct accmem_advise advise = { .size = sizeof(advise),
					.address = address,
					.length = 4096 };
	struct accmem_pressure pressure = { .size = sizeof(pressure) };
	struct accmem_tmem_setup setup = { .size = sizeof(setup), .nr_sms = 1 };
	struct accmem_tmem_launch launch = { .size = sizeof(launch),
					     .cta_group = 1 };
	struct accmem_tmem_member member = {};
	struct accmem_tmem_cluster cluster = { .size = sizeof(cluster),
					       .cta_group = 1,
					       .nr_members = 1,
					       .members = (uintptr_t)&member };
	const int results[] = {
		accmem_ioctl_info(fd, &info),
		accmem_info_of(fd, ACCMEM_INFO_HOST, &info),
		accmem_alloc_bytes(fd, 64, 0, &a),
		accmem_alloc_bytes(fd, 4096, ACCMEM_ALLOC_WAIT, &a),
		accmem_ioctl_query(fd, address, &q),
		accmem_ioctl_realloc(fd, address, 4096, 0, &r),
		device_byte(fd, address),
		device_fill(fd, address, 4096, 1),
		accmem_ioctl(fd, ACCMEM_IOC_PREFETCH, &prefetch),
		accmem_ioctl(fd, ACCMEM_IOC_ADVISE, &advise),
		accmem_ioctl(fd, ACCMEM_IOC_PRESSURE, &pressure),
		stream_made(fd),
		accmem_ioctl(fd, ACCMEM_IOC_TMEM_SETUP, &setup),
		accmem_ioctl(fd, ACCMEM_IOC_TMEM_LAUNCH, &launch),
		accmem_ioctl(fd, ACCMEM_IOC_TMEM_CLUSTER, &cluster),
		mmap(NULL, 4096, RW, MAP_SHARED, fd, 0) == MAP_FAILED ? -errno :
									0,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(results); i++) {
		if (results[i] != wanted) {
			printf("# call %u: %d instead of %d\n", i, results[i],
			       wanted);
			return i + 1;
		}
	}
	return 0;
}

#endif /* REVOKE_FIXTURE_H */
