// SPDX-License-Identifier: GPL-2.0
/*
 * Space: the memory of a buffer, taken from its carveout and given back.
 *
 * The only caller of the allocator for buffers and sheets; the units of small
 * blocks are sheet.c's. Work under the carveout's lock
 * is bounded: a buffer of many runs takes and gives them in batches.
 *
 * Before a request fails for lack of memory, stashes are drained, quarantined
 * memory is looked at again, and the scrubber's chunk is waited for.
 */
#include <linux/kernel.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "accmem_drv.h"

#define BATCH 64u /* runs taken or given in one hold of the lock */

static void account_take(struct accmem_carveout *cv, u64 size)
{
	lockdep_assert_held(&cv->lock);
	cv->bytes[ACCMEM_LIVE] += size;
}

/* a buffer has all of its memory; a sheet is no buffer to anybody */
static void count_taken(struct accmem_buffer *buf)
{
	lockdep_assert_held(&buf->cv->lock);
	if (buf->is_sheet)
		return;
	buf->cv->nr_buffers++;
	buf->cv->allocs++;
}

/* none of its memory is its own any more */
static void count_given(struct accmem_buffer *buf)
{
	lockdep_assert_held(&buf->cv->lock);
	list_del_init(&buf->link);
	if (buf->is_sheet)
		return;
	buf->cv->nr_buffers--;
	buf->cv->frees++;
}

/* identity translation, or one run asked for */
static int take_run(struct accmem_buffer *buf)
{
	struct accmem_carveout *cv = buf->cv;
	struct accmem_buddy_request req = {
		.size = buf->layout.footprint,
		.align = max_t(u64, ACCMEM_GRANULE, buf->layout.page_size),
		.flags = buf->flags & ACCMEM_ALLOC_TOP_DOWN ?
				 ACCMEM_BUDDY_TOP_DOWN : 0,
	};
	int err;

	if (cv->translation == ACCMEM_TRANSLATION_IDENTITY)
		req.align = max(req.align, buf->layout.alignment);
	accmem_carveout_lock(cv);
	if (cv->folios)
		err = accmem_folio_take(cv, buf->ctx, &req, &buf->run.start);
	else
		err = accmem_buddy_alloc(&cv->buddy, &req, &buf->run.start);
	if (!err) {
		account_take(cv, req.size);
		count_taken(buf);
	}
	accmem_carveout_unlock(cv);
	if (err)
		return err;
	buf->run.size = req.size;
	buf->runs = &buf->run;
	buf->nr_runs = 1;
	return 0;
}

static int grow_runs(struct accmem_buffer *buf, unsigned int capacity)
{
	struct accmem_run *runs;

	runs = kvmalloc_array(capacity, sizeof(*runs),
			      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!runs)
		return -ENOMEM;
	if (buf->nr_runs)
		memcpy(runs, buf->runs, buf->nr_runs * sizeof(*runs));
	if (buf->runs != &buf->run)
		kvfree(buf->runs);
	buf->runs = runs;
	return 0;
}

/* as much of @size bytes as one batch of runs can hold */
static int take_batch(struct accmem_buffer *buf, u64 size, u64 *taken)
{
	struct accmem_carveout *cv = buf->cv;
	struct accmem_buddy_request req = {
		.size = size,
		.align = buf->layout.page_size,
		.flags = buf->flags & ACCMEM_ALLOC_TOP_DOWN ?
				 ACCMEM_BUDDY_TOP_DOWN : 0,
	};
	unsigned int nr;
	int err;

	for (;;) {
		accmem_carveout_lock(cv);
		err = accmem_buddy_alloc_runs(&cv->buddy, &req,
					      buf->runs + buf->nr_runs, BATCH,
					      &nr);
		if (!err)
			account_take(cv, req.size);
		accmem_carveout_unlock(cv);
		if (err != -E2BIG || req.size <= req.align)
			break;
		req.size = round_up(req.size / 2, req.align);
		cond_resched();
	}
	if (err)
		return err;
	buf->nr_runs += nr;
	*taken = req.size;
	return 0;
}

static void give_run(struct accmem_buffer *buf, const struct accmem_run *run)
{
	struct accmem_carveout *cv = buf->cv;

	lockdep_assert_held(&cv->lock);
	if (cv->ops->clear)
		accmem_buddy_mark_dirty(&cv->buddy, run->start, run->size);
	if (WARN_ON_ONCE(accmem_buddy_free(&cv->buddy, run->start, run->size)))
		return;
	WRITE_ONCE(cv->bytes[buf->state], cv->bytes[buf->state] - run->size);
	if (cv->folios)
		accmem_folio_give(cv, run->start, run->size);
}

/* @all: it had all of its memory, and was counted */
static void give_runs(struct accmem_buffer *buf, bool all)
{
	struct accmem_carveout *cv = buf->cv;
	unsigned int i;

	accmem_carveout_lock(cv);
	for (i = 0; i < buf->nr_runs; i++) {
		if (i && !(i % BATCH)) {
			accmem_carveout_unlock(cv);
			cond_resched();
			accmem_carveout_lock(cv);
		}
		give_run(buf, &buf->runs[i]);
	}
	if (all)
		count_given(buf);
	accmem_carveout_unlock(cv);
	if (cv->ops->clear)
		queue_work(accmem_wq, &cv->scrub);

	if (buf->runs != &buf->run)
		kvfree(buf->runs);
	buf->runs = NULL;
	buf->nr_runs = 0;
}

/* mapped translation: several runs will do */
static int take_runs(struct accmem_buffer *buf)
{
	u64 left = buf->layout.footprint, most = left, taken;
	unsigned int capacity = 0;
	int err;

	while (left) {
		if (capacity - buf->nr_runs < BATCH) {
			capacity = max_t(unsigned int, BATCH, 2 * capacity);
			err = grow_runs(buf, capacity);
			if (err)
				goto err;
		}
		err = -EINTR;
		if (fatal_signal_pending(current))
			goto err;
		err = take_batch(buf, min(left, most), &taken);
		if (err)
			goto err;
		left -= taken;
		/* no more than that was to be had; it may get better again */
		most = 2 * taken;
	}
	if (buf->nr_runs == 1) {
		buf->run = buf->runs[0];
		kvfree(buf->runs);
		buf->runs = &buf->run;
	}
	accmem_carveout_lock(buf->cv);
	count_taken(buf);
	accmem_carveout_unlock(buf->cv);
	return 0;

err:
	give_runs(buf, false);
	return err;
}

static int take_once(struct accmem_buffer *buf)
{
	int err;

	if (buf->cv->translation == ACCMEM_TRANSLATION_IDENTITY ||
	    buf->flags & ACCMEM_ALLOC_CONTIGUOUS)
		return take_run(buf);
	/* one run is the common case, and needs no array */
	err = take_run(buf);
	return err == -ENOSPC ? take_runs(buf) : err;
}

/**
 * accmem_space_take() - take the memory of a new buffer
 * @buf: the buffer; its layout and flags say what it needs
 *
 * Return: 0, -ENOMEM.
 */
int accmem_space_take(struct accmem_buffer *buf)
{
	struct accmem_carveout *cv = buf->cv;
	int err;

	if (buf->layout.footprint > cv->capacity)
		return -ENOMEM;
	buf->state = ACCMEM_LIVE;
	err = take_once(buf);
	if (err == -ENOSPC) {
		accmem_stash_drain_device(buf->ctx->dev);
		accmem_settle(cv, true, UINT_MAX);
		mutex_lock(&cv->scrub_lock);
		err = take_once(buf);
		mutex_unlock(&cv->scrub_lock);
	}
	return err == -ENOSPC ? -ENOMEM : err;
}

/**
 * accmem_space_give() - give the memory of a buffer back
 * @buf: the buffer; nobody else refers to its memory. Allocates nothing.
 */
void accmem_space_give(struct accmem_buffer *buf)
{
	give_runs(buf, true);
}
