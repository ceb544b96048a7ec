/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structures of streams and pending frees.
 *
 * A stream is an ordered timeline of a context, with a 64-bit count that never falls.
 * A free can wait for a dependency: a position of a stream, or a fence. Until the
 * dependency has signalled, the free is pending and the memory stays charged.
 *
 * Locks: accmem_stream.lock, a spinlock below the context's lock, guards the count and
 * the frees that wait for it. Frees that wait for a fence are guarded by the context's
 * lock.
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
struct accmem_user;
struct task_struct;

/**
 * struct accmem_dep - dependency of a free
 * @stream: stream of @position, with a reference
 * @fence: fence, with a reference, if @position is 0; NULL if the dependency has
 *	signalled
 * @position: position of @stream. Every stream has reached 0, which therefore marks
 *	a fence or a signalled dependency.
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
 * struct accmem_pending - a pending free, embedded in its buffer
 * @ctx: context, with a reference while the free is pending
 * @deps: dependencies, waited for in this order; signalled ones are last, and a fence
 *	comes after a position. A buffer that reuses pending memory keeps the
 *	dependency of this memory while the buffer is in use.
 * @first: the first dependency; if it is a fence, it is the only one
 * @cb: callback of the fence, in the first free of the context that waits for it
 * @signaled: link in accmem_due.signaled after the fence has signalled, in the
 *	same free
 * @node: node in accmem_stream.pending, ordered by position, or in
 *	accmem_context.fences, ordered by fence
 * @due: link in a list of frees whose dependencies have signalled
 * @cached: link in accmem_context.cache, for a freed buffer without a dependency
 */
struct accmem_pending {
	struct accmem_context *ctx;
	union {
		struct accmem_dep deps[2];
		struct {
			struct accmem_dep first;
			union {
				struct dma_fence_cb cb;
				struct llist_node signaled;
			};
		};
	};
	union {
		struct rb_node node;
		struct llist_node due;
		struct list_head cached;
	};
};

/**
 * struct accmem_stream_waiter - a STREAM_WAIT call that sleeps
 * @node: node in accmem_stream.waiters, guarded by the stream's lock; empty after the
 *	waiter was woken
 * @position: position that the call waits for
 * @task: the caller
 */
struct accmem_stream_waiter {
	struct rb_node node;
	u64 position;
	struct task_struct *task;
};

/**
 * struct accmem_stream - timeline of a context
 * @refs: references: the file, dependencies, steps, fences and queued work
 * @rcu: frees the stream after RCU readers have finished
 * @ctx: context; referenced until the stream's file is closed, then only compared
 * @accounts: accounts of the device, to which the stream has a reference
 * @user: user of the context, with a reference; charged for steps and exported fences
 * @due: due frees of the device
 * @context: number of the account
 * @id: serial number in the context
 * @fences: dma_fence context of the stream's fences
 * @work: advances the count when imported fences have signalled
 * @polls: callers of poll()
 * @poll: position that poll() waits for
 * @finishing: held by a call that advances the count, and by the close of the file,
 *	until the memory of the frees that this completes is free
 * @lock: guards the fields below
 * @reached: count
 * @claimed: highest position that is reached or that a step will reach
 * @ended: user space signals no further position
 * @error: error of the first step that failed; 0 or a negative errno value
 * @error_above: the positions above it have @error
 * @steps: imported fences, in the order of their positions
 * @notify: callers of poll() have to be woken
 * @waiters: calls that sleep until a position is reached, ordered by position
 * @pending: frees that wait for a position, ordered by position
 * @nr_pending: number of entries in @pending
 * @exports_lock: guards @exports; taken with interrupts disabled, because the last
 *	reference to a fence can be dropped in an interrupt
 * @exports: exported fences of claimed positions that are not reached, ordered by
 *	position; without references: a fence removes itself when it is released
 */
struct accmem_stream {
	struct kref refs;
	struct rcu_head rcu;
	struct accmem_context *ctx;
	struct accmem_accounts *accounts;
	struct accmem_user *user;
	struct accmem_due *due;
	u64 context;
	u64 id;
	u64 fences;
	struct work_struct work;
	wait_queue_head_t polls;
	u64 poll;
	struct mutex finishing; /* completion of frees */

	spinlock_t lock; /* the fields below */
	u64 reached;
	u64 claimed;
	bool ended;
	int error;
	u64 error_above;
	struct list_head steps;
	bool notify;
	struct rb_root_cached waiters;
	struct rb_root_cached pending;
	u64 nr_pending;

	spinlock_t exports_lock; /* exports; innermost */
	struct rb_root exports;
};

/**
 * struct accmem_due - pending frees of a device whose dependencies have signalled
 * @list: the frees
 * @signaled: frees whose fence has signalled; each stands for all frees of its
 *	context that wait for this fence
 * @lock: held while a due free, which is on no list then, is finished, and while some
 *	of its pages are freed
 * @work: finishes the frees in @list and @signaled
 */
struct accmem_due {
	struct llist_head list;
	struct llist_head signaled;
	struct mutex lock; /* a due free that is on no list */
	struct work_struct work;
};

#endif /* ACCMEM_STREAM_TYPES_H */
