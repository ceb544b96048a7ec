// SPDX-License-Identifier: GPL-2.0
/*
 * Pending frees that wait for a dma_fence.
 *
 * The frees of a context that wait for fences are in a tree, sorted by fence. Frees
 * that wait for the same fence are neighbours in the tree. Only the first free of each
 * fence adds a callback to the fence: callbacks run with the fence's lock held and
 * interrupts disabled, so a context must not add a callback for each free.
 *
 * When the fence signals, the callback adds the first free to the list of signalled
 * frees of the device and queues the worker. accmem_pending_collect_signaled() then
 * moves the neighbours to the list of due frees, a batch at a time. The first free
 * leaves the tree last: the list of signalled frees contains only this free, and the
 * search for the neighbours starts from it.
 *
 * Locking: due->lock of the device is taken before ctx->lock. ctx->lock protects the
 * tree. No function of a fence is called under ctx->lock.
 */
#include "core/carveout.h"
#include "internal.h"
#include "types/context_types.h"

#define FENCE_BATCH \
	64u /* frees removed before the context's lock is released */

static struct accmem_pending *to_pending(struct rb_node *node)
{
	return rb_entry_safe(node, struct accmem_pending, node);
}

static bool fence_is_before(struct rb_node *a, const struct rb_node *b)
{
	return to_pending(a)->deps[0].fence <
	       rb_entry(b, struct accmem_pending, node)->deps[0].fence;
}

/* Return another free in the tree that waits for the same fence, or NULL. */
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

/*
 * Callback of a fence: runs in any context, with the fence's lock held. The worker can
 * finish the free as soon as the free is in the list.
 */
static void fence_signaled(struct dma_fence *fence, struct dma_fence_cb *cb)
{
	struct accmem_pending *pending =
		container_of(cb, struct accmem_pending, cb);
	struct accmem_due *due = pending->ctx->due;

	llist_add(&pending->signaled, &due->signaled);
	queue_work(accmem_wq, &due->work);
}

/**
 * accmem_pending_arm() - let a free wait for the fence of its first dependency
 * @pending: the free; the worker can finish the free as soon as the function has added
 *	it to the tree
 *
 * Context: Process context. Takes and releases the context's lock. Does not sleep.
 * Return: true if the free waits; false if the fence has signalled.
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
	/*
	 * The fence may have signalled after the check above. Other frees may
	 * already rely on the callback of this free, so the free cannot leave the
	 * tree here: call the callback instead.
	 */
	if (first &&
	    dma_fence_add_callback(fence, &pending->cb, fence_signaled))
		fence_signaled(fence, &pending->cb);
	return true;
}

/*
 * Move a batch of frees that wait for the same fence as @first to the list of due
 * frees. When no other free is left, remove @first from the tree. Return true if other
 * frees are left.
 */
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
 * accmem_pending_collect_signaled() - move frees of a signalled fence to the due list
 * @due: due frees of the device
 *
 * One call moves a batch of frees of one fence.
 *
 * Context: Process context. The caller holds @due->lock. Takes and releases the
 * lock of a context. Does not sleep.
 * Return: false if no fence with waiting frees has signalled.
 */
bool accmem_pending_collect_signaled(struct accmem_due *due)
{
	struct accmem_pending *first;
	struct llist_node *node;

	lockdep_assert_held(&due->lock);
	node = llist_del_first(&due->signaled);
	if (!node)
		return false;
	first = llist_entry(node, struct accmem_pending, signaled);
	if (fence_take_some(due, first)) {
		llist_add(&first->signaled, &due->signaled);
		return true;
	}
	/* @signaled and the callback overlap deps[1] (a union): clear deps[1] again */
	first->deps[1] = (struct accmem_dep){};
	llist_add(&first->due, &due->list);
	return true;
}
