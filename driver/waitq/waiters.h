/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waiters: ALLOC calls that wait for memory of a device, or for a limit.
 *
 * A call that waits enters the queue, tries and sleeps in turn, and leaves:
 * accmem_waiters_enter(), _start_try(), _sleep(), and _leave() or _cancel(). A call
 * that frees memory or lowers a charge wakes waiters; an allocation that does not wait
 * asks accmem_waiters_permit() first and counts as a bypass afterwards. These helpers
 * cost one test while there is no waiter.
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
extern unsigned int accmem_nr_waiting; /* waiters of all devices */

void accmem_waiters_init(struct accmem_waiters *ws,
			 struct accmem_carveouts *carveouts,
			 unsigned int index);
void accmem_waiters_stop(struct accmem_waiters *ws);
int accmem_waiters_enter(struct accmem_waiter *w, bool defer);
bool accmem_waiters_start_try(struct accmem_waiter *w);
bool accmem_waiters_sleep(struct accmem_waiter *w, bool limited);
void accmem_waiters_leave(struct accmem_waiter *w, int err);
bool accmem_waiters_cancel(struct accmem_waiter *w, int err, bool restarts,
			   bool has_tried);
struct accmem_waiter *accmem_waiters_resume(struct accmem_context *ctx,
					    const struct accmem_alloc *req);
void accmem_waiters_drop_interrupted(struct accmem_context *ctx);
u64 accmem_waiters_shortfall(const struct accmem_account *account,
			     unsigned int *nr);
bool accmem_waiters_try_handoff(struct accmem_carveout *cv,
				const struct accmem_run *run, u32 cache_mode,
				bool (*give)(struct accmem_waiter *w,
					     void *arg),
				void *arg);
void __accmem_waiters_wake(struct accmem_waiters *ws, struct accmem_user *user,
			   bool memory);
void __accmem_waiters_count_bypass(struct accmem_carveout *cv,
				   struct accmem_user *user, u64 got);
bool __accmem_waiters_permit(const struct accmem_carveout *cv,
			     const struct accmem_account *account);

static inline void
accmem_pressure_client_init(struct accmem_pressure_client *client)
{
	mutex_init(&client->lock);
	INIT_LIST_HEAD(&client->link);
	init_waitqueue_head(&client->poll);
}

/*
 * Return true if any device has a waiter. Racy read: a waiter that is counted after it
 * tries again afterwards, and so misses no memory.
 */
static inline bool accmem_waiters_present(void)
{
	return unlikely(READ_ONCE(accmem_nr_waiting));
}

/*
 * Call after memory of the device of @ws was freed, and a charge of @user may have
 * fallen. @user may be NULL; otherwise the caller holds a reference. No spinlock may be
 * held.
 */
static inline void accmem_waiters_wake_freed(struct accmem_waiters *ws,
					     struct accmem_user *user)
{
	if (accmem_waiters_present())
		__accmem_waiters_wake(ws, user, true);
}

/* Call after an uncharge that freed no memory. No spinlock may be held. */
static inline void accmem_waiters_wake_uncharged(struct accmem_waiters *ws,
						 struct accmem_user *user)
{
	if (accmem_waiters_present())
		__accmem_waiters_wake(ws, user, false);
}

/* Call after an allocation of @got bytes that did not wait. */
static inline void accmem_waiters_count_bypass(struct accmem_carveout *cv,
					       struct accmem_user *user,
					       u64 got)
{
	if (accmem_waiters_present())
		__accmem_waiters_count_bypass(cv, user, got);
}

/* Return false if the memory of a carveout is reserved for another account. */
static inline bool accmem_waiters_permit(const struct accmem_carveout *cv,
					 const struct accmem_account *account)
{
	return !accmem_waiters_present() ||
	       __accmem_waiters_permit(cv, account);
}

#endif /* ACCMEM_WAITQ_WAITERS_H */
