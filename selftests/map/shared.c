// SPDX-License-Identifier: GPL-2.0
/*
 * Shared memory. The CPU and the device each find the data that was written last, on
 * whichever side a piece is. A piece that was not written to since the last copy moves
 * without a copy.
 */
#include "shared_util.h"

SHARED_FIXTURE(shared)

TEST_F(shared, it_has_memory_on_both_sides)
{
	struct accmem_info device, host;
	struct accmem_query q;

	ASSERT_EQ(0, accmem_info_of(self->fd, 0, &device));
	ASSERT_EQ(0, accmem_info_of(self->fd, ACCMEM_INFO_HOST, &host));
	EXPECT_TRUE(device.features & ACCMEM_FEATURE_SHARED);
	EXPECT_EQ(LENGTH, device.capacity - device.free_bytes);
	EXPECT_EQ(LENGTH, host.capacity - host.free_bytes);
	/* and the rest of the last folio, if folios have owners */
	EXPECT_LE(2 * LENGTH, device.context_bytes);
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, self->a.address, &q));
	EXPECT_EQ(ACCMEM_KIND_SHARED, q.kind);
	EXPECT_EQ(LENGTH, q.usable);
	EXPECT_EQ(0, self->a.address % PIECE);
	EXPECT_EQ(0, accmem_sysfs(variant->path, "host/resident_bytes"));
}

TEST_F(shared, small_ones_have_a_granule_each)
{
	static const uint64_t lengths[] = { 1, 100, 2048, 4096, 5000 };
	struct accmem_alloc a[ARRAY_SIZE(lengths)];
	unsigned int i;
	char *map;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_EQ(0, alloc_shared(self->fd, lengths[i], &a[i]));
		EXPECT_EQ(0, a[i].address % 4096);
		EXPECT_EQ(ALIGN_UP(lengths[i], 4096), a[i].footprint);
		map = accmem_mapped(self->fd, &a[i], 1);
		map[0] = 'a' + i;
		munmap(map, 4096);
	}
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		EXPECT_EQ('a' + i, device_get(self->fd, a[i].address));
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	}
}

TEST_F(shared, it_is_zero_on_both_sides_and_nothing_is_copied)
{
	char *data = malloc(LENGTH);

	ASSERT_NE(NULL, data);
	memset(data, 1, LENGTH);
	ASSERT_EQ(0, device_read(self->fd, self->a.address, data, LENGTH));
	EXPECT_EQ(-1, accmem_first_nonzero(data, LENGTH));
	EXPECT_EQ(-1, accmem_first_nonzero(self->map, LENGTH));
	EXPECT_EQ(0, TO_DEVICE());
	EXPECT_EQ(0, TO_HOST());
	free(data);
}

/* The next owner of the memory finds zeros. */
TEST_F(shared, the_next_owner_finds_zeroes)
{
	char *data = malloc(LENGTH);
	struct accmem_alloc a;

	ASSERT_NE(NULL, data);
	memset(data, 0x5a, LENGTH);
	ASSERT_EQ(0, device_write(self->fd, self->a.address, data, LENGTH));
	memset(self->map, 0x5b, LENGTH);
	munmap(self->map, LENGTH);
	self->map = NULL;
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	self->a.address = 0;
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &a));
	ASSERT_EQ(0, device_read(self->fd, a.address, data, LENGTH));
	EXPECT_EQ(-1, accmem_first_nonzero(data, LENGTH));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_EQ(0, alloc_shared(self->fd, LENGTH, &a));
	ASSERT_EQ(0, device_read(self->fd, a.address, data, LENGTH));
	EXPECT_EQ(-1, accmem_first_nonzero(data, LENGTH));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	free(data);
}

/* The mapping shows the host's copy, also where the device's copy is write-combining. */
TEST_F(shared, mappings_are_write_back)
{
	struct accmem_query q;

	ASSERT_EQ(0, accmem_ioctl_query(self->fd, self->a.address, &q));
	EXPECT_EQ(ACCMEM_CACHE_WB, q.cache_mode);
	EXPECT_EQ(ACCMEM_KIND_SHARED, q.kind);
}

TEST_F(shared, what_it_cannot_be_is_told)
{
	struct accmem_alloc a = { .length = 4096, .kind = ACCMEM_KIND_SHARED };

	a.flags = ACCMEM_ALLOC_RESIZABLE;
	EXPECT_EQ(-EOPNOTSUPP, accmem_ioctl_alloc(self->fd, &a));
	a.reserve = 8192;
	EXPECT_EQ(-EOPNOTSUPP, accmem_ioctl_alloc(self->fd, &a));
	a = (struct accmem_alloc){ .length = 4096, .kind = ACCMEM_KIND_SHARED };
	a.cache_mode = ACCMEM_CACHE_WC;
	EXPECT_EQ(-EOPNOTSUPP, accmem_ioctl_alloc(self->fd, &a));
	a.cache_mode = ACCMEM_CACHE_WB;
	a.kind = ACCMEM_KIND_SHARED + 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a.kind = ACCMEM_KIND_SHARED;
	a.alignment = 3;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a.alignment = 0;
	a.carveout = 7;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(-EPERM, accmem_ioctl_realloc(self->fd, self->a.address, 8192,
					       0, NULL));
	a = (struct accmem_alloc){ .length = GIB(64),
				   .kind = ACCMEM_KIND_SHARED };
	EXPECT_EQ(-ENOMEM, accmem_ioctl_alloc(self->fd, &a));
}

/* --- bytes ---------------------------------------------------------------- */

TEST_F(shared, the_device_reads_what_the_cpu_wrote)
{
	char *data = malloc(LENGTH);

	ASSERT_NE(NULL, data);
	accmem_fill(self->map, LENGTH, 1);
	ASSERT_EQ(0, device_read(self->fd, self->a.address, data, LENGTH));
	EXPECT_EQ(-1, accmem_check(data, LENGTH, 1));
	EXPECT_EQ(LENGTH, TO_DEVICE());
	/* the CPU can still read */
	EXPECT_EQ(-1, accmem_check(self->map, LENGTH, 1));
	EXPECT_EQ(0, TO_HOST());
	free(data);
}

TEST_F(shared, the_cpu_reads_what_the_device_wrote)
{
	char *data = malloc(LENGTH);

	ASSERT_NE(NULL, data);
	accmem_fill(data, LENGTH, 2);
	ASSERT_EQ(0, device_write(self->fd, self->a.address, data, LENGTH));
	EXPECT_EQ(0, TO_HOST());
	EXPECT_EQ(-1, accmem_check(self->map, LENGTH, 2));
	EXPECT_EQ(LENGTH, TO_HOST());
	EXPECT_EQ(0, TO_DEVICE());
	free(data);
}

/* Each side changes bytes of a piece that the other side has written. */
TEST_F(shared, both_write_to_one_piece_by_turns)
{
	uint64_t at = PIECE + 5000;
	int i;

	for (i = 1; i < 20; i++) {
		self->map[at + i] = i;
		ASSERT_EQ(i, device_get(self->fd, self->a.address + at + i));
		ASSERT_EQ(0, device_set(self->fd, self->a.address + at - i, i));
		ASSERT_EQ(i, self->map[at - i]);
	}
	for (i = 1; i < 20; i++) {
		EXPECT_EQ(i, self->map[at + i]);
		EXPECT_EQ(i, device_get(self->fd, self->a.address + at - i));
	}
}

/* A page is mapped for reading, and then written to. */
TEST_F(shared, a_write_to_what_was_read_is_not_lost)
{
	int i;

	for (i = 1; i < 10; i++) {
		ASSERT_EQ(i - 1, load(self->map));
		self->map[0] = i;
		ASSERT_EQ(i, device_get(self->fd, self->a.address));
		/* the piece is valid on both sides now, and mapped read-only */
		ASSERT_EQ(i, load(self->map));
		ASSERT_EQ(i, device_get(self->fd, self->a.address));
	}
}

struct model {
	int fd;
	uint64_t address;
	char *map;
	char *wanted;
	char *got;
};

/* makes a random access of either side; true if it agrees with the model */
static bool random_call(struct model *m, uint64_t *seed)
{
	uint64_t at = accmem_random(seed) % LENGTH;
	uint64_t most = accmem_random(seed) % 8 ? 5000 : LENGTH;
	uint64_t length = accmem_random(seed) % most + 1;
	unsigned char byte = accmem_random(seed);

	if (length > LENGTH - at)
		length = LENGTH - at;
	switch (accmem_random(seed) % 8) {
	case 0:
	case 1:
		memset(m->map + at, byte, length);
		memset(m->wanted + at, byte, length);
		return true;
	case 2:
		memset(m->wanted + at, byte, length);
		return !device_access(m->fd, m->address + at, &byte, length,
				      ACCMEM_ACCESS_FILL);
	case 3:
		memset(m->got, byte, length);
		memset(m->wanted + at, byte, length);
		return !device_write(m->fd, m->address + at, m->got, length);
	case 4:
		return !device_read(m->fd, m->address + at, m->got, length) &&
		       !memcmp(m->got, m->wanted + at, length);
	case 5:
		return !prefetch(m->fd, m->address + at, length, byte % 2);
	case 6:
		return !advise(m->fd, m->address + at, length, byte % 2);
	default:
		return !memcmp(m->map + at, m->wanted + at, length);
	}
}

TEST_F(shared, random_calls_of_both_sides_agree_with_a_model)
{
	unsigned int i, nr = accmem_scale(2000);
	uint64_t seed = accmem_seed();
	struct model m = {
		.fd = self->fd,
		.address = self->a.address,
		.map = self->map,
		.wanted = calloc(1, LENGTH),
		.got = malloc(LENGTH),
	};

	ASSERT_NE(NULL, m.wanted);
	ASSERT_NE(NULL, m.got);
	for (i = 0; i < nr; i++)
		ASSERT_TRUE(random_call(&m, &seed))
	TH_LOG("call %u", i);
	EXPECT_EQ(0, memcmp(m.map, m.wanted, LENGTH));
	ASSERT_EQ(0, device_read(m.fd, m.address, m.got, LENGTH));
	EXPECT_EQ(0, memcmp(m.got, m.wanted, LENGTH));
	free(m.wanted);
	free(m.got);
}

/* --- clean pieces --------------------------------------------------------- */

TEST_F(shared, a_clean_piece_moves_without_a_copy)
{
	int64_t to_device;
	unsigned char byte;

	memset(self->map, 3, PIECE);
	ASSERT_EQ(3, device_get(self->fd, self->a.address));
	to_device = TO_DEVICE();
	EXPECT_EQ(PIECE, to_device);
	/* the CPU and the device read by turns, without a copy */
	for (byte = 0; byte < 5; byte++) {
		EXPECT_EQ(3, load(self->map + 4096 * byte));
		EXPECT_EQ(3, device_get(self->fd, self->a.address + byte));
	}
	EXPECT_EQ(to_device, TO_DEVICE());
	EXPECT_EQ(0, TO_HOST());
	/* the device writes: the host's copy is dropped */
	EXPECT_EQ(0, device_set(self->fd, self->a.address, 4));
	EXPECT_EQ(to_device, TO_DEVICE());
	EXPECT_EQ(1, CLEAN());
	EXPECT_EQ(4, load(self->map));
	EXPECT_EQ(PIECE, TO_HOST());
}

TEST_F(shared, only_the_piece_that_is_touched_moves)
{
	memset(self->map, 3, LENGTH);
	ASSERT_EQ(3, device_get(self->fd, self->a.address + PIECE));
	EXPECT_EQ(PIECE, TO_DEVICE());
	ASSERT_EQ(3, device_get(self->fd, self->a.address + 2 * PIECE));
	EXPECT_EQ(PIECE + KIB(12), TO_DEVICE());
}

TEST_F(shared, a_clean_piece_costs_two_faults)
{
	long before;
	int i;

	memset(self->map, 3, PIECE);
	ASSERT_EQ(3, device_get(self->fd, self->a.address));
	before = faults();
	for (i = 0; i < 512; i++)
		EXPECT_EQ(3, load(self->map + 4096 * i));
	/* a fault to read, and a fault to write */
	self->map[0] = 4;
	self->map[PIECE - 1] = 4;
	EXPECT_GE(2, faults() - before);
}

ACCMEM_HARNESS_MAIN
