/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory whose free has been pending for too long.
 */
#ifndef ACCMEM_OVERDUE_H
#define ACCMEM_OVERDUE_H

struct accmem_carveout;

void accmem_overdue_init(struct accmem_carveout *cv);
void accmem_overdue_stop(struct accmem_carveout *cv);
void accmem_overdue_watch(struct accmem_carveout *cv);

#endif /* ACCMEM_OVERDUE_H */
