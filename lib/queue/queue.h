/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * accmem_queue: who waits for memory, in which order, and whose turn it is.
 *
 * The queue decides whom to wake; who is woken tries for itself, since nobody else
 * can make its allocation, unless it is given just what it needs. What waiters that
 * are awake need is promised to them: the next one is woken only where there is more
 * than that. A waiter that tries in vain sleeps on in its place, until something has
 * changed.
 *
 * Order. Waiters of one user are in order of arrival; across users they take turns,
 * and a turn is as long as what was asked for in it: who asks for little has many of
 * them for one of somebody who asks for much. (Start-time fair queueing: a waiter's
 * turn begins where its user's last one ended; but nobody catches up by more than a
 * credit with the latest that was served, or with the first who waits and may be helped
 * where that is earlier.) A younger one that fits may pass an older one that does not.
 * Each time one passes the waiter at the front, that is counted, whether it waits or
 * not, unless its own turn begins before; a front that gives up leaves its count to the
 * next one. When the bound is reached, memory is reserved for the front: nobody else
 * is given any, and others are woken only if they need nothing of it. A reservation
 * ends after some time, served or not. One that ends unserved, in whatever way, costs
 * its waiter the place, which is at the end from then on, and for as long again
 * nothing is reserved: nobody can stall the others with a request that nothing can
 * meet. While its waiter is away it is suspended: others may be given what is there,
 * and it ends no later.
 *
 * Waiters whom a limit holds up are in the same queue, and pass nobody's bound: no
 * memory would help them. They are tried again when their user's charge has sunk.
 *
 * No locks, no clock, nothing is allocated: the caller serialises all calls on one
 * instance and tells the time in nanoseconds. A call takes O(n) steps for n waiters.
 */
#ifndef ACCMEM_QUEUE_H
#define ACCMEM_QUEUE_H

#include <linux/list.h>
#include <linux/types.h>

/* promised, to who asks for what is reserved for another: all of it */
#define ACCMEM_QUEUE_RESERVED (~0ull)

/**
 * enum accmem_queue_state - what a waiter is doing
 * @ACCMEM_QUEUE_AWAKE: it tries, and what it needs is promised to it
 * @ACCMEM_QUEUE_ASLEEP: it has tried in vain, or its turn has not come
 * @ACCMEM_QUEUE_AWAY: it is not there, and keeps its place
 * @ACCMEM_QUEUE_SERVED: it has been given what it needs, and is about to leave
 */
enum accmem_queue_state {
	ACCMEM_QUEUE_AWAKE,
	ACCMEM_QUEUE_ASLEEP,
	ACCMEM_QUEUE_AWAY,
	ACCMEM_QUEUE_SERVED,
};

/**
 * struct accmem_queue_user - one user's part of a queue
 * @nr: its waiters
 * @turn: where the next of them begins, unless others are further
 * @seq: how often its charge has sunk
 *
 * Zeroed by the caller before its first waiter.
 */
struct accmem_queue_user {
	unsigned int nr;
	u64 turn;
	u64 seq;
};

/**
 * struct accmem_queue_waiter - one request that waits
 * @need: bytes that it cannot do with less than
 * @limited: a limit was the reason, when it last tried in vain
 * @state: what it is doing
 * @passed: how often it was passed at the front
 *
 * The caller reads these; accmem_queue_enter() sets them.
 */
struct accmem_queue_waiter {
	u64 need;
	bool limited;
	enum accmem_queue_state state;
	u32 passed;
	/* private: */
	struct list_head link;
	struct accmem_queue_user *user;
	u64 turn; /* where it begins */
	u64 seen; /* accmem_queue.seq at its last try */
	u64 user_seen; /* accmem_queue_user.seq at its last try */
};

/**
 * struct accmem_queue - the waiters for one piece of memory
 * @nr: waiters
 * @nr_starved: those that are short of memory, not held up by a limit
 * @promised: bytes promised to those that are awake
 * @bound: how often the front may be passed before memory is reserved for it
 * @reserve_ns: for how long memory is reserved; 0 for never
 * @credit: bytes of turns that a user who had none meanwhile catches up with
 * @reserved: for whom it is, or NULL
 * @suspended: for whom it would be, who is away, or NULL
 * @until: when that ends, or when memory may be reserved again
 * @reservations: how often memory was reserved
 * @expired: how often that ended unserved
 * @passes: how often a waiter at the front was passed
 */
struct accmem_queue {
	unsigned int nr;
	unsigned int nr_starved;
	u64 promised;
	u32 bound;
	u64 reserve_ns;
	u64 credit;
	struct accmem_queue_waiter *reserved;
	struct accmem_queue_waiter *suspended;
	u64 until;
	u64 reservations;
	u64 expired;
	u64 passes;
	/* private: */
	struct list_head waiters; /* by turn; then in order of arrival */
	u64 turn; /* of the latest that was served */
	u64 first_turn; /* the earliest since nobody waited */
	u64 last_turn; /* where the last of all ends */
	u64 seq; /* how often memory came back */
};

/**
 * accmem_queue_init() - make a queue without waiters
 * @q: the queue
 * @bound: how often the waiter at the front may be passed
 */
void accmem_queue_init(struct accmem_queue *q, u32 bound);

/**
 * accmem_queue_set_reserve() - change for how long memory is reserved
 * @q: the queue
 * @reserve_ns: nanoseconds, or 0 for never
 * @now: a time in nanoseconds
 *
 * A reservation that there is does not last longer than that from now on.
 */
void accmem_queue_set_reserve(struct accmem_queue *q, u64 reserve_ns, u64 now);

/**
 * accmem_queue_enter() - begin to wait
 * @q: the queue
 * @w: the waiter, which is the queue's until accmem_queue_leave(). It is awake: what
 *	comes back from here on is not missed, and accmem_queue_sleep() follows.
 * @user: whose it is
 * @need: bytes
 */
void accmem_queue_enter(struct accmem_queue *q, struct accmem_queue_waiter *w,
			struct accmem_queue_user *user, u64 need);

/**
 * accmem_queue_start_try() - a waiter that is awake, or was served, is about to try
 * @q: the queue
 * @w: the waiter, which is awake then: what came back before this is what it will see
 */
void accmem_queue_start_try(struct accmem_queue *q,
			    struct accmem_queue_waiter *w);

/**
 * accmem_queue_sleep() - a waiter that is awake has tried in vain
 * @q: the queue
 * @w: the waiter
 * @limited: a limit was the reason
 * @now: the time
 *
 * What was promised to it may do for others: accmem_queue_next() follows. Memory that is
 * reserved for one that a limit holds up is reserved no more.
 */
void accmem_queue_sleep(struct accmem_queue *q, struct accmem_queue_waiter *w,
			bool limited, u64 now);

/**
 * accmem_queue_first() - whose turn comes before all others
 * @q: the queue
 *
 * Return: the first that is not served, if it is asleep and nothing is reserved for
 * another; else NULL.
 */
struct accmem_queue_waiter *accmem_queue_first(struct accmem_queue *q);

/**
 * accmem_queue_serve() - a waiter is given what it needs
 * @q: the queue
 * @w: the waiter, asleep. accmem_queue_leave() follows, or accmem_queue_start_try() if what
 *	it was given is of no use to it; the next one gets what it is due after that.
 */
void accmem_queue_serve(struct accmem_queue *q, struct accmem_queue_waiter *w);

/**
 * accmem_queue_enter_asleep() - a waiter that is awake has not tried
 * @q: the queue
 * @w: the waiter, which sleeps until accmem_queue_next() finds that it fits
 */
void accmem_queue_enter_asleep(struct accmem_queue *q,
			       struct accmem_queue_waiter *w);

/**
 * accmem_queue_suspend() - a waiter is not there for a while
 * @q: the queue
 * @w: the waiter, in any state. It keeps its place, and its count of passes; memory
 *	is not reserved for it until it is back. accmem_queue_next() follows.
 */
void accmem_queue_suspend(struct accmem_queue *q,
			  struct accmem_queue_waiter *w);

/**
 * accmem_queue_resume() - a waiter that was away is back, and awake
 * @q: the queue
 * @w: the waiter, for whom memory is reserved again, if it was, until the time is over
 * @now: the time. accmem_queue_next() follows.
 */
void accmem_queue_resume(struct accmem_queue *q, struct accmem_queue_waiter *w,
			 u64 now);

/**
 * accmem_queue_leave() - wait no more
 * @q: the queue
 * @w: the waiter, in any state
 * @served: it got its memory, and so passed those before it
 * @now: the time. accmem_queue_next() follows.
 */
void accmem_queue_leave(struct accmem_queue *q, struct accmem_queue_waiter *w,
			bool served, u64 now);

/**
 * accmem_queue_front() - the waiter that may be passed a bounded number of times
 * @q: the queue
 *
 * Return: the first that no limit holds up and that is not served; NULL if there is
 * none.
 */
struct accmem_queue_waiter *accmem_queue_front(struct accmem_queue *q);

/**
 * accmem_queue_pass() - somebody who does not wait was given memory
 * @q: the queue
 * @user: whose it is, for whom it was a turn
 * @got: bytes
 * @now: the time
 */
void accmem_queue_pass(struct accmem_queue *q, struct accmem_queue_user *user,
		       u64 got, u64 now);

/**
 * accmem_queue_came_back() - there is memory that was not there before
 * @q: the queue. accmem_queue_next() follows.
 */
static inline void accmem_queue_came_back(struct accmem_queue *q)
{
	q->seq++;
}

/**
 * accmem_queue_sank() - what a user is charged has sunk
 * @user: the user. accmem_queue_next() follows.
 */
static inline void accmem_queue_sank(struct accmem_queue_user *user)
{
	user->seq++;
}

/**
 * accmem_queue_limits_rose() - the limits of all users may have been raised
 * @q: the queue. accmem_queue_next() follows.
 */
void accmem_queue_limits_rose(struct accmem_queue *q);

/**
 * accmem_queue_tick() - time has passed
 * @q: the queue. accmem_queue_next() follows.
 * @now: the time
 *
 * Return: whether a reservation has ended unserved.
 */
bool accmem_queue_tick(struct accmem_queue *q, u64 now);

/**
 * accmem_queue_next() - the next waiter that is to be woken
 * @q: the queue
 * @from: the one that the last call returned; NULL at first
 * @fits: could it be served? Of memory with what is free less what is promised, which
 *	is ACCMEM_QUEUE_RESERVED while memory is reserved for another, and 0 for that
 *	one. It says no only where it could not, and as long as nothing changes stays
 *	with it.
 * @arg: for @fits
 *
 * Return: the waiter, which is awake now; NULL if there is none.
 */
struct accmem_queue_waiter *
accmem_queue_next(struct accmem_queue *q, struct accmem_queue_waiter *from,
		  bool (*fits)(const struct accmem_queue_waiter *w,
			       u64 promised, void *arg),
		  void *arg);

/**
 * accmem_queue_walk() - walk through the waiters, the front first
 * @q: the queue
 * @w: the last one; NULL at first
 *
 * Return: the next one; NULL at the end.
 */
struct accmem_queue_waiter *accmem_queue_walk(struct accmem_queue *q,
					      struct accmem_queue_waiter *w);

#endif /* ACCMEM_QUEUE_H */
