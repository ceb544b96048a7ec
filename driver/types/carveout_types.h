/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Carveouts: the structures.
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
#define ACCMEM_MAX_SPAN BIT_ULL(44) /* mmap offsets stay below it */
#define ACCMEM_SPAN_ALIGNMENT ((u64)SZ_1G)
#define ACCMEM_MAX_CARVEOUTS 8u /* of device memory, a device */
#define ACCMEM_MAX_ALL (ACCMEM_MAX_CARVEOUTS + 1) /* and one of host memory */
#define ACCMEM_CHUNK ((u64)SZ_2M) /* cleared at once */
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
 * enum accmem_state - who answers for the bytes of a carveout
 * @ACCMEM_LIVE: has a name
 * @ACCMEM_DETACHED: freed, but mapped still
 * @ACCMEM_PENDING: freed at a position of a stream that is not reached yet
 * @ACCMEM_QUARANTINED: freed and unmapped, but pages are pinned still; or
 *	pending for too long
 * @ACCMEM_NR_STATES: number of states; what is in none of them is free
 */
enum accmem_state {
	ACCMEM_LIVE,
	ACCMEM_DETACHED,
	ACCMEM_PENDING,
	ACCMEM_QUARANTINED,
	ACCMEM_NR_STATES,
};

/**
 * struct accmem_backing_ops - what a carveout's memory is made of
 * @init: make new memory ready: cleared, and with its cache mode. Sleeps.
 * @populate: make a memory present, from an offset on; absent where it always is.
 *	Sleeps.
 * @fault: serve a page fault of a mapping of the memory
 * @map: get ready for mappings of a memory; absent where there is nothing to do. Fails
 *	with -ENOMEM. Sleeps.
 * @check_idle: has nobody but us a reference to the pages of a memory that no fault
 *	reaches any more? Does not sleep, and says no too often rather than yes.
 *	Absent, like @unmap_and_check and @check_unpinned, where nobody can have one.
 * @unmap_and_check: as @check_idle, but finds out: mappings of neighbours that hide the answer
 *	are taken down. With @release_pages, whether that has left nothing. Sleeps.
 * @release_pages: give some pages back of a memory that nobody refers to any more, and that
 *	nobody but us has: ends at one that somebody has, or with @all passes it.
 *	True where there are pages left to look at; the next call goes on there. Absent
 *	where pages are not given back. Sleeps, for a bounded time.
 * @clear_range: clear a part of a memory that is in use. Fails with -ENOMEM where the memory
 *	has grown. Sleeps.
 * @access: read or write a part of a memory that is in use, as the device does.
 *	Fails with -ENXIO beyond its end, -ENOMEM. Sleeps.
 * @kmap: the kernel's address of the bytes from an offset of a memory on that does not
 *	shrink, made present if asked for, and how many lie there together; NULL where
 *	there are none. Absent but for memory of the host. Sleeps.
 * @copy: copy to a memory, which somebody may have written to from then on, from one
 *	with the same operations; absent where @access is as good. Sleeps.
 * @extend: as @init, of a run right behind a memory, which it is to have, too;
 *	absent with mapped translation. Sleeps.
 * @shrink_floor: how much of a memory stays when it shrinks to a size, and is there at least
 *	when it grows again to one; under its lock
 * @split: what accmem_bo_split_prepare() has to do besides; likewise. Sleeps.
 * @trim: forget pages beyond the end of a memory that has shrunk; likewise
 * @sync_faults: wait for faults that may show memory that is split off. Sleeps.
 * @check_unpinned: as @unmap_and_check, of memory that stays in use: its mappings are down, and
 *	may come back meanwhile
 * @release: undo @init. Sleeps, allocates nothing.
 * @clear: clear a chunk that nobody has; absent where memory is clear whenever
 *	it is free. Sleeps.
 * @destroy: give the carveout's own resources back
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
	void *(*kmap)(struct accmem_bo *bo, u64 offset, bool make, u64 *size);
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
 * struct accmem_counters - of one processor; a carveout's are the sums
 * @cached: bytes that caches of freed buffers hold; they count as free
 * @allocs: buffers allocated
 * @frees: buffers whose memory came back
 * @failures: allocations that failed for lack of memory
 */
struct accmem_counters {
	s64 cached;
	u64 allocs;
	u64 frees;
	u64 failures;
};

/**
 * struct accmem_chunk - what is known of 2 MiB of a carveout
 * @clean_for: number of the account whose free memory in it nobody has
 *	touched since it was cleared for that account; 0 if there is none
 * @pinned: the accmem_carveout.quarantine_pass in which it was found pinned
 */
struct accmem_chunk {
	u64 clean_for;
	u32 pinned;
};

/**
 * struct accmem_carveout - a range of device memory
 * @carveouts: the carveouts of the device
 * @waiters: the waiters of the device
 * @index: which of the device's carveouts
 * @kind: enum accmem_kind of what is in it
 * @bandwidth: enum accmem_bandwidth
 * @node: NUMA node, or NUMA_NO_NODE
 * @address_base: lowest device address
 * @address_span: bytes of device addresses
 * @ops: its backing
 * @capacity: bytes
 * @phys: physical address of the range (phys)
 * @sysfs: its directory
 * @backing: enum accmem_backing
 * @translation: enum accmem_translation
 * @cache_modes: bit (1 << enum accmem_cache_mode) for each mode offered
 * @features: enum accmem_feature bits
 * @caps: what the layout function may choose from
 * @pagemap: page structures of the range (phys with pages)
 * @resource: the claimed range (phys)
 * @resident: pages present (emulated)
 * @counters: what is counted without a lock
 * @shared: pieces of shared memory that moved, how many of them without a copy, and
 *	bytes that were copied to the device and to the host
 * @units: what is known of each 2 MiB; NULL where memory is never dirty
 * @lock: guards the fields down to @holds; taken with accmem_carveout_lock()
 * @buddy: free space
 * @buddy_meta: its metadata
 * @owners: whose each compound page is; NULL where there are none
 * @bytes: bytes in each state
 * @clearing: bytes that the cleaner holds; they count as free
 * @cleared: bytes that the cleaner has cleared so far
 * @cleared_at_alloc: bytes that were cleared by the allocations that got them
 * @cleared_parallel: of these, bytes that other processors cleared
 * @quarantine: quarantined memory
 * @nr_quarantined: how many
 * @pending: pending memory, in the order of its frees
 * @overdue: memory that has been pending for too long
 * @quarantine_delay: jiffies until the reaper looks the next time
 * @holds: how often @lock was taken
 * @clear_seq: odd while the cleaner has a chunk; under @lock
 * @clear_lock: held while the cleaner has a chunk
 * @clear_pause: how many want it to have none
 * @clear_blockers: how many want the same for a look at what is free
 * @clear_yielded: jiffies that it has given way to them; guarded by @clear_lock
 * @clear_turn_end: jiffies until which it does not give way to who only looks; set under
 *	@clear_lock, read without
 * @clear_helpers: work items that help allocations to clear
 * @clear_work: clears free memory in the background
 * @clear_due: jiffies when it starts the next time
 * @clear_aged: jiffies of its last look at what is untouched
 * @untouched: some units may have an clean_for
 * @quarantine_lock: held while one quarantined memory is looked at, and some of its pages
 *	are given back
 * @quarantine_pass: serial number of the pass that looks, never 0; guarded by
 *	@quarantine_lock
 * @quarantine_work: looks at quarantined memory again
 * @overdue_work: finds what has been pending for too long
 * @stopping: the carveout is going; no more background work
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
	struct accmem_chunk *units;

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
	struct mutex clear_lock; /* a chunk is out of the free space */
	atomic_t clear_pause;
	atomic_t clear_blockers;
	unsigned long clear_yielded;
	unsigned long clear_turn_end;
	atomic_t clear_helpers;
	struct delayed_work clear_work;
	unsigned long clear_due;
	unsigned long clear_aged;
	bool untouched;
	struct mutex quarantine_lock; /* one quarantined memory is looked at */
	u32 quarantine_pass;
	struct delayed_work quarantine_work;
	struct delayed_work overdue_work;
	bool stopping;
};

/**
 * struct accmem_carveouts - the carveouts of a device
 * @accounts: the accounts of the device
 * @address_base: lowest device address of all carveouts
 * @address_span: bytes of device addresses of all carveouts
 * @of_class: bit i: carveout i is of that enum accmem_bandwidth
 * @device_mask: bit i: carveout i, of device memory
 * @host_mask: bit i: carveout i, of host memory, the last one if there is one; 0
 * @nr_device: carveouts of device memory, which users know by their index
 * @nr: all carveouts
 * @drain_lock: held while freed memory of a context's cache is given back for a request
 * @cvs: the carveouts
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
	struct mutex drain_lock; /* freed memory of a cache is in no list */
	struct accmem_carveout cvs[];
};

#define accmem_for_each_carveout(cv, carveouts) \
	for ((cv) = (carveouts)->cvs;           \
	     (cv) < (carveouts)->cvs + (carveouts)->nr; (cv)++)

/* the carveout of host memory, or NULL */
static inline struct accmem_carveout *
accmem_carveouts_host(struct accmem_carveouts *carveouts)
{
	return carveouts->host_mask ? &carveouts->cvs[carveouts->nr_device] :
				      NULL;
}

/* by which users know a carveout; host memory has none */
static inline unsigned int
accmem_carveout_number(const struct accmem_carveout *cv)
{
	return cv->kind == ACCMEM_KIND_DEVICE ? cv->index : 0;
}

#endif /* ACCMEM_CARVEOUT_TYPES_H */
