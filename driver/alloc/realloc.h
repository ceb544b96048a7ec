/* SPDX-License-Identifier: GPL-2.0 */
/*
 * REALLOC: resize a buffer in place, or move it.
 */
#ifndef ACCMEM_ALLOC_REALLOC_H
#define ACCMEM_ALLOC_REALLOC_H

#include <linux/types.h>

#include "types/realloc_types.h"

struct accmem_context;
struct accmem_realloc;

int accmem_realloc_prepare(struct accmem_context *ctx,
			   const struct accmem_realloc *req,
			   struct accmem_resize *r);
void accmem_realloc_describe(const struct accmem_resize *r,
			     struct accmem_realloc *req);
int accmem_realloc_commit(struct accmem_context *ctx, struct accmem_resize *r);
void accmem_realloc_cancel(struct accmem_context *ctx, struct accmem_resize *r);

#endif /* ACCMEM_ALLOC_REALLOC_H */
