// SPDX-License-Identifier: GPL-2.0
/*
 * Pins: memory that the driver of the device uses on behalf of a program.
 *
 * A program gives the driver of the device (the provider) a device address. The provider
 * pins the memory, programs its device with the place of the memory, and unpins with a
 * fence that signals when the device has finished. Until then the memory stays where it is,
 * also if the program frees it, ends, or closes the device, and nobody else gets it.
 *
 * A pin counts as an export: REALLOC does not move or shrink the memory, and the limit
 * max_exports_per_user applies.
 *
 * A pin with a fence is ended by the callback of the fence. The callback must not sleep. So a
 * work item ends the pin if the pin has the last reference to its buffer object, or if
 * waiters must be woken.
 *
 * Locking: ctx->lock for the lookup.
 */
#include <linux/accmem_provider.h>
#include <linux/dma-fence.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "core/account.h"
#include "core/carveout.h"
#include "core/revoke.h"
#include "memory/bo.h"
#include "memory/clear.h"
#include "types/backing_types.h"
#include "vm/buffer.h"
#include "vm/context.h"

/**
 * struct pin - a pinned extent
 * @extent: place of the memory, for the provider
 * @bo: buffer object, with a reference
 * @user: user that is charged, with a reference
 * @cb: callback of the fence; the pin has a reference to the fence until the callback runs;
 *	not initialized before accmem_unpin()
 * @work: ends the pin if the callback cannot, since that may sleep; not initialized before
 *	accmem_unpin()
 */
struct pin {
	struct accmem_extent extent;
	struct accmem_bo *bo;
	struct accmem_user *user;
	struct dma_fence_cb cb;
	struct work_struct work;
};

/* Free a pin that has no reference to its buffer object any more. */
static void pin_free(struct pin *pin)
{
	accmem_uncharge_export(pin->user);
	accmem_user_put(pin->user);
	kfree(pin);
}

static void pin_end_work(struct work_struct *work)
{
	struct pin *pin = container_of(work, struct pin, work);

	accmem_bo_put_user(pin->bo);
	pin_free(pin);
	module_put(THIS_MODULE);
}

/*
 * Callback of a fence, called in any context with fence->lock held. The put is not the last:
 * the code that signals the fence has a reference, too. After module_put() the module may be
 * unloaded, and accmem_exit() waits by synchronize_rcu() until this function has returned.
 */
static void pin_signaled(struct dma_fence *fence, struct dma_fence_cb *cb)
{
	struct pin *pin = container_of(cb, struct pin, cb);

	dma_fence_put(fence);
	atomic_dec(&pin->bo->nr_exports);
	if (!accmem_bo_try_put_user(pin->bo)) {
		queue_work(accmem_wq, &pin->work);
		return;
	}
	pin_free(pin);
	module_put(THIS_MODULE);
}

/* Describe where @size bytes at @offset of @bo lie. */
static int pin_locate(struct pin *pin, struct accmem_bo *bo, u64 offset,
		      u64 size)
{
	struct accmem_carveout *cv = bo->cv;

	/* Shared memory moves between the host and the device. */
	if (bo->shared || cv->translation != ACCMEM_TRANSLATION_IDENTITY)
		return -EOPNOTSUPP;
	if (accmem_bo_is_stale(bo))
		return accmem_revoked_error(cv->carveouts);
	pin->extent = (struct accmem_extent){
		.range = cv->index,
		.offset = bo->run.start + offset,
		.size = size,
	};
	return 0;
}

static void pin_will_write(const struct pin *pin, struct accmem_bo *bo)
{
	const struct accmem_run run = { pin->extent.offset, pin->extent.size };

	accmem_bo_set_written(bo, true);
	accmem_clear_mark_dirty(bo->cv, &run);
}

/* Find the memory and hold it. */
static int pin_hold(struct accmem_context *ctx, struct pin *pin, u64 address,
		    u64 size, bool write)
{
	u64 offset, room;
	struct accmem_bo *bo;
	int err;

	spin_lock(&ctx->lock);
	bo = accmem_buffer_reach_to_pin(ctx, address, &offset, &room);
	if (IS_ERR(bo)) {
		spin_unlock(&ctx->lock);
		return PTR_ERR(bo);
	}
	err = size > room ? -ERANGE : pin_locate(pin, bo, offset, size);
	if (!err) {
		/* As a mapping does: the memory is not reused before the end. */
		accmem_bo_set_mapped(bo);
		if (write)
			pin_will_write(pin, bo);
		atomic_inc(&bo->nr_exports);
		pin->bo = bo;
	}
	spin_unlock(&ctx->lock);
	if (err)
		accmem_bo_put_user(bo);
	return err;
}

/**
 * accmem_pin() - keep memory of a program for the work of the device
 * @ctx: the context of the program
 * @address: device address inside a buffer
 * @size: size in bytes, not 0; the bytes lie in that buffer, or in its page of small buffers
 * @write: true if the device will write to the memory
 *
 * A revocation does not end the pin.
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 *
 * Return: the extent, which accmem_unpin() ends; -EINVAL if @size is 0, or if @address +
 * @size exceeds 2^64; -ENOENT if no buffer has the address; -ERANGE if the buffer ends
 * earlier; -EBUSY during a REALLOC of the buffer; -EACCES for @write if the program opened
 * the device only for reading; -EOPNOTSUPP for memory that has no place in a range
 * (emulated, host, shared); -EDQUOT at the user's limit of exports; -ENODEV or -ECONNRESET if the
 * memory is revoked, or if a reset has lost its contents; -ENOMEM.
 */
struct accmem_extent *accmem_pin(struct accmem_context *ctx, u64 address,
				 u64 size, bool write)
{
	struct accmem_user *user = ctx->account->user;
	struct pin *pin;
	int err;

	if (!size || address + size < address)
		return ERR_PTR(-EINVAL);
	if (write && ctx->read_only)
		return ERR_PTR(-EACCES);
	if (!accmem_context_is_valid(ctx))
		return ERR_PTR(accmem_revoked_error(ctx->carveouts));
	pin = kmalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);
	if (!pin)
		return ERR_PTR(-ENOMEM);
	err = accmem_charge_export(user);
	if (err)
		goto err_free;
	err = pin_hold(ctx, pin, address, size, write);
	if (err)
		goto err_uncharge;
	accmem_user_get(user);
	pin->user = user;
	return &pin->extent;

err_uncharge:
	accmem_uncharge_export(user);
err_free:
	kfree(pin);
	return ERR_PTR(err);
}

ACCMEM_EXPORT(accmem_pin);

/**
 * accmem_unpin() - end a pin, now or when the device has finished
 * @extent: the extent from accmem_pin(); the pointer is not valid afterwards
 * @fence: fence that signals when the device has finished with the memory, or NULL to end
 *	the pin now; the caller keeps its reference. The fence must signal within a bounded
 *	time, and the code that signals the fence must hold a reference of its own.
 *
 * May be called after accmem_provider_unregister().
 *
 * Context: Process context. May sleep.
 */
void accmem_unpin(struct accmem_extent *extent, struct dma_fence *fence)
{
	struct pin *pin = container_of(extent, struct pin, extent);

	if (fence && !dma_fence_is_signaled(fence)) {
		dma_fence_get(fence);
		INIT_WORK(&pin->work, pin_end_work);
		__module_get(THIS_MODULE);
		if (!dma_fence_add_callback(fence, &pin->cb, pin_signaled))
			return;
		module_put(THIS_MODULE);
		dma_fence_put(fence);
	}
	atomic_dec(&pin->bo->nr_exports);
	accmem_bo_put_user(pin->bo);
	pin_free(pin);
}

ACCMEM_EXPORT(accmem_unpin);
