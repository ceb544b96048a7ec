/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contexts: the structures.
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

#include <linux/accmem.h>

#include "lib/slab/slab.h"
#include "types/account_types.h"
#include "types/buffer_types.h"
#include "types/waiters_types.h"

#define ACCMEM_NR_CACHE_MODES (ACCMEM_CACHE_UC + 1)

struct accmem_tmem;

/**
 * struct accmem_ctx_carveout - what a context has of one carveout
 * @cursor: where the search for a free device address starts (mapped)
 * @published_bytes: footprints of buffers that are published
 * @slabs: pages with room for small buffers, of each cache mode; NULL before the
 *	first of them
 * @slab_room: bytes of its slab pages that it could have: in no buffer, or in a
 *	cached one, and not waiting; but for pages that are cached in whole
 * @waiting_pages: slab pages with units that wait
 * @nr_waiting: how many pages
 * @cached_bytes: what cached buffers hold, which is free to all who ask
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
 * @refs: the file, who reclaims what it caches, pending frees, files of streams
 * @rcu: frees it when nobody can be looking at it any more
 * @carveouts: the carveouts of the device
 * @due: the due buffers of the device
 * @account: what it is charged for
 * @lock: guards the fields down to @pending_bytes, and @per_carveout. Held for
 *	O(log n).
 * @places: memory by device address
 * @nr_buffers: buffers that are published
 * @cache: freed buffers kept for the next requests, the latest first
 * @nr_cached: how many
 * @fences: frees that wait for fences, by fence
 * @nr_pending: frees that wait
 * @pending_bytes: their footprints
 * @streams: its streams, by number, while their files are open
 * @last_stream: number of the latest one
 * @shrink: how it is told that others wait for memory
 * @tmem_lock: guards @tmem
 * @tmem: Tensor Memory, NULL until it is set up or a CTA is launched; stays
 *	until the context ends
 * @per_carveout: what it has of each carveout
 */
struct accmem_context {
	struct kref refs;
	struct rcu_head rcu;
	struct accmem_carveouts *carveouts;
	struct accmem_due *due;
	struct accmem_account *account;

	spinlock_t lock; /* the fields down to pending_bytes, and holdings */
	struct rb_root places;
	u64 nr_buffers;
	struct list_head cache;
	unsigned int nr_cached;
	struct rb_root fences;
	u64 nr_pending;
	u64 pending_bytes;

	struct xarray streams;
	atomic64_t last_stream;
	struct accmem_pressure_client shrink;
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
