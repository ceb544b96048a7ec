/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structures of exports.
 *
 * An export is a dma-buf of a part of a buffer object. It has a reference to the buffer
 * object, and so keeps the memory after FREE and after the end of the context, as a
 * mapping does.
 *
 * Locks: the lock of the xarray keeps an export that is found in it. The dma_resv of an export
 * guards its mappings and its error.
 */
#ifndef ACCMEM_EXPORT_TYPES_H
#define ACCMEM_EXPORT_TYPES_H

#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/list.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

struct accmem_bo;
struct accmem_user;
struct dentry;
struct dma_buf;

/**
 * struct accmem_exports - exports of a device
 * @xa: exports whose dma-buf exists, by number
 * @next_id: number from which the search for the next free number begins
 * @error: error of new exports after a revocation, or 0; read without a lock
 * @unmapped: woken when the last mapping of a revoked export has gone
 * @nr_waiting: exports without a dma-buf, whose memory waits for fences of importers
 */
struct accmem_exports {
	struct xarray xa;
	u32 next_id;
	int error;
	wait_queue_head_t unmapped;
	atomic_t nr_waiting;
};

/**
 * struct accmem_export - a dma-buf of a part of a buffer object
 * @exports: exports of the device
 * @bo: buffer object, with a reference
 * @user: user that is charged, with a reference; not always the user of @bo, which may
 *	have been imported
 * @offset: offset of the part in @bo, in bytes
 * @size: size of the part in bytes
 * @flags: ACCMEM_EXPORT_*
 * @id: number of the export on the device, from 1 on; 0 before it is complete
 * @dma_buf: the dma-buf; not valid after its release
 * @dentry: dentry of the dma-buf, whose end is the release. A descriptor that was opened
 *	with O_PATH keeps it longer than the file.
 * @resv: reservation object of the dma-buf, which outlives it
 * @error: error of calls of importers after a revocation, or 0; written under @resv
 * @mappings: mappings of importers; guarded by @resv
 * @nr_mapped: number of entries in @mappings, and one more if the kernel has mapped the
 *	part (vmap); read without a lock
 * @fence: fence of an importer that the release waits for
 * @cb: callback of @fence
 * @work: continues the release
 */
struct accmem_export {
	struct accmem_exports *exports;
	struct accmem_bo *bo;
	struct accmem_user *user;
	u64 offset;
	u64 size;
	u32 flags;
	u32 id;
	struct dma_buf *dma_buf;
	struct dentry *dentry;
	struct dma_resv resv;
	int error;
	struct list_head mappings;
	atomic_t nr_mapped;
	struct dma_fence *fence;
	struct dma_fence_cb cb;
	struct work_struct work;
};

#endif /* ACCMEM_EXPORT_TYPES_H */
