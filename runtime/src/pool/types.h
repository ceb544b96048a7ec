/* SPDX-License-Identifier: MIT */
/*
 * The structures of a pool, and accessors that touch nothing but their fields.
 *
 * A pool is an allocator in the process for memory of one context. Its words:
 *
 * window: the host addresses of the context. An offset is a distance from its start.
 * page: 4 KiB of the window. The table has an entry for each page.
 * region: a resizable buffer of the driver, whose pages a heap divides.
 * span: pages of one region that are allocated, or cached, together.
 * slab: a span of POOL_SLAB_PAGES pages, divided into blocks of one size class.
 * piece: an allocation that is a block or a span.
 * direct allocation: an allocation that is a buffer of the driver.
 * heap: the regions, slabs and free spans of one sort of memory in one arena.
 * arena: heaps with a lock of their own, for some of the threads.
 * cache: free blocks and short spans that one thread has taken from its arena.
 */
#ifndef ACCMEM_RUNTIME_POOL_TYPES_H
#define ACCMEM_RUNTIME_POOL_TYPES_H

#include <accmem_pool.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Sizes of allocations:
 * - up to POOL_SMALL_MAX bytes: a block;
 * - up to POOL_CACHED_PAGES pages: a span that threads cache;
 * - up to POOL_LARGE_MAX bytes: a span that threads do not cache;
 * - above, and with options that a piece cannot have: a direct allocation.
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
#define POOL_HUGE_PAGES 512u /* pages of 4 KiB in one of 2 MiB */
#define POOL_NONE UINT32_MAX

/*
 * Set in the length of a piece that a request got early: before the stream has reached the
 * position of the piece's last release. Its release is as pending.c says.
 */
#define POOL_EARLY16 0x8000u
#define POOL_EARLY64 (1ull << 63)

#define POOL_CACHE_LINE 64
#define POOL_NO_EVENTFD (-1)
#define POOL_NO_THREAD (-2)

/* Lists of free spans: one a length up to 15 pages, then 16 for each power of two. */
#define POOL_NR_LISTS (16 + 16 * 28)

/**
 * enum pool_sort - sorts of memory that do not share a region
 * @POOL_DEVICE: device memory, on pages of any size
 * @POOL_HOST: memory of kind ACCMEM_KIND_HOST
 * @POOL_SHARED: memory of kind ACCMEM_KIND_SHARED
 * @POOL_NORMAL: device memory on normal pages only
 * @POOL_NR_SORTS: number of sorts
 */
enum pool_sort {
	POOL_DEVICE,
	POOL_HOST,
	POOL_SHARED,
	POOL_NORMAL,
	POOL_NR_SORTS,
};

/*
 * Each thread allocates from one of POOL_NR_ARENAS arenas, so that threads seldom contend
 * for a lock. An arena has two heaps of each sort. Long spans do not share regions with
 * slabs and short spans: these live long as a rule, and would keep the end of a region in
 * use.
 *
 * With identity translation a region grows only while the memory behind it is free, so
 * regions should not stand in each other's way. Long spans of all threads are therefore
 * in the first arena, and the regions of all other spans at the high end of the carveout.
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

/* Bins of a cache, for each sort: the size classes, then the spans of 1 to 16 pages. */
#define POOL_BINS_OF_SORT (POOL_NR_CLASSES + POOL_CACHED_PAGES)
#define POOL_NR_BINS (POOL_NR_SORTS * POOL_BINS_OF_SORT)
#define POOL_BIN_SLOTS 64
#define POOL_CACHE_BYTES (1ull << 20)

/**
 * enum pool_page_type - the state of a page
 * @POOL_PAGE_INSIDE: unused, or inside a span or a free span
 * @POOL_PAGE_FREE: the first page of a free span
 * @POOL_PAGE_END: the last page of a free span of two pages or more
 * @POOL_PAGE_SPAN: the first page of a span that is allocated or cached
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
#define POOL_INHERITED 8ull /* of a span: it belongs to the parent */
#define POOL_HEAP_SHIFT 4
#define POOL_HEAP_MASK 0xffull
#define POOL_COUNT_SHIFT 12

/**
 * struct pool_page - the table's entry of a page
 * @tag: enum pool_page_type, and above POOL_COUNT_SHIFT the number of pages; of a span
 *	also the index of its heap; of a slab instead the address of struct pool_slab
 * @value: of a span the requested length, perhaps with POOL_EARLY64; 0 while it is cached
 * @link: of a free span the first pages of the spans before and after it in its list
 *
 * The entries of free pages are written with the lock of their arena held, all other
 * entries by the thread that owns the span. A lookup of any pointer, and a free of the
 * pages beside these, read both words without a lock; hence the atomic accesses.
 */
struct pool_page {
	uint64_t tag;
	union {
		uint64_t value;
		uint32_t link[2];
	};
};

/**
 * struct pool_slab - a slab
 * @start: offset of the first block
 * @size: bytes of a block
 * @inverse: 2^32 / @size, rounded up: a division by @size becomes a multiplication
 * @count: number of blocks
 * @heap: index of the slab's heap
 * @size_class: size class of the blocks
 * @inherited: the slab belongs to the parent
 * @nr_free: number of entries in @free
 * @prev: previous slab in the heap's list of slabs with free blocks
 * @next: next slab in that list; of an unused structure, the next unused structure
 * @length: requested length of each block, perhaps with POOL_EARLY16; 0 while the block is
 *	free or cached
 * @free: indices of the blocks that are neither allocated nor cached
 *
 * The pool's lock protects the structure. Two kinds of fields are read without it: those
 * that are constant while a block is allocated, and @length, whose entries belong to the
 * owners of the blocks.
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
 * struct pool_region - a region
 * @address: device address
 * @first: number of the first page
 * @pages: number of pages
 * @mapped: the region is mapped for the CPU
 * @next: next older region of the heap
 */
struct pool_region {
	uint64_t address;
	uint32_t first;
	uint32_t pages;
	bool mapped;
	struct pool_region *next;
};

/**
 * struct pool_lists - the free spans of a heap, by length
 * @heads: of each list the first page of its first span, plus 1; 0 in an empty list
 * @bits: one bit for each list that is not empty
 */
struct pool_lists {
	uint32_t heads[POOL_NR_LISTS];
	uint64_t bits[(POOL_NR_LISTS + 63) / 64];
};

/**
 * struct pool_heap - memory of one sort in one arena, for long spans or for all others
 * @regions: the regions, the newest first
 * @pages: number of pages of all regions
 * @slabs: of each size class the slabs with free blocks
 * @free_pages: number of pages in free spans
 * @lists: the free spans
 *
 * The pool's lock protects @regions, @pages and @slabs, the arena's lock the others.
 */
struct pool_heap {
	struct pool_region *regions;
	uint64_t pages;
	struct pool_slab *slabs[POOL_NR_CLASSES];
	uint64_t free_pages;
	struct pool_lists *lists;
};

/**
 * struct pool_arena - the lock of the heaps that some threads use
 * @apart: keeps the lock on a cache line of its own
 * @lock: protects the free spans of the arena's heaps
 * @threads: number of threads that use the arena, under the pool's lock
 */
struct pool_arena {
	unsigned char apart[POOL_CACHE_LINE];
	pthread_mutex_t lock;
	uint32_t threads;
};

/**
 * struct pool_slot - a free block or span in a cache
 * @offset: offset of the block or span
 * @length16: of a block, its entry in pool_slab.length
 * @length64: of a span, pool_page.value of its first page
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
 * struct pool_cache - free blocks and spans of a pool, for one thread
 * @pool: the pool, or NULL after the pool's end
 * @next_of_thread: the thread's next cache, of another pool
 * @next_of_pool: the pool's next cache, of another thread; under the pool's lock
 * @arena: index of the thread's arena
 * @epoch: accmem_pool.epoch when the cache last compared the two
 * @bytes: bytes of all blocks and spans in the cache
 * @live: usable bytes allocated minus released since the last report to the pool
 * @allocations: number of allocations since then
 * @releases: number of releases since then
 * @bins: the free blocks and spans, by sort and size
 *
 * The fields belong to the thread, except @pool and @next_of_pool. Other threads read the
 * three counts.
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
 * struct accmem_pool - a pool, see accmem_pool.h
 * @ctx: the context
 * @window: host address that stands for @base
 * @base: lowest device address
 * @span: bytes of device addresses
 * @granted: largest alignment that pointers and device addresses have in common
 * @identity: a carveout of the device has identity translation
 * @flags: ACCMEM_POOL_*
 * @keep_bytes: free bytes that the pool keeps, see struct accmem_pool_options
 * @table: an entry for each page
 * @lists: the free spans of all heaps
 * @epoch: incremented to make each thread empty its cache
 * @arenas: the locks of the heaps
 * @live_bytes: usable bytes of all allocations, without the counts of the caches
 * @peak_live_bytes: largest @live_bytes since the last reset
 * @lock: protects all fields below
 * @heaps: the heaps, ordered by arena
 * @caches: the caches of all threads
 * @unused_slabs: slab structures that are not in use
 * @slab_chunks: arrays that slab structures are cut from, the newest first
 * @slabs_cut: number of structures cut from the newest array
 * @inherited: in a child of fork(), the regions of the parent
 * @pending: pieces that were released at positions of streams
 * @pending_bytes: bytes of these pieces
 * @direct: tsearch() tree of struct pool_direct
 * @waiting: number of requests that may sleep in the driver; changed without the lock
 * @stats: counters
 * @history: the history, or NULL
 * @eventfd: wakes the reclaim thread; POOL_NO_EVENTFD before the thread is needed and in a
 *	passive pool, POOL_NO_THREAD after its end and in a child of fork()
 * @retry_ms: time before which the reclaim thread is not started again after a failure,
 *	or 0; read without the lock
 * @thread: the reclaim thread
 * @ends: the reclaim thread has to end
 * @next: next pool of the process, under accmem_pool_list_lock
 */
struct accmem_pool {
	struct accmem_context *ctx;
	unsigned char *window;
	uint64_t base;
	uint64_t span;
	uint64_t granted;
	bool identity;
	uint32_t flags;
	uint64_t keep_bytes;
	struct pool_page *table;
	struct pool_lists *lists;
	uint32_t epoch;

	/* the fields from here on are written often */
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

/*
 * The tag of the page at @offset. If it is the tag of a slab, struct pool_slab is fully
 * initialised: the acquire pairs with the release in slab_tag().
 */
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
