/* SPDX-License-Identifier: MIT */
/* Giving memory back to the device: on demand, and by a thread of the pool. */
#ifndef ACCMEM_RUNTIME_POOL_RECLAIM_H
#define ACCMEM_RUNTIME_POOL_RECLAIM_H

#include <accmem_pool.h>
#include <stdbool.h>

/* Make room before a request fails. Returns the bytes. The caller holds the lock. */
uint64_t accmem_pool_reclaim(struct accmem_pool *pool);

/* The same for all pools of the context. The caller holds no lock of a pool. */
uint64_t accmem_pool_reclaim_all(struct accmem_pool *pool);

/*
 * Register the context if the pool is passive. The pool is in the list of pools; the caller
 * holds no lock of a pool.
 */
void accmem_pool_reclaim_create(struct accmem_pool *pool);

/* Start the reclaim thread, unless the pool is passive. The caller holds the lock. */
void accmem_pool_reclaim_start(struct accmem_pool *pool);

/*
 * Wake the thread for a request of the pool's own. False: there is no thread, though the
 * pool is not passive.
 */
bool accmem_pool_reclaim_wake(struct accmem_pool *pool);

/* End the thread, of a pool that has left the list of pools. */
void accmem_pool_reclaim_stop(struct accmem_pool *pool);

/* In a child of fork(), which has no such thread. */
void accmem_pool_reclaim_disown(struct accmem_pool *pool);

#endif /* ACCMEM_RUNTIME_POOL_RECLAIM_H */
