/* SPDX-License-Identifier: MIT */
/* What the files of the pool share; nothing here is installed. */
#ifndef ACCMEM_RUNTIME_POOL_H
#define ACCMEM_RUNTIME_POOL_H

#include <accmem_pool.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "core/internal.h"

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

/* Sets the last error of a request for @length bytes; @error. */
int accmem_pool_fail(struct accmem_pool *pool, const char *what,
		     uint64_t length, int error);

/* The same about a pointer that a call was given. */
int accmem_pool_bad_pointer(const char *what, const void *pointer, int error);

/* The arena of a heap. */
static inline struct pool_arena *pool_arena_of(struct accmem_pool *pool,
					       const struct pool_heap *heap)
{
	return &pool->arenas[(heap - pool->heaps) / POOL_HEAPS_OF_ARENA];
}

static inline void pool_lock_heap(struct accmem_pool *pool,
				  const struct pool_heap *heap)
{
	pthread_mutex_lock(&pool_arena_of(pool, heap)->lock);
}

static inline void pool_unlock_heap(struct accmem_pool *pool,
				    const struct pool_heap *heap)
{
	pthread_mutex_unlock(&pool_arena_of(pool, heap)->lock);
}

/* The locks of all arenas; with the pool's held. */
void accmem_pool_lock_arenas(struct accmem_pool *pool);
void accmem_pool_unlock_arenas(struct accmem_pool *pool);

/* The bytes of the device change that a pool has; with the lock held. */
void accmem_pool_count_reserved(struct accmem_pool *pool, int64_t bytes);

/* The bytes change that are allocated; any thread. */
void accmem_pool_count_live(struct accmem_pool *pool, int64_t bytes);

/*
 * Spans of a heap; with its arena's lock held. They are taken and given back whole.
 *
 * accmem_heap_take() returns the first page, or POOL_NONE where there is no such
 * span. accmem_heap_add() is for pages that are new.
 */
uint32_t accmem_heap_take(struct accmem_pool *pool, struct pool_heap *heap,
			  uint32_t pages, uint32_t alignment);
void accmem_heap_add(struct accmem_pool *pool, struct pool_heap *heap,
		     uint32_t first, uint32_t pages);

/* Takes the free span at the end of a region away: from page @from on. */
void accmem_heap_remove(struct accmem_pool *pool, struct pool_heap *heap,
			uint32_t from, uint32_t end);

/* First page of the free span that ends before @end, or @end. */
uint32_t accmem_heap_free_before(const struct accmem_pool *pool, uint32_t end);

/* Regions; with the lock held. Grows, and takes a span, whose first page is @first. */
int accmem_region_grow(struct accmem_pool *pool, struct pool_heap *heap,
		       uint32_t pages, uint32_t alignment, uint32_t *first);

/* Gives free memory back until @keep_bytes are left; bytes. */
uint64_t accmem_region_shrink(struct accmem_pool *pool, uint64_t keep_bytes);
/* Shows the CPU the region that @page is in, one of the parent's included. */
int accmem_region_map(struct accmem_pool *pool, uint32_t page);
void accmem_region_forget(struct accmem_pool *pool, uint32_t first,
			  uint32_t pages);
void accmem_region_disown(struct accmem_pool *pool);
void accmem_region_destroy_all(struct accmem_pool *pool);

/* Slabs; with the lock held. Fills slots with blocks; how many, 1 at least, or an error. */
int accmem_slab_take(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t size_class, struct pool_slot *slots, int count);
void accmem_slab_give(struct accmem_pool *pool, uint64_t offset);
void accmem_slab_trim(struct accmem_pool *pool);
void accmem_slab_destroy_all(struct accmem_pool *pool);
uint32_t accmem_slab_class(uint64_t length);
uint32_t accmem_slab_size(uint32_t size_class);

/*
 * A span with an entry, for a thread of @arena: accmem_span_try() of what is free there,
 * accmem_span_take() with the lock held, and growth if need be.
 */
bool accmem_span_try(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t pages, uint32_t alignment,
		     struct pool_slot *slot);
int accmem_span_take(struct accmem_pool *pool, uint32_t arena, uint32_t sort,
		     uint32_t pages, uint32_t alignment,
		     struct pool_slot *slot);
void accmem_span_give(struct accmem_pool *pool, uint64_t offset);

/* Takes a span's name away and gives it back: as accmem_piece_detach(). */
int accmem_span_release(struct accmem_pool *pool, uint64_t offset, uint64_t tag,
			uint64_t *usable);

/* Is @pointer among the addresses of a pool of the process, allocated or not? */
bool accmem_pool_has_address(const void *pointer);

/* Does a request of its own wait in the kernel? */
static inline bool pool_waits(const struct accmem_pool *pool)
{
	return __atomic_load_n(&pool->waiting, __ATOMIC_SEQ_CST);
}

/* Free bytes that it may keep: none that somebody waits for, or would in vain. */
static inline uint64_t pool_keep_bytes(const struct accmem_pool *pool)
{
	return pool_waits(pool) || pool_load(&pool->retry_ms) ?
		       0 :
		       pool->keep_bytes;
}

/* Is there too little of something, which others or the pool could give back? */
static inline bool pool_is_short(int error)
{
	return error == -ENOMEM || error == -EDQUOT;
}

/* Makes room before a request fails: 0 where there is nothing to be had. */
uint64_t accmem_pool_reclaim(struct accmem_pool *pool);

/* The calling thread's cache, made if need be; NULL for want of memory. */
struct pool_cache *accmem_cache_get(struct accmem_pool *pool);

/* Into the pool with what the calling thread has; with the lock held. */
void accmem_cache_flush_own(struct accmem_pool *pool);

/* At the pool's end; in a child of fork(); with the caches' lock held. */
void accmem_cache_disown(struct accmem_pool *pool);

/* What an offset is in: 0 and the block, -ENOENT; without the lock. */
int accmem_piece_lookup(struct accmem_pool *pool, uint64_t offset,
			struct accmem_pool_block *block);

/*
 * Takes an allocation's name away, and leaves its memory taken; 1: the parent's. With the
 * lock held.
 */
int accmem_piece_detach(struct accmem_pool *pool, uint64_t offset,
			uint64_t *usable);

/* Puts what was detached back; with the lock held. */
void accmem_piece_give(struct accmem_pool *pool, uint64_t offset);
uint64_t accmem_piece_usable(uint64_t length);
void accmem_piece_attach(struct accmem_pool *pool, uint64_t offset,
			 uint64_t length);

/* Pieces whose release waits for a stream. */
int accmem_pending_add(struct accmem_pool *pool, uint64_t offset, int stream,
		       uint64_t position);
bool accmem_pending_reuse(struct accmem_pool *pool, uint32_t sort,
			  uint64_t length, int stream, uint64_t *offset,
			  uint64_t *position);
uint64_t accmem_pending_reap(struct accmem_pool *pool);

/* The stream that had this descriptor has ended. */
void accmem_pending_end(struct accmem_pool *pool, int stream);
void accmem_pending_disown(struct accmem_pool *pool);
bool accmem_pending_has(const struct accmem_pool *pool, uint64_t offset);

/* Does something with all pools of a context, which none joins or leaves meanwhile. */
void accmem_pools_each(const struct accmem_context *ctx,
		       void (*what)(struct accmem_pool *pool, void *argument),
		       void *argument);

/*
 * The thread that gives memory back when somebody waits. accmem_yield_wake() is for a
 * request of the pool's own; false: there is no thread, though the pool is not passive.
 */
void accmem_yield_start(struct accmem_pool *pool);
bool accmem_yield_wake(struct accmem_pool *pool);
void accmem_yield_stop(struct accmem_pool *pool);
void accmem_yield_disown(struct accmem_pool *pool);

/*
 * What happens in a pool with ACCMEM_POOL_LEAKS or _HISTORY is noted, with the call
 * site, which the entry points pass on.
 */
int accmem_history_create(struct accmem_pool *pool);
void accmem_history_destroy(struct accmem_pool *pool);
void accmem_history_allocated(struct accmem_pool *pool, const void *pointer,
			      uint64_t length, int stream, const void *site);

/**
 * struct pool_origin - where an allocation was made that is released
 * @length: its bytes, 0 if nothing is known of it
 * @caller: of the library
 */
struct pool_origin {
	uint64_t length;
	const void *caller;
};

/*
 * To be told before the release, after which others may be given the pointer; and that it
 * has failed, but for -ENOENT.
 */
struct pool_origin accmem_history_released(struct accmem_pool *pool,
					   const void *pointer, int stream,
					   const void *site);
void accmem_history_not_released(struct accmem_pool *pool, const void *pointer,
				 struct pool_origin origin, int error);

/* Where a live allocation was made, or NULL; with the lock held. */
const void *accmem_history_site(const struct accmem_pool *pool,
				const void *pointer);

/**
 * struct pool_event - something that happened
 * @pointer: of the allocation
 * @length: its bytes
 * @site: the caller
 * @time_us: when, on CLOCK_REALTIME
 * @stream: that it was for, or 0
 * @released: it was released
 */
struct pool_event {
	const void *pointer;
	uint64_t length;
	const void *site;
	uint64_t time_us;
	int stream;
	bool released;
};

/* The event @index of those that are kept, oldest first, or NULL. */
const struct pool_event *accmem_history_event(const struct accmem_pool *pool,
					      uint64_t index);

/* In a child: every piece in these pages belongs to the parent. */
void accmem_piece_disown(struct accmem_pool *pool, uint32_t first,
			 uint32_t pages);

/* Allocations that are buffers of the kernel's: as the calls of the same name. */
int accmem_direct_allocate(struct accmem_pool *pool,
			   struct accmem_pool_request *req);
int accmem_direct_release(struct accmem_pool *pool, void *pointer,
			  struct accmem_free *req);
int accmem_direct_reallocate(struct accmem_pool *pool, void **pointer,
			     size_t length);
int accmem_direct_lookup(struct accmem_pool *pool, const void *pointer,
			 struct accmem_pool_block *block);
int accmem_direct_map(struct accmem_pool *pool, const void *pointer);

/* What was there is gone, whoever freed it; with the lock held. */
void accmem_direct_forget(struct accmem_pool *pool, uint64_t address,
			  uint64_t extent);

/* Looks at all of them; with the lock held. */
void accmem_direct_visit(struct accmem_pool *pool,
			 void (*visit)(void *argument,
				       const struct accmem_pool_block *block),
			 void *argument);

/*
 * Is it still the parent's, in a child, or has the child got something else there? The
 * second forgets it if it is.
 */
bool accmem_direct_is_inherited(struct accmem_pool *pool, const void *pointer);
bool accmem_direct_forget_inherited(struct accmem_pool *pool,
				    const void *pointer);

/* Everything goes, at the pool's end. */
void accmem_direct_destroy(struct accmem_pool *pool);

/* In a child of fork(): what there is belongs to the parent. */
void accmem_direct_disown(struct accmem_pool *pool);

#endif /* ACCMEM_RUNTIME_POOL_H */
