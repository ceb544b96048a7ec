// SPDX-License-Identifier: GPL-2.0
/*
 * Quarantine: freed memory whose pages are still pinned.
 *
 * A quarantined buffer object is on two lists, one of the carveout and one of its
 * account, and stays charged. It is freed when a scan finds no pins.
 *
 * A worker scans the list of the carveout, with a delay that grows to a second. A
 * request that would fail scans first. A query of free memory scans for a bounded time.
 *
 * There are two checks. The plain check compares reference counts. The check with
 * unmapping first unmaps neighbours in the same folio whose mappings hide the answer;
 * they belong to the same account, and faults map them again. A request uses the check
 * with unmapping only for the memory of its own account; the worker uses it for all.
 * Unmapping takes a time that the account chooses, so no lock is held meanwhile: the
 * backing records the result, and the check begins anew. The worker leaves out a folio
 * that was unmapped a short time ago. A request waits for the end of this time.
 *
 * Locking: quarantine.lock > the carveout's lock. quarantine.lock is held while one buffer
 * object is checked. The buffer object stays on its lists meanwhile, so that no scan
 * misses it. Of a buffer object with many pages, one critical section frees some, and
 * the next task with the lock continues.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "core/account.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/quarantine.h"
#include "types/backing_types.h"

#define QUARANTINE_DELAY_UNMAP msecs_to_jiffies(40)
#define QUARANTINE_DELAY_MAX msecs_to_jiffies(1000)

/*
 * Return the buffer object whose last check is the oldest. With @account, only the
 * account's list is used. Only scans of the account reorder that list, so that a scan
 * of as many buffer objects as it holds checks each of them.
 */
static struct accmem_bo *quarantine_next(struct accmem_carveout *cv,
					 struct accmem_account *account)
{
	struct accmem_bo *bo;
	unsigned int i = cv->index;

	accmem_carveout_lock(cv);
	if (account)
		bo = list_first_entry_or_null(&account->memory[i].quarantined,
					      struct accmem_bo, own_link);
	else
		bo = list_first_entry_or_null(&cv->quarantine.list,
					      struct accmem_bo, link);
	accmem_carveout_unlock(cv);
	return bo;
}

/* Move @bo to the tail of the list, and to the tail of the list of @account if set. */
static void quarantine_requeue(struct accmem_carveout *cv, struct accmem_bo *bo,
			       struct accmem_account *account)
{
	accmem_carveout_lock(cv);
	list_move_tail(&bo->link, &cv->quarantine.list);
	if (account)
		list_move_tail(&bo->own_link,
			       &account->memory[cv->index].quarantined);
	accmem_carveout_unlock(cv);
}

static void quarantine_free(struct accmem_carveout *cv, struct accmem_bo *bo)
{
	struct accmem_account_memory *own = &bo->account->memory[cv->index];

	accmem_carveout_lock(cv);
	list_del_init(&bo->link);
	list_del_init(&bo->own_link);
	accmem_unnamed_remove(bo);
	WRITE_ONCE(own->nr_quarantined, own->nr_quarantined - 1);
	WRITE_ONCE(cv->quarantine.nr, cv->quarantine.nr - 1);
	accmem_carveout_unlock(cv);
	accmem_bo_free(bo);
	module_put(THIS_MODULE);
}

/* Result of one critical section of quarantine.lock. */
enum quarantine_result {
	QUARANTINE_END, /* the list is empty, or the caller stops */
	QUARANTINE_PART, /* some pages were freed; the buffer object is still first */
	QUARANTINE_HIDDEN, /* the caller unmaps a folio; the buffer object is still first */
	QUARANTINE_WHOLE, /* one buffer object was checked */
};

/*
 * struct scan - a pass over quarantined memory
 * @cv: the carveout
 * @account: account whose memory is checked, or NULL for all
 * @unmap: use the check with unmapping
 * @try: do not wait for quarantine.lock
 * @since: time in ns when the pass began
 * @owner: QUARANTINE_HIDDEN: the account that has mapped the folio, with a reference
 * @hidden: QUARANTINE_HIDDEN: the folio
 */
struct scan {
	struct accmem_carveout *cv;
	struct accmem_account *account;
	bool unmap;
	bool try;
	u64 since;
	struct accmem_account *owner;
	struct accmem_hidden hidden;
};

/* Can the answer for a buffer object be had by unmapping a folio? */
static bool scan_is_hidden(struct scan *scan, struct accmem_bo *bo)
{
	const struct accmem_folio_ops *ops = scan->cv->folio_ops;

	if (!scan->unmap || !ops ||
	    !ops->is_hidden(bo, scan->since, &scan->hidden))
		return false;
	if (scan->hidden.wait_ns && !scan->account)
		return false;
	scan->owner = bo->account;
	accmem_account_get(scan->owner);
	return true;
}

static enum quarantine_result scan_check(struct scan *scan)
{
	struct accmem_carveout *cv = scan->cv;
	struct accmem_bo *bo = quarantine_next(cv, scan->account);

	lockdep_assert_held(&cv->quarantine.lock);
	if (!bo)
		return QUARANTINE_END;
	if (accmem_bo_release_pages(bo, scan->unmap))
		return QUARANTINE_PART;
	if (!cv->ops->is_idle(bo, ACCMEM_IDLE_COUNT)) {
		if (scan_is_hidden(scan, bo))
			return QUARANTINE_HIDDEN;
		quarantine_requeue(cv, bo, scan->account);
		return QUARANTINE_WHOLE;
	}
	/* Pins may have gone since the first call: many pages may be left. */
	if (accmem_bo_release_pages(bo, true))
		return QUARANTINE_PART;
	quarantine_free(cv, bo);
	return QUARANTINE_WHOLE;
}

static bool scan_lock(struct scan *scan)
{
	struct mutex *lock = &scan->cv->quarantine.lock;

	if (scan->try)
		return mutex_trylock(lock);
	/* mutex_lock_killable() checks for signals only if it waits. */
	return !fatal_signal_pending(current) && !mutex_lock_killable(lock);
}

static enum quarantine_result scan_one(struct scan *scan)
{
	enum quarantine_result ret;

	if (!scan_lock(scan))
		return QUARANTINE_END;
	ret = scan_check(scan);
	mutex_unlock(&scan->cv->quarantine.lock);
	if (ret == QUARANTINE_HIDDEN) {
		if (scan->hidden.wait_ns)
			fsleep(scan->hidden.wait_ns / NSEC_PER_USEC + 1);
		scan->cv->folio_ops->unmap(scan->cv, scan->owner,
					   scan->hidden.at);
		accmem_account_put(scan->owner);
	}
	cond_resched();
	return ret;
}

/* Check @nr buffer objects, in at most @holds critical sections. */
static void scan_pass(struct scan *scan, unsigned int nr, unsigned int holds)
{
	enum quarantine_result ret;

	scan->since = ktime_get_ns();
	while (nr && holds--) {
		ret = scan_one(scan);
		if (ret == QUARANTINE_END)
			break;
		nr -= ret == QUARANTINE_WHOLE;
	}
}

/**
 * accmem_quarantine_scan() - check quarantined memory for a bounded time
 * @cv: the carveout
 * @most: largest number of critical sections of quarantine.lock
 *
 * A critical section checks one buffer object, or frees some pages of a buffer object
 * that has many. The next scan continues with the buffer objects that were not checked.
 * The function does not wait for a task that holds quarantine.lock, but ends.
 *
 * Context: Process context. Takes and releases quarantine.lock. May sleep.
 */
void accmem_quarantine_scan(struct accmem_carveout *cv, unsigned int most)
{
	struct scan scan = { .cv = cv, .try = true };

	scan_pass(&scan, min(most, READ_ONCE(cv->quarantine.nr)), most);
}

/**
 * accmem_quarantine_scan_unbounded() - check quarantined memory without a time limit
 * @cv: the carveout
 * @most: largest number of buffer objects to check
 *
 * Unlike accmem_quarantine_scan(), the function frees all pages that can be freed of
 * each buffer object that it checks.
 *
 * Context: Process context. Takes and releases quarantine.lock. May sleep.
 */
void accmem_quarantine_scan_unbounded(struct accmem_carveout *cv, unsigned int most)
{
	struct scan scan = { .cv = cv };

	scan_pass(&scan, min(most, READ_ONCE(cv->quarantine.nr)), UINT_MAX);
}

/**
 * accmem_quarantine_scan_account() - check all quarantined memory of an account
 * @cv: the carveout
 * @account: the account
 *
 * The function uses the check with unmapping.
 *
 * Context: Process context. Takes and releases quarantine.lock. May sleep.
 */
void accmem_quarantine_scan_account(struct accmem_carveout *cv,
				    struct accmem_account *account)
{
	struct scan scan = { .cv = cv, .account = account, .unmap = true };

	scan_pass(&scan, READ_ONCE(account->memory[cv->index].nr_quarantined),
		  UINT_MAX);
}

/**
 * accmem_quarantine_is_idle() - check that memory in use is not pinned
 * @bo: the buffer object, which the caller has unmapped; it stays in use
 *
 * The function unmaps neighbours in the same folio whose mappings hide the answer.
 *
 * Context: Process context. Takes and releases folio locks, or accmem_bo.lock. May sleep.
 * Return: true if only the driver has references to the pages; false if another
 * reference exists.
 */
bool accmem_quarantine_is_idle(struct accmem_bo *bo)
{
	return !bo->cv->ops->is_idle ||
	       bo->cv->ops->is_idle(bo, ACCMEM_IDLE_IN_USE);
}

static void quarantine_work(struct work_struct *work)
{
	struct accmem_carveout *cv = container_of(work, struct accmem_carveout,
						  quarantine.work.work);
	struct scan scan = { .cv = cv };
	unsigned long delay = 0;

	/* After some delay, unmap the neighbours that may hide the answer. */
	scan.unmap = READ_ONCE(cv->quarantine.delay) > QUARANTINE_DELAY_UNMAP;
	scan_pass(&scan, READ_ONCE(cv->quarantine.nr), UINT_MAX);
	accmem_carveout_lock(cv);
	if (cv->quarantine.nr) {
		delay = cv->quarantine.delay;
		WRITE_ONCE(cv->quarantine.delay,
			   min(2 * delay, QUARANTINE_DELAY_MAX));
	}
	accmem_carveout_unlock(cv);
	if (delay)
		queue_delayed_work(accmem_wq, &cv->quarantine.work, delay);
}

/**
 * accmem_quarantine_init() - initialise the quarantine of a carveout
 * @cv: the carveout
 */
void accmem_quarantine_init(struct accmem_carveout *cv)
{
	mutex_init(&cv->quarantine.lock);
	INIT_DELAYED_WORK(&cv->quarantine.work, quarantine_work);
}

/**
 * accmem_quarantine_stop() - stop the worker of the quarantine
 * @cv: the carveout, all of whose memory is free
 *
 * Context: Process context. Waits for the worker. May sleep.
 */
void accmem_quarantine_stop(struct accmem_carveout *cv)
{
	cancel_delayed_work_sync(&cv->quarantine.work);
	mutex_destroy(&cv->quarantine.lock);
}
