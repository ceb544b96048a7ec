/* SPDX-License-Identifier: MIT */
/* Pieces: allocations that are a block of a slab or a span of a region. */
#ifndef ACCMEM_RUNTIME_POOL_PIECE_H
#define ACCMEM_RUNTIME_POOL_PIECE_H

#include "pool/types.h"

/* The piece that @offset is in: 0 and the block, or -ENOENT. Takes the lock. */
int accmem_pool_piece_lookup(struct accmem_pool *pool, uint64_t offset,
			     struct accmem_pool_block *block);

/* Map the region that @offset is in for the CPU. Takes the lock. */
int accmem_pool_piece_map(struct accmem_pool *pool, uint64_t offset);

/*
 * Clear a piece's length, so that no lookup finds it, and leave its memory taken. Returns
 * 1 for a piece of the parent's. The caller holds the lock, here and below.
 */
int accmem_pool_piece_detach(struct accmem_pool *pool, uint64_t offset,
			     uint64_t *usable, bool *early);

/* Free a piece that is detached; allocate it again, for a request that gets it early. */
void accmem_pool_piece_free(struct accmem_pool *pool, uint64_t offset);
void accmem_pool_piece_attach_early(struct accmem_pool *pool, uint64_t offset,
				    uint64_t length);

#endif /* ACCMEM_RUNTIME_POOL_PIECE_H */
