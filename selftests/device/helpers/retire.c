// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that an administrator retires: free, live, cached, pinned, and retired already.
 * retire.sh loads the module for this program, since retired memory stays retired.
 */
#include "failed_util.h"

#define LENGTH MIB(4)

/* the parts of a fixture whose variants are not all devices */
static void set_up(struct __test_metadata *_metadata, const char *path, int *fd,
		   struct accmem_info *info)
{
	ASSERT_TRUE(accmem_is_idle(path, 20000));
	*fd = accmem_opened(path);
	ASSERT_EQ(0, accmem_ioctl_info(*fd, info));
}

static void tear_down(struct __test_metadata *_metadata, const char *path,
		      int fd)
{
	close(fd);
	EXPECT_TRUE(accmem_is_idle(path, 20000));
	EXPECT_TRUE(accmem_accounts_balance(path));
}

ACCMEM_FIXTURE(retire);

/* where the place of any buffer is known */
FIXTURE(retire_at)
{
	int fd;
	struct accmem_info info;
	struct accmem_alloc a;
};
ACCMEM_VARIANTS_RESERVED(retire_at);
FIXTURE_SETUP(retire_at)
{
	set_up(_metadata, variant->path, &self->fd, &self->info);
}
FIXTURE_TEARDOWN(retire_at)
{
	tear_down(_metadata, variant->path, self->fd);
}

/* where pages can be pinned */
FIXTURE(retire_pin)
{
	int fd;
	struct accmem_info info;
	struct accmem_alloc a;
};
ACCMEM_VARIANTS_WITH_PAGES(retire_pin);
FIXTURE_SETUP(retire_pin)
{
	set_up(_metadata, variant->path, &self->fd, &self->info);
}
FIXTURE_TEARDOWN(retire_pin)
{
	tear_down(_metadata, variant->path, self->fd);
}

static bool is_identity(const struct accmem_info *info)
{
	return info->translation == ACCMEM_TRANSLATION_IDENTITY;
}

/* what the device has lost so far */
static uint64_t lost(int fd)
{
	struct accmem_info info;

	return accmem_ioctl_info(fd, &info) ? ~0ull : info.retired_bytes;
}

static uint64_t pending(int fd)
{
	struct accmem_info info;

	return accmem_ioctl_info(fd, &info) ? ~0ull : info.retire_pending_bytes;
}

TEST_F(retire, free_memory_is_never_allocated_again)
{
	uint64_t at = self->info.capacity / 2 + 5 * GRANULE + 1;
	uint64_t before = lost(self->fd);

	ASSERT_EQ(0, retire(variant->path, at, GRANULE));
	EXPECT_EQ(before + 2 * GRANULE, lost(self->fd));
	EXPECT_EQ(before + 2 * GRANULE,
		  accmem_sysfs(variant->path, "retired_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	EXPECT_EQ(self->info.capacity - before - 2 * GRANULE,
		  take_all_but(self->fd, self->info.address_base, at,
			       is_identity(&self->info)));
	/* once more: nothing changes */
	ASSERT_EQ(0, retire(variant->path, at, 1));
	EXPECT_EQ(before + 2 * GRANULE, lost(self->fd));
	EXPECT_TRUE(failed_is(variant->path, at, "retired"));
}

TEST_F(retire, what_is_not_inside_is_refused)
{
	uint64_t capacity = self->info.capacity;

	EXPECT_EQ(-EINVAL, retire(variant->path, 0, 0));
	EXPECT_EQ(-EINVAL, retire(variant->path, capacity, 1));
	EXPECT_EQ(-EINVAL, retire(variant->path, capacity - 1, 2));
	EXPECT_EQ(-EINVAL, retire(variant->path, ~0ull, 2));
	EXPECT_EQ(-EINVAL, retire(variant->path, 2, ~0ull));
}

TEST_F(retire, good_pages_of_a_live_buffer_stay)
{
	uint64_t at, before = lost(self->fd), i;
	char *p;

	at = place(self->fd, variant->path, LENGTH, 0, &self->a);
	ASSERT_NE(~0ull, at);
	p = accmem_mapped_huge(self->fd, &self->a, LENGTH);
	for (i = 0; i < LENGTH; i += GRANULE)
		p[i] = i / GRANULE;
	ASSERT_EQ(0, retire(variant->path, at + 3 * GRANULE, GRANULE));
	EXPECT_EQ(GRANULE, pending(self->fd));
	EXPECT_EQ(before, lost(self->fd));
	EXPECT_TRUE(failed_is(variant->path, at + 3 * GRANULE, "pending"));
	for (i = 0; i < LENGTH; i += GRANULE) {
		if (i == 3 * GRANULE) {
			EXPECT_TRUE(read_fails(p + i + 8));
		} else {
			EXPECT_EQ((char)(i / GRANULE), p[i]);
		}
	}
	/* all but the failed granule */
	memset(p, 7, 3 * GRANULE);
	memset(p + 4 * GRANULE, 7, LENGTH - 4 * GRANULE);
	munmap(p, LENGTH);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "retire_pending_bytes",
					0, 10000));
	EXPECT_EQ(before + GRANULE, lost(self->fd));
	EXPECT_EQ(self->info.capacity - before - GRANULE,
		  take_all_but(self->fd, self->info.address_base,
			       at + 3 * GRANULE, is_identity(&self->info)));
	EXPECT_TRUE(failed_is(variant->path, at + 3 * GRANULE, "retired"));
}

TEST_F(retire, access_leaves_failed_memory_alone)
{
	uint64_t at, address, done;
	char bytes[64] = {};

	at = place(self->fd, variant->path, LENGTH, 0, &self->a);
	ASSERT_NE(~0ull, at);
	address = self->a.address + 16 * GRANULE;
	ASSERT_EQ(0, retire(variant->path, at + 16 * GRANULE + 100, 1));
	EXPECT_EQ(-EHWPOISON, access_at(self->fd, address, 64,
					ACCMEM_ACCESS_READ, bytes, &done));
	EXPECT_EQ(0, done);
	EXPECT_EQ(-EHWPOISON, access_at(self->fd, address + GRANULE - 64, 64,
					ACCMEM_ACCESS_WRITE, bytes, NULL));
	EXPECT_EQ(-EHWPOISON, access_at(self->fd, address - 1, 2,
					ACCMEM_ACCESS_READ, bytes, NULL));
	EXPECT_EQ(0, access_at(self->fd, address - 64, 64, ACCMEM_ACCESS_WRITE,
			       bytes, NULL));
	EXPECT_EQ(0, access_at(self->fd, address + GRANULE, 64,
			       ACCMEM_ACCESS_READ, bytes, NULL));
	/* a long call says how far it came */
	EXPECT_EQ(-EHWPOISON, access_at(self->fd, self->a.address, 32 * GRANULE,
					ACCMEM_ACCESS_FILL, NULL, &done));
	EXPECT_EQ(16 * GRANULE, done);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
}

TEST_F(retire, realloc_copies_no_failed_memory)
{
	uint64_t at, before = lost(self->fd);
	struct accmem_realloc r;
	struct accmem_alloc next;
	char byte = 5;

	at = place(self->fd, variant->path, LENGTH, ACCMEM_ALLOC_RESIZABLE,
		   &self->a);
	ASSERT_NE(~0ull, at);
	ASSERT_EQ(0, access_at(self->fd, self->a.address, 1,
			       ACCMEM_ACCESS_WRITE, &byte, NULL));
	ASSERT_EQ(0, retire(variant->path, at + LENGTH - GRANULE, GRANULE));
	if (is_identity(&self->info)) {
		/* the memory behind it is in use: it has to move */
		next = (struct accmem_alloc){
			.flags = ACCMEM_ALLOC_FIXED,
			.length = GRANULE,
			.address = self->a.address + LENGTH,
		};
		if (accmem_ioctl_alloc(self->fd, &next))
			next.address = 0; /* nothing is behind it */
		EXPECT_EQ(-EHWPOISON,
			  accmem_ioctl_realloc(self->fd, self->a.address,
					       2 * LENGTH, 0, &r));
		if (next.address)
			accmem_ioctl_free(self->fd, next.address);
	}
	byte = 0;
	EXPECT_EQ(0, access_at(self->fd, self->a.address, 1, ACCMEM_ACCESS_READ,
			       &byte, NULL));
	EXPECT_EQ(5, byte);
	/* the part with the failed granule is freed */
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, self->a.address, GRANULE, 0,
					  &r));
	EXPECT_EQ(before + GRANULE, lost(self->fd));
	EXPECT_EQ(0, pending(self->fd));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, r.address));
}

TEST_F(retire_at, cached_buffer_is_not_used_again)
{
	uint64_t at, before = lost(self->fd);
	struct accmem_alloc b;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, GRANULE, 0, &self->a));
	at = self->a.address - self->info.address_base;
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_EQ(0, retire(variant->path, at, GRANULE));
	EXPECT_EQ(0, pending(self->fd));
	EXPECT_EQ(before + GRANULE, lost(self->fd));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, GRANULE, 0, &b));
	EXPECT_NE(self->a.address, b.address);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	EXPECT_NE(~0ull,
		  take_all_but(self->fd, self->info.address_base, at, true));
	EXPECT_EQ(before + GRANULE, lost(self->fd));
}

#define SMALL 64

TEST_F(retire_at, small_buffers_leave_a_failed_page)
{
	struct accmem_alloc b[SMALL];
	uint64_t page, before = lost(self->fd);
	char bytes[64] = {};
	unsigned int i;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &self->a));
	page = self->a.address / GRANULE * GRANULE;
	ASSERT_EQ(0, retire(variant->path, page - self->info.address_base, 1));
	EXPECT_EQ(-EHWPOISON, access_at(self->fd, self->a.address, 64,
					ACCMEM_ACCESS_READ, bytes, NULL));
	for (i = 0; i < SMALL; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &b[i]));
		EXPECT_NE(page, b[i].address / GRANULE * GRANULE);
	}
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &self->a));
	EXPECT_NE(page, self->a.address / GRANULE * GRANULE);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	for (i = 0; i < SMALL; i++)
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, b[i].address));
	EXPECT_NE(~0ull, take_all_but(self->fd, self->info.address_base,
				      page - self->info.address_base, true));
	EXPECT_EQ(before + GRANULE, lost(self->fd));
}

TEST_F(retire_pin, pinned_memory_is_retired_after_the_pin)
{
	uint64_t at, before = lost(self->fd);
	int pipes[2];
	char *p;

	at = place(self->fd, variant->path, LENGTH, 0, &self->a);
	ASSERT_NE(~0ull, at);
	p = accmem_mapped(self->fd, &self->a, LENGTH);
	*p = 1;
	ASSERT_TRUE(accmem_pin(pipes, p, GRANULE));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	munmap(p, LENGTH);
	EXPECT_LT(0, accmem_sysfs(variant->path, "quarantined_bytes"));
	ASSERT_EQ(0, retire(variant->path, at, GRANULE));
	EXPECT_EQ(GRANULE, pending(self->fd));
	accmem_unpin(pipes);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "quarantined_bytes", 0,
					20000));
	EXPECT_EQ(0, pending(self->fd));
	EXPECT_EQ(before + GRANULE, lost(self->fd));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
}

TEST_F(retire_at, shared_memory_fails_where_its_copy_was)
{
	struct accmem_alloc a = { .length = MIB(2),
				  .kind = ACCMEM_KIND_SHARED };
	char byte = 3;
	char *p;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	p = accmem_mapped(self->fd, &a, MIB(2));
	ASSERT_EQ(0, access_at(self->fd, a.address, 1, ACCMEM_ACCESS_WRITE,
			       &byte, NULL));
	ASSERT_EQ(0, retire(variant->path,
			    a.address + GRANULE - self->info.address_base,
			    GRANULE));
	EXPECT_TRUE(read_fails(p));
	/* the device still has its good memory */
	EXPECT_EQ(0, access_at(self->fd, a.address, 1, ACCMEM_ACCESS_READ,
			       &byte, NULL));
	EXPECT_EQ(-EHWPOISON, access_at(self->fd, a.address + GRANULE, 1,
					ACCMEM_ACCESS_READ, &byte, NULL));
	munmap(p, MIB(2));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

ACCMEM_HARNESS_MAIN
