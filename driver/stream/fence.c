// SPDX-License-Identifier: GPL-2.0
/*
 * Fences of streams: imported fences and exported fences.
 *
 * A step is an imported fence with the position that it claims. The stream reaches the
 * position when the fence signals. An exported fence belongs to a reached or claimed
 * position and signals when the stream reaches the position. Steps and exported fences
 * can outlive the stream's file, and hold references to the module.
 *
 * A fence signals in any context, with its lock held, so the callback of a step only
 * queues the work of the stream. The work advances the count, signals exported fences
 * and collects reached frees: no fence signals inside the callback of another fence.
 * Steps complete in order, so only the first step of a stream has a callback. Other
 * drivers may wait for exported fences: before the fences signal, the work may not
 * allocate. stream->lock protects steps and exports. No fence function is called under
 * stream->lock.
 */
#include <linux/file.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sync_file.h>

#include "compat/compat.h"
#include "core/carveout.h"
#include "internal.h"
#include "stream/fence.h"
#include "stream/stream.h"
#include "trace/trace.h"

#define STEP_BATCH 64u /* steps removed before the lock is released */

static struct workqueue_struct
	*stream_wq; /* memory reclaim may wait for its work */

/**
 * struct step - an imported fence and the position that it claims
 * @stream: the stream, with a reference
 * @fence: the fence, with a reference
 * @cb: callback of @fence
 * @position: value that the count gets when @fence has signalled
 * @watched: the step is the first of its stream, and its callback is added or will be;
 *	guarded by the stream's lock
 * @error: error of @fence; valid when @done is true
 * @done: @fence has signalled; written by smp_store_release()
 * @link: entry in accmem_stream.steps, guarded by the stream's lock; later in the
 *	work's list of completed steps
 */
struct step {
	struct accmem_stream *stream;
	struct dma_fence *fence;
	struct dma_fence_cb cb;
	u64 position;
	bool watched;
	int error;
	bool done;
	struct list_head link;
};

/**
 * struct exported - an exported fence of a position
 * @base: the fence; its sequence number is the position
 * @lock: lock of @base
 * @node: entry in accmem_stream.exports, guarded by the stream's lock; the tree holds a
 *	reference to @base until the position is reached
 * @name: name of the timeline
 */
struct exported {
	struct dma_fence base;
	spinlock_t lock; /* of base */
	struct rb_node node;
	char name[40];
};

/* --- exported fences ------------------------------------------------------- */

static const char *export_driver_name(struct dma_fence *fence)
{
	return "accmem";
}

static const char *export_timeline_name(struct dma_fence *fence)
{
	return container_of(fence, struct exported, base)->name;
}

/*
 * Free an exported fence after an RCU grace period. accmem_exit() waits for these
 * callbacks (rcu_barrier()), so the code is not unloaded after module_put().
 */
static void export_free(struct rcu_head *rcu)
{
	struct dma_fence *fence = container_of(rcu, struct dma_fence, rcu);

	kfree(container_of(fence, struct exported, base));
	module_put(THIS_MODULE);
}

static void export_release(struct dma_fence *fence)
{
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
	struct exported *export = kzalloc(sizeof(*export), GFP_KERNEL_ACCOUNT);

	if (!export)
		return NULL;
	/* the open file of the stream holds a reference to the module already */
	__module_get(THIS_MODULE);
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

static struct exported *to_export(struct rb_node *node)
{
	return rb_entry_safe(node, struct exported, node);
}

static bool export_is_before(struct rb_node *a, const struct rb_node *b)
{
	return to_export(a)->base.seqno <
	       rb_entry(b, struct exported, node)->base.seqno;
}

static void export_insert(struct accmem_stream *stream, struct exported *export)
{
	lockdep_assert_held(&stream->lock);
	rb_add_cached(&export->node, &stream->exports, export_is_before);
	dma_fence_get(&export->base);
}

/* Return the error of a position: that of a step that failed before it was reached. */
static int export_error(const struct accmem_stream *stream,
			const struct exported *export)
{
	return export->base.seqno > stream->error_above ? stream->error : 0;
}

/*
 * Remove an exported fence from the tree if the stream has reached its position. Return
 * the fence with the tree's reference, or NULL.
 */
static struct exported *export_next_reached(struct accmem_stream *stream,
					    int *error)
{
	struct exported *export;

	spin_lock(&stream->lock);
	export = to_export(rb_first_cached(&stream->exports));
	if (export && export->base.seqno <= stream->reached) {
		rb_erase_cached(&export->node, &stream->exports);
		*error = export_error(stream, export);
	} else {
		export = NULL;
	}
	spin_unlock(&stream->lock);
	return export;
}

/*
 * Add an exported fence to the tree if its position is claimed. Return 0 if the fence
 * was added, 1 if the position is already reached, -EPERM if the position is not
 * claimed.
 */
static int export_enter(struct accmem_stream *stream, struct exported *export,
			int *error)
{
	int ret = 0;

	spin_lock(&stream->lock);
	if (export->base.seqno > stream->claimed)
		ret = -EPERM;
	else if (export->base.seqno <= stream->reached)
		ret = 1;
	else
		export_insert(stream, export);
	*error = export_error(stream, export);
	spin_unlock(&stream->lock);
	return ret;
}

/**
 * accmem_stream_export() - create a sync_file of a position
 * @stream: the stream
 * @position: a reached or claimed position
 *
 * Context: Process context. Takes and releases stream->lock. May sleep.
 * Return: the file of the sync_file; -EPERM when the position is neither reached nor
 * claimed; -ENOMEM.
 */
struct file *accmem_stream_export(struct accmem_stream *stream, u64 position)
{
	struct sync_file *sync_file;
	struct exported *export;
	int ret, error;

	export = export_create(stream, position);
	if (!export)
		return ERR_PTR(-ENOMEM);
	sync_file = sync_file_create(&export->base);
	if (!sync_file) {
		ret = -ENOMEM;
		goto out;
	}
	ret = export_enter(stream, export, &error);
	if (ret > 0)
		export_signal(export, error);
	if (ret < 0)
		fput(sync_file->file);
out:
	dma_fence_put(&export->base);
	return ret < 0 ? ERR_PTR(ret) : sync_file->file;
}

/* --- imported fences ------------------------------------------------------- */

static void step_destroy(struct step *step)
{
	dma_fence_put(step->fence);
	accmem_stream_put(step->stream);
	kfree(step);
	module_put(THIS_MODULE);
}

static struct step *step_create(struct accmem_stream *stream,
				struct dma_fence *fence, u64 position)
{
	struct step *step = kzalloc(sizeof(*step), GFP_KERNEL_ACCOUNT);

	if (!step)
		return NULL;
	__module_get(THIS_MODULE);
	accmem_stream_get(stream);
	step->stream = stream;
	step->fence = fence;
	step->position = position;
	INIT_LIST_HEAD(&step->link);
	return step;
}

static void step_finish(struct step *step)
{
	step->error = step->fence->error;
	/* pairs with smp_load_acquire() in step_take_done() */
	smp_store_release(&step->done, true);
}

/*
 * Callback of a step: runs in any context, with the fence's lock held. The work can
 * free the step as soon as step_finish() has marked the step done.
 */
static void step_signaled(struct dma_fence *fence, struct dma_fence_cb *cb)
{
	struct step *step = container_of(cb, struct step, cb);
	struct accmem_stream *stream = step->stream;

	accmem_stream_get(stream);
	step_finish(step);
	if (!queue_work(stream_wq, &stream->work))
		accmem_stream_put(stream);
}

/*
 * Add the callback of a step. Return false if the fence has signalled already. If true
 * is returned, the step may have been freed.
 */
static bool step_watch(struct step *step)
{
	return !dma_fence_add_callback(step->fence, &step->cb, step_signaled);
}

/*
 * Claim the position of a step and add the step to the stream. If *@watch is true, the
 * caller adds the callback; until then the step is not freed. If *@watch is false, the
 * work can free the step at any time.
 */
static int step_enter(struct step *step, bool *watch)
{
	struct accmem_stream *stream = step->stream;
	int err = 0;

	spin_lock(&stream->lock);
	if (stream->ended) {
		err = -ECANCELED;
	} else if (step->position <= stream->claimed) {
		err = -ERANGE;
	} else {
		stream->claimed = step->position;
		step->watched = list_empty(&stream->steps);
		*watch = step->watched;
		list_add_tail(&step->link, &stream->steps);
	}
	spin_unlock(&stream->lock);
	return err;
}

/**
 * accmem_sync_file_fence() - get the fence of a sync_file
 * @fd: file descriptor of the sync_file
 *
 * Context: Process context. May sleep.
 * Return: the fence, with a reference; -EBADF when @fd is not open; -EINVAL when @fd is
 * not a sync_file.
 */
struct dma_fence *accmem_sync_file_fence(int fd)
{
	struct dma_fence *fence = sync_file_get_fence(fd);
	struct file *file;

	if (fence)
		return fence;
	file = fget(fd);
	if (!file)
		return ERR_PTR(-EBADF);
	fput(file);
	return ERR_PTR(-EINVAL);
}

/**
 * accmem_stream_import() - claim a position that is reached when a fence signals
 * @stream: the stream
 * @position: the position
 * @fd: file descriptor of a sync_file with the fence
 *
 * Context: Process context. Takes and releases stream->lock. May sleep.
 * Return: 0; -EBADF when @fd is not open; -EINVAL when @fd is not a sync_file; -ERANGE
 * when @position is not greater than the count and all claimed positions; -ECANCELED
 * when the stream has ended; -ENOMEM.
 */
int accmem_stream_import(struct accmem_stream *stream, u64 position, int fd)
{
	struct dma_fence *fence = accmem_sync_file_fence(fd);
	bool watch, signaled;
	struct step *step;
	int err;

	if (IS_ERR(fence))
		return PTR_ERR(fence);
	step = step_create(stream, fence, position);
	if (!step) {
		dma_fence_put(fence);
		return -ENOMEM;
	}
	signaled = dma_fence_is_signaled(fence);
	err = step_enter(step, &watch);
	if (err) {
		step_destroy(step);
		return err;
	}
	/* The fence signaled before the callback was added: call the callback. */
	if (watch && !step_watch(step)) {
		step_signaled(fence, &step->cb);
		signaled = true;
	}
	/*
	 * The work that completes this step or the steps before it may be queued.
	 * Wait for the work, so that userspace finds the position reached if the
	 * fences of all steps up to this step have signaled.
	 */
	if (signaled)
		flush_work(&stream->work);
	return 0;
}

/* --- the work ------------------------------------------------------------- */

/*
 * Advance the count over a batch of completed steps and move the steps to @done. Return
 * true if there may be more completed steps.
 */
static bool step_take_done(struct accmem_stream *stream, struct list_head *done)
{
	struct step *step, *next;
	unsigned int nr = 0;

	spin_lock(&stream->lock);
	list_for_each_entry_safe(step, next, &stream->steps, link) {
		/* pairs with smp_store_release() in step_finish() */
		if (nr == STEP_BATCH || !smp_load_acquire(&step->done))
			break;
		if (step->error && !stream->error) {
			stream->error = step->error;
			stream->error_above = stream->reached;
		}
		WRITE_ONCE(stream->reached, step->position);
		list_move_tail(&step->link, done);
		nr++;
	}
	spin_unlock(&stream->lock);
	return nr == STEP_BATCH;
}

/*
 * Return the first step if it has no callback yet, and mark it as watched; otherwise
 * return NULL.
 */
static struct step *step_next_to_watch(struct accmem_stream *stream)
{
	struct step *step;

	spin_lock(&stream->lock);
	step = list_first_entry_or_null(&stream->steps, struct step, link);
	if (step && step->watched)
		step = NULL;
	if (step)
		step->watched = true;
	spin_unlock(&stream->lock);
	return step;
}

/*
 * Add the callback of the step that is now the first. Return true if the fence of the
 * step has signalled already, so that the step is complete.
 */
static bool step_watch_next(struct accmem_stream *stream)
{
	struct step *step = step_next_to_watch(stream);

	if (!step || step_watch(step))
		return false;
	step_finish(step);
	return true;
}

/*
 * Advance the count and signal the exported fences of the reached positions. This is a
 * fence-signalling critical section, because other drivers may wait for these fences.
 */
static void stream_signal_exports(struct accmem_stream *stream,
				  struct list_head *done)
{
	bool cookie = dma_fence_begin_signalling();
	struct exported *export;
	bool more;
	int error;

	do {
		more = step_take_done(stream, done) || step_watch_next(stream);
		while ((export = export_next_reached(stream, &error))) {
			export_signal(export, error);
			dma_fence_put(&export->base);
			/* the number of exported fences has no limit */
			cond_resched();
		}
		cond_resched();
	} while (more);
	dma_fence_end_signalling(cookie);
}

/**
 * accmem_stream_work() - reach the positions of imported fences that have signalled
 * @work: work of the stream; holds a reference to the stream, which is dropped here
 *
 * Context: Process context. Takes and releases stream->lock. May sleep.
 */
void accmem_stream_work(struct work_struct *work)
{
	struct accmem_stream *stream =
		container_of(work, struct accmem_stream, work);
	struct accmem_due *due = stream->due;
	struct step *step, *next;
	LIST_HEAD(done);

	stream_signal_exports(stream, &done);
	if (!list_empty(&done)) {
		/* lockless read: the trace may show a later count as well */
		trace_accmem_stream_reach(stream, READ_ONCE(stream->reached));
		accmem_stream_flush(stream, &due->list);
		queue_work(accmem_wq, &due->work);
	}
	list_for_each_entry_safe(step, next, &done, link) {
		step_destroy(step);
		cond_resched();
	}
	accmem_stream_put(stream);
}

int accmem_stream_init(void)
{
	stream_wq = alloc_workqueue("accmem-stream",
				    WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return stream_wq ? 0 : -ENOMEM;
}

void accmem_stream_exit(void)
{
	destroy_workqueue(stream_wq);
}
