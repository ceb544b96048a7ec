// SPDX-License-Identifier: GPL-2.0
/*
 * Exported fences: sync_files of the positions of a stream.
 *
 * An exported fence belongs to a reached or claimed position and signals when the stream
 * reaches the position. A claimed position has one fence, which all its exports share:
 * the tree of the stream finds it. The tree has no reference. The fence leaves the tree
 * when it is about to signal, or when its last holder drops it. It can outlive the
 * stream's file; it is charged to the user of the stream until it is released, and holds
 * references to the stream and to the module.
 *
 * Locking: stream->lock protects the positions; exports_lock, below it, protects the tree
 * and is taken in any context. The only fence function that is called under them is
 * dma_fence_get_rcu().
 */
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sync_file.h>

#include "compat/compat.h"
#include "core/account.h"
#include "internal.h"
#include "stream/stream.h"

/**
 * struct exported - an exported fence of a position
 * @base: the fence; its sequence number is the position
 * @lock: lock of @base
 * @stream: the stream, with a reference
 * @node: node in accmem_stream.exports, guarded by exports_lock; empty when the fence
 *	is not in the tree
 * @name: name of the timeline
 */
struct exported {
	struct dma_fence base;
	spinlock_t lock; /* of base */
	struct accmem_stream *stream;
	struct rb_node node;
	char name[40];
};

static struct exported *of_fence(struct dma_fence *fence)
{
	return container_of(fence, struct exported, base);
}

static const char *export_driver_name(struct dma_fence *fence)
{
	return "accmem";
}

static const char *export_timeline_name(struct dma_fence *fence)
{
	return of_fence(fence)->name;
}

/*
 * Free an exported fence after an RCU grace period. accmem_exit() waits for these
 * callbacks (rcu_barrier()), so the code is not unloaded after module_put().
 */
static void export_free(struct rcu_head *rcu)
{
	struct exported *export =
		of_fence(container_of(rcu, struct dma_fence, rcu));

	accmem_stream_put(export->stream);
	kfree(export);
	module_put(THIS_MODULE);
}

static void export_erase(struct exported *export)
{
	lockdep_assert_held(&export->stream->exports_lock);
	rb_erase(&export->node, &export->stream->exports);
	RB_CLEAR_NODE(&export->node);
}

/* The last reference is dropped: in any context. */
static void export_release(struct dma_fence *fence)
{
	struct exported *export = of_fence(fence);
	struct accmem_stream *stream = export->stream;
	unsigned long flags;

	spin_lock_irqsave(&stream->exports_lock, flags);
	if (!RB_EMPTY_NODE(&export->node))
		export_erase(export);
	spin_unlock_irqrestore(&stream->exports_lock, flags);
	accmem_uncharge_fence(stream->user);
	call_rcu(&fence->rcu, export_free);
}

static const struct dma_fence_ops export_ops = {
	.get_driver_name = export_driver_name,
	.get_timeline_name = export_timeline_name,
	ACCMEM_DMA_FENCE_RELEASE64(export_release),
};

static struct exported *export_create(struct accmem_stream *stream,
				      u64 position)
{
	int err = accmem_charge_fence(stream->user);
	struct exported *export;

	if (err)
		return ERR_PTR(err);
	export = kzalloc(sizeof(*export), GFP_KERNEL_ACCOUNT);
	if (!export) {
		accmem_uncharge_fence(stream->user);
		return ERR_PTR(-ENOMEM);
	}
	/* the open file of the stream holds a reference to the module already */
	__module_get(THIS_MODULE);
	accmem_stream_get(stream);
	export->stream = stream;
	RB_CLEAR_NODE(&export->node);
	spin_lock_init(&export->lock);
	snprintf(export->name, sizeof(export->name), "%s-%llu-%llu",
		 stream->accounts->name, stream->context, stream->id);
	accmem_dma_fence_init(&export->base, &export_ops, &export->lock,
			      stream->fences, position);
	return export;
}

static void export_signal(struct exported *export, int error)
{
	if (error)
		dma_fence_set_error(&export->base, error);
	dma_fence_signal(&export->base);
}

static struct exported *to_export(const struct rb_node *node)
{
	return rb_entry_safe(node, struct exported, node);
}

static int export_compare_key(const void *key, const struct rb_node *node)
{
	u64 x = *(const u64 *)key, y = to_export(node)->base.seqno;

	return x < y ? -1 : x > y;
}

static int export_compare(struct rb_node *a, const struct rb_node *b)
{
	return export_compare_key(&to_export(a)->base.seqno, b);
}

/* Find the fence of a position. Return it with a reference, or NULL. */
static struct exported *export_find(struct accmem_stream *stream, u64 position)
{
	struct exported *export;
	struct rb_node *node;

	spin_lock_irq(&stream->exports_lock);
	node = rb_find(&position, &stream->exports, export_compare_key);
	export = to_export(node);
	if (export && !dma_fence_get_rcu(&export->base))
		export = NULL;
	spin_unlock_irq(&stream->exports_lock);
	return export;
}

/*
 * Add a fence to the tree, unless its position has a fence already. Return the fence of
 * the position: the caller's, or the other one with a reference. A fence that is being
 * released is replaced.
 */
static struct exported *export_insert(struct accmem_stream *stream,
				      struct exported *export)
{
	struct exported *other;
	struct rb_node *node;

	lockdep_assert_held(&stream->lock);
	spin_lock_irq(&stream->exports_lock);
	node = rb_find_add(&export->node, &stream->exports, export_compare);
	other = to_export(node);
	if (other && dma_fence_get_rcu(&other->base)) {
		export = other;
	} else if (other) {
		rb_replace_node(&other->node, &export->node, &stream->exports);
		RB_CLEAR_NODE(&other->node);
	}
	spin_unlock_irq(&stream->exports_lock);
	return export;
}

/* Return the error of a position: that of a step that failed before it was reached. */
static int export_error(const struct accmem_stream *stream, u64 position)
{
	return position > stream->error_above ? stream->error : 0;
}

/*
 * Return the fence of a position, with a reference, or -EPERM if the position is not
 * claimed. The caller's reference to @export is dropped if that is another fence.
 */
static struct exported *export_enter(struct accmem_stream *stream,
				     struct exported *export)
{
	u64 position = export->base.seqno;
	struct exported *used = export;
	bool reached;
	int error;

	spin_lock(&stream->lock);
	reached = position <= stream->reached;
	error = export_error(stream, position);
	if (position > stream->claimed)
		used = ERR_PTR(-EPERM);
	else if (!reached)
		used = export_insert(stream, export);
	spin_unlock(&stream->lock);
	if (used != export)
		dma_fence_put(&export->base);
	else if (reached)
		export_signal(export, error);
	return used;
}

/**
 * accmem_stream_export() - create a sync_file of a position
 * @stream: the stream
 * @position: a reached or claimed position
 *
 * Context: Process context. Takes and releases stream->lock. May sleep.
 * Return: the file of the sync_file; -EPERM when the position is neither reached nor
 * claimed; -EDQUOT when the user has the highest permitted number of fences; -ENOMEM.
 */
struct file *accmem_stream_export(struct accmem_stream *stream, u64 position)
{
	struct exported *export = export_find(stream, position);
	struct sync_file *sync_file;

	if (!export) {
		export = export_create(stream, position);
		if (!IS_ERR(export))
			export = export_enter(stream, export);
	}
	if (IS_ERR(export))
		return ERR_CAST(export);
	sync_file = sync_file_create(&export->base);
	dma_fence_put(&export->base);
	return sync_file ? sync_file->file : ERR_PTR(-ENOMEM);
}

/*
 * Remove an exported fence from the tree if the stream has reached its position. Return
 * the fence, with a reference, or NULL. Fences that are being released are removed too.
 */
static struct exported *export_next_reached(struct accmem_stream *stream,
					    int *error)
{
	struct exported *export;

	spin_lock(&stream->lock);
	spin_lock_irq(&stream->exports_lock);
	while ((export = to_export(rb_first(&stream->exports))) &&
	       export->base.seqno <= stream->reached) {
		export_erase(export);
		if (dma_fence_get_rcu(&export->base))
			break;
	}
	if (export && export->base.seqno > stream->reached)
		export = NULL;
	spin_unlock_irq(&stream->exports_lock);
	if (export)
		*error = export_error(stream, export->base.seqno);
	spin_unlock(&stream->lock);
	return export;
}

/**
 * accmem_exports_signal() - signal the exported fences of the reached positions
 * @stream: the stream
 *
 * Context: Process context; a fence-signalling critical section. Takes and releases
 * stream->lock. May sleep.
 */
void accmem_exports_signal(struct accmem_stream *stream)
{
	struct exported *export;
	int error;

	while ((export = export_next_reached(stream, &error))) {
		export_signal(export, error);
		dma_fence_put(&export->base);
		cond_resched();
	}
}
