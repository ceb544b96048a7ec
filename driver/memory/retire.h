/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Retirement: take memory that has failed out of use.
 *
 * accmem_retire() may be called at any time for any memory of a carveout. retire.c
 * describes what happens to memory in use.
 */
#ifndef ACCMEM_MEMORY_RETIRE_H
#define ACCMEM_MEMORY_RETIRE_H

#include <linux/types.h>

#include "types/carveout_types.h"

/**
 * struct accmem_failed_bytes - failed memory of a carveout, in bytes
 * @retired: memory that is never used again
 * @pending: memory that is retired when it is freed
 * @lost: memory that could not be recorded, for lack of memory of the kernel
 */
struct accmem_failed_bytes {
	u64 retired;
	u64 pending;
	u64 lost;
};

void accmem_retire_init(struct accmem_carveout *cv,
			void (*drain)(struct accmem_carveout *cv));
void accmem_retire_stop(struct accmem_carveout *cv);
void accmem_retire_destroy(struct accmem_carveout *cv);
int accmem_retire(struct accmem_carveout *cv, u64 offset, u64 size,
		  enum accmem_cause cause);
int accmem_retire_remembered(struct accmem_carveout *cv);
void accmem_retire_bytes(struct accmem_carveout *cv,
			 struct accmem_failed_bytes *bytes);

#endif /* ACCMEM_MEMORY_RETIRE_H */
