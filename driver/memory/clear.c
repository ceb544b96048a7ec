// SPDX-License-Identifier: GPL-2.0
/*
 * Clearing: which free memory may hold something, and the cleaner.
 *
 * A granule is dirty when somebody may have written to it: a fault has shown it
 * since it was last cleared, or it was never cleared. Dirty memory is cleared by the
 * cleaner in the background, in chunks of 2 MiB, or by the allocation that gets
 * it first. Frees do not wake the cleaner: the first one arms a timer, and what
 * came back when it fires is cleared together; where more than half of the free
 * memory is dirty, the cleaner starts at once.
 *
 * Memory that no fault has shown reads as zero still, for all that the driver
 * knows. It goes back to the same account as it is; to any other it is dirty,
 * since a device may have reached it by its address. accmem_chunk.clean_for
 * says for 2 MiB at a time whose such memory it is. After a second or two the
 * cleaner makes it dirty.
 *
 * Locks: clear_lock > the carveout's lock. The cleaner holds clear_lock while it
 * has a chunk out of the free space.
 */
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/wait_bit.h>

#include "core/carveout.h"
#include "internal.h"
#include "memory/clear.h"
#include "waitq/waiters.h"

#define CLEAR_DELAY msecs_to_jiffies(100) /* from a free to the cleaner */
#define CLEAR_AGE HZ /* between two looks at what is untouched */
#define CLEAR_GIVE_WAY (HZ / 10) /* to requests that look for memory */
#define CLEAR_SCAN 512u /* units looked at in one hold of the lock */
#define CLEAR_SEEN BIT_ULL(63) /* clean_for: since the look before */

static u64 clear_unit_start(u64 unit)
{
	return unit << ACCMEM_FOLIO_SHIFT;
}

static void clear_unit_make_dirty(struct accmem_carveout *cv, u64 unit)
{
	lockdep_assert_held(&cv->lock);
	accmem_buddy_mark_dirty(&cv->buddy, clear_unit_start(unit),
				ACCMEM_FOLIO);
	WRITE_ONCE(cv->units[unit].clean_for, 0);
}

/**
 * accmem_clear_invalidate_others() - an account has got memory
 * @cv: the carveout
 * @run: the memory, which nobody else knows of yet
 * @account: the account's number
 *
 * What was left untouched by others is dirty from now on.
 */
void accmem_clear_invalidate_others(struct accmem_carveout *cv,
				    const struct accmem_run *run, u64 account)
{
	u64 last = accmem_chunk_index(run->start + run->size - 1), unit;

	for (unit = accmem_chunk_index(run->start); unit <= last; unit++) {
		u64 by = READ_ONCE(cv->units[unit].clean_for) & ~CLEAR_SEEN;

		if (!by || by == account)
			continue;
		accmem_carveout_lock(cv);
		clear_unit_make_dirty(cv, unit);
		accmem_carveout_unlock(cv);
		cond_resched();
	}
}

/**
 * accmem_clear_next() - what of a memory is to be cleared
 * @cv: the carveout
 * @offset: where to start
 * @size: bytes to look at; the caller has allocated them
 * @run: out: the first dirty run, at most ACCMEM_CHUNK bytes of it
 *
 * Return: whether there is one.
 */
bool accmem_clear_next(struct accmem_carveout *cv, u64 offset, u64 size,
		       struct accmem_run *run)
{
	bool found;

	accmem_carveout_lock(cv);
	found = accmem_buddy_next_dirty(&cv->buddy, offset, size, ACCMEM_CHUNK,
					run);
	accmem_carveout_unlock(cv);
	return found;
}

/**
 * accmem_clear_done() - what accmem_clear_next() told of has been cleared
 * @cv: the carveout
 * @run: the memory, which is the caller's still
 * @helped: another processor than the caller's has done it
 *
 * Given back untouched, it need not be cleared again.
 */
void accmem_clear_done(struct accmem_carveout *cv, const struct accmem_run *run,
		       bool helped)
{
	accmem_carveout_lock(cv);
	accmem_buddy_mark_held(&cv->buddy, run->start, run->size, false);
	cv->cleared_at_alloc += run->size;
	cv->cleared_parallel += helped ? run->size : 0;
	accmem_carveout_unlock(cv);
}

/* the first unit that lies in @run whole, and the one after the last */
static void clear_whole_units(const struct accmem_run *run, u64 *first,
			      u64 *end)
{
	*first = accmem_chunk_index(round_up(run->start, ACCMEM_FOLIO));
	*end = accmem_chunk_index(run->start + run->size);
}

/**
 * accmem_clear_mark_dirty() - memory is about to be written to, or shown by a fault
 * @cv: the carveout
 * @run: the memory, which is in use; granules that it has a part of count whole
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

static void clear_set_clean_for(struct accmem_carveout *cv, u64 unit,
				u64 account)
{
	WRITE_ONCE(cv->units[unit].clean_for, account);
	WRITE_ONCE(cv->untouched, true);
}

static void clear_release_unit(struct accmem_carveout *cv, u64 unit,
			       u64 account)
{
	bool dirty;

	accmem_carveout_lock(cv);
	dirty = accmem_buddy_is_dirty(&cv->buddy, clear_unit_start(unit),
				      ACCMEM_FOLIO);
	accmem_carveout_unlock(cv);
	if (!dirty)
		clear_set_clean_for(cv, unit, account);
}

/**
 * accmem_clear_release_units() - prepare the release of memory
 * @cv: the carveout
 * @run: the memory, which is the caller's still
 * @account: the account that had it
 * @mapped: some of it may be dirty
 *
 * Before accmem_clear_release(), for all that needs no long hold of the lock:
 * the units that lie in @run whole are nobody else's.
 */
void accmem_clear_release_units(struct accmem_carveout *cv,
				const struct accmem_run *run, u64 account,
				bool mapped)
{
	u64 unit, end;

	clear_whole_units(run, &unit, &end);
	for (; unit < end; unit++) {
		if (mapped)
			clear_release_unit(cv, unit, account);
		else
			clear_set_clean_for(cv, unit, account);
		cond_resched();
	}
}

/* a piece of a unit of which somebody else may have the rest */
static void clear_release_piece(struct accmem_carveout *cv, u64 start, u64 end,
				u64 account)
{
	u64 unit = accmem_chunk_index(start);
	u64 by = cv->units[unit].clean_for & ~CLEAR_SEEN;

	lockdep_assert_held(&cv->lock);
	if (accmem_buddy_is_dirty(&cv->buddy, start, end - start))
		return;
	if (by && by != account)
		accmem_buddy_mark_held(&cv->buddy, start, end - start, true);
	else
		clear_set_clean_for(cv, unit, account);
}

/**
 * accmem_clear_release() - memory is about to become free
 * @cv: the carveout, whose lock is held
 * @run: the memory
 * @account: the account that had it
 *
 * What no fault has shown is untouched.
 */
void accmem_clear_release(struct accmem_carveout *cv,
			  const struct accmem_run *run, u64 account)
{
	u64 start = run->start, end = start + run->size;
	u64 head = min(round_up(start, ACCMEM_FOLIO), end);
	u64 tail = max(round_down(end, ACCMEM_FOLIO), head);

	lockdep_assert_held(&cv->lock);
	if (start < head)
		clear_release_piece(cv, start, head, account);
	if (tail < end)
		clear_release_piece(cv, tail, end, account);
}

static int clear_take_chunk(struct accmem_carveout *cv, struct accmem_run *run)
{
	int err;

	accmem_carveout_lock(cv);
	err = accmem_buddy_take_dirty(&cv->buddy, ACCMEM_CHUNK, run);
	if (!err) {
		cv->clearing += run->size;
		WRITE_ONCE(cv->clear_seq, cv->clear_seq + 1);
	}
	accmem_carveout_unlock(cv);
	return err;
}

static void clear_give_chunk(struct accmem_carveout *cv,
			     const struct accmem_run *run, bool cleared)
{
	accmem_carveout_lock(cv);
	if (cleared) {
		accmem_buddy_mark_held(&cv->buddy, run->start, run->size,
				       false);
		cv->cleared += run->size;
	}
	WARN_ON_ONCE(accmem_buddy_free_owned(&cv->buddy, run->start, run->size,
					     ACCMEM_BUDDY_CLEANER));
	cv->clearing -= run->size;
	WRITE_ONCE(cv->clear_seq, cv->clear_seq + 1);
	accmem_carveout_unlock(cv);
	accmem_waiters_wake_freed(cv->waiters, NULL);
}

/* Is it the cleaner's turn, whoever looks what is free? */
static bool clear_has_turn(struct accmem_carveout *cv)
{
	return time_before(jiffies, READ_ONCE(cv->clear_turn_end));
}

static bool clear_yields(struct accmem_carveout *cv)
{
	return atomic_read(&cv->clear_pause) ||
	       (atomic_read(&cv->clear_blockers) && !clear_has_turn(cv));
}

/* as long as it has given way to others, it does not to who only looks */
static void clear_count_patience(struct accmem_carveout *cv,
				 unsigned long patience)
{
	lockdep_assert_held(&cv->clear_lock);
	cv->clear_yielded += patience;
	if (cv->clear_yielded < CLEAR_GIVE_WAY)
		return;
	cv->clear_yielded = 0;
	WRITE_ONCE(cv->clear_turn_end, jiffies + CLEAR_GIVE_WAY);
}

/*
 * Gives way to who wants to see all that is free, but not for ever. Who came
 * first is seen under the lock, so that no chunk is taken behind his back.
 */
static void clear_lock_patiently(struct accmem_carveout *cv)
{
	unsigned long begin = jiffies, until = begin + CLEAR_GIVE_WAY;

	mutex_lock(&cv->clear_lock);
	while (clear_yields(cv) && time_before(jiffies, until)) {
		mutex_unlock(&cv->clear_lock);
		wait_var_event_timeout(&cv->clear_pause, !clear_yields(cv),
				       CLEAR_GIVE_WAY);
		mutex_lock(&cv->clear_lock);
	}
	clear_count_patience(cv, jiffies - begin);
}

/* one dirty chunk; false when there is none left, or it cannot be cleared */
static bool clear_chunk(struct accmem_carveout *cv)
{
	struct accmem_run run;
	bool cleared = false;
	int err;

	clear_lock_patiently(cv);
	err = clear_take_chunk(cv, &run);
	if (!err) {
		cleared = !cv->ops->clear(cv, run.start, run.size);
		clear_give_chunk(cv, &run, cleared);
	}
	mutex_unlock(&cv->clear_lock);
	return cleared || err == -EAGAIN;
}

/* units [@unit, @end); whether any is untouched still */
static bool clear_age_units(struct accmem_carveout *cv, u64 unit, u64 end)
{
	bool left = false;

	accmem_carveout_lock(cv);
	for (; unit < end; unit++) {
		u64 by = READ_ONCE(cv->units[unit].clean_for);

		if (by & CLEAR_SEEN) {
			clear_unit_make_dirty(cv, unit);
		} else if (by) {
			WRITE_ONCE(cv->units[unit].clean_for, by | CLEAR_SEEN);
			left = true;
		}
	}
	accmem_carveout_unlock(cv);
	cond_resched();
	return left;
}

/* What stays untouched from one look to the next but one becomes dirty. */
static void clear_age_clean_for(struct accmem_carveout *cv)
{
	u64 nr = accmem_chunk_index(cv->capacity), unit;
	bool left = false;

	WRITE_ONCE(cv->untouched, false);
	for (unit = 0; unit < nr; unit += CLEAR_SCAN)
		left |= clear_age_units(cv, unit, min(unit + CLEAR_SCAN, nr));
	if (left)
		WRITE_ONCE(cv->untouched, true);
}

static void clear_work(struct work_struct *work)
{
	struct accmem_carveout *cv = container_of(work, struct accmem_carveout,
						  clear_work.work);

	while (!READ_ONCE(cv->stopping) && clear_chunk(cv))
		cond_resched();
	if (!READ_ONCE(cv->untouched))
		return;
	if (time_after_eq(jiffies, cv->clear_aged + CLEAR_AGE)) {
		cv->clear_aged = jiffies;
		clear_age_clean_for(cv);
	}
	accmem_clear_kick(cv, false);
}

/**
 * accmem_clear_init() - get the cleaner of a carveout ready
 * @cv: the carveout
 */
void accmem_clear_init(struct accmem_carveout *cv)
{
	mutex_init(&cv->clear_lock);
	cv->clear_turn_end = jiffies;
	INIT_DELAYED_WORK(&cv->clear_work, clear_work);
}

/**
 * accmem_clear_stop() - end the cleaner
 * @cv: the carveout, all of whose memory is free
 */
void accmem_clear_stop(struct accmem_carveout *cv)
{
	WRITE_ONCE(cv->stopping, true);
	cancel_delayed_work_sync(&cv->clear_work);
	mutex_destroy(&cv->clear_lock);
}

/* is most of what is free dirty? */
static bool clear_is_urgent(struct accmem_carveout *cv)
{
	/* without the lock: it may err, and be asked again with the next free */
	return data_race(2 * accmem_buddy_free_dirty_bytes(&cv->buddy) >
			 accmem_buddy_free_bytes(&cv->buddy));
}

/* the cleaner starts no later than in @delay */
static void clear_by(struct accmem_carveout *cv, unsigned long delay)
{
	if (delayed_work_pending(&cv->clear_work) &&
	    !time_after(READ_ONCE(cv->clear_due), jiffies + delay))
		return;
	WRITE_ONCE(cv->clear_due, jiffies + delay);
	mod_delayed_work(accmem_wq, &cv->clear_work, delay);
}

/**
 * accmem_clear_kick() - memory came back
 * @cv: the carveout
 * @touched: it is dirty
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

	mutex_lock(&cv->clear_lock);
	seq = READ_ONCE(cv->clear_seq);
	mutex_unlock(&cv->clear_lock);
	return seq;
}

/**
 * accmem_clear_pause() - have the cleaner hold nothing
 * @cv: the carveout
 *
 * Waits while at most 2 MiB are cleared. Until accmem_clear_resume(), but for
 * no more than some 100 ms, all free memory is where the allocator sees it.
 *
 * Return: what accmem_clear_took_chunk_since() is asked with.
 */
unsigned int accmem_clear_pause(struct accmem_carveout *cv)
{
	atomic_inc(&cv->clear_pause);
	return clear_wait_for_chunk(cv);
}

/**
 * accmem_clear_block() - the same for who only wants to know what is free
 * @cv: the carveout
 *
 * Anybody may ask that in a loop: the cleaner works half of the time all the same,
 * and may have a chunk. Ends with accmem_clear_unblock().
 *
 * Return: what accmem_clear_took_chunk_since() is asked with.
 */
unsigned int accmem_clear_block(struct accmem_carveout *cv)
{
	atomic_inc(&cv->clear_blockers);
	/* the lock is in its way, too */
	if (clear_has_turn(cv))
		return READ_ONCE(cv->clear_seq);
	return clear_wait_for_chunk(cv);
}

/**
 * accmem_clear_took_chunk_since() - did the cleaner hold anything after all?
 * @cv: the carveout
 * @seq: of accmem_clear_pause()
 *
 * Return: whether free memory may have been overlooked since.
 */
bool accmem_clear_took_chunk_since(struct accmem_carveout *cv, unsigned int seq)
{
	return READ_ONCE(cv->clear_seq) != seq;
}

/**
 * accmem_clear_is_busy() - has the cleaner a chunk?
 * @cv: the carveout
 *
 * Return: whether it has, which may be over.
 */
bool accmem_clear_is_busy(struct accmem_carveout *cv)
{
	return READ_ONCE(cv->clear_seq) & 1;
}

/**
 * accmem_clear_resume() - undo accmem_clear_pause()
 * @cv: the carveout
 */
void accmem_clear_resume(struct accmem_carveout *cv)
{
	if (atomic_dec_and_test(&cv->clear_pause))
		wake_up_var(&cv->clear_pause);
}

/**
 * accmem_clear_unblock() - undo accmem_clear_block()
 * @cv: the carveout
 */
void accmem_clear_unblock(struct accmem_carveout *cv)
{
	if (atomic_dec_and_test(&cv->clear_blockers))
		wake_up_var(&cv->clear_pause);
}
