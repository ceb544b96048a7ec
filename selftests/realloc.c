// SPDX-License-Identifier: GPL-2.0
/*
 * REALLOC: what a buffer keeps, what it is charged, what becomes of its mappings,
 * and what is refused; in each test of a refusal only one thing is wrong, and the
 * buffer is what it was. Every test ends with all memory free.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "accmem_util.h"
#include "stream_util.h"

#define RW (PROT_READ | PROT_WRITE)
#define GRANULE 4096ull
#define RESIZABLE ACCMEM_ALLOC_RESIZABLE
#define IN_PLACE ACCMEM_REALLOC_IN_PLACE

FIXTURE(realloc)
{
	int fd;
	bool identity;
	bool pins;
	struct accmem_info info;
};

ACCMEM_VARIANTS(realloc);

FIXTURE_SETUP(realloc)
{
	ASSERT_TRUE(accmem_is_idle(variant->path, 10000));
	self->fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	ASSERT_TRUE(self->info.features & ACCMEM_FEATURE_REALLOC);
	self->identity = self->info.translation == ACCMEM_TRANSLATION_IDENTITY;
	self->pins = self->info.features & ACCMEM_FEATURE_PIN;
}

FIXTURE_TEARDOWN(realloc)
{
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

static int alloc(int fd, uint64_t length, uint64_t reserve,
		 struct accmem_alloc *a)
{
	*a = (struct accmem_alloc){ .length = length,
				    .flags = RESIZABLE,
				    .reserve = reserve };
	return accmem_ioctl_alloc(fd, a);
}

static struct accmem_alloc as_alloc(const struct accmem_realloc *r)
{
	return (struct accmem_alloc){ .address = r->address,
				      .length = r->length,
				      .usable = r->usable,
				      .footprint = r->footprint,
				      .mmap_offset = r->mmap_offset,
				      .page_size = r->page_size,
				      .nr_runs = r->nr_runs };
}

/* maps @length bytes of the buffer at @address, which QUERY knows */
static char *map_at(int fd, uint64_t address, uint64_t length)
{
	struct accmem_query q;
	char *p;

	if (accmem_ioctl_query(fd, address, &q))
		return NULL;
	p = accmem_mmap_at(NULL, fd, q.mmap_offset,
			   ALIGN_UP(length + address % GRANULE, GRANULE), RW,
			   MAP_SHARED);
	return p ? p + address % GRANULE : NULL;
}

static void unmap(char *p, uint64_t length)
{
	uintptr_t start = (uintptr_t)p / GRANULE * GRANULE;

	munmap((void *)start, ALIGN_UP((uintptr_t)p + length - start, GRANULE));
}

static int fill_at(int fd, uint64_t address, uint64_t length, uint64_t seed)
{
	char *p = map_at(fd, address, length);

	if (!p)
		return -errno;
	accmem_fill(p, length, seed);
	unmap(p, length);
	return 0;
}

/* -1 where the first @kept bytes are the pattern and the rest is zero */
static int64_t check_at(int fd, uint64_t address, uint64_t kept,
			uint64_t length, uint64_t seed)
{
	char *p = map_at(fd, address, length);
	int64_t at;

	if (!p)
		return -2;
	at = accmem_check(p, kept, seed);
	if (at == -1 && length > kept)
		at = accmem_first_nonzero(p + kept, length - kept);
	unmap(p, length);
	return at;
}

/*
 * A buffer right behind another, which is in the way of its growth; or none where
 * the device's addresses end.
 */
static int block(int fd, const struct accmem_alloc *a, struct accmem_alloc *b)
{
	struct accmem_info info;

	*b = (struct accmem_alloc){ .length = GRANULE,
				    .address = a->address + a->footprint,
				    .flags = ACCMEM_ALLOC_FIXED };
	if (accmem_ioctl_info(fd, &info))
		return -errno;
	if (b->address == info.address_base + info.address_span) {
		b->address = 0;
		return 0;
	}
	return accmem_ioctl_alloc(fd, b);
}

static int unblock(int fd, const struct accmem_alloc *b)
{
	return b->address ? accmem_ioctl_free(fd, b->address) : 0;
}

static bool query_says(int fd, uint64_t address, uint64_t length,
		       uint64_t footprint)
{
	struct accmem_query q;

	return !accmem_ioctl_query(fd, address, &q) && q.base == address &&
	       q.length == length && q.usable == length &&
	       q.footprint == footprint;
}

/*
 * T7: growth in a reservation takes what it needs, keeps the address and every
 * byte, and copies nothing. What is new reads as zero (T5).
 */
TEST_F(realloc, grows_in_a_reservation)
{
	uint64_t length = KIB(64), before = accmem_free_now(self->fd);
	struct accmem_realloc r;
	struct accmem_alloc a;

	ASSERT_EQ(0, alloc(self->fd, length, MIB(4), &a));
	ASSERT_EQ(length, a.footprint);
	ASSERT_EQ(before - length, accmem_free_now(self->fd));
	ASSERT_EQ(0, fill_at(self->fd, a.address, length, 1));
	while (length < MIB(4)) {
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address,
						  length + KIB(64), 0, &r));
		ASSERT_EQ(a.address, r.address);
		ASSERT_EQ(0, r.copied);
		ASSERT_EQ(length + KIB(64), r.usable);
		ASSERT_EQ(length + KIB(64), r.footprint);
		ASSERT_EQ(a.mmap_offset, r.mmap_offset);
		ASSERT_EQ(0, r.free_bytes | r.largest_run);
		if (length == MIB(2))
			ASSERT_EQ(-1, check_at(self->fd, a.address, length,
					       r.usable, 1));
		length = r.usable;
		if (length == MIB(2))
			ASSERT_EQ(0, fill_at(self->fd, a.address, length, 1));
		ASSERT_EQ(before - length, accmem_free_now(self->fd));
	}
	ASSERT_TRUE(query_says(self->fd, a.address, length, length));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	ASSERT_EQ(-1, check_at(self->fd, a.address, MIB(2), length, 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_EQ(before, accmem_free_now(self->fd));
}

/* Mapped translation: a reservation is of addresses, as many as there are. */
TEST_F(realloc, a_reservation_takes_no_memory)
{
	struct accmem_alloc a, b, c;

	if (self->identity)
		return;
	ASSERT_EQ(0, alloc(self->fd, GRANULE, 4 * self->info.capacity, &a));
	EXPECT_EQ(GRANULE, a.footprint);
	EXPECT_EQ(self->info.free_bytes - GRANULE, accmem_free_now(self->fd));
	/* its addresses are taken, and name nothing */
	EXPECT_EQ(-EEXIST, block(self->fd, &a, &b));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, a.address + GRANULE));
	ASSERT_EQ(0, alloc(self->fd, GRANULE, MIB(64), &c));
	EXPECT_TRUE(c.address >= a.address + 4 * self->info.capacity ||
		    c.address + MIB(64) <= a.address);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, c.address));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	ASSERT_EQ(0, unblock(self->fd, &b));
}

/* T5: without a reservation, too, where nothing is behind it. */
TEST_F(realloc, grows_where_neighbours_allow)
{
	struct accmem_alloc a = {
		.length = KIB(64),
		.flags = RESIZABLE | ACCMEM_ALLOC_FIXED,
		.address = self->info.address_base + self->info.capacity / 2,
	};
	struct accmem_realloc r;
	struct accmem_alloc b;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	ASSERT_EQ(-ENOMEM, accmem_ioctl_realloc(self->fd, a.address, KIB(128),
						IN_PLACE, &r));
	EXPECT_NE(0, r.free_bytes);
	EXPECT_NE(0, r.largest_run);
	EXPECT_EQ(a.address, r.address);
	ASSERT_EQ(0, unblock(self->fd, &b));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, KIB(128),
					  IN_PLACE, &r));
	ASSERT_EQ(a.address, r.address);
	ASSERT_EQ(KIB(128), r.footprint);
	ASSERT_TRUE(query_says(self->fd, a.address, KIB(128), KIB(128)));
	/* what it has grown by is its own */
	EXPECT_EQ(-EEXIST, block(self->fd, &a, &b));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* What its context keeps of what was freed is not in the way. */
TEST_F(realloc, grows_over_what_is_kept)
{
	struct accmem_alloc a, b;
	struct accmem_realloc r;

	/* where addresses are memory, it may lie at the end of what is free */
	if (self->identity)
		return;
	ASSERT_EQ(0, alloc(self->fd, KIB(64), 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, GRANULE, 0, &b));
	ASSERT_EQ(a.address + KIB(64), b.address);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, KIB(128),
					  IN_PLACE, &r));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* Nor is what others keep, which counts as free, for one that has to stay there. */
TEST_F(realloc, grows_over_what_others_keep)
{
	int other = accmem_dev_open(variant->path, O_RDWR);
	struct accmem_alloc b[2], *kept = &b[0];
	struct accmem_alloc a = {
		.length = MIB(2),
		.flags = RESIZABLE | ACCMEM_ALLOC_FIXED,
	};
	unsigned int i;

	ASSERT_LE(0, other);
	for (i = 0; i < 2; i++) {
		b[i] = (struct accmem_alloc){ .length = KIB(64),
					      .alignment = MIB(2) };
		ASSERT_EQ(0, accmem_ioctl_alloc(other, &b[i]));
		/* there are 2 MiB before it */
		if (b[i].address > kept->address)
			kept = &b[i];
	}
	ASSERT_EQ(0, accmem_ioctl_free(other, b[kept == b].address));
	a.address = kept->address - MIB(2);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_free(other, kept->address));
	EXPECT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2) + KIB(64),
					  IN_PLACE, NULL));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	close(other);
}

/* Nor is a free whose fence has signalled. */
TEST_F(realloc, grows_over_what_is_due)
{
	struct accmem_alloc b, a = {
		.length = KIB(64),
		.flags = RESIZABLE | ACCMEM_ALLOC_FIXED,
		.address = self->info.address_base + self->info.capacity / 2,
	};
	unsigned int i, rounds = accmem_scale(20);
	int fences = fence_device(), file;
	uint32_t id;

	ASSERT_LE(0, fences);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	for (i = 0; i < rounds + 1; i++) {
		file = fence_create(fences, &id);
		ASSERT_LE(0, file);
		ASSERT_EQ(0, block(self->fd, &a, &b));
		ASSERT_EQ(0, fence_free(self->fd, b.address, file));
		ASSERT_EQ(0, fence_signal(fences, id, 0, 0));
		close(file);
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, KIB(128),
						  IN_PLACE, NULL));
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, KIB(64),
						  IN_PLACE, NULL));
	}
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	close(fences);
}

/* T5: otherwise it is moved; its old name is gone, and its bytes are kept. */
TEST_F(realloc, moves_where_they_do_not)
{
	struct accmem_alloc a, b;
	struct accmem_realloc r;

	ASSERT_EQ(0, alloc(self->fd, KIB(64), 0, &a));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	ASSERT_EQ(0, fill_at(self->fd, a.address, KIB(64), 2));
	ASSERT_EQ(0,
		  accmem_ioctl_realloc(self->fd, a.address, KIB(256), 0, &r));
	ASSERT_NE(a.address, r.address);
	ASSERT_EQ(KIB(64), r.copied);
	ASSERT_EQ(-ENOENT, accmem_ioctl_free(self->fd, a.address));
	ASSERT_TRUE(query_says(self->fd, r.address, KIB(256), KIB(256)));
	ASSERT_EQ(-1, check_at(self->fd, r.address, KIB(64), KIB(256), 2));
	ASSERT_EQ(1 + !!b.address, accmem_sysfs(variant->path, "buffers"));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	ASSERT_EQ(0, unblock(self->fd, &b));
}

/* Mappings of what has been moved stay on the old memory, as after FREE. */
#define HOLES 8

/* What it gets is runs, of which the kernel keeps a list: kmemleak looks after that. */
TEST_F(realloc, grows_into_holes)
{
	uint64_t hole = self->info.capacity / (2 * HOLES) / MIB(2) * MIB(2);
	struct accmem_alloc a, pieces[2 * HOLES], rest;
	struct accmem_realloc r;
	unsigned int i;

	/* a buffer is one run there */
	if (!(self->info.features & ACCMEM_FEATURE_SCATTER))
		return;
	for (i = 0; i < 2 * HOLES; i++)
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, hole, 0, &pieces[i]));
	while (!accmem_alloc_bytes(self->fd, MIB(2), 0, &rest))
		;
	for (i = 0; i < 2 * HOLES; i += 2)
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, pieces[i].address));
	ASSERT_EQ(0, accmem_drain(self->fd));
	ASSERT_EQ(0, alloc(self->fd, GRANULE, 0, &a));
	ASSERT_EQ(0, fill_at(self->fd, a.address, GRANULE, 7));
	for (i = 2; i < HOLES; i += 2) {
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, i * hole,
						  0, &r));
		EXPECT_LT(i / 2, r.nr_runs);
		a.address = r.address;
	}
	EXPECT_EQ(-1, check_at(self->fd, a.address, GRANULE, GRANULE, 7));
	/* back to one, and out of the way */
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, GRANULE, 0, &r));
	EXPECT_EQ(1, r.nr_runs);
	EXPECT_EQ(-1, check_at(self->fd, r.address, GRANULE, GRANULE, 7));
}

TEST_F(realloc, old_mappings_stay_on_the_old_memory)
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

/* what has been moved, freed and allocated again reads as zero */
TEST_F(realloc, what_was_copied_is_cleared)
{
	const uint64_t lengths[] = { 100, KIB(8), KIB(64), MIB(2) };
	struct accmem_alloc a, b, c;
	struct accmem_realloc r;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		a = (struct accmem_alloc){ .length = lengths[i],
					   .flags = RESIZABLE };
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
		if (lengths[i] >= GRANULE)
			ASSERT_EQ(0, block(self->fd, &a, &b));
		ASSERT_EQ(0,
			  fill_at(self->fd, a.address, lengths[i] / 8 * 8, 5));
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address,
						  2 * lengths[i], 0, &r));
		ASSERT_NE(a.address, r.address);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
		c = (struct accmem_alloc){ .length = 2 * lengths[i],
					   .flags = RESIZABLE };
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &c));
		ASSERT_EQ(-1, check_at(self->fd, c.address, 0,
				       2 * lengths[i] / 8 * 8, 0));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, c.address));
		if (lengths[i] >= GRANULE)
			ASSERT_EQ(0, unblock(self->fd, &b));
	}
}

/* Shrinking gives granules back to all; what comes back later is zero. */
TEST_F(realloc, shrinking_returns_granules)
{
	uint64_t before = accmem_free_now(self->fd);
	struct accmem_realloc r;
	struct accmem_alloc a, b;
	unsigned int mapped;
	uint64_t kept;

	for (mapped = 0; mapped < 2; mapped++) {
		ASSERT_EQ(0, alloc(self->fd, MIB(8), 0, &a));
		if (mapped)
			ASSERT_EQ(0, fill_at(self->fd, a.address, MIB(8), 6));
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address,
						  KIB(20) + 8, 0, &r));
		ASSERT_EQ(a.address, r.address);
		ASSERT_EQ(KIB(20) + 8, r.usable);
		kept = r.footprint;
		/* parts of a page of 2 MiB that was mapped stay */
		ASSERT_LE(KIB(24), kept);
		ASSERT_GE(mapped && self->pins ? MIB(4) : KIB(24), kept);
		ASSERT_EQ(before - kept, accmem_free_now(self->fd));
		ASSERT_EQ(kept, accmem_sysfs(variant->path, "live_bytes"));
		ASSERT_TRUE(query_says(self->fd, a.address, KIB(20) + 8, kept));
		a.footprint = kept;
		ASSERT_EQ(0, block(self->fd, &a, &b));
		ASSERT_EQ(0, unblock(self->fd, &b));
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(8),
						  0, &r));
		ASSERT_EQ(-1, check_at(self->fd, r.address,
				       mapped ? KIB(20) + 8 : 0, MIB(8), 6));
		ASSERT_EQ(before - MIB(8), accmem_free_now(self->fd));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	}
}

/* bytes between the length and the end of the last granule are nobody's */
TEST_F(realloc, what_was_beyond_the_end_reads_as_zero)
{
	struct accmem_realloc r;
	struct accmem_alloc a;
	char *p;

	ASSERT_EQ(0, alloc(self->fd, GRANULE, 0, &a));
	p = map_at(self->fd, a.address, GRANULE);
	ASSERT_NE(NULL, p);
	accmem_fill(p, GRANULE, 7);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, 3000, 0, &r));
	ASSERT_EQ(GRANULE, r.footprint);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, 4000, 0, &r));
	EXPECT_EQ(a.address, r.address);
	EXPECT_EQ(-1, accmem_check(p, 3000, 7));
	EXPECT_EQ(-1, accmem_first_nonzero(p + 3000, 1000));
	unmap(p, GRANULE);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/*
 * Resized in place, a buffer's mappings go on: what is gone is a SIGBUS, and
 * what is back is shown, on a mapping that has been there all the time.
 */
TEST_F(realloc, mappings_go_on)
{
	struct accmem_alloc a = { .length = MIB(8),
				  .alignment = MIB(2),
				  .flags = RESIZABLE,
				  .reserve = MIB(8) };
	struct accmem_realloc r;
	uint64_t value = 1;
	char *p;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	p = accmem_mmap_huge(self->fd, &a, MIB(8));
	ASSERT_NE(NULL, p);
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
 * A buffer grows by what nobody has had yet. The CPU, or the device, reaches the last
 * word of it now and then, and after that all of it.
 */
TEST_F(realloc, both_sides_reach_what_it_grew_by)
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
	p = accmem_mmap(self->fd, &a, most, RW);
	ASSERT_NE(NULL, p);
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
		/* half of what it grew by goes, and comes back as new */
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
 * The address of a small buffer that has grown is no multiple of 2 MiB: its pages are
 * not those of a mapping's entries.
 */
TEST_F(realloc, both_sides_have_the_same_where_it_grew_beyond_two_mebibytes)
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
	p = accmem_mmap(self->fd, &grown, size, RW);
	ASSERT_NE(NULL, p);
	/* from where an entry of 2 MiB would begin, and around */
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

/* how much of what @fd can have is not zero, or -1 */
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
 * A mapping from when the buffer was longer shows a page of 2 MiB of which it has grown
 * into a part. What is written to the rest of that page is not left to others.
 */
TEST_F(realloc, a_long_mapping_shows_no_more_than_the_buffer_has)
{
	struct accmem_alloc a = { .length = MIB(8),
				  .alignment = MIB(2),
				  .flags = RESIZABLE,
				  .reserve = MIB(8) };
	static struct accmem_alloc all[1024];
	struct accmem_realloc r;
	int other;
	char *p;

	other = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	p = accmem_mmap_huge(self->fd, &a, MIB(8));
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2), 0, &r));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2) + KIB(64),
					  0, &r));
	ASSERT_EQ(a.address, r.address);
	ASSERT_EQ(0, accmem_try_write(p + MIB(2), 1));
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "dirty_bytes", 0, 60000));
	/* beyond the end, where that does not fault */
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

/* A small buffer shares its granule as before, whatever becomes of it. */
TEST_F(realloc, small_buffers)
{
	static const struct {
		uint64_t from, to;
		bool stays;
	} rows[] = {
		{ 100, 120, true },    { 1000, 100, true },
		{ 100, 1000, false },  { 64, 2048, false },
		{ 2048, 4096, false }, { 8, KIB(64), false },
	};
	struct accmem_alloc a, other;
	struct accmem_realloc r;
	uint64_t kept;
	unsigned int i;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &other));
	ASSERT_EQ(0, fill_at(self->fd, other.address, 64, 10));
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		ASSERT_EQ(0, alloc(self->fd, rows[i].from, 0, &a));
		kept = (rows[i].from < rows[i].to ? rows[i].from : rows[i].to) /
		       8 * 8;
		ASSERT_EQ(0, fill_at(self->fd, a.address, rows[i].from / 8 * 8,
				     11));
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address,
						  rows[i].to, 0, &r));
		ASSERT_EQ(rows[i].stays, r.address == a.address);
		ASSERT_EQ(rows[i].to, r.usable);
		if (rows[i].to <= 2048)
			ASSERT_EQ(ALIGN_UP(rows[i].to, 64), r.footprint);
		ASSERT_TRUE(query_says(self->fd, r.address, rows[i].to,
				       r.footprint));
		ASSERT_EQ(-1, check_at(self->fd, r.address, kept,
				       rows[i].to / 8 * 8, 11))
		{
			TH_LOG("row %u", i);
		}
		ASSERT_EQ(-1, check_at(self->fd, other.address, 64, 64, 10));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	}
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, other.address));
}

/* A buffer of a batch leaves its row; the others stay what they are. */
TEST_F(realloc, rows_of_a_batch)
{
	struct accmem_batch_alloc e[8] = {};
	struct accmem_realloc r;
	unsigned int i;

	for (i = 0; i < 8; i++) {
		e[i].length = KIB(16);
		e[i].flags = RESIZABLE;
	}
	ASSERT_EQ(0, accmem_batch_allocs(self->fd, 0, e, 8, NULL));
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, e[i].result);
		ASSERT_EQ(0, fill_at(self->fd, e[i].address, KIB(16), i));
	}
	ASSERT_EQ(0,
		  accmem_ioctl_realloc(self->fd, e[3].address, KIB(8), 0, &r));
	ASSERT_EQ(e[3].address, r.address);
	ASSERT_EQ(0,
		  accmem_ioctl_realloc(self->fd, e[5].address, KIB(64), 0, &r));
	e[5].address = r.address;
	for (i = 0; i < 8; i++) {
		uint64_t kept = i == 3 ? KIB(8) : KIB(16);

		ASSERT_EQ(-1, check_at(self->fd, e[i].address, kept,
				       i == 5 ? KIB(64) : kept, i));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, e[i].address));
	}
}

/* Policies, modes, places and presence: a buffer stays what it was asked for. */
TEST_F(realloc, keeps_what_it_was_asked_for)
{
	static const struct accmem_alloc rows[] = {
		{ .page_policy = ACCMEM_PAGE_NORMAL_ONLY },
		{ .page_policy = ACCMEM_PAGE_HUGE_FIRST },
		{ .page_policy = ACCMEM_PAGE_HUGE_ONLY },
		{ .flags = ACCMEM_ALLOC_CONTIGUOUS },
		{ .flags = ACCMEM_ALLOC_TOP_DOWN },
		{ .flags = ACCMEM_ALLOC_POPULATE },
		{ .flags = ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32 },
		{ .alignment = KIB(64) },
		{ .cache_mode = ACCMEM_CACHE_WC },
		{ .cache_mode = ACCMEM_CACHE_UC },
	};
	const uint64_t lengths[] = { KIB(512), MIB(3), MIB(5), KIB(12) };
	struct accmem_query q, first;
	struct accmem_realloc r;
	struct accmem_alloc a;
	uint64_t address;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		a = rows[i];
		if (!(self->info.cache_modes & 1 << a.cache_mode))
			continue;
		a.flags |= RESIZABLE;
		a.length = KIB(64);
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
		ASSERT_EQ(0, fill_at(self->fd, a.address, KIB(12), 12));
		ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &first));
		address = a.address;
		for (j = 0; j < ARRAY_SIZE(lengths); j++) {
			ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, address,
							  lengths[j], 0, &r))
			{
				TH_LOG("row %u length %u", i, j);
			}
			address = r.address;
			ASSERT_EQ(0, accmem_ioctl_query(self->fd, address, &q));
			EXPECT_EQ(first.alloc_flags, q.alloc_flags);
			EXPECT_EQ(first.page_policy, q.page_policy);
			EXPECT_EQ(first.cache_mode, q.cache_mode);
			EXPECT_LE(first.alignment, q.alignment);
			EXPECT_EQ(0, address % q.alignment);
			EXPECT_EQ(lengths[j] + (a.flags & ACCMEM_ALLOC_TAIL32 ?
							32 :
							0),
				  q.usable);
			EXPECT_EQ(q.footprint, r.footprint);
			EXPECT_EQ(q.nr_runs, r.nr_runs);
			EXPECT_EQ(q.mmap_offset, r.mmap_offset);
			if (a.flags & ACCMEM_ALLOC_CONTIGUOUS)
				EXPECT_EQ(1, q.nr_runs);
			ASSERT_EQ(-1, check_at(self->fd, address, KIB(12),
					       lengths[j], 12))
			{
				TH_LOG("row %u length %u", i, j);
			}
		}
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, address));
	}
}

/* A buffer at a fixed address stays there while it can. */
TEST_F(realloc, fixed)
{
	uint64_t at = self->info.address_base + self->info.capacity / 2;
	struct accmem_alloc a = { .length = KIB(64),
				  .address = at,
				  .flags = RESIZABLE | ACCMEM_ALLOC_FIXED };
	struct accmem_realloc r;
	struct accmem_query q;
	struct accmem_alloc b;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, fill_at(self->fd, at, KIB(64), 13));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, at, MIB(1), 0, &r));
	ASSERT_EQ(at, r.address);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, at, KIB(64), 0, &r));
	a = as_alloc(&r);
	ASSERT_EQ(0, block(self->fd, &a, &b));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, at, MIB(4), 0, &r));
	ASSERT_NE(at, r.address);
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, r.address, &q));
	EXPECT_EQ(RESIZABLE, q.alloc_flags);
	ASSERT_EQ(-1, check_at(self->fd, r.address, KIB(64), MIB(4), 13));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	ASSERT_EQ(0, unblock(self->fd, &b));
}

/* Memory that has a position before it gives nothing back, and goes at it. */
TEST_F(realloc, pending_memory_waits_for_its_position)
{
	struct accmem_alloc a = { .length = KIB(64), .flags = RESIZABLE }, b;
	int stream = stream_create(self->fd);
	struct accmem_realloc r;

	ASSERT_LE(0, stream);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, stream_free(self->fd, a.address, stream, 5));
	a = (struct accmem_alloc){ .length = KIB(64), .flags = RESIZABLE };
	ASSERT_EQ(0, stream_alloc(self->fd, stream, &a));
	ASSERT_EQ(5, a.position);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, KIB(8), 0, &r));
	EXPECT_EQ(KIB(64), r.footprint);
	EXPECT_EQ(KIB(64), accmem_sysfs(variant->path, "live_bytes"));
	/* it moves, and what it leaves is not used before that */
	ASSERT_EQ(0, block(self->fd, &a, &b));
	ASSERT_EQ(0,
		  accmem_ioctl_realloc(self->fd, a.address, KIB(256), 0, &r));
	EXPECT_NE(a.address, r.address);
	EXPECT_EQ(KIB(64), accmem_sysfs(variant->path, "pending_bytes"));
	ASSERT_EQ(0, stream_signal(stream, 5));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "pending_bytes"));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	ASSERT_EQ(0, unblock(self->fd, &b));
	close(stream);
}

/* Pinned: in place only; what is given back goes when the pin does. */
TEST_F(realloc, pinned)
{
	struct accmem_alloc a = { .length = MIB(8),
				  .alignment = MIB(2),
				  .flags = RESIZABLE };
	struct accmem_alloc b;
	struct accmem_realloc r;
	struct iovec iov;
	int pipes[2];
	char *p;

	if (!self->pins)
		return;
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	p = accmem_mmap_huge(self->fd, &a, MIB(8));
	ASSERT_NE(NULL, p);
	accmem_fill(p, MIB(8), 14);
	iov.iov_base = p + MIB(6);
	iov.iov_len = GRANULE;
	ASSERT_EQ(GRANULE, vmsplice(pipes[1], &iov, 1, 0));
	EXPECT_EQ(-EBUSY,
		  accmem_ioctl_realloc(self->fd, a.address, MIB(16), 0, NULL));
	ASSERT_TRUE(query_says(self->fd, a.address, MIB(8), MIB(8)));
	ASSERT_EQ(-1, accmem_check(p, MIB(8), 14));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2), 0, &r));
	EXPECT_EQ(a.address, r.address);
	EXPECT_LT(0, accmem_sysfs(variant->path, "quarantined_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	/* the pin is of memory that it has no more */
	munmap(p, MIB(8));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(16), 0, &r));
	ASSERT_EQ(-1, check_at(self->fd, r.address, MIB(2), MIB(16), 14));
	close(pipes[0]);
	close(pipes[1]);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "quarantined_bytes", 0,
					20000));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	ASSERT_EQ(0, unblock(self->fd, &b));
}

static atomic_int touching;

/* It is to have faults, and not the processor. */
static void *touch_on_and_on(void *p)
{
	volatile char *c = p;

	while (atomic_load(&touching)) {
		*c = 1;
		sched_yield();
	}
	return NULL;
}

/* A fault beside it is no pin. */
TEST_F(realloc, moves_while_its_neighbour_is_touched)
{
	unsigned int i, rounds = 200 + accmem_scale(1000), busy = 0;
	struct accmem_alloc a, b = {
		.length = KIB(64),
		.address = self->info.address_base + self->info.capacity / 2,
		.flags = ACCMEM_ALLOC_FIXED,
	};
	struct accmem_realloc r;
	pthread_t threads[3];
	char *p, *touched;

	b.address += KIB(64);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &b));
	touched = map_at(self->fd, b.address, KIB(64));
	ASSERT_NE(NULL, touched);
	atomic_store(&touching, 1);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, touch_on_and_on,
					    touched + i * GRANULE));
	for (i = 0; i < rounds; i++) {
		a = (struct accmem_alloc){
			.length = KIB(64),
			.address = b.address - KIB(64),
			.flags = RESIZABLE | ACCMEM_ALLOC_FIXED,
		};
		/* what it was may be in quarantine for a moment */
		while (accmem_ioctl_alloc(self->fd, &a) == -ENOMEM)
			;
		p = map_at(self->fd, a.address, KIB(64));
		ASSERT_NE(NULL, p);
		*p = 1;
		unmap(p, KIB(64));
		busy += accmem_ioctl_realloc(self->fd, a.address, KIB(128), 0,
					     &r) == -EBUSY;
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	}
	EXPECT_EQ(0, busy);
	atomic_store(&touching, 0);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	unmap(touched, KIB(64));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
}

/*
 * One that grows into another place while threads touch it, on the mapping that it has
 * each time: a fault has a page for a moment, and is no pin.
 */
static unsigned int move_while_touched(int fd, char *at, uint64_t length,
				       unsigned int rounds)
{
	uint64_t shown = ALIGN_UP(length, GRANULE);
	struct accmem_alloc a, b;
	unsigned int moved = 0;
	struct accmem_realloc r;
	int err;

	while (rounds--) {
		a = (struct accmem_alloc){ .length = length,
					   .alignment = length,
					   .flags = RESIZABLE };
		/* what it was may be in quarantine for a moment */
		do {
			err = accmem_ioctl_alloc(fd, &a);
		} while (err == -ENOMEM);
		if (err || !accmem_mmap_at(at, fd, a.mmap_offset, shown, RW,
					   MAP_SHARED | MAP_FIXED))
			return 0;
		/* where that is not possible, something else is in the way */
		if (block(fd, &a, &b))
			b.address = 0;
		/* all threads are at it */
		usleep(rounds % 4 * 500);
		err = accmem_ioctl_realloc(fd, a.address, 2 * length, 0, &r);
		if (err) {
			printf("# REALLOC: %d\n", err);
			return 0;
		}
		moved += r.address != a.address;
		if (accmem_ioctl_free(fd, r.address) || unblock(fd, &b))
			return 0;
	}
	return moved;
}

TEST_F(realloc, moves_while_it_is_touched)
{
	static const uint64_t lengths[] = { KIB(1), KIB(64), MIB(2) };
	unsigned int i, j, rounds = 20 + accmem_scale(200);
	pthread_t threads[3];
	char *hole, *p;

	hole = mmap(NULL, MIB(4), RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, hole);
	p = (char *)ALIGN_UP((uintptr_t)hole, MIB(2));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		atomic_store(&touching, 1);
		for (j = 0; j < ARRAY_SIZE(threads); j++)
			ASSERT_EQ(0, pthread_create(&threads[j], NULL,
						    touch_on_and_on,
						    p + j / 2 * GRANULE));
		EXPECT_LT(rounds / 2,
			  move_while_touched(self->fd, p, lengths[i], rounds));
		atomic_store(&touching, 0);
		for (j = 0; j < ARRAY_SIZE(threads); j++)
			pthread_join(threads[j], NULL);
	}
	munmap(hole, MIB(4));
}

/* With a pin it stays where it is, whoever touches it; that is told soon. */
TEST_F(realloc, stays_where_it_is_pinned_and_touched)
{
	struct accmem_realloc r;
	struct accmem_alloc a, b;
	struct iovec iov;
	pthread_t thread;
	uint64_t before;
	int pipes[2];
	char *p;

	if (!self->pins)
		return;
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(0, alloc(self->fd, KIB(64), 0, &a));
	ASSERT_EQ(0, block(self->fd, &a, &b));
	p = map_at(self->fd, a.address, KIB(64));
	ASSERT_NE(NULL, p);
	iov.iov_base = p;
	iov.iov_len = GRANULE;
	ASSERT_EQ(GRANULE, vmsplice(pipes[1], &iov, 1, 0));
	atomic_store(&touching, 1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, touch_on_and_on, p));
	before = accmem_ms();
	EXPECT_EQ(-EBUSY,
		  accmem_ioctl_realloc(self->fd, a.address, MIB(1), 0, &r));
	/* 30 ms, and what an emulated machine takes */
	EXPECT_GT(1000, accmem_ms() - before);
	close(pipes[0]);
	close(pipes[1]);
	EXPECT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(1), 0, &r));
	EXPECT_NE(a.address, r.address);
	atomic_store(&touching, 0);
	pthread_join(thread, NULL);
	unmap(p, KIB(64));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	ASSERT_EQ(0, unblock(self->fd, &b));
}

struct shrinking {
	char *p;
	atomic_uint resized; /* odd: what is at @p has gone */
	atomic_uint touches; /* begun */
	atomic_bool end;
	unsigned int shown; /* touches that were served */
	unsigned int wrong; /* of what had gone */
};

/* until it has begun another one, and for a while that depends on @round */
static void let_touch(struct shrinking *s, unsigned int round)
{
	unsigned int began = atomic_load(&s->touches);
	volatile unsigned int spin;

	while (atomic_load(&s->touches) == began)
		;
	for (spin = round % 64 * 256; spin; spin--)
		;
}

static void *touch_what_goes(void *arg)
{
	struct shrinking *s = arg;
	unsigned int before, i;
	int sig;

	/* a fault at the first page may show all up to the last */
	for (i = 0; !atomic_load(&s->end); i++) {
		before = atomic_load(&s->resized);
		atomic_fetch_add(&s->touches, 1);
		sig = accmem_try_write(s->p + (i % 2 ? MIB(2) - GRANULE : 0),
				       1);
		s->shown += !sig;
		if (before & 1 && before == atomic_load(&s->resized))
			s->wrong += sig != SIGBUS;
	}
	return NULL;
}

/* A fault that began before it shrank does not show what has gone after that. */
TEST_F(realloc, what_has_gone_is_a_sigbus_whoever_touched_it_meanwhile)
{
	unsigned int i, rounds = 20 + accmem_scale(300);
	struct accmem_alloc a = { .length = MIB(4),
				  .alignment = MIB(2),
				  .flags = RESIZABLE,
				  .reserve = MIB(4) };
	struct shrinking s = {};
	struct accmem_realloc r;
	pthread_t thread;
	char *p;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	p = accmem_mmap_huge(self->fd, &a, MIB(4));
	ASSERT_NE(NULL, p);
	s.p = p + MIB(2);
	ASSERT_EQ(0, pthread_create(&thread, NULL, touch_what_goes, &s));
	for (i = 0; i < rounds; i++) {
		let_touch(&s, i);
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(2),
						  0, &r));
		ASSERT_EQ(a.address, r.address);
		ASSERT_EQ(MIB(2), r.footprint);
		atomic_fetch_add(&s.resized, 1);
		usleep(500);
		atomic_fetch_add(&s.resized, 1);
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(4),
						  0, &r));
		ASSERT_EQ(a.address, r.address);
	}
	atomic_store(&s.end, true);
	pthread_join(thread, NULL);
	EXPECT_LT(0, s.shown);
	EXPECT_EQ(0, s.wrong);
	munmap(p, MIB(4));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* seen by both processes */
struct dying {
	struct accmem_realloc r;
	atomic_int calls; /* begun, and ended */
};

/* a child that doubles the buffer, and is killed @us after it has begun, if that is not 0 */
static uint64_t double_and_die(int fd, const struct accmem_alloc *a,
			       struct dying *d, unsigned int us)
{
	uint64_t began;
	pid_t pid;

	d->r = (struct accmem_realloc){ .size = sizeof(d->r),
					.address = a->address,
					.length = 2 * a->length };
	atomic_store(&d->calls, 0);
	pid = fork();
	if (!pid) {
		atomic_store(&d->calls, 1);
		if (!accmem_ioctl(fd, ACCMEM_IOC_REALLOC, &d->r))
			atomic_store(&d->calls, 2);
		for (;;)
			pause();
	}
	while (!atomic_load(&d->calls))
		;
	began = accmem_ms();
	while (!us && atomic_load(&d->calls) == 1)
		usleep(100);
	began = accmem_ms() - began;
	usleep(us);
	kill(pid, SIGKILL);
	accmem_wait_child(pid);
	return 1000 * began;
}

/*
 * Who dies in it leaves to those that it shared the file and the mapping with the buffer
 * that was, or the one that it should become: nothing beside, and no mark.
 */
TEST_F(realloc, killed_while_it_moves)
{
	const uint64_t length = MIB(12), before = accmem_free_now(self->fd);
	unsigned int i, rounds = 4 + accmem_scale(16), unmoved = 0;
	struct dying *d =
		mmap(NULL, GRANULE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct accmem_alloc a, b;
	struct accmem_query q;
	uint64_t us = 0, took;
	char *p;

	ASSERT_NE(MAP_FAILED, d);
	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, alloc(self->fd, length, 0, &a));
		ASSERT_EQ(0, block(self->fd, &a, &b));
		p = map_at(self->fd, a.address, length);
		ASSERT_NE(NULL, p);
		accmem_fill(p, length, i);
		took = double_and_die(self->fd, &a, d, us * i / rounds);
		if (!i) {
			ASSERT_EQ(2, atomic_load(&d->calls));
			us = took + rounds;
		}
		ASSERT_EQ(-1, accmem_check(p, length, i));
		if (!accmem_ioctl_query(self->fd, a.address, &q)) {
			unmoved++;
			ASSERT_TRUE(query_says(self->fd, a.address, length,
					       length));
			ASSERT_EQ(length,
				  accmem_sysfs(variant->path, "live_bytes") -
					  !!b.address * GRANULE);
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
		} else {
			ASSERT_EQ(-1, check_at(self->fd, d->r.address, length,
					       2 * length, i));
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, d->r.address));
		}
		ASSERT_EQ(-1, accmem_check(p, length, i));
		unmap(p, length);
		ASSERT_EQ(0, unblock(self->fd, &b));
		ASSERT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
						before, 20000));
	}
	TH_LOG("%u of %u died before it had moved", unmoved, rounds);
	EXPECT_LT(0, unmoved);
	munmap(d, GRANULE);
}

/*
 * Large pages are only preferred: where none is left to grow by, it goes on with normal
 * ones. A pin keeps it from that where there is memory, and only there.
 */
TEST_F(realloc, moves_where_no_large_pages_are_left)
{
	unsigned int n = 0, i, nr = self->info.capacity / MIB(1);
	struct accmem_alloc a = { .length = MIB(2),
				  .flags = RESIZABLE,
				  .page_policy = ACCMEM_PAGE_HUGE_FIRST,
				  .reserve = MIB(4) };
	struct accmem_alloc *pieces;
	struct accmem_realloc r;
	struct iovec iov;
	int pipes[2];

	/* a buffer is one run elsewhere, and there may be one of any length */
	if (!(self->info.features & ACCMEM_FEATURE_SCATTER))
		return;
	pieces = calloc(nr, sizeof(*pieces));
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(MIB(2), a.page_size);
	iov.iov_base = map_at(self->fd, a.address, MIB(2));
	iov.iov_len = GRANULE;
	ASSERT_NE(NULL, iov.iov_base);
	accmem_fill(iov.iov_base, MIB(2), 21);
	ASSERT_EQ(GRANULE, vmsplice(pipes[1], &iov, 1, 0));
	while (!accmem_alloc_bytes(self->fd, MIB(1), 0, &pieces[n]))
		n++;
	EXPECT_EQ(-ENOMEM,
		  accmem_ioctl_realloc(self->fd, a.address, MIB(4), 0, &r));
	for (i = 0; i < n; i += 2)
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, pieces[i].address));
	EXPECT_EQ(-EBUSY,
		  accmem_ioctl_realloc(self->fd, a.address, MIB(4), 0, &r));
	close(pipes[0]);
	close(pipes[1]);
	EXPECT_EQ(-ENOMEM, accmem_ioctl_realloc(self->fd, a.address, MIB(4),
						IN_PLACE, &r));
	ASSERT_TRUE(query_says(self->fd, a.address, MIB(2), MIB(2)));
	ASSERT_EQ(0,
		  accmem_ioctl_realloc(self->fd, a.address, MIB(4), 0, &r));
	EXPECT_EQ(MIB(2), r.copied);
	EXPECT_EQ(GRANULE, r.page_size);
	EXPECT_EQ(-1, check_at(self->fd, r.address, MIB(2), MIB(4), 21));
	unmap(iov.iov_base, MIB(2));
	free(pieces);
}

/* T4 */
TEST_F(realloc, only_what_is_resizable)
{
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &a));
	EXPECT_EQ(-EPERM,
		  accmem_ioctl_realloc(self->fd, a.address, KIB(32), 0, NULL));
	ASSERT_TRUE(query_says(self->fd, a.address, KIB(64), KIB(64)));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

TEST_F(realloc, bad_address)
{
	int other = accmem_dev_open(variant->path, O_RDWR);
	struct accmem_alloc a;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, alloc(self->fd, KIB(64), 0, &a));
	/* unknown, another context's, inside a buffer */
	EXPECT_EQ(-ENOENT, accmem_ioctl_realloc(self->fd, 0, KIB(32), 0, NULL));
	EXPECT_EQ(-ENOENT,
		  accmem_ioctl_realloc(self->fd, ~0ull, KIB(32), 0, NULL));
	EXPECT_EQ(-ENOENT,
		  accmem_ioctl_realloc(other, a.address, KIB(32), 0, NULL));
	EXPECT_EQ(-EINVAL, accmem_ioctl_realloc(self->fd, a.address + 64,
						KIB(32), 0, NULL));
	ASSERT_TRUE(query_says(self->fd, a.address, KIB(64), KIB(64)));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	/* freed */
	EXPECT_EQ(-ENOENT,
		  accmem_ioctl_realloc(self->fd, a.address, KIB(32), 0, NULL));
	close(other);
}

/* T6 */
TEST_F(realloc, bad_length)
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

TEST_F(realloc, bad_reserve)
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

/* T6: what cannot be told is not done, be it in place or a move. */
TEST_F(realloc, answer_that_cannot_be_written)
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

/* No device address is as full as the memory: in place to the last granule. */
TEST_F(realloc, no_memory)
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
	/* what is given up can be had again */
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, 1, 0, &r));
	while (n--)
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, rest[n].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* In place, only what is added is charged; a move charges both for a while. */
TEST_F(realloc, charge_is_exact)
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

/* a file that closes with what has been resized */
TEST_F(realloc, exit_with_everything)
{
	int fd = accmem_dev_open(variant->path, O_RDWR);
	struct accmem_alloc a;
	unsigned int i;

	ASSERT_LE(0, fd);
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0,
			  alloc(fd, KIB(4) << (i % 4), i & 1 ? MIB(1) : 0, &a));
		ASSERT_EQ(0, accmem_ioctl_realloc(fd, a.address, KIB(100), 0,
						  NULL));
	}
	close(fd);
}

/*
 * Threads that resize, map and touch, free and ask for the same few buffers: what
 * is refused is refused with one of the errors that are documented, and nothing
 * is lost.
 */
#define STORM_SLOTS 4

struct storm {
	int fd;
	unsigned int rounds;
	_Atomic uint64_t slots[STORM_SLOTS];
	_Atomic int strange;
};

static void storm_expect(struct storm *s, const char *what, int err,
			 const int *known)
{
	for (; *known; known++) {
		if (err == *known)
			return;
	}
	if (err && !s->strange)
		printf("# %s: %d\n", what, err);
	if (err)
		s->strange = 1;
}

static void *storm_resize(void *arg)
{
	static const int known[] = { -ENOENT, -EBUSY, -EINVAL, 0 };
	static const uint64_t lengths[] = { 100,      KIB(4), KIB(100),
					    KIB(512), MIB(2), MIB(3) };
	struct storm *s = arg;
	uint64_t seed = accmem_seed() + (uintptr_t)&seed, address;
	struct accmem_realloc r;
	unsigned int i, slot;
	int err;

	for (i = 0; i < s->rounds; i++) {
		slot = accmem_random(&seed) % STORM_SLOTS;
		address = s->slots[slot];
		err = accmem_ioctl_realloc(s->fd, address,
					   lengths[accmem_random(&seed) %
						   ARRAY_SIZE(lengths)],
					   0, &r);
		storm_expect(s, "REALLOC", err, known);
		if (!err && r.address != address)
			atomic_compare_exchange_strong(&s->slots[slot],
						       &address, r.address);
	}
	return NULL;
}

/* one thread: accmem_try_write() is not for several */
static void *storm_touch(void *arg)
{
	struct storm *s = arg;
	uint64_t seed = accmem_seed() + (uintptr_t)&seed, value, at;
	unsigned int i, j;
	struct accmem_query q;
	char *p;

	for (i = 0; i < s->rounds; i++) {
		if (accmem_ioctl_query(s->fd,
				       s->slots[accmem_random(&seed) %
						STORM_SLOTS],
				       &q))
			continue;
		p = accmem_mmap_at(NULL, s->fd, q.mmap_offset,
				   ALIGN_UP(q.footprint, GRANULE), RW,
				   MAP_SHARED);
		if (!p)
			continue;
		/* a page that has gone meanwhile is a SIGBUS */
		for (j = 0; j < 8; j++) {
			at = accmem_random(&seed) %
			     ALIGN_UP(q.footprint, GRANULE);
			accmem_try_write(p + at / 8 * 8, at);
			accmem_try_read(p + at / 8 * 8, &value);
		}
		munmap(p, ALIGN_UP(q.footprint, GRANULE));
	}
	return NULL;
}

static void *storm_renew(void *arg)
{
	static const int known[] = { -ENOENT, -EBUSY, -EINVAL, 0 };
	struct storm *s = arg;
	uint64_t seed = accmem_seed() + (uintptr_t)&seed;
	struct accmem_alloc a;
	unsigned int i, slot;
	int err;

	for (i = 0; i < s->rounds; i++) {
		slot = accmem_random(&seed) % STORM_SLOTS;
		err = accmem_ioctl_free(s->fd, s->slots[slot]);
		storm_expect(s, "FREE", err, known);
		if (err)
			continue;
		if (alloc(s->fd, KIB(64) << slot, slot & 1 ? MIB(4) : 0, &a)) {
			s->strange = 1;
			break;
		}
		s->slots[slot] = a.address;
	}
	return NULL;
}

TEST_F(realloc, storm)
{
	void *(*const threads[])(void *) = { storm_resize, storm_resize,
					     storm_touch, storm_renew };
	struct storm s = { .fd = accmem_dev_open(variant->path, O_RDWR),
			   .rounds = accmem_scale(400) };
	pthread_t ids[ARRAY_SIZE(threads)];
	struct accmem_alloc a;
	unsigned int i;

	ASSERT_LE(0, s.fd);
	for (i = 0; i < STORM_SLOTS; i++) {
		ASSERT_EQ(0, alloc(s.fd, KIB(64), 0, &a));
		s.slots[i] = a.address;
	}
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&ids[i], NULL, threads[i], &s));
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(ids[i], NULL);
	EXPECT_EQ(0, s.strange);
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	close(s.fd);
}

ACCMEM_HARNESS_MAIN
