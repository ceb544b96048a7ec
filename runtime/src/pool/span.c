// SPDX-License-Identifier: MIT
/*
 * Spans: pages of a region that are allocated, or cached, together.
 *
 * A span stores the number of its first page in the entry of every POOL_HINT_PAGES-th
 * page, so that a lookup of an address inside the span is short.
 *
 * Locking: pool_arena.lock, taken here. If two threads release the same span, only one of
 * them reads its length.
 */
#include <errno.h>

#include "pool/base.h"
#include "pool/heap.h"
#include "pool/span.h"

static void span_set_hints(struct accmem_pool *pool, uint32_t first,
			   uint32_t pages)
{
	uint32_t i;

	for (i = POOL_HINT_PAGES; i < pages; i += POOL_HINT_PAGES)
		pool_store(&pool->table[first + i].value, first);
}

/* Set the entry of pages that were taken from a heap. */
static void span_set_entry(struct accmem_pool *pool, uint32_t heap,
			   uint32_t first, uint32_t pages)
{
	pool_store(&pool->table[first].value, 0);
	pool_store(&pool->table[first].tag,
		   POOL_PAGE_SPAN | (uint64_t)heap << POOL_HEAP_SHIFT |
			   (uint64_t)pages << POOL_COUNT_SHIFT);
}

static void span_set_slot(struct accmem_pool *pool, uint32_t first,
			  uint32_t pages, struct pool_slot *slot)
{
	span_set_hints(pool, first, pages);
	slot->offset = (uint64_t)first << POOL_PAGE_SHIFT;
	slot->length64 = &pool->table[first].value;
}

void accmem_pool_span_init(struct accmem_pool *pool, uint32_t heap,
			   uint32_t first, uint32_t pages,
			   struct pool_slot *slot)
{
	span_set_entry(pool, heap, first, pages);
	span_set_slot(pool, first, pages, slot);
}

static bool span_alloc(struct accmem_pool *pool, uint32_t index, uint32_t pages,
		       uint32_t alignment, uint32_t scan,
		       struct pool_slot *slot)
{
	struct pool_heap *heap = &pool->heaps[index];
	uint32_t first;

	pool_lock_heap(pool, heap);
	first = accmem_pool_heap_alloc(pool, heap, pages, alignment, scan);
	if (first != POOL_NONE)
		span_set_entry(pool, index, first, pages);
	pool_unlock_heap(pool, heap);
	if (first == POOL_NONE)
		return false;
	span_set_slot(pool, first, pages, slot);
	return true;
}

bool accmem_pool_span_try_alloc(struct accmem_pool *pool, uint32_t index,
				uint32_t pages, uint32_t alignment,
				struct pool_slot *slot)
{
	return span_alloc(pool, index, pages, alignment, POOL_SCAN_FEW, slot);
}

bool accmem_pool_span_search(struct accmem_pool *pool, uint32_t index,
			     uint32_t pages, uint32_t alignment,
			     struct pool_slot *slot)
{
	return span_alloc(pool, index, pages, alignment, POOL_SCAN_ALL, slot);
}

static void span_free_locked(struct accmem_pool *pool, struct pool_heap *heap,
			     uint32_t first, uint64_t tag)
{
	pool_store(&pool->table[first].tag, POOL_PAGE_INSIDE);
	accmem_pool_heap_add(pool, heap, first, pool_tag_pages(tag));
}

void accmem_pool_span_free(struct accmem_pool *pool, uint64_t offset)
{
	uint32_t first = offset >> POOL_PAGE_SHIFT;
	uint64_t tag = pool_load(&pool->table[first].tag);
	struct pool_heap *heap = &pool->heaps[pool_tag_heap(tag)];

	pool_lock_heap(pool, heap);
	span_free_locked(pool, heap, first, tag);
	pool_unlock_heap(pool, heap);
}

/* A changed tag means that another thread has released the span in the meantime. */
int accmem_pool_span_release(struct accmem_pool *pool, uint64_t offset,
			     uint64_t tag, uint64_t *usable)
{
	struct pool_page *entry = &pool->table[offset >> POOL_PAGE_SHIFT];
	struct pool_heap *heap = &pool->heaps[pool_tag_heap(tag)];
	int ret = -ENOENT;

	pool_lock_heap(pool, heap);
	if (pool_load(&entry->tag) == tag &&
	    __atomic_exchange_n(&entry->value, 0, __ATOMIC_RELAXED)) {
		*usable = pool_tag_pages(tag) * POOL_PAGE;
		ret = tag & POOL_INHERITED ? 1 : 0;
		if (!ret)
			span_free_locked(pool, heap, entry - pool->table, tag);
	}
	pool_unlock_heap(pool, heap);
	return ret;
}
