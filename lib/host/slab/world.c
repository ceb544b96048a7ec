// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A slab, and beside it the same told the naive way: a byte a slot and loops.
 * After every call the answer has to be lawful, nothing may overlap, and the
 * slab may say that it has no room only when no granule has.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/slab/slab.h"
#include "world.h"

#define GRANULES 12
#define SLOTS ACCMEM_SLAB_SLOTS
#define SLOT ACCMEM_SLAB_SLOT_SIZE
#define BLOCKS (GRANULES * SLOTS)

u64 accmem_slab_touched;

struct block {
	unsigned int granule, offset, size;
};

struct world {
	const char *origin;
	u64 step;
	struct rng *draw;
	struct accmem_slab slab;
	struct accmem_slab_granule granule[GRANULES];
	bool in[GRANULES];
	u8 used[GRANULES][SLOTS];
	struct block blocks[BLOCKS];
	unsigned int nr_blocks;
};

static void check(const struct world *w, bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "FAILED: slab: %s: step %llu: %s\n", w->origin, w->step,
		what);
	abort();
}

static unsigned int slots_of(unsigned int size)
{
	return (size + SLOT - 1) / SLOT;
}

/* slots that are free from @first on in granule @g */
static unsigned int free_from(const struct world *w, unsigned int g,
			      unsigned int first)
{
	unsigned int n = 0;

	while (first + n < SLOTS && !w->used[g][first + n])
		n++;
	return n;
}

static unsigned int naive_longest(const struct world *w, unsigned int g)
{
	unsigned int i, most = 0;

	for (i = 0; i < SLOTS; i++)
		most = free_from(w, g, i) > most ? free_from(w, g, i) : most;
	return most;
}

static unsigned int naive_largest(const struct world *w)
{
	unsigned int g, most = 0;

	for (g = 0; g < GRANULES; g++)
		if (w->in[g] && naive_longest(w, g) > most)
			most = naive_longest(w, g);
	return most;
}

static bool add_one(struct world *w)
{
	unsigned int g;

	for (g = 0; g < GRANULES && w->in[g]; g++)
		;
	if (g == GRANULES)
		return false;
	w->in[g] = true;
	memset(w->used[g], 0, SLOTS);
	accmem_slab_add(&w->slab, &w->granule[g]);
	return true;
}

/* a block at the place the slab chose; the naive side has to agree */
static void took(struct world *w, const struct accmem_slab_granule *at,
		 unsigned int offset, unsigned int size, unsigned int align)
{
	unsigned int g = at - w->granule, n = slots_of(size);

	check(w, g < GRANULES && w->in[g], "a granule of the slab");
	check(w, !(offset % SLOT) && !(offset % align), "aligned");
	check(w, free_from(w, g, offset / SLOT) >= n, "free before");
	memset(&w->used[g][offset / SLOT], 1, n);
	w->blocks[w->nr_blocks++] = (struct block){ g, offset, size };
}

static void alloc(struct world *w)
{
	unsigned int size = rng_below(w->draw, 8) ?
				    1 + rng_below(w->draw, 2048) :
				    rng_below(w->draw, 4200);
	unsigned int align = 1u << rng_below(w->draw, 14), offset = 12345;
	unsigned int slot_align = slots_of(align), longest;
	struct accmem_slab_granule *g;

	if (rng_below(w->draw, 3))
		align = 64;
	if (!rng_below(w->draw, 16))
		align = rng_below(w->draw, 100);
	slot_align = slots_of(align);
	longest = naive_largest(w);
	accmem_slab_touched = 0;
	g = accmem_slab_alloc(&w->slab, size, align, &offset);
	check(w, accmem_slab_touched <= SLAB_TOUCHED_MAX,
	      "bounded cost of taking");
	if (!size || size > ACCMEM_GRANULE || !align || align & (align - 1) ||
	    align > ACCMEM_GRANULE) {
		check(w, !g && offset == 12345, "nonsense is refused");
		return;
	}
	if (!g) {
		slot_align += slots_of(size) - 1;
		check(w, longest < (slot_align < SLOTS ? slot_align : SLOTS),
		      "no granule was needed");
		check(w, offset == 12345, "a refusal changes nothing");
		if (!add_one(w))
			return;
		g = accmem_slab_alloc(&w->slab, size, align, &offset);
		check(w, g, "an empty granule serves");
	}
	took(w, g, offset, size, align);
}

static bool is_empty(const struct world *w, unsigned int g)
{
	return naive_longest(w, g) == SLOTS;
}

static void free_one(struct world *w)
{
	unsigned int i, n;
	struct block b;
	int left;

	if (!w->nr_blocks)
		return;
	i = rng_below(w->draw, w->nr_blocks);
	b = w->blocks[i];
	w->blocks[i] = w->blocks[--w->nr_blocks];
	n = slots_of(b.size);
	accmem_slab_touched = 0;
	left = accmem_slab_free(&w->slab, &w->granule[b.granule], b.offset,
				b.size);
	check(w, accmem_slab_touched <= SLAB_TOUCHED_MAX,
	      "bounded cost of giving");
	memset(&w->used[b.granule][b.offset / SLOT], 0, n);
	check(w, left == is_empty(w, b.granule), "empty granules come back");
	if (left)
		w->in[b.granule] = false;
}

/* what is no block is refused, and nothing changes */
static void free_nonsense(struct world *w)
{
	unsigned int g = rng_below(w->draw, GRANULES);
	unsigned int offset = rng_below(w->draw, 5000);
	unsigned int size = rng_below(w->draw, 5000), i;
	bool wrong = !size || size > ACCMEM_GRANULE || offset % SLOT;

	if (!w->in[g])
		return;
	if (!wrong) {
		wrong = offset / SLOT + slots_of(size) > SLOTS;
		for (i = 0; !wrong && i < slots_of(size); i++)
			wrong = !w->used[g][offset / SLOT + i];
	}
	if (!wrong)
		return;
	check(w,
	      accmem_slab_free(&w->slab, &w->granule[g], offset, size) ==
		      -EINVAL,
	      "nonsense is not freed");
}

static void remove_one(struct world *w)
{
	unsigned int g = rng_below(w->draw, GRANULES), i, bytes;

	if (!w->in[g])
		return;
	for (bytes = 0, i = 0; i < SLOTS; i++)
		bytes += w->used[g][i] ? 0 : SLOT;
	check(w, accmem_slab_free_bytes(&w->granule[g]) == bytes, "free bytes");
	accmem_slab_remove(&w->slab, &w->granule[g]);
	w->in[g] = false;
	for (i = 0; i < w->nr_blocks;) {
		if (w->blocks[i].granule == g)
			w->blocks[i] = w->blocks[--w->nr_blocks];
		else
			i++;
	}
}

void slab_world_run(const char *origin, struct rng *draw, u64 ops)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->origin = origin;
	w->draw = draw;
	accmem_slab_init(&w->slab);
	for (; w->step < ops && !rng_is_spent(draw); w->step++) {
		switch (rng_below(draw, 64)) {
		case 0:
			remove_one(w);
			break;
		case 1 ... 4:
			free_nonsense(w);
			break;
		case 5 ... 34:
			free_one(w);
			break;
		default:
			alloc(w);
		}
		check(w,
		      accmem_slab_largest(&w->slab) == naive_largest(w) * SLOT,
		      "the largest block");
	}
	free(w);
}
