/* SPDX-License-Identifier: MIT */
/* Pools as other folders know them. */
#ifndef ACCMEM_RUNTIME_POOL_POOL_H
#define ACCMEM_RUNTIME_POOL_POOL_H

#include <stdint.h>

struct accmem_pool;
struct accmem_pool_request;

/*
 * Register the fork handlers of contexts, and of pools after them, once. A file whose
 * locks are held over calls of a pool registers its own fork handlers afterwards. 0 or a
 * negative errno value.
 */
int accmem_pool_watch_fork(void);

/* accmem_pool_allocate() of a buffer of the driver, whatever the request's options are. */
int accmem_pool_allocate_buffer(struct accmem_pool *pool,
				struct accmem_pool_request *req);

/*
 * Get the bytes that the pool keeps in a range of device addresses, but that no allocation
 * has; and how many of these are shared memory, which is host memory as well.
 */
void accmem_pool_get_idle(struct accmem_pool *pool, uint64_t address,
			  uint64_t span, uint64_t *idle, uint64_t *shared);

#endif /* ACCMEM_RUNTIME_POOL_POOL_H */
