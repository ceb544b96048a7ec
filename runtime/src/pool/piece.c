// SPDX-License-Identifier: MIT
/*
 * Pieces: allocations that are a block of a slab or a span of a region, and what an
 * offset in the window says of one.
 *
 * A span of many pages leaves hints in the entries inside it, where it begins; they are
 * checked when they are followed, so that old ones do no harm.
 *
 * Locking: accmem_pool.lock, held by all callers but of accmem_piece_lookup(),
 * accmem_span_try() and accmem_span_release(); and pool_arena.lock, taken here. Of two
 * that release one piece, one finds its length.
 */
#include <errno.h>

#include "pool/pool.h"

#define HINT_PAGES 64

void accmem_pool_count_live(struct accmem_pool *pool, int64_t bytes)
{
	int64_t live =
		__atomic_add_fetch(&pool->live_bytes, bytes, __ATOMIC_RELAXED);
	uint64_t peak = pool_load(&pool->peak_live_bytes);

	while (live > 0 && (uint64_t)live > peak &&
	       !__atomic_compare_exchange_n(&pool->peak_live_bytes, &peak, live,
					    true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

uint64_t accmem_piece_usable(uint64_t length)
{
	if (length <= POOL_SMALL_MAX)
		return accmem_slab_size(accmem_slab_class(length));
	return (length + POOL_PAGE - 1) & -POOL_PAGE;
}

static void span_hint(struct accmem_pool *pool, uint32_t first, uint32_t pages)
{
	uint32_t i;

	for (i = HINT_PAGES; i < pages; i += HINT_PAGES)
		pool_store(&pool->table[first + i].value, first);
}

/* What was taken from a heap gets an entry. */
static void span_enter(struct accmem_pool *pool, uint32_t heap, uint32_t first,
		       uint32_t pages)
{
	pool_store(&pool->table[first].value, 0);
	pool_store(&pool->table[first].tag,
		   POOL_PAGE_SPAN | (uint64_t)heap << POOL_HEAP_SHIFT |
			   (uint64_t)pages << POOL_COUNT_SHIFT);
}

static void span_start(struct accmem_pool *pool, uint32_t first, uint32_t pages,
		       struct pool_slot *slot)
{
	span_hint(pool, first, pages);
	slot->offset = (uint64_t)first << POOL_PAGE_SHIFT;
	slot->length64 = &pool->table[first].value;
}

bool accmem_span_try(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t pages, uint32_t alignment, struct pool_slot *slot)
{
	uint32_t index = pool_heap_of(arena, sort, pages), first;
	struct pool_heap *heap = &pool->heaps[index];

	pool_lock_heap(pool, heap);
	first = accmem_heap_take(pool, heap, pages, alignment);
	if (first != POOL_NONE)
		span_enter(pool, index, first, pages);
	pool_unlock_heap(pool, heap);
	if (first == POOL_NONE)
		return false;
	span_start(pool, first, pages, slot);
	return true;
}

/* What is free in other arenas: in those that no thread has, or in any. */
static bool span_try_others(struct accmem_pool *pool, bool any, uint32_t sort,
			    uint32_t pages, uint32_t alignment,
			    struct pool_slot *slot)
{
	uint32_t arena;

	for (arena = 0; arena < POOL_NR_ARENAS; arena++)
		if ((any || !pool->arenas[arena].threads) &&
		    accmem_span_try(pool, arena, sort, pages, alignment, slot))
			return true;
	return false;
}

static int span_grow(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t pages, uint32_t alignment, struct pool_slot *slot)
{
	uint32_t heap = pool_heap_of(arena, sort, pages), first;
	int ret = accmem_region_grow(pool, &pool->heaps[heap], pages, alignment,
				     &first);

	if (ret)
		return ret;
	span_enter(pool, heap, first, pages);
	span_start(pool, first, pages, slot);
	return 0;
}

int accmem_span_take(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t pages, uint32_t alignment, struct pool_slot *slot)
{
	uint64_t bytes;
	int ret;

	if (accmem_span_try(pool, arena, sort, pages, alignment, slot))
		return 0;
	if (accmem_pending_reap(pool) &&
	    accmem_span_try(pool, arena, sort, pages, alignment, slot))
		return 0;
	if (span_try_others(pool, false, sort, pages, alignment, slot))
		return 0;
	ret = span_grow(pool, arena, sort, pages, alignment, slot);
	if (!ret || span_try_others(pool, true, sort, pages, alignment, slot))
		return 0;
	if (!pool_is_short(ret))
		return ret;
	bytes = accmem_pool_reclaim(pool);
	if (accmem_span_try(pool, arena, sort, pages, alignment, slot))
		return 0;
	if (bytes)
		ret = span_grow(pool, arena, sort, pages, alignment, slot);
	return ret;
}

static void span_give(struct accmem_pool *pool, struct pool_heap *heap,
		      uint32_t first, uint64_t tag)
{
	pool_store(&pool->table[first].tag, POOL_PAGE_INSIDE);
	accmem_heap_add(pool, heap, first, pool_tag_pages(tag));
}

void accmem_span_give(struct accmem_pool *pool, uint64_t offset)
{
	uint32_t first = offset >> POOL_PAGE_SHIFT;
	uint64_t tag = pool_load(&pool->table[first].tag);
	struct pool_heap *heap = &pool->heaps[pool_tag_heap(tag)];

	pool_lock_heap(pool, heap);
	span_give(pool, heap, first, tag);
	pool_unlock_heap(pool, heap);
}

/* A span that has another entry by now was released meanwhile. */
int accmem_span_release(struct accmem_pool *pool, uint64_t offset, uint64_t tag,
			uint64_t *usable)
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
			span_give(pool, heap, entry - pool->table, tag);
	}
	pool_unlock_heap(pool, heap);
	return ret;
}

void accmem_piece_give(struct accmem_pool *pool, uint64_t offset)
{
	uint64_t tag = pool_tag_at(pool, offset);

	if (pool_tag_type(tag) == POOL_PAGE_SLAB)
		accmem_slab_give(pool, offset);
	else
		accmem_span_give(pool, offset);
}

/* Does the span that begins at @first, if there is one, have @page? */
static bool span_has(const struct accmem_pool *pool, uint32_t first,
		     uint32_t page)
{
	uint64_t tag = pool_load(&pool->table[first].tag);

	return pool_tag_type(tag) == POOL_PAGE_SPAN &&
	       page - first < pool_tag_pages(tag);
}

/* The first page of the span that @page is in, or POOL_NONE. */
static uint32_t span_of(const struct accmem_pool *pool, uint32_t page)
{
	uint32_t one = page, back, hint;

	for (back = 0; back <= HINT_PAGES && back <= page; back++) {
		one = page - back;
		if (pool_tag_type(pool_load(&pool->table[one].tag)) !=
		    POOL_PAGE_INSIDE)
			return span_has(pool, one, page) ? one : POOL_NONE;
		hint = pool_load(&pool->table[one].value);
		if (hint < one && span_has(pool, hint, page))
			return hint;
	}
	return POOL_NONE;
}

static void describe(struct accmem_pool *pool, uint64_t offset, uint32_t sort,
		     uint64_t length, uint64_t usable,
		     struct accmem_pool_block *block)
{
	*block = (struct accmem_pool_block){
		.pointer = pool->window + offset,
		.address = pool->base + offset,
		.length = length,
		.usable = usable,
		.kind = sort == POOL_HOST   ? ACCMEM_KIND_HOST :
			sort == POOL_SHARED ? ACCMEM_KIND_SHARED :
					      ACCMEM_KIND_DEVICE,
		.page_size = POOL_PAGE,
		.pool = pool,
	};
}

static int lookup_block(struct accmem_pool *pool, struct pool_slab *slab,
			uint64_t offset, struct accmem_pool_block *block)
{
	uint32_t index = (offset - slab->start) / slab->size;
	uint16_t length;

	if (index >= slab->count)
		return -ENOENT;
	length = __atomic_load_n(&slab->length[index], __ATOMIC_RELAXED);
	if (!length)
		return -ENOENT;
	if (block)
		describe(pool, slab->start + index * slab->size,
			 pool_slab_sort(slab), length, slab->size, block);
	return 0;
}

static int lookup_span(struct accmem_pool *pool, uint64_t offset,
		       struct accmem_pool_block *block)
{
	uint32_t first = span_of(pool, offset >> POOL_PAGE_SHIFT);
	uint64_t tag, length, usable;

	if (first == POOL_NONE)
		return -ENOENT;
	tag = pool_load(&pool->table[first].tag);
	length = pool_load(&pool->table[first].value);
	usable = pool_tag_pages(tag) * POOL_PAGE;
	if (!length)
		return -ENOENT;
	if (!block)
		return 0;
	describe(pool, (uint64_t)first << POOL_PAGE_SHIFT, pool_tag_sort(tag),
		 length, usable, block);
	/* only what asked for them has whole pages of 2 MiB */
	if (pool_tag_sort(tag) == POOL_DEVICE && !(first % POOL_HUGE_PAGES) &&
	    !(pool_tag_pages(tag) % POOL_HUGE_PAGES))
		block->page_size = POOL_HUGE_PAGES * POOL_PAGE;
	return 0;
}

int accmem_piece_lookup(struct accmem_pool *pool, uint64_t offset,
			struct accmem_pool_block *block)
{
	uint64_t tag;
	int ret;

	if (offset >= pool->span)
		return -ENOENT;
	pthread_mutex_lock(&pool->lock);
	tag = pool_tag_at(pool, offset);
	if (pool_tag_type(tag) == POOL_PAGE_SLAB)
		ret = lookup_block(pool, pool_tag_slab(tag), offset, block);
	else
		ret = lookup_span(pool, offset, block);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}

/* Where the length of what starts at @offset is noted, through @slot. */
static int piece_slot(struct accmem_pool *pool, uint64_t offset,
		      struct pool_slot *slot, bool *small, bool *inherited)
{
	struct pool_page *entry = &pool->table[offset >> POOL_PAGE_SHIFT];
	uint64_t tag = pool_load(&entry->tag);
	struct pool_slab *slab;
	uint32_t index;

	slot->offset = offset;
	*small = pool_tag_type(tag) == POOL_PAGE_SLAB;
	if (*small) {
		slab = pool_tag_slab(tag);
		index = (offset - slab->start) / slab->size;
		if (index >= slab->count || (offset - slab->start) % slab->size)
			return -EINVAL;
		*inherited = slab->inherited;
		slot->length16 = &slab->length[index];
		return 0;
	}
	if (pool_tag_type(tag) != POOL_PAGE_SPAN || offset % POOL_PAGE)
		return -EINVAL;
	*inherited = tag & POOL_INHERITED;
	slot->length64 = &entry->value;
	return 0;
}

int accmem_piece_detach(struct accmem_pool *pool, uint64_t offset,
			uint64_t *usable)
{
	uint64_t tag = pool_tag_at(pool, offset);
	struct pool_slot slot;
	bool small, inherited;
	int ret = piece_slot(pool, offset, &slot, &small, &inherited);
	uint64_t length;

	if (ret)
		return ret;
	length =
		small ? __atomic_exchange_n(slot.length16, 0,
					    __ATOMIC_RELAXED) :
			__atomic_exchange_n(slot.length64, 0, __ATOMIC_RELAXED);
	if (!length)
		return -ENOENT;
	*usable = small ? accmem_piece_usable(length) :
			  pool_tag_pages(tag) * POOL_PAGE;
	return inherited ? 1 : 0;
}

void accmem_piece_attach(struct accmem_pool *pool, uint64_t offset,
			 uint64_t length)
{
	struct pool_page *entry = &pool->table[offset >> POOL_PAGE_SHIFT];
	uint64_t tag = pool_load(&entry->tag);
	struct pool_slab *slab;

	if (pool_tag_type(tag) == POOL_PAGE_SPAN) {
		pool_store(&entry->value, length);
		return;
	}
	slab = pool_tag_slab(tag);
	__atomic_store_n(&slab->length[(offset - slab->start) / slab->size],
			 length, __ATOMIC_RELAXED);
}

/* The table still knows what there is, and whose. */
void accmem_piece_disown(struct accmem_pool *pool, uint32_t first,
			 uint32_t pages)
{
	struct pool_page *entry = &pool->table[first];

	for (; pages--; entry++) {
		switch (pool_tag_type(entry->tag)) {
		case POOL_PAGE_SLAB:
			pool_tag_slab(entry->tag)->inherited = true;
			break;
		case POOL_PAGE_SPAN:
			entry->tag |= POOL_INHERITED;
			break;
		default:
			entry->tag = POOL_PAGE_INSIDE;
		}
	}
}
