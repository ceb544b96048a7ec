// SPDX-License-Identifier: GPL-2.0
/*
 * The reaper: quarantined memory becomes free when its pages have come home.
 *
 * Looked at by a worker, from time to time, and by requests that would fail.
 * One memory is looked at under reap_lock, so that it is in its list for all
 * others: who has seen every memory there has missed none. Nobody holds the lock for
 * long: of a memory with many pages some are given back, and it stays where it is;
 * whoever has the lock next goes on with it. A look is cheap, or
 * it finds out: then mappings that hide the answer are taken down, of the same
 * account, which come back by a fault. Others' memory is never more than looked
 * at on behalf of a request; the worker finds out.
 *
 * Locks: reap_lock > folio lock, the carveout's lock, users_lock.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "core/carveout.h"
#include "internal.h"
#include "memory/memory.h"
#include "memory/quarantine.h"

#define REAP_DELAY_FIND_OUT msecs_to_jiffies(40)
#define REAP_DELAY_MAX msecs_to_jiffies(1000)

/*
 * The memory that was looked at longest ago, of @account if that is given: its own list
 * is in its order alone, so that it has asked all when it has asked so many.
 */
static struct accmem_memory *reap_next(struct accmem_carveout *cv,
				       struct accmem_account *account)
{
	struct accmem_memory *mem;
	unsigned int i = cv->index;

	accmem_carveout_lock(cv);
	if (account)
		mem = list_first_entry_or_null(&account->quarantine[i].memory,
					       struct accmem_memory, own_link);
	else
		mem = list_first_entry_or_null(&cv->quarantine,
					       struct accmem_memory, link);
	accmem_carveout_unlock(cv);
	return mem;
}

/* it is looked at again after all others, of @account if that is given */
static void reap_keep(struct accmem_carveout *cv, struct accmem_memory *mem,
		      struct accmem_account *account)
{
	accmem_carveout_lock(cv);
	list_move_tail(&mem->link, &cv->quarantine);
	if (account)
		list_move_tail(&mem->own_link,
			       &account->quarantine[cv->index].memory);
	accmem_carveout_unlock(cv);
}

static void reap_free(struct accmem_carveout *cv, struct accmem_memory *mem)
{
	struct accmem_quarantine *own = &mem->account->quarantine[cv->index];

	accmem_carveout_lock(cv);
	list_del_init(&mem->link);
	list_del_init(&mem->own_link);
	WRITE_ONCE(own->nr, own->nr - 1);
	WRITE_ONCE(cv->nr_quarantined, cv->nr_quarantined - 1);
	accmem_carveout_unlock(cv);
	accmem_memory_free(mem);
	module_put(THIS_MODULE);
}

/* what a hold of the lock came to */
enum reap {
	REAP_END, /* there is nothing to look at, or the caller is being killed */
	REAP_PART, /* some pages of a memory went, which is the next one again */
	REAP_WHOLE, /* one memory has been looked at */
};

static enum reap reap_look(struct accmem_carveout *cv,
			   struct accmem_account *account, bool find_out)
{
	const struct accmem_backing_ops *ops = cv->ops;
	struct accmem_memory *mem = reap_next(cv, account);

	lockdep_assert_held(&cv->reap_lock);
	if (!mem)
		return REAP_END;
	if (accmem_memory_shed(mem, find_out))
		return REAP_PART;
	if (find_out || ops->shed ? ops->settle(mem) : ops->idle(mem))
		reap_free(cv, mem);
	else
		reap_keep(cv, mem, account);
	return REAP_WHOLE;
}

static enum reap reap_one(struct accmem_carveout *cv,
			  struct accmem_account *account, bool find_out,
			  u32 pass)
{
	enum reap ret;

	if (mutex_lock_killable(&cv->reap_lock))
		return REAP_END;
	cv->reap_pass = pass;
	ret = reap_look(cv, account, find_out);
	mutex_unlock(&cv->reap_lock);
	cond_resched();
	return ret;
}

static u32 reap_next_pass(void)
{
	static atomic_t passes;

	return atomic_inc_return(&passes) ?: atomic_inc_return(&passes);
}

/* looks at @nr, in @holds of the lock at most */
static void reap_pass(struct accmem_carveout *cv,
		      struct accmem_account *account, bool find_out,
		      unsigned int nr, unsigned int holds)
{
	u32 pass = reap_next_pass();
	enum reap ret;

	while (nr && holds--) {
		ret = reap_one(cv, account, find_out, pass);
		if (ret == REAP_END)
			break;
		nr -= ret == REAP_WHOLE;
	}
}

/**
 * accmem_reap_some() - look at quarantined memory, for a bounded time
 * @cv: the carveout
 * @most: how many to look at; those that were not are the next ones. A part of one
 *	that has many pages to give back counts as one.
 */
void accmem_reap_some(struct accmem_carveout *cv, unsigned int most)
{
	reap_pass(cv, NULL, false, min(most, READ_ONCE(cv->nr_quarantined)),
		  most);
}

/**
 * accmem_reap_many() - look at quarantined memory until it is known what can be had
 * @cv: the carveout
 * @most: how many to look at
 */
void accmem_reap_many(struct accmem_carveout *cv, unsigned int most)
{
	reap_pass(cv, NULL, false, min(most, READ_ONCE(cv->nr_quarantined)),
		  UINT_MAX);
}

/**
 * accmem_reap_own() - find out which quarantined memory can be had
 * @cv: the carveout
 * @account: whose
 */
void accmem_reap_own(struct accmem_carveout *cv, struct accmem_account *account)
{
	reap_pass(cv, account, true,
		  READ_ONCE(account->quarantine[cv->index].nr), UINT_MAX);
}

/**
 * accmem_reap_is_idle() - find out whether a memory in use is pinned
 * @mem: the memory, without mappings, which keeps its pages. Mappings of others
 *	that hide the answer are taken down.
 *
 * Return: true if nobody but us has a reference to its pages.
 */
bool accmem_reap_is_idle(struct accmem_memory *mem)
{
	struct accmem_carveout *cv = mem->cv;
	bool idle;

	if (!cv->ops->unpinned)
		return true;
	/* no answer of another's is taken for one's own */
	if (!cv->units)
		return cv->ops->unpinned(mem);
	if (mutex_lock_killable(&cv->reap_lock))
		return false;
	cv->reap_pass = reap_next_pass();
	idle = cv->ops->unpinned(mem);
	mutex_unlock(&cv->reap_lock);
	return idle;
}

static void reap_work(struct work_struct *work)
{
	struct accmem_carveout *cv = container_of(work, struct accmem_carveout,
						  reap_work.work);
	unsigned long delay = 0;

	/* what stays is pinned, or hidden by neighbours' mappings: find out */
	reap_pass(cv, NULL, READ_ONCE(cv->reap_delay) > REAP_DELAY_FIND_OUT,
		  READ_ONCE(cv->nr_quarantined), UINT_MAX);
	accmem_carveout_lock(cv);
	if (cv->nr_quarantined) {
		delay = cv->reap_delay;
		WRITE_ONCE(cv->reap_delay, min(2 * delay, REAP_DELAY_MAX));
	}
	accmem_carveout_unlock(cv);
	if (delay)
		queue_delayed_work(accmem_wq, &cv->reap_work, delay);
}

/**
 * accmem_reap_init() - get the reaper of a carveout ready
 * @cv: the carveout
 */
void accmem_reap_init(struct accmem_carveout *cv)
{
	mutex_init(&cv->reap_lock);
	INIT_DELAYED_WORK(&cv->reap_work, reap_work);
}

/**
 * accmem_reap_stop() - end the reaper
 * @cv: the carveout, all of whose memory is free
 */
void accmem_reap_stop(struct accmem_carveout *cv)
{
	cancel_delayed_work_sync(&cv->reap_work);
	mutex_destroy(&cv->reap_lock);
}
