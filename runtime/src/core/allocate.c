// SPDX-License-Identifier: MIT
/*
 * accmem_allocate(), accmem_allocate_on() and accmem_get_info() of the static library. The
 * shared library has several versions of each (compat.c).
 */
#include "core/buffer.h"
#include "core/call.h"
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

int accmem_get_info(struct accmem_context *ctx, uint32_t carveout,
		    struct accmem_info *info)
{
	return accmem_read_info(ctx, carveout, info);
}
