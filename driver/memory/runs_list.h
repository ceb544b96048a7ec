/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lists of runs, for debugfs.
 */
#ifndef ACCMEM_MEMORY_RUNS_LIST_H
#define ACCMEM_MEMORY_RUNS_LIST_H

#include <linux/types.h>

struct accmem_bo;
struct accmem_carveout;
struct accmem_run_line;

unsigned int accmem_bo_list_runs(struct accmem_bo *bo, unsigned int first,
				 struct accmem_run_line *lines,
				 unsigned int max, bool *end);
unsigned int accmem_unnamed_list_runs(struct accmem_carveout *cv, u64 *start,
				      unsigned int *first,
				      struct accmem_run_line *lines,
				      unsigned int max);

#endif /* ACCMEM_MEMORY_RUNS_LIST_H */
