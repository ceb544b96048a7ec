// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Owners of folios: cases told by hand, and that the rule changes nothing while there
 * is one owner.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/layout/layout.h"
#include "lib/buddy/internal.h"
#include "table.h"

#define FOLIO BIT_ULL(ACCMEM_BUDDY_FOLIO_SHIFT)

/* An instance with the rule, or without */
struct place {
	struct accmem_buddy b;
	struct accmem_buddy_folio *folios;
	void *meta;
};

static void place_make(struct place *p, u64 size, bool rule)
{
	p->meta = calloc(1, accmem_buddy_meta_size(size));
	p->folios = calloc(size / FOLIO + 1, sizeof(*p->folios));
	if (!p->meta || !p->folios || accmem_buddy_init(&p->b, size, p->meta))
		abort();
	if (rule)
		accmem_buddy_set_owners(&p->b, p->folios);
}

static void place_unmake(struct place *p)
{
	free(p->meta);
	free(p->folios);
}

/* Where @owner gets @size; ~0ull if nowhere */
static u64 get(struct place *p, u64 owner, u64 size)
{
	struct accmem_buddy_request req = {
		.size = size,
		.align = G,
		.owner = owner,
	};
	u64 at, cursor = 0;
	int err;

	err = accmem_buddy_alloc(&p->b, &req, &at);
	while (err == -ENOSPC || err == -EAGAIN) {
		err = accmem_buddy_alloc_scan(&p->b, &req, &cursor, &at);
		if (err == -ENOSPC)
			return ~0ull;
	}
	return err ? ~0ull : at;
}

static u64 largest_of(struct place *p, u64 owner)
{
	u64 cursor = 0, largest = 0;

	while (accmem_buddy_largest_run_of(&p->b, owner, &cursor, &largest))
		continue;
	return largest;
}

static void two_owners_share_no_folio(void)
{
	struct place p;
	u64 a, b;

	place_make(&p, 2 * FOLIO, true);
	a = get(&p, 1, G);
	b = get(&p, 2, G);
	EXPECT(a / FOLIO != b / FOLIO);
	EXPECT(get(&p, 3, G) == ~0ull);
	EXPECT(get(&p, 1, FOLIO) == ~0ull);
	EXPECT(get(&p, 1, FOLIO - G) / FOLIO == a / FOLIO);
	EXPECT(largest_of(&p, 1) == 0 && largest_of(&p, 2) == FOLIO - G);
	EXPECT(largest_of(&p, 0) == FOLIO - G && largest_of(&p, 3) == 0);
	EXPECT(!accmem_buddy_free_owned(&p.b, b, G, 2));
	EXPECT(get(&p, 3, FOLIO) / FOLIO == b / FOLIO);
	place_unmake(&p);
}

/* A run goes from an own folio into free ones, and what it has of each is known. */
static void run_begins_in_own_folio(void)
{
	struct place p;
	u64 a, run;

	place_make(&p, 4 * FOLIO, true);
	a = get(&p, 1, FOLIO / 2);
	run = get(&p, 1, 2 * FOLIO);
	EXPECT(a == 0 && run == FOLIO / 2);
	EXPECT(accmem_buddy_claimed(&p.b, run, 2 * FOLIO) == 2 * FOLIO);
	EXPECT(accmem_buddy_folio_owner(&p.b, 0) == 1);
	EXPECT(accmem_buddy_folio_owner(&p.b, 2 * FOLIO) == 1);
	EXPECT(accmem_buddy_folio_used(&p.b, FOLIO) == FOLIO / G);
	EXPECT(get(&p, 2, FOLIO) == 3 * FOLIO);
	EXPECT(!accmem_buddy_free_owned(&p.b, run, 2 * FOLIO, 1));
	place_unmake(&p);
}

/* A part given back out of the middle of a folio that one block covered */
static void part_of_covered_folio(void)
{
	struct place p;
	u64 a;

	place_make(&p, 3 * FOLIO, true);
	a = get(&p, 1, 3 * FOLIO);
	EXPECT(a == 0 && accmem_buddy_folio_owner(&p.b, FOLIO) == 0);
	EXPECT(accmem_buddy_claimed(&p.b, FOLIO + G, G) == 0);
	EXPECT(!accmem_buddy_free_owned(&p.b, FOLIO + G, G, 1));
	EXPECT(accmem_buddy_folio_owner(&p.b, FOLIO) == 1);
	EXPECT(accmem_buddy_folio_used(&p.b, FOLIO) == FOLIO / G - 1);
	EXPECT(get(&p, 2, G) == ~0ull);
	EXPECT(get(&p, 1, G) == FOLIO + G);
	EXPECT(!accmem_buddy_free_owned(&p.b, 0, 3 * FOLIO, 1));
	EXPECT(get(&p, 2, 3 * FOLIO) == 0);
	place_unmake(&p);
}

/* The cleaner's part keeps a folio its owner's, or nobody else's. */
static void cleaner_keeps_owner(void)
{
	struct accmem_run run = {};
	struct place p;
	u64 a;

	/* the first block goes to the high end */
	place_make(&p, 2 * FOLIO, true);
	accmem_buddy_mark_dirty(&p.b, FOLIO, G);
	a = get(&p, 1, G);
	EXPECT(a == 2 * FOLIO - G && !accmem_buddy_alloc_dirty(&p.b, G, &run));
	EXPECT(run.start == FOLIO &&
	       accmem_buddy_folio_owner(&p.b, FOLIO) == 1);
	EXPECT(get(&p, 2, FOLIO) == 0 && get(&p, 2, G) == ~0ull);
	EXPECT(get(&p, 1, FOLIO - 2 * G) == FOLIO + G);
	EXPECT(!accmem_buddy_free_owned(&p.b, a, G, 1));
	/* what its owner gives back is released at once, and the cleaner's then */
	EXPECT(accmem_buddy_claimed(&p.b, FOLIO + G, FOLIO - 2 * G) == FOLIO);
	EXPECT(!accmem_buddy_free_owned(&p.b, FOLIO + G, FOLIO - 2 * G, 1));
	EXPECT(accmem_buddy_folio_owner(&p.b, FOLIO) == ACCMEM_BUDDY_CLEANER);
	EXPECT(accmem_buddy_folio_used(&p.b, FOLIO) == 0);
	EXPECT(get(&p, 1, G) == ~0ull && largest_of(&p, 1) == 0);
	EXPECT(!accmem_buddy_free_owned(&p.b, run.start, run.size,
					ACCMEM_BUDDY_CLEANER));
	EXPECT(largest_of(&p, 2) == FOLIO);
	EXPECT(!accmem_buddy_alloc_dirty(&p.b, G, &run));
	EXPECT(accmem_buddy_folio_owner(&p.b, FOLIO) == ACCMEM_BUDDY_CLEANER);
	EXPECT(get(&p, 1, G) == ~0ull);
	place_unmake(&p);
}

/* A request that may claim nothing more finds what is left of its owner's folios */
static void own_folios_only(void)
{
	struct accmem_buddy_request req = {
		.size = 2 * G,
		.align = G,
		.owner = 1,
		.flags = ACCMEM_BUDDY_OWN,
	};
	u64 at, cursor = 0, offset = ~0ull;
	struct place p;

	place_make(&p, 4 * FOLIO, true);
	at = get(&p, 1, FOLIO + G) / FOLIO * FOLIO;
	EXPECT(accmem_buddy_folio_owner(&p.b, at) == 1 ||
	       accmem_buddy_folio_owner(&p.b, at + FOLIO) == 1);
	EXPECT(!accmem_buddy_alloc_scan(&p.b, &req, &cursor, &offset));
	EXPECT(accmem_buddy_folio_owner(&p.b, offset) == 1);
	EXPECT(accmem_buddy_claimed(&p.b, offset, 2 * G) == 0);
	cursor = 0;
	req.size = FOLIO;
	EXPECT(accmem_buddy_alloc_scan(&p.b, &req, &cursor, &offset) ==
	       -ENOSPC);
	cursor = 0;
	req.size = G;
	req.owner = 2;
	EXPECT(accmem_buddy_alloc_scan(&p.b, &req, &cursor, &offset) ==
	       -ENOSPC);
	place_unmake(&p);
}

/* A block that has its folios to itself becomes another owner's, and no other one. */
static void block_changes_owner(void)
{
	struct accmem_run run = {};
	struct place p;
	u64 a, b;

	place_make(&p, 4 * FOLIO, true);
	a = get(&p, 1, G);
	EXPECT(!accmem_buddy_chown(&p.b, a, G, 1, 2));
	EXPECT(accmem_buddy_folio_owner(&p.b, a) == 2);
	EXPECT(accmem_buddy_claimed(&p.b, a, G) == FOLIO);
	EXPECT(get(&p, 2, G) / FOLIO == a / FOLIO);
	EXPECT(accmem_buddy_chown(&p.b, a, G, 2, 1) == -EBUSY);
	EXPECT(accmem_buddy_folio_owner(&p.b, a) == 2);
	place_unmake(&p);

	/* over several folios, of which it has two in part */
	place_make(&p, 4 * FOLIO, true);
	a = get(&p, 1, FOLIO / 2);
	b = get(&p, 1, 3 * FOLIO);
	EXPECT(a == 0 && b == FOLIO / 2);
	EXPECT(accmem_buddy_chown(&p.b, b, 3 * FOLIO, 1, 2) == -EBUSY);
	EXPECT(!accmem_buddy_free_owned(&p.b, a, FOLIO / 2, 1));
	EXPECT(!accmem_buddy_chown(&p.b, b, 3 * FOLIO, 1, 2));
	EXPECT(accmem_buddy_claimed(&p.b, b, 3 * FOLIO) == 4 * FOLIO);
	EXPECT(get(&p, 1, G) == ~0ull && largest_of(&p, 2) == FOLIO / 2);
	EXPECT(!accmem_buddy_free_owned(&p.b, b, 3 * FOLIO, 2));
	EXPECT(largest_of(&p, 3) == 4 * FOLIO);
	place_unmake(&p);

	/* a part of what one block covers has a folio that is no record's */
	place_make(&p, 2 * FOLIO, true);
	EXPECT(get(&p, 1, 2 * FOLIO) == 0);
	EXPECT(accmem_buddy_chown(&p.b, G, G, 1, 2) == -EBUSY);
	EXPECT(!accmem_buddy_chown(&p.b, 0, 2 * FOLIO, 1, 2));
	EXPECT(!accmem_buddy_free_owned(&p.b, G, G, 2));
	EXPECT(accmem_buddy_folio_owner(&p.b, 0) == 2);
	place_unmake(&p);

	/* nor with what the cleaner has */
	place_make(&p, 2 * FOLIO, true);
	accmem_buddy_mark_dirty(&p.b, FOLIO, G);
	a = get(&p, 1, G);
	EXPECT(a == 2 * FOLIO - G && !accmem_buddy_alloc_dirty(&p.b, G, &run));
	EXPECT(accmem_buddy_chown(&p.b, a, G, 1, 2) == -EBUSY);
	place_unmake(&p);
}

/* A range that ends in a part of a folio */
static void short_last_folio(void)
{
	struct place p;
	u64 at;

	place_make(&p, FOLIO + 3 * G, true);
	EXPECT(get(&p, 1, FOLIO) == 0);
	at = get(&p, 2, 2 * G);
	EXPECT(at == FOLIO + G);
	EXPECT(accmem_buddy_claimed(&p.b, at, 2 * G) == 3 * G);
	EXPECT(get(&p, 1, G) == ~0ull && get(&p, 2, G) == FOLIO);
	EXPECT(!accmem_buddy_free_owned(&p.b, FOLIO, 3 * G, 2));
	EXPECT(largest_of(&p, 1) == 3 * G);
	place_unmake(&p);
}

/* Blocks that wait are free: a folio that has no others is nobody's. */
static void cached_blocks_are_nobodys(void)
{
	struct place p;
	u64 a, b;

	place_make(&p, 256 * FOLIO, true);
	a = get(&p, 1, 2 * G);
	b = get(&p, 1, 2 * G);
	EXPECT(!accmem_buddy_free_owned(&p.b, a, 2 * G, 1));
	EXPECT(buddy_of(&p.b)->nr_cached_blocks == 1 &&
	       get(&p, 2, 2 * G) / FOLIO != a / FOLIO);
	EXPECT(buddy_of(&p.b)->nr_cached_blocks == 1 && get(&p, 1, 2 * G) == a);
	EXPECT(!accmem_buddy_free_owned(&p.b, a, 2 * G, 1));
	EXPECT(!accmem_buddy_free_owned(&p.b, b, 2 * G, 1));
	EXPECT(buddy_of(&p.b)->nr_cached_blocks == 2 && get(&p, 3, 2 * G) == b);
	place_unmake(&p);
}

/* A retired granule is nobody's: the rest of its folio serves one owner after another. */
static void retired_granule_has_no_owner(void)
{
	struct place p;
	u64 a;

	place_make(&p, 2 * FOLIO, true);
	EXPECT(!accmem_buddy_retire(&p.b, 5 * G));
	EXPECT(accmem_buddy_retire(&p.b, 5 * G) == -EBUSY);
	EXPECT(accmem_buddy_folio_used(&p.b, 0) == 0);
	EXPECT(accmem_buddy_folio_owner(&p.b, 0) == 0);
	EXPECT(largest_of(&p, 1) == 2 * FOLIO - 6 * G);
	a = get(&p, 1, 5 * G);
	EXPECT(a == 0 && accmem_buddy_folio_owner(&p.b, 0) == 1);
	EXPECT(accmem_buddy_claimed(&p.b, a, 5 * G) == FOLIO);
	EXPECT(get(&p, 2, FOLIO) == FOLIO && get(&p, 2, G) == ~0ull);
	EXPECT(get(&p, 1, FOLIO - 6 * G) == 6 * G);
	EXPECT(!accmem_buddy_free_owned(&p.b, 6 * G, FOLIO - 6 * G, 1));
	EXPECT(!accmem_buddy_chown(&p.b, a, 5 * G, 1, 3));
	EXPECT(!accmem_buddy_free_owned(&p.b, a, 5 * G, 3));
	EXPECT(get(&p, 2, FOLIO - 6 * G) == 6 * G);
	place_unmake(&p);
}

/* A block is freed in part, and the failed granule in its middle is retired. */
static void failed_granule_of_a_block_is_retired(void)
{
	struct place p;

	place_make(&p, 2 * FOLIO, true);
	EXPECT(get(&p, 1, 2 * FOLIO) == 0);
	EXPECT(accmem_buddy_retire(&p.b, FOLIO + G) == -EBUSY);
	EXPECT(accmem_buddy_claimed(&p.b, 0, FOLIO + G) == FOLIO);
	EXPECT(!accmem_buddy_free_owned(&p.b, 0, FOLIO + G, 1));
	EXPECT(accmem_buddy_claimed(&p.b, FOLIO + G, G) == 0);
	EXPECT(!accmem_buddy_free_owned(&p.b, FOLIO + G, G, 1));
	EXPECT(!accmem_buddy_retire(&p.b, FOLIO + G));
	EXPECT(accmem_buddy_folio_used(&p.b, FOLIO) == FOLIO / G - 2);
	EXPECT(accmem_buddy_claimed(&p.b, FOLIO + 2 * G, FOLIO - 2 * G) ==
	       FOLIO);
	EXPECT(!accmem_buddy_free_owned(&p.b, FOLIO + 2 * G, FOLIO - 2 * G, 1));
	EXPECT(accmem_buddy_free_bytes(&p.b) == 2 * FOLIO - G);
	EXPECT(get(&p, 2, FOLIO + G) == 0 && largest_of(&p, 3) == 0);
	place_unmake(&p);
}

/* Of a block in the order cache too */
static void cached_granule_is_retired(void)
{
	struct place p;
	u64 a, b;

	place_make(&p, 256 * FOLIO, false);
	a = get(&p, 0, 2 * G);
	b = get(&p, 0, 2 * G);
	EXPECT(!accmem_buddy_free(&p.b, a, 2 * G));
	EXPECT(buddy_of(&p.b)->nr_cached_blocks == 1);
	EXPECT(!accmem_buddy_retire(&p.b, a + G));
	EXPECT(get(&p, 0, 2 * G) != a && get(&p, 0, G) != a + G);
	EXPECT(!accmem_buddy_free(&p.b, b, 2 * G));
	place_unmake(&p);
}

#define BLOCKS 512

/* Random calls by one owner get what they get without the rule. */
static void one_owner_is_as_no_rule(void)
{
	struct accmem_run block[BLOCKS] = {};
	struct rng r = { .state = 1 };
	struct place with, without;
	unsigned int i, step;
	u64 size, a, b;

	place_make(&with, 64 * FOLIO, true);
	place_make(&without, 64 * FOLIO, false);
	for (step = 0; step < 200000; step++) {
		i = rng_below(&r, BLOCKS);
		if (block[i].size) {
			EXPECT(!accmem_buddy_free_owned(&with.b, block[i].start,
							block[i].size, 7));
			EXPECT(!accmem_buddy_free(&without.b, block[i].start,
						  block[i].size));
			block[i].size = 0;
			continue;
		}
		size = G * (1 + rng_below(&r, 1u << rng_below(&r, 11)));
		a = get(&with, 7, size);
		b = get(&without, 0, size);
		EXPECT(a == b);
		block[i].start = a;
		block[i].size = a == ~0ull ? 0 : size;
		EXPECT(largest_of(&with, 7) == largest_run(&without.b));
	}
	place_unmake(&with);
	place_unmake(&without);
}

int main(void)
{
	TEST(two_owners_share_no_folio);
	TEST(run_begins_in_own_folio);
	TEST(part_of_covered_folio);
	TEST(cleaner_keeps_owner);
	TEST(own_folios_only);
	TEST(block_changes_owner);
	TEST(short_last_folio);
	TEST(cached_blocks_are_nobodys);
	TEST(retired_granule_has_no_owner);
	TEST(failed_granule_of_a_block_is_retired);
	TEST(cached_granule_is_retired);
	TEST(one_owner_is_as_no_rule);
	return tests_end();
}
