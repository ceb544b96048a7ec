/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clearing: dirty memory is zeroed before another account gets it.
 *
 * The backings and the allocator mark memory dirty or clean with the functions here.
 * accmem_clear_pause() and accmem_clear_block() stop the cleaner while a task searches
 * or counts free memory. clear.c describes the rules.
 */
#ifndef ACCMEM_MEMORY_CLEAR_H
#define ACCMEM_MEMORY_CLEAR_H

#include <linux/types.h>

struct accmem_carveout;
struct accmem_run;

void accmem_clear_init(struct accmem_carveout *cv);
void accmem_clear_end(struct accmem_carveout *cv);
void accmem_clear_stop(struct accmem_carveout *cv);
void accmem_clear_forget(struct accmem_carveout *cv);
void accmem_clear_kick(struct accmem_carveout *cv, bool touched);
unsigned int accmem_clear_pause(struct accmem_carveout *cv);
unsigned int accmem_clear_block(struct accmem_carveout *cv);
bool accmem_clear_took_chunk_since(struct accmem_carveout *cv,
				   unsigned int seq);
bool accmem_clear_is_busy(struct accmem_carveout *cv);
void accmem_clear_resume(struct accmem_carveout *cv);
void accmem_clear_unblock(struct accmem_carveout *cv);
void accmem_clear_invalidate_others(struct accmem_carveout *cv,
				    const struct accmem_run *run, u64 account);
bool accmem_clear_next(struct accmem_carveout *cv, u64 offset, u64 size,
		       struct accmem_run *run);
void accmem_clear_done(struct accmem_carveout *cv, const struct accmem_run *run,
		       bool helped);
void accmem_clear_mark_dirty(struct accmem_carveout *cv,
			     const struct accmem_run *run);

#endif /* ACCMEM_MEMORY_CLEAR_H */
