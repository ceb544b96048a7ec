/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Streams and pending frees: the structures.
 */
#ifndef ACCMEM_STREAM_TYPES_H
#define ACCMEM_STREAM_TYPES_H

#include <linux/dma-fence.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

struct accmem_accounts;
struct accmem_context;

/**
 * struct accmem_dep - what a free waits for
 * @stream: whose position it is, with a reference
 * @fence: where @position is 0: a fence, with a reference
 * @position: the position. 0, which every stream has reached, makes it a fence,
 *	or, without one, a gate that is open.
 */
struct accmem_dep {
	union {
		struct accmem_stream *stream;
		struct dma_fence *fence;
	};
	u64 position;
};

static inline bool accmem_dep_is_signaled(const struct accmem_dep *dep)
{
	return !dep->fence;
}

/**
 * struct accmem_pending - a free that is not over, embedded in its buffer
 * @ctx: the context, with a reference, while it waits
 * @deps: what it waits for, one after the other; those that are open come last, and
 *	a fence after a position. A buffer that was cut from pending memory keeps the
 *	gate of that memory while it is in use.
 * @first: the first of them; where it is a fence, there is no other
 * @cb: of the fence, in the first free of the context that waits for it
 * @signalled: in accmem_device.signalled, likewise, when the fence has called
 * @node: in accmem_stream.pending, by position, or in accmem_context.fences, by fence
 * @due: in a list of what waits for nothing any more
 * @cached: in accmem_context.cache, for what waits for nothing and is kept
 */
struct accmem_pending {
	struct accmem_context *ctx;
	union {
		struct accmem_dep deps[2];
		struct {
			struct accmem_dep first;
			union {
				struct dma_fence_cb cb;
				struct llist_node signalled;
			};
		};
	};
	union {
		struct rb_node node;
		struct llist_node due;
		struct list_head cached;
	};
};

/* nothing waits */
static inline void accmem_pending_clear(struct accmem_pending *pending)
{
	pending->ctx = NULL;
	pending->deps[0] = (struct accmem_dep){};
}

/**
 * struct accmem_stream - a timeline
 * @refs: its file, gates, steps, fences, and work that is queued
 * @rcu: frees it when nobody can be looking at it any more
 * @ctx: whose it is, with a reference until its file is closed; only compared then
 * @accounts: the accounts of the device
 * @due: the due buffers of the device
 * @context: number of the account
 * @id: serial number in the context
 * @fences: dma_fence context of its fences
 * @work: reaches what the kernel has to reach
 * @wait: who waits for a position, and who polls
 * @poll: the position that poll() is about
 * @finishing: held by userspace that reaches a position, and at the close of the file,
 *	until all that this frees is free
 * @lock: guards the fields below
 * @reached: the count
 * @claimed: the highest position that is reached, or that a step will reach
 * @ended: nobody will signal userspace's positions any more
 * @error: of the first step that failed; 0 or a negative errno value
 * @steps: imported fences, in order of their positions
 * @exports: fences of claimed positions, by position
 * @pending: frees that wait for a position
 * @nr_pending: how many
 */
struct accmem_stream {
	struct kref refs;
	struct rcu_head rcu;
	struct accmem_context *ctx;
	struct accmem_accounts *accounts;
	struct accmem_due *due;
	u64 context;
	u64 id;
	u64 fences;
	struct work_struct work;
	wait_queue_head_t wait;
	u64 poll;
	struct mutex finishing; /* of frees */

	spinlock_t lock; /* the fields below */
	u64 reached;
	u64 claimed;
	bool ended;
	int error;
	struct list_head steps;
	struct rb_root_cached exports;
	struct rb_root_cached pending;
	u64 nr_pending;
};

/**
 * struct accmem_due - pending buffers of a device that wait for nothing any more
 * @list: the buffers
 * @signalled: buffers whose fences have signaled, each of which stands for all buffers
 *	of its context that wait for the fence
 * @lock: held while a buffer is finished that is in no list, or some of its pages are
 *	given back
 * @work: finishes the buffers
 */
struct accmem_due {
	struct llist_head list;
	struct llist_head signalled;
	struct mutex lock; /* a due buffer is in no list */
	struct work_struct work;
};

#endif /* ACCMEM_STREAM_TYPES_H */
