// SPDX-License-Identifier: MIT
/*
 * Exports and imports: memory that several contexts share.
 *
 * An export is a dma-buf of whole granules. A buffer that shares its granule with other
 * buffers is not exported, since an importer would get those buffers as well.
 *
 * Locking: accmem_context.lock, for the mappings.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include <accmem_pool.h>

#include "core/buffer.h"
#include "core/error.h"
#include "core/export.h"
#include "core/internal.h"

#define GRANULE 4096u

static bool shares_granule(struct accmem_context *ctx, uint64_t address)
{
	struct accmem_query query;

	/* if there is no buffer at the address, EXPORT fails */
	return !accmem_query_address(ctx, address, &query) &&
	       query.footprint < GRANULE;
}

int accmem_export_now(struct accmem_context *ctx, uint64_t address,
		      uint64_t length, uint32_t flags, int *fd)
{
	struct accmem_export_buffer req = { .size = sizeof(req),
					    .flags = flags,
					    .address = address,
					    .length = length };
	int ret;

	if (shares_granule(ctx, address))
		return -EPERM;
	ret = accmem_call(ctx, ACCMEM_IOC_EXPORT, &req);
	if (!ret)
		*fd = req.fd;
	return ret;
}

int accmem_export(struct accmem_context *ctx, uint64_t address, uint64_t length,
		  uint32_t flags, int *fd)
{
	int ret = accmem_export_now(ctx, address, length, flags, fd);

	if (ret == -EPERM)
		accmem_set_last_error("export of address %#" PRIx64
				      ": the buffer shares a page with others",
				      address);
	else
		accmem_fail(ret,
			    "export of %" PRIu64 " bytes at address %#" PRIx64,
			    length, address);
	return ret;
}

int accmem_import_now(struct accmem_context *ctx, int fd, uint64_t offset,
		      uint64_t length, uint64_t *address)
{
	struct accmem_import_buffer req = { .size = sizeof(req),
					    .fd = fd,
					    .offset = offset,
					    .length = length };
	int ret;

	ret = accmem_call(ctx, ACCMEM_IOC_IMPORT, &req);
	if (ret)
		return ret;

	/* as accmem_allocate_now(): remove a mapping of an earlier buffer at these addresses */
	pthread_mutex_lock(&ctx->lock);
	ret = accmem_unmap_range(ctx, req.address, req.length);
	pthread_mutex_unlock(&ctx->lock);
	if (ret)
		accmem_release_now(ctx, req.address);
	else
		*address = req.address;
	return ret;
}

int accmem_import(struct accmem_context *ctx, int fd, uint64_t offset,
		  uint64_t length, uint64_t *address)
{
	return accmem_fail(accmem_import_now(ctx, fd, offset, length, address),
			   "import of %" PRIu64 " bytes at offset %" PRIu64
			   " of descriptor %d",
			   length, offset, fd);
}
