/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buffers and the places of their memory: the structures.
 */
#ifndef ACCMEM_BUFFER_TYPES_H
#define ACCMEM_BUFFER_TYPES_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

#include "lib/layout/layout.h"
#include "lib/slab/slab.h"
#include "types/bo_types.h"
#include "types/stream_types.h"

struct accmem_buffer;
struct accmem_context;
struct accmem_va;

/**
 * struct accmem_va - a memory at its device addresses
 * @node: in accmem_context.places, by address
 * @start: lowest device address
 * @size: bytes
 * @unit: bytes from one address that a buffer may have to the next
 * @gap: device addresses that are nobody's, below it
 * @max_gap: the largest such gap in its subtree
 * @bo: the buffer object
 * @names: bit i: a buffer that has been published begins i units in
 * @buffers: these buffers, by bit
 *
 * Guarded by the context's lock.
 */
struct accmem_va {
	struct rb_node node;
	u64 start;
	u64 size;
	u64 unit;
	u64 gap;
	u64 max_gap;
	struct accmem_bo *bo;
	u64 names;
	struct accmem_buffer **buffers;
};

/**
 * struct accmem_buffer - a name: what ALLOC returned, until FREE
 * @va: where its memory is
 * @address: device address
 * @length: bytes asked for
 * @layout: what that became
 * @reserve: bytes that it is expected to grow to, or 0
 * @flags: ACCMEM_ALLOC_*
 * @page_policy: enum accmem_page_policy as asked for
 * @resizing: a REALLOC of it is in progress, which alone may take its name away
 * @pending: its free, when that waits, or it is kept in the cache
 *
 * Guarded by the context's lock while it is published or cached; else it is
 * whose call has it in hand, or the stream's or the fence's that its free waits
 * for.
 */
struct accmem_buffer {
	struct accmem_va *va;
	u64 address;
	u64 length;
	struct accmem_layout layout;
	u64 reserve;
	u32 flags;
	u8 page_policy;
	bool resizing;
	struct accmem_pending pending;
};

/**
 * struct accmem_slab_page - a granule that small buffers are cut from
 * @va: where it is
 * @units: what is taken of it
 * @waiting: units that were freed when somebody could have had the page
 * @nr_used: buffers cut from it that are not free
 * @nr_cached: as many of them are in the cache
 * @nr_pending: as many of them wait to be free
 * @link: in accmem_context.waiting_pages, when there are @waiting units
 * @buffers: those that have been published, by unit
 *
 * Guarded by the context's lock.
 */
struct accmem_slab_page {
	struct accmem_va va;
	struct accmem_slab_granule units;
	u64 waiting;
	unsigned int nr_used;
	unsigned int nr_cached;
	unsigned int nr_pending;
	struct list_head link;
	struct accmem_buffer *buffers[ACCMEM_SLAB_UNITS];
};

/* the first device address that is not its own */
static inline u64 accmem_va_end(const struct accmem_va *va)
{
	return va->start + va->size;
}

static inline struct accmem_bo *
accmem_buffer_bo(const struct accmem_buffer *buf)
{
	return buf->va->bo;
}

static inline struct accmem_carveout *
accmem_buffer_carveout(const struct accmem_buffer *buf)
{
	return accmem_buffer_bo(buf)->cv;
}

#endif /* ACCMEM_BUFFER_TYPES_H */
