// SPDX-License-Identifier: GPL-2.0
/*
 * Page table entries of 1 GiB, for huge_1g.sh, which makes the only device of a range of
 * 1 GiB without page structures. If the kernel has no such entries, the tests make the same
 * calls but do not count faults.
 */
#include "accmem_test.h"

#define DEV "/dev/accmem0"

FIXTURE(huge_1g)
{
	int fd;
	bool has_1g; /* the kernel makes entries of 1 GiB */
	struct accmem_alloc buf;
	char *p;
};

FIXTURE_VARIANT(huge_1g)
{
	uint32_t cache_mode;
};

/* clang-format off */
FIXTURE_VARIANT_ADD(huge_1g, wb)
{
	.cache_mode = ACCMEM_CACHE_WB,
};

FIXTURE_VARIANT_ADD(huge_1g, wc)
{
	.cache_mode = ACCMEM_CACHE_WC,
};
/* clang-format on */

FIXTURE_SETUP(huge_1g)
{
	const char *kernel = getenv("ACCMEM_KERNEL");

	self->has_1g = kernel && strcmp(kernel, "stock-6.1");
	self->fd = accmem_dev_open(DEV, O_RDWR);
	ASSERT_LE(0, self->fd);
	self->buf = (struct accmem_alloc){
		.length = GIB(1),
		.page_policy = ACCMEM_PAGE_HUGE1G_ONLY,
		.cache_mode = variant->cache_mode,
		.flags = ACCMEM_ALLOC_RESIZABLE,
	};
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->buf));
	ASSERT_EQ(GIB(1), self->buf.page_size);
	self->p = accmem_mapped(self->fd, &self->buf, GIB(1));
	ASSERT_NE(NULL, self->p);
}

FIXTURE_TEARDOWN(huge_1g)
{
	munmap(self->p, GIB(1));
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(DEV, 20000));
}

TEST_F(huge_1g, one_fault)
{
	long n = accmem_faults_to_write(self->p, GIB(1));

	if (self->has_1g)
		EXPECT_EQ(self->buf.mmap_offset % GIB(1),
			  (uintptr_t)self->p % GIB(1));
	printf("# %ld faults\n", n);
	EXPECT_GE(self->has_1g ? 2 : 512, n);
	EXPECT_LT(0, n);
}

/* A mapping that does not contain all of the GiB has entries of 2 MiB. */
TEST_F(huge_1g, part_has_entries_of_2m)
{
	char *q = accmem_mapped(self->fd, &self->buf, GIB(1) - 4096);
	long n;

	ASSERT_NE(NULL, q);
	EXPECT_EQ(self->buf.mmap_offset % MIB(2), (uintptr_t)q % MIB(2));
	n = accmem_faults_to_write(q, MIB(64));
	EXPECT_GE(34, n);
	EXPECT_LT(31, n);
	munmap(q, GIB(1) - 4096);
}

/* A program may ask for small entries. */
TEST_F(huge_1g, small_entries_on_request)
{
	ASSERT_EQ(0, madvise(self->p, GIB(1), MADV_NOHUGEPAGE));
	EXPECT_LE(32, accmem_faults_to_write(self->p, MIB(64)));
}

TEST_F(huge_1g, hole)
{
	char *hole = self->p + MIB(512) + 5 * 4096;

	accmem_fill(self->p + MIB(510), MIB(6), 1);
	ASSERT_EQ(0, munmap(hole, 4096));
	EXPECT_EQ(SIGSEGV, accmem_try_write(hole, 0));
	ASSERT_EQ(hole, accmem_mmap_at(hole, self->fd,
				       self->buf.mmap_offset + (hole - self->p),
				       4096, RW, MAP_SHARED | MAP_FIXED));
	EXPECT_EQ(-1, accmem_check(self->p + MIB(510), MIB(6), 1));
}

TEST_F(huge_1g, protected)
{
	char *mid = self->p + MIB(512) + 4096;

	accmem_fill(mid - 4096, MIB(2), 2);
	ASSERT_EQ(0, mprotect(mid, 4096, PROT_READ));
	EXPECT_EQ(SIGSEGV, accmem_try_write(mid, 0));
	EXPECT_EQ(-1, accmem_check(mid - 4096, MIB(2), 2));
	ASSERT_EQ(0, mprotect(mid, 4096, RW));
	accmem_fill(mid - 4096, MIB(2), 3);
	ASSERT_EQ(0, mprotect(self->p, GIB(1), PROT_READ));
	EXPECT_EQ(-1, accmem_check(mid - 4096, MIB(2), 3));
	EXPECT_EQ(SIGSEGV, accmem_try_write(mid, 0));
	ASSERT_EQ(0, mprotect(self->p, GIB(1), RW));
	accmem_fill(mid - 4096, MIB(2), 4);
	EXPECT_EQ(-1, accmem_check(mid - 4096, MIB(2), 4));
}

/* The kernel's log stays clean: see tools/vm.d/judge. */
TEST_F(huge_1g, moved)
{
	char *to = mmap(NULL, GIB(3), PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at = to + MIB(4) + 4096;
	uint64_t word;

	ASSERT_NE(MAP_FAILED, to);
	accmem_fill(self->p + MIB(700), MIB(2), 5);
	ASSERT_EQ(at, mremap(self->p, GIB(1), GIB(1),
			     MREMAP_MAYMOVE | MREMAP_FIXED, at));
	EXPECT_EQ(SIGSEGV, accmem_try_read(self->p + MIB(700), &word));
	EXPECT_EQ(-1, accmem_check(at + MIB(700), MIB(2), 5));
	/* back, and then a part, with both ends inside an entry */
	ASSERT_EQ(self->p, mremap(at, GIB(1), GIB(1),
				  MREMAP_MAYMOVE | MREMAP_FIXED, self->p));
	EXPECT_GE(512, accmem_faults_to_write(self->p, GIB(1)));
	accmem_fill(self->p + MIB(700), MIB(2), 6);
	ASSERT_EQ(at, mremap(self->p + MIB(700), MIB(1), MIB(1),
			     MREMAP_MAYMOVE | MREMAP_FIXED, at));
	EXPECT_EQ(-1, accmem_check(at, MIB(1), 6));
	EXPECT_EQ(0, accmem_try_write(self->p + MIB(701), 1));
	EXPECT_EQ(SIGSEGV, accmem_try_write(self->p + MIB(701) - 8, 1));
	munmap(to, GIB(3));
}

static int child_checks(void *arg)
{
	char *p = *(char **)arg;

	if (accmem_check(p + MIB(700), MIB(2), 7) != -1)
		return 1;
	if (munmap(p + MIB(300), 8192))
		return 2;
	return accmem_check(p + MIB(700), MIB(2), 7) == -1 ? 0 : 3;
}

TEST_F(huge_1g, child_splits_its_own)
{
	long before;

	accmem_fill(self->p + MIB(700), MIB(2), 7);
	EXPECT_EQ(0, accmem_in_child(child_checks, &self->p));
	before = accmem_faults();
	EXPECT_EQ(-1, accmem_check(self->p + MIB(700), MIB(2), 7));
	/* one of the mapping, and those of pages that the fork has shared */
	EXPECT_GE(8, accmem_faults() - before);
}

/* What a shrink frees is unmapped, and gets to another buffer as zeros. */
TEST_F(huge_1g, shrinks)
{
	struct accmem_alloc buf = { .length = GIB(1),
				    .cache_mode = variant->cache_mode,
				    .flags = ACCMEM_ALLOC_RESIZABLE };
	struct accmem_alloc other = { .length = MIB(256),
				      .cache_mode = variant->cache_mode };
	struct accmem_realloc r;
	char *q;

	munmap(self->p, GIB(1));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->buf.address));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &buf));
	self->p = accmem_mapped(self->fd, &buf, GIB(1));
	ASSERT_NE(NULL, self->p);
	EXPECT_GE(self->has_1g ? 2 : 512,
		  accmem_faults_to_write(self->p, GIB(1)));
	accmem_fill(self->p + MIB(500), MIB(20), 8);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, buf.address,
					  MIB(512) + 4096, 0, &r));
	EXPECT_EQ(SIGBUS, accmem_try_write(self->p + MIB(600), 1));
	EXPECT_EQ(SIGBUS, accmem_try_write(self->p + MIB(512) + 4096, 1));
	EXPECT_EQ(-1, accmem_check(self->p + MIB(500), MIB(12) + 4096, 8));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &other));
	q = accmem_mapped(self->fd, &other, MIB(256));
	ASSERT_NE(NULL, q);
	EXPECT_EQ(-1, accmem_sample_nonzero(q, MIB(256)));
	memset(q, 0xff, MIB(256));
	EXPECT_EQ(-1, accmem_check(self->p + MIB(500), MIB(12) + 4096, 8));
	munmap(q, MIB(256));
}

ACCMEM_HARNESS_MAIN
