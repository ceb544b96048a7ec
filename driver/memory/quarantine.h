/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Quarantine: freed memory whose pages are still pinned.
 *
 * accmem_bo_put() puts the buffer object on the carveout's list. A worker and the
 * functions here scan the list and free each buffer object whose pins are gone.
 */
#ifndef ACCMEM_MEMORY_QUARANTINE_H
#define ACCMEM_MEMORY_QUARANTINE_H

#include <linux/types.h>

struct accmem_account;
struct accmem_carveout;
struct accmem_bo;

void accmem_quarantine_init(struct accmem_carveout *cv);
void accmem_quarantine_stop(struct accmem_carveout *cv);
void accmem_quarantine_scan(struct accmem_carveout *cv, unsigned int most);
void accmem_quarantine_scan_unbounded(struct accmem_carveout *cv,
				      unsigned int most);
void accmem_quarantine_scan_account(struct accmem_carveout *cv,
				    struct accmem_account *account);
bool accmem_quarantine_is_idle(struct accmem_bo *bo);

#endif /* ACCMEM_MEMORY_QUARANTINE_H */
