// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers: names over a memory of their own, or over a piece of a slab page.
 *
 * A buffer that has been made is at its device address, and is found once it
 * has been published. Taking it away again is removing it, under the context's
 * lock, and destroying it without.
 *
 * Locks: the context's lock.
 */
#include <linux/kernel.h>
#include <linux/slab.h>

#include "context.h"

/* a buffer with a memory of its own */
struct whole {
	struct accmem_place place;
	struct accmem_buffer buf;
	struct accmem_buffer *only;
};

static struct whole *to_whole(struct accmem_buffer *buf)
{
	return container_of(buf, struct whole, buf);
}

static struct accmem_memory *memory_for(struct accmem_context *ctx,
					const struct accmem_alloc *req,
					const struct accmem_layout *layout)
{
	const struct accmem_memory_spec spec = {
		.size = layout->footprint,
		.alignment = layout->alignment,
		.page_size = layout->page_size,
		.huge = layout->huge,
		.flags = req->flags,
		.cache_mode = req->cache_mode,
		.buffers = 1,
	};

	return accmem_memory_create(ctx->account, accmem_context_carveout(ctx),
				    &spec);
}

/* at its device address from here on */
static int whole_insert(struct accmem_context *ctx, struct whole *whole)
{
	int err;

	lockdep_assert_held(&ctx->lock);
	err = accmem_place_insert(ctx, &whole->place,
				  whole->buf.layout.alignment);
	whole->buf.address = whole->place.start;
	return err;
}

static struct accmem_buffer *whole_create(struct accmem_context *ctx,
					  const struct accmem_alloc *req,
					  const struct accmem_layout *layout)
{
	struct accmem_memory *mem;
	struct whole *whole;
	int err;

	whole = kzalloc(sizeof(*whole), GFP_KERNEL_ACCOUNT);
	if (!whole)
		return ERR_PTR(-ENOMEM);
	mem = memory_for(ctx, req, layout);
	if (IS_ERR(mem)) {
		kfree(whole);
		return ERR_CAST(mem);
	}
	whole->place.size = layout->footprint;
	whole->place.memory = mem;
	whole->place.buffers = &whole->only;
	INIT_LIST_HEAD(&whole->buf.link);
	whole->buf.place = &whole->place;
	whole->buf.length = req->length;
	whole->buf.layout = *layout;
	whole->buf.flags = req->flags;
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

/**
 * accmem_buffer_create() - make a buffer, which has not been published
 * @ctx: the context
 * @req: the request
 * @layout: what it became
 *
 * Return: the buffer; an error of accmem_memory_create(), or -ENOMEM when no
 * device address is left for it.
 */
struct accmem_buffer *
accmem_buffer_create(struct accmem_context *ctx, const struct accmem_alloc *req,
		     const struct accmem_layout *layout)
{
	if (layout->small)
		return accmem_slab_create(ctx, req, layout);
	return whole_create(ctx, req, layout);
}

/**
 * accmem_buffer_remove() - take the address of a buffer away
 * @ctx: the context, whose lock is held
 * @buf: the buffer, which is not published
 */
void accmem_buffer_remove(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	if (!buf->layout.small)
		accmem_place_erase(ctx, buf->place);
}

/**
 * accmem_buffer_destroy() - give a buffer, and what it has, back
 * @ctx: the context
 * @buf: the buffer, which was removed. Sleeps, allocates nothing.
 */
void accmem_buffer_destroy(struct accmem_context *ctx,
			   struct accmem_buffer *buf)
{
	if (buf->layout.small) {
		accmem_slab_destroy(ctx, buf);
		return;
	}
	accmem_memory_detach(buf->place->memory);
	kfree(to_whole(buf));
}
