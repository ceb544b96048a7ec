// SPDX-License-Identifier: GPL-2.0
/*
 * Imported buffers: buffers of memory that has a buffer object already.
 *
 * An imported buffer refers to a part of a buffer object of any context of the device. It
 * has a va of its own in the importing context, and a reference to the buffer object, which
 * keeps the memory. It counts as an export (accmem_bo.nr_exports), so that no REALLOC in
 * another context takes the memory away.
 *
 * The importing account is charged for a buffer of this size, since the buffer withholds
 * the memory from others. The account of the buffer object stays charged, too.
 *
 * With identity translation an address is a place in the carveout, so that a granule can be
 * in one va of a context only.
 *
 * Locking: ctx->lock of the importing context guards the va and the buffer.
 */
#include <linux/slab.h>

#include "core/account.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/clear.h"
#include "vm/buffer.h"
#include "vm/import.h"
#include "vm/va.h"
#include "waitq/waiters.h"

/**
 * struct import - an imported buffer
 * @va: its device addresses
 * @buf: the buffer
 * @only: the table of published buffers of @va, with one slot
 */
struct import {
	struct accmem_va va;
	struct accmem_buffer buf;
	struct accmem_buffer *only;
};

static int import_charge(struct accmem_account *account, u64 size)
{
	int err = accmem_charge_buffers(account, 1);

	if (err)
		return err;
	err = accmem_charge(account, size, false);
	if (err && accmem_caller_is_exempt())
		err = accmem_charge(account, size, true);
	if (err)
		accmem_uncharge_buffers(account, 1);
	return err;
}

static void import_uncharge(struct accmem_account *account, u64 size)
{
	accmem_uncharge(account, size);
	accmem_uncharge_buffers(account, 1);
	accmem_waiters_wake_uncharged(account->waiters, account->user);
}

static struct import *import_alloc(struct accmem_bo *bo, u64 offset, u64 size)
{
	struct import *import = kzalloc(sizeof(*import), GFP_KERNEL_ACCOUNT);

	if (!import)
		return NULL;
	import->va.size = size;
	import->va.stride = size;
	import->va.bo = bo;
	import->va.offset = offset;
	import->va.imported = true;
	import->va.buffers = &import->only;
	import->buf.va = &import->va;
	import->buf.length = size;
	import->buf.flags = ACCMEM_QUERY_IMPORTED;
	import->buf.page_policy = ACCMEM_PAGE_NORMAL_ONLY;
	import->buf.layout.usable = size;
	import->buf.layout.footprint = size;
	import->buf.layout.alignment = ACCMEM_GRANULE;
	import->buf.layout.page_size = ACCMEM_GRANULE;
	return import;
}

static int import_insert_identity(struct accmem_context *ctx,
				  struct accmem_va *va)
{
	va->start = va->bo->cv->address_base + va->bo->run.start + va->offset;
	if (accmem_va_check(ctx, va->start, va->size))
		return -EEXIST;
	return accmem_va_insert_at(ctx, va);
}

/* Give the buffer its device address. Return -EAGAIN as accmem_va_insert(). */
static int import_insert(struct accmem_context *ctx, struct import *import,
			 u64 *from)
{
	struct accmem_va *va = &import->va;
	int err;

	lockdep_assert_held(&ctx->lock);
	if (va->bo->cv->translation == ACCMEM_TRANSLATION_IDENTITY)
		err = import_insert_identity(ctx, va);
	else
		err = accmem_va_insert(ctx, va, ACCMEM_GRANULE, from);
	import->buf.address = va->start;
	return err;
}

static int import_place(struct accmem_context *ctx, struct import *import)
{
	u64 from = 0;
	int err;

	do {
		cond_resched();
		spin_lock(&ctx->lock);
		err = import_insert(ctx, import, &from);
		spin_unlock(&ctx->lock);
	} while (err == -EAGAIN);
	return err;
}

/*
 * The importer's device may write by address, which nobody sees. So the memory is not clean
 * for the account of the buffer object either.
 */
static void import_mark_dirty(struct accmem_bo *bo, u64 offset, u64 size)
{
	const struct accmem_run part = { bo->run.start + offset, size };

	if (bo->cv->chunks)
		accmem_clear_mark_dirty(bo->cv, &part);
}

/**
 * accmem_buffer_import() - make a buffer of a part of an existing buffer object
 * @ctx: the context that gets the buffer
 * @bo: the buffer object, of the same device, with an export
 * @offset: offset of the part in @bo, a multiple of the granule
 * @size: bytes of the part, a multiple of the granule
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 * Return: the buffer, which is not published; -EDQUOT at a limit; -EEXIST if a va of the
 * context has some of the addresses, with identity translation; -EADDRNOTAVAIL if no range of
 * device addresses is large enough; -ENOMEM.
 */
struct accmem_buffer *accmem_buffer_import(struct accmem_context *ctx,
					   struct accmem_bo *bo, u64 offset,
					   u64 size)
{
	struct import *import;
	int err;

	err = import_charge(ctx->account, size);
	if (err)
		return ERR_PTR(err);
	import = import_alloc(bo, offset, size);
	err = import ? import_place(ctx, import) : -ENOMEM;
	if (err) {
		kfree(import);
		import_uncharge(ctx->account, size);
		return ERR_PTR(err);
	}
	accmem_bo_get(bo);
	import_mark_dirty(bo, offset, size);
	atomic_inc(&bo->nr_exports);
	accmem_count_allocs(bo->cv, 1);
	return &import->buf;
}

/**
 * accmem_import_destroy() - free an imported buffer
 * @ctx: its context
 * @buf: the buffer, which was removed
 *
 * Allocates nothing.
 *
 * Context: Process context. May sleep.
 */
void accmem_import_destroy(struct accmem_context *ctx,
			   struct accmem_buffer *buf)
{
	struct import *import = container_of(buf, struct import, buf);
	struct accmem_bo *bo = import->va.bo;

	accmem_count_frees(bo->cv, 1);
	atomic_dec(&bo->nr_exports);
	accmem_bo_put_user(bo);
	import_uncharge(ctx->account, import->va.size);
	kfree(import);
}
