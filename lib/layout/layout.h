/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * accmem_layout: what a request becomes.
 *
 * The only place that rounds. A pure function of the request and of what the
 * carveout can do: no state, no locks, any context.
 */
#ifndef ACCMEM_LAYOUT_H
#define ACCMEM_LAYOUT_H

#include <linux/bits.h>
#include <linux/types.h>

#define ACCMEM_GRANULE_SHIFT 12
#define ACCMEM_GRANULE BIT_ULL(ACCMEM_GRANULE_SHIFT)
#define ACCMEM_ALIGN_MIN 64ull /* of every device address (A1) */
#define ACCMEM_SMALL_MAX (ACCMEM_GRANULE / 2) /* bytes, of a small block */

/**
 * struct accmem_layout_caps - what the carveout offers
 * @page_sizes: bitwise or of the page sizes in bytes (4 KiB always among them)
 * @max_alignment: largest alignment granted, in bytes, a power of two
 */
struct accmem_layout_caps {
	u64 page_sizes;
	u64 max_alignment;
};

/**
 * struct accmem_layout_request - what the caller asked for
 * @length: bytes, at least 1
 * @alignment: bytes, 0 or a power of two
 * @page_policy: enum accmem_page_policy
 * @flags: ACCMEM_ALLOC_*; only ROUND32, TAIL32, TOP_DOWN and FIXED matter here
 */
struct accmem_layout_request {
	u64 length;
	u64 alignment;
	u32 page_policy;
	u32 flags;
};

/**
 * enum accmem_layout_huge - may pages of 2 MiB back it, where they need not?
 * @ACCMEM_HUGE_NEVER: no
 * @ACCMEM_HUGE_FREE: where they come free
 * @ACCMEM_HUGE_FIRST: where they can be had
 * @ACCMEM_HUGE_ONLY: nothing smaller
 */
enum accmem_layout_huge {
	ACCMEM_HUGE_NEVER,
	ACCMEM_HUGE_FREE,
	ACCMEM_HUGE_FIRST,
	ACCMEM_HUGE_ONLY,
};

/**
 * struct accmem_layout - what it becomes
 * @usable: bytes the caller may use
 * @footprint: bytes to take from the carveout: a multiple of @page_size, or of
 *	ACCMEM_ALIGN_MIN for a small block
 * @alignment: alignment in bytes of the address and of contiguous memory
 * @page_size: bytes of the pages that back it
 * @huge: what a backing that chooses its pages does
 * @may_fall_back: HUGE_FIRST chose large pages: when there is no memory for
 *	that, the caller asks again with NORMAL_ONLY
 * @small: a block of at most half a granule, which it shares with others of
 *	its context
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
 * accmem_layout() - turn a request into sizes and an alignment
 * @req: the request; every field may hold anything
 * @caps: what the carveout offers
 * @out: the layout, written on success only
 *
 * Conformance: A1, A2, A3, A11, A13. (A5: set_policy() in runtime/src/acl/memory.c.)
 *
 * Return: 0; -EINVAL for a length of 0, an alignment that is no power of two
 * or above the maximum, an unknown policy, or TAIL32 without ROUND32;
 * -EOVERFLOW where rounding, or the size plus its alignment, passes 2^64;
 * -EOPNOTSUPP where the policy insists on a page size that is not there.
 */
int accmem_layout(const struct accmem_layout_request *req,
		  const struct accmem_layout_caps *caps,
		  struct accmem_layout *out);

#endif /* ACCMEM_LAYOUT_H */
