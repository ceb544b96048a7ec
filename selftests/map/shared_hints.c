// SPDX-License-Identifier: GPL-2.0
/*
 * Hints for shared memory. PREFETCH moves a piece before it is accessed. ADVISE sets
 * the side on which memory stays.
 */
#include "shared_util.h"

SHARED_FIXTURE(shared_hints)

TEST_F(shared_hints, prefetch_moves_before_the_touch)
{
	uint64_t address = self->a.address;

	memset(self->map, 5, LENGTH);
	EXPECT_EQ(0, prefetch(self->fd, address, LENGTH, 0));
	EXPECT_EQ(LENGTH, TO_DEVICE());
	EXPECT_EQ(5, device_get(self->fd, address + PIECE));
	EXPECT_EQ(LENGTH, TO_DEVICE());
	EXPECT_EQ(0, device_set(self->fd, address + 1, 6));
	/* one byte of a piece moves the piece */
	EXPECT_EQ(0, prefetch(self->fd, address + PIECE - 1, 1,
			      ACCMEM_PREFETCH_HOST));
	EXPECT_EQ(PIECE, TO_HOST());
	EXPECT_EQ(6, self->map[1]);
	EXPECT_EQ(PIECE, TO_HOST());
	/* the memory is on the right side already */
	EXPECT_EQ(0, prefetch(self->fd, address, LENGTH, 0));
	EXPECT_EQ(0, prefetch(self->fd, address, LENGTH, ACCMEM_PREFETCH_HOST));
	EXPECT_EQ(LENGTH, TO_DEVICE());
	EXPECT_EQ(PIECE, TO_HOST());
}

TEST_F(shared_hints, what_is_to_stay_stays_on_the_host)
{
	uint64_t address = self->a.address;
	int i;

	ASSERT_EQ(0, device_set(self->fd, address + 1, 9));
	ASSERT_EQ(0, advise(self->fd, address, 1, ACCMEM_ADVICE_STAY));
	for (i = 1; i < 10; i++) {
		self->map[0] = i;
		ASSERT_EQ(i, device_get(self->fd, address));
		ASSERT_EQ(0, device_set(self->fd, address + 1, i));
		ASSERT_EQ(i, load(self->map + 1));
	}
	EXPECT_EQ(0, prefetch(self->fd, address, PIECE, 0));
	EXPECT_EQ(0, TO_DEVICE());
	EXPECT_EQ(PIECE, TO_HOST());
	ASSERT_EQ(0, advise(self->fd, address, 1, ACCMEM_ADVICE_MOVE));
	EXPECT_EQ(9, device_get(self->fd, address));
	EXPECT_EQ(PIECE, TO_DEVICE());
}

TEST_F(shared_hints, wrong_hints_are_told)
{
	uint64_t address = self->a.address;
	struct accmem_prefetch p = { .size = sizeof(p),
				     .address = address,
				     .length = 1 };
	struct accmem_advise v = { .size = sizeof(v),
				   .address = address,
				   .length = 1 };
	struct accmem_alloc a;
	int other = accmem_dev_open(variant->path, O_RDWR);

	EXPECT_EQ(-EINVAL, prefetch(self->fd, address, 0, 0));
	EXPECT_EQ(-EINVAL, prefetch(self->fd, address, 1, 2));
	EXPECT_EQ(-EOVERFLOW, prefetch(self->fd, address, UINT64_MAX, 0));
	EXPECT_EQ(-ENXIO, prefetch(self->fd, address, LENGTH + 1, 0));
	EXPECT_EQ(-ENXIO, prefetch(self->fd, address + 1, LENGTH, 0));
	EXPECT_EQ(-ENOENT, prefetch(self->fd, 0, 1, 0));
	EXPECT_EQ(-ENOENT, prefetch(other, address, 1, 0));
	EXPECT_EQ(-EINVAL, advise(self->fd, address, 0, 0));
	EXPECT_EQ(-EINVAL, advise(self->fd, address, 1, 2));
	EXPECT_EQ(-EOVERFLOW, advise(self->fd, address, UINT64_MAX, 0));
	EXPECT_EQ(-ENXIO, advise(self->fd, address, LENGTH + 1, 0));
	EXPECT_EQ(-ENOENT, advise(other, address, 1, 0));
	close(other);
	p.reserved = 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_PREFETCH, &p));
	p.reserved = 0;
	p.size = 8;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_PREFETCH, &p));
	v.reserved = 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_ADVISE, &v));
	v.reserved = 0;
	v.flags = 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_ADVISE, &v));
	EXPECT_EQ(-EFAULT,
		  accmem_ioctl(self->fd, ACCMEM_IOC_ADVISE, (void *)8));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	EXPECT_EQ(-EOPNOTSUPP, prefetch(self->fd, a.address, 1, 0));
	EXPECT_EQ(-EOPNOTSUPP, advise(self->fd, a.address, 1, 0));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(-ENOENT, prefetch(self->fd, a.address, 1, 0));
}

#define MANY (24 * PIECE)

/*
 * A child prefetches pieces that the device has written to, and is killed when the
 * first has moved. Returns the number of bytes that moved, or -errno.
 */
static int64_t killed_prefetch(const char *path, int fd, uint64_t address)
{
	int64_t before = accmem_sysfs(path, "shared_to_host_bytes");
	unsigned char byte = 1;
	pid_t pid;
	int err = device_access(fd, address, &byte, MANY, ACCMEM_ACCESS_FILL);

	if (err)
		return err;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(-prefetch(fd, address, MANY, ACCMEM_PREFETCH_HOST));
	while (accmem_sysfs(path, "shared_to_host_bytes") == before &&
	       !waitpid(pid, &err, WNOHANG))
		;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return accmem_sysfs(path, "shared_to_host_bytes") - before;
}

/* The prefetch may end before the signal, but not in each try. */
TEST_F(shared_hints, a_prefetch_that_is_killed_ends)
{
	struct accmem_alloc a;
	int64_t moved = MANY;
	int i;

	ASSERT_EQ(0, alloc_shared(self->fd, MANY, &a));
	for (i = 0; i < 50 && moved == (int64_t)MANY; i++)
		moved = killed_prefetch(variant->path, self->fd, a.address);
	EXPECT_LT(0, moved);
	EXPECT_GT((int64_t)MANY, moved);
	EXPECT_EQ(1, device_get(self->fd, a.address + MANY - 1));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

ACCMEM_HARNESS_MAIN
