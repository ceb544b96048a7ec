/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buffer objects: runs of a carveout, from creation to release.
 *
 * accmem_bo_create() allocates the runs, and accmem_bo_get() and accmem_bo_put()
 * count references. The last put frees the runs, or quarantines the buffer object
 * while its pages are pinned. bo.c describes the states.
 */
#ifndef ACCMEM_BO_H
#define ACCMEM_BO_H

#include <linux/types.h>

#include "types/bo_types.h"

struct accmem_run;

struct accmem_bo *accmem_bo_create(struct accmem_account *account,
				   struct accmem_carveout *cv,
				   const struct accmem_bo_spec *spec);
void accmem_bo_get(struct accmem_bo *bo);
void accmem_bo_put(struct accmem_bo *bo);
void accmem_bo_put_user(struct accmem_bo *bo);
bool accmem_bo_try_put_user(struct accmem_bo *bo);
int accmem_bo_extend_prepare(struct accmem_bo *bo, u64 size, u64 page_size,
			     struct accmem_run *more);
void accmem_bo_extend(struct accmem_bo *bo, const struct accmem_run *more);
void accmem_bo_detach(struct accmem_bo *bo);
void accmem_bo_set_mapped(struct accmem_bo *bo);
void accmem_bo_set_pending(struct accmem_bo *bo, bool pending);
void accmem_bo_abort(struct accmem_bo *bo);
bool accmem_bo_is_idle(struct accmem_bo *bo);
bool accmem_bo_release_pages(struct accmem_bo *bo, bool all);
struct accmem_bo *accmem_bo_create_empty(struct accmem_account *account,
					 struct accmem_carveout *cv,
					 u32 private_size);
int accmem_bo_adopt(struct accmem_bo *bo, u32 huge, bool dirty);
void accmem_bo_destroy_empty(struct accmem_bo *bo);

/*
 * Return true if the buffer object was ever mapped to user space: page tables may show
 * its pages, and the pages may be pinned. The read is racy: a caller that needs a stable
 * result holds the lock under which a mapping is made.
 */
static inline bool accmem_bo_was_mapped(const struct accmem_bo *bo)
{
	return READ_ONCE(bo->mapped);
}

/*
 * Return true if bytes of the buffer object may differ from zero. Racy, as
 * accmem_bo_was_mapped().
 */
static inline bool accmem_bo_was_written(const struct accmem_bo *bo)
{
	return READ_ONCE(bo->written);
}

/* Say that the bytes of the buffer object may differ from zero from here on, or do not. */
static inline void accmem_bo_set_written(struct accmem_bo *bo, bool written)
{
	WRITE_ONCE(bo->written, written);
}

/*
 * Return true if a mapping or a call refers to the buffer object, besides the name. The
 * result false is stable while no buffer that names the bo is published, or while the
 * caller holds the context's lock.
 */
static inline bool accmem_bo_has_users(const struct accmem_bo *bo)
{
	return kref_read(&bo->refs) > 1;
}

/*
 * Return true if a dma-buf, an imported buffer or a pin (export/pin.c) uses memory of the
 * buffer object. The result false is stable while a REALLOC of its buffer is in progress.
 */
static inline bool accmem_bo_is_exported(const struct accmem_bo *bo)
{
	return atomic_read(&bo->nr_exports);
}

/* Return the cache mode of mappings, which show the host's copy of shared memory. */
static inline u32 accmem_bo_mapping_mode(const struct accmem_bo *bo)
{
	return bo->shared ? bo->shared->host->cache_mode : bo->cache_mode;
}

/* Say whether accmem_bo_put_user() must wake the waiters. */
static inline void accmem_bo_set_wake_on_put(struct accmem_bo *bo,
					     bool wake_on_put)
{
	WRITE_ONCE(bo->wake_on_put, wake_on_put);
}

#endif /* ACCMEM_BO_H */
