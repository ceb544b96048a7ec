// SPDX-License-Identifier: GPL-2.0
/*
 * The allocator in the kernel: each case is named by the property that it
 * proves. Random cases hold a naive reference, a byte a granule, beside it and
 * print their seed.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "lib/buddy/buddy.h"
#include "lib/layout/layout.h"
#include "lib/buddy/internal.h"

#define G ACCMEM_GRANULE
#define NR_MAX 2000
#define NR_CACHE 20480 /* the least that has an order cache */
#define USED 1
#define DIRTY 2

struct buddy_test {
	struct accmem_buddy b;
	void *meta;
	u8 *model;
	u64 nr;
	struct rnd_state rnd;
};

static int buddy_test_init(struct kunit *test)
{
	struct buddy_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->model = kunit_kzalloc(test, NR_CACHE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->model);
	test->priv = t;
	return 0;
}

static void buddy_test_exit(struct kunit *test)
{
	struct buddy_test *t = test->priv;

	if (t)
		vfree(t->meta);
}

/* Gives the test a fresh range of @nr granules. */
static struct buddy_test *make(struct kunit *test, u64 nr)
{
	struct buddy_test *t = test->priv;

	vfree(t->meta);
	t->meta = vmalloc(accmem_buddy_meta_size(nr * G));
	KUNIT_ASSERT_NOT_NULL(test, t->meta);
	memset(t->meta, 0xa5, accmem_buddy_meta_size(nr * G));
	memset(t->meta, 0, accmem_buddy_meta_zeroed(nr * G));
	KUNIT_ASSERT_EQ(test, 0, accmem_buddy_init(&t->b, nr * G, t->meta));
	memset(t->model, 0, NR_CACHE);
	t->nr = nr;
	return t;
}

static int take(struct buddy_test *t, u64 granules, u64 align, u32 flags,
		u64 *at)
{
	struct accmem_buddy_request req = {
		.size = granules * G,
		.align = align * G,
		.flags = flags,
	};

	return accmem_buddy_alloc(&t->b, &req, at);
}

static u64 largest_run(struct buddy_test *t)
{
	u64 cursor = 0, largest = 0;

	while (accmem_buddy_largest_run_of(&t->b, 0, &cursor, &largest))
		;
	return largest;
}

static u32 below(struct buddy_test *t, u32 n)
{
	return prandom_u32_state(&t->rnd) % n;
}

/* Longest free run of the model with an aligned start, in granules */
static u64 model_longest(const struct buddy_test *t, u64 align)
{
	u64 best = 0, run = 0, i;

	for (i = t->nr; i-- > 0;) {
		run = t->model[i] & USED ? 0 : run + 1;
		if (!(i & (align - 1)))
			best = max(best, run);
	}
	return best;
}

static void model_set(struct buddy_test *t, u64 at, u64 n, u8 bit, bool set)
{
	for (at /= G; n--; at++)
		t->model[at] = set ? t->model[at] | bit : t->model[at] & ~bit;
}

static bool model_all(const struct buddy_test *t, u64 at, u64 n, bool used)
{
	for (at /= G; n--; at++)
		if (at >= t->nr || (t->model[at] & USED) != (used ? USED : 0))
			return false;
	return true;
}

static u64 model_count(const struct buddy_test *t, u8 mask, u8 value)
{
	u64 n = 0, i;

	for (i = 0; i < t->nr; i++)
		n += (t->model[i] & mask) == value;
	return n * G;
}

static void random_alloc(struct kunit *test, struct buddy_test *t)
{
	u64 n = 1 + below(t, 1 + below(t, t->nr)), align = 1, at = 0;
	bool fits;
	int err;

	if (below(t, 3) == 0)
		align = 1ull << below(t, 9);
	fits = model_longest(t, align) >= n;
	err = take(t, n, align, below(t, 2) ? ACCMEM_BUDDY_TOP_DOWN : 0, &at);
	KUNIT_ASSERT_EQ(test, err, fits ? 0 : -ENOSPC);
	if (err)
		return;
	KUNIT_ASSERT_EQ(test, at & (align * G - 1), 0);
	KUNIT_ASSERT_TRUE(test, model_all(t, at, n, false));
	model_set(t, at, n, USED, true);
}

static void random_free(struct kunit *test, struct buddy_test *t)
{
	u64 at = below(t, t->nr) * G, n = 1 + below(t, 30);
	bool ok = model_all(t, at, n, true);

	KUNIT_ASSERT_EQ(test, accmem_buddy_free(&t->b, at, n * G),
			ok ? 0 : -EINVAL);
	if (ok)
		model_set(t, at, n, USED, false);
}

static void random_mark(struct kunit *test, struct buddy_test *t)
{
	u64 at = below(t, t->nr), n = 1 + below(t, t->nr - at);
	bool held = model_all(t, at * G, n, true);
	bool dirty = !held || below(t, 2);

	if (held)
		accmem_buddy_mark_held(&t->b, at * G, n * G, dirty);
	else
		accmem_buddy_mark_dirty(&t->b, at * G, n * G);
	model_set(t, at * G, n, DIRTY, dirty);
}

static void expect_agreement(struct kunit *test, struct buddy_test *t)
{
	KUNIT_ASSERT_EQ(test, accmem_buddy_free_bytes(&t->b),
			model_count(t, USED, 0));
	KUNIT_ASSERT_EQ(test, accmem_buddy_free_dirty_bytes(&t->b),
			model_count(t, USED | DIRTY, DIRTY));
	KUNIT_ASSERT_EQ(test, largest_run(t), model_longest(t, 1) * G);
}

static void random_calls_agree_with_the_reference(struct kunit *test)
{
	u64 seed = get_random_u64();
	struct buddy_test *t;
	int round, i;

	kunit_info(test, "seed %llu\n", seed);
	for (round = 0; round < 10; round++) {
		t = test->priv;
		prandom_seed_state(&t->rnd, seed + round);
		t = make(test, 1 + below(t, NR_MAX));
		for (i = 0; i < 2000; i++) {
			switch (below(t, 9)) {
			case 0 ... 2:
				random_alloc(test, t);
				break;
			case 3 ... 7:
				random_free(test, t);
				break;
			default:
				random_mark(test, t);
				break;
			}
			expect_agreement(test, t);
		}
	}
}

/* The same with blocks that wait: no question is asked that merges them all. */
static void cached_blocks_agree_with_the_reference(struct kunit *test)
{
	struct accmem_run *live, *run;
	u64 seed = get_random_u64(), n, at;
	struct buddy_test *t = test->priv;
	int i, most = 0;

	kunit_info(test, "seed %llu\n", seed);
	prandom_seed_state(&t->rnd, seed);
	t = make(test, NR_CACHE);
	live = kunit_kcalloc(test, 64, sizeof(*live), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, live);
	for (i = 0; i < 5000; i++) {
		run = &live[below(t, 64)];
		n = 1 + below(t, 5);
		if (run->size) {
			at = run->start;
			n = run->size / G;
			KUNIT_ASSERT_EQ(test,
					accmem_buddy_free(&t->b, at, n * G), 0);
			model_set(t, at, n, USED, false);
			run->size = 0;
		} else {
			KUNIT_ASSERT_EQ(test, take(t, n, 1, 0, &at), 0);
			KUNIT_ASSERT_TRUE(test, model_all(t, at, n, false));
			model_set(t, at, n, USED, true);
			*run = (struct accmem_run){ at, n * G };
		}
		most = max_t(int, most, buddy_of(&t->b)->nr_cached_blocks);
		if (i % 16 == 0)
			random_mark(test, t);
		if (i % 256 == 0)
			expect_agreement(test, t);
	}
	KUNIT_EXPECT_GE(test, most, 8);
}

/* Every dirty granule that is free is handed to the scrubber, once. */
static void alloc_dirty_finds_all_and_only_dirty(struct kunit *test)
{
	struct buddy_test *t = make(test, NR_MAX);
	struct accmem_run run;
	u64 seed = get_random_u64(), left;
	int err, i, again = 0;

	kunit_info(test, "seed %llu\n", seed);
	prandom_seed_state(&t->rnd, seed);
	for (i = 0; i < 50; i++) {
		random_alloc(test, t);
		random_mark(test, t);
	}
	while ((left = accmem_buddy_free_dirty_bytes(&t->b))) {
		err = accmem_buddy_alloc_dirty(&t->b, 8 * G, &run);
		if (err == -EAGAIN && again++ < NR_MAX)
			continue;
		KUNIT_ASSERT_EQ(test, err, 0);
		KUNIT_ASSERT_LE(test, run.size, 8 * G);
		KUNIT_ASSERT_TRUE(test,
				  model_all(t, run.start, run.size / G, false));
		for (i = 0; i < run.size / G; i++)
			KUNIT_ASSERT_TRUE(test,
					  t->model[run.start / G + i] & DIRTY);
		KUNIT_ASSERT_EQ(test, accmem_buddy_free_dirty_bytes(&t->b),
				left - run.size);
		model_set(t, run.start, run.size / G, USED, true);
	}
	KUNIT_EXPECT_EQ(test, model_count(t, USED | DIRTY, DIRTY), 0);
	KUNIT_EXPECT_EQ(test, accmem_buddy_alloc_dirty(&t->b, G, &run),
			-ENOENT);
}

static void no_size_is_rounded_up(struct kunit *test)
{
	struct buddy_test *t = make(test, 37 * 27);
	u64 at;
	int i;

	for (i = 0; i < 27; i++)
		KUNIT_EXPECT_EQ(test, take(t, 37, 1, 0, &at), 0);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free_bytes(&t->b), 0);
}

static void neighbours_merge_whatever_their_marks(struct kunit *test)
{
	struct buddy_test *t = make(test, 1024);
	u64 at;
	int i;

	KUNIT_ASSERT_EQ(test, take(t, 1024, 1, 0, &at), 0);
	for (i = 0; i < 1024; i++) {
		if (i % 3)
			accmem_buddy_mark_dirty(&t->b, i * G, G);
		KUNIT_ASSERT_EQ(test, accmem_buddy_free(&t->b, i * G, G), 0);
	}
	KUNIT_EXPECT_EQ(test, largest_run(t), 1024 * G);
	KUNIT_EXPECT_EQ(test, take(t, 1024, 1, 0, &at), 0);
}

static void a_second_free_is_refused(struct kunit *test)
{
	struct buddy_test *t = make(test, 64);
	u64 at;

	KUNIT_ASSERT_EQ(test, take(t, 10, 1, 0, &at), 0);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free(&t->b, at + 5 * G, G), 0);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free(&t->b, at + 5 * G, G), -EINVAL);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free(&t->b, at, 10 * G), -EINVAL);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free_bytes(&t->b), 55 * G);
}

static void cached_blocks_are_free(struct kunit *test)
{
	struct buddy_test *t = make(test, 20480);
	struct accmem_run run;
	u64 at[8], again;
	int i;

	for (i = 0; i < 8; i++)
		KUNIT_ASSERT_EQ(test, take(t, 4, 1, 0, &at[i]), 0);
	for (i = 0; i < 8; i++)
		KUNIT_ASSERT_EQ(test, 0,
				accmem_buddy_free(&t->b, at[i], 4 * G));
	KUNIT_EXPECT_EQ(test, accmem_buddy_free_bytes(&t->b), 20480 * G);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free(&t->b, at[3] + G, G), -EINVAL);
	KUNIT_EXPECT_EQ(test, take(t, 4, 1, 0, &again), 0);
	KUNIT_EXPECT_EQ(test, again, at[7]);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free(&t->b, again, 4 * G), 0);
	KUNIT_EXPECT_TRUE(test, accmem_buddy_next_free(&t->b, 0, &run));
	KUNIT_EXPECT_EQ(test, run.size, 20480 * G);
	KUNIT_EXPECT_EQ(test, largest_run(t), 20480 * G);
	KUNIT_EXPECT_EQ(test, take(t, 20480, 1, 0, &again), 0);
}

static void outstanding_blocks_come_back_in_parts(struct kunit *test)
{
	struct buddy_test *t = make(test, 20480);
	u64 first, at;

	KUNIT_ASSERT_EQ(test, take(t, 4, 1, 0, &first), 0);
	KUNIT_ASSERT_EQ(test, accmem_buddy_free(&t->b, first, 4 * G), 0);
	KUNIT_ASSERT_EQ(test, take(t, 4, 1, 0, &at), 0);
	KUNIT_EXPECT_EQ(test, at, first);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free(&t->b, at + 2 * G, G), 0);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free(&t->b, at, 4 * G), -EINVAL);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free(&t->b, at, 2 * G), 0);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free(&t->b, at + 3 * G, G), 0);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free_bytes(&t->b), 20480 * G);
}

static void ends_and_windows_are_honoured(struct kunit *test)
{
	struct buddy_test *t = make(test, 1000);
	struct accmem_buddy_request req = {
		.size = 10 * G,
		.align = G,
		.start = 501 * G,
		.end = 512 * G,
	};
	u64 at;

	KUNIT_EXPECT_EQ(test, take(t, 7, 1, ACCMEM_BUDDY_TOP_DOWN, &at), 0);
	KUNIT_EXPECT_EQ(test, at, 993 * G);
	KUNIT_EXPECT_EQ(test, accmem_buddy_alloc(&t->b, &req, &at), 0);
	KUNIT_EXPECT_EQ(test, at, 501 * G);
	KUNIT_EXPECT_EQ(test, accmem_buddy_alloc(&t->b, &req, &at), -ENOSPC);
	req.size = G;
	KUNIT_EXPECT_EQ(test, accmem_buddy_alloc(&t->b, &req, &at), 0);
	KUNIT_EXPECT_EQ(test, at, 511 * G);
}

static void scattered_runs_add_up(struct kunit *test)
{
	struct accmem_buddy_request req = { .size = 30 * G, .align = G };
	struct buddy_test *t = make(test, 100);
	struct accmem_run runs[3];
	unsigned int nr, i;
	u64 at, sum = 0;

	KUNIT_ASSERT_EQ(test, take(t, 100, 1, 0, &at), 0);
	KUNIT_ASSERT_EQ(test, accmem_buddy_free(&t->b, 0, 10 * G), 0);
	KUNIT_ASSERT_EQ(test, accmem_buddy_free(&t->b, 50 * G, 16 * G), 0);
	KUNIT_ASSERT_EQ(test, accmem_buddy_free(&t->b, 80 * G, 5 * G), 0);
	KUNIT_EXPECT_EQ(test, -E2BIG,
			accmem_buddy_alloc_runs(&t->b, &req, runs, 2, &nr));
	KUNIT_EXPECT_EQ(test, accmem_buddy_free_bytes(&t->b), 31 * G);
	KUNIT_ASSERT_EQ(test, 0,
			accmem_buddy_alloc_runs(&t->b, &req, runs, 3, &nr));
	for (i = 0; i < nr; i++)
		sum += runs[i].size;
	KUNIT_EXPECT_EQ(test, sum, 30 * G);
	KUNIT_EXPECT_EQ(test, accmem_buddy_free_bytes(&t->b), G);
	req.size = 2 * G;
	KUNIT_EXPECT_EQ(test, -ENOSPC,
			accmem_buddy_alloc_runs(&t->b, &req, runs, 3, &nr));
}

static void what_goes_is_kept_from_what_stays(struct kunit *test)
{
	struct accmem_buddy_request stays = {
		.size = 300 * G,
		.align = G,
		.end = 300 * G,
	};
	struct buddy_test *t = make(test, 40000);
	unsigned int i;
	u64 at;

	KUNIT_ASSERT_EQ(test, accmem_buddy_alloc(&t->b, &stays, &at), 0);
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, take(t, 200, 1, 0, &at), 0);
		/* first the smaller the higher, until a lifetime is known */
		KUNIT_EXPECT_EQ(test, at, (i % 3 ? 300 : 39800) * G);
		KUNIT_EXPECT_EQ(test, accmem_buddy_free(&t->b, at, 200 * G), 0);
	}
}

/* Those that live for 100 events and one are below and above what is left. */
static void what_will_be_free_together_is_not_broken_up(struct kunit *test)
{
	static const u64 window[][2] = {
		{ 110, 1110 }, /* given back at once */
		{ 1110, 4000 },
		{ 0, 10 },
		{ 110, 1110 },
	};
	struct buddy_test *t = make(test, 4000);
	struct accmem_buddy_request req = { .align = G };
	unsigned int i;
	u64 at;

	for (i = 0; i < ARRAY_SIZE(window); i++) {
		req.start = window[i][0] * G;
		req.end = window[i][1] * G;
		req.size = req.end - req.start;
		KUNIT_ASSERT_EQ(test, accmem_buddy_alloc(&t->b, &req, &at), 0);
		if (!i)
			KUNIT_ASSERT_EQ(test,
					accmem_buddy_free(&t->b, at, req.size),
					0);
	}
	KUNIT_ASSERT_EQ(test, take(t, 20, 1, 0, &at), 0);
	KUNIT_EXPECT_EQ(test, at, 10 * G);
}

static void what_is_small_is_kept_from_what_is_large(struct kunit *test)
{
	struct buddy_test *t = make(test, 4000);
	u64 at;

	KUNIT_ASSERT_EQ(test, take(t, 1000, 1, 0, &at), 0);
	KUNIT_EXPECT_EQ(test, at, 0);
	KUNIT_ASSERT_EQ(test, take(t, 7, 1, 0, &at), 0);
	KUNIT_EXPECT_EQ(test, at, 3993 * G);
	KUNIT_ASSERT_EQ(test, take(t, 500, 1, 0, &at), 0);
	KUNIT_EXPECT_EQ(test, at, 1000 * G);
}

/* Where @owner gets @granules; ~0 if nowhere */
static u64 take_owned(struct buddy_test *t, u64 owner, u64 granules)
{
	struct accmem_buddy_request req = {
		.size = granules * G,
		.align = G,
		.owner = owner,
	};
	u64 at, cursor = 0;
	int err;

	err = accmem_buddy_alloc(&t->b, &req, &at);
	if (err == -ENOSPC) {
		do {
			err = accmem_buddy_alloc_scan(&t->b, &req, &cursor,
						      &at);
		} while (err == -EAGAIN);
	}
	return err ? ~0ull : at;
}

static void two_owners_share_no_folio(struct kunit *test)
{
	struct buddy_test *t = make(test, 1024);
	struct accmem_buddy_folio *folios;
	u64 a, b, cursor = 0, largest = 0;

	folios = kunit_kcalloc(test, 2, sizeof(*folios), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, folios);
	accmem_buddy_set_owners(&t->b, folios);
	a = take_owned(t, 1, 1);
	b = take_owned(t, 2, 1);
	KUNIT_EXPECT_NE(test, a / (512 * G), b / (512 * G));
	KUNIT_EXPECT_EQ(test, take_owned(t, 3, 1), ~0ull);
	KUNIT_EXPECT_EQ(test, accmem_buddy_claimed(&t->b, a, G), 512 * G);
	KUNIT_EXPECT_EQ(test, 0,
			accmem_buddy_largest_run_of(&t->b, 1, &cursor,
						    &largest));
	KUNIT_EXPECT_EQ(test, largest, 511 * G);
	KUNIT_EXPECT_EQ(test, 0, accmem_buddy_free_owned(&t->b, b, G, 2));
	KUNIT_EXPECT_NE(test, take_owned(t, 3, 512), ~0ull);
}

static void metadata_is_at_most_four_bits_a_granule(struct kunit *test)
{
	u64 size;

	for (size = 1ull << 23; size <= 1ull << 44; size *= 2)
		KUNIT_EXPECT_LE(test, 2 * (u64)accmem_buddy_meta_size(size),
				size >> ACCMEM_GRANULE_SHIFT);
	KUNIT_EXPECT_EQ(test, accmem_buddy_meta_size(0), 0);
	KUNIT_EXPECT_EQ(test, accmem_buddy_meta_size(G + 1), 0);
	KUNIT_EXPECT_EQ(test, accmem_buddy_meta_size((1ull << 44) + G), 0);
}

static struct kunit_case buddy_cases[] = {
	KUNIT_CASE(random_calls_agree_with_the_reference),
	KUNIT_CASE(cached_blocks_agree_with_the_reference),
	KUNIT_CASE(alloc_dirty_finds_all_and_only_dirty),
	KUNIT_CASE(no_size_is_rounded_up),
	KUNIT_CASE(neighbours_merge_whatever_their_marks),
	KUNIT_CASE(a_second_free_is_refused),
	KUNIT_CASE(cached_blocks_are_free),
	KUNIT_CASE(outstanding_blocks_come_back_in_parts),
	KUNIT_CASE(ends_and_windows_are_honoured),
	KUNIT_CASE(scattered_runs_add_up),
	KUNIT_CASE(what_goes_is_kept_from_what_stays),
	KUNIT_CASE(what_will_be_free_together_is_not_broken_up),
	KUNIT_CASE(what_is_small_is_kept_from_what_is_large),
	KUNIT_CASE(two_owners_share_no_folio),
	KUNIT_CASE(metadata_is_at_most_four_bits_a_granule),
	{}
};

static struct kunit_suite buddy_suite = {
	.name = "accmem_buddy",
	.init = buddy_test_init,
	.exit = buddy_test_exit,
	.test_cases = buddy_cases,
};

kunit_test_suite(buddy_suite);
