/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * accmem_layout: sizes, page size and alignment of a request.
 *
 * accmem_layout() is the only function that rounds sizes. Its result depends on the
 * request and on the page sizes of the carveout only.
 *
 * Locking: none. Runs in any context and does not sleep.
 */
#ifndef ACCMEM_LAYOUT_H
#define ACCMEM_LAYOUT_H

#include <linux/bits.h>
#include <linux/types.h>

#define ACCMEM_GRANULE_SHIFT 12
#define ACCMEM_GRANULE BIT_ULL(ACCMEM_GRANULE_SHIFT)
#define ACCMEM_ALIGN_MIN 64ull /* alignment of every device address (A1) */
#define ACCMEM_SMALL_MAX \
	(ACCMEM_GRANULE / 2) /* bytes of the largest small block */

/**
 * struct accmem_layout_caps - page sizes and alignments of a carveout
 * @page_sizes: bitwise or of the page sizes in bytes; 4 KiB is always included
 * @max_alignment: largest alignment allowed, in bytes, a power of two
 */
struct accmem_layout_caps {
	u64 page_sizes;
	u64 max_alignment;
};

/**
 * struct accmem_layout_request - the request of the caller
 * @length: bytes, at least 1
 * @alignment: bytes, 0 or a power of two
 * @page_policy: enum accmem_page_policy
 * @flags: ACCMEM_ALLOC_*; only ROUND32, TAIL32, TOP_DOWN and FIXED are used
 */
struct accmem_layout_request {
	u64 length;
	u64 alignment;
	u32 page_policy;
	u32 flags;
};

/**
 * enum accmem_layout_huge - use of 2 MiB pages by a backing that chooses its pages
 * @ACCMEM_HUGE_NEVER: only normal pages
 * @ACCMEM_HUGE_FREE: 2 MiB pages if they cost nothing
 * @ACCMEM_HUGE_FIRST: 2 MiB pages if they are available
 * @ACCMEM_HUGE_ONLY: no pages smaller than 2 MiB
 */
enum accmem_layout_huge {
	ACCMEM_HUGE_NEVER,
	ACCMEM_HUGE_FREE,
	ACCMEM_HUGE_FIRST,
	ACCMEM_HUGE_ONLY,
};

/**
 * struct accmem_layout - sizes, page size and alignment of an allocation
 * @usable: bytes that the caller may use
 * @footprint: bytes to allocate from the carveout: a multiple of @page_size, or of
 *	ACCMEM_ALIGN_MIN for a small block
 * @alignment: alignment in bytes of the address and of contiguous memory
 * @page_size: size of the pages in bytes
 * @huge: use of 2 MiB pages by a backing that chooses its pages
 * @may_fall_back: HUGE_FIRST chose large pages; if the allocation fails, the caller
 *	repeats the request with NORMAL_ONLY
 * @small: a block of at most half a granule, which shares its granule with other
 *	blocks of its context
 */
struct accmem_layout {
	u64 usable;
	u64 footprint;
	u64 alignment;
	u32 page_size;
	enum accmem_layout_huge huge : 8;
	bool may_fall_back;
	bool small;
};

/**
 * accmem_layout() - compute the sizes and the alignment of a request
 * @req: the request; the fields are not trusted
 * @caps: page sizes and alignments of the carveout
 * @out: the layout, written on success only
 *
 * Conformance: A1, A2, A3, A11, A13. (A5: set_policy() in runtime/src/acl/memory.c.)
 *
 * Context: Any context. Does not sleep.
 *
 * Return: 0; -EINVAL for a length of 0, an alignment that is no power of two
 * or above the maximum, an unknown policy, or TAIL32 without ROUND32;
 * -EOVERFLOW if rounding, or the size plus its alignment, passes 2^64;
 * -EOPNOTSUPP if the policy requires a page size that the carveout does not have.
 */
int accmem_layout(const struct accmem_layout_request *req,
		  const struct accmem_layout_caps *caps,
		  struct accmem_layout *out);

#endif /* ACCMEM_LAYOUT_H */
