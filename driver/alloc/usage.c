// SPDX-License-Identifier: GPL-2.0
/*
 * Usage: free bytes, the longest free run and charges for reports.
 *
 * Cached buffers count as free, since reclaim drains the caches before a request fails.
 * Reporting drains no cache. The longest free run is the longer of two: the longest run
 * that is free in the allocator, and the longest run that cached buffers and the free
 * memory beside them form together.
 *
 * All values are snapshots: the locks are dropped between steps.
 *
 * Locking: ctx->lock to read a cache; the lock of the carveout for a bounded number of
 * steps at a time. Neither is held while the other is taken.
 */
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "alloc/usage.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/clear.h"
#include "memory/quarantine.h"
#include "vm/cache.h"
#include "vm/context.h"
#include "vm/slab.h"

#define USAGE_SCANS 256u /* quarantined bos checked per call */
#define USAGE_PAUSES 4u /* pauses of the cleaner, if pauses time out */
#define USAGE_STEPS 64u /* cached runs per hold of the carveout's lock */
#define USAGE_RUNS 4096u /* cached runs that are looked at */

/*
 * The runs that caches hold; usage_collect() sorts them by offset. @more: some are left out,
 * since there are too many.
 */
struct cached {
	struct accmem_run *runs;
	unsigned int nr;
	unsigned int room;
	bool more;
};

static int usage_compare_runs(const void *a, const void *b)
{
	const struct accmem_run *left = a, *right = b;

	return left->start < right->start ? -1 : left->start > right->start;
}

/* Add a run. Buffers that were created and freed in sequence merge into one run. */
static void usage_add_run(struct cached *c, const struct accmem_run *run)
{
	struct accmem_run *last = c->nr ? &c->runs[c->nr - 1] : NULL;

	if (last && last->start + last->size == run->start) {
		last->size += run->size;
	} else if (last && run->start + run->size == last->start) {
		last->start = run->start;
		last->size += run->size;
	} else if (c->nr < c->room) {
		c->runs[c->nr++] = *run;
	} else {
		c->more = true;
	}
}

/* Return true if the slab page @run has been added already, by another small buffer. */
static bool usage_is_known(const struct cached *c, const struct accmem_run *run,
			   unsigned int from)
{
	for (; from < c->nr; from++) {
		if (run->start - c->runs[from].start < c->runs[from].size)
			return true;
	}
	return false;
}

static void usage_add_cache(struct accmem_context *ctx,
			    const struct accmem_carveout *cv, struct cached *c)
{
	struct accmem_buffer *buf;
	/*
	 * The last run of the previous context may have merged with the first run of
	 * this context.
	 */
	unsigned int i, from = max(c->nr, 1u) - 1;

	/* Racy read: as if the cache had been read a moment earlier. */
	if (!READ_ONCE(ctx->nr_cached))
		return;
	spin_lock(&ctx->lock);
	list_for_each_entry(buf, &ctx->cache, pending.cached) {
		struct accmem_bo *bo = accmem_buffer_bo(buf);

		if (bo->cv != cv)
			continue;
		if (buf->layout.small && (!accmem_slab_is_cached(buf) ||
					  usage_is_known(c, &bo->run, from)))
			continue;
		for (i = 0; i < min(bo->nr_runs, ACCMEM_CACHE_BUFFERS); i++)
			usage_add_run(c, &bo->runs[i]);
	}
	spin_unlock(&ctx->lock);
}

/*
 * Return a bound for the runs in a context's cache. Buffers may be cached until the
 * runs are collected: room for a full cache is added.
 */
static unsigned int usage_count_runs(struct accmem_context *ctx,
				     const struct accmem_carveout *cv)
{
	unsigned int nr = ACCMEM_CACHE_BUFFERS;
	struct accmem_buffer *buf;

	/* Racy read: @nr has room for buffers that are cached meanwhile. */
	if (!READ_ONCE(ctx->nr_cached))
		return nr;
	spin_lock(&ctx->lock);
	list_for_each_entry(buf, &ctx->cache, pending.cached) {
		struct accmem_bo *bo = accmem_buffer_bo(buf);

		if (bo->cv == cv)
			nr += min(bo->nr_runs, ACCMEM_CACHE_BUFFERS);
	}
	spin_unlock(&ctx->lock);
	return nr;
}

/* Return an upper bound of the runs to look at, if few caches change meanwhile. */
static unsigned int usage_count_room(const struct accmem_carveout *cv)
{
	unsigned int nr = ACCMEM_CACHE_BUFFERS;
	struct accmem_context *ctx;
	unsigned long id = 0;

	while (nr < USAGE_RUNS &&
	       (ctx = accmem_context_next(&cv->carveouts->accounts->xa, &id))) {
		nr += usage_count_runs(ctx, cv);
		accmem_context_put(ctx);
		cond_resched();
	}
	return min(nr, USAGE_RUNS);
}

static bool usage_collect(struct accmem_carveout *cv, struct cached *c)
{
	struct xarray *accounts = &cv->carveouts->accounts->xa;
	struct accmem_context *ctx;
	unsigned long id = 0;

	c->room = usage_count_room(cv);
	c->runs = kvmalloc_array(c->room, sizeof(*c->runs), GFP_KERNEL_ACCOUNT);
	if (!c->runs)
		return false;
	while (!c->more && (ctx = accmem_context_next(accounts, &id))) {
		usage_add_cache(ctx, cv, c);
		accmem_context_put(ctx);
		cond_resched();
	}
	sort(c->runs, c->nr, sizeof(*c->runs), usage_compare_runs, NULL);
	return true;
}

/* Return the granules of the folio at @at that runs of @c cover, from run @i on. */
static unsigned int usage_cached_in_folio(const struct cached *c,
					  unsigned int i, u64 at, int step)
{
	u64 lo = round_down(at, ACCMEM_FOLIO), hi = lo + ACCMEM_FOLIO;
	unsigned int granules = 0;

	for (; i < c->nr; i += step) {
		u64 from = max(c->runs[i].start, lo);
		u64 to = min(c->runs[i].start + c->runs[i].size, hi);

		if (from >= to)
			break;
		granules += (to - from) >> ACCMEM_GRANULE_SHIFT;
	}
	return granules;
}

/*
 * Return true if @account may allocate from the folio at @at once the runs around run
 * @i are freed. Account 0 stands for any account.
 */
static bool usage_folio_is_open(struct accmem_carveout *cv, u64 account,
				const struct cached *c, unsigned int i, u64 at)
{
	unsigned int used, granules;
	u64 owner;

	lockdep_assert_held(&cv->lock);
	if (!cv->owners || !account)
		return true;
	owner = accmem_buddy_folio_owner(&cv->buddy, at);
	if (!owner || owner == account)
		return true;
	used = accmem_buddy_folio_used(&cv->buddy, at);
	granules = usage_cached_in_folio(c, i, at, 1);
	if (i)
		granules += usage_cached_in_folio(c, i - 1, at, -1);
	return granules >= used;
}

/*
 * Return the run that run *@i forms with the runs after it and the free memory around
 * them. The lock is dropped after every USAGE_STEPS runs: a change in between only
 * makes the result as if the caller had asked later.
 */
static struct accmem_run usage_chain_from(struct accmem_carveout *cv,
					  const struct cached *c,
					  unsigned int *i)
{
	struct accmem_run chain = c->runs[*i], run;
	u64 end;

	lockdep_assert_held(&cv->lock);
	end = chain.start + chain.size;
	if (chain.start &&
	    accmem_buddy_free_around(&cv->buddy, chain.start - ACCMEM_GRANULE,
				     &run))
		chain.start = run.start;
	for (;;) {
		if (end < cv->capacity &&
		    accmem_buddy_free_around(&cv->buddy, end, &run))
			end = run.start + run.size;
		if (*i + 1 == c->nr || c->runs[*i + 1].start != end)
			break;
		++*i;
		end += c->runs[*i].size;
		if (*i % USAGE_STEPS)
			continue;
		accmem_carveout_unlock(cv);
		cond_resched();
		accmem_carveout_lock(cv);
	}
	chain.size = end - chain.start;
	return chain;
}

/* Return the longest run of cached memory and the free memory beside it. */
static u64 usage_longest_chain(struct accmem_carveout *cv, u64 account,
			       const struct cached *c)
{
	unsigned int i, first;
	u64 longest = 0;

	for (i = 0; i < c->nr; i++) {
		struct accmem_run chain;
		u64 lo, hi;

		accmem_carveout_lock(cv);
		first = i;
		chain = usage_chain_from(cv, c, &i);
		lo = chain.start;
		hi = lo + chain.size;
		if (!usage_folio_is_open(cv, account, c, first, lo))
			lo = round_up(lo, ACCMEM_FOLIO);
		if (!usage_folio_is_open(cv, account, c, i, hi - 1))
			hi = round_down(hi, ACCMEM_FOLIO);
		accmem_carveout_unlock(cv);
		longest = hi > lo ? max(longest, hi - lo) : longest;
		cond_resched();
	}
	return longest;
}

static u64 usage_longest_free(struct accmem_carveout *cv, u64 account)
{
	u64 cursor = 0, longest = 0;
	int err;

	do {
		accmem_carveout_lock(cv);
		err = accmem_buddy_largest_run_of(&cv->buddy, account, &cursor,
						  &longest);
		accmem_carveout_unlock(cv);
		cond_resched();
	} while (err == -EAGAIN);
	return longest;
}

/*
 * Return the longest free run; @more: caches with many runs were not looked at, or no cache
 * for lack of memory, so that a longer run may be free.
 */
static u64 usage_longest(struct accmem_carveout *cv, u64 account, bool *more)
{
	u64 longest = usage_longest_free(cv, account);
	struct accmem_counters sum;
	struct cached c = {};

	*more = false;
	accmem_carveout_sum(cv, &sum);
	if (sum.cached <= 0)
		return longest;
	if (!usage_collect(cv, &c)) {
		*more = true;
		return longest;
	}
	*more = c.more;
	longest = max(longest, usage_longest_chain(cv, account, &c));
	kvfree(c.runs);
	return longest;
}

/**
 * accmem_usage_longest() - compute the longest free run of a carveout
 * @cv: the carveout
 * @account: the number of the account that would allocate the run; 0 for any
 *	account
 *
 * Of the runs that caches hold, USAGE_RUNS are looked at. If the caches hold more runs, the
 * result may be too small.
 *
 * Context: Process context. Takes and releases the lock of the carveout and ctx->lock
 * of each context. May sleep.
 *
 * Return: bytes.
 */
u64 accmem_usage_longest(struct accmem_carveout *cv, u64 account)
{
	bool more;

	return usage_longest(cv, account, &more);
}

/**
 * accmem_usage_may_have() - check whether a carveout may have a free run
 * @cv: the carveout
 * @size: bytes of the run
 *
 * Context: As accmem_usage_longest().
 *
 * Return: false if no free run has @size bytes, even if the caches are drained.
 */
bool accmem_usage_may_have(struct accmem_carveout *cv, u64 size)
{
	bool more;

	return usage_longest(cv, 0, &more) >= size || more;
}

/*
 * Free quarantined memory whose pins were dropped. The memory of the caller is checked
 * with unmapping, as its request checks it before it fails: a mapped neighbour in the
 * same folio would hide that the memory is not pinned.
 */
static void usage_scan_quarantine(struct accmem_context *ctx,
				  struct accmem_carveout *cv)
{
	/* Racy read: the count only bounds the time of the scan. */
	if (READ_ONCE(ctx->account->memory[cv->index].nr_quarantined) <=
	    USAGE_SCANS)
		accmem_quarantine_scan_account(cv, ctx->account);
	accmem_quarantine_scan(cv, USAGE_SCANS);
}

static void usage_add_space(struct accmem_context *ctx,
			    struct accmem_carveout *cv, u64 *free_bytes,
			    u64 *largest_run)
{
	unsigned int seq, pauses = 0;
	u64 small, free, longest;

	usage_scan_quarantine(ctx, cv);
	do {
		seq = accmem_clear_block(cv);
		free = accmem_carveout_free_bytes(cv) +
		       accmem_slab_room(ctx, cv, &small);
		longest =
			max(small, accmem_usage_longest(cv, ctx->account->id));
		accmem_clear_unblock(cv);
	} while (accmem_clear_took_chunk_since(cv, seq) &&
		 ++pauses < USAGE_PAUSES);
	*free_bytes += free;
	*largest_run = max(*largest_run, longest);
}

/**
 * accmem_usage_space() - compute the free bytes and the longest free run
 * @ctx: the context that asks
 * @carveouts: a mask of carveouts: bit i for carveout i
 * @free_bytes: out: free bytes, including free slots of the context's slab pages
 * @largest_run: out: the largest contiguous request that @ctx could be granted
 *
 * Scans the quarantine first, so that memory whose pins were dropped counts as free.
 *
 * Context: Process context. Takes and releases the locks of accmem_usage_longest(). May
 * sleep.
 */
void accmem_usage_space(struct accmem_context *ctx, u32 carveouts,
			u64 *free_bytes, u64 *largest_run)
{
	struct accmem_carveout *cv;

	*free_bytes = 0;
	*largest_run = 0;
	for (cv = ctx->carveouts->cvs; cv < ctx->carveouts->end; cv++) {
		if (carveouts & BIT(cv->index))
			usage_add_space(ctx, cv, free_bytes, largest_run);
	}
}

/* Return the bytes of the folios in which only runs of @c are in use. */
static u64 usage_withheld(struct accmem_carveout *cv, const struct cached *c)
{
	u64 chunk = U64_MAX, bytes = 0, at, end;
	unsigned int i;

	accmem_carveout_lock(cv);
	for (i = 0; i < c->nr; i++) {
		at = c->runs[i].start;
		end = at + c->runs[i].size;
		for (; at < end;
		     at = round_down(at, ACCMEM_FOLIO) + ACCMEM_FOLIO) {
			if (accmem_chunk_index(at) == chunk)
				continue;
			chunk = accmem_chunk_index(at);
			if (usage_cached_in_folio(c, i, at, 1) >=
			    accmem_buddy_folio_used(&cv->buddy, at))
				bytes += ACCMEM_FOLIO;
		}
	}
	accmem_carveout_unlock(cv);
	return bytes;
}

/*
 * Return the part of the context's charge that draining its cache would release.
 * READ_ONCE: the count is read without ctx->lock; a stale value makes the result as if
 * the caller had asked earlier.
 */
static u64 usage_cached(struct accmem_context *ctx, struct accmem_carveout *cv)
{
	struct accmem_run runs[ACCMEM_CACHE_BUFFERS];
	struct cached c = { .runs = runs, .room = ARRAY_SIZE(runs) };

	if (!cv->owners)
		return READ_ONCE(accmem_ctx_carveout_of(ctx, cv)->cached_bytes);
	usage_add_cache(ctx, cv, &c);
	sort(c.runs, c.nr, sizeof(*c.runs), usage_compare_runs, NULL);
	return usage_withheld(cv, &c);
}

/**
 * accmem_usage_charged() - compute the charge of a context without its cache
 * @ctx: the context
 *
 * Context: Process context. Takes and releases ctx->lock and the lock of each carveout.
 *
 * Return: the bytes that the context withholds from others; cached buffers do not
 * count.
 */
u64 accmem_usage_charged(struct accmem_context *ctx)
{
	u64 bytes = atomic64_read(&ctx->account->bytes), cached = 0;
	struct accmem_carveout *cv;

	for (cv = ctx->carveouts->cvs; cv < ctx->carveouts->end; cv++)
		cached += usage_cached(ctx, cv);
	return bytes - min(bytes, cached);
}
