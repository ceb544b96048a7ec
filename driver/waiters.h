/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Waiters: calls of ALLOC that wait for memory of a device, or for a limit.
 */
#ifndef ACCMEM_WAITERS_H
#define ACCMEM_WAITERS_H

#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/accmem.h>

#include "lib/queue/queue.h"
#include "carveout.h"

#define ACCMEM_WAIT_BYPASS_BOUND 16u
#define ACCMEM_WAITERS_PER_USER 256u /* of a device */
#define ACCMEM_WAIT_RESTART_MS 1000u /* for a call to be made again */

struct accmem_account;
struct accmem_context;
struct accmem_device;
struct accmem_memory;
struct accmem_user;
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
 * @busy: among the devices that have waiters
 * @queue: their order
 * @scan: what is known while they are looked at, whom to wake
 * @reserved_for: the account for whose waiter memory is reserved, or NULL; also
 *	read without the lock
 * @reserved_in: the carveouts in which it is; likewise
 * @nr_short: waiters that were short of memory when they last tried
 * @shortage: number of the latest time that there were any
 * @shrinkable: contexts that want to be told
 * @nr_shrinkable: how many
 * @away: waiters whose calls a signal has interrupted
 * @stats: what became of them
 * @work: ends reservations, forgets calls that do not come back, and looks once a
 *	second whether anything came back of which nobody tells
 * @due: jiffies when it does so next, while anybody waits
 *
 * Guarded by accmem_waiters_lock.
 */
struct accmem_waiters {
	struct list_head busy;
	struct accmem_queue queue;
	struct accmem_scan scan;
	struct accmem_account *reserved_for;
	u32 reserved_in;
	unsigned int nr_short;
	u64 shortage;
	struct list_head shrinkable;
	unsigned int nr_shrinkable;
	struct list_head away;
	struct accmem_wait_stats stats;
	struct delayed_work work;
	unsigned long due;
};

/**
 * struct accmem_prospect - what a request needs, at least
 * @carveouts: which could serve it, if all of them were free: bit i stands for
 *	carveout i
 * @footprint: bytes
 * @charge: bytes that it will be charged where nothing is charged yet
 * @other_side: bytes that shared memory takes of the host besides
 * @owned: it may lie in folios that its account is charged for already
 * @small: it may be served from a slab page
 */
struct accmem_prospect {
	u32 carveouts;
	u64 footprint;
	u64 charge;
	u64 other_side;
	bool owned;
	bool small;
};

/**
 * struct accmem_gift - memory that a waiter is given as it is
 * @mem: gets it: a memory that has nothing yet; NULL where the request can not do with
 *	any memory of its size. Its caller's, who takes it away when the waiter is awake.
 * @layout: what the request becomes in the carveouts @carveouts
 * @carveouts: bit i stands for carveout i
 * @given: @mem has it
 * @dirty: it is another account's bytes that may be in it
 */
struct accmem_gift {
	struct accmem_memory *mem;
	struct accmem_layout layout;
	u32 carveouts;
	bool given;
	bool dirty;
};

/**
 * struct accmem_waiter - a call of ALLOC that waits
 * @q: its place in the queue
 * @dev: the device
 * @ctx: the context
 * @account: what it would be charged to
 * @req: the call
 * @prospect: what it needs
 * @exempt: the user's limits do not count
 * @gift: what it can be given
 * @task: who sleeps in it
 * @woken: it is to try; set with the lock, read without
 * @is_short: it is counted in accmem_waiters.nr_short
 * @since: ktime_get_ns() when it began
 * @link: in accmem_waiters.away
 * @pid: of the thread that is away
 * @away_until: jiffies until which it is waited for
 */
struct accmem_waiter {
	struct accmem_queue_waiter q;
	struct accmem_device *dev;
	struct accmem_context *ctx;
	struct accmem_account *account;
	struct accmem_alloc req;
	struct accmem_prospect prospect;
	bool exempt;
	struct accmem_gift gift;
	struct task_struct *task;
	bool woken;
	bool is_short;
	u64 since;
	struct list_head link;
	pid_t pid;
	unsigned long away_until;
};

/**
 * struct accmem_shrinkable - a context that gives memory back when others wait
 * @lock: guards @eventfd
 * @link: in accmem_waiters.shrinkable; empty when it is not registered
 * @eventfd: to which each event adds 1, or NULL
 * @told: number of the shortage that it was told of last
 * @answered: it has asked how much is wanted since
 * @events: how often it was told
 * @poll: who polls the file
 *
 * Guarded by accmem_waiters_lock, but for @eventfd and @poll.
 */
struct accmem_shrinkable {
	struct mutex lock; /* the eventfd */
	struct list_head link;
	struct eventfd_ctx *eventfd;
	u64 told;
	bool answered;
	u64 events;
	wait_queue_head_t poll;
};

static inline void accmem_shrinkable_init(struct accmem_shrinkable *shrink)
{
	mutex_init(&shrink->lock);
	INIT_LIST_HEAD(&shrink->link);
	init_waitqueue_head(&shrink->poll);
}

static inline struct accmem_waiter *
accmem_waiter_of(const struct accmem_queue_waiter *q)
{
	return container_of(q, struct accmem_waiter, q);
}

/* prospect.c */
u64 accmem_prospect_free_bytes(struct accmem_carveout *cv);
bool accmem_prospect_is_in_vain(const struct accmem_prospect *p,
				const struct accmem_account *account,
				bool exempt);
bool accmem_prospect_fits(const struct accmem_queue_waiter *q, u64 promised,
			  void *arg);

/* waiters.c */
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
void accmem_waiters_limits_rose(void);
void accmem_waiters_count_pass(struct accmem_carveout *cv,
			       struct accmem_user *user, u64 got);
bool accmem_waiters_admit_to(const struct accmem_carveout *cv,
			     const struct accmem_account *account);

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

#endif /* ACCMEM_WAITERS_H */
