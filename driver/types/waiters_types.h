/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structures of waiters.
 *
 * A waiter is an ALLOC call that sleeps until its request can be served. The waiters of
 * a device are in a queue (lib/queue), which decides the order. A waiter is woken to
 * try again, or is handed memory that another call frees (handoff). A waiter whose
 * call a signal has interrupted keeps its place for a while.
 *
 * Locks: accmem_waiters.lock, a spinlock above the carveout's lock, guards the waiters
 * of its device.
 */
#ifndef ACCMEM_WAITERS_TYPES_H
#define ACCMEM_WAITERS_TYPES_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <uapi/linux/accmem.h>

#include "lib/layout/layout.h"
#include "lib/queue/queue.h"
#include "types/carveout_types.h"

struct accmem_account;
struct accmem_context;
struct accmem_bo;
struct eventfd_ctx;

/**
 * struct accmem_wait_stats - counters of the waits of a device
 * @waits: calls that began to wait
 * @wakeups: number of times that a waiter was woken
 * @served: calls that got their memory
 * @by_scan: part of @served that only the scan once a second has woken
 * @handed_over: number of times that a waiter was woken with memory from a handoff
 * @in_vain: attempts after a wake-up that failed
 * @timeouts: calls that ended at their deadline
 * @signals: number of times that a signal interrupted a call
 */
struct accmem_wait_stats {
	u64 waits;
	u64 wakeups;
	u64 served;
	u64 by_scan;
	u64 handed_over;
	u64 in_vain;
	u64 timeouts;
	u64 signals;
};

/* Bucket i ends at 4^i ms, for i = 0 to 9. The last bucket has no end. */
#define ACCMEM_NR_WAIT_TIMES 11

/**
 * struct accmem_wait_times - histogram of the lengths of the waits of a device
 * @nr: waits in each bucket: not longer than its bound, longer than the bound before
 * @sum_ns: sum of the lengths
 */
struct accmem_wait_times {
	u64 nr[ACCMEM_NR_WAIT_TIMES];
	u64 sum_ns;
};

/**
 * struct accmem_scan - facts about carveouts, cached while waiters are checked
 * @known: bit i is set if @of has values for carveout i
 * @of: values of each carveout
 * @of.free: free bytes, including bytes that the cleaner has
 * @of.account: account for which @of.longest was computed; NULL if none was
 * @of.longest: bytes of the longest run that the account can allocate, or an upper
 *	bound
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
 * struct accmem_waiters - waiters of a device
 * @carveouts: carveouts of the device
 * @index: number of the device
 * @link: link in the list of all devices
 * @lock: guards the fields below
 * @nr: number of waiters; read without the lock
 * @queue: order of the waiters
 * @scan: facts about carveouts, valid during one search for waiters to wake
 * @reserved_for: account of the waiter that memory is reserved for, or NULL; read
 *	without the lock
 * @reserved_in: carveouts of this reservation, bit i for carveout i; read without
 *	the lock
 * @nr_starved: number of waiters that are short of memory, not held up by a limit
 * @pressure_seq: serial number of the latest period with @nr_starved above 0
 * @nr_shortages: how often a waiter has become short of memory
 * @pressure_clients: contexts that are notified of memory pressure
 * @nr_pressure_clients: number of entries in @pressure_clients
 * @notify: notifies the clients
 * @away: waiters whose calls a signal has interrupted
 * @stats: counters
 * @times: lengths of the waits that have ended
 * @work: ends reservations, drops interrupted waiters whose call was not repeated,
 *	and once a second checks for changes that are not notified
 * @due: time of the next run of @work while there are waiters, in jiffies
 * @walk: wakes the waiters that a call did not look at, because there are too many
 */
struct accmem_waiters {
	struct accmem_carveouts *carveouts;
	unsigned int index;
	struct list_head link;
	spinlock_t lock; /* the fields below */
	unsigned int nr;
	struct accmem_queue queue;
	struct accmem_scan scan;
	struct accmem_account *reserved_for;
	u32 reserved_in;
	unsigned int nr_starved;
	u64 pressure_seq;
	u64 nr_shortages;
	struct list_head pressure_clients;
	unsigned int nr_pressure_clients;
	struct work_struct notify;
	struct list_head away;
	struct accmem_wait_stats stats;
	struct accmem_wait_times times;
	struct delayed_work work;
	unsigned long due;
	struct work_struct walk;
};

/**
 * struct accmem_demand - minimum that a request needs
 * @carveouts: carveouts that could serve the request if all of their memory were free:
 *	bit i stands for carveout i
 * @footprint: bytes
 * @charge: bytes that the request is charged if none of its memory is charged yet
 * @other_side: bytes of host memory that shared memory needs in addition
 * @owned: the request may fit into folios that the account is already charged for
 * @small: the request may be served from a slab page
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
 * struct accmem_handoff - memory handed to a waiter without becoming free
 * @bo: empty buffer object that receives the memory; NULL if the request has demands
 *	that a handoff cannot meet. Owned by the call that waits, which uses or
 *	destroys it after the wake-up.
 * @layout: layout of the request in the carveouts of @carveouts
 * @carveouts: bit i stands for carveout i
 * @given: @bo has received memory
 * @dirty: the memory may contain bytes of another account
 */
struct accmem_handoff {
	struct accmem_bo *bo;
	struct accmem_layout layout;
	u32 carveouts;
	bool given;
	bool dirty;
};

/**
 * struct accmem_waiter - an ALLOC call that waits
 * @q: entry in the queue
 * @ws: waiters of the device
 * @ctx: context
 * @account: account that the memory will be charged to
 * @req: request
 * @demand: minimum that the request needs
 * @exempt: the limits of the user do not apply
 * @epoch: accmem_context.epoch at the start of the wait
 * @handoff: memory that the waiter can be handed
 * @task: task that sleeps in the call
 * @woken: the waiter is to try; written under accmem_waiters.lock, read without
 * @by_scan: only the scan once a second has found that the waiter can be served
 * @is_short: the waiter is counted in accmem_waiters.nr_starved
 * @since: ktime_get_ns() at the start of the wait
 * @link: link in accmem_waiters.away
 * @pid: thread of the interrupted call
 * @away_until: time in jiffies after which an interrupted waiter is dropped
 */
struct accmem_waiter {
	struct accmem_queue_waiter q;
	struct accmem_waiters *ws;
	struct accmem_context *ctx;
	struct accmem_account *account;
	struct accmem_alloc req;
	struct accmem_demand demand;
	bool exempt;
	u32 epoch;
	struct accmem_handoff handoff;
	struct task_struct *task;
	bool woken;
	bool by_scan;
	bool is_short;
	u64 since;
	struct list_head link;
	pid_t pid;
	unsigned long away_until;
};

/**
 * struct accmem_pressure_client - a context that is notified of memory pressure
 * @lock: guards @eventfd
 * @link: link in accmem_waiters.pressure_clients; empty if not registered
 * @eventfd: eventfd that each notification increments, or NULL
 * @notified_seq: accmem_waiters.pressure_seq at the latest notification
 * @queried: the context has queried the shortfall since the latest notification
 * @seen: accmem_waiters.nr_shortages at the latest query
 * @events: number of notifications
 * @poll: callers that poll the file
 *
 * The fields other than @eventfd and @poll are guarded by accmem_waiters.lock.
 */
struct accmem_pressure_client {
	struct mutex lock; /* the eventfd */
	struct list_head link;
	struct eventfd_ctx *eventfd;
	u64 notified_seq;
	bool queried;
	u64 seen;
	u64 events;
	wait_queue_head_t poll;
};

static inline struct accmem_waiter *
accmem_waiter_of(const struct accmem_queue_waiter *q)
{
	return container_of(q, struct accmem_waiter, q);
}

#endif /* ACCMEM_WAITERS_TYPES_H */
