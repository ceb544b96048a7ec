/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plan: the checks of an ALLOC, its carveouts and its layouts.
 */
#ifndef ACCMEM_ALLOC_PLAN_H
#define ACCMEM_ALLOC_PLAN_H

#include "types/plan_types.h"

struct accmem_context;

int accmem_plan_make(struct accmem_context *ctx, const struct accmem_alloc *req,
		     struct accmem_plan *plan);

#endif /* ACCMEM_ALLOC_PLAN_H */
