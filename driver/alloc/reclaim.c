// SPDX-License-Identifier: GPL-2.0
/*
 * What is tried before a request for memory fails.
 *
 * One that fails for lack of memory is tried again when what the caches of the device
 * have of the carveout has been given back, a few at a time, and quarantined memory
 * has been looked at; one that fails over a limit when the caches of the user have
 * been emptied. They are not
 * emptied for more than what is free together with what they hold. At last the
 * cleaner is made to hold nothing: what it holds may be the room that is left,
 * or that of a folio that is charged already. A request that finds a limit behind the
 * lack of memory, or the other way about, begins once more.
 *
 * One that fails for lack of device addresses, or of host memory for the other side of
 * shared memory, is tried again when frees that are due, and what its own context keeps
 * or has in quarantine, have given theirs back. No cache has host memory.
 *
 * Locks: accmem_device.drain_lock while what one context keeps is given back, 16 buffers
 * at most, which were never mapped: what one drains, another one neither finds nor sees
 * as free before. Nobody waits for a lock that depends on what other contexts do.
 */
#include <linux/capability.h>
#include <linux/kernel.h>
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
	((u64)SZ_256K) /* requests that see what the cleaner has */
#define RECLAIM_BUFFERS \
	128u /* drained, or frees finished, before the next try */
#define RECLAIM_DUE 4096u /* frees of anybody, for addresses of one's own */
#define RECLAIM_LOOKS 256u /* at quarantined memory of others */
#define RECLAIM_TURNS 2u /* from memory to a limit, or back */
#define RECLAIM_PAUSES 8u /* of the cleaner, if it does not keep them */

/**
 * struct reclaim - how far a request has got that finds no memory
 * @size: bytes that it needs
 * @cv: where it needs them
 * @accounts: whose caches are drained
 * @cached: of which carveout; NULL for all
 * @next: the next of these
 * @reason: the error for which they were chosen
 * @turns: how often there was another error after it
 * @stage: what is done next
 * @paused: the cleaner holds nothing
 * @pauses: how often it was made to
 * @seq: of the last time
 */
struct reclaim {
	u64 size;
	struct accmem_carveout *cv;
	struct xarray *accounts;
	const struct accmem_carveout *cached;
	unsigned long next;
	int reason;
	unsigned int turns;
	enum { RECLAIM_OWN, RECLAIM_CACHES, RECLAIM_CLEANER } stage;
	bool paused;
	unsigned int pauses;
	unsigned int seq;
};

/* a lack of what caches of others have nothing of */
static inline bool reclaim_is_own(int err)
{
	return err == -EADDRNOTAVAIL || err == -ENOBUFS;
}

/* does any cache hold anything of a carveout? */
static bool reclaim_has_cached(struct accmem_carveout *cv)
{
	struct accmem_counters sum;

	accmem_carveout_sum(cv, &sum);
	return sum.cached > 0;
}

/* how many pieces of memory a context kept */
static unsigned int reclaim_drain(struct accmem_context *ctx,
				  const struct accmem_carveout *cv)
{
	unsigned int nr;

	/* one that is being killed fails, whatever there is */
	if (mutex_lock_killable(&ctx->carveouts->drain_lock))
		return 0;
	nr = accmem_cache_drain(ctx, cv);
	mutex_unlock(&ctx->carveouts->drain_lock);
	return nr;
}

/**
 * accmem_reclaim_end() - give back what a context keeps, for good
 * @ctx: the context, without a file, which others find still. Sleeps.
 */
void accmem_reclaim_end(struct accmem_context *ctx)
{
	mutex_lock(&ctx->carveouts->drain_lock);
	accmem_cache_drain(ctx, NULL);
	mutex_unlock(&ctx->carveouts->drain_lock);
}

/* with what others drain at the moment */
static u64 reclaim_free_bytes(struct accmem_carveout *cv)
{
	u64 bytes;

	if (mutex_lock_killable(&cv->carveouts->drain_lock))
		return 0;
	bytes = accmem_carveout_free_bytes(cv);
	mutex_unlock(&cv->carveouts->drain_lock);
	return bytes;
}

/* caches of others, until enough came back to try again; false at the end */
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
 * May frees that are due be of use? At a limit, and for an address, those of the user
 * alone are: who has none does not finish what others free. But where folios have
 * owners, what a request is charged depends on what is free; and where addresses are
 * memory, they may be anybody's.
 */
static bool reclaim_wants_due(struct accmem_context *ctx,
			      const struct accmem_carveout *cv, int err)
{
	if (cv->translation == ACCMEM_TRANSLATION_IDENTITY || cv->owners)
		return true;
	return (err != -EDQUOT && err != -EADDRNOTAVAIL) ||
	       atomic64_read(&ctx->account->user->pending);
}

/* what costs nobody else anything */
static void reclaim_own(struct accmem_context *ctx, struct reclaim *r)
{
	struct accmem_carveout *cv;

	reclaim_drain(ctx, r->cached);
	accmem_slab_reap(ctx);
	accmem_for_each_carveout(cv, ctx->carveouts)
	{
		/* quarantined memory elsewhere is charged, too */
		if (!r->cached || r->cached == cv)
			accmem_quarantine_scan_account(cv, ctx->account);
	}
	accmem_quarantine_scan_force(r->cv, RECLAIM_LOOKS);
}

/* false when nothing was hidden at the last attempt */
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

/* whose caches, of what, and from the first on */
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

/* Does what may help next; false when nothing is left to try. */
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
		if (reclaim_wants_due(ctx, r->cv, err) &&
		    accmem_pending_finish_some(ctx->due, RECLAIM_BUFFERS))
			return true;
		/* what was due may be in quarantine, which is looked at now */
		reclaim_begin(ctx, r, err);
		reclaim_own(ctx, r);
		r->stage = RECLAIM_CACHES;
		return true;
	case RECLAIM_CACHES:
		if (reclaim_is_own(err))
			return false;
		if (err == -ENOSPC && reclaim_free_bytes(r->cv) < r->size)
			return false;
		if (err == -ENOSPC && !reclaim_has_cached(r->cv))
			r->next = ULONG_MAX;
		if (!reclaim_drain_caches(r->accounts, r->cached, &r->next))
			r->stage = RECLAIM_CLEANER;
		return true;
	default:
		return reclaim_pause_cleaner(r);
	}
}

/* A limit is the reason that is told, where more memory would be of no use. */
static int reclaim_reason(struct accmem_context *ctx, u64 size, int err)
{
	if (reclaim_is_own(err))
		return -ENOMEM;
	if (err != -ENOSPC)
		return err;
	return accmem_charge_fits(ctx->account, size, 0,
				  capable(CAP_SYS_RESOURCE)) ?
		       -ENOSPC :
		       -EDQUOT;
}

/**
 * accmem_reclaim_drain() - empty the caches of freed buffers
 * @accounts: of a device, or of a user
 *
 * While somebody waits, nothing is put there: what this leaves is empty.
 */
void accmem_reclaim_drain(struct xarray *accounts)
{
	unsigned long next = 0;

	while (reclaim_drain_caches(accounts, NULL, &next))
		;
}

/**
 * accmem_reclaim_addresses() - free the device addresses of what is free but hidden
 * @ctx: the context
 * @cv: the carveout whose addresses they are. Sleeps.
 *
 * That is what the context keeps, and frees that are due.
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

/* goes on after @err, the first answer of @take */
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
	return err;
}

/**
 * accmem_reclaim_retry() - take memory, giving back what can be where there is none
 * @ctx: the context
 * @cv: the carveout
 * @size: bytes that are needed
 * @take: takes them; called again after -ENOSPC, -EDQUOT, -EADDRNOTAVAIL and -ENOBUFS
 * @arg: for @take
 *
 * Return: what @take returned, but -EDQUOT for -ENOSPC where a limit is in the way,
 * too, and -ENOMEM for the last two; -EINTR. What is -ENOSPC can be waited for; it is
 * -ENOMEM to who does not.
 */
int accmem_reclaim_retry(struct accmem_context *ctx, struct accmem_carveout *cv,
			 u64 size, int (*take)(void *arg), void *arg)
{
	struct reclaim r;
	int err;

	/* a chunk that the cleaner has would split the room beside it */
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
