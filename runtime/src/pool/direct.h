/* SPDX-License-Identifier: MIT */
/* Direct allocations: each is a buffer of the kernel's. */
#ifndef ACCMEM_RUNTIME_POOL_DIRECT_H
#define ACCMEM_RUNTIME_POOL_DIRECT_H

#include <accmem_pool.h>
#include <stdbool.h>

/* As the calls of a pool with the same name. */
int accmem_pool_direct_allocate(struct accmem_pool *pool,
				struct accmem_pool_request *req);
int accmem_pool_direct_release(struct accmem_pool *pool, void *pointer,
			       struct accmem_free *req);
int accmem_pool_direct_reallocate(struct accmem_pool *pool, void **pointer,
				  size_t length);
int accmem_pool_direct_lookup(struct accmem_pool *pool, const void *pointer,
			      struct accmem_pool_block *block);

/* Allocate a buffer, which is no allocation of the pool, and free it. */
int accmem_pool_direct_probe(struct accmem_pool *pool,
			     struct accmem_pool_request *req);
int accmem_pool_direct_import(struct accmem_pool *pool, int fd, uint64_t offset,
			      uint64_t length, struct accmem_pool_block *block);
int accmem_pool_direct_map(struct accmem_pool *pool, const void *pointer);

/*
 * Export a part of an exportable allocation, as accmem_export() does. Returns 0; -ENOENT if
 * there is no allocation; -EPERM if the allocation is not exportable, or if it belongs to the
 * parent of this process; an error of EXPORT.
 */
int accmem_pool_direct_export(struct accmem_pool *pool, const void *pointer,
			      uint64_t length, uint32_t flags, int *fd);

/*
 * In a child of fork(): is the allocation at @pointer still the parent's, or has the child
 * allocated these addresses since? The second function also drops the pool's record of an
 * allocation of the parent's.
 */
bool accmem_pool_direct_is_inherited(struct accmem_pool *pool,
				     const void *pointer);
bool accmem_pool_direct_drop_inherited(struct accmem_pool *pool,
				       const void *pointer);

/* Free all allocations, at the pool's end. */
void accmem_pool_direct_destroy(struct accmem_pool *pool);

#endif /* ACCMEM_RUNTIME_POOL_DIRECT_H */
