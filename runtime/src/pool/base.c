// SPDX-License-Identifier: MIT
/* Functions that most files of a pool use: addresses, locks of arenas, and counts. */
#include "pool/base.h"

void accmem_pool_lock_arenas(struct accmem_pool *pool)
{
	uint32_t i;

	for (i = 0; i < POOL_NR_ARENAS; i++)
		pthread_mutex_lock(&pool->arenas[i].lock);
}

void accmem_pool_unlock_arenas(struct accmem_pool *pool)
{
	uint32_t i;

	for (i = POOL_NR_ARENAS; i--;)
		pthread_mutex_unlock(&pool->arenas[i].lock);
}

struct accmem_context *accmem_pool_context(const struct accmem_pool *pool)
{
	return pool->ctx;
}

uint64_t accmem_pool_address(const struct accmem_pool *pool,
			     const void *pointer)
{
	uint64_t offset = (uintptr_t)pointer - (uintptr_t)pool->window;

	return offset < pool->span ? pool->base + offset : 0;
}

void *accmem_pool_pointer(const struct accmem_pool *pool, uint64_t address)
{
	uint64_t offset = address - pool->base;

	return offset < pool->span ? pool->window + offset : NULL;
}

void accmem_pool_raise_peak(struct accmem_pool *pool, uint64_t live)
{
	uint64_t peak = pool_load(&pool->peak_live_bytes);

	while (live > peak &&
	       !__atomic_compare_exchange_n(&pool->peak_live_bytes, &peak, live,
					    true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

void accmem_pool_count_live(struct accmem_pool *pool, int64_t bytes)
{
	int64_t live =
		__atomic_add_fetch(&pool->live_bytes, bytes, __ATOMIC_RELAXED);

	if (live > 0)
		accmem_pool_raise_peak(pool, live);
}

void accmem_pool_count_reserved(struct accmem_pool *pool, int64_t bytes)
{
	pool->stats.reserved_bytes += bytes;
	if (pool->stats.reserved_bytes > pool->stats.peak_reserved_bytes)
		pool->stats.peak_reserved_bytes = pool->stats.reserved_bytes;
}
