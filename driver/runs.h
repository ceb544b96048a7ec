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
void accmem_run_give_back(struct accmem_memory *mem,
			  const struct accmem_run *run);
void accmem_runs_give(struct accmem_memory *mem);
void accmem_runs_drop(struct accmem_memory *mem);
int accmem_runs_hand_over(struct accmem_memory *from, struct accmem_memory *to,
			  bool exempt);

/* it has accmem_memory.run, and nothing else */
static inline void accmem_runs_set_one(struct accmem_memory *mem)
{
	mem->runs = &mem->run;
	mem->nr_runs = 1;
}

static inline struct accmem_run *accmem_runs_last(struct accmem_memory *mem)
{
	return &mem->runs[mem->nr_runs - 1];
}

/* what lies behind the last one is a part of it; the carveout's lock is held */
static inline void accmem_runs_lengthen(struct accmem_memory *mem, u64 size)
{
	lockdep_assert_held(&mem->cv->lock);
	accmem_runs_last(mem)->size += size;
	if (mem->nr_runs == 1)
		mem->run = mem->runs[0];
	WRITE_ONCE(mem->size, mem->size + size);
}

#endif /* ACCMEM_RUNS_H */
