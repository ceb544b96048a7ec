/* SPDX-License-Identifier: MIT */
/* The structures of a pool, and accessors that read and write fields only. */
#ifndef ACCMEM_RUNTIME_POOL_TYPES_H
#define ACCMEM_RUNTIME_POOL_TYPES_H

#include <accmem_pool.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Sizes. Up to POOL_SMALL_MAX bytes an allocation is a block of a slab, which has
 * blocks of one class; up to POOL_CACHED_PAGES pages a span of pages that threads
 * cache; up to POOL_LARGE_MAX bytes a span that they do not; above, and whenever it
 * has wishes of its own, a buffer of the kernel's.
 */
#define POOL_PAGE_SHIFT 12
#define POOL_PAGE (1ull << POOL_PAGE_SHIFT)
#define POOL_UNIT 64
#define POOL_SMALL_MAX 2048
#define POOL_NR_CLASSES 16
#define POOL_SLAB_PAGES 16
#define POOL_SLAB_BYTES (POOL_SLAB_PAGES * POOL_PAGE)
#define POOL_BLOCKS_MAX (POOL_SLAB_BYTES / POOL_UNIT)
#define POOL_CACHED_PAGES 16
#define POOL_LARGE_MAX (256ull << 20)
#define POOL_HUGE_PAGES 512u /* of 4 KiB in one of 2 MiB */
#define POOL_NONE UINT32_MAX

#define POOL_CACHE_LINE 64
#define POOL_NO_EVENTFD (-1)
#define POOL_PASSIVE (-2)

/* Lists of free spans: by pages up to 15, then 16 for each power of two. */
#define POOL_NR_LISTS (16 + 16 * 24)

/**
 * enum pool_sort - memory that is not mixed
 * @POOL_DEVICE: of the device, on whatever pages it comes
 * @POOL_HOST: of kind host
 * @POOL_SHARED: of kind shared
 * @POOL_NORMAL: of the device, on normal pages only
 */
enum pool_sort {
	POOL_DEVICE,
	POOL_HOST,
	POOL_SHARED,
	POOL_NORMAL,
	POOL_NR_SORTS,
};

/*
 * Each thread allocates from one of some arenas, so that threads seldom meet. An arena
 * has two heaps of each sort: long spans do not share regions with slabs and short ones,
 * which would keep the regions' ends from being given back.
 */
#define POOL_NR_ARENAS 4
#define POOL_HEAPS_OF_ARENA (2 * POOL_NR_SORTS)
#define POOL_NR_HEAPS (POOL_NR_ARENAS * POOL_HEAPS_OF_ARENA)

static inline uint32_t pool_heap_of(uint32_t arena, uint32_t sort,
				    uint32_t pages)
{
	uint32_t heap = arena * POOL_HEAPS_OF_ARENA + sort;

	return pages <= POOL_CACHED_PAGES ? heap + POOL_NR_SORTS : heap;
}

/* Bins of a thread's cache: the classes of each heap, then its short spans. */
#define POOL_BINS_OF_SORT (POOL_NR_CLASSES + POOL_CACHED_PAGES)
#define POOL_NR_BINS (POOL_NR_SORTS * POOL_BINS_OF_SORT)
#define POOL_BIN_SLOTS 64
#define POOL_CACHE_BYTES (1ull << 20)

/**
 * enum pool_page_type - what the entry of a page says
 * @POOL_PAGE_INSIDE: nothing: unused, or inside a span
 * @POOL_PAGE_FREE: the first page of a free span
 * @POOL_PAGE_END: the last page of one of more than a page
 * @POOL_PAGE_SPAN: the first page of a span that is allocated, or cached
 * @POOL_PAGE_SLAB: any page of a slab
 */
enum pool_page_type {
	POOL_PAGE_INSIDE,
	POOL_PAGE_FREE,
	POOL_PAGE_END,
	POOL_PAGE_SPAN,
	POOL_PAGE_SLAB,
};

#define POOL_TYPE_MASK 7ull
#define POOL_INHERITED 8ull /* of a span: it is the parent's */
#define POOL_HEAP_SHIFT 4
#define POOL_HEAP_MASK 0xffull
#define POOL_COUNT_SHIFT 12

/**
 * struct pool_page - the entry of a page
 * @tag: enum pool_page_type, with the number of pages above POOL_COUNT_SHIFT, or the
 *	address of the slab; of a span also its heap
 * @value: of a span the bytes asked for, 0 while it is cached; of a free one the
 *	pages before and after it in its list
 *
 * Of free pages written with the lock of their arena held, of others by whoever has them.
 * Both are read by whoever has a pointer, or pages beside them, hence with atomic loads.
 */
struct pool_page {
	uint64_t tag;
	union {
		uint64_t value;
		uint32_t link[2];
	};
};

/**
 * struct pool_slab - blocks of one class
 * @start: offset in the window
 * @size: bytes of a block
 * @inverse: 2^32 / @size, rounded up: to divide by multiplying
 * @count: blocks
 * @heap: index of its heap
 * @size_class: of its blocks
 * @inherited: it is the parent's
 * @nr_free: blocks in @free
 * @prev: in the list of slabs of its class that have free blocks
 * @next: likewise; of an unused structure, the next of those
 * @length: of each block the bytes asked for, 0 while it is free or cached
 * @free: indices of blocks that neither the program nor a cache has
 *
 * All under the pool's lock, but for what does not change while blocks are out, and
 * @length, where each entry is the block's owner's.
 */
struct pool_slab {
	uint64_t start;
	uint32_t size;
	uint32_t inverse;
	uint16_t count;
	uint8_t heap;
	uint8_t size_class;
	bool inherited;
	uint16_t nr_free;
	struct pool_slab *prev;
	struct pool_slab *next;
	uint16_t length[POOL_BLOCKS_MAX];
	uint16_t free[POOL_BLOCKS_MAX];
};

/**
 * struct pool_region - a buffer of the kernel's that spans are cut from
 * @address: its device address
 * @first: number of its first page
 * @pages: how many it has
 * @most: how many it may grow to
 * @mapped: for the CPU
 * @next: the next of its heap, an older one
 */
struct pool_region {
	uint64_t address;
	uint32_t first;
	uint32_t pages;
	uint32_t most;
	bool mapped;
	struct pool_region *next;
};

/**
 * struct pool_lists - free spans of a heap, by length
 * @heads: their first pages, plus 1; 0 in a list without any
 * @bits: which lists are not empty
 */
struct pool_lists {
	uint32_t heads[POOL_NR_LISTS];
	uint64_t bits[(POOL_NR_LISTS + 63) / 64];
};

/**
 * struct pool_heap - memory of one sort in one arena, of long spans or of short ones
 * @regions: where it is, the one that grows first
 * @pages: how many they have
 * @slabs: of each class those with free blocks
 * @free_pages: how many are free
 * @lists: these
 *
 * The first three under the pool's lock, the others under the arena's.
 */
struct pool_heap {
	struct pool_region *regions;
	uint64_t pages;
	struct pool_slab *slabs[POOL_NR_CLASSES];
	uint64_t free_pages;
	struct pool_lists *lists;
};

/**
 * struct pool_arena - where the memory of some threads comes from
 * @apart: the lock shares no cache line with what is before it
 * @lock: protects the free spans of its heaps
 * @threads: how many have it, under the pool's lock
 */
struct pool_arena {
	unsigned char apart[POOL_CACHE_LINE];
	pthread_mutex_t lock;
	uint32_t threads;
};

/**
 * struct pool_slot - a block, or a span, in a cache
 * @offset: in the window
 * @length: where its length is noted
 */
struct pool_slot {
	uint64_t offset;
	union {
		uint16_t *length16;
		uint64_t *length64;
	};
};

struct pool_bin {
	uint32_t count;
	struct pool_slot slots[POOL_BIN_SLOTS];
};

/**
 * struct pool_cache - what a thread has at hand of a pool
 * @pool: the pool, or NULL when that is gone
 * @next_of_thread: the thread's next, of another pool
 * @next_of_pool: another thread's, under the pool's lock
 * @arena: index of the thread's arena
 * @epoch: of the pool, when it was last looked at
 * @bytes: of what is in it
 * @live: usable bytes allocated minus released since they were last counted
 * @allocations: likewise how many
 * @releases: likewise
 * @bins: what is in it
 *
 * The thread's own, but for @pool and @next_of_pool. The counts are read by others.
 */
struct pool_cache {
	struct accmem_pool *pool;
	struct pool_cache *next_of_thread;
	struct pool_cache *next_of_pool;
	uint32_t arena;
	uint32_t epoch;
	uint64_t bytes;
	int64_t live;
	uint64_t allocations;
	uint64_t releases;
	struct pool_bin bins[POOL_NR_BINS];
};

struct pool_pending;
struct pool_history;

/**
 * struct accmem_pool - see accmem_pool.h
 * @ctx: the context under it
 * @window: host address that stands for @base
 * @base: lowest device address
 * @span: bytes of device addresses
 * @granted: largest alignment that pointers and device addresses have in common
 * @flags: ACCMEM_POOL_*
 * @keep_bytes: free bytes that are kept
 * @table: an entry for each page of the span
 * @lists: of the heaps
 * @epoch: changes when caches are to be given up
 * @arenas: locks of the heaps
 * @live_bytes: usable bytes of what is allocated, without what caches have not reported
 * @peak_live_bytes: most of that since the last reset
 * @lock: protects what follows
 * @heaps: memory in pieces, those of an arena beside one another
 * @caches: of all threads
 * @unused_slabs: structures that are not in use
 * @slab_chunks: what they are cut from, the newest first
 * @slabs_cut: structures of the newest that have been cut off
 * @inherited: regions of the parent, in a child
 * @pending: released at positions of streams
 * @pending_bytes: of those
 * @direct: tsearch() tree of struct direct: what the kernel was asked for one by one
 * @waiting: requests that may wait in the kernel; changed without the lock
 * @stats: counted so far
 * @history: what happened, or NULL
 * @eventfd: of the thread that gives back, POOL_NO_EVENTFD as long as it is not needed, or
 *	POOL_PASSIVE if there is none to be
 * @retry_ms: the thread could not begin, and does not before then; 0 if it did not fail.
 *	Read without the lock
 * @thread: that thread
 * @ends: it is to end
 * @next: next pool of the process, under the lock of their list
 */
struct accmem_pool {
	struct accmem_context *ctx;
	unsigned char *window;
	uint64_t base;
	uint64_t span;
	uint64_t granted;
	uint32_t flags;
	uint64_t keep_bytes;
	struct pool_page *table;
	struct pool_lists *lists;
	uint32_t epoch;

	/* what follows is written often */
	struct pool_arena arenas[POOL_NR_ARENAS];
	uint64_t live_bytes;
	uint64_t peak_live_bytes;
	pthread_mutex_t lock;
	struct pool_heap heaps[POOL_NR_HEAPS];
	struct pool_cache *caches;
	struct pool_slab *unused_slabs;
	struct pool_slab *slab_chunks;
	uint32_t slabs_cut;
	struct pool_region *inherited;
	struct pool_pending *pending;
	uint64_t pending_bytes;
	void *direct;
	int waiting;
	struct accmem_pool_stats stats;
	struct pool_history *history;
	int eventfd;
	uint64_t retry_ms;
	pthread_t thread;
	bool ends;

	struct accmem_pool *next;
};

static inline uint64_t pool_load(const uint64_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}

static inline void pool_store(uint64_t *value, uint64_t to)
{
	__atomic_store_n(value, to, __ATOMIC_RELAXED);
}

/* of the page at @offset; a slab that it leads to is whole. Pairs with slab_tag(). */
static inline uint64_t pool_tag_at(const struct accmem_pool *pool,
				   uint64_t offset)
{
	return __atomic_load_n(&pool->table[offset >> POOL_PAGE_SHIFT].tag,
			       __ATOMIC_ACQUIRE);
}

static inline uint32_t pool_tag_type(uint64_t tag)
{
	return tag & POOL_TYPE_MASK;
}

static inline uint32_t pool_tag_pages(uint64_t tag)
{
	return tag >> POOL_COUNT_SHIFT;
}

static inline uint32_t pool_tag_heap(uint64_t tag)
{
	return tag >> POOL_HEAP_SHIFT & POOL_HEAP_MASK;
}

static inline uint32_t pool_tag_sort(uint64_t tag)
{
	return pool_tag_heap(tag) % POOL_NR_SORTS;
}

static inline uint32_t pool_slab_sort(const struct pool_slab *slab)
{
	return slab->heap % POOL_NR_SORTS;
}

static inline struct pool_slab *pool_tag_slab(uint64_t tag)
{
	return (struct pool_slab *)(uintptr_t)(tag & ~POOL_TYPE_MASK);
}

#endif /* ACCMEM_RUNTIME_POOL_TYPES_H */
