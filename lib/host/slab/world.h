/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SLAB_WORLD_H
#define ACCMEM_SLAB_WORLD_H

#include "../rng.h"

/* of one operation, at most: granules looked at */
#define SLAB_TOUCHED_MAX 4

/*
 * A slab and its reference, with calls on both drawn from @draw, until @ops
 * are done or the numbers end. Aborts with a message that starts with @origin
 * where they differ.
 */
void slab_world_run(const char *origin, struct rng *draw, u64 ops);

#endif
