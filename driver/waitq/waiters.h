/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waiters: calls of ALLOC that wait for memory of a device, or for a limit.
 */
#ifndef ACCMEM_WAITERS_H
#define ACCMEM_WAITERS_H

#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/accmem.h>

#include "lib/accmem_queue.h"
#include "core/carveout.h"
#include "types/waiters_types.h"

#define ACCMEM_WAIT_BYPASS_BOUND 16u
#define ACCMEM_WAITERS_PER_USER 256u /* of a device */
#define ACCMEM_WAIT_RESTART_MS 1000u /* for a call to be made again */

struct accmem_account;
struct accmem_context;
struct accmem_device;
struct accmem_memory;
struct accmem_user;
struct eventfd_ctx;

static inline void accmem_shrinkable_init(struct accmem_shrinkable *shrink)
{
	mutex_init(&shrink->lock);
	INIT_LIST_HEAD(&shrink->link);
	init_waitqueue_head(&shrink->poll);
}

/* prospect.c */
u64 accmem_prospect_free_bytes(struct accmem_carveout *cv);
bool accmem_prospect_is_in_vain(const struct accmem_prospect *p,
				const struct accmem_account *account,
				bool exempt);
bool accmem_prospect_fits(const struct accmem_queue_waiter *q, u64 promised,
			  void *arg);

/* waiters.c */
extern spinlock_t accmem_waiters_lock;
extern unsigned int accmem_nr_waiting; /* of all devices */

void accmem_waiters_init(struct accmem_waiters *ws);
void accmem_waiters_stop(struct accmem_waiters *ws);

int accmem_waiters_enter(struct accmem_waiter *w, bool defer);
bool accmem_waiters_begin(struct accmem_waiter *w);
bool accmem_waiters_sleep(struct accmem_waiter *w, bool limited);
void accmem_waiters_leave(struct accmem_waiter *w, int err);
bool accmem_waiters_give_up(struct accmem_waiter *w, int err, bool restarts,
			    bool has_tried);
struct accmem_waiter *accmem_waiters_resume(struct accmem_context *ctx,
					    const struct accmem_alloc *req);
void accmem_waiters_forget(struct accmem_context *ctx);

u64 accmem_waiters_wanted(const struct accmem_account *account,
			  unsigned int *nr);
bool accmem_waiters_offer(struct accmem_carveout *cv,
			  const struct accmem_run *run, u32 cache_mode,
			  bool (*give)(struct accmem_waiter *w, void *arg),
			  void *arg);
void accmem_waiters_wake_changed(struct accmem_device *dev,
				 struct accmem_user *user, bool memory);
void accmem_waiters_limits_rose(void);
void accmem_waiters_count_pass(struct accmem_carveout *cv,
			       struct accmem_user *user, u64 got);
bool accmem_waiters_admit_to(const struct accmem_carveout *cv,
			     const struct accmem_account *account);

/* Is somebody waiting, of whichever device? */
static inline bool accmem_waiters_present(void)
{
	return unlikely(READ_ONCE(accmem_nr_waiting));
}

/*
 * Memory, or a part of a charge, has come back. @user, who may be NULL, is there
 * still. The caller holds no spinlock.
 */
static inline void accmem_waiters_came_back(struct accmem_device *dev,
					    struct accmem_user *user)
{
	if (accmem_waiters_present())
		accmem_waiters_wake_changed(dev, user, true);
}

/* A charge has sunk; what it was for has not come back. As above. */
static inline void accmem_waiters_sank(struct accmem_device *dev,
				       struct accmem_user *user)
{
	if (accmem_waiters_present())
		accmem_waiters_wake_changed(dev, user, false);
}

/* somebody who does not wait was given @got bytes of a carveout */
static inline void accmem_waiters_pass(struct accmem_carveout *cv,
				       struct accmem_user *user, u64 got)
{
	if (accmem_waiters_present())
		accmem_waiters_count_pass(cv, user, got);
}

/* May memory be taken for an account, or is it reserved for another's waiter? */
static inline bool accmem_waiters_admit(const struct accmem_carveout *cv,
					const struct accmem_account *account)
{
	return !accmem_waiters_present() ||
	       accmem_waiters_admit_to(cv, account);
}

#endif /* ACCMEM_WAITERS_H */
