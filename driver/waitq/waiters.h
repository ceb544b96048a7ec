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

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/wait.h>

#include "types/account_types.h"
#include "types/carveout_types.h"
#include "types/waiters_types.h"

struct accmem_alloc;
struct accmem_run;
struct accmem_user;
struct seq_file;

int accmem_waiters_enter(struct accmem_waiter *w, bool defer);
bool accmem_waiters_start_try(struct accmem_waiter *w);
bool accmem_waiters_sleep(struct accmem_waiter *w, bool limited);
void accmem_waiters_leave(struct accmem_waiter *w, int err);
bool accmem_waiters_cancel(struct accmem_waiter *w, int err, bool restarts,
			   bool has_tried);
void accmem_waiters_revoke(struct accmem_waiters *ws);
u64 accmem_waiters_shortfall(const struct accmem_account *account,
			     unsigned int *nr);

/* interrupted.c */
struct accmem_waiter *accmem_waiters_resume(struct accmem_context *ctx,
					    const struct accmem_alloc *req);
void accmem_waiters_drop_interrupted(struct accmem_context *ctx);

/* handoff.c */
bool accmem_waiters_try_handoff(struct accmem_carveout *cv,
				const struct accmem_run *run, u32 cache_mode,
				bool (*give)(struct accmem_waiter *w,
					     void *arg),
				void *arg);

/* scan.c */
void accmem_waiters_init(struct accmem_waiters *ws,
			 struct accmem_carveouts *carveouts,
			 unsigned int index);
void accmem_waiters_stop(struct accmem_waiters *ws);

/* times.c */
void accmem_wait_times_show(struct seq_file *m, struct accmem_waiters *ws);

/* wake.c */
void accmem_waiters_link(struct accmem_waiters *ws);
void accmem_waiters_unlink(struct accmem_waiters *ws);
u64 accmem_waiters_tries(const struct accmem_waiters *ws);
void __accmem_waiters_wake(struct accmem_waiters *ws, struct accmem_user *user,
			   bool memory);
void __accmem_waiters_wake_freed(struct accmem_carveout *cv,
				 struct accmem_user *user, u64 bytes);
void __accmem_waiters_wake_returned(struct accmem_waiters *ws,
				    struct accmem_user *user, u64 since);
void __accmem_waiters_count_bypass(struct accmem_carveout *cv,
				   struct accmem_user *user, u64 got);
bool __accmem_waiters_permit(struct accmem_carveout *cv,
			     const struct accmem_account *account, u64 size);

static inline void
accmem_pressure_client_init(struct accmem_pressure_client *client)
{
	mutex_init(&client->lock);
	INIT_LIST_HEAD(&client->link);
	init_waitqueue_head(&client->poll);
}

/*
 * Return true if a call may have to wake a waiter of the device, or of @user on another
 * device. @user may be NULL. Racy read: a waiter that is counted after it tries again
 * afterwards, and so misses no memory.
 */
static inline bool accmem_waiters_present(const struct accmem_waiters *ws,
					  const struct accmem_user *user)
{
	return unlikely(READ_ONCE(ws->nr)) ||
	       (user && unlikely(atomic_read(&user->nr_waiting)));
}

/*
 * Call after @bytes of a carveout were freed, and a charge of @user may have fallen.
 * @user may be NULL; otherwise the caller holds a reference. No spinlock may be held.
 */
static inline void accmem_waiters_wake_freed(struct accmem_carveout *cv,
					     struct accmem_user *user,
					     u64 bytes)
{
	if (accmem_waiters_present(cv->waiters, user))
		__accmem_waiters_wake_freed(cv, user, bytes);
}

/*
 * Call after a change that may let a waiter use memory that is not free for others. No
 * spinlock may be held.
 */
static inline void accmem_waiters_wake(struct accmem_waiters *ws,
				       struct accmem_user *user)
{
	if (accmem_waiters_present(ws, user))
		__accmem_waiters_wake(ws, user, true);
}

/* Call after an uncharge that freed no memory. No spinlock may be held. */
static inline void accmem_waiters_wake_uncharged(struct accmem_waiters *ws,
						 struct accmem_user *user)
{
	if (accmem_waiters_present(ws, user))
		__accmem_waiters_wake(ws, user, false);
}

/*
 * Call after a request has given back memory that it had allocated. @since is
 * accmem_waiters_tries() before the allocation. No spinlock may be held.
 */
static inline void accmem_waiters_wake_returned(struct accmem_waiters *ws,
						struct accmem_user *user,
						u64 since)
{
	if (accmem_waiters_present(ws, user))
		__accmem_waiters_wake_returned(ws, user, since);
}

/* Call after an allocation of @got bytes that did not wait. */
static inline void accmem_waiters_count_bypass(struct accmem_carveout *cv,
					       struct accmem_user *user,
					       u64 got)
{
	if (unlikely(READ_ONCE(cv->waiters->nr)))
		__accmem_waiters_count_bypass(cv, user, got);
}

/* Return false if an allocation would use memory that is held for another account. */
static inline bool accmem_waiters_permit(struct accmem_carveout *cv,
					 const struct accmem_account *account,
					 u64 size)
{
	return !unlikely(READ_ONCE(cv->waiters->reserved_for)) ||
	       __accmem_waiters_permit(cv, account, size);
}

#endif /* ACCMEM_WAITQ_WAITERS_H */
