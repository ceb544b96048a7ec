/* SPDX-License-Identifier: MIT */
/*
 * What the tests of adapters share: the replay of traces, and calls of the library that
 * the tests stand in front of, by the linker's names for them (ld --wrap).
 */
#ifndef ADAPTER_TESTS_H
#define ADAPTER_TESTS_H

#include <accmem_pool.h>

/* An adapter, as the replayer sees it. */
struct adapter {
	void *(*alloc)(size_t size);
	int (*free)(void *pointer, size_t size);
};

/* What remains in the pool is an error. */
void replay_all(const struct adapter *a, struct accmem_pool *pool);

struct accmem_streams;

int __real_accmem_streams_create(struct accmem_context *ctx,
				 struct accmem_streams **result);
int __wrap_accmem_streams_create(struct accmem_context *ctx,
				 struct accmem_streams **result);
int __real_accmem_pool_allocate(struct accmem_pool *pool,
				struct accmem_pool_request *req);
int __wrap_accmem_pool_allocate(struct accmem_pool *pool,
				struct accmem_pool_request *req);

#endif /* ADAPTER_TESTS_H */
