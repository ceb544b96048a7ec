// SPDX-License-Identifier: MIT
/*
 * accmem_allocate() and accmem_allocate_on() of the static library. The shared library has
 * several versions of both (compat.c).
 */
#include "core/buffer.h"
#include "core/request_error.h"
#include "core/stream.h"

int accmem_allocate(struct accmem_context *ctx, struct accmem_alloc *req)
{
	return accmem_fail_request(ctx, "allocation", req, 0,
				   accmem_allocate_now(ctx, req));
}

int accmem_allocate_on(struct accmem_context *ctx, int stream,
		       struct accmem_alloc *req)
{
	return accmem_fail_request(ctx, "allocation", req, 0,
				   accmem_allocate_on_stream(ctx, req, stream));
}
