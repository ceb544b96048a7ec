// SPDX-License-Identifier: GPL-2.0
/*
 * Pins of a carveout's compound pages.
 *
 * A compound page (2 MiB) has one reference count for all of its granules: ours,
 * one for each entry of a page table, and one for each pin. So it belongs to one
 * account while anything in it is in use, and what hides a pin is a mapping of
 * that account's.
 *
 * Locks: quarantine_lock > folio lock > the carveout's lock.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "core/carveout.h"
#include "internal.h"

static struct folio *pins_folio_at(struct accmem_bo *bo, u64 at)
{
	return page_folio(pfn_to_page(PHYS_PFN(bo->cv->phys + at)));
}

/* does the folio at @at hold anything but @bo? */
static bool pins_folio_is_shared(struct accmem_bo *bo, u64 at)
{
	struct accmem_carveout *cv = bo->cv;
	u64 from = max(at, bo->run.start);
	u64 to = min(at + ACCMEM_FOLIO, bo->run.start + bo->run.size);
	bool shared;

	accmem_carveout_lock(cv);
	shared = accmem_buddy_unit_used(&cv->buddy, at) >
		 (to - from) >> ACCMEM_GRANULE_SHIFT;
	accmem_carveout_unlock(cv);
	return shared;
}

/*
 * With the mappings down, and new faults waiting for the folio lock, a
 * reference beyond ours is a pin. A fault that came too late, for another has shown
 * the page, drops its own after the lock: then the answer is yes, and the question
 * will be asked again.
 */
static bool pins_folio_unmap(struct accmem_bo *bo, struct folio *folio, u64 at)
{
	struct file *file = READ_ONCE(bo->account->file);
	bool idle;

	folio_lock(folio);
	if (file)
		unmap_mapping_range(file->f_mapping,
				    accmem_carveout_mmap_base(bo->cv) + at,
				    ACCMEM_FOLIO, 1);
	idle = folio_ref_count(folio) == 1;
	folio_unlock(folio);
	return idle;
}

/* Is a folio with a reference beyond ours free of pins? Asked once in a pass. */
static bool pins_folio_unmap_and_check(struct accmem_bo *bo,
				       struct folio *folio, u64 at)
{
	struct accmem_carveout *cv = bo->cv;
	struct accmem_chunk *unit = &cv->units[accmem_chunk_index(at)];

	lockdep_assert_held(&cv->quarantine_lock);
	if (unit->pinned == cv->quarantine_pass)
		return false;
	if (pins_folio_is_shared(bo, at) && pins_folio_unmap(bo, folio, at))
		return true;
	unit->pinned = cv->quarantine_pass;
	return false;
}

/**
 * accmem_pins_check() - has nobody but us a reference to the pages?
 * @bo: one run of a carveout with page structures
 *
 * A reference that a page table walker takes for an instant, without a mapping
 * to find the page by, gives no access; so once the count was one it stays
 * harmless.
 *
 * Return: true if so. A neighbour's mapping makes it false.
 */
bool accmem_pins_check(struct accmem_bo *bo)
{
	u64 at = round_down(bo->run.start, ACCMEM_FOLIO);
	u64 end = bo->run.start + bo->run.size;

	for (; at < end; at += ACCMEM_FOLIO) {
		if (folio_ref_count(pins_folio_at(bo, at)) != 1)
			return false;
	}
	return true;
}

/**
 * accmem_pins_unmap_and_check() - find out whether pages are pinned
 * @bo: one run of a carveout with page structures, without mappings. quarantine_lock
 *	is held.
 *
 * Takes down its neighbours' mappings where they hide the answer; they belong
 * to the same account, and come back by a fault.
 *
 * Return: true if nobody but us has a reference.
 */
bool accmem_pins_unmap_and_check(struct accmem_bo *bo)
{
	u64 at = round_down(bo->run.start, ACCMEM_FOLIO);
	u64 end = bo->run.start + bo->run.size;

	for (; at < end; at += ACCMEM_FOLIO) {
		struct folio *folio = pins_folio_at(bo, at);

		if (folio_ref_count(folio) != 1 &&
		    !pins_folio_unmap_and_check(bo, folio, at))
			return false;
		cond_resched();
	}
	return true;
}
