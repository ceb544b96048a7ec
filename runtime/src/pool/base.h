/* SPDX-License-Identifier: MIT */
/* Functions that most files of a pool use: addresses, locks, counts, and errors. */
#ifndef ACCMEM_RUNTIME_POOL_BASE_H
#define ACCMEM_RUNTIME_POOL_BASE_H

#include <errno.h>

#include "core/context.h"
#include "pool/types.h"

/* The arena of a heap. */
static inline struct pool_arena *pool_arena_of(struct accmem_pool *pool,
					       const struct pool_heap *heap)
{
	return &pool->arenas[(heap - pool->heaps) / POOL_HEAPS_OF_ARENA];
}

static inline void pool_lock_heap(struct accmem_pool *pool,
				  const struct pool_heap *heap)
{
	pthread_mutex_lock(&pool_arena_of(pool, heap)->lock);
}

static inline void pool_unlock_heap(struct accmem_pool *pool,
				    const struct pool_heap *heap)
{
	pthread_mutex_unlock(&pool_arena_of(pool, heap)->lock);
}

/* Does a request of this pool sleep in the driver? */
static inline bool pool_waits(const struct accmem_pool *pool)
{
	return __atomic_load_n(&pool->waiting, __ATOMIC_SEQ_CST);
}

/*
 * Free bytes that the pool may keep: none while a request of its own waits, and none while
 * nothing would make the pool free them for others: it has no reclaim thread, or only the
 * parent is notified.
 */
static inline uint64_t pool_keep_bytes(const struct accmem_pool *pool)
{
	return pool_waits(pool) || pool_load(&pool->retry_ms) ||
			       pool->ctx->inherited ?
		       0 :
		       pool->keep_bytes;
}

/* Is @error a shortage of memory, or of a limit, that reclaim could end? */
static inline bool pool_is_short(int error)
{
	return error == -ENOMEM || error == -EDQUOT;
}

static inline uint64_t pool_offset_of(const struct accmem_pool *pool,
				      const void *pointer)
{
	return (uintptr_t)pointer - (uintptr_t)pool->window;
}

/* Take, and release, the locks of all arenas. The caller holds the pool's lock. */
void accmem_pool_lock_arenas(struct accmem_pool *pool);
void accmem_pool_unlock_arenas(struct accmem_pool *pool);

/* Add @bytes to the pool's count of device memory. The caller holds the pool's lock. */
void accmem_pool_count_reserved(struct accmem_pool *pool, int64_t bytes);

/* Add @bytes to the pool's count of allocated bytes. The caller needs no lock. */
void accmem_pool_count_live(struct accmem_pool *pool, int64_t bytes);

/* Raise the peak of the allocated bytes to @live at least. The caller needs no lock. */
void accmem_pool_raise_peak(struct accmem_pool *pool, uint64_t live);

#endif /* ACCMEM_RUNTIME_POOL_BASE_H */
