// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_layout: what a request becomes.
 *
 * Owns nothing and keeps no state: a pure function, the only place in the
 * kernel that rounds a size. Needs no lock and runs in any context.
 */
#include <linux/accmem.h>
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/overflow.h>

#include "layout.h"

#define SIZE_2M BIT_ULL(21)
#define SIZE_1G BIT_ULL(30)

/* HUGE_FIRST serves lengths up to this from normal pages (A13). */
#define HUGE_FIRST_MIN BIT_ULL(20)

/* The unit of ROUND32, and the bytes that TAIL32 adds (A2). */
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
 * The page size goes by the length as asked, so that the 32 bytes of a tail
 * never move a request from one class of pages to another.
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

/* A2 and A11; with 1 GiB pages there is no tail (A3). */
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
 * One end of the carveout, or an address, is a wish for memory of one's own: a
 * granule that is there already is neither at an end nor where one wishes.
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

	/* What memory is handed out by: A1's 64 bytes, or pages. */
	layout.alignment = max_t(u64, req->alignment, unit);
	if (check_add_overflow(layout.footprint, layout.alignment, &end))
		return -EOVERFLOW;
	*out = layout;
	return 0;
}
