/* SPDX-License-Identifier: MIT */
/* The tree of a pool's direct allocations. The caller holds the pool's lock. */
#ifndef ACCMEM_RUNTIME_POOL_DIRECT_TREE_H
#define ACCMEM_RUNTIME_POOL_DIRECT_TREE_H

#include "pool/types.h"

/**
 * struct pool_direct - a direct allocation, or the key of a lookup
 * @block: description of the allocation
 * @extent: bytes of device addresses that belong to the allocation
 * @requested: bytes of the request, before they were rounded
 * @reserve: bytes of device addresses that the request reserved for growth
 * @footprint: bytes of the carveout that the allocation takes
 * @rounded: the length is the usable length, since the request had ROUND32 or TAIL32
 * @mapped: the allocation is mapped for the CPU
 * @exportable: the request was for an exportable allocation
 * @inherited: in a child of fork(), the allocation belongs to the parent
 */
struct pool_direct {
	struct accmem_pool_block block;
	uint64_t extent;
	uint64_t requested;
	uint64_t reserve;
	uint64_t footprint;
	bool rounded;
	bool mapped;
	bool exportable;
	bool inherited;
};

/* Any allocation that overlaps the range; the allocation that @pointer is in. Or NULL. */
struct pool_direct *accmem_pool_direct_find_range(struct accmem_pool *pool,
						  uint64_t address,
						  uint64_t extent);
struct pool_direct *accmem_pool_direct_find(struct accmem_pool *pool,
					    const void *pointer);

/* Insert; remove; remove and free the record. */
int accmem_pool_direct_insert(struct accmem_pool *pool, struct pool_direct *d);
void accmem_pool_direct_remove(struct accmem_pool *pool, struct pool_direct *d);
void accmem_pool_direct_drop(struct accmem_pool *pool, struct pool_direct *d);

/* Drop all records in a range: the buffers there have been freed. */
void accmem_pool_direct_drop_range(struct accmem_pool *pool, uint64_t address,
				   uint64_t extent);

/* In a child of fork(): all allocations belong to the parent. */
void accmem_pool_direct_disown(struct accmem_pool *pool);

typedef void pool_direct_visitor(void *argument,
				 const struct accmem_pool_block *block);

/* Call @visit for each allocation that is not inherited. */
void accmem_pool_direct_visit(struct accmem_pool *pool,
			      pool_direct_visitor *visit, void *argument);

#endif /* ACCMEM_RUNTIME_POOL_DIRECT_TREE_H */
