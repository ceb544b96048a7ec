/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structures of carveouts.
 *
 * A carveout is a range of device memory, or the host memory of a device, that the
 * driver allocates from. Its backing supplies the pages through a table of operations.
 * Each allocated byte is in a state (enum accmem_state); the bytes of all states and
 * the free bytes add up to the capacity.
 *
 * Memory can fail. A failed granule is used no more from its free on (struct
 * accmem_failed).
 *
 * Background work: the cleaner zeroes dirty free memory, the quarantine frees memory
 * after its last pin is dropped, and a third work item finds overdue frees.
 *
 * Locks: the mutexes of the cleaner and of the quarantine are above the spinlock
 * accmem_carveout.lock, which guards the free space, the accounting and the lists.
 */
#ifndef ACCMEM_CARVEOUT_TYPES_H
#define ACCMEM_CARVEOUT_TYPES_H

#include <linux/accmem_provider.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rbtree.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <uapi/linux/accmem.h>

#include "lib/buddy/buddy.h"
#include "lib/layout/layout.h"

#define ACCMEM_MAX_ALIGNMENT ((u64)SZ_1G)
#define ACCMEM_MAX_SPAN BIT_ULL(44) /* mmap offsets are below it */
#define ACCMEM_SPAN_ALIGNMENT ((u64)SZ_1G)
#define ACCMEM_MAX_CARVEOUTS 8u /* device memory, per device */
#define ACCMEM_MAX_ALL (ACCMEM_MAX_CARVEOUTS + 1) /* plus host memory */
#define ACCMEM_CHUNK ((u64)SZ_2M) /* the most that is cleared at once */
#define ACCMEM_FOLIO_SHIFT 21
#define ACCMEM_FOLIO BIT_ULL(ACCMEM_FOLIO_SHIFT)
#define ACCMEM_FOLIO_ORDER (ACCMEM_FOLIO_SHIFT - PAGE_SHIFT)

struct accmem_accounts;
struct accmem_backing_ops;
struct accmem_carveout;
struct accmem_carveouts;
struct accmem_exports;
struct accmem_folio_ops;
struct accmem_waiters;

#define ACCMEM_NR_BANDWIDTHS (ACCMEM_BANDWIDTH_HIGH + 1)

/**
 * enum accmem_state - state of allocated bytes of a carveout
 * @ACCMEM_LIVE: the memory has a name
 * @ACCMEM_DETACHED: the memory has no name, but a mapping or a call refers to it
 * @ACCMEM_PENDING: the memory is freed, and its dependency has not signalled
 * @ACCMEM_QUARANTINED: the memory is freed and unmapped, but pages are pinned; or the
 *	free is overdue
 * @ACCMEM_RETIRED: the memory has failed and is never used again
 * @ACCMEM_NR_STATES: number of states; bytes in none of these states are free
 */
enum accmem_state {
	ACCMEM_LIVE,
	ACCMEM_DETACHED,
	ACCMEM_PENDING,
	ACCMEM_QUARANTINED,
	ACCMEM_RETIRED,
	ACCMEM_NR_STATES,
};

/**
 * enum accmem_cause - how the driver knows that memory has failed
 * @ACCMEM_CAUSE_POISON: the kernel has reported a memory error
 * @ACCMEM_CAUSE_ADMIN: an administrator has written to the file retire
 * @ACCMEM_CAUSE_LISTED: the parameter retired names the memory
 * @ACCMEM_CAUSE_DRIVER: the driver of the device has reported it
 * @ACCMEM_NR_CAUSES: number of causes
 */
enum accmem_cause {
	ACCMEM_CAUSE_POISON,
	ACCMEM_CAUSE_ADMIN,
	ACCMEM_CAUSE_LISTED,
	ACCMEM_CAUSE_DRIVER,
	ACCMEM_NR_CAUSES,
};

/**
 * struct accmem_failed - failed memory of a carveout
 * @nr: number of failed granules; it only grows
 * @pending: bytes that have failed and are in use; they are retired when they are freed
 * @lost: bytes that have failed and that the driver could not record
 * @granules: failed granules by number: the cause, and whether the granule is retired
 * @lock: held while memory is retired
 * @stopped: the carveout is being destroyed; guarded by @lock
 * @drain: drains the caches of freed buffers, which alloc/ owns
 *
 * The carveout's lock guards the other members. @nr and @granules are read without it.
 */
struct accmem_failed {
	unsigned long nr;
	u64 pending;
	u64 lost;
	struct xarray granules;
	struct mutex lock; /* one call at a time retires memory */
	bool stopped;
	void (*drain)(struct accmem_carveout *cv);
};

/**
 * struct accmem_failed_run - failed granules without a gap
 * @start: offset in the carveout
 * @size: bytes
 * @cause: the cause of all of them
 * @is_retired: true if they are retired, false if they are pending
 */
struct accmem_failed_run {
	u64 start;
	u64 size;
	enum accmem_cause cause;
	bool is_retired;
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
 * @idle_before: accmem_quarantine.last when the folio was found to have no pins: buffer
 *	objects that were quarantined up to then have none in this chunk
 * @checked: time in ns when mappings of the folio were last removed to find its pins
 * @next_check: time in ns before which they are not removed again
 *
 * The carveout's lock guards the last three.
 */
struct accmem_chunk {
	u64 clean_for;
	u64 idle_before;
	u64 checked;
	u64 next_check;
};

/**
 * struct accmem_cleaner - clears the free memory of a carveout in the background
 * @bytes_held: bytes that the cleaner has allocated for clearing; they count as free
 * @bytes_cleared: bytes that the cleaner has cleared in total
 * @bytes_at_alloc: bytes that allocations have cleared in total
 * @bytes_parallel: part of @bytes_at_alloc that other processors have cleared
 * @seq: odd while the cleaner has a chunk; written under the carveout's lock
 * @lock: held while the cleaner has a chunk
 * @pauses: number of requests that keep the cleaner from taking a chunk
 * @readers: number of readers of the free space that do the same
 * @yielded: jiffies that the cleaner has waited for readers and requests since its last
 *	turn; guarded by @lock
 * @turn_end: until this time, in jiffies, the cleaner ignores readers; written under
 *	@lock, read without
 * @helpers: number of work items that clear memory for allocations
 * @work: clears free memory
 * @due: time of the next run of @work, in jiffies
 * @aged: time of the last scan of accmem_chunk.clean_for, in jiffies
 * @has_clean_for: some chunk may have a nonzero accmem_chunk.clean_for
 *
 * The carveout's lock guards the four counts of bytes.
 */
struct accmem_cleaner {
	u64 bytes_held;
	u64 bytes_cleared;
	u64 bytes_at_alloc;
	u64 bytes_parallel;
	unsigned int seq;
	struct mutex lock; /* the chunk that the cleaner has */
	atomic_t pauses;
	atomic_t readers;
	unsigned long yielded;
	unsigned long turn_end;
	atomic_t helpers;
	struct delayed_work work;
	unsigned long due;
	unsigned long aged;
	bool has_clean_for;
};

/**
 * struct accmem_quarantine - freed memory of a carveout whose pages are pinned
 * @list: buffer objects, the least recently checked first
 * @nr: number of entries in @list
 * @delay: jiffies from one run of @work to the next
 * @lock: held while one buffer object is checked, and while some of its pages are freed
 * @last: number of the latest entry, from 1 on
 * @work: scans the list
 *
 * The carveout's lock guards @list, @nr, @delay and @last.
 */
struct accmem_quarantine {
	struct list_head list;
	unsigned int nr;
	unsigned long delay;
	struct mutex lock; /* the bo that is checked */
	u64 last;
	struct delayed_work work;
};

/**
 * struct accmem_carveout - range of memory that the driver allocates from
 * @carveouts: carveouts of the device
 * @waiters: waiters of the device
 * @index: index in accmem_carveouts.cvs
 * @kind: enum accmem_kind of the memory
 * @bandwidth: enum accmem_bandwidth
 * @node: NUMA node, or NUMA_NO_NODE
 * @pci: PCI device of which the memory is a BAR, with a reference, or NULL
 * @address_base: lowest device address
 * @address_span: size in bytes of the range of device addresses
 * @ops: operations of the backing
 * @folio_ops: operations of the backing's folios; NULL if folios have no owner
 * @priv: data of the backing
 * @capacity: size in bytes
 * @sysfs: directory in sysfs
 * @backing: enum accmem_backing
 * @translation: enum accmem_translation
 * @cache_modes: bit (1 << enum accmem_cache_mode) for each supported mode
 * @features: enum accmem_feature bits
 * @caps: capabilities for accmem_layout()
 * @resident: number of pages present (emulated)
 * @counters: counters that are updated without a lock, per processor
 * @shared: counters of shared memory: pieces moved, pieces moved without a copy, and
 *	bytes copied to the device and to the host
 * @failed: failed memory
 * @chunks: state of each 2 MiB chunk; NULL if free memory is never dirty
 * @lock: guards the fields down to @holds; taken by accmem_carveout_lock()
 * @buddy: allocator of the free space
 * @buddy_meta: metadata of @buddy
 * @owners: owner of each compound page; NULL if folios have no owner
 * @bytes: bytes in each state
 * @pending: pending buffer objects, in the order of their frees
 * @overdue: overdue buffer objects
 * @unnamed: detached buffer objects without the host side of shared memory, and
 *	quarantined ones that are not overdue, by the offset of their first run
 * @kernel_maps: buffer objects with a kernel mapping (phys without pages)
 * @holds: number of acquisitions of @lock
 * @cleaner: clears free memory in the background
 * @quarantine: freed memory whose pages are pinned
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
	struct pci_dev *pci;
	u64 address_base;
	u64 address_span;
	const struct accmem_backing_ops *ops;
	const struct accmem_folio_ops *folio_ops;
	void *priv;
	u64 capacity;
	struct kobject *sysfs;
	u32 backing;
	u32 translation;
	u32 cache_modes;
	u64 features;
	struct accmem_layout_caps caps;
	atomic64_t resident;
	struct accmem_counters __percpu *counters;
	struct {
		atomic64_t moves;
		atomic64_t clean;
		atomic64_t to_device;
		atomic64_t to_host;
	} shared;
	struct accmem_failed failed;
	struct accmem_chunk *chunks;

	spinlock_t lock; /* the fields down to holds */
	struct accmem_buddy buddy;
	void *buddy_meta;
	struct accmem_buddy_folio *owners;
	u64 bytes[ACCMEM_NR_STATES];
	struct list_head pending;
	struct list_head overdue;
	struct rb_root unnamed;
	struct list_head kernel_maps;
	u64 holds;

	struct accmem_cleaner cleaner;
	struct accmem_quarantine quarantine;
	struct delayed_work overdue_work;
	bool stopping;
};

/**
 * struct accmem_carveouts - carveouts of a device
 * @epoch: state of the memory, see core/revoke.h; odd while the memory is revoked
 * @gone: the memory is revoked for good
 * @provider_ops: operations of the provider; not called while the memory is revoked. A copy,
 *	since the module of the driver may be gone while calls of programs end.
 * @provider_priv: first argument of each operation
 * @accounts: accounts of the device
 * @exports: dma-bufs of the device
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
	u32 epoch;
	bool gone;
	struct accmem_provider_ops provider_ops;
	void *provider_priv;
	struct accmem_accounts *accounts;
	struct accmem_exports *exports;
	u64 address_base;
	u64 address_span;
	u32 of_class[ACCMEM_NR_BANDWIDTHS];
	u32 device_mask;
	u32 host_mask;
	unsigned int nr_device;
	unsigned int nr;
	const struct accmem_carveout *end;
	struct mutex drain_lock; /* cached buffers that are on no list */
	struct accmem_carveout cvs[ACCMEM_MAX_ALL];
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
