// SPDX-License-Identifier: GPL-2.0
/*
 * Places: which memory is at a device address.
 *
 * A context's memory is in an rbtree by device address (struct accmem_place). Nodes are
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

static struct accmem_place *to_place(struct rb_node *node)
{
	return rb_entry_safe(node, struct accmem_place, node);
}

/**
 * accmem_place_next() - the place with the next higher device addresses
 * @place: the place; its context's lock is held
 *
 * Return: the place, or NULL.
 */
struct accmem_place *accmem_place_next(const struct accmem_place *place)
{
	return to_place(rb_next(&place->node));
}

/* Where the memory says what its address is, none is chosen: gaps count as 0. */
static bool place_has_gap(const struct accmem_place *place)
{
	return place->memory->cv->translation != ACCMEM_TRANSLATION_IDENTITY;
}

/* A gap lies among the addresses of one carveout. */
static bool places_are_akin(const struct accmem_place *place,
			    const struct accmem_place *other)
{
	return other && other->memory->cv == place->memory->cv;
}

static u64 place_gap(const struct accmem_place *place)
{
	return place->gap;
}

RB_DECLARE_CALLBACKS_MAX(static, place_gaps, struct accmem_place, node, u64,
			 max_gap, place_gap)

/**
 * accmem_place_above() - the lowest place that ends above an address
 * @ctx: the context, whose lock is held
 * @address: a device address
 *
 * Return: the place, or NULL.
 */
struct accmem_place *accmem_place_above(struct accmem_context *ctx, u64 address)
{
	struct rb_node *node = ctx->places.rb_node;
	struct accmem_place *found = NULL;

	lockdep_assert_held(&ctx->lock);
	while (node) {
		struct accmem_place *place = to_place(node);

		if (accmem_place_end(place) > address) {
			found = place;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/**
 * accmem_place_find() - the place that contains an address
 * @ctx: the context, whose lock is held
 * @address: a device address
 *
 * Return: the place, or NULL.
 */
struct accmem_place *accmem_place_find(struct accmem_context *ctx, u64 address)
{
	struct accmem_place *place = accmem_place_above(ctx, address);

	return place && place->start <= address ? place : NULL;
}

/* has the subtree at @node a gap of @need? */
static bool places_have_gap(struct rb_node *node, u64 need)
{
	return node && to_place(node)->max_gap >= need;
}

/* the lowest place of a subtree with a gap of @need below it; there is one */
static struct accmem_place *places_gap_lowest(struct rb_node *node, u64 need)
{
	for (;;) {
		if (places_have_gap(node->rb_left, need)) {
			node = node->rb_left;
			continue;
		}
		if (to_place(node)->gap >= need)
			return to_place(node);
		node = node->rb_right;
	}
}

/* the first place after @place with a gap of @need below it, or NULL */
static struct accmem_place *places_gap_next(struct accmem_place *place,
					    u64 need)
{
	struct rb_node *node = &place->node, *parent;

	if (places_have_gap(node->rb_right, need))
		return places_gap_lowest(node->rb_right, need);
	while ((parent = rb_parent(node))) {
		bool from_left = node == parent->rb_left;

		node = parent;
		if (!from_left)
			continue;
		if (to_place(node)->gap >= need)
			return to_place(node);
		if (places_have_gap(node->rb_right, need))
			return places_gap_lowest(node->rb_right, need);
	}
	return NULL;
}

/* the lowest aligned address in a gap of @size, or 0 */
static u64 places_room_between(u64 from, u64 to, u64 size, u64 alignment)
{
	from = ALIGN(from, alignment);
	return from <= to && to - from >= size ? from : 0;
}

/* above everything that is below @limit, or 0 */
static u64 places_room_at_end(struct accmem_context *ctx, u64 from, u64 limit,
			      u64 size, u64 alignment)
{
	struct accmem_place *above = accmem_place_above(ctx, limit);
	struct accmem_place *last;

	last = to_place(above ? rb_prev(&above->node) : rb_last(&ctx->places));
	if (last)
		from = max(from, accmem_place_end(last));
	return places_room_between(from, limit, size, alignment);
}

/* the first room between @from and @limit, in one of @probes gaps of @need, or 0 */
static u64 places_room_from(struct accmem_context *ctx, u64 from, u64 limit,
			    u64 size, u64 alignment, u64 need,
			    unsigned int probes)
{
	struct accmem_place *place = accmem_place_above(ctx, from);

	for (; place && place->start < limit;
	     place = places_gap_next(place, need)) {
		u64 low = max(from, place->start - place->gap);
		u64 address =
			places_room_between(low, place->start, size, alignment);

		if (address || !probes--)
			return address;
	}
	return places_room_at_end(ctx, from, limit, size, alignment);
}

/*
 * Addresses are handed out in ascending order and come round only after the
 * whole span, so that a stale address seldom names something new. A gap that
 * has room however it lies is found at once; others are the last resort.
 */
static u64 places_find_room(struct accmem_context *ctx,
			    const struct accmem_carveout *cv, u64 size,
			    u64 alignment)
{
	struct accmem_holding *h = accmem_holding_of(ctx, cv);
	u64 base = cv->address_base, limit = base + cv->address_span, address;
	u64 sure = size + alignment - ACCMEM_GRANULE;

	address = places_room_from(ctx, h->cursor, limit, size, alignment, sure,
				   UINT_MAX);
	if (!address)
		address = places_room_from(ctx, base, limit, size, alignment,
					   sure, UINT_MAX);
	if (!address)
		address = places_room_from(ctx, base, limit, size, alignment,
					   size, GAP_PROBES);
	if (address)
		h->cursor = address + size;
	return address;
}

static int places_choose_address(struct accmem_context *ctx,
				 struct accmem_place *place, u64 alignment)
{
	const struct accmem_carveout *cv = place->memory->cv;

	if (cv->translation == ACCMEM_TRANSLATION_IDENTITY) {
		place->start = cv->address_base + place->memory->run.start;
		return 0;
	}
	if (place->size >= ACCMEM_FOLIO)
		alignment = max_t(u64, alignment, ACCMEM_FOLIO);
	alignment = max_t(u64, alignment, ACCMEM_GRANULE);
	place->start = places_find_room(ctx, cv, place->size, alignment);
	return place->start ? 0 : -EADDRNOTAVAIL;
}

/* @place has been linked below @parent, between @below and @above */
static void place_split_gap(struct accmem_place *place, struct rb_node *parent,
			    struct accmem_place *below,
			    struct accmem_place *above)
{
	place->gap = place->start - (places_are_akin(place, below) ?
					     accmem_place_end(below) :
					     place->memory->cv->address_base);
	place->max_gap = place->gap;
	place_gaps.propagate(parent, NULL);
	if (places_are_akin(place, above)) {
		above->gap = above->start - accmem_place_end(place);
		place_gaps.propagate(&above->node, NULL);
	}
}

static void place_link(struct accmem_context *ctx, struct accmem_place *place)
{
	struct rb_node **link = &ctx->places.rb_node, *parent = NULL;
	struct accmem_place *below = NULL, *above = NULL;

	while (*link) {
		parent = *link;
		if (place->start < to_place(parent)->start) {
			above = to_place(parent);
			link = &parent->rb_left;
		} else {
			below = to_place(parent);
			link = &parent->rb_right;
		}
	}
	place->gap = 0;
	place->max_gap = 0;
	rb_link_node(&place->node, parent, link);
	if (place_has_gap(place))
		place_split_gap(place, parent, below, above);
	rb_insert_augmented(&place->node, &ctx->places, &place_gaps);
}

/**
 * accmem_place_insert() - give a memory its device addresses
 * @ctx: the context, whose lock is held
 * @place: the place, with its memory and size
 * @alignment: of the address, in bytes (mapped translation)
 *
 * Return: 0, or -EADDRNOTAVAIL when no device address is left for it.
 */
int accmem_place_insert(struct accmem_context *ctx, struct accmem_place *place,
			u64 alignment)
{
	int err;

	lockdep_assert_held(&ctx->lock);
	err = places_choose_address(ctx, place, alignment);
	if (err)
		return err;
	place_link(ctx, place);
	place->memory->offset = place->start - ctx->dev->address_base;
	return 0;
}

/**
 * accmem_place_check() - could a buffer get some device addresses?
 * @ctx: the context, whose lock is held
 * @start: the lowest
 * @size: how many
 *
 * Return: 0 where no place has any of them; -EEXIST where a published buffer has;
 * -EADDRNOTAVAIL where what is free but hidden may be all that has, also where there are
 * more places than a look takes.
 */
int accmem_place_check(struct accmem_context *ctx, u64 start, u64 size)
{
	struct accmem_place *place = accmem_place_above(ctx, start);
	unsigned int looks = PLACE_PROBES;
	int err = 0;

	for (; place && place->start < start + size && looks--;
	     place = accmem_place_next(place)) {
		if (place->names)
			return -EEXIST;
		err = -EADDRNOTAVAIL;
	}
	return err;
}

/**
 * accmem_place_insert_at() - give a memory device addresses that are free
 * @ctx: the context, whose lock is held
 * @place: the place, with its memory, size and start
 */
void accmem_place_insert_at(struct accmem_context *ctx,
			    struct accmem_place *place)
{
	lockdep_assert_held(&ctx->lock);
	place_link(ctx, place);
	place->memory->offset = place->start - ctx->dev->address_base;
}

/**
 * accmem_place_resize() - give a place more device addresses at its end, or fewer
 * @ctx: the context, whose lock is held
 * @place: the place, of one buffer
 * @size: bytes that it has then
 *
 * Return: 0; -EEXIST where the addresses are not free, or beyond the span.
 */
int accmem_place_resize(struct accmem_context *ctx, struct accmem_place *place,
			u64 size)
{
	const struct accmem_carveout *cv = place->memory->cv;
	u64 limit = cv->address_base + cv->address_span;
	struct accmem_place *next = accmem_place_next(place);

	lockdep_assert_held(&ctx->lock);
	if (next)
		limit = min(limit, next->start);
	if (size > limit - place->start)
		return -EEXIST;
	if (place_has_gap(place) && places_are_akin(place, next)) {
		next->gap = next->start - place->start - size;
		place_gaps.propagate(&next->node, NULL);
	}
	place->size = size;
	place->unit = size;
	return 0;
}

/**
 * accmem_place_erase() - undo accmem_place_insert()
 * @ctx: the context, whose lock is held
 * @place: the place
 */
void accmem_place_erase(struct accmem_context *ctx, struct accmem_place *place)
{
	struct accmem_place *next = NULL;

	lockdep_assert_held(&ctx->lock);
	if (place_has_gap(place))
		next = accmem_place_next(place);
	rb_erase_augmented(&place->node, &ctx->places, &place_gaps);
	if (!places_are_akin(place, next))
		return;
	next->gap += place->gap + place->size;
	/* nobody above knows of it: who learns nothing new is the last that is told */
	place_gaps.propagate(&next->node, NULL);
}
