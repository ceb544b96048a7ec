/* SPDX-License-Identifier: GPL-2.0 */
/*
 * REALLOC: the structure.
 */
#ifndef ACCMEM_REALLOC_TYPES_H
#define ACCMEM_REALLOC_TYPES_H

#include <linux/types.h>

#include "lib/layout/layout.h"

struct accmem_buffer;

/**
 * struct accmem_resize - a REALLOC in progress
 * @buf: the buffer, as it is found
 * @fresh: what takes its place; NULL where it is resized in place
 * @layout: what it becomes
 * @length: bytes asked for
 * @carveouts: that are asked for memory: bit i for carveout i
 * @insists: in place, or not at all
 * @old_size: bytes of its memory when the call began
 * @copied: bytes
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
