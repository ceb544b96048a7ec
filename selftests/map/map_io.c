// SPDX-License-Identifier: GPL-2.0
/*
 * I/O that pins pages of mappings: O_DIRECT on the scratch disk, vmsplice() and
 * process_vm_readv(). On backings without page structures each of them fails with
 * EFAULT and does no harm.
 *
 * Environment: ACCMEM_DISK, a block device to overwrite (default /dev/vda).
 */
#include <sys/prctl.h>

#include <linux/fs.h>

#include "accmem_test.h"

#define SOME_BYTES MIB(8) /* bytes of the other tests */
#define CHUNK MIB(4)
/* bytes of the main test: 64 MiB, or less where counts are scaled down */
#define DISK_BYTES (accmem_scale(100) < 100 ? 2 * SOME_BYTES : MIB(64))

FIXTURE(map_io)
{
	int fd;
	struct accmem_info info;
	struct accmem_alloc buf;
	bool pin;
	char *p;
};

ACCMEM_VARIANTS(map_io);

FIXTURE_SETUP(map_io)
{
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	self->pin = self->info.features & ACCMEM_FEATURE_PIN;
	EXPECT_EQ(self->pin, strcmp(variant->path, ACCMEM_DEV_NOPAGES) != 0);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, DISK_BYTES, 0, &self->buf));
	self->p = accmem_mapped_huge(self->fd, &self->buf, DISK_BYTES);
}

FIXTURE_TEARDOWN(map_io)
{
	munmap(self->p, DISK_BYTES);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

static int open_disk(int flags)
{
	const char *path = getenv("ACCMEM_DISK") ?: "/dev/vda";
	uint64_t bytes = 0;
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0) {
		printf("# %s: %s\n", path, strerror(errno));
		return -1;
	}
	if (ioctl(fd, BLKGETSIZE64, &bytes) || bytes < DISK_BYTES) {
		printf("# %s: too small\n", path);
		close(fd);
		return -1;
	}
	return fd;
}

/* writes @bytes of pattern @seed to the disk; their checksum, or 0 */
static uint64_t fill_disk(uint64_t seed, uint64_t bytes)
{
	char *block = malloc(CHUNK);
	uint64_t at, sum = 0;
	int fd = open_disk(O_RDWR);

	if (fd < 0 || !block)
		return 0;
	for (at = 0; at < bytes; at += CHUNK) {
		accmem_fill(block, CHUNK, seed + at);
		sum ^= accmem_checksum(block, CHUNK);
		if (pwrite(fd, block, CHUNK, at) != (ssize_t)CHUNK)
			return 0;
	}
	if (fsync(fd))
		return 0;
	close(fd);
	free(block);
	return sum;
}

static uint64_t sum_of(const char *p, uint64_t bytes)
{
	uint64_t at, sum = 0;

	for (at = 0; at < bytes; at += CHUNK)
		sum ^= accmem_checksum(p + at, CHUNK);
	return sum;
}

/* the checksum of the disk's contents, or 0 */
static uint64_t sum_of_disk(uint64_t bytes)
{
	char *block = malloc(CHUNK);
	uint64_t at, sum = 0;
	int fd = open_disk(O_RDWR);

	if (fd < 0 || !block || ioctl(fd, BLKFLSBUF))
		return 0;
	for (at = 0; at < bytes; at += CHUNK) {
		if (pread(fd, block, CHUNK, at) != (ssize_t)CHUNK)
			return 0;
		sum ^= accmem_checksum(block, CHUNK);
	}
	close(fd);
	free(block);
	return sum;
}

TEST_F(map_io, direct_read)
{
	uint64_t bytes = self->pin ? DISK_BYTES : SOME_BYTES;
	uint64_t want = fill_disk(1, bytes), at;
	int disk = open_disk(O_RDONLY | O_DIRECT);

	ASSERT_NE(0, want);
	ASSERT_LE(0, disk);
	if (!self->pin) {
		EXPECT_EQ(-1, pread(disk, self->p, CHUNK, 0));
		EXPECT_EQ(EFAULT, errno);
		EXPECT_EQ(-1, accmem_first_nonzero(self->p, CHUNK));
		close(disk);
		return;
	}
	for (at = 0; at < bytes; at += CHUNK) {
		ASSERT_EQ(CHUNK, pread(disk, self->p + at, CHUNK, at)) {
			TH_LOG("%s", strerror(errno));
		}
	}
	EXPECT_EQ(want, sum_of(self->p, bytes));
	/* one call that overwrites the memory */
	memset(self->p, 0, bytes);
	ASSERT_EQ((ssize_t)bytes, pread(disk, self->p, bytes, 0));
	EXPECT_EQ(want, sum_of(self->p, bytes));
	close(disk);
}

TEST_F(map_io, direct_write)
{
	int disk = open_disk(O_WRONLY | O_DIRECT);
	uint64_t at, before;

	ASSERT_LE(0, disk);
	before = fill_disk(2, SOME_BYTES);
	ASSERT_NE(0, before);
	for (at = 0; at < SOME_BYTES; at += CHUNK)
		accmem_fill(self->p + at, CHUNK, 3 + at);
	if (!self->pin) {
		EXPECT_EQ(-1, pwrite(disk, self->p, CHUNK, 0));
		EXPECT_EQ(EFAULT, errno);
		close(disk);
		EXPECT_EQ(before, sum_of_disk(SOME_BYTES));
		return;
	}
	ASSERT_EQ(SOME_BYTES, pwrite(disk, self->p, SOME_BYTES, 0));
	close(disk);
	EXPECT_EQ(sum_of(self->p, SOME_BYTES), sum_of_disk(SOME_BYTES));
}

/* Offsets and lengths that are not multiples of pages. */
TEST_F(map_io, direct_read_of_pieces)
{
	const uint64_t offsets[] = { 512, 4096 - 512, MIB(2) - 512,
				     MIB(2) + 1536 };
	int disk = open_disk(O_RDONLY | O_DIRECT);
	char *copy = malloc(CHUNK);
	unsigned int i;

	if (!self->pin)
		return; /* direct_read */
	ASSERT_LE(0, disk);
	ASSERT_NE(0, fill_disk(4, SOME_BYTES));
	accmem_fill(copy, CHUNK, 4);
	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		memset(self->p, 0xff, CHUNK);
		ASSERT_EQ(5120, pread(disk, self->p + offsets[i], 5120, 1024));
		EXPECT_EQ(0, memcmp(self->p + offsets[i], copy + 1024, 5120));
		EXPECT_EQ((char)0xff, self->p[offsets[i] - 1]);
		EXPECT_EQ((char)0xff, self->p[offsets[i] + 5120]);
	}
	free(copy);
	close(disk);
}

/* I/O through the page cache copies, so it works on every backing. */
TEST_F(map_io, buffered_read_and_write)
{
	uint64_t want = fill_disk(5, SOME_BYTES);
	int disk = open_disk(O_RDWR);

	ASSERT_NE(0, want);
	ASSERT_LE(0, disk);
	ASSERT_EQ(SOME_BYTES, pread(disk, self->p, SOME_BYTES, 0));
	EXPECT_EQ(want, sum_of(self->p, SOME_BYTES));
	self->p[100] ^= 1;
	ASSERT_EQ(SOME_BYTES, pwrite(disk, self->p, SOME_BYTES, 0));
	ASSERT_EQ(0, fsync(disk));
	EXPECT_EQ(sum_of(self->p, SOME_BYTES), sum_of_disk(SOME_BYTES));
	close(disk);
}

TEST_F(map_io, vmsplice)
{
	struct iovec iov = { self->p + MIB(2) - 8192, 16384 };
	char copy[16384];
	int pipes[2];

	ASSERT_EQ(0, pipe(pipes));
	accmem_fill(self->p, MIB(4), 6);
	if (!self->pin) {
		EXPECT_EQ(-1, vmsplice(pipes[1], &iov, 1, 0));
		EXPECT_EQ(EFAULT, errno);
	} else {
		ASSERT_EQ(16384, vmsplice(pipes[1], &iov, 1, 0));
		/* the pipe has a reference: it reads later writes */
		self->p[MIB(2)] ^= 1;
		ASSERT_EQ(16384, read(pipes[0], copy, sizeof(copy)));
		EXPECT_EQ(0, memcmp(copy, iov.iov_base, sizeof(copy)));
	}
	/* copying works on every backing */
	ASSERT_EQ(16384, write(pipes[1], iov.iov_base, 16384));
	ASSERT_EQ(16384, read(pipes[0], self->p, 16384));
	EXPECT_EQ(0, memcmp(self->p, iov.iov_base, 16384));
	close(pipes[0]);
	close(pipes[1]);
}

struct remote {
	pid_t pid;
	char *p;
	bool pin;
};

/* in a child: reads and writes the parent's mapping */
static int child_reads_parent(void *arg)
{
	struct remote *r = arg;
	char *copy = malloc(MIB(3));
	struct iovec here = { copy, MIB(3) }, there = { r->p, MIB(3) };
	ssize_t n;

	munmap(r->p, DISK_BYTES);
	n = process_vm_readv(r->pid, &here, 1, &there, 1, 0);
	if (!r->pin)
		return n == -1 && errno == EFAULT ? 0 : 1;
	if (n != (ssize_t)MIB(3) || accmem_check(copy, MIB(3), 7) != -1)
		return 2;
	accmem_fill(copy, MIB(3), 8);
	n = process_vm_writev(r->pid, &here, 1, &there, 1, 0);
	return n == (ssize_t)MIB(3) ? 0 : 3;
}

TEST_F(map_io, process_vm)
{
	struct remote r = { .pid = getpid(), .p = self->p, .pin = self->pin };

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	accmem_fill(self->p, MIB(3), 7);
	EXPECT_EQ(0, accmem_in_child(child_reads_parent, &r));
	EXPECT_EQ(-1, accmem_check(self->p, MIB(3), self->pin ? 8 : 7));
}

/* FREE after the end of the I/O frees the memory at once. */
TEST_F(map_io, nothing_stays_pinned)
{
	int disk = open_disk(O_RDONLY | O_DIRECT);

	if (!self->pin)
		return; /* direct_read */
	ASSERT_LE(0, disk);
	ASSERT_EQ(CHUNK, pread(disk, self->p, CHUNK, 0));
	close(disk);
	munmap(self->p, DISK_BYTES);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->buf.address));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "quarantined_bytes", 0,
					5000));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
					self->info.capacity, 5000));
}

ACCMEM_HARNESS_MAIN
