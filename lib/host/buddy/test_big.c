// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Where big blocks go, by how long they and their neighbours will live: each test is
 * named by what it proves.
 */
#include <errno.h>

#include "lib/buddy/internal.h"
#include "table.h"

/* A block of @size, made and given back at once; where it was */
static u64 alloc_and_free(struct fixture *f, u64 size)
{
	u64 at = 0;

	EXPECT(!take(f, size, G, 0, &at));
	EXPECT(!accmem_buddy_free(&f->b, at, size));
	return at;
}

static void what_goes_is_kept_from_what_stays(void)
{
	const u64 size = 200 * G, low = 300 * G, high = 39800 * G;
	struct fixture f;
	u64 at;
	int i;

	make(&f, 40000 * G);
	EXPECT(!take_within(&f, low, 0, low, &at));
	/* until any lifetime is, the smaller the higher */
	EXPECT(alloc_and_free(&f, size) == high);
	/* it is known when the same events were before it once */
	for (i = 0; i < 2; i++)
		EXPECT(alloc_and_free(&f, size) == low);
	EXPECT(alloc_and_free(&f, size) == high);
	/* then it stays */
	EXPECT(!take(&f, size, G, 0, &at) && at == high);
	for (i = 0; i < 20; i++)
		alloc_and_free(&f, 500 * G);
	EXPECT(!accmem_buddy_free(&f.b, at, size));
	alloc_and_free(&f, size);
	EXPECT(alloc_and_free(&f, size) == low);
	/* and goes again */
	EXPECT(alloc_and_free(&f, size) == high);
	unmake(&f);
}

/* What was never seen is taken for what stays: it goes where that is beside it. */
static void a_run_is_cut_at_the_end_where_its_like_is(void)
{
	struct fixture f;
	u64 at;

	make(&f, 40000 * G);
	alloc_and_free(&f, 500 * G);
	EXPECT(!take_within(&f, 300 * G, 5000 * G, 5300 * G, &at));
	EXPECT(!take(&f, 200 * G, G, 0, &at) && at == 4800 * G);
	EXPECT(!take(&f, 200 * G, 256 * G, 0, &at) && at == 4352 * G);
	unmake(&f);
}

/*
 * A hole of 100 between a block of 10, which lives for 100 events, and one of 1000,
 * which lives for one: a request of 20 leaves the rest of it to the large one's room.
 */
static u64 take_beside(bool large_above, u64 align)
{
	const u64 hole = (large_above ? 10 : 3890) * G;
	struct fixture f;
	u64 at;

	make(&f, 4000 * G);
	alloc_and_free(&f, 1000 * G);
	if (large_above) {
		EXPECT(!take_within(&f, 2890 * G, 1110 * G, 0, &at));
		EXPECT(!take_within(&f, 10 * G, 0, 10 * G, &at));
		EXPECT(!take_within(&f, 1000 * G, 110 * G, 1110 * G, &at));
	} else {
		EXPECT(!take_within(&f, 2890 * G, 0, 2890 * G, &at));
		EXPECT(!take_within(&f, 10 * G, 3990 * G, 0, &at));
		EXPECT(!take_within(&f, 1000 * G, 2890 * G, 3890 * G, &at));
	}
	EXPECT(accmem_buddy_free_bytes(&f.b) == 100 * G);
	EXPECT(!take(&f, 20 * G, align * G, 0, &at));
	unmake(&f);
	return at / G - hole / G;
}

static void what_will_be_free_together_is_not_broken_up(void)
{
	EXPECT(take_beside(true, 1) == 0);
	EXPECT(take_beside(false, 1) == 80);
	EXPECT(take_beside(true, 16) == 6);
	EXPECT(take_beside(false, 16) == 78);
}

static void the_larger_the_lower(void)
{
	struct fixture f;
	u64 at;

	make(&f, 4000 * G);
	EXPECT(!take(&f, 1000 * G, G, 0, &at) && at == 0);
	EXPECT(!take(&f, 9 * G, G, 0, &at) && at == 3991 * G);
	EXPECT(!take(&f, 500 * G, G, 0, &at) && at == 1000 * G);
	unmake(&f);
}

static void what_is_small_is_kept_from_what_is_large(void)
{
	struct fixture f;
	u64 at, small;

	make(&f, 4000 * G);
	EXPECT(!take_within(&f, 1000 * G, 0, 1000 * G, &at));
	EXPECT(!take(&f, 7 * G, G, 0, &small) && small == 3993 * G);
	EXPECT(!take(&f, 7 * G, G, 0, &small) && small == 3986 * G);
	EXPECT(!accmem_buddy_free(&f.b, at, 1000 * G));
	/* nothing is large any more */
	EXPECT(!take(&f, 7 * G, G, 0, &small) && small == 0);
	unmake(&f);
}

/* Where a large one was, big ones go on as if there were; but not for ever. */
static void a_range_that_had_large_blocks_may_have_them_again(void)
{
	struct fixture f;
	u64 at;
	int i;

	make(&f, 4000 * G);
	EXPECT(!take_within(&f, 100 * G, 0, 100 * G, &at));
	alloc_and_free(&f, 1000 * G);
	EXPECT(!take_within(&f, 100 * G, 1000 * G, 1100 * G, &at));
	/* of a hole and the wilderness what is further up, or what fits */
	EXPECT(alloc_and_free(&f, 9 * G) == 3991 * G);
	for (i = 0; i < 600; i++)
		alloc_and_free(&f, 50 * G);
	EXPECT(alloc_and_free(&f, 9 * G) < 1000 * G);
	unmake(&f);
}

/* Nor does a call that gives back what it took by itself change what is known. */
static void what_fails_or_clears_teaches_nothing(void)
{
	struct accmem_buddy_request req = { .size = 60 * G, .align = G };
	struct accmem_run run[2];
	struct fixture f;
	unsigned int nr;
	u64 at, now;

	make(&f, 100 * G);
	EXPECT(!take(&f, 100 * G, G, 0, &at));
	EXPECT(!accmem_buddy_free(&f.b, 0, 30 * G));
	EXPECT(!accmem_buddy_free(&f.b, 40 * G, 30 * G));
	EXPECT(!accmem_buddy_free(&f.b, 80 * G, 10 * G));
	now = buddy_of(&f.b)->now;
	EXPECT(accmem_buddy_alloc_runs(&f.b, &req, run, 1, &nr) == -E2BIG);
	accmem_buddy_mark_dirty(&f.b, 40 * G, 20 * G);
	EXPECT(!accmem_buddy_alloc_dirty(&f.b, 100 * G, &run[0]));
	EXPECT(run[0].start == 40 * G && run[0].size == 20 * G);
	EXPECT(!accmem_buddy_free(&f.b, run[0].start, run[0].size));
	EXPECT(buddy_of(&f.b)->now == now && !buddy_of(&f.b)->nr_ended);
	EXPECT(!accmem_buddy_alloc_runs(&f.b, &req, run, 2, &nr) && nr == 2);
	EXPECT(!accmem_buddy_free(&f.b, run[0].start, run[0].size));
	EXPECT(buddy_of(&f.b)->now == now + 3 && buddy_of(&f.b)->nr_ended == 1);
	unmake(&f);
}

int main(void)
{
	TEST(what_goes_is_kept_from_what_stays);
	TEST(a_run_is_cut_at_the_end_where_its_like_is);
	TEST(what_will_be_free_together_is_not_broken_up);
	TEST(the_larger_the_lower);
	TEST(what_is_small_is_kept_from_what_is_large);
	TEST(a_range_that_had_large_blocks_may_have_them_again);
	TEST(what_fails_or_clears_teaches_nothing);
	return tests_end();
}
