// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The promises of the order cache, one at a time: each test is named by what it
 * proves.
 */
#include <errno.h>

#include "lib/buddy/internal.h"
#include "table.h"

/* The smallest that has an order cache: 20 blocks, of up to 20 granules */
#define RANGE (20480 * G)

/* A range in which blocks of up to 4 granules are cached, with 8 of these */
static void make_cached(struct fixture *f, u64 granules, u64 at[8])
{
	int i;

	make(f, RANGE);
	for (i = 0; i < 8; i++)
		EXPECT(!take(f, granules * G, G, 0, &at[i]));
	for (i = 0; i < 8; i++)
		EXPECT(!accmem_buddy_free(&f->b, at[i], granules * G));
}

static void a_cached_block_is_allocated_first_by_its_size(void)
{
	struct fixture f;
	u64 at[8], next;

	make_cached(&f, 4, at);
	EXPECT(!take(&f, 3 * G, G, 0, &next));
	EXPECT(!take(&f, 4 * G, G, 0, &next) && next == at[7]);
	EXPECT(!take(&f, 4 * G, G, 0, &next) && next == at[6]);
	unmake(&f);
}

static void a_cached_block_is_free_for_every_question(void)
{
	struct accmem_run run;
	struct fixture f;
	u64 at[8];

	make_cached(&f, 2, at);
	EXPECT(accmem_buddy_free_bytes(&f.b) == f.size);
	EXPECT(accmem_buddy_next_free(&f.b, 0, &run) && !run.start &&
	       run.size == f.size);
	EXPECT(accmem_buddy_next_free(&f.b, at[3] + G, &run) &&
	       run.start == at[3] + G && run.size == f.size - at[3] - G);
	accmem_buddy_mark_dirty(&f.b, at[5], 2 * G);
	EXPECT(accmem_buddy_free_dirty_bytes(&f.b) == 2 * G);
	EXPECT(!accmem_buddy_alloc_dirty(&f.b, MIB, &run) &&
	       run.start == at[5] && run.size == 2 * G);
	EXPECT(!accmem_buddy_free(&f.b, at[5], 2 * G));
	EXPECT(largest_run(&f.b) == f.size);
	unmake(&f);
}

static void a_cached_block_cannot_be_freed_again(void)
{
	struct fixture f;
	u64 at[8];
	int i;

	make_cached(&f, 4, at);
	for (i = 0; i < 8; i++) {
		EXPECT(accmem_buddy_free(&f.b, at[i], 4 * G) == -EINVAL);
		EXPECT(accmem_buddy_free(&f.b, at[i] + 3 * G, G) == -EINVAL);
		EXPECT(accmem_buddy_free(&f.b, at[i], 2 * G) == -EINVAL);
	}
	EXPECT(accmem_buddy_free(&f.b, 0, f.size) == -EINVAL);
	EXPECT(accmem_buddy_free_bytes(&f.b) == f.size);
	unmake(&f);
}

static void cached_blocks_keep_no_request_from_its_place(void)
{
	struct accmem_buddy_request window = { .size = 2 * G, .align = G };
	struct fixture f;
	u64 at[8], top;

	make_cached(&f, 4, at);
	EXPECT(!take(&f, f.size, G, 0, &top) && !top);
	unmake(&f);
	make_cached(&f, 4, at);
	EXPECT(!take(&f, G, G, ACCMEM_BUDDY_TOP_DOWN, &top) &&
	       top == f.size - G);
	unmake(&f);
	make_cached(&f, 4, at);
	window.start = at[2];
	window.end = at[2] + 4 * G;
	EXPECT(!accmem_buddy_alloc(&f.b, &window, &top) && top == at[2]);
	unmake(&f);
	make_cached(&f, 4, at);
	EXPECT(!take(&f, 4 * G, 4096 * G, 0, &top) && top % (4096 * G) == 0);
	unmake(&f);
}

static void a_cache_switched_off_keeps_nothing(void)
{
	struct fixture f;
	u64 at[8], again;

	make_cached(&f, 4, at);
	accmem_buddy_set_cache(&f.b, false);
	EXPECT(!buddy_of(&f.b)->nr_cached_blocks);
	EXPECT(!take(&f, 4 * G, G, 0, &again) && again == at[0]);
	EXPECT(!accmem_buddy_free(&f.b, again, 4 * G) &&
	       !buddy_of(&f.b)->nr_cached_blocks);
	accmem_buddy_set_cache(&f.b, true);
	EXPECT(!take(&f, 4 * G, G, 0, &again));
	EXPECT(!accmem_buddy_free(&f.b, again, 4 * G) &&
	       buddy_of(&f.b)->nr_cached_blocks == 1);
	unmake(&f);
}

/* Eight blocks side by side that wait, and are all taken again */
static void make_outstanding(struct fixture *f, u64 granules, u64 at[8])
{
	u64 all;
	int i;

	make(f, RANGE);
	EXPECT(!take(f, 8 * granules * G, G, 0, &all));
	for (i = 0; i < 8; i++)
		EXPECT(!accmem_buddy_free(&f->b, all + i * granules * G,
					  granules * G));
	EXPECT(buddy_of(&f->b)->nr_cached_blocks == 8);
	for (i = 7; i >= 0; i--) {
		EXPECT(!take(f, granules * G, G, 0, &at[i]));
		EXPECT(at[i] == all + i * granules * G);
	}
	EXPECT(!buddy_of(&f->b)->nr_cached_blocks &&
	       buddy_of(&f->b)->nr_tracked == 8);
}

/* What is marked in both counts once, for the part that waits. */
static void cached_bytes_beside_outstanding_ones_are_free_and_dirty(void)
{
	struct fixture f;
	u64 at[8], outstanding;

	make_cached(&f, 4, at);
	EXPECT(!take(&f, 4 * G, G, 0, &outstanding) && outstanding == at[7]);
	EXPECT(at[7] == at[6] + 4 * G || at[6] == at[7] + 4 * G);
	accmem_buddy_mark_dirty(&f.b, min(at[6], at[7]), 8 * G);
	EXPECT(accmem_buddy_free_dirty_bytes(&f.b) == 4 * G);
	EXPECT(!accmem_buddy_free(&f.b, outstanding, 4 * G));
	EXPECT(accmem_buddy_free_dirty_bytes(&f.b) == 8 * G);
	unmake(&f);
}

static void an_outstanding_block_waits_again(void)
{
	struct fixture f;
	u64 at[8], next;

	make_outstanding(&f, 4, at);
	EXPECT(!accmem_buddy_free(&f.b, at[3], 4 * G) &&
	       buddy_of(&f.b)->nr_cached_blocks == 1);
	EXPECT(accmem_buddy_free(&f.b, at[3], 4 * G) == -EINVAL);
	EXPECT(!take(&f, 4 * G, G, 0, &next) && next == at[3]);
	EXPECT(buddy_of(&f.b)->nr_tracked == 8);
	unmake(&f);
}

static void an_outstanding_block_can_be_freed_in_parts(void)
{
	struct fixture f;
	u64 at[8], next;

	make_outstanding(&f, 4, at);
	EXPECT(!accmem_buddy_free(&f.b, at[2] + 3 * G, G));
	EXPECT(accmem_buddy_free(&f.b, at[2], 4 * G) == -EINVAL);
	EXPECT(!accmem_buddy_free(&f.b, at[2], 3 * G));
	EXPECT(accmem_buddy_free(&f.b, at[2], 3 * G) == -EINVAL);
	EXPECT(!accmem_buddy_free(&f.b, at[4], G));
	EXPECT(accmem_buddy_free(&f.b, at[4], 4 * G) == -EINVAL);
	EXPECT(!accmem_buddy_free(&f.b, at[4] + 2 * G, G));
	EXPECT(!accmem_buddy_free(&f.b, at[4] + 3 * G, G));
	EXPECT(!accmem_buddy_free(&f.b, at[4] + G, G));
	EXPECT(accmem_buddy_free_bytes(&f.b) == f.size - 6 * 4 * G);
	EXPECT(take(&f, 0, G, 0, &next) == -EINVAL);
	unmake(&f);
}

static void outstanding_blocks_can_be_freed_together(void)
{
	struct fixture f;
	u64 at[8];
	int i;

	make_outstanding(&f, 4, at);
	EXPECT(!accmem_buddy_free(&f.b, at[1], 8 * G));
	EXPECT(!accmem_buddy_free(&f.b, at[3] + G, 8 * G));
	EXPECT(accmem_buddy_free(&f.b, at[0], 32 * G) == -EINVAL);
	for (i = 1; i < 6; i++)
		EXPECT(accmem_buddy_free(&f.b, at[i], 4 * G) == -EINVAL);
	EXPECT(!accmem_buddy_free(&f.b, at[0], 4 * G));
	EXPECT(!accmem_buddy_free(&f.b, at[3], G));
	EXPECT(!accmem_buddy_free(&f.b, at[5] + G, 11 * G));
	EXPECT(accmem_buddy_free_bytes(&f.b) == f.size);
	EXPECT(largest_run(&f.b) == f.size);
	EXPECT(!buddy_of(&f.b)->nr_tracked);
	unmake(&f);
}

static void a_cache_switched_off_forgets_what_is_outstanding(void)
{
	struct fixture f;
	u64 at[8];
	int i;

	make_outstanding(&f, 4, at);
	accmem_buddy_set_cache(&f.b, false);
	for (i = 0; i < 8; i++)
		EXPECT(!accmem_buddy_free(&f.b, at[i], 4 * G));
	EXPECT(!buddy_of(&f.b)->nr_cached_blocks &&
	       !buddy_of(&f.b)->nr_tracked);
	EXPECT(largest_run(&f.b) == f.size);
	unmake(&f);
}

/*
 * Two blocks that have one bit of those for where they end: only the first is cached.
 */
static void a_block_without_a_bit_is_not_cached(void)
{
	struct accmem_buddy_request first = {
		.size = G,
		.align = G,
		.end = G,
	};
	struct accmem_buddy_request second = first;
	struct fixture f;
	u64 far, at;

	make(&f, 1048576 * G);
	far = ((2ull << buddy_of(&f.b)->tracked_bits_shift) - 5) * 64 * G;
	second.start = far;
	second.end = far + G;
	EXPECT(!accmem_buddy_alloc(&f.b, &first, &at));
	EXPECT(!accmem_buddy_alloc(&f.b, &second, &at));
	EXPECT(!accmem_buddy_free(&f.b, 0, G) &&
	       buddy_of(&f.b)->nr_cached_blocks == 1);
	EXPECT(!accmem_buddy_free(&f.b, far, G) &&
	       buddy_of(&f.b)->nr_cached_blocks == 1);
	EXPECT(accmem_buddy_free(&f.b, far, G) == -EINVAL);
	EXPECT(accmem_buddy_free(&f.b, 0, G) == -EINVAL);
	EXPECT(accmem_buddy_free_bytes(&f.b) == f.size);
	unmake(&f);
}

static void what_is_cached_is_bounded(void)
{
	struct fixture f;
	u64 at[64];
	int i;

	make(&f, RANGE);
	EXPECT(buddy_of(&f.b)->room == 20);
	EXPECT(!take(&f, 21 * G, G, 0, at)); /* too large for the range */
	EXPECT(!accmem_buddy_free(&f.b, at[0], 21 * G) &&
	       !buddy_of(&f.b)->nr_cached_blocks);
	for (i = 0; i < 39; i++)
		EXPECT(!take(&f, 2 * G, G, 0, &at[i]));
	for (i = 0; i < 39; i++)
		EXPECT(!accmem_buddy_free(&f.b, at[i], 2 * G));
	EXPECT(buddy_of(&f.b)->nr_cached_blocks == buddy_of(&f.b)->room);
	unmake(&f);
}

/* Nor does it stay there. */
static void nothing_is_cached_where_room_is_short(void)
{
	static const struct {
		u64 nr, free; /* granules, and those that have to be free */
	} ranges[] = {
		{ 20480, 15360 }, /* three quarters */
		{ 655360, 491520 },
		{ 786432, 524288 }, /* 2 GiB */
		{ 1048576, 524288 },
		{ 4194304, 2097152 } /* half */
	};
	struct fixture f;
	u64 at[8], rest;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		make(&f, ranges[i].nr * G);
		for (k = 0; k < ARRAY_SIZE(at); k++)
			EXPECT(!take(&f, 2 * G, G, 0, &at[k]));
		rest = ranges[i].nr - ranges[i].free - 2 * (ARRAY_SIZE(at) - 1);
		EXPECT(!take(&f, rest * G, G, 0, &rest));
		EXPECT(!accmem_buddy_free(&f.b, at[0], 2 * G) &&
		       buddy_of(&f.b)->nr_cached_blocks == 1);
		EXPECT(!take(&f, 5 * G, G, 0, &rest) &&
		       buddy_of(&f.b)->nr_cached_blocks == 1);
		EXPECT(!accmem_buddy_free(&f.b, at[1], 2 * G));
		EXPECT(!buddy_of(&f.b)->nr_cached_blocks);
		unmake(&f);
	}
}

/* Which is seen when a full cache has refused as many as it holds. */
static void what_nobody_asks_for_merges(void)
{
	struct fixture f;
	u64 at[64], again;
	int i;

	make(&f, RANGE);
	for (i = 0; i < 64; i++)
		EXPECT(!take(&f, 2 * G, G, 0, &at[i]));
	for (i = 0; i < 39; i++)
		EXPECT(!accmem_buddy_free(&f.b, at[i], 2 * G));
	EXPECT(buddy_of(&f.b)->nr_cached_blocks == 20);
	for (i = 39; i < 59; i++) {
		EXPECT(!accmem_buddy_free(&f.b, at[i], 2 * G));
		EXPECT(buddy_of(&f.b)->nr_cached_blocks == 58 - i);
	}
	EXPECT(!accmem_buddy_free(&f.b, at[59], 2 * G));
	EXPECT(!buddy_of(&f.b)->nr_cached_blocks &&
	       !buddy_of(&f.b)->nr_tracked);
	/* a request ends it */
	EXPECT(!take(&f, 2 * G, G, 0, &again));
	EXPECT(!accmem_buddy_free(&f.b, at[60], 2 * G) &&
	       buddy_of(&f.b)->nr_cached_blocks == 1);
	unmake(&f);
}

/* Rounds in which sizes take turns: each allocates cached blocks, and caches more. */
static void what_is_tracked_is_bounded(void)
{
	struct fixture f;
	u64 at[10][20];
	int i, k;

	make(&f, RANGE);
	for (k = 0; k < 10; k++) {
		for (i = 0; i < 20; i++)
			EXPECT(!take(&f, (k + 1) * G, G, 0, &at[k][i]));
		for (i = 0; i < 20; i++)
			EXPECT(!accmem_buddy_free(&f.b, at[k][i], (k + 1) * G));
		for (i = 0; i < 20; i++)
			EXPECT(!take(&f, (k + 1) * G, G, 0, &at[k][i]));
		EXPECT(buddy_of(&f.b)->nr_tracked <= 4 * buddy_of(&f.b)->room);
	}
	EXPECT(buddy_of(&f.b)->nr_tracked == 4 * buddy_of(&f.b)->room);
	for (k = 0; k < 10; k++)
		for (i = 0; i < 20; i++)
			EXPECT(!accmem_buddy_free(&f.b, at[k][i], (k + 1) * G));
	EXPECT(largest_run(&f.b) == f.size);
	EXPECT(!buddy_of(&f.b)->nr_tracked);
	unmake(&f);
}

static void ranges_too_small_for_it_have_no_cache(void)
{
	struct fixture f;
	u64 at;

	make(&f, RANGE - G);
	accmem_buddy_set_cache(&f.b, true);
	EXPECT(!take(&f, G, G, 0, &at));
	EXPECT(!accmem_buddy_free(&f.b, at, G) &&
	       !buddy_of(&f.b)->nr_cached_blocks);
	unmake(&f);
}

int main(void)
{
	TEST(a_cached_block_is_allocated_first_by_its_size);
	TEST(a_cached_block_is_free_for_every_question);
	TEST(a_cached_block_cannot_be_freed_again);
	TEST(cached_blocks_keep_no_request_from_its_place);
	TEST(a_cache_switched_off_keeps_nothing);
	TEST(cached_bytes_beside_outstanding_ones_are_free_and_dirty);
	TEST(an_outstanding_block_waits_again);
	TEST(an_outstanding_block_can_be_freed_in_parts);
	TEST(outstanding_blocks_can_be_freed_together);
	TEST(a_cache_switched_off_forgets_what_is_outstanding);
	TEST(a_block_without_a_bit_is_not_cached);
	TEST(what_is_cached_is_bounded);
	TEST(nothing_is_cached_where_room_is_short);
	TEST(what_nobody_asks_for_merges);
	TEST(what_is_tracked_is_bounded);
	TEST(ranges_too_small_for_it_have_no_cache);
	return tests_end();
}
