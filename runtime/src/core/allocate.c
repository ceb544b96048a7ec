// SPDX-License-Identifier: MIT
/*
 * Calls of the archive that have several versions in the shared library.
 */
#include "core/buffer.h"
#include "core/stream.h"

int accmem_allocate(struct accmem_context *ctx, struct accmem_alloc *req)
{
	return accmem_allocate_now(ctx, req);
}

int accmem_allocate_on(struct accmem_context *ctx, int stream,
		       struct accmem_alloc *req)
{
	return accmem_allocate_on_stream(ctx, req, stream);
}
