/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that only tmem/ uses.
 *
 * accmem_tmem.lock is the only lock. It is taken under none of the driver's, and only
 * locks of the kernel's are taken under it: the heads of wait queues and the
 * scheduler's, to wake; those of work queues and timers, for accmem_cta.expiry; the
 * caller's own sighand->siglock, to see whether its call will be made again.
 */
#ifndef ACCMEM_TMEM_INTERNAL_H
#define ACCMEM_TMEM_INTERNAL_H

#include <linux/jiffies.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/types.h>

#include "types/tmem_types.h"

struct accmem_columns_cta;
struct accmem_context;
struct accmem_cta_query;
struct seq_file;
struct vm_area_struct;
struct work_struct;

/* how long an interrupted call keeps its place; its result it keeps for longer */
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
void accmem_cta_disconnect(struct accmem_cta *cta);
bool accmem_cta_would_grant(struct accmem_cta *cta);

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
				     const struct accmem_columns_cta *va,
				     const struct accmem_window *window);

/* queue.c */
int accmem_cta_submit(struct accmem_cta *cta,
		      const struct accmem_cta_call *call);
int accmem_cta_cancel(struct accmem_cta *cta);
int accmem_cta_set_eventfd(struct accmem_cta *cta, int fd);
ssize_t accmem_cta_read(struct file *file, char __user *buf, size_t size,
			loff_t *pos);

/* call.c */
int accmem_cta_alloc(struct accmem_cta *cta,
		     const struct accmem_cta_call *call);
int accmem_cta_dealloc(struct accmem_cta *cta,
		       const struct accmem_cta_call *call);
int accmem_cta_relinquish(struct accmem_cta *cta);
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

/* after each call on the arbiter: wakes those whose wait it has ended */
static inline void accmem_tmem_wake(struct accmem_tmem *tmem)
{
	if (tmem->columns.done || !list_empty(&tmem->pollers))
		accmem_tmem_wake_done(tmem);
}

/* is the time over of a call that nobody sleeps in? Under the lock. */
static inline bool accmem_cta_is_overdue(const struct accmem_cta *cta)
{
	return !time_before64(get_jiffies_64(), cta->expires);
}

/*
 * Has a signal interrupted a call of this thread? Exact under the lock; without it
 * the answer may become wrong at any time, from yes to no only.
 */
static inline bool accmem_cta_is_interrupted(const struct accmem_cta *cta)
{
	return READ_ONCE(cta->caller) == task_pid(current);
}

/* can the CTA make no call, as another is in progress or to be read? */
static inline bool accmem_cta_is_busy(const struct accmem_cta *cta)
{
	return cta->c.call != ACCMEM_CALL_NONE ||
	       cta->wait == ACCMEM_CTA_COMPLETED;
}

/*
 * Is a call of the CTA queued, or to be read? Then its end, or the read, is the next
 * event for those who poll, and other CTAs' calls need not be looked at.
 */
static inline bool accmem_cta_is_queued(const struct accmem_cta *cta)
{
	return cta->wait == ACCMEM_CTA_IN_QUEUE ||
	       cta->wait == ACCMEM_CTA_COMPLETED;
}

/* a call of the CTA's own has ended; the lock is held */
static inline void accmem_cta_check_hazards(struct accmem_cta *cta)
{
	if (unlikely(cta->c.hazards))
		accmem_cta_note_hazards(cta);
}

/* is there anything to report? */
static inline bool accmem_cta_has_hazards(const struct accmem_cta *cta)
{
	return unlikely(atomic_read(&cta->found));
}

#endif /* ACCMEM_TMEM_INTERNAL_H */
