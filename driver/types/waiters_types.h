/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waiters: the structures.
 */
#ifndef ACCMEM_WAITERS_TYPES_H
#define ACCMEM_WAITERS_TYPES_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/accmem.h>

#include "lib/layout/layout.h"
#include "lib/queue/queue.h"
#include "types/carveout_types.h"

struct accmem_account;
struct accmem_context;
struct accmem_bo;
struct eventfd_ctx;

/**
 * struct accmem_wait_stats - what became of waits on a device
 * @waits: calls that began to wait
 * @wakeups: how often one of them was woken to try
 * @served: calls that got their memory
 * @handed_over: how often one of them was woken with memory that somebody else had
 * @in_vain: tries after a wake-up that failed
 * @timeouts: calls that gave up at their deadline
 * @signals: calls that a signal interrupted; each time counts
 */
struct accmem_wait_stats {
	u64 waits;
	u64 wakeups;
	u64 served;
	u64 handed_over;
	u64 in_vain;
	u64 timeouts;
	u64 signals;
};

/**
 * struct accmem_scan - what is known of carveouts while waiters are looked at
 * @known: bit i stands for carveout i, of which @of has something
 * @of: of each carveout
 * @of.free: bytes that are free, or will be at once
 * @of.account: whose @of.longest is; NULL for nobody's yet
 * @of.longest: bytes of the longest run that the account could have, or a bound of it
 */
struct accmem_scan {
	u32 known;
	struct {
		u64 free;
		const struct accmem_account *account;
		u64 longest;
	} of[ACCMEM_MAX_ALL];
};

/**
 * struct accmem_waiters - the waiters of a device
 * @carveouts: the carveouts of the device
 * @index: number of the device
 * @busy: among the devices that have waiters
 * @queue: their order
 * @scan: what is known while they are looked at, whom to wake
 * @reserved_for: the account for whose waiter memory is reserved, or NULL; also
 *	read without the lock
 * @reserved_in: the carveouts in which it is; likewise
 * @nr_starved: waiters that were short of memory when they last tried
 * @pressure_seq: number of the latest time that there were any
 * @pressure_clients: contexts that want to be told
 * @nr_pressure_clients: how many
 * @away: waiters whose calls a signal has interrupted
 * @stats: what became of them
 * @work: ends reservations, forgets calls that do not come back, and looks once a
 *	second whether anything came back of which nobody tells
 * @due: jiffies when it does so next, while anybody waits
 *
 * Guarded by accmem_waiters_lock.
 */
struct accmem_waiters {
	struct accmem_carveouts *carveouts;
	unsigned int index;
	struct list_head busy;
	struct accmem_queue queue;
	struct accmem_scan scan;
	struct accmem_account *reserved_for;
	u32 reserved_in;
	unsigned int nr_starved;
	u64 pressure_seq;
	struct list_head pressure_clients;
	unsigned int nr_pressure_clients;
	struct list_head away;
	struct accmem_wait_stats stats;
	struct delayed_work work;
	unsigned long due;
};

/**
 * struct accmem_demand - what a request needs, at least
 * @carveouts: which could serve it, if all of them were free: bit i stands for
 *	carveout i
 * @footprint: bytes
 * @charge: bytes that it will be charged where nothing is charged yet
 * @other_side: bytes that shared memory takes of the host besides
 * @owned: it may lie in folios that its account is charged for already
 * @small: it may be served from a slab page
 */
struct accmem_demand {
	u32 carveouts;
	u64 footprint;
	u64 charge;
	u64 other_side;
	bool owned;
	bool small;
};

/**
 * struct accmem_handoff - memory that a waiter is given as it is
 * @bo: gets it: a memory that has nothing yet; NULL where the request can not do with
 *	any memory of its size. Its caller's, who takes it away when the waiter is awake.
 * @layout: what the request becomes in the carveouts @carveouts
 * @carveouts: bit i stands for carveout i
 * @given: @bo has it
 * @dirty: it is another account's bytes that may be in it
 */
struct accmem_handoff {
	struct accmem_bo *bo;
	struct accmem_layout layout;
	u32 carveouts;
	bool given;
	bool dirty;
};

/**
 * struct accmem_waiter - a call of ALLOC that waits
 * @q: its place in the queue
 * @ws: the waiters of the device
 * @ctx: the context
 * @account: what it would be charged to
 * @req: the call
 * @demand: what it needs
 * @exempt: the user's limits do not count
 * @handoff: what it can be given
 * @task: who sleeps in it
 * @woken: it is to try; set with the lock, read without
 * @is_short: it is counted in accmem_waiters.nr_starved
 * @since: ktime_get_ns() when it began
 * @link: in accmem_waiters.away
 * @pid: of the thread that is away
 * @away_until: jiffies until which it is waited for
 */
struct accmem_waiter {
	struct accmem_queue_waiter q;
	struct accmem_waiters *ws;
	struct accmem_context *ctx;
	struct accmem_account *account;
	struct accmem_alloc req;
	struct accmem_demand demand;
	bool exempt;
	struct accmem_handoff handoff;
	struct task_struct *task;
	bool woken;
	bool is_short;
	u64 since;
	struct list_head link;
	pid_t pid;
	unsigned long away_until;
};

/**
 * struct accmem_pressure_client - a context that gives memory back when others wait
 * @lock: guards @eventfd
 * @link: in accmem_waiters.pressure_clients; empty when it is not registered
 * @eventfd: to which each event adds 1, or NULL
 * @notified_seq: number of the shortage that it was told of last
 * @queried: it has asked how much is wanted since
 * @events: how often it was told
 * @poll: who polls the file
 *
 * Guarded by accmem_waiters_lock, but for @eventfd and @poll.
 */
struct accmem_pressure_client {
	struct mutex lock; /* the eventfd */
	struct list_head link;
	struct eventfd_ctx *eventfd;
	u64 notified_seq;
	bool queried;
	u64 events;
	wait_queue_head_t poll;
};

static inline struct accmem_waiter *
accmem_waiter_of(const struct accmem_queue_waiter *q)
{
	return container_of(q, struct accmem_waiter, q);
}

#endif /* ACCMEM_WAITERS_TYPES_H */
