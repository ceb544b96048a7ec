// SPDX-License-Identifier: GPL-2.0
/*
 * Files behind mappings. All mappings of a buffer share one internal file, which is
 * made for the first of them. A mapping never gets more rights than the file that
 * mmap() was called on.
 */
#include "accmem_test.h"

#define MAPPINGS 400
#define FREED 300
/*
 * the kernel's count is inexact by about 32 files a processor, and other processes open
 * files
 */
#define STRAY 150

ACCMEM_FIXTURE(tenant_map)

static long nr_files(void)
{
	char text[64];

	if (accmem_read_file("/proc/sys/fs/file-nr", text, sizeof(text)) <= 0)
		return -1;
	return strtol(text, NULL, 10);
}

/* the number of files that many mappings of 4 KiB need; all are unmapped again */
static long files_of_mappings(int fd, const struct accmem_alloc *a)
{
	static char *p[MAPPINGS];
	unsigned int i, n;
	long before = nr_files(), files;

	for (n = 0; n < MAPPINGS; n++) {
		p[n] = accmem_mmap(fd, a, 4096, RW);
		if (!p[n])
			break;
		p[n][n] = 1;
	}
	files = nr_files() - before;
	for (i = 0; i < n; i++)
		munmap(p[i], 4096);
	return n == MAPPINGS ? files : -1000;
}

TEST_F(tenant_map, one_file_a_buffer)
{
	static const uint64_t lengths[] = { 64, 4096, MIB(4) };
	unsigned int i;
	long files;
	char *p;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, lengths[i], 0,
						&self->a));
		files = files_of_mappings(self->fd, &self->a);
		EXPECT_LE(-STRAY, files);
		EXPECT_GE(STRAY, files)
		{
			TH_LOG("%ld files for %u mappings of %llu bytes", files,
			       MAPPINGS, (unsigned long long)lengths[i]);
		}
		/* and the buffer can be mapped again */
		p = accmem_mmap(self->fd, &self->a, 4096, RW);
		EXPECT_NE(NULL, p);
		EXPECT_EQ(0, accmem_try_write(p, 1));
		munmap(p, 4096);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	}
}

/* A buffer without a mapping has no file. */
TEST_F(tenant_map, a_buffer_that_is_not_mapped_costs_no_file)
{
	struct accmem_alloc a;
	long before = nr_files();
	unsigned int i;

	for (i = 0; i < MAPPINGS; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	}
	EXPECT_GE(STRAY, nr_files() - before);
}

/* The last munmap() frees the file, and the memory of a freed buffer. */
TEST_F(tenant_map, the_file_goes_with_the_last_mapping)
{
	static char *p[FREED];
	long before = nr_files();
	unsigned int i;
	uint64_t end;

	for (i = 0; i < FREED; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 8192, 0, &self->a));
		p[i] = accmem_mapped(self->fd, &self->a, 4096);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	}
	EXPECT_EQ(FREED * 8192, accmem_sysfs(variant->path, "detached_bytes"));
	for (i = 0; i < FREED; i++)
		munmap(p[i], 4096);
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "detached_bytes", 0, 5000));
	/* the kernel frees the structures a little later */
	end = accmem_ms() + 10000;
	while (nr_files() - before > STRAY && accmem_ms() < end)
		usleep(1000);
	EXPECT_GE(STRAY, nr_files() - before);
}

/* A mapping of a file that is open for reading stays read-only. */
TEST_F(tenant_map, a_reader_s_mapping_stays_read_only)
{
	int fd = accmem_dev_open(variant->path, O_RDONLY);
	struct accmem_alloc a;
	uint64_t word;
	unsigned int i;
	char *p = NULL;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, accmem_alloc_bytes(fd, 8192, 0, &a));
	for (i = 0; i < 3; i++) {
		if (p)
			munmap(p, 8192);
		EXPECT_EQ(NULL, accmem_mmap(fd, &a, 8192, RW));
		EXPECT_EQ(EACCES, errno);
		p = accmem_mmap(fd, &a, 8192, PROT_READ);
		ASSERT_NE(NULL, p);
		EXPECT_EQ(0, accmem_try_read(p, &word));
		EXPECT_EQ(0, word);
		EXPECT_EQ(-1, mprotect(p, 8192, RW));
		EXPECT_EQ(EACCES, errno);
		EXPECT_EQ(-1, mprotect(p, 4096, PROT_WRITE));
		EXPECT_EQ(EACCES, errno);
		EXPECT_NE(0, accmem_try_write(p, 1));
	}
	close(fd);
	/* a mapping gets no more rights when its context has ended */
	EXPECT_EQ(-1, mprotect(p, 8192, RW));
	munmap(p, 8192);
}

/* A read-only mapping of a file that is open for writing may become writable. */
TEST_F(tenant_map, a_writer_s_mapping_may_become_writable)
{
	char *p, *q;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 8192, 0, &self->a));
	p = accmem_mmap(self->fd, &self->a, 8192, PROT_READ);
	q = accmem_mapped(self->fd, &self->a, 8192);
	ASSERT_NE(NULL, p);
	q[1] = 7;
	EXPECT_EQ(7, p[1]);
	EXPECT_EQ(0, mprotect(p, 8192, RW));
	p[1] = 8;
	EXPECT_EQ(8, q[1]);
	munmap(p, 8192);
	EXPECT_EQ(8, q[1]);
	munmap(q, 8192);
}

ACCMEM_HARNESS_MAIN
