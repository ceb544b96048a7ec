// SPDX-License-Identifier: GPL-2.0
/*
 * Reclaim: free memory for a request before the request fails.
 *
 * accmem_reclaim_retry() calls a function that allocates. After each failure it does
 * one step and calls the function again. The steps belong to three stages:
 *
 * - RECLAIM_OWN finishes due frees, drains the own cache and scans the quarantine.
 * - RECLAIM_CACHES drains the caches of the device (memory is short) or of the user (a
 *   limit is reached). The request fails here if free and cached memory do not suffice,
 *   or if other caches cannot have the resource (addresses, pages of the host, the
 *   host side of shared memory). If the memory has to be one run, and free and cached
 *   runs make no such run, no cache is drained. A user whose requests drain the caches
 *   of others in vain waits between two such requests, so that the others keep most of
 *   the use of their caches.
 * - RECLAIM_CLEANER pauses the cleaner, whose chunk may split the free memory.
 *
 * If a limit follows a shortage, or a shortage a limit, the stages begin again.
 *
 * Locking: accmem_carveouts.drain_lock while a cache is drained (at most 16 buffers, never mapped).
 * A context that finds a cache empty then also finds its memory free.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>

#include "alloc/reclaim.h"
#include "core/account.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/clear.h"
#include "memory/quarantine.h"
#include "stream/pending.h"
#include "stream/stream.h"
#include "vm/cache.h"
#include "vm/context.h"
#include "vm/slab.h"

#define RECLAIM_PAUSE_MIN \
	((u64)SZ_256K) /* requests that pause the cleaner first */
#define RECLAIM_BUFFERS \
	128u /* buffers drained, or frees finished, before a try */
#define RECLAIM_DUE 4096u /* due frees that are finished for device addresses */
#define RECLAIM_DUE_MAX (100 * NSEC_PER_MSEC) /* for due frees of others */
#define RECLAIM_SCANS \
	256u /* quarantined bos of other contexts that are checked */
#define RECLAIM_TURNS \
	2u /* changes of the reason, from a shortage to a limit or back */
#define RECLAIM_REST \
	(2 * NSEC_PER_MSEC) /* between two drains in vain of a user */
#define RECLAIM_REST_MAX \
	(100 * NSEC_PER_MSEC) /* of requests at the same time */
#define RECLAIM_PAUSES 8u /* pauses of the cleaner, if pauses time out */

/**
 * struct reclaim - the progress of a request that found no memory
 * @size: bytes that the request needs
 * @cv: the carveout that it needs them in
 * @accounts: the accounts whose caches are drained
 * @cached: the carveout whose buffers are drained; NULL for all carveouts
 * @next: the number of the next account to drain
 * @drained: the request has drained caches of others for lack of memory
 * @reason: the error that @accounts and @cached were chosen for
 * @turns: how often a later error differed from @reason
 * @due_until: when the request stops to finish due frees of others, in ns; 0: not begun
 * @stage: the stage of the next step
 * @paused: the cleaner is paused for this request
 * @pauses: how often the cleaner was paused
 * @seq: the cookie of the last accmem_clear_pause()
 */
struct reclaim {
	u64 size;
	struct accmem_carveout *cv;
	struct xarray *accounts;
	const struct accmem_carveout *cached;
	unsigned long next;
	bool drained;
	int reason;
	unsigned int turns;
	u64 due_until;
	enum { RECLAIM_OWN, RECLAIM_CACHES, RECLAIM_CLEANER } stage;
	bool paused;
	unsigned int pauses;
	unsigned int seq;
};

/* Return true if draining the caches of other contexts cannot help. */
static inline bool reclaim_is_own(int err)
{
	return err == -EADDRNOTAVAIL || err == -ENOBUFS;
}

/* Return true if any cache holds memory of the carveout. */
static bool reclaim_has_cached(struct accmem_carveout *cv)
{
	struct accmem_counters sum;

	accmem_carveout_sum(cv, &sum);
	return sum.cached > 0;
}

/* Drain the cache of a context. Return the number of buffers that were freed. */
static unsigned int reclaim_drain(struct accmem_context *ctx,
				  const struct accmem_carveout *cv)
{
	unsigned int nr;

	/* A caller that is being killed fails anyway: it does not have to drain. */
	if (mutex_lock_killable(&ctx->carveouts->drain_lock))
		return 0;
	nr = accmem_cache_drain(ctx, cv);
	mutex_unlock(&ctx->carveouts->drain_lock);
	return nr;
}

/**
 * accmem_reclaim_end() - drain the cache of a context that ends
 * @ctx: the context; its file is closed, but its account still refers to it
 *
 * Context: Process context. Takes and releases ctx->carveouts->drain_lock. May sleep.
 */
void accmem_reclaim_end(struct accmem_context *ctx)
{
	mutex_lock(&ctx->carveouts->drain_lock);
	accmem_cache_drain(ctx, NULL);
	mutex_unlock(&ctx->carveouts->drain_lock);
}

/**
 * accmem_reclaim_failed() - drain the caches of all contexts after memory has failed
 * @cv: the carveout
 *
 * A cached buffer that has failed is used no more, but its memory is reported as free
 * until the buffer leaves the cache.
 *
 * Context: Process context. Takes and releases accmem_carveouts.drain_lock. May sleep.
 */
void accmem_reclaim_failed(struct accmem_carveout *cv)
{
	struct accmem_carveouts *carveouts = cv->carveouts;
	struct accmem_context *ctx;
	unsigned long id = 0;

	while ((ctx = accmem_context_next(&carveouts->accounts->xa, &id))) {
		mutex_lock(&carveouts->drain_lock);
		accmem_cache_drain(ctx, cv);
		mutex_unlock(&carveouts->drain_lock);
		accmem_context_put(ctx);
		cond_resched();
	}
}

/* Return the free bytes. The lock waits for other drains: their memory is included. */
static u64 reclaim_free_bytes(struct accmem_carveout *cv)
{
	u64 bytes;

	if (mutex_lock_killable(&cv->carveouts->drain_lock))
		return 0;
	bytes = accmem_carveout_free_bytes(cv);
	mutex_unlock(&cv->carveouts->drain_lock);
	return bytes;
}

/*
 * Drain caches, from account *@next on, until RECLAIM_BUFFERS buffers are freed. Return
 * false after the last account.
 */
static bool reclaim_drain_caches(struct xarray *accounts,
				 const struct accmem_carveout *cv,
				 unsigned long *next)
{
	struct accmem_context *ctx;
	unsigned int nr = 0;

	while (nr < RECLAIM_BUFFERS) {
		ctx = accmem_context_next(accounts, next);
		if (!ctx)
			return false;
		nr += reclaim_drain(ctx, cv);
		accmem_context_put(ctx);
		cond_resched();
	}
	return true;
}

/*
 * Return true if finishing due frees may help the request. For a limit or an address
 * only the frees of the same user help: a user without pending frees does not finish
 * those of others. There are two exceptions. In a carveout whose folios have owners,
 * the charge of a request depends on the memory that is free. With identity
 * translation, an address may be occupied by the memory of any user.
 */
static bool reclaim_wants_due(struct accmem_context *ctx,
			      const struct accmem_carveout *cv, int err)
{
	if (cv->translation == ACCMEM_TRANSLATION_IDENTITY || cv->owners)
		return true;
	return (err != -EDQUOT && err != -EADDRNOTAVAIL) ||
	       atomic64_read(&ctx->account->user->pending);
}

/*
 * Finish a batch of due frees. Return true if more may be due. A user without pending frees
 * finishes those of others for RECLAIM_DUE_MAX; the worker finishes the rest.
 */
static bool reclaim_finish_due(struct accmem_context *ctx, struct reclaim *r,
			       int err)
{
	u64 now = ktime_get_ns();

	if (!reclaim_wants_due(ctx, r->cv, err))
		return false;
	if (!r->due_until)
		r->due_until = now + RECLAIM_DUE_MAX;
	if (now > r->due_until && !atomic64_read(&ctx->account->user->pending))
		return false;
	return accmem_pending_finish_some(ctx->due, RECLAIM_BUFFERS);
}

/* Free the memory that the context itself holds, and check quarantined memory. */
static void reclaim_own(struct accmem_context *ctx, struct reclaim *r)
{
	struct accmem_carveout *cv;

	reclaim_drain(ctx, r->cached);
	/* Only a small buffer can use the slots of a slab page. */
	accmem_slab_reap(ctx, r->size < ACCMEM_GRANULE);
	for (cv = ctx->carveouts->cvs; cv < ctx->carveouts->end; cv++) {
		/* For a limit all carveouts count: quarantined memory stays charged. */
		if (!r->cached || r->cached == cv)
			accmem_quarantine_scan_account(cv, ctx->account);
	}
	accmem_quarantine_scan_unbounded(r->cv, RECLAIM_SCANS);
}

/*
 * Pause the cleaner, or pause it again. Return false if the last try saw all free
 * memory, or after RECLAIM_PAUSES pauses.
 */
static bool reclaim_pause_cleaner(struct reclaim *r)
{
	struct accmem_carveout *cv = r->cv;

	if (r->paused) {
		r->paused = false;
		accmem_clear_resume(cv);
		if (!accmem_clear_took_chunk_since(cv, r->seq) ||
		    r->pauses == RECLAIM_PAUSES)
			return false;
	}
	r->seq = accmem_clear_pause(cv);
	r->paused = true;
	r->pauses++;
	return true;
}

/* Choose the caches to drain for @err, and start with the first account. */
static void reclaim_begin(struct accmem_context *ctx, struct reclaim *r,
			  int err)
{
	bool limit = err == -EDQUOT;

	r->reason = err;
	r->cached = err == -ENOSPC ? r->cv : NULL;
	r->accounts = limit ? &ctx->account->user->accounts :
			      &ctx->account->accounts->xa;
	r->next = 0;
}

/* Wait until the user may drain the caches of others again. */
static void reclaim_wait_turn(const struct accmem_user *user)
{
	/* Racy read: it may allow a request too many. */
	u64 now = ktime_get_ns(), next = READ_ONCE(user->next_drain);

	if (next > now)
		fsleep(min_t(u64, next - now, RECLAIM_REST_MAX) /
		       NSEC_PER_USEC);
}

/* The request fails, although it has drained the caches of others. */
static void reclaim_rest(struct accmem_user *user)
{
	u64 now = ktime_get_ns(), next = max(READ_ONCE(user->next_drain), now);

	/* more requests at the same time than rests in that time */
	WRITE_ONCE(user->next_drain,
		   min(next + RECLAIM_REST, now + RECLAIM_REST_MAX));
}

/*
 * Can draining the caches help a request that is short of memory? If not, the stage ends
 * before the first account. The owners of folios are left out of the longest run: the
 * drain itself could change them.
 */
static bool reclaim_starts_drain(struct accmem_context *ctx, struct reclaim *r)
{
	if (!reclaim_has_cached(r->cv) ||
	    (r->cv->translation == ACCMEM_TRANSLATION_IDENTITY &&
	     !accmem_usage_may_have(r->cv, r->size)))
		return false;
	reclaim_wait_turn(ctx->account->user);
	r->drained = true;
	return true;
}

/* Do the next step. Return false if no step is left. */
static bool reclaim_step(struct accmem_context *ctx, struct reclaim *r, int err)
{
	if (r->stage > RECLAIM_OWN && err != r->reason &&
	    r->turns < RECLAIM_TURNS) {
		r->turns++;
		r->stage = RECLAIM_OWN;
	}
	switch (r->stage) {
	case RECLAIM_OWN:
		accmem_stream_flush_all(ctx);
		if (reclaim_finish_due(ctx, r, err))
			return true;
		/*
		 * Frees that were due may have entered the quarantine, which is scanned
		 * now.
		 */
		reclaim_begin(ctx, r, err);
		reclaim_own(ctx, r);
		r->stage = RECLAIM_CACHES;
		return true;
	case RECLAIM_CACHES:
		if (reclaim_is_own(err))
			return false;
		if (err == -ENOSPC && reclaim_free_bytes(r->cv) < r->size)
			return false;
		if (err == -ENOSPC && !r->next && !reclaim_starts_drain(ctx, r))
			r->next = ULONG_MAX;
		if (!reclaim_drain_caches(r->accounts, r->cached, &r->next))
			r->stage = RECLAIM_CLEANER;
		return true;
	default:
		return reclaim_pause_cleaner(r);
	}
}

/*
 * Return the error for the caller. A limit takes precedence over a shortage: the caller
 * would reach the limit even with more memory.
 */
static int reclaim_reason(struct accmem_context *ctx, u64 size, int err)
{
	if (reclaim_is_own(err))
		return -ENOMEM;
	if (err != -ENOSPC)
		return err;
	/* Check the capability only if a limit refuses: each check may be audited. */
	if (accmem_charge_fits(ctx->account, size, 0, false) ||
	    (accmem_caller_is_exempt() &&
	     accmem_charge_fits(ctx->account, size, 0, true)))
		return -ENOSPC;
	return -EDQUOT;
}

/**
 * accmem_reclaim_drain() - drain the caches of a device or of a user
 * @accounts: the accounts of the device or of the user
 *
 * While a waiter is counted, FREE puts no buffer into a cache: the caches stay empty.
 *
 * Context: Process context. Takes and releases drain_lock of the device. May sleep.
 */
void accmem_reclaim_drain(struct xarray *accounts)
{
	unsigned long next = 0;

	while (reclaim_drain_caches(accounts, NULL, &next))
		;
}

/**
 * accmem_reclaim_addresses() - free device addresses that freed buffers still occupy
 * @ctx: the context
 * @cv: the carveout that the addresses belong to
 *
 * Drains the context's cache and finishes due frees.
 *
 * Context: Process context. Takes and releases ctx->carveouts->drain_lock. May sleep.
 */
void accmem_reclaim_addresses(struct accmem_context *ctx,
			      const struct accmem_carveout *cv)
{
	reclaim_drain(ctx, cv);
	accmem_stream_flush_all(ctx);
	if (reclaim_wants_due(ctx, cv, -EADDRNOTAVAIL))
		accmem_pending_finish_some(ctx->due, RECLAIM_DUE);
}

static inline bool reclaim_may_help(int err)
{
	return err == -ENOSPC || err == -EDQUOT || reclaim_is_own(err);
}

/* Do the steps of reclaim after @err, the first result of @take. */
static noinline int reclaim_retry(struct accmem_context *ctx, struct reclaim *r,
				  int (*take)(void *arg), void *arg, int err)
{
	while (reclaim_may_help(err)) {
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
		if (!reclaim_step(ctx, r, err)) {
			err = reclaim_reason(ctx, r->size, err);
			break;
		}
		err = take(arg);
	}
	if (r->paused)
		accmem_clear_resume(r->cv);
	if (err && r->drained)
		reclaim_rest(ctx->account->user);
	return err;
}

/**
 * accmem_reclaim_retry() - allocate memory, reclaiming until it succeeds
 * @ctx: the context
 * @cv: the carveout
 * @size: bytes that are needed
 * @take: allocates them; called again after -ENOSPC, -EDQUOT, -EADDRNOTAVAIL and
 *	-ENOBUFS
 * @arg: the argument of @take
 *
 * Context: Process context. Takes and releases drain_lock of the device. May sleep.
 *
 * Return: the result of @take, with these changes: -EDQUOT instead of -ENOSPC if a
 * limit would refuse the request as well; -ENOMEM instead of -EADDRNOTAVAIL and
 * -ENOBUFS; -EINTR if the caller is being killed. ALLOC with ACCMEM_ALLOC_WAIT sleeps
 * after -ENOSPC; other callers report -ENOMEM for it.
 */
int accmem_reclaim_retry(struct accmem_context *ctx, struct accmem_carveout *cv,
			 u64 size, int (*take)(void *arg), void *arg)
{
	struct reclaim r;
	int err;

	/*
	 * The cleaner's chunk is not free: it could split the space that the request
	 * needs.
	 */
	if (likely(size < RECLAIM_PAUSE_MIN || !accmem_clear_is_busy(cv))) {
		err = take(arg);
		if (!reclaim_may_help(err))
			return err;
		r = (struct reclaim){ .size = size, .cv = cv };
	} else {
		r = (struct reclaim){ .size = size, .cv = cv };
		reclaim_pause_cleaner(&r);
		err = take(arg);
	}
	return reclaim_retry(ctx, &r, take, arg, err);
}
