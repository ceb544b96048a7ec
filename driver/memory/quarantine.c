// SPDX-License-Identifier: GPL-2.0
/*
 * The reaper: quarantined memory becomes free when its pages have come home.
 *
 * Looked at by a worker, from time to time, and by requests that would fail.
 * One memory is looked at under quarantine_lock, so that it is in its list for all
 * others: who has seen every memory there has missed none. Nobody holds the lock for
 * long: of a memory with many pages some are given back, and it stays where it is;
 * whoever has the lock next goes on with it. A look is cheap, or
 * it finds out: then mappings that hide the answer are taken down, of the same
 * account, which come back by a fault. Others' memory is never more than looked
 * at on behalf of a request; the worker finds out.
 *
 * Locks: quarantine_lock > folio lock, the carveout's lock, users_lock.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/quarantine.h"

#define REAP_DELAY_FIND_OUT msecs_to_jiffies(40)
#define REAP_DELAY_MAX msecs_to_jiffies(1000)

/*
 * The memory that was looked at longest ago, of @account if that is given: its own list
 * is in its order alone, so that it has asked all when it has asked so many.
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
		bo = list_first_entry_or_null(&cv->quarantine, struct accmem_bo,
					      link);
	accmem_carveout_unlock(cv);
	return bo;
}

/* it is looked at again after all others, of @account if that is given */
static void quarantine_keep(struct accmem_carveout *cv, struct accmem_bo *bo,
			    struct accmem_account *account)
{
	accmem_carveout_lock(cv);
	list_move_tail(&bo->link, &cv->quarantine);
	if (account)
		list_move_tail(&bo->own_link,
			       &account->quarantine[cv->index].memory);
	accmem_carveout_unlock(cv);
}

static void quarantine_free(struct accmem_carveout *cv, struct accmem_bo *bo)
{
	struct accmem_quarantine *own = &bo->account->quarantine[cv->index];

	accmem_carveout_lock(cv);
	list_del_init(&bo->link);
	list_del_init(&bo->own_link);
	WRITE_ONCE(own->nr, own->nr - 1);
	WRITE_ONCE(cv->nr_quarantined, cv->nr_quarantined - 1);
	accmem_carveout_unlock(cv);
	accmem_bo_free(bo);
	module_put(THIS_MODULE);
}

/* what a hold of the lock came to */
enum reap {
	REAP_END, /* there is nothing to look at, or the caller is being killed */
	REAP_PART, /* some pages of a memory went, which is the next one again */
	REAP_WHOLE, /* one memory has been looked at */
};

static enum reap quarantine_look(struct accmem_carveout *cv,
				 struct accmem_account *account, bool find_out)
{
	const struct accmem_backing_ops *ops = cv->ops;
	struct accmem_bo *bo = quarantine_next(cv, account);

	lockdep_assert_held(&cv->quarantine_lock);
	if (!bo)
		return REAP_END;
	if (accmem_bo_release_pages(bo, find_out))
		return REAP_PART;
	if (find_out || ops->release_pages ? ops->unmap_and_check(bo) :
					     ops->check_idle(bo))
		quarantine_free(cv, bo);
	else
		quarantine_keep(cv, bo, account);
	return REAP_WHOLE;
}

static enum reap quarantine_one(struct accmem_carveout *cv,
				struct accmem_account *account, bool find_out,
				u32 pass)
{
	enum reap ret;

	if (mutex_lock_killable(&cv->quarantine_lock))
		return REAP_END;
	cv->quarantine_pass = pass;
	ret = quarantine_look(cv, account, find_out);
	mutex_unlock(&cv->quarantine_lock);
	cond_resched();
	return ret;
}

static u32 quarantine_next_pass(void)
{
	static atomic_t passes;

	return atomic_inc_return(&passes) ?: atomic_inc_return(&passes);
}

/* looks at @nr, in @holds of the lock at most */
static void quarantine_pass(struct accmem_carveout *cv,
			    struct accmem_account *account, bool find_out,
			    unsigned int nr, unsigned int holds)
{
	u32 pass = quarantine_next_pass();
	enum reap ret;

	while (nr && holds--) {
		ret = quarantine_one(cv, account, find_out, pass);
		if (ret == REAP_END)
			break;
		nr -= ret == REAP_WHOLE;
	}
}

/**
 * accmem_quarantine_scan() - look at quarantined memory, for a bounded time
 * @cv: the carveout
 * @most: how many to look at; those that were not are the next ones. A part of one
 *	that has many pages to give back counts as one.
 */
void accmem_quarantine_scan(struct accmem_carveout *cv, unsigned int most)
{
	quarantine_pass(cv, NULL, false,
			min(most, READ_ONCE(cv->nr_quarantined)), most);
}

/**
 * accmem_quarantine_scan_force() - look at quarantined memory until it is known what can be had
 * @cv: the carveout
 * @most: how many to look at
 */
void accmem_quarantine_scan_force(struct accmem_carveout *cv, unsigned int most)
{
	quarantine_pass(cv, NULL, false,
			min(most, READ_ONCE(cv->nr_quarantined)), UINT_MAX);
}

/**
 * accmem_quarantine_scan_account() - find out which quarantined memory can be had
 * @cv: the carveout
 * @account: whose
 */
void accmem_quarantine_scan_account(struct accmem_carveout *cv,
				    struct accmem_account *account)
{
	quarantine_pass(cv, account, true,
			READ_ONCE(account->quarantine[cv->index].nr), UINT_MAX);
}

/**
 * accmem_quarantine_is_idle() - find out whether a memory in use is pinned
 * @bo: the memory, without mappings, which keeps its pages. Mappings of others
 *	that hide the answer are taken down.
 *
 * Return: true if nobody but us has a reference to its pages.
 */
bool accmem_quarantine_is_idle(struct accmem_bo *bo)
{
	struct accmem_carveout *cv = bo->cv;
	bool idle;

	if (!cv->ops->check_unpinned)
		return true;
	/* no answer of another's is taken for one's own */
	if (!cv->units)
		return cv->ops->check_unpinned(bo);
	if (mutex_lock_killable(&cv->quarantine_lock))
		return false;
	cv->quarantine_pass = quarantine_next_pass();
	idle = cv->ops->check_unpinned(bo);
	mutex_unlock(&cv->quarantine_lock);
	return idle;
}

static void quarantine_work(struct work_struct *work)
{
	struct accmem_carveout *cv = container_of(work, struct accmem_carveout,
						  quarantine_work.work);
	unsigned long delay = 0;

	/* what stays is pinned, or hidden by neighbours' mappings: find out */
	quarantine_pass(cv, NULL,
			READ_ONCE(cv->quarantine_delay) > REAP_DELAY_FIND_OUT,
			READ_ONCE(cv->nr_quarantined), UINT_MAX);
	accmem_carveout_lock(cv);
	if (cv->nr_quarantined) {
		delay = cv->quarantine_delay;
		WRITE_ONCE(cv->quarantine_delay,
			   min(2 * delay, REAP_DELAY_MAX));
	}
	accmem_carveout_unlock(cv);
	if (delay)
		queue_delayed_work(accmem_wq, &cv->quarantine_work, delay);
}

/**
 * accmem_quarantine_init() - get the reaper of a carveout ready
 * @cv: the carveout
 */
void accmem_quarantine_init(struct accmem_carveout *cv)
{
	mutex_init(&cv->quarantine_lock);
	INIT_DELAYED_WORK(&cv->quarantine_work, quarantine_work);
}

/**
 * accmem_quarantine_stop() - end the reaper
 * @cv: the carveout, all of whose memory is free
 */
void accmem_quarantine_stop(struct accmem_carveout *cv)
{
	cancel_delayed_work_sync(&cv->quarantine_work);
	mutex_destroy(&cv->quarantine_lock);
}
