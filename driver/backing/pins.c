// SPDX-License-Identifier: GPL-2.0
/*
 * Pin checks: the references to the folios of a carveout.
 *
 * A folio of 2 MiB has one reference count for all its granules. The count is one for
 * the driver, plus one for each page table entry, plus one for each pin. A mapping of
 * any granule therefore hides a pin of another granule. A folio belongs to one account
 * while any granule of it is in use, so that the mappings that hide a pin belong to
 * the same account.
 *
 * Locking: quarantine.lock > folio lock > the carveout's lock.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "core/carveout.h"
#include "internal.h"

static struct folio *pins_folio_at(struct accmem_bo *bo, u64 at)
{
	return page_folio(pfn_to_page(PHYS_PFN(accmem_phys_at(bo->cv, at))));
}

/* Return true if granules outside @bo are in use in the folio at @at. */
static bool pins_folio_is_shared(struct accmem_bo *bo, u64 at)
{
	struct accmem_carveout *cv = bo->cv;
	u64 from = max(at, bo->run.start);
	u64 to = min(at + ACCMEM_FOLIO, bo->run.start + bo->run.size);
	bool shared;

	accmem_carveout_lock(cv);
	shared = accmem_buddy_folio_used(&cv->buddy, at) > (to - from) >>
		 ACCMEM_GRANULE_SHIFT;
	accmem_carveout_unlock(cv);
	return shared;
}

/*
 * Unmap the folio and compare its count. New faults wait for the folio lock without a
 * reference, so that a reference beyond the driver's is a pin. The result may be
 * false without a pin: if two faults on one page race, the second may hold its
 * reference for a moment after the first has mapped the page. This is safe, since the
 * caller checks the folio again in a later pass.
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

/* Check a folio that has more references than the driver's, once in a pass. */
static bool pins_folio_unmap_and_check(struct accmem_bo *bo,
				       struct folio *folio, u64 at)
{
	struct accmem_carveout *cv = bo->cv;
	struct accmem_chunk *chunk = &cv->chunks[accmem_chunk_index(at)];

	lockdep_assert_held(&cv->quarantine.lock);
	if (chunk->pinned == cv->quarantine.pass)
		return false;
	if (pins_folio_is_shared(bo, at) && pins_folio_unmap(bo, folio, at))
		return true;
	chunk->pinned = cv->quarantine.pass;
	return false;
}

/**
 * accmem_pins_is_idle() - check the folios of a buffer object for pins
 * @bo: the buffer object, one run of a carveout with page structures
 * @check: ACCMEM_IDLE_COUNT compares the counts, so that a mapping of a neighbour looks
 *	like a pin. The other checks unmap neighbours that hide the answer: they belong
 *	to the same account, and faults map them again.
 *
 * Once the count of a folio was one, a page table walker may still get a reference for
 * an instant. The walker gets no access, since no mapping leads to the page.
 *
 * Context: ACCMEM_IDLE_COUNT: any, does not sleep. Else process context, with
 * quarantine.lock held; takes and releases folio locks and the carveout's lock.
 * Return: true if only the driver has references.
 */
bool accmem_pins_is_idle(struct accmem_bo *bo, enum accmem_idle_check check)
{
	u64 at = round_down(bo->run.start, ACCMEM_FOLIO);
	u64 end = bo->run.start + bo->run.size;

	for (; at < end; at += ACCMEM_FOLIO) {
		struct folio *folio = pins_folio_at(bo, at);

		if (check != ACCMEM_IDLE_COUNT)
			cond_resched();
		if (folio_ref_count(folio) == 1)
			continue;
		if (check == ACCMEM_IDLE_COUNT ||
		    !pins_folio_unmap_and_check(bo, folio, at))
			return false;
	}
	return true;
}
