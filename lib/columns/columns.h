/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * accmem_columns: the Tensor Memory arbiter as a state machine.
 *
 * CTAs on SMs ask for columns, wait, are served in order of arrival with
 * bounded bypass, and give back. It never sleeps, locks or allocates: a CTA is
 * embedded in the caller's structure, and its one waiting call in the CTA. A
 * call that has to wait is -EINPROGRESS; when another call ends the wait, the
 * CTA appears on the list of completed ones, once. The caller serialises every
 * call on one arbiter, by a spinlock in the driver. The same calls in the same
 * order give the same results.
 *
 * An alloc whose address the caller stores where that can fail is a reservation
 * first: the columns are nobody else's, and count as allocated once they are
 * confirmed, of a pair once both sides are. Until then either side can refuse,
 * and the alloc has not been.
 *
 * The error values are those of <linux/accmem.h>, which has the table.
 */
#ifndef ACCMEM_COLUMNS_H
#define ACCMEM_COLUMNS_H

#include <linux/list.h>
#include <linux/types.h>

#define ACCMEM_COLUMNS_UNIT 32u /* columns */
#define ACCMEM_COLUMNS_MIN 32u /* of one alloc */
#define ACCMEM_COLUMNS_MAX 512u
#define ACCMEM_COLUMNS_SM_MAX 2048u /* 64 units: a word */

/**
 * enum accmem_columns_call - what a CTA's call is doing
 * @ACCMEM_CALL_NONE: there is none
 * @ACCMEM_CALL_JOIN_ALLOC: an alloc waits for the peer's
 * @ACCMEM_CALL_JOIN_DEALLOC: a dealloc waits for the peer's
 * @ACCMEM_CALL_QUEUED: an alloc waits for a permit or for columns
 * @ACCMEM_CALL_RESERVED: columns are reserved; the caller is to store their
 *	address and to confirm that
 * @ACCMEM_CALL_STORED: the address is stored, but not the peer's
 * @ACCMEM_CALL_DONE: the wait is over; the result is to be collected
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
 * enum accmem_columns_hazard - what hardware would not survive (strict mode)
 * @ACCMEM_HAZARD_PEER: a dealloc or exit before the peer's alloc has returned
 * @ACCMEM_HAZARD_PERMIT: an alloc was granted where a CTA of another launch has
 *	allocated, and neither relinquished nor exited (shared discipline)
 * @ACCMEM_HAZARD_WARP: an alloc or dealloc by another warp than the CTA's first
 *	alloc
 */
enum accmem_columns_hazard {
	ACCMEM_HAZARD_PEER = 1 << 0,
	ACCMEM_HAZARD_PERMIT = 1 << 1,
	ACCMEM_HAZARD_WARP = 1 << 2,
};

/**
 * struct accmem_columns_cta - a CTA
 * @launch: what it was launched under
 * @cluster: its cluster in the launch
 * @rank: in the cluster; the peer's has the last bit flipped
 * @sm: index of its SM
 * @group: 1 or 2 (cta_group)
 * @link: in accmem_columns.ctas
 * @peer: the peer, from its launch to its exit
 * @held: units of the SM that are allocated to it, a bit each
 * @starts: first unit of each allocation
 * @reserved: units of the SM that are reserved for its call
 * @last: columns of its last alloc
 * @relinquished: it may not allocate
 * @peer_gone: the peer has exited
 * @complete: no CTA can be launched into its cluster any more
 * @took_permit: by the call in progress
 * @unreturned: its last alloc was granted, and the call has not returned; kept in
 *	strict mode only, and so are the fields down to @keeper
 * @hazards: bits of enum accmem_columns_hazard that were found in its calls
 * @warp: by which the call in progress is made; the caller sets it
 * @first_warp: by which its first alloc was made
 * @keeper: of ACCMEM_HAZARD_PERMIT, the other launch
 * @stores: the call's address counts once it is confirmed
 * @may_wait: the alloc in progress may wait, and not only for the peer's store
 * @call: what its call is doing
 * @leads: @queue is in accmem_columns.queue; of a pair one CTA is
 * @spent: the queued request may not be passed any more
 * @counted: it is in accmem_columns.nr_holding
 * @left: scratch of the search for deadlocks: not met so far
 * @age: the same: its place in the queue
 * @beside: the same: the next of those that want columns of its SM, by age
 * @queue: in accmem_columns.queue
 * @next_done: the next in accmem_columns.done
 * @columns: operand of the call
 * @address: operand of a dealloc, result of an alloc
 * @bypassed: how often the queued request was passed
 * @passed: how many requests the last grant passed
 * @result: of the call, once it is done
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
	struct accmem_columns_cta *peer;
	u64 held;
	u64 starts;
	u64 reserved;
	u32 last;
	bool relinquished;
	bool peer_gone;
	bool complete;
	bool took_permit;
	bool unreturned;
	u32 hazards;
	u32 warp;
	u32 first_warp;
	u64 keeper;
	bool stores;
	bool may_wait;

	enum accmem_columns_call call;
	bool leads;
	bool spent;
	bool counted;
	bool left;
	u32 age;
	struct accmem_columns_cta *beside;
	struct list_head queue;
	struct accmem_columns_cta *next_done;
	u32 columns;
	u32 address;
	u32 bypassed;
	u32 passed;
	int result;
};

/**
 * struct accmem_columns_sm - the columns of one SM
 * @used: units that are not free, a bit each; those it has not are set
 * @permit: who may allocate (exclusive), or NULL
 * @nr_spent: queued requests for it that may not be passed any more
 * @watched: each change of what a CTA holds of it is told of
 * @stamp: the pass over the queue in which it was found to be kept for an
 *	older request
 * @assumed: scratch of the search for deadlocks: units that are not free
 * @oldest: the same, as all below: the CTAs that want its columns, by age
 * @youngest: of these
 * @spent: of these; none before it holds up a younger one
 * @from: of these; those before it have been looked at
 * @all: but columns have come back since
 * @again: it is to be looked at
 * @next_again: and so is this one
 */
struct accmem_columns_sm {
	u64 used;
	struct accmem_columns_cta *permit;
	u32 nr_spent;
	bool watched;
	u64 stamp;
	u64 assumed;
	struct accmem_columns_cta *oldest;
	struct accmem_columns_cta *youngest;
	struct accmem_columns_cta *spent;
	struct accmem_columns_cta *from;
	bool all;
	bool again;
	struct accmem_columns_sm *next_again;
};

/**
 * struct accmem_columns - an arbiter
 * @sms: its SMs
 * @nr_sms: how many
 * @columns: columns an SM
 * @absent: units that an SM has not
 * @exclusive: the permit discipline
 * @bypass_bound: how often a queued request may be passed
 * @strict: look for hazards
 * @ended: reset; nothing can be done any more
 * @ctas: CTAs that have not exited
 * @nr_ctas: how many
 * @queue: queued requests by age
 * @nr_queued: how many
 * @nr_spent: how many of them may not be passed any more
 * @nr_holding: how many of them by a CTA, or a pair, that holds columns
 * @done: CTAs whose wait is over, in the order in which that happened; they
 *	are appended only, and taken from the front, so one link does
 * @done_tail: where the next one goes
 * @pass: number of passes over the queue
 * @looks: how often searches for deadlocks have looked at a request
 * @bypasses: how often a request was passed
 * @forced: grants against the bound, because it would have been a deadlock
 * @deadlocks: requests that got -EDEADLK
 * @held_changed: told of each change of what a CTA holds of an SM that is
 *	watched, once it is made: @units are those that differ. It calls nothing
 *	of the arbiter.
 *
 * For the caller to read; @held_changed and @strict are the caller's to set,
 * before the first launch, and so is accmem_columns_sm.watched, at any time.
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
	struct list_head ctas;
	u32 nr_ctas;
	struct list_head queue;
	u32 nr_queued;
	u32 nr_spent;
	u32 nr_holding;
	struct accmem_columns_cta *done;
	struct accmem_columns_cta **done_tail;
	u64 pass;
	u64 looks;
	u64 bypasses;
	u64 forced;
	u64 deadlocks;
	void (*held_changed)(struct accmem_columns_cta *cta, u64 units);
};

/* @sms: memory for @nr_sms of them. -EINVAL: no SM, or not so many columns. */
int accmem_columns_init(struct accmem_columns *c,
			struct accmem_columns_sm *sms, u32 nr_sms, u32 columns,
			bool exclusive, u32 bypass_bound);

int accmem_columns_launch(struct accmem_columns *c,
			  struct accmem_columns_cta *cta);
/*
 * All CTAs of a cluster, at least one, which have launch, cluster and group in
 * common; or none. -EINVAL, too, when a pair has one CTA only. Otherwise as one
 * alone; *@culprit is the index of the CTA that cannot be launched.
 */
int accmem_columns_launch_cluster(struct accmem_columns *c,
				  struct accmem_columns_cta *const *ctas,
				  u32 nr, u32 *culprit);
/*
 * The CTA, none of whose calls is waiting, goes; everything it holds is given
 * back. Returns the units that it held.
 */
u64 accmem_columns_exit(struct accmem_columns *c,
			struct accmem_columns_cta *cta);

/* see accmem_columns_alloc() and accmem_columns_reserve() */
int accmem_columns_request(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 columns,
			   bool stores, bool wait);

/*
 * 0 with the address in @cta->address, -EINPROGRESS with @wait, -EAGAIN
 * without, or the rule that was broken. -EINPROGRESS without @wait, too, when
 * the peer has its address to store.
 */
static inline int accmem_columns_alloc(struct accmem_columns *c,
				       struct accmem_columns_cta *cta,
				       u32 columns, bool wait)
{
	return accmem_columns_request(c, cta, columns, false, wait);
}

/*
 * The same, but what is 0 there is a reservation here, and so is a wait that
 * ends with 0: the caller stores @cta->address and says with
 * accmem_columns_confirm() whether that went well.
 */
static inline int accmem_columns_reserve(struct accmem_columns *c,
					 struct accmem_columns_cta *cta,
					 u32 columns, bool wait)
{
	return accmem_columns_request(c, cta, columns, true, wait);
}

/*
 * The address of a reservation was stored, or could not be: then the alloc has
 * not been, and is -EFAULT for both of a pair. 0: the columns are allocated.
 * -EINPROGRESS: the call waits again, for the peer to store its own, or since
 * the peer has given up; or @address is not what is reserved by now, and
 * @cta->call is ACCMEM_CALL_RESERVED. Otherwise how the call ended meanwhile.
 */
int accmem_columns_confirm(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 address,
			   bool stored);
/* 0, -EINPROGRESS with @wait, -EAGAIN without, or the rule that was broken */
int accmem_columns_dealloc(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 address,
			   u32 columns, bool wait);
/* 0, or -EPROTO when the peer was waiting in alloc; effective in both cases */
int accmem_columns_relinquish(struct accmem_columns *c,
			      struct accmem_columns_cta *cta);

/*
 * Gives a wait up, or a reservation. False when it is over already: then the
 * result counts. A peer that had joined waits for the next call of this CTA
 * again, or gets -EAGAIN, if it may not wait.
 */
bool accmem_columns_cancel(struct accmem_columns *c,
			   struct accmem_columns_cta *cta);
/* everything is taken back, every wait ends, every later call fails */
void accmem_columns_reset(struct accmem_columns *c);

/*
 * The next CTA whose wait is over, or that has a reservation to confirm, or NULL;
 * each is returned once.
 */
static inline struct accmem_columns_cta *
accmem_columns_next_done(struct accmem_columns *c)
{
	struct accmem_columns_cta *cta = c->done;

	if (cta) {
		c->done = cta->next_done;
		if (!c->done)
			c->done_tail = &c->done;
	}
	return cta;
}

/*
 * The result of a wait that is over; the CTA can make its next call. 0 of a
 * reservation, which is to be confirmed first.
 */
static inline int accmem_columns_collect(struct accmem_columns_cta *cta)
{
	if (cta->call == ACCMEM_CALL_RESERVED)
		return 0;
	cta->call = ACCMEM_CALL_NONE;
	return cta->result;
}

/* strict mode: the call of an alloc that was granted has returned */
static inline void accmem_columns_returned(struct accmem_columns_cta *cta)
{
	cta->unreturned = false;
}

/* bits of enum accmem_columns_hazard that were found since the last look */
static inline u32 accmem_columns_take_hazards(struct accmem_columns_cta *cta)
{
	u32 hazards = cta->hazards;

	cta->hazards = 0;
	return hazards;
}

/*
 * Would an alloc be granted that comes now? In a pair: does the peer wait for
 * it, and is there room? Whether both want the same is not looked at.
 */
bool accmem_columns_would_grant(struct accmem_columns *c,
				const struct accmem_columns_cta *cta,
				u32 columns);
u32 accmem_columns_free(const struct accmem_columns *c, u32 sm);

static inline bool accmem_columns_waiting(const struct accmem_columns_cta *cta)
{
	return cta->call != ACCMEM_CALL_NONE && cta->call != ACCMEM_CALL_DONE;
}

#endif /* ACCMEM_COLUMNS_H */
