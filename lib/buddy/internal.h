/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Internals of the allocator: its state, and helpers that its sources share.
 *
 * A run is a maximal range of free granules. A word is 64 granules of a map. An
 * interval [lo, hi) does not contain hi; "last" is inclusive. A request is big if it
 * has at least the size of a section of lifetimes.inc.c, and large if it has at least
 * 5/128 of the range.
 *
 * All state is in struct buddy, which the caller's lock guards.
 */
#ifndef ACCMEM_BUDDY_INTERNAL_H
#define ACCMEM_BUDDY_INTERNAL_H

#include <linux/align.h>
#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "buddy.h"
#include "lib/layout/layout.h"

#define MAP_LEVELS 10
#define CLASSES 128 /* classes of size */
#define CLASS_LISTED 24 /* first class of 128 granules and more */
#define CACHED_MAX 1024 /* blocks in the order cache, and granules of one */

#define LIFETIME_SECTIONS 512 /* of a range, at most */
#define LIFETIME_HISTORIES 2048 /* a power of two */

#define WORD_SHIFT 6
#define WORD_MASK 63u

#define NOWHERE (~0ull)

/*
 * Most words of the top level. Tests have fewer, for more levels above a small range.
 */
#ifndef MAP_TOP_WORDS
#define MAP_TOP_WORDS 16
#endif

/*
 * Most words that the searches of one call for an aligned run read, or one step of a
 * search of all runs. Tests have fewer, for more steps in a small range.
 */
#ifndef FIND_WORDS
#define FIND_WORDS 256
#endif

/**
 * struct map_state - summary of 64 words of the level below
 * @some: words in which a bit is set
 * @full: words in which all bits are set
 */
struct map_state {
	u64 some;
	u64 full;
};

/**
 * struct map - one bit per granule
 * @nr: number of granules
 * @top: highest level
 * @words: the bits; valid where the word is mixed
 * @state: summaries, from level 1 on
 */
struct map {
	u64 nr;
	unsigned int top;
	u64 *words;
	struct map_state *state[MAP_LEVELS];
};

/*
 * struct lifetime - a big block that begins in a section
 */
struct lifetime {
	u32 lo;
	u32 n; /* 0: no block */
	u32 born; /* event at which the block was allocated */
	u16 key;
	u16 begins; /* section of the start of the block that ends here */
};

/*
 * struct tracked_block - a block that the order cache knows
 */
struct tracked_block {
	u32 lo;
	u16 n; /* 0: unused id */
	u16 below; /* next in the stack of its size, or of unused ids */
	u16 above; /* in the stack; TRACKED_OUTSTANDING for an outstanding block */
	u16 next; /* in the list of its hash bucket */
};

#define TRACKED_OUTSTANDING 0xffff /* no id */

/*
 * struct buddy - free space of one range
 */
struct buddy {
	/* sizes are in granules */
	u64 nr;
	u64 nr_free;
	u64 nr_free_dirty;
	u64 short_of; /* least nr_free at which blocks are cached */
	u64 large; /* least size of a large request */
	u64 nr_large; /* used by large requests, estimated */
	u64 cursor; /* of alloc_dirty */
	struct map used;
	struct map dirty;
	u64 nr_dirty;
	/* size_classes.inc.c */
	u64 classes[CLASSES / 64]; /* classes that have runs */
	u64 *index; /* words where runs of an unlisted class begin */
	u64 stride; /* words from one class to the next */
	u64 starts[CLASS_LISTED]; /* topmost word of each index */
	u32 first[CLASSES]; /* first word of a listed class */
	/* index.inc.c */
	unsigned int top; /* top level of the tree of longest runs */
	u64 *continued; /* a bit a word: its first run begins before it */
	u32 *longest[MAP_LEVELS]; /* longest run that begins in each word */
	u64 wild_start; /* the wilderness, which is in no index */
	u64 wild_size; /* 0 if there is none */
	/* lifetimes.inc.c */
	unsigned int lifetime_shift; /* granules of a section, as a shift */
	u32 large_at; /* event of the last large allocation; 0 for none */
	u32 order; /* the latest events of big blocks */
	u32 now; /* number of events so far */
	u32 nr_ended; /* lifetimes in the mean, at most LIFETIME_MEAN */
	u64 sum; /* sum of lifetime times size */
	u8 histories[LIFETIME_HISTORIES]; /* classes of lifetimes */
	struct lifetime lifetimes[LIFETIME_SECTIONS];
	/* cache.inc.c */
	u16 cached_max; /* granules of a block: room, or 0 with the cache off */
	u16 nr_cached_blocks;
	u16 room; /* most blocks that are cached */
	u16 hand; /* id at which the last eviction stopped */
	u16 frees_since_alloc; /* frees to a full cache since the last request */
	u16 nr_ids; /* ids that were ever used */
	u16 nr_tracked; /* cached and outstanding blocks */
	u16 tracked_longest; /* upper bound of their sizes */
	u16 tracked_hash_shift;
	u16 tracked_bits_shift;
	u16 stack[CACHED_MAX + 1]; /* of each size; entry 0: unused ids */
	struct tracked_block *tracked; /* by id, from 1 on */
	u16 *tracked_hash;
	u64 *tracked_bits; /* hashed by granule: a tracked block ends there */
	u8 *tracked_count; /* tracked blocks that end in each part of the range */
	u64 *tracked_index; /* parts whose count is not 0 */
	u64 tracked_top; /* topmost word of tracked_index */
	/* owners.inc.c */
	struct accmem_buddy_folio *owners; /* NULL without the rule */
	struct map full; /* folios whose record counts all granules */
};

static_assert(sizeof(struct buddy) <= sizeof(struct accmem_buddy));

static inline struct buddy *buddy_of(const struct accmem_buddy *range)
{
	return (struct buddy *)range->state;
}

/* Bits */

/* Mask of @count bits, 1 to 64, from bit @first on */
static inline u64 bits_mask(unsigned int first, unsigned int count)
{
	return (~0ull >> (64 - count)) << first;
}

/*
 * Mask of the granules from @lo to the end of its word, or from its start to @last
 */
static inline u64 mask_from(u64 lo)
{
	return ~0ull << (lo & WORD_MASK);
}

static inline u64 mask_up_to(u64 last)
{
	return ~0ull >> (WORD_MASK - (last & WORD_MASK));
}

/*
 * Mask of the words after @left and before @right; one word describes all of them
 */
static inline u64 words_between(u64 left, u64 right)
{
	return left == right ? 0 :
			       (1ull << (right & WORD_MASK)) -
				       (2ull << (left & WORD_MASK));
}

/* Set or clear the bits of @mask in @word */
static inline u64 with_bits(u64 word, u64 mask, bool set)
{
	return (word | mask) & ~(set ? 0 : mask);
}

static inline unsigned int low_ones(u64 word)
{
	return ~word ? __ffs64(~word) : 64;
}

static inline unsigned int high_ones(u64 word)
{
	return 64 - fls64(~word);
}

static inline u64 words_for(u64 bits)
{
	return (bits + WORD_MASK) >> WORD_SHIFT;
}

/* Granules */

/* A run in granules; its size is not 0 */
struct run {
	u64 start;
	u64 size;
};

static inline void run_bytes(struct accmem_run *run, u64 lo, u64 hi)
{
	run->start = lo << ACCMEM_GRANULE_SHIFT;
	run->size = (hi - lo) << ACCMEM_GRANULE_SHIFT;
}

/* A request in granules */
struct wanted {
	u64 n;
	u64 align;
	u64 lo;
	u64 hi;
	u64 owner; /* 0 if the rule of owners.inc.c does not apply */
	bool high;
};

/**
 * struct candidate - position for a request
 * @at: first granule
 * @run: the whole free run around @at; size 0 if there is no candidate
 */
struct candidate {
	u64 at;
	struct run run;
};

#endif /* ACCMEM_BUDDY_INTERNAL_H */
