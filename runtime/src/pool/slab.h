/* SPDX-License-Identifier: MIT */
/* Slabs. The caller holds the pool's lock. */
#ifndef ACCMEM_RUNTIME_POOL_SLAB_H
#define ACCMEM_RUNTIME_POOL_SLAB_H

#include "pool/types.h"

/* A structure for accmem_pool_slab_init(), or NULL; and one that is not used. */
struct pool_slab *accmem_pool_slab_alloc(struct accmem_pool *pool);
void accmem_pool_slab_free(struct accmem_pool *pool, struct pool_slab *slab);

/* Make a slab of the span at @offset. */
void accmem_pool_slab_init(struct accmem_pool *pool, struct pool_slab *slab,
			   uint64_t offset, uint32_t size_class);

/* Take up to @count blocks of a slab that has a free one. Returns their number. */
int accmem_pool_slab_alloc_blocks(struct accmem_pool *pool,
				  struct pool_slab *slab,
				  struct pool_slot *slots, int count);

/* Free the block at @offset. */
void accmem_pool_slab_free_block(struct accmem_pool *pool, uint64_t offset);

/* Free the spans of all slabs without allocated blocks. */
void accmem_pool_slab_trim(struct accmem_pool *pool);
void accmem_pool_slab_destroy_all(struct accmem_pool *pool);

#endif /* ACCMEM_RUNTIME_POOL_SLAB_H */
