// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_slab: blocks smaller than a granule.
 *
 * The free slots of a granule are the bits of a word. Shifts of the word over itself
 * find the runs of a given length, and the length of the longest run.
 *
 * Granules with free slots are in lists by the length of their longest free run. A
 * request is served from a granule whose longest run is the shortest that fits. In that
 * granule a run of the exact length is preferred to the start of a longer run. So long
 * runs remain for long blocks, and no block size has granules of its own.
 *
 * Locking: none; the caller serialises. Runs in any context.
 */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/minmax.h>

#include "slab.h"

/* The tests count the granules that an operation accesses. */
#ifdef ACCMEM_SLAB_COUNT
extern u64 accmem_slab_touched;
#define TOUCH() (accmem_slab_touched++)
#else
#define TOUCH() ((void)0)
#endif

/* Return the starts of free runs of at least @nr slots, 1 <= @nr <= 64, a bit each. */
static u64 slab_runs_of(u64 free, unsigned int nr)
{
	unsigned int have = 1;

	for (; 2 * have <= nr; have *= 2)
		free &= free >> have;
	return nr > have ? free & (free >> (nr - have)) : free;
}

/* Return the number of slots in the longest free run. */
static unsigned int slab_longest_run(u64 free)
{
	u64 runs[7] = { free }; /* [k]: starts of runs of 2^k slots */
	unsigned int k = 0, length;
	u64 at;

	if (!free)
		return 0;
	for (; k < 6; k++) {
		runs[k + 1] = runs[k] & (runs[k] >> BIT(k));
		if (!runs[k + 1])
			break;
	}
	at = runs[k];
	length = BIT(k);
	while (k--) {
		if (length < ACCMEM_SLAB_SLOTS && at & (runs[k] >> length)) {
			at &= runs[k] >> length;
			length += BIT(k);
		}
	}
	return length;
}

/* Return the multiples of @slots, a power of two up to 64, a bit each. */
static u64 slab_multiples_of(unsigned int slots)
{
	return slots < ACCMEM_SLAB_SLOTS ? ~0ull / (BIT_ULL(slots) - 1) : 1;
}

static u64 slab_block_mask(unsigned int first, unsigned int nr)
{
	return (~0ull >> (ACCMEM_SLAB_SLOTS - nr)) << first;
}

void accmem_slab_init(struct accmem_slab *s)
{
	unsigned int i;

	s->present = 0;
	for (i = 0; i < ACCMEM_SLAB_SLOTS; i++)
		INIT_LIST_HEAD(&s->longest[i]);
}

void accmem_slab_remove(struct accmem_slab *s, struct accmem_slab_granule *g)
{
	unsigned int i = g->longest - 1;

	if (!g->longest)
		return;
	TOUCH();
	list_del(&g->link);
	if (list_empty(&s->longest[i]))
		s->present &= ~BIT_ULL(i);
	g->longest = 0;
}

/* Move a granule to the list of its longest free run. */
static void slab_file(struct accmem_slab *s, struct accmem_slab_granule *g)
{
	unsigned int longest = slab_longest_run(g->free);

	if (longest == g->longest)
		return;
	accmem_slab_remove(s, g);
	g->longest = longest;
	if (!longest)
		return;
	TOUCH();
	list_add(&g->link, &s->longest[longest - 1]);
	s->present |= BIT_ULL(longest - 1);
}

void accmem_slab_add(struct accmem_slab *s, struct accmem_slab_granule *g)
{
	g->free = ~0ull;
	g->longest = 0;
	slab_file(s, g);
}

/* Find the granule whose longest run is the shortest of at least @slots. */
static struct accmem_slab_granule *slab_shortest_of(struct accmem_slab *s,
						    unsigned int slots)
{
	u64 fit = s->present >> (slots - 1);

	if (!fit)
		return NULL;
	TOUCH();
	return list_first_entry(&s->longest[slots - 1 + __ffs64(fit)],
				struct accmem_slab_granule, link);
}

/* Find the first slot for a block of @nr slots in @g. Return 64 if none fits. */
static unsigned int slab_place(const struct accmem_slab_granule *g,
			       unsigned int nr, unsigned int align)
{
	u64 at = slab_runs_of(g->free, nr) & slab_multiples_of(align),
	    exact = at;

	exact &= ~(g->free << 1); /* at the start of a free run, */
	if (nr < ACCMEM_SLAB_SLOTS)
		exact &= ~slab_runs_of(g->free,
				       nr + 1); /* of exactly @nr slots */
	if (exact)
		return __ffs64(exact);
	return at ? __ffs64(at) : ACCMEM_SLAB_SLOTS;
}

struct accmem_slab_granule *accmem_slab_alloc(struct accmem_slab *s,
					      unsigned int size,
					      unsigned int align,
					      unsigned int *offset)
{
	struct accmem_slab_granule *g;
	unsigned int nr, slots, first;

	if (!size || size > ACCMEM_GRANULE || !align || align & (align - 1) ||
	    align > ACCMEM_GRANULE)
		return NULL;
	nr = DIV_ROUND_UP(size, (unsigned int)ACCMEM_SLAB_SLOT_SIZE);
	slots = DIV_ROUND_UP(align, (unsigned int)ACCMEM_SLAB_SLOT_SIZE);

	g = slab_shortest_of(s, nr);
	if (!g)
		return NULL;
	first = slab_place(g, nr, slots);
	if (first == ACCMEM_SLAB_SLOTS) {
		/*
		 * A run of this length has an aligned place, and so has an empty
		 * granule.
		 */
		g = slab_shortest_of(s, min(nr + slots - 1, ACCMEM_SLAB_SLOTS));
		if (!g)
			return NULL;
		first = slab_place(g, nr, slots);
	}
	g->free &= ~slab_block_mask(first, nr);
	slab_file(s, g);
	*offset = first * ACCMEM_SLAB_SLOT_SIZE;
	return g;
}

int accmem_slab_free(struct accmem_slab *s, struct accmem_slab_granule *g,
		     unsigned int offset, unsigned int size)
{
	unsigned int nr, first = offset / ACCMEM_SLAB_SLOT_SIZE;

	if (!size || size > ACCMEM_GRANULE || offset % ACCMEM_SLAB_SLOT_SIZE)
		return -EINVAL;
	nr = DIV_ROUND_UP(size, (unsigned int)ACCMEM_SLAB_SLOT_SIZE);
	if (first > ACCMEM_SLAB_SLOTS - nr ||
	    g->free & slab_block_mask(first, nr))
		return -EINVAL;
	TOUCH();
	g->free |= slab_block_mask(first, nr);
	if (~g->free) {
		slab_file(s, g);
		return 0;
	}
	accmem_slab_remove(s, g);
	return 1;
}

unsigned int accmem_slab_free_bytes(const struct accmem_slab_granule *g)
{
	return hweight64(g->free) * ACCMEM_SLAB_SLOT_SIZE;
}

unsigned int accmem_slab_largest(const struct accmem_slab *s)
{
	return fls64(s->present) * ACCMEM_SLAB_SLOT_SIZE;
}
