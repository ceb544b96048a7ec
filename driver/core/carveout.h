/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Carveouts: the lock, the counters and the accounting of states.
 *
 * accmem_carveout_init() and accmem_carveout_destroy() are called by the backings and
 * by the device. The lock is a spinlock that is never taken in an interrupt; no other
 * lock is taken under it.
 */
#ifndef ACCMEM_CORE_CARVEOUT_H
#define ACCMEM_CORE_CARVEOUT_H

#include <linux/percpu.h>
#include <linux/types.h>

#include "types/carveout_types.h"

struct workqueue_struct;

extern struct workqueue_struct *accmem_wq;
int accmem_carveout_init(struct accmem_carveout *cv);
int accmem_carveout_own_folios(struct accmem_carveout *cv);
int accmem_carveout_track_dirty(struct accmem_carveout *cv);
void accmem_carveout_destroy(struct accmem_carveout *cv);
u64 accmem_carveout_free_bytes(struct accmem_carveout *cv);
void accmem_carveout_sum(struct accmem_carveout *cv,
			 struct accmem_counters *sum);
void accmem_carveout_usage(struct accmem_carveout *cv,
			   u64 bytes[ACCMEM_NR_STATES], u64 *free);

/* Counters of the current processor; accmem_carveout_sum() adds them up. */
static inline void accmem_count_cached(struct accmem_carveout *cv, s64 bytes)
{
	this_cpu_add(cv->counters->cached, bytes);
}

static inline void accmem_count_allocs(struct accmem_carveout *cv, u64 n)
{
	this_cpu_add(cv->counters->allocs, n);
}

/* Move bytes of allocated memory to another state. cv->lock is held. */
static inline void accmem_carveout_set_state(struct accmem_carveout *cv,
					     enum accmem_state from,
					     enum accmem_state to, u64 bytes)
{
	lockdep_assert_held(&cv->lock);
	WRITE_ONCE(cv->bytes[from], cv->bytes[from] - bytes);
	WRITE_ONCE(cv->bytes[to], cv->bytes[to] + bytes);
}

static inline void accmem_count_frees(struct accmem_carveout *cv, s64 n)
{
	this_cpu_add(cv->counters->frees, n);
}

static inline void accmem_count_failure(struct accmem_carveout *cv)
{
	this_cpu_inc(cv->counters->failures);
}

static inline void accmem_carveout_lock(struct accmem_carveout *cv)
	__acquires(&cv->lock)
{
	spin_lock(&cv->lock);
	WRITE_ONCE(cv->holds, cv->holds + 1);
}

static inline void accmem_carveout_unlock(struct accmem_carveout *cv)
	__releases(&cv->lock)
{
	spin_unlock(&cv->lock);
}

static inline bool accmem_has_pages(const struct accmem_carveout *cv)
{
	return cv->features & ACCMEM_FEATURE_PIN;
}

/* The cache mode that a request gets: by default the best that the carveout offers. */
static inline u32 accmem_carveout_mode(const struct accmem_carveout *cv,
				       u32 mode)
{
	return mode == ACCMEM_CACHE_WB &&
			       !(cv->cache_modes & BIT(ACCMEM_CACHE_WB)) ?
		       ACCMEM_CACHE_WC :
		       mode;
}

/* Host memory is always populated, since the device may access it at any time. */
static inline u32 accmem_carveout_flags(const struct accmem_carveout *cv,
					u32 flags)
{
	return cv->kind == ACCMEM_KIND_HOST ? flags | ACCMEM_ALLOC_POPULATE :
					      flags;
}

/* Without first touch, the pages of device memory are always present. */
static inline bool accmem_must_populate(const struct accmem_carveout *cv,
					u32 flags)
{
	return accmem_carveout_flags(cv, flags) & ACCMEM_ALLOC_POPULATE &&
	       (cv->kind == ACCMEM_KIND_HOST ||
		cv->features & ACCMEM_FEATURE_FIRST_TOUCH);
}

/* Offset of the first device address in an address_space of mappings. */
static inline u64 accmem_carveout_mmap_base(const struct accmem_carveout *cv)
{
	return cv->address_base & (ACCMEM_MAX_SPAN - 1);
}

static inline u64 accmem_chunk_index(u64 offset)
{
	return offset >> ACCMEM_FOLIO_SHIFT;
}

#endif /* ACCMEM_CORE_CARVEOUT_H */
