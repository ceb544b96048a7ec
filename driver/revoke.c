// SPDX-License-Identifier: GPL-2.0
/*
 * Revocation: take the memory of a device from its users, and give it back.
 *
 * A driver revokes the memory before a reset, and when the device goes away. From then on
 * faults end in SIGBUS and calls fail. Sleeping calls end. Nothing here waits for a user:
 * contexts, mappings, pins and pending frees stay until their holders drop them.
 *
 * After a reset the driver of the device gives the memory back. If the contents were kept,
 * buffers and mappings can be used again. If the contents were lost, the buffers from before
 * the reset stay unusable: a context gets -ECONNRESET until it has freed all of them. A
 * context without buffers does not notice the reset.
 *
 * Locking: accmem_provider.lock serialises the revocations of a device. Each context is
 * visited with a reference, under no lock.
 */
#include <linux/ktime.h>
#include <linux/poll.h>

#include "alloc/reclaim.h"
#include "core/account.h"
#include "core/carveout.h"
#include "core/revoke.h"
#include "export/export.h"
#include "memory/clear.h"
#include "memory/mapping.h"
#include "revoke.h"
#include "stream/file.h"
#include "tmem/tmem.h"
#include "types/backing_types.h"
#include "types/device_types.h"
#include "waitq/waiters.h"

#define REVOKE_PATIENCE_MS 1000 /* for importers */

/* Remove the mappings of all accounts. No fault makes new ones. */
static void revoke_mappings(struct accmem_carveouts *carveouts)
{
	struct accmem_account *account;
	unsigned long id = 0;

	while ((account = accmem_account_next(carveouts->accounts, &id))) {
		accmem_mapping_revoke(account, carveouts);
		accmem_account_put(account);
		cond_resched();
	}
}

/* Remove the kernel mappings of memory that is gone. */
static void revoke_kernel_maps(struct accmem_carveouts *carveouts)
{
	struct accmem_carveout *cv;

	for (cv = carveouts->cvs; cv < carveouts->end; cv++)
		if (cv->ops->drop)
			cv->ops->drop(cv);
}

/* End the calls that sleep in the contexts of a device. */
static void revoke_contexts(struct accmem_device *dev, bool gone)
{
	struct accmem_context *ctx;
	unsigned long id = 0;

	accmem_waiters_revoke(&dev->waiters);
	while ((ctx = accmem_context_next(&dev->accounts.xa, &id))) {
		if (gone) {
			accmem_tmem_revoke(ctx);
			accmem_streams_end(ctx);
		}
		wake_up_interruptible_poll(&ctx->pressure.poll,
					   EPOLLERR | EPOLLHUP);
		accmem_context_put(ctx);
	}
}

/**
 * accmem_device_revoke() - take the memory of a device from its users
 * @dev: the device, published or not
 * @gone: the memory does not come back
 *
 * When the function returns, no user mapping of the memory exists, no code of the driver
 * accesses the memory, and all calls that slept were woken. May be called again, and for a
 * device that is gone after a reset.
 *
 * Drivers that have imported the memory have a second to let go of it.
 *
 * Context: Process context. The caller holds accmem_provider.lock. May sleep, but waits
 * for no program.
 * Return: the number of imports that still use the memory.
 */
unsigned int accmem_device_revoke(struct accmem_device *dev, bool gone)
{
	struct accmem_carveouts *carveouts = dev->carveouts;
	ktime_t deadline = ktime_add_ms(ktime_get(), REVOKE_PATIENCE_MS);

	lockdep_assert_held(&dev->provider.lock);
	if (!accmem_is_revoked(carveouts) || (gone && !carveouts->gone)) {
		accmem_revoke(carveouts, gone);
		revoke_mappings(carveouts);
		if (gone)
			revoke_kernel_maps(carveouts);
		revoke_contexts(dev, gone);
	}
	return accmem_export_revoke(&dev->exports,
				    accmem_revoked_error(carveouts), deadline);
}

/*
 * The contents of all memory are unknown: also of memory that was clean, and of Tensor
 * Memory.
 */
static void resume_forget_contents(struct accmem_device *dev)
{
	struct accmem_carveouts *carveouts = dev->carveouts;
	struct accmem_carveout *cv;
	struct accmem_context *ctx;
	unsigned long id = 0;

	for (cv = carveouts->cvs; cv < carveouts->end; cv++)
		accmem_clear_forget(cv);
	while ((ctx = accmem_context_next(&dev->accounts.xa, &id))) {
		accmem_tmem_revoke(ctx);
		accmem_context_put(ctx);
	}
}

/**
 * accmem_device_resume() - give the memory of a device back to its users
 * @dev: the device, revoked for a reset
 * @kept: the contents are as before
 *
 * Context: Process context. The caller holds accmem_provider.lock. May sleep.
 */
void accmem_device_resume(struct accmem_device *dev, bool kept)
{
	struct accmem_carveouts *carveouts = dev->carveouts;
	struct accmem_carveout *cv;

	lockdep_assert_held(&dev->provider.lock);
	if (!accmem_is_revoked(carveouts) || carveouts->gone)
		return;
	if (!kept)
		resume_forget_contents(dev);
	accmem_restore(carveouts, kept);
	accmem_export_resume(&dev->exports);
	for (cv = carveouts->cvs; cv < carveouts->end; cv++)
		accmem_clear_kick(cv, true);
}

/**
 * accmem_context_renew() - let a context without buffers continue after a reset
 * @ctx: the context
 *
 * Frees the cached buffers, which have no published address.
 *
 * Context: Process context. Takes and releases ctx->lock and drain_lock of the device. May
 * sleep.
 * Return: as accmem_context_check().
 */
int accmem_context_renew(struct accmem_context *ctx)
{
	struct accmem_carveouts *carveouts = ctx->carveouts;
	bool empty;
	u32 epoch;

	do {
		epoch = READ_ONCE(carveouts->epoch);
		if (epoch & 1)
			return accmem_revoked_error(carveouts);
		accmem_reclaim_end(ctx);
		spin_lock(&ctx->lock);
		empty = RB_EMPTY_ROOT(&ctx->va_tree);
		if (empty)
			WRITE_ONCE(ctx->epoch, epoch);
		spin_unlock(&ctx->lock);
		/* Not valid, though empty: there was another reset meanwhile. */
	} while (empty && !accmem_context_is_valid(ctx));
	return accmem_context_is_valid(ctx) ? 0 : -ECONNRESET;
}
