/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structures of buffers, and of their device addresses.
 *
 * A buffer is a name (a device address) for a buffer object or for a part of one. A
 * struct accmem_va is the range of device addresses of one buffer object in a context;
 * all buffers in this buffer object share it. Small buffers are cut from a slab page,
 * which is a buffer object of one granule.
 *
 * Locks: the context's lock guards the addresses, the buffers and the slab pages.
 */
#ifndef ACCMEM_BUFFER_TYPES_H
#define ACCMEM_BUFFER_TYPES_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>

#include <uapi/linux/accmem.h>

#include "lib/layout/layout.h"
#include "lib/slab/slab.h"
#include "types/bo_types.h"
#include "types/stream_types.h"

struct accmem_buffer;
struct accmem_context;
struct accmem_va;

/**
 * struct accmem_va - range of device addresses of a buffer object
 * @node: node in accmem_context.va_tree, ordered by address
 * @start: lowest device address
 * @size: size in bytes
 * @stride: smallest distance in bytes between the addresses of two buffers
 * @hole: number of unused device addresses directly below @start
 * @subtree_max_hole: largest @hole in the subtree of @node
 * @bo: buffer object
 * @offset: offset in @bo of the byte at @start; 0 unless the va is that of an import
 * @imported: the va is that of an import: @bo belongs to another va
 * @published: bit i is set if a published buffer begins at @start + i * @stride
 * @buffers: published buffers, indexed by the bits of @published
 *
 * Guarded by the context's lock.
 */
struct accmem_va {
	struct rb_node node;
	u64 start;
	u64 size;
	u64 stride;
	u64 hole;
	u64 subtree_max_hole;
	struct accmem_bo *bo;
	u64 offset;
	bool imported;
	u64 published;
	struct accmem_buffer **buffers;
};

/**
 * struct accmem_buffer - a name: the result of ALLOC, until FREE
 * @va: range of device addresses that the buffer is in
 * @address: device address
 * @length: bytes requested
 * @layout: layout computed from the request
 * @reserve: bytes that the buffer is expected to grow to, or 0
 * @alignment: alignment that ALLOC requested, or 0; the layout may have a larger one
 * @flags: ACCMEM_ALLOC_*, or ACCMEM_QUERY_IMPORTED
 * @page_policy: enum accmem_page_policy, as requested
 * @resizing: a REALLOC is in progress; only this call may unpublish the buffer
 * @pending: state of the free, while the free is pending or the buffer is cached
 *
 * Guarded by the context's lock while the buffer is published or cached. Otherwise
 * the buffer belongs to the call that allocates or frees it, or to the stream or the
 * fence that its free waits for.
 */
struct accmem_buffer {
	struct accmem_va *va;
	u64 address;
	u64 length;
	struct accmem_layout layout;
	u64 reserve;
	u64 alignment;
	u32 flags;
	u8 page_policy;
	bool resizing;
	struct accmem_pending pending;
};

/**
 * struct accmem_slab_page - granule from which small buffers are cut
 * @va: range of device addresses of the granule
 * @slots: slots in use
 * @waiting: slots that were freed while the page was mapped or pinned, and that are
 *	not reused before the last reference to the page is dropped
 * @nr_used: number of buffers cut from the page that are not free
 * @nr_cached: number of these buffers that are in the context's cache
 * @nr_pending: number of these buffers whose free is pending
 * @link: link in accmem_ctx_carveout.waiting_pages while @waiting is not 0
 * @buffers: published buffers, by slot
 *
 * Guarded by the context's lock.
 */
struct accmem_slab_page {
	struct accmem_va va;
	struct accmem_slab_granule slots;
	u64 waiting;
	unsigned int nr_used;
	unsigned int nr_cached;
	unsigned int nr_pending;
	struct list_head link;
	struct accmem_buffer *buffers[ACCMEM_SLAB_SLOTS];
};

/* The device address directly behind the range. */
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

/*
 * Return true if the buffer is an import: its memory has a buffer object of its own, whose
 * state belongs to the buffer that ALLOC made.
 */
static inline bool accmem_buffer_is_imported(const struct accmem_buffer *buf)
{
	return buf->flags & ACCMEM_QUERY_IMPORTED;
}

/* Return the flags of a request that describe the buffer, and not the call. */
static inline u32 accmem_alloc_flags(const struct accmem_alloc *req)
{
	return req->flags & ~(ACCMEM_ALLOC_STREAM | ACCMEM_ALLOC_WAIT);
}

#endif /* ACCMEM_BUFFER_TYPES_H */
