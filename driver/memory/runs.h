/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Runs: the pieces of a carveout that a memory has.
 */
#ifndef ACCMEM_MEMORY_RUNS_H
#define ACCMEM_MEMORY_RUNS_H

#include <linux/lockdep.h>
#include <linux/types.h>

#include "types/memory_types.h"

struct accmem_run;

int accmem_run_take_ahead(struct accmem_memory *mem, u64 size,
			  struct accmem_memory *to);

static inline struct accmem_run *accmem_runs_last(struct accmem_memory *mem)
{
	return &mem->runs[mem->nr_runs - 1];
}

#endif /* ACCMEM_MEMORY_RUNS_H */
