// SPDX-License-Identifier: GPL-2.0
/*
 * REALLOC of buffers that are mapped or pinned. The tests check the contents that old
 * and new mappings show, and that the device reads.
 */
#include "realloc_util.h"

REALLOC_FIXTURE(realloc_map)

/* Mappings of a buffer that has moved keep the old memory, as after FREE. */
TEST_F(realloc_map, old_mappings_stay_on_the_old_memory)
{
	struct accmem_alloc a, b;
	struct accmem_realloc r;
	char *old;

	ASSERT_EQ(0, alloc(self->fd, KIB(64), 0, &a));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	old = map_at(self->fd, a.address, KIB(64));
	ASSERT_NE(NULL, old);
	accmem_fill(old, KIB(64), 3);
	ASSERT_EQ(0,
		  accmem_ioctl_realloc(self->fd, a.address, KIB(128), 0, &r));
	ASSERT_NE(a.address, r.address);
	ASSERT_EQ(-1, accmem_check(old, KIB(64), 3));
	ASSERT_EQ(KIB(64), accmem_sysfs(variant->path, "detached_bytes"));
	accmem_fill(old, KIB(64), 4);
	ASSERT_EQ(-1, check_at(self->fd, r.address, KIB(64), KIB(128), 3));
	unmap(old, KIB(64));
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "detached_bytes", 0, 10000));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	ASSERT_EQ(0, unblock(self->fd, &b));
}

/*
 * When a buffer is resized in place, its mappings stay valid. Access to the freed part
 * is SIGBUS. After growth the same mapping shows the new part.
 */
TEST_F(realloc_map, mappings_go_on)
{
	struct accmem_alloc a = { .length = MIB(8),
				  .alignment = MIB(2),
				  .flags = RESIZABLE,
				  .reserve = MIB(8) };
	struct accmem_realloc r;
	uint64_t value = 1;
	char *p;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	p = accmem_mapped_huge(self->fd, &a, MIB(8));
	accmem_fill(p, MIB(8), 8);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(4), 0, &r));
	ASSERT_EQ(a.address, r.address);
	ASSERT_EQ(MIB(4), r.footprint);
	EXPECT_EQ(-1, accmem_check(p, MIB(4), 8));
	EXPECT_EQ(SIGBUS, accmem_try_read(p + MIB(4), &value));
	EXPECT_EQ(SIGBUS, accmem_try_write(p + MIB(8) - 8, 1));
	ASSERT_EQ(MIB(4), accmem_sysfs(variant->path, "live_bytes"));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(6), IN_PLACE,
					  &r));
	EXPECT_EQ(-1, accmem_check(p, MIB(4), 8));
	EXPECT_EQ(-1, accmem_first_nonzero(p + MIB(4), MIB(2)));
	EXPECT_EQ(SIGBUS, accmem_try_read(p + MIB(6), &value));
	accmem_fill(p + MIB(4), MIB(2), 9);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(8), IN_PLACE,
					  &r));
	EXPECT_EQ(-1, accmem_check(p, MIB(4), 8));
	EXPECT_EQ(-1, accmem_check(p + MIB(4), MIB(2), 9));
	EXPECT_EQ(-1, accmem_first_nonzero(p + MIB(6), MIB(2)));
	munmap(p, MIB(8));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/*
 * Memory that was freed right behind a mapped buffer, in the same 2 MiB page, is in
 * quarantine where mappings hide pins. It does not make the buffer move.
 */
TEST_F(realloc_map, grows_over_memory_that_its_mapping_hides)
{
	struct accmem_alloc b, a = {
		.length = KIB(64),
		.flags = RESIZABLE | ACCMEM_ALLOC_FIXED,
		.address = self->info.address_base + self->info.capacity / 2,
	};
	struct accmem_realloc r;
	char *p, *behind;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	p = map_at(self->fd, a.address, KIB(64));
	behind = map_at(self->fd, b.address, GRANULE);
	ASSERT_TRUE(p && behind);
	accmem_fill(p, KIB(64), 5);
	accmem_fill(behind, GRANULE, 6);
	unmap(behind, GRANULE);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	ASSERT_EQ(0,
		  accmem_ioctl_realloc(self->fd, a.address, KIB(128), 0, &r));
	EXPECT_EQ(a.address, r.address);
	EXPECT_EQ(0, r.copied);
	EXPECT_EQ(-1, accmem_check(p, KIB(64), 5));
	unmap(p, KIB(64));
	EXPECT_EQ(-1, check_at(self->fd, r.address, KIB(64), KIB(128), 5));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
}

static int device_moves(int fd, uint64_t address, uint64_t *value, uint32_t op)
{
	struct accmem_access access = {
		.size = sizeof(access),
		.op = op,
		.address = address,
		.length = sizeof(*value),
		.data = (uintptr_t)value,
	};

	return accmem_ioctl_access(fd, &access);
}

/*
 * A buffer grows by new memory. In some rounds the CPU or the device accesses its last
 * word, and in the end all of it.
 */
TEST_F(realloc_map, both_sides_reach_what_it_grew_by)
{
	const uint64_t step = KIB(64), most = MIB(8);
	struct accmem_realloc r;
	struct accmem_alloc a;
	uint64_t length, value;
	unsigned int i;
	char *p;

	ASSERT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "dirty_bytes", 0, 60000));
	ASSERT_EQ(0, alloc(self->fd, most, most, &a));
	p = accmem_mapped(self->fd, &a, most);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, step, 0, &r));
	for (i = 1, length = 2 * step; length <= most; i++, length += step) {
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, length,
						  0, &r));
		ASSERT_EQ(a.address, r.address);
		value = ~length;
		if (i % 8 == 3) {
			ASSERT_EQ(0,
				  device_moves(self->fd, a.address + length - 8,
					       &value, ACCMEM_ACCESS_WRITE));
		} else if (i % 8 == 7) {
			memcpy(p + length - 8, &value, 8);
		}
		/* half of the new part is freed, and allocated again */
		if (i == 50) {
			ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address,
							  length - 20 * step, 0,
							  &r));
			length -= 20 * step;
		}
	}
	for (length = step; length <= most; length += step) {
		EXPECT_EQ(-1,
			  accmem_first_nonzero(p + length - step, step - 8));
		ASSERT_EQ(0, device_moves(self->fd, a.address + length - 8,
					  &value, ACCMEM_ACCESS_READ));
		EXPECT_EQ(0, memcmp(&value, p + length - 8, 8));
		EXPECT_TRUE(!value || value == ~length);
	}
	munmap(p, most);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/*
 * The address of a small buffer that has grown is not a multiple of 2 MiB, so its large
 * pages do not coincide with huge entries of a mapping.
 */
TEST_F(realloc_map, both_sides_have_the_same_where_it_grew_beyond_two_mebibytes)
{
	const uint64_t size = MIB(6), page = GRANULE;
	struct accmem_alloc first, a, grown;
	struct accmem_realloc r;
	uint64_t i, at, start, value;
	char *p;

	ASSERT_EQ(0, alloc(self->fd, KIB(8), 0, &first));
	ASSERT_EQ(0, alloc(self->fd, MIB(1), 0, &a));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, size, 0, &r));
	grown = as_alloc(&r);
	p = accmem_mapped(self->fd, &grown, size);
	/* accesses around the begin of a huge entry */
	start = -(uintptr_t)p % MIB(2);
	for (i = 0; i < size; i += page) {
		at = (start + i) % size;
		*(volatile uint64_t *)(p + at) = ~at;
	}
	for (at = 0; at < size; at += page) {
		ASSERT_EQ(~at, *(volatile uint64_t *)(p + at));
		ASSERT_EQ(0, device_moves(self->fd, grown.address + at, &value,
					  ACCMEM_ACCESS_READ));
		ASSERT_EQ(~at, value);
	}
	munmap(p, size);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, grown.address));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, first.address));
}

/* the number of nonzero bytes in all memory that @fd can allocate, or -1 */
static int64_t nonzero_of_all(int fd, struct accmem_alloc *all, int max)
{
	int64_t bad = 0;
	int i, n;
	char *p;

	n = accmem_take_all(fd, ACCMEM_CACHE_WB, all, max);
	for (i = 0; i < n; i++) {
		p = map_at(fd, all[i].address, all[i].length);
		if (!p)
			return -1;
		bad += accmem_first_nonzero(p, all[i].length) != -1;
		unmap(p, all[i].length);
		accmem_ioctl_free(fd, all[i].address);
	}
	return n > 0 ? bad : -1;
}

/*
 * A mapping from before the buffer shrank shows a page of 2 MiB, and the buffer grows
 * into a part of it. Writes to the rest of that page must not reach other contexts.
 */
TEST_F(realloc_map, a_long_mapping_shows_no_more_than_the_buffer_has)
{
	struct accmem_alloc a = { .length = MIB(8),
				  .alignment = MIB(2),
				  .flags = RESIZABLE,
				  .reserve = MIB(8) };
	static struct accmem_alloc all[1024];
	struct accmem_realloc r;
	int other;
	char *p;

	other = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	p = accmem_mapped_huge(self->fd, &a, MIB(8));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2), 0, &r));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2) + KIB(64),
					  0, &r));
	ASSERT_EQ(a.address, r.address);
	ASSERT_EQ(0, accmem_try_write(p + MIB(2), 1));
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "dirty_bytes", 0, 60000));
	/* a write beyond the end, if it does not fault */
	accmem_try_write(p + MIB(3), 0x5ec7e7);
	munmap(p, MIB(8));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "dirty_bytes", 0, 60000));
	if (strcmp(variant->path, ACCMEM_DEV_EMULATED))
		EXPECT_EQ(0, nonzero_of_all(other, all, ARRAY_SIZE(all)));
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "dirty_bytes", 0, 60000));
	close(other);
}

/*
 * A pinned buffer can be resized in place only. Memory that it gives back is free when
 * the pin has gone.
 */
TEST_F(realloc_map, pinned)
{
	struct accmem_alloc a = { .length = MIB(8),
				  .alignment = MIB(2),
				  .flags = RESIZABLE };
	struct accmem_alloc b;
	struct accmem_realloc r;
	int pipes[2];
	char *p;

	if (!self->pins)
		return;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	p = accmem_mapped_huge(self->fd, &a, MIB(8));
	accmem_fill(p, MIB(8), 14);
	ASSERT_TRUE(accmem_pin(pipes, p + MIB(6), GRANULE));
	EXPECT_EQ(-EBUSY,
		  accmem_ioctl_realloc(self->fd, a.address, MIB(16), 0, NULL));
	ASSERT_TRUE(query_says(self->fd, a.address, MIB(8), MIB(8)));
	ASSERT_EQ(-1, accmem_check(p, MIB(8), 14));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2), 0, &r));
	EXPECT_EQ(a.address, r.address);
	EXPECT_LT(0, accmem_sysfs(variant->path, "quarantined_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	/* the pinned memory is no longer a part of the buffer */
	munmap(p, MIB(8));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(16), 0, &r));
	ASSERT_EQ(-1, check_at(self->fd, r.address, MIB(2), MIB(16), 14));
	accmem_unpin(pipes);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "quarantined_bytes", 0,
					20000));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	ASSERT_EQ(0, unblock(self->fd, &b));
}

ACCMEM_HARNESS_MAIN
