/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structure of a REALLOC in progress.
 *
 * A REALLOC grows or shrinks a buffer in place, or replaces it with a new buffer and
 * copies the contents. Only one REALLOC works on a buffer at a time
 * (accmem_buffer.resizing), so the structure needs no lock.
 */
#ifndef ACCMEM_REALLOC_TYPES_H
#define ACCMEM_REALLOC_TYPES_H

#include <linux/types.h>

#include "lib/layout/layout.h"

struct accmem_buffer;

/**
 * struct accmem_resize - a REALLOC in progress
 * @buf: buffer to resize
 * @fresh: buffer that replaces @buf; NULL if @buf is resized in place
 * @layout: layout after the resize
 * @length: bytes requested
 * @carveouts: carveouts that may supply memory: bit i stands for carveout i
 * @insists: fail instead of moving the buffer to another address
 * @old_size: size in bytes of the buffer object when the call began
 * @copied: bytes copied
 */
struct accmem_resize {
	struct accmem_buffer *buf;
	struct accmem_buffer *fresh;
	struct accmem_layout layout;
	u64 length;
	u32 carveouts;
	bool insists;
	u64 old_size;
	u64 copied;
};

#endif /* ACCMEM_REALLOC_TYPES_H */
