/* SPDX-License-Identifier: MIT */
/* Declarations that only the files of core/ use. */
#ifndef ACCMEM_RUNTIME_CORE_INTERNAL_H
#define ACCMEM_RUNTIME_CORE_INTERNAL_H

#include "core/call.h"
#include "core/context.h"

/* compat.c: versions of calls; @old is the structure of the first version. */
int accmem_allocate_0_1(struct accmem_context *ctx, void *old);
int accmem_allocate_0_2(struct accmem_context *ctx, void *old);
int accmem_allocate_0_3(struct accmem_context *ctx, struct accmem_alloc *req);
int accmem_allocate_on_0_2(struct accmem_context *ctx, int stream, void *old);
int accmem_allocate_on_0_3(struct accmem_context *ctx, int stream,
			   struct accmem_alloc *req);
int accmem_get_info_0_1(struct accmem_context *ctx, uint32_t carveout,
			void *old);
int accmem_get_info_0_6(struct accmem_context *ctx, uint32_t carveout,
			struct accmem_info *info);

/* map.c: reserve the window for @span bytes, or leave the context without a window. */
void accmem_window_reserve(struct accmem_context *ctx, uint64_t span);

/* Unmap every buffer and release the window. */
void accmem_window_destroy(struct accmem_context *ctx);

/*
 * Unmap all mappings that overlap [@address, @address + @length). The caller holds the
 * lock. 0, also when nothing was mapped.
 */
int accmem_unmap_range(struct accmem_context *ctx, uint64_t address,
		       uint64_t length);

/*
 * Unmap the buffer at @address. The caller holds the lock. -ENOENT when nothing is mapped
 * there, -EINVAL for an address inside a mapped buffer.
 */
int accmem_unmap_locked(struct accmem_context *ctx, uint64_t address);

/*
 * The buffer at @address was resized in place to @footprint bytes. End its mapping there,
 * and unmap stale mappings between its old and its new end. The caller holds the lock.
 */
void accmem_trim_locked(struct accmem_context *ctx, uint64_t address,
			uint64_t footprint);

#endif /* ACCMEM_RUNTIME_CORE_INTERNAL_H */
