// SPDX-License-Identifier: GPL-2.0
/*
 * Batches: each entry has the result that a call of its own would have had, an
 * atomic batch is done or not, and whatever stops one half-way, nothing is lost:
 * every test ends with all memory free.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "accmem_util.h"

#define RW (PROT_READ | PROT_WRITE)
#define MAX ACCMEM_BATCH_MAX
#define ATOMIC ACCMEM_BATCH_ATOMIC

FIXTURE(batch)
{
	int fd;
	uint64_t free_bytes;
	uint32_t done;
	struct accmem_info info;
	struct accmem_batch_alloc *a;
	struct accmem_batch_free *f;
};

ACCMEM_VARIANTS(batch);

FIXTURE_SETUP(batch)
{
	self->fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	self->free_bytes = self->info.free_bytes;
	self->a = calloc(MAX, sizeof(*self->a));
	self->f = calloc(MAX, sizeof(*self->f));
	ASSERT_NE(NULL, self->a);
	ASSERT_NE(NULL, self->f);
}

FIXTURE_TEARDOWN(batch)
{
	EXPECT_EQ(self->free_bytes, accmem_free_now(self->fd));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

/* @n entries of @length bytes each, of which nothing was answered yet */
static void ask(struct accmem_batch_alloc *a, unsigned int n, uint64_t length)
{
	memset(a, 0, n * sizeof(*a));
	for (; n--; a++) {
		a->length = length;
		a->result = 1;
	}
}

/* free what @n entries say was allocated */
static void name(struct accmem_batch_free *f,
		 const struct accmem_batch_alloc *a, unsigned int n)
{
	memset(f, 0, n * sizeof(*f));
	for (; n--; f++, a++) {
		f->address = a->address;
		f->result = 1;
	}
}

#define ALLOC(flags, n) \
	accmem_batch_allocs(self->fd, flags, self->a, n, &self->done)
#define FREE(flags, n) \
	accmem_batch_frees(self->fd, flags, self->f, n, &self->done)

/* 0, or a line of the first thing that QUERY knows otherwise */
static int differs(int fd, const struct accmem_batch_alloc *a)
{
	struct accmem_query q;

#define MUST(condition)                  \
	do {                              \
		if (!(condition))         \
			return __LINE__;  \
	} while (0)

	MUST(!a->result);
	MUST(!accmem_ioctl_query(fd, a->address + a->usable - 1, &q));
	MUST(q.base == a->address);
	MUST(q.length == a->length && q.usable == a->usable);
	MUST(q.footprint == a->footprint && q.mmap_offset == a->mmap_offset);
	MUST(q.alloc_flags == a->flags && q.page_policy == a->page_policy);
	MUST(q.cache_mode == a->cache_mode && q.carveout == a->carveout);
	MUST(q.page_size == a->page_size && q.nr_runs == a->nr_runs);
	MUST(!a->alignment || a->address % a->alignment == 0);
	return 0;
}

static int by_address(const void *x, const void *y)
{
	const struct accmem_batch_alloc *a = x, *b = y;

	return (a->address > b->address) - (a->address < b->address);
}

/* sorts them; does any begin before the one below has ended? */
static bool overlap(struct accmem_batch_alloc *a, unsigned int n)
{
	unsigned int i;

	qsort(a, n, sizeof(*a), by_address);
	for (i = 1; i < n; i++) {
		if (a[i].address < a[i - 1].address + a[i - 1].footprint)
			return true;
	}
	return false;
}

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

/* one call each, of buffers that came together, in an order of no kind */
TEST_F(batch, buffers_of_a_batch_go_one_by_one)
{
	uint64_t seed = accmem_seed(), step = 0;
	unsigned int i, n = 64, pick, left;

	ask(self->a, n, 4096);
	ASSERT_EQ(0, ALLOC(0, n));
	for (left = n; left; left--) {
		uint64_t before = accmem_free_now(self->fd);

		pick = accmem_random(&seed) % left;
		ASSERT_EQ(0, accmem_ioctl_free(self->fd,
					       self->a[pick].address));
		EXPECT_EQ(before + 4096, accmem_free_now(self->fd));
		EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd,
						     self->a[pick].address));
		self->a[pick] = self->a[left - 1];
		for (i = 0; i < left - 1; i++)
			ASSERT_EQ(0, differs(self->fd, &self->a[i]));
		step++;
		/* the room is used again while others of the row are there */
		if (step % 3)
			continue;
		ask(&self->a[n], 1, 4096);
		ASSERT_EQ(0, accmem_batch_allocs(self->fd, 0, &self->a[n], 1,
						 NULL));
		self->a[left - 1] = self->a[n];
		left++;
	}
}

/* what batches give and take, mixed with single calls, is never given twice */
TEST_F(batch, no_byte_is_given_twice)
{
	uint64_t seed = accmem_seed();
	unsigned int live = 0, rounds = accmem_scale(200), i, n, pick;

	while (rounds--) {
		n = 1 + accmem_random(&seed) % 100;
		if (live + n > MAX)
			n = MAX - live;
		if (accmem_random(&seed) % 2 && n) {
			ask(&self->a[live], n,
			    4096 * (1 + accmem_random(&seed) % 3));
			ASSERT_EQ(0, accmem_batch_allocs(self->fd,
							 rounds & ATOMIC,
							 &self->a[live], n,
							 NULL));
			live += n;
			ASSERT_FALSE(overlap(self->a, live));
			continue;
		}
		for (i = 0; i < n && live; i++) {
			pick = accmem_random(&seed) % live;
			self->f[i].address = self->a[pick].address;
			self->a[pick] = self->a[--live];
		}
		ASSERT_EQ(0, FREE(rounds & ATOMIC, i));
	}
	name(self->f, self->a, live);
	ASSERT_EQ(0, FREE(ATOMIC, live));
}

/* A mapping holds the memory of its buffer, and of no other. */
TEST_F(batch, a_mapping_holds_one_buffer)
{
	const unsigned int n = 16;
	struct accmem_alloc middle = {};
	uint64_t before;
	unsigned int i;
	char *p;

	ask(self->a, n, 8192);
	ASSERT_EQ(0, ALLOC(0, n));
	before = accmem_free_now(self->fd);
	middle.mmap_offset = self->a[7].mmap_offset;
	p = accmem_mmap(self->fd, &middle, 8192, RW);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, accmem_first_nonzero(p, 8192));
	accmem_fill(p, 8192, 7);
	EXPECT_EQ(before, accmem_free_now(self->fd));
	/* no more than the buffer */
	EXPECT_EQ(NULL, accmem_mmap(self->fd, &middle, 3 * 4096, RW));
	EXPECT_EQ(ENXIO, errno);
	for (i = 0; i < n; i++)
		EXPECT_EQ(0, differs(self->fd, &self->a[i]));
	name(self->f, self->a, n);
	ASSERT_EQ(0, FREE(0, n));
	EXPECT_EQ(before + (n - 1) * 8192, accmem_free_now(self->fd));
	EXPECT_EQ(8192, accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_EQ(-1, accmem_check(p, 8192, 7));
	EXPECT_EQ(NULL, accmem_mmap(self->fd, &middle, 8192, RW));
	EXPECT_EQ(ENXIO, errno);
	munmap(p, 8192);
}

/* each shows zeros, and what was written there, and nothing of its neighbours */
TEST_F(batch, all_buffers_of_a_batch_can_be_mapped)
{
	const unsigned int n = 40;
	struct accmem_alloc one = {};
	unsigned int i;
	char *p[40];

	ask(self->a, n, 4096);
	ASSERT_EQ(0, ALLOC(ATOMIC, n));
	for (i = 0; i < n; i++) {
		one.mmap_offset = self->a[i].mmap_offset;
		p[i] = accmem_mmap(self->fd, &one, 4096, RW);
		ASSERT_NE(NULL, p[i]);
		ASSERT_EQ(-1, accmem_first_nonzero(p[i], 4096));
		accmem_fill(p[i], 4096, i);
	}
	for (i = 0; i < n; i++) {
		EXPECT_EQ(-1, accmem_check(p[i], 4096, i));
		EXPECT_EQ(0, differs(self->fd, &self->a[i]));
		munmap(p[i], 4096);
	}
	name(self->f, self->a, n);
	ASSERT_EQ(0, FREE(ATOMIC, n));
}

/* --- threads of one context ----------------------------------------------- */

struct crowd {
	int fd;
	const char *path;
	unsigned int rounds;
	unsigned int bad;
};

static void *crowd_batches(void *arg)
{
	struct accmem_batch_alloc a[48];
	struct accmem_batch_free f[48];
	struct crowd *crowd = arg;
	unsigned int i, round;
	uint32_t done;

	for (round = 0; round < crowd->rounds; round++) {
		ask(a, 48, 4096);
		if (accmem_batch_allocs(crowd->fd, round & ATOMIC, a, 48,
					&done) || done != 48)
			__atomic_add_fetch(&crowd->bad, 1, __ATOMIC_RELAXED);
		name(f, a, 48);
		/* the others free some of them, too */
		accmem_batch_frees(crowd->fd, round / 2 & ATOMIC, f, 48, &done);
		for (i = 0; i < 48; i++)
			accmem_ioctl_free(crowd->fd, a[i].address);
	}
	return NULL;
}

/* maps, asks about and frees whatever it meets */
static void *crowd_strangers(void *arg)
{
	struct crowd *crowd = arg;
	struct accmem_info info;
	struct accmem_alloc one = {};
	struct accmem_query q;
	uint64_t seed = 1, at;
	unsigned int round;
	char *p;

	accmem_ioctl_info(crowd->fd, &info);
	for (round = 0; round < 8 * crowd->rounds; round++) {
		at = accmem_random(&seed) % 256 * 4096;
		if (info.translation == ACCMEM_TRANSLATION_MAPPED)
			at += round * 8 * 4096;
		if (accmem_ioctl_query(crowd->fd, info.address_base + at, &q))
			continue;
		one.mmap_offset = q.mmap_offset;
		p = accmem_mmap(crowd->fd, &one, 4096, RW);
		if (p) {
			accmem_try_write(p, 1);
			munmap(p, 4096);
		}
		if (round % 3 == 0)
			accmem_ioctl_free(crowd->fd, q.base);
	}
	return NULL;
}

TEST_F(batch, threads_of_one_context)
{
	struct crowd crowd = { .fd = self->fd, .path = variant->path,
			       .rounds = accmem_scale(200) };
	pthread_t threads[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL,
					    i ? crowd_batches :
						crowd_strangers, &crowd));
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(0, crowd.bad);
	/* quarantined for a moment, where another thread had it mapped */
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
					self->info.capacity, 20000));
}

/* --- killed half-way ------------------------------------------------------ */

static void batches_for_ever(int fd, uint32_t flags, uint32_t alloc_flags)
{
	static struct accmem_batch_alloc a[MAX];
	static struct accmem_batch_free f[MAX];
	unsigned int i;

	for (;;) {
		ask(a, MAX, 4096);
		for (i = 0; i < MAX; i++)
			a[i].flags = alloc_flags;
		accmem_batch_allocs(fd, flags, a, MAX, NULL);
		name(f, a, MAX);
		accmem_batch_frees(fd, flags, f, MAX, NULL);
	}
}

/* The context lives on: whatever the dead did is freed with what they named. */
TEST_F(batch, killed_half_way)
{
	uint64_t seed = accmem_seed();
	unsigned int i, rounds = accmem_scale(24);
	pid_t pid;
	int fd;

	for (i = 0; i < rounds; i++) {
		fd = accmem_dev_open(variant->path, O_RDWR);
		ASSERT_LE(0, fd);
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			batches_for_ever(fd, i & ATOMIC, i & 2 ?
					 ACCMEM_ALLOC_POPULATE : 0);
		usleep(1000 + accmem_random(&seed) % 20000);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		EXPECT_TRUE(accmem_accounts_balance(variant->path));
		close(fd);
		ASSERT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
						self->info.capacity, 20000));
	}
}

ACCMEM_HARNESS_MAIN
