// SPDX-License-Identifier: GPL-2.0
/*
 * Carveouts: the state that every backing has, and the scrubber.
 *
 * Owns the free-space structure, the accounting, and the background work of a
 * carveout. Freed memory is dirty until the scrubber, or the allocation that
 * gets it first, has cleared it.
 *
 * Locks: scrub_lock > lock. The scrubber holds scrub_lock while it has a chunk
 * out of the free space, so whoever holds it sees all free memory.
 */
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "accmem_drv.h"

/* one dirty chunk; false when there is none left, or it cannot be cleared */
static bool scrub_chunk(struct accmem_carveout *cv)
{
	struct accmem_run run;
	bool cleared = false;
	int err;

	mutex_lock(&cv->scrub_lock);
	accmem_carveout_lock(cv);
	err = accmem_buddy_take_dirty(&cv->buddy, ACCMEM_CHUNK, &run);
	if (!err) {
		cv->scrubbing += run.size;
		if (cv->folios)
			accmem_folio_scrub_begin(cv, run.start, run.size);
	}
	accmem_carveout_unlock(cv);

	if (!err) {
		cleared = !cv->ops->clear(cv, run.start, run.size);
		accmem_carveout_lock(cv);
		if (cleared)
			accmem_buddy_mark_clean(&cv->buddy, run.start,
						run.size);
		WARN_ON_ONCE(accmem_buddy_free(&cv->buddy, run.start,
					       run.size));
		cv->scrubbing -= run.size;
		if (cv->folios)
			accmem_folio_scrub_end(cv, run.start, run.size);
		accmem_carveout_unlock(cv);
	}
	mutex_unlock(&cv->scrub_lock);
	return cleared || err == -EAGAIN;
}

static void scrub_work(struct work_struct *work)
{
	struct accmem_carveout *cv =
		container_of(work, struct accmem_carveout, scrub);

	while (!READ_ONCE(cv->stopping) && scrub_chunk(cv))
		cond_resched();
}

/**
 * accmem_carveout_init() - make the common part of a carveout
 * @cv: zeroed, but for @capacity, which its backing has set
 *
 * Return: 0, -EINVAL for a capacity that the allocator does not take, -ENOMEM.
 */
int accmem_carveout_init(struct accmem_carveout *cv)
{
	size_t size = accmem_buddy_meta_size(cv->capacity);

	if (!size)
		return -EINVAL;
	cv->buddy_meta = kvmalloc(size, GFP_KERNEL);
	if (!cv->buddy_meta)
		return -ENOMEM;
	memset(cv->buddy_meta, 0, accmem_buddy_meta_zeroed(cv->capacity));
	spin_lock_init(&cv->lock);
	mutex_init(&cv->scrub_lock);
	mutex_init(&cv->settle_lock);
	INIT_LIST_HEAD(&cv->quarantine);
	INIT_WORK(&cv->scrub, scrub_work);
	INIT_DELAYED_WORK(&cv->settle, accmem_settle_work);
	cv->caps.max_alignment = ACCMEM_MAX_ALIGNMENT;
	return accmem_buddy_init(&cv->buddy, cv->capacity, cv->buddy_meta);
}

/**
 * accmem_carveout_stop() - end the background work
 * @cv: the carveout, all of whose memory is free
 */
void accmem_carveout_stop(struct accmem_carveout *cv)
{
	WRITE_ONCE(cv->stopping, true);
	cancel_delayed_work_sync(&cv->settle);
	cancel_work_sync(&cv->scrub);
	WARN_ON_ONCE(accmem_buddy_free_bytes(&cv->buddy) != cv->capacity);
}

/**
 * accmem_carveout_destroy() - give back what a carveout consists of
 * @cv: the carveout, stopped, or half made by its backing
 */
void accmem_carveout_destroy(struct accmem_carveout *cv)
{
	if (cv->ops && cv->ops->destroy)
		cv->ops->destroy(cv);
	kvfree(cv->whole_meta);
	kvfree(cv->folios);
	kvfree(cv->buddy_meta);
}

/**
 * accmem_carveout_free_bytes() - bytes in no buffer
 * @cv: the carveout, whose lock is held
 *
 * Return: bytes, wherever they are: also those that the scrubber has, and what
 * is left of the granules that small blocks are cut from.
 */
u64 accmem_carveout_free_bytes(struct accmem_carveout *cv)
{
	lockdep_assert_held(&cv->lock);
	return accmem_buddy_free_bytes(&cv->buddy) + cv->scrubbing + cv->slack;
}

/**
 * accmem_carveout_bytes() - bytes of the buffers in a state
 * @cv: the carveout, whose lock is held
 * @state: the state
 *
 * Return: bytes.
 */
u64 accmem_carveout_bytes(struct accmem_carveout *cv, enum accmem_state state)
{
	lockdep_assert_held(&cv->lock);
	return cv->bytes[state] - (state == ACCMEM_LIVE ? cv->slack : 0);
}

/* Quarantined buffers that a call of anybody looks at */
#define SETTLE_SOME 1024

/**
 * accmem_carveout_space() - how much is free
 * @ctx: the context that asks
 * @free_bytes: out: bytes free
 * @largest_run: out: largest contiguous request that @ctx could be granted
 *
 * All that is free counts: stashes are drained, and quarantined memory that
 * has settled meanwhile comes back first, of up to 1,024 buffers a call; and the
 * scrubber's chunk, for which this may wait while 2 MiB are cleared.
 */
void accmem_carveout_space(struct accmem_context *ctx, u64 *free_bytes,
			   u64 *largest_run)
{
	struct accmem_carveout *cv = accmem_context_carveout(ctx);
	u64 small;

	accmem_stash_drain_device(ctx->dev);
	accmem_settle(cv, false, SETTLE_SOME);
	small = accmem_sheet_largest(ctx);
	mutex_lock(&cv->scrub_lock);
	accmem_carveout_lock(cv);
	*free_bytes = accmem_carveout_free_bytes(cv);
	if (cv->folios)
		*largest_run = accmem_folio_largest_run(cv, ctx);
	else
		*largest_run = accmem_buddy_largest_run(&cv->buddy,
							ACCMEM_GRANULE);
	accmem_carveout_unlock(cv);
	mutex_unlock(&cv->scrub_lock);
	*largest_run = max(*largest_run, small);
}

/**
 * accmem_carveout_next_dirty() - what of a buffer's memory is to be cleared
 * @cv: the carveout
 * @offset: where to start
 * @size: bytes to look at; the caller has allocated them
 * @run: out: the first dirty run, at most ACCMEM_CHUNK bytes of it
 *
 * Return: whether there is one.
 */
bool accmem_carveout_next_dirty(struct accmem_carveout *cv, u64 offset,
				u64 size, struct accmem_run *run)
{
	bool found;

	accmem_carveout_lock(cv);
	found = accmem_buddy_next_dirty(&cv->buddy, offset, size, ACCMEM_CHUNK,
					run);
	accmem_carveout_unlock(cv);
	return found;
}
