// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC at a given device address. The buffer gets that address, or the call returns
 * why it cannot, and the buffers that exist keep their contents. With identity
 * translation the address selects the place in the carveout. Every test ends with all
 * memory free.
 */
#include "accmem_test.h"

#define FIXED ACCMEM_ALLOC_FIXED

FIXTURE(fixed)
{
	int fd;
	uint64_t free_bytes;
	uint64_t at; /* an address in the middle of the carveout */
	struct accmem_info info;
};

ACCMEM_VARIANTS(fixed);

FIXTURE_SETUP(fixed)
{
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	self->free_bytes = self->info.free_bytes;
	self->at = self->info.address_base + self->info.capacity / 2;
	ASSERT_EQ(0, self->at % MIB(2));
}

FIXTURE_TEARDOWN(fixed)
{
	EXPECT_EQ(self->free_bytes, accmem_free_now(self->fd));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

static int alloc_at(int fd, uint64_t address, uint64_t length, uint32_t flags,
		    struct accmem_alloc *a)
{
	*a = (struct accmem_alloc){ .length = length, .address = address,
				    .flags = FIXED | flags };
	return accmem_ioctl_alloc(fd, a);
}

TEST_F(fixed, is_where_it_was_asked_for)
{
	static const struct {
		uint64_t offset;
		uint64_t length;
		uint32_t flags;
	} rows[] = {
		{ 0, 4096, 0 },
		{ 4096, 1, 0 }, /* has a page of its own */
		{ 8192, KIB(100), ACCMEM_ALLOC_POPULATE },
		{ MIB(2), MIB(6), ACCMEM_ALLOC_CONTIGUOUS },
		{ MIB(8), 5000, ACCMEM_ALLOC_ROUND32 },
	};
	struct accmem_alloc a[ARRAY_SIZE(rows)];
	struct accmem_query q;
	unsigned int i;
	char *p;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t at = self->at + rows[i].offset;

		ASSERT_EQ(0, alloc_at(self->fd, at, rows[i].length,
				      rows[i].flags, &a[i]));
		EXPECT_EQ(at, a[i].address);
		EXPECT_EQ(ALIGN_UP(rows[i].length, 4096), a[i].footprint);
		ASSERT_EQ(0, accmem_ioctl_query(self->fd, at, &q));
		EXPECT_EQ(at, q.base);
		EXPECT_EQ(FIXED | rows[i].flags, q.alloc_flags);
		p = accmem_mapped(self->fd, &a[i], a[i].footprint);
		EXPECT_EQ(-1, accmem_first_nonzero(p, a[i].footprint));
		accmem_fill(p, 4096, i);
		munmap(p, a[i].footprint);
	}
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		p = accmem_mapped(self->fd, &a[i], a[i].footprint);
		EXPECT_EQ(-1, accmem_check(p, 4096, i));
		munmap(p, a[i].footprint);
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	}
}

/* A cached buffer at the address does not block the next request for it. */
TEST_F(fixed, an_address_that_was_freed_can_be_had_again)
{
	struct accmem_alloc a, kept;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, alloc_at(self->fd, self->at, 4096, 0, &a));
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->at));
	}
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &kept));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, kept.address));
	ASSERT_EQ(0, alloc_at(self->fd, kept.address, 4096, 0, &a));
	EXPECT_EQ(kept.address, a.address);
	/* another request of this size gets a different address */
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_EQ(0, alloc_at(self->fd, self->at, 4096, 0, &a));
	EXPECT_EQ(self->at, a.address);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

TEST_F(fixed, taken)
{
	struct accmem_alloc a, b, small;
	uint64_t before;

	ASSERT_EQ(0, alloc_at(self->fd, self->at, 3 * 4096, 0, &a));
	/* a neighbour, where a small buffer may be later */
	ASSERT_EQ(0, alloc_at(self->fd, self->at - 4096, 4096, 0, &b));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	ASSERT_EQ(0, alloc_at(self->fd, self->at + 3 * 4096, 4096, 0, &b));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 100, 0, &small));
	before = accmem_free_now(self->fd);
	/*
	 * the same range, its end, its start, a larger range, and the granule of a
	 * small buffer
	 */
	EXPECT_EQ(-EEXIST, alloc_at(self->fd, self->at, 4096, 0, &b));
	EXPECT_EQ(-EEXIST, alloc_at(self->fd, self->at + 8192, 8192, 0, &b));
	EXPECT_EQ(-EEXIST, alloc_at(self->fd, self->at - 4096, 8192, 0, &b));
	EXPECT_EQ(-EEXIST, alloc_at(self->fd, self->at - 4096, MIB(1), 0, &b));
	EXPECT_EQ(-EEXIST, alloc_at(self->fd, small.address & ~4095ull, 4096,
				    0, &b));
	EXPECT_EQ(before, accmem_free_now(self->fd));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, small.address));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

TEST_F(fixed, unaligned)
{
	struct accmem_alloc a = { .length = MIB(2),
				  .flags = FIXED,
				  .address = self->at + 4096,
				  .page_policy = ACCMEM_PAGE_HUGE_ONLY };
	const uint64_t off[] = { 1, 64, 2048, 4095 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(off); i++)
		EXPECT_EQ(-EINVAL, alloc_at(self->fd, self->at + off[i], 4096,
					    0, &a));
	a = (struct accmem_alloc){ .length = MIB(2), .flags = FIXED,
				   .address = self->at + 4096,
				   .page_policy = ACCMEM_PAGE_HUGE_ONLY };
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a.page_policy = ACCMEM_PAGE_ANY;
	a.alignment = KIB(64);
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	/* large pages are a preference */
	a.alignment = 0;
	a.page_policy = ACCMEM_PAGE_HUGE_FIRST;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(self->at + 4096, a.address);
	EXPECT_EQ(4096, a.page_size);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* writes the number of each page to its first word */
static void number_pages(uint64_t *p, uint64_t length)
{
	uint64_t i;

	for (i = 0; i < length / 4096; i++)
		p[i * 512] = i + 1;
}

/* the first page with another number, or -1 */
static int64_t misnumbered_page(const uint64_t *p, uint64_t length)
{
	uint64_t i;

	for (i = 0; i < length / 4096; i++)
		if (p[i * 512] != i + 1)
			return i;
	return -1;
}

/* Where large pages do not fit, each page is still at its place. */
TEST_F(fixed, odd_to_large_pages)
{
	static const uint64_t off[] = { 4096, MIB(1) };
	const uint64_t length = MIB(4);
	struct accmem_alloc a;
	uint64_t *p, *q;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(off); i++) {
		ASSERT_EQ(0,
			  alloc_at(self->fd, self->at + off[i], length, 0, &a));
		p = accmem_mmap_huge(self->fd, &a, length);
		q = accmem_mmap(self->fd, &a, length, RW);
		ASSERT_TRUE(p && q);
		number_pages(p, length);
		EXPECT_EQ(-1, misnumbered_page(p, length));
		EXPECT_EQ(-1, misnumbered_page(q, length));
		munmap(p, length);
		munmap(q, length);
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	}
}

/* Large pages are a preference: a neighbour in the last of them leaves normal ones. */
TEST_F(fixed, large_pages_that_a_neighbour_cuts_become_normal_ones)
{
	struct accmem_alloc b, a = {
		.length = MIB(3),
		.flags = FIXED,
		.page_policy = ACCMEM_PAGE_HUGE_FIRST,
	};

	ASSERT_EQ(0, alloc_at(self->fd, self->at + MIB(3), 4096, 0, &b));
	a.address = self->at;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(MIB(3), a.footprint);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	/* a part of the buffer itself is taken */
	a.address = self->at + MIB(2);
	EXPECT_EQ(-EEXIST, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(MIB(4), a.footprint);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

TEST_F(fixed, beyond_the_span)
{
	uint64_t end = self->info.address_base + self->info.address_span;
	struct accmem_alloc a;

	EXPECT_EQ(-EINVAL, alloc_at(self->fd, 0, 4096, 0, &a));
	EXPECT_EQ(-EINVAL, alloc_at(self->fd, self->info.address_base - 4096,
				    4096, 0, &a));
	EXPECT_EQ(-EINVAL, alloc_at(self->fd, self->info.address_base - 4096,
				    8192, 0, &a));
	EXPECT_EQ(-EINVAL, alloc_at(self->fd, end, 4096, 0, &a));
	EXPECT_EQ(-EINVAL, alloc_at(self->fd, end - 4096, 8192, 0, &a));
	EXPECT_EQ(-EINVAL, alloc_at(self->fd, ~0ull - 4095, 4096, 0, &a));
	EXPECT_EQ(-EINVAL, alloc_at(self->fd, ~0ull - 4095, 8192, 0, &a));
	ASSERT_EQ(0, alloc_at(self->fd, end - 4096, 4096, 0, &a));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_EQ(0, alloc_at(self->fd, self->info.address_base, 4096, 0, &a));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

TEST_F(fixed, flags_that_exclude_each_other)
{
	struct accmem_alloc a;

	EXPECT_EQ(-EINVAL, alloc_at(self->fd, self->at, 4096,
				    ACCMEM_ALLOC_TOP_DOWN, &a));
	/* the address is ignored without the flag */
	a = (struct accmem_alloc){ .length = 4096, .address = 1 };
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/*
 * Virtual addresses are independent of other contexts. With identity translation an
 * address is taken when another context has the memory, or a mapping still holds it.
 */
TEST_F(fixed, not_free)
{
	bool identity = self->info.translation == ACCMEM_TRANSLATION_IDENTITY;
	int other = accmem_opened(variant->path), err;
	struct accmem_alloc a, b;
	char *p;

	ASSERT_EQ(0, alloc_at(other, self->at, MIB(4), 0, &b));
	err = alloc_at(self->fd, self->at, 4096, 0, &a);
	EXPECT_EQ(identity ? -ENOMEM : 0, err);
	if (err) {
		EXPECT_EQ(accmem_free_now(self->fd), a.free_bytes);
		EXPECT_LT(0, a.largest_run);
	} else {
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	}
	p = accmem_mapped(other, &b, MIB(4));
	accmem_fill(p, MIB(4), 1);
	ASSERT_EQ(0, accmem_ioctl_free(other, b.address));
	err = alloc_at(self->fd, self->at, 4096, 0, &a);
	EXPECT_EQ(identity ? -ENOMEM : 0, err);
	if (!err)
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	munmap(p, MIB(4));
	/* and the memory reads as zero then */
	ASSERT_EQ(0, alloc_at(self->fd, self->at, MIB(4), 0, &a));
	EXPECT_EQ(-1, check_at(self->fd, a.address, 0, MIB(4), 0));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	close(other);
}

/* The holds of the carveout's lock in an ALLOC that fails; the least of five tries */
static int64_t holds_of_failure(int fd, const char *path, uint64_t length,
				uint64_t alignment)
{
	int64_t least = INT64_MAX, holds;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		struct accmem_alloc a = { .length = length,
					  .alignment = alignment };

		holds = accmem_lock_stats(path, "carveout_lock_holds");
		if (accmem_ioctl_alloc(fd, &a) != -ENOMEM)
			return -1;
		holds = accmem_lock_stats(path, "carveout_lock_holds") - holds;
		if (holds < least)
			least = holds;
	}
	return least;
}

/*
 * With identity translation an aligned request has to find aligned memory: here behind
 * many runs that are long enough and do not have the alignment. The search does not
 * hold the lock for all of them.
 */
TEST_F(fixed, an_aligned_place_is_searched_in_steps)
{
	const uint64_t step = KIB(256);
	uint64_t i, n = self->info.capacity / step;
	struct accmem_alloc *a = calloc(n, sizeof(*a));
	struct accmem_alloc last = { .length = 4096, .alignment = step };
	int64_t plain, aligned;

	ASSERT_NE(NULL, a);
	if (self->info.translation != ACCMEM_TRANSLATION_IDENTITY) {
		free(a);
		return;
	}
	for (i = 0; i < n; i++)
		ASSERT_EQ(0,
			  alloc_at(self->fd, self->info.address_base + i * step,
				   4096, 0, &a[i]));
	plain = holds_of_failure(self->fd, variant->path, step, 0);
	aligned = holds_of_failure(self->fd, variant->path, 4096, step);
	EXPECT_LT(0, plain);
	EXPECT_LE(plain + (int64_t)(n - 1) / 256, aligned);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[n - 1].address));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &last));
	EXPECT_EQ(a[n - 1].address, last.address);
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	free(a);
}

#define GAPS 70

static int reserve_at(int fd, uint64_t address, uint64_t size)
{
	struct accmem_alloc a = {
		.length = 4096,
		.address = address,
		.flags = FIXED | ACCMEM_ALLOC_RESIZABLE,
		.reserve = size,
	};

	return accmem_ioctl_alloc(fd, &a);
}

/*
 * Takes all device addresses but GAPS gaps of 2 MiB. Each begins 4 KiB behind a multiple
 * of 2 MiB, but the last one @shift bytes later.
 */
static int leave_gaps(int fd, const struct accmem_info *info, uint64_t shift)
{
	uint64_t at = info->address_base, end = at + info->address_span;
	int err = reserve_at(fd, at, 4096);
	unsigned int i;

	at += 4096 + MIB(2);
	for (i = 0; i < GAPS - 2 && !err; i++, at += MIB(4))
		err = reserve_at(fd, at, MIB(2));
	err = err ?: reserve_at(fd, at, MIB(2) + shift);
	at += MIB(4) + shift;
	return err ?: reserve_at(fd, at, end - at);
}

/* A buffer of 2 MiB prefers a multiple of 2 MiB, and gets any address before it fails. */
TEST_F(fixed, large_buffers_get_the_addresses_that_are_left)
{
	struct accmem_alloc a;
	unsigned int i;
	int fd;

	/* with identity translation the memory decides */
	if (self->info.translation == ACCMEM_TRANSLATION_IDENTITY)
		return;
	fd = accmem_opened(variant->path);
	ASSERT_EQ(0, leave_gaps(fd, &self->info, 0));
	for (i = 0; i < GAPS; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(fd, MIB(2), 0, &a));
		EXPECT_EQ(4096, a.address % MIB(2));
	}
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(fd, 4096, 0, &a));
	close(fd);
}

/* Addresses of the alignment asked for are found behind many gaps without one. */
TEST_F(fixed, an_aligned_gap_is_found_behind_others)
{
	struct accmem_alloc a = { .length = MIB(2), .alignment = MIB(2) };
	int fd;

	if (self->info.translation == ACCMEM_TRANSLATION_IDENTITY)
		return;
	fd = accmem_opened(variant->path);
	ASSERT_EQ(0, leave_gaps(fd, &self->info, MIB(2) - 4096));
	EXPECT_EQ(0, accmem_ioctl_alloc(fd, &a));
	EXPECT_EQ(0, a.address % MIB(2));
	EXPECT_EQ(-ENOMEM, accmem_ioctl_alloc(fd, &a));
	close(fd);
}

/*
 * Memory that is populated before it has an address may have pages of 2 MiB, and then get an
 * address that is not a multiple of 2 MiB. A mapping shows each byte where it lies.
 */
TEST_F(fixed, populated_memory_at_an_odd_address_is_mapped_where_it_lies)
{
	struct accmem_alloc a = { .length = MIB(3),
				  .flags = ACCMEM_ALLOC_POPULATE };
	uint64_t base = self->info.address_base;
	volatile char *p;
	int fd;

	if (self->info.translation == ACCMEM_TRANSLATION_IDENTITY)
		return;
	fd = accmem_opened(variant->path);
	ASSERT_EQ(0, reserve_at(fd, base, MIB(1)));
	ASSERT_EQ(0, reserve_at(fd, base + MIB(4),
				self->info.address_span - MIB(4)));
	ASSERT_EQ(0, accmem_ioctl_alloc(fd, &a));
	ASSERT_EQ(base + MIB(1), a.address);
	ASSERT_EQ(0, device_fill_at(fd, a.address, MIB(3), 7));
	p = accmem_mapped(fd, &a, MIB(3));
	/* the fault that may make an entry of 2 MiB */
	(void)p[MIB(1)];
	EXPECT_EQ(-1, accmem_check((char *)p, MIB(3), 7));
	munmap((char *)p, MIB(3));
	close(fd);
}

/* Memory in the caches of other contexts is free. */
TEST_F(fixed, cached_by_another_context)
{
	int other = accmem_opened(variant->path);
	struct accmem_alloc a, b;

	ASSERT_EQ(0, accmem_alloc_bytes(other, 4096, 0, &b));
	ASSERT_EQ(0, accmem_ioctl_free(other, b.address));
	ASSERT_EQ(0, alloc_at(self->fd, b.address, 4096, 0, &a));
	EXPECT_EQ(b.address, a.address);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	close(other);
}

/* A context is restored from a checkpoint: the buffers are allocated again in any order. */
TEST_F(fixed, a_context_is_restored)
{
	enum { N = 64 };
	struct accmem_alloc a[N], b;
	uint64_t seed = accmem_seed();
	unsigned int i, j;
	int other;

	for (i = 0; i < N; i++) {
		uint64_t length = 4096 * (1 + accmem_random(&seed) % 20);

		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, length, 0, &a[i]));
	}
	close(self->fd);
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->fd = accmem_opened(variant->path);
	/* another context allocates meanwhile, at other places */
	other = accmem_opened(variant->path);
	for (i = N - 1; i; i--) {
		struct accmem_alloc swap = a[i];

		j = accmem_random(&seed) % (i + 1);
		a[i] = a[j];
		a[j] = swap;
	}
	for (i = 0; i < N; i++) {
		ASSERT_EQ(0, alloc_at(self->fd, a[i].address, a[i].length, 0,
				      &b));
		EXPECT_EQ(a[i].address, b.address);
	}
	/* all of it again: all is taken */
	for (i = 0; i < N; i++)
		EXPECT_EQ(-EEXIST, alloc_at(self->fd, a[i].address, a[i].length,
					    0, &b));
	EXPECT_EQ(N, accmem_sysfs(variant->path, "buffers"));
	for (i = 0; i < N; i++)
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	close(other);
}

ACCMEM_HARNESS_MAIN
