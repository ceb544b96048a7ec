// SPDX-License-Identifier: GPL-2.0
/*
 * Imported fences: the steps of a stream.
 *
 * A step is an imported fence with the position that it claims. The stream reaches the
 * position when the fence signals. Positions that one fence claims in succession are one
 * step. Each step is charged to the user of the stream: it can outlive the stream's file,
 * and holds references to the stream and to the module.
 *
 * A fence signals in any context, with its lock held, so the callback of a step only
 * queues the work of the stream. The work advances the count, signals exported fences
 * and collects reached frees: no fence signals inside the callback of another fence.
 * Steps complete in order, so only the first step of a stream has a callback. Other
 * drivers may wait for exported fences: before the fences signal, the work may not
 * allocate. stream->lock protects steps. No fence function is called under stream->lock.
 */
#include <linux/file.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sync_file.h>

#include "compat/compat.h"
#include "core/account.h"
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

static void step_destroy(struct step *step)
{
	dma_fence_put(step->fence);
	accmem_uncharge_fence(step->stream->user);
	accmem_stream_put(step->stream);
	kfree(step);
	module_put(THIS_MODULE);
}

/* Create a step with the caller's reference to @fence, which is dropped on failure. */
static struct step *step_create(struct accmem_stream *stream,
				struct dma_fence *fence, u64 position)
{
	int err = accmem_charge_fence(stream->user);
	struct step *step;

	if (err)
		goto err_fence;
	step = kzalloc(sizeof(*step), GFP_KERNEL_ACCOUNT);
	if (!step) {
		err = -ENOMEM;
		goto err_charge;
	}
	__module_get(THIS_MODULE);
	accmem_stream_get(stream);
	step->stream = stream;
	step->fence = fence;
	step->position = position;
	INIT_LIST_HEAD(&step->link);
	return step;

err_charge:
	accmem_uncharge_fence(stream->user);
err_fence:
	dma_fence_put(fence);
	return ERR_PTR(err);
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

/* Check whether a stream accepts a claim of a position. */
static int stream_check_claim(const struct accmem_stream *stream, u64 position)
{
	lockdep_assert_held(&stream->lock);
	if (stream->ended)
		return -ECANCELED;
	return position <= stream->claimed ? -ERANGE : 0;
}

/*
 * Claim a position for the last step of the stream, if that waits for the same fence:
 * both positions are reached together. Return false if it waits for another fence.
 */
static bool step_extend(struct accmem_stream *stream, struct dma_fence *fence,
			u64 position)
{
	struct step *last = NULL;

	spin_lock(&stream->lock);
	if (!list_empty(&stream->steps) &&
	    !stream_check_claim(stream, position))
		last = list_last_entry(&stream->steps, struct step, link);
	if (last && last->fence != fence)
		last = NULL;
	if (last) {
		last->position = position;
		stream->claimed = position;
	}
	spin_unlock(&stream->lock);
	return last;
}

/*
 * Claim the position of a step and add the step to the stream. If *@watch is true, the
 * caller adds the callback; until then the step is not freed. If *@watch is false, the
 * work can free the step at any time.
 */
static int step_enter(struct step *step, bool *watch)
{
	struct accmem_stream *stream = step->stream;
	int err;

	spin_lock(&stream->lock);
	err = stream_check_claim(stream, step->position);
	if (!err) {
		stream->claimed = step->position;
		step->watched = list_empty(&stream->steps);
		*watch = step->watched;
		list_add_tail(&step->link, &stream->steps);
	}
	spin_unlock(&stream->lock);
	return err;
}

/*
 * Add a step to the stream, with the caller's reference to @fence. Set *@signaled if
 * the fence has signalled meanwhile.
 */
static int step_add(struct accmem_stream *stream, struct dma_fence *fence,
		    u64 position, bool *signaled)
{
	struct step *step = step_create(stream, fence, position);
	bool watch;
	int err;

	if (IS_ERR(step))
		return PTR_ERR(step);
	err = step_enter(step, &watch);
	if (err) {
		step_destroy(step);
		return err;
	}
	/* The fence signaled before the callback was added: call the callback. */
	if (watch && !step_watch(step)) {
		step_signaled(fence, &step->cb);
		*signaled = true;
	}
	return 0;
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
 * when the stream has ended; -EDQUOT when the user has the highest permitted number of
 * fences; -ENOMEM.
 */
int accmem_stream_import(struct accmem_stream *stream, u64 position, int fd)
{
	struct dma_fence *fence = accmem_sync_file_fence(fd);
	bool signaled;
	int err = 0;

	if (IS_ERR(fence))
		return PTR_ERR(fence);
	signaled = dma_fence_is_signaled(fence);
	if (step_extend(stream, fence, position))
		dma_fence_put(fence);
	else
		err = step_add(stream, fence, position, &signaled);
	if (err)
		return err;
	/*
	 * The work that completes this step or the steps before it may be queued.
	 * Wait for the work, so that userspace finds the position reached if the
	 * fences of all steps up to this step have signaled.
	 */
	if (signaled)
		flush_work(&stream->work);
	return 0;
}

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
		accmem_stream_reach(stream, step->position);
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
	bool more;

	do {
		more = step_take_done(stream, done) || step_watch_next(stream);
		accmem_exports_signal(stream);
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
