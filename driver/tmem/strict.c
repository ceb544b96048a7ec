// SPDX-License-Identifier: GPL-2.0
/*
 * Strict mode: hazards are counted, traced and reported.
 *
 * A hazard is a call that works here, but would not on hardware. The arbiter finds
 * hazards (lib/columns/strict.c). When a call ends, accmem_cta_note_hazards() records
 * its hazards in the CTA under the lock. accmem_cta_report_hazards() prints the
 * recorded hazards after the lock is dropped.
 *
 * Locking: accmem_tmem.lock. accmem_cta.found is atomic.
 */
#include "internal.h"
#include "trace/tmem_trace.h"

/**
 * accmem_cta_note_hazards() - count, trace and record the hazards of a CTA
 * @cta: the CTA, whose call ends or which exits
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_note_hazards(struct accmem_cta *cta)
{
	u32 hazards, hazard;

	lockdep_assert_held(&cta->tmem->lock);
	hazards = accmem_columns_collect_hazards(&cta->c);
	for (hazard = 1; hazard <= hazards; hazard <<= 1) {
		if (!(hazards & hazard))
			continue;
		accmem_tmem_count(cta, ACCMEM_STAT(strict));
		trace_accmem_tmem_strict(cta, hazard);
	}
	/* accmem_cta_report_hazards() reads the value without the lock. */
	WRITE_ONCE(cta->permit_owner, cta->c.permit_owner);
	atomic_or(hazards, &cta->found);
}

/**
 * accmem_cta_report_hazards() - print the recorded hazards of a CTA, once
 * @cta: the CTA
 *
 * Context: Process context. Takes no lock. Does not sleep.
 */
void accmem_cta_report_hazards(struct accmem_cta *cta)
{
	u32 found = atomic_xchg(&cta->found, 0);

	if (found)
		accmem_tmem_report_strict(cta, found,
					  READ_ONCE(cta->permit_owner));
}
