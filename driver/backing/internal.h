/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Backings: functions that only backing/ uses.
 *
 * phys.c claims the physical range; phys_frames.c and phys_pages.c are its backings
 * without and with page structures. Both clear newly allocated memory with
 * clear_sync.c. pins.c checks the pages of phys_pages.c for pins.
 */
#ifndef ACCMEM_BACKING_INTERNAL_H
#define ACCMEM_BACKING_INTERNAL_H

#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/types.h>

#include "core/carveout.h"
#include "memory/clear.h"
#include "types/bo_types.h"

/* Zero a run of @bo. Several processors may call it at once, each for another run. */
typedef void (*accmem_clear_run_fn)(struct accmem_bo *bo,
				    const struct accmem_run *run);

/* phys_frames.c */
extern const struct accmem_backing_ops accmem_phys_frames_ops;

/* phys_pages.c */
int accmem_phys_make_pages(struct accmem_carveout *cv);

/* pins.c */
bool accmem_pins_check(struct accmem_bo *bo);
bool accmem_pins_unmap_and_check(struct accmem_bo *bo);

/* clear_sync.c */
int accmem_clear_sync(struct accmem_bo *bo, const struct accmem_run *run,
		      accmem_clear_run_fn clear);

/* Release the claimed range, as the last step of the destruction of a carveout. */
static inline void accmem_phys_release_range(struct accmem_carveout *cv)
{
	if (cv->resource)
		release_mem_region(cv->phys, cv->capacity);
}

/* Mark a part of @bo dirty, before the caller writes to it. */
static inline void accmem_phys_touch(struct accmem_bo *bo, u64 offset, u64 size)
{
	const struct accmem_run written = { bo->run.start + offset, size };

	accmem_clear_mark_dirty(bo->cv, &written);
}

/* Zero write-back memory; stores of 64-bit words are the fastest. */
static inline void accmem_phys_zero(void *at, u64 size)
{
	if (IS_ALIGNED((unsigned long)at | size, sizeof(u64)))
		memset64(at, 0, size / sizeof(u64));
	else
		memset(at, 0, size);
}

/* Offset in the carveout of the memory that a mapping shows at @pgoff. */
static inline u64 accmem_phys_offset_at(struct accmem_carveout *cv,
					pgoff_t pgoff)
{
	return ((u64)pgoff << PAGE_SHIFT) - accmem_carveout_mmap_base(cv);
}

#endif /* ACCMEM_BACKING_INTERNAL_H */
