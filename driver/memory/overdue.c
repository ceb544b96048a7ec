// SPDX-License-Identifier: GPL-2.0
/*
 * Overdue memory: pending memory whose dependency does not signal.
 *
 * A pending free is overdue after overdue_ms: the task or the driver that should
 * signal its position or its fence has probably hung. The work item of the carveout
 * moves the buffer object from the list of pending memory to the list of overdue
 * memory, counts its bytes as quarantined, and reports it. The free still waits for
 * the dependency. No timeout frees the memory, since a device may still use it.
 *
 * Locking: the carveout's lock guards both lists. The work item takes the lock for one
 * buffer object at a time, and reports without the lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/moduleparam.h>

#include "core/account.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/overdue.h"
#include "trace/trace.h"

#define OVERDUE_SCAN_MS 1000u /* longest time between two checks */

static unsigned int overdue_ms = 10000;
module_param(overdue_ms, uint, 0644);
MODULE_PARM_DESC(overdue_ms,
		 "ms until pending frees are reported (0: never; 10000)");

/*
 * Make the first pending buffer object overdue if it has waited for @limit_ms. Return
 * its account, with a reference, or NULL.
 */
static struct accmem_account *overdue_next(struct accmem_carveout *cv,
					   unsigned int limit_ms, u64 *size,
					   unsigned int *ms)
{
	struct accmem_account *account = NULL;
	struct accmem_bo *bo;

	accmem_carveout_lock(cv);
	bo = list_first_entry_or_null(&cv->pending, struct accmem_bo, link);
	*ms = bo ? jiffies_to_msecs(jiffies - bo->since) : 0;
	if (bo && *ms >= limit_ms) {
		accmem_bo_set_overdue(bo);
		account = bo->account;
		accmem_account_get(account);
		*size = bo->size;
	}
	accmem_carveout_unlock(cv);
	return account;
}

static void overdue_report(struct accmem_account *account, u64 size,
			   unsigned int ms)
{
	trace_accmem_overdue(account, size, ms);
	if (accmem_user_ratelimit(account->user))
		pr_warn("%s: context %llu: %*pE[%d]: %llu bytes have been waiting for %u ms for a position or a fence that does not come; quarantined until it does\n",
			account->accounts->name, account->id,
			(int)strlen(account->comm), account->comm, account->pid,
			size, ms);
}

static void overdue_work(struct work_struct *work)
{
	struct accmem_carveout *cv =
		container_of(work, struct accmem_carveout, overdue_work.work);
	unsigned int limit_ms = READ_ONCE(overdue_ms), ms;
	struct accmem_account *account;
	bool more;
	u64 size;

	while (limit_ms && (account = overdue_next(cv, limit_ms, &size, &ms))) {
		overdue_report(account, size, ms);
		accmem_account_put(account);
		cond_resched();
	}
	accmem_carveout_lock(cv);
	more = !list_empty(&cv->pending);
	accmem_carveout_unlock(cv);
	if (!more)
		return;
	ms = min(limit_ms ?: OVERDUE_SCAN_MS, OVERDUE_SCAN_MS);
	queue_delayed_work(accmem_wq, &cv->overdue_work, msecs_to_jiffies(ms));
}

/**
 * accmem_overdue_init() - initialise the check for overdue memory
 * @cv: the carveout
 */
void accmem_overdue_init(struct accmem_carveout *cv)
{
	INIT_DELAYED_WORK(&cv->overdue_work, overdue_work);
}

/**
 * accmem_overdue_stop() - stop the check for overdue memory
 * @cv: the carveout, all of whose memory is free
 *
 * Context: Process context. Waits for the work item. May sleep.
 */
void accmem_overdue_stop(struct accmem_carveout *cv)
{
	cancel_delayed_work_sync(&cv->overdue_work);
}
