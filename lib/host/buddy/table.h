/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * For tests of the allocator that are a list of promises: a range to ask things
 * of, what is expected of the answers, and the count of those that were wrong.
 */
#ifndef ACCMEM_HOST_TABLE_H
#define ACCMEM_HOST_TABLE_H

#include <linux/kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/buddy/buddy.h"
#include "lib/layout/layout.h"
#include "model.h"

#define G ACCMEM_GRANULE
#define MIB BIT_ULL(20)
#define TIB BIT_ULL(40)

static int tests_passed, tests_failed, wrong_here;

#define EXPECT(condition)                                                  \
	do {                                                               \
		if (!(condition)) {                                        \
			fprintf(stderr, "%s:%d: %s\n", __func__, __LINE__, \
				#condition);                               \
			wrong_here++;                                      \
		}                                                          \
	} while (0)

struct fixture {
	struct accmem_buddy b;
	void *meta;
	size_t meta_size;
	u64 size;
};

/* Metadata of 16 TiB is address space until it is touched. */
static inline void make(struct fixture *f, u64 size)
{
	f->size = size;
	f->meta_size = accmem_buddy_meta_size(size);
	f->meta = mmap(NULL, f->meta_size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (f->meta == MAP_FAILED) {
		perror("metadata");
		exit(1);
	}
	EXPECT(!accmem_buddy_init(&f->b, size, f->meta));
}

static inline void unmake(struct fixture *f)
{
	munmap(f->meta, f->meta_size);
}

static inline int take(struct fixture *f, u64 size, u64 align, u32 flags,
		       u64 *at)
{
	struct accmem_buddy_request req = {
		.size = size,
		.align = align,
		.flags = flags,
	};

	return accmem_buddy_alloc(&f->b, &req, at);
}

static inline int take_within(struct fixture *f, u64 size, u64 start, u64 end,
			      u64 *at)
{
	struct accmem_buddy_request req = {
		.size = size,
		.align = G,
		.start = start,
		.end = end,
	};

	return accmem_buddy_alloc(&f->b, &req, at);
}

static inline void run_test(const char *name, void (*test)(void))
{
	wrong_here = 0;
	test();
	printf("%s %s\n", wrong_here ? "FAILED" : "ok", name);
	if (wrong_here)
		tests_failed++;
	else
		tests_passed++;
}

#define TEST(name) run_test(#name, name)

/* What main() returns */
static inline int tests_end(void)
{
	printf("%d passed, %d failed\n", tests_passed, tests_failed);
	return tests_failed != 0;
}

#endif /* ACCMEM_HOST_TABLE_H */
