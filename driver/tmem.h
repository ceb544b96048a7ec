/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tensor Memory: what the tmem_*.c files share.
 *
 * accmem_tmem.lock is the only lock. It is taken under none of the driver's, and only
 * locks of the kernel's are taken under it: the heads of wait queues and the
 * scheduler's, to wake; those of work queues and timers, for accmem_cta.expiry; the
 * caller's own sighand->siglock, to see whether its call will be made again.
 */
#ifndef ACCMEM_TMEM_H
#define ACCMEM_TMEM_H

#include <linux/atomic.h>
#include <linux/jiffies.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/accmem.h>

#include "lib/columns/columns.h"

struct accmem_context;
struct accmem_device;
struct accmem_user;
struct eventfd_ctx;
struct file;
struct files_struct;
struct seq_file;
struct vm_area_struct;

/**
 * struct accmem_tmem_stats - what was counted, of a CTA and of a context
 * @grants: allocs that were granted
 * @waits: how often a call went to sleep
 * @wakeups: how often they came out of sleep
 * @woken_grant: sleeps that ended with success
 * @woken_timeout: with the deadline
 * @woken_signal: with a signal
 * @woken_exit: because of what the peer, or this CTA, did
 * @woken_deadlock: with EDEADLK
 * @woken_reset: with the end of the context
 * @bypasses: how often a grant passed an older request
 * @timeouts: calls whose deadline had passed, without sleep included
 * @deadlocks: calls that got EDEADLK, without sleep included
 * @misuses: calls that broke a rule
 * @strict: what strict mode has found
 *
 * @wakeups is the sum of the @woken_ ones: the arbiter wakes nobody for nothing.
 * It is more by the strays: a lock of the kernel's own that a task has waited
 * for before may wake it late (wake_q), in this sleep; it sleeps on.
 */
struct accmem_tmem_stats {
	u64 grants;
	u64 waits;
	u64 wakeups;
	u64 woken_grant;
	u64 woken_timeout;
	u64 woken_signal;
	u64 woken_exit;
	u64 woken_deadlock;
	u64 woken_reset;
	u64 bypasses;
	u64 timeouts;
	u64 deadlocks;
	u64 misuses;
	u64 strict;
};

/**
 * struct accmem_tmem - the Tensor Memory of a context
 * @refs: the context, and every CTA
 * @device: name of the device
 * @context: number of the context
 * @user: whose it is, with a reference: CTAs have messages after the context's end
 * @lock: guards all that follows, and the fields of the CTAs that say so
 * @columns: the arbiter
 * @sms: its SMs
 * @maps: of each SM, the file that has its map page, or NULL; guarded by the lock
 * @nr_launched: CTAs so far; the last one's number
 * @pollers: CTAs that somebody polls, and whose next event is not the end of a
 *	queued call
 * @stats: of the CTAs that have gone
 */
struct accmem_tmem {
	struct kref refs;
	char device[16];
	u64 context;
	struct accmem_user *user;

	spinlock_t lock; /* all that follows */
	struct accmem_columns columns;
	struct accmem_columns_sm *sms;
	struct file **maps;
	u64 nr_launched;
	struct list_head pollers;
	struct accmem_tmem_stats stats;
};

/**
 * struct accmem_launch - CTAs of a cluster that are launched in one call
 * @launch: as in struct accmem_tmem_cluster
 * @cluster: the same
 * @cta_group: the same
 * @complete: no other can be launched into the cluster; else it is one CTA
 * @nr_members: how many, 1 to ACCMEM_TMEM_CLUSTER_MAX
 * @members: the CTAs
 */
struct accmem_launch {
	u64 launch;
	u32 cluster;
	u32 cta_group;
	bool complete;
	u32 nr_members;
	struct accmem_tmem_member *members;
};

enum accmem_cta_op {
	ACCMEM_CTA_OP_LAUNCH,
	ACCMEM_CTA_OP_ALLOC,
	ACCMEM_CTA_OP_DEALLOC,
	ACCMEM_CTA_OP_RELINQUISH,
};

/**
 * struct accmem_cta_call - a call of a CTA
 * @op: which
 * @flags: as in its structure
 * @columns: as in its structure
 * @address: as in its structure; of a queued alloc that was granted, its result
 * @warp: as in its structure
 * @deadline_ns: as in its structure
 * @destination: as in its structure
 * @user_data: as in its structure
 */
struct accmem_cta_call {
	enum accmem_cta_op op;
	u32 flags;
	u32 columns;
	u32 address;
	u32 warp;
	u64 deadline_ns;
	u32 __user *destination;
	u64 user_data;
};

/**
 * enum accmem_cta_wait - where the wait of a CTA's call is
 * @ACCMEM_CTA_IDLE: there is none; its caller may be running
 * @ACCMEM_CTA_ASLEEP: its caller sleeps
 * @ACCMEM_CTA_INTERRUPTED: its caller handles a signal, and will make it again
 * @ACCMEM_CTA_IN_QUEUE: it is a queued call
 * @ACCMEM_CTA_COMPLETED: it was one, and its completion is to be read
 */
enum accmem_cta_wait {
	ACCMEM_CTA_IDLE,
	ACCMEM_CTA_ASLEEP,
	ACCMEM_CTA_INTERRUPTED,
	ACCMEM_CTA_IN_QUEUE,
	ACCMEM_CTA_COMPLETED,
};

/* how long an interrupted call keeps its place; its result it keeps for longer */
#define ACCMEM_CTA_RESTART_MS 1000

/* a range of user memory that stores go to; of length 0, all of it */
struct accmem_window {
	u64 base;
	u64 length;
};

static inline bool accmem_window_has(const struct accmem_window *window,
				     const void __user *address, u64 size)
{
	u64 at = (uintptr_t)address - window->base;

	return !window->length ||
	       (at < window->length && size <= window->length - at);
}

/**
 * struct accmem_cta - a CTA, one open file
 * @tmem: its context's Tensor Memory, with a reference
 * @file: the file, whose life it shares
 * @c: the arbiter's part, guarded by the lock
 * @id: its number in the context
 * @window: where the addresses of its allocs may be stored
 * @call: the call that waits without a caller; guarded by the lock
 * @wait: where it waits; set under the lock
 * @waiter: who sleeps in it: no reference, for it leaves with the lock held; set
 *	under the lock
 * @caller: whose call was interrupted, with a reference, or NULL; set under the
 *	lock, compared without
 * @waited: the call has waited; guarded by the lock
 * @alone: the peer had not come to the last call whose deadline has passed; set
 *	under the lock, read without
 * @found: ACCMEM_HAZARD_* that are to be reported; set under the lock, taken
 *	without
 * @keeper: the launch that the report of ACCMEM_HAZARD_PERMIT names; set under the
 *	lock, read without
 * @result: of a completion; guarded by the lock
 * @done: the wait is over; set under the lock, read without
 * @look: the waiter's process has closed a descriptor of it since the waiter looked
 *	whether there are others; set under the lock, used without
 * @nr_closed: descriptors that processes have closed; set under the lock, read
 *	without
 * @seen_by: the table of descriptors in which one of it was seen last: no reference,
 *	to be compared only, for what waits in it is in a call; guarded by the lock
 * @seen_closed: @nr_closed before that look; guarded by the lock
 * @since: when the wait began, in jiffies; guarded by the lock
 * @since_ns: the same on CLOCK_MONOTONIC if grants were traced then, else 0;
 *	guarded by the lock
 * @expires: when a wait that nobody sleeps in ends, in jiffies; guarded by the
 *	lock
 * @expiry: ends it
 * @eventfd: counts completions, or NULL; guarded by the lock
 * @poll: who polls, or reads
 * @poll_link: in accmem_tmem.pollers; guarded by the lock
 * @poll_columns: what the last alloc wanted that ended with EAGAIN; guarded by
 *	the lock
 * @stats: guarded by the lock
 */
struct accmem_cta {
	struct accmem_tmem *tmem;
	struct file *file;
	struct accmem_columns_cta c;
	u64 id;
	struct accmem_window window;
	struct accmem_cta_call call;
	enum accmem_cta_wait wait;
	struct task_struct *waiter;
	struct pid *caller;
	bool waited;
	bool alone;
	atomic_t found;
	u64 keeper;
	int result;
	bool done;
	bool look;
	unsigned int nr_closed;
	const struct files_struct *seen_by;
	unsigned int seen_closed;
	u64 since;
	u64 since_ns;
	u64 expires;
	struct delayed_work expiry;
	struct eventfd_ctx *eventfd;
	wait_queue_head_t poll;
	struct list_head poll_link;
	u32 poll_columns;
	struct accmem_tmem_stats stats;
};

static inline struct accmem_cta *accmem_to_cta(struct accmem_columns_cta *c)
{
	return container_of(c, struct accmem_cta, c);
}

#define ACCMEM_STAT(what) offsetof(struct accmem_tmem_stats, what)

/* counts an ACCMEM_STAT() of the CTA, under the lock */
static inline void accmem_tmem_count(struct accmem_cta *cta, size_t stat)
{
	++*(u64 *)((char *)&cta->stats + stat);
}

/* what one CTA has counted, and what others have */
static inline void accmem_tmem_add_stats(struct accmem_tmem_stats *to,
					 const struct accmem_tmem_stats *from)
{
	u64 *sum = (u64 *)to;
	const u64 *one = (const u64 *)from;
	unsigned int i;

	for (i = 0; i < sizeof(*to) / sizeof(*sum); i++)
		sum[i] += one[i];
}

/* tmem.c */
int accmem_tmem_setup(struct accmem_context *ctx,
		      const struct accmem_tmem_setup *req);
struct accmem_tmem *accmem_tmem_find(struct accmem_context *ctx);
struct accmem_tmem *accmem_tmem_get(struct accmem_context *ctx);
void accmem_tmem_put(struct accmem_tmem *tmem);
void accmem_tmem_end(struct accmem_context *ctx);

/* is the time over of a call that nobody sleeps in? Under the lock. */
static inline bool accmem_cta_is_overdue(const struct accmem_cta *cta)
{
	return !time_before64(get_jiffies_64(), cta->expires);
}

/* tmem_wake.c */
void accmem_tmem_wake_done(struct accmem_tmem *tmem);
int accmem_cta_conclude(struct accmem_cta *cta,
			const struct accmem_cta_call *call, int err);
void accmem_cta_withdraw(struct accmem_cta *cta);
void accmem_cta_complete(struct accmem_cta *cta, int err);
void accmem_cta_hang_up(struct accmem_cta *cta);
bool accmem_cta_would_grant(struct accmem_cta *cta);

/* after each call on the arbiter: wakes those whose wait it has ended */
static inline void accmem_tmem_wake(struct accmem_tmem *tmem)
{
	if (tmem->columns.done || !list_empty(&tmem->pollers))
		accmem_tmem_wake_done(tmem);
}

/* tmem_sleep.c */
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

/* tmem_map.c */
int accmem_cta_mmap(struct file *file, struct vm_area_struct *vma);
void accmem_tmem_init_maps(struct accmem_tmem *tmem);
void accmem_tmem_put_maps(struct accmem_tmem *tmem);

/*
 * Is a call of the CTA queued, or to be read? Then its end, or the read, is the next
 * event for those who poll, and other CTAs' calls need not be looked at.
 */
static inline bool accmem_cta_is_queued(const struct accmem_cta *cta)
{
	return cta->wait == ACCMEM_CTA_IN_QUEUE ||
	       cta->wait == ACCMEM_CTA_COMPLETED;
}

/* tmem_cta.c */
struct accmem_cta *accmem_cta_create(struct accmem_tmem *tmem,
				     const struct accmem_columns_cta *place,
				     const struct accmem_window *window);

/* tmem_launch.c */
int accmem_launch_prepare(struct accmem_launch *launch);
void accmem_launch_cancel(struct accmem_launch *launch);
int accmem_tmem_launch(struct accmem_context *ctx,
		       const struct accmem_launch *launch);

/* tmem_queue.c */
int accmem_cta_submit(struct accmem_cta *cta,
		      const struct accmem_cta_call *call);
int accmem_cta_cancel(struct accmem_cta *cta);
int accmem_cta_set_eventfd(struct accmem_cta *cta, int fd);
ssize_t accmem_cta_read(struct file *file, char __user *buf, size_t size,
			loff_t *pos);

/* tmem_call.c */
int accmem_cta_alloc(struct accmem_cta *cta,
		     const struct accmem_cta_call *call);
int accmem_cta_dealloc(struct accmem_cta *cta,
		       const struct accmem_cta_call *call);
int accmem_cta_relinquish(struct accmem_cta *cta);
void accmem_cta_query(struct accmem_cta *cta, struct accmem_cta_query *req);

/* tmem_ioctl.c */
long accmem_cta_ioctl(struct file *file, unsigned int nr, unsigned long arg);

/* tmem_strict.c */
void accmem_cta_note_hazards(struct accmem_cta *cta);
void accmem_cta_report_hazards(struct accmem_cta *cta);

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

/* tmem_report.c */
bool accmem_tmem_is_misuse(int err);
void accmem_tmem_report(struct accmem_cta *cta,
			const struct accmem_cta_call *call, int err);
void accmem_tmem_report_strict(struct accmem_cta *cta, u32 hazards, u64 keeper);
void accmem_tmem_report_leak(struct accmem_cta *cta, u64 units);
void accmem_tmem_report_reset(struct accmem_tmem *tmem, u32 ctas, u32 columns);

/* tmem_show.c */
void accmem_tmem_show_fdinfo(struct seq_file *m, struct accmem_context *ctx);
void accmem_cta_show_fdinfo(struct seq_file *m, struct file *file);
int accmem_tmem_show_picture(struct seq_file *m, struct accmem_device *dev);

#endif /* ACCMEM_TMEM_H */
