/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structures of contexts.
 *
 * A context is one open file of /dev/accmemN. A context owns device addresses,
 * buffers, a cache of freed buffers, slab pages, streams and Tensor Memory. The
 * memory of the context is charged to its account, which may outlive the context.
 *
 * Locks: accmem_context.lock, a spinlock above the carveout's lock, guards the
 * addresses, the buffers, the cache and the pending frees.
 */
#ifndef ACCMEM_CONTEXT_TYPES_H
#define ACCMEM_CONTEXT_TYPES_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include <uapi/linux/accmem.h>

#include "lib/slab/slab.h"
#include "types/account_types.h"
#include "types/buffer_types.h"
#include "types/waiters_types.h"

#define ACCMEM_NR_CACHE_MODES (ACCMEM_CACHE_UC + 1)

struct accmem_tmem;

/**
 * struct accmem_ctx_carveout - state of a context in one carveout
 * @cursor: device address from which the search for a free address starts (mapped)
 * @published_bytes: sum of the footprints of the published buffers
 * @slabs: slab of each cache mode; NULL before the first small buffer of this mode
 * @slab_room: bytes in slab pages that are available to small buffers of the context:
 *	free slots plus cached small buffers. Slots that wait do not count, and a page
 *	whose used slots are all cached counts in @cached_bytes instead.
 * @waiting_pages: slab pages with slots that wait for the last reference to the page
 * @nr_waiting: number of entries in @waiting_pages
 * @cached_bytes: bytes of cached buffers; they count as free
 *
 * Guarded by the context's lock.
 */
struct accmem_ctx_carveout {
	u64 cursor;
	u64 published_bytes;
	struct accmem_slab *slabs[ACCMEM_NR_CACHE_MODES];
	s64 slab_room;
	struct list_head waiting_pages;
	unsigned int nr_waiting;
	u64 cached_bytes;
};

/**
 * struct accmem_context - one open file
 * @refs: references: the file, calls that reclaim the context's cache, pending frees,
 *	and files of streams
 * @rcu: frees the context after the readers of accmem_account.context have finished
 * @carveouts: carveouts of the device
 * @due: due frees of the device
 * @account: account that the context is charged to
 * @read_only: the file was opened without the right to write
 * @epoch: accmem_carveouts.epoch for which the buffers are valid; written under @lock
 * @lock: guards the fields down to @pending_bytes, and @per_carveout; held for O(log n)
 *	steps
 * @va_tree: tree of struct accmem_va, ordered by device address
 * @nr_buffers: number of published buffers
 * @cache: freed buffers that are kept for later requests, the latest first
 * @nr_cached: number of entries in @cache
 * @fences: tree of pending frees that wait for a fence, ordered by fence
 * @nr_pending: number of pending frees
 * @pending_bytes: sum of the footprints of the pending frees
 * @streams: streams whose file is open, by number
 * @last_stream: number of the latest stream
 * @pressure: registration for memory pressure
 * @tmem_lock: guards @tmem
 * @tmem: Tensor Memory; NULL before SETUP or the first launch. Not freed before the
 *	context ends.
 * @per_carveout: state in each carveout
 */
struct accmem_context {
	struct kref refs;
	struct rcu_head rcu;
	struct accmem_carveouts *carveouts;
	struct accmem_due *due;
	struct accmem_account *account;
	bool read_only;
	u32 epoch;

	spinlock_t lock; /* the fields down to pending_bytes, and per_carveout */
	struct rb_root va_tree;
	u64 nr_buffers;
	struct list_head cache;
	unsigned int nr_cached;
	struct rb_root fences;
	u64 nr_pending;
	u64 pending_bytes;

	struct xarray streams;
	atomic64_t last_stream;
	struct accmem_pressure_client pressure;
	struct mutex tmem_lock; /* tmem */
	struct accmem_tmem *tmem;
	struct accmem_ctx_carveout per_carveout[];
};

static inline struct accmem_ctx_carveout *
accmem_ctx_carveout_of(struct accmem_context *ctx,
		       const struct accmem_carveout *cv)
{
	return &ctx->per_carveout[cv->index];
}

#endif /* ACCMEM_CONTEXT_TYPES_H */
