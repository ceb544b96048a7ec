/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buffers: creation, removal and destruction.
 */
#ifndef ACCMEM_VM_BUFFER_H
#define ACCMEM_VM_BUFFER_H

#include <linux/math.h>
#include <linux/types.h>

#include "core/carveout.h"
#include "core/failed.h"
#include "types/context_types.h"

struct accmem_alloc;
struct accmem_layout;

struct accmem_buffer *accmem_buffer_create(struct accmem_context *ctx,
					   struct accmem_carveout *cv,
					   const struct accmem_alloc *req,
					   const struct accmem_layout *layout);
struct accmem_bo *accmem_buffer_prepare(struct accmem_context *ctx);
struct accmem_buffer *accmem_buffer_adopt(struct accmem_context *ctx,
					  struct accmem_bo *bo,
					  const struct accmem_alloc *req,
					  const struct accmem_layout *layout,
					  bool dirty);
void accmem_buffer_remove(struct accmem_context *ctx,
			  struct accmem_buffer *buf);
bool accmem_buffer_release_pages(struct accmem_buffer *buf);
void accmem_buffer_destroy(struct accmem_context *ctx,
			   struct accmem_buffer *buf);
void accmem_buffer_set_pending(struct accmem_context *ctx,
			       struct accmem_buffer *buf, bool pending);
struct accmem_bo *accmem_buffer_reach(struct accmem_context *ctx, u64 address,
				      u64 *offset, u64 *room);
struct accmem_bo *accmem_buffer_reach_to_pin(struct accmem_context *ctx,
					     u64 address, u64 *offset,
					     u64 *room);

/*
 * Return the size of the range of device addresses of a buffer, in bytes. With mapped
 * translation the range also covers the addresses that @reserve keeps for growth. With
 * identity translation an address is an offset of memory, so no addresses can be
 * reserved.
 */
static inline u64 accmem_carveout_addresses(const struct accmem_carveout *cv,
					    u64 footprint, u64 reserve)
{
	if (cv->translation == ACCMEM_TRANSLATION_IDENTITY)
		return footprint;
	return max(footprint, round_up(reserve, ACCMEM_GRANULE));
}

/*
 * Can a freed buffer serve a request? The answer is yes if a new buffer for @req and
 * @layout in @cv would have the same properties as @buf with its buffer object @bo. The caller
 * checks whether some of the memory has failed, which may take long.
 */
static inline bool accmem_buffer_fits(const struct accmem_buffer *buf,
				      struct accmem_bo *bo,
				      const struct accmem_carveout *cv,
				      const struct accmem_alloc *req,
				      const struct accmem_layout *layout)
{
	return buf->layout.footprint == layout->footprint &&
	       IS_ALIGNED(buf->address, layout->alignment) &&
	       buf->layout.page_size == layout->page_size &&
	       buf->layout.small == layout->small &&
	       buf->page_policy == req->page_policy &&
	       buf->flags == accmem_alloc_flags(req) &&
	       buf->reserve == req->reserve && bo->cv == cv &&
	       bo->cache_mode == accmem_carveout_mode(cv, req->cache_mode);
}

/* Make a freed buffer that fits @req the buffer of @req. The caller holds ctx->lock. */
static inline void accmem_buffer_reuse(struct accmem_buffer *buf,
				       const struct accmem_alloc *req,
				       const struct accmem_layout *layout)
{
	buf->length = req->length;
	buf->alignment = req->alignment;
	buf->layout = *layout;
}

/*
 * Return the number of runs that QUERY reports. While a REALLOC is in progress, this
 * is the number from before the REALLOC. The caller holds the context's lock.
 */
static inline unsigned int
accmem_buffer_nr_runs(const struct accmem_buffer *buf)
{
	const struct accmem_bo *bo = accmem_buffer_bo(buf);

	return buf->resizing ? bo->nr_runs_before : bo->nr_runs;
}

/* Return the offset at which a program maps the granule of a buffer by mmap(). */
static inline u64 accmem_buffer_mmap_offset(const struct accmem_buffer *buf)
{
	const struct accmem_carveouts *carveouts =
		accmem_buffer_carveout(buf)->carveouts;

	return round_down(buf->address - carveouts->address_base,
			  ACCMEM_GRANULE);
}

#endif /* ACCMEM_VM_BUFFER_H */
