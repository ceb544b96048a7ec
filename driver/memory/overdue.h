/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Overdue memory: its free has been pending for too long.
 */
#ifndef ACCMEM_MEMORY_OVERDUE_H
#define ACCMEM_MEMORY_OVERDUE_H

struct accmem_carveout;

void accmem_overdue_init(struct accmem_carveout *cv);
void accmem_overdue_stop(struct accmem_carveout *cv);

#endif /* ACCMEM_MEMORY_OVERDUE_H */
