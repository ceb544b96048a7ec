/* SPDX-License-Identifier: MIT */
/* The last error of a pool's call, in words. */
#ifndef ACCMEM_RUNTIME_POOL_ERROR_H
#define ACCMEM_RUNTIME_POOL_ERROR_H

#include <accmem_pool.h>
#include <stddef.h>

/* The flags of ALLOC that a request may have. */
#define POOL_ALLOC_FLAGS                                                      \
	(ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32 | ACCMEM_ALLOC_POPULATE | \
	 ACCMEM_ALLOC_CONTIGUOUS | ACCMEM_ALLOC_TOP_DOWN |                    \
	 ACCMEM_ALLOC_RESIZABLE | ACCMEM_ALLOC_WAIT |                         \
	 ACCMEM_ALLOC_HIGH_BANDWIDTH | ACCMEM_ALLOC_LOW_BANDWIDTH |           \
	 ACCMEM_ALLOC_CARVEOUT)

/* Check the members that the driver does not read. Return the rule that is broken, or NULL. */
static inline const char *
pool_broken_rule(const struct accmem_pool_request *req)
{
	if (req->mapped > 1 || req->on_stream > 1 || req->exportable > 1)
		return "mapped, on_stream and exportable are 0 or 1";
	if (req->exportable && req->on_stream)
		return "exportable and on_stream exclude each other";
	if (req->on_stream && req->stream < 0)
		return "on_stream without a stream";
	if (!req->on_stream && req->stream)
		return "a stream without on_stream";
	return NULL;
}

/* Set the last error of a request; returns @error. */
int accmem_pool_fail(struct accmem_pool *pool,
		     const struct accmem_pool_request *req, int error);

/* Set the last error of a call that was given @pointer; returns @error. */
int accmem_pool_bad_pointer(const char *what, const void *pointer, int error);

#endif /* ACCMEM_RUNTIME_POOL_ERROR_H */
