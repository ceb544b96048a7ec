// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers: their life, from the request to the return of the memory.
 *
 * A buffer is held by its name, by the file behind each of its mappings, and
 * by calls at work on it. Its bytes are live while it has a name, and detached
 * from then on. When the last hold goes, its memory returns at once, unless
 * somebody (a pipe, O_DIRECT in flight, another driver) has pages of it still:
 * then it is quarantined, and looked at again until it has settled. Charges
 * stay until the memory is free.
 *
 * A quarantined buffer holds the module: its memory must not vanish.
 *
 * Freeing allocates nothing.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "accmem_drv.h"
#include "trace.h"

#define SETTLE_DELAY_MIN msecs_to_jiffies(10)
#define SETTLE_DELAY_FORCE msecs_to_jiffies(40)
#define SETTLE_DELAY_MAX msecs_to_jiffies(1000)

static void set_state(struct accmem_buffer *buf, enum accmem_state state)
{
	struct accmem_carveout *cv = buf->cv;

	lockdep_assert_held(&cv->lock);
	WRITE_ONCE(cv->bytes[buf->state],
		   cv->bytes[buf->state] - buf->layout.footprint);
	WRITE_ONCE(cv->bytes[state], cv->bytes[state] + buf->layout.footprint);
	buf->state = state;
}

static void free_buffer(struct accmem_buffer *buf)
{
	mutex_destroy(&buf->lock);
	if (buf->is_sheet)
		kfree(accmem_to_sheet(buf));
	else
		kfree(buf);
}

/* the memory, the charge and the structure; nobody refers to any of it */
static void destroy(struct accmem_buffer *buf)
{
	struct accmem_context *ctx = buf->ctx;

	if (buf->sheet) {
		trace_accmem_release(buf);
		accmem_sheet_give(buf);
		accmem_uncharge(ctx, buf->layout.footprint);
	} else {
		if (!buf->is_sheet)
			trace_accmem_release(buf);
		if (buf->cv->ops->release)
			buf->cv->ops->release(buf);
		accmem_space_give(buf);
		if (!buf->is_sheet)
			accmem_uncharge(ctx, buf->layout.footprint);
	}
	free_buffer(buf);
	accmem_context_put(ctx);
}

static void quarantine(struct accmem_buffer *buf)
{
	struct accmem_carveout *cv = buf->cv;

	/* never the first reference: a file of ours is being closed */
	__module_get(THIS_MODULE);
	accmem_carveout_lock(cv);
	set_state(buf, ACCMEM_QUARANTINED);
	if (list_empty(&cv->quarantine))
		WRITE_ONCE(cv->settle_delay, SETTLE_DELAY_MIN);
	list_add_tail(&buf->link, &cv->quarantine);
	accmem_carveout_unlock(cv);
	queue_delayed_work(accmem_wq, &cv->settle, SETTLE_DELAY_MIN);
}

static bool settled(struct accmem_buffer *buf, bool force)
{
	const struct accmem_backing_ops *ops = buf->cv->ops;

	/* the sheet stays in use, so its pages do not go */
	if (buf->sheet)
		return !READ_ONCE(buf->sheet->buf.mapped) || !ops->idle ||
		       ops->idle(&buf->sheet->buf, force);
	return !buf->mapped || !ops->settle || ops->settle(buf, force);
}

/**
 * accmem_buffer_finish() - give the memory of a buffer back, or quarantine it
 * @buf: the buffer, which nobody holds any more, and which is not mapped
 */
void accmem_buffer_finish(struct accmem_buffer *buf)
{
	if (settled(buf, false))
		destroy(buf);
	else
		quarantine(buf);
}

static void release_buffer(struct kref *refs)
{
	struct accmem_buffer *buf =
		container_of(refs, struct accmem_buffer, refs);

	if (!buf->sheet || !accmem_sheet_wait(buf))
		accmem_buffer_finish(buf);
}

void accmem_buffer_get(struct accmem_buffer *buf)
{
	kref_get(&buf->refs);
}

/**
 * accmem_buffer_put() - drop a hold on a buffer
 * @buf: the buffer
 *
 * The last one gives the memory back, or quarantines it. May sleep.
 */
void accmem_buffer_put(struct accmem_buffer *buf)
{
	kref_put(&buf->refs, release_buffer);
}

/**
 * accmem_buffer_detach() - a buffer has lost its name and is not kept
 * @buf: the buffer; the reference that was the name's goes with the call
 */
void accmem_buffer_detach(struct accmem_buffer *buf)
{
	struct accmem_carveout *cv = buf->cv;

	accmem_carveout_lock(cv);
	set_state(buf, ACCMEM_DETACHED);
	accmem_carveout_unlock(cv);
	accmem_buffer_put(buf);
}

/**
 * accmem_settle() - look at quarantined buffers again
 * @cv: the carveout
 * @force: find out at the price of page faults; before a failure
 * @most: buffers to look at; those that were not are the next ones
 *
 * Gives the memory of those back that have settled. A signal that kills ends the
 * wait for somebody else's pass.
 */
void accmem_settle(struct accmem_carveout *cv, bool force, unsigned int most)
{
	struct accmem_buffer *buf, *next;
	LIST_HEAD(todo);
	LIST_HEAD(seen);

	/* the common case; somebody else's pass is worth waiting for */
	if (!READ_ONCE(cv->bytes[ACCMEM_QUARANTINED]))
		return;
	if (mutex_lock_killable(&cv->settle_lock))
		return;
	cv->settle_pass = cv->settle_pass % U16_MAX + 1;
	accmem_carveout_lock(cv);
	list_splice_init(&cv->quarantine, &todo);
	accmem_carveout_unlock(cv);

	list_for_each_entry_safe(buf, next, &todo, link) {
		if (!most--)
			break;
		if (settled(buf, force)) {
			list_del_init(&buf->link);
			destroy(buf);
			module_put(THIS_MODULE);
		} else {
			list_move_tail(&buf->link, &seen);
		}
		cond_resched();
	}

	accmem_carveout_lock(cv);
	list_splice(&todo, &cv->quarantine);
	list_splice_tail(&seen, &cv->quarantine);
	accmem_carveout_unlock(cv);
	mutex_unlock(&cv->settle_lock);
}

/**
 * accmem_settle_work() - look at quarantined buffers from time to time
 * @work: accmem_carveout.settle
 */
void accmem_settle_work(struct work_struct *work)
{
	struct accmem_carveout *cv =
		container_of(work, struct accmem_carveout, settle.work);
	unsigned long delay = 0;

	/* what stays is pinned, or hidden by neighbours' mappings: find out */
	accmem_settle(cv, READ_ONCE(cv->settle_delay) > SETTLE_DELAY_FORCE,
		      UINT_MAX);
	accmem_carveout_lock(cv);
	/* not the list: a pass at this moment has it in its hands */
	if (cv->bytes[ACCMEM_QUARANTINED]) {
		delay = cv->settle_delay;
		WRITE_ONCE(cv->settle_delay, min(2 * delay, SETTLE_DELAY_MAX));
	}
	accmem_carveout_unlock(cv);
	if (delay)
		queue_delayed_work(accmem_wq, &cv->settle, delay);
}

/**
 * accmem_buffer_init() - fill in what every buffer has
 * @buf: zeroed
 * @ctx: its context, of which it takes a reference
 * @cache_mode: enum accmem_cache_mode
 */
void accmem_buffer_init(struct accmem_buffer *buf, struct accmem_context *ctx,
			u32 cache_mode)
{
	kref_init(&buf->refs);
	kref_get(&ctx->refs);
	buf->ctx = ctx;
	buf->cv = accmem_context_carveout(ctx);
	buf->cache_mode = cache_mode;
	INIT_LIST_HEAD(&buf->link);
	mutex_init(&buf->lock);
	xa_init_flags(&buf->pages, XA_FLAGS_ACCOUNT);
}

static struct accmem_buffer *new_buffer(struct accmem_context *ctx,
					const struct accmem_alloc *req)
{
	struct accmem_buffer *buf;

	buf = kzalloc(sizeof(*buf), GFP_KERNEL_ACCOUNT);
	if (!buf)
		return NULL;
	accmem_buffer_init(buf, ctx, req->cache_mode);
	buf->length = req->length;
	buf->flags = req->flags;
	buf->page_policy = req->page_policy;
	return buf;
}

/* kept and quarantined memory is charged: see first whether it can go */
static int charge(struct accmem_buffer *buf)
{
	int err = accmem_charge(buf->ctx, buf->layout.footprint);

	if (err == -EDQUOT) {
		accmem_user_drain(buf->ctx->user);
		accmem_settle(buf->cv, true, UINT_MAX);
		err = accmem_charge(buf->ctx, buf->layout.footprint);
	}
	return err;
}

/* layout, charge and memory, for one page policy */
static int take(struct accmem_buffer *buf, u64 alignment, u32 page_policy)
{
	struct accmem_layout_request req = {
		.length = buf->length,
		.alignment = alignment,
		.page_policy = page_policy,
		.flags = buf->flags,
	};
	int err;

	err = accmem_layout(&req, &buf->cv->caps, &buf->layout);
	if (err)
		return err;
	err = charge(buf);
	if (err)
		return err;
	err = buf->layout.small ? accmem_sheet_take(buf) :
				  accmem_space_take(buf);
	if (err)
		accmem_uncharge(buf->ctx, buf->layout.footprint);
	return err;
}

static void count_failure(struct accmem_carveout *cv)
{
	accmem_carveout_lock(cv);
	cv->failures++;
	accmem_carveout_unlock(cv);
}

/**
 * accmem_buffer_create() - allocate a buffer that has no name yet
 * @ctx: the context
 * @req: the request; flags, cache mode and carveout were checked
 *
 * Return: the buffer, with a reference that accmem_context_name() turns into
 * the name's; or an error of ACCMEM_IOC_ALLOC.
 */
struct accmem_buffer *accmem_buffer_create(struct accmem_context *ctx,
					   const struct accmem_alloc *req)
{
	struct accmem_buffer *buf;
	int err;

	buf = accmem_stash_take(ctx, req);
	if (buf)
		return buf;
	buf = new_buffer(ctx, req);
	if (!buf)
		return ERR_PTR(-ENOMEM);
	err = take(buf, req->alignment, req->page_policy);
	if (err == -ENOMEM && buf->layout.may_fall_back)
		err = take(buf, req->alignment, ACCMEM_PAGE_NORMAL_ONLY);
	if (err)
		goto err_free;
	err = buf->sheet ? accmem_sheet_prepare(buf) :
			   buf->cv->ops->prepare(buf);
	if (err) {
		accmem_buffer_put(buf);
		goto err_count;
	}
	return buf;

err_free:
	free_buffer(buf);
	accmem_context_put(ctx);
err_count:
	if (err == -ENOMEM)
		count_failure(accmem_context_carveout(ctx));
	return ERR_PTR(err);
}
