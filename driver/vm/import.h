/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Imported buffers: buffers of memory that has a buffer object already.
 */
#ifndef ACCMEM_VM_IMPORT_H
#define ACCMEM_VM_IMPORT_H

#include <linux/types.h>

struct accmem_bo;
struct accmem_buffer;
struct accmem_context;

struct accmem_buffer *accmem_buffer_import(struct accmem_context *ctx,
					   struct accmem_bo *bo, u64 offset,
					   u64 size);

#endif /* ACCMEM_VM_IMPORT_H */
