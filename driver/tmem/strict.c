// SPDX-License-Identifier: GPL-2.0
/*
 * Strict mode: what would not survive on hardware is counted, traced and reported.
 *
 * The arbiter finds it (lib/columns/strict.c). What it has found of a CTA is
 * noted under the lock when the call that it was found in ends, and reported once
 * the lock is free.
 *
 * Locks: accmem_tmem.lock.
 */
#include "internal.h"
#include "trace/tmem_trace.h"

/**
 * accmem_cta_note_hazards() - count and trace what was found of a CTA
 * @cta: the CTA, whose call ends, or which exits
 */
void accmem_cta_note_hazards(struct accmem_cta *cta)
{
	u32 hazards, hazard;

	lockdep_assert_held(&cta->tmem->lock);
	hazards = accmem_columns_take_hazards(&cta->c);
	for (hazard = 1; hazard <= hazards; hazard <<= 1) {
		if (!(hazards & hazard))
			continue;
		accmem_tmem_count(cta, ACCMEM_STAT(strict));
		trace_accmem_tmem_strict(cta, hazard);
	}
	/* read without the lock, for a message */
	WRITE_ONCE(cta->permit_owner, cta->c.keeper);
	atomic_or(hazards, &cta->found);
}

/**
 * accmem_cta_report_hazards() - say what was found of a CTA, once
 * @cta: the CTA
 */
void accmem_cta_report_hazards(struct accmem_cta *cta)
{
	u32 found = atomic_xchg(&cta->found, 0);

	if (found)
		accmem_tmem_report_strict(cta, found,
					  READ_ONCE(cta->permit_owner));
}
