/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Backings: the code that supplies the pages of a carveout.
 *
 * Each function here sets the operations of a new carveout: accmem_emulated_create()
 * for ordinary memory, accmem_phys_create() for a physical range.
 */
#ifndef ACCMEM_BACKING_H
#define ACCMEM_BACKING_H

#include <linux/types.h>

struct accmem_carveout;
struct accmem_range;

int accmem_phys_create(struct accmem_carveout *cv,
		       const struct accmem_range *range, const char **why);

int accmem_emulated_create(struct accmem_carveout *cv, u64 size);

#endif /* ACCMEM_BACKING_H */
