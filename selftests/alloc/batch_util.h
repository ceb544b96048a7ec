/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of batches share: the entries of the largest one, and the calls. Every
 * test ends with all memory free.
 */
#ifndef BATCH_UTIL_H
#define BATCH_UTIL_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "accmem_util.h"

#define RW (PROT_READ | PROT_WRITE)
#define MAX ACCMEM_BATCH_MAX
#define ATOMIC ACCMEM_BATCH_ATOMIC

#define BATCH_FIXTURE(fixture)                                          \
	FIXTURE(fixture)                                                \
	{                                                               \
		int fd;                                                 \
		uint64_t free_bytes;                                    \
		uint32_t done;                                          \
		struct accmem_info info;                                \
		struct accmem_batch_alloc *a;                           \
		struct accmem_batch_free *f;                            \
	};                                                              \
	ACCMEM_VARIANTS(fixture);                                       \
	FIXTURE_SETUP(fixture)                                          \
	{                                                               \
		self->fd = accmem_dev_open(variant->path, O_RDWR);      \
		ASSERT_LE(0, self->fd);                                 \
		ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info)); \
		self->free_bytes = self->info.free_bytes;               \
		self->a = calloc(MAX, sizeof(*self->a));                \
		self->f = calloc(MAX, sizeof(*self->f));                \
		ASSERT_NE(NULL, self->a);                               \
		ASSERT_NE(NULL, self->f);                               \
	}                                                               \
	FIXTURE_TEARDOWN(fixture)                                       \
	{                                                               \
		EXPECT_EQ(self->free_bytes, accmem_free_now(self->fd)); \
		EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));   \
		EXPECT_TRUE(accmem_accounts_balance(variant->path));    \
		close(self->fd);                                        \
		EXPECT_TRUE(accmem_is_idle(variant->path, 20000));      \
	}

/* @n entries of @length bytes each, of which nothing was answered yet */
static inline void ask(struct accmem_batch_alloc *a, unsigned int n,
		       uint64_t length)
{
	memset(a, 0, n * sizeof(*a));
	for (; n--; a++) {
		a->length = length;
		a->result = 1;
	}
}

/* free what @n entries say was allocated */
static inline void name(struct accmem_batch_free *f,
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
static inline int differs(int fd, const struct accmem_batch_alloc *a)
{
	struct accmem_query q;

#define MUST(condition)                  \
	do {                             \
		if (!(condition))        \
			return __LINE__; \
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

static inline int by_address(const void *x, const void *y)
{
	const struct accmem_batch_alloc *a = x, *b = y;

	return (a->address > b->address) - (a->address < b->address);
}

/* sorts them; does any begin before the one below has ended? */
static inline bool overlap(struct accmem_batch_alloc *a, unsigned int n)
{
	unsigned int i;

	qsort(a, n, sizeof(*a), by_address);
	for (i = 1; i < n; i++) {
		if (a[i].address < a[i - 1].address + a[i - 1].footprint)
			return true;
	}
	return false;
}

#endif /* BATCH_UTIL_H */
