// SPDX-License-Identifier: GPL-2.0
/*
 * Isolation of contexts. One context fills memory with a pattern and gives it up: by
 * FREE, by close(), by munmap() after close(), or because its process is killed.
 * Another context then allocates everything and must find zeros only. The tests run on
 * every backing and in every cache mode, and check that the accounts balance all the
 * time.
 */
#include "accmem_test.h"

#define PIECES 24
#define ALL 1024

/* the ranges that the first context has written to */
struct trace {
	int ready;
	unsigned int n;
	struct accmem_alloc bufs[PIECES];
};

FIXTURE(isolation)
{
	struct trace *trace;
	uint64_t seed;
};

FIXTURE_VARIANT(isolation)
{
	const char *path;
	uint32_t cache_mode;
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(isolation, emulated)
{
	.path = ACCMEM_DEV_EMULATED,
};
FIXTURE_VARIANT_ADD(isolation, phys)
{
	.path = ACCMEM_DEV_PHYS,
};
FIXTURE_VARIANT_ADD(isolation, phys_populate)
{
	.path = ACCMEM_DEV_PHYS, .flags = ACCMEM_ALLOC_POPULATE,
};
FIXTURE_VARIANT_ADD(isolation, nopages_wb)
{
	.path = ACCMEM_DEV_NOPAGES,
};
FIXTURE_VARIANT_ADD(isolation, nopages_wc)
{
	.path = ACCMEM_DEV_NOPAGES, .cache_mode = ACCMEM_CACHE_WC,
};
FIXTURE_VARIANT_ADD(isolation, nopages_uc)
{
	.path = ACCMEM_DEV_NOPAGES, .cache_mode = ACCMEM_CACHE_UC,
};

FIXTURE_SETUP(isolation)
{
	self->seed = accmem_seed();
	self->trace = mmap(NULL, sizeof(*self->trace), RW,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->trace);
	ASSERT_TRUE(accmem_is_idle(variant->path, 10000));
}

FIXTURE_TEARDOWN(isolation)
{
	munmap(self->trace, sizeof(*self->trace));
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

/* the number of bytes that the first context writes: most of a small carveout */
static uint64_t fill_bytes(int fd)
{
	uint64_t most = accmem_touchable(fd) / 4 * 3;
	uint64_t want = MIB(accmem_scale(192));

	return want < most ? want : most;
}

/*
 * Allocates buffers of all sizes from both ends of the carveout, maps and fills them.
 * Returns their number, or -1.
 */
static int leave_pattern(int fd, uint32_t mode, struct trace *trace,
			 uint64_t seed, void **maps)
{
	uint64_t budget = fill_bytes(fd), sum = 0, length;
	struct accmem_alloc *a;
	unsigned int i;
	int err;

	for (i = 0; i < PIECES && sum < budget; i++) {
		length = i % 3 ? 4096 + accmem_random(&seed) % KIB(1500) :
				 MIB(2) + accmem_random(&seed) % (budget / 8);
		a = &trace->bufs[i];
		*a = (struct accmem_alloc){
			.length = ALIGN_UP(length, 4096),
			.cache_mode = mode,
			.flags = i & 1 ? ACCMEM_ALLOC_TOP_DOWN : 0,
		};
		err = accmem_ioctl_alloc(fd, a);
		maps[i] = err ? NULL : accmem_mmap(fd, a, a->footprint, RW);
		if (!maps[i]) {
			printf("# %llu bytes after %llu: %s\n",
			       (unsigned long long)a->length,
			       (unsigned long long)sum,
			       err ? strerror(-err) : "no mapping");
			return -1;
		}
		accmem_fill(maps[i], a->footprint, seed);
		sum += a->footprint;
		trace->n = i + 1;
	}
	return 0;
}

/*
 * the first nonzero offset of @a, or -1; checks each word where the first context
 * wrote, and samples elsewhere
 */
static int64_t dirty_at(const char *p, const struct accmem_alloc *a,
			const struct trace *trace)
{
	uint64_t from, to, end = a->address + a->footprint;
	const struct accmem_alloc *old;
	unsigned int i;
	int64_t at;

	at = accmem_sample_nonzero(p, a->footprint);
	for (i = 0; i < trace->n && at == -1; i++) {
		old = &trace->bufs[i];
		from = old->address > a->address ? old->address : a->address;
		to = old->address + old->footprint;
		to = to < end ? to : end;
		if (from >= to)
			continue;
		at = accmem_first_nonzero(p + (from - a->address), to - from);
		if (at != -1)
			at += from - a->address;
	}
	return at;
}

/*
 * A new context allocates all memory and checks it. If the memory has no fixed device
 * address, it checks as many bytes as were written.
 */
static int find_zeros(const char *path, uint32_t mode, uint32_t flags,
		      const struct trace *trace)
{
	static struct accmem_alloc all[ALL];
	struct accmem_info info;
	uint64_t left, look;
	int fd = accmem_dev_open(path, O_RDWR), n, i;
	int64_t at;
	char *p;

	if (fd < 0 || accmem_ioctl_info(fd, &info))
		return 1;
	if (flags & ACCMEM_ALLOC_POPULATE) {
		all[0] = (struct accmem_alloc){ .length = info.largest_run,
						.flags = flags };
		if (accmem_ioctl_alloc(fd, &all[0]))
			return 2;
		n = 1;
	} else {
		n = accmem_take_all(fd, mode, all, ALL);
		if (n <= 0 || accmem_free_now(fd))
			return 2;
	}
	left = accmem_touchable(fd);
	for (i = 0; i < n && left; i++) {
		look = all[i].footprint < left ? all[i].footprint : left;
		p = accmem_mmap_huge(fd, &all[i], look);
		if (!p)
			return 3;
		if (info.translation == ACCMEM_TRANSLATION_MAPPED) {
			at = accmem_first_nonzero(p, look);
		} else {
			look = all[i].footprint;
			at = dirty_at(p, &all[i], trace);
		}
		if (at != -1) {
			printf("# %s: not zero at %#llx: %#llx\n", path,
			       (unsigned long long)(all[i].address + at),
			       *(unsigned long long *)(p + at));
			return 4;
		}
		/* and leaves it dirty for the next context */
		memset(p, 0xa5, look < MIB(4) ? look : MIB(4));
		munmap(p, look);
		left -= look;
	}
	close(fd);
	return 0;
}

enum how { BY_CALL, BY_CALL_UNMAPPED, BY_CLOSE, BY_MUNMAP, BY_KILL };

struct first {
	const char *path;
	uint32_t mode;
	uint64_t seed;
	struct trace *trace;
	enum how how;
};

/* in a child: fills memory and gives it up in the given way; 0 on success */
static int first_context(void *arg)
{
	struct first *f = arg;
	int fd = accmem_dev_open(f->path, O_RDWR);
	void *maps[PIECES];
	unsigned int i;

	if (fd < 0 || leave_pattern(fd, f->mode, f->trace, f->seed, maps))
		return 1;
	if (!accmem_accounts_balance(f->path))
		return 2;
	if (f->how == BY_KILL) {
		__atomic_store_n(&f->trace->ready, 1, __ATOMIC_RELEASE);
		for (;;)
			pause();
	}
	for (i = 0; i < f->trace->n && f->how == BY_CALL_UNMAPPED; i++)
		munmap(maps[i], f->trace->bufs[i].footprint);
	for (i = 0; i < f->trace->n && f->how <= BY_CALL_UNMAPPED; i++)
		if (accmem_ioctl_free(fd, f->trace->bufs[i].address))
			return 3;
	if (f->how == BY_MUNMAP) {
		close(fd);
		if (accmem_sysfs(f->path, "detached_bytes") <= 0)
			return 4;
	}
	if (!accmem_accounts_balance(f->path))
		return 5;
	if (f->how == BY_CLOSE)
		close(fd);
	for (i = 0; i < f->trace->n && f->how != BY_CALL_UNMAPPED; i++)
		munmap(maps[i], f->trace->bufs[i].footprint);
	return 0;
}

static int run_first(struct first *f)
{
	pid_t pid = fork();
	unsigned int ms;

	if (!pid)
		_exit(first_context(f));
	if (f->how != BY_KILL)
		return accmem_wait_child(pid);
	for (ms = 0; ms < 60000; ms++) {
		if (__atomic_load_n(&f->trace->ready, __ATOMIC_ACQUIRE))
			break;
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return 254;
		usleep(1000);
	}
	kill(pid, SIGKILL);
	return accmem_wait_child(pid) == 128 + SIGKILL ? 0 : 253;
}

#define RUN(how_)                                                            \
	do {                                                                  \
		struct first f = { .path = variant->path,                     \
				   .mode = variant->cache_mode,               \
				   .seed = self->seed,                        \
				   .trace = self->trace,                      \
				   .how = how_ };                             \
		ASSERT_EQ(0, run_first(&f));                                  \
		ASSERT_LT(0, self->trace->n);                                 \
		EXPECT_TRUE(accmem_accounts_balance(variant->path));          \
		EXPECT_EQ(0, find_zeros(variant->path, variant->cache_mode,   \
					variant->flags, self->trace));        \
		EXPECT_TRUE(accmem_accounts_balance(variant->path));          \
	} while (0)

TEST_F(isolation, freed_by_call)
{
	RUN(BY_CALL);
}

TEST_F(isolation, freed_by_call_unmapped)
{
	RUN(BY_CALL_UNMAPPED);
}

TEST_F(isolation, freed_by_close)
{
	RUN(BY_CLOSE);
}

TEST_F(isolation, freed_by_munmap)
{
	RUN(BY_MUNMAP);
}

TEST_F(isolation, freed_by_kill)
{
	RUN(BY_KILL);
}

/* The accounts are checked while another process fills, frees and is killed. */
TEST_F(isolation, accounts_balance_throughout)
{
	struct first f = { .path = variant->path, .mode = variant->cache_mode,
			   .seed = self->seed, .trace = self->trace,
			   .how = BY_CALL };
	unsigned int samples = 0, i;
	int status;
	pid_t pid;

	/* this process may not run before the other has ended */
	for (i = 0; i < 20 && !samples; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(first_context(&f));
		while (!waitpid(pid, &status, WNOHANG)) {
			EXPECT_TRUE(accmem_accounts_balance(variant->path));
			samples++;
		}
		EXPECT_EQ(0, status);
	}
	EXPECT_LT(0, samples);
}

/*
 * The number of dirty bytes after one page of a buffer of 64 KiB was written. *@table
 * is the part of the mapping that one page table covers around that page.
 */
static int64_t dirty_after_one_page(const char *path, int fd, int64_t *table)
{
	uintptr_t page, low, high;
	struct accmem_alloc a;
	char *p;

	while (accmem_sysfs(path, "dirty_bytes") > 0)
		usleep(1000);
	if (accmem_alloc_bytes(fd, KIB(64), 0, &a))
		return -1;
	p = accmem_mmap(fd, &a, KIB(64), RW);
	if (!p)
		return -1;
	page = (uintptr_t)p + 3 * 4096;
	low = page / MIB(2) * MIB(2);
	high = low + MIB(2);
	if (low < (uintptr_t)p)
		low = (uintptr_t)p;
	if (high > (uintptr_t)p + KIB(64))
		high = (uintptr_t)p + KIB(64);
	*table = high - low;
	p[3 * 4096] = 1;
	munmap(p, KIB(64));
	if (accmem_ioctl_free(fd, a.address))
		return -1;
	return accmem_sysfs(path, "dirty_bytes");
}

/*
 * The cleaner may be faster, and untouched memory of others may become dirty meanwhile,
 * so one of the tries must succeed.
 */
TEST_F(isolation, only_what_a_fault_showed_is_dirty)
{
	int64_t dirty = -1, want = 0, table = 0;
	struct accmem_info info;
	unsigned int tries;
	bool all;
	int fd;

	fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(fd, &info));
	if (accmem_owns_folios(&info))
		want = 4096;
	all = info.backing == ACCMEM_BACKING_PHYS && !want;
	for (tries = 0; tries < 20 && dirty != want; tries++) {
		dirty = dirty_after_one_page(variant->path, fd, &table);
		if (all) /* a fault may fill the page table */
			want = table;
	}
	EXPECT_EQ(want, dirty);
	close(fd);
}

/*
 * Two contexts have alternate pages of the same large page. Neither sees or changes
 * memory of the other.
 */
TEST_F(isolation, neighbours)
{
	enum { N = 96 };
	static struct accmem_alloc a[2][N];
	uint64_t *p[2][N];
	unsigned int i, c;
	int fd[2];

	for (c = 0; c < 2; c++)
		fd[c] = accmem_opened(variant->path);
	for (i = 0; i < N; i++) {
		for (c = 0; c < 2; c++) {
			a[c][i] = (struct accmem_alloc){
				.length = 4096 + i % 3 * 4096,
				.cache_mode = variant->cache_mode,
			};
			ASSERT_EQ(0, accmem_ioctl_alloc(fd[c], &a[c][i]));
			p[c][i] = accmem_mmap(fd[c], &a[c][i], a[c][i].length,
					      RW);
			ASSERT_NE(NULL, p[c][i]);
			ASSERT_EQ(-1, accmem_first_nonzero(p[c][i],
							   a[c][i].length));
			accmem_fill(p[c][i], a[c][i].length, c * 1000 + i);
		}
	}
	for (i = 0; i < N; i++)
		for (c = 0; c < 2; c++) {
			ASSERT_EQ(-1,
				  accmem_check(p[c][i], a[c][i].length,
					       c * 1000 + i));
		}
	/* one context is closed; the data of the other stays */
	close(fd[0]);
	for (i = 0; i < N; i++)
		munmap(p[0][i], a[0][i].length);
	for (i = 0; i < N; i++) {
		ASSERT_EQ(-1, accmem_check(p[1][i], a[1][i].length, 1000 + i));
		munmap(p[1][i], a[1][i].length);
	}
	close(fd[1]);
}

static bool share_large_page(const struct accmem_alloc *a,
			     const struct accmem_alloc *b)
{
	uint64_t a_end = a->address + a->footprint;
	uint64_t b_end = b->address + b->footprint;

	return a->address / MIB(2) <= (b_end - 1) / MIB(2) &&
	       b->address / MIB(2) <= (a_end - 1) / MIB(2);
}

/*
 * Two contexts allocate and free runs of all lengths. A page of 2 MiB is pinned as a
 * whole, so none has memory of both. All pages are free in the end.
 */
TEST_F(isolation, no_large_page_of_two)
{
	enum { N = 12 };
	static struct accmem_alloc a[2][N];
	bool has_pages = !strcmp(variant->path, ACCMEM_DEV_PHYS);
	/* without pages nothing is shared, and each mapping is slow */
	unsigned int i, j, c, rounds = accmem_scale(has_pages ? 4000 : 1000);
	struct accmem_info info;
	int fd[2], err;

	for (c = 0; c < 2; c++)
		fd[c] = accmem_opened(variant->path);
	memset(a, 0, sizeof(a));
	while (rounds--) {
		struct accmem_alloc *new;

		c = accmem_random(&self->seed) % 2;
		i = accmem_random(&self->seed) % N;
		new = &a[c][i];
		if (new->footprint) {
			ASSERT_EQ(0, accmem_ioctl_free(fd[c], new->address));
			new->footprint = 0;
			continue;
		}
		*new = (struct accmem_alloc){
			.length = KIB(4) << accmem_random(&self->seed) % 11,
			.cache_mode = variant->cache_mode,
			.flags = variant->flags | ACCMEM_ALLOC_CONTIGUOUS,
		};
		if (accmem_random(&self->seed) % 2)
			new->length +=
				KIB(4) * (accmem_random(&self->seed) % 1024);
		err = accmem_ioctl_alloc(fd[c], new);
		if (err == -ENOMEM) {
			new->footprint = 0;
			continue;
		}
		ASSERT_EQ(0, err);
		for (j = 0; has_pages && j < N; j++) {
			if (!a[!c][j].footprint)
				continue;
			ASSERT_FALSE(share_large_page(new, &a[!c][j]));
		}
	}
	for (c = 0; c < 2; c++)
		for (i = 0; i < N; i++) {
			if (!a[c][i].footprint)
				continue;
			ASSERT_EQ(0, accmem_ioctl_free(fd[c], a[c][i].address));
		}
	/* waits for the cleaner, whose memory is not free for a moment */
	ASSERT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "dirty_bytes", 0, 60000));
	ASSERT_EQ(0, accmem_ioctl_info(fd[0], &info));
	EXPECT_EQ(info.capacity, info.largest_run);
	for (c = 0; c < 2; c++)
		close(fd[c]);
}

ACCMEM_HARNESS_MAIN
