/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What accmem_layout() is to answer, as a table: the KUnit suite and the host
 * test walk the same one. A case names the conformance row it proves.
 */
#ifndef ACCMEM_LAYOUT_CASES_H
#define ACCMEM_LAYOUT_CASES_H

#include <uapi/linux/accmem.h>
#include <linux/errno.h>
#include <linux/kernel.h>

#include "lib/layout/layout.h"

#define K BIT_ULL(10)
#define M BIT_ULL(20)
#define GIB BIT_ULL(30)
#define TOP (~0ull)

#define R32 ACCMEM_ALLOC_ROUND32
#define TAIL (ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32)

#define NORMAL_PAGES (4 * K)
#define HUGE_PAGES (4 * K | 2 * M)
#define ALL_PAGES (4 * K | 2 * M | GIB)

struct layout_case {
	const char *name;
	u64 length;
	u64 alignment;
	u32 policy;
	u32 flags;
	u64 page_sizes;
	int err;
	/* with err == 0 */
	u64 usable;
	u64 footprint;
	u64 granted_alignment;
	u32 page_size;
	bool may_fall_back;
	bool small;
};

#define OK_CASE(n, len, al, pol, fl, pages, use, foot, gal, page, fall)        \
	{                                                                      \
		.name = n, .length = len, .alignment = al,                     \
		.policy = ACCMEM_PAGE_##pol, .flags = fl, .page_sizes = pages, \
		.usable = use, .footprint = foot, .granted_alignment = gal,    \
		.page_size = page, .may_fall_back = fall                       \
	}

/* a block that shares its granule */
#define SMALL_CASE(n, len, al, fl, use, foot, gal)                          \
	{                                                                   \
		.name = n, .length = len, .alignment = al, .flags = fl,     \
		.page_sizes = HUGE_PAGES, .usable = use, .footprint = foot, \
		.granted_alignment = gal, .page_size = 4 * K, .small = true \
	}

#define ERR_CASE(n, len, al, pol, fl, pages, e)                           \
	{                                                                 \
		.name = n, .length = len, .alignment = al, .policy = pol, \
		.flags = fl, .page_sizes = pages, .err = e                \
	}

static const struct layout_case layout_cases[] = {
	/* A1: the start of every buffer is aligned to 64 bytes */
	SMALL_CASE("A1 one byte", 1, 0, 0, 1, 64, 64),
	SMALL_CASE("A1 alignment 1", 100, 1, 0, 100, 128, 64),
	SMALL_CASE("A1 alignment 64", 100, 64, 0, 100, 128, 64),
	SMALL_CASE("small, aligned more", 100, 256, 0, 100, 128, 256),
	SMALL_CASE("largest small block", 2 * K, 2 * K, 0, 2 * K, 2 * K, 2 * K),
	OK_CASE("a byte more than small", 2 * K + 1, 0, ANY, 0, HUGE_PAGES,
		2 * K + 1, 4 * K, 4 * K, 4 * K, false),
	OK_CASE("small, aligned to a granule", 100, 4 * K, ANY, 0, HUGE_PAGES,
		100, 4 * K, 4 * K, 4 * K, false),
	OK_CASE("small, from the high end", 100, 0, ANY, ACCMEM_ALLOC_TOP_DOWN,
		HUGE_PAGES, 100, 4 * K, 4 * K, 4 * K, false),
	OK_CASE("small, at an address", 100, 0, ANY, ACCMEM_ALLOC_FIXED,
		HUGE_PAGES, 100, 4 * K, 4 * K, 4 * K, false),
	OK_CASE("alignment above the page", 8 * K, 256 * K, ANY, 0, HUGE_PAGES,
		8 * K, 8 * K, 256 * K, 4 * K, false),
	OK_CASE("largest alignment", 8 * K, GIB, ANY, 0, HUGE_PAGES, 8 * K,
		8 * K, GIB, 4 * K, false),
	OK_CASE("exact granule", 4 * K, 0, ANY, 0, HUGE_PAGES, 4 * K, 4 * K,
		4 * K, 4 * K, false),
	OK_CASE("granule and a byte", 4 * K + 1, 0, ANY, 0, HUGE_PAGES,
		4 * K + 1, 8 * K, 4 * K, 4 * K, false),
	OK_CASE("no power of two", 3 * M + 5, 0, ANY, 0, HUGE_PAGES, 3 * M + 5,
		3 * M + 4 * K, 4 * K, 4 * K, false),

	/* A2: ALIGN_UP(size, 32) + 32 */
	SMALL_CASE("A2 1 byte", 1, 0, TAIL, 64, 64, 64),
	SMALL_CASE("A2 32 bytes", 32, 0, TAIL, 64, 64, 64),
	SMALL_CASE("A2 33 bytes", 33, 0, TAIL, 96, 128, 64),
	SMALL_CASE("A2 fits a small block", 2 * K - 32, 0, TAIL, 2 * K, 2 * K,
		   64),
	OK_CASE("A2 passes a small block", 2 * K - 31, 0, ANY, TAIL, HUGE_PAGES,
		2 * K + 32, 4 * K, 4 * K, 4 * K, false),
	OK_CASE("A2 fits the granule", 4 * K - 32, 0, ANY, TAIL, HUGE_PAGES,
		4 * K, 4 * K, 4 * K, 4 * K, false),
	OK_CASE("A2 passes the granule", 4 * K - 31, 0, ANY, TAIL, HUGE_PAGES,
		4 * K + 32, 8 * K, 4 * K, 4 * K, false),
	OK_CASE("A2 tail passes the huge page", 2 * M, 0, HUGE_FIRST, TAIL,
		HUGE_PAGES, 2 * M + 32, 4 * M, 2 * M, 2 * M, true),

	/* A3: ALIGN_UP(size, 32) only, on 1 GiB pages */
	OK_CASE("A3 1 byte", 1, 0, HUGE1G_ONLY, TAIL, ALL_PAGES, 32, GIB, GIB,
		GIB, false),
	OK_CASE("A3 whole unit", GIB, 0, HUGE1G_ONLY, TAIL, ALL_PAGES, GIB, GIB,
		GIB, GIB, false),
	OK_CASE("A3 unit and a byte", GIB + 1, 0, HUGE1G_ONLY, TAIL, ALL_PAGES,
		GIB + 32, 2 * GIB, GIB, GIB, false),

	/* A5: a policy outside the enumeration is for the front-end to map */
	ERR_CASE("A5 policy just outside", 4 * K, 0, 5, 0, ALL_PAGES, -EINVAL),
	ERR_CASE("A5 policy far outside", 4 * K, 0, ~0u, 0, ALL_PAGES, -EINVAL),

	/* A11: rounding without the tail */
	SMALL_CASE("A11 1 byte", 1, 0, R32, 32, 64, 64),
	SMALL_CASE("A11 32 bytes", 32, 0, R32, 32, 64, 64),
	SMALL_CASE("A11 33 bytes", 33, 0, R32, 64, 64, 64),
	SMALL_CASE("A11 2017 bytes", 2017, 0, R32, 2 * K, 2 * K, 64),

	/* A13: the page policies */
	OK_CASE("A13 HUGE_FIRST at the threshold", M, 0, HUGE_FIRST, 0,
		HUGE_PAGES, M, M, 4 * K, 4 * K, false),
	OK_CASE("A13 HUGE_FIRST above it", M + 1, 0, HUGE_FIRST, 0, HUGE_PAGES,
		M + 1, 2 * M, 2 * M, 2 * M, true),
	OK_CASE("A13 a tail does not cross the threshold", M, 0, HUGE_FIRST,
		TAIL, HUGE_PAGES, M + 32, M + 4 * K, 4 * K, 4 * K, false),
	OK_CASE("A13 HUGE_FIRST without huge pages", 3 * M, 0, HUGE_FIRST, 0,
		NORMAL_PAGES, 3 * M, 3 * M, 4 * K, 4 * K, false),
	OK_CASE("A13 HUGE_ONLY small", 1, 0, HUGE_ONLY, 0, HUGE_PAGES, 1, 2 * M,
		2 * M, 2 * M, false),
	OK_CASE("A13 HUGE_ONLY large", 5 * M, 0, HUGE_ONLY, 0, HUGE_PAGES,
		5 * M, 6 * M, 2 * M, 2 * M, false),
	OK_CASE("A13 HUGE_ONLY, aligned more", 5 * M, 16 * M, HUGE_ONLY, 0,
		HUGE_PAGES, 5 * M, 6 * M, 16 * M, 2 * M, false),
	ERR_CASE("A13 HUGE_ONLY without huge pages", 1, 0,
		 ACCMEM_PAGE_HUGE_ONLY, 0, NORMAL_PAGES, -EOPNOTSUPP),
	OK_CASE("A13 NORMAL_ONLY large", 5 * M, 0, NORMAL_ONLY, 0, HUGE_PAGES,
		5 * M, 5 * M, 4 * K, 4 * K, false),
	ERR_CASE("A13 HUGE1G_ONLY without such pages", GIB, 0,
		 ACCMEM_PAGE_HUGE1G_ONLY, 0, HUGE_PAGES, -EOPNOTSUPP),

	/* One thing wrong in each */
	ERR_CASE("length 0", 0, 0, ACCMEM_PAGE_ANY, 0, HUGE_PAGES, -EINVAL),
	ERR_CASE("alignment 3", 4 * K, 3, ACCMEM_PAGE_ANY, 0, HUGE_PAGES,
		 -EINVAL),
	ERR_CASE("alignment 6 KiB", 4 * K, 6 * K, ACCMEM_PAGE_ANY, 0,
		 HUGE_PAGES, -EINVAL),
	ERR_CASE("alignment too large", 4 * K, 2 * GIB, ACCMEM_PAGE_ANY, 0,
		 HUGE_PAGES, -EINVAL),
	ERR_CASE("alignment 2^63", 4 * K, 1ull << 63, ACCMEM_PAGE_ANY, 0,
		 HUGE_PAGES, -EINVAL),
	ERR_CASE("tail without rounding", 4 * K, 0, ACCMEM_PAGE_ANY,
		 ACCMEM_ALLOC_TAIL32, HUGE_PAGES, -EINVAL),

	/* Overflow, of each sum alone */
	ERR_CASE("page rounding overflows", TOP, 0, ACCMEM_PAGE_ANY, 0,
		 HUGE_PAGES, -EOVERFLOW),
	ERR_CASE("32-byte rounding overflows", TOP - 30, 0, ACCMEM_PAGE_ANY,
		 R32, HUGE_PAGES, -EOVERFLOW),
	ERR_CASE("tail overflows", TOP - 31, 0, ACCMEM_PAGE_ANY, TAIL,
		 HUGE_PAGES, -EOVERFLOW),
	ERR_CASE("huge page rounding overflows", TOP - 4 * K, 0,
		 ACCMEM_PAGE_HUGE_ONLY, 0, HUGE_PAGES, -EOVERFLOW),
	ERR_CASE("1 GiB rounding overflows", TOP - 2 * M, 0,
		 ACCMEM_PAGE_HUGE1G_ONLY, 0, ALL_PAGES, -EOVERFLOW),
	ERR_CASE("size plus alignment overflows", TOP - 8 * K, GIB,
		 ACCMEM_PAGE_ANY, 0, HUGE_PAGES, -EOVERFLOW),
	OK_CASE("largest length of all", TOP - GIB - 4 * K + 1, GIB, ANY, 0,
		HUGE_PAGES, TOP - GIB - 4 * K + 1, TOP - GIB - 4 * K + 1, GIB,
		4 * K, false),
};

#define NR_LAYOUT_CASES ARRAY_SIZE(layout_cases)

/* What a case differs in from what was expected, or NULL */
static inline const char *layout_case_wrong(const struct layout_case *c)
{
	struct accmem_layout_request req = {
		.length = c->length,
		.alignment = c->alignment,
		.page_policy = c->policy,
		.flags = c->flags,
	};
	struct accmem_layout_caps caps = {
		.page_sizes = c->page_sizes,
		.max_alignment = GIB,
	};
	struct accmem_layout got = { .usable = 12345 };

	if (accmem_layout(&req, &caps, &got) != c->err)
		return "return value";
	if (c->err)
		return got.usable == 12345 ? NULL : "output of a failure";
	if (got.usable != c->usable)
		return "usable";
	if (got.footprint != c->footprint)
		return "footprint";
	if (got.alignment != c->granted_alignment)
		return "alignment";
	if (got.page_size != c->page_size)
		return "page_size";
	if (got.may_fall_back != c->may_fall_back)
		return "may_fall_back";
	if (got.small != c->small)
		return "small";
	return NULL;
}

#endif
