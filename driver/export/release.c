// SPDX-License-Identifier: GPL-2.0
/*
 * Release: the end of an export.
 *
 * After the last reference to the dma-buf is dropped, fences of importers may still stand
 * for accesses in progress. The memory is released when all of them have signalled. This
 * allocates nothing.
 *
 * Locking: the dma_resv to find fences.
 */
#include <linux/dma-buf.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "core/account.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "types/export_types.h"

/**
 * accmem_export_drop() - drop the memory of an export
 * @export: the export
 *
 * Context: Process context. May sleep.
 */
void accmem_export_drop(struct accmem_export *export)
{
	atomic_dec(&export->bo->nr_exports);
	accmem_bo_put_user(export->bo);
}

/* Return a fence of an importer that has not signalled, with a reference, or NULL. */
static struct dma_fence *release_busy_fence(struct accmem_export *export)
{
	struct dma_fence *fence, *found = NULL;
	struct dma_resv_iter cursor;

	dma_resv_lock(&export->resv, NULL);
	dma_resv_for_each_fence(&cursor, &export->resv, DMA_RESV_USAGE_BOOKKEEP,
				fence) {
		if (!dma_fence_is_signaled(fence)) {
			found = dma_fence_get(fence);
			break;
		}
	}
	dma_resv_unlock(&export->resv);
	return found;
}

/* Callback of a fence: in any context. */
static void release_signaled(struct dma_fence *fence, struct dma_fence_cb *cb)
{
	struct accmem_export *export =
		container_of(cb, struct accmem_export, cb);

	queue_work(accmem_wq, &export->work);
}

/* Wait for a fence. Return false if all of them have signalled. */
static bool release_waits(struct accmem_export *export)
{
	while ((export->fence = release_busy_fence(export))) {
		if (!dma_fence_add_callback(export->fence, &export->cb,
					    release_signaled))
			return true;
		dma_fence_put(export->fence);
	}
	return false;
}

/**
 * accmem_export_free() - free an export, and drop its memory and its charge
 * @export: the export, which no importer and no fence uses
 *
 * Context: Process context. May sleep.
 */
void accmem_export_free(struct accmem_export *export)
{
	accmem_export_drop(export);
	accmem_uncharge_exports(export->user, 1);
	accmem_user_put(export->user);
	dma_resv_fini(&export->resv);
	kfree(export);
}

/* Release the memory now, or when the fences of importers have signalled. */
static void release_end(struct accmem_export *export)
{
	if (release_waits(export))
		return;
	/* The export may have the last reference to the device. */
	atomic_dec(&export->exports->nr_waiting);
	accmem_export_free(export);
	module_put(THIS_MODULE);
}

static void release_work(struct work_struct *work)
{
	struct accmem_export *export =
		container_of(work, struct accmem_export, work);

	dma_fence_put(export->fence);
	release_end(export);
}

/**
 * accmem_export_release() - release an export whose dma-buf has no user left
 * @dma_buf: the dma-buf
 *
 * Context: Process context. Takes and releases the dma_resv. May sleep.
 */
void accmem_export_release(struct dma_buf *dma_buf)
{
	struct accmem_export *export = dma_buf->priv;

	WARN_ON_ONCE(atomic_read(&export->nr_mapped));
	atomic_inc(&export->exports->nr_waiting);
	if (export->id)
		xa_erase(&export->exports->xa, export->id);
	/* The dma-buf holds a reference to the module until this function returns. */
	__module_get(THIS_MODULE);
	INIT_WORK(&export->work, release_work);
	release_end(export);
}
