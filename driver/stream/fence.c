// SPDX-License-Identifier: GPL-2.0
/*
 * Fences of streams: what the kernel reaches, and what it tells others.
 *
 * Owns steps, imported fences that reach a position, and exported fences of such
 * positions. A fence is signalled in any context, with its lock held: the
 * callback of a step does no more than queue the stream's work, which reaches
 * the positions, signals what was exported of them and hands on the frees. So no
 * fence is signalled inside of another, however long a chain of streams is. Steps come
 * in order, so only the first of a stream has a callback: however often a fence is
 * imported, it calls a stream once.
 * Others may wait for what is exported: until it is signalled, the work takes
 * spinlocks and allocates nothing.
 *
 * Steps and exported fences outlive every file, and hold the module.
 *
 * Locks: accmem_stream.lock; no function of a fence is called under it.
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

#define STEP_BATCH 64u /* steps done in one hold of the lock */

static struct workqueue_struct *stream_wq; /* may not wait for memory */

/**
 * struct step - an imported fence
 * @stream: the stream, with a reference
 * @fence: the fence, with a reference
 * @cb: its callback
 * @position: what the count becomes
 * @watched: it is the first, and has a callback, or is about to; guarded by the
 *	stream's lock
 * @error: of the fence; valid when @done
 * @done: the fence has signalled
 * @link: in accmem_stream.steps, or in a list of steps that are done
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
 * struct exported - a fence of a position
 * @base: the fence
 * @lock: its lock
 * @node: in accmem_stream.exports, which has a reference, until it is signalled
 * @name: of the timeline
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

/* accmem_exit() waits for these: the module is in use until it returns */
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
	/* never the first reference: a file of ours is in use */
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

/* the next one whose position has been reached, with its reference, or NULL */
static struct exported *export_next_reached(struct accmem_stream *stream,
					    int *error)
{
	struct exported *export;

	spin_lock(&stream->lock);
	export = to_export(rb_first_cached(&stream->exports));
	if (export && export->base.seqno <= stream->reached)
		rb_erase_cached(&export->node, &stream->exports);
	else
		export = NULL;
	*error = stream->error;
	spin_unlock(&stream->lock);
	return export;
}

/* 0 when the position will be, or 1 when it has been reached; or -EPERM */
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
	*error = stream->error;
	spin_unlock(&stream->lock);
	return ret;
}

/**
 * accmem_stream_export() - make a sync_file of a position
 * @stream: the stream
 * @position: reached or claimed
 *
 * Return: the sync_file's file; -EPERM, -ENOMEM.
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

/* With the fence's lock held, in any context. The step may go at once. */
static void step_signalled(struct dma_fence *fence, struct dma_fence_cb *cb)
{
	struct step *step = container_of(cb, struct step, cb);
	struct accmem_stream *stream = step->stream;

	accmem_stream_get(stream);
	step_finish(step);
	if (!queue_work(stream_wq, &stream->work))
		accmem_stream_put(stream);
}

/* false if the fence has signalled; else the step may go at once */
static bool step_watch(struct step *step)
{
	return !dma_fence_add_callback(step->fence, &step->cb, step_signalled);
}

/* its position is claimed from here on; it is for the caller to @watch, or may go */
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
 * accmem_sync_file_fence() - the fence of a sync_file
 * @fd: its descriptor
 *
 * Return: the fence, with a reference; -EBADF, -EINVAL.
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
 * accmem_stream_import() - have the kernel reach a position after a fence
 * @stream: the stream
 * @position: the position
 * @fd: the fence's sync_file
 *
 * Return: 0; -EBADF, -EINVAL, -ERANGE, -ECANCELED, -ENOMEM.
 */
int accmem_stream_import(struct accmem_stream *stream, u64 position, int fd)
{
	struct dma_fence *fence = accmem_sync_file_fence(fd);
	bool watch, signalled;
	struct step *step;
	int err;

	if (IS_ERR(fence))
		return PTR_ERR(fence);
	step = step_create(stream, fence, position);
	if (!step) {
		dma_fence_put(fence);
		return -ENOMEM;
	}
	signalled = dma_fence_is_signaled(fence);
	err = step_enter(step, &watch);
	if (err) {
		step_destroy(step);
		return err;
	}
	/* it may have signalled already: as if it did now */
	if (watch && !step_watch(step)) {
		step_signalled(fence, &step->cb);
		signalled = true;
	}
	/* those before it may be on their way */
	if (signalled)
		flush_work(&stream->work);
	return 0;
}

/* --- the work ------------------------------------------------------------- */

/* some of the steps that are done; false when those were all */
static bool step_take_done(struct accmem_stream *stream, struct list_head *done)
{
	struct step *step, *next;
	unsigned int nr = 0;

	spin_lock(&stream->lock);
	list_for_each_entry_safe(step, next, &stream->steps, link) {
		/* pairs with smp_store_release() in step_signalled() */
		if (nr == STEP_BATCH || !smp_load_acquire(&step->done))
			break;
		WRITE_ONCE(stream->reached, step->position);
		if (step->error && !stream->error)
			stream->error = step->error;
		list_move_tail(&step->link, done);
		nr++;
	}
	spin_unlock(&stream->lock);
	return nr == STEP_BATCH;
}

/* the first step, if nobody watches its fence yet */
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

/* those before it are done: true if the next step is done already */
static bool step_watch_next(struct accmem_stream *stream)
{
	struct step *step = step_next_to_watch(stream);

	if (!step || step_watch(step))
		return false;
	step_finish(step);
	return true;
}

/* A critical section: others may wait for what is signalled here. */
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
			/* there is no limit to how many a process exports */
			cond_resched();
		}
		cond_resched();
	} while (more);
	dma_fence_end_signalling(cookie);
}

/**
 * accmem_stream_work() - reach what imported fences have come to
 * @work: the stream's; a reference to the stream goes with it
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
