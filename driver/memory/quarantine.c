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
 *
 * Locking: quarantine.lock > folio lock, the carveout's lock, users_lock.
 * quarantine.lock is held while one buffer object is checked. The buffer object stays
 * on its lists meanwhile, so that no scan misses it. Of a buffer object with many
 * pages, one critical section frees some, and the next task with the lock continues.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/sched/signal.h>

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
		bo = list_first_entry_or_null(&account->quarantine[i].memory,
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
			       &account->quarantine[cv->index].memory);
	accmem_carveout_unlock(cv);
}

static void quarantine_free(struct accmem_carveout *cv, struct accmem_bo *bo)
{
	struct accmem_account_quarantine *own =
		&bo->account->quarantine[cv->index];

	accmem_carveout_lock(cv);
	list_del_init(&bo->link);
	list_del_init(&bo->own_link);
	WRITE_ONCE(own->nr, own->nr - 1);
	WRITE_ONCE(cv->quarantine.nr, cv->quarantine.nr - 1);
	accmem_carveout_unlock(cv);
	accmem_bo_free(bo);
	module_put(THIS_MODULE);
}

/* Result of one critical section of quarantine.lock. */
enum quarantine_scan {
	QUARANTINE_END, /* the list is empty, or the caller is being killed */
	QUARANTINE_PART, /* some pages were freed; the buffer object is still first */
	QUARANTINE_WHOLE, /* one buffer object was checked */
};

static enum quarantine_scan quarantine_check(struct accmem_carveout *cv,
					     struct accmem_account *account,
					     bool unmap)
{
	struct accmem_bo *bo = quarantine_next(cv, account);

	lockdep_assert_held(&cv->quarantine.lock);
	if (!bo)
		return QUARANTINE_END;
	if (accmem_bo_release_pages(bo, unmap))
		return QUARANTINE_PART;
	if (!cv->ops->is_idle(bo,
			      unmap ? ACCMEM_IDLE_UNMAP : ACCMEM_IDLE_COUNT)) {
		quarantine_requeue(cv, bo, account);
		return QUARANTINE_WHOLE;
	}
	/* Pins may have gone since the first call: many pages may be left. */
	if (accmem_bo_release_pages(bo, true))
		return QUARANTINE_PART;
	quarantine_free(cv, bo);
	return QUARANTINE_WHOLE;
}

static enum quarantine_scan quarantine_one(struct accmem_carveout *cv,
					   struct accmem_account *account,
					   bool unmap, u32 pass)
{
	enum quarantine_scan ret;

	if (mutex_lock_killable(&cv->quarantine.lock))
		return QUARANTINE_END;
	cv->quarantine.pass = pass;
	ret = quarantine_check(cv, account, unmap);
	mutex_unlock(&cv->quarantine.lock);
	cond_resched();
	return ret;
}

static u32 quarantine_next_pass(void)
{
	static atomic_t passes;

	return atomic_inc_return(&passes) ?: atomic_inc_return(&passes);
}

/* Check @nr buffer objects, in at most @holds critical sections. */
static void quarantine_pass(struct accmem_carveout *cv,
			    struct accmem_account *account, bool unmap,
			    unsigned int nr, unsigned int holds)
{
	u32 pass = quarantine_next_pass();
	enum quarantine_scan ret;

	while (nr && holds--) {
		ret = quarantine_one(cv, account, unmap, pass);
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
 *
 * Context: Process context. Takes and releases quarantine.lock. May sleep.
 */
void accmem_quarantine_scan(struct accmem_carveout *cv, unsigned int most)
{
	quarantine_pass(cv, NULL, false,
			min(most, READ_ONCE(cv->quarantine.nr)), most);
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
	quarantine_pass(cv, NULL, false,
			min(most, READ_ONCE(cv->quarantine.nr)), UINT_MAX);
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
	quarantine_pass(cv, account, true,
			READ_ONCE(account->quarantine[cv->index].nr), UINT_MAX);
}

/**
 * accmem_quarantine_is_idle() - check that memory in use is not pinned
 * @bo: the buffer object, which the caller has unmapped; it stays in use
 *
 * The function unmaps neighbours in the same folio whose mappings hide the answer.
 *
 * Context: Process context. Takes and releases quarantine.lock in a carveout whose
 * memory can be dirty, else accmem_bo.lock. May sleep.
 * Return: true if only the driver has references to the pages; false if another
 * reference exists, or if the caller is being killed.
 */
bool accmem_quarantine_is_idle(struct accmem_bo *bo)
{
	struct accmem_carveout *cv = bo->cv;
	bool idle;

	if (!cv->ops->is_idle)
		return true;
	/* Without cv->chunks no pass stores results, and the check needs no own pass. */
	if (!cv->chunks)
		return cv->ops->is_idle(bo, ACCMEM_IDLE_IN_USE);
	if (mutex_lock_killable(&cv->quarantine.lock))
		return false;
	cv->quarantine.pass = quarantine_next_pass();
	idle = cv->ops->is_idle(bo, ACCMEM_IDLE_IN_USE);
	mutex_unlock(&cv->quarantine.lock);
	return idle;
}

static void quarantine_work(struct work_struct *work)
{
	struct accmem_carveout *cv = container_of(work, struct accmem_carveout,
						  quarantine.work.work);
	unsigned long delay = 0;

	/* After some delay, unmap the neighbours that may hide the answer. */
	quarantine_pass(cv, NULL,
			READ_ONCE(cv->quarantine.delay) >
				QUARANTINE_DELAY_UNMAP,
			READ_ONCE(cv->quarantine.nr), UINT_MAX);
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
