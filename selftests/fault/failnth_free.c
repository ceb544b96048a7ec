// SPDX-License-Identifier: GPL-2.0
/*
 * FREE, close() and munmap() allocate no memory, so they cannot fail for the lack of
 * it. The tests let every allocation fail that these calls could make, and they
 * succeed.
 */
#include "failnth_util.h"
#include "stream_util.h"

FAILNTH_FIXTURE(failnth_free)

static struct accmem_alloc many[64];

static int allocate_many(int fd, bool map)
{
	unsigned int i;
	char *p;

	for (i = 0; i < ARRAY_SIZE(many); i++) {
		if (accmem_alloc_bytes(fd, 512u << (i % 11), 0, &many[i]))
			return -1;
		if (!map || i % 2)
			continue;
		p = accmem_mmap(fd, &many[i], many[i].length, RW);
		if (!p)
			return -1;
		memset(p, 1, many[i].length);
		munmap(p, many[i].length);
	}
	return 0;
}

TEST_F(failnth_free, free_allocates_nothing)
{
	struct rounds r = {};
	unsigned int i;

	NEED_INJECTION();
	while (next_round(&r)) {
		ASSERT_EQ(0, allocate_many(self->fd, r.nr & 1));
		arm_round(&r);
		for (i = 0; i < ARRAY_SIZE(many); i++)
			EXPECT_EQ(0,
				  accmem_ioctl_free(self->fd, many[i].address));
		EXPECT_TRUE(disarm_round(&r));
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

/*
 * FREE at a position or after a fence allocates nothing, and neither do the signal and
 * the fence.
 */
TEST_F(failnth_free, pending_frees_allocate_nothing)
{
	struct rounds r = {};
	unsigned int i;
	uint32_t id;
	int stream, file, device;

	NEED_INJECTION();
	device = fence_device();
	ASSERT_LE(0, device);
	stream = stream_created(self->fd);
	while (next_round(&r)) {
		file = fence_created(device, &id);
		ASSERT_EQ(0, allocate_many(self->fd, r.nr & 1));
		arm_round(&r);
		for (i = 0; i < ARRAY_SIZE(many); i++)
			EXPECT_EQ(0,
				  i % 2 ? fence_free(self->fd, many[i].address,
						     file) :
					  stream_free(self->fd, many[i].address,
						      stream, 2 * r.nr));
		EXPECT_EQ(-EAGAIN, stream_try(stream, 2 * r.nr));
		EXPECT_EQ(0, stream_signal(stream, 2 * r.nr));
		EXPECT_EQ(-ERANGE, stream_signal(stream, 2 * r.nr));
		EXPECT_EQ(2 * r.nr, stream_query(stream).reached);
		EXPECT_EQ(-ETIMEDOUT, stream_wait(stream, 2 * r.nr + 1, 0,
						  stream_in_ms(5)));
		EXPECT_TRUE(disarm_round(&r));
		ASSERT_EQ(0, fence_signal(device, id, 0, 0));
		close(file);
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
	close(stream);
	close(device);
}

/* The context has pending frees and an open stream. */
TEST_F(failnth_free, close_with_pending_frees_allocates_nothing)
{
	struct rounds r = {};
	unsigned int i;
	int fd, stream;

	NEED_INJECTION();
	ASSERT_EQ(0, only_module(true));
	while (next_round(&r)) {
		fd = accmem_opened(variant->path);
		stream = stream_created(fd);
		ASSERT_EQ(0, allocate_many(fd, false));
		for (i = 0; i < ARRAY_SIZE(many); i += 2)
			ASSERT_EQ(0,
				  stream_free(fd, many[i].address, stream, 1));
		arm_round(&r);
		EXPECT_EQ(0, close(r.nr & 1 ? fd : stream));
		EXPECT_EQ(0, close(r.nr & 1 ? stream : fd));
		EXPECT_TRUE(disarm_round(&r));
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

/*
 * munmap() of the last mapping of a freed buffer. The kernel's own bookkeeping of
 * mappings may allocate, so only the module's allocations count.
 */
TEST_F(failnth_free, munmap_of_freed_allocates_nothing)
{
	struct rounds r = {};
	struct accmem_alloc a;
	char *p;

	NEED_INJECTION();
	ASSERT_EQ(0, only_module(true));
	while (next_round(&r)) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2), 0, &a));
		p = accmem_mapped(self->fd, &a, MIB(2));
		memset(p, 1, MIB(2));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
		arm_round(&r);
		EXPECT_EQ(0, munmap(p, MIB(2)));
		EXPECT_TRUE(disarm_round(&r));
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

/*
 * Kernels that check their own objects allocate in close(), so only the module's
 * allocations count.
 */
TEST_F(failnth_free, close_allocates_nothing)
{
	struct rounds r = {};
	int fd;

	NEED_INJECTION();
	ASSERT_EQ(0, only_module(true));
	while (next_round(&r)) {
		fd = accmem_opened(variant->path);
		ASSERT_EQ(0, allocate_many(fd, r.nr & 1));
		arm_round(&r);
		EXPECT_EQ(0, close(fd));
		EXPECT_TRUE(disarm_round(&r));
		ASSERT_EQ(1, accmem_sysfs(variant->path, "contexts"));
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

ACCMEM_HARNESS_MAIN
