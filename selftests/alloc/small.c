// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers of at most half a granule. They share granules with other buffers of the
 * same context, never with those of another. In every other respect such a buffer
 * behaves like a large one.
 */
#include "accmem_test.h"

#define GRANULE 4096ull
#define MANY 256

ACCMEM_FIXTURE(small)

static uint64_t page_of(const struct accmem_alloc *a)
{
	return a->address / GRANULE;
}

static bool overlap(const struct accmem_alloc *a, const struct accmem_alloc *b)
{
	return a->address < b->address + b->footprint &&
	       b->address < a->address + a->footprint;
}

static int64_t live(const char *path)
{
	return accmem_sysfs(path, "live_bytes");
}

/* the number of granules of these buffers */
static unsigned int pages_of(const struct accmem_alloc *a, unsigned int n)
{
	unsigned int i, j, pages = 0;

	for (i = 0; i < n; i++) {
		for (j = 0; j < i && page_of(&a[j]) != page_of(&a[i]); j++)
			;
		pages += j == i;
	}
	return pages;
}

/*
 * A1: a granule has 64 slots of 64 bytes. The whole granule counts as live. Its free
 * slots count as free for the context that has it, and only for that context.
 */
TEST_F(small, sixty_four_share_a_granule)
{
	uint64_t before = accmem_free_now(self->fd);
	struct accmem_alloc a[64];
	unsigned int i;

	for (i = 0; i < 64; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, i + 1, 0, &a[i]));
		ASSERT_EQ(64, a[i].footprint);
		ASSERT_EQ(i + 1, a[i].usable);
		ASSERT_EQ(0, a[i].address % 64);
		ASSERT_EQ(page_of(&a[0]), page_of(&a[i]));
		ASSERT_EQ(a[0].mmap_offset, a[i].mmap_offset);
		ASSERT_EQ(before - 64 * (i + 1), accmem_free_now(self->fd));
		ASSERT_EQ(GRANULE, live(variant->path));
		ASSERT_EQ(self->info.capacity - GRANULE,
			  accmem_sysfs(variant->path, "free_bytes"));
	}
	EXPECT_EQ(64, accmem_sysfs(variant->path, "buffers"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	for (i = 0; i < 64; i++) {
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	}
	/* and every context can get the granule again */
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, self->info.largest_run,
					ACCMEM_ALLOC_CONTIGUOUS, &a[0]));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[0].address));
}

/*
 * Random sizes and alignments. The buffers do not overlap, are aligned, and keep their
 * contents.
 */
TEST_F(small, blocks_are_apart)
{
	static struct accmem_alloc a[MANY];
	static char *p[MANY];
	uint64_t seed = accmem_seed();
	unsigned int i, j;

	for (i = 0; i < MANY; i++) {
		a[i] = (struct accmem_alloc){
			.length = 8 + accmem_random(&seed) % 2041,
			.alignment = 1u << accmem_random(&seed) % 12,
		};
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a[i]));
		ASSERT_EQ(ALIGN_UP(a[i].length, 64), a[i].footprint);
		ASSERT_EQ(0, a[i].address % a[i].alignment);
		ASSERT_EQ(a[i].address / GRANULE,
			  (a[i].address + a[i].footprint - 1) / GRANULE);
		for (j = 0; j < i; j++)
			ASSERT_FALSE(overlap(&a[i], &a[j]));
		p[i] = map_at(self->fd, a[i].address, 1);
		ASSERT_NE(NULL, p[i]);
		ASSERT_EQ(-1, accmem_first_nonzero(p[i], a[i].length));
		accmem_fill(p[i], a[i].length, i);
	}
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(-1, accmem_check(p[i], a[i].length, i));
	for (i = 0; i < MANY; i++) {
		if (i % 2)
			unmap(p[i], 1);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
		if (i % 2 == 0)
			unmap(p[i], 1);
	}
}

/* Each buffer of a granule has its own address. */
TEST_F(small, names)
{
	struct accmem_alloc a, b;
	struct accmem_query q;
	int other;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 100, 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 1000, 0, &b));
	ASSERT_EQ(page_of(&a), page_of(&b));
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, b.address + 999, &q));
	EXPECT_EQ(b.address, q.base);
	EXPECT_EQ(999, q.offset);
	EXPECT_EQ(1000, q.length);
	EXPECT_EQ(1024, q.footprint);
	EXPECT_EQ(64, q.alignment);
	EXPECT_EQ(b.mmap_offset, q.mmap_offset);
	EXPECT_EQ(a.mmap_offset, q.mmap_offset);
	EXPECT_EQ(0, q.mmap_offset % GRANULE);
	/* there is no buffer behind the last one of the granule */
	EXPECT_EQ(-ENOENT, accmem_ioctl_query(self->fd, b.address + 1024, &q));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, b.address + 1024));
	EXPECT_EQ(-EINVAL, accmem_ioctl_free(self->fd, b.address + 64));
	EXPECT_EQ(-EINVAL, accmem_ioctl_free(self->fd, b.address + 1));

	other = accmem_opened(variant->path);
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(other, a.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_query(other, a.address, &q));
	EXPECT_EQ(NULL, accmem_mmap(other, &a, GRANULE, RW));
	EXPECT_EQ(ENXIO, errno);
	close(other);

	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_query(self->fd, a.address, &q));
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, b.address, &q));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	EXPECT_EQ(NULL, accmem_mmap(self->fd, &b, GRANULE, RW));
	EXPECT_EQ(ENXIO, errno);
}

/*
 * Requests that get a granule of their own. Each differs from a small one in one
 * argument.
 */
TEST_F(small, not_small)
{
	struct accmem_alloc a[] = {
		{ .length = 2049 },
		{ .length = 2017, .flags = ACCMEM_ALLOC_ROUND32 |
					   ACCMEM_ALLOC_TAIL32 },
		{ .length = 64, .alignment = 4096 },
		{ .length = 64, .flags = ACCMEM_ALLOC_TOP_DOWN },
		{ .length = 64, .page_policy = ACCMEM_PAGE_HUGE_ONLY },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(a); i++) {
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a[i]));
		EXPECT_EQ(0, a[i].address % GRANULE);
		EXPECT_EQ(a[i].page_size, a[i].footprint);
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	}
}

/* A mapping covers exactly the granule. */
TEST_F(small, a_mapping_shows_the_granule)
{
	struct accmem_alloc a, b;
	char *p, *q;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 640, 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 640, 0, &b));
	ASSERT_EQ(page_of(&a), page_of(&b));
	EXPECT_EQ(NULL, accmem_mmap(self->fd, &a, 2 * GRANULE, RW));
	EXPECT_EQ(ENXIO, errno);
	p = map_at(self->fd, a.address, 1);
	q = map_at(self->fd, b.address, 1);
	ASSERT_NE(NULL, p);
	ASSERT_NE(NULL, q);
	accmem_fill(p, 640, 1);
	accmem_fill(q, 640, 2);
	EXPECT_EQ(-1, accmem_check(p, 640, 1));
	EXPECT_EQ(-1, accmem_check(p + (b.address - a.address), 640, 2));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	unmap(p, 1);
	unmap(q, 1);
}

/*
 * A buffer is freed while it is mapped. It stays readable, does not count as free, and
 * its slots are not reused before munmap(). The granule is live as long as it has other
 * buffers.
 */
TEST_F(small, freed_while_mapped)
{
	static struct accmem_alloc more[MANY + 1];
	uint64_t before = accmem_free_now(self->fd);
	struct accmem_alloc a, b;
	unsigned int i;
	char *p;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 512, 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &b));
	p = map_at(self->fd, a.address, 1);
	ASSERT_NE(NULL, p);
	accmem_fill(p, 512, 7);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_EQ(GRANULE, live(variant->path));
	EXPECT_EQ(before - 64 - 512, accmem_free_now(self->fd));
	EXPECT_EQ(1, accmem_sysfs(variant->path, "buffers"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &more[i]));
		ASSERT_FALSE(overlap(&a, &more[i]));
	}
	EXPECT_EQ(-1, accmem_check(p, 512, 7));
	unmap(p, 1);
	more[MANY] = b;
	EXPECT_EQ(GRANULE * pages_of(more, MANY + 1), live(variant->path));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "quarantined_bytes"));
	/* a request of this size gets the hole, which reads as zero */
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 512, 0, &more[0]));
	EXPECT_EQ(a.address, more[0].address);
	p = map_at(self->fd, more[0].address, 1);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, accmem_first_nonzero(p, 512));
	unmap(p, 1);
}

/*
 * Units that were freed while mapped are checked before a new granule is taken, one
 * granule after the other. One of them is free here. The other buffers of the granules
 * keep their contents.
 */
TEST_F(small, looked_at_while_in_use)
{
	enum { PAGES = 16 };
	struct accmem_alloc keep[PAGES], gone, more;
	char *p[PAGES];
	unsigned int i, which;

	for (which = 0; which < PAGES; which++) {
		for (i = 0; i < PAGES; i++) {
			ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 2048, 0,
							&keep[i]));
			ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 2048, 0,
							&gone));
			ASSERT_EQ(page_of(&keep[i]), page_of(&gone));
			p[i] = map_at(self->fd, keep[i].address, 1);
			ASSERT_NE(NULL, p[i]);
			accmem_fill(p[i], 2048, i);
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, gone.address));
		}
		unmap(p[which], 1);
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 2048, 0, &more));
		p[which] = map_at(self->fd, keep[which].address, 1);
		ASSERT_NE(NULL, p[which]);
		for (i = 0; i < PAGES; i++) {
			ASSERT_EQ(-1, accmem_check(p[i], 2048, i)) {
				TH_LOG("granule %u", i);
			}
			unmap(p[i], 1);
			ASSERT_EQ(0, accmem_ioctl_free(self->fd,
						       keep[i].address));
		}
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, more.address));
	}
}

/* All of a granule was written to. New buffers in it read as zero. */
TEST_F(small, zero_when_cut_again)
{
	struct accmem_alloc keep, a;
	uint64_t length;
	char *p, *q;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &keep));
	p = map_at(self->fd, keep.address, 1);
	ASSERT_NE(NULL, p);
	accmem_fill(p - keep.address % GRANULE, GRANULE, 3);
	for (length = 64; length <= 2048; length *= 2) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, length, 0, &a));
		ASSERT_EQ(page_of(&keep), page_of(&a));
		q = p + (a.address - keep.address);
		EXPECT_EQ(-1, accmem_first_nonzero(q, length));
		if (length < 1024)
			EXPECT_NE(-1, accmem_first_nonzero(q + length, 64));
		memset(q, 0xa5, length);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
		unmap(p, 1);
		p = map_at(self->fd, keep.address, 1);
		ASSERT_NE(NULL, p);
	}
	unmap(p, 1);
}

/* A mapping of a granule outlives the buffers and the context. */
TEST_F(small, mapping_outlives_everything)
{
	struct accmem_alloc a, b;
	char *p;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 256, 0, &a));
	p = map_at(self->fd, a.address, 1);
	ASSERT_NE(NULL, p);
	accmem_fill(p, 256, 9);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(NULL, accmem_mmap(self->fd, &a, GRANULE, RW));
	EXPECT_EQ(ENXIO, errno);
	/* the context can still use the other slots */
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 2048, 0, &b));
	EXPECT_FALSE(overlap(&a, &b));
	close(self->fd);
	EXPECT_EQ(0, live(variant->path));
	EXPECT_EQ(GRANULE, accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	EXPECT_EQ(-1, accmem_check(p, 256, 9));
	unmap(p, 1);
	EXPECT_TRUE(accmem_is_idle(variant->path, 10000));
	self->fd = accmem_opened(variant->path);
}

/* Two contexts allocate by turns. No granule has buffers of both. */
TEST_F(small, contexts_are_apart)
{
	static struct accmem_alloc a[2][MANY];
	unsigned int i, j, c;
	int fd[2];
	char *p;

	fd[0] = self->fd;
	fd[1] = accmem_opened(variant->path);
	for (i = 0; i < MANY; i++) {
		for (c = 0; c < 2; c++) {
			ASSERT_EQ(0, accmem_alloc_bytes(fd[c], 64 + i % 5 * 64,
							0, &a[c][i]));
			p = map_at(fd[c], a[c][i].address, 1);
			ASSERT_NE(NULL, p);
			accmem_fill(p, a[c][i].footprint, c + 1);
			unmap(p, 1);
		}
	}
	for (i = 0; i < MANY; i++) {
		for (c = 0; c < 2; c++) {
			/* the granule has only what this context wrote */
			p = map_at(fd[c], a[c][i].address, 1);
			ASSERT_NE(NULL, p);
			ASSERT_EQ(-1, accmem_check(p, a[c][i].footprint,
						   c + 1));
			unmap(p, 1);
		}
		if (self->info.translation == ACCMEM_TRANSLATION_MAPPED)
			continue;
		for (j = 0; j < MANY; j++)
			ASSERT_NE(page_of(&a[0][i]), page_of(&a[1][j]));
	}
	close(fd[1]);
	/* new memory has nothing of the other context */
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 2048, 0, &a[1][i]));
		p = map_at(self->fd, a[1][i].address, 1);
		ASSERT_NE(NULL, p);
		ASSERT_EQ(-1, accmem_first_nonzero(p, 2048));
		unmap(p, 1);
	}
}

/*
 * A buffer is pinned when it is freed. Its slots are not reused before the pin has
 * gone. When the last buffer of the granule is freed, the whole granule goes to the
 * quarantine.
 */
TEST_F(small, freed_while_pinned)
{
	static struct accmem_alloc more[MANY];
	static char out[GRANULE];
	uint64_t before = accmem_free_now(self->fd);
	struct accmem_alloc a, b;
	unsigned int i;
	int pipes[2];
	char *p;

	if (!(self->info.features & ACCMEM_FEATURE_PIN))
		return; /* nothing can be pinned */
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 512, 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 512, 0, &b));
	p = map_at(self->fd, a.address, 1);
	ASSERT_NE(NULL, p);
	accmem_fill(p, 512, 5);
	ASSERT_TRUE(accmem_pin(pipes, p, 512));
	unmap(p, 1);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "quarantined_bytes"));
	EXPECT_EQ(GRANULE, live(variant->path));
	EXPECT_EQ(before - 2 * 512, accmem_free_now(self->fd));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &more[i]));
		ASSERT_FALSE(overlap(&a, &more[i]));
	}
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	for (i = 0; i < MANY; i++) {
		if (page_of(&more[i]) != page_of(&a))
			continue;
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, more[i].address));
		more[i].address = 0;
	}
	EXPECT_EQ(GRANULE, accmem_sysfs(variant->path, "quarantined_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	for (i = 0; i < MANY; i++) {
		if (more[i].address)
			continue;
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &more[i]));
		if (self->info.translation == ACCMEM_TRANSLATION_IDENTITY)
			ASSERT_FALSE(overlap(&a, &more[i]));
	}
	ASSERT_EQ(512, read(pipes[0], out, 512));
	EXPECT_EQ(-1, accmem_check(out, 512, 5));
	/* a pipe keeps an emptied page or two for reuse */
	accmem_unpin(pipes);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "quarantined_bytes", 0,
					5000));
}

/* allocates buffers of its size until one gets its address; 0 or -errno */
static int comes_back(int fd, const struct accmem_alloc *a, int ms)
{
	uint64_t end = accmem_ms() + ms;
	struct accmem_alloc b;
	int err;

	do {
		err = accmem_alloc_bytes(fd, a->length, 0, &b);
		if (err || b.address == a->address)
			return err;
	} while (accmem_ms() < end);
	return -ETIME;
}

/* While a neighbour is mapped, the driver cannot tell whether a buffer is pinned. */
TEST_F(small, neighbour_mapped)
{
	struct accmem_alloc a, b, c;
	uint64_t value;
	char *p, *q;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 512, 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 512, 0, &b));
	ASSERT_EQ(page_of(&a), page_of(&b));
	p = map_at(self->fd, a.address, 1);
	q = map_at(self->fd, b.address, 1);
	ASSERT_NE(NULL, p);
	ASSERT_NE(NULL, q);
	accmem_fill(p, 512, 1);
	accmem_fill(q, 512, 2);
	unmap(p, 1);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	/* the mapping of b shows the slots of a as well */
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 512, 0, &c));
	EXPECT_NE(a.address, c.address);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, c.address));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_EQ(-1, accmem_check(q, 512, 2));
	unmap(q, 1);
	/* and nothing else keeps them */
	EXPECT_EQ(0, comes_back(self->fd, &a, 5000));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "quarantined_bytes"));
	q = map_at(self->fd, b.address, 1);
	ASSERT_NE(NULL, q);
	EXPECT_EQ(-1, accmem_check(q, 512, 2));
	EXPECT_EQ(0, accmem_try_read(q, &value));
	unmap(q, 1);
}

/* Nor can it where another buffer of the compound page is mapped. A request finds out. */
TEST_F(small, neighbour_mapped_where_no_other_slot_is_left)
{
	int64_t saved = accmem_param("max_bytes_per_context");
	struct accmem_alloc big = {
		.length = MIB(2) - GRANULE,
		.flags = ACCMEM_ALLOC_FIXED,
		.address = self->info.address_base + self->info.capacity / 2,
	};
	struct accmem_alloc a[64], more;
	unsigned int i;
	char *p, *q;

	ASSERT_LE(0, saved);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(2)));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &big));
	for (i = 0; i < ARRAY_SIZE(a); i++)
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &a[i]));
	ASSERT_EQ(1, pages_of(a, ARRAY_SIZE(a)));
	p = map_at(self->fd, a[0].address, 1);
	q = map_at(self->fd, big.address, GRANULE);
	ASSERT_TRUE(p && q);
	accmem_fill(p, 64, 1);
	accmem_fill(q, GRANULE, 2);
	unmap(p, 1);
	for (i = 1; i < ARRAY_SIZE(a); i++)
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &more));
	EXPECT_EQ(-1, accmem_check(q, GRANULE, 2));
	EXPECT_EQ(0, accmem_param_set("max_bytes_per_context", saved));
	unmap(q, GRANULE);
}

/* The charge is the granule or the compound page. The other slots count as free. */
TEST_F(small, charged_by_the_granule)
{
	struct accmem_alloc a, b;
	struct accmem_info info;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 65, 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 2000, 0, &b));
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(page_of(&a), page_of(&b));
	EXPECT_EQ(accmem_charge_of(&info, &a, 1), info.context_bytes);
	EXPECT_EQ(self->info.free_bytes - 128 - 2048, info.free_bytes);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(accmem_charge_of(&info, &a, 1), info.context_bytes);
	EXPECT_EQ(self->info.free_bytes - 128, info.free_bytes);
}

/* When no granule is free, a context can still use the free slots of its own. */
TEST_F(small, the_last_granule)
{
	static struct accmem_alloc all[1024];
	struct accmem_alloc a, b, c;
	struct accmem_info info;
	int other, n;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 2048, 0, &a));
	other = accmem_opened(variant->path);
	n = accmem_take_all(other, 0, all, ARRAY_SIZE(all));
	ASSERT_LT(0, n);
	/* other contexts get nothing of this granule, or of its compound page */
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(other, 1, 0, &c));
	EXPECT_EQ(0, c.largest_run);
	EXPECT_EQ(accmem_charge_of(&self->info, &a, 1) - GRANULE, c.free_bytes);
	n = accmem_take_all(self->fd, 0, all, ARRAY_SIZE(all));
	ASSERT_LT(0, n);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(0, info.free_bytes);
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->fd, 1, 0, &b));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->fd, 2049, 0, &b));
	EXPECT_EQ(2048, b.free_bytes);
	EXPECT_EQ(2048, b.largest_run);
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, 2048, 0, &b));
	close(other);
}

/* Cache modes do not share granules. */
TEST_F(small, cache_modes_are_apart)
{
	struct accmem_alloc a[3];
	unsigned int mode, other, offered = self->info.cache_modes;

	for (mode = 0; mode < 3; mode++) {
		a[mode] = (struct accmem_alloc){ .length = 64,
						 .cache_mode = mode };
		if (!(offered & 1u << mode)) {
			EXPECT_EQ(mode == ACCMEM_CACHE_WB ? 0 : -EOPNOTSUPP,
				  accmem_ioctl_alloc(self->fd, &a[mode]));
			continue;
		}
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a[mode]));
		for (other = 0; other < mode; other++) {
			if (offered & 1u << other)
				EXPECT_NE(page_of(&a[mode]),
					  page_of(&a[other]));
		}
	}
}

static int fill_and_exit(void *arg)
{
	struct accmem_alloc a;
	unsigned int i;
	char *p;
	int fd = accmem_opened(arg);

	for (i = 0; i < accmem_scale(2000); i++) {
		if (accmem_alloc_bytes(fd, 1 + i * 37 % 2048, 0, &a))
			return 2;
		if (i % 7)
			continue;
		p = map_at(fd, a.address, 1);
		if (!p)
			return 3;
		memset(p, 1, a.length);
		if (i % 3 == 0 && accmem_ioctl_free(fd, a.address))
			return 4;
	}
	return 0;
}

TEST_F(small, exit_with_everything)
{
	EXPECT_EQ(0, accmem_in_child(fill_and_exit, (void *)variant->path));
	EXPECT_EQ(1, accmem_sysfs(variant->path, "contexts"));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
					self->info.capacity, 10000));
}

ACCMEM_HARNESS_MAIN
