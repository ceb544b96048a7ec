/* SPDX-License-Identifier: MIT */
/* Buffers: the calls without versions, and without the text of an error. */
#ifndef ACCMEM_RUNTIME_CORE_BUFFER_H
#define ACCMEM_RUNTIME_CORE_BUFFER_H

#include <accmem.h>

/* ALLOC, as accmem_allocate() of the newest version. */
int accmem_allocate_now(struct accmem_context *ctx, struct accmem_alloc *req);

/* As accmem_release() and accmem_reallocate(). */
int accmem_release_now(struct accmem_context *ctx, uint64_t address);
int accmem_reallocate_now(struct accmem_context *ctx,
			  struct accmem_realloc *req);

/* FREE, and unmap the process's mapping of the buffer. */
int accmem_free_unmapped(struct accmem_context *ctx, struct accmem_free *req);

#endif /* ACCMEM_RUNTIME_CORE_BUFFER_H */
