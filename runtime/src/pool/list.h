/* SPDX-License-Identifier: MIT */
/* The list of all pools of the process. */
#ifndef ACCMEM_RUNTIME_POOL_LIST_H
#define ACCMEM_RUNTIME_POOL_LIST_H

#include <pthread.h>
#include <stdbool.h>

struct accmem_context;
struct accmem_pool;

/* Protects the list, and no pool joins or leaves it while it is held. */
extern pthread_mutex_t accmem_pool_list_lock;
extern struct accmem_pool *accmem_pool_list;

void accmem_pool_list_add(struct accmem_pool *pool);
void accmem_pool_list_remove(struct accmem_pool *pool);

/* Call @visit for each pool of a context, with the list's lock held. */
void accmem_pool_list_for_each(const struct accmem_context *ctx,
			       void (*visit)(struct accmem_pool *pool,
					     void *argument),
			       void *argument);

/* Is @pointer among the addresses of a pool of the process, allocated or not? */
bool accmem_pool_has_address(const void *pointer);

#endif /* ACCMEM_RUNTIME_POOL_LIST_H */
