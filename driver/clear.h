/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clearing: which memory may hold something, and the cleaner.
 */
#ifndef ACCMEM_CLEAR_H
#define ACCMEM_CLEAR_H

#include <linux/types.h>

struct accmem_carveout;
struct accmem_run;

void accmem_clear_init(struct accmem_carveout *cv);
void accmem_clear_stop(struct accmem_carveout *cv);
void accmem_clear_kick(struct accmem_carveout *cv, bool touched);
unsigned int accmem_clear_pause(struct accmem_carveout *cv);
unsigned int accmem_clear_pause_to_look(struct accmem_carveout *cv);
bool accmem_clear_hid(struct accmem_carveout *cv, unsigned int seq);
bool accmem_clear_is_busy(struct accmem_carveout *cv);
void accmem_clear_resume(struct accmem_carveout *cv);
void accmem_clear_looked(struct accmem_carveout *cv);
void accmem_clear_claim(struct accmem_carveout *cv,
			const struct accmem_run *run, u64 account);
bool accmem_clear_next(struct accmem_carveout *cv, u64 offset, u64 size,
		       struct accmem_run *run);
void accmem_clear_done(struct accmem_carveout *cv, const struct accmem_run *run,
		       bool helped);
void accmem_clear_touch(struct accmem_carveout *cv,
			const struct accmem_run *run);
void accmem_clear_release_units(struct accmem_carveout *cv,
				const struct accmem_run *run, u64 account,
				bool mapped);
void accmem_clear_release(struct accmem_carveout *cv,
			  const struct accmem_run *run, u64 account);

#endif /* ACCMEM_CLEAR_H */
