// SPDX-License-Identifier: MIT
/*
 * Pieces: blocks of slabs and spans of regions, by their offset in the window.
 *
 * A lookup of an offset inside a long span follows the hints of span.c. It checks each
 * hint, because a hint of an earlier span may still be there.
 *
 * Locking: accmem_pool.lock, held by all callers except those of
 * accmem_pool_piece_lookup() and accmem_pool_piece_map(), which take it.
 */
#include <errno.h>

#include "pool/base.h"
#include "pool/piece.h"
#include "pool/region.h"
#include "pool/size.h"
#include "pool/slab.h"
#include "pool/span.h"

void accmem_pool_piece_free(struct accmem_pool *pool, uint64_t offset)
{
	uint64_t tag = pool_tag_at(pool, offset);

	if (pool_tag_type(tag) == POOL_PAGE_SLAB)
		accmem_pool_slab_free_block(pool, offset);
	else
		accmem_pool_span_free(pool, offset);
}

/* Does a span begin at @first and contain @page? */
static bool span_has(const struct accmem_pool *pool, uint32_t first,
		     uint32_t page)
{
	uint64_t tag = pool_load(&pool->table[first].tag);

	return pool_tag_type(tag) == POOL_PAGE_SPAN &&
	       page - first < pool_tag_pages(tag);
}

/* Return the first page of the span that contains @page, or POOL_NONE. */
static uint32_t span_of(const struct accmem_pool *pool, uint32_t page)
{
	uint32_t one = page, back, hint;

	for (back = 0; back <= POOL_HINT_PAGES && back <= page; back++) {
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
			 pool_slab_sort(slab), length & ~POOL_EARLY16,
			 slab->size, block);
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
	/* acquire: the second load of the tag comes after this load */
	length = __atomic_load_n(&pool->table[first].value, __ATOMIC_ACQUIRE);
	usable = pool_tag_pages(tag) * POOL_PAGE;
	/* if the span was released meanwhile, @length may be a link of the free span */
	if (!length || pool_tag_type(tag) != POOL_PAGE_SPAN ||
	    pool_load(&pool->table[first].tag) != tag)
		return -ENOENT;
	if (!block)
		return 0;
	describe(pool, (uint64_t)first << POOL_PAGE_SHIFT, pool_tag_sort(tag),
		 length & ~POOL_EARLY64, usable, block);
	/* only a request for pages of 2 MiB gets a span of this shape */
	if (pool_tag_sort(tag) == POOL_DEVICE && !(first % POOL_HUGE_PAGES) &&
	    !(pool_tag_pages(tag) % POOL_HUGE_PAGES))
		block->page_size = POOL_HUGE_PAGES * POOL_PAGE;
	return 0;
}

int accmem_pool_piece_lookup(struct accmem_pool *pool, uint64_t offset,
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

/* Set @slot to the piece that starts at @offset. */
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

int accmem_pool_piece_detach(struct accmem_pool *pool, uint64_t offset,
			     uint64_t *usable, bool *early)
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
	*early = length & (small ? POOL_EARLY16 : POOL_EARLY64);
	*usable = small ? accmem_pool_size_usable(length & ~POOL_EARLY16) :
			  pool_tag_pages(tag) * POOL_PAGE;
	return inherited ? 1 : 0;
}

void accmem_pool_piece_attach_early(struct accmem_pool *pool, uint64_t offset,
				    uint64_t length)
{
	struct pool_page *entry = &pool->table[offset >> POOL_PAGE_SHIFT];
	uint64_t tag = pool_load(&entry->tag);
	struct pool_slab *slab;

	if (pool_tag_type(tag) == POOL_PAGE_SPAN) {
		pool_store(&entry->value, length | POOL_EARLY64);
		return;
	}
	slab = pool_tag_slab(tag);
	__atomic_store_n(&slab->length[(offset - slab->start) / slab->size],
			 length | POOL_EARLY16, __ATOMIC_RELAXED);
}

int accmem_pool_piece_map(struct accmem_pool *pool, uint64_t offset)
{
	int ret;

	pthread_mutex_lock(&pool->lock);
	ret = accmem_pool_region_map(pool, offset >> POOL_PAGE_SHIFT);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}
