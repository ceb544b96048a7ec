/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for REALLOC: resizable buffers, checks of their contents through mappings,
 * and buffers that block their growth. Every test ends with all memory free.
 */
#ifndef REALLOC_UTIL_H
#define REALLOC_UTIL_H

#include "accmem_test.h"

#define GRANULE 4096ull
#define RESIZABLE ACCMEM_ALLOC_RESIZABLE
#define IN_PLACE ACCMEM_REALLOC_IN_PLACE

/* @pins: pages of the device can be pinned */
#define REALLOC_FIXTURE(fixture)                                          \
	FIXTURE(fixture)                                                  \
	{                                                                 \
		int fd;                                                   \
		bool identity;                                            \
		bool pins;                                                \
		struct accmem_info info;                                  \
	};                                                                \
	ACCMEM_VARIANTS(fixture);                                         \
	FIXTURE_SETUP(fixture)                                            \
	{                                                                 \
		ASSERT_TRUE(accmem_is_idle(variant->path, 10000));        \
		self->fd = accmem_opened(variant->path);                  \
		ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));   \
		ASSERT_TRUE(self->info.features &                         \
			    ACCMEM_FEATURE_REALLOC);                      \
		self->identity = self->info.translation ==                \
				 ACCMEM_TRANSLATION_IDENTITY;             \
		self->pins = self->info.features & ACCMEM_FEATURE_PIN;    \
	}                                                                 \
	FIXTURE_TEARDOWN(fixture)                                         \
	{                                                                 \
		close(self->fd);                                          \
		EXPECT_TRUE(accmem_is_idle(variant->path, 20000));        \
	}

static inline int alloc(int fd, uint64_t length, uint64_t reserve,
			struct accmem_alloc *a)
{
	*a = (struct accmem_alloc){ .length = length,
				    .flags = RESIZABLE,
				    .reserve = reserve };
	return accmem_ioctl_alloc(fd, a);
}

static inline struct accmem_alloc as_alloc(const struct accmem_realloc *r)
{
	return (struct accmem_alloc){ .address = r->address,
				      .length = r->length,
				      .usable = r->usable,
				      .footprint = r->footprint,
				      .mmap_offset = r->mmap_offset,
				      .page_size = r->page_size,
				      .nr_runs = r->nr_runs };
}

/*
 * Allocates a buffer directly behind another, which blocks its growth. No buffer is
 * needed at the end of the device addresses.
 */
static inline int block(int fd, const struct accmem_alloc *a,
			struct accmem_alloc *b)
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

static inline int unblock(int fd, const struct accmem_alloc *b)
{
	return b->address ? accmem_ioctl_free(fd, b->address) : 0;
}

static inline bool query_says(int fd, uint64_t address, uint64_t length,
			      uint64_t footprint)
{
	struct accmem_query q;

	return !accmem_ioctl_query(fd, address, &q) && q.base == address &&
	       q.length == length && q.usable == length &&
	       q.footprint == footprint;
}

#endif /* REALLOC_UTIL_H */
