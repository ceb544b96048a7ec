// SPDX-License-Identifier: MIT
/*
 * The list of all pools of the process. A lookup of any pointer, the reclaim of memory in
 * all pools of a context, and fork() walk the list.
 *
 * Locking: accmem_pool_list_lock.
 */
#include "pool/base.h"
#include "pool/list.h"

pthread_mutex_t accmem_pool_list_lock = PTHREAD_MUTEX_INITIALIZER;
struct accmem_pool *accmem_pool_list;

void accmem_pool_list_add(struct accmem_pool *pool)
{
	pthread_mutex_lock(&accmem_pool_list_lock);
	pool->next = accmem_pool_list;
	accmem_pool_list = pool;
	pthread_mutex_unlock(&accmem_pool_list_lock);
}

void accmem_pool_list_remove(struct accmem_pool *pool)
{
	struct accmem_pool **link;

	pthread_mutex_lock(&accmem_pool_list_lock);
	for (link = &accmem_pool_list; *link != pool; link = &(*link)->next)
		;
	*link = pool->next;
	pthread_mutex_unlock(&accmem_pool_list_lock);
}

void accmem_pool_list_for_each(const struct accmem_context *ctx,
			       void (*visit)(struct accmem_pool *pool,
					     void *argument),
			       void *argument)
{
	struct accmem_pool *pool;

	pthread_mutex_lock(&accmem_pool_list_lock);
	for (pool = accmem_pool_list; pool; pool = pool->next)
		if (pool->ctx == ctx)
			visit(pool, argument);
	pthread_mutex_unlock(&accmem_pool_list_lock);
}

bool accmem_pool_has_address(const void *pointer)
{
	struct accmem_pool *pool;

	pthread_mutex_lock(&accmem_pool_list_lock);
	for (pool = accmem_pool_list;
	     pool && !accmem_pool_address(pool, pointer); pool = pool->next)
		;
	pthread_mutex_unlock(&accmem_pool_list_lock);
	return pool;
}
