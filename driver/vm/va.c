// SPDX-License-Identifier: GPL-2.0
/*
 * Places: which memory is at a device address.
 *
 * A context's memory is in an rbtree by device address (struct accmem_va). Nodes are
 * embedded, so inserting allocates nothing and erasing cannot fail. With mapped
 * translation an address has to be chosen: each node knows the gap below it, among the
 * addresses of its carveout, and the largest gap of its subtree, so one that is wide
 * enough is found on one way through the tree.
 *
 * Locks: the context's lock is held by the callers.
 */
#include <linux/rbtree_augmented.h>

#include "internal.h"
#include "types/context_types.h"
#include "vm/va.h"

/* gaps looked at for one that fits only because of how it lies */
#define GAP_PROBES 64u

/* places looked at for free addresses in one call */
#define PLACE_PROBES 64u

static struct accmem_va *to_va(struct rb_node *node)
{
	return rb_entry_safe(node, struct accmem_va, node);
}

/**
 * accmem_va_next() - the place with the next higher device addresses
 * @va: the place; its context's lock is held
 *
 * Return: the place, or NULL.
 */
struct accmem_va *accmem_va_next(const struct accmem_va *va)
{
	return to_va(rb_next(&va->node));
}

/* Where the memory says what its address is, none is chosen: gaps count as 0. */
static bool va_has_gap(const struct accmem_va *va)
{
	return va->bo->cv->translation != ACCMEM_TRANSLATION_IDENTITY;
}

/* A gap lies among the addresses of one carveout. */
static bool va_are_akin(const struct accmem_va *va,
			const struct accmem_va *other)
{
	return other && other->bo->cv == va->bo->cv;
}

static u64 va_gap(const struct accmem_va *va)
{
	return va->gap;
}

RB_DECLARE_CALLBACKS_MAX(static, va_gaps, struct accmem_va, node, u64, max_gap,
			 va_gap)

/**
 * accmem_va_above() - the lowest place that ends above an address
 * @ctx: the context, whose lock is held
 * @address: a device address
 *
 * Return: the place, or NULL.
 */
struct accmem_va *accmem_va_above(struct accmem_context *ctx, u64 address)
{
	struct rb_node *node = ctx->places.rb_node;
	struct accmem_va *found = NULL;

	lockdep_assert_held(&ctx->lock);
	while (node) {
		struct accmem_va *va = to_va(node);

		if (accmem_va_end(va) > address) {
			found = va;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/**
 * accmem_va_find() - the place that contains an address
 * @ctx: the context, whose lock is held
 * @address: a device address
 *
 * Return: the place, or NULL.
 */
struct accmem_va *accmem_va_find(struct accmem_context *ctx, u64 address)
{
	struct accmem_va *va = accmem_va_above(ctx, address);

	return va && va->start <= address ? va : NULL;
}

/* has the subtree at @node a gap of @need? */
static bool va_have_gap(struct rb_node *node, u64 need)
{
	return node && to_va(node)->max_gap >= need;
}

/* the lowest place of a subtree with a gap of @need below it; there is one */
static struct accmem_va *va_gap_lowest(struct rb_node *node, u64 need)
{
	for (;;) {
		if (va_have_gap(node->rb_left, need)) {
			node = node->rb_left;
			continue;
		}
		if (to_va(node)->gap >= need)
			return to_va(node);
		node = node->rb_right;
	}
}

/* the first place after @va with a gap of @need below it, or NULL */
static struct accmem_va *va_gap_next(struct accmem_va *va, u64 need)
{
	struct rb_node *node = &va->node, *parent;

	if (va_have_gap(node->rb_right, need))
		return va_gap_lowest(node->rb_right, need);
	while ((parent = rb_parent(node))) {
		bool from_left = node == parent->rb_left;

		node = parent;
		if (!from_left)
			continue;
		if (to_va(node)->gap >= need)
			return to_va(node);
		if (va_have_gap(node->rb_right, need))
			return va_gap_lowest(node->rb_right, need);
	}
	return NULL;
}

/* the lowest aligned address in a gap of @size, or 0 */
static u64 va_room_between(u64 from, u64 to, u64 size, u64 alignment)
{
	from = ALIGN(from, alignment);
	return from <= to && to - from >= size ? from : 0;
}

/* above everything that is below @limit, or 0 */
static u64 va_room_at_end(struct accmem_context *ctx, u64 from, u64 limit,
			  u64 size, u64 alignment)
{
	struct accmem_va *above = accmem_va_above(ctx, limit);
	struct accmem_va *last;

	last = to_va(above ? rb_prev(&above->node) : rb_last(&ctx->places));
	if (last)
		from = max(from, accmem_va_end(last));
	return va_room_between(from, limit, size, alignment);
}

/* the first room between @from and @limit, in one of @probes gaps of @need, or 0 */
static u64 va_room_from(struct accmem_context *ctx, u64 from, u64 limit,
			u64 size, u64 alignment, u64 need, unsigned int probes)
{
	struct accmem_va *va = accmem_va_above(ctx, from);

	for (; va && va->start < limit; va = va_gap_next(va, need)) {
		u64 low = max(from, va->start - va->gap);
		u64 address = va_room_between(low, va->start, size, alignment);

		if (address || !probes--)
			return address;
	}
	return va_room_at_end(ctx, from, limit, size, alignment);
}

/*
 * Addresses are handed out in ascending order and come round only after the
 * whole span, so that a stale address seldom names something new. A gap that
 * has room however it lies is found at once; others are the last resort.
 */
static u64 va_find_room(struct accmem_context *ctx,
			const struct accmem_carveout *cv, u64 size,
			u64 alignment)
{
	struct accmem_ctx_carveout *h = accmem_ctx_carveout_of(ctx, cv);
	u64 base = cv->address_base, limit = base + cv->address_span, address;
	u64 sure = size + alignment - ACCMEM_GRANULE;

	address = va_room_from(ctx, h->cursor, limit, size, alignment, sure,
			       UINT_MAX);
	if (!address)
		address = va_room_from(ctx, base, limit, size, alignment, sure,
				       UINT_MAX);
	if (!address)
		address = va_room_from(ctx, base, limit, size, alignment, size,
				       GAP_PROBES);
	if (address)
		h->cursor = address + size;
	return address;
}

static int va_choose_address(struct accmem_context *ctx, struct accmem_va *va,
			     u64 alignment)
{
	const struct accmem_carveout *cv = va->bo->cv;

	if (cv->translation == ACCMEM_TRANSLATION_IDENTITY) {
		va->start = cv->address_base + va->bo->run.start;
		return 0;
	}
	if (va->size >= ACCMEM_FOLIO)
		alignment = max_t(u64, alignment, ACCMEM_FOLIO);
	alignment = max_t(u64, alignment, ACCMEM_GRANULE);
	va->start = va_find_room(ctx, cv, va->size, alignment);
	return va->start ? 0 : -EADDRNOTAVAIL;
}

/* @va has been linked below @parent, between @below and @above */
static void va_split_gap(struct accmem_va *va, struct rb_node *parent,
			 struct accmem_va *below, struct accmem_va *above)
{
	va->gap = va->start - (va_are_akin(va, below) ?
				       accmem_va_end(below) :
				       va->bo->cv->address_base);
	va->max_gap = va->gap;
	va_gaps.propagate(parent, NULL);
	if (va_are_akin(va, above)) {
		above->gap = above->start - accmem_va_end(va);
		va_gaps.propagate(&above->node, NULL);
	}
}

static void va_link(struct accmem_context *ctx, struct accmem_va *va)
{
	struct rb_node **link = &ctx->places.rb_node, *parent = NULL;
	struct accmem_va *below = NULL, *above = NULL;

	while (*link) {
		parent = *link;
		if (va->start < to_va(parent)->start) {
			above = to_va(parent);
			link = &parent->rb_left;
		} else {
			below = to_va(parent);
			link = &parent->rb_right;
		}
	}
	va->gap = 0;
	va->max_gap = 0;
	rb_link_node(&va->node, parent, link);
	if (va_has_gap(va))
		va_split_gap(va, parent, below, above);
	rb_insert_augmented(&va->node, &ctx->places, &va_gaps);
}

/**
 * accmem_va_insert() - give a memory its device addresses
 * @ctx: the context, whose lock is held
 * @va: the place, with its memory and size
 * @alignment: of the address, in bytes (mapped translation)
 *
 * Return: 0, or -EADDRNOTAVAIL when no device address is left for it.
 */
int accmem_va_insert(struct accmem_context *ctx, struct accmem_va *va,
		     u64 alignment)
{
	int err;

	lockdep_assert_held(&ctx->lock);
	err = va_choose_address(ctx, va, alignment);
	if (err)
		return err;
	va_link(ctx, va);
	va->bo->offset = va->start - ctx->carveouts->address_base;
	return 0;
}

/**
 * accmem_va_check() - could a buffer get some device addresses?
 * @ctx: the context, whose lock is held
 * @start: the lowest
 * @size: how many
 *
 * Return: 0 where no place has any of them; -EEXIST where a published buffer has;
 * -EADDRNOTAVAIL where what is free but hidden may be all that has, also where there are
 * more places than a look takes.
 */
int accmem_va_check(struct accmem_context *ctx, u64 start, u64 size)
{
	struct accmem_va *va = accmem_va_above(ctx, start);
	unsigned int looks = PLACE_PROBES;
	int err = 0;

	for (; va && va->start < start + size && looks--;
	     va = accmem_va_next(va)) {
		if (va->names)
			return -EEXIST;
		err = -EADDRNOTAVAIL;
	}
	return err;
}

/**
 * accmem_va_insert_at() - give a memory device addresses that are free
 * @ctx: the context, whose lock is held
 * @va: the place, with its memory, size and start
 */
void accmem_va_insert_at(struct accmem_context *ctx, struct accmem_va *va)
{
	lockdep_assert_held(&ctx->lock);
	va_link(ctx, va);
	va->bo->offset = va->start - ctx->carveouts->address_base;
}

/**
 * accmem_va_resize() - give a place more device addresses at its end, or fewer
 * @ctx: the context, whose lock is held
 * @va: the place, of one buffer
 * @size: bytes that it has then
 *
 * Return: 0; -EEXIST where the addresses are not free, or beyond the span.
 */
int accmem_va_resize(struct accmem_context *ctx, struct accmem_va *va, u64 size)
{
	const struct accmem_carveout *cv = va->bo->cv;
	u64 limit = cv->address_base + cv->address_span;
	struct accmem_va *next = accmem_va_next(va);

	lockdep_assert_held(&ctx->lock);
	if (next)
		limit = min(limit, next->start);
	if (size > limit - va->start)
		return -EEXIST;
	if (va_has_gap(va) && va_are_akin(va, next)) {
		next->gap = next->start - va->start - size;
		va_gaps.propagate(&next->node, NULL);
	}
	va->size = size;
	va->unit = size;
	return 0;
}

/**
 * accmem_va_erase() - undo accmem_va_insert()
 * @ctx: the context, whose lock is held
 * @va: the place
 */
void accmem_va_erase(struct accmem_context *ctx, struct accmem_va *va)
{
	struct accmem_va *next = NULL;

	lockdep_assert_held(&ctx->lock);
	if (va_has_gap(va))
		next = accmem_va_next(va);
	rb_erase_augmented(&va->node, &ctx->places, &va_gaps);
	if (!va_are_akin(va, next))
		return;
	next->gap += va->gap + va->size;
	/* nobody above knows of it: who learns nothing new is the last that is told */
	va_gaps.propagate(&next->node, NULL);
}
