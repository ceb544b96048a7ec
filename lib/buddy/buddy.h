/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * accmem_buddy: allocator for the free space of a range.
 *
 * The allocator hands out runs of granules (4 KiB). It places a request by size and by
 * predicted lifetime, keeps a dirty mark for each granule, and can give each folio of
 * 2 MiB one owner at a time.
 *
 * A granule is free, used, cached, or retired. A cached granule belongs to a freed block
 * in the order cache, which serves the next request of the same size; it counts as free in
 * every answer. A retired granule is never allocated again.
 *
 * Offsets and sizes are in bytes and are multiples of the granule. Offsets count from
 * the start of the range. All metadata is supplied at creation: later calls never
 * allocate, sleep, or fail for lack of metadata.
 *
 * Locking: the caller serialises all calls on one instance; the driver holds the
 * carveout's spinlock. The same calls in the same order give the same results.
 */
#ifndef ACCMEM_BUDDY_H
#define ACCMEM_BUDDY_H

#include <linux/bits.h>
#include <linux/types.h>

/* Size of a folio with one owner; tests use smaller folios */
#ifndef ACCMEM_BUDDY_FOLIO_SHIFT
#define ACCMEM_BUDDY_FOLIO_SHIFT 21
#endif
#define ACCMEM_BUDDY_CLEANER (~0ull) /* owner of runs of alloc_dirty() */

/* Flags of struct accmem_buddy_request */
#define ACCMEM_BUDDY_TOP_DOWN BIT(0) /* from the high end */
#define ACCMEM_BUDDY_OWN BIT(1) /* alloc_scan: only in folios of the owner */

/**
 * struct accmem_buddy_request - request for an allocation
 * @size: bytes, a multiple of the granule, at least one
 * @align: alignment of offsets in bytes, a power of two, at least the granule.
 *	For accmem_buddy_alloc_runs(), the start of every run and the size of every
 *	run but the last are multiples of it.
 * @start: lowest offset allowed
 * @end: offset after the highest allowed; 0 for the end of the range
 * @owner: owner of the run; 0 for no owner, to which the rule of owners does
 *	not apply
 * @flags: ACCMEM_BUDDY_*
 */
struct accmem_buddy_request {
	u64 size;
	u64 align;
	u64 start;
	u64 end;
	u64 owner;
	u32 flags;
};

/**
 * struct accmem_buddy_folio - owner of a folio of 2 MiB
 */
struct accmem_buddy_folio {
	/* private: */
	u64 owner;
	u16 used; /* granules; 0: no owner, or covered by one block */
	u16 cleaning; /* granules that the cleaner holds besides */
	u16 retired; /* granules that nobody gets any more */
};

/**
 * struct accmem_run - a contiguous piece of the range
 * @start: offset in bytes
 * @size: bytes
 */
struct accmem_run {
	u64 start;
	u64 size;
};

#define ACCMEM_BUDDY_MAX_SIZE BIT_ULL(44) /* 16 TiB */
#define ACCMEM_BUDDY_STATE 1712 /* words of an instance */
/**
 * struct accmem_buddy - free space of one range
 */
struct accmem_buddy {
	/* private: */
	u64 state[ACCMEM_BUDDY_STATE];
};

/**
 * accmem_buddy_meta_size() - size of the metadata of a range
 * @size: bytes of the range
 *
 * The metadata has at most 4 bits per granule; at most 1 KiB for ranges below 8 MiB.
 * The instance has another 14 KiB or so for a range of any size.
 *
 * Context: Any context.
 *
 * Return: bytes; 0 if @size is not acceptable: 0, no multiple of the granule, or above
 * 16 TiB.
 */
size_t accmem_buddy_meta_size(u64 size);

/**
 * accmem_buddy_meta_zeroed() - size of the part of the metadata that must be zero
 * @size: bytes of the range
 *
 * The rest of the metadata may hold anything at creation.
 *
 * Context: Any context.
 *
 * Return: the first bytes of accmem_buddy_meta_size(), about a third of them; 0 if
 * @size is not acceptable.
 */
size_t accmem_buddy_meta_zeroed(u64 size);

/**
 * accmem_buddy_init() - create a range that is free and clean
 * @b: the instance
 * @size: bytes of the range
 * @meta: memory of accmem_buddy_meta_size() bytes, 8-byte aligned
 *
 * Context: Any context. Does not sleep.
 *
 * Return: 0; -EINVAL if @size is not acceptable.
 */
int accmem_buddy_init(struct accmem_buddy *b, u64 size, void *meta);

/**
 * accmem_buddy_set_owners() - give each folio of 2 MiB one owner at a time
 * @b: the instance, right after accmem_buddy_init()
 * @folios: zeroed, one for each 2 MiB of the range, a short last one included;
 *	the instance uses them from now on
 *
 * A folio belongs to one owner while any granule of it is in use. A request is served
 * from folios of its owner and from folios without an owner. Cached blocks count as
 * free. A folio that one allocation covers has no record: a caller that frees a part of
 * the folio passes its owner to accmem_buddy_free_owned().
 *
 * While no folio belongs to another owner than the caller, each call does the same as
 * without the rule.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 */
void accmem_buddy_set_owners(struct accmem_buddy *b,
			     struct accmem_buddy_folio *folios);

/**
 * accmem_buddy_alloc() - allocate one contiguous run
 * @b: the instance
 * @req: the request; every field may hold anything
 * @offset: out: where the run begins, in bytes
 *
 * Without a window and without TOP_DOWN the run is cut from the free run that fits
 * best. Big requests are placed by lifetimes: they have at least 1/512 of the range, or
 * up to 1/256, and at least a granule. Each goes to an end of one of the runs that fit
 * best, chosen by the predicted lifetimes of the request and of the blocks beside it.
 * Requests that are not big go to the high end of a range that requests of 5/128 of it
 * fill.
 *
 * In a window the result is the lowest run, with TOP_DOWN the highest. With an
 * alignment, free runs that hold the request at any position come first. If there are
 * none, the call reads words of 64 granules in which a long enough run begins, but 256
 * at most. So a call takes a bounded time.
 *
 * With owners, that run may be in a folio of another owner. Then some free runs of each
 * size in the window are checked, and the request goes to the end of the one that
 * breaks up the fewest free folios.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: 0; -EAGAIN if a run with that alignment may exist in the window, and
 * accmem_buddy_alloc_scan() says whether it does; -ENOSPC if there is none. Where folios
 * of other owners hide a run, the result is -ENOSPC too, and
 * accmem_buddy_alloc_scan() finds the run. -EINVAL
 * for a malformed request: size or alignment 0, no multiples of the granule, an
 * alignment that is no power of two, a window that passes the end or is the wrong way
 * round, an unknown flag.
 */
int accmem_buddy_alloc(struct accmem_buddy *b,
		       const struct accmem_buddy_request *req, u64 *offset);

/**
 * accmem_buddy_alloc_scan() - allocate one contiguous run by an exact search
 * @b: the instance
 * @req: the request. With OWN, and with owners, the run lies in folios that belong to
 *	its owner already, so that it claims no further folio. Where folios of other
 *	owners matter, TOP_DOWN makes no difference.
 * @cursor: position of the search; 0 at first, then the value that the last
 *	call left
 * @offset: out: where the run begins, in bytes
 *
 * The call finds a run that accmem_buddy_alloc() did not find, because folios of other
 * owners hide it, or because it has an alignment that many longer runs do not have. A
 * call takes a bounded time, and the caller may drop its lock after it.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: 0; -EAGAIN: call again; -ENOSPC: there was no run, if nothing changed between
 * the calls. -EINVAL as for accmem_buddy_alloc().
 */
int accmem_buddy_alloc_scan(struct accmem_buddy *b,
			    const struct accmem_buddy_request *req, u64 *cursor,
			    u64 *offset);

/**
 * accmem_buddy_alloc_runs() - allocate one run, or several if there is no single one
 * @b: the instance
 * @req: the request, as for accmem_buddy_alloc(); its owner is ignored
 * @runs: out: the runs, the longest ones first; with an alignment, the longest ones that
 *	were found
 * @max_runs: number of entries of @runs
 * @nr_runs: out: number of runs
 *
 * Nothing is allocated on failure.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: 0; -ENOSPC when fewer bytes are free or no further piece has the alignment;
 * -E2BIG when @max_runs pieces were not enough, or when the search for pieces with the
 * alignment took too long: the caller asks for less, and at last for one piece, by
 * accmem_buddy_alloc_scan(). -EINVAL as for accmem_buddy_alloc().
 */
int accmem_buddy_alloc_runs(struct accmem_buddy *b,
			    const struct accmem_buddy_request *req,
			    struct accmem_run *runs, unsigned int max_runs,
			    unsigned int *nr_runs);

/**
 * accmem_buddy_free() - free any part of allocated memory
 * @b: the instance
 * @offset: where it begins, in bytes
 * @size: bytes; also a tail or a middle, or several neighbours
 *
 * The freed run merges with both neighbours, whatever their dirty marks. With owners,
 * the caller frees a whole block, as one call allocated it.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: 0; -EINVAL if any granule of it is free already or out of range, or if @size
 * is 0: nothing has changed then.
 */
int accmem_buddy_free(struct accmem_buddy *b, u64 offset, u64 size);

/**
 * accmem_buddy_free_owned() - free any part of the memory of an owner
 * @b: the instance
 * @offset: where it begins, in bytes
 * @size: bytes; also a tail or a middle, or several neighbours
 * @owner: owner of all of it
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: as accmem_buddy_free().
 */
int accmem_buddy_free_owned(struct accmem_buddy *b, u64 offset, u64 size,
			    u64 owner);

/**
 * accmem_buddy_retire() - take a granule out of use for good
 * @b: the instance
 * @offset: the granule, in bytes
 *
 * The granule is not free afterwards, and no call allocates it. The caller never frees
 * it. With owners, a retired granule is no use of its folio: the folio may belong to any
 * owner, and accmem_buddy_folio_used() does not count the granule.
 *
 * A caller retires a granule in use when it frees the granule: it calls this function
 * after accmem_buddy_free_owned(), under the same hold of its lock.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: 0; -EBUSY if the granule is not free; -EINVAL if it is not in the range.
 */
int accmem_buddy_retire(struct accmem_buddy *b, u64 offset);

/**
 * accmem_buddy_claimed() - bytes that a block withholds from other owners
 * @b: the instance
 * @offset: where it begins, in bytes
 * @size: bytes; all in use
 *
 * Right after an allocation, these are the bytes that the block newly withholds. Right
 * before a free, these are the bytes that the free releases. Granules that the cleaner
 * holds do not count.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: bytes of the folios that would have no owner if exactly this block was freed
 * now, with their retired granules; @size without the rule of owners.
 */
u64 accmem_buddy_claimed(const struct accmem_buddy *b, u64 offset, u64 size);

/**
 * accmem_buddy_chown() - change the owner of a block
 * @b: the instance
 * @offset: where it begins, in bytes
 * @size: bytes; all in use
 * @from: owner of all of it
 * @to: its next owner
 *
 * The rule applies to both owners. The block claims the same folios before and after.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: 0; -EBUSY if a folio of the block holds another block or granules of the
 * cleaner, and nothing has changed then.
 */
int accmem_buddy_chown(struct accmem_buddy *b, u64 offset, u64 size, u64 from,
		       u64 to);

/**
 * accmem_buddy_folio_owner() - owner of a folio
 * @b: the instance, with owners
 * @offset: any in the folio
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: the owner; 0 if the folio has none, or if one block covers the folio.
 */
u64 accmem_buddy_folio_owner(const struct accmem_buddy *b, u64 offset);

/**
 * accmem_buddy_folio_used() - used granules of a folio
 * @b: the instance, with owners
 * @offset: any in the folio
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: granules, without those of the cleaner, unless the cleaner holds all of them,
 * and without retired ones. A last folio of one granule counts the granule when it is retired.
 */
unsigned int accmem_buddy_folio_used(const struct accmem_buddy *b, u64 offset);

/**
 * accmem_buddy_set_cache() - switch the order cache, which is on after creation
 * @b: the instance
 * @on: true to cache freed blocks; false merges all cached blocks
 *
 * Freed blocks of up to 1/1024 of the range, at most 1024 granules, are cached: they
 * serve the next request of the same size. Blocks are cached while 2 GiB of the range
 * are free; the limit is no less than half of the range and no more than three
 * quarters. Cached blocks are free in every answer of this interface.
 *
 * Cached blocks merge with their neighbours, up to 1024 of them in one call: before a
 * request fails, before a request with a window or TOP_DOWN, before any answer about
 * free runs, and when they are marked dirty. The cache knows the blocks that it serves
 * until they are freed. A block that is freed in parts, or together with others, is
 * freed like any other. Ranges below 80 MiB have no order cache.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 */
void accmem_buddy_set_cache(struct accmem_buddy *b, bool on);

/**
 * accmem_buddy_free_bytes() - number of free bytes
 * @b: the instance
 *
 * Context: Caller holds the lock of the instance, or accepts a stale number.
 *
 * Return: bytes.
 */
u64 accmem_buddy_free_bytes(const struct accmem_buddy *b);

/**
 * accmem_buddy_largest_run_of() - the largest request that an owner could be granted
 * @b: the instance
 * @owner: the owner
 * @cursor: position of the search; 0 at first, then the value that the last
 *	call left
 * @largest: bytes: the largest so far, after each call; exact after the last,
 *	if nothing changed between the calls
 *
 * A call takes a bounded time, and the caller may drop its lock after it. One call is
 * enough while no folio belongs to another owner.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: 0; -EAGAIN: call again.
 */
int accmem_buddy_largest_run_of(struct accmem_buddy *b, u64 owner, u64 *cursor,
				u64 *largest);

/**
 * accmem_buddy_next_free() - walk through the free runs
 * @b: the instance
 * @offset: where to start, in bytes
 * @run: out: the first free run at or after @offset; if @offset lies inside a
 *	free run, the part of the run from there on
 *
 * Cached blocks merge first.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: whether there is a free run.
 */
bool accmem_buddy_next_free(struct accmem_buddy *b, u64 offset,
			    struct accmem_run *run);

/**
 * accmem_buddy_free_around() - the free run around a granule
 * @b: the instance
 * @offset: the granule, in bytes
 * @run: out: all of the run
 *
 * Cached blocks merge first.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: whether the granule is free.
 */
bool accmem_buddy_free_around(struct accmem_buddy *b, u64 offset,
			      struct accmem_run *run);

/**
 * accmem_buddy_mark_dirty() - mark granules that may not be zero
 * @b: the instance
 * @offset: where, in bytes
 * @size: bytes; free or not
 *
 * Each granule has a mark. Marks never influence merging or placement. An allocation
 * and a free count the dirty granules, word by word of 64 granules where the marks in a
 * word differ.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 */
void accmem_buddy_mark_dirty(struct accmem_buddy *b, u64 offset, u64 size);

/**
 * accmem_buddy_mark_held() - mark granules that are in use
 * @b: the instance
 * @offset: where, in bytes
 * @size: bytes, none of them free
 * @dirty: true for dirty, false for clean: all bytes are zero
 *
 * The call is faster than accmem_buddy_mark_dirty(), because it does not look for free
 * granules.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 */
void accmem_buddy_mark_held(struct accmem_buddy *b, u64 offset, u64 size,
			    bool dirty);

/**
 * accmem_buddy_next_dirty() - walk through the dirty granules
 * @b: the instance
 * @offset: where to start, in bytes
 * @size: bytes to search
 * @max: bytes of a run, at most
 * @run: out: the first dirty run there, free or not
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: whether there is a dirty run.
 */
bool accmem_buddy_next_dirty(const struct accmem_buddy *b, u64 offset, u64 size,
			     u64 max, struct accmem_run *run);

/**
 * accmem_buddy_is_dirty() - is every granule of a part dirty?
 * @b: the instance
 * @offset: where, in bytes
 * @size: bytes
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: whether every granule of it is dirty; false if the part is not in the range.
 */
bool accmem_buddy_is_dirty(const struct accmem_buddy *b, u64 offset, u64 size);

/**
 * accmem_buddy_alloc_dirty() - allocate free dirty granules, to clear them
 * @b: the instance
 * @max: bytes, at most
 * @run: out: the run
 *
 * The instance keeps a cursor, so that a call does a bounded amount of work. With
 * owners, the run may lie in folios of any owner, and the folios keep their owner. A
 * folio without an owner belongs to ACCMEM_BUDDY_CLEANER meanwhile. The caller frees
 * the run by accmem_buddy_free_owned() for ACCMEM_BUDDY_CLEANER.
 *
 * Context: Caller holds the lock of the instance. Does not sleep.
 *
 * Return: 0; -EINVAL if @max is below a granule; -ENOENT when no free granule is dirty;
 * -EAGAIN when the bound was reached first: call again.
 */
int accmem_buddy_alloc_dirty(struct accmem_buddy *b, u64 max,
			     struct accmem_run *run);

/**
 * accmem_buddy_free_dirty_bytes() - number of free and dirty bytes
 * @b: the instance
 *
 * Context: Caller holds the lock of the instance, or accepts a stale number.
 *
 * Return: bytes.
 */
u64 accmem_buddy_free_dirty_bytes(const struct accmem_buddy *b);

#endif /* ACCMEM_BUDDY_H */
