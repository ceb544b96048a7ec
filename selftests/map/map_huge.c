// SPDX-License-Identifier: GPL-2.0
/*
 * Huge page table entries. An aligned mapping of a large buffer costs one fault for
 * each 2 MiB. When the kernel splits such an entry, no data is lost.
 */
#include <sys/socket.h>

#include "accmem_test.h"

FIXTURE(map_huge)
{
	int fd;
	struct accmem_info info;
	struct accmem_alloc buf;
	uint64_t length;
	char *p;
};

FIXTURE_VARIANT(map_huge)
{
	const char *path;
	uint64_t length; /* 0: all memory, up to 1 GiB */
	uint32_t cache_mode;
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(map_huge, emulated)
{
	.path = ACCMEM_DEV_EMULATED, .length = MIB(64),
};
/* The pages are present before the buffer has an address. */
FIXTURE_VARIANT_ADD(map_huge, emulated_populate)
{
	.path = ACCMEM_DEV_EMULATED, .length = MIB(64),
	.flags = ACCMEM_ALLOC_POPULATE,
};
FIXTURE_VARIANT_ADD(map_huge, phys)
{
	.path = ACCMEM_DEV_PHYS, .length = GIB(1),
};
FIXTURE_VARIANT_ADD(map_huge, nopages_wb)
{
	.path = ACCMEM_DEV_NOPAGES, .length = 0,
};
FIXTURE_VARIANT_ADD(map_huge, nopages_wc)
{
	.path = ACCMEM_DEV_NOPAGES, .length = 0, .cache_mode = ACCMEM_CACHE_WC,
};

FIXTURE_SETUP(map_huge)
{
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	self->length = variant->length;
	/* lanes with scaled counts may have small devices */
	if (accmem_scale(100) < 100 && self->length > self->info.capacity)
		self->length = 0;
	if (!self->length)
		self->length = self->info.capacity < GIB(1) ?
				       self->info.capacity / MIB(2) * MIB(2) :
				       GIB(1);
	ASSERT_LE(self->length, self->info.capacity) {
		TH_LOG("%s is too small for this test", variant->path);
	}
	self->buf = (struct accmem_alloc){
		.length = self->length,
		.page_policy = ACCMEM_PAGE_HUGE_ONLY,
		.cache_mode = variant->cache_mode,
		.flags = variant->flags,
	};
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->buf));
	ASSERT_EQ(MIB(2), self->buf.page_size);
	self->p = accmem_mapped_huge(self->fd, &self->buf, self->length);
	ASSERT_EQ(0, (uintptr_t)self->p % MIB(2));
}

FIXTURE_TEARDOWN(map_huge)
{
	munmap(self->p, self->length);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

/* Every page of 4 KiB is written and read. */
TEST_F(map_huge, one_fault_for_2m)
{
	volatile uint64_t *word = (volatile uint64_t *)self->p;
	uint64_t page, pages = self->length / 4096;
	unsigned int wrong = 0;
	long before, after;

	before = accmem_faults();
	for (page = 0; page < pages; page++)
		word[page * 512] = page + 1;
	after = accmem_faults();
	for (page = 0; page < pages; page++)
		wrong += word[page * 512] != page + 1;
	printf("# %s: %llu MiB touched in %ld faults\n", variant->path,
	       (unsigned long long)(self->length >> 20), after - before);
	EXPECT_EQ(0, wrong);
	EXPECT_GE(self->length / MIB(2), after - before);
	EXPECT_LT(0, after - before);
}

/*
 * Lets the kernel allocate and free @length bytes of objects, so that the page
 * structures have old values.
 */
static bool dirty_host_memory(int length)
{
	static const char text[2000];
	int sent, sock[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		return false;
	setsockopt(sock[0], SOL_SOCKET, SO_SNDBUFFORCE, &length,
		   sizeof(length));
	for (sent = 0; sent < length; sent += 4096)
		if (send(sock[0], text, sizeof(text), MSG_DONTWAIT) < 0)
			break;
	close(sock[0]);
	close(sock[1]);
	return sent > length / 2;
}

/* The former use of pages does not affect how they are mapped. */
TEST_F(map_huge, one_fault_for_2m_of_used_memory)
{
	ASSERT_TRUE(dirty_host_memory(MIB(accmem_scale(128))));
	EXPECT_GE(16, accmem_faults_to_write(self->p, MIB(32)));
}

/* Reads fault in the same way as writes. */
TEST_F(map_huge, one_fault_for_2m_read)
{
	long before = accmem_faults();

	EXPECT_EQ(-1, accmem_sample_nonzero(self->p, MIB(16)));
	EXPECT_GE(8, accmem_faults() - before);
}

/* mmap() without a hint returns an address that allows huge entries. */
TEST_F(map_huge, aligned_by_the_kernel)
{
	char *q;

	q = accmem_mapped(self->fd, &self->buf, MIB(32));
	EXPECT_EQ(self->buf.mmap_offset % MIB(2), (uintptr_t)q % MIB(2));
	EXPECT_GE(16, accmem_faults_to_write(q, MIB(32)));
	munmap(q, MIB(32));
}

TEST_F(map_huge, hole_in_an_entry)
{
	char *mid = self->p + MIB(2) + 5 * 4096;

	accmem_fill(self->p, MIB(6), 1);
	ASSERT_EQ(0, munmap(mid, 4096));
	EXPECT_EQ(SIGSEGV, accmem_try_write(mid, 0));
	EXPECT_EQ(-1, accmem_check(self->p, MIB(2) + 5 * 4096, 1));
	/* maps the hole again */
	ASSERT_EQ(mid, accmem_mmap_at(mid, self->fd,
				      self->buf.mmap_offset + MIB(2) +
					      5 * 4096,
				      4096, RW, MAP_SHARED | MAP_FIXED));
	EXPECT_EQ(-1, accmem_check(self->p, MIB(6), 1));
	accmem_fill(self->p, MIB(6), 2);
	EXPECT_EQ(-1, accmem_check(self->p, MIB(6), 2));
}

TEST_F(map_huge, mprotect_in_an_entry)
{
	char *mid = self->p + MIB(1);

	accmem_fill(self->p, MIB(4), 3);
	ASSERT_EQ(0, mprotect(mid, 4096, PROT_READ));
	EXPECT_EQ(SIGSEGV, accmem_try_write(mid, 0));
	EXPECT_EQ(0, accmem_try_write(mid + 4096, *(uint64_t *)(mid + 4096)));
	EXPECT_EQ(-1, accmem_check(self->p, MIB(4), 3));
	ASSERT_EQ(0, mprotect(mid, 4096, RW));
	accmem_fill(self->p, MIB(4), 4);
	EXPECT_EQ(-1, accmem_check(self->p, MIB(4), 4));
}

/* mremap() moves page tables, and splits them when it moves a part. */
TEST_F(map_huge, mremap_in_an_entry)
{
	char *hole = mmap(NULL, MIB(4), PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *from = self->p + MIB(2) + MIB(1), *to = hole + 4096;

	ASSERT_NE(MAP_FAILED, hole);
	accmem_fill(self->p, MIB(6), 5);
	ASSERT_EQ(to, mremap(from, MIB(1), MIB(1),
			     MREMAP_MAYMOVE | MREMAP_FIXED, to));
	EXPECT_EQ(-1, accmem_check(self->p, MIB(3), 5));
	ASSERT_EQ(from, mremap(to, MIB(1), MIB(1),
			       MREMAP_MAYMOVE | MREMAP_FIXED, from));
	EXPECT_EQ(-1, accmem_check(self->p, MIB(6), 5));
	munmap(hole, MIB(4));
}

static int child_splits(void *arg)
{
	char *p = *(char **)arg;

	if (accmem_check(p, MIB(4), 6) != -1)
		return 1;
	if (munmap(p + MIB(1), 8192))
		return 2;
	p[0] ^= 1;
	p[0] ^= 1;
	return 0;
}

TEST_F(map_huge, child_splits_its_own)
{
	long before;

	accmem_fill(self->p, MIB(4), 6);
	EXPECT_EQ(0, accmem_in_child(child_splits, &self->p));
	before = accmem_faults();
	EXPECT_EQ(-1, accmem_check(self->p, MIB(4), 6));
	EXPECT_GE(1, accmem_faults() - before);
}

ACCMEM_HARNESS_MAIN
