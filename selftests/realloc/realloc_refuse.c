// SPDX-License-Identifier: GPL-2.0
/*
 * REALLOC calls that are refused. A test makes one argument wrong, and the buffer must
 * stay unchanged. The last tests check the charge of resized buffers.
 */
#include "realloc_util.h"

REALLOC_FIXTURE(realloc_refuse)

/* T4: only a resizable buffer can be resized. */
TEST_F(realloc_refuse, only_what_is_resizable)
{
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &a));
	EXPECT_EQ(-EPERM,
		  accmem_ioctl_realloc(self->fd, a.address, KIB(32), 0, NULL));
	ASSERT_TRUE(query_says(self->fd, a.address, KIB(64), KIB(64)));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

TEST_F(realloc_refuse, bad_address)
{
	int other = accmem_opened(variant->path);
	struct accmem_alloc a;

	ASSERT_EQ(0, alloc(self->fd, KIB(64), 0, &a));
	/* an unknown address, one of another context, and one inside a buffer */
	EXPECT_EQ(-ENOENT, accmem_ioctl_realloc(self->fd, 0, KIB(32), 0, NULL));
	EXPECT_EQ(-ENOENT,
		  accmem_ioctl_realloc(self->fd, ~0ull, KIB(32), 0, NULL));
	EXPECT_EQ(-ENOENT,
		  accmem_ioctl_realloc(other, a.address, KIB(32), 0, NULL));
	EXPECT_EQ(-EINVAL, accmem_ioctl_realloc(self->fd, a.address + 64,
						KIB(32), 0, NULL));
	ASSERT_TRUE(query_says(self->fd, a.address, KIB(64), KIB(64)));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	/* the address of a freed buffer */
	EXPECT_EQ(-ENOENT,
		  accmem_ioctl_realloc(self->fd, a.address, KIB(32), 0, NULL));
	close(other);
}

/* T6: an invalid length is refused. */
TEST_F(realloc_refuse, bad_length)
{
	struct accmem_realloc r;
	struct accmem_alloc a;
	uint64_t free_bytes;

	ASSERT_EQ(0, alloc(self->fd, KIB(64), 0, &a));
	ASSERT_EQ(0, fill_at(self->fd, a.address, KIB(64), 15));
	free_bytes = accmem_free_now(self->fd);
	EXPECT_EQ(-EINVAL,
		  accmem_ioctl_realloc(self->fd, a.address, 0, 0, NULL));
	EXPECT_EQ(-EOVERFLOW,
		  accmem_ioctl_realloc(self->fd, a.address, ~0ull, 0, NULL));
	EXPECT_EQ(-EOVERFLOW, accmem_ioctl_realloc(self->fd, a.address,
						   ~0ull - GRANULE, 0, NULL));
	EXPECT_EQ(-ENOMEM,
		  accmem_ioctl_realloc(self->fd, a.address, 1ull << 62, 0, &r));
	EXPECT_EQ(free_bytes, r.free_bytes);
	EXPECT_EQ(-ENOMEM,
		  accmem_ioctl_realloc(self->fd, a.address,
				       self->info.capacity + 1, 0, &r));
	EXPECT_EQ(free_bytes, r.free_bytes);
	EXPECT_NE(0, r.largest_run);
	EXPECT_EQ(a.address, r.address);
	ASSERT_TRUE(query_says(self->fd, a.address, KIB(64), KIB(64)));
	ASSERT_EQ(free_bytes, accmem_free_now(self->fd));
	ASSERT_EQ(-1, check_at(self->fd, a.address, KIB(64), KIB(64), 15));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

TEST_F(realloc_refuse, bad_reserve)
{
	struct accmem_alloc good = { .length = KIB(64),
				     .flags = RESIZABLE,
				     .reserve = KIB(128) },
			    a;

	a = good;
	a.flags = 0;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a = good;
	a.alignment = 3;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a.alignment = 0;
	a.reserve = KIB(64) - 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a.reserve = self->info.address_span + 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a.reserve = ~0ull;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a = good;
	a.flags |= ACCMEM_ALLOC_FIXED;
	a.address = self->info.address_base + self->info.address_span - KIB(64);
	EXPECT_EQ(self->identity ? 0 : -EINVAL,
		  accmem_ioctl_alloc(self->fd, &a));
	if (self->identity)
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	a = good;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* T6: a REALLOC whose answer cannot be written is not done, in place or by a move. */
TEST_F(realloc_refuse, answer_that_cannot_be_written)
{
	struct accmem_realloc *req =
		mmap(NULL, GRANULE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t lengths[] = { KIB(32), KIB(128), MIB(1) };
	uint64_t free_bytes;
	struct accmem_alloc a, b;
	unsigned int i;

	ASSERT_NE(MAP_FAILED, req);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_EQ(0, alloc(self->fd, KIB(64), 0, &a));
		if (i == 2)
			ASSERT_EQ(0, block(self->fd, &a, &b));
		ASSERT_EQ(0, fill_at(self->fd, a.address, KIB(64), 16));
		free_bytes = accmem_free_now(self->fd);
		*req = (struct accmem_realloc){ .size = sizeof(*req),
						.address = a.address,
						.length = lengths[i] };
		ASSERT_EQ(0, mprotect(req, GRANULE, PROT_READ));
		EXPECT_EQ(-EFAULT,
			  accmem_ioctl(self->fd, ACCMEM_IOC_REALLOC, req));
		ASSERT_EQ(0, mprotect(req, GRANULE, RW));
		EXPECT_TRUE(query_says(self->fd, a.address, KIB(64), KIB(64)));
		EXPECT_EQ(free_bytes, accmem_free_now(self->fd));
		EXPECT_EQ(-1,
			  check_at(self->fd, a.address, KIB(64), KIB(64), 16));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	}
	ASSERT_EQ(0, unblock(self->fd, &b));
	munmap(req, GRANULE);
}

/* A buffer grows in place to the last free granule. */
TEST_F(realloc_refuse, no_memory)
{
	static struct accmem_alloc rest[1024];
	struct accmem_realloc r;
	struct accmem_alloc a;
	int n;

	ASSERT_EQ(0, alloc(self->fd, MIB(2), 0, &a));
	ASSERT_EQ(0, fill_at(self->fd, a.address, MIB(2), 17));
	n = accmem_take_all(self->fd, ACCMEM_CACHE_WB, rest, 1024);
	ASSERT_LT(0, n);
	EXPECT_EQ(-ENOMEM,
		  accmem_ioctl_realloc(self->fd, a.address, MIB(4), 0, &r));
	EXPECT_EQ(0, r.free_bytes);
	ASSERT_TRUE(query_says(self->fd, a.address, MIB(2), MIB(2)));
	EXPECT_EQ(-1, check_at(self->fd, a.address, MIB(2), MIB(2), 17));
	/* the freed part can be allocated again */
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, 1, 0, &r));
	while (n--)
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, rest[n].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* Growth in place charges the new part only. A move charges both buffers for a while. */
TEST_F(realloc_refuse, charge_is_exact)
{
	int64_t saved = accmem_param("max_bytes_per_context");
	struct accmem_alloc a, b;
	struct accmem_realloc r;
	struct accmem_info info;

	ASSERT_LE(0, saved);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(8)));
	ASSERT_EQ(0, alloc(self->fd, MIB(4), MIB(16), &a));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(8), IN_PLACE,
					  &r));
	EXPECT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(MIB(8), info.context_bytes);
	EXPECT_EQ(-EDQUOT,
		  accmem_ioctl_realloc(self->fd, a.address, MIB(10), 0, NULL));
	EXPECT_TRUE(query_says(self->fd, a.address, MIB(8), MIB(8)));
	EXPECT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(MIB(8), info.context_bytes);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2), IN_PLACE,
					  &r));
	EXPECT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(MIB(2), info.context_bytes);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));

	ASSERT_EQ(0, alloc(self->fd, MIB(4), 0, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 0));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(8)));
	EXPECT_EQ(-EDQUOT,
		  accmem_ioctl_realloc(self->fd, a.address, MIB(6), 0, NULL));
	EXPECT_TRUE(query_says(self->fd, a.address, MIB(4), MIB(4)));
	EXPECT_EQ(0, accmem_param_set("max_bytes_per_context", saved));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_EQ(0, unblock(self->fd, &b));
}

/* The context is closed with resized buffers. */
TEST_F(realloc_refuse, exit_with_everything)
{
	int fd = accmem_opened(variant->path);
	struct accmem_alloc a;
	unsigned int i;

	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0,
			  alloc(fd, KIB(4) << (i % 4), i & 1 ? MIB(1) : 0, &a));
		ASSERT_EQ(0, accmem_ioctl_realloc(fd, a.address, KIB(100), 0,
						  NULL));
	}
	close(fd);
}

ACCMEM_HARNESS_MAIN
