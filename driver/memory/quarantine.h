/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Quarantined memory: freed memory whose pages are still pinned.
 */
#ifndef ACCMEM_MEMORY_QUARANTINE_H
#define ACCMEM_MEMORY_QUARANTINE_H

#include <linux/types.h>

struct accmem_account;
struct accmem_carveout;
struct accmem_memory;

void accmem_reap_init(struct accmem_carveout *cv);
void accmem_reap_stop(struct accmem_carveout *cv);
void accmem_reap_some(struct accmem_carveout *cv, unsigned int most);
void accmem_reap_many(struct accmem_carveout *cv, unsigned int most);
void accmem_reap_own(struct accmem_carveout *cv,
		     struct accmem_account *account);
bool accmem_reap_is_idle(struct accmem_memory *mem);

#endif /* ACCMEM_MEMORY_QUARANTINE_H */
