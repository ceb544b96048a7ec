/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * accmem_queue: the queue of waiters for memory.
 *
 * The queue decides which waiter to wake. A waiter that is awake tries its own
 * allocation, since no other task can do so. (A handoff is the exception:
 * accmem_queue_serve().) The needs of all awake waiters are promised to them: the next
 * waiter is woken only if its need fits beside the promises. A waiter whose try fails
 * sleeps again in its place, until memory is freed or its user's charge falls.
 *
 * States of a waiter: awake <-> asleep; any -> suspended -> awake; asleep -> served,
 * and from there awake if the handoff is of no use.
 *
 * Order:
 *  - The waiters of one user are in order of arrival.
 *  - Users take turns (start-time fair queueing). The length of a turn is the number
 *    of bytes requested in it, so a user of small requests has many turns for one
 *    turn of a user of large requests. A turn begins at the end of the user's last
 *    turn. A user who had no turn meanwhile catches up by at most a credit. The
 *    credit is counted back from the turn of the latest waiter served, or from the
 *    turn of the first waiter that is neither limited nor suspended, whichever is
 *    earlier.
 *
 * Bypass: a younger request that fits may be served before the waiter at the front,
 * if that waiter does not fit. Each time, the bypass is counted for the front,
 * whether the younger request has waited or not. The exception is a request that
 * does not wait and whose own turn begins before that of the front. If the front
 * leaves unserved, its count passes to the next front.
 *
 * Reservation: when the count reaches the bound, a reservation for the front begins.
 * From then on, bytes that other requests free are held for the front. A younger
 * request is served only if the held bytes stay free. Bytes that were free when the
 * reservation began are not held. A reservation ends when the waiter leaves, when a
 * limit blocks the waiter, or after reserve_ns. It ends earlier if it refuses memory to
 * requests that do not wait and gains none: 1/200 of reserve_ns after the first such
 * refusal, or at once if may_reserve() says that the waiter cannot be served. Bytes
 * freed by the user of the waiter are no gain when a request of another user is refused.
 *
 * An unused reservation costs more than it gained: the waiter moves behind the next front and
 * the turns of one credit, or to the tail if that is nearer. No reservation begins for
 * reserve_ns, nor for 200 times as long as requests were refused. The user of the waiter gets
 * none for reserve_ns, and each time for twice as long. So a request that cannot be served
 * lets at most one in a hundred others fail.
 * A front that may not have a reservation moves back in the same way, so that the next waiter
 * may.
 * While a waiter is suspended, so is its reservation: other requests may use the held
 * bytes, and the time still runs.
 *
 * Limits: a waiter that a limit blocks is in the same queue, but is never the front,
 * since memory would not help it. It is woken when the charge of its user falls.
 *
 * Memory given back: a request that fails may give back memory that it had for a
 * moment. Only the other waiters that tried meanwhile are woken for it
 * (accmem_queue_memory_missed()); otherwise two requests that fail could wake each
 * other for ever.
 *
 * Locking: none; the caller serialises all calls on a queue and passes the time in
 * nanoseconds. Nothing is allocated. accmem_queue_next() takes at most
 * ACCMEM_QUEUE_STEPS steps; other calls take O(n) steps for n waiters.
 */
#ifndef ACCMEM_QUEUE_H
#define ACCMEM_QUEUE_H

#include <linux/list.h>
#include <linux/types.h>

/* waiters that accmem_queue_next() looks at in one walk of the caller */
#define ACCMEM_QUEUE_STEPS 32u

/**
 * enum accmem_queue_state - state of a waiter
 * @ACCMEM_QUEUE_AWAKE: the waiter tries, and its need is promised to it
 * @ACCMEM_QUEUE_ASLEEP: the try of the waiter has failed, or its turn has not come
 * @ACCMEM_QUEUE_SUSPENDED: the waiter is suspended, in its place in the queue
 * @ACCMEM_QUEUE_SERVED: the waiter was handed the memory, and is about to leave
 */
enum accmem_queue_state {
	ACCMEM_QUEUE_AWAKE,
	ACCMEM_QUEUE_ASLEEP,
	ACCMEM_QUEUE_SUSPENDED,
	ACCMEM_QUEUE_SERVED,
};

/**
 * struct accmem_queue_user - state of a user in a queue
 * @nr: number of waiters of the user
 * @turn: earliest begin of the user's next turn
 * @seq: counts the times that the charge of the user has fallen
 * @unused: number of reservations that ended unserved, less those that served
 * @ended: time when the latest unused reservation ended
 * @until: earliest time of the next reservation; earlier if reserve_ns becomes shorter
 *
 * The caller zeroes the structure before the first waiter.
 */
struct accmem_queue_user {
	unsigned int nr;
	u64 turn;
	u64 seq;
	unsigned int unused;
	u64 ended;
	u64 until;
};

/**
 * struct accmem_queue_waiter - a request that waits
 * @need: bytes without which the request fails
 * @limited: a limit was the reason why the last try failed
 * @state: state of the waiter
 * @bypassed: number of bypasses of the waiter at the front
 *
 * The caller reads these members; accmem_queue_enter() initialises them.
 */
struct accmem_queue_waiter {
	u64 need;
	bool limited;
	enum accmem_queue_state state;
	u32 bypassed;
	/* private: */
	struct list_head link;
	struct accmem_queue_user *user;
	u64 turn; /* begin of its turn */
	u64 seen; /* accmem_queue.seq at its last try */
	u64 user_seen; /* accmem_queue_user.seq at its last try */
	u64 ended; /* accmem_queue.tries when its last try had failed */
};

/**
 * struct accmem_queue - a queue of waiters for memory
 * @nr: number of waiters
 * @nr_starved: number of waiters that lack memory, not blocked by a limit
 * @promised: bytes promised to waiters that are awake
 * @least: smallest need of a waiter that no limit blocks; U64_MAX if there is none. A
 *	carveout with fewer free bytes serves no waiter.
 * @bound: number of bypasses of the front before memory is reserved for it
 * @reserve_ns: longest duration of a reservation; 0 disables reservations
 * @may_reserve: returns false if a waiter cannot be served even if all other requests
 *	free their memory; NULL if each waiter can
 * @credit: bytes of turns by which a user without turns catches up
 * @reserved: the waiter that memory is reserved for, or NULL
 * @suspended: the suspended waiter whose reservation is suspended, too, or NULL
 * @held: bytes freed since the reservation began, which are held for the waiter
 * @until: end of the reservation, or the earliest time of the next one
 * @refused: time of the first refusal in this reservation; 0 if there was none
 * @stalled: time of the first refusal since memory was gained, or 0: of a request of the
 *	waiter's own user, and of another user
 * @tries: number of tries that have failed
 * @cursor: for the caller, the next waiter of a walk by accmem_queue_next() that goes on
 *	later; moves on if this waiter leaves
 * @reservations: number of reservations so far
 * @expired: number of reservations that ended unserved
 * @bypasses: number of bypasses of waiters at the front
 */
struct accmem_queue {
	unsigned int nr;
	unsigned int nr_starved;
	u64 promised;
	u64 least;
	u32 bound;
	u64 reserve_ns;
	bool (*may_reserve)(const struct accmem_queue_waiter *w);
	u64 credit;
	struct accmem_queue_waiter *reserved;
	struct accmem_queue_waiter *suspended;
	u64 held;
	u64 until;
	u64 refused;
	u64 stalled[2];
	u64 tries;
	struct accmem_queue_waiter *cursor;
	u64 reservations;
	u64 expired;
	u64 bypasses;
	/* private: */
	struct list_head waiters; /* by begin of the turn, then by arrival */
	u64 turn; /* begin of the turn of the latest waiter served */
	u64 first_turn; /* lower bound of all turns since the queue was empty */
	u64 last_turn; /* end of the last turn of all users */
	u64 seq; /* counts the times that memory was freed */
};

/**
 * accmem_queue_init() - initialise an empty queue
 * @q: the queue
 * @bound: number of bypasses of the front before memory is reserved for it
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_init(struct accmem_queue *q, u32 bound);

/**
 * accmem_queue_set_reserve() - set the duration of reservations
 * @q: the queue
 * @reserve_ns: nanoseconds; 0 disables reservations
 * @now: the time in nanoseconds
 *
 * A reservation in force ends after @reserve_ns from now at the latest.
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_set_reserve(struct accmem_queue *q, u64 reserve_ns, u64 now);

/**
 * accmem_queue_enter() - add a waiter
 * @q: the queue
 * @w: the waiter, which belongs to the queue until accmem_queue_leave()
 * @user: the user of the waiter
 * @need: bytes without which the request fails
 *
 * The waiter is awake, so that it misses no memory freed from now on. The caller tries
 * the allocation, and calls accmem_queue_sleep() if the try fails.
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_enter(struct accmem_queue *q, struct accmem_queue_waiter *w,
			struct accmem_queue_user *user, u64 need);

/**
 * accmem_queue_start_try() - a waiter begins a try
 * @q: the queue
 * @w: the waiter, awake or served; it is awake afterwards
 *
 * Memory freed before this call is visible to the try. Memory freed later wakes the
 * waiter again.
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_start_try(struct accmem_queue *q,
			    struct accmem_queue_waiter *w);

/**
 * accmem_queue_sleep() - the try of a waiter has failed
 * @q: the queue
 * @w: the waiter, awake; it is asleep afterwards
 * @limited: a limit was the reason
 * @now: the time in nanoseconds
 *
 * The promise to the waiter ends, and may serve other waiters: the caller must call
 * accmem_queue_next(). If a limit blocks the waiter, its reservation ends.
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_sleep(struct accmem_queue *q, struct accmem_queue_waiter *w,
			bool limited, u64 now);

/**
 * accmem_queue_first() - find the waiter that a handoff would serve
 * @q: the queue
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: the first waiter that is not served, if it is asleep and no memory is
 * reserved for another waiter; else NULL.
 */
struct accmem_queue_waiter *accmem_queue_first(struct accmem_queue *q);

/**
 * accmem_queue_serve() - mark a waiter as served by a handoff
 * @q: the queue
 * @w: the waiter, asleep
 *
 * The caller must call accmem_queue_leave() next. If the handoff is of no use, the
 * caller must call accmem_queue_start_try() instead.
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_serve(struct accmem_queue *q, struct accmem_queue_waiter *w);

/**
 * accmem_queue_enter_asleep() - put a waiter to sleep before its first try
 * @q: the queue
 * @w: the waiter, awake; accmem_queue_next() wakes the waiter as soon as it fits
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_enter_asleep(struct accmem_queue *q,
			       struct accmem_queue_waiter *w);

/**
 * accmem_queue_suspend() - suspend a waiter
 * @q: the queue
 * @w: the waiter, in any state
 *
 * The waiter keeps its place and its count of bypasses. Its reservation is suspended:
 * the caller must call accmem_queue_next().
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_suspend(struct accmem_queue *q,
			  struct accmem_queue_waiter *w);

/**
 * accmem_queue_resume() - resume a suspended waiter
 * @q: the queue
 * @w: the waiter, suspended; it is awake afterwards
 * @now: the time in nanoseconds
 *
 * A suspended reservation is in force again, until its time is over. The caller must
 * call accmem_queue_next().
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_resume(struct accmem_queue *q, struct accmem_queue_waiter *w,
			 u64 now);

/**
 * accmem_queue_leave() - remove a waiter
 * @q: the queue
 * @w: the waiter, in any state
 * @served: the request was served; a bypass unless @w was the front or had a handoff
 * @now: the time in nanoseconds
 *
 * The caller must call accmem_queue_next().
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_leave(struct accmem_queue *q, struct accmem_queue_waiter *w,
			bool served, u64 now);

/**
 * accmem_queue_front() - find the waiter whose bypasses are counted
 * @q: the queue
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: the first waiter that no limit blocks and that is not served; NULL if
 * there is none.
 */
struct accmem_queue_waiter *accmem_queue_front(struct accmem_queue *q);

/**
 * accmem_queue_count_bypass() - count a request that was served without a wait
 * @q: the queue
 * @user: the user of the request, who is charged a turn for it
 * @got: bytes
 * @now: the time in nanoseconds
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_count_bypass(struct accmem_queue *q,
			       struct accmem_queue_user *user, u64 got,
			       u64 now);

/**
 * accmem_queue_memory_freed() - record that memory was freed
 * @q: the queue
 * @user: the user whose memory it was, or NULL
 * @bytes: bytes that a reservation holds from now on; 0 if it cannot use the memory
 *
 * The caller must call accmem_queue_next().
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_memory_freed(struct accmem_queue *q,
			       const struct accmem_queue_user *user, u64 bytes);

/**
 * accmem_queue_memory_missed() - record that a waiter may have missed memory
 * @q: the queue
 * @w: the waiter, not that of the request
 * @since: accmem_queue.tries before a request took memory that it has given back
 *
 * If a try of the waiter may have found less memory for this reason, it tries again,
 * once. The caller must call accmem_queue_next().
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
static inline void accmem_queue_memory_missed(const struct accmem_queue *q,
					      struct accmem_queue_waiter *w,
					      u64 since)
{
	if (w->state != ACCMEM_QUEUE_AWAKE && w->ended <= since)
		return;
	w->seen = q->seq - 1;
	w->user_seen = w->user->seq - 1;
}

/**
 * accmem_queue_permit() - ask whether a request that does not wait may take memory
 * @q: the queue
 * @user: the user of the request
 * @size: bytes that it takes
 * @free: bytes that are free
 * @now: the time in nanoseconds
 *
 * The caller asks only while a reservation is in force, and not for requests of the
 * reserved waiter. A reservation that has refused others for too long ends here: the
 * caller must call accmem_queue_next().
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: false if the request would take bytes that are held for a waiter.
 */
bool accmem_queue_permit(struct accmem_queue *q,
			 const struct accmem_queue_user *user, u64 size,
			 u64 free, u64 now);

/**
 * accmem_queue_charge_dropped() - record that the charge of a user has fallen
 * @user: the user
 *
 * The caller must call accmem_queue_next().
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
static inline void accmem_queue_charge_dropped(struct accmem_queue_user *user)
{
	user->seq++;
}

/**
 * accmem_queue_limits_raised() - record that limits of any users may have been raised
 * @q: the queue
 *
 * The caller must call accmem_queue_next().
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_queue_limits_raised(struct accmem_queue *q);

/**
 * accmem_queue_tick() - start or end reservations that are due
 * @q: the queue
 * @now: the time in nanoseconds
 *
 * The caller must call accmem_queue_next().
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: true if a reservation has ended unserved.
 */
bool accmem_queue_tick(struct accmem_queue *q, u64 now);

/**
 * accmem_queue_walk() - walk the waiters, in the order of their turns
 * @q: the queue
 * @w: the last waiter; NULL at first
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: the next waiter; NULL at the end.
 */
struct accmem_queue_waiter *accmem_queue_walk(struct accmem_queue *q,
					      struct accmem_queue_waiter *w);

/**
 * accmem_queue_next() - find the next waiter to wake
 * @q: the queue
 * @at: in: the waiter to begin with; out: the waiter to go on with, or NULL at the end
 * @steps: in: number of waiters to look at; out: what is left of it
 * @fits: returns true if the waiter could be served from the free memory less
 *	@promised. False positives are allowed, false negatives are not. The result must
 *	not change from false to true before a change is recorded.
 * @arg: argument of @fits
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: the waiter, which is awake afterwards; NULL if there is none, or after @steps.
 */
struct accmem_queue_waiter *
accmem_queue_next(struct accmem_queue *q, struct accmem_queue_waiter **at,
		  unsigned int *steps,
		  bool (*fits)(const struct accmem_queue_waiter *w,
			       u64 promised, void *arg),
		  void *arg);

#endif /* ACCMEM_QUEUE_H */
