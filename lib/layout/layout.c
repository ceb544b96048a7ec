// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_layout: sizes, page size and alignment of a request.
 *
 * accmem_layout() is a pure function and the only function of the kernel that rounds
 * the size of a request. The steps: check the request, choose the page size, add the
 * padding of ROUND32 and TAIL32, and round up to pages, or to 64 bytes for a small
 * block.
 *
 * Locking: none. Runs in any context.
 */
#include <uapi/linux/accmem.h>
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/overflow.h>

#include "layout.h"

#define SIZE_2M BIT_ULL(21)
#define SIZE_1G BIT_ULL(30)

/* HUGE_FIRST uses normal pages up to this length (A13). */
#define HUGE_FIRST_MIN BIT_ULL(20)

/* The multiple of ROUND32, and the bytes that TAIL32 adds (A2). */
#define ROUND_UNIT 32ull

static int layout_check_request(const struct accmem_layout_request *req,
				const struct accmem_layout_caps *caps)
{
	const u32 both = ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32;

	if (!req->length)
		return -EINVAL;
	if (req->alignment & (req->alignment - 1))
		return -EINVAL;
	if (req->alignment > caps->max_alignment)
		return -EINVAL;
	if ((req->flags & both) == ACCMEM_ALLOC_TAIL32)
		return -EINVAL;
	return 0;
}

/*
 * Choose the page size by the length of the request. The 32 bytes of TAIL32 do not
 * count, so they never change the page size.
 */
static int layout_choose_page_size(const struct accmem_layout_request *req,
				   const struct accmem_layout_caps *caps,
				   struct accmem_layout *out)
{
	u64 want = ACCMEM_GRANULE;

	switch (req->page_policy) {
	case ACCMEM_PAGE_ANY:
		out->huge = ACCMEM_HUGE_FREE;
		break;
	case ACCMEM_PAGE_NORMAL_ONLY:
		break;
	case ACCMEM_PAGE_HUGE_FIRST:
		out->huge = ACCMEM_HUGE_FIRST;
		if (req->length <= HUGE_FIRST_MIN ||
		    !(caps->page_sizes & SIZE_2M))
			break;
		want = SIZE_2M;
		out->may_fall_back = true;
		break;
	case ACCMEM_PAGE_HUGE_ONLY:
		out->huge = ACCMEM_HUGE_ONLY;
		want = SIZE_2M;
		break;
	case ACCMEM_PAGE_HUGE1G_ONLY:
		out->huge = ACCMEM_HUGE_ONLY;
		want = SIZE_1G;
		break;
	default:
		return -EINVAL;
	}
	if (want != ACCMEM_GRANULE && !(caps->page_sizes & want))
		return -EOPNOTSUPP;
	out->page_size = want;
	return 0;
}

static int layout_round_up_checked(u64 value, u64 unit, u64 *out)
{
	u64 sum;

	if (check_add_overflow(value, unit - 1, &sum))
		return -EOVERFLOW;
	*out = sum & ~(unit - 1);
	return 0;
}

/* Add the padding of A2 and A11. With 1 GiB pages there is no tail (A3). */
static int layout_usable_size(const struct accmem_layout_request *req,
			      u64 *usable)
{
	int err;

	*usable = req->length;
	if (!(req->flags & ACCMEM_ALLOC_ROUND32))
		return 0;
	err = layout_round_up_checked(req->length, ROUND_UNIT, usable);
	if (err)
		return err;
	if (!(req->flags & ACCMEM_ALLOC_TAIL32) ||
	    req->page_policy == ACCMEM_PAGE_HUGE1G_ONLY)
		return 0;
	if (check_add_overflow(*usable, ROUND_UNIT, usable))
		return -EOVERFLOW;
	return 0;
}

/*
 * Return true if the request is served from a shared granule (lib/slab). TOP_DOWN and
 * FIXED fix the position of the memory, which a shared granule cannot provide.
 */
static bool layout_is_small_block(const struct accmem_layout_request *req,
				  const struct accmem_layout *layout)
{
	return layout->page_size == ACCMEM_GRANULE &&
	       layout->usable <= ACCMEM_SMALL_MAX &&
	       req->alignment <= ACCMEM_SMALL_MAX &&
	       !(req->flags & (ACCMEM_ALLOC_TOP_DOWN | ACCMEM_ALLOC_FIXED));
}

int accmem_layout(const struct accmem_layout_request *req,
		  const struct accmem_layout_caps *caps,
		  struct accmem_layout *out)
{
	struct accmem_layout layout = {};
	u64 unit, end;
	int err;

	err = layout_check_request(req, caps);
	if (err)
		return err;
	err = layout_choose_page_size(req, caps, &layout);
	if (err)
		return err;
	err = layout_usable_size(req, &layout.usable);
	if (err)
		return err;
	layout.small = layout_is_small_block(req, &layout);
	unit = layout.small ? ACCMEM_ALIGN_MIN : layout.page_size;
	err = layout_round_up_checked(layout.usable, unit, &layout.footprint);
	if (err)
		return err;

	/*
	 * Align to the allocation unit: 64 bytes for a small block (A1), else a
	 * page.
	 */
	layout.alignment = max_t(u64, req->alignment, unit);
	if (check_add_overflow(layout.footprint, layout.alignment, &end))
		return -EOVERFLOW;
	*out = layout;
	return 0;
}
