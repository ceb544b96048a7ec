// SPDX-License-Identifier: GPL-2.0
/*
 * Notifications of CTAs: pollers and readers are woken, and the eventfd counts completions.
 *
 * Any number of epoll instances may watch the file and the eventfd of a CTA, and each wake-up
 * walks all instances. So no CTA is notified under accmem_tmem.lock: the CTA is put into the
 * list accmem_tmem.notify, and accmem_tmem_unlock() notifies it after the lock is dropped.
 * A call notifies the CTAs whose calls it has ended before it returns: NOTIFY_CALL_MAX CTAs are
 * more than an alloc or a dealloc can serve. A work item notifies the rest, the CTAs that a
 * killed caller leaves, and everything that a timeout or a revocation of the device causes.
 *
 * Locking: accmem_tmem.notify_mutex > accmem_tmem.lock. The mutex is held while one CTA is
 * notified. The holder can use the CTA's eventfd without accmem_tmem.lock.
 */
#include <linux/eventfd.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>

#include "compat/compat.h"
#include "core/carveout.h"
#include "internal.h"

#define NOTIFY_CALL_MAX (4 * ACCMEM_TMEM_COLUMNS_MAX / ACCMEM_TMEM_UNIT)

static void notify_add(struct accmem_cta *cta)
{
	if (list_empty(&cta->notify))
		list_add_tail(&cta->notify, &cta->tmem->notify);
}

/**
 * accmem_cta_notify() - notify the pollers, a reader and the eventfd of a completion
 * @cta: the CTA
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_notify(struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	if (cta->eventfd)
		cta->uncounted++;
	else if (!wq_has_sleeper(&cta->poll))
		return;
	notify_add(cta);
}

/**
 * accmem_cta_notify_polls() - wake all polls of a CTA
 * @cta: the CTA
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_notify_polls(struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	if (!accmem_cta_is_watched(cta))
		return;
	cta->notify_all = true;
	notify_add(cta);
}

/*
 * Take the first CTA out of the list. If its eventfd has several completions to count, it
 * counts one now, and the CTA goes to the end of the list.
 */
static struct accmem_cta *notify_take(struct accmem_tmem *tmem, bool *all,
				      struct eventfd_ctx **eventfd)
{
	struct accmem_cta *cta;

	lockdep_assert_held(&tmem->lock);
	cta = list_first_entry_or_null(&tmem->notify, struct accmem_cta,
				       notify);
	if (!cta)
		return NULL;
	list_del_init(&cta->notify);
	*all = cta->notify_all;
	cta->notify_all = false;
	if (!cta->uncounted)
		return cta;
	*eventfd = cta->eventfd;
	if (--cta->uncounted)
		notify_add(cta);
	return cta;
}

/* Notify the first CTA of the list. Return true if there are others. */
static bool notify_next(struct accmem_tmem *tmem)
{
	struct eventfd_ctx *eventfd = NULL;
	struct accmem_cta *cta;
	bool all, more;

	mutex_lock(&tmem->notify_mutex);
	spin_lock(&tmem->lock);
	cta = notify_take(tmem, &all, &eventfd);
	more = !list_empty(&tmem->notify);
	spin_unlock(&tmem->lock);
	if (eventfd)
		accmem_eventfd_signal(eventfd);
	if (cta && all)
		wake_up_interruptible_all(&cta->poll);
	else if (cta)
		wake_up_interruptible_poll(&cta->poll, EPOLLIN | EPOLLRDNORM);
	mutex_unlock(&tmem->notify_mutex);
	return more;
}

/**
 * accmem_tmem_notify() - notify the CTAs that have events
 * @tmem: the Tensor Memory
 *
 * Context: Process context. Takes and releases tmem->notify_mutex and tmem->lock. May sleep.
 */
void accmem_tmem_notify(struct accmem_tmem *tmem)
{
	unsigned int nr;

	for (nr = 0; nr < NOTIFY_CALL_MAX && !fatal_signal_pending(current);
	     nr++) {
		if (!notify_next(tmem))
			return;
		cond_resched();
	}
	queue_work(accmem_wq, &tmem->notify_work);
}

/**
 * accmem_tmem_notify_later() - let a work item notify the CTAs that have events
 * @tmem: the Tensor Memory
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_tmem_notify_later(struct accmem_tmem *tmem)
{
	lockdep_assert_held(&tmem->lock);
	if (!list_empty(&tmem->notify))
		queue_work(accmem_wq, &tmem->notify_work);
}

/* The works of other contexts run between two CTAs of one. */
static void notify_work(struct work_struct *work)
{
	struct accmem_tmem *tmem =
		container_of(work, struct accmem_tmem, notify_work);

	if (notify_next(tmem))
		queue_work(accmem_wq, &tmem->notify_work);
}

/* Replace the eventfd of a CTA. The old one counts the completions that exist already. */
static void notify_replace(struct accmem_cta *cta, struct eventfd_ctx *eventfd)
{
	struct accmem_tmem *tmem = cta->tmem;
	unsigned int uncounted;

	mutex_lock(&tmem->notify_mutex);
	spin_lock(&tmem->lock);
	swap(cta->eventfd, eventfd);
	uncounted = cta->uncounted;
	cta->uncounted = 0;
	spin_unlock(&tmem->lock);
	for (; uncounted; uncounted--) {
		accmem_eventfd_signal(eventfd);
		cond_resched();
	}
	mutex_unlock(&tmem->notify_mutex);
	if (eventfd)
		eventfd_ctx_put(eventfd);
}

/**
 * accmem_cta_set_eventfd() - set the eventfd that counts the completions of a CTA
 * @cta: the CTA
 * @fd: an eventfd, or -1 for none
 *
 * Context: Process context. Takes and releases tmem->notify_mutex and tmem->lock. May
 * sleep.
 *
 * Return: 0, -EBADF, -EINVAL.
 */
int accmem_cta_set_eventfd(struct accmem_cta *cta, int fd)
{
	struct eventfd_ctx *eventfd = NULL;

	if (fd != -1) {
		eventfd = eventfd_ctx_fdget(fd);
		if (IS_ERR(eventfd))
			return PTR_ERR(eventfd);
	}
	notify_replace(cta, eventfd);
	return 0;
}

/**
 * accmem_cta_stop_notify() - end the notifications of a CTA that has exited
 * @cta: the CTA, whose file nobody can watch any more
 *
 * Context: Process context. Takes and releases tmem->notify_mutex and tmem->lock. May
 * sleep.
 */
void accmem_cta_stop_notify(struct accmem_cta *cta)
{
	spin_lock(&cta->tmem->lock);
	list_del_init(&cta->notify);
	spin_unlock(&cta->tmem->lock);
	/* Waits until the CTA is not being notified. */
	notify_replace(cta, NULL);
}

/**
 * accmem_tmem_init_notify() - initialise the notifications of a Tensor Memory
 * @tmem: the Tensor Memory
 *
 * Context: Process context.
 */
void accmem_tmem_init_notify(struct accmem_tmem *tmem)
{
	mutex_init(&tmem->notify_mutex);
	INIT_LIST_HEAD(&tmem->notify);
	INIT_WORK(&tmem->notify_work, notify_work);
}

/**
 * accmem_tmem_destroy_notify() - undo accmem_tmem_init_notify()
 * @tmem: a Tensor Memory without CTAs
 *
 * Context: Process context. May sleep.
 */
void accmem_tmem_destroy_notify(struct accmem_tmem *tmem)
{
	cancel_work_sync(&tmem->notify_work);
	mutex_destroy(&tmem->notify_mutex);
}
