/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structures of carveouts.
 *
 * A carveout is a range of device memory, or the host memory of a device, that the
 * driver allocates from. Its backing supplies the pages through a table of operations.
 * Each allocated byte is in a state (enum accmem_state); the bytes of all states and
 * the free bytes add up to the capacity.
 *
 * Background work: the cleaner zeroes dirty free memory, the quarantine frees memory
 * after its last pin is dropped, and a third work item finds overdue frees.
 *
 * Locks: clear_lock and quarantine_lock are mutexes above the spinlock @lock, which
 * guards the free space, the accounting and the lists.
 */
#ifndef ACCMEM_CARVEOUT_TYPES_H
#define ACCMEM_CARVEOUT_TYPES_H

#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include <linux/accmem.h>

#include "lib/buddy/buddy.h"
#include "lib/layout/layout.h"

#define ACCMEM_MAX_ALIGNMENT ((u64)SZ_1G)
#define ACCMEM_MAX_SPAN BIT_ULL(44) /* mmap offsets are below it */
#define ACCMEM_SPAN_ALIGNMENT ((u64)SZ_1G)
#define ACCMEM_MAX_CARVEOUTS 8u /* device memory, per device */
#define ACCMEM_MAX_ALL (ACCMEM_MAX_CARVEOUTS + 1) /* plus host memory */
#define ACCMEM_CHUNK ((u64)SZ_2M) /* largest piece cleared at once */
#define ACCMEM_FOLIO_SHIFT 21
#define ACCMEM_FOLIO BIT_ULL(ACCMEM_FOLIO_SHIFT)
#define ACCMEM_FOLIO_ORDER (ACCMEM_FOLIO_SHIFT - PAGE_SHIFT)

struct accmem_carveout;
struct accmem_accounts;
struct accmem_carveouts;
struct accmem_bo;
struct vm_fault;

#define ACCMEM_NR_BANDWIDTHS (ACCMEM_BANDWIDTH_HIGH + 1)

/**
 * enum accmem_state - state of allocated bytes of a carveout
 * @ACCMEM_LIVE: the memory has a name
 * @ACCMEM_DETACHED: the memory has no name, but a mapping or a call refers to it
 * @ACCMEM_PENDING: the memory is freed, and its dependency has not signalled
 * @ACCMEM_QUARANTINED: the memory is freed and unmapped, but pages are pinned; or the
 *	free is overdue
 * @ACCMEM_NR_STATES: number of states; bytes in none of these states are free
 */
enum accmem_state {
	ACCMEM_LIVE,
	ACCMEM_DETACHED,
	ACCMEM_PENDING,
	ACCMEM_QUARANTINED,
	ACCMEM_NR_STATES,
};

/**
 * struct accmem_backing_ops - operations of the backing of a carveout
 * @init: initialise a new bo: clear its memory and apply its cache mode. May be
 *	absent. May sleep.
 * @populate: allocate the pages of a bo, from an offset on. Absent if the pages are
 *	always present. May sleep.
 * @fault: handle a page fault in a mapping of a bo. May sleep.
 * @map: prepare a bo for mappings. Fails with -ENOMEM. Absent if there is nothing to
 *	prepare. May sleep.
 * @check_idle: return true if only the driver refers to the pages of a bo that faults
 *	cannot reach. May return false although the pages are idle, never the opposite.
 *	Does not sleep for a bo of one page. Absent, like @unmap_and_check and
 *	@check_unpinned, if the pages cannot be pinned.
 * @unmap_and_check: like @check_idle, but exact: neighbours in the same folio, whose
 *	mappings hide the answer, are unmapped, too. With @release_pages: return true
 *	if no page is left. May sleep.
 * @release_pages: free some of the pages of a bo that is no longer in use. A page that
 *	is pinned ends the call, unless @all is set: then the page is skipped. Return
 *	true if pages remain to be checked; the next call continues there. Absent if
 *	pages are not freed one by one. May sleep, for a bounded time.
 * @clear_range: clear a part of a bo that is in use. Fails with -ENOMEM if the bo has
 *	grown. May sleep.
 * @access: read or write a part of a bo that is in use, as the device does. Fails
 *	with -ENXIO beyond the end of the bo, and with -ENOMEM. May sleep.
 * @kernel_address: return the kernel address of the byte at an offset of a bo that does not
 *	shrink, and the number of bytes that are contiguous there. @make allocates
 *	the page if there is none; the result is NULL if there is no page. Only for
 *	host memory. May sleep.
 * @copy: copy between two buffer objects with the same operations. The destination
 *	counts as written. Absent if @access is as fast. May sleep.
 * @extend: like @init, for a run directly behind a bo that the bo is about to get.
 *	Absent with mapped translation. May sleep.
 * @shrink_floor: return the number of bytes that a bo keeps when it shrinks to a size,
 *	and that it has at least when it grows to this size again. accmem_bo.lock
 *	is held.
 * @split: the backing's part of accmem_bo_split_prepare(). accmem_bo.lock is held.
 *	May sleep.
 * @trim: remove the pages beyond the end of a bo that has shrunk. accmem_bo.lock is
 *	held. May sleep.
 * @sync_faults: wait for faults that may map memory that was split off. May sleep.
 * @check_unpinned: like @unmap_and_check, for a bo that stays in use: its own mappings
 *	are removed before the call, and faults may map the bo again. May sleep.
 * @release: undo @init. May be absent. May sleep; does not allocate memory.
 * @clear: clear a free chunk that the cleaner holds. Fails with -ENOMEM. Absent if
 *	free memory is always clean. May sleep.
 * @destroy: free the resources of the carveout. May be absent. May sleep.
 */
struct accmem_backing_ops {
	int (*init)(struct accmem_bo *bo);
	int (*populate)(struct accmem_bo *bo, u64 offset);
	vm_fault_t (*fault)(struct accmem_bo *bo, struct vm_fault *vmf);
	int (*map)(struct accmem_bo *bo);
	bool (*check_idle)(struct accmem_bo *bo);
	bool (*unmap_and_check)(struct accmem_bo *bo);
	bool (*release_pages)(struct accmem_bo *bo, bool all);
	int (*clear_range)(struct accmem_bo *bo, u64 offset, u64 size);
	int (*access)(struct accmem_bo *bo, u64 offset, void *data, u64 size,
		      bool write);
	void *(*kernel_address)(struct accmem_bo *bo, u64 offset, bool make,
				u64 *size);
	int (*copy)(struct accmem_bo *to, u64 to_offset, struct accmem_bo *from,
		    u64 from_offset, u64 size);
	int (*extend)(struct accmem_bo *bo, const struct accmem_run *more);
	u64 (*shrink_floor)(struct accmem_bo *bo, u64 size);
	int (*split)(struct accmem_bo *bo, struct accmem_bo *rest);
	void (*trim)(struct accmem_bo *bo);
	void (*sync_faults)(struct accmem_bo *rest);
	bool (*check_unpinned)(struct accmem_bo *bo);
	void (*release)(struct accmem_bo *bo);
	int (*clear)(struct accmem_carveout *cv, u64 offset, u64 size);
	void (*destroy)(struct accmem_carveout *cv);
};

/**
 * struct accmem_counters - counters of one processor; a carveout has the sums
 * @cached: bytes in the caches of freed buffers; they count as free
 * @allocs: number of buffers allocated
 * @frees: number of buffers whose memory was freed
 * @failures: number of allocations that failed for lack of memory
 */
struct accmem_counters {
	s64 cached;
	u64 allocs;
	u64 frees;
	u64 failures;
};

/**
 * struct accmem_chunk - state of 2 MiB of a carveout
 * @clean_for: number of the account for which the clean free memory of the chunk needs
 *	no clearing; for every other account this memory is dirty. 0 if there is none.
 * @pinned: accmem_carveout.quarantine_pass in which the chunk was found to be pinned
 */
struct accmem_chunk {
	u64 clean_for;
	u32 pinned;
};

/**
 * struct accmem_carveout - range of memory that the driver allocates from
 * @carveouts: carveouts of the device
 * @waiters: waiters of the device
 * @index: index in accmem_carveouts.cvs
 * @kind: enum accmem_kind of the memory
 * @bandwidth: enum accmem_bandwidth
 * @node: NUMA node, or NUMA_NO_NODE
 * @address_base: lowest device address
 * @address_span: size in bytes of the range of device addresses
 * @ops: operations of the backing
 * @capacity: size in bytes
 * @phys: physical address of the range (phys)
 * @sysfs: directory in sysfs
 * @backing: enum accmem_backing
 * @translation: enum accmem_translation
 * @cache_modes: bit (1 << enum accmem_cache_mode) for each supported mode
 * @features: enum accmem_feature bits
 * @caps: capabilities for accmem_layout()
 * @pagemap: page structures of the range (phys with pages)
 * @resource: claimed I/O memory resource (phys)
 * @resident: number of pages present (emulated)
 * @counters: counters that are updated without a lock, per processor
 * @shared: counters of shared memory: pieces moved, pieces moved without a copy, and
 *	bytes copied to the device and to the host
 * @chunks: state of each 2 MiB chunk; NULL if free memory is never dirty
 * @lock: guards the fields down to @holds; taken by accmem_carveout_lock()
 * @buddy: allocator of the free space
 * @buddy_meta: metadata of @buddy
 * @owners: owner of each compound page; NULL if folios have no owner
 * @bytes: bytes in each state
 * @clearing: bytes that the cleaner has allocated for clearing; they count as free
 * @cleared: bytes that the cleaner has cleared in total
 * @cleared_at_alloc: bytes that allocations have cleared in total
 * @cleared_parallel: part of @cleared_at_alloc that other processors have cleared
 * @quarantine: quarantined buffer objects, the least recently checked first
 * @nr_quarantined: number of entries in @quarantine
 * @pending: pending buffer objects, in the order of their frees
 * @overdue: overdue buffer objects
 * @quarantine_delay: jiffies from one run of @quarantine_work to the next
 * @holds: number of acquisitions of @lock
 * @clear_seq: odd while the cleaner has a chunk; written under @lock
 * @clear_lock: held while the cleaner has a chunk
 * @clear_pause: number of requests that keep the cleaner from taking a chunk
 * @clear_blockers: number of readers of the free space that do the same
 * @clear_yielded: jiffies that the cleaner has waited for readers and requests since
 *	its last turn; guarded by @clear_lock
 * @clear_turn_end: until this time, in jiffies, the cleaner ignores readers; written
 *	under @clear_lock, read without
 * @clear_helpers: number of work items that clear memory for allocations
 * @clear_work: clears free memory in the background
 * @clear_due: time of the next run of @clear_work, in jiffies
 * @clear_aged: time of the last scan of accmem_chunk.clean_for, in jiffies
 * @has_clean_for: some chunk may have a nonzero accmem_chunk.clean_for
 * @quarantine_lock: held while one quarantined bo is checked, and while some of its
 *	pages are freed
 * @quarantine_pass: serial number of the current scan of the quarantine, never 0;
 *	guarded by @quarantine_lock
 * @quarantine_work: scans the quarantine
 * @overdue_work: finds pending frees that have become overdue
 * @stopping: the carveout is being destroyed; no background work is started
 */
struct accmem_carveout {
	struct accmem_carveouts *carveouts;
	struct accmem_waiters *waiters;
	unsigned int index;
	u32 kind;
	u32 bandwidth;
	int node;
	u64 address_base;
	u64 address_span;
	const struct accmem_backing_ops *ops;
	u64 capacity;
	phys_addr_t phys;
	struct kobject *sysfs;
	u32 backing;
	u32 translation;
	u32 cache_modes;
	u64 features;
	struct accmem_layout_caps caps;
	struct dev_pagemap pagemap;
	struct resource *resource;
	atomic64_t resident;
	struct accmem_counters __percpu *counters;
	struct {
		atomic64_t moves;
		atomic64_t clean;
		atomic64_t to_device;
		atomic64_t to_host;
	} shared;
	struct accmem_chunk *chunks;

	spinlock_t lock; /* the fields down to holds */
	struct accmem_buddy buddy;
	void *buddy_meta;
	struct accmem_buddy_folio *owners;
	u64 bytes[ACCMEM_NR_STATES];
	u64 clearing;
	u64 cleared;
	u64 cleared_at_alloc;
	u64 cleared_parallel;
	struct list_head quarantine;
	unsigned int nr_quarantined;
	struct list_head pending;
	struct list_head overdue;
	unsigned long quarantine_delay;
	u64 holds;

	unsigned int clear_seq;
	struct mutex clear_lock; /* the chunk that the cleaner has */
	atomic_t clear_pause;
	atomic_t clear_blockers;
	unsigned long clear_yielded;
	unsigned long clear_turn_end;
	atomic_t clear_helpers;
	struct delayed_work clear_work;
	unsigned long clear_due;
	unsigned long clear_aged;
	bool has_clean_for;
	struct mutex quarantine_lock; /* the bo that is checked */
	u32 quarantine_pass;
	struct delayed_work quarantine_work;
	struct delayed_work overdue_work;
	bool stopping;
};

/**
 * struct accmem_carveouts - carveouts of a device
 * @accounts: accounts of the device
 * @address_base: lowest device address of all carveouts
 * @address_span: size in bytes of the device addresses of all carveouts
 * @of_class: bit i is set if carveout i has the enum accmem_bandwidth of the index
 * @device_mask: bit i is set if carveout i is device memory
 * @host_mask: bit i is set if carveout i is host memory; 0 if there is none
 * @nr_device: number of carveouts of device memory; user space names them by index
 * @nr: number of carveouts, with host memory
 * @end: the end of the first @nr entries of @cvs
 * @drain_lock: held while buffers from a context's cache, which are on no list then,
 *	are freed for a request that is short of memory
 * @cvs: carveouts
 */
struct accmem_carveouts {
	struct accmem_accounts *accounts;
	u64 address_base;
	u64 address_span;
	u32 of_class[ACCMEM_NR_BANDWIDTHS];
	u32 device_mask;
	u32 host_mask;
	unsigned int nr_device;
	unsigned int nr;
	const struct accmem_carveout *end;
	struct mutex drain_lock; /* cached buffers that are on no list */
	struct accmem_carveout cvs[];
};

/* The carveout of host memory, or NULL. */
static inline struct accmem_carveout *
accmem_carveouts_host(struct accmem_carveouts *carveouts)
{
	return carveouts->host_mask ? &carveouts->cvs[carveouts->nr_device] :
				      NULL;
}

/* The number of a carveout in user space; 0 for host memory, which has no number. */
static inline unsigned int
accmem_carveout_number(const struct accmem_carveout *cv)
{
	return cv->kind == ACCMEM_KIND_DEVICE ? cv->index : 0;
}

#endif /* ACCMEM_CARVEOUT_TYPES_H */
