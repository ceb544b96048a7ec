// SPDX-License-Identifier: MIT
/*
 * Regions: resizable buffers of the driver, which heaps divide into spans.
 *
 * A region grows in place when its heap needs memory, shrinks from its end, and is freed
 * when it is all free. With mapped translation it reserves device addresses for growth
 * when it is created. With identity translation it is placed where much memory is free,
 * and grows while the memory behind it is free. The last page of a region is never used:
 * its entry in the table separates the free spans of regions that are adjacent.
 *
 * Locking: accmem_pool.lock, held by all callers and over the driver's calls. While a
 * region changes, pool_arena.lock is held as well, so that no thread allocates pages that
 * are being added or removed.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/buffer.h"
#include "core/call.h"
#include "pool/base.h"
#include "pool/direct_tree.h"
#include "pool/heap.h"
#include "pool/region.h"

#define RESERVE (1ull << 30)
#define STEP_SHARE 64 /* a heap grows by 1/64 of its size at least */
#define HUGE_PAGE (POOL_HUGE_PAGES * POOL_PAGE)

static uint32_t kind_of(uint32_t heap)
{
	uint32_t sort = heap % POOL_NR_SORTS;

	return sort == POOL_HOST   ? ACCMEM_KIND_HOST :
	       sort == POOL_SHARED ? ACCMEM_KIND_SHARED :
				     ACCMEM_KIND_DEVICE;
}

static uint32_t heap_index(const struct accmem_pool *pool,
			   const struct pool_heap *heap)
{
	return heap - pool->heaps;
}

/* The page after the last page that may be used. */
static uint32_t usable_end(const struct pool_region *region)
{
	return region->first + region->pages - 1;
}

static uint32_t step_of(const struct pool_heap *heap)
{
	uint64_t step = heap->pages / STEP_SHARE;

	step = (step + POOL_STEP_PAGES - 1) / POOL_STEP_PAGES * POOL_STEP_PAGES;
	return step > POOL_STEP_PAGES ? step : POOL_STEP_PAGES;
}

static int map_region(struct accmem_pool *pool, struct pool_region *region)
{
	void *pointer;
	int ret;

	if (region->mapped)
		return 0;
	ret = accmem_map(pool->ctx, region->address, PROT_READ | PROT_WRITE,
			 &pointer);
	region->mapped = !ret;
	return ret;
}

static void count_pages(struct accmem_pool *pool, struct pool_heap *heap,
			int64_t pages)
{
	heap->pages += pages;
	accmem_pool_count_reserved(pool, pages * (int64_t)POOL_PAGE);
}

static int resize(struct accmem_pool *pool, struct pool_region *region,
		  uint32_t pages)
{
	struct accmem_realloc req = { .flags = ACCMEM_REALLOC_IN_PLACE,
				      .address = region->address,
				      .length = pages * POOL_PAGE };

	pool->stats.kernel_calls++;
	return accmem_reallocate_now(pool->ctx, &req);
}

/* Map the new part of a region that is mapped. */
static int map_extension(struct accmem_pool *pool, struct pool_region *region)
{
	if (!region->mapped)
		return 0;
	region->mapped = false;
	return map_region(pool, region);
}

/*
 * The child was given addresses of inherited regions: the parent has freed these. The memory
 * before them may still be the parent's.
 */
void accmem_pool_region_drop_inherited(struct accmem_pool *pool, uint32_t first,
				       uint32_t pages)
{
	struct pool_region **link = &pool->inherited, *region;
	uint32_t i, kept;

	while ((region = *link)) {
		if (region->first - first >= pages &&
		    first - region->first >= region->pages) {
			link = &region->next;
			continue;
		}
		kept = region->first < first ? first - region->first : 0;
		for (i = kept; i < region->pages; i++)
			pool_store(&pool->table[region->first + i].tag,
				   POOL_PAGE_INSIDE);
		region->pages = kept;
		if (kept)
			continue;
		*link = region->next;
		free(region);
	}
}

/* Drop all records of the parent at the addresses of a new region. */
static void drop_inherited(struct accmem_pool *pool, uint32_t first,
			   uint32_t pages)
{
	accmem_pool_region_drop_inherited(pool, first, pages);
	accmem_pool_direct_drop_range(pool, pool->base + first * POOL_PAGE,
				      pages * POOL_PAGE);
}

static int extend_region(struct accmem_pool *pool, struct pool_heap *heap,
			 struct pool_region *region, uint32_t more)
{
	uint32_t end = usable_end(region);
	int ret;

	ret = resize(pool, region, region->pages + more);
	if (ret)
		return ret;
	ret = map_extension(pool, region);
	if (ret) {
		region->mapped = true;
		resize(pool, region, region->pages);
		return ret;
	}
	drop_inherited(pool, end + 1, more);
	region->pages += more;
	count_pages(pool, heap, more);
	accmem_pool_heap_add(pool, heap, end, more);
	return 0;
}

/* Is the heap one of short spans on a device with identity translation (types.h)? */
static bool is_top_down(const struct accmem_pool *pool, uint32_t heap)
{
	return pool->identity && kind_of(heap) == ACCMEM_KIND_DEVICE &&
	       heap / POOL_NR_SORTS % 2;
}

/* The driver does not resize shared memory. */
static bool is_resizable(uint32_t heap)
{
	return kind_of(heap) != ACCMEM_KIND_SHARED;
}

static int call_alloc(struct accmem_pool *pool, uint32_t heap, uint64_t length,
		      uint64_t reserve, struct accmem_alloc *alloc)
{
	*alloc = (struct accmem_alloc){
		.flags = (is_resizable(heap) ? ACCMEM_ALLOC_RESIZABLE : 0) |
			 (is_top_down(pool, heap) ? ACCMEM_ALLOC_TOP_DOWN : 0),
		.length = length,
		.alignment = pool->granted < HUGE_PAGE ? pool->granted :
							 HUGE_PAGE,
		.page_policy = heap % POOL_NR_SORTS == POOL_NORMAL ?
				       ACCMEM_PAGE_NORMAL_ONLY :
				       ACCMEM_PAGE_ANY,
		.kind = kind_of(heap),
		.reserve = reserve,
	};
	pool->stats.kernel_calls++;
	return accmem_allocate_now(pool->ctx, alloc);
}

/* With identity translation, a region is to be where the largest run of memory is free. */
static uint64_t largest_run(struct accmem_pool *pool)
{
	struct accmem_info info;

	return accmem_sum_info(pool->ctx, &info) ?
		       0 :
		       info.largest_run & -POOL_PAGE;
}

/*
 * Bytes, @length included, that a new region should find free; or 0. With mapped
 * translation they are device addresses, which it then owns; else they are memory.
 */
static uint64_t reserve_of(struct accmem_pool *pool, uint32_t heap,
			   uint64_t length)
{
	uint64_t reserve = RESERVE;

	if (!is_resizable(heap) || is_top_down(pool, heap))
		return 0;
	if (pool->identity && kind_of(heap) == ACCMEM_KIND_DEVICE)
		reserve = largest_run(pool);
	else if (reserve > pool->span / 2)
		return 0;
	return reserve > length ? reserve : length;
}

/* Allocate with a reservation, so that the region can grow; without one if that fails. */
static int allocate_buffer(struct accmem_pool *pool, uint32_t heap,
			   uint64_t length, struct accmem_alloc *alloc)
{
	uint64_t reserve = reserve_of(pool, heap, length);
	int ret = call_alloc(pool, heap, length, reserve, alloc);

	if (!ret || !reserve || ret == -EDQUOT)
		return ret;
	return call_alloc(pool, heap, length, 0, alloc);
}

static int create_region(struct accmem_pool *pool, struct pool_heap *heap,
			 uint32_t pages)
{
	uint32_t index = heap_index(pool, heap);
	struct pool_region *region = calloc(1, sizeof(*region));
	struct accmem_alloc alloc;
	int ret;

	if (!region)
		return -ENOMEM;
	ret = allocate_buffer(pool, index, pages * POOL_PAGE, &alloc);
	if (ret)
		goto free_region;
	if (!accmem_pool_pointer(pool, alloc.address)) {
		ret = -ENOMEM;
		goto free_buffer;
	}
	region->address = alloc.address;
	region->first = (alloc.address - pool->base) >> POOL_PAGE_SHIFT;
	region->pages = pages;
	if (kind_of(index) != ACCMEM_KIND_DEVICE) {
		ret = map_region(pool, region);
		if (ret)
			goto free_buffer;
	}
	drop_inherited(pool, region->first, pages);
	region->next = heap->regions;
	heap->regions = region;
	pool->stats.kernel_buffers++;
	count_pages(pool, heap, pages);
	accmem_pool_heap_add(pool, heap, region->first, pages - 1);
	return 0;

free_buffer:
	accmem_release_now(pool->ctx, alloc.address);
free_region:
	free(region);
	return ret;
}

/* Grow a region by @step pages; by those that a span needs if these are more, or all. */
static int grow_region(struct accmem_pool *pool, struct pool_heap *heap,
		       struct pool_region *region, uint32_t pages,
		       uint32_t alignment, uint32_t step)
{
	uint32_t end = usable_end(region);
	uint32_t start = accmem_pool_heap_free_start(pool, end);
	uint32_t need = (-start & (alignment - 1)) + pages;
	int ret;

	if (need <= end - start || !is_resizable(heap_index(pool, heap)))
		return -ENOMEM;
	need -= end - start;
	ret = extend_region(pool, heap, region, need > step ? need : step);
	if (pool_is_short(ret) && step > need)
		ret = extend_region(pool, heap, region, need);
	return ret;
}

/*
 * Grow the newest region by a step, or by the pages needed; or create another region; or
 * grow an older region of long spans. Short spans fit wherever an older region could grow.
 */
static int grow_locked(struct accmem_pool *pool, struct pool_heap *heap,
		       uint32_t pages, uint32_t alignment)
{
	struct pool_region *region = heap->regions;
	uint32_t step = step_of(heap), need = pages + 1;
	int ret = -ENOMEM;

	if (region)
		ret = grow_region(pool, heap, region, pages, alignment, step);
	if (!ret)
		return 0;
	ret = create_region(pool, heap, need > step ? need : step);
	if (pool_is_short(ret) && step > need)
		ret = create_region(pool, heap, need);
	if (!pool_is_short(ret) || pages <= POOL_CACHED_PAGES)
		return ret;
	while (region && (region = region->next))
		if (!grow_region(pool, heap, region, pages, alignment, 0))
			return 0;
	return ret;
}

int accmem_pool_region_grow(struct accmem_pool *pool, struct pool_heap *heap,
			    uint32_t pages, uint32_t alignment, uint32_t *first)
{
	int ret;

	pool_lock_heap(pool, heap);
	ret = grow_locked(pool, heap, pages, alignment);
	if (!ret) {
		*first = accmem_pool_heap_alloc(pool, heap, pages, alignment,
						POOL_SCAN_FEW);
		if (*first == POOL_NONE)
			ret = -ENOMEM;
	}
	pool_unlock_heap(pool, heap);
	return ret;
}

static uint64_t release_region(struct accmem_pool *pool, struct pool_heap *heap,
			       struct pool_region **link)
{
	struct pool_region *region = *link;
	uint64_t bytes = region->pages * POOL_PAGE;
	int ret;

	accmem_pool_heap_remove(pool, heap, region->first, usable_end(region));
	pool->stats.kernel_calls++;
	ret = accmem_release_now(pool->ctx, region->address);
	if (ret && ret != -ENOENT) {
		accmem_pool_heap_add(pool, heap, region->first,
				     region->pages - 1);
		return 0;
	}
	pool->stats.kernel_buffers--;
	count_pages(pool, heap, -(int64_t)region->pages);
	*link = region->next;
	free(region);
	return bytes;
}

/* Shorten a region by @less pages. These are free, and so is the last page of the rest. */
static uint64_t truncate_region(struct accmem_pool *pool,
				struct pool_heap *heap,
				struct pool_region *region, uint32_t less)
{
	uint32_t end = usable_end(region);

	accmem_pool_heap_remove(pool, heap, end - less, end);
	if (resize(pool, region, region->pages - less)) {
		accmem_pool_heap_add(pool, heap, end - less, less);
		return 0;
	}
	region->pages -= less;
	count_pages(pool, heap, -(int64_t)less);
	return less * POOL_PAGE;
}

static uint64_t shrink_one(struct accmem_pool *pool, struct pool_heap *heap,
			   struct pool_region **link, uint64_t excess)
{
	struct pool_region *region = *link;
	uint32_t end = usable_end(region);
	uint32_t start = accmem_pool_heap_free_start(pool, end);
	bool resizable = is_resizable(heap_index(pool, heap));

	if (start == region->first &&
	    (excess >= region->pages * POOL_PAGE || !resizable))
		return release_region(pool, heap, link);
	if (!resizable)
		return 0;
	if (start == region->first)
		start++;
	if (excess >> POOL_PAGE_SHIFT < end - start)
		start = end - (excess >> POOL_PAGE_SHIFT);
	return start < end ? truncate_region(pool, heap, region, end - start) :
			     0;
}

static uint64_t shrink_heap(struct accmem_pool *pool, struct pool_heap *heap,
			    uint64_t excess)
{
	struct pool_region **link = &heap->regions, *region;
	uint64_t bytes = 0;

	pool_lock_heap(pool, heap);
	while (*link && bytes < excess) {
		region = *link;
		bytes += shrink_one(pool, heap, link, excess - bytes);
		if (*link == region)
			link = &region->next;
	}
	pool_unlock_heap(pool, heap);
	return bytes;
}

/* Bytes of the free spans, and of the last pages of regions that may be all free. */
static uint64_t count_free(struct accmem_pool *pool)
{
	uint64_t pages = 0;
	uint32_t i;

	accmem_pool_lock_arenas(pool);
	for (i = 0; i < POOL_NR_HEAPS; i++)
		if (pool->heaps[i].regions)
			pages += pool->heaps[i].free_pages + 1;
	accmem_pool_unlock_arenas(pool);
	return pages * POOL_PAGE;
}

uint64_t accmem_pool_region_shrink(struct accmem_pool *pool,
				   uint64_t keep_bytes)
{
	uint64_t bytes = 0, free_bytes = count_free(pool);
	uint32_t i;

	if (free_bytes <= keep_bytes)
		return 0;
	for (i = 0; i < POOL_NR_HEAPS && bytes < free_bytes - keep_bytes; i++)
		bytes += shrink_heap(pool, &pool->heaps[i],
				     keep_bytes ?
					     free_bytes - keep_bytes - bytes :
					     UINT64_MAX);
	return bytes;
}

void accmem_pool_region_drop_excess(struct accmem_pool *pool)
{
	uint64_t keep_bytes = pool_keep_bytes(pool);

	if (keep_bytes != ACCMEM_POOL_KEEP_ALL)
		accmem_pool_region_shrink(pool, keep_bytes);
}

static struct pool_region *region_of(struct pool_region *region, uint32_t page)
{
	while (region && page - region->first >= region->pages)
		region = region->next;
	return region;
}

int accmem_pool_region_map(struct accmem_pool *pool, uint32_t page)
{
	struct pool_region *region = region_of(pool->inherited, page);
	uint32_t i;

	for (i = 0; i < POOL_NR_HEAPS && !region; i++)
		region = region_of(pool->heaps[i].regions, page);
	return region ? map_region(pool, region) : -ENOENT;
}

/* In a child, mark each slab and span as inherited, so that its release frees nothing. */
static void disown_pages(struct accmem_pool *pool, uint32_t first,
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

/* In a child, the heaps start without memory. */
void accmem_pool_region_disown(struct accmem_pool *pool)
{
	struct pool_region *region, *next;
	struct pool_lists *lists;
	uint32_t i;

	for (i = 0; i < POOL_NR_HEAPS; i++) {
		for (region = pool->heaps[i].regions; region; region = next) {
			next = region->next;
			disown_pages(pool, region->first, region->pages);
			region->next = pool->inherited;
			pool->inherited = region;
		}
		lists = pool->heaps[i].lists;
		*lists = (struct pool_lists){};
		pool->heaps[i] = (struct pool_heap){ .lists = lists };
	}
}

static void free_inherited(struct accmem_pool *pool)
{
	struct pool_region *region;

	while ((region = pool->inherited)) {
		pool->inherited = region->next;
		free(region);
	}
}

void accmem_pool_region_destroy_all(struct accmem_pool *pool)
{
	struct pool_region *region;
	uint32_t i;

	for (i = 0; i < POOL_NR_HEAPS; i++) {
		while ((region = pool->heaps[i].regions)) {
			pool->heaps[i].regions = region->next;
			accmem_release_now(pool->ctx, region->address);
			free(region);
		}
	}
	free_inherited(pool);
}
