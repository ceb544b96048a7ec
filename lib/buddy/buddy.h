/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * accmem_buddy: free space of a range.
 *
 * Offsets and sizes are in bytes, multiples of the granule; offsets count from
 * the start of the range. All metadata is made at creation: afterwards nothing
 * allocates, sleeps, or fails for lack of metadata. The caller serialises
 * every call on one instance, by a spinlock in the driver. The same calls in
 * the same order give the same results.
 */
#ifndef ACCMEM_BUDDY_H
#define ACCMEM_BUDDY_H

#include <linux/bits.h>
#include <linux/types.h>

/* With the rule of accmem_buddy_set_owners(): what has one owner; tests have less */
#ifndef ACCMEM_BUDDY_FOLIO_SHIFT
#define ACCMEM_BUDDY_FOLIO_SHIFT 21
#endif
#define ACCMEM_BUDDY_CLEANER (~0ull) /* who has what take_dirty() gave */

/* Flags of struct accmem_buddy_request */
#define ACCMEM_BUDDY_TOP_DOWN BIT(0) /* from the high end */
#define ACCMEM_BUDDY_OWN BIT(1) /* for alloc_scan: only in units of the owner's */

/**
 * struct accmem_buddy_request - what to allocate
 * @size: bytes, a multiple of the granule, at least one
 * @align: alignment of offsets in bytes, a power of two, at least the granule;
 *	in scattered mode every run but the last has a size and a start that
 *	are multiples of it (the last a start)
 * @start: lowest offset allowed
 * @end: offset after the highest allowed; 0 for the end of the range
 * @owner: who asks; 0 for nobody in particular, who is bound by no rule
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
 * struct accmem_buddy_folio - whose a unit of 2 MiB is
 */
struct accmem_buddy_folio {
	/* private: */
	u64 owner;
	u16 used; /* granules; 0: nobody's, or a block covers it */
	u16 cleaning; /* granules that the cleaner has besides */
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
 * accmem_buddy_meta_size() - memory that a range needs for metadata
 * @size: bytes of the range
 *
 * At most 4 bits a granule, for ranges below 8 MiB at most 1 KiB. The instance, of
 * some 14 KiB whatever the range, comes on top of that.
 *
 * Return: bytes; 0 if @size is not acceptable: 0, no multiple of the granule, or
 * above 16 TiB.
 */
size_t accmem_buddy_meta_size(u64 size);

/**
 * accmem_buddy_meta_zeroed() - how much of the metadata has to be zero at first
 * @size: bytes of the range
 *
 * What the rest holds makes no difference.
 *
 * Return: the first bytes of accmem_buddy_meta_size(), about a third; 0 as there.
 */
size_t accmem_buddy_meta_zeroed(u64 size);

/**
 * accmem_buddy_init() - make a range, all of which is free and clean
 * @b: the instance
 * @size: bytes of the range
 * @meta: memory of accmem_buddy_meta_size() bytes, 8-byte aligned
 *
 * Return: 0; -EINVAL if @size is not acceptable.
 */
int accmem_buddy_init(struct accmem_buddy *b, u64 size, void *meta);

/**
 * accmem_buddy_set_owners() - from now on a unit of 2 MiB has one owner
 * @b: the instance, right after accmem_buddy_init()
 * @units: zeroed, one for each 2 MiB of the range, a short last one included; the
 *	instance keeps it
 *
 * A unit belongs to one owner while any granule of it is in use: a request is served
 * from units of its owner and from such as are nobody's. Blocks in the order cache
 * are free. A unit that one allocation covers has no record: whoever gives back a
 * part of it says whose it is, by accmem_buddy_free_owned().
 *
 * While all units are the requester's or nobody's, each call does what it would do
 * without the rule.
 */
void accmem_buddy_set_owners(struct accmem_buddy *b,
			     struct accmem_buddy_folio *units);

/**
 * accmem_buddy_alloc() - allocate one contiguous run
 * @b: the instance
 * @req: the request; every field may hold anything
 * @offset: out: where the run begins, in bytes
 *
 * Without a window and without TOP_DOWN the run is cut from the free run that
 * fits best. Big requests, from 1/512 of the range on, up to 1/256, and at least a
 * granule, go to an end of one of those that fit best, by how long they and the blocks
 * beside it will live, as far as earlier calls tell. What is not big keeps to the high
 * end of a range that requests of 5/128 of it fill. In a window it is the lowest run,
 * with TOP_DOWN the highest; with an alignment, of the free runs that hold it however
 * they lie, if there are any. Where only others hold it, the call looks at each word of
 * 64 granules in which one long enough begins.
 *
 * With owners, what that gives may be another's: then, of some free runs of each size,
 * it is the end of one that breaks the fewest free units, in the window.
 *
 * Return: 0, whenever a run with that alignment exists in the window, else
 * -ENOSPC; where units are others', accmem_buddy_alloc_scan() knows. -EINVAL for a
 * malformed request: size or alignment 0, no multiples of the granule, an alignment
 * that is no power of two, a window that passes the end or is the wrong way round, an
 * unknown flag.
 */
int accmem_buddy_alloc(struct accmem_buddy *b,
		       const struct accmem_buddy_request *req, u64 *offset);

/**
 * accmem_buddy_alloc_scan() - allocate one contiguous run, wherever it is
 * @b: the instance
 * @req: the request; TOP_DOWN makes no difference. With OWN, and owners, the run lies
 *	in units that are its owner's already, so that it claims nothing.
 * @cursor: where the search is; 0 at first, then what the last call left
 * @offset: out: where the run begins, in bytes
 *
 * For when units of others hide a run from accmem_buddy_alloc(). A call takes a
 * bounded time, and the caller may drop its lock after it.
 *
 * Return: 0; -EAGAIN: call again; -ENOSPC: there was none, if nothing changed
 * meanwhile. -EINVAL as for accmem_buddy_alloc().
 */
int accmem_buddy_alloc_scan(struct accmem_buddy *b,
			    const struct accmem_buddy_request *req, u64 *cursor,
			    u64 *offset);

/**
 * accmem_buddy_alloc_runs() - allocate one run where one will do, else several
 * @b: the instance
 * @req: the request, as for accmem_buddy_alloc(); its owner is nobody
 * @runs: out: the runs, the longest ones first
 * @max_runs: room for so many
 * @nr_runs: out: how many they are
 *
 * Nothing is taken on failure.
 *
 * Return: 0; -ENOSPC when fewer bytes are free or no further piece has the
 * alignment; -E2BIG when @max_runs pieces were not enough; -EINVAL as for
 * accmem_buddy_alloc().
 */
int accmem_buddy_alloc_runs(struct accmem_buddy *b,
			    const struct accmem_buddy_request *req,
			    struct accmem_run *runs, unsigned int max_runs,
			    unsigned int *nr_runs);

/**
 * accmem_buddy_free() - give back any part of what was allocated
 * @b: the instance
 * @offset: where it begins, in bytes
 * @size: bytes; also a tail or a middle, or several neighbours
 *
 * Merges with both neighbours whatever their marks.
 *
 * Return: 0; -EINVAL where any granule of it is free already or out of range, or
 * where it is none: nothing is changed then.
 *
 * With owners: what was allocated in one piece, all of it.
 */
int accmem_buddy_free(struct accmem_buddy *b, u64 offset, u64 size);

/**
 * accmem_buddy_free_owned() - give back any part of what an owner has
 * @b: the instance
 * @offset: where it begins, in bytes
 * @size: bytes; also a tail or a middle, or several neighbours
 * @owner: whose all of it is
 *
 * Return: as accmem_buddy_free().
 */
int accmem_buddy_free_owned(struct accmem_buddy *b, u64 offset, u64 size,
			    u64 owner);

/**
 * accmem_buddy_claimed() - what a block withholds from others
 * @b: the instance
 * @offset: where it begins, in bytes
 * @size: bytes; all in use
 *
 * Right after an allocation: what that newly withholds. Right before it is given back:
 * what that releases. What the cleaner has of a unit does not count.
 *
 * Return: bytes of the units that would be nobody's if exactly this was given back
 * now; @size where there is no rule.
 */
u64 accmem_buddy_claimed(const struct accmem_buddy *b, u64 offset, u64 size);

/**
 * accmem_buddy_chown() - let another owner have a block
 * @b: the instance
 * @offset: where it begins, in bytes
 * @size: bytes; all in use
 * @from: whose all of it is
 * @to: who has it from here on
 *
 * Both are owners that the rule binds. It claims of others what it has before.
 *
 * Return: 0; -EBUSY where anybody, or the cleaner, has a part of a unit of it, and
 * nothing has changed then.
 */
int accmem_buddy_chown(struct accmem_buddy *b, u64 offset, u64 size, u64 from,
		       u64 to);

/**
 * accmem_buddy_unit_owner() - whose a unit is
 * @b: the instance, with owners
 * @offset: any in the unit
 *
 * Return: the owner; 0 where it is nobody's, and where one block covers the unit.
 */
u64 accmem_buddy_unit_owner(const struct accmem_buddy *b, u64 offset);

/**
 * accmem_buddy_unit_used() - how much of a unit is in use
 * @b: the instance, with owners
 * @offset: any in the unit
 *
 * Return: granules, without those that the cleaner has, unless they are all.
 */
unsigned int accmem_buddy_unit_used(const struct accmem_buddy *b, u64 offset);

/**
 * accmem_buddy_set_cache() - switch the order cache, which is on after creation
 * @b: the instance
 * @on: whether it is to be on; switched off, it gives back what it holds
 *
 * Freed blocks of up to 1/1024 of the range, at most 1024 granules, are parked: they
 * wait for a request of the same size, while 2 GiB of the range are free, no less than
 * half of it, but three quarters at most. They are free in every answer of this
 * interface. They merge with their neighbours before a request fails, before one that
 * asks for a window or an end, before any answer about free runs, and when they are
 * marked dirty: up to 1024 blocks in one call. The cache knows the blocks that
 * it serves until they are freed; one that is freed in parts, or with others, is freed
 * like any other. Ranges below 80 MiB have none.
 */
void accmem_buddy_set_cache(struct accmem_buddy *b, bool on);

/**
 * accmem_buddy_free_bytes() - how much is free
 * @b: the instance
 *
 * Return: bytes.
 */
u64 accmem_buddy_free_bytes(const struct accmem_buddy *b);

/**
 * accmem_buddy_largest_run_of() - the largest request that an owner could be granted
 * @b: the instance
 * @owner: who asks
 * @cursor: where the search is; 0 at first, then what the last call left
 * @largest: bytes: the largest so far, after each call; exact after the last, if
 *	nothing changed meanwhile
 *
 * A call takes a bounded time, and the caller may drop its lock after it. One call is
 * enough while no unit is another's.
 *
 * Return: 0; -EAGAIN: call again.
 */
int accmem_buddy_largest_run_of(struct accmem_buddy *b, u64 owner, u64 *cursor,
				u64 *largest);

/**
 * accmem_buddy_next_free() - walk through what is free
 * @b: the instance
 * @offset: where to start, in bytes
 * @run: out: the first free run at or after it; a part of one, if that is where
 *	@offset lies
 *
 * Parked blocks merge first.
 *
 * Return: whether there is one.
 */
bool accmem_buddy_next_free(struct accmem_buddy *b, u64 offset,
			    struct accmem_run *run);

/**
 * accmem_buddy_free_around() - the free run that a granule lies in
 * @b: the instance
 * @offset: the granule, in bytes
 * @run: out: all of the run
 *
 * Parked blocks merge first.
 *
 * Return: whether the granule is free.
 */
bool accmem_buddy_free_around(struct accmem_buddy *b, u64 offset,
			      struct accmem_run *run);

/**
 * accmem_buddy_mark_dirty() - say that bytes may be other than zero
 * @b: the instance
 * @offset: where, in bytes
 * @size: bytes; free or not
 *
 * A mark a granule. Marks never influence merging or placement. An allocation and a
 * free count what is dirty, word by word of 64 granules where marks differ in one.
 */
void accmem_buddy_mark_dirty(struct accmem_buddy *b, u64 offset, u64 size);

/**
 * accmem_buddy_mark_held() - mark what somebody has
 * @b: the instance
 * @offset: where, in bytes
 * @size: bytes, none of them free
 * @dirty: or clean
 *
 * Clean are bytes that are zero. As accmem_buddy_mark_dirty() for any part, with
 * less to look at.
 */
void accmem_buddy_mark_held(struct accmem_buddy *b, u64 offset, u64 size,
			    bool dirty);

/**
 * accmem_buddy_next_dirty() - walk through what is dirty
 * @b: the instance
 * @offset: where to start, in bytes
 * @size: bytes to look at
 * @max: bytes of a run, at most
 * @run: out: the first dirty run there, free or not
 *
 * Return: whether there is one.
 */
bool accmem_buddy_next_dirty(const struct accmem_buddy *b, u64 offset,
			     u64 size, u64 max, struct accmem_run *run);

/**
 * accmem_buddy_is_dirty() - is all of a part dirty?
 * @b: the instance
 * @offset: where, in bytes
 * @size: bytes
 *
 * Return: whether every granule of it is; false where it is not in the range.
 */
bool accmem_buddy_is_dirty(const struct accmem_buddy *b, u64 offset, u64 size);

/**
 * accmem_buddy_take_dirty() - allocate what is free and dirty, to clear it
 * @b: the instance
 * @max: bytes, at most
 * @run: out: the run
 *
 * A bounded amount of work a call, from a cursor that it keeps. With owners, it takes
 * from units of anybody, which stay theirs, as accmem_buddy_free_owned() gives it back
 * for ACCMEM_BUDDY_CLEANER, to whom units that are nobody's belong meanwhile.
 *
 * Return: 0; -EINVAL if @max is below a granule; -ENOENT when no free granule is
 * dirty; -EAGAIN when the bound was spent first: call again.
 */
int accmem_buddy_take_dirty(struct accmem_buddy *b, u64 max,
			    struct accmem_run *run);

/**
 * accmem_buddy_free_dirty_bytes() - how much is free and dirty
 * @b: the instance
 *
 * Return: bytes.
 */
u64 accmem_buddy_free_dirty_bytes(const struct accmem_buddy *b);

#endif /* ACCMEM_BUDDY_H */
