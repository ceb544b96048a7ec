// SPDX-License-Identifier: GPL-2.0
/*
 * Lookup: finds the published buffer at a device address.
 *
 * Each va (va.c) has a table of the published buffers in its address range: one slot
 * for a dedicated buffer, one slot for each 64 bytes of a slab page. A bitmap (names)
 * says which slots are in use. A lookup first finds the va in the tree, then the slot.
 *
 * A buffer has a device address as soon as its va is in the tree. FREE, QUERY and
 * mmap() find the buffer from accmem_buffer_publish() until accmem_buffer_unpublish().
 *
 * Locking: the callers hold ctx->lock, which protects the tree, the tables and the
 * bitmaps.
 */
#include <linux/math64.h>

#include "internal.h"
#include "trace/trace.h"
#include "vm/lookup.h"

/* most address ranges that one call of accmem_buffer_next() searches */
#define LOOKUP_PROBES 64u

static u64 lookup_index_at(const struct accmem_va *va, u64 address)
{
	return div64_u64(address - va->start, va->stride);
}

static unsigned int lookup_index_of(const struct accmem_buffer *buf)
{
	return lookup_index_at(buf->va, buf->address);
}

/**
 * accmem_buffer_publish() - make a buffer visible to lookups
 * @ctx: the context
 * @buf: the buffer; other threads can free it as soon as the caller releases the lock
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 */
void accmem_buffer_publish(struct accmem_context *ctx,
			   struct accmem_buffer *buf)
{
	struct accmem_va *va = buf->va;
	unsigned int index = lookup_index_of(buf);

	lockdep_assert_held(&ctx->lock);
	va->buffers[index] = buf;
	va->published |= BIT_ULL(index);
	WRITE_ONCE(ctx->nr_buffers, ctx->nr_buffers + 1);
	accmem_ctx_carveout_of(ctx, va->bo->cv)->published_bytes +=
		buf->layout.footprint;
	trace_accmem_alloc(ctx, buf);
}

/**
 * accmem_buffer_unpublish() - hide a buffer from lookups
 * @ctx: the context
 * @buf: the published buffer; belongs to the caller from here on
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 */
void accmem_buffer_unpublish(struct accmem_context *ctx,
			     struct accmem_buffer *buf)
{
	struct accmem_va *va = buf->va;
	unsigned int index = lookup_index_of(buf);

	lockdep_assert_held(&ctx->lock);
	trace_accmem_free(ctx, buf);
	va->published &= ~BIT_ULL(index);
	va->buffers[index] = NULL;
	WRITE_ONCE(ctx->nr_buffers, ctx->nr_buffers - 1);
	accmem_ctx_carveout_of(ctx, va->bo->cv)->published_bytes -=
		buf->layout.footprint;
}

/**
 * accmem_va_buffer() - look up the published buffer of a va that contains an address
 * @va: the va
 * @address: a device address in @va
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: the buffer, or NULL.
 */
struct accmem_buffer *accmem_va_buffer(const struct accmem_va *va, u64 address)
{
	struct accmem_buffer *buf;
	u64 index, below;

	index = lookup_index_at(va, address);
	below = va->published & GENMASK_ULL(index, 0);
	if (!below)
		return NULL;
	buf = va->buffers[fls64(below) - 1];
	return address - buf->address < buf->layout.footprint ? buf : NULL;
}

/**
 * accmem_buffer_find() - look up the published buffer that contains an address
 * @ctx: the context
 * @address: a device address
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: the buffer, or NULL.
 */
struct accmem_buffer *accmem_buffer_find(struct accmem_context *ctx,
					 u64 address)
{
	struct accmem_va *va = accmem_va_find(ctx, address);

	return va ? accmem_va_buffer(va, address) : NULL;
}

/* Return the first published buffer in @va with an address >= @address, or NULL. */
static struct accmem_buffer *lookup_next_in(struct accmem_va *va, u64 address)
{
	u64 index = 0, above;

	if (address > va->start)
		index = lookup_index_at(va, address + va->stride - 1);
	if (index >= BITS_PER_TYPE(u64))
		return NULL;
	above = va->published & (~0ull << index);
	return above ? va->buffers[__ffs64(above)] : NULL;
}

/**
 * accmem_buffer_next() - iterate over the published buffers of a context
 * @ctx: the context
 * @address: in: device address at which the search begins; out: address at which the
 *	next call continues, or ACCMEM_ADDRESS_NONE at the end
 *
 * One call searches a bounded number of address ranges, so that the caller can release
 * the lock between two calls.
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: the first published buffer that begins at @address or above; NULL if the
 * searched address ranges contain none.
 */
struct accmem_buffer *accmem_buffer_next(struct accmem_context *ctx,
					 u64 *address)
{
	struct accmem_va *va = accmem_va_above(ctx, *address);
	struct accmem_buffer *buf;
	unsigned int nr = 0;

	for (; va && nr++ < LOOKUP_PROBES; va = accmem_va_next(va)) {
		buf = lookup_next_in(va, *address);
		if (buf) {
			*address = buf->address + buf->layout.footprint;
			return buf;
		}
	}
	*address = va ? va->start : ACCMEM_ADDRESS_NONE;
	return NULL;
}
