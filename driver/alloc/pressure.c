// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts that give memory back when others wait for it.
 *
 * A shortage begins with the first waiter that sleeps for lack of memory, and ends
 * with the last. A context that has registered is told of it once, by poll() of its
 * file and by an eventfd, and then again for waiters that come after it has asked how
 * much is wanted. Who is about to wait tells the others, one at a time.
 *
 * Locks: a context's own, which guards its eventfd, > that of all waiters. Whoever polls
 * runs functions of others', as many as they like, so that nobody is signalled under
 * the latter.
 */
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "alloc/pressure.h"
#include "compat/compat.h"
#include "internal.h"
#include "vm/context.h"
#include "waitq/waiters.h"

/* do others wait? */
static bool pressure_is_wanted(const struct accmem_context *ctx)
{
	const struct accmem_waiters *ws = ctx->account->waiters;

	return ws->nr_starved > ctx->account->nr_starved;
}

/* was it told of what is the case now, and has it not asked since? */
static bool pressure_is_told(const struct accmem_context *ctx)
{
	return ctx->shrink.notified_seq ==
		       ctx->account->waiters->pressure_seq &&
	       !ctx->shrink.queried;
}

/* it is readable from here on; pressure_signal() follows */
static void pressure_mark(struct accmem_context *ctx)
{
	struct accmem_pressure_client *shrink = &ctx->shrink;

	lockdep_assert_held(&accmem_waiters_lock);
	shrink->notified_seq = ctx->account->waiters->pressure_seq;
	shrink->queried = false;
	shrink->events++;
}

static void pressure_signal(struct accmem_context *ctx)
{
	struct accmem_pressure_client *shrink = &ctx->shrink;

	lockdep_assert_held(&shrink->lock);
	if (shrink->eventfd)
		accmem_eventfd_signal(shrink->eventfd);
	wake_up_interruptible_poll(&shrink->poll, EPOLLIN | EPOLLRDNORM);
}

/*
 * Looks at one context, which is behind all others then; with a reference where it is to
 * be signalled. False when there is none.
 */
static bool pressure_look(struct accmem_waiters *ws,
			  struct accmem_context **told)
{
	struct accmem_context *ctx;

	lockdep_assert_held(&accmem_waiters_lock);
	ctx = list_first_entry_or_null(&ws->pressure_clients,
				       struct accmem_context, shrink.link);
	if (!ctx)
		return false;
	list_move_tail(&ctx->shrink.link, &ws->pressure_clients);
	if (pressure_is_wanted(ctx) && !pressure_is_told(ctx)) {
		pressure_mark(ctx);
		accmem_context_get(ctx);
		*told = ctx;
	}
	return true;
}

static bool pressure_tell_next(struct accmem_waiters *ws)
{
	struct accmem_context *told = NULL;
	bool more;

	spin_lock(&accmem_waiters_lock);
	more = pressure_look(ws, &told);
	spin_unlock(&accmem_waiters_lock);
	if (!told)
		return more;
	mutex_lock(&told->shrink.lock);
	pressure_signal(told);
	mutex_unlock(&told->shrink.lock);
	accmem_context_put(told);
	return more;
}

/**
 * accmem_pressure_notify() - tell others that a context is about to wait for memory
 * @ctx: the context, which is counted as one that is short. Sleeps.
 *
 * Whoever looks at the same time looks at others: together all are looked at, after
 * the last one was counted.
 */
void accmem_pressure_notify(struct accmem_context *ctx)
{
	struct accmem_waiters *ws = ctx->account->waiters;
	unsigned int left = READ_ONCE(ws->nr_pressure_clients);

	while (left-- && pressure_tell_next(ws))
		cond_resched();
}

/* true where others wait already, and the context is to be signalled */
static bool pressure_register(struct accmem_context *ctx)
{
	struct accmem_waiters *ws = ctx->account->waiters;

	lockdep_assert_held(&accmem_waiters_lock);
	if (list_empty(&ctx->shrink.link)) {
		list_add_tail(&ctx->shrink.link, &ws->pressure_clients);
		WRITE_ONCE(ws->nr_pressure_clients,
			   ws->nr_pressure_clients + 1);
	}
	if (!pressure_is_wanted(ctx))
		return false;
	pressure_mark(ctx);
	return true;
}

static void pressure_unregister(struct accmem_context *ctx)
{
	struct accmem_waiters *ws = ctx->account->waiters;

	lockdep_assert_held(&accmem_waiters_lock);
	if (!list_empty(&ctx->shrink.link)) {
		list_del_init(&ctx->shrink.link);
		WRITE_ONCE(ws->nr_pressure_clients,
			   ws->nr_pressure_clients - 1);
	}
}

/* NULL for none; the caller puts the eventfd that is returned */
static struct eventfd_ctx *pressure_set_eventfd(struct accmem_context *ctx,
						struct eventfd_ctx *eventfd)
{
	lockdep_assert_held(&ctx->shrink.lock);
	swap(ctx->shrink.eventfd, eventfd);
	return eventfd;
}

/**
 * accmem_pressure_end() - a context ends
 * @ctx: the context
 */
void accmem_pressure_end(struct accmem_context *ctx)
{
	struct eventfd_ctx *old;

	mutex_lock(&ctx->shrink.lock);
	spin_lock(&accmem_waiters_lock);
	pressure_unregister(ctx);
	spin_unlock(&accmem_waiters_lock);
	old = pressure_set_eventfd(ctx, NULL);
	mutex_unlock(&ctx->shrink.lock);
	if (old)
		eventfd_ctx_put(old);
}

/* the eventfd that a call names, or NULL */
static struct eventfd_ctx *pressure_eventfd(const struct accmem_pressure *req)
{
	if (!(req->flags & ACCMEM_PRESSURE_REGISTER))
		return req->fd ? ERR_PTR(-EINVAL) : NULL;
	return req->fd == -1 ? NULL : eventfd_ctx_fdget(req->fd);
}

/* true where the context is to be signalled */
static bool pressure_do(struct accmem_context *ctx, struct accmem_pressure *req)
{
	bool told = false;

	lockdep_assert_held(&accmem_waiters_lock);
	if (req->flags & ACCMEM_PRESSURE_REGISTER)
		told = pressure_register(ctx);
	else if (req->flags & ACCMEM_PRESSURE_UNREGISTER)
		pressure_unregister(ctx);
	else
		ctx->shrink.queried = true;
	req->shortfall = accmem_waiters_shortfall(ctx->account, &req->waiting);
	return told;
}

/**
 * accmem_pressure_query() - what others wait for, and be told of it
 * @ctx: the context
 * @req: the request, whose flags are known ones. Sleeps.
 *
 * Return: 0 or an error of ACCMEM_IOC_PRESSURE.
 */
int accmem_pressure_query(struct accmem_context *ctx,
			  struct accmem_pressure *req)
{
	struct eventfd_ctx *eventfd;
	bool told;

	if (req->flags == ACCMEM_PRESSURE_FLAGS)
		return -EINVAL;
	eventfd = pressure_eventfd(req);
	if (IS_ERR(eventfd))
		return PTR_ERR(eventfd);
	mutex_lock(&ctx->shrink.lock);
	if (req->flags)
		eventfd = pressure_set_eventfd(ctx, eventfd);
	spin_lock(&accmem_waiters_lock);
	told = pressure_do(ctx, req);
	spin_unlock(&accmem_waiters_lock);
	if (told)
		pressure_signal(ctx);
	mutex_unlock(&ctx->shrink.lock);
	if (eventfd)
		eventfd_ctx_put(eventfd);
	return 0;
}

/**
 * accmem_pressure_show() - what fdinfo says of a context's waiters, and of others
 * @m: where to
 * @ctx: the context
 */
void accmem_pressure_show(struct seq_file *m, struct accmem_context *ctx)
{
	unsigned int waiting, others;
	u64 wanted, events;

	spin_lock(&accmem_waiters_lock);
	waiting = ctx->account->nr_starved;
	events = ctx->shrink.events;
	wanted = accmem_waiters_shortfall(ctx->account, &others);
	spin_unlock(&accmem_waiters_lock);
	seq_printf(m, "accmem-waiting:\t%u\n", waiting);
	seq_printf(m, "accmem-shortfall:\t%llu\n", wanted);
	seq_printf(m, "accmem-pressure-events:\t%llu\n", events);
}

/**
 * accmem_pressure_poll() - poll of a device's file
 * @file: the file
 * @table: who polls
 *
 * Return: readable when others wait, and its context has not asked yet.
 */
__poll_t accmem_pressure_poll(struct file *file,
			      struct poll_table_struct *table)
{
	struct accmem_context *ctx = file->private_data;
	bool wanted;

	poll_wait(file, &ctx->shrink.poll, table);
	spin_lock(&accmem_waiters_lock);
	wanted = !list_empty(&ctx->shrink.link) && pressure_is_wanted(ctx) &&
		 pressure_is_told(ctx);
	spin_unlock(&accmem_waiters_lock);
	return wanted ? EPOLLIN | EPOLLRDNORM : 0;
}
