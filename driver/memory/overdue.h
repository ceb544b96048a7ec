/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Overdue memory: pending memory whose dependency does not signal.
 *
 * Each carveout has a work item that checks its pending memory (overdue.c).
 */
#ifndef ACCMEM_MEMORY_OVERDUE_H
#define ACCMEM_MEMORY_OVERDUE_H

struct accmem_carveout;

void accmem_overdue_init(struct accmem_carveout *cv);
void accmem_overdue_stop(struct accmem_carveout *cv);

#endif /* ACCMEM_MEMORY_OVERDUE_H */
