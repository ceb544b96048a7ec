// SPDX-License-Identifier: GPL-2.0
/*
 * Exports: dma-bufs of parts of buffer objects, made by EXPORT.
 *
 * An export counts as a mapping of its buffer object (accmem_bo.mapped): the memory does
 * not enter the cache when it is freed, and is cleared before another context gets it.
 * The reference to the buffer object keeps the memory after FREE and after the end of the
 * context. It stays charged to the account of the buffer object.
 *
 * All pages of the part exist from EXPORT on, so that no importer makes them, in the
 * memory cgroup of another task.
 *
 * Locking: ctx->lock to find the buffer. The functions of the dma-buf are in map.c.
 */
#include <linux/dma-buf.h>
#include <linux/fcntl.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "alloc/reclaim.h"
#include "compat/dma_buf.h"
#include "core/account.h"
#include "core/failed.h"
#include "core/revoke.h"
#include "export/export.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/contents.h"
#include "types/backing_types.h"
#include "types/export_types.h"
#include "vm/buffer.h"

ACCMEM_IMPORT_DMA_BUF;

/**
 * accmem_exports_init() - initialise the exports of a device
 * @exports: the exports
 *
 * Context: Process context.
 */
void accmem_exports_init(struct accmem_exports *exports)
{
	xa_init_flags(&exports->xa, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	init_waitqueue_head(&exports->unmapped);
}

/**
 * accmem_exports_destroy() - undo accmem_exports_init()
 * @exports: the exports; all of them have been released
 *
 * Context: Process context.
 */
void accmem_exports_destroy(struct accmem_exports *exports)
{
	WARN_ON_ONCE(!xa_empty(&exports->xa));
	xa_destroy(&exports->xa);
}

static int export_check(const struct accmem_context *ctx,
			const struct accmem_export_buffer *req)
{
	u64 end;

	if (!IS_ALIGNED(req->address | req->length, ACCMEM_GRANULE))
		return -EINVAL;
	if (check_add_overflow(req->address, req->length, &end))
		return -EOVERFLOW;
	if (req->flags & ACCMEM_EXPORT_REVOCABLE_ONLY &&
	    !ACCMEM_DMA_BUF_CAN_REVOKE)
		return -EOPNOTSUPP;
	if (ctx->read_only && !(req->flags & ACCMEM_EXPORT_READ_ONLY))
		return -EACCES;
	return READ_ONCE(ctx->carveouts->exports->error);
}

/* Check the part that @req names, and count @export in its buffer object. */
static int export_hold(struct accmem_export *export,
		       const struct accmem_export_buffer *req, u64 room)
{
	if (export->bo->shared)
		return -EOPNOTSUPP;
	if (!room || req->length > room)
		return -ENXIO;
	export->size = req->length ?: room;
	accmem_bo_set_mapped(export->bo);
	atomic_inc(&export->bo->nr_exports);
	return 0;
}

/* Find the memory that @req names. On success @export has a reference to it. */
static int export_find(struct accmem_context *ctx, struct accmem_export *export,
		       const struct accmem_export_buffer *req)
{
	struct accmem_bo *bo;
	u64 room;
	int err;

	spin_lock(&ctx->lock);
	bo = accmem_buffer_reach_to_pin(ctx, req->address, &export->offset,
					&room);
	if (IS_ERR(bo)) {
		spin_unlock(&ctx->lock);
		return PTR_ERR(bo);
	}
	export->bo = bo;
	err = export_hold(export, req, room);
	spin_unlock(&ctx->lock);
	if (err)
		accmem_bo_put_user(bo);
	return err;
}

static int export_populate(void *arg)
{
	struct accmem_export *export = arg;

	return accmem_bo_populate(export->bo, export->offset,
				  export->offset + export->size);
}

/*
 * Refuse memory that has failed. Then allocate the missing pages, or make the kernel mapping
 * that mappings of programs need.
 */
static int export_prepare(struct accmem_context *ctx,
			  struct accmem_export *export)
{
	struct accmem_bo *bo = export->bo;

	if (accmem_bo_has_failed(bo, export->offset, export->size))
		return -EHWPOISON;
	if (bo->cv->ops->map)
		return bo->cv->ops->map(bo);
	/* REALLOC adds host memory before it populates it. */
	if (bo->cv->backing != ACCMEM_BACKING_EMULATED)
		return 0;
	return accmem_reclaim_retry(ctx, bo->cv, export->size, export_populate,
				    export);
}

/* Make the dma-buf. On success it owns @export. */
static struct dma_buf *export_make(struct accmem_export *export)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dma_buf;

	info.ops = accmem_export_map_ops(export);
	info.size = export->size;
	info.flags = export->flags & ACCMEM_EXPORT_READ_ONLY ? O_RDONLY :
							       O_RDWR;
	info.resv = &export->resv;
	info.priv = export;
	dma_buf = dma_buf_export(&info);
	if (!IS_ERR(dma_buf)) {
		export->dma_buf = dma_buf;
		export->dentry = dma_buf->file->f_path.dentry;
	}
	return dma_buf;
}

/*
 * Give @export a number. A revocation sets the error before it looks for exports: it finds
 * this one, or the error is seen here.
 */
static int export_enter(struct accmem_export *export)
{
	struct accmem_exports *exports = export->exports;
	u32 id;
	int err;

	/* An allocation that fails sets the id, too, which another export may get. */
	err = xa_alloc_cyclic(&exports->xa, &id, export, xa_limit_31b,
			      &exports->next_id, GFP_KERNEL_ACCOUNT);
	if (err < 0)
		return err;
	export->id = id;
	/* A whole reset may have passed since the memory was found. */
	return accmem_bo_is_stale(export->bo) ?
		       accmem_revoked_error(export->bo->cv->carveouts) :
		       READ_ONCE(exports->error);
}

static struct accmem_export *export_alloc(struct accmem_exports *exports,
					  u32 flags)
{
	struct accmem_export *export;

	export = kzalloc(sizeof(*export), GFP_KERNEL_ACCOUNT);
	if (!export)
		return NULL;
	export->exports = exports;
	export->flags = flags;
	INIT_LIST_HEAD(&export->mappings);
	dma_resv_init(&export->resv);
	return export;
}

/* Make an export that has no dma-buf yet. */
static struct accmem_export *
export_create(struct accmem_context *ctx,
	      const struct accmem_export_buffer *req)
{
	struct accmem_export *export =
		export_alloc(ctx->carveouts->exports, req->flags);
	int err;

	if (!export)
		return ERR_PTR(-ENOMEM);
	err = export_find(ctx, export, req);
	if (err)
		goto err_free;
	err = export_prepare(ctx, export);
	if (err)
		goto err_drop;
	return export;

err_drop:
	accmem_export_drop(export);
err_free:
	dma_resv_fini(&export->resv);
	kfree(export);
	return ERR_PTR(err == -ENOBUFS ? -ENOMEM : err);
}

/* Create an export and charge the user. accmem_export_free() undoes both. */
static struct accmem_export *
export_create_charged(struct accmem_context *ctx,
		      const struct accmem_export_buffer *req)
{
	struct accmem_user *user = ctx->account->user;
	struct accmem_export *export;
	int err;

	err = accmem_charge_exports(user, 1);
	if (err)
		return ERR_PTR(err);
	export = export_create(ctx, req);
	if (IS_ERR(export)) {
		accmem_uncharge_exports(user, 1);
		return export;
	}
	accmem_user_get(user);
	export->user = user;
	return export;
}

/**
 * accmem_export() - create a dma-buf of a part of a buffer
 * @ctx: the context
 * @req: in, out: the request; its flags have been checked
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 * Return: the dma-buf, with a reference; an error of ACCMEM_IOC_EXPORT.
 */
struct dma_buf *accmem_export(struct accmem_context *ctx,
			      struct accmem_export_buffer *req)
{
	struct accmem_export *export;
	struct dma_buf *dma_buf;
	int err;

	err = export_check(ctx, req);
	if (err)
		return ERR_PTR(err);
	export = export_create_charged(ctx, req);
	if (IS_ERR(export))
		return ERR_CAST(export);
	req->length = export->size;
	dma_buf = export_make(export);
	if (IS_ERR(dma_buf)) {
		accmem_export_free(export);
		return dma_buf;
	}
	err = export_enter(export);
	if (err) {
		dma_buf_put(dma_buf);
		return ERR_PTR(err);
	}
	return dma_buf;
}
