// SPDX-License-Identifier: GPL-2.0
/*
 * Frees that wait for fences of other drivers.
 *
 * Whoever signals a fence runs its callbacks with the fence's lock held and without
 * interrupts, so there is one for each context, however many of its frees wait. They
 * are in a tree by fence, where those of one are neighbours; the first to come has the
 * callback, and leaves last. All that is done in the callback is to put it in a list of
 * the device: from there all of them are made due, some at a time.
 *
 * Locks: due_lock > the context's, under which no fence is called.
 */
#include "core/carveout.h"
#include "internal.h"
#include "types/context_types.h"

#define FENCE_BATCH 64u /* frees taken out in one hold of the context's lock */

static struct accmem_pending *to_pending(struct rb_node *node)
{
	return rb_entry_safe(node, struct accmem_pending, node);
}

static bool fence_is_before(struct rb_node *a, const struct rb_node *b)
{
	return to_pending(a)->deps[0].fence <
	       rb_entry(b, struct accmem_pending, node)->deps[0].fence;
}

/* another free in the tree that waits for the same fence, or NULL */
static struct accmem_pending *fence_neighbour(struct accmem_pending *pending)
{
	struct accmem_pending *before = to_pending(rb_prev(&pending->node));
	struct accmem_pending *after = to_pending(rb_next(&pending->node));
	struct dma_fence *fence = pending->deps[0].fence;

	lockdep_assert_held(&pending->ctx->lock);
	if (before && before->deps[0].fence == fence)
		return before;
	return after && after->deps[0].fence == fence ? after : NULL;
}

/* With the fence's lock held, in any context. The free may be over at once. */
static void fence_signalled(struct dma_fence *fence, struct dma_fence_cb *cb)
{
	struct accmem_pending *pending =
		container_of(cb, struct accmem_pending, cb);
	struct accmem_due *due = pending->ctx->due;

	llist_add(&pending->signalled, &due->signalled);
	queue_work(accmem_wq, &due->work);
}

/**
 * accmem_pending_arm() - have a free wait for the fence that is its gate
 * @pending: the free; from here on it may be finished at any moment
 *
 * Return: false when there is nothing to wait for.
 */
bool accmem_pending_arm(struct accmem_pending *pending)
{
	struct dma_fence *fence = pending->deps[0].fence;
	struct accmem_context *ctx = pending->ctx;
	bool first;

	if (dma_fence_is_signaled(fence))
		return false;
	spin_lock(&ctx->lock);
	rb_add(&pending->node, &ctx->fences, fence_is_before);
	first = !fence_neighbour(pending);
	spin_unlock(&ctx->lock);
	/* it may have signalled meanwhile: others may count on this one already */
	if (first &&
	    dma_fence_add_callback(fence, &pending->cb, fence_signalled))
		fence_signalled(fence, &pending->cb);
	return true;
}

/* all that wait with @first, and at last itself; true if there are more */
static bool fence_take_some(struct accmem_due *due,
			    struct accmem_pending *first)
{
	struct accmem_context *ctx = first->ctx;
	struct accmem_pending *other;
	unsigned int nr = FENCE_BATCH;

	spin_lock(&ctx->lock);
	while ((other = fence_neighbour(first)) && nr--) {
		rb_erase(&other->node, &ctx->fences);
		llist_add(&other->due, &due->list);
	}
	if (!other)
		rb_erase(&first->node, &ctx->fences);
	spin_unlock(&ctx->lock);
	return other;
}

/**
 * accmem_pending_collect_signaled() - have some frees be due whose fence has signalled
 * @dev: the device, whose due_lock is held
 *
 * Return: whether there were any.
 */
bool accmem_pending_collect_signaled(struct accmem_due *due)
{
	struct accmem_pending *first;
	struct llist_node *node;

	lockdep_assert_held(&due->lock);
	node = llist_del_first(&due->signalled);
	if (!node)
		return false;
	first = llist_entry(node, struct accmem_pending, signalled);
	if (fence_take_some(due, first)) {
		llist_add(&first->signalled, &due->signalled);
		return true;
	}
	/* where the callback was */
	first->deps[1] = (struct accmem_dep){};
	llist_add(&first->due, &due->list);
	return true;
}
