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
#include "memory/memory.h"
#include "memory/shared.h"
#include "vm/buffer.h"
#include "vm/lookup.h"
#include "vm/va.h"

/* a buffer with a memory of its own: its accmem_memory.private */
struct whole {
	struct accmem_place place;
	struct accmem_buffer buf;
	struct accmem_buffer *only;
};

static struct whole *whole_of(struct accmem_memory *mem)
{
	return (struct whole *)mem->private;
}

static struct whole *whole_init(struct accmem_memory *mem, u64 size)
{
	struct whole *whole = whole_of(mem);

	whole->place.size = size;
	whole->place.unit = size;
	whole->place.memory = mem;
	whole->place.buffers = &whole->only;
	whole->buf.place = &whole->place;
	return whole;
}

/*
 * An entry of a page table is for 2 MiB of addresses from a multiple of that on.
 * At any other address no page of so much fits one.
 */
static u32 whole_huge(const struct accmem_alloc *req,
		      const struct accmem_layout *layout)
{
	if (req->flags & ACCMEM_ALLOC_FIXED &&
	    !IS_ALIGNED(req->address, ACCMEM_FOLIO))
		return ACCMEM_HUGE_NEVER;
	return layout->huge;
}

static struct accmem_memory *memory_for(struct accmem_context *ctx,
					struct accmem_carveout *cv,
					const struct accmem_alloc *req,
					const struct accmem_layout *layout)
{
	const struct accmem_memory_spec spec = {
		.size = layout->footprint,
		.alignment = layout->alignment,
		.page_size = layout->page_size,
		.huge = whole_huge(req, layout),
		.start = req->address - cv->address_base,
		.room = min(req->reserve, cv->capacity) & ~(ACCMEM_GRANULE - 1),
		.flags = accmem_carveout_flags(cv, req->flags),
		.cache_mode = req->cache_mode,
		.buffers = 1,
		.private_size = sizeof(struct whole),
	};

	return accmem_memory_create(ctx->account, cv, &spec);
}

static struct accmem_memory *memory_for_kind(struct accmem_context *ctx,
					     struct accmem_carveout *cv,
					     const struct accmem_alloc *req,
					     const struct accmem_layout *layout)
{
	struct accmem_memory *mem = memory_for(ctx, cv, req, layout);
	int err;

	if (IS_ERR(mem) || req->kind != ACCMEM_KIND_SHARED)
		return mem;
	err = accmem_shared_create(mem);
	if (!err)
		return mem;
	accmem_memory_undo(mem);
	return ERR_PTR(err);
}

/* where the request says */
static int whole_insert_fixed(struct accmem_context *ctx,
			      struct accmem_place *place)
{
	lockdep_assert_held(&ctx->lock);
	if (accmem_place_check(ctx, place->start, place->size))
		return -EEXIST;
	accmem_place_insert_at(ctx, place);
	return 0;
}

/* at its device address from here on, unless that fails */
static int whole_insert(struct accmem_context *ctx, struct whole *whole)
{
	int err;

	lockdep_assert_held(&ctx->lock);
	if (whole->buf.flags & ACCMEM_ALLOC_FIXED)
		err = whole_insert_fixed(ctx, &whole->place);
	else
		err = accmem_place_insert(ctx, &whole->place,
					  whole->buf.layout.alignment);
	whole->buf.address = whole->place.start;
	if (!err && whole->place.memory->shared)
		accmem_shared_place(whole->place.memory);
	return err;
}

/* a memory's name, which takes the memory over, also where there is no address */
static struct accmem_buffer *whole_name(struct accmem_context *ctx,
					struct accmem_memory *mem,
					const struct accmem_alloc *req,
					const struct accmem_layout *layout)
{
	u64 size = accmem_carveout_addresses(mem->cv, layout->footprint,
					     req->reserve);
	struct whole *whole = whole_init(mem, size);
	int err;

	whole->place.start = req->address;
	whole->buf.reserve = req->reserve;
	whole->buf.length = req->length;
	whole->buf.layout = *layout;
	whole->buf.flags = accmem_alloc_flags(req);
	whole->buf.page_policy = req->page_policy;
	spin_lock(&ctx->lock);
	err = whole_insert(ctx, whole);
	spin_unlock(&ctx->lock);
	if (err) {
		accmem_buffer_destroy(ctx, &whole->buf);
		return ERR_PTR(err);
	}
	return &whole->buf;
}

static struct accmem_buffer *whole_create(struct accmem_context *ctx,
					  struct accmem_carveout *cv,
					  const struct accmem_alloc *req,
					  const struct accmem_layout *layout)
{
	struct accmem_memory *mem = memory_for_kind(ctx, cv, req, layout);

	return IS_ERR(mem) ? ERR_CAST(mem) : whole_name(ctx, mem, req, layout);
}

/**
 * accmem_buffer_create() - make a buffer, which has not been published
 * @ctx: the context
 * @cv: the carveout
 * @req: the request
 * @layout: what it became
 *
 * Return: the buffer; an error of accmem_memory_create() or accmem_shared_create(),
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
	return whole_create(ctx, cv, req, layout);
}

/**
 * accmem_buffer_prepare() - make what becomes a buffer with memory of another
 * @ctx: the context
 *
 * Return: a memory that has nothing yet, for accmem_buffer_accept() or
 * accmem_memory_destroy_empty(); NULL.
 */
struct accmem_memory *accmem_buffer_prepare(struct accmem_context *ctx)
{
	return accmem_memory_create_empty(ctx->account, NULL,
					  sizeof(struct whole));
}

/**
 * accmem_buffer_accept() - make a buffer of memory that was handed over
 * @ctx: the context
 * @mem: of accmem_buffer_prepare(), after accmem_runs_hand_over(); is taken over
 * @req: the request
 * @layout: what it became
 * @dirty: as for accmem_memory_accept(). Sleeps.
 *
 * Return: the buffer; an error of accmem_memory_accept(), or -EADDRNOTAVAIL when no
 * device address is left for it.
 */
struct accmem_buffer *accmem_buffer_accept(struct accmem_context *ctx,
					   struct accmem_memory *mem,
					   const struct accmem_alloc *req,
					   const struct accmem_layout *layout,
					   bool dirty)
{
	int err = accmem_memory_accept(mem, layout->huge, dirty);

	return err ? ERR_PTR(err) : whole_name(ctx, mem, req, layout);
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
		accmem_place_erase(ctx, buf->place);
}

/**
 * accmem_buffer_shed() - give some pages of a buffer back, before it goes
 * @buf: the buffer, which nobody finds any more. Sleeps.
 *
 * Return: as accmem_memory_shed(); false where others are in its memory, too.
 */
bool accmem_buffer_shed(struct accmem_buffer *buf)
{
	struct accmem_memory *mem = buf->place->memory;

	/* who has a reference may look at it; without a name nobody gets one */
	return !buf->layout.small && kref_read(&mem->refs) == 1 &&
	       accmem_memory_shed(mem, true);
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
		accmem_memory_detach(buf->place->memory);
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
		accmem_memory_set_pending(accmem_buffer_memory(buf), pending);
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
struct accmem_memory *accmem_buffer_reach(struct accmem_context *ctx,
					  u64 address)
{
	struct accmem_place *place = accmem_place_find(ctx, address);
	struct accmem_memory *mem;

	lockdep_assert_held(&ctx->lock);
	if (!place || !place->names)
		return ERR_PTR(-ENXIO);
	mem = place->memory;
	accmem_memory_get(mem);
	WRITE_ONCE(mem->mapped, true);
	return mem;
}
