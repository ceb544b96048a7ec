// SPDX-License-Identifier: GPL-2.0
/*
 * Revocation: take the memory of a device back from the importers of its exports.
 *
 * A revocation first sets an error, which all new exports and mappings return from then on.
 * Then the exporter asks each importer to unmap (dma_buf_invalidate_mappings()), and waits,
 * until a deadline, for the fences of importers and for the end of their mappings. Importers
 * that are not revocable, and all importers on kernels before 7.1, may keep their mappings.
 * The result is the number of mappings that are left.
 *
 * User mappings are not removed here.
 *
 * Locking: the dma_resv of one export at a time. The caller holds no dma_resv.
 */
#include <linux/dcache.h>
#include <linux/dma-buf.h>
#include <linux/jiffies.h>
#include <linux/sched.h>

#include "compat/dma_buf.h"
#include "core/revoke.h"
#include "export/export.h"
#include "internal.h"
#include "types/export_types.h"

/**
 * accmem_export_next() - iterate over the exports of a device
 * @exports: the exports
 * @id: in: lowest number; out: number at which the next call continues
 *
 * Exports whose last user has gone are left out.
 *
 * Context: Process context. Takes and releases the lock of the xarray.
 * Return: the export with a reference to its dentry, for dput(); NULL at the end.
 */
struct accmem_export *accmem_export_next(struct accmem_exports *exports,
					 unsigned long *id)
{
	struct accmem_export *export;

	xa_lock(&exports->xa);
	do {
		export = xa_find(&exports->xa, id, ULONG_MAX, XA_PRESENT);
		++*id;
	} while (export && !lockref_get_not_dead(&export->dentry->d_lockref));
	xa_unlock(&exports->xa);
	return export;
}

/* Set the error of all exports. If @error is not 0, ask the importers to unmap. */
static void revoke_set(struct accmem_exports *exports, int error)
{
	struct accmem_export *export;
	unsigned long id = 0;

	WRITE_ONCE(exports->error, error);
	while ((export = accmem_export_next(exports, &id))) {
		dma_resv_lock(&export->resv, NULL);
		/* What a reset has lost does not come back. */
		if (!error && accmem_bo_is_stale(export->bo))
			WRITE_ONCE(export->error, -ECONNRESET);
		else
			WRITE_ONCE(export->error, error);
		if (error)
			dma_buf_invalidate_mappings(export->dma_buf);
		dma_resv_unlock(&export->resv);
		dput(export->dentry);
		cond_resched();
	}
}

static long revoke_time_left(ktime_t deadline)
{
	s64 ns = ktime_to_ns(ktime_sub(deadline, ktime_get()));

	return ns > 0 ? min_t(u64, nsecs_to_jiffies64(ns) + 1,
			      MAX_SCHEDULE_TIMEOUT - 1) :
			0;
}

/* Wait until @export is not accessed. Return the number of mappings that are left. */
static unsigned int revoke_wait(struct accmem_export *export, ktime_t deadline)
{
	bool attached;
	long left = 1;

	/* Without an importer, fences are those that programs have added. */
	dma_resv_lock(&export->resv, NULL);
	attached = !list_empty(&export->dma_buf->attachments);
	dma_resv_unlock(&export->resv);
	if (attached)
		left = dma_resv_wait_timeout(&export->resv,
					     DMA_RESV_USAGE_BOOKKEEP, false,
					     revoke_time_left(deadline));
	wait_event_timeout(export->exports->unmapped,
			   !atomic_read(&export->nr_mapped),
			   revoke_time_left(deadline));
	return atomic_read(&export->nr_mapped) ?: left <= 0;
}

/**
 * accmem_export_revoke() - take the memory of all exports back
 * @exports: exports of the device
 * @error: what importers and EXPORT get from now on: -ENODEV or -ECONNRESET
 * @deadline: time of CLOCK_MONOTONIC at which the function stops to wait
 *
 * The function may be called again, with the same or another error.
 *
 * Context: Process context. Takes and releases the dma_resv of each export. May sleep.
 * Return: the number of mappings and of exports with busy fences that are left.
 */
unsigned int accmem_export_revoke(struct accmem_exports *exports, int error,
				  ktime_t deadline)
{
	struct accmem_export *export;
	unsigned long id = 0;
	unsigned int nr = 0;

	revoke_set(exports, error);
	while ((export = accmem_export_next(exports, &id))) {
		nr += revoke_wait(export, deadline);
		dput(export->dentry);
		cond_resched();
	}
	return nr;
}

/**
 * accmem_export_is_used() - check whether importers use memory of a device
 * @exports: exports of the device
 *
 * Context: Process context. Takes and releases the dma_resv of each export. May sleep.
 * Return: true if an importer has a mapping, or a fence that has not signalled.
 */
bool accmem_export_is_used(struct accmem_exports *exports)
{
	bool used = atomic_read(&exports->nr_waiting);
	struct accmem_export *export;
	unsigned long id = 0;

	while (!used && (export = accmem_export_next(exports, &id))) {
		used = revoke_wait(export, ktime_get());
		dput(export->dentry);
		cond_resched();
	}
	return used;
}

/**
 * accmem_export_resume() - let importers use the exports again
 * @exports: exports of the device, after accmem_export_revoke()
 *
 * Importers map the memory anew. Exports whose contents a reset has lost keep the error
 * -ECONNRESET.
 *
 * Context: Process context. Takes and releases the dma_resv of each export. May sleep.
 */
void accmem_export_resume(struct accmem_exports *exports)
{
	revoke_set(exports, 0);
}
