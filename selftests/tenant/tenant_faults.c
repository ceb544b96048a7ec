// SPDX-License-Identifier: GPL-2.0
/*
 * Checks for pins cost only their owner. The driver finds out whether a tenant's
 * memory is pinned by unmapping it. No mapping of another tenant may be unmapped for
 * that, whatever its offset.
 */
#include "accmem_test.h"

#define GRANULES 16
#define ROUNDS 200

FIXTURE(tenant_faults)
{
	int fd, other;
	int pipes[2];
	struct accmem_info info;
	struct accmem_alloc block, kept;
};

ACCMEM_VARIANTS_WITH_PAGES(tenant_faults);

FIXTURE_SETUP(tenant_faults)
{
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->fd = accmem_opened(variant->path);
	self->other = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
}

FIXTURE_TEARDOWN(tenant_faults)
{
	close(self->fd);
	close(self->other);
	accmem_unpin(self->pipes);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

static long minor_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* the number of faults of accesses to @p; before each access an ALLOC of @fd fails */
static long faults_beside(int fd, const struct accmem_info *info,
			  volatile char *p, uint64_t length)
{
	struct accmem_alloc a;
	long before;
	unsigned int i;
	uint64_t at;

	for (at = 0; at < length; at += 4096)
		p[at] = 1;
	before = minor_faults();
	for (i = 0; i < ROUNDS; i++) {
		if (accmem_alloc_bytes(fd, info->capacity, 0, &a) != -ENOMEM)
			return -1;
		for (at = 0; at < length; at += 4096)
			p[at] = 2;
	}
	return minor_faults() - before;
}

/*
 * A tenant has a granule with a pinned page, and one of its small buffers is in
 * quarantine. Another tenant has mappings at the same offsets, in each of its first
 * granules.
 */
TEST_F(tenant_faults, a_pinned_slab_page_is_its_owner_s_affair)
{
	struct accmem_alloc all[GRANULES];
	unsigned int i;
	long faults;
	char *q[GRANULES];

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &self->block));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &self->kept));
	ASSERT_EQ(0, accmem_free_pinned(self->fd, &self->block, self->pipes));
	for (i = 0; i < GRANULES; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->other, 4096, 0, &all[i]));
		q[i] = accmem_mapped(self->other, &all[i], 4096);
		faults = faults_beside(self->fd, &self->info, q[i], 4096);
		EXPECT_LE(0, faults);
		EXPECT_GE(ROUNDS / 10, faults)
		{
			TH_LOG("%ld faults in %u rounds", faults, ROUNDS);
		}
	}
	for (i = 0; i < GRANULES; i++)
		munmap(q[i], 4096);
}

/* A buffer is pinned and freed. Another tenant maps a large buffer. */
TEST_F(tenant_faults, a_pinned_buffer_is_its_owner_s_affair)
{
	struct accmem_alloc a, b;
	long faults;
	char *q;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 8192, 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->other, MIB(4), 0, &b));
	q = accmem_mapped(self->other, &b, MIB(4));
	ASSERT_EQ(0, accmem_free_pinned(self->fd, &a, self->pipes));
	faults = faults_beside(self->fd, &self->info, q, MIB(4));
	EXPECT_LE(0, faults);
	EXPECT_GE(ROUNDS / 10, faults)
	{
		TH_LOG("%ld faults in %u rounds", faults, ROUNDS);
	}
	munmap(q, MIB(4));
}

/* When the pin has gone, all memory can be allocated again. */
TEST_F(tenant_faults, what_was_pinned_comes_back)
{
	struct accmem_alloc all;
	uint64_t end = accmem_ms() + 20000;
	int err;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &self->block));
	ASSERT_EQ(0, accmem_free_pinned(self->fd, &self->block, self->pipes));
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->other, self->info.capacity,
					      0, &all));
	accmem_unpin(self->pipes);
	do {
		err = accmem_alloc_bytes(self->other, self->info.capacity, 0,
					 &all);
	} while (err == -ENOMEM && accmem_ms() < end);
	EXPECT_EQ(0, err);
}

ACCMEM_HARNESS_MAIN
