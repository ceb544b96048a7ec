// SPDX-License-Identifier: GPL-2.0
/*
 * Carveouts: the state that every backing has.
 *
 * Owns the free-space structure and the accounting of a carveout. The bytes of
 * all states and the free ones add up to its capacity at any moment. What the
 * caches of contexts hold is live to the lock and free to everybody who asks;
 * it is counted by processor, so that a pair of calls that a cache serves
 * writes nothing that contexts share.
 *
 * Locks: lock is innermost.
 */
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "core/carveout.h"

struct workqueue_struct *accmem_wq; /* the work of all carveouts */

/**
 * accmem_carveout_init() - make the common part of a carveout
 * @cv: zeroed, but for @capacity, which its backing has set
 *
 * Return: 0, -EINVAL for a capacity that the allocator does not take, -ENOMEM.
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
	INIT_LIST_HEAD(&cv->quarantine);
	INIT_LIST_HEAD(&cv->pending);
	INIT_LIST_HEAD(&cv->overdue);
	cv->caps.max_alignment = ACCMEM_MAX_ALIGNMENT;
	return accmem_buddy_init(&cv->buddy, cv->capacity, cv->buddy_meta);
}

/**
 * accmem_carveout_own_folios() - give each compound page one context at a time
 * @cv: the carveout, initialised; its capacity is a multiple of 2 MiB
 *
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
 * accmem_carveout_track_dirty() - memory has to be cleared by us
 * @cv: the carveout, initialised; its capacity is a multiple of 2 MiB
 *
 * All of it is dirty: nobody knows what is in it.
 *
 * Return: 0, -ENOMEM.
 */
int accmem_carveout_track_dirty(struct accmem_carveout *cv)
{
	cv->units = kvcalloc(accmem_chunk_index(cv->capacity),
			     sizeof(*cv->units), GFP_KERNEL);
	if (!cv->units)
		return -ENOMEM;
	accmem_buddy_mark_dirty(&cv->buddy, 0, cv->capacity);
	return 0;
}

/**
 * accmem_carveout_destroy() - give back what a carveout consists of
 * @cv: the carveout, without background work, or half made by its backing
 */
void accmem_carveout_destroy(struct accmem_carveout *cv)
{
	/* without counters the allocator was not made */
	if (cv->buddy_meta && cv->counters)
		WARN_ON_ONCE(accmem_buddy_free_bytes(&cv->buddy) !=
			     cv->capacity);
	if (cv->ops && cv->ops->destroy)
		cv->ops->destroy(cv);
	kvfree(cv->units);
	kvfree(cv->owners);
	free_percpu(cv->counters);
	kvfree(cv->buddy_meta);
}

/**
 * accmem_carveout_sum() - what is counted without a lock
 * @cv: the carveout
 * @sum: out: over all processors. Each number is exact once those who change it
 *	have come to rest.
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
 * accmem_carveout_usage() - all bytes of a carveout by state
 * @cv: the carveout
 * @bytes: out: bytes in each state
 * @free: out: the rest: in no state, in the hands of the cleaner, or in caches
 */
void accmem_carveout_usage(struct accmem_carveout *cv,
			   u64 bytes[ACCMEM_NR_STATES], u64 *free)
{
	struct accmem_counters sum;
	u64 cached;

	accmem_carveout_sum(cv, &sum);
	accmem_carveout_lock(cv);
	memcpy(bytes, cv->bytes, sizeof(cv->bytes));
	*free = accmem_buddy_free_bytes(&cv->buddy) + cv->clearing;
	accmem_carveout_unlock(cv);
	/* the sum is of another moment: what it says is live at most */
	cached = clamp_t(s64, sum.cached, 0, bytes[ACCMEM_LIVE]);
	bytes[ACCMEM_LIVE] -= cached;
	*free += cached;
}

/**
 * accmem_carveout_free_bytes() - bytes that are free
 * @cv: the carveout
 *
 * Return: bytes, wherever they are.
 */
u64 accmem_carveout_free_bytes(struct accmem_carveout *cv)
{
	u64 bytes[ACCMEM_NR_STATES], free;

	accmem_carveout_usage(cv, bytes, &free);
	return free;
}
