// SPDX-License-Identifier: GPL-2.0
/*
 * Pressure: notify contexts that can free memory for waiters.
 *
 * A context registers with ACCMEM_IOC_PRESSURE. A shortage begins when the first waiter
 * sleeps because memory is short, and ends with the last of these waiters. Each
 * registered context is notified once in a shortage, through poll() of its file and its
 * eventfd. It is notified again only after it has queried the shortfall. A context is
 * not notified about its own waiters. A waiter queues a work item before it sleeps, which
 * notifies the clients, one at a time.
 *
 * Locking: client.lock of a context guards its eventfd. accmem_waiters.lock guards the
 * list of clients and their other fields, and nests inside client.lock. A wake-up calls
 * the functions of any number of pollers: pressure_signal() runs without
 * accmem_waiters.lock, and not in the task that waits.
 */
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "alloc/pressure.h"
#include "compat/compat.h"
#include "core/carveout.h"
#include "core/revoke.h"
#include "internal.h"
#include "vm/context.h"
#include "waitq/waiters.h"

/* Return true if other contexts wait for memory. */
static bool pressure_is_wanted(const struct accmem_context *ctx)
{
	const struct accmem_waiters *ws = ctx->account->waiters;

	return ws->nr_starved > ctx->account->nr_starved;
}

/*
 * Return true if the context was notified of this shortage and has not queried it
 * since.
 */
static bool pressure_is_notified(const struct accmem_context *ctx)
{
	return ctx->pressure.notified_seq ==
		       ctx->account->waiters->pressure_seq &&
	       !ctx->pressure.queried;
}

/* Return true if the latest query of the context has counted all waiters. */
static bool pressure_has_seen(const struct accmem_context *ctx)
{
	return ctx->pressure.queried &&
	       ctx->pressure.seen == ctx->account->waiters->nr_shortages;
}

/*
 * Mark the context as notified: poll() reports it as readable. pressure_signal()
 * follows.
 */
static void pressure_mark(struct accmem_context *ctx)
{
	struct accmem_pressure_client *client = &ctx->pressure;

	lockdep_assert_held(&ctx->account->waiters->lock);
	client->notified_seq = ctx->account->waiters->pressure_seq;
	client->queried = false;
	client->events++;
}

static void pressure_signal(struct accmem_context *ctx)
{
	struct accmem_pressure_client *client = &ctx->pressure;

	lockdep_assert_held(&client->lock);
	if (client->eventfd)
		accmem_eventfd_signal(client->eventfd);
	wake_up_interruptible_poll(&client->poll, EPOLLIN | EPOLLRDNORM);
}

/*
 * Check the first client and move it to the tail of the list. If it has to be
 * signalled, mark it and return it in @notified with a reference. Return false if there is
 * no client.
 */
static bool pressure_scan(struct accmem_waiters *ws,
			  struct accmem_context **notified)
{
	struct accmem_context *ctx;

	lockdep_assert_held(&ws->lock);
	ctx = list_first_entry_or_null(&ws->pressure_clients,
				       struct accmem_context, pressure.link);
	if (!ctx)
		return false;
	list_move_tail(&ctx->pressure.link, &ws->pressure_clients);
	if (pressure_is_wanted(ctx) && !pressure_is_notified(ctx) &&
	    !pressure_has_seen(ctx)) {
		pressure_mark(ctx);
		accmem_context_get(ctx);
		*notified = ctx;
	}
	return true;
}

static bool pressure_notify_next(struct accmem_waiters *ws)
{
	struct accmem_context *notified = NULL;
	bool more;

	spin_lock(&ws->lock);
	more = pressure_scan(ws, &notified);
	spin_unlock(&ws->lock);
	if (!notified)
		return more;
	mutex_lock(&notified->pressure.lock);
	pressure_signal(notified);
	mutex_unlock(&notified->pressure.lock);
	accmem_context_put(notified);
	return more;
}

/*
 * Notify the clients. The number of clients is read without accmem_waiters.lock (READ_ONCE):
 * a client that registers later checks for waiters itself.
 */
static void pressure_work(struct work_struct *work)
{
	struct accmem_waiters *ws =
		container_of(work, struct accmem_waiters, notify);
	unsigned int left = READ_ONCE(ws->nr_pressure_clients);

	while (left-- && pressure_notify_next(ws))
		cond_resched();
}

/**
 * accmem_pressure_notify() - have the clients notified that a context is about to wait
 * @ctx: the context; its waiter is counted in nr_starved already
 *
 * Context: Does not sleep.
 */
void accmem_pressure_notify(struct accmem_context *ctx)
{
	struct accmem_waiters *ws = ctx->account->waiters;

	if (READ_ONCE(ws->nr_pressure_clients))
		queue_work(accmem_wq, &ws->notify);
}

/**
 * accmem_pressure_init() - initialise the notifications of a device
 * @ws: waiters of the device
 *
 * Context: Process context.
 */
void accmem_pressure_init(struct accmem_waiters *ws)
{
	INIT_WORK(&ws->notify, pressure_work);
}

/**
 * accmem_pressure_stop() - stop the notifications of a device
 * @ws: waiters of a device on which no call waits
 *
 * Context: Process context. Sleeps until the work has ended.
 */
void accmem_pressure_stop(struct accmem_waiters *ws)
{
	cancel_work_sync(&ws->notify);
}

/*
 * Register a client. Return true if others wait already and the context has to be
 * signalled.
 */
static bool pressure_register(struct accmem_context *ctx)
{
	struct accmem_waiters *ws = ctx->account->waiters;

	lockdep_assert_held(&ws->lock);
	if (list_empty(&ctx->pressure.link)) {
		list_add_tail(&ctx->pressure.link, &ws->pressure_clients);
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

	lockdep_assert_held(&ws->lock);
	if (!list_empty(&ctx->pressure.link)) {
		list_del_init(&ctx->pressure.link);
		WRITE_ONCE(ws->nr_pressure_clients,
			   ws->nr_pressure_clients - 1);
	}
}

/*
 * Replace the eventfd (NULL: no eventfd). The caller puts the eventfd that is returned.
 */
static struct eventfd_ctx *pressure_set_eventfd(struct accmem_context *ctx,
						struct eventfd_ctx *eventfd)
{
	lockdep_assert_held(&ctx->pressure.lock);
	swap(ctx->pressure.eventfd, eventfd);
	return eventfd;
}

/**
 * accmem_pressure_end() - unregister a context that ends
 * @ctx: the context
 *
 * Context: Process context. Takes and releases ctx->pressure.lock and
 * accmem_waiters.lock. May sleep.
 */
void accmem_pressure_end(struct accmem_context *ctx)
{
	struct accmem_waiters *ws = ctx->account->waiters;
	struct eventfd_ctx *old;

	mutex_lock(&ctx->pressure.lock);
	spin_lock(&ws->lock);
	pressure_unregister(ctx);
	spin_unlock(&ws->lock);
	old = pressure_set_eventfd(ctx, NULL);
	mutex_unlock(&ctx->pressure.lock);
	if (old)
		eventfd_ctx_put(old);
}

/* Return the eventfd that the request names, NULL if it names none, or an error. */
static struct eventfd_ctx *pressure_eventfd(const struct accmem_pressure *req)
{
	if (!(req->flags & ACCMEM_PRESSURE_REGISTER))
		return req->fd ? ERR_PTR(-EINVAL) : NULL;
	return req->fd == -1 ? NULL : eventfd_ctx_fdget(req->fd);
}

static void pressure_note_query(struct accmem_pressure_client *client,
				const struct accmem_waiters *ws)
{
	client->queried = true;
	client->seen = ws->nr_shortages;
}

/* Execute a request. Return true if the context has to be signalled. */
static bool pressure_do(struct accmem_context *ctx, struct accmem_pressure *req)
{
	bool notified = false;

	lockdep_assert_held(&ctx->account->waiters->lock);
	if (req->flags & ACCMEM_PRESSURE_REGISTER)
		notified = pressure_register(ctx);
	else if (req->flags & ACCMEM_PRESSURE_UNREGISTER)
		pressure_unregister(ctx);
	else
		pressure_note_query(&ctx->pressure, ctx->account->waiters);
	req->shortfall = accmem_waiters_shortfall(ctx->account, &req->waiting);
	return notified;
}

/**
 * accmem_pressure_query() - query the shortfall, register or unregister a context
 * @ctx: the context
 * @req: the request, with known flags; out: the shortfall and the number of
 *	waiters
 *
 * Context: Process context. Takes and releases ctx->pressure.lock and
 * accmem_waiters.lock. May sleep.
 *
 * Return: 0 or an error of ACCMEM_IOC_PRESSURE.
 */
int accmem_pressure_query(struct accmem_context *ctx,
			  struct accmem_pressure *req)
{
	struct accmem_waiters *ws = ctx->account->waiters;
	struct eventfd_ctx *eventfd;
	bool notified;

	if (req->flags == ACCMEM_PRESSURE_FLAGS)
		return -EINVAL;
	eventfd = pressure_eventfd(req);
	if (IS_ERR(eventfd))
		return PTR_ERR(eventfd);
	mutex_lock(&ctx->pressure.lock);
	if (req->flags)
		eventfd = pressure_set_eventfd(ctx, eventfd);
	spin_lock(&ws->lock);
	notified = pressure_do(ctx, req);
	spin_unlock(&ws->lock);
	if (notified)
		pressure_signal(ctx);
	mutex_unlock(&ctx->pressure.lock);
	if (eventfd)
		eventfd_ctx_put(eventfd);
	return 0;
}

/**
 * accmem_pressure_show() - print the waiters and the shortfall of a context to fdinfo
 * @m: the seq_file
 * @ctx: the context
 *
 * Context: Process context. Takes and releases accmem_waiters.lock.
 */
void accmem_pressure_show(struct seq_file *m, struct accmem_context *ctx)
{
	struct accmem_waiters *ws = ctx->account->waiters;
	unsigned int waiting, others;
	u64 wanted, events;

	spin_lock(&ws->lock);
	waiting = ctx->account->nr_starved;
	events = ctx->pressure.events;
	wanted = accmem_waiters_shortfall(ctx->account, &others);
	spin_unlock(&ws->lock);
	seq_printf(m, "accmem-waiting:\t%u\n", waiting);
	seq_printf(m, "accmem-shortfall:\t%llu\n", wanted);
	seq_printf(m, "accmem-pressure-events:\t%llu\n", events);
}

/**
 * accmem_pressure_poll() - implement poll() of a device file
 * @file: the file
 * @table: the poll table of the caller
 *
 * Context: Process context. Takes and releases accmem_waiters.lock.
 *
 * Return: EPOLLERR | EPOLLHUP if the memory is revoked; EPOLLIN | EPOLLRDNORM if other
 * contexts wait and the context was notified but has not queried the shortfall yet; else 0.
 */
__poll_t accmem_pressure_poll(struct file *file,
			      struct poll_table_struct *table)
{
	struct accmem_context *ctx = file->private_data;
	struct accmem_waiters *ws = ctx->account->waiters;
	bool wanted;

	poll_wait(file, &ctx->pressure.poll, table);
	if (accmem_is_revoked(ctx->carveouts))
		return EPOLLERR | EPOLLHUP;
	spin_lock(&ws->lock);
	wanted = !list_empty(&ctx->pressure.link) && pressure_is_wanted(ctx) &&
		 pressure_is_notified(ctx);
	spin_unlock(&ws->lock);
	return wanted ? EPOLLIN | EPOLLRDNORM : 0;
}
