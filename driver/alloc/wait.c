// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC that waits: in its caller, until its turn has come and there is memory.
 *
 * A request that finds none, or that comes while others wait, queues itself
 * (waiters.c) and sleeps. When it is woken it tries as any request does; it leaves the
 * queue with its memory, or sleeps on in its place. What has come back wins over a
 * signal or a deadline at the same time: who was woken tries first. But who is woken
 * again before it slept has had its try: where others keep giving back, it would never
 * look at either.
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

#include "alloc/alloc.h"
#include "alloc/wait.h"
#include "core/sleep.h"
#include "internal.h"
#include "memory/bo.h"
#include "vm/buffer.h"
#include "waitq/demand.h"
#include "waitq/waiters.h"

static bool wait_is_over(u64 deadline_ns)
{
	return deadline_ns && deadline_ns <= ktime_get_ns();
}

/* can it be waited for at all? */
static bool wait_may_help(const struct accmem_buffer *buf)
{
	return buf == ERR_PTR(-ENOSPC) || buf == ERR_PTR(-EDQUOT);
}

static u64 wait_charge(const struct accmem_carveout *cv,
		       const struct accmem_layout *layout)
{
	return cv->owners ? round_up(layout->footprint, ACCMEM_FOLIO) :
			    layout->footprint;
}

static void wait_add_demand(struct accmem_demand *p,
			    const struct accmem_carveout *cv,
			    const struct accmem_layout *layout)
{
	u64 charge = wait_charge(cv, layout);
	bool first = !p->carveouts;

	p->carveouts |= BIT(cv->index);
	p->footprint = first ? layout->footprint :
			       min(p->footprint, layout->footprint);
	p->charge = first ? charge : min(p->charge, charge);
	p->owned |= !!cv->owners;
	p->small |= layout->small;
}

/* as accmem_alloc_min_layout(); an address that others have does not come back by itself */
static int wait_need(struct accmem_context *ctx,
		     const struct accmem_carveout *cv,
		     const struct accmem_alloc *req,
		     struct accmem_layout *layout)
{
	int err = accmem_alloc_min_layout(cv, req, layout);

	if (!err && req->flags & ACCMEM_ALLOC_FIXED)
		err = accmem_alloc_check_fixed(ctx, cv, req, layout);
	return err == -EADDRNOTAVAIL ? 0 : err;
}

/* an error where no memory that comes back would be enough */
static int wait_check_demand(struct accmem_context *ctx,
			     const struct accmem_alloc *req,
			     struct accmem_demand *p)
{
	u32 carveouts = accmem_alloc_carveouts(ctx, req);
	int err = accmem_alloc_check(ctx, req), in_vain = -EOPNOTSUPP;
	struct accmem_layout layout;
	struct accmem_carveout *cv;

	*p = (struct accmem_demand){};
	if (err)
		return err;
	accmem_for_each_carveout(cv, ctx->carveouts)
	{
		if (!(carveouts & BIT(cv->index)))
			continue;
		err = wait_need(ctx, cv, req, &layout);
		if (err && err != -EOPNOTSUPP && err != -ENOSPC)
			return err;
		if (err != -EOPNOTSUPP)
			in_vain = -ENOSPC;
		if (!err && layout.footprint <= cv->capacity)
			wait_add_demand(p, cv, &layout);
	}
	if (req->kind == ACCMEM_KIND_SHARED)
		p->other_side = p->footprint;
	return p->carveouts ? 0 : in_vain;
}

/* an error where no charge that sinks would be enough */
static int wait_check_limits(struct accmem_context *ctx,
			     const struct accmem_demand *p)
{
	return accmem_demand_exceeds_limits(p, ctx->account,
					    capable(CAP_SYS_RESOURCE)) ?
		       -EDQUOT :
		       0;
}

/* why a wait is to be given up, or 0 */
static int wait_is_to_end(const struct accmem_waiter *w)
{
	if (signal_pending(current))
		return -ERESTARTSYS;
	return wait_is_over(w->req.deadline_ns) ? -ETIMEDOUT : 0;
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

static void wait_drop_handoff(struct accmem_bo *bo)
{
	if (bo)
		accmem_bo_destroy_empty(bo);
}

static void wait_free(struct accmem_waiter *w)
{
	wait_drop_handoff(w->handoff.bo);
	kfree(w);
}

/*
 * Sleeps until it is to try, which it has if @tried. Returns 0 then; else the waiter
 * has left its place, or stays in it without its caller.
 */
static int wait_sleep(struct accmem_waiter *w, bool tried)
{
	struct accmem_bo *empty = w->handoff.bo;
	int err = tried ? wait_is_to_end(w) : 0;
	bool restarts, has_tried = err;

	if (!err)
		err = wait_until_woken(w);
	if (!err)
		return 0;
	restarts = err == -ERESTARTSYS && accmem_syscall_restarts();
	if (!accmem_waiters_cancel(w, err, restarts, has_tried))
		return 0;
	if (restarts)
		wait_drop_handoff(empty);
	else
		wait_free(w);
	return err;
}

/* what was handed over becomes its buffer */
static struct accmem_buffer *wait_accept(struct accmem_context *ctx,
					 struct accmem_waiter *w)
{
	struct accmem_bo *bo = w->handoff.bo;

	w->handoff.bo = NULL;
	return accmem_buffer_adopt(ctx, bo, &w->req, &w->handoff.layout,
				   w->handoff.dirty);
}

/* with what it was given, or as any request does */
static struct accmem_buffer *wait_try(struct accmem_context *ctx,
				      struct accmem_waiter *w,
				      struct accmem_stream *stream)
{
	struct accmem_buffer *buf;

	if (accmem_waiters_start_try(w)) {
		buf = wait_accept(ctx, w);
		if (buf != ERR_PTR(-EADDRNOTAVAIL))
			return buf;
		/* a try finds addresses that are free but hidden */
		accmem_waiters_start_try(w);
	}
	return accmem_alloc_try(ctx, &w->req, stream);
}

/* the waiter sleeps, or is to try */
static struct accmem_buffer *wait_run(struct accmem_context *ctx,
				      struct accmem_waiter *w,
				      struct accmem_stream *stream)
{
	struct accmem_buffer *buf;
	bool tried = false;
	int err;

	for (;;) {
		err = wait_sleep(w, tried);
		if (err)
			return ERR_PTR(err);
		buf = wait_try(ctx, w, stream);
		err = PTR_ERR_OR_ZERO(buf);
		if (wait_may_help(buf))
			err = wait_check_limits(ctx, &w->demand);
		if (!wait_may_help(buf) || err) {
			accmem_waiters_leave(w, err);
			wait_free(w);
			return err ? ERR_PTR(err) : buf;
		}
		tried = true;
		if (accmem_waiters_sleep(w, buf == ERR_PTR(-EDQUOT)))
			accmem_pressure_notify(ctx);
	}
}

/* Without it, it tries as any request does. */
static void wait_make_handoff(struct accmem_waiter *w)
{
	w->handoff.carveouts = accmem_alloc_handoff_layout(w->ctx, &w->req,
							   w->demand.carveouts,
							   &w->handoff.layout);
	if (w->handoff.carveouts)
		w->handoff.bo = accmem_buffer_prepare(w->ctx);
}

/* a waiter that is queued, and to try unless @defer says that others do first */
static struct accmem_waiter *wait_begin(struct accmem_context *ctx,
					const struct accmem_alloc *req,
					const struct accmem_demand *p,
					bool defer)
{
	struct accmem_waiter *w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);
	int err;

	if (!w)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&w->link);
	w->ws = ctx->account->waiters;
	w->ctx = ctx;
	w->account = ctx->account;
	w->req = *req;
	w->demand = *p;
	w->exempt = capable(CAP_SYS_RESOURCE);
	wait_make_handoff(w);
	err = accmem_waiters_enter(w, defer);
	if (err) {
		wait_free(w);
		return ERR_PTR(err);
	}
	/* nothing is kept from here on: what is there has been before */
	accmem_reclaim_drain(&ctx->account->accounts->xa);
	accmem_reclaim_drain(&ctx->account->user->accounts);
	if (defer)
		accmem_pressure_notify(ctx);
	return w;
}

/* the one try of a request whose deadline has passed */
static struct accmem_buffer *wait_try_once(struct accmem_context *ctx,
					   const struct accmem_alloc *req,
					   struct accmem_stream *stream)
{
	struct accmem_buffer *buf = accmem_alloc_try(ctx, req, stream);

	if (!IS_ERR(buf))
		accmem_waiters_count_bypass(accmem_buffer_carveout(buf),
					    ctx->account->user,
					    buf->layout.footprint);
	return buf;
}

static struct accmem_buffer *wait_queue_up(struct accmem_context *ctx,
					   const struct accmem_alloc *req,
					   const struct accmem_demand *p,
					   struct accmem_stream *stream)
{
	/* who comes at the same moment may be first as well */
	bool defer = data_race(ctx->account->waiters->queue.nr_starved);
	struct accmem_buffer *buf;
	struct accmem_waiter *w;

	if (!defer) {
		buf = accmem_alloc_try(ctx, req, stream);
		if (!wait_may_help(buf))
			return buf;
	}
	w = wait_begin(ctx, req, p, defer);
	return IS_ERR(w) ? ERR_CAST(w) : wait_run(ctx, w, stream);
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
	struct accmem_buffer *buf;
	struct accmem_waiter *w = NULL;
	struct accmem_demand p;
	bool once;
	int err;

	err = wait_check_demand(ctx, req, &p);
	if (!err)
		err = wait_check_limits(ctx, &p);
	if (err == -ENOSPC)
		accmem_alloc_count_failure(ctx, req);
	if (err)
		return ERR_PTR(err == -ENOSPC ? -ENOMEM : err);
	if (accmem_waiters_present())
		w = accmem_waiters_resume(ctx, req);
	once = !w && wait_is_over(req->deadline_ns);
	if (w)
		buf = wait_run(ctx, w, stream);
	else if (once)
		buf = wait_try_once(ctx, req, stream);
	else
		buf = wait_queue_up(ctx, req, &p, stream);
	accmem_alloc_notify_failed(ctx, req, buf);
	if (once && wait_may_help(buf))
		buf = ERR_PTR(-ETIMEDOUT);
	if (buf == ERR_PTR(-ENOMEM) || buf == ERR_PTR(-ETIMEDOUT))
		accmem_alloc_count_failure(ctx, req);
	return buf;
}
