/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of the library that adapters_test stands in front of, by the linker's names for
 * them (ld --wrap).
 */
#ifndef ADAPTERS_TEST_H
#define ADAPTERS_TEST_H

struct accmem_context;
struct accmem_streams;
struct accmem_pool;
struct accmem_pool_request;

int __real_accmem_streams_create(struct accmem_context *ctx,
				 struct accmem_streams **result);
int __wrap_accmem_streams_create(struct accmem_context *ctx,
				 struct accmem_streams **result);
int __real_accmem_pool_allocate(struct accmem_pool *pool,
				struct accmem_pool_request *req);
int __wrap_accmem_pool_allocate(struct accmem_pool *pool,
				struct accmem_pool_request *req);

#endif /* ADAPTERS_TEST_H */
