// SPDX-License-Identifier: GPL-2.0
/*
 * Waiters whose call a signal has interrupted.
 *
 * The kernel repeats such a call. Until then the waiter stays in the queue and keeps its turn.
 * The repeated call takes it back; if none comes within a second, a scan of the queue drops it.
 */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "internal.h"
#include "types/context_types.h"
#include "waitq/waiters.h"

/**
 * accmem_waiters_resume() - find the waiter of a call that a signal interrupted
 * @ctx: context
 * @req: request
 *
 * The call is recognised by the thread, the context and the request.
 *
 * Context: Process context. Takes and releases accmem_waiters.lock. Does not sleep.
 * Return: the waiter, which is awake and has to try; NULL if this is another call.
 */
struct accmem_waiter *accmem_waiters_resume(struct accmem_context *ctx,
					    const struct accmem_alloc *req)
{
	struct accmem_waiters *ws = ctx->account->waiters;
	struct accmem_waiter *w, *found = NULL;
	pid_t pid = task_pid_nr(current);

	spin_lock(&ws->lock);
	list_for_each_entry(w, &ws->away, link) {
		if (w->ctx != ctx || w->pid != pid ||
		    memcmp(&w->req, req, sizeof(*req)))
			continue;
		found = w;
		list_del_init(&w->link);
		w->task = current;
		w->woken = true;
		accmem_queue_resume(&ws->queue, &w->q, ktime_get_ns());
		accmem_waiters_run_queue(w->ws);
		break;
	}
	spin_unlock(&ws->lock);
	return found;
}

/**
 * accmem_waiters_drop() - free interrupted waiters
 * @ws: waiters of the device
 * @ctx: context of the waiters, or NULL: those whose call was not repeated in time
 *
 * The queue runs once, since a run may search all folios of a carveout.
 *
 * Context: ws->lock is held. Takes and releases the locks of carveouts.
 */
void accmem_waiters_drop(struct accmem_waiters *ws, struct accmem_context *ctx)
{
	struct accmem_waiter *w, *next;
	bool any = false;

	lockdep_assert_held(&ws->lock);
	list_for_each_entry_safe(w, next, &ws->away, link) {
		if (ctx ? w->ctx != ctx : time_before(jiffies, w->away_until))
			continue;
		list_del(&w->link);
		accmem_waiter_unlink(w, -ERESTARTSYS);
		kfree(w);
		any = true;
	}
	if (any)
		accmem_waiters_run_queue(ws);
}

/**
 * accmem_waiters_drop_interrupted() - free the interrupted waiters of a context
 * @ctx: context that ends; no call sleeps in it
 *
 * Context: Process context. Takes and releases accmem_waiters.lock. Does not sleep.
 */
void accmem_waiters_drop_interrupted(struct accmem_context *ctx)
{
	struct accmem_waiters *ws = ctx->account->waiters;

	spin_lock(&ws->lock);
	accmem_waiters_drop(ws, ctx);
	spin_unlock(&ws->lock);
}
