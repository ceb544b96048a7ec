// SPDX-License-Identifier: GPL-2.0
/*
 * Arguments of mmap() and of calls on mappings. The driver refuses a range that is not
 * inside one buffer of the context, and the kinds of mappings that it does not
 * support.
 */
#include "accmem_test.h"

#define LENGTH (4 * 4096ull)

FIXTURE(abi_mmap)
{
	int fd;
	uint64_t free_bytes;
	struct accmem_alloc buf;
};

ACCMEM_VARIANTS(abi_mmap);

FIXTURE_SETUP(abi_mmap)
{
	self->fd = accmem_opened(variant->path);
	self->free_bytes = accmem_free_now(self->fd);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &self->buf));
	ASSERT_LE(LENGTH, self->buf.footprint);
}

FIXTURE_TEARDOWN(abi_mmap)
{
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->buf.address));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
					self->free_bytes, 5000)) {
		TH_LOG("a refused mapping kept memory");
	}
	close(self->fd);
}

/* the errno of mmap(), or 0; a mapping that succeeds is unmapped again */
static int map_errno(int fd, uint64_t offset, uint64_t length, int prot,
		     int flags)
{
	void *p = accmem_mmap_at(NULL, fd, offset, length, prot, flags);

	if (!p)
		return errno;
	munmap(p, length);
	return 0;
}

static int map_rw(int fd, uint64_t offset, uint64_t length)
{
	return map_errno(fd, offset, length, PROT_READ | PROT_WRITE,
			 MAP_SHARED);
}

TEST_F(abi_mmap, right)
{
	uint64_t at = self->buf.mmap_offset;

	EXPECT_EQ(0, map_rw(self->fd, at, LENGTH));
	EXPECT_EQ(0, map_rw(self->fd, at + 4096, LENGTH - 4096));
	EXPECT_EQ(0, map_rw(self->fd, at + LENGTH - 4096, 4096));
	EXPECT_EQ(0, map_errno(self->fd, at, LENGTH, PROT_NONE, MAP_SHARED));
	EXPECT_EQ(0, map_errno(self->fd, at, LENGTH, PROT_READ,
			       MAP_SHARED_VALIDATE));
}

TEST_F(abi_mmap, beyond_the_buffer)
{
	uint64_t at = self->buf.mmap_offset;
	uint64_t end = at + self->buf.footprint;

	/* begins inside and ends outside */
	EXPECT_EQ(ENXIO, map_rw(self->fd, at, self->buf.footprint + 4096));
	EXPECT_EQ(ENXIO, map_rw(self->fd, end - 4096, 8192));
	EXPECT_EQ(ENXIO, map_rw(self->fd, at, MIB(512)));
	/* begins outside */
	EXPECT_EQ(ENXIO, map_rw(self->fd, end, 4096));
	if (at) {
		EXPECT_EQ(ENXIO, map_rw(self->fd, at - 4096, 4096));
	}
	/* begins before the buffer and ends inside */
	if (at) {
		EXPECT_EQ(ENXIO, map_rw(self->fd, at - 4096, 8192));
	}
}

TEST_F(abi_mmap, offset_outside_of_everything)
{
	struct accmem_info info;

	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(ENXIO, map_rw(self->fd, info.address_span, 4096));
	EXPECT_EQ(ENXIO, map_rw(self->fd, (1ull << 44) - 8192, 4096));
	/* a device address is not an offset */
	if (info.address_base < 1ull << 43) {
		EXPECT_EQ(ENXIO, map_rw(self->fd, self->buf.address, 4096));
	}
}

TEST_F(abi_mmap, offset_overflows)
{
	if (sizeof(long) == 8) {
		/* offset + length overflows: the kernel's own error */
		EXPECT_EQ(EOVERFLOW, map_rw(self->fd, -4096ull, 4096));
		EXPECT_EQ(EOVERFLOW, map_rw(self->fd, -4096ull, LENGTH));
		EXPECT_EQ(ENXIO, map_rw(self->fd, -LENGTH - 4096, LENGTH));
		EXPECT_EQ(ENXIO, map_rw(self->fd, 1ull << 63, 4096));
	} else {
		/* the largest offset that mmap2() can pass */
		EXPECT_EQ(ENXIO,
			  map_rw(self->fd, (1ull << 44) - 4096, LENGTH));
		EXPECT_EQ(ENXIO,
			  map_rw(self->fd, (1ull << 44) - LENGTH - 4096,
				 LENGTH));
	}
}

TEST_F(abi_mmap, offset_between_pages)
{
	EXPECT_EQ(EINVAL, map_rw(self->fd, self->buf.mmap_offset + 64, 4096));
	EXPECT_EQ(EINVAL, map_rw(self->fd, self->buf.mmap_offset, 0));
}

/* A mapping from the start of one buffer to the end of the next. */
TEST_F(abi_mmap, across_two_buffers)
{
	struct accmem_alloc buf[32], *low = NULL, *high = NULL;
	uint64_t gap, best = ~0ull;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(buf); i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &buf[i]));
	}
	for (i = 0; i < ARRAY_SIZE(buf); i++) {
		for (j = 0; j < ARRAY_SIZE(buf); j++) {
			if (buf[j].address <= buf[i].address)
				continue;
			gap = buf[j].address - buf[i].address -
			      buf[i].footprint;
			if (gap < best) {
				best = gap;
				low = &buf[i];
				high = &buf[j];
			}
		}
	}
	ASSERT_NE(NULL, low);
	if (best)
		TH_LOG("no two buffers touch: %llu bytes between them",
		       (unsigned long long)best);
	EXPECT_EQ(ENXIO,
		  map_rw(self->fd, low->mmap_offset,
			 high->mmap_offset + LENGTH - low->mmap_offset));
	EXPECT_EQ(ENXIO, map_rw(self->fd,
				low->mmap_offset + low->footprint - 4096,
				best + 8192));
	for (i = 0; i < ARRAY_SIZE(buf); i++) {
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, buf[i].address));
	}
}

TEST_F(abi_mmap, other_contexts_buffer)
{
	int other = accmem_opened(variant->path);

	EXPECT_EQ(ENXIO, map_rw(other, self->buf.mmap_offset, 4096));
	EXPECT_EQ(ENXIO, map_rw(other, self->buf.mmap_offset, LENGTH));
	close(other);
}

TEST_F(abi_mmap, freed_buffer)
{
	struct accmem_alloc buf;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &buf));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, buf.address));
	EXPECT_EQ(ENXIO, map_rw(self->fd, buf.mmap_offset, 4096));
}

TEST_F(abi_mmap, executable)
{
	uint64_t at = self->buf.mmap_offset;
	void *p;

	EXPECT_EQ(EACCES, map_errno(self->fd, at, LENGTH, PROT_EXEC,
				    MAP_SHARED));
	EXPECT_EQ(EACCES, map_errno(self->fd, at, LENGTH,
				    PROT_READ | PROT_EXEC, MAP_SHARED));
	EXPECT_EQ(EACCES, map_errno(self->fd, at, LENGTH,
				    PROT_READ | PROT_WRITE | PROT_EXEC,
				    MAP_SHARED));
	/* mprotect() cannot add the right later */
	p = accmem_mmap(self->fd, &self->buf, LENGTH, PROT_READ);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, mprotect(p, LENGTH, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	munmap(p, LENGTH);
}

TEST_F(abi_mmap, private)
{
	uint64_t at = self->buf.mmap_offset;
	struct accmem_alloc buf;
	int fd;

	EXPECT_EQ(EINVAL, map_errno(self->fd, at, LENGTH, PROT_READ,
				    MAP_PRIVATE));
	EXPECT_EQ(EINVAL, map_errno(self->fd, at, LENGTH,
				    PROT_READ | PROT_WRITE, MAP_PRIVATE));
	/* a shared mapping of a read-only file has no VM_SHARED */
	fd = accmem_dev_open(variant->path, O_RDONLY);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, accmem_alloc_bytes(fd, LENGTH, 0, &buf));
	EXPECT_EQ(EINVAL, map_errno(fd, buf.mmap_offset, LENGTH, PROT_READ,
				    MAP_PRIVATE));
	EXPECT_EQ(EINVAL, map_errno(fd, buf.mmap_offset, LENGTH,
				    PROT_READ | PROT_WRITE, MAP_PRIVATE));
	close(fd);
}

TEST_F(abi_mmap, write_only_file)
{
	int fd = accmem_dev_open(variant->path, O_WRONLY);
	struct accmem_alloc buf;

	/* a mapping needs a readable file */
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, accmem_alloc_bytes(fd, LENGTH, 0, &buf));
	EXPECT_EQ(EACCES, map_rw(fd, buf.mmap_offset, LENGTH));
	close(fd);
}

TEST_F(abi_mmap, mremap_to_grow)
{
	void *p = accmem_mmap(self->fd, &self->buf, 4096,
			      PROT_READ | PROT_WRITE);

	ASSERT_NE(NULL, p);
	/* a mapping does not grow, past the buffer or within it */
	EXPECT_EQ(MAP_FAILED, mremap(p, 4096, 2 * LENGTH, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(MAP_FAILED, mremap(p, 4096, 8192, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(MAP_FAILED, mremap(p, 4096, 8192, 0));
	EXPECT_EQ(EFAULT, errno);
	/* old size 0 requests a second mapping */
	EXPECT_EQ(MAP_FAILED, mremap(p, 0, 8192, MREMAP_MAYMOVE));
	munmap(p, 4096);
}

TEST_F(abi_mmap, mremap_to_shrink_or_move)
{
	char *p = accmem_mmap(self->fd, &self->buf, LENGTH,
			      PROT_READ | PROT_WRITE);
	char *to = mmap(NULL, LENGTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	char *moved;

	ASSERT_NE(NULL, p);
	ASSERT_NE(MAP_FAILED, to);
	accmem_fill(p, LENGTH, 1);
	moved = mremap(p, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	ASSERT_EQ(to, moved);
	EXPECT_EQ(-1, accmem_check(moved, LENGTH, 1));
	ASSERT_EQ(moved, mremap(moved, LENGTH, 4096, 0));
	EXPECT_EQ(-1, accmem_check(moved, 4096, 1));
	munmap(moved, 4096);
}

/* remap_file_pages() cannot reach the pages of another buffer. */
TEST_F(abi_mmap, remap_file_pages)
{
	struct accmem_alloc theirs;
	uint64_t *p, *foreign, value = 0;
	int other = accmem_opened(variant->path);
	unsigned int i;
	size_t pgoff[3];

	ASSERT_EQ(0, accmem_alloc_bytes(other, LENGTH, 0, &theirs));
	foreign = accmem_mmap(other, &theirs, LENGTH, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, foreign);
	accmem_fill(foreign, LENGTH, 7);
	pgoff[0] = theirs.mmap_offset / 4096;
	pgoff[1] = self->buf.footprint / 4096;
	pgoff[2] = (self->buf.mmap_offset + self->buf.footprint) / 4096;

	for (i = 0; i < ARRAY_SIZE(pgoff); i++) {
		p = accmem_mmap(self->fd, &self->buf, 4096,
				PROT_READ | PROT_WRITE);
		ASSERT_NE(NULL, p);
		if (!syscall(SYS_remap_file_pages, p, 4096, 0, pgoff[i], 0) &&
		    !accmem_try_read(p, &value)) {
			EXPECT_EQ(0, value) {
				TH_LOG("offset %#zx shows foreign memory",
				       pgoff[i]);
			}
		}
		munmap(p, 4096);
	}
	EXPECT_EQ(-1, accmem_check(foreign, LENGTH, 7));
	munmap(foreign, LENGTH);
	close(other);
}

/* The file behind a mapping cannot be opened through /proc. */
TEST_F(abi_mmap, file_behind_the_mapping)
{
	char name[96];
	char *p =
		accmem_mmap(self->fd, &self->buf, 8192, PROT_READ | PROT_WRITE);

	ASSERT_NE(NULL, p);
	snprintf(name, sizeof(name), "/proc/self/map_files/%lx-%lx",
		 (unsigned long)p, (unsigned long)p + 8192);
	ASSERT_EQ(-1, open(name, O_RDWR));
	EXPECT_EQ(ENXIO, errno);
	accmem_fill(p, 8192, 3);
	EXPECT_EQ(-1, accmem_check(p, 8192, 3));
	munmap(p, 8192);
}

ACCMEM_HARNESS_MAIN
