// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers: names over a memory of their own, or over a piece of a slab page, which
 * others share.
 *
 * A buffer that has been made is at its device address, and is found once it
 * has been published. Taking it away again is removing it, under the context's
 * lock, and destroying it without.
 *
 * Locks: the context's lock.
 */
#include <linux/kernel.h>

#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/shared.h"
#include "vm/buffer.h"
#include "vm/lookup.h"
#include "vm/va.h"

/* a buffer with a memory of its own: its accmem_bo.private */
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
	dedicated->va.unit = size;
	dedicated->va.bo = bo;
	dedicated->va.buffers = &dedicated->only;
	dedicated->buf.va = &dedicated->va;
	return dedicated;
}

/*
 * An entry of a page table is for 2 MiB of addresses from a multiple of that on.
 * At any other address no page of so much fits one.
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
		.cache_mode = req->cache_mode,
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

/* where the request says */
static int dedicated_insert_fixed(struct accmem_context *ctx,
				  struct accmem_va *va)
{
	lockdep_assert_held(&ctx->lock);
	if (accmem_va_check(ctx, va->start, va->size))
		return -EEXIST;
	accmem_va_insert_at(ctx, va);
	return 0;
}

/* at its device address from here on, unless that fails */
static int dedicated_insert(struct accmem_context *ctx,
			    struct dedicated *dedicated)
{
	int err;

	lockdep_assert_held(&ctx->lock);
	if (dedicated->buf.flags & ACCMEM_ALLOC_FIXED)
		err = dedicated_insert_fixed(ctx, &dedicated->va);
	else
		err = accmem_va_insert(ctx, &dedicated->va,
				       dedicated->buf.layout.alignment);
	dedicated->buf.address = dedicated->va.start;
	if (!err && dedicated->va.bo->shared)
		accmem_shared_place(dedicated->va.bo);
	return err;
}

/* a memory's name, which takes the memory over, also where there is no address */
static struct accmem_buffer *dedicated_name(struct accmem_context *ctx,
					    struct accmem_bo *bo,
					    const struct accmem_alloc *req,
					    const struct accmem_layout *layout)
{
	u64 size = accmem_carveout_addresses(bo->cv, layout->footprint,
					     req->reserve);
	struct dedicated *dedicated = dedicated_init(bo, size);
	int err;

	dedicated->va.start = req->address;
	dedicated->buf.reserve = req->reserve;
	dedicated->buf.length = req->length;
	dedicated->buf.layout = *layout;
	dedicated->buf.flags = accmem_alloc_flags(req);
	dedicated->buf.page_policy = req->page_policy;
	spin_lock(&ctx->lock);
	err = dedicated_insert(ctx, dedicated);
	spin_unlock(&ctx->lock);
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

	return IS_ERR(bo) ? ERR_CAST(bo) : dedicated_name(ctx, bo, req, layout);
}

/**
 * accmem_buffer_create() - make a buffer, which has not been published
 * @ctx: the context
 * @cv: the carveout
 * @req: the request
 * @layout: what it became
 *
 * Return: the buffer; an error of accmem_bo_create() or accmem_shared_create(),
 * or -EADDRNOTAVAIL when no device address is left for it; -EEXIST when the one asked
 * for is not.
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
 * accmem_buffer_prepare() - make what becomes a buffer with memory of another
 * @ctx: the context
 *
 * Return: a memory that has nothing yet, for accmem_buffer_adopt() or
 * accmem_bo_destroy_empty(); NULL.
 */
struct accmem_bo *accmem_buffer_prepare(struct accmem_context *ctx)
{
	return accmem_bo_create_empty(ctx->account, NULL,
				      sizeof(struct dedicated));
}

/**
 * accmem_buffer_adopt() - make a buffer of memory that was handed over
 * @ctx: the context
 * @bo: of accmem_buffer_prepare(), after accmem_runs_hand_off(); is taken over
 * @req: the request
 * @layout: what it became
 * @dirty: as for accmem_bo_adopt(). Sleeps.
 *
 * Return: the buffer; an error of accmem_bo_adopt(), or -EADDRNOTAVAIL when no
 * device address is left for it.
 */
struct accmem_buffer *accmem_buffer_adopt(struct accmem_context *ctx,
					  struct accmem_bo *bo,
					  const struct accmem_alloc *req,
					  const struct accmem_layout *layout,
					  bool dirty)
{
	int err = accmem_bo_adopt(bo, layout->huge, dirty);

	return err ? ERR_PTR(err) : dedicated_name(ctx, bo, req, layout);
}

/**
 * accmem_buffer_remove() - take the address of a buffer away
 * @ctx: the context, whose lock is held
 * @buf: the buffer, which is not published
 */
void accmem_buffer_remove(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	/* that of a small one is a part of its page's, which goes with the last */
	if (!buf->layout.small)
		accmem_va_erase(ctx, buf->va);
}

/**
 * accmem_buffer_release_pages() - give some pages of a buffer back, before it goes
 * @buf: the buffer, which nobody finds any more. Sleeps.
 *
 * Return: as accmem_bo_release_pages(); false where others are in its memory, too.
 */
bool accmem_buffer_release_pages(struct accmem_buffer *buf)
{
	struct accmem_bo *bo = buf->va->bo;

	/* who has a reference may look at it; without a name nobody gets one */
	return !buf->layout.small && kref_read(&bo->refs) == 1 &&
	       accmem_bo_release_pages(bo, true);
}

/**
 * accmem_buffer_destroy() - give a buffer, and what it has, back
 * @ctx: the context
 * @buf: the buffer, which was removed. Sleeps, allocates nothing.
 */
void accmem_buffer_destroy(struct accmem_context *ctx,
			   struct accmem_buffer *buf)
{
	if (buf->layout.small)
		accmem_slab_destroy(ctx, buf);
	else
		accmem_bo_detach(buf->va->bo);
}

/**
 * accmem_buffer_set_pending() - the free of a buffer begins to wait, or is undone
 * @ctx: the context, whose lock is held
 * @buf: the buffer
 * @pending: which of both
 */
void accmem_buffer_set_pending(struct accmem_context *ctx,
			       struct accmem_buffer *buf, bool pending)
{
	if (buf->layout.small)
		accmem_slab_set_pending(ctx, buf, pending);
	else
		accmem_bo_set_pending(accmem_buffer_bo(buf), pending);
}

/**
 * accmem_buffer_reach() - the memory at an address, for who reads and writes it
 * @ctx: the context, whose lock is held
 * @address: any address in a buffer, or in a granule of small ones
 *
 * From here on the memory counts as mapped: what is in it is not to be found by
 * the next owner.
 *
 * Return: the memory, with a reference; -ENXIO where there is none.
 */
struct accmem_bo *accmem_buffer_reach(struct accmem_context *ctx, u64 address)
{
	struct accmem_va *va = accmem_va_find(ctx, address);
	struct accmem_bo *bo;

	lockdep_assert_held(&ctx->lock);
	if (!va || !va->names)
		return ERR_PTR(-ENXIO);
	bo = va->bo;
	accmem_bo_get(bo);
	WRITE_ONCE(bo->mapped, true);
	return bo;
}
