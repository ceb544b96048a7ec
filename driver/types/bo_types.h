/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory: the structures.
 */
#ifndef ACCMEM_BO_TYPES_H
#define ACCMEM_BO_TYPES_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "types/account_types.h"
#include "types/carveout_types.h"

/**
 * struct accmem_bo_spec - what memory is wanted
 * @size: bytes, a multiple of @page_size
 * @alignment: bytes, of one run
 * @page_size: bytes; every run but the last one has a multiple of it
 * @huge: enum accmem_layout_huge
 * @start: with FIXED, and identity translation, where in the carveout
 * @room: bytes that had better be free from the start of its run on, or 0
 * @flags: ACCMEM_ALLOC_POPULATE, _CONTIGUOUS, _TOP_DOWN, _FIXED
 * @cache_mode: enum accmem_cache_mode
 * @buffers: how many buffers it counts as
 * @private_size: bytes of accmem_bo.private
 */
struct accmem_bo_spec {
	u64 size;
	u64 alignment;
	u64 page_size;
	u64 start;
	u64 room;
	u32 huge;
	u32 flags;
	u32 cache_mode;
	u32 buffers;
	u32 private_size;
};

/* what is known of a piece of shared memory */
#define ACCMEM_SHARED_HOST BIT(0) /* the host has what is valid */
#define ACCMEM_SHARED_DEVICE BIT(1) /* the device has */
#define ACCMEM_SHARED_STAY BIT(2) /* the device goes to the host for it */

/**
 * struct accmem_shared - the host's side of shared memory
 * @host: as much memory of the host; named by nothing, and the only reference
 * @lock: held while a piece moves, and while the device has access
 * @state: of each 2 MiB, ACCMEM_SHARED_*; HOST, DEVICE or both. Changes under @lock
 *
 * See shared.c.
 */
struct accmem_shared {
	struct accmem_bo *host;
	struct mutex lock; /* pieces stay where they are */
	u8 state[];
};

/**
 * struct accmem_bo - one piece of memory
 * @refs: whoever named it, its mappings, calls at work on it
 * @account: what it is charged to
 * @cv: the carveout
 * @size: bytes. Changes under the carveout's lock; faults that see the old one are
 *	waited for.
 * @huge: enum accmem_layout_huge
 * @cache_mode: enum accmem_cache_mode
 * @buffers: how many buffers it counts as
 * @nr_runs_before: @nr_runs before a REALLOC that is in progress; guarded by the
 *	context's lock
 * @offset: where its mappings begin in the address_space of its account; set
 *	before the first of them can be made
 * @runs: its pieces of the carveout
 * @nr_runs: how many
 * @max_runs: how many there is room for, where that is known; else 0
 * @run: the one piece, where it is one
 * @state: guarded by the carveout's lock
 * @link: in accmem_carveout.quarantine, .pending or .overdue; guarded by the
 *	carveout's lock
 * @own_link: in accmem_quarantine.memory; guarded by the carveout's lock
 * @pending: its free is; it is in one of the latter two lists. Changed by those
 *	who name it, or did.
 * @wake_on_put: of the buffers in it, a free is pending, or pieces of freed ones are kept
 *	for as long as anybody refers to it. Changed by those who name it.
 * @since: jiffies when @pending began
 * @mapped: there was a mapping once, so that it may have been written to and
 *	pages may be pinned. Set before a mapping is made, by those who name it.
 * @pin_checks: how many find out just now whether it is pinned: faults wait for them, for a
 *	bounded time
 * @max_size: the most bytes that it had before it shrank, 0 if it never has: so long
 *	may a mapping be. Changed by who alone resizes it.
 * @lock: guards the filling of @pages, and @io and @io_size; held while the memory
 *	shrinks
 * @pages: pages by index (emulated)
 * @next_free_index: index of the page that is the next to be given back ahead of the rest,
 *	when nobody refers to the memory any more. Changed by who has the lock under
 *	which that is done.
 * @io: kernel's mapping, of the same cache mode (phys without pages)
 * @io_size: bytes that it has, from the first on; fewer than @size, or none, where
 *	the others are clean and nobody has reached them yet
 * @shared: its side on the host, with ACCMEM_KIND_SHARED; else NULL
 * @private: what who names it keeps with it, zero at first
 *
 * It is live while it has a name, pending while its free waits, and detached from
 * then on. When its last
 * reference goes, it is free at once, unless somebody (a pipe, O_DIRECT in
 * flight, another driver) has pages of it: then it is quarantined until they
 * have been given back.
 */
struct accmem_bo {
	struct kref refs;
	struct accmem_account *account;
	struct accmem_carveout *cv;
	u64 size;
	u32 huge;
	u32 cache_mode;
	u32 buffers;
	unsigned int nr_runs_before;
	u64 offset;
	struct accmem_run *runs;
	unsigned int nr_runs;
	unsigned int max_runs;
	struct accmem_run run;

	enum accmem_state state;
	struct list_head link;
	struct list_head own_link;

	bool pending;
	bool wake_on_put;
	unsigned long since;
	bool mapped;
	atomic_t pin_checks;
	u64 max_size;
	struct mutex lock; /* filling of pages */
	struct xarray pages;
	unsigned long next_free_index;
	void __iomem *io;
	u64 io_size;
	struct accmem_shared *shared;
	u8 private[] __aligned(8);
};

#endif /* ACCMEM_BO_TYPES_H */
