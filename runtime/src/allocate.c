// SPDX-License-Identifier: MIT
/*
 * accmem_allocate() of the archive, which has one version of it only.
 */
#include "internal.h"

int accmem_allocate(struct accmem_context *ctx, struct accmem_alloc *req)
{
	return accmem_allocate_now(ctx, req);
}
