/* SPDX-License-Identifier: MIT */
/*
 * The history of a pool with ACCMEM_POOL_LEAKS or ACCMEM_POOL_HISTORY: the call site of
 * each live allocation, and the last events.
 */
#ifndef ACCMEM_RUNTIME_POOL_HISTORY_H
#define ACCMEM_RUNTIME_POOL_HISTORY_H

#include "pool/types.h"

/*
 * Create the history if the pool's flags ask for it; record an allocation. @site is the
 * caller of the library, which the entry points pass on.
 */
int accmem_pool_history_create(struct accmem_pool *pool);
void accmem_pool_history_destroy(struct accmem_pool *pool);
void accmem_pool_history_allocated(struct accmem_pool *pool,
				   const void *pointer, uint64_t length,
				   int stream, const void *site);

/**
 * struct pool_origin - the record of an allocation that was released
 * @length: requested bytes, 0 if the history has no such allocation
 * @caller: call site of the allocation
 */
struct pool_origin {
	uint64_t length;
	const void *caller;
};

/*
 * Record a release, before the memory is released and the pointer may be allocated again;
 * undo the record if the release has failed with an error other than -ENOENT.
 */
struct pool_origin accmem_pool_history_released(struct accmem_pool *pool,
						const void *pointer, int stream,
						const void *site);
void accmem_pool_history_release_failed(struct accmem_pool *pool,
					const void *pointer,
					struct pool_origin origin, int error);

/* Return the call site of a live allocation, or NULL. The caller holds the lock. */
const void *accmem_pool_history_site(const struct accmem_pool *pool,
				     const void *pointer);

/**
 * struct pool_event - an allocation or a release
 * @pointer: pointer of the allocation
 * @length: requested bytes
 * @site: caller of the library
 * @time_us: time on CLOCK_REALTIME
 * @stream: stream of the call, or 0
 * @released: the event is a release
 */
struct pool_event {
	const void *pointer;
	uint64_t length;
	const void *site;
	uint64_t time_us;
	int stream;
	bool released;
};

/* Return event @index, 0 for the oldest event in the history, or NULL. */
const struct pool_event *
accmem_pool_history_event(const struct accmem_pool *pool, uint64_t index);

#endif /* ACCMEM_RUNTIME_POOL_HISTORY_H */
