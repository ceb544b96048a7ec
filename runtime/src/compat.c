// SPDX-License-Identifier: MIT
/*
 * Calls of the shared library that have versions: as programs know them now, and
 * as those do that were linked against an older library.
 */
#include <string.h>

#include "internal.h"

#define ALLOC_SIZE_0_1 96 /* of struct accmem_alloc */

int __attribute__((symver("accmem_allocate@ACCMEM_0.1")))
accmem_allocate_0_1(struct accmem_context *ctx, void *old)
{
	struct accmem_alloc req = {};
	int ret;

	memcpy(&req, old, ALLOC_SIZE_0_1);
	ret = accmem_allocate_now(ctx, &req);
	/* its size, too, is the one that the old library filled in */
	req.size = ALLOC_SIZE_0_1;
	memcpy(old, &req, ALLOC_SIZE_0_1);
	return ret;
}

int __attribute__((symver("accmem_allocate@@ACCMEM_0.2")))
accmem_allocate_0_2(struct accmem_context *ctx, struct accmem_alloc *req)
{
	return accmem_allocate_now(ctx, req);
}
