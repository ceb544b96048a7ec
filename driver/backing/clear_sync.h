/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clearing by the request that gets dirty memory.
 */
#ifndef ACCMEM_CLEAR_LATE_H
#define ACCMEM_CLEAR_LATE_H

struct accmem_memory;
struct accmem_run;

/* clears a run of a memory; on several processors at once, never the same run */
typedef void (*accmem_clear_run_fn)(struct accmem_memory *mem,
				    const struct accmem_run *run);

int accmem_clear_late(struct accmem_memory *mem, const struct accmem_run *run,
		      accmem_clear_run_fn clear);

#endif /* ACCMEM_CLEAR_LATE_H */
