/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Revocation: memory that the driver of the device takes back.
 *
 * accmem_carveouts.epoch is even while the memory may be used. A revocation makes the epoch
 * odd. The end of a revocation makes the epoch even again: the number before the revocation
 * if the contents were kept, the next even number if they were lost. A buffer object and a
 * context record the epoch at their creation, and may be used only while the epoch of the
 * device is the recorded one.
 *
 * Code that accesses the memory does so between accmem_enter() and accmem_exit(). No code
 * is between the two when accmem_revoke() returns. The code between them takes a bounded
 * time: it may sleep, but does not wait for user space.
 */
#ifndef ACCMEM_CORE_REVOKE_H
#define ACCMEM_CORE_REVOKE_H

#include <linux/compiler.h>
#include <linux/srcu.h>

#include "types/bo_types.h"
#include "types/carveout_types.h"

extern struct srcu_struct accmem_users_of_memory;

void accmem_revoke(struct accmem_carveouts *carveouts, bool gone);
void accmem_restore(struct accmem_carveouts *carveouts, bool kept);

static inline bool accmem_is_revoked(const struct accmem_carveouts *carveouts)
{
	return READ_ONCE(carveouts->epoch) & 1;
}

/* The errno of calls while the memory is revoked, and of calls of a stale context. */
static inline int accmem_revoked_error(const struct accmem_carveouts *carveouts)
{
	/* The caller has read an odd epoch, which is stored after gone. */
	smp_rmb();
	return READ_ONCE(carveouts->gone) ? -ENODEV : -ECONNRESET;
}

/* Sparse would miss the end of a section in callers that begin none after an error. */
static inline int accmem_section_begin(void)
{
	int section = srcu_read_lock(&accmem_users_of_memory);

	__release(&accmem_users_of_memory);
	return section;
}

/* The end of accmem_enter() and of accmem_bo_enter(). */
static inline void accmem_exit(int section)
{
	__acquire(&accmem_users_of_memory);
	srcu_read_unlock(&accmem_users_of_memory, section);
}

/**
 * accmem_enter() - begin to use the memory of a device
 * @carveouts: the carveouts of the device
 *
 * Context: Process context. The caller may sleep until accmem_exit().
 * Return: a number for accmem_exit(); -ENODEV or -ECONNRESET if the memory is revoked.
 */
static inline int accmem_enter(const struct accmem_carveouts *carveouts)
{
	int section = accmem_section_begin();

	if (likely(!accmem_is_revoked(carveouts)))
		return section;
	accmem_exit(section);
	return accmem_revoked_error(carveouts);
}

/* Has a reset lost the contents of a buffer object, or is one in progress? */
static inline bool accmem_bo_is_stale(const struct accmem_bo *bo)
{
	return READ_ONCE(bo->cv->carveouts->epoch) != bo->epoch;
}

/**
 * accmem_bo_enter() - begin to use the memory of a buffer object
 * @bo: the buffer object
 *
 * Context: Process context. The caller may sleep until accmem_exit().
 * Return: as accmem_enter(); also -ECONNRESET if a reset lost the contents of @bo.
 */
static inline int accmem_bo_enter(const struct accmem_bo *bo)
{
	int section = accmem_section_begin();

	if (likely(!accmem_bo_is_stale(bo)))
		return section;
	accmem_exit(section);
	return accmem_revoked_error(bo->cv->carveouts);
}

#endif /* ACCMEM_CORE_REVOKE_H */
