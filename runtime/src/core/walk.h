/* SPDX-License-Identifier: MIT */
/* A walk over a tree of <search.h>: twalk_r() is in the GNU C library only. */
#ifndef ACCMEM_RUNTIME_CORE_WALK_H
#define ACCMEM_RUNTIME_CORE_WALK_H

typedef void accmem_walk_fn(void *record, void *argument);

/*
 * Call @visit once for each record of the tree @root, in order. @visit must not change the
 * tree. It may walk over another one.
 */
void accmem_walk(const void *root, accmem_walk_fn *visit, void *argument);

#endif /* ACCMEM_RUNTIME_CORE_WALK_H */
