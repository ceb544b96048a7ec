/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_WORLD_H
#define ACCMEM_WORLD_H

#include "model.h"

/*
 * A range of a size that @draw gives, up to @ops calls on it, or until @draw
 * is spent, and the end: all freed. Exits with a message that has @origin in
 * it as soon as allocator and reference differ.
 */
void world_run(const char *origin, const struct rng *draw, u64 ops);

#endif
