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

/* Flags of struct accmem_buddy_request */
#define ACCMEM_BUDDY_TOP_DOWN BIT(0) /* from the high end */

/**
 * struct accmem_buddy_request - what to allocate
 * @size: bytes, a multiple of the granule, at least one
 * @align: alignment of offsets in bytes, a power of two, at least the granule;
 *	in scattered mode every run but the last has a size and a start that
 *	are multiples of it (the last a start)
 * @start: lowest offset allowed
 * @end: offset after the highest allowed; 0 for the end of the range
 * @flags: ACCMEM_BUDDY_*
 */
struct accmem_buddy_request {
	u64 size;
	u64 align;
	u64 start;
	u64 end;
	u32 flags;
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
#define ACCMEM_BUDDY_LEVELS 10
#define ACCMEM_BUDDY_CLASSES 128 /* of sizes */
#define ACCMEM_BUDDY_LISTED 24 /* the first one of 128 granules and more */
#define ACCMEM_BUDDY_PARKED 1024 /* blocks in the order cache, at most */
#define ACCMEM_BUDDY_PARKED_MAX 1024 /* granules of one */

#define ACCMEM_BUDDY_UNITS 512 /* of a range, at most */
#define ACCMEM_BUDDY_LESSONS 2048 /* a power of two */

struct accmem_buddy_state;

/**
 * struct accmem_buddy_life - a big block that begins in a unit
 */
struct accmem_buddy_life {
	/* private: */
	u32 lo;
	u32 n; /* 0: there is none */
	u32 born; /* event */
	u16 place;
	u16 begins; /* unit in which the one begins that ends in this unit */
};

/**
 * struct accmem_buddy_kept - a block that the order cache knows
 */
struct accmem_buddy_kept {
	/* private: */
	u32 lo;
	u16 n : 15; /* 0: the id is not in use */
	u16 lent : 1; /* else it is parked */
	u16 below; /* parked, of the same size; or also not in use */
	u16 above;
	u16 next; /* in the list of the hash */
};

/**
 * struct accmem_buddy - free space of one range
 *
 * No member is for the caller.
 */
struct accmem_buddy {
	/* private: sizes are in granules */
	u64 nr;
	u64 nr_free;
	u64 nr_free_dirty;
	u64 short_of; /* nr_free, for anything to wait in the order cache */
	u64 large; /* requests of so many are */
	u64 nr_large; /* used by these, as far as it is known */
	u64 cursor; /* of take_dirty */
	/* accmem_buddy_map.h */
	unsigned int map_top; /* level above which there is none */
	u64 *used; /* a bit a granule, where the word is mixed */
	struct accmem_buddy_state *state[ACCMEM_BUDDY_LEVELS];
	/* accmem_buddy_classes.h */
	u64 classes[ACCMEM_BUDDY_CLASSES / 64]; /* that have runs */
	u64 *index; /* words where runs of a class begin, but for listed ones */
	u64 stride; /* words from one class to the next */
	u64 starts[ACCMEM_BUDDY_LISTED]; /* of each, the topmost word */
	u32 first[ACCMEM_BUDDY_CLASSES]; /* of a listed one that has runs */
	/* accmem_buddy_runs.h */
	unsigned int top; /* level of one entry, in the trees of eight */
	u64 *continued; /* a bit a word: its first run begins before it */
	u32 *longest[ACCMEM_BUDDY_LEVELS]; /* of the runs that begin there */
	u64 wild_start; /* the wilderness: a run that is in none of these */
	u64 wild_size; /* 0 if there is none */
	/* accmem_buddy_lives.h */
	unsigned int unit_shift; /* a block of a unit of granules is big */
	u32 large_at; /* event: when the last large block was made; 0 for never */
	u32 order; /* what the latest events of big blocks were */
	u32 now; /* how many there were */
	u32 nr_ended; /* lifetimes that count in the mean, at most LIFE_MEAN */
	u64 sum; /* of these, each times its size */
	u8 lessons[ACCMEM_BUDDY_LESSONS]; /* classes of lifetimes */
	struct accmem_buddy_life lives[ACCMEM_BUDDY_UNITS];
	/* accmem_buddy_marks.h */
	u64 nr_dirty;
	u64 *dirty; /* a bit a granule, true below mixed nodes only */
	u32 *marks[ACCMEM_BUDDY_LEVELS];
	/* accmem_buddy_cache.h */
	u16 parked_max; /* granules; 0 while the cache is off */
	u16 nr_parked;
	u16 room; /* for parked blocks */
	u16 hand; /* the last id that had to go */
	u16 ebb; /* blocks given back to a full cache since the last request */
	u16 nr_ids; /* that were ever in use */
	u16 nr_kept; /* blocks that are parked or lent */
	u16 kept_longest; /* of these, or of one that was */
	u16 kept_hash_shift;
	u16 kept_start_shift;
	u16 stack[ACCMEM_BUDDY_PARKED_MAX + 1]; /* by size; 0: ids to use */
	u64 sizes[ACCMEM_BUDDY_PARKED_MAX / 64 + 1]; /* that may have one */
	struct accmem_buddy_kept *kept; /* by id, from 1 on */
	u16 *kept_hash;
	u64 *kept_starts; /* a bit for granules: a kept block begins there */
	u8 *kept_count; /* of kept blocks that begin in a part of the range */
	u64 *kept_index; /* parts where any do */
	u64 kept_top; /* of that, the topmost word */
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
 * Return: 0, whenever a run with that alignment exists in the window, else
 * -ENOSPC. -EINVAL for a malformed request: size or alignment 0, no multiples of
 * the granule, an alignment that is no power of two, a window that passes the end
 * or is the wrong way round, an unknown flag.
 */
int accmem_buddy_alloc(struct accmem_buddy *b,
		       const struct accmem_buddy_request *req, u64 *offset);

/**
 * accmem_buddy_alloc_runs() - allocate one run where one will do, else several
 * @b: the instance
 * @req: the request, as for accmem_buddy_alloc()
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
 */
int accmem_buddy_free(struct accmem_buddy *b, u64 offset, u64 size);

/**
 * accmem_buddy_set_cache() - switch the order cache, which is on after creation
 * @b: the instance
 * @on: whether it is to be on; switched off, it gives back what it holds
 *
 * Blocks of up to 1/1024 of the range, at most 1024 granules, wait after they are
 * given back for a request of the same size, while 2 GiB of the range are free: no
 * less than half of it, but three quarters at most. They are free in every answer of
 * this interface, and merge with their neighbours before a request fails, before one
 * that asks for a window or an end, and before any answer about the largest run: up
 * to ACCMEM_BUDDY_PARKED blocks in one call. The cache knows the blocks that it
 * serves until they come back; one that comes back in parts, or with others, is given
 * back like any other. Ranges below 80 MiB have none.
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
 * accmem_buddy_largest_run() - the largest request that could be granted
 * @b: the instance
 * @align: with this alignment in bytes, a power of two
 *
 * Above a granule it looks at words as accmem_buddy_alloc() does.
 *
 * Return: bytes, exact.
 */
u64 accmem_buddy_largest_run(struct accmem_buddy *b, u64 align);

/**
 * accmem_buddy_next_free() - walk through what is free
 * @b: the instance
 * @offset: where to start, in bytes
 * @run: out: the first free run at or after it; a part of one, if that is where
 *	@offset lies
 *
 * Return: whether there is one.
 */
bool accmem_buddy_next_free(struct accmem_buddy *b, u64 offset,
			    struct accmem_run *run);

/**
 * accmem_buddy_mark_dirty() - say that bytes may be other than zero
 * @b: the instance
 * @offset: where, in bytes
 * @size: bytes; free or not
 *
 * A mark a granule. Marks never influence merging or placement.
 */
void accmem_buddy_mark_dirty(struct accmem_buddy *b, u64 offset, u64 size);

/**
 * accmem_buddy_mark_clean() - say that bytes are zero
 * @b: the instance
 * @offset: where, in bytes
 * @size: bytes; free or not
 */
void accmem_buddy_mark_clean(struct accmem_buddy *b, u64 offset, u64 size);

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
 * accmem_buddy_take_dirty() - allocate what is free and dirty, to clear it
 * @b: the instance
 * @max: bytes, at most
 * @run: out: the run
 *
 * A bounded amount of work a call, from a cursor that it keeps.
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
