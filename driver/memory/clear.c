// SPDX-License-Identifier: GPL-2.0
/*
 * Clearing: the marks of dirty memory, and the background cleaner.
 *
 * A granule is dirty if its bytes may not be zero: a fault has mapped the granule, or
 * the device has written to it, since it was last cleared; or it was never cleared.
 * Two callers clear dirty memory: the cleaner in the background, in chunks of 2 MiB,
 * and the allocation that gets the memory.
 *
 * A free does not wake the cleaner at once. The first free arms a timer, and the
 * cleaner clears all that was freed until the timer fires. If more than half of the
 * free memory is dirty, the cleaner starts at once.
 *
 * A chunk of 2 MiB may be clean for one account (accmem_chunk.clean_for): its free
 * granules that are not dirty were freed by this account, and no fault mapped them.
 * The same account may get them again without clearing. For any other account they
 * are dirty, since a device may have written to them by address. The cleaner marks
 * such a chunk dirty after one to two seconds.
 *
 * Locking: cleaner.lock > the carveout's lock. The cleaner holds its lock while it has
 * a chunk allocated. The carveout's lock guards the dirty marks.
 */
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/wait_bit.h>

#include "core/carveout.h"
#include "core/engine.h"
#include "core/failed.h"
#include "core/revoke.h"
#include "internal.h"
#include "memory/clear.h"
#include "types/backing_types.h"
#include "waitq/waiters.h"

#define CLEAR_DELAY msecs_to_jiffies(100) /* from a free to the cleaner */
#define CLEAR_AGE HZ /* between two agings of accmem_chunk.clean_for */
#define CLEAR_YIELD_MAX \
	(HZ / 10) /* longest wait of the cleaner for other tasks */
#define CLEAR_SCAN 512u /* chunks checked in one critical section */
#define CLEAR_DIRTY 8u /* chunks made dirty in one critical section */
#define CLEAR_SEEN BIT_ULL(63) /* in clean_for: set by the last aging */

static u64 clear_chunk_start(u64 chunk)
{
	return chunk << ACCMEM_FOLIO_SHIFT;
}

static void clear_chunk_make_dirty(struct accmem_carveout *cv, u64 chunk)
{
	lockdep_assert_held(&cv->lock);
	accmem_buddy_mark_dirty(&cv->buddy, clear_chunk_start(chunk),
				ACCMEM_FOLIO);
	WRITE_ONCE(cv->chunks[chunk].clean_for, 0);
}

/**
 * accmem_clear_invalidate_others() - mark chunks dirty that other accounts left clean
 * @cv: the carveout
 * @run: newly allocated memory, private to the caller
 * @account: number of the account that has allocated @run
 *
 * A chunk that is clean for another account contains memory that is not zero for
 * @account. The function marks all of the chunk dirty.
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 */
void accmem_clear_invalidate_others(struct accmem_carveout *cv,
				    const struct accmem_run *run, u64 account)
{
	u64 last = accmem_chunk_index(run->start + run->size - 1), chunk;

	for (chunk = accmem_chunk_index(run->start); chunk <= last; chunk++) {
		u64 by = READ_ONCE(cv->chunks[chunk].clean_for) & ~CLEAR_SEEN;

		if (!by || by == account)
			continue;
		accmem_carveout_lock(cv);
		clear_chunk_make_dirty(cv, chunk);
		accmem_carveout_unlock(cv);
		cond_resched();
	}
}

/**
 * accmem_clear_next() - find the next dirty run in allocated memory
 * @cv: the carveout
 * @offset: offset in the carveout to start at, in bytes
 * @size: bytes to search; the caller has allocated them
 * @run: out: the first dirty run, at most ACCMEM_CHUNK bytes of it
 *
 * Memory that has failed is left out: nothing clears it.
 *
 * Context: Takes and releases the carveout's lock. Does not sleep.
 * Return: true if @run was set; false if all of the memory is clean.
 */
bool accmem_clear_next(struct accmem_carveout *cv, u64 offset, u64 size,
		       struct accmem_run *run)
{
	u64 end = offset + size;
	bool found, failed;

	accmem_carveout_lock(cv);
	do {
		found = accmem_buddy_next_dirty(&cv->buddy, offset,
						end - offset, ACCMEM_CHUNK,
						run);
		failed = found &&
			 accmem_failed_cut(cv, run, run->start + run->size);
		offset = run->start + run->size;
	} while (failed);
	accmem_carveout_unlock(cv);
	return found;
}

/**
 * accmem_clear_done() - mark a run clean after the caller has zeroed it
 * @cv: the carveout
 * @run: the run from accmem_clear_next(); the caller has allocated it
 * @helped: true if a work item zeroed the run, not the allocating task
 *
 * Context: Takes and releases the carveout's lock. Does not sleep.
 */
void accmem_clear_done(struct accmem_carveout *cv, const struct accmem_run *run,
		       bool helped)
{
	accmem_carveout_lock(cv);
	accmem_buddy_mark_held(&cv->buddy, run->start, run->size, false);
	cv->cleaner.bytes_at_alloc += run->size;
	cv->cleaner.bytes_parallel += helped ? run->size : 0;
	accmem_carveout_unlock(cv);
}

/* Chunks that lie completely in @run: the first, and the index after the last. */
static void clear_whole_chunks(const struct accmem_run *run, u64 *first,
			       u64 *end)
{
	*first = accmem_chunk_index(round_up(run->start, ACCMEM_FOLIO));
	*end = accmem_chunk_index(run->start + run->size);
}

/**
 * accmem_clear_mark_dirty() - mark memory dirty before a write or a mapping
 * @cv: the carveout
 * @run: the memory, allocated; the function rounds it out to granules
 *
 * Context: Takes and releases the carveout's lock. Does not sleep.
 */
void accmem_clear_mark_dirty(struct accmem_carveout *cv,
			     const struct accmem_run *run)
{
	u64 start = round_down(run->start, ACCMEM_GRANULE);
	u64 end = round_up(run->start + run->size, ACCMEM_GRANULE);

	accmem_carveout_lock(cv);
	accmem_buddy_mark_held(&cv->buddy, start, end - start, true);
	accmem_carveout_unlock(cv);
}

static void clear_set_clean_for(struct accmem_carveout *cv, u64 chunk,
				u64 account)
{
	WRITE_ONCE(cv->chunks[chunk].clean_for, account);
	WRITE_ONCE(cv->cleaner.has_clean_for, true);
}

static void clear_release_chunk(struct accmem_carveout *cv, u64 chunk,
				u64 account)
{
	bool dirty;

	accmem_carveout_lock(cv);
	dirty = accmem_buddy_is_dirty(&cv->buddy, clear_chunk_start(chunk),
				      ACCMEM_FOLIO);
	accmem_carveout_unlock(cv);
	if (!dirty)
		clear_set_clean_for(cv, chunk, account);
}

/**
 * accmem_clear_release_chunks() - set clean_for of complete chunks before a free
 * @cv: the carveout
 * @run: the memory, allocated by the caller still
 * @account: number of the account that frees @run
 * @written: true if some of @run may be dirty
 *
 * The function handles the chunks that lie completely in @run: no other task uses
 * them, so that the lock is held only for one chunk at a time. For the other parts of
 * @run, accmem_clear_release() must follow.
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 */
void accmem_clear_release_chunks(struct accmem_carveout *cv,
				 const struct accmem_run *run, u64 account,
				 bool written)
{
	u64 chunk, end;

	clear_whole_chunks(run, &chunk, &end);
	for (; chunk < end; chunk++) {
		if (written)
			clear_release_chunk(cv, chunk, account);
		else
			clear_set_clean_for(cv, chunk, account);
		cond_resched();
	}
}

/* Handle a part of a chunk, whose other granules may belong to other accounts. */
static void clear_release_part(struct accmem_carveout *cv, u64 start, u64 end,
			       u64 account)
{
	u64 chunk = accmem_chunk_index(start);
	u64 by = cv->chunks[chunk].clean_for & ~CLEAR_SEEN;

	lockdep_assert_held(&cv->lock);
	if (accmem_buddy_is_dirty(&cv->buddy, start, end - start))
		return;
	if (by && by != account)
		accmem_buddy_mark_held(&cv->buddy, start, end - start, true);
	else
		clear_set_clean_for(cv, chunk, account);
}

/**
 * accmem_clear_release() - set clean_for of the chunks at both ends before a free
 * @cv: the carveout
 * @run: the memory
 * @account: number of the account that frees @run
 *
 * A chunk that is clean for another account cannot be clean for @account as well: then
 * the part of @run becomes dirty.
 *
 * Context: The caller holds the carveout's lock. Does not sleep.
 */
void accmem_clear_release(struct accmem_carveout *cv,
			  const struct accmem_run *run, u64 account)
{
	u64 start = run->start, end = start + run->size;
	u64 head = min(round_up(start, ACCMEM_FOLIO), end);
	u64 tail = max(round_down(end, ACCMEM_FOLIO), head);

	lockdep_assert_held(&cv->lock);
	if (start < head)
		clear_release_part(cv, start, head, account);
	if (tail < end)
		clear_release_part(cv, tail, end, account);
}

static int clear_alloc_chunk(struct accmem_carveout *cv, struct accmem_run *run)
{
	int err;

	accmem_carveout_lock(cv);
	err = accmem_buddy_alloc_dirty(&cv->buddy, ACCMEM_CHUNK, run);
	if (!err) {
		cv->cleaner.bytes_held += run->size;
		WRITE_ONCE(cv->cleaner.seq, cv->cleaner.seq + 1);
	}
	accmem_carveout_unlock(cv);
	return err;
}

static void clear_free_chunk(struct accmem_carveout *cv,
			     const struct accmem_run *run, bool cleared)
{
	accmem_carveout_lock(cv);
	if (cleared) {
		accmem_buddy_mark_held(&cv->buddy, run->start, run->size,
				       false);
		cv->cleaner.bytes_cleared += run->size;
	}
	WARN_ON_ONCE(accmem_buddy_free_owned(&cv->buddy, run->start, run->size,
					     ACCMEM_BUDDY_CLEANER));
	cv->cleaner.bytes_held -= run->size;
	WRITE_ONCE(cv->cleaner.seq, cv->cleaner.seq + 1);
	accmem_carveout_unlock(cv);
	/* Bytes that the cleaner has count as free: a reservation gains none. */
	accmem_waiters_wake_freed(cv, NULL, 0);
}

/* Return true while the cleaner ignores accmem_clear_block(). */
static bool clear_has_turn(struct accmem_carveout *cv)
{
	return time_before(jiffies, READ_ONCE(cv->cleaner.turn_end));
}

static bool clear_yields(struct accmem_carveout *cv)
{
	return atomic_read(&cv->cleaner.pauses) ||
	       (atomic_read(&cv->cleaner.readers) && !clear_has_turn(cv));
}

/*
 * Account for the time that the cleaner has waited. After CLEAR_YIELD_MAX in total, the
 * cleaner ignores accmem_clear_block() for the same time.
 */
static void clear_count_patience(struct accmem_carveout *cv,
				 unsigned long patience)
{
	lockdep_assert_held(&cv->cleaner.lock);
	cv->cleaner.yielded += patience;
	if (cv->cleaner.yielded < CLEAR_YIELD_MAX)
		return;
	cv->cleaner.yielded = 0;
	WRITE_ONCE(cv->cleaner.turn_end, jiffies + CLEAR_YIELD_MAX);
}

/*
 * Take cleaner.lock when no task pauses or blocks the cleaner, or at CLEAR_YIELD_MAX.
 * The check runs under cleaner.lock: after a task has raised a count and has held
 * cleaner.lock once, the cleaner allocates no chunk until its wait expires.
 */
static void clear_lock_patiently(struct accmem_carveout *cv)
{
	unsigned long begin = jiffies, until = begin + CLEAR_YIELD_MAX;

	mutex_lock(&cv->cleaner.lock);
	while (clear_yields(cv) && time_before(jiffies, until)) {
		mutex_unlock(&cv->cleaner.lock);
		wait_var_event_timeout(&cv->cleaner.pauses, !clear_yields(cv),
				       CLEAR_YIELD_MAX);
		mutex_lock(&cv->cleaner.lock);
	}
	clear_count_patience(cv, jiffies - begin);
}

/* Clear a chunk that the cleaner has allocated, and free it. */
static bool clear_and_free_chunk(struct accmem_carveout *cv,
				 const struct accmem_run *run)
{
	u32 epoch = READ_ONCE(cv->carveouts->epoch);
	int err = accmem_engine_clear(cv, run->start, run->size);
	int section = accmem_enter(cv->carveouts);
	bool cleared = false;

	/* What the device zeroed before a reset may be lost. */
	if (section >= 0 && READ_ONCE(cv->carveouts->epoch) == epoch)
		cleared = !err || !cv->ops->clear(cv, run->start, run->size);
	clear_free_chunk(cv, run, cleared);
	if (section >= 0)
		accmem_exit(section);
	return cleared;
}

/* Clear one dirty chunk. Return false if none is left, or if clearing failed. */
static bool clear_chunk(struct accmem_carveout *cv)
{
	struct accmem_run run;
	bool cleared = false;
	int err;

	clear_lock_patiently(cv);
	err = clear_alloc_chunk(cv, &run);
	if (!err)
		cleared = clear_and_free_chunk(cv, &run);
	mutex_unlock(&cv->cleaner.lock);
	return cleared || err == -EAGAIN;
}

/*
 * Age chunks from @chunk on, up to @end. Each run of a chunk that is made dirty costs a step. Set
 * *@left if a chunk is clean for an account still. Return the chunk at which the next call
 * continues.
 */
static u64 clear_age_chunks(struct accmem_carveout *cv, u64 chunk, u64 end,
			    bool *left)
{
	unsigned int dirtied = 0;

	end = min(end, chunk + CLEAR_SCAN);
	accmem_carveout_lock(cv);
	for (; chunk < end && dirtied < CLEAR_DIRTY; chunk++) {
		u64 by = READ_ONCE(cv->chunks[chunk].clean_for);

		if (by & CLEAR_SEEN) {
			clear_chunk_make_dirty(cv, chunk);
			dirtied++;
		} else if (by) {
			WRITE_ONCE(cv->chunks[chunk].clean_for,
				   by | CLEAR_SEEN);
			*left = true;
		}
	}
	accmem_carveout_unlock(cv);
	cond_resched();
	return chunk;
}

/*
 * Age all chunks. The first aging marks a chunk that is clean for an account, and the
 * second makes the chunk dirty, unless an account has freed memory in it meanwhile.
 */
static void clear_age_clean_for(struct accmem_carveout *cv)
{
	u64 nr = accmem_chunk_index(cv->capacity), chunk = 0;
	bool left = false;

	WRITE_ONCE(cv->cleaner.has_clean_for, false);
	while (chunk < nr)
		chunk = clear_age_chunks(cv, chunk, nr, &left);
	if (left)
		WRITE_ONCE(cv->cleaner.has_clean_for, true);
}

/**
 * accmem_clear_forget() - mark all memory dirty, since its contents are unknown
 * @cv: the carveout, whose memory is revoked
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 */
void accmem_clear_forget(struct accmem_carveout *cv)
{
	u64 nr = cv->chunks ? accmem_chunk_index(cv->capacity) : 0, chunk;

	for (chunk = 0; chunk < nr; chunk++) {
		accmem_carveout_lock(cv);
		clear_chunk_make_dirty(cv, chunk);
		accmem_carveout_unlock(cv);
		cond_resched();
	}
}

static void clear_work(struct work_struct *work)
{
	struct accmem_carveout *cv =
		container_of(work, struct accmem_carveout, cleaner.work.work);

	while (!READ_ONCE(cv->stopping) && clear_chunk(cv))
		cond_resched();
	if (!READ_ONCE(cv->cleaner.has_clean_for))
		return;
	if (time_after_eq(jiffies, cv->cleaner.aged + CLEAR_AGE)) {
		cv->cleaner.aged = jiffies;
		clear_age_clean_for(cv);
	}
	accmem_clear_kick(cv, false);
}

/**
 * accmem_clear_init() - initialise the cleaner of a carveout
 * @cv: the carveout
 */
void accmem_clear_init(struct accmem_carveout *cv)
{
	mutex_init(&cv->cleaner.lock);
	cv->cleaner.turn_end = jiffies;
	INIT_DELAYED_WORK(&cv->cleaner.work, clear_work);
}

/**
 * accmem_clear_end() - do not start the cleaner of a carveout any more
 * @cv: the carveout, whose device is gone
 *
 * Context: Any. Does not sleep.
 */
void accmem_clear_end(struct accmem_carveout *cv)
{
	WRITE_ONCE(cv->stopping, true);
}

/**
 * accmem_clear_stop() - stop the cleaner of a carveout
 * @cv: the carveout, all of whose memory is free
 *
 * Context: Process context. Waits for the cleaner. May sleep.
 */
void accmem_clear_stop(struct accmem_carveout *cv)
{
	accmem_clear_end(cv);
	cancel_delayed_work_sync(&cv->cleaner.work);
	mutex_destroy(&cv->cleaner.lock);
}

/* Return true if more than half of the free memory is dirty. */
static bool clear_is_urgent(struct accmem_carveout *cv)
{
	/* Racy read: a stale value only delays the cleaner until the next free. */
	return data_race(2 * accmem_buddy_free_dirty_bytes(&cv->buddy) >
			 accmem_buddy_free_bytes(&cv->buddy));
}

/* Start the cleaner in @delay jiffies or earlier. */
static void clear_by(struct accmem_carveout *cv, unsigned long delay)
{
	if (delayed_work_pending(&cv->cleaner.work) &&
	    !time_after(READ_ONCE(cv->cleaner.due), jiffies + delay))
		return;
	WRITE_ONCE(cv->cleaner.due, jiffies + delay);
	mod_delayed_work(accmem_wq, &cv->cleaner.work, delay);
}

/**
 * accmem_clear_kick() - schedule the cleaner after a free
 * @cv: the carveout
 * @touched: true if the freed memory is dirty; false if it is clean for its account
 *
 * Context: Any. Does not sleep.
 */
void accmem_clear_kick(struct accmem_carveout *cv, bool touched)
{
	if (!cv->ops->clear || READ_ONCE(cv->stopping))
		return;
	if (!touched)
		clear_by(cv, CLEAR_AGE);
	else if (clear_is_urgent(cv))
		clear_by(cv, 0);
	else
		clear_by(cv, CLEAR_DELAY);
}

static unsigned int clear_wait_for_chunk(struct accmem_carveout *cv)
{
	unsigned int seq;

	mutex_lock(&cv->cleaner.lock);
	seq = READ_ONCE(cv->cleaner.seq);
	mutex_unlock(&cv->cleaner.lock);
	return seq;
}

/**
 * accmem_clear_pause() - pause the cleaner before an allocation searches free memory
 * @cv: the carveout
 *
 * The function waits until the cleaner has freed its chunk of at most 2 MiB. Until
 * accmem_clear_resume() the allocator sees all free memory. The cleaner waits for
 * about 100 ms at most, and accmem_clear_took_chunk_since() detects that the cleaner
 * has continued.
 *
 * Context: Process context. Takes and releases cleaner.lock. May sleep.
 * Return: sequence number for accmem_clear_took_chunk_since().
 */
unsigned int accmem_clear_pause(struct accmem_carveout *cv)
{
	atomic_inc(&cv->cleaner.pauses);
	return clear_wait_for_chunk(cv);
}

/**
 * accmem_clear_block() - pause the cleaner while a task counts free memory
 * @cv: the carveout
 *
 * A program may count free memory in a loop. The cleaner therefore ignores this call
 * for half of the time, and may have a chunk when the function returns.
 * accmem_clear_unblock() ends the pause.
 *
 * Context: Process context. May take and release cleaner.lock. May sleep.
 * Return: sequence number for accmem_clear_took_chunk_since().
 */
unsigned int accmem_clear_block(struct accmem_carveout *cv)
{
	atomic_inc(&cv->cleaner.readers);
	/* The cleaner ignores this call now; a wait for cleaner.lock would delay it. */
	if (clear_has_turn(cv))
		return READ_ONCE(cv->cleaner.seq);
	return clear_wait_for_chunk(cv);
}

/**
 * accmem_clear_took_chunk_since() - check that the cleaner had no chunk
 * @cv: the carveout
 * @seq: result of accmem_clear_pause() or accmem_clear_block()
 *
 * Context: Any. The caller needs no lock: a chunk that was allocated or freed in the
 * meantime has changed the sequence number.
 * Return: true if the cleaner allocated or freed a chunk since @seq was read, so that
 * the caller may have missed free memory.
 */
bool accmem_clear_took_chunk_since(struct accmem_carveout *cv, unsigned int seq)
{
	return READ_ONCE(cv->cleaner.seq) != seq;
}

/**
 * accmem_clear_is_busy() - check for a chunk that the cleaner has allocated
 * @cv: the carveout
 *
 * Context: Any. The read is racy: the chunk may be free again on return.
 * Return: true if the cleaner has a chunk.
 */
bool accmem_clear_is_busy(struct accmem_carveout *cv)
{
	return READ_ONCE(cv->cleaner.seq) & 1;
}

/**
 * accmem_clear_resume() - undo accmem_clear_pause()
 * @cv: the carveout
 *
 * Context: Process context. Wakes the cleaner.
 */
void accmem_clear_resume(struct accmem_carveout *cv)
{
	if (atomic_dec_and_test(&cv->cleaner.pauses))
		wake_up_var(&cv->cleaner.pauses);
}

/**
 * accmem_clear_unblock() - undo accmem_clear_block()
 * @cv: the carveout
 *
 * Context: Process context. Wakes the cleaner.
 */
void accmem_clear_unblock(struct accmem_carveout *cv)
{
	if (atomic_dec_and_test(&cv->cleaner.readers))
		wake_up_var(&cv->cleaner.pauses);
}
