/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that only tmem/ uses.
 *
 * No lock of the driver but accmem_tmem.notify_mutex is held when accmem_tmem.lock is locked.
 * Only locks of the kernel are locked under it:
 *  - those of the scheduler, to wake a sleeping caller;
 *  - those of work queues and timers, for accmem_cta.expiry;
 *  - sighand->siglock of the caller, to find out whether the system call restarts.
 */
#ifndef ACCMEM_TMEM_INTERNAL_H
#define ACCMEM_TMEM_INTERNAL_H

#include <linux/jiffies.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "types/tmem_types.h"

struct accmem_columns_cta;
struct accmem_columns_sm;
struct accmem_context;
struct accmem_cta_query;
struct seq_file;
struct vm_area_struct;
struct work_struct;

/* An interrupted call stays queued this long. A result stays available for longer. */
#define ACCMEM_CTA_RESTART_MS 1000

/* tmem.c */
struct accmem_tmem *accmem_tmem_find(struct accmem_context *ctx);
struct accmem_tmem *accmem_tmem_get(struct accmem_context *ctx);
void accmem_tmem_put(struct accmem_tmem *tmem);

/* wake.c */
void accmem_tmem_wake_done(struct accmem_tmem *tmem);
int accmem_cta_conclude(struct accmem_cta *cta,
			const struct accmem_cta_call *call, int err);
void accmem_cta_withdraw(struct accmem_cta *cta);
void accmem_cta_complete(struct accmem_cta *cta, int err);
void accmem_cta_end_interruption(struct accmem_cta *cta);
void accmem_cta_drop(struct accmem_cta *cta);
bool accmem_cta_is_orphan(const struct accmem_cta *cta);
void accmem_cta_drop_orphan(struct accmem_cta *cta);

/* poll.c */
bool accmem_cta_would_grant(struct accmem_cta *cta);
void accmem_cta_init_pollers(struct accmem_cta *cta);
void accmem_cta_add_poller(struct accmem_cta *cta);
void accmem_cta_remove_poller(struct accmem_cta *cta);
void accmem_cta_check_poll(struct accmem_cta *cta);
void accmem_tmem_check_polls(struct accmem_tmem *tmem,
			     struct accmem_columns_sm *sm);

/* notify.c */
void accmem_cta_notify(struct accmem_cta *cta);
void accmem_cta_notify_polls(struct accmem_cta *cta);
void accmem_tmem_notify(struct accmem_tmem *tmem);
void accmem_tmem_notify_later(struct accmem_tmem *tmem);
int accmem_cta_set_eventfd(struct accmem_cta *cta, int fd);
void accmem_cta_stop_notify(struct accmem_cta *cta);
void accmem_tmem_init_notify(struct accmem_tmem *tmem);
void accmem_tmem_destroy_notify(struct accmem_tmem *tmem);

/* sleep.c */
void accmem_cta_begin_wait(struct accmem_cta *cta);
bool accmem_cta_may_be_closed(const struct accmem_cta *cta);
bool accmem_cta_is_open(struct accmem_cta *cta, unsigned int nr_closed);
int accmem_cta_sleep(struct accmem_cta *cta, const struct accmem_cta_call *call,
		     u64 deadline_ns);
bool accmem_cta_resume(struct accmem_cta *cta,
		       const struct accmem_cta_call *call);
void accmem_cta_give_up(struct accmem_cta *cta);
int accmem_cta_resumed(struct accmem_cta *cta);
void accmem_cta_expire_at(struct accmem_cta *cta, u64 deadline_ns);
void accmem_cta_expired(struct work_struct *work);

/* map.c */
int accmem_cta_mmap(struct file *file, struct vm_area_struct *vma);
void accmem_tmem_init_maps(struct accmem_tmem *tmem);
void accmem_tmem_put_maps(struct accmem_tmem *tmem);

/* cta.c */
struct accmem_cta *accmem_cta_create(struct accmem_tmem *tmem,
				     const struct accmem_window *window);

/* queue.c */
int accmem_cta_submit(struct accmem_cta *cta,
		      const struct accmem_cta_call *call);
int accmem_cta_cancel(struct accmem_cta *cta);
ssize_t accmem_cta_read(struct file *file, char __user *buf, size_t size,
			loff_t *pos);

/* call.c */
int accmem_cta_alloc(struct accmem_cta *cta,
		     const struct accmem_cta_call *call);
int accmem_cta_dealloc(struct accmem_cta *cta,
		       const struct accmem_cta_call *call);
int accmem_cta_relinquish(struct accmem_cta *cta,
			  const struct accmem_cta_call *call);
int accmem_cta_refuse(struct accmem_cta *cta,
		      const struct accmem_cta_call *call, int err);
void accmem_cta_query(struct accmem_cta *cta, struct accmem_cta_query *req);

/* ioctl.c */
long accmem_cta_ioctl(struct file *file, unsigned int nr, unsigned long arg);

/* strict.c */
void accmem_cta_note_hazards(struct accmem_cta *cta);
void accmem_cta_report_hazards(struct accmem_cta *cta);

/* report.c */
bool accmem_tmem_is_misuse(int err);
void accmem_tmem_report(struct accmem_cta *cta,
			const struct accmem_cta_call *call, int err);
void accmem_tmem_report_strict(struct accmem_cta *cta, u32 hazards,
			       u64 permit_owner);
void accmem_tmem_report_leak(struct accmem_cta *cta, u64 units);
void accmem_tmem_report_reset(struct accmem_tmem *tmem, u32 ctas, u32 columns);

/* show.c */
void accmem_cta_show_fdinfo(struct seq_file *m, struct file *file);

/* Wake the callers whose calls have ended. Call this after each arbiter call. */
static inline void accmem_tmem_wake(struct accmem_tmem *tmem)
{
	if (!list_empty(&tmem->columns.done) || tmem->columns.changed)
		accmem_tmem_wake_done(tmem);
}

/* Drop the lock, and notify the CTAs that have events. May sleep. */
static inline void accmem_tmem_unlock(struct accmem_tmem *tmem)
	__releases(&tmem->lock)
{
	bool notify = !list_empty(&tmem->notify);

	spin_unlock(&tmem->lock);
	if (unlikely(notify))
		accmem_tmem_notify(tmem);
}

/* Return true if a queued or interrupted call has timed out. Needs the lock. */
static inline bool accmem_cta_is_overdue(const struct accmem_cta *cta)
{
	return !time_before64(get_jiffies_64(), cta->expires);
}

/*
 * Return true if a signal has interrupted a call of this thread. The result is exact
 * under the lock. Without the lock, true may become false at any time, since another
 * task may end the call. False never becomes true.
 */
static inline bool accmem_cta_is_interrupted(const struct accmem_cta *cta)
{
	return READ_ONCE(cta->caller) == task_pid(current);
}

/* Return true if a call is in progress or its completion has not been read. */
static inline bool accmem_cta_is_busy(const struct accmem_cta *cta)
{
	return cta->c.call != ACCMEM_CALL_NONE ||
	       cta->wait == ACCMEM_CTA_COMPLETED;
}

/*
 * Return true if a call of the CTA is queued, or its completion has not been read. The
 * next event for poll is then the end of that call, or the read, and not a call of
 * another CTA.
 */
static inline bool accmem_cta_is_queued(const struct accmem_cta *cta)
{
	return cta->wait == ACCMEM_CTA_IN_QUEUE ||
	       cta->wait == ACCMEM_CTA_COMPLETED;
}

/* Return true if the CTA has pollers. The lock is held. */
static inline bool accmem_cta_is_watched(struct accmem_cta *cta)
{
	/* A later poll locks after it has joined the wait queue. */
	return waitqueue_active(&cta->poll);
}

/* The call of a CTA has ended: a poll of the CTA may end, too. The lock is held. */
static inline void accmem_cta_wake_poll(struct accmem_cta *cta)
{
	if (unlikely(!list_empty(&cta->pollers[0].link)))
		accmem_cta_check_poll(cta);
}

/*
 * Return true, once, if another task has counted and traced the result of the call. The
 * lock is held.
 */
static inline bool accmem_cta_was_concluded(struct accmem_cta *cta)
{
	bool concluded = cta->concluded;

	cta->concluded = false;
	return concluded;
}

/* Record the hazards of a call that has ended. The lock is held. */
static inline void accmem_cta_check_hazards(struct accmem_cta *cta)
{
	if (unlikely(cta->c.hazards))
		accmem_cta_note_hazards(cta);
}

/* Return true if recorded hazards have not been reported yet. */
static inline bool accmem_cta_has_hazards(const struct accmem_cta *cta)
{
	return unlikely(atomic_read(&cta->found));
}

#endif /* ACCMEM_TMEM_INTERNAL_H */
