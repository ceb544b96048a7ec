// SPDX-License-Identifier: GPL-2.0
/*
 * Runs: the parts of its carveout that a buffer object uses.
 *
 * The functions here and the cleaner are the only callers of the buddy allocator.
 *
 * Each critical section of the carveout's lock is bounded. Many runs are allocated and
 * freed in batches, and an exact search continues in steps. A run is charged in the
 * critical section that allocates it, since its position decides how many folios it
 * withholds from other accounts.
 *
 * Freeing runs allocates no memory, so that it cannot fail.
 *
 * Locking: the functions take and release the carveout's lock, unless their comment
 * says that the caller holds it.
 */
#include <linux/kernel.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "core/account.h"
#include "core/carveout.h"
#include "core/failed.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/clear.h"
#include "waitq/waiters.h"
#include "types/backing_types.h"

#define RUNS_BATCH 64u /* runs allocated or freed in one critical section */

static void run_free(struct accmem_bo *bo, u64 start, u64 size)
{
	lockdep_assert_held(&bo->cv->lock);
	WARN_ON_ONCE(accmem_buddy_free_owned(&bo->cv->buddy, start, size,
					     bo->account->id));
}

/* Count @size bytes that were allocated for @bo. */
static void run_count(struct accmem_bo *bo, u64 size)
{
	struct accmem_carveout *cv = bo->cv;

	lockdep_assert_held(&cv->lock);
	cv->bytes[ACCMEM_LIVE] += size;
	bo->account->memory[cv->index].allocated += size;
}

/* Charge @run, which was just allocated. Free it again if a limit is reached. */
static int run_charge(struct accmem_bo *bo, const struct accmem_run *run,
		      bool exempt)
{
	struct accmem_carveout *cv = bo->cv;
	u64 claimed = accmem_buddy_claimed(&cv->buddy, run->start, run->size);
	int err;

	lockdep_assert_held(&cv->lock);
	err = accmem_charge(bo->account, claimed, exempt);
	if (err)
		run_free(bo, run->start, run->size);
	else
		run_count(bo, run->size);
	return err;
}

/*
 * Search exactly, in steps, if folios of other accounts hide free runs, or if many runs
 * do not have the alignment.
 */
static int run_search(struct accmem_bo *bo,
		      const struct accmem_buddy_request *req, bool exempt,
		      struct accmem_run *run)
{
	struct accmem_carveout *cv = bo->cv;
	u64 cursor = 0;
	int err;

	run->size = req->size;
	do {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		accmem_carveout_lock(cv);
		err = accmem_buddy_alloc_scan(&cv->buddy, req, &cursor,
					      &run->start);
		if (!err)
			err = run_charge(bo, run, exempt);
		accmem_carveout_unlock(cv);
	} while (err == -EAGAIN);
	return err;
}

/* Allocate and charge one run: at once, or else by the exact search. */
static int run_place(struct accmem_bo *bo,
		     const struct accmem_buddy_request *req, bool exempt,
		     struct accmem_run *run)
{
	struct accmem_carveout *cv = bo->cv;
	int err;

	run->size = req->size;
	accmem_carveout_lock(cv);
	err = accmem_buddy_alloc(&cv->buddy, req, &run->start);
	if (!err)
		err = run_charge(bo, run, exempt);
	accmem_carveout_unlock(cv);
	if (err == -EAGAIN || (err == -ENOSPC && cv->owners))
		err = run_search(bo, req, exempt, run);
	return err;
}

/* Allocate at the start of a folio, where a run claims the fewest folios. */
static int run_place_aligned(struct accmem_bo *bo,
			     const struct accmem_buddy_request *req,
			     bool exempt, struct accmem_run *run)
{
	struct accmem_buddy_request aligned = *req;

	aligned.align = max_t(u64, req->align, ACCMEM_FOLIO);
	return run_place(bo, &aligned, exempt, run);
}

/* Allocate in folios that the account has, or else where few new folios are claimed. */
static int run_place_frugally(struct accmem_bo *bo,
			      const struct accmem_buddy_request *req,
			      bool exempt, struct accmem_run *run)
{
	struct accmem_buddy_request own = *req;
	int err;

	own.flags = ACCMEM_BUDDY_OWN;
	err = run_search(bo, &own, exempt, run);
	if (err == -ENOSPC)
		err = run_place_aligned(bo, req, exempt, run);
	return err == -ENOSPC ? -EDQUOT : err;
}

/* Allocate where folios have owners, so that the charge depends on the position. */
static int run_place_owned(struct accmem_bo *bo,
			   const struct accmem_buddy_request *req, bool exempt,
			   struct accmem_run *run)
{
	int err = -ENOSPC;

	/*
	 * A run that starts inside a folio may claim one folio more. An exempt caller
	 * is charged too, so that any limit counts.
	 */
	if (req->size >= ACCMEM_FOLIO &&
	    accmem_charge_exceeds_limit(U64_MAX, false))
		err = run_place_aligned(bo, req, exempt, run);
	if (err == -ENOSPC)
		err = run_place(bo, req, exempt, run);
	if (err == -EDQUOT)
		err = run_place_frugally(bo, req, exempt, run);
	return err;
}

/* Allocate and charge one run. */
static int run_take(struct accmem_bo *bo,
		    const struct accmem_buddy_request *req, bool exempt,
		    struct accmem_run *run)
{
	return bo->cv->owners ? run_place_owned(bo, req, exempt, run) :
				run_place(bo, req, exempt, run);
}

/* Allocate at the start of a larger free run, whose rest stays free for growth. */
static int run_place_in_room(struct accmem_bo *bo,
			     const struct accmem_buddy_request *req, u64 room,
			     bool exempt, struct accmem_run *run)
{
	struct accmem_buddy_request wide = *req;
	struct accmem_carveout *cv = bo->cv;
	int err;

	wide.size = room;
	run->size = req->size;
	accmem_carveout_lock(cv);
	err = accmem_buddy_alloc(&cv->buddy, &wide, &run->start);
	if (!err) {
		run_free(bo, run->start + run->size, room - run->size);
		err = run_charge(bo, run, exempt);
	}
	accmem_carveout_unlock(cv);
	return err;
}

/* With identity translation, a device address and its alignment fix the position. */
static void run_ask_for_address(struct accmem_buddy_request *req,
				const struct accmem_bo_spec *spec)
{
	req->align = max(req->align, spec->alignment);
	if (!(spec->flags & ACCMEM_ALLOC_FIXED))
		return;
	req->start = spec->start;
	req->end = spec->start + spec->size;
}

/* Allocate one run, for identity translation or on request. */
static int runs_take_one(struct accmem_bo *bo,
			 const struct accmem_bo_spec *spec, bool exempt)
{
	struct accmem_buddy_request req = {
		.size = spec->size,
		.align = max_t(u64, ACCMEM_GRANULE, spec->page_size),
		.owner = bo->account->id,
		.flags = spec->flags & ACCMEM_ALLOC_TOP_DOWN ?
				 ACCMEM_BUDDY_TOP_DOWN :
				 0,
	};
	int err = -ENOSPC;

	if (bo->cv->translation == ACCMEM_TRANSLATION_IDENTITY)
		run_ask_for_address(&req, spec);
	if (spec->room > spec->size && !req.end)
		err = run_place_in_room(bo, &req, spec->room, exempt, &bo->run);
	if (err)
		err = run_take(bo, &req, exempt, &bo->run);
	if (err)
		return err;
	accmem_runs_set_one(bo);
	return 0;
}

static int runs_grow(struct accmem_bo *bo, unsigned int capacity)
{
	struct accmem_run *runs;

	runs = kvmalloc_array(capacity, sizeof(*runs),
			      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!runs)
		return -ENOMEM;
	if (bo->nr_runs)
		memcpy(runs, bo->runs, bo->nr_runs * sizeof(*runs));
	if (bo->runs != &bo->run)
		kvfree(bo->runs);
	bo->runs = runs;
	return 0;
}

/* Charge the @nr runs at @runs, of @size bytes in total, or free them again. */
static int runs_charge(struct accmem_bo *bo, const struct accmem_run *runs,
		       unsigned int nr, u64 size, bool exempt)
{
	struct accmem_carveout *cv = bo->cv;
	int err;

	lockdep_assert_held(&cv->lock);
	err = accmem_charge(bo->account, size, exempt);
	if (!err) {
		run_count(bo, size);
		return 0;
	}
	while (nr--)
		run_free(bo, runs[nr].start, runs[nr].size);
	return err;
}

/* Allocate at most @size bytes in one batch. @taken: out: bytes allocated. */
static int runs_take_batch(struct accmem_bo *bo,
			   const struct accmem_bo_spec *spec, u64 size,
			   bool exempt, u64 *taken)
{
	struct accmem_carveout *cv = bo->cv;
	struct accmem_run *runs = bo->runs + bo->nr_runs;
	struct accmem_buddy_request req = {
		.size = size,
		.align = spec->page_size,
		.flags = spec->flags & ACCMEM_ALLOC_TOP_DOWN ?
				 ACCMEM_BUDDY_TOP_DOWN :
				 0,
	};
	unsigned int nr;
	int err;

	for (;;) {
		accmem_carveout_lock(cv);
		err = accmem_buddy_alloc_runs(&cv->buddy, &req, runs,
					      RUNS_BATCH, &nr);
		if (!err)
			err = runs_charge(bo, runs, nr, req.size, exempt);
		accmem_carveout_unlock(cv);
		if (err != -E2BIG)
			break;
		if (req.size <= req.align) {
			nr = 1;
			err = run_place(bo, &req, exempt, runs);
			break;
		}
		req.size = round_up(req.size / 2, req.align);
		cond_resched();
	}
	if (err)
		return err;
	bo->nr_runs += nr;
	*taken = req.size;
	return 0;
}

/*
 * The folios at both ends of a run have no user any more, or, with @chown, another owner:
 * forget their mappings.
 */
static void run_forget_folios(struct accmem_carveout *cv,
			      const struct accmem_run *run, bool chown)
{
	u64 last = run->start + run->size - 1;

	lockdep_assert_held(&cv->lock);
	if (chown || !accmem_buddy_folio_used(&cv->buddy, run->start))
		cv->folio_ops->forget(cv, run->start);
	if ((run->start ^ last) < ACCMEM_FOLIO)
		return; /* both ends are in one folio */
	if (chown || !accmem_buddy_folio_used(&cv->buddy, last))
		cv->folio_ops->forget(cv, last);
}

/* Free a run of @bo, whose pages are not pinned. The carveout's lock is held. */
static void run_give(struct accmem_bo *bo, const struct accmem_run *run)
{
	struct accmem_carveout *cv = bo->cv;
	u64 released = accmem_buddy_claimed(&cv->buddy, run->start, run->size);

	lockdep_assert_held(&cv->lock);
	if (cv->chunks)
		accmem_clear_release(cv, run, bo->account->id);
	run_free(bo, run->start, run->size);
	if (cv->owners)
		run_forget_folios(cv, run, false);
	WRITE_ONCE(cv->bytes[bo->state], cv->bytes[bo->state] - run->size);
	bo->account->memory[cv->index].allocated -= run->size;
	accmem_uncharge(bo->account, released);
}

/*
 * Free a run of @bo. Its failed granules are retired in the same critical section: no
 * request gets them. The carveout's lock is held; it is dropped for a moment after
 * each failed part.
 */
static void run_give_parts(struct accmem_bo *bo, const struct accmem_run *run)
{
	u64 end = run->start + run->size;
	struct accmem_carveout *cv = bo->cv;
	struct accmem_run part = *run;

	for (; part.start < end; part.start += part.size) {
		bool failed = accmem_failed_cut(cv, &part, end);

		run_give(bo, &part);
		if (!failed)
			continue;
		accmem_failed_retire(cv, &part);
		accmem_carveout_unlock(cv);
		cond_resched();
		accmem_carveout_lock(cv);
	}
}

/* Set clean_for of the chunks in runs that are freed next. May sleep. */
static void runs_release_units(struct accmem_bo *bo,
			       const struct accmem_run *runs, unsigned int nr,
			       bool written)
{
	unsigned int i;

	for (i = 0; bo->cv->chunks && i < nr; i++)
		accmem_clear_release_chunks(bo->cv, &runs[i], bo->account->id,
					    written);
}

/* Free @nr runs of @size bytes in total. @written: their bytes may differ from zero. */
static void runs_give_back(struct accmem_bo *bo, const struct accmem_run *runs,
			   unsigned int nr, u64 size, bool written)
{
	struct accmem_carveout *cv = bo->cv;
	unsigned int i;

	if (size >= ACCMEM_FOLIO)
		runs_release_units(bo, runs, nr, written);
	accmem_carveout_lock(cv);
	for (i = 0; i < nr; i++) {
		if (i && !(i % RUNS_BATCH)) {
			accmem_carveout_unlock(cv);
			cond_resched();
			accmem_carveout_lock(cv);
		}
		run_give_parts(bo, &runs[i]);
	}
	accmem_carveout_unlock(cv);
	accmem_clear_kick(cv, written);
}

/* Move the charge of a run, and the folios that it claims, to another account. */
static int run_hand_over(struct accmem_bo *from, struct accmem_bo *to,
			 const struct accmem_run *run, bool exempt)
{
	struct accmem_buddy *buddy = &from->cv->buddy;
	u64 claimed = accmem_buddy_claimed(buddy, run->start, run->size);
	int err;

	lockdep_assert_held(&from->cv->lock);
	if (accmem_has_failed(from->cv, run->start, run->size))
		return -EBUSY;
	err = accmem_charge(to->account, claimed, exempt);
	if (err)
		return err;
	if (from->account != to->account)
		err = accmem_buddy_chown(buddy, run->start, run->size,
					 from->account->id, to->account->id);
	if (!err && from->account != to->account && from->cv->owners)
		run_forget_folios(from->cv, run, true);
	accmem_uncharge(err ? to->account : from->account, claimed);
	return err;
}

/**
 * accmem_runs_hand_over() - move the run of one buffer object to another
 * @from: a buffer object with one run, never mapped; without runs on success
 * @to: an empty buffer object of any account of the device; live on success
 * @exempt: true to ignore the limits of @to's user
 *
 * The handoff withholds no folio from other accounts that was not withheld before.
 *
 * Context: Takes and releases the carveout's lock. Does not sleep.
 * Return: 0; -EDQUOT if a limit is reached; -EBUSY if another account or the cleaner
 * has a part of one of the folios, or if memory of the run has failed.
 */
int accmem_runs_hand_over(struct accmem_bo *from, struct accmem_bo *to,
			  bool exempt)
{
	struct accmem_carveout *cv = from->cv;
	int err;

	accmem_carveout_lock(cv);
	err = run_hand_over(from, to, &from->run, exempt);
	if (!err) {
		accmem_carveout_set_state(cv, from->state, to->state,
					  from->size);
		from->account->memory[cv->index].allocated -= from->size;
		to->account->memory[cv->index].allocated += from->size;
		to->cv = cv;
		to->cache_mode = from->cache_mode;
		swap(to->io, from->io);
		swap(to->io_size, from->io_size);
		if (to->io)
			list_replace_init(&from->io_link, &to->io_link);
	}
	accmem_carveout_unlock(cv);
	if (err)
		return err;
	to->epoch = READ_ONCE(cv->carveouts->epoch) & ~1u;
	to->size = from->size;
	to->run = from->run;
	accmem_runs_set_one(to);
	accmem_runs_forget(from);
	return 0;
}

/**
 * accmem_runs_forget() - free the array of runs, but not the runs
 * @bo: the buffer object, whose runs were freed or handed off
 *
 * Context: Does not sleep, unless the array is so large that vmalloc() allocated it. With
 * an array, no spinlock is held.
 */
void accmem_runs_forget(struct accmem_bo *bo)
{
	if (bo->runs && bo->runs != &bo->run)
		kvfree(bo->runs);
	bo->runs = NULL;
	bo->nr_runs = 0;
}

/**
 * accmem_runs_free() - free and uncharge all runs of a buffer object
 * @bo: the buffer object
 *
 * The function allocates no memory.
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 */
void accmem_runs_free(struct accmem_bo *bo)
{
	runs_give_back(bo, bo->runs, bo->nr_runs, bo->size,
		       accmem_bo_is_unknown(bo));
	accmem_runs_forget(bo);
}

/* Replace an array of one run by accmem_bo.run. */
static void runs_trim(struct accmem_bo *bo)
{
	if (bo->nr_runs != 1)
		return;
	bo->run = bo->runs[0];
	kvfree(bo->runs);
	bo->runs = &bo->run;
}

/*
 * Check whether a request can be served at all, before it takes memory that others would
 * miss for a moment.
 */
static int runs_check(struct accmem_bo *bo, u64 size, bool exempt)
{
	if (!accmem_charge_fits(bo->account, size, 0, exempt))
		return -EDQUOT;
	return accmem_carveout_free_bytes(bo->cv) < size ? -ENOSPC : 0;
}

/* Free what a request that fails has allocated, and wake the waiters that missed it. */
static void runs_return(struct accmem_bo *bo)
{
	bool any = bo->nr_runs;

	accmem_runs_free(bo);
	if (any)
		accmem_waiters_wake_returned(bo->cv->waiters, bo->account->user,
					     bo->since_try);
}

/* Allocate several runs, for mapped translation. */
static int runs_take_many(struct accmem_bo *bo,
			  const struct accmem_bo_spec *spec, bool exempt)
{
	u64 left = spec->size, most = left, taken;
	unsigned int capacity = 0;
	int err;

	err = runs_check(bo, spec->size, exempt);
	if (err)
		return err;
	while (left) {
		if (capacity - bo->nr_runs < RUNS_BATCH) {
			capacity =
				max_t(unsigned int, RUNS_BATCH, 2 * capacity);
			err = runs_grow(bo, capacity);
			if (err)
				goto err;
		}
		err = -EINTR;
		if (fatal_signal_pending(current))
			goto err;
		err = runs_take_batch(bo, spec, min(left, most), exempt,
				      &taken);
		if (err)
			goto err;
		left -= taken;
		/* Free memory may grow: try up to twice of the last success next. */
		most = 2 * taken;
	}
	runs_trim(bo);
	return 0;

err:
	runs_return(bo);
	return err;
}

static int runs_take_any(struct accmem_bo *bo,
			 const struct accmem_bo_spec *spec, bool exempt)
{
	int err;

	if (bo->cv->translation == ACCMEM_TRANSLATION_IDENTITY ||
	    spec->flags & ACCMEM_ALLOC_CONTIGUOUS)
		return runs_take_one(bo, spec, exempt);
	/* Try one run first: it is the common case and needs no array. */
	err = runs_take_one(bo, spec, exempt);
	return err == -ENOSPC ? runs_take_many(bo, spec, exempt) : err;
}

/**
 * accmem_runs_alloc() - allocate and charge the runs of a buffer object
 * @bo: the buffer object, without runs; the new runs are live
 * @spec: size, alignment and placement of the request
 *
 * A task with CAP_SYS_RESOURCE may exceed the limits.
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 * Return: 0; -ENOSPC, -EDQUOT, -ENOMEM, -EINTR.
 */
int accmem_runs_alloc(struct accmem_bo *bo, const struct accmem_bo_spec *spec)
{
	int err = runs_take_any(bo, spec, false);

	if (err == -EDQUOT && accmem_caller_is_exempt())
		err = runs_take_any(bo, spec, true);
	return err;
}

/* Build the request for @size bytes directly behind the last run. */
static struct accmem_buddy_request run_behind(struct accmem_bo *bo, u64 size)
{
	const struct accmem_run *last = accmem_runs_last(bo);
	u64 end = last->start + last->size;

	return (struct accmem_buddy_request){
		.size = size,
		.align = ACCMEM_GRANULE,
		.start = end,
		.end = end + size,
		.owner = bo->account->id,
	};
}

/**
 * accmem_run_alloc_at_end() - allocate and charge the run directly behind the last one
 * @bo: the buffer object
 * @size: bytes, a multiple of @page_size
 * @page_size: bytes; the new run starts at a multiple of it
 * @more: out: the new run, live, and not a part of @bo yet
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 * Return: 0; -ENOSPC, -EDQUOT, -EINTR.
 */
int accmem_run_alloc_at_end(struct accmem_bo *bo, u64 size, u64 page_size,
			    struct accmem_run *more)
{
	struct accmem_buddy_request req = run_behind(bo, size);
	int err;

	req.align = page_size;
	if (size > bo->cv->capacity || req.end > bo->cv->capacity)
		return -ENOSPC;
	err = run_take(bo, &req, false, more);
	if (err == -EDQUOT && accmem_caller_is_exempt())
		err = run_take(bo, &req, true, more);
	return err;
}

/**
 * accmem_run_free() - undo accmem_run_alloc_at_end()
 * @bo: the buffer object
 * @run: the run, which no task has mapped or accessed
 * @since: accmem_waiters_tries() before accmem_run_alloc_at_end()
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 */
void accmem_run_free(struct accmem_bo *bo, const struct accmem_run *run,
		     u64 since)
{
	runs_give_back(bo, run, 1, run->size, false);
	accmem_waiters_wake_returned(bo->cv->waiters, bo->account->user, since);
}
