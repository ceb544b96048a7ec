// SPDX-License-Identifier: GPL-2.0
/*
 * Names: which buffer is at a device address.
 *
 * A place (places.c) knows the buffers in it: one, or those of a slab page. A buffer has
 * its address from the moment its place is in the tree, and is found from
 * accmem_name_publish() on.
 *
 * Locks: the context's lock is held by the callers.
 */
#include <linux/math64.h>

#include "internal.h"
#include "trace/trace.h"
#include "vm/lookup.h"

/* places looked at for a name in one call */
#define NAME_PROBES 64u

static u64 names_unit_at(const struct accmem_place *place, u64 address)
{
	return div64_u64(address - place->start, place->unit);
}

static unsigned int names_unit_of(const struct accmem_buffer *buf)
{
	return names_unit_at(buf->place, buf->address);
}

/**
 * accmem_name_publish() - let a buffer be found
 * @ctx: the context, whose lock is held
 * @buf: the buffer; from here on other threads may free it
 */
void accmem_name_publish(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	struct accmem_place *place = buf->place;
	unsigned int unit = names_unit_of(buf);

	lockdep_assert_held(&ctx->lock);
	place->buffers[unit] = buf;
	place->names |= BIT_ULL(unit);
	WRITE_ONCE(ctx->nr_names, ctx->nr_names + 1);
	accmem_holding_of(ctx, place->memory->cv)->named_bytes +=
		buf->layout.footprint;
	trace_accmem_alloc(ctx, buf);
}

/**
 * accmem_name_unpublish() - undo accmem_name_publish()
 * @ctx: the context, whose lock is held
 * @buf: the buffer, which is the caller's from here on
 */
void accmem_name_unpublish(struct accmem_context *ctx,
			   struct accmem_buffer *buf)
{
	struct accmem_place *place = buf->place;
	unsigned int unit = names_unit_of(buf);

	lockdep_assert_held(&ctx->lock);
	trace_accmem_free(ctx, buf);
	place->names &= ~BIT_ULL(unit);
	place->buffers[unit] = NULL;
	WRITE_ONCE(ctx->nr_names, ctx->nr_names - 1);
	accmem_holding_of(ctx, place->memory->cv)->named_bytes -=
		buf->layout.footprint;
}

/* the buffer of a place that contains an address, or NULL */
static struct accmem_buffer *names_find_in(struct accmem_place *place,
					   u64 address)
{
	struct accmem_buffer *buf;
	u64 unit, below;

	unit = names_unit_at(place, address);
	below = place->names & GENMASK_ULL(unit, 0);
	if (!below)
		return NULL;
	buf = place->buffers[fls64(below) - 1];
	return address - buf->address < buf->layout.footprint ? buf : NULL;
}

/**
 * accmem_name_find() - the buffer that contains an address
 * @ctx: the context, whose lock is held
 * @address: a device address
 *
 * Return: the buffer, which has been published, or NULL.
 */
struct accmem_buffer *accmem_name_find(struct accmem_context *ctx, u64 address)
{
	struct accmem_place *place = accmem_place_find(ctx, address);

	return place ? names_find_in(place, address) : NULL;
}

/* the first buffer of @place that begins at or after @address, or NULL */
static struct accmem_buffer *names_next_in(struct accmem_place *place,
					   u64 address)
{
	u64 unit = 0, above;

	if (address > place->start)
		unit = names_unit_at(place, address + place->unit - 1);
	if (unit >= BITS_PER_TYPE(u64))
		return NULL;
	above = place->names & (~0ull << unit);
	return above ? place->buffers[__ffs64(above)] : NULL;
}

/**
 * accmem_name_next() - walk through the names of a context
 * @ctx: the context, whose lock is held
 * @address: where to begin; where to go on, on return, or ACCMEM_NAMES_END
 *
 * Return: the first buffer that has been published and begins at or after
 * @address; NULL where there is none, or none near.
 */
struct accmem_buffer *accmem_name_next(struct accmem_context *ctx, u64 *address)
{
	struct accmem_place *place = accmem_place_above(ctx, *address);
	struct accmem_buffer *buf;
	unsigned int nr = 0;

	for (; place && nr++ < NAME_PROBES; place = accmem_place_next(place)) {
		buf = names_next_in(place, *address);
		if (buf) {
			*address = buf->address + buf->layout.footprint;
			return buf;
		}
	}
	*address = place ? place->start : ACCMEM_NAMES_END;
	return NULL;
}
