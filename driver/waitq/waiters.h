/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waiters: calls of ALLOC that wait for memory of a device, or for a limit.
 */
#ifndef ACCMEM_WAITQ_WAITERS_H
#define ACCMEM_WAITQ_WAITERS_H

#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/wait.h>

#include "types/waiters_types.h"

struct accmem_alloc;
struct accmem_run;
struct accmem_user;

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
void accmem_waiters_count_pass(struct accmem_carveout *cv,
			       struct accmem_user *user, u64 got);
bool accmem_waiters_admit_to(const struct accmem_carveout *cv,
			     const struct accmem_account *account);

static inline void accmem_shrinkable_init(struct accmem_shrinkable *shrink)
{
	mutex_init(&shrink->lock);
	INIT_LIST_HEAD(&shrink->link);
	init_waitqueue_head(&shrink->poll);
}

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

#endif /* ACCMEM_WAITQ_WAITERS_H */
