// SPDX-License-Identifier: MIT
/*
 * Exports and imports of a pool.
 *
 * A pool divides its buffers among allocations: it gives released memory to another
 * allocation of the process. An importer that still has this memory would see the contents
 * of the new allocation. Therefore a pool exports only allocations that were requested as
 * exportable. Each of these is a buffer of the driver, and the driver does not use the memory
 * again before the last importer has released it.
 *
 * Locking: that of direct.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "pool/base.h"
#include "pool/direct.h"
#include "pool/error.h"
#include "pool/history.h"
#include "pool/piece.h"
#include "pool/reclaim.h"

#define SITE __builtin_return_address(0)

static int export(struct accmem_pool *pool, const void *pointer,
		  uint64_t length, uint32_t flags, int *fd)
{
	if (!accmem_pool_piece_lookup(pool, pool_offset_of(pool, pointer),
				      NULL))
		return -EPERM;
	return accmem_pool_direct_export(pool, pointer, length, flags, fd);
}

int accmem_pool_export(struct accmem_pool *pool, const void *pointer,
		       uint64_t length, uint32_t flags, int *fd)
{
	int ret = export(pool, pointer, length, flags, fd);

	if (ret == -ENOENT)
		return accmem_pool_bad_pointer("export", pointer, ret);
	if (ret)
		accmem_set_last_error("export of %" PRIu64 " bytes at %p: %s",
				      length, pointer,
				      ret == -EPERM ?
					      "the allocation is not exportable" :
					      strerror(-ret));
	return ret;
}

int accmem_pool_import(struct accmem_pool *pool, int fd, uint64_t offset,
		       uint64_t length, void **pointer)
{
	struct accmem_pool_block block;
	int ret = accmem_pool_direct_import(pool, fd, offset, length, &block);

	if (pool_is_short(ret) && accmem_pool_reclaim_all(pool))
		ret = accmem_pool_direct_import(pool, fd, offset, length,
						&block);
	if (ret) {
		accmem_set_last_error("import of %" PRIu64
				      " bytes at offset %" PRIu64
				      " of descriptor %d: %s",
				      length, offset, fd, strerror(-ret));
		return ret;
	}
	if (pool->history)
		accmem_pool_history_allocated(pool, block.pointer, block.length,
					      0, SITE);
	*pointer = block.pointer;
	return 0;
}
