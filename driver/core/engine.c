// SPDX-License-Identifier: GPL-2.0
/*
 * Engine: calls of the operations that the driver of the device offers.
 *
 * An operation is called between accmem_enter() and accmem_exit(), so that none is called
 * after a revocation. The wait for its fence is outside: a revocation does not wait for
 * the device. The wait cannot be interrupted, since the device writes to the memory until
 * the fence signals.
 *
 * Locking: no spinlock is held during a call or a wait. The background cleaner holds
 * accmem_cleaner.lock meanwhile, so that a task that takes this mutex may wait for the
 * device.
 */
#include <linux/dma-fence.h>
#include <linux/err.h>

#include "core/engine.h"
#include "core/revoke.h"

/* Wait for the fence that an operation returned, and drop it. */
static int engine_wait(struct dma_fence *fence)
{
	int err;

	if (IS_ERR_OR_NULL(fence))
		return PTR_ERR_OR_ZERO(fence);
	dma_fence_wait(fence, false);
	err = min(dma_fence_get_status(fence), 0);
	dma_fence_put(fence);
	return err;
}

int __accmem_engine_clear(struct accmem_carveout *cv, u64 offset, u64 size)
{
	struct accmem_carveouts *carveouts = cv->carveouts;
	struct dma_fence *fence;
	int section;

	if (cv->backing != ACCMEM_BACKING_PHYS)
		return -EOPNOTSUPP;
	section = accmem_enter(carveouts);
	if (section < 0)
		return section;
	fence = carveouts->provider_ops.clear(carveouts->provider_priv,
					      cv->index, offset, size);
	accmem_exit(section);
	return engine_wait(fence);
}

/**
 * accmem_engine_copy() - let the device copy bytes
 * @to: carveout of the destination; accmem_engine_copies() is true
 * @to_offset: offset in @to, in bytes
 * @from: carveout of the source, of the same device
 * @from_offset: offset in @from, in bytes; the two parts do not overlap
 * @size: bytes
 *
 * Context: Process context, outside of accmem_enter(). Waits for the device. May sleep.
 * Return: 0 if the bytes were copied; an error if the processor has to copy them.
 */
int accmem_engine_copy(struct accmem_carveout *to, u64 to_offset,
		       struct accmem_carveout *from, u64 from_offset, u64 size)
{
	struct accmem_carveouts *carveouts = to->carveouts;
	struct dma_fence *fence;
	int section = accmem_enter(carveouts);

	if (section < 0)
		return section;
	fence = carveouts->provider_ops.copy(carveouts->provider_priv,
					     to->index, to_offset, from->index,
					     from_offset, size);
	accmem_exit(section);
	return engine_wait(fence);
}
