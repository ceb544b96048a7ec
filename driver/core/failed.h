/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Failed memory: which granules of a carveout have failed.
 *
 * A check costs one load while nothing has failed. A caller that is about to touch or to
 * map memory checks under the lock that accmem_retire() takes after it has recorded a
 * failure: the folio lock, or the invalidate lock of the mapping.
 */
#ifndef ACCMEM_CORE_FAILED_H
#define ACCMEM_CORE_FAILED_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "types/bo_types.h"
#include "types/carveout_types.h"

int accmem_failed_add(struct accmem_carveout *cv, u64 offset,
		      enum accmem_cause cause);
bool accmem_failed_next(struct accmem_carveout *cv, u64 offset, u64 end,
			u64 most, struct accmem_failed_run *run);
bool accmem_failed_in_bo(struct accmem_bo *bo, u64 offset, u64 size);
bool accmem_failed_cut(struct accmem_carveout *cv, struct accmem_run *part,
		       u64 end);
void accmem_failed_retire(struct accmem_carveout *cv,
			  const struct accmem_run *run);

/* Return true if some memory of the carveout has failed. */
static inline bool accmem_any_failed(const struct accmem_carveout *cv)
{
	return unlikely(READ_ONCE(cv->failed.nr));
}

/* Return true if a granule of a range of the carveout has failed. */
static inline bool accmem_has_failed(struct accmem_carveout *cv, u64 offset,
				     u64 size)
{
	struct accmem_failed_run run;

	return accmem_any_failed(cv) &&
	       accmem_failed_next(cv, offset, offset + size, ACCMEM_GRANULE,
				  &run);
}

/*
 * Return true if a granule of a range of a buffer object has failed. The caller does not
 * hold the carveout's lock.
 */
static inline bool accmem_bo_has_failed(struct accmem_bo *bo, u64 offset,
					u64 size)
{
	return accmem_any_failed(bo->cv) &&
	       accmem_failed_in_bo(bo, offset, size);
}

#endif /* ACCMEM_CORE_FAILED_H */
