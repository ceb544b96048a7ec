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
 * To find a pin, the mappings of a folio are removed, which takes longer the more there
 * are. Only the account of the folio can make it long, so no lock of others is held
 * meanwhile. The chunk records the result for all quarantined memory in the folio, and the
 * time: the next removal comes after PINS_REST times the duration of the last one, but
 * after PINS_REST_MAX at the latest.
 *
 * Locking: folio lock > the carveout's lock.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "core/carveout.h"
#include "internal.h"

#define PINS_REST 16u
#define PINS_REST_MAX (250 * NSEC_PER_MSEC)

static struct folio *pins_folio_at(const struct accmem_carveout *cv, u64 at)
{
	return page_folio(pfn_to_page(PHYS_PFN(accmem_phys_at(cv, at))));
}

/* Return true if granules outside @bo are in use in the folio at @at. */
static bool pins_folio_is_shared(struct accmem_bo *bo, u64 at)
{
	struct accmem_carveout *cv = bo->cv;
	u64 from = max(at, bo->run.start);
	u64 to = min(at + ACCMEM_FOLIO, bo->run.start + bo->run.size);

	lockdep_assert_held(&cv->lock);
	return accmem_buddy_folio_used(&cv->buddy, at) > (to - from) >>
	       ACCMEM_GRANULE_SHIFT;
}

/*
 * Unmap the folio and compare its count. New faults wait for the folio lock without a
 * reference, so that a reference beyond the driver's is a pin. The result may be
 * false without a pin: if two faults on one page race, the second may hold its
 * reference for a moment after the first has mapped the page. This is safe, since the
 * caller checks the folio again later.
 */
static bool pins_folio_unmap(struct accmem_carveout *cv,
			     struct accmem_account *account,
			     struct folio *folio, u64 at)
{
	struct file *file = READ_ONCE(account->file);

	if (file)
		unmap_mapping_range(file->f_mapping,
				    accmem_carveout_mmap_base(cv) + at,
				    ACCMEM_FOLIO, 1);
	return folio_ref_count(folio) == 1;
}

/**
 * accmem_pins_unmap() - remove the mappings of a folio, and record whether it has pins
 * @cv: the carveout
 * @account: an account that had memory in the folio; if the folio belongs to another
 *	account by now, nothing is removed, and the count tells
 * @at: offset of the folio
 *
 * Context: Process context. Takes and releases the folio lock and the carveout's lock.
 * May sleep.
 */
void accmem_pins_unmap(struct accmem_carveout *cv,
		       struct accmem_account *account, u64 at)
{
	struct accmem_chunk *chunk = &cv->chunks[accmem_chunk_index(at)];
	struct folio *folio = pins_folio_at(cv, at);
	u64 last, end, start;
	bool idle, rests;

	folio_lock(folio);
	start = ktime_get_ns();
	accmem_carveout_lock(cv);
	/* Memory that is quarantined from here on may have pins that the count misses. */
	last = cv->quarantine.last;
	/* Another task may have done it while this one waited for the folio. */
	rests = chunk->next_check > start;
	accmem_carveout_unlock(cv);
	if (!rests) {
		idle = pins_folio_unmap(cv, account, folio, at);
		end = ktime_get_ns();
		accmem_carveout_lock(cv);
		if (idle)
			chunk->idle_before = last;
		chunk->checked = end;
		chunk->next_check = end + min_t(u64, PINS_REST * (end - start),
						PINS_REST_MAX);
		accmem_carveout_unlock(cv);
	}
	folio_unlock(folio);
}

/*
 * Has a quarantined bo no pins in a chunk? Since nothing maps it any more, it has none
 * if the folio had none at any time after it was quarantined.
 */
static bool pins_chunk_is_idle(struct accmem_bo *bo, u64 at)
{
	struct accmem_carveout *cv = bo->cv;
	bool idle;

	/* Written once, before the bo was added to the lists on which the caller found it. */
	if (!bo->quarantined)
		return false;
	accmem_carveout_lock(cv);
	idle = bo->quarantined <=
	       cv->chunks[accmem_chunk_index(at)].idle_before;
	accmem_carveout_unlock(cv);
	return idle;
}

/* Check a folio of a bo in use that has more references than the driver's. */
static bool pins_folio_is_idle_in_use(struct accmem_bo *bo, struct folio *folio,
				      u64 at)
{
	struct accmem_carveout *cv = bo->cv;
	bool shared, idle;

	accmem_carveout_lock(cv);
	shared = pins_folio_is_shared(bo, at);
	accmem_carveout_unlock(cv);
	if (!shared)
		return false;
	folio_lock(folio);
	idle = pins_folio_unmap(cv, bo->account, folio, at);
	folio_unlock(folio);
	return idle;
}

/**
 * accmem_pins_is_idle() - check the folios of a buffer object for pins
 * @bo: the buffer object, one run of a carveout with page structures
 * @check: ACCMEM_IDLE_COUNT compares the counts, so that a mapping of a neighbour looks
 *	like a pin, unless accmem_pins_unmap() has found that there is none.
 *	ACCMEM_IDLE_IN_USE unmaps neighbours that hide the answer: they belong to the
 *	same account, and faults map them again.
 *
 * Once the count of a folio was one, a page table walker may still get a reference for
 * an instant. The walker gets no access, since no mapping leads to the page.
 *
 * Context: ACCMEM_IDLE_COUNT: does not sleep; takes and releases the carveout's lock.
 * Else process context; takes and releases folio locks and the carveout's lock.
 * Return: true if only the driver has references.
 */
bool accmem_pins_is_idle(struct accmem_bo *bo, enum accmem_idle_check check)
{
	u64 at = round_down(bo->run.start, ACCMEM_FOLIO);
	u64 end = bo->run.start + bo->run.size;

	for (; at < end; at += ACCMEM_FOLIO) {
		struct folio *folio = pins_folio_at(bo->cv, at);

		if (check == ACCMEM_IDLE_IN_USE)
			cond_resched();
		if (folio_ref_count(folio) == 1)
			continue;
		if (check == ACCMEM_IDLE_IN_USE ?
			    !pins_folio_is_idle_in_use(bo, folio, at) :
			    !pins_chunk_is_idle(bo, at))
			return false;
	}
	return true;
}

/*
 * Is a folio one for accmem_pins_unmap()? Not if it was checked since @since, or if all
 * its granules in use are those of @bo: the references are pins then.
 */
static bool pins_folio_is_hidden(struct accmem_bo *bo, u64 at, u64 since,
				 struct accmem_hidden *hidden)
{
	struct accmem_carveout *cv = bo->cv;
	struct accmem_chunk *chunk = &cv->chunks[accmem_chunk_index(at)];
	u64 now = ktime_get_ns();
	bool is_hidden;

	accmem_carveout_lock(cv);
	is_hidden = chunk->checked < since && pins_folio_is_shared(bo, at);
	hidden->at = at;
	hidden->wait_ns = chunk->next_check > now ? chunk->next_check - now : 0;
	accmem_carveout_unlock(cv);
	return is_hidden;
}

/**
 * accmem_pins_is_hidden() - find a folio whose mappings hide the pins of a bo
 * @bo: the buffer object, which is quarantined and not idle
 * @since: time in ns; folios that were checked since then are left out
 * @hidden: out: the folio
 *
 * Only the folios at both ends can have neighbours.
 *
 * Context: Process context. Takes and releases the carveout's lock. Does not sleep.
 * Return: false if there is none, so that @bo is pinned.
 */
bool accmem_pins_is_hidden(struct accmem_bo *bo, u64 since,
			   struct accmem_hidden *hidden)
{
	u64 first = round_down(bo->run.start, ACCMEM_FOLIO);
	u64 last = round_down(bo->run.start + bo->run.size - 1, ACCMEM_FOLIO);

	return pins_folio_is_hidden(bo, first, since, hidden) ||
	       (last != first && pins_folio_is_hidden(bo, last, since, hidden));
}
