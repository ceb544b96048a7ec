// SPDX-License-Identifier: GPL-2.0
/*
 * System calls on mappings that are meant for ordinary memory. They have no meaning
 * for device memory, or would do harm. Each of them may succeed or fail. In both cases
 * the contents must stay, and all memory must be free in the end.
 */
#include "accmem_test.h"

#define LENGTH MIB(6)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

FIXTURE(map_hostile)
{
	int fd;
	struct accmem_info info;
	struct accmem_alloc buf;
	char *p;
};

ACCMEM_VARIANTS(map_hostile);

FIXTURE_SETUP(map_hostile)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &limit);
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &self->buf));
	self->p = accmem_mapped_huge(self->fd, &self->buf, LENGTH);
}

FIXTURE_TEARDOWN(map_hostile)
{
	munmap(self->p, LENGTH);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

static const struct {
	const char *name;
	int advice;
} advices[] = {
	{ "NORMAL", MADV_NORMAL },
	{ "RANDOM", MADV_RANDOM },
	{ "SEQUENTIAL", MADV_SEQUENTIAL },
	{ "WILLNEED", MADV_WILLNEED },
	{ "DONTNEED", MADV_DONTNEED },
	{ "FREE", MADV_FREE },
	{ "REMOVE", MADV_REMOVE },
	{ "DOFORK", MADV_DOFORK },
	{ "MERGEABLE", MADV_MERGEABLE },
	{ "UNMERGEABLE", MADV_UNMERGEABLE },
	{ "HUGEPAGE", MADV_HUGEPAGE },
	{ "NOHUGEPAGE", MADV_NOHUGEPAGE },
	{ "DODUMP", MADV_DODUMP },
	{ "DONTDUMP", MADV_DONTDUMP },
	{ "WIPEONFORK", MADV_WIPEONFORK },
	{ "KEEPONFORK", MADV_KEEPONFORK },
	{ "COLD", MADV_COLD },
	{ "PAGEOUT", MADV_PAGEOUT },
	{ "POPULATE_READ", MADV_POPULATE_READ },
	{ "POPULATE_WRITE", MADV_POPULATE_WRITE },
	{ "DONTNEED_LOCKED", MADV_DONTNEED_LOCKED },
	{ "COLLAPSE", MADV_COLLAPSE },
};

TEST_F(map_hostile, madvise_all)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(advices); i++) {
		accmem_fill(self->p, LENGTH, i);
		madvise(self->p, LENGTH, advices[i].advice);
		ASSERT_EQ(-1, accmem_check(self->p, LENGTH, i)) {
			TH_LOG("MADV_%s", advices[i].name);
		}
	}
}

/* Advice on 4 KiB, and on 1 MiB that begins inside a huge entry. */
TEST_F(map_hostile, madvise_a_part)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(advices); i++) {
		accmem_fill(self->p, LENGTH, i);
		madvise(self->p + MIB(1) + 4096, 4096, advices[i].advice);
		madvise(self->p + MIB(3), MIB(2), advices[i].advice);
		ASSERT_EQ(-1, accmem_check(self->p, LENGTH, i)) {
			TH_LOG("MADV_%s", advices[i].name);
		}
	}
}

TEST_F(map_hostile, madvise_before_touch)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(advices); i++)
		madvise(self->p, LENGTH, advices[i].advice);
	EXPECT_EQ(-1, accmem_first_nonzero(self->p, LENGTH));
}

TEST_F(map_hostile, mlock)
{
	accmem_fill(self->p, LENGTH, 1);
	mlock(self->p, LENGTH);
	munlock(self->p + MIB(1), 4096);
	mlock(self->p + MIB(3), 4096);
	syscall(SYS_mlock2, self->p, LENGTH, 1 /* MLOCK_ONFAULT */);
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 1));
	munlock(self->p, LENGTH);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	munlockall();
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 1));
}

/* The memory is freed and unmapped while it is locked. */
TEST_F(map_hostile, free_while_locked)
{
	mlock(self->p, LENGTH);
	accmem_fill(self->p, LENGTH, 2);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->buf.address));
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 2));
	munmap(self->p, LENGTH);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
					self->info.capacity, 10000));
}

TEST_F(map_hostile, populate_and_locked)
{
	const int flags[] = { MAP_POPULATE, MAP_LOCKED,
			      MAP_POPULATE | MAP_LOCKED,
			      MAP_POPULATE | MAP_NONBLOCK, MAP_NORESERVE };
	unsigned int i;
	char *q;

	accmem_fill(self->p, LENGTH, 3);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		q = accmem_mmap_at(NULL, self->fd, self->buf.mmap_offset,
				   LENGTH, RW, MAP_SHARED | flags[i]);
		ASSERT_NE(NULL, q);
		EXPECT_EQ(-1, accmem_check(q, LENGTH, 3));
		munmap(q, LENGTH);
	}
}

TEST_F(map_hostile, msync_and_mincore)
{
	unsigned char vec[LENGTH / 4096];

	accmem_fill(self->p, LENGTH, 4);
	msync(self->p, LENGTH, MS_SYNC | MS_INVALIDATE);
	msync(self->p, LENGTH, MS_ASYNC);
	mincore(self->p, LENGTH, vec);
	fsync(self->fd);
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 4));
}

/* Page migration, requested by address and by policy. */
TEST_F(map_hostile, move_pages)
{
	enum { N = 600 };
	void *pages[N];
	int nodes[N], status[N];
	unsigned long node0 = 1;
	unsigned int i;

	accmem_fill(self->p, LENGTH, 5);
	for (i = 0; i < N; i++) {
		pages[i] = self->p + i * 4096;
		nodes[i] = 0;
	}
	syscall(SYS_move_pages, 0, N, pages, nodes, status, 1 << 1);
	syscall(SYS_move_pages, 0, N, pages, NULL, status, 0);
	syscall(SYS_mbind, self->p, LENGTH, 2 /* BIND */, &node0, 64ul,
		1 << 0 | 1 << 1 /* STRICT | MOVE */);
	syscall(SYS_migrate_pages, 0, 64ul, &node0, &node0);
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 5));
}

TEST_F(map_hostile, compaction_and_reclaim)
{
	accmem_fill(self->p, LENGTH, 6);
	accmem_write_file("/proc/sys/vm/compact_memory", "1");
	accmem_write_file("/proc/sys/vm/drop_caches", "3");
	accmem_write_file("/proc/self/clear_refs", "1");
	accmem_write_file("/proc/self/clear_refs", "4");
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 6));
	accmem_fill(self->p, LENGTH, 7);
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 7));
}

/* Files in /proc that walk page tables handle the mapping like any other. */
TEST_F(map_hostile, proc_files)
{
	static const char *const files[] = { "/proc/self/smaps",
					     "/proc/self/smaps_rollup",
					     "/proc/self/numa_maps",
					     "/proc/self/maps" };
	static char text[1 << 20];
	uint64_t entry[64];
	unsigned int i;
	int fd, n;

	accmem_fill(self->p, LENGTH, 8);
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		n = accmem_read_file(files[i], text, sizeof(text));
		EXPECT_TRUE(n > 0 || n == -ENOENT);
	}
	fd = open("/proc/self/pagemap", O_RDONLY);
	if (fd >= 0) {
		EXPECT_EQ(sizeof(entry),
			  pread(fd, entry, sizeof(entry),
				(uintptr_t)self->p / 4096 * 8));
		close(fd);
	}
	EXPECT_EQ(-1, accmem_check(self->p, LENGTH, 8));
}

/*
 * smaps shows that the mapping does not grow (de), is not executable (me), and without
 * page structures not in core dumps (dd).
 */
TEST_F(map_hostile, flags)
{
	bool pages = strcmp(variant->path, ACCMEM_DEV_NOPAGES);
	static char text[1 << 20];
	char *at, *flags, name[64];
	int n;

	n = accmem_read_file("/proc/self/smaps", text, sizeof(text));
	if (n == -ENOENT)
		SKIP(return, "no smaps in this kernel");
	ASSERT_LT(0, n);
	snprintf(name, sizeof(name), "%lx-", (unsigned long)self->p);
	at = strstr(text, name);
	ASSERT_NE(NULL, at);
	flags = strstr(at, "VmFlags:");
	ASSERT_NE(NULL, flags);
	*strchr(flags, '\n') = '\0';
	EXPECT_EQ(pages, !strstr(flags, " dd"))
	{
		TH_LOG("%s", flags);
	}
	EXPECT_NE(NULL, strstr(flags, " de"));
	EXPECT_EQ(NULL, strstr(flags, " me"));
}

ACCMEM_HARNESS_MAIN
