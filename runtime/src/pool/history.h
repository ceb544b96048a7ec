/* SPDX-License-Identifier: MIT */
/*
 * The history of a pool with ACCMEM_POOL_LEAKS or ACCMEM_POOL_HISTORY: where each live
 * allocation was made, and the last events.
 */
#ifndef ACCMEM_RUNTIME_POOL_HISTORY_H
#define ACCMEM_RUNTIME_POOL_HISTORY_H

#include "pool/types.h"

/*
 * What happens in a pool with ACCMEM_POOL_LEAKS or _HISTORY is noted, with the call
 * site, which the entry points pass on.
 */
int accmem_pool_history_create(struct accmem_pool *pool);
void accmem_pool_history_destroy(struct accmem_pool *pool);
void accmem_pool_history_allocated(struct accmem_pool *pool,
				   const void *pointer, uint64_t length,
				   int stream, const void *site);

/**
 * struct pool_origin - where an allocation was made that is released
 * @length: its bytes, 0 if nothing is known of it
 * @caller: of the library
 */
struct pool_origin {
	uint64_t length;
	const void *caller;
};

/*
 * To be told before the release, after which others may be given the pointer; and that it
 * has failed, but for -ENOENT.
 */
struct pool_origin accmem_pool_history_released(struct accmem_pool *pool,
						const void *pointer, int stream,
						const void *site);
void accmem_pool_history_release_failed(struct accmem_pool *pool,
					const void *pointer,
					struct pool_origin origin, int error);

/* Where a live allocation was made, or NULL; with the lock held. */
const void *accmem_pool_history_site(const struct accmem_pool *pool,
				     const void *pointer);

/**
 * struct pool_event - something that happened
 * @pointer: of the allocation
 * @length: its bytes
 * @site: the caller
 * @time_us: when, on CLOCK_REALTIME
 * @stream: that it was for, or 0
 * @released: it was released
 */
struct pool_event {
	const void *pointer;
	uint64_t length;
	const void *site;
	uint64_t time_us;
	int stream;
	bool released;
};

/* The event @index of those that are kept, oldest first, or NULL. */
const struct pool_event *
accmem_pool_history_event(const struct accmem_pool *pool, uint64_t index);

#endif /* ACCMEM_RUNTIME_POOL_HISTORY_H */
