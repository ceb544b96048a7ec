// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The promises of the order cache, one at a time: each test is named by what it
 * proves.
 */
#include <errno.h>

#include "table.h"

/* A range in which blocks of up to 4 granules are parked, with 8 of these */
static void make_parked(struct fixture *f, u64 granules, u64 at[8])
{
	int i;

	make(f, 16384 * G);
	for (i = 0; i < 8; i++)
		EXPECT(!take(f, granules * G, G, 0, &at[i]));
	for (i = 0; i < 8; i++)
		EXPECT(!accmem_buddy_free(&f->b, at[i], granules * G));
}

static void a_parked_block_is_taken_first_by_its_size(void)
{
	struct fixture f;
	u64 at[8], next;

	make_parked(&f, 4, at);
	EXPECT(!take(&f, 3 * G, G, 0, &next));
	EXPECT(!take(&f, 4 * G, G, 0, &next) && next == at[7]);
	EXPECT(!take(&f, 4 * G, G, 0, &next) && next == at[6]);
	unmake(&f);
}

static void a_parked_block_is_free_for_every_question(void)
{
	struct accmem_run run;
	struct fixture f;
	u64 at[8];

	make_parked(&f, 2, at);
	EXPECT(accmem_buddy_free_bytes(&f.b) == f.size);
	EXPECT(accmem_buddy_next_free(&f.b, 0, &run) && !run.start &&
	       run.size == f.size);
	EXPECT(accmem_buddy_next_free(&f.b, at[3] + G, &run) &&
	       run.start == at[3] + G && run.size == f.size - at[3] - G);
	accmem_buddy_mark_dirty(&f.b, at[5], 2 * G);
	EXPECT(accmem_buddy_free_dirty_bytes(&f.b) == 2 * G);
	EXPECT(!accmem_buddy_take_dirty(&f.b, MIB, &run) &&
	       run.start == at[5] && run.size == 2 * G);
	EXPECT(!accmem_buddy_free(&f.b, at[5], 2 * G));
	EXPECT(accmem_buddy_largest_run(&f.b, G) == f.size);
	unmake(&f);
}

static void a_parked_block_cannot_be_freed_again(void)
{
	struct fixture f;
	u64 at[8];
	int i;

	make_parked(&f, 4, at);
	for (i = 0; i < 8; i++) {
		EXPECT(accmem_buddy_free(&f.b, at[i], 4 * G) == -EINVAL);
		EXPECT(accmem_buddy_free(&f.b, at[i] + 3 * G, G) == -EINVAL);
		EXPECT(accmem_buddy_free(&f.b, at[i], 2 * G) == -EINVAL);
	}
	EXPECT(accmem_buddy_free(&f.b, 0, f.size) == -EINVAL);
	EXPECT(accmem_buddy_free_bytes(&f.b) == f.size);
	unmake(&f);
}

static void parked_blocks_keep_no_request_from_its_place(void)
{
	struct accmem_buddy_request window = { .size = 2 * G, .align = G };
	struct fixture f;
	u64 at[8], top;

	make_parked(&f, 4, at);
	EXPECT(!take(&f, f.size, G, 0, &top) && !top);
	unmake(&f);
	make_parked(&f, 4, at);
	EXPECT(!take(&f, G, G, ACCMEM_BUDDY_TOP_DOWN, &top) &&
	       top == f.size - G);
	unmake(&f);
	make_parked(&f, 4, at);
	window.start = at[2];
	window.end = at[2] + 4 * G;
	EXPECT(!accmem_buddy_alloc(&f.b, &window, &top) && top == at[2]);
	unmake(&f);
	make_parked(&f, 4, at);
	EXPECT(!take(&f, 4 * G, 4096 * G, 0, &top) && top % (4096 * G) == 0);
	unmake(&f);
}

static void a_cache_switched_off_keeps_nothing(void)
{
	struct fixture f;
	u64 at[8], again;

	make_parked(&f, 4, at);
	accmem_buddy_set_cache(&f.b, false);
	EXPECT(!f.b.nr_parked);
	EXPECT(!take(&f, 4 * G, G, 0, &again) && again == at[0]);
	EXPECT(!accmem_buddy_free(&f.b, again, 4 * G) && !f.b.nr_parked);
	accmem_buddy_set_cache(&f.b, true);
	EXPECT(!take(&f, 4 * G, G, 0, &again));
	EXPECT(!accmem_buddy_free(&f.b, again, 4 * G) && f.b.nr_parked == 1);
	unmake(&f);
}

/* Two blocks whose words have one slot: only the first is parked. */
static void a_block_without_a_slot_is_not_parked(void)
{
	u64 far = 2048 * 64 * G, at;
	struct accmem_buddy_request first = {
		.size = G,
		.align = G,
		.end = G,
	};
	struct accmem_buddy_request second = {
		.size = G,
		.align = G,
		.start = far,
		.end = far + G,
	};
	struct fixture f;

	make(&f, 4 * far);
	EXPECT(far / G >> 6 == f.b.slot_mask + 1);
	EXPECT(!accmem_buddy_alloc(&f.b, &first, &at));
	EXPECT(!accmem_buddy_alloc(&f.b, &second, &at));
	EXPECT(!accmem_buddy_free(&f.b, 0, G) && f.b.nr_parked == 1);
	EXPECT(!accmem_buddy_free(&f.b, far, G) && f.b.nr_parked == 1);
	EXPECT(accmem_buddy_free(&f.b, far, G) == -EINVAL);
	EXPECT(accmem_buddy_free(&f.b, 0, G) == -EINVAL);
	EXPECT(accmem_buddy_free_bytes(&f.b) == 4 * far);
	unmake(&f);
}

static void what_is_parked_is_bounded(void)
{
	struct fixture f;
	u64 at[64], rest;
	int i;

	make(&f, 16384 * G);
	EXPECT(f.b.room == 16);
	EXPECT(!take(&f, 17 * G, G, 0, at)); /* too large for the range */
	EXPECT(!accmem_buddy_free(&f.b, at[0], 17 * G) && !f.b.nr_parked);
	for (i = 0; i < 64; i++)
		EXPECT(!take(&f, 2 * G, G, 0, &at[i]));
	for (i = 0; i < 64; i++)
		EXPECT(!accmem_buddy_free(&f.b, at[i], 2 * G));
	EXPECT(f.b.nr_parked == f.b.room);
	/* Where less than three quarters are free, no large one is parked, */
	EXPECT(!take(&f, 5000 * G, G, 0, &rest));
	EXPECT(!take(&f, 5 * G, G, 0, &at[0]));
	EXPECT(!accmem_buddy_free(&f.b, at[0], 5 * G));
	EXPECT(f.b.nr_parked == f.b.room);
	/* and where less than half, nothing stays parked. */
	EXPECT(!take(&f, 5000 * G, G, 0, &rest));
	for (i = 0; i < f.b.room / 2; i++)
		EXPECT(!take(&f, 5 * G, G, 0, &at[i]));
	EXPECT(!f.b.nr_parked);
	EXPECT(!accmem_buddy_free(&f.b, at[0], 2 * G) && !f.b.nr_parked);
	unmake(&f);
}

static void ranges_too_small_for_it_have_no_cache(void)
{
	struct fixture f;
	u64 at;

	make(&f, 16383 * G);
	accmem_buddy_set_cache(&f.b, true);
	EXPECT(!take(&f, G, G, 0, &at));
	EXPECT(!accmem_buddy_free(&f.b, at, G) && !f.b.nr_parked);
	unmake(&f);
}

int main(void)
{
	TEST(a_parked_block_is_taken_first_by_its_size);
	TEST(a_parked_block_is_free_for_every_question);
	TEST(a_parked_block_cannot_be_freed_again);
	TEST(parked_blocks_keep_no_request_from_its_place);
	TEST(a_cache_switched_off_keeps_nothing);
	TEST(a_block_without_a_slot_is_not_parked);
	TEST(what_is_parked_is_bounded);
	TEST(ranges_too_small_for_it_have_no_cache);
	return tests_end();
}
