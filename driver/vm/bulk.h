/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buffers that are allocated together.
 */
#ifndef ACCMEM_VM_BULK_H
#define ACCMEM_VM_BULK_H

#include <linux/types.h>

struct accmem_alloc;
struct accmem_buffer;
struct accmem_carveout;
struct accmem_context;
struct accmem_layout;

/* row.c */
#define ACCMEM_ROW_MAX 16u /* buffers in a row */

int accmem_row_create(struct accmem_context *ctx, struct accmem_carveout *cv,
		      const struct accmem_alloc *req,
		      const struct accmem_layout *layout,
		      struct accmem_buffer **bufs, unsigned int nr);

#endif /* ACCMEM_VM_BULK_H */
