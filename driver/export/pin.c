// SPDX-License-Identifier: GPL-2.0
/*
 * Pins: memory that the driver of the device uses on behalf of a program.
 *
 * A program gives the driver of the device (the provider) the device addresses of a job. The
 * provider pins all parts of the memory with one call, programs its device with the places of
 * the parts, and unpins with a fence that signals when the device has finished. Until then the
 * memory stays where it is, also if the program frees it, ends, or closes the device, and no
 * other program gets the memory.
 *
 * Each part counts as an export: REALLOC does not move or shrink the memory, and the limit
 * max_exports_per_user applies.
 *
 * The callback of the fence drops the references to the memory. The callback must not sleep. So
 * a work item drops the others when a reference is the last of its buffer object, or when
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

#define PINS_AT_ONCE 64 /* parts that are looked up in one hold of ctx->lock */

/**
 * struct accmem_pins - the pinned memory of a job
 * @user: user that is charged, with a reference
 * @cb: callback of the fence; the pins have a reference to the fence until the callback runs;
 *	not initialized before accmem_unpin()
 * @work: drops references if the callback cannot, since that may sleep; not initialized
 *	before accmem_unpin()
 * @nr: number of parts that are charged
 * @nr_held: number of entries in @bos
 * @bos: buffer object of each part, with a reference
 */
struct accmem_pins {
	struct accmem_user *user;
	struct dma_fence_cb cb;
	struct work_struct work;
	unsigned int nr;
	unsigned int nr_held;
	struct accmem_bo *bos[];
};

/* Free pins that have no references to buffer objects any more. */
static void pins_free(struct accmem_pins *pins)
{
	accmem_uncharge_exports(pins->user, pins->nr);
	accmem_user_put(pins->user);
	kfree(pins);
}

/* From here on REALLOC may move the memory, which stays until the references are dropped. */
static void pins_end(struct accmem_pins *pins)
{
	unsigned int i;

	for (i = 0; i < pins->nr_held; i++)
		atomic_dec(&pins->bos[i]->nr_exports);
}

static void pins_put(struct accmem_pins *pins)
{
	while (pins->nr_held)
		accmem_bo_put_user(pins->bos[--pins->nr_held]);
}

static void pins_put_work(struct work_struct *work)
{
	struct accmem_pins *pins = container_of(work, struct accmem_pins, work);

	pins_put(pins);
	pins_free(pins);
	module_put(THIS_MODULE);
}

/*
 * Callback of a fence, called in any context with fence->lock held. The put is not the last:
 * the code that signals the fence has a reference, too. After module_put() the module may be
 * unloaded, and accmem_exit() waits by synchronize_rcu() until this function has returned.
 */
static void pins_signaled(struct dma_fence *fence, struct dma_fence_cb *cb)
{
	struct accmem_pins *pins = container_of(cb, struct accmem_pins, cb);

	dma_fence_put(fence);
	pins_end(pins);
	for (; pins->nr_held; pins->nr_held--) {
		if (!accmem_bo_try_put_user(pins->bos[pins->nr_held - 1])) {
			queue_work(accmem_wq, &pins->work);
			return;
		}
	}
	pins_free(pins);
	module_put(THIS_MODULE);
}

/* Find out where a part lies, which begins at @offset of @bo. */
static int pins_locate(struct accmem_part *part, struct accmem_bo *bo,
		       u64 offset)
{
	struct accmem_carveout *cv = bo->cv;

	/* Shared memory moves between the host and the device. */
	if (bo->shared || cv->translation != ACCMEM_TRANSLATION_IDENTITY)
		return -EOPNOTSUPP;
	if (accmem_bo_is_stale(bo))
		return accmem_revoked_error(cv->carveouts);
	part->range = cv->index;
	part->offset = bo->run.start + offset;
	return 0;
}

static void pins_mark_dirty(const struct accmem_part *part,
			    struct accmem_bo *bo)
{
	const struct accmem_run run = { part->offset, part->size };

	accmem_clear_mark_dirty(bo->cv, &run);
}

/*
 * Find the memory of a part, and count an export of it. If the part cannot be pinned, the caller
 * drops all parts after ctx->lock is released.
 */
static int pins_hold(struct accmem_pins *pins, struct accmem_context *ctx,
		     struct accmem_part *part)
{
	u64 offset, room;
	struct accmem_bo *bo;
	int err;

	bo = accmem_buffer_reach_to_pin(ctx, part->address, &offset, &room);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	atomic_inc(&bo->nr_exports);
	pins->bos[pins->nr_held++] = bo;
	err = part->size > room ? -ERANGE : pins_locate(part, bo, offset);
	if (err)
		return err;
	/* As a mapping does: the memory is not reused before the end. */
	accmem_bo_set_mapped(bo);
	if (part->write)
		pins_mark_dirty(part, bo);
	return 0;
}

/* Look up PINS_AT_ONCE parts from number @first on, or all that are left. */
static int pins_hold_some(struct accmem_pins *pins, struct accmem_context *ctx,
			  struct accmem_part *parts, unsigned int first)
{
	unsigned int i, end = min(pins->nr, first + PINS_AT_ONCE);
	int err = 0;

	spin_lock(&ctx->lock);
	for (i = first; !err && i < end; i++)
		err = pins_hold(pins, ctx, &parts[i]);
	spin_unlock(&ctx->lock);
	return err;
}

static int pins_hold_all(struct accmem_pins *pins, struct accmem_context *ctx,
			 struct accmem_part *parts)
{
	unsigned int first = 0;
	int err;

	for (;;) {
		err = pins_hold_some(pins, ctx, parts, first);
		first += PINS_AT_ONCE;
		if (err || first >= pins->nr)
			return err;
		cond_resched();
	}
}

static int pins_check(struct accmem_context *ctx,
		      const struct accmem_part *parts, unsigned int nr)
{
	unsigned int i;

	if (!nr)
		return -EINVAL;
	if (nr > ACCMEM_MAX_PARTS)
		return -E2BIG;
	for (i = 0; i < nr; i++) {
		if (!parts[i].size ||
		    parts[i].address + parts[i].size < parts[i].address)
			return -EINVAL;
		if (parts[i].write && ctx->read_only)
			return -EACCES;
	}
	return accmem_context_is_valid(ctx) ?
		       0 :
		       accmem_revoked_error(ctx->carveouts);
}

/**
 * accmem_pin() - keep memory of a program for the work of the device
 * @ctx: the context of the program
 * @parts: the parts. The caller sets address, size and write of each &accmem_part, and the
 *	function sets range and offset. The function does not use the array later.
 * @nr: number of parts, 1 to %ACCMEM_MAX_PARTS; parts may overlap
 *
 * All parts are pinned, or none. A revocation does not end the pins.
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 *
 * Return: the pins, which accmem_unpin() ends; -EINVAL if @nr or a size is 0, or if the end of
 * a part exceeds 2^64; -E2BIG if @nr exceeds %ACCMEM_MAX_PARTS; -ENOENT if no buffer has an
 * address; -ERANGE if a buffer ends earlier than the part; -EBUSY during a REALLOC of a buffer;
 * -EACCES for a part to write to if the program opened the device only for reading;
 * -EOPNOTSUPP for memory that has no place in a range (emulated, host, shared); -EDQUOT at the
 * user's limit of exports; -ENODEV or -ECONNRESET if the memory is revoked, or if a reset has
 * lost its contents; -ENOMEM.
 */
struct accmem_pins *accmem_pin(struct accmem_context *ctx,
			       struct accmem_part *parts, unsigned int nr)
{
	struct accmem_user *user = ctx->account->user;
	struct accmem_pins *pins;
	int err;

	err = pins_check(ctx, parts, nr);
	if (err)
		return ERR_PTR(err);
	pins = kmalloc(struct_size(pins, bos, nr), GFP_KERNEL_ACCOUNT);
	if (!pins)
		return ERR_PTR(-ENOMEM);
	err = accmem_charge_exports(user, nr);
	if (err) {
		kfree(pins);
		return ERR_PTR(err);
	}
	accmem_user_get(user);
	pins->user = user;
	pins->nr = nr;
	pins->nr_held = 0;
	err = pins_hold_all(pins, ctx, parts);
	if (err) {
		accmem_unpin(pins, NULL);
		return ERR_PTR(err);
	}
	return pins;
}

ACCMEM_EXPORT(accmem_pin);

/**
 * accmem_unpin() - end pins, now or when the device has finished
 * @pins: the pins from accmem_pin(); the pointer is not valid afterwards
 * @fence: fence that signals when the device has finished with the memory, or NULL to end
 *	the pins now; the caller keeps its reference. The fence must signal within a bounded
 *	time, and the code that signals the fence must hold a reference of its own.
 *
 * May be called after accmem_provider_unregister().
 *
 * Context: Process context. May sleep.
 */
void accmem_unpin(struct accmem_pins *pins, struct dma_fence *fence)
{
	if (fence && !dma_fence_is_signaled(fence)) {
		dma_fence_get(fence);
		INIT_WORK(&pins->work, pins_put_work);
		__module_get(THIS_MODULE);
		if (!dma_fence_add_callback(fence, &pins->cb, pins_signaled))
			return;
		module_put(THIS_MODULE);
		dma_fence_put(fence);
	}
	pins_end(pins);
	pins_put(pins);
	pins_free(pins);
}

ACCMEM_EXPORT(accmem_unpin);
