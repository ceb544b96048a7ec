/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The allocator inside: its state, and the words that its sources share.
 *
 * Words: a run is a maximal range of free granules. A word is 64 granules of the map.
 * An interval [lo, hi) does not have hi; "last" is inclusive. A request is big if it is
 * at least a slot of lifetimes.inc.c, large if it is at least 5/128 of the range.
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
#define CLASSES 128 /* of sizes */
#define CLASS_LISTED 24 /* the first one of 128 granules and more */
#define PARKED_MAX 1024 /* blocks in the order cache, and granules of one */

#define LIFE_SLOTS 512 /* of a range, at most */
#define LIFE_HISTORIES 2048 /* a power of two */

#define WORD_SHIFT 6
#define WORD_MASK 63u

#define NOWHERE (~0ull)

/*
 * At most, on the level above which there is none. Tests have fewer, for more
 * levels above a small range.
 */
#ifndef MAP_TOP_WORDS
#define MAP_TOP_WORDS 16
#endif

/**
 * struct map_state - what 64 words of the level below hold
 * @some: of which words a bit is set
 * @full: of which words all are
 */
struct map_state {
	u64 some;
	u64 full;
};

/**
 * struct map - a bit for each granule
 * @nr: of so many
 * @top: level above which there is none
 * @words: the bits, where the word is mixed
 * @state: from level 1 on
 */
struct map {
	u64 nr;
	unsigned int top;
	u64 *words;
	struct map_state *state[MAP_LEVELS];
};

/*
 * struct lifetime - a big block that begins in a slot
 */
struct lifetime {
	u32 lo;
	u32 n; /* 0: there is none */
	u32 born; /* event */
	u16 key;
	u16 begins; /* slot in which the one begins that ends in this slot */
};

/*
 * struct kept_block - a block that the order cache knows
 */
struct kept_block {
	u32 lo;
	u16 n; /* 0: the id is not in use */
	u16 below; /* parked, of the same size; or also not in use */
	u16 above; /* KEPT_LENT where it is; of the topmost, anything else */
	u16 next; /* in the list of the hash */
};

#define KEPT_LENT 0xffff /* no id */

/*
 * struct buddy - free space of one range
 */
struct buddy {
	/* sizes are in granules */
	u64 nr;
	u64 nr_free;
	u64 nr_free_dirty;
	u64 short_of; /* nr_free, for anything to wait in the order cache */
	u64 large; /* requests of so many are */
	u64 nr_large; /* used by these, as far as it is known */
	u64 cursor; /* of take_dirty */
	struct map used;
	struct map dirty;
	u64 nr_dirty;
	/* classes.inc.c */
	u64 classes[CLASSES / 64]; /* that have runs */
	u64 *index; /* words where runs of a class begin, but for listed ones */
	u64 stride; /* words from one class to the next */
	u64 starts[CLASS_LISTED]; /* of each, the topmost word */
	u32 first[CLASSES]; /* of a listed one that has runs */
	/* index.inc.c */
	unsigned int top; /* level of one entry, in the trees of eight */
	u64 *continued; /* a bit a word: its first run begins before it */
	u32 *longest[MAP_LEVELS]; /* of the runs that begin there */
	u64 wild_start; /* the wilderness: a run that is in none of these */
	u64 wild_size; /* 0 if there is none */
	/* lifetimes.inc.c */
	unsigned int life_shift; /* a block of a slot of granules is big */
	u32 large_at; /* event: when the last large block was made; 0 for never */
	u32 order; /* what the latest events of big blocks were */
	u32 now; /* how many there were */
	u32 nr_ended; /* lifetimes that count in the mean, at most LIFE_MEAN */
	u64 sum; /* of these, each times its size */
	u8 histories[LIFE_HISTORIES]; /* classes of lifetimes */
	struct lifetime lifetimes[LIFE_SLOTS];
	/* cache.inc.c */
	u16 parked_max; /* granules of a block: room, or 0 while the cache is off */
	u16 nr_parked;
	u16 room; /* for parked blocks */
	u16 hand; /* the last id that had to go */
	u16 frees_since_alloc; /* to a full cache */
	u16 nr_ids; /* that were ever in use */
	u16 nr_kept; /* blocks that are parked or lent */
	u16 kept_longest; /* of these, or of one that was */
	u16 kept_hash_shift;
	u16 kept_bits_shift;
	u16 stack[PARKED_MAX + 1]; /* by size; 0: ids to use */
	struct kept_block *kept; /* by id, from 1 on */
	u16 *kept_hash;
	u64 *kept_bits; /* one for some granules: a kept block ends there */
	u8 *kept_count; /* of kept blocks that end in a part of the range */
	u64 *kept_index; /* parts where any do */
	u64 kept_top; /* of that, the topmost word */
	/* owners.inc.c */
	struct accmem_buddy_folio *owners; /* NULL without the rule */
	struct map full; /* units that have a record of all of their granules */
};

static_assert(sizeof(struct buddy) <= sizeof(struct accmem_buddy));

static inline struct buddy *buddy_of(const struct accmem_buddy *range)
{
	return (struct buddy *)range->state;
}

/* Bits */

/* @count low bits, 1 to 64 of them, from bit @first on */
static inline u64 bits_mask(unsigned int first, unsigned int count)
{
	return (~0ull >> (64 - count)) << first;
}

/* From granule @lo of its word on, and up to @last of its word */
static inline u64 mask_from(u64 lo)
{
	return ~0ull << (lo & WORD_MASK);
}

static inline u64 mask_up_to(u64 last)
{
	return ~0ull >> (WORD_MASK - (last & WORD_MASK));
}

/* Of words of which one word speaks, those after @left and before @right */
static inline u64 words_between(u64 left, u64 right)
{
	return left == right ? 0 :
			       (1ull << (right & WORD_MASK)) -
				       (2ull << (left & WORD_MASK));
}

/* @word with the bits of @mask made 1s or 0s */
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

/* A run in granules; none has size 0 */
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
	u64 owner; /* whom the rule of owners.inc.c binds; 0 if it is nobody */
	bool high;
};

/**
 * struct candidate - where a request is placed
 * @at: its first granule
 * @run: the whole free run around it; its size is 0 when there is no candidate
 */
struct candidate {
	u64 at;
	struct run run;
};

#endif /* ACCMEM_BUDDY_INTERNAL_H */
