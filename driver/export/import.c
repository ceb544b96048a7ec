// SPDX-License-Identifier: GPL-2.0
/*
 * Import: make a buffer of memory that another context of the device has exported.
 *
 * The dma-buf has to be an export of the same device. Others are refused: the driver
 * allocates no addresses for memory that is not its own.
 *
 * Locking: none here. The reference to the dma-buf keeps the memory during the call.
 */
#include <linux/dma-buf.h>
#include <linux/overflow.h>

#include "core/carveout.h"
#include "export/export.h"
#include "internal.h"
#include "types/context_types.h"
#include "types/export_types.h"
#include "vm/import.h"

static int import_check(const struct accmem_context *ctx,
			const struct dma_buf *dma_buf)
{
	const struct accmem_export *export = accmem_export_of(dma_buf);

	if (!export)
		return -EOPNOTSUPP;
	if (export->exports != ctx->carveouts->exports)
		return -EXDEV;
	if (export->flags & ACCMEM_EXPORT_READ_ONLY && !ctx->read_only)
		return -EACCES;
	return READ_ONCE(export->error);
}

static struct accmem_buffer *import_part(struct accmem_context *ctx,
					 const struct accmem_export *export,
					 struct accmem_import_buffer *req)
{
	u64 size = export->size;

	if (req->offset >= size || req->length > size - req->offset)
		return ERR_PTR(-ENXIO);
	if (!req->length)
		req->length = size - req->offset;
	return accmem_buffer_import(ctx, export->bo,
				    export->offset + req->offset, req->length);
}

/**
 * accmem_import() - make a buffer of a part of a dma-buf of this device
 * @ctx: the context
 * @req: in, out: the request; its flags have been checked
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 * Return: the buffer, which is not published; an error of ACCMEM_IOC_IMPORT.
 */
struct accmem_buffer *accmem_import(struct accmem_context *ctx,
				    struct accmem_import_buffer *req)
{
	struct accmem_buffer *buf;
	struct dma_buf *dma_buf;
	int err;

	if (!IS_ALIGNED(req->offset | req->length, ACCMEM_GRANULE))
		return ERR_PTR(-EINVAL);
	dma_buf = dma_buf_get(req->fd);
	if (IS_ERR(dma_buf))
		return ERR_CAST(dma_buf);
	err = import_check(ctx, dma_buf);
	buf = err ? ERR_PTR(err) : import_part(ctx, dma_buf->priv, req);
	dma_buf_put(dma_buf);
	return buf;
}
