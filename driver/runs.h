/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Runs: where in its carveout a memory is.
 */
#ifndef ACCMEM_RUNS_H
#define ACCMEM_RUNS_H

#include "memory.h"

int accmem_runs_take(struct accmem_memory *mem,
		     const struct accmem_memory_spec *spec);
int accmem_run_take_behind(struct accmem_memory *mem, u64 size, u64 page_size,
			   struct accmem_run *more);
int accmem_run_take_ahead(struct accmem_memory *mem, u64 size,
			  struct accmem_memory *to);
void accmem_run_give_back(struct accmem_memory *mem,
			  const struct accmem_run *run);
void accmem_run_give(struct accmem_memory *mem, const struct accmem_run *run);
void accmem_runs_give(struct accmem_memory *mem);
void accmem_runs_drop(struct accmem_memory *mem);
void accmem_runs_release_units(struct accmem_memory *mem,
			       const struct accmem_run *runs, unsigned int nr,
			       bool mapped);

static inline struct accmem_run *accmem_runs_last(struct accmem_memory *mem)
{
	return &mem->runs[mem->nr_runs - 1];
}

#endif /* ACCMEM_RUNS_H */
