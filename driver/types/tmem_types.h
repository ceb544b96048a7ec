/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structures of Tensor Memory.
 *
 * A context has at most one struct accmem_tmem: the arbiter (lib/columns), its SMs and
 * their map pages. Each CTA is an open file; the last close of the file is the exit
 * of the CTA. A CTA has at most one call in progress, and the call waits in its caller,
 * without a caller after a signal, or in the CTA's queue (enum accmem_cta_wait).
 *
 * Locks: accmem_tmem.lock, a spinlock, guards the arbiter and all CTAs of the context.
 */
#ifndef ACCMEM_TMEM_TYPES_H
#define ACCMEM_TMEM_TYPES_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <uapi/linux/accmem.h>

#include "lib/columns/columns.h"

struct accmem_cta;
struct accmem_user;
struct eventfd_ctx;
struct file;
struct files_struct;

/**
 * struct accmem_tmem_stats - counters of a CTA or of a context
 * @grants: allocs that were granted
 * @waits: number of times that a call went to sleep
 * @wakeups: number of times that a call came out of sleep
 * @woken_grant: sleeps that ended with success
 * @woken_timeout: sleeps that ended at the deadline
 * @woken_signal: sleeps that a signal ended
 * @woken_exit: sleeps that an action of the peer or of the CTA itself ended
 * @woken_deadlock: sleeps that ended with EDEADLK
 * @woken_reset: sleeps that the end of the context ended
 * @bypasses: number of times that a grant passed an older request
 * @timeouts: calls whose deadline passed, including calls that did not sleep
 * @deadlocks: calls that returned EDEADLK, including calls that did not sleep
 * @misuses: calls that broke a rule
 * @strict: hazards that strict mode found
 *
 * @wakeups is the sum of the @woken_ counters plus stray wake-ups. The arbiter causes
 * no stray wake-ups. A lock of the kernel that the task waited for earlier may cause a
 * late one (wake_q). After a stray wake-up the call goes back to sleep.
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
 * struct accmem_tmem_sm - an SM, beside its part of the arbiter
 * @map: file of the map page, or NULL
 * @pollers: polls that an event on the SM may end
 */
struct accmem_tmem_sm {
	struct file *map;
	struct list_head pollers;
};

/**
 * struct accmem_poller - a poll of a CTA, on an SM
 * @link: link in accmem_tmem_sm.pollers
 * @cta: the CTA
 */
struct accmem_poller {
	struct list_head link;
	struct accmem_cta *cta;
};

/**
 * struct accmem_tmem - Tensor Memory of a context
 * @refs: references: the context, and every CTA
 * @device: name of the device
 * @context: number of the context
 * @user: user, with a reference, since CTAs may write messages after the context ended
 * @lock: guards the fields below, and the fields of struct accmem_cta that name it
 * @columns: arbiter
 * @column_sms: SMs of the arbiter
 * @sms: SMs
 * @nr_launched: number of CTAs launched; also the number of the latest CTA
 * @stats: sums of the counters of CTAs that have exited
 * @notify: CTAs whose pollers, readers or eventfd must be notified
 * @notify_mutex: held while one CTA is notified
 * @notify_work: notifies the CTAs in @notify
 */
struct accmem_tmem {
	struct kref refs;
	char device[16];
	u64 context;
	struct accmem_user *user;

	spinlock_t lock; /* the fields below, and the CTAs */
	struct accmem_columns columns;
	struct accmem_columns_sm *column_sms;
	struct accmem_tmem_sm *sms;
	u64 nr_launched;
	struct accmem_tmem_stats stats;
	struct list_head notify;

	struct mutex notify_mutex; /* one CTA is notified */
	struct work_struct notify_work;
};

/**
 * struct accmem_launch - CTAs of a cluster that are launched in one call
 * @launch: launch id, as in struct accmem_tmem_cluster
 * @cluster: cluster id, as in struct accmem_tmem_cluster
 * @cta_group: CTAs in a group, as in struct accmem_tmem_cluster
 * @complete: @members is the whole cluster; otherwise it is a single CTA
 * @nr_members: number of entries in @members, 1 to ACCMEM_TMEM_CLUSTER_MAX
 * @members: CTAs
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
 * @op: operation
 * @flags: flags of the ioctl structure
 * @columns: number of columns of the ioctl structure
 * @address: address of the ioctl structure; for a queued alloc that was granted, the
 *	address of the allocation
 * @warp: warp of the ioctl structure
 * @cta_group: cta_group of the ioctl structure
 * @deadline_ns: deadline of the ioctl structure
 * @destination: destination of the ioctl structure
 * @user_data: user data of the ioctl structure
 */
struct accmem_cta_call {
	enum accmem_cta_op op;
	u32 flags;
	u32 columns;
	u32 address;
	u32 warp;
	u32 cta_group;
	u64 deadline_ns;
	u32 __user *destination;
	u64 user_data;
};

/**
 * enum accmem_cta_wait - state of the wait of a CTA's call
 * @ACCMEM_CTA_IDLE: no call waits; a caller may be running
 * @ACCMEM_CTA_ASLEEP: the caller sleeps
 * @ACCMEM_CTA_INTERRUPTED: the caller handles a signal, and will repeat the call
 * @ACCMEM_CTA_IN_QUEUE: a queued call waits
 * @ACCMEM_CTA_COMPLETED: a queued call has ended, and its completion is unread
 */
enum accmem_cta_wait {
	ACCMEM_CTA_IDLE,
	ACCMEM_CTA_ASLEEP,
	ACCMEM_CTA_INTERRUPTED,
	ACCMEM_CTA_IN_QUEUE,
	ACCMEM_CTA_COMPLETED,
};

/* Range of user memory that may be written; length 0 stands for all of it. */
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
 * @tmem: Tensor Memory of the context, with a reference
 * @file: file, which exists as long as the CTA does
 * @c: the arbiter's part; guarded by accmem_tmem.lock
 * @id: number in the context
 * @window: user memory to which the addresses of allocs may be stored
 * @call: call that waits, or whose caller has dropped the lock; guarded by
 *	accmem_tmem.lock
 * @wait: state of the wait; written under accmem_tmem.lock
 * @waiter: task that sleeps in the call. No reference is needed, since the task takes
 *	accmem_tmem.lock before it leaves. Written under accmem_tmem.lock.
 * @caller: process of the interrupted call, with a reference, or NULL; written under
 *	accmem_tmem.lock, compared without
 * @waited: the call has waited; guarded by accmem_tmem.lock
 * @concluded: another task has ended the call, and has counted and traced its result;
 *	guarded by accmem_tmem.lock
 * @alone: the peer had not made its call when the last deadline passed; written under
 *	accmem_tmem.lock, read without
 * @found: ACCMEM_HAZARD_* that have not been reported; set under accmem_tmem.lock,
 *	cleared without
 * @permit_owner: launch that the report of ACCMEM_HAZARD_PERMIT names; written under
 *	accmem_tmem.lock, read without
 * @result: result of a completion; guarded by accmem_tmem.lock
 * @done: the wait has ended; written under accmem_tmem.lock, read without
 * @recheck_fds: the waiter's process has closed a descriptor of the CTA since the
 *	waiter last searched for one; set under accmem_tmem.lock, cleared without
 * @nr_closed: number of descriptors of the CTA that processes have closed; written
 *	under accmem_tmem.lock, read without
 * @last_files: descriptor table in which a descriptor of the CTA was found last. No
 *	reference is needed, since the pointer is only compared. Guarded by
 *	accmem_tmem.lock.
 * @last_nr_closed: value of @nr_closed before that search; guarded by accmem_tmem.lock
 * @since: start of the wait in jiffies; guarded by accmem_tmem.lock
 * @since_ns: start of the wait on CLOCK_MONOTONIC if grants were traced then, else 0;
 *	guarded by accmem_tmem.lock
 * @expires: end of a wait without a sleeping caller, in jiffies; guarded by
 *	accmem_tmem.lock
 * @expiry: work that ends this wait
 * @eventfd: counts completions, or NULL; written under accmem_tmem.notify_mutex and
 *	accmem_tmem.lock
 * @uncounted: completions that @eventfd has not counted; guarded by accmem_tmem.lock
 * @notify: link in accmem_tmem.notify
 * @notify_all: wake everybody who polls or reads, not one of those with EPOLLEXCLUSIVE;
 *	guarded by accmem_tmem.lock
 * @poll: callers that poll or read
 * @pollers: a poll that waits for an event other than the end of a queued call: on the
 *	CTA's SM and on the peer's; guarded by accmem_tmem.lock
 * @poll_columns: number of columns of the last alloc that failed with EAGAIN; guarded
 *	by accmem_tmem.lock
 * @stats: counters; guarded by accmem_tmem.lock
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
	bool concluded;
	bool alone;
	atomic_t found;
	u64 permit_owner;
	int result;
	bool done;
	bool recheck_fds;
	unsigned int nr_closed;
	const struct files_struct *last_files;
	unsigned int last_nr_closed;
	u64 since;
	u64 since_ns;
	u64 expires;
	struct delayed_work expiry;
	struct eventfd_ctx *eventfd;
	unsigned int uncounted;
	struct list_head notify;
	bool notify_all;
	wait_queue_head_t poll;
	struct accmem_poller pollers[2];
	u32 poll_columns;
	struct accmem_tmem_stats stats;
};

static inline struct accmem_cta *accmem_to_cta(struct accmem_columns_cta *c)
{
	return container_of(c, struct accmem_cta, c);
}

#define ACCMEM_STAT(what) offsetof(struct accmem_tmem_stats, what)

/* Increment the counter ACCMEM_STAT() of a CTA. accmem_tmem.lock is held. */
static inline void accmem_tmem_count(struct accmem_cta *cta, size_t stat)
{
	++*(u64 *)((char *)&cta->stats + stat);
}

/* Add the counters of a CTA to a sum. */
static inline void accmem_tmem_add_stats(struct accmem_tmem_stats *to,
					 const struct accmem_tmem_stats *from)
{
	u64 *sum = (u64 *)to;
	const u64 *one = (const u64 *)from;
	unsigned int i;

	for (i = 0; i < sizeof(*to) / sizeof(*sum); i++)
		sum[i] += one[i];
}

#endif /* ACCMEM_TMEM_TYPES_H */
