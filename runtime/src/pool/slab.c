// SPDX-License-Identifier: MIT
/*
 * Slabs: spans cut into blocks of one size, for what is smaller than a page.
 *
 * Nothing about a block is kept in the block: device memory is not the CPU's to
 * write. The structure of a slab is never given back to the process, so that a wild
 * pointer is looked up without a lock.
 *
 * Locking: accmem_pool.lock, held by all callers.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "pool/pool.h"

#define SLABS_AT_ONCE 64

static const uint16_t sizes[POOL_NR_CLASSES] = {
	64,  128, 192, 256,  320,  384,	 448,  512,
	640, 768, 896, 1024, 1280, 1536, 1792, 2048,
};

/* By length in units of 64 bytes, rounded up. */
static const uint8_t classes[POOL_SMALL_MAX / POOL_UNIT + 1] = {
	0,  0,	1,  2,	3,  4,	5,  6,	7,  8,	8,  9,	9,  10, 10, 11, 11,
	12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 15,
};

uint32_t accmem_slab_class(uint64_t length)
{
	return classes[(length + POOL_UNIT - 1) / POOL_UNIT];
}

uint32_t accmem_slab_size(uint32_t size_class)
{
	return sizes[size_class];
}

static bool slab_chunk_create(struct accmem_pool *pool)
{
	struct pool_slab *chunk;

	chunk = mmap(NULL, SLABS_AT_ONCE * sizeof(*chunk),
		     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (chunk == MAP_FAILED)
		return false;
	/* the first is what they are given back by */
	chunk->next = pool->slab_chunks;
	pool->slab_chunks = chunk;
	pool->slabs_cut = 1;
	return true;
}

/* One that was used before, or the next of a chunk, each of which costs a fault or two. */
static struct pool_slab *slab_structure(struct accmem_pool *pool)
{
	struct pool_slab *slab = pool->unused_slabs;

	if (slab) {
		pool->unused_slabs = slab->next;
		return slab;
	}
	if ((!pool->slab_chunks || pool->slabs_cut == SLABS_AT_ONCE) &&
	    !slab_chunk_create(pool))
		return NULL;
	return &pool->slab_chunks[pool->slabs_cut++];
}

static void slab_link(struct pool_heap *heap, struct pool_slab *slab)
{
	struct pool_slab **head = &heap->slabs[slab->size_class];

	slab->prev = NULL;
	slab->next = *head;
	if (*head)
		(*head)->prev = slab;
	*head = slab;
}

static void slab_unlink(struct pool_heap *heap, struct pool_slab *slab)
{
	if (slab->next)
		slab->next->prev = slab->prev;
	if (slab->prev)
		slab->prev->next = slab->next;
	else
		heap->slabs[slab->size_class] = slab->next;
}

static void slab_start(struct pool_slab *slab, uint64_t start, uint32_t heap,
		       uint32_t size_class)
{
	uint32_t i;

	slab->start = start;
	slab->size = sizes[size_class];
	slab->inverse = (1ull << 32) / slab->size + 1;
	slab->count = POOL_SLAB_BYTES / slab->size;
	slab->heap = heap;
	slab->size_class = size_class;
	slab->inherited = false;
	slab->nr_free = slab->count;
	/* the lowest first */
	for (i = 0; i < slab->count; i++) {
		slab->length[i] = 0;
		slab->free[i] = slab->count - 1 - i;
	}
}

static void slab_tag(struct accmem_pool *pool, uint64_t start, uint64_t tag)
{
	uint32_t page = start >> POOL_PAGE_SHIFT, i;

	/* who releases an address that is nothing any more finds it whole, too */
	for (i = 0; i < POOL_SLAB_PAGES; i++)
		__atomic_store_n(&pool->table[page + i].tag, tag,
				 __ATOMIC_RELEASE);
}

/* In the span that there is, whichever arena's that be. */
static int slab_create(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		       uint32_t size_class, struct pool_slab **result)
{
	struct pool_slab *slab = slab_structure(pool);
	struct pool_slot slot;
	uint64_t tag;
	int ret;

	if (!slab)
		return -ENOMEM;
	ret = accmem_span_take(pool, arena, sort, POOL_SLAB_PAGES, 1, &slot);
	if (ret) {
		slab->next = pool->unused_slabs;
		pool->unused_slabs = slab;
		return ret;
	}
	tag = pool_tag_at(pool, slot.offset);
	slab_start(slab, slot.offset, pool_tag_heap(tag), size_class);
	slab_tag(pool, slot.offset, (uintptr_t)slab | POOL_PAGE_SLAB);
	slab_link(&pool->heaps[slab->heap], slab);
	*result = slab;
	return 0;
}

/* One with free blocks; before it fails, another arena's. */
static int slab_find(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t size_class, struct pool_slab **slab)
{
	uint32_t heap = pool_heap_of(arena, sort, POOL_SLAB_PAGES), i;
	int ret;

	*slab = pool->heaps[heap].slabs[size_class];
	if (*slab)
		return 0;
	ret = slab_create(pool, arena, sort, size_class, slab);
	for (i = 0; ret && i < POOL_NR_ARENAS; i++) {
		heap = pool_heap_of(i, sort, POOL_SLAB_PAGES);
		*slab = pool->heaps[heap].slabs[size_class];
		if (*slab)
			return 0;
	}
	return ret;
}

static void slab_destroy(struct accmem_pool *pool, struct pool_slab *slab)
{
	struct pool_heap *heap = &pool->heaps[slab->heap];

	slab_unlink(heap, slab);
	slab_tag(pool, slab->start, POOL_PAGE_INSIDE);
	pool_lock_heap(pool, heap);
	accmem_heap_add(pool, heap, slab->start >> POOL_PAGE_SHIFT,
			POOL_SLAB_PAGES);
	pool_unlock_heap(pool, heap);
	slab->next = pool->unused_slabs;
	pool->unused_slabs = slab;
}

int accmem_slab_take(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t size_class, struct pool_slot *slots, int count)
{
	struct pool_slab *slab;
	uint32_t block;
	int taken = 0;
	int ret;

	ret = slab_find(pool, arena, sort, size_class, &slab);
	if (ret)
		return ret;
	while (taken < count && slab->nr_free) {
		block = slab->free[--slab->nr_free];
		slots[taken].offset = slab->start + block * slab->size;
		slots[taken++].length16 = &slab->length[block];
	}
	if (!slab->nr_free)
		slab_unlink(&pool->heaps[slab->heap], slab);
	return taken;
}

void accmem_slab_give(struct accmem_pool *pool, uint64_t offset)
{
	uint64_t tag = pool_tag_at(pool, offset);
	struct pool_slab *slab = pool_tag_slab(tag);
	struct pool_heap *heap = &pool->heaps[slab->heap];

	if (!slab->nr_free)
		slab_link(heap, slab);
	slab->free[slab->nr_free++] = (offset - slab->start) / slab->size;
	/* one that is all free is kept, if it is the only one of its size_class */
	if (slab->nr_free == slab->count && (slab->next || slab->prev))
		slab_destroy(pool, slab);
}

void accmem_slab_destroy_all(struct accmem_pool *pool)
{
	struct pool_slab *chunk;

	while ((chunk = pool->slab_chunks)) {
		pool->slab_chunks = chunk->next;
		munmap(chunk, SLABS_AT_ONCE * sizeof(*chunk));
	}
}

void accmem_slab_trim(struct accmem_pool *pool)
{
	struct pool_slab *slab, *next;
	uint32_t heap, size_class;

	for (heap = 0; heap < POOL_NR_HEAPS; heap++) {
		for (size_class = 0; size_class < POOL_NR_CLASSES;
		     size_class++) {
			slab = pool->heaps[heap].slabs[size_class];
			for (; slab; slab = next) {
				next = slab->next;
				if (slab->nr_free == slab->count)
					slab_destroy(pool, slab);
			}
		}
	}
}
