/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The backings that a carveout can have.
 */
#ifndef ACCMEM_BACKING_H
#define ACCMEM_BACKING_H

#include <linux/types.h>

struct accmem_carveout;

int accmem_phys_create(struct accmem_carveout *cv, phys_addr_t start, u64 size,
		       bool pages);

int accmem_emulated_create(struct accmem_carveout *cv, u64 size);

#endif /* ACCMEM_BACKING_H */
