// SPDX-License-Identifier: GPL-2.0
/*
 * Address ranges: the device addresses of the bos of a context.
 *
 * An address range (struct accmem_va, in comments: va) describes the device addresses
 * of one bo. The address ranges of a context are in an rbtree, sorted by address. The
 * nodes are embedded in their owners: an insert allocates nothing, and an erase cannot
 * fail.
 *
 * With identity translation, the offset of the bo in its carveout fixes the address.
 * With mapped translation, this file chooses an address in the span of the carveout.
 * For that, each va records its gap: the free addresses between this va and
 * the next lower va of the same carveout. Each node also has the largest gap of its
 * subtree, so that one descent of the tree finds a gap that is large enough.
 *
 * Locking: the callers hold ctx->lock, which protects the tree and the address ranges.
 */
#include <linux/rbtree_augmented.h>

#include "core/revoke.h"
#include "internal.h"
#include "types/context_types.h"
#include "vm/va.h"

/* most gaps that one call tries, of those whose start must have the right alignment */
#define HOLE_PROBES 64u

/* most address ranges that one call of accmem_va_check() searches */
#define VA_PROBES 64u

static struct accmem_va *to_va(struct rb_node *node)
{
	return rb_entry_safe(node, struct accmem_va, node);
}

/**
 * accmem_va_next() - return the va with the next higher device addresses
 * @va: the va
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: the next va, or NULL.
 */
struct accmem_va *accmem_va_next(const struct accmem_va *va)
{
	return to_va(rb_next(&va->node));
}

/*
 * Are gaps recorded for @va? With identity translation no address is chosen, so the gap
 * is always 0.
 */
static bool va_has_hole(const struct accmem_va *va)
{
	return va->bo->cv->translation != ACCMEM_TRANSLATION_IDENTITY;
}

/* Is @other a va of the same carveout? A gap never spans two carveouts. */
static bool va_are_akin(const struct accmem_va *va,
			const struct accmem_va *other)
{
	return other && other->bo->cv == va->bo->cv;
}

static u64 va_hole(const struct accmem_va *va)
{
	return va->hole;
}

RB_DECLARE_CALLBACKS_MAX(static, va_holes, struct accmem_va, node, u64,
			 subtree_max_hole, va_hole)

/**
 * accmem_va_above() - look up the lowest va that ends above an address
 * @ctx: the context
 * @address: a device address
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: the va, which may contain @address or begin above it, or NULL.
 */
struct accmem_va *accmem_va_above(struct accmem_context *ctx, u64 address)
{
	struct rb_node *node = ctx->va_tree.rb_node;
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
 * accmem_va_find() - look up the va that contains an address
 * @ctx: the context
 * @address: a device address
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: the va, or NULL.
 */
struct accmem_va *accmem_va_find(struct accmem_context *ctx, u64 address)
{
	struct accmem_va *va = accmem_va_above(ctx, address);

	return va && va->start <= address ? va : NULL;
}

/* Does the subtree at @node have a gap of @need bytes or more? */
static bool va_have_hole(struct rb_node *node, u64 need)
{
	return node && to_va(node)->subtree_max_hole >= need;
}

/*
 * Return the lowest va of the subtree at @node with a gap of at least @need bytes. The
 * caller has checked that the subtree has such a gap.
 */
static struct accmem_va *va_hole_lowest(struct rb_node *node, u64 need)
{
	for (;;) {
		if (va_have_hole(node->rb_left, need)) {
			node = node->rb_left;
			continue;
		}
		if (to_va(node)->hole >= need)
			return to_va(node);
		node = node->rb_right;
	}
}

/* Return the first va above @va with a gap of at least @need bytes, or NULL. */
static struct accmem_va *va_hole_next(struct accmem_va *va, u64 need)
{
	struct rb_node *node = &va->node, *parent;

	if (va_have_hole(node->rb_right, need))
		return va_hole_lowest(node->rb_right, need);
	while ((parent = rb_parent(node))) {
		bool from_left = node == parent->rb_left;

		node = parent;
		if (!from_left)
			continue;
		if (to_va(node)->hole >= need)
			return to_va(node);
		if (va_have_hole(node->rb_right, need))
			return va_hole_lowest(node->rb_right, need);
	}
	return NULL;
}

/* Return the lowest aligned address of @size free bytes from @from to @to, or 0. */
static u64 va_room_between(u64 from, u64 to, u64 size, u64 alignment)
{
	from = ALIGN(from, alignment);
	return from <= to && to - from >= size ? from : 0;
}

/*
 * Return an aligned address of @size bytes between the last va below @limit and @limit,
 * not below @from; or 0.
 */
static u64 va_room_at_end(struct accmem_context *ctx, u64 from, u64 limit,
			  u64 size, u64 alignment)
{
	struct accmem_va *above = accmem_va_above(ctx, limit);
	struct accmem_va *last;

	last = to_va(above ? rb_prev(&above->node) : rb_last(&ctx->va_tree));
	if (last)
		from = max(from, accmem_va_end(last));
	return va_room_between(from, limit, size, alignment);
}

/*
 * Return the lowest aligned address of @size free bytes from *@from to @limit, or 0.
 * Only gaps of at least @need bytes are tried, @probes of them at most after the first.
 * *@from is set to the end of the part that was searched.
 */
static u64 va_room_from(struct accmem_context *ctx, u64 *from, u64 limit,
			u64 size, u64 alignment, u64 need, unsigned int probes)
{
	struct accmem_va *va = accmem_va_above(ctx, *from);
	u64 address, low = *from;

	for (; va && va->start < limit; va = va_hole_next(va, need)) {
		*from = va->start;
		address = va_room_between(max(low, va->start - va->hole),
					  va->start, size, alignment);
		if (address || !probes--)
			return address;
	}
	*from = limit;
	return va_room_at_end(ctx, low, limit, size, alignment);
}

/*
 * Choose a device address for @size bytes; return 0 if no gap fits. Addresses are
 * assigned in ascending order and reused only after the whole span was used once: a
 * stale address of a program then rarely refers to a new buffer. The search has three
 * steps:
 *
 * - above the cursor, gaps that fit with any alignment of their start;
 * - in the whole span, gaps that fit with any alignment of their start;
 * - from *@from on, a few gaps that fit only with the right alignment.
 *
 * *@from is 0 at first, which stands for the whole span. If *@from is below the end of
 * the span afterwards, another call continues the last step there.
 */
static u64 va_find_room(struct accmem_context *ctx,
			const struct accmem_carveout *cv, u64 size,
			u64 alignment, u64 *from)
{
	struct accmem_ctx_carveout *h = accmem_ctx_carveout_of(ctx, cv);
	u64 base = cv->address_base, limit = base + cv->address_span;
	u64 sure = size + alignment - ACCMEM_GRANULE, address = 0, at;

	if (!*from) {
		at = h->cursor;
		address = va_room_from(ctx, &at, limit, size, alignment, sure,
				       UINT_MAX);
		at = base;
		if (!address)
			address = va_room_from(ctx, &at, limit, size, alignment,
					       sure, UINT_MAX);
		*from = sure > size ? base : limit;
	}
	if (!address && *from < limit)
		address = va_room_from(ctx, from, limit, size, alignment, size,
				       HOLE_PROBES);
	if (address)
		h->cursor = address + size;
	return address;
}

static int va_choose_address(struct accmem_context *ctx, struct accmem_va *va,
			     u64 alignment, u64 *from)
{
	const struct accmem_carveout *cv = va->bo->cv;
	u64 once = 0;

	if (cv->translation == ACCMEM_TRANSLATION_IDENTITY) {
		va->start = cv->address_base + va->bo->run.start;
		return 0;
	}
	alignment = max_t(u64, alignment, ACCMEM_GRANULE);
	va->start = 0;
	/* At such an address, entries of 2 MiB can map the buffer. */
	if (!*from && va->size >= ACCMEM_FOLIO && alignment < ACCMEM_FOLIO)
		va->start =
			va_find_room(ctx, cv, va->size, ACCMEM_FOLIO, &once);
	if (!va->start)
		va->start = va_find_room(ctx, cv, va->size, alignment, from);
	if (va->start)
		return 0;
	return *from < cv->address_base + cv->address_span ? -EAGAIN :
							     -EADDRNOTAVAIL;
}

/*
 * Divide the gap that contains the new va @va, a child of @parent in the tree. @below
 * and @above are the neighbours of @va in address order, or NULL.
 */
static void va_split_hole(struct accmem_va *va, struct rb_node *parent,
			  struct accmem_va *below, struct accmem_va *above)
{
	va->hole = va->start - (va_are_akin(va, below) ?
					accmem_va_end(below) :
					va->bo->cv->address_base);
	va->subtree_max_hole = va->hole;
	va_holes.propagate(parent, NULL);
	if (va_are_akin(va, above)) {
		above->hole = above->start - accmem_va_end(va);
		va_holes.propagate(&above->node, NULL);
	}
}

static void va_link(struct accmem_context *ctx, struct accmem_va *va)
{
	struct rb_node **link = &ctx->va_tree.rb_node, *parent = NULL;
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
	va->hole = 0;
	va->subtree_max_hole = 0;
	rb_link_node(&va->node, parent, link);
	if (va_has_hole(va))
		va_split_hole(va, parent, below, above);
	rb_insert_augmented(&va->node, &ctx->va_tree, &va_holes);
}

/*
 * All buffers of a context are of one epoch. A context without buffers takes the epoch of
 * its first one.
 */
static int va_join_epoch(struct accmem_context *ctx, const struct accmem_bo *bo)
{
	if (RB_EMPTY_ROOT(&ctx->va_tree))
		WRITE_ONCE(ctx->epoch, bo->epoch);
	return ctx->epoch == bo->epoch ? 0 :
					 accmem_revoked_error(ctx->carveouts);
}

/**
 * accmem_va_insert() - choose device addresses for a bo and insert its va
 * @ctx: the context
 * @va: the va, with its bo and size set
 * @alignment: alignment of the address in bytes (mapped translation only)
 * @from: in, out: 0 for the first call; state of the search for the calls after -EAGAIN
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: 0; -EADDRNOTAVAIL when there is no range of free addresses; -EAGAIN when the
 * search has to go on after the lock was released, which an alignment of ACCMEM_GRANULE
 * never needs; -ECONNRESET or -ENODEV when the memory was revoked since the bo was
 * created, or before.
 */
int accmem_va_insert(struct accmem_context *ctx, struct accmem_va *va,
		     u64 alignment, u64 *from)
{
	int err;

	lockdep_assert_held(&ctx->lock);
	err = va_join_epoch(ctx, va->bo);
	if (!err)
		err = va_choose_address(ctx, va, alignment, from);
	if (err)
		return err;
	va_link(ctx, va);
	return 0;
}

/**
 * accmem_va_check() - check whether a range of device addresses is free
 * @ctx: the context
 * @start: lowest address
 * @size: number of bytes
 *
 * A va without published buffers, as of a cached buffer or a pending free, may
 * disappear after reclaim. The check stops after a bounded number of such address
 * ranges.
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: 0 when no va overlaps the range; -EEXIST when a va with a published buffer
 * overlaps; -EADDRNOTAVAIL when all checked address ranges that overlap have no
 * published buffer.
 */
int accmem_va_check(struct accmem_context *ctx, u64 start, u64 size)
{
	struct accmem_va *va = accmem_va_above(ctx, start);
	unsigned int probes = VA_PROBES;
	int err = 0;

	for (; va && va->start < start + size && probes--;
	     va = accmem_va_next(va)) {
		if (va->published)
			return -EEXIST;
		err = -EADDRNOTAVAIL;
	}
	return err;
}

/**
 * accmem_va_insert_at() - insert a va at an address that the caller has chosen
 * @ctx: the context
 * @va: the va, with its bo, size and start set; its addresses are free
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: 0; -ECONNRESET or -ENODEV as accmem_va_insert().
 */
int accmem_va_insert_at(struct accmem_context *ctx, struct accmem_va *va)
{
	int err;

	lockdep_assert_held(&ctx->lock);
	err = va_join_epoch(ctx, va->bo);
	if (err)
		return err;
	va_link(ctx, va);
	return 0;
}

/**
 * accmem_va_resize() - extend or shorten a va at its end
 * @ctx: the context
 * @va: the va of a dedicated buffer
 * @size: new size in bytes
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 * Return: 0; -EEXIST when another va has some of the addresses, or when they lie beyond
 * the span of the carveout.
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
	if (va_has_hole(va) && va_are_akin(va, next)) {
		next->hole = next->start - va->start - size;
		va_holes.propagate(&next->node, NULL);
	}
	va->size = size;
	va->stride = size;
	return 0;
}

/**
 * accmem_va_erase() - remove a va from the tree and free its device addresses
 * @ctx: the context
 * @va: the va
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 */
void accmem_va_erase(struct accmem_context *ctx, struct accmem_va *va)
{
	struct accmem_va *next = NULL;

	lockdep_assert_held(&ctx->lock);
	if (va_has_hole(va))
		next = accmem_va_next(va);
	rb_erase_augmented(&va->node, &ctx->va_tree, &va_holes);
	if (!va_are_akin(va, next))
		return;
	next->hole += va->hole + va->size;
	/*
	 * Update subtree_max_hole of @next and its ancestors. The update stops at the first
	 * node whose subtree_max_hole does not change.
	 */
	va_holes.propagate(&next->node, NULL);
}
