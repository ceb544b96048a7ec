/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structures of buffer objects.
 *
 * A buffer object (bo) is the runs of one carveout that were allocated together,
 * with their pages and their cache mode. A bo has no device address: struct accmem_va
 * places it in a context, struct accmem_buffer names it.
 *
 * States: live -> pending -> detached -> quarantined -> free (each may be skipped)
 * Locks: the carveout's lock guards the size, the state and the lists; accmem_bo.lock
 * guards the pages and the kernel's mapping.
 */
#ifndef ACCMEM_BO_TYPES_H
#define ACCMEM_BO_TYPES_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

#include "types/account_types.h"
#include "types/carveout_types.h"

/**
 * struct accmem_bo_spec - request for a buffer object
 * @size: size in bytes, a multiple of @page_size
 * @alignment: alignment in bytes, if the bo has a single run
 * @page_size: bytes; the size of every run except the last is a multiple of it
 * @huge: enum accmem_layout_huge
 * @start: offset in the carveout, for ACCMEM_ALLOC_FIXED with identity translation
 * @room: bytes from the start of the run that are preferably free, so that the bo
 *	can grow; 0 for no preference
 * @flags: ACCMEM_ALLOC_POPULATE, _CONTIGUOUS, _TOP_DOWN, _FIXED
 * @cache_mode: enum accmem_cache_mode
 * @buffers: number of buffers that the bo is charged as
 * @private_size: size in bytes of accmem_bo.private
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

/* Flags of a 2 MiB piece of shared memory, in accmem_piece.state */
#define ACCMEM_SHARED_HOST BIT(0) /* the copy of the host is valid */
#define ACCMEM_SHARED_DEVICE BIT(1) /* the copy of the device is valid */
#define ACCMEM_SHARED_STAY BIT(2) /* the device accesses the copy of the host */

/**
 * struct accmem_piece - 2 MiB of shared memory
 * @lock: held while the piece moves, and while the device accesses the piece
 * @state: flags ACCMEM_SHARED_*; at least one of HOST and DEVICE is set. Guarded by
 *	@lock.
 */
struct accmem_piece {
	struct mutex lock; /* the piece does not move while it is held */
	u8 state;
};

/**
 * struct accmem_shared - the host's side of shared memory
 * @host: buffer object of host memory, of the same size; this is its only reference
 * @nr_pieces: number of entries in @pieces
 * @pieces: the pieces, by offset
 *
 * memory/shared.c describes how pieces move.
 */
struct accmem_shared {
	struct accmem_bo *host;
	unsigned int nr_pieces;
	struct accmem_piece pieces[];
};

/**
 * struct accmem_bo - buffer object
 * @refs: references: the name, the mappings, and calls that use the bo
 * @account: account that the bo is charged to
 * @cv: carveout
 * @size: size in bytes; changes under the carveout's lock. A shrink waits for faults
 *	that may have read the old size.
 * @huge: enum accmem_layout_huge
 * @cache_mode: enum accmem_cache_mode
 * @buffers: number of buffers that the bo is charged as
 * @epoch: accmem_carveouts.epoch when the bo was created, as an even number. If the
 *	epoch of the device differs, the memory is revoked or the contents are lost.
 * @nr_runs_before: value of @nr_runs before a REALLOC that is in progress; guarded by
 *	the context's lock
 * @offset: offset of the bo's mappings in the address_space of its account; set
 *	before the first mapping is possible
 * @runs: runs of the carveout that the bo consists of
 * @nr_runs: number of entries in @runs
 * @max_runs: number of entries allocated for @runs, or 0 if unknown
 * @run: the run, if the bo has a single run
 * @state: enum accmem_state; guarded by the carveout's lock
 * @nr_exports: number of dma-bufs, imported buffers and pins (export/pin.c) of the bo.
 *	While the number is not 0, REALLOC neither moves nor shrinks the bo. Incremented
 *	under the context's lock, or by the holder of another count.
 * @link: link in accmem_carveout.quarantine.list, .pending or .overdue; guarded by the
 *	carveout's lock
 * @own_link: link in accmem_account_memory.mapped, or in accmem_account_memory.quarantined;
 *	guarded by the carveout's lock
 * @unnamed_node: node in accmem_carveout.unnamed; guarded by the carveout's lock
 * @pending: the free of the bo is pending, and @link is in accmem_carveout.pending or
 *	.overdue. Written under the carveout's lock, read without.
 * @wake_on_put: dropping a user's reference must wake waiters, because the bo is a
 *	slab page with pending frees or with slots that wait for the last reference.
 *	Written by the owner of the name, read without a lock.
 * @since: jiffies when @pending was set
 * @since_try: accmem_waiters_tries() before the runs were allocated
 * @quarantined: accmem_quarantine.last when the bo was quarantined, 0 before; guarded by
 *	the carveout's lock
 * @mapped: the bo has been mapped at least once: page tables may show its pages, and
 *	its pages may be pinned. Set by the owner of the name before the mapping is made.
 * @written: bytes of the bo may differ from zero, through a mapping, ACCESS or
 *	REALLOC. Set by the owner of the name before the first write; cleared when the
 *	cache has zeroed the bo.
 * @pin_checks: number of checks for pinned pages in progress; faults wait for them,
 *	for a bounded time
 * @max_size: largest size in bytes before the bo shrank, 0 if it never shrank; a
 *	mapping may be this long. Written only by the REALLOC that resizes the bo.
 * @lock: guards the filling of @pages; held while the bo is split, and while @io is made
 * @pages: pages by index (emulated)
 * @next_free_index: index in @pages at which the next release() starts. Guarded
 *	by the mutex that its caller holds: quarantine.lock or accmem_due.lock.
 * @io: kernel mapping, of the same cache mode (phys without pages); set under @lock and the
 *	carveout's lock. NULL when the device is gone.
 * @io_size: bytes that @io maps, from the start of the bo; less than @size if the
 *	rest is clean and has not been accessed. Set as @io.
 * @io_link: link in accmem_carveout.kernel_maps while @io is not NULL; guarded by the
 *	carveout's lock
 * @shared: the host's side, for ACCMEM_KIND_SHARED; else NULL
 * @private: data of the owner of the name, zeroed at allocation
 *
 * A bo is live while it has a name, pending while its free waits for a dependency, and
 * detached afterwards. When the last reference is dropped, the bo is freed. If pages
 * are still pinned at that time (by a pipe, by O_DIRECT in flight, by another driver),
 * the bo is quarantined instead, and freed after the last pin has been dropped.
 */
struct accmem_bo {
	struct kref refs;
	struct accmem_account *account;
	struct accmem_carveout *cv;
	u64 size;
	u32 huge;
	u32 cache_mode;
	u32 buffers;
	u32 epoch;
	unsigned int nr_runs_before;
	u64 offset;
	struct accmem_run *runs;
	unsigned int nr_runs;
	unsigned int max_runs;
	struct accmem_run run;

	enum accmem_state state;
	atomic_t nr_exports;
	struct list_head link;
	struct list_head own_link;
	struct rb_node unnamed_node;

	bool pending;
	bool wake_on_put;
	unsigned long since;
	u64 since_try;
	u64 quarantined;
	bool mapped;
	bool written;
	atomic_t pin_checks;
	u64 max_size;
	struct mutex lock; /* filling of pages; making of io */
	struct xarray pages;
	unsigned long next_free_index;
	void __iomem *io;
	u64 io_size;
	struct list_head io_link;
	struct accmem_shared *shared;
	u8 private[] __aligned(8);
};

/**
 * struct accmem_run_line - a run of a buffer object, as debugfs shows it
 * @start: offset in the carveout
 * @size: bytes
 * @carveout: index of the carveout
 * @state: enum accmem_state of the buffer object
 * @cached: the buffer object is live, but no published buffer is in it
 * @context: number of the account
 * @uid: user of the account
 */
struct accmem_run_line {
	u64 start;
	u64 size;
	unsigned int carveout;
	enum accmem_state state;
	bool cached;
	u64 context;
	kuid_t uid;
};

#endif /* ACCMEM_BO_TYPES_H */
