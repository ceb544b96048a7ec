// SPDX-License-Identifier: MIT
/*
 * Slabs: spans that are divided into blocks of one size class, of at most 2 KiB.
 *
 * No data about a block is stored in the block, because the CPU may have no mapping of
 * device memory. The structures of slabs are freed with the pool only, so that a lookup of
 * an arbitrary pointer needs no lock.
 *
 * Locking: accmem_pool.lock, held by all callers.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "pool/base.h"
#include "pool/heap.h"
#include "pool/size.h"
#include "pool/slab.h"

#define SLABS_AT_ONCE 64

static bool slab_chunk_create(struct accmem_pool *pool)
{
	struct pool_slab *chunk;

	chunk = mmap(NULL, SLABS_AT_ONCE * sizeof(*chunk),
		     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (chunk == MAP_FAILED)
		return false;
	/* the first structure of a chunk only links the chunks */
	chunk->next = pool->slab_chunks;
	pool->slab_chunks = chunk;
	pool->slabs_cut = 1;
	return true;
}

/* Return an unused structure, or cut one from the newest chunk. */
struct pool_slab *accmem_pool_slab_alloc(struct accmem_pool *pool)
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
	slab->size = accmem_pool_class_size(size_class);
	slab->inverse = (1ull << 32) / slab->size + 1;
	slab->count = POOL_SLAB_BYTES / slab->size;
	slab->heap = heap;
	slab->size_class = size_class;
	slab->inherited = false;
	slab->nr_free = slab->count;
	/* allocation takes the last index first: the lowest block */
	for (i = 0; i < slab->count; i++) {
		slab->length[i] = 0;
		slab->free[i] = slab->count - 1 - i;
	}
}

static void slab_tag(struct accmem_pool *pool, uint64_t start, uint64_t tag)
{
	uint32_t page = start >> POOL_PAGE_SHIFT, i;

	/* last: a release of a stale pointer may read the tag without a lock */
	for (i = 0; i < POOL_SLAB_PAGES; i++)
		__atomic_store_n(&pool->table[page + i].tag, tag,
				 __ATOMIC_RELEASE);
}

void accmem_pool_slab_init(struct accmem_pool *pool, struct pool_slab *slab,
			   uint64_t offset, uint32_t size_class)
{
	uint64_t tag = pool_tag_at(pool, offset);

	slab_start(slab, offset, pool_tag_heap(tag), size_class);
	slab_tag(pool, offset, (uintptr_t)slab | POOL_PAGE_SLAB);
	slab_link(&pool->heaps[slab->heap], slab);
}

void accmem_pool_slab_free(struct accmem_pool *pool, struct pool_slab *slab)
{
	slab->next = pool->unused_slabs;
	pool->unused_slabs = slab;
}

static void slab_destroy(struct accmem_pool *pool, struct pool_slab *slab)
{
	struct pool_heap *heap = &pool->heaps[slab->heap];

	slab_unlink(heap, slab);
	slab_tag(pool, slab->start, POOL_PAGE_INSIDE);
	pool_lock_heap(pool, heap);
	accmem_pool_heap_add(pool, heap, slab->start >> POOL_PAGE_SHIFT,
			     POOL_SLAB_PAGES);
	pool_unlock_heap(pool, heap);
	accmem_pool_slab_free(pool, slab);
}

int accmem_pool_slab_alloc_blocks(struct accmem_pool *pool,
				  struct pool_slab *slab,
				  struct pool_slot *slots, int count)
{
	uint32_t block;
	int taken = 0;

	while (taken < count && slab->nr_free) {
		block = slab->free[--slab->nr_free];
		slots[taken].offset = slab->start + block * slab->size;
		slots[taken++].length16 = &slab->length[block];
	}
	if (!slab->nr_free)
		slab_unlink(&pool->heaps[slab->heap], slab);
	return taken;
}

void accmem_pool_slab_free_block(struct accmem_pool *pool, uint64_t offset)
{
	uint64_t tag = pool_tag_at(pool, offset);
	struct pool_slab *slab = pool_tag_slab(tag);
	struct pool_heap *heap = &pool->heaps[slab->heap];

	if (!slab->nr_free)
		slab_link(heap, slab);
	slab->free[slab->nr_free++] = (offset - slab->start) / slab->size;
	/* an empty slab stays if no other slab of its class has free blocks */
	if (slab->nr_free == slab->count && (slab->next || slab->prev))
		slab_destroy(pool, slab);
}

void accmem_pool_slab_destroy_all(struct accmem_pool *pool)
{
	struct pool_slab *chunk;

	while ((chunk = pool->slab_chunks)) {
		pool->slab_chunks = chunk->next;
		munmap(chunk, SLABS_AT_ONCE * sizeof(*chunk));
	}
}

void accmem_pool_slab_trim(struct accmem_pool *pool)
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
