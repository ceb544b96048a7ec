/* SPDX-License-Identifier: MIT */
/* Buffers: allocation and free below the calls that have versions. */
#ifndef ACCMEM_RUNTIME_CORE_BUFFER_H
#define ACCMEM_RUNTIME_CORE_BUFFER_H

#include <accmem.h>

/* ALLOC, as accmem_allocate() of the newest version. */
int accmem_allocate_now(struct accmem_context *ctx, struct accmem_alloc *req);

/* FREE, and unmap the process's mapping of the buffer. */
int accmem_free_unmapped(struct accmem_context *ctx, struct accmem_free *req);

#endif /* ACCMEM_RUNTIME_CORE_BUFFER_H */
