// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that the kernel reports as failed. The test causes the reports by MADV_HWPOISON, and
 * by the kernel's module hwpoison-inject, which takes the number of any page frame. retire.sh
 * loads accmem for this program only, since poisoned pages are lost to the machine.
 */
#include "export_util.h"
#include "failed_util.h"

#ifndef MADV_HWPOISON
#define MADV_HWPOISON 100
#endif

#define LENGTH MIB(4)
#define BAD (5 * GRANULE)

FIXTURE(poison)
{
	int fd;
};

ACCMEM_VARIANTS_WITH_PAGES(poison);

FIXTURE_SETUP(poison)
{
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->fd = accmem_opened(variant->path);
}

FIXTURE_TEARDOWN(poison)
{
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "resident_bytes"));
}

#define BATCH 512

/* The number of the page frame of an entry of the page map, or 0 */
static uint64_t frame_of(uint64_t entry)
{
	return entry >> 63 ? entry & ((1ull << 55) - 1) : 0;
}

static int open_pagemap(void)
{
	return open("/proc/self/pagemap", O_RDONLY);
}

static uint64_t frame_at(const void *p)
{
	uint64_t entry = 0;
	int fd = open_pagemap();

	if (pread(fd, &entry, 8, (uintptr_t)p / 4096 * 8) != 8)
		entry = 0;
	close(fd);
	return frame_of(entry);
}

/* Touches @nr pages, at most BATCH. Has one of them this frame? */
static bool pages_have(int pagemap, char *p, uint64_t nr, uint64_t frame)
{
	uint64_t entries[BATCH], i;

	for (i = 0; i < nr; i++)
		p[i * 4096] = 1;
	if (pread(pagemap, entries, nr * 8, (uintptr_t)p / 4096 * 8) !=
	    (ssize_t)nr * 8)
		return true;
	for (i = 0; i < nr; i++) {
		if (frame_of(entries[i]) == frame)
			return true;
	}
	return false;
}

/* Does any page of all memory of the device have this frame? */
static bool has_frame(int fd, uint64_t frame)
{
	static struct accmem_alloc bufs[4096];
	int nr = accmem_take_all(fd, ACCMEM_CACHE_WB, bufs, 4096), i;
	int pagemap = open_pagemap();
	bool found = nr < 0;
	uint64_t at, all;
	char *p;

	for (i = 0; i < nr; i++) {
		p = accmem_mmap(fd, &bufs[i], bufs[i].footprint, RW);
		all = bufs[i].footprint / 4096;
		for (at = 0; p && at < all && !found; at += BATCH)
			found = pages_have(pagemap, p + at * 4096,
					   all - at < BATCH ? all - at : BATCH,
					   frame);
		if (p)
			munmap(p, bufs[i].footprint);
		else
			found = true;
	}
	close(pagemap);
	for (i = 0; i < nr; i++)
		accmem_ioctl_free(fd, bufs[i].address);
	return found;
}

/* A buffer with the number of each page in it; @policy: enum accmem_page_policy */
static int prepare(int fd, uint32_t policy, struct accmem_alloc *a, char **p)
{
	uint64_t i;
	int err;

	*a = (struct accmem_alloc){ .length = LENGTH, .page_policy = policy };
	err = accmem_ioctl_alloc(fd, a);
	if (err)
		return err;
	*p = accmem_mapped_huge(fd, a, LENGTH);
	for (i = 0; i < LENGTH; i += GRANULE)
		(*p)[i] = i / GRANULE;
	return 0;
}

static int by_madvise(char *page)
{
	return madvise(page, GRANULE, MADV_HWPOISON) ? -errno : 0;
}

static int inject(uint64_t frame)
{
	const char *file = "/sys/kernel/debug/hwpoison/corrupt-pfn";
	char text[32];

	/* a module of the distribution's kernels */
	if (access(file, F_OK) && system("/sbin/modprobe hwpoison-inject"))
		return -ENODEV;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)frame);
	return accmem_write_file(file, text);
}

static int by_injection(char *page)
{
	return inject(frame_at(page));
}

/*
 * Poison the page at BAD, and map the buffer anew, as a program that is told would. For
 * ordinary pages the call may fail with EBUSY or raise SIGBUS, since the kernel cannot
 * replace them. There the kernel does not always tell that a large page has poison; the
 * driver finds out by the access.
 */
static bool poison(int fd, const struct accmem_alloc *a, char **p,
		   int (*by)(char *page))
{
	struct sigaction sa = { .sa_sigaction = failed_signal,
				.sa_flags = SA_SIGINFO };
	struct sigaction old;
	int err = 0;

	sigaction(SIGBUS, &sa, &old);
	if (!sigsetjmp(failed_jump, 1))
		err = by(*p + BAD);
	sigaction(SIGBUS, &old, NULL);
	if (err && err != -EBUSY) {
		printf("# poison: %d\n", err);
		return false;
	}
	munmap(*p, LENGTH);
	if (access_at(fd, a->address + BAD, 1, ACCMEM_ACCESS_FILL, NULL,
		      NULL) != -EHWPOISON)
		return false;
	*p = accmem_mapped_huge(fd, a, LENGTH);
	return true;
}

static void look_at(struct __test_metadata *_metadata, int fd,
		    const struct accmem_alloc *a, char *p)
{
	char byte = 1;
	uint64_t i;

	for (i = 0; i < LENGTH; i += GRANULE) {
		if (i != BAD) {
			EXPECT_EQ((char)(i / GRANULE), p[i]);
		}
	}
	EXPECT_TRUE(read_fails(p + BAD + 9));
	EXPECT_EQ(-EHWPOISON, access_at(fd, a->address + BAD, 1,
					ACCMEM_ACCESS_READ, &byte, NULL));
	EXPECT_EQ(-EHWPOISON, access_at(fd, a->address + BAD, 1,
					ACCMEM_ACCESS_WRITE, &byte, NULL));
	EXPECT_EQ(0, access_at(fd, a->address + BAD + GRANULE, 1,
			       ACCMEM_ACCESS_WRITE, &byte, NULL));
	EXPECT_EQ(1, p[BAD + GRANULE]);
}

static void try_policy(struct __test_metadata *_metadata, int fd,
		       const char *path, uint32_t policy, int (*by)(char *page))
{
	bool counts = !accmem_is_on(path, "/dev/accmem0");
	struct accmem_alloc a;
	struct accmem_info before, info;
	struct failed_run run;
	uint64_t frame;
	char *p;

	ASSERT_EQ(0, accmem_ioctl_info(fd, &before));
	ASSERT_EQ(0, prepare(fd, policy, &a, &p));
	frame = frame_at(p + BAD);
	ASSERT_NE(0, frame);
	ASSERT_TRUE(poison(fd, &a, &p, by));
	look_at(_metadata, fd, &a, p);
	ASSERT_EQ(0, accmem_ioctl_info(fd, &info));
	EXPECT_EQ(counts ? GRANULE : 0, info.retire_pending_bytes);
	munmap(p, LENGTH);
	EXPECT_EQ(0, accmem_ioctl_free(fd, a.address));
	EXPECT_EQ(-1, accmem_sysfs_wait(path, "quarantined_bytes", 0, 20000));
	ASSERT_EQ(0, accmem_ioctl_info(fd, &info));
	EXPECT_EQ(before.retired_bytes + (counts ? GRANULE : 0),
		  info.retired_bytes);
	EXPECT_EQ(0, info.retire_pending_bytes);
	EXPECT_FALSE(has_frame(fd, frame));
	/* pages of the host have no place in the carveout */
	EXPECT_EQ(counts, failed_line(path, 0, &run));
	if (counts) {
		EXPECT_STREQ("poison", run.cause);
		EXPECT_STREQ("retired", run.status);
	}
}

TEST_F(poison, of_a_large_page)
{
	try_policy(_metadata, self->fd, variant->path, ACCMEM_PAGE_HUGE_FIRST,
		   by_madvise);
}

TEST_F(poison, of_a_normal_page)
{
	try_policy(_metadata, self->fd, variant->path, ACCMEM_PAGE_NORMAL_ONLY,
		   by_madvise);
}

TEST_F(poison, injected_into_a_large_page)
{
	try_policy(_metadata, self->fd, variant->path, ACCMEM_PAGE_HUGE_FIRST,
		   by_injection);
}

TEST_F(poison, injected_into_a_normal_page)
{
	try_policy(_metadata, self->fd, variant->path, ACCMEM_PAGE_NORMAL_ONLY,
		   by_injection);
}

/* Inject into memory of no buffer. On accmem0 the freed pages belong to the host again. */
TEST_F(poison, injected_into_free_memory)
{
	bool counts = !accmem_is_on(variant->path, "/dev/accmem0");
	struct accmem_info before, info;
	struct accmem_alloc a;
	uint64_t frame;
	char *p;
	int err;

	ASSERT_EQ(0, prepare(self->fd, ACCMEM_PAGE_ANY, &a, &p));
	frame = frame_at(p + BAD);
	ASSERT_NE(0, frame);
	munmap(p, LENGTH);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_EQ(0, accmem_drain(self->fd));
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &before));
	err = inject(frame);
	EXPECT_TRUE(!err || (!counts && err == -EBUSY));
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(before.retired_bytes + (counts ? GRANULE : 0),
		  info.retired_bytes);
	EXPECT_EQ(0, info.retire_pending_bytes);
	EXPECT_FALSE(has_frame(self->fd, frame));
}

/* Mappings of a dma-buf end at the page, too, and no other dma-buf gets the page. */
TEST_F(poison, injected_into_an_export)
{
	struct accmem_alloc a;
	uint64_t frame;
	char *p, *q;
	int d;

	ASSERT_EQ(0, prepare(self->fd, ACCMEM_PAGE_NORMAL_ONLY, &a, &p));
	frame = frame_at(p + BAD);
	d = export_all(self->fd, &a);
	ASSERT_LE(0, d);
	ASSERT_TRUE(poison(self->fd, &a, &p, by_injection));
	q = accmem_mmap_at(NULL, d, 0, LENGTH, RW, MAP_SHARED);
	ASSERT_NE(NULL, q);
	EXPECT_TRUE(read_fails(q + BAD));
	EXPECT_EQ(p[BAD + GRANULE], q[BAD + GRANULE]);
	EXPECT_EQ(-EHWPOISON, export_all(self->fd, &a));
	munmap(p, LENGTH);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_TRUE(read_fails(q + BAD));
	munmap(q, LENGTH);
	close(d);
	EXPECT_FALSE(has_frame(self->fd, frame));
}

ACCMEM_HARNESS_MAIN
