// SPDX-License-Identifier: GPL-2.0
/*
 * Resident pages: the ordinary memory behind emulated devices and host memory.
 *
 * All devices together, and each user, may have so many pages present. A page is charged
 * before it is allocated.
 *
 * Locking: none; the counters are atomic.
 */
#include <linux/mm.h>
#include <linux/module.h>

#include "core/account.h"
#include "core/size_param.h"
#include "internal.h"

static unsigned long long resident_max;
module_param_cb(max_resident_bytes, &accmem_size_param_ops, &resident_max,
		0644);
__MODULE_PARM_TYPE(max_resident_bytes, "ullong");
MODULE_PARM_DESC(max_resident_bytes,
		 "RAM that all devices may use (0: half of RAM)");

static unsigned long long resident_share;
module_param_cb(max_resident_bytes_per_user, &accmem_size_param_ops,
		&resident_share, 0644);
__MODULE_PARM_TYPE(max_resident_bytes_per_user, "ullong");
MODULE_PARM_DESC(max_resident_bytes_per_user,
		 "the same for a user (0: half of max_resident_bytes)");

static atomic64_t resident; /* pages of all emulated carveouts */

/* Charge pages to the user of a bo. With CAP_SYS_RESOURCE the share does not apply. */
static bool resident_charge_user(struct accmem_user *user, long pages,
				 u64 share)
{
	return accmem_add_within(&user->resident, pages, share) ||
	       (accmem_caller_is_exempt() &&
		accmem_add_within(&user->resident, pages, U64_MAX));
}

/**
 * accmem_resident_add() - charge pages of the host before they are allocated
 * @bo: buffer object that the pages are for
 * @pages: number of pages
 *
 * Context: Process context. May sleep.
 * Return: true; false if a limit would be exceeded.
 */
bool accmem_resident_add(struct accmem_bo *bo, long pages)
{
	u64 share = READ_ONCE(resident_share), max = READ_ONCE(resident_max);
	struct accmem_user *user = bo->account->user;

	max = max ? max >> PAGE_SHIFT : totalram_pages() / 2;
	share = share ? share >> PAGE_SHIFT : max / 2;
	if (!resident_charge_user(user, pages, share))
		return false;
	if (!accmem_add_within(&resident, pages, max)) {
		atomic64_sub(pages, &user->resident);
		return false;
	}
	atomic64_add(pages, &bo->cv->resident);
	return true;
}

/**
 * accmem_resident_sub() - undo accmem_resident_add()
 * @bo: the buffer object
 * @pages: number of pages
 *
 * Context: Any context.
 */
void accmem_resident_sub(struct accmem_bo *bo, long pages)
{
	atomic64_sub(pages, &bo->cv->resident);
	atomic64_sub(pages, &resident);
	atomic64_sub(pages, &bo->account->user->resident);
}
