// SPDX-License-Identifier: GPL-2.0
/*
 * Folios: who owns each compound page of a carveout with page structures.
 *
 * A compound page (2 MiB) has one reference count for all of its granules, so
 * a pin of one granule is a pin of all. Therefore it has one owner, from the
 * first granule allocated in it to the last one given back: requests take
 * whole folios, of which they leave the tail free, and smaller ones first look
 * into the folios with room that their context has already. A folio that is one
 * buffer's alone, all of it, needs no owner: only that buffer can give it back. So
 * a run costs the same however many it has.
 *
 * Folios that are free for anybody are kept in an allocator of their own
 * (accmem_carveout.whole), in which a granule stands for a folio. One that the
 * scrubber has a part of is not among them.
 *
 * Locks: everything here is under the carveout's lock, except for
 * accmem_folio_settle(), which takes the folio lock.
 */
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/pagemap.h>
#include <linux/slab.h>

#include "accmem_drv.h"

#define SCAN_MAX 4096 /* folios looked at for one request */

/* one folio, as a size in accmem_carveout.whole */
#define WHOLE ACCMEM_GRANULE
#define WHOLE_SHIFT (ACCMEM_FOLIO_SHIFT - ACCMEM_GRANULE_SHIFT)

/**
 * accmem_folio_init() - all folios of a carveout are free
 * @cv: the carveout; its capacity is a multiple of 2 MiB, and its space is made
 *
 * Return: 0, -ENOMEM.
 */
int accmem_folio_init(struct accmem_carveout *cv)
{
	u64 i, nr = cv->capacity >> ACCMEM_FOLIO_SHIFT;

	cv->folios = kvcalloc(nr, sizeof(*cv->folios), GFP_KERNEL);
	cv->whole_meta = kvzalloc(accmem_buddy_meta_size(nr * WHOLE),
				  GFP_KERNEL);
	if (!cv->folios || !cv->whole_meta)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		INIT_LIST_HEAD(&cv->folios[i].link);
	/* each request of it names its folio: blocks would wait for nobody */
	accmem_buddy_set_cache(&cv->buddy, false);
	return accmem_buddy_init(&cv->whole, nr * WHOLE, cv->whole_meta);
}

/* exactly the granules [@start, @start + @size), which are free */
static int take_exactly(struct accmem_buddy *buddy, u64 start, u64 size)
{
	struct accmem_buddy_request req = {
		.size = size,
		.align = ACCMEM_GRANULE,
		.start = start,
		.end = start + size,
	};
	u64 offset;

	return accmem_buddy_alloc(buddy, &req, &offset);
}

static void give_whole(struct accmem_carveout *cv, u64 first, u64 nr)
{
	if (nr)
		WARN_ON_ONCE(accmem_buddy_free(&cv->whole, first * WHOLE,
					       nr * WHOLE));
}

static u64 folio_start(struct accmem_carveout *cv, struct accmem_folio *f)
{
	return (u64)(f - cv->folios) << ACCMEM_FOLIO_SHIFT;
}

/* longest free run within a folio, in granules */
static u16 longest_run(struct accmem_carveout *cv, struct accmem_folio *f)
{
	u64 at = folio_start(cv, f), end = at + ACCMEM_FOLIO, longest = 0;
	struct accmem_run run;

	while (at < end && accmem_buddy_next_free(&cv->buddy, at, &run) &&
	       run.start < end) {
		u64 stop = min(run.start + run.size, end);

		longest = max(longest, stop - run.start);
		at = stop;
	}
	return longest >> ACCMEM_GRANULE_SHIFT;
}

/* after any change in an owned folio: the list that it belongs to */
static void file_folio(struct accmem_carveout *cv, struct accmem_folio *f)
{
	list_del_init(&f->link);
	f->run = longest_run(cv, f);
	if (f->run)
		list_add(&f->link, &f->owner->partial[ilog2(f->run)]);
}

/*
 * Granules that a run has of the folio in which it ends, where that is not its alone.
 * A run of less than a folio lies in one, any other begins where one does.
 */
static u16 rest_of(u64 size)
{
	return (size & (ACCMEM_FOLIO - 1)) >> ACCMEM_GRANULE_SHIFT;
}

static struct accmem_folio *last_folio(struct accmem_carveout *cv, u64 offset,
				       u64 size)
{
	return &cv->folios[(offset + size - 1) >> ACCMEM_FOLIO_SHIFT];
}

static void own(struct accmem_carveout *cv, struct accmem_context *ctx,
		u64 offset, u64 size)
{
	struct accmem_folio *f = last_folio(cv, offset, size);

	if (!rest_of(size))
		return;
	WARN_ON_ONCE(f->owner && f->owner != ctx);
	f->owner = ctx;
	f->used += rest_of(size);
	file_folio(cv, f);
}

/* Is the folio that it shared with others free for anybody now? */
static bool disown(struct accmem_carveout *cv, u64 offset, u64 size)
{
	struct accmem_folio *f = last_folio(cv, offset, size);

	if (!rest_of(size))
		return false;
	f->used -= rest_of(size);
	if (f->used) {
		file_folio(cv, f);
		return false;
	}
	list_del_init(&f->link);
	f->owner = NULL;
	return !f->scrubbed;
}

/* from a folio that @ctx has already */
static int take_partial(struct accmem_carveout *cv, struct accmem_context *ctx,
			const struct accmem_buddy_request *want, u64 *offset)
{
	unsigned int granules = want->size >> ACCMEM_GRANULE_SHIFT;
	struct accmem_buddy_request req = *want;
	unsigned int i, scanned = 0;
	struct accmem_folio *f;

	for (i = ilog2(granules); i < ACCMEM_FOLIO_CLASSES; i++) {
		list_for_each_entry(f, &ctx->partial[i], link) {
			if (++scanned > SCAN_MAX)
				return -ENOSPC;
			if (f->run < granules)
				continue;
			req.start = folio_start(cv, f);
			req.end = req.start + ACCMEM_FOLIO;
			if (!accmem_buddy_alloc(&cv->buddy, &req, offset))
				return 0;
		}
	}
	return -ENOSPC;
}

/* from folios that are nobody's */
static int take_whole(struct accmem_carveout *cv,
		      const struct accmem_buddy_request *want, u64 *offset)
{
	u64 size = round_up(want->size, ACCMEM_FOLIO);
	struct accmem_buddy_request req = {
		.size = size >> WHOLE_SHIFT,
		.align = max(want->align >> WHOLE_SHIFT, WHOLE),
		.flags = want->flags,
	};
	int err;

	err = accmem_buddy_alloc(&cv->whole, &req, offset);
	if (err)
		return err;
	*offset <<= WHOLE_SHIFT;
	err = take_exactly(&cv->buddy, *offset, want->size);
	if (WARN_ON_ONCE(err))
		give_whole(cv, *offset >> ACCMEM_FOLIO_SHIFT,
			   size >> ACCMEM_FOLIO_SHIFT);
	return err;
}

/**
 * accmem_folio_take() - one run, in folios of the context or in free ones
 * @cv: the carveout
 * @ctx: the context
 * @want: size, alignment and flags
 * @offset: out: where
 *
 * Return: 0, -ENOSPC.
 */
int accmem_folio_take(struct accmem_carveout *cv, struct accmem_context *ctx,
		      const struct accmem_buddy_request *want, u64 *offset)
{
	int err = -ENOSPC;

	lockdep_assert_held(&cv->lock);
	if (want->size < ACCMEM_FOLIO && want->align < ACCMEM_FOLIO)
		err = take_partial(cv, ctx, want, offset);
	if (err)
		err = take_whole(cv, want, offset);
	if (!err)
		own(cv, ctx, *offset, want->size);
	return err;
}

/**
 * accmem_folio_give() - note that granules were given back
 * @cv: the carveout
 * @offset: where, after the allocator was told
 * @size: bytes
 */
void accmem_folio_give(struct accmem_carveout *cv, u64 offset, u64 size)
{
	u64 first = offset >> ACCMEM_FOLIO_SHIFT;
	u64 nr = size >> ACCMEM_FOLIO_SHIFT;

	lockdep_assert_held(&cv->lock);
	nr += disown(cv, offset, size);
	give_whole(cv, first, nr);
}

/**
 * accmem_folio_scrub_begin() - the scrubber took free granules
 * @cv: the carveout
 * @offset: where, after the allocator was asked
 * @size: bytes
 */
void accmem_folio_scrub_begin(struct accmem_carveout *cv, u64 offset, u64 size)
{
	u64 i;

	lockdep_assert_held(&cv->lock);
	for (i = offset >> ACCMEM_FOLIO_SHIFT;
	     i <= (offset + size - 1) >> ACCMEM_FOLIO_SHIFT; i++) {
		cv->folios[i].scrubbed = true;
		if (!cv->folios[i].owner)
			WARN_ON_ONCE(take_exactly(&cv->whole, i * WHOLE,
						  WHOLE));
	}
}

/**
 * accmem_folio_scrub_end() - the scrubber gave them back
 * @cv: the carveout
 * @offset: where, after the allocator was told
 * @size: bytes
 */
void accmem_folio_scrub_end(struct accmem_carveout *cv, u64 offset, u64 size)
{
	u64 i;

	lockdep_assert_held(&cv->lock);
	for (i = offset >> ACCMEM_FOLIO_SHIFT;
	     i <= (offset + size - 1) >> ACCMEM_FOLIO_SHIFT; i++) {
		cv->folios[i].scrubbed = false;
		if (cv->folios[i].owner)
			file_folio(cv, &cv->folios[i]);
		else
			give_whole(cv, i, 1);
	}
}

/**
 * accmem_folio_largest_run() - what one request of a context could get
 * @cv: the carveout
 * @ctx: the context
 *
 * Return: bytes.
 */
u64 accmem_folio_largest_run(struct accmem_carveout *cv,
			     struct accmem_context *ctx)
{
	u64 whole = accmem_buddy_largest_run(&cv->whole, WHOLE);
	unsigned int scanned = 0;
	struct accmem_folio *f;
	u16 longest = 0;
	int i;

	lockdep_assert_held(&cv->lock);
	if (whole)
		return whole << WHOLE_SHIFT;
	for (i = ACCMEM_FOLIO_CLASSES - 1; i >= 0 && !longest; i--) {
		list_for_each_entry(f, &ctx->partial[i], link) {
			if (++scanned > SCAN_MAX)
				break;
			longest = max(longest, f->run);
		}
	}
	return (u64)longest << ACCMEM_GRANULE_SHIFT;
}

/* does the folio at @at hold anything but @buf? */
static bool has_neighbours(struct accmem_buffer *buf, u64 at)
{
	struct accmem_carveout *cv = buf->cv;
	u64 from = max(at, buf->run.start);
	u64 to = min(at + ACCMEM_FOLIO, buf->run.start + buf->run.size);
	bool has;

	accmem_carveout_lock(cv);
	has = cv->folios[at >> ACCMEM_FOLIO_SHIFT].used >
	      (to - from) >> ACCMEM_GRANULE_SHIFT;
	accmem_carveout_unlock(cv);
	return has;
}

/**
 * accmem_folio_settle_shared() - is a folio pinned? at the price of its mappings
 * @cv: the carveout
 * @folio: the folio
 * @offset: its mmap offset
 * @size: its size
 *
 * With the mappings down, and new faults waiting for the folio lock, a
 * reference beyond ours is a pin. A fault that waits holds one too: then the
 * answer is yes, and the question will be asked again.
 *
 * Return: whether it has no reference but ours.
 */
bool accmem_folio_settle_shared(struct accmem_carveout *cv, struct folio *folio,
				u64 offset, u64 size)
{
	bool settled;

	folio_lock(folio);
	unmap_mapping_range(cv->inode->i_mapping, offset, size, 1);
	settled = folio_ref_count(folio) == 1;
	folio_unlock(folio);
	return settled;
}

/* Is a folio with a reference beyond ours pinned? Asked once in a pass. */
static bool settle_folio(struct accmem_buffer *buf, struct folio *folio, u64 at)
{
	struct accmem_carveout *cv = buf->cv;
	struct accmem_folio *f = &cv->folios[at >> ACCMEM_FOLIO_SHIFT];

	lockdep_assert_held(&cv->settle_lock);
	if (f->pinned == cv->settle_pass)
		return false;
	if (has_neighbours(buf, at) &&
	    accmem_folio_settle_shared(cv, folio, at, ACCMEM_FOLIO))
		return true;
	f->pinned = cv->settle_pass;
	return false;
}

/**
 * accmem_folio_settle() - has a buffer's memory no reference but ours?
 * @buf: the buffer, which has no mapping any more
 * @force: take down its neighbours' mappings where they hide the answer; they
 *	belong to the same context, and come back by a fault
 *
 * A reference that a page table walker takes for an instant, without a mapping
 * to find the page by, gives no access; so once the count was one it stays
 * harmless.
 *
 * Return: true if so. False may turn into true later without notice.
 */
bool accmem_folio_settle(struct accmem_buffer *buf, bool force)
{
	struct accmem_carveout *cv = buf->cv;
	u64 at = round_down(buf->run.start, ACCMEM_FOLIO);
	u64 end = buf->run.start + buf->run.size;

	for (; at < end; at += ACCMEM_FOLIO) {
		struct folio *folio =
			page_folio(pfn_to_page(PHYS_PFN(cv->phys + at)));

		if (folio_ref_count(folio) == 1)
			continue;
		if (!force || !settle_folio(buf, folio, at))
			return false;
	}
	return true;
}
