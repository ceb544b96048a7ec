// SPDX-License-Identifier: GPL-2.0
/*
 * Names: which buffer is at a device address.
 *
 * A place (places.c) knows the buffers in it: one, or those of a slab page. A buffer has
 * its address from the moment its place is in the tree, and is found from
 * accmem_buffer_publish() on.
 *
 * Locks: the context's lock is held by the callers.
 */
#include <linux/math64.h>

#include "internal.h"
#include "trace/trace.h"
#include "vm/lookup.h"

/* places looked at for a name in one call */
#define NAME_PROBES 64u

static u64 lookup_unit_at(const struct accmem_va *va, u64 address)
{
	return div64_u64(address - va->start, va->unit);
}

static unsigned int lookup_unit_of(const struct accmem_buffer *buf)
{
	return lookup_unit_at(buf->va, buf->address);
}

/**
 * accmem_buffer_publish() - let a buffer be found
 * @ctx: the context, whose lock is held
 * @buf: the buffer; from here on other threads may free it
 */
void accmem_buffer_publish(struct accmem_context *ctx,
			   struct accmem_buffer *buf)
{
	struct accmem_va *va = buf->va;
	unsigned int unit = lookup_unit_of(buf);

	lockdep_assert_held(&ctx->lock);
	va->buffers[unit] = buf;
	va->names |= BIT_ULL(unit);
	WRITE_ONCE(ctx->nr_buffers, ctx->nr_buffers + 1);
	accmem_ctx_carveout_of(ctx, va->bo->cv)->published_bytes +=
		buf->layout.footprint;
	trace_accmem_alloc(ctx, buf);
}

/**
 * accmem_buffer_unpublish() - undo accmem_buffer_publish()
 * @ctx: the context, whose lock is held
 * @buf: the buffer, which is the caller's from here on
 */
void accmem_buffer_unpublish(struct accmem_context *ctx,
			     struct accmem_buffer *buf)
{
	struct accmem_va *va = buf->va;
	unsigned int unit = lookup_unit_of(buf);

	lockdep_assert_held(&ctx->lock);
	trace_accmem_free(ctx, buf);
	va->names &= ~BIT_ULL(unit);
	va->buffers[unit] = NULL;
	WRITE_ONCE(ctx->nr_buffers, ctx->nr_buffers - 1);
	accmem_ctx_carveout_of(ctx, va->bo->cv)->published_bytes -=
		buf->layout.footprint;
}

/* the buffer of a place that contains an address, or NULL */
static struct accmem_buffer *lookup_find_in(struct accmem_va *va, u64 address)
{
	struct accmem_buffer *buf;
	u64 unit, below;

	unit = lookup_unit_at(va, address);
	below = va->names & GENMASK_ULL(unit, 0);
	if (!below)
		return NULL;
	buf = va->buffers[fls64(below) - 1];
	return address - buf->address < buf->layout.footprint ? buf : NULL;
}

/**
 * accmem_buffer_find() - the buffer that contains an address
 * @ctx: the context, whose lock is held
 * @address: a device address
 *
 * Return: the buffer, which has been published, or NULL.
 */
struct accmem_buffer *accmem_buffer_find(struct accmem_context *ctx,
					 u64 address)
{
	struct accmem_va *va = accmem_va_find(ctx, address);

	return va ? lookup_find_in(va, address) : NULL;
}

/* the first buffer of @va that begins at or after @address, or NULL */
static struct accmem_buffer *lookup_next_in(struct accmem_va *va, u64 address)
{
	u64 unit = 0, above;

	if (address > va->start)
		unit = lookup_unit_at(va, address + va->unit - 1);
	if (unit >= BITS_PER_TYPE(u64))
		return NULL;
	above = va->names & (~0ull << unit);
	return above ? va->buffers[__ffs64(above)] : NULL;
}

/**
 * accmem_buffer_next() - walk through the names of a context
 * @ctx: the context, whose lock is held
 * @address: where to begin; where to go on, on return, or ACCMEM_ADDRESS_NONE
 *
 * Return: the first buffer that has been published and begins at or after
 * @address; NULL where there is none, or none near.
 */
struct accmem_buffer *accmem_buffer_next(struct accmem_context *ctx,
					 u64 *address)
{
	struct accmem_va *va = accmem_va_above(ctx, *address);
	struct accmem_buffer *buf;
	unsigned int nr = 0;

	for (; va && nr++ < NAME_PROBES; va = accmem_va_next(va)) {
		buf = lookup_next_in(va, *address);
		if (buf) {
			*address = buf->address + buf->layout.footprint;
			return buf;
		}
	}
	*address = va ? va->start : ACCMEM_ADDRESS_NONE;
	return NULL;
}
