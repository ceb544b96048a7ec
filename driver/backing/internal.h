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
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>

#include "compat/compat.h"
#include "core/carveout.h"
#include "memory/clear.h"
#include "memory/mapping.h"
#include "types/backing_types.h"
#include "types/bo_types.h"

/**
 * struct accmem_phys - the physical range of a carveout, accmem_carveout.priv
 * @start: physical address
 * @cv: the carveout
 * @resource: the claimed I/O memory resource; NULL before the claim
 * @pagemap: page structures of the range; phys_pages.c only
 */
struct accmem_phys {
	phys_addr_t start;
	struct accmem_carveout *cv;
	struct resource *resource;
	struct dev_pagemap pagemap;
};

/* Zero a run of @bo. Several processors may call it at once, each for another run. */
typedef int (*accmem_clear_run_fn)(struct accmem_bo *bo,
				   const struct accmem_run *run);

/* phys_frames.c */
extern const struct accmem_backing_ops accmem_phys_frames_ops;

/* phys_pages.c */
int accmem_phys_make_pages(struct accmem_carveout *cv);

/* pins.c */
bool accmem_pins_is_idle(struct accmem_bo *bo, enum accmem_idle_check check);
bool accmem_pins_is_hidden(struct accmem_bo *bo, u64 since,
			   struct accmem_hidden *hidden);
void accmem_pins_unmap(struct accmem_carveout *cv,
		       struct accmem_account *account, u64 at);

/* resident.c */
bool accmem_resident_add(struct accmem_bo *bo, long pages);
void accmem_resident_sub(struct accmem_bo *bo, long pages);

/* clear_sync.c */
int accmem_clear_sync(struct accmem_bo *bo, const struct accmem_run *run,
		      accmem_clear_run_fn clear);

/*
 * Say in a folio which part of which address_space a fault maps. A futex that processes
 * share is found by both. The backing clears the mapping before the folio may get another
 * owner, because the address_space ends with its account.
 */
static inline void accmem_folio_set_mapping(struct folio *folio,
					    const struct vm_fault *vmf,
					    struct page *page)
{
	WRITE_ONCE(folio->index, vmf->pgoff - folio_page_idx(folio, page));
	/* Racy: folio_test_anon() reads bit 0 without a lock. The bit is 0 before and after. */
	data_race(folio->mapping = vmf->vma->vm_file->f_mapping);
}

/*
 * If a page of a folio has failed, the other pages must be mapped one by one. @failed: a
 * granule of the folio is known to have failed; a kernel without CONFIG_MEMORY_FAILURE has
 * no mark for it. The caller has called accmem_folio_set_mapping().
 */
static inline void accmem_folio_limit(struct folio *folio,
				      const struct vm_fault *vmf, bool failed)
{
	if (folio_test_large(folio) &&
	    unlikely(failed || folio_test_has_hwpoisoned(folio)))
		accmem_mapping_limit_huge(vmf->vma->vm_file,
					  (u64)folio->index << PAGE_SHIFT);
}

static inline struct accmem_phys *
accmem_phys_of(const struct accmem_carveout *cv)
{
	return cv->priv;
}

/* Physical address of the byte at @offset of the carveout. */
static inline phys_addr_t accmem_phys_at(const struct accmem_carveout *cv,
					 u64 offset)
{
	return accmem_phys_of(cv)->start + offset;
}

/* accmem_backing_ops.physical of a bo with one run */
static inline phys_addr_t accmem_phys_physical(struct accmem_bo *bo, u64 offset,
					       u64 *size)
{
	*size = bo->run.size - offset;
	return accmem_phys_at(bo->cv, bo->run.start + offset);
}

/* accmem_backing_ops.physical_at() of a physical range */
static inline u64 accmem_phys_physical_at(const struct accmem_carveout *cv,
					  u64 offset)
{
	return accmem_phys_at(cv, offset);
}

/* Release the range, as the last step of the destruction of a carveout. */
static inline void accmem_phys_destroy(struct accmem_carveout *cv)
{
	struct accmem_phys *phys = accmem_phys_of(cv);

	if (phys->resource)
		release_mem_region(phys->start, cv->capacity);
	kfree(phys);
}

/* Mark a part of @bo dirty, before the caller writes to it. */
static inline void accmem_phys_touch(struct accmem_bo *bo, u64 offset, u64 size)
{
	const struct accmem_run written = { bo->run.start + offset, size };

	accmem_clear_mark_dirty(bo->cv, &written);
}

/* Write back and invalidate the cache lines of write-back memory. May sleep. */
static inline void accmem_phys_flush(void *address, u64 size)
{
	u64 at, part;

	for (at = 0; at < size; at += part) {
		part = min_t(u64, size - at, ACCMEM_CHUNK);
		accmem_flush_cache(address + at, part);
		cond_resched();
	}
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
