/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tensor Memory: the structures.
 */
#ifndef ACCMEM_TMEM_TYPES_H
#define ACCMEM_TMEM_TYPES_H

#include <linux/atomic.h>
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

struct accmem_user;
struct eventfd_ctx;
struct file;
struct files_struct;

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
 * @permit_owner: the launch that the report of ACCMEM_HAZARD_PERMIT names; set under the
 *	lock, read without
 * @result: of a completion; guarded by the lock
 * @done: the wait is over; set under the lock, read without
 * @recheck_fds: the waiter's process has closed a descriptor of it since the waiter looked
 *	whether there are others; set under the lock, used without
 * @nr_closed: descriptors that processes have closed; set under the lock, read
 *	without
 * @last_files: the table of descriptors in which one of it was seen last: no reference,
 *	to be compared only, for what waits in it is in a call; guarded by the lock
 * @last_nr_closed: @nr_closed before that look; guarded by the lock
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

#endif /* ACCMEM_TMEM_TYPES_H */
