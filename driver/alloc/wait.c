// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC with ACCMEM_ALLOC_WAIT: sleep until the request can be served.
 *
 * The request tries once, unless other waiters are starved already. If it finds no
 * memory, it enters the queue of waiters (waitq/waiters.c) and sleeps. A waiter that is
 * woken tries as any request does. Then it leaves the queue with a buffer, or sleeps
 * again at its place in the queue.
 *
 * A wake-up takes precedence over a signal or a deadline at the same time: the waiter
 * tries first. A waiter that was woken again before it could sleep has had its try: it
 * checks for a signal and the deadline then.
 *
 * If a signal restarts the system call, the waiter stays in the queue without a task.
 * The restarted call resumes it; otherwise the waiter is dropped one second later.
 *
 * Locking: none here; the waiters' functions take accmem_waiters.lock.
 */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "alloc/plan.h"
#include "alloc/wait.h"
#include "core/account.h"
#include "core/revoke.h"
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

/* Return true if the request failed for a reason that waiting can change. */
static bool wait_may_help(const struct accmem_buffer *buf)
{
	return buf == ERR_PTR(-ENOSPC) || buf == ERR_PTR(-EDQUOT);
}

/* Return -EDQUOT if the limits refuse the request even when nothing else is charged. */
static int wait_check_limits(struct accmem_context *ctx,
			     const struct accmem_demand *p)
{
	return accmem_demand_exceeds_limits(p, ctx->account,
					    accmem_caller_is_exempt()) ?
		       -EDQUOT :
		       0;
}

/* Return the error that ends the wait, or 0. */
static int wait_is_to_end(const struct accmem_waiter *w)
{
	if (signal_pending(current))
		return -ERESTARTSYS;
	return wait_is_over(w->req.deadline_ns) ? -ETIMEDOUT : 0;
}

/* Sleep. Return 0 if the waiter was woken to try, else the error that ends the wait. */
static int wait_until_woken(const struct accmem_waiter *w)
{
	u64 deadline_ns = w->req.deadline_ns;
	int err = 0;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		/* Read without a lock: set_current_state() orders it with the waker. */
		if (READ_ONCE(w->woken)) {
			err = 0;
			break;
		}
		if (err)
			break;
		/* A reset may be over before the waiter runs. */
		if (READ_ONCE(w->ctx->carveouts->epoch) != w->epoch) {
			err = accmem_revoked_error(w->ctx->carveouts);
			break;
		}
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
 * Sleep until the waiter has to try; @tried says that it tried before. Return 0 for a
 * try. After an error the waiter has left the queue and is freed, or it stays in the
 * queue for a call that is restarted.
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

/* Make a buffer of the memory that was handed to the waiter. */
static struct accmem_buffer *wait_accept(struct accmem_context *ctx,
					 struct accmem_waiter *w)
{
	struct accmem_bo *bo = w->handoff.bo;

	w->handoff.bo = NULL;
	return accmem_buffer_adopt(ctx, bo, &w->req, &w->handoff.layout,
				   w->handoff.dirty);
}

/* Use the memory that was handed over, or allocate as any request does. */
static struct accmem_buffer *wait_try(struct accmem_context *ctx,
				      struct accmem_waiter *w,
				      const struct accmem_plan *plan)
{
	struct accmem_buffer *buf;

	if (accmem_waiters_start_try(w)) {
		buf = wait_accept(ctx, w);
		if (buf != ERR_PTR(-EADDRNOTAVAIL))
			return buf;
		/*
		 * Freed buffers occupy the device addresses: accmem_alloc_try() frees
		 * these.
		 */
		accmem_waiters_start_try(w);
	}
	return accmem_alloc_try(ctx, plan);
}

/*
 * Sleep and try until the request is served or fails. Frees the waiter, unless it stays
 * in the queue for a restarted call.
 */
static struct accmem_buffer *wait_run(struct accmem_context *ctx,
				      struct accmem_waiter *w,
				      const struct accmem_plan *plan)
{
	struct accmem_buffer *buf;
	bool tried = false;
	int err;

	for (;;) {
		err = wait_sleep(w, tried);
		if (err)
			return ERR_PTR(err);
		buf = wait_try(ctx, w, plan);
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

/*
 * Allocate what a handoff needs. If that fails, the waiter tries as any request does.
 */
static void wait_make_handoff(struct accmem_waiter *w)
{
	w->handoff.carveouts = accmem_plan_handoff(w->ctx, &w->req,
						   w->demand.carveouts,
						   &w->handoff.layout);
	if (w->handoff.carveouts)
		w->handoff.bo = accmem_buffer_prepare(w->ctx);
}

/*
 * Create a waiter and queue it. It tries at once, unless @defer says that others try
 * first.
 */
static struct accmem_waiter *wait_begin(struct accmem_context *ctx,
					const struct accmem_plan *plan,
					const struct accmem_demand *demand,
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
	w->req = *plan->req;
	w->demand = *demand;
	w->exempt = accmem_caller_is_exempt();
	w->epoch = READ_ONCE(ctx->epoch);
	wait_make_handoff(w);
	err = accmem_waiters_enter(w, defer);
	if (err) {
		wait_free(w);
		return ERR_PTR(err);
	}
	/*
	 * From here on FREE puts no buffer into a cache, since a waiter is counted.
	 * Only the buffers that were cached earlier have to be drained.
	 */
	accmem_reclaim_drain(&ctx->account->accounts->xa);
	accmem_reclaim_drain(&ctx->account->user->accounts);
	if (defer)
		accmem_pressure_notify(ctx);
	return w;
}

/* Try once, for a request whose deadline has passed. */
static struct accmem_buffer *wait_try_once(struct accmem_context *ctx,
					   const struct accmem_plan *plan)
{
	struct accmem_buffer *buf = accmem_alloc_try(ctx, plan);

	if (!IS_ERR(buf))
		accmem_waiters_count_bypass(accmem_buffer_carveout(buf),
					    ctx->account->user,
					    buf->layout.footprint);
	return buf;
}

static struct accmem_buffer *wait_queue_up(struct accmem_context *ctx,
					   const struct accmem_plan *plan,
					   const struct accmem_demand *demand)
{
	/*
	 * Racy read without the lock: a request that arrives at the same moment as a
	 * waiter may try first.
	 */
	bool defer = data_race(ctx->account->waiters->queue.nr_starved);
	struct accmem_buffer *buf;
	struct accmem_waiter *w;

	if (!defer) {
		buf = accmem_alloc_try(ctx, plan);
		if (!wait_may_help(buf))
			return buf;
	}
	w = wait_begin(ctx, plan, demand, defer);
	return IS_ERR(w) ? ERR_CAST(w) : wait_run(ctx, w, plan);
}

/**
 * accmem_alloc_wait() - allocate a buffer, sleeping until memory is available
 * @ctx: the context
 * @plan: the plan of the request, which is with ACCMEM_ALLOC_WAIT
 *
 * Context: Process context. Takes and releases ctx->lock and accmem_waiters.lock. May
 * sleep, without limit if the request has no deadline.
 *
 * Return: as accmem_alloc(); also -ETIMEDOUT, -EAGAIN, -ERESTARTSYS.
 */
struct accmem_buffer *accmem_alloc_wait(struct accmem_context *ctx,
					const struct accmem_plan *plan)
{
	struct accmem_demand demand;
	struct accmem_waiter *w = NULL;
	struct accmem_buffer *buf;
	bool once;
	int err;

	err = accmem_plan_demand(ctx, plan, &demand);
	if (!err)
		err = wait_check_limits(ctx, &demand);
	if (err == -ENOSPC)
		accmem_alloc_count_failure(ctx, plan);
	if (err)
		return ERR_PTR(err == -ENOSPC ? -ENOMEM : err);
	if (READ_ONCE(ctx->account->waiters->nr))
		w = accmem_waiters_resume(ctx, plan->req);
	once = !w && wait_is_over(plan->req->deadline_ns);
	if (w)
		buf = wait_run(ctx, w, plan);
	else if (once)
		buf = wait_try_once(ctx, plan);
	else
		buf = wait_queue_up(ctx, plan, &demand);
	if (once && wait_may_help(buf))
		buf = ERR_PTR(-ETIMEDOUT);
	if (buf == ERR_PTR(-ENOMEM) || buf == ERR_PTR(-ETIMEDOUT))
		accmem_alloc_count_failure(ctx, plan);
	return buf;
}
