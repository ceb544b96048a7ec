// SPDX-License-Identifier: GPL-2.0
/*
 * Batches: each entry has the result that a call of its own would have had, and an
 * atomic batch is done or not.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "batch_util.h"

BATCH_FIXTURE(batch)

TEST_F(batch, each_entry_has_its_result)
{
	static const struct {
		struct accmem_batch_alloc ask;
		int result;
	} rows[] = {
		{ { .length = 4096 }, 0 },
		{ { .length = 0 }, -EINVAL },
		{ { .length = 100 }, 0 },
		{ { .length = ~0ull }, -EOVERFLOW },
		{ { .length = 4096, .flags = 1u << 31 }, -EINVAL },
		{ { .length = 4096, .alignment = 3 }, -EINVAL },
		{ { .length = 8192, .alignment = MIB(1) }, 0 },
		{ { .length = 4096, .carveout = 1 }, -EINVAL },
		{ { .length = 4096, .kind = 3 }, -EINVAL },
		{ { .length = 4096, .cache_mode = 3 }, -EINVAL },
		{ { .length = 4096, .page_policy = 9 }, -EINVAL },
		{ { .length = MIB(2), .page_policy = ACCMEM_PAGE_HUGE_ONLY }, 0 },
		{ { .length = 1ull << 50 }, -ENOMEM },
		{ { .length = KIB(64), .flags = ACCMEM_ALLOC_TOP_DOWN }, 0 },
		{ { .length = 10, .flags = ACCMEM_ALLOC_ROUND32 |
					   ACCMEM_ALLOC_TAIL32 }, 0 },
	};
	const unsigned int n = ARRAY_SIZE(rows);
	struct accmem_batch batch = {
		.count = n,
		.entries = (uintptr_t)self->a,
		.entry_size = sizeof(*self->a),
	};
	unsigned int i, good = 0;

	for (i = 0; i < n; i++) {
		self->a[i] = rows[i].ask;
		self->a[i].result = 1;
	}
	ASSERT_EQ(0, accmem_ioctl_batch(self->fd, &batch));
	EXPECT_EQ(n, batch.done);
	EXPECT_EQ(accmem_free_now(self->fd), batch.free_bytes);
	EXPECT_LT(0, batch.largest_run);
	for (i = 0; i < n; i++) {
		EXPECT_EQ(rows[i].result, self->a[i].result) {
			TH_LOG("entry %u", i);
		}
		if (rows[i].result)
			continue;
		EXPECT_EQ(0, differs(self->fd, &self->a[i])) {
			TH_LOG("entry %u", i);
		}
		self->f[good++].address = self->a[i].address;
	}
	ASSERT_EQ(0, FREE(0, good));
}

TEST_F(batch, free_each_entry_has_its_result)
{
	int expected[6] = { 0, -ENOENT, -EINVAL, -ENOENT, -EINVAL, 0 };
	unsigned int i;

	ask(self->a, 2, 3 * 4096);
	ASSERT_EQ(0, ALLOC(0, 2));
	/* one, the same again, inside one, none, malformed, another */
	self->f[0].address = self->a[0].address;
	self->f[1].address = self->a[0].address;
	self->f[2].address = self->a[1].address + 4096;
	self->f[3].address = 4096;
	self->f[4].address = self->a[1].address;
	self->f[4].reserved = 1;
	self->f[5].address = self->a[1].address;
	ASSERT_EQ(0, FREE(0, 6));
	EXPECT_EQ(6, self->done);
	for (i = 0; i < 6; i++)
		EXPECT_EQ(expected[i], self->f[i].result);
}

/* also what the entries of rows say, and that nobody sees a neighbour's bytes */
static void fill_and_free(struct __test_metadata *_metadata,
			  struct _test_data_batch *self, uint64_t length,
			  uint32_t flags)
{
	uint64_t seed = accmem_seed();
	unsigned int i, j;

	ask(self->a, MAX, length);
	ASSERT_EQ(0, ALLOC(flags, MAX));
	ASSERT_EQ(MAX, self->done);
	for (i = 0; i < MAX; i++) {
		ASSERT_EQ(0, differs(self->fd, &self->a[i]));
	}
	ASSERT_FALSE(overlap(self->a, MAX));
	/* in an order of no kind */
	for (i = MAX - 1; i; i--) {
		struct accmem_batch_alloc swap = self->a[i];

		j = accmem_random(&seed) % (i + 1);
		self->a[i] = self->a[j];
		self->a[j] = swap;
	}
	name(self->f, self->a, MAX);
	ASSERT_EQ(0, FREE(flags, MAX));
	ASSERT_EQ(MAX, self->done);
	for (i = 0; i < MAX; i++)
		ASSERT_EQ(0, self->f[i].result);
	EXPECT_EQ(self->free_bytes, accmem_free_now(self->fd));
}

TEST_F(batch, full_of_equal_buffers)
{
	fill_and_free(_metadata, self, 4096, 0);
	fill_and_free(_metadata, self, 4096, ATOMIC);
	fill_and_free(_metadata, self, 3 * 4096, 0);
}

TEST_F(batch, full_of_small_buffers)
{
	fill_and_free(_metadata, self, 100, 0);
	fill_and_free(_metadata, self, 64, ATOMIC);
}

TEST_F(batch, none)
{
	EXPECT_EQ(0, ALLOC(0, 0));
	EXPECT_EQ(0, FREE(0, 0));
	EXPECT_EQ(0, ALLOC(ATOMIC, 0));
	EXPECT_EQ(0, FREE(ATOMIC, 0));
	EXPECT_EQ(0, self->done);
}

TEST_F(batch, malformed)
{
	struct accmem_batch good = {
		.op = ACCMEM_BATCH_ALLOC,
		.count = 1,
		.entries = (uintptr_t)self->a,
		.entry_size = sizeof(*self->a),
	}, bad;
	unsigned int op;

	ask(self->a, 1, 4096);
	for (op = ACCMEM_BATCH_ALLOC; op <= ACCMEM_BATCH_FREE; op++) {
		good.op = op;
		good.entry_size = op ? sizeof(*self->f) : sizeof(*self->a);
		bad = good;
		bad.op = 2 + op;
		EXPECT_EQ(-EINVAL, accmem_ioctl_batch(self->fd, &bad));
		bad = good;
		bad.count = MAX + 1;
		EXPECT_EQ(-EINVAL, accmem_ioctl_batch(self->fd, &bad));
		bad = good;
		bad.entry_size -= 8;
		EXPECT_EQ(-EINVAL, accmem_ioctl_batch(self->fd, &bad));
		bad.entry_size = 0;
		EXPECT_EQ(-EINVAL, accmem_ioctl_batch(self->fd, &bad));
		bad.entry_size = good.entry_size + 4;
		EXPECT_EQ(-EINVAL, accmem_ioctl_batch(self->fd, &bad));
		bad.entry_size = 4096 + 8;
		EXPECT_EQ(-E2BIG, accmem_ioctl_batch(self->fd, &bad));
		bad.entry_size = ~7u;
		EXPECT_EQ(-E2BIG, accmem_ioctl_batch(self->fd, &bad));
		EXPECT_EQ(0, bad.done);
	}
	EXPECT_EQ(1, self->a[0].result);
}

/* entries of a program that knows more than the kernel */
TEST_F(batch, longer_entries)
{
	struct {
		struct accmem_batch_alloc a;
		uint64_t more;
	} entries[3] = {};
	struct accmem_batch batch = {
		.count = 3,
		.entries = (uintptr_t)entries,
		.entry_size = sizeof(entries[0]),
	};
	unsigned int i;

	for (i = 0; i < 3; i++)
		entries[i].a.length = 4096;
	entries[2].more = 1ull << 63;
	EXPECT_EQ(-E2BIG, accmem_ioctl_batch(self->fd, &batch));
	EXPECT_EQ(0, batch.done);
	entries[2].more = 0;
	ASSERT_EQ(0, accmem_ioctl_batch(self->fd, &batch));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, differs(self->fd, &entries[i].a));
		self->f[i].address = entries[i].a.address;
	}
	ASSERT_EQ(0, FREE(0, 3));
}

TEST_F(batch, array_nowhere)
{
	const uint64_t nowhere[] = { 0, 1, -4096ull, -8ull, 1ull << 63 };
	struct accmem_batch batch = {};
	unsigned int i, op, flags;

	for (i = 0; i < ARRAY_SIZE(nowhere); i++)
		for (op = 0; op < 2; op++)
			for (flags = 0; flags < 2; flags++) {
				batch.flags = flags;
				batch.op = op;
				batch.count = MAX;
				batch.entries = nowhere[i];
				batch.entry_size = op ? sizeof(*self->f) :
							sizeof(*self->a);
				EXPECT_EQ(-EFAULT, accmem_ioctl_batch(self->fd,
								      &batch));
				EXPECT_EQ(0, batch.done);
			}
}

/* @readable pages, one more that can be read only if @more; the end of the first */
static char *pages_end(int readable, int prot)
{
	char *p = mmap(NULL, (readable + 1) * 4096, RW,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + readable * 4096, 4096, prot))
		return NULL;
	return p + readable * 4096;
}

/* An array may end with a page; what goes on beyond ends the batch there. */
TEST_F(batch, array_ends_with_a_page)
{
	struct accmem_batch_alloc *a;
	struct accmem_batch_free *f;
	const unsigned int n = 100;
	char *end = pages_end(2, PROT_NONE);
	unsigned int i;

	ASSERT_NE(NULL, end);
	a = (void *)(end - n * sizeof(*a));
	ask(a, n, 4096);
	ASSERT_EQ(0, accmem_batch_allocs(self->fd, 0, a, n, &self->done));
	EXPECT_EQ(n, self->done);
	memcpy(self->a, a, n * sizeof(*a));
	f = (void *)(end - n * sizeof(*f));
	name(f, self->a, n);
	ASSERT_EQ(0, accmem_batch_frees(self->fd, 0, f, n, &self->done));
	EXPECT_EQ(n, self->done);

	ask(a, n, 4096);
	EXPECT_EQ(-EFAULT,
		  accmem_batch_allocs(self->fd, 0, a, MAX, &self->done));
	EXPECT_EQ(n, self->done);
	EXPECT_EQ(n, accmem_sysfs(variant->path, "buffers"));
	for (i = 0; i < n; i++)
		EXPECT_EQ(0, differs(self->fd, &a[i]));
	memcpy(self->a, a, n * sizeof(*a));
	name(f, self->a, n);
	EXPECT_EQ(-EFAULT,
		  accmem_batch_frees(self->fd, 0, f, MAX, &self->done));
	EXPECT_EQ(n, self->done);
	for (i = 0; i < n; i++)
		EXPECT_EQ(0, f[i].result);

	/* all or none: none */
	ask(a, n, 4096);
	EXPECT_EQ(-EFAULT,
		  accmem_batch_allocs(self->fd, ATOMIC, a, MAX, &self->done));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
}

/* What cannot be told of does not exist, or was freed. */
TEST_F(batch, results_cannot_be_written)
{
	struct accmem_batch_alloc *a;
	struct accmem_batch_free *f;
	unsigned int i, n = 200, told;
	char *end = pages_end(1, RW);

	ASSERT_NE(NULL, end);
	/* the second page can be read only */
	a = (void *)(end - 20 * sizeof(*a));
	n = 20 + 4096 / sizeof(*a);
	ask(a, n, 4096);
	ASSERT_EQ(0, mprotect(end, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT,
		  accmem_batch_allocs(self->fd, ATOMIC, a, n, &self->done));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
	EXPECT_EQ(-EFAULT, accmem_batch_allocs(self->fd, 0, a, n, &self->done));
	EXPECT_EQ(20, self->done);
	EXPECT_EQ(20, accmem_sysfs(variant->path, "buffers"));
	for (i = 0; i < 20; i++)
		EXPECT_EQ(0, differs(self->fd, &a[i]));
	memcpy(self->a, a, 20 * sizeof(*a));

	told = 10;
	ASSERT_EQ(0, mprotect(end, 4096, RW));
	f = (void *)(end - told * sizeof(*f));
	name(f, self->a, 20);
	ASSERT_EQ(0, mprotect(end, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT,
		  accmem_batch_frees(self->fd, ATOMIC, f, 20, &self->done));
	EXPECT_EQ(told, self->done);
	EXPECT_EQ(20, accmem_sysfs(variant->path, "buffers"));
	EXPECT_EQ(-EFAULT, accmem_batch_frees(self->fd, 0, f, 20, &self->done));
	EXPECT_EQ(20, self->done);
	EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
}

TEST_F(batch, atomic_alloc_is_all_or_none)
{
	uint64_t before;

	ask(self->a, MAX, 4096);
	ASSERT_EQ(0, ALLOC(0, 3));
	name(self->f, self->a, 3);
	before = accmem_free_now(self->fd);
	self->a[700].length = 0;
	EXPECT_EQ(-EINVAL, ALLOC(ATOMIC, MAX));
	EXPECT_EQ(700, self->done);
	EXPECT_EQ(before, accmem_free_now(self->fd));
	EXPECT_EQ(3, accmem_sysfs(variant->path, "buffers"));
	/* together more than there is, though each could be had */
	ask(self->a, 3, self->info.largest_run / 2);
	EXPECT_EQ(-ENOMEM, ALLOC(ATOMIC, 3));
	EXPECT_EQ(before, accmem_free_now(self->fd));
	EXPECT_EQ(3, accmem_sysfs(variant->path, "buffers"));
	EXPECT_EQ(0, FREE(ATOMIC, 3));
}

TEST_F(batch, atomic_free_is_all_or_none)
{
	int other = accmem_dev_open(variant->path, O_RDWR);
	struct accmem_alloc foreign;
	uint64_t wrong[4], good;
	int expected[4] = { -ENOENT, -EINVAL, -ENOENT, -ENOENT };
	unsigned int i;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, accmem_alloc_bytes(other, MIB(4), 0, &foreign));
	ask(self->a, 100, 8192);
	ASSERT_EQ(0, ALLOC(0, 100));
	name(self->f, self->a, 100);
	good = self->f[90].address;
	/* named twice, inside one, nowhere, another context's */
	wrong[0] = self->a[10].address;
	wrong[1] = self->a[90].address + 4096;
	wrong[2] = 4096;
	wrong[3] = foreign.address;
	for (i = 0; i < 4; i++) {
		/* with mapped translation it may be ours by chance */
		if (i == 3 &&
		    self->info.translation == ACCMEM_TRANSLATION_MAPPED)
			continue;
		self->f[90].address = wrong[i];
		EXPECT_EQ(expected[i], FREE(ATOMIC, 100)) {
			TH_LOG("case %u", i);
		}
		EXPECT_EQ(90, self->done);
		EXPECT_EQ(101, accmem_sysfs(variant->path, "buffers"));
	}
	self->f[90].address = good;
	self->f[95].reserved = 1;
	EXPECT_EQ(-EINVAL, FREE(ATOMIC, 100));
	EXPECT_EQ(95, self->done);
	for (i = 0; i < 100; i++)
		EXPECT_EQ(0, differs(self->fd, &self->a[i]));
	self->f[95].reserved = 0;
	EXPECT_EQ(0, FREE(ATOMIC, 100));
	EXPECT_EQ(100, self->done);
	close(other);
}

/* memory that runs out in the middle of a batch: what there was is given */
TEST_F(batch, memory_runs_out)
{
	struct accmem_batch batch = {
		.count = 16,
		.entries = (uintptr_t)self->a,
		.entry_size = sizeof(*self->a),
	};
	unsigned int i, good = 0;

	ask(self->a, 16, self->info.capacity / 8);
	ASSERT_EQ(0, accmem_ioctl_batch(self->fd, &batch));
	EXPECT_EQ(16, batch.done);
	for (i = 0; i < 16; i++) {
		if (!self->a[i].result)
			self->f[good++].address = self->a[i].address;
		else
			EXPECT_EQ(-ENOMEM, self->a[i].result);
	}
	EXPECT_LE(6, good);
	EXPECT_GE(8, good);
	EXPECT_EQ(accmem_free_now(self->fd), batch.free_bytes);
	ASSERT_EQ(0, FREE(0, good));
}

TEST_F(batch, limit_of_the_context)
{
	int64_t old = accmem_param("max_bytes_per_context");
	unsigned int i, good = 0;

	ask(self->a, 64, MIB(1));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(8)));
	EXPECT_EQ(-EDQUOT, ALLOC(ATOMIC, 64));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
	EXPECT_EQ(0, ALLOC(0, 64));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", old));
	for (i = 0; i < 64; i++) {
		if (!self->a[i].result)
			self->f[good++].address = self->a[i].address;
		else
			EXPECT_EQ(-EDQUOT, self->a[i].result);
	}
	EXPECT_EQ(8, good);
	ASSERT_EQ(0, FREE(0, good));
}

ACCMEM_HARNESS_MAIN
