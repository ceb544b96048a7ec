/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * accmem_columns: the Tensor Memory arbiter, a state machine.
 *
 * The arbiter has a number of SMs. The columns of an SM are divided into units of 32
 * columns, a bit each in a 64-bit word. CTAs are launched on an SM, allocate columns,
 * free them and exit. An alloc that cannot be granted is queued. Queued requests are
 * granted in order of arrival, but a request that fits may pass (bypass) an older
 * request that does not. The number of bypasses of a request is bounded.
 *
 * Each SM has its own queue, and a pair is in the queues of both its SMs. A call works
 * on the SMs of its CTA, and on those that queued pairs connect with them. What waits
 * on any other SM costs the call no time.
 *
 * A CTA is embedded in a structure of the caller, and the state of its call in the CTA.
 * A call that waits returns -EINPROGRESS. When a later call ends the wait, the CTA is
 * put on the list of completed CTAs, once (accmem_columns_next_done()).
 *
 * An alloc has three states if its caller stores the address in memory where the store
 * can fail: queued, reserved, allocated. Reserved columns belong to no other CTA. They
 * become allocated when the caller confirms the store, for a pair when both callers
 * have confirmed. Until then either caller can refuse, and the alloc has no effect.
 *
 * The error values are those of <uapi/linux/accmem.h>, which has the table.
 *
 * Locking: the caller serialises all calls on an arbiter; the driver has a spinlock.
 * The arbiter does not sleep, lock or allocate memory, and runs in any context. The
 * same calls in the same order have the same results.
 */
#ifndef ACCMEM_COLUMNS_H
#define ACCMEM_COLUMNS_H

#include <linux/list.h>
#include <linux/types.h>

#define ACCMEM_COLUMNS_UNIT 32u /* columns in a unit */
#define ACCMEM_COLUMNS_MIN 32u /* columns of the smallest alloc */
#define ACCMEM_COLUMNS_MAX 512u
#define ACCMEM_COLUMNS_SM_MAX 2048u /* 64 units, the bits of a word */

/**
 * enum accmem_columns_call - state of a CTA's call
 * @ACCMEM_CALL_NONE: no call is in progress
 * @ACCMEM_CALL_JOIN_ALLOC: an alloc waits for the alloc of the peer
 * @ACCMEM_CALL_JOIN_DEALLOC: a dealloc waits for the dealloc of the peer
 * @ACCMEM_CALL_QUEUED: an alloc waits for a permit or for columns
 * @ACCMEM_CALL_RESERVED: columns are reserved; the caller must store their
 *	address and confirm the store
 * @ACCMEM_CALL_STORED: the address is stored, but the peer has not confirmed
 * @ACCMEM_CALL_DONE: the wait is over; the caller must collect the result
 */
enum accmem_columns_call {
	ACCMEM_CALL_NONE,
	ACCMEM_CALL_JOIN_ALLOC,
	ACCMEM_CALL_JOIN_DEALLOC,
	ACCMEM_CALL_QUEUED,
	ACCMEM_CALL_RESERVED,
	ACCMEM_CALL_STORED,
	ACCMEM_CALL_DONE,
};

/**
 * enum accmem_columns_hazard - calls that hardware would not survive (strict mode)
 * @ACCMEM_HAZARD_PEER: a dealloc or exit before the peer's alloc has returned
 * @ACCMEM_HAZARD_PERMIT: an alloc was granted on an SM where a CTA of another launch
 *	has allocated, and neither relinquished nor exited (shared discipline)
 * @ACCMEM_HAZARD_WARP: an alloc or dealloc by another warp than the warp of the
 *	CTA's first alloc
 */
enum accmem_columns_hazard {
	ACCMEM_HAZARD_PEER = 1 << 0,
	ACCMEM_HAZARD_PERMIT = 1 << 1,
	ACCMEM_HAZARD_WARP = 1 << 2,
};

/**
 * struct accmem_columns_cta - a CTA
 * @launch: number of its launch
 * @cluster: number of its cluster in the launch
 * @rank: rank in the cluster; the rank of the peer differs in the last bit
 * @sm: index of its SM
 * @group: 1 or 2 (cta_group)
 * @link: link in accmem_columns_sm.ctas
 * @same_cluster: link in accmem_columns_sm.clusters
 * @same_launch: ring of the CTAs of the launch
 * @of_launch: link in accmem_columns_sm.launches; the one CTA of the ring that has it
 *	stands for the launch
 * @peer: the peer, from the peer's launch to the peer's exit
 * @held: units of the SM that are allocated to the CTA, a bit each
 * @starts: first unit of each allocation, a bit each
 * @reserved: units of the SM that are reserved for the call, a bit each
 * @last: columns of the last alloc
 * @relinquished: the CTA has relinquished the permit and may not allocate
 * @peer_gone: the peer has exited
 * @complete: no more CTAs can be launched into its cluster
 * @obtained_permit: the call in progress has obtained the permit of the SM
 * @unreturned: the last alloc was granted, and its call has not returned. This field
 *	and those down to @permit_owner are used in strict mode only.
 * @hazards: hazards found in its calls, bits of enum accmem_columns_hazard
 * @warp: warp that makes the call in progress; set by the caller
 * @first_warp: warp that made the first alloc
 * @permit_owner: launch that has not relinquished, for ACCMEM_HAZARD_PERMIT
 * @stores: the caller stores the address and confirms the reservation
 * @may_wait: the alloc in progress may wait for columns and for the peer's call
 * @call: state of the call
 * @leads: the request is queued, and the CTA stands for it: in a pair one of the two.
 *	@at_bound, @counted, @left and @bypassed count in the leader.
 * @at_bound: the queued request has reached its bypass bound
 * @counted: the request is counted in accmem_columns_sm.nr_holding
 * @left: deadlock search: the request has not been met so far
 * @age: number of the request in the order of arrival, the same in both CTAs of a pair
 * @queue: link in accmem_columns_sm.queue
 * @done: link in accmem_columns.done
 * @columns: columns of the call
 * @address: operand of a dealloc, result of an alloc
 * @bypassed: how often the queued request was passed
 * @passed: how many requests the last grant has passed
 * @result: result of the call in state ACCMEM_CALL_DONE
 *
 * The caller sets the fields down to @group, and may read the others.
 */
struct accmem_columns_cta {
	u64 launch;
	u32 cluster;
	u32 rank;
	u32 sm;
	u32 group;

	struct list_head link;
	struct list_head same_cluster;
	struct list_head same_launch;
	struct list_head of_launch;
	struct accmem_columns_cta *peer;
	u64 held;
	u64 starts;
	u64 reserved;
	u32 last;
	bool relinquished;
	bool peer_gone;
	bool complete;
	bool obtained_permit;
	bool unreturned;
	u32 hazards;
	u32 warp;
	u32 first_warp;
	u64 permit_owner;
	bool stores;
	bool may_wait;

	enum accmem_columns_call call;
	bool leads;
	bool at_bound;
	bool counted;
	bool left;
	u64 age;
	struct list_head queue;
	struct list_head done;
	u32 columns;
	u32 address;
	u32 bypassed;
	u32 passed;
	int result;
};

/**
 * struct accmem_columns_sm - the columns of an SM
 * @used: units that are not free, a bit each; units above the SM's size are set
 * @permit: the CTA that may allocate (exclusive discipline), or NULL
 * @ctas: CTAs of the SM that have not exited
 * @clusters: hash bucket of CTAs, by launch and cluster; the CTAs may be on any SM
 * @launches: hash bucket of launches
 * @queue: CTAs of the SM whose request is queued, by age
 * @first_at_bound: first CTA of @queue whose request has reached its bypass bound
 * @nr_pairs: CTAs of @queue that are one of a pair
 * @nr_holding: CTAs of @queue whose request is of CTAs that hold columns
 * @watched: accmem_columns.held_changed is called for the SM
 * @polled: accmem_columns_next_changed() returns the SM when it has changed
 * @changed: the SM is in accmem_columns.changed
 * @touched: the SM is in accmem_columns.touched
 * @dirty: the SM is in accmem_columns.dirty
 * @walked: a pass over the queue has reached @cursor; so do all fields down to @right
 *	belong to the pass
 * @cursor: link of the next CTA to be checked
 * @at: age of this CTA
 * @left: SMs in the heap of the pass
 * @right: SMs in the heap of the pass
 * @next_changed: next SM in accmem_columns.changed
 * @next_touched: next SM in accmem_columns.touched
 * @next_dirty: next SM in accmem_columns.dirty
 * @connected: deadlock search: the SM is searched; so do all fields below belong to it
 * @next_connected: next SM that is searched
 * @assumed: units that are not free
 * @blocking: cursor: no request before this link is left and at its bound
 * @from: cursor: the CTAs before this link have been checked
 * @all: columns were freed since the last check: check from the first CTA
 * @listed: the SM is in the list of SMs to check
 * @next_to_check: next SM in this list
 */
struct accmem_columns_sm {
	u64 used;
	struct accmem_columns_cta *permit;
	struct list_head ctas;
	struct list_head clusters;
	struct list_head launches;
	struct list_head queue;
	struct accmem_columns_cta *first_at_bound;
	u32 nr_pairs;
	u32 nr_holding;
	bool watched;
	bool polled;
	bool changed;
	bool touched;
	bool dirty;
	bool walked;
	bool connected;
	bool all;
	bool listed;
	struct list_head *cursor;
	u64 at;
	struct accmem_columns_sm *left;
	struct accmem_columns_sm *right;
	struct accmem_columns_sm *next_changed;
	struct accmem_columns_sm *next_touched;
	struct accmem_columns_sm *next_dirty;
	struct accmem_columns_sm *next_connected;
	u64 assumed;
	struct list_head *blocking;
	struct list_head *from;
	struct accmem_columns_sm *next_to_check;
};

/**
 * struct accmem_columns - an arbiter
 * @sms: array of SMs
 * @nr_sms: number of SMs
 * @columns: columns of an SM
 * @absent: units above the size of an SM, a bit each
 * @exclusive: the discipline is exclusive: an SM has one permit
 * @bypass_bound: how often a queued request may be passed
 * @strict: strict mode: find hazards
 * @ended: the arbiter was reset; all calls fail
 * @nr_ctas: number of CTAs that have not exited
 * @nr_queued: number of queued requests
 * @arrivals: number of requests so far, from which they have their age
 * @done: completed CTAs, in the order of completion
 * @changed: polled SMs on which an alloc may have become possible
 * @touched: SMs whose queue, columns or permit this call has changed; empty between
 *	calls, as @dirty is
 * @dirty: those of them on which a queued request may have become possible
 * @checks: number of requests that passes, counts of bypasses and deadlock searches
 *	have looked at, and of CTAs that launches have looked at: the cost of the calls
 * @bypasses: number of times that a request was passed
 * @forced: number of grants against the bound, each to avoid a deadlock
 * @deadlocks: number of requests that failed with -EDEADLK
 * @held_changed: called after each change of a CTA's columns on a watched SM; @units
 *	are the units that have changed. The function must not call the arbiter.
 *
 * The caller may read all fields. The caller sets @held_changed and @strict before the
 * first launch, and @watched and @polled of an SM at any time.
 */
struct accmem_columns {
	struct accmem_columns_sm *sms;
	u32 nr_sms;
	u32 columns;
	u64 absent;
	bool exclusive;
	u32 bypass_bound;
	bool strict;
	bool ended;
	u32 nr_ctas;
	u32 nr_queued;
	u64 arrivals;
	struct list_head done;
	struct accmem_columns_sm *changed;
	struct accmem_columns_sm *touched;
	struct accmem_columns_sm *dirty;
	u64 checks;
	u64 bypasses;
	u64 forced;
	u64 deadlocks;
	void (*held_changed)(struct accmem_columns_cta *cta, u64 units);
};

/**
 * accmem_columns_init() - initialise an arbiter
 * @c: the arbiter
 * @sms: array of @nr_sms structures in memory of the caller
 * @nr_sms: number of SMs, at least 1
 * @columns: columns of each SM, a multiple of ACCMEM_COLUMNS_UNIT
 * @exclusive: true for the exclusive discipline, false for the shared one
 * @bypass_bound: how often a queued request may be passed
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: 0; -EINVAL for an invalid number of SMs or of columns.
 */
int accmem_columns_init(struct accmem_columns *c, struct accmem_columns_sm *sms,
			u32 nr_sms, u32 columns, bool exclusive,
			u32 bypass_bound);

/**
 * accmem_columns_launch() - launch a CTA into a cluster
 * @c: the arbiter
 * @cta: the CTA; other CTAs of the cluster can follow
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: 0; -EINVAL for another group than 1 or 2; -ENXIO if there is no such SM;
 * -EPROTOTYPE if the launch has another group; -EEXIST if the cluster is complete, or
 * in group 2 if the rank is in use or was in use by a CTA that has exited;
 * -EADDRINUSE if the peer is on the same SM; -ECONNRESET after a reset.
 */
int accmem_columns_launch(struct accmem_columns *c,
			  struct accmem_columns_cta *cta);
/**
 * accmem_columns_launch_cluster() - launch all CTAs of a cluster, or none
 * @c: the arbiter
 * @ctas: the CTAs, with the same launch, cluster and group
 * @nr: number of CTAs, at least 1
 * @culprit: out: index of the CTA that cannot be launched
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: as accmem_columns_launch(); also -EINVAL if a pair has only one CTA.
 */
int accmem_columns_launch_cluster(struct accmem_columns *c,
				  struct accmem_columns_cta *const *ctas,
				  u32 nr, u32 *culprit);
/**
 * accmem_columns_exit() - remove a CTA and free all its columns
 * @c: the arbiter
 * @cta: the CTA, of which no call waits
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: the units that the CTA held, a bit each.
 */
u64 accmem_columns_exit(struct accmem_columns *c,
			struct accmem_columns_cta *cta);

/**
 * accmem_columns_request() - allocate or reserve columns
 * @c: the arbiter
 * @cta: the CTA
 * @columns: number of columns
 * @stores: reserve the columns, as accmem_columns_reserve(); else allocate them
 * @wait: the call may wait
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: as accmem_columns_alloc() or accmem_columns_reserve().
 */
int accmem_columns_request(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 columns,
			   bool stores, bool wait);

/**
 * accmem_columns_alloc() - allocate columns
 * @c: the arbiter
 * @cta: the CTA
 * @columns: number of columns
 * @wait: the call may wait
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: 0, with the address in @cta->address. -EINPROGRESS if the call waits: with
 * @wait; and without @wait, if the peer must still store its address. -EAGAIN if the
 * call would wait, without @wait. Otherwise the error of the rule that was broken.
 */
static inline int accmem_columns_alloc(struct accmem_columns *c,
				       struct accmem_columns_cta *cta,
				       u32 columns, bool wait)
{
	return accmem_columns_request(c, cta, columns, false, wait);
}

/**
 * accmem_columns_reserve() - reserve columns
 * @c: the arbiter
 * @cta: the CTA
 * @columns: number of columns
 * @wait: the call may wait
 *
 * A result of 0, and a wait that ends with 0, is a reservation. The caller stores
 * @cta->address and then calls accmem_columns_confirm().
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: as accmem_columns_alloc(), but 0 means a reservation.
 */
static inline int accmem_columns_reserve(struct accmem_columns *c,
					 struct accmem_columns_cta *cta,
					 u32 columns, bool wait)
{
	return accmem_columns_request(c, cta, columns, true, wait);
}

/**
 * accmem_columns_confirm() - confirm or refuse a reservation
 * @c: the arbiter
 * @cta: the CTA
 * @address: the address that the caller has stored
 * @stored: the store has succeeded. If not, the alloc fails with -EFAULT, for both
 *	CTAs of a pair.
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: 0 if the columns are allocated. -EINPROGRESS in these cases:
 *  - the peer has not confirmed yet;
 *  - the peer has cancelled, and the call waits again;
 *  - other columns are reserved by now: @address is outdated, and @cta->call is
 *    ACCMEM_CALL_RESERVED.
 * Otherwise the result of the call, which has ended meanwhile.
 */
int accmem_columns_confirm(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 address,
			   bool stored);
/**
 * accmem_columns_dealloc() - free columns
 * @c: the arbiter
 * @cta: the CTA
 * @address: address of an allocation
 * @columns: number of columns of that allocation
 * @wait: the call may wait for the peer's dealloc
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: 0. -EINPROGRESS if the call waits, with @wait. -EAGAIN if the call would
 * wait, without @wait. Otherwise the error of the rule that was broken.
 */
int accmem_columns_dealloc(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 address,
			   u32 columns, bool wait);
/**
 * accmem_columns_relinquish() - relinquish the permit of a CTA
 * @c: the arbiter
 * @cta: the CTA
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: 0; -EPROTO if the peer was waiting in alloc, but the permit is relinquished
 * then, too; -ECONNRESET after a reset.
 */
int accmem_columns_relinquish(struct accmem_columns *c,
			      struct accmem_columns_cta *cta);

/**
 * accmem_columns_cancel() - cancel a wait or a reservation
 * @c: the arbiter
 * @cta: the CTA
 *
 * A peer that had joined the call waits for the next call of @cta. If the peer's call
 * may not wait, it fails with -EAGAIN.
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: false if the call has ended already, so that its result counts.
 */
bool accmem_columns_cancel(struct accmem_columns *c,
			   struct accmem_columns_cta *cta);
/**
 * accmem_columns_reset() - free all columns, end all waits, fail all later calls
 * @c: the arbiter
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_columns_reset(struct accmem_columns *c);

/**
 * accmem_columns_next_done() - remove the first CTA from the list of completed CTAs
 * @c: the arbiter
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: a CTA whose wait is over or that has a reservation to confirm; NULL if the
 * list is empty. Each completion is returned once.
 */
struct accmem_columns_cta *accmem_columns_next_done(struct accmem_columns *c);

/**
 * accmem_columns_next_changed() - remove the first SM from the list of changed SMs
 * @c: the arbiter
 *
 * An alloc that accmem_columns_would_grant() has denied can become possible in two
 * ways: the SM of the CTA, or of its peer, is in this list; or the call of the CTA
 * itself has ended.
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: an SM with accmem_columns_sm.polled; NULL if the list is empty.
 */
static inline struct accmem_columns_sm *
accmem_columns_next_changed(struct accmem_columns *c)
{
	struct accmem_columns_sm *sm = c->changed;

	if (sm) {
		c->changed = sm->next_changed;
		sm->changed = false;
	}
	return sm;
}

/**
 * accmem_columns_collect() - get the result of a call whose wait is over
 * @cta: the CTA, which can make its next call afterwards
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: the result; 0 for a reservation, which the caller must confirm.
 */
static inline int accmem_columns_collect(struct accmem_columns_cta *cta)
{
	if (cta->call == ACCMEM_CALL_RESERVED)
		return 0;
	cta->call = ACCMEM_CALL_NONE;
	return cta->result;
}

/* Strict mode: the call of a granted alloc has returned to its caller. */
static inline void accmem_columns_returned(struct accmem_columns_cta *cta)
{
	cta->unreturned = false;
}

/* Return the hazards found since the last call, bits of enum accmem_columns_hazard. */
static inline u32 accmem_columns_collect_hazards(struct accmem_columns_cta *cta)
{
	u32 hazards = cta->hazards;

	cta->hazards = 0;
	return hazards;
}

/**
 * accmem_columns_would_grant() - check if an alloc would be granted now
 * @c: the arbiter
 * @cta: the CTA
 * @columns: number of columns
 *
 * In a pair the peer must be waiting in alloc; the peer's number of columns is not
 * compared.
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: true if the alloc would be granted at once.
 */
bool accmem_columns_would_grant(struct accmem_columns *c,
				const struct accmem_columns_cta *cta,
				u32 columns);
/* Return the number of free columns of an SM. */
u32 accmem_columns_free(const struct accmem_columns *c, u32 sm);

static inline bool accmem_columns_waiting(const struct accmem_columns_cta *cta)
{
	return cta->call != ACCMEM_CALL_NONE && cta->call != ACCMEM_CALL_DONE;
}

#endif /* ACCMEM_COLUMNS_H */
