/* SPDX-License-Identifier: MIT */
/* The last error of a request for memory, in words. */
#ifndef ACCMEM_RUNTIME_CORE_REQUEST_ERROR_H
#define ACCMEM_RUNTIME_CORE_REQUEST_ERROR_H

#include <accmem.h>

/*
 * Set the last error of the request @what for memory if @error is negative; returns @error.
 * Of @req, length, alignment, flags and kind are used.
 * @max_alignment: the largest alignment, or 0 for that of the device
 */
int accmem_fail_request(struct accmem_context *ctx, const char *what,
			const struct accmem_alloc *req, uint64_t max_alignment,
			int error);

#endif /* ACCMEM_RUNTIME_CORE_REQUEST_ERROR_H */
