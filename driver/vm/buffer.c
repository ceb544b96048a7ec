// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers: allocations as a program sees them, from ALLOC to FREE.
 *
 * A dedicated buffer has a buffer object (bo) and a range of device addresses (va) of
 * its own. A small buffer is a part of a slab page. The small buffers of a slab page
 * share the bo and the va of the page (slab.c).
 *
 * States: created -> published -> unpublished -> removed -> destroyed. A created buffer
 * has its device address; lookups find published buffers only (lookup.c).
 * A caller unpublishes and removes a buffer under ctx->lock. The caller destroys the
 * buffer without the lock, because destruction can sleep.
 *
 * Locking: ctx->lock protects the address ranges and the published buffers. A buffer
 * that is not published belongs to the call that created or unpublished the buffer.
 */
#include <linux/kernel.h>

#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/shared.h"
#include "vm/buffer.h"
#include "vm/lookup.h"
#include "vm/va.h"

/*
 * struct dedicated - a buffer with a bo of its own; stored in accmem_bo.private
 * @va: the device addresses of the bo
 * @buf: the buffer
 * @only: the table of published buffers of @va, with one slot
 */
struct dedicated {
	struct accmem_va va;
	struct accmem_buffer buf;
	struct accmem_buffer *only;
};

static struct dedicated *dedicated_of(struct accmem_bo *bo)
{
	return (struct dedicated *)bo->private;
}

static struct dedicated *dedicated_init(struct accmem_bo *bo, u64 size)
{
	struct dedicated *dedicated = dedicated_of(bo);

	dedicated->va.size = size;
	dedicated->va.stride = size;
	dedicated->va.bo = bo;
	dedicated->va.buffers = &dedicated->only;
	dedicated->buf.va = &dedicated->va;
	return dedicated;
}

/*
 * A huge page-table entry maps 2 MiB and begins at a multiple of 2 MiB. A FIXED
 * buffer at any other address cannot be mapped by huge entries, so its bo gets no
 * huge pages.
 */
static u32 dedicated_huge(const struct accmem_alloc *req,
			  const struct accmem_layout *layout)
{
	if (req->flags & ACCMEM_ALLOC_FIXED &&
	    !IS_ALIGNED(req->address, ACCMEM_FOLIO))
		return ACCMEM_HUGE_NEVER;
	return layout->huge;
}

static struct accmem_bo *bo_for(struct accmem_context *ctx,
				struct accmem_carveout *cv,
				const struct accmem_alloc *req,
				const struct accmem_layout *layout)
{
	const struct accmem_bo_spec spec = {
		.size = layout->footprint,
		.alignment = layout->alignment,
		.page_size = layout->page_size,
		.huge = dedicated_huge(req, layout),
		.start = req->address - cv->address_base,
		.room = min(req->reserve, cv->capacity) & ~(ACCMEM_GRANULE - 1),
		.flags = accmem_carveout_flags(cv, req->flags),
		.cache_mode = accmem_carveout_mode(cv, req->cache_mode),
		.buffers = 1,
		.private_size = sizeof(struct dedicated),
	};

	return accmem_bo_create(ctx->account, cv, &spec);
}

static struct accmem_bo *bo_for_kind(struct accmem_context *ctx,
				     struct accmem_carveout *cv,
				     const struct accmem_alloc *req,
				     const struct accmem_layout *layout)
{
	struct accmem_bo *bo = bo_for(ctx, cv, req, layout);
	int err;

	if (IS_ERR(bo) || req->kind != ACCMEM_KIND_SHARED)
		return bo;
	err = accmem_shared_create(bo);
	if (!err)
		return bo;
	accmem_bo_abort(bo);
	return ERR_PTR(err);
}

/* Insert @va at the device address that the caller of ALLOC requested. */
static int dedicated_insert_fixed(struct accmem_context *ctx,
				  struct accmem_va *va)
{
	lockdep_assert_held(&ctx->lock);
	if (accmem_va_check(ctx, va->start, va->size))
		return -EEXIST;
	return accmem_va_insert_at(ctx, va);
}

/* Give a dedicated buffer its device address. Return -EAGAIN as accmem_va_insert(). */
static int dedicated_insert(struct accmem_context *ctx,
			    struct dedicated *dedicated, u64 *from)
{
	int err;

	lockdep_assert_held(&ctx->lock);
	if (dedicated->buf.flags & ACCMEM_ALLOC_FIXED)
		err = dedicated_insert_fixed(ctx, &dedicated->va);
	else
		err = accmem_va_insert(ctx, &dedicated->va,
				       dedicated->buf.layout.alignment, from);
	dedicated->buf.address = dedicated->va.start;
	if (err)
		return err;
	accmem_va_place_bo(ctx, &dedicated->va);
	if (dedicated->va.bo->shared)
		accmem_shared_place(dedicated->va.bo);
	return 0;
}

/*
 * Make the buffer of a bo and give it a device address. The buffer owns the caller's
 * reference to the bo. If no address is free, the buffer is destroyed and the reference
 * is dropped.
 */
static struct accmem_buffer *dedicated_make(struct accmem_context *ctx,
					    struct accmem_bo *bo,
					    const struct accmem_alloc *req,
					    const struct accmem_layout *layout)
{
	u64 size = accmem_carveout_addresses(bo->cv, layout->footprint,
					     req->reserve);
	struct dedicated *dedicated = dedicated_init(bo, size);
	u64 from = 0;
	int err;

	dedicated->va.start = req->address;
	dedicated->buf.reserve = req->reserve;
	dedicated->buf.length = req->length;
	dedicated->buf.alignment = req->alignment;
	dedicated->buf.layout = *layout;
	dedicated->buf.flags = accmem_alloc_flags(req);
	dedicated->buf.page_policy = req->page_policy;
	do {
		cond_resched();
		spin_lock(&ctx->lock);
		err = dedicated_insert(ctx, dedicated, &from);
		spin_unlock(&ctx->lock);
	} while (err == -EAGAIN);
	if (err) {
		accmem_buffer_destroy(ctx, &dedicated->buf);
		return ERR_PTR(err);
	}
	return &dedicated->buf;
}

static struct accmem_buffer *
dedicated_create(struct accmem_context *ctx, struct accmem_carveout *cv,
		 const struct accmem_alloc *req,
		 const struct accmem_layout *layout)
{
	struct accmem_bo *bo = bo_for_kind(ctx, cv, req, layout);

	return IS_ERR(bo) ? ERR_CAST(bo) : dedicated_make(ctx, bo, req, layout);
}

/**
 * accmem_buffer_create() - allocate a buffer and do not publish it yet
 * @ctx: the context
 * @cv: the carveout
 * @req: the request
 * @layout: the layout of the request
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 * Return: the buffer; an error of accmem_bo_create() or accmem_shared_create();
 * -EDQUOT when a limit on buffers is reached; -EADDRNOTAVAIL when no range of device
 * addresses is large enough; -EEXIST when the address of a FIXED request is in use.
 */
struct accmem_buffer *accmem_buffer_create(struct accmem_context *ctx,
					   struct accmem_carveout *cv,
					   const struct accmem_alloc *req,
					   const struct accmem_layout *layout)
{
	if (layout->small)
		return accmem_slab_create(ctx, cv, req, layout);
	return dedicated_create(ctx, cv, req, layout);
}

/**
 * accmem_buffer_prepare() - allocate an empty bo for a handoff
 * @ctx: the context that receives memory of another bo
 *
 * Context: Process context. May sleep.
 * Return: a bo without memory, for accmem_buffer_adopt() or accmem_bo_destroy_empty();
 * NULL when the kernel is out of memory.
 */
struct accmem_bo *accmem_buffer_prepare(struct accmem_context *ctx)
{
	return accmem_bo_create_empty(ctx->account, NULL,
				      sizeof(struct dedicated));
}

/**
 * accmem_buffer_adopt() - make a buffer of a bo that received memory by a handoff
 * @ctx: the context
 * @bo: the bo of accmem_buffer_prepare(), after accmem_runs_hand_over(); the caller's
 *	reference passes to the buffer, and is dropped on an error
 * @req: the request
 * @layout: the layout of the request
 * @dirty: the memory may contain bytes of another account
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 * Return: the buffer; an error of accmem_bo_adopt(); -EADDRNOTAVAIL when no range of
 * device addresses is large enough.
 */
struct accmem_buffer *accmem_buffer_adopt(struct accmem_context *ctx,
					  struct accmem_bo *bo,
					  const struct accmem_alloc *req,
					  const struct accmem_layout *layout,
					  bool dirty)
{
	int err = accmem_bo_adopt(bo, layout->huge, dirty);

	return err ? ERR_PTR(err) : dedicated_make(ctx, bo, req, layout);
}

/**
 * accmem_buffer_remove() - free the device addresses of a buffer
 * @ctx: the context
 * @buf: the buffer, which is not published
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 */
void accmem_buffer_remove(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	/* A small buffer shares the va of its slab page, which slab.c erases. */
	if (!buf->layout.small)
		accmem_va_erase(ctx, buf->va);
}

/**
 * accmem_buffer_release_pages() - free some pages of a buffer before its destruction
 * @buf: the buffer, which is not published
 *
 * A caller can free a large buffer in several calls, and release its own lock between
 * two calls.
 *
 * Context: Process context. May sleep.
 * Return: true if there are more pages to free; false if there are none, if the buffer
 * is small or imported, or if a mapping or a call still has a reference to the bo.
 */
bool accmem_buffer_release_pages(struct accmem_buffer *buf)
{
	struct accmem_bo *bo = buf->va->bo;

	/*
	 * The buffer is not published, so no new reference can be taken: a count of
	 * 1 stays 1, and no mapping and no call can access the pages.
	 */
	return !buf->layout.small && !accmem_buffer_is_imported(buf) &&
	       kref_read(&bo->refs) == 1 && accmem_bo_release_pages(bo, true);
}

/**
 * accmem_buffer_destroy() - free a buffer and drop the reference to its bo
 * @ctx: the context
 * @buf: the buffer, which was removed
 *
 * The function allocates nothing.
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 */
void accmem_buffer_destroy(struct accmem_context *ctx,
			   struct accmem_buffer *buf)
{
	if (buf->layout.small)
		accmem_slab_destroy(ctx, buf);
	else if (accmem_buffer_is_imported(buf))
		accmem_import_destroy(ctx, buf);
	else
		accmem_bo_detach(buf->va->bo);
}

/**
 * accmem_buffer_set_pending() - mark a buffer as pending, or as in use again
 * @ctx: the context
 * @buf: the buffer
 * @pending: true when the free of the buffer starts to wait for a dependency; false
 *	when a request gets the buffer before the free is finished
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 */
void accmem_buffer_set_pending(struct accmem_context *ctx,
			       struct accmem_buffer *buf, bool pending)
{
	if (buf->layout.small)
		accmem_slab_set_pending(ctx, buf, pending);
	else if (!accmem_buffer_is_imported(buf))
		accmem_bo_set_pending(accmem_buffer_bo(buf), pending);
}

/* Return the bo of @va with a reference, and the place of @address in the bo. */
static struct accmem_bo *buffer_reach_in(struct accmem_va *va, u64 address,
					 u64 *offset, u64 *room)
{
	struct accmem_bo *bo = va->bo;

	*offset = va->offset + address - va->start;
	*room = *offset < bo->size ?
			min(bo->size - *offset, accmem_va_end(va) - address) :
			0;
	accmem_bo_get(bo);
	return bo;
}

/**
 * accmem_buffer_reach() - look up a bo by address for a caller that accesses its bytes
 * @ctx: the context
 * @address: any device address in a buffer, or in a slab page
 * @offset: out: offset of the byte at @address in the bo
 * @room: out: bytes from there to the end of what the name shows: of the bo, or of the part
 *	that was imported; 0 at addresses that are only reserved
 *
 * A caller that writes or maps calls accmem_bo_set_written() or accmem_bo_set_mapped()
 * before it releases the lock.
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: the bo, with a reference; -ENXIO when no published buffer is in the va at
 * @address.
 */
struct accmem_bo *accmem_buffer_reach(struct accmem_context *ctx, u64 address,
				      u64 *offset, u64 *room)
{
	struct accmem_va *va = accmem_va_find(ctx, address);

	lockdep_assert_held(&ctx->lock);
	if (!va || !va->published)
		return ERR_PTR(-ENXIO);
	return buffer_reach_in(va, address, offset, room);
}

/**
 * accmem_buffer_reach_to_pin() - look up a bo by address, unless REALLOC may move its memory
 * @ctx: the context
 * @address: any device address in a buffer, or in a slab page
 * @offset: out: as for accmem_buffer_reach()
 * @room: out: as for accmem_buffer_reach()
 *
 * A REALLOC that begins later sees that the bo is exported: the caller counts itself in
 * bo->nr_exports before it releases the lock.
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: the bo, with a reference; -ENOENT when no published buffer is in the va at
 * @address; -EBUSY while a REALLOC may move the memory.
 */
struct accmem_bo *accmem_buffer_reach_to_pin(struct accmem_context *ctx,
					     u64 address, u64 *offset,
					     u64 *room)
{
	struct accmem_va *va = accmem_va_find(ctx, address);
	struct accmem_buffer *buf;

	lockdep_assert_held(&ctx->lock);
	if (!va || !va->published)
		return ERR_PTR(-ENOENT);
	/* REALLOC enlarges the va of a single buffer before it enlarges the buffer */
	buf = va->stride == va->size ? va->buffers[0] :
				       accmem_va_buffer(va, address);
	if (buf && buf->resizing)
		return ERR_PTR(-EBUSY);
	return buffer_reach_in(va, address, offset, room);
}
