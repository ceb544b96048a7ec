// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC that waits: in its caller, until its turn has come and there is memory.
 *
 * A request that finds none, or that comes while others wait, queues itself
 * (waiters.c) and sleeps. When it is woken it tries as any request does; it leaves the
 * queue with its memory, or sleeps on in its place. What has come back wins over a
 * signal or a deadline at the same time: who was woken tries first.
 *
 * Where a signal has the call made again, the waiter stays behind in its place, and is
 * found by the call that follows, or forgotten a second later.
 *
 * Locks: none.
 */
#include <linux/capability.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "context.h"
#include "restart.h"
#include "waiters.h"

static bool wait_is_over(u64 deadline_ns)
{
	return deadline_ns && deadline_ns <= ktime_get_ns();
}

/* can it be waited for at all? */
static bool wait_may_help(const struct accmem_buffer *buf)
{
	return buf == ERR_PTR(-ENOSPC) || buf == ERR_PTR(-EDQUOT);
}

/* the least that a request will be charged */
static u64 wait_charge(struct accmem_context *ctx,
		       const struct accmem_layout *layout)
{
	/* it may lie in pages that are charged already */
	if (layout->small || atomic64_read(&ctx->account->bytes))
		return 0;
	return accmem_context_carveout(ctx)->owners ?
		       round_up(layout->footprint, ACCMEM_FOLIO) :
		       layout->footprint;
}

/* an error where no memory and no charge that comes back would be enough */
static int wait_check_possible(struct accmem_context *ctx,
			       const struct accmem_layout *layout)
{
	u64 charge = max(wait_charge(ctx, layout), layout->footprint);

	if (layout->footprint > accmem_context_carveout(ctx)->capacity)
		return -ENOSPC;
	return accmem_charge_is_too_much(charge, capable(CAP_SYS_RESOURCE)) ?
		       -EDQUOT :
		       0;
}

/* 0 when it was woken to try, else why the wait is to be given up */
static int wait_until_woken(const struct accmem_waiter *w)
{
	u64 deadline_ns = w->req.deadline_ns;
	int err = 0;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (READ_ONCE(w->woken)) {
			err = 0;
			break;
		}
		if (err)
			break;
		if (signal_pending(current)) {
			err = -ERESTARTSYS;
			break;
		}
		if (!deadline_ns)
			schedule();
		else if (!accmem_sleep_until(deadline_ns))
			err = -ETIMEDOUT;
	}
	__set_current_state(TASK_RUNNING);
	return err;
}

/*
 * Sleeps until it is to try. Returns 0 then; else the waiter has left its place, or
 * stays in it without its caller.
 */
static int wait_sleep(struct accmem_waiter *w)
{
	bool restarts;
	int err;

	err = wait_until_woken(w);
	if (!err)
		return 0;
	restarts = err == -ERESTARTSYS && accmem_will_restart();
	if (!accmem_waiters_give_up(w, err, restarts))
		return 0;
	if (!restarts)
		kfree(w);
	return err;
}

/* the waiter sleeps, or is to try */
static struct accmem_buffer *wait_run(struct accmem_context *ctx,
				      struct accmem_waiter *w,
				      const struct accmem_layout *layout,
				      struct accmem_stream *stream)
{
	struct accmem_buffer *buf;
	int err;

	for (;;) {
		err = wait_sleep(w);
		if (err)
			return ERR_PTR(err);
		accmem_waiters_begin(w);
		buf = accmem_alloc_try(ctx, &w->req, stream);
		err = PTR_ERR_OR_ZERO(buf);
		if (wait_may_help(buf))
			err = wait_check_possible(ctx, layout);
		if (!wait_may_help(buf) || err) {
			accmem_waiters_leave(w, err);
			kfree(w);
			return err ? ERR_PTR(err) : buf;
		}
		accmem_waiters_sleep(w, buf == ERR_PTR(-EDQUOT));
		if (buf == ERR_PTR(-ENOSPC))
			accmem_shrink_tell(ctx);
	}
}

/* a waiter that is queued, and to try unless @defer says that others do first */
static struct accmem_waiter *wait_begin(struct accmem_context *ctx,
					const struct accmem_alloc *req,
					const struct accmem_layout *layout,
					bool defer)
{
	struct accmem_carveout *cv = accmem_context_carveout(ctx);
	struct accmem_waiter *w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);
	bool identity = cv->translation == ACCMEM_TRANSLATION_IDENTITY;
	u64 need;
	int err;

	if (!w)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&w->link);
	w->cv = cv;
	w->ctx = ctx;
	w->account = ctx->account;
	w->req = *req;
	w->small = layout->small;
	w->contiguous = identity || req->flags & ACCMEM_ALLOC_CONTIGUOUS;
	w->piece = identity && req->flags & ACCMEM_ALLOC_FIXED;
	w->start = req->address - ctx->dev->address_base;
	w->exempt = capable(CAP_SYS_RESOURCE);
	w->charge = wait_charge(ctx, layout);
	need = max_t(u64, layout->footprint, ACCMEM_GRANULE);
	err = accmem_waiters_enter(w, need, defer);
	if (err) {
		kfree(w);
		return ERR_PTR(err);
	}
	/* nothing is kept from here on: what is there has been before */
	accmem_reclaim_drain(&ctx->dev->accounts);
	accmem_reclaim_drain(&ctx->account->user->accounts);
	if (defer)
		accmem_shrink_tell(ctx);
	return w;
}

/* the one try of a request whose deadline has passed */
static struct accmem_buffer *wait_try_once(struct accmem_context *ctx,
					   const struct accmem_alloc *req,
					   struct accmem_stream *stream)
{
	struct accmem_buffer *buf = accmem_alloc_try(ctx, req, stream);

	if (!IS_ERR(buf))
		accmem_waiters_pass(accmem_context_carveout(ctx));
	return wait_may_help(buf) ? ERR_PTR(-ETIMEDOUT) : buf;
}

static struct accmem_buffer *wait_queue_up(struct accmem_context *ctx,
					   const struct accmem_alloc *req,
					   const struct accmem_layout *layout,
					   struct accmem_stream *stream)
{
	struct accmem_carveout *cv = accmem_context_carveout(ctx);
	/* who comes at the same moment may be first as well */
	bool defer = data_race(cv->waiters.queue.nr_short);
	struct accmem_buffer *buf;
	struct accmem_waiter *w;

	if (!defer) {
		buf = accmem_alloc_try(ctx, req, stream);
		if (!wait_may_help(buf))
			return buf;
	}
	w = wait_begin(ctx, req, layout, defer);
	return IS_ERR(w) ? ERR_CAST(w) : wait_run(ctx, w, layout, stream);
}

/**
 * accmem_alloc_wait() - allocate a buffer, and wait for memory if there is none
 * @ctx: the context
 * @req: the request, with ACCMEM_ALLOC_WAIT; other fields may hold anything
 * @stream: as for accmem_alloc()
 *
 * Return: as accmem_alloc(); also -ETIMEDOUT, -EAGAIN, -ERESTARTSYS.
 */
struct accmem_buffer *accmem_alloc_wait(struct accmem_context *ctx,
					const struct accmem_alloc *req,
					struct accmem_stream *stream)
{
	struct accmem_layout layout;
	struct accmem_buffer *buf;
	struct accmem_waiter *w = NULL;
	int err;

	err = accmem_alloc_need(ctx, req, &layout);
	if (!err)
		err = wait_check_possible(ctx, &layout);
	if (err == -ENOSPC)
		accmem_count_failure(accmem_context_carveout(ctx));
	if (err)
		return ERR_PTR(err == -ENOSPC ? -ENOMEM : err);
	if (accmem_waiters_present())
		w = accmem_waiters_resume(ctx, req);
	if (w)
		buf = wait_run(ctx, w, &layout, stream);
	else if (wait_is_over(req->deadline_ns))
		buf = wait_try_once(ctx, req, stream);
	else
		buf = wait_queue_up(ctx, req, &layout, stream);
	if (buf == ERR_PTR(-ENOSPC))
		buf = ERR_PTR(-ENOMEM);
	if (buf == ERR_PTR(-ENOMEM) || buf == ERR_PTR(-ETIMEDOUT))
		accmem_count_failure(accmem_context_carveout(ctx));
	return buf;
}
