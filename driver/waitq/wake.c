// SPDX-License-Identifier: GPL-2.0
/*
 * Wake: steps of calls that allocate, free or uncharge, made only while there are waiters.
 *
 * A call that allocates without a wait asks whether a reservation permits it, and counts
 * as a bypass afterwards. A call that frees memory, or lowers a charge, wakes waiters. The
 * inline functions of waiters.h skip all of this while there is no waiter.
 *
 * Freed bytes concern the waiters of one device, and a lower charge of a user its waiters
 * on all devices.
 *
 * Locks: waiters_list_lock is above accmem_waiters.lock; it is taken if the limits change,
 * or if the charge of a user falls that waits on another device.
 */
#include <linux/kernel.h>
#include <linux/ktime.h>

#include "core/carveout.h"
#include "internal.h"
#include "waitq/waiters.h"

static DEFINE_SPINLOCK(waiters_list_lock); /* waiters_list */
static LIST_HEAD(waiters_list); /* of all devices */

/**
 * accmem_waiters_link() - add the waiters of a device to the list of all devices
 * @ws: waiters of the device
 *
 * Context: Process context. Takes and releases waiters_list_lock.
 */
void accmem_waiters_link(struct accmem_waiters *ws)
{
	spin_lock(&waiters_list_lock);
	list_add_tail(&ws->link, &waiters_list);
	spin_unlock(&waiters_list_lock);
}

/**
 * accmem_waiters_unlink() - undo accmem_waiters_link()
 * @ws: waiters of the device
 *
 * Context: Process context. Takes and releases waiters_list_lock.
 */
void accmem_waiters_unlink(struct accmem_waiters *ws)
{
	spin_lock(&waiters_list_lock);
	list_del(&ws->link);
	spin_unlock(&waiters_list_lock);
}

/* Sum up the free bytes of the carveouts that memory is reserved in. */
static u64 waiters_free_reserved(struct accmem_waiters *ws)
{
	struct accmem_carveout *cv;
	u64 free = 0;

	for (cv = ws->carveouts->cvs; cv < ws->carveouts->end; cv++) {
		if (ws->reserved_in & BIT(cv->index))
			free += accmem_demand_free_bytes(cv);
	}
	return free;
}

/**
 * __accmem_waiters_permit() - check whether a reservation permits an allocation
 * @cv: carveout
 * @account: account that allocates
 * @size: bytes
 *
 * The slow path of accmem_waiters_permit(). A reservation that has refused others for too
 * long without any gain ends here.
 *
 * Context: Not in an interrupt. Takes and releases accmem_waiters.lock and the locks of
 * carveouts. Does not sleep.
 * Return: false if the memory is held for a waiter of another account.
 */
bool __accmem_waiters_permit(struct accmem_carveout *cv,
			     const struct accmem_account *account, u64 size)
{
	struct accmem_waiters *ws = cv->waiters;
	bool permits = true;

	spin_lock(&ws->lock);
	if (ws->reserved_for && ws->reserved_for != account &&
	    ws->reserved_in & BIT(cv->index)) {
		permits =
			accmem_queue_permit(&ws->queue,
					    &account->user->waiting[ws->index],
					    size, waiters_free_reserved(ws),
					    ktime_get_ns());
		if (!ws->queue.reserved)
			accmem_waiters_run_queue(ws);
	}
	spin_unlock(&ws->lock);
	return permits;
}

/**
 * accmem_waiters_tries() - count the attempts of waiters that have failed
 * @ws: waiters of the device
 *
 * Context: Any context. Does not sleep.
 * Return: the number to pass to accmem_waiters_wake_returned().
 */
u64 accmem_waiters_tries(const struct accmem_waiters *ws)
{
	return data_race(ws->queue.tries); /* stale: wakes a waiter in vain */
}

/* Wake the waiters of a user on other devices than @ws, after an uncharge. */
static void waiters_wake_elsewhere(struct accmem_waiters *ws,
				   struct accmem_user *user)
{
	struct accmem_waiters *other;
	struct accmem_queue_user *own;

	spin_lock(&waiters_list_lock);
	list_for_each_entry(other, &waiters_list, link) {
		own = &user->waiting[other->index];
		/* Racy read: a waiter that is counted later tries later. */
		if (other == ws || !data_race(own->nr)) /* may be stale */
			continue;
		spin_lock(&other->lock);
		accmem_queue_charge_dropped(own);
		accmem_waiters_run_queue(other);
		spin_unlock(&other->lock);
	}
	spin_unlock(&waiters_list_lock);
}

/* Record a lower charge of @user, and release the lock. */
static void waiters_uncharged(struct accmem_waiters *ws,
			      struct accmem_user *user) __releases(&ws->lock)
{
	bool elsewhere = user && atomic_read(&user->nr_waiting) >
					 user->waiting[ws->index].nr;

	spin_unlock(&ws->lock);
	if (elsewhere)
		waiters_wake_elsewhere(ws, user);
}

/**
 * __accmem_waiters_wake() - wake waiters after an uncharge or another change
 * @ws: waiters of the device
 * @user: user whose charge has fallen, or NULL
 * @memory: waiters of the device may find memory, too
 *
 * The slow path of accmem_waiters_wake(). A fallen charge concerns the waiters of @user
 * on all devices.
 *
 * Context: Not in an interrupt, without a spinlock held. Takes and releases
 * accmem_waiters.lock. Does not sleep.
 */
void __accmem_waiters_wake(struct accmem_waiters *ws, struct accmem_user *user,
			   bool memory)
{
	spin_lock(&ws->lock);
	if (memory)
		accmem_queue_memory_freed(&ws->queue, NULL, 0);
	if (user)
		accmem_queue_charge_dropped(&user->waiting[ws->index]);
	accmem_waiters_run_queue(ws);
	waiters_uncharged(ws, user);
}

/**
 * __accmem_waiters_wake_freed() - wake waiters after a free
 * @cv: carveout
 * @user: user whose charge has fallen, or NULL
 * @bytes: bytes that were freed; a reservation may hold them
 *
 * The slow path of accmem_waiters_wake_freed(). If no waiter needs as little as is free,
 * no waiter is looked at.
 *
 * Context: Not in an interrupt, without a spinlock held. Takes and releases
 * accmem_waiters.lock and cv->lock. Does not sleep.
 */
void __accmem_waiters_wake_freed(struct accmem_carveout *cv,
				 struct accmem_user *user, u64 bytes)
{
	struct accmem_waiters *ws = cv->waiters;
	struct accmem_queue_user *own = user ? &user->waiting[ws->index] : NULL;

	spin_lock(&ws->lock);
	if (!(ws->reserved_in & BIT(cv->index)))
		bytes = 0;
	accmem_queue_memory_freed(&ws->queue, own, bytes);
	if (own)
		accmem_queue_charge_dropped(own);
	if ((own && own->nr) || accmem_demand_free_bytes(cv) >= ws->queue.least)
		accmem_waiters_run_queue(ws);
	waiters_uncharged(ws, user);
}

/**
 * __accmem_waiters_wake_returned() - wake waiters that missed memory of another request
 * @ws: waiters of the device
 * @user: user that was charged for the memory
 * @since: accmem_waiters_tries() before the memory was allocated
 *
 * The slow path of accmem_waiters_wake_returned(). The caller's own waiter is not woken.
 *
 * Context: Not in an interrupt, without a spinlock held. Takes and releases
 * accmem_waiters.lock. Does not sleep.
 */
void __accmem_waiters_wake_returned(struct accmem_waiters *ws,
				    struct accmem_user *user, u64 since)
{
	struct accmem_queue_waiter *q = NULL;

	spin_lock(&ws->lock);
	while ((q = accmem_queue_walk(&ws->queue, q))) {
		if (accmem_waiter_of(q)->task != current)
			accmem_queue_memory_missed(&ws->queue, q, since);
	}
	accmem_waiters_run_queue(ws);
	waiters_uncharged(ws, user);
}

/**
 * accmem_waiters_limits_raised() - wake waiters after a change of a limit
 *
 * Context: Process context. Takes and releases waiters_list_lock and accmem_waiters.lock.
 */
void accmem_waiters_limits_raised(void)
{
	struct accmem_waiters *ws;

	spin_lock(&waiters_list_lock);
	list_for_each_entry(ws, &waiters_list, link) {
		spin_lock(&ws->lock);
		accmem_queue_limits_raised(&ws->queue);
		accmem_waiters_run_queue(ws);
		spin_unlock(&ws->lock);
	}
	spin_unlock(&waiters_list_lock);
}

/**
 * __accmem_waiters_count_bypass() - count an allocation that did not wait
 * @cv: carveout
 * @user: user that allocated
 * @got: bytes allocated
 *
 * The slow path of accmem_waiters_count_bypass(). The allocation is a bypass only if
 * the waiter at the front of the queue could have used the same carveout.
 *
 * Context: Not in an interrupt. Takes and releases accmem_waiters.lock. Does not sleep.
 */
void __accmem_waiters_count_bypass(struct accmem_carveout *cv,
				   struct accmem_user *user, u64 got)
{
	struct accmem_waiters *ws = cv->waiters;
	struct accmem_queue *queue = &ws->queue;
	struct accmem_queue_waiter *front;

	spin_lock(&ws->lock);
	front = accmem_queue_front(queue);
	if (front &&
	    accmem_waiter_of(front)->demand.carveouts & BIT(cv->index)) {
		accmem_queue_count_bypass(queue, &user->waiting[ws->index], got,
					  ktime_get_ns());
		if (queue->reserved)
			accmem_waiters_run_queue(ws);
	}
	spin_unlock(&ws->lock);
}
