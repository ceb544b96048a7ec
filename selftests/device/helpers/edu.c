// SPDX-License-Identifier: GPL-2.0
/*
 * A program of the sample accelerator, for edu.sh, which loads its driver: memory from
 * /dev/accmemN, the path in ACCMEM_EDU, and work by /dev/accmem-edu.
 */
#include "accmem_test.h"
#include "../../../samples/accmem-edu/accmem_edu.h"

#define ENGINE "/dev/accmem-edu"
#define SIZE 8192

FIXTURE(edu)
{
	const char *path;
	int fd;
	int engine;
	struct accmem_alloc to;
	struct accmem_alloc from;
};

FIXTURE_SETUP(edu)
{
	self->path = getenv("ACCMEM_EDU");
	ASSERT_NE(NULL, self->path);
	self->fd = accmem_opened(self->path);
	self->engine = open(ENGINE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->engine);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, SIZE, 0, &self->to));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, SIZE, 0, &self->from));
}

FIXTURE_TEARDOWN(edu)
{
	close(self->engine);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(self->path, 20000));
}

/* a fence of the copy, or -errno */
static int copy(int engine, int fd, uint64_t to, uint64_t from, uint32_t size)
{
	struct accmem_edu_copy req = {
		.memory = fd, .size = size, .to = to, .from = from
	};
	int fence = ioctl(engine, ACCMEM_EDU_COPY, &req);

	return fence < 0 ? -errno : fence;
}

static bool signals(int fence)
{
	struct pollfd poller = { .fd = fence, .events = POLLIN };

	return poll(&poller, 1, 20000) == 1;
}

/* a stream of copies: each reads what the one before has written */
TEST_F(edu, streams)
{
	char *to = accmem_mapped(self->fd, &self->to, SIZE);
	char *from = accmem_mapped(self->fd, &self->from, SIZE);
	int fence[2], i;

	accmem_fill(from, SIZE, 3);
	fence[0] = copy(self->engine, self->fd, self->to.address,
			self->from.address, SIZE / 2);
	fence[1] = copy(self->engine, self->fd, self->to.address + SIZE / 2,
			self->from.address + SIZE / 2, SIZE / 2);
	for (i = 0; i < 2; i++) {
		ASSERT_LE(0, fence[i]);
		EXPECT_TRUE(signals(fence[i]));
		close(fence[i]);
	}
	EXPECT_EQ(-1, accmem_check(to, SIZE, 3));
	munmap(to, SIZE);
	munmap(from, SIZE);
}

/* memory that is freed while the engine works on it is not free yet */
TEST_F(edu, freed_in_flight)
{
	int64_t live = accmem_sysfs(self->path, "free_bytes"), now = -1;
	struct pollfd fence = { .events = POLLIN };
	int i, ended = 1;

	/* again if the copy has ended before the memory was looked at */
	for (i = 0; i < 10 && ended; i++) {
		if (i) {
			ASSERT_EQ(0, accmem_alloc_bytes(self->fd, SIZE, 0,
							&self->to));
			ASSERT_EQ(0, accmem_alloc_bytes(self->fd, SIZE, 0,
							&self->from));
		}
		fence.fd = copy(self->engine, self->fd, self->to.address,
				self->from.address, SIZE);
		ASSERT_LE(0, fence.fd);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->to.address));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->from.address));
		now = accmem_sysfs(self->path, "free_bytes");
		ended = poll(&fence, 1, 0);
		EXPECT_TRUE(signals(fence.fd));
		EXPECT_EQ(-1, accmem_sysfs_wait(self->path, "free_bytes",
						live + 2 * SIZE, 5000));
		close(fence.fd);
	}
	EXPECT_EQ(0, ended);
	EXPECT_EQ(live, now);
}

TEST_F(edu, a_full_queue_refuses_a_job)
{
	int fences[9], i, n = 0;

	for (i = 0; i < 9; i++) {
		fences[n] = copy(self->engine, self->fd, self->to.address,
				 self->from.address, SIZE);
		n += fences[n] >= 0;
	}
	/* a job may have ended already */
	if (n == 9)
		EXPECT_EQ(-EAGAIN,
			  copy(self->engine, self->fd, self->to.address,
			       self->from.address, SIZE));
	EXPECT_LE(8, n);
	for (i = 0; i < n; i++) {
		EXPECT_TRUE(signals(fences[i]));
		close(fences[i]);
	}
}

TEST_F(edu, refused)
{
	uint64_t to = self->to.address, from = self->from.address;
	int other = accmem_opened(self->path);

	EXPECT_EQ(-EINVAL, copy(self->engine, self->fd, to, from, 0));
	EXPECT_EQ(-EINVAL, copy(self->engine, self->fd, to + 1, from, 8));
	EXPECT_EQ(-EINVAL,
		  copy(self->engine, self->fd, to, from, ACCMEM_EDU_MAX + 8));
	EXPECT_EQ(-EBADF, copy(self->engine, -1, to, from, 8));
	EXPECT_EQ(-EBADF, copy(self->engine, self->engine, to, from, 8));
	EXPECT_EQ(-ENOENT, copy(self->engine, other, to, from, 8));
	EXPECT_EQ(-ERANGE, copy(self->engine, self->fd, to + 8, from, SIZE));
	EXPECT_EQ(-1, ioctl(self->engine, ACCMEM_EDU_COPY, NULL));
	EXPECT_EQ(EFAULT, errno);
	close(other);
}

ACCMEM_HARNESS_MAIN
