// SPDX-License-Identifier: GPL-2.0
/*
 * Carveouts: the free space and the accounting common to all backings.
 *
 * A carveout has an allocator of its free space (lib/buddy) and a count of the bytes in
 * each state. The bytes of all states and the free bytes always add up to the capacity.
 * Buffers in the caches of contexts are live in this accounting, but are reported as
 * free. They are counted per processor, so that ALLOC and FREE that a cache serves
 * write no data shared by several contexts.
 *
 * Locks: accmem_carveout.lock is the innermost lock.
 */
#include <linux/kernel.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "core/carveout.h"
#include "types/backing_types.h"

struct workqueue_struct *accmem_wq; /* background work of all carveouts */

/**
 * accmem_carveout_init() - initialise the part of a carveout common to all backings
 * @cv: carveout, zeroed except for @capacity, which the backing has set
 *
 * After a failure the caller frees the memory by accmem_carveout_destroy().
 *
 * Context: Process context. May sleep.
 * Return: 0; -EINVAL if the allocator does not support the capacity; -ENOMEM.
 */
int accmem_carveout_init(struct accmem_carveout *cv)
{
	size_t size = accmem_buddy_meta_size(cv->capacity);

	if (!size)
		return -EINVAL;
	cv->buddy_meta = kvmalloc(size, GFP_KERNEL);
	cv->counters = alloc_percpu(struct accmem_counters);
	if (!cv->buddy_meta || !cv->counters)
		return -ENOMEM;
	memset(cv->buddy_meta, 0, accmem_buddy_meta_zeroed(cv->capacity));
	spin_lock_init(&cv->lock);
	INIT_LIST_HEAD(&cv->quarantine.list);
	INIT_LIST_HEAD(&cv->pending);
	INIT_LIST_HEAD(&cv->overdue);
	INIT_LIST_HEAD(&cv->kernel_maps);
	cv->unnamed = RB_ROOT;
	cv->caps.max_alignment = ACCMEM_MAX_ALIGNMENT;
	return accmem_buddy_init(&cv->buddy, cv->capacity, cv->buddy_meta);
}

/**
 * accmem_carveout_own_folios() - let each folio belong to one context at a time
 * @cv: carveout, initialised; its capacity is a multiple of 2 MiB
 *
 * Context: Process context. May sleep.
 * Return: 0, -ENOMEM.
 */
int accmem_carveout_own_folios(struct accmem_carveout *cv)
{
	cv->owners = kvcalloc(accmem_chunk_index(cv->capacity),
			      sizeof(*cv->owners), GFP_KERNEL);
	if (!cv->owners)
		return -ENOMEM;
	accmem_buddy_set_owners(&cv->buddy, cv->owners);
	return 0;
}

/**
 * accmem_carveout_track_dirty() - track dirty memory of a carveout
 * @cv: carveout, initialised; its capacity is a multiple of 2 MiB
 *
 * The backing calls this if the driver has to clear the memory. All memory is dirty at
 * first, since its contents are unknown.
 *
 * Context: Process context. May sleep.
 * Return: 0, -ENOMEM.
 */
int accmem_carveout_track_dirty(struct accmem_carveout *cv)
{
	cv->chunks = kvcalloc(accmem_chunk_index(cv->capacity),
			      sizeof(*cv->chunks), GFP_KERNEL);
	if (!cv->chunks)
		return -ENOMEM;
	accmem_buddy_mark_dirty(&cv->buddy, 0, cv->capacity);
	return 0;
}

/**
 * accmem_carveout_destroy() - free the resources of a carveout
 * @cv: carveout without background work; it may be partly initialised
 *
 * Context: Process context. May sleep.
 */
void accmem_carveout_destroy(struct accmem_carveout *cv)
{
	/* Without counters, the allocator has not been initialised. */
	if (cv->buddy_meta && cv->counters)
		WARN_ON_ONCE(accmem_buddy_free_bytes(&cv->buddy) +
				     cv->bytes[ACCMEM_RETIRED] !=
			     cv->capacity);
	if (cv->ops && cv->ops->destroy)
		cv->ops->destroy(cv);
	kvfree(cv->chunks);
	kvfree(cv->owners);
	free_percpu(cv->counters);
	kvfree(cv->buddy_meta);
	pci_dev_put(cv->pci);
}

/**
 * accmem_carveout_sum() - sum the per-processor counters of a carveout
 * @cv: carveout
 * @sum: out: sums over all processors; exact if no counter changes meanwhile
 *
 * Context: Any context. Does not sleep.
 */
void accmem_carveout_sum(struct accmem_carveout *cv,
			 struct accmem_counters *sum)
{
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const struct accmem_counters *c =
			per_cpu_ptr(cv->counters, cpu);

		sum->cached += READ_ONCE(c->cached);
		sum->allocs += READ_ONCE(c->allocs);
		sum->frees += READ_ONCE(c->frees);
		sum->failures += READ_ONCE(c->failures);
	}
}

/**
 * accmem_carveout_usage() - read the bytes of a carveout by state
 * @cv: carveout
 * @bytes: out: bytes in each state
 * @free: out: free bytes, including bytes that the cleaner or a cache has
 *
 * Context: Not in an interrupt. Takes and releases cv->lock. Does not sleep.
 */
void accmem_carveout_usage(struct accmem_carveout *cv,
			   u64 bytes[ACCMEM_NR_STATES], u64 *free)
{
	struct accmem_counters sum;
	u64 cached;

	accmem_carveout_sum(cv, &sum);
	accmem_carveout_lock(cv);
	memcpy(bytes, cv->bytes, sizeof(cv->bytes));
	*free = accmem_buddy_free_bytes(&cv->buddy) + cv->cleaner.bytes_held;
	accmem_carveout_unlock(cv);
	/* The sum was read earlier, and may exceed the live bytes: clamp it. */
	cached = clamp_t(s64, sum.cached, 0, bytes[ACCMEM_LIVE]);
	bytes[ACCMEM_LIVE] -= cached;
	*free += cached;
}

/**
 * accmem_carveout_free_bytes() - read the number of free bytes
 * @cv: carveout
 *
 * Context: Not in an interrupt. Takes and releases cv->lock. Does not sleep.
 * Return: free bytes, including bytes that the cleaner or a cache has.
 */
u64 accmem_carveout_free_bytes(struct accmem_carveout *cv)
{
	u64 bytes[ACCMEM_NR_STATES], free;

	accmem_carveout_usage(cv, bytes, &free);
	return free;
}
