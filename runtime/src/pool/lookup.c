// SPDX-License-Identifier: MIT
/* Lookup: find the allocation that a pointer is in, in one pool or in all pools. */
#include <errno.h>

#include "pool/base.h"
#include "pool/direct.h"
#include "pool/error.h"
#include "pool/list.h"
#include "pool/piece.h"

int accmem_pool_lookup(struct accmem_pool *pool, const void *pointer,
		       struct accmem_pool_block *block)
{
	if (!accmem_pool_piece_lookup(pool, pool_offset_of(pool, pointer),
				      block))
		return 0;
	return accmem_pool_direct_lookup(pool, pointer, block);
}

size_t accmem_pool_usable_size(struct accmem_pool *pool, const void *pointer)
{
	struct accmem_pool_block block;

	if (accmem_pool_lookup(pool, pointer, &block) ||
	    block.pointer != pointer)
		return 0;
	return block.usable;
}

int accmem_pool_map(struct accmem_pool *pool, const void *pointer)
{
	uint64_t offset = pool_offset_of(pool, pointer);
	int ret;

	if (!accmem_pool_piece_lookup(pool, offset, NULL))
		ret = accmem_pool_piece_map(pool, offset);
	else
		ret = accmem_pool_direct_map(pool, pointer);
	return ret ? accmem_pool_bad_pointer("map", pointer, ret) : 0;
}

int accmem_pool_find(const void *pointer, struct accmem_pool_block *block)
{
	struct accmem_pool *pool;
	int ret = -ENOENT;

	pthread_mutex_lock(&accmem_pool_list_lock);
	for (pool = accmem_pool_list; pool && ret; pool = pool->next)
		ret = accmem_pool_lookup(pool, pointer, block);
	pthread_mutex_unlock(&accmem_pool_list_lock);
	return ret;
}
