// SPDX-License-Identifier: MIT
/*
 * Heaps: the free spans of pages in one arena. Free spans are in lists by length, are
 * merged with their neighbours, and are chosen by best fit.
 *
 * The table has an entry at the first and at the last page of each free span, so that a
 * neighbour is found without a search. Free spans of two regions are never neighbours,
 * since the last page of each region is not used (region.c).
 *
 * Locking: pool_arena.lock, held by all callers. The entry beside a span may belong to
 * another arena, whose thread writes it meanwhile; such an entry never describes a free
 * span.
 */

#include "pool/base.h"
#include "pool/heap.h"

static uint32_t list_of(uint32_t pages)
{
	uint32_t log = 31 - __builtin_clz(pages);

	if (pages < 16)
		return pages;
	return 16 * (log - 4) + 16 + (pages >> (log - 4) & 15);
}

static uint32_t pages_of(const struct accmem_pool *pool, uint32_t page)
{
	return pool_tag_pages(pool_load(&pool->table[page].tag));
}

/* The first page of the first span of a list, or POOL_NONE. */
static uint32_t head_of(const struct pool_heap *heap, uint32_t list)
{
	return heap->lists->heads[list] - 1;
}

/*
 * Atomic, because a lookup of an arbitrary pointer may read the entry. Release, so that a
 * lookup which reads a link as the length of a span finds the tag changed.
 */
static void set_link(struct pool_page *entry, uint32_t which, uint32_t page)
{
	__atomic_store_n(&entry->link[which], page, __ATOMIC_RELEASE);
}

static void list_insert(struct accmem_pool *pool, struct pool_heap *heap,
			uint32_t first, uint32_t pages)
{
	struct pool_page *entry = &pool->table[first];
	uint32_t list = list_of(pages), head = head_of(heap, list);

	pool_store(&entry->tag,
		   POOL_PAGE_FREE | (uint64_t)pages << POOL_COUNT_SHIFT);
	set_link(entry, 0, POOL_NONE);
	set_link(entry, 1, head);
	if (head != POOL_NONE)
		set_link(&pool->table[head], 0, first);
	heap->lists->heads[list] = first + 1;
	heap->lists->bits[list / 64] |= 1ull << list % 64;
	if (pages > 1)
		pool_store(&pool->table[first + pages - 1].tag,
			   POOL_PAGE_END | (uint64_t)pages << POOL_COUNT_SHIFT);
}

static void list_remove(struct accmem_pool *pool, struct pool_heap *heap,
			uint32_t first)
{
	struct pool_page *entry = &pool->table[first];
	uint32_t pages = pages_of(pool, first), list = list_of(pages);
	uint32_t before = entry->link[0], after = entry->link[1];

	if (after != POOL_NONE)
		set_link(&pool->table[after], 0, before);
	if (before != POOL_NONE)
		set_link(&pool->table[before], 1, after);
	else
		heap->lists->heads[list] = after + 1;
	if (!heap->lists->heads[list])
		heap->lists->bits[list / 64] &= ~(1ull << list % 64);
	pool_store(&entry->tag, POOL_PAGE_INSIDE);
	pool_store(&pool->table[first + pages - 1].tag, POOL_PAGE_INSIDE);
}

/* Number of pages from @first to the end of @pages pages that are aligned. */
static uint32_t pages_with_head(uint32_t first, uint32_t pages,
				uint32_t alignment)
{
	return (-first & (alignment - 1)) + pages;
}

/*
 * The shortest of the first @scan spans of a list that is long enough; of several such
 * spans, the lowest.
 */
static uint32_t best_fit(const struct accmem_pool *pool, uint32_t head,
			 uint32_t pages, uint32_t alignment, uint32_t scan)
{
	uint32_t best = POOL_NONE, size, best_size = UINT32_MAX, i;
	uint32_t one = head;

	for (i = 0; one != POOL_NONE && i < scan; i++) {
		size = pages_of(pool, one);
		if (size >= pages_with_head(one, pages, alignment) &&
		    (size < best_size || (size == best_size && one < best))) {
			best = one;
			best_size = size;
		}
		one = pool->table[one].link[1];
	}
	return best;
}

/* The first list from @list on that is not empty, or POOL_NR_LISTS. */
static uint32_t next_list(const struct pool_heap *heap, uint32_t list)
{
	uint64_t word;

	while (list < POOL_NR_LISTS) {
		word = heap->lists->bits[list / 64] >> list % 64;
		if (word)
			return list + __builtin_ctzll(word);
		list = (list / 64 + 1) * 64;
	}
	return POOL_NR_LISTS;
}

static uint32_t find(const struct accmem_pool *pool,
		     const struct pool_heap *heap, uint32_t pages,
		     uint32_t alignment, uint32_t scan)
{
	uint32_t list, found;

	if (heap->free_pages < pages)
		return POOL_NONE;
	list = next_list(heap, list_of(pages));
	while (list < POOL_NR_LISTS) {
		found = best_fit(pool, head_of(heap, list), pages, alignment,
				 scan);
		if (found != POOL_NONE)
			return found;
		list = next_list(heap, list + 1);
	}
	return POOL_NONE;
}

uint32_t accmem_pool_heap_alloc(struct accmem_pool *pool,
				struct pool_heap *heap, uint32_t pages,
				uint32_t alignment, uint32_t scan)
{
	uint32_t span = find(pool, heap, pages, alignment, scan);
	uint32_t size, first, end;

	if (span == POOL_NONE)
		return POOL_NONE;
	size = pages_of(pool, span);
	first = span + pages_with_head(span, pages, alignment) - pages;
	end = first + pages;
	list_remove(pool, heap, span);
	if (first > span)
		list_insert(pool, heap, span, first - span);
	if (end < span + size)
		list_insert(pool, heap, end, span + size - end);
	heap->free_pages -= pages;
	return first;
}

uint32_t accmem_pool_heap_free_start(const struct accmem_pool *pool,
				     uint32_t end)
{
	uint64_t tag = end ? pool_load(&pool->table[end - 1].tag) :
			     POOL_PAGE_INSIDE;

	if (pool_tag_type(tag) == POOL_PAGE_FREE && pool_tag_pages(tag) == 1)
		return end - 1;
	if (pool_tag_type(tag) == POOL_PAGE_END)
		return end - pool_tag_pages(tag);
	return end;
}

void accmem_pool_heap_add(struct accmem_pool *pool, struct pool_heap *heap,
			  uint32_t first, uint32_t pages)
{
	uint32_t before = accmem_pool_heap_free_start(pool, first);
	uint32_t end = first + pages;

	heap->free_pages += pages;
	if (before < first)
		list_remove(pool, heap, before);
	if (pool_tag_type(pool_load(&pool->table[end].tag)) == POOL_PAGE_FREE) {
		uint32_t after = end;

		end += pages_of(pool, after);
		list_remove(pool, heap, after);
	}
	list_insert(pool, heap, before, end - before);
}

void accmem_pool_heap_remove(struct accmem_pool *pool, struct pool_heap *heap,
			     uint32_t from, uint32_t end)
{
	uint32_t first = accmem_pool_heap_free_start(pool, end);

	list_remove(pool, heap, first);
	if (first < from)
		list_insert(pool, heap, first, from - first);
	heap->free_pages -= end - from;
}
