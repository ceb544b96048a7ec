// SPDX-License-Identifier: MIT
/* The text of the last error of a pool's call. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/request_error.h"
#include "pool/base.h"
#include "pool/error.h"

int accmem_pool_fail(struct accmem_pool *pool,
		     const struct accmem_pool_request *req, int error)
{
	const struct accmem_alloc asked = { .length = req->length,
					    .alignment = req->alignment,
					    .flags = req->flags,
					    .kind = req->kind };

	if (!pool_request_is_valid(req)) {
		accmem_set_last_error("allocation of %" PRIu64
				      " bytes: mapped %" PRIu32
				      ", on_stream %" PRIu32 ", stream %" PRId32
				      ", exportable %" PRIu32,
				      req->length, req->mapped, req->on_stream,
				      req->stream, req->exportable);
		return error;
	}
	return accmem_fail_request(pool->ctx, "allocation", &asked,
				   pool->granted, error);
}

int accmem_pool_bad_pointer(const char *what, const void *pointer, int error)
{
	const char *text =
		error == -EINVAL ?
			"it points into an allocation, not to its start" :
		error == -ENOENT ? "no allocation of this pool is there" :
				   strerror(-error);

	accmem_set_last_error("%s of %p: %s", what, pointer, text);
	return error;
}
