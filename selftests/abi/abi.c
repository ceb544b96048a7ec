// SPDX-License-Identifier: GPL-2.0
/*
 * Arguments that the ioctls refuse. A test changes one field of a call that would
 * succeed, and expects the errno that uapi/linux/accmem.h documents. No refused call
 * may leave anything allocated. abi_struct.c tests the structures.
 */
#include "accmem_test.h"

FIXTURE(abi)
{
	int fd;
	int64_t free_bytes;
	struct accmem_info info;
	struct accmem_alloc good;
};

ACCMEM_VARIANTS(abi);

FIXTURE_SETUP(abi)
{
	self->fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->fd) {
		TH_LOG("open %s: %s", variant->path, strerror(-self->fd));
	}
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	self->free_bytes = self->info.free_bytes;
	self->good = (struct accmem_alloc){
		.size = sizeof(self->good),
		.length = 3 * 4096,
	};
}

FIXTURE_TEARDOWN(abi)
{
	EXPECT_EQ(self->free_bytes, accmem_free_now(self->fd)) {
		TH_LOG("a refused call left something allocated");
	}
	close(self->fd);
}

/* The request that the other tests change succeeds. */
TEST_F(abi, good_alloc)
{
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->good));
	EXPECT_GT(self->free_bytes, accmem_free_now(self->fd));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->good.address));
}

TEST_F(abi, length_zero)
{
	self->good.length = 0;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, length_overflows)
{
	const uint64_t lengths[] = { ~0ull, ~0ull - 1, ~0ull - 4094 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		self->good.length = lengths[i];
		EXPECT_EQ(-EOVERFLOW,
			  accmem_ioctl_alloc(self->fd, &self->good)) {
			TH_LOG("length %#llx", (unsigned long long)lengths[i]);
		}
	}
}

TEST_F(abi, length_with_tail_overflows)
{
	/* a multiple of 4 KiB: only the 32 bytes more pass 2^64 */
	self->good.length = ~0ull - 4095;
	self->good.flags = ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32;
	EXPECT_EQ(-EOVERFLOW, accmem_ioctl_alloc(self->fd, &self->good));
	/* rounding to 32 */
	self->good.length = ~0ull - 30;
	self->good.flags = ACCMEM_ALLOC_ROUND32;
	EXPECT_EQ(-EOVERFLOW, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, length_with_alignment_overflows)
{
	ASSERT_LE(MIB(2), self->info.max_alignment);
	self->good.length = ~0ull - MIB(1) + 1;
	self->good.alignment = MIB(2);
	EXPECT_EQ(-EOVERFLOW, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, length_beyond_capacity)
{
	const uint64_t lengths[] = { self->info.capacity + 1, 1ull << 44,
				     1ull << 62, 1ull << 63 };
	unsigned int i;

	/* waits for the cleaner: no free run has the memory that is being cleared */
	ASSERT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "dirty_bytes", 0, 60000));
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		self->good.length = lengths[i];
		self->good.free_bytes = 1;
		self->good.largest_run = 1;
		EXPECT_EQ(-ENOMEM, accmem_ioctl_alloc(self->fd, &self->good));
		EXPECT_EQ(self->info.free_bytes, self->good.free_bytes);
		EXPECT_EQ(self->info.largest_run, self->good.largest_run);
	}
}

TEST_F(abi, alignment_no_power_of_two)
{
	const uint64_t alignments[] = { 3, 65, 0x1001, 0x1800, ~0ull };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(alignments); i++) {
		self->good.alignment = alignments[i];
		EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good)) {
			TH_LOG("alignment %#llx",
			       (unsigned long long)alignments[i]);
		}
	}
}

TEST_F(abi, alignment_too_large)
{
	self->good.alignment = self->info.max_alignment * 2;
	ASSERT_NE(0, self->good.alignment);
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	self->good.alignment = 1ull << 63;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, alloc_unknown_flag)
{
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		if (ACCMEM_ALLOC_FLAGS & (1u << bit))
			continue;
		self->good.flags = 1u << bit;
		EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good)) {
			TH_LOG("flag bit %u", bit);
		}
	}
}

TEST_F(abi, alloc_tail_without_rounding)
{
	self->good.flags = ACCMEM_ALLOC_TAIL32;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, alloc_unknown_kind)
{
	self->good.kind = ACCMEM_KIND_SHARED + 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	self->good.kind = 1u << 31;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	self->good.kind = ~0u;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
}

/* A device accepts exactly the kinds that are in its features. */
TEST_F(abi, alloc_kind)
{
	static const uint64_t feature[] = {
		[ACCMEM_KIND_DEVICE] = ~0ull,
		[ACCMEM_KIND_HOST] = ACCMEM_FEATURE_HOST,
		[ACCMEM_KIND_SHARED] = ACCMEM_FEATURE_SHARED,
	};
	struct accmem_query q;
	unsigned int kind;

	for (kind = 0; kind < ARRAY_SIZE(feature); kind++) {
		self->good.kind = kind;
		if (!(self->info.features & feature[kind])) {
			EXPECT_EQ(-EOPNOTSUPP,
				  accmem_ioctl_alloc(self->fd, &self->good));
			continue;
		}
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->good));
		EXPECT_EQ(0, accmem_ioctl_query(self->fd, self->good.address,
						&q));
		EXPECT_EQ(kind, q.kind);
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->good.address));
	}
}

TEST_F(abi, alloc_unknown_policy)
{
	self->good.page_policy = ACCMEM_PAGE_HUGE1G_ONLY + 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	self->good.page_policy = ~0u;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, alloc_unknown_cache_mode)
{
	self->good.cache_mode = ACCMEM_CACHE_UC + 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	/* would shift out of the set of modes */
	self->good.cache_mode = 32;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	self->good.cache_mode = ~0u;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, alloc_cache_mode_not_offered)
{
	unsigned int mode;

	for (mode = ACCMEM_CACHE_WB; mode <= ACCMEM_CACHE_UC; mode++) {
		self->good.cache_mode = mode;
		/* write-back, the default, stands for write-combining there */
		if (!(self->info.cache_modes & (1u << mode)) &&
		    mode != ACCMEM_CACHE_WB) {
			EXPECT_EQ(-EOPNOTSUPP,
				  accmem_ioctl_alloc(self->fd, &self->good));
			continue;
		}
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->good));
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->good.address));
	}
}

TEST_F(abi, unknown_carveout)
{
	struct accmem_info info = { .size = sizeof(info) };

	self->good.carveout = self->info.nr_carveouts;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	self->good.carveout = ~0u;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));

	info.carveout = self->info.nr_carveouts;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_INFO, &info));
	info.carveout = ~0u;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_INFO, &info));
}

TEST_F(abi, unknown_command)
{
	const unsigned long commands[] = {
		_IO(ACCMEM_IOC_MAGIC, 0xff),
		_IO(ACCMEM_IOC_MAGIC - 1, 0x01),
		_IOR(ACCMEM_IOC_MAGIC, 0x01, struct accmem_alloc),
		_IOW(ACCMEM_IOC_MAGIC, 0x01, struct accmem_alloc),
		_IOWR(ACCMEM_IOC_MAGIC, 0x01, struct accmem_alloc),
		0,
		0xffffffff,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		EXPECT_EQ(-ENOTTY, accmem_ioctl(self->fd, commands[i],
						&self->good)) {
			TH_LOG("command %#lx", commands[i]);
		}
		/* the command is checked before the structure */
		EXPECT_EQ(-ENOTTY,
			  accmem_ioctl(self->fd, commands[i], NULL));
	}
}

TEST_F(abi, free_unknown)
{
	const uint64_t base = self->info.address_base;
	const uint64_t span = self->info.address_span;
	const uint64_t addresses[] = { 0, 1, 4096, base - 4096, base,
				       base + span - 4096, base + span,
				       1ull << 63, ~0ull, ~0ull - 4095 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(addresses); i++) {
		EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, addresses[i]));
	}
}

TEST_F(abi, free_interior)
{
	struct accmem_alloc *a = &self->good;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, a));
	EXPECT_EQ(-EINVAL, accmem_ioctl_free(self->fd, a->address + 1));
	EXPECT_EQ(-EINVAL, accmem_ioctl_free(self->fd, a->address + 4096));
	EXPECT_EQ(-EINVAL,
		  accmem_ioctl_free(self->fd, a->address + a->usable - 1));
	/* there is no buffer past the end */
	EXPECT_EQ(-ENOENT,
		  accmem_ioctl_free(self->fd, a->address + a->footprint));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a->address));
}

TEST_F(abi, free_twice)
{
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->good));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->good.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, self->good.address));
}

TEST_F(abi, free_of_other_context)
{
	int other = accmem_opened(variant->path);

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->good));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(other, self->good.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(other, self->good.address + 4096));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->good.address));
	close(other);
}

TEST_F(abi, query_unknown)
{
	const uint64_t addresses[] = { 0, 1, self->info.address_base, ~0ull };
	struct accmem_query q;
	unsigned int i;
	int other;

	for (i = 0; i < ARRAY_SIZE(addresses); i++) {
		EXPECT_EQ(-ENOENT,
			  accmem_ioctl_query(self->fd, addresses[i], &q));
	}

	other = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->good));
	EXPECT_EQ(-ENOENT, accmem_ioctl_query(other, self->good.address, &q));
	EXPECT_EQ(-ENOENT, accmem_ioctl_query(self->fd, self->good.address - 1,
					      &q));
	EXPECT_EQ(-ENOENT,
		  accmem_ioctl_query(self->fd,
				     self->good.address + self->good.footprint,
				     &q));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->good.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_query(self->fd, self->good.address,
					      &q));
	close(other);
}

TEST_F(abi, use_after_close)
{
	int fd = accmem_opened(variant->path);
	struct accmem_query q;
	struct accmem_info info;

	ASSERT_EQ(0, accmem_ioctl_alloc(fd, &self->good));
	close(fd);
	EXPECT_EQ(-EBADF, accmem_ioctl_info(fd, &info));
	EXPECT_EQ(-EBADF, accmem_ioctl_alloc(fd, &self->good));
	EXPECT_EQ(-EBADF, accmem_ioctl_query(fd, self->good.address, &q));
	EXPECT_EQ(-EBADF, accmem_ioctl_free(fd, self->good.address));
	EXPECT_EQ(NULL, accmem_mmap(fd, &self->good, 4096, PROT_READ));
	EXPECT_EQ(EBADF, errno);
}

/* File operations that the device does not have fail, and do not hang. */
TEST_F(abi, other_file_calls)
{
	char byte = 0;

	EXPECT_EQ(-1, read(self->fd, &byte, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->fd, &byte, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ftruncate(self->fd, 4096));
}

ACCMEM_HARNESS_MAIN
