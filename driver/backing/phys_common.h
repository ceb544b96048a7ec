/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the two phys backings share.
 */
#ifndef ACCMEM_PHYS_H
#define ACCMEM_PHYS_H

#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/string.h>

#include "memory/clear.h"
#include "memory/memory.h"

extern const struct accmem_backing_ops accmem_phys_frames_ops;

int accmem_phys_make_pages(struct accmem_carveout *cv);

/* the last of what the destruction of a carveout has to do */
static inline void accmem_phys_release_range(struct accmem_carveout *cv)
{
	if (cv->resource)
		release_mem_region(cv->phys, cv->capacity);
}

/* a part of a memory is about to be written to */
static inline void accmem_phys_touch(struct accmem_memory *mem, u64 offset,
				     u64 size)
{
	const struct accmem_run written = { mem->run.start + offset, size };

	accmem_clear_touch(mem->cv, &written);
}

/* in write-back memory, where words are the fastest */
static inline void accmem_phys_zero(void *at, u64 size)
{
	if (IS_ALIGNED((unsigned long)at | size, sizeof(u64)))
		memset64(at, 0, size / sizeof(u64));
	else
		memset(at, 0, size);
}

/* where in the carveout a mapping has what is at @pgoff */
static inline u64 accmem_phys_offset_at(struct accmem_carveout *cv,
					pgoff_t pgoff)
{
	return ((u64)pgoff << PAGE_SHIFT) - accmem_carveout_mapped_at(cv);
}

#endif /* ACCMEM_PHYS_H */
