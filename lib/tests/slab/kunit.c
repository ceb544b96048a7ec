// SPDX-License-Identifier: GPL-2.0
/*
 * The slab in the kernel: each case is named by the property that it proves.
 * The random one holds a byte a slot beside it and prints its seed. Compiled
 * with the core, which exports nothing.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/random.h>

#include "lib/slab/slab.c"

#define SLOTS ACCMEM_SLAB_SLOTS
#define SLOT ((unsigned int)ACCMEM_SLAB_SLOT_SIZE)
#define GRANULE ((unsigned int)ACCMEM_GRANULE)
#define GRANULES 8
#define BLOCKS (GRANULES * SLOTS)

struct slab_test {
	struct accmem_slab s;
	struct accmem_slab_granule granule[GRANULES];
	bool in[GRANULES];
	u8 used[GRANULES][SLOTS];
	struct {
		u8 granule;
		u16 offset, size;
	} blocks[BLOCKS];
	unsigned int nr;
};

static int slab_test_init(struct kunit *test)
{
	struct slab_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	accmem_slab_init(&t->s);
	test->priv = t;
	return 0;
}

static void every_size_and_alignment_in_an_empty_granule(struct kunit *test)
{
	struct slab_test *t = test->priv;
	unsigned int size, align, offset;

	for (size = 1; size <= GRANULE; size += 31) {
		for (align = 1; align <= GRANULE; align *= 2) {
			accmem_slab_add(&t->s, t->granule);
			KUNIT_ASSERT_PTR_EQ(test, &t->granule[0],
					    accmem_slab_alloc(&t->s, size,
							      align, &offset));
			KUNIT_ASSERT_EQ(test, 0, offset);
			KUNIT_ASSERT_EQ(test, 1,
					accmem_slab_free(&t->s, t->granule,
							 offset, size));
			KUNIT_ASSERT_EQ(test, 0, accmem_slab_largest(&t->s));
		}
	}
}

static void blocks_are_aligned_and_apart(struct kunit *test)
{
	struct slab_test *t = test->priv;
	unsigned int a, b, c;

	accmem_slab_add(&t->s, t->granule);
	KUNIT_ASSERT_NOT_NULL(test, accmem_slab_alloc(&t->s, 65, 64, &a));
	KUNIT_ASSERT_NOT_NULL(test, accmem_slab_alloc(&t->s, 1, 1, &b));
	KUNIT_ASSERT_NOT_NULL(test, accmem_slab_alloc(&t->s, 600, 512, &c));
	KUNIT_EXPECT_EQ(test, 0, a);
	KUNIT_EXPECT_EQ(test, 2 * SLOT, b);
	KUNIT_EXPECT_EQ(test, 512, c);
	KUNIT_EXPECT_EQ(test, GRANULE - 13 * SLOT,
			accmem_slab_free_bytes(t->granule));
}

static void a_full_slab_says_so(struct kunit *test)
{
	struct slab_test *t = test->priv;
	unsigned int i, offset = 12345;

	KUNIT_EXPECT_NULL(test, accmem_slab_alloc(&t->s, 1, 64, &offset));
	accmem_slab_add(&t->s, t->granule);
	for (i = 0; i < SLOTS; i++)
		KUNIT_ASSERT_NOT_NULL(test, accmem_slab_alloc(&t->s, 64, 64,
							      &offset));
	offset = 12345;
	KUNIT_EXPECT_NULL(test, accmem_slab_alloc(&t->s, 1, 64, &offset));
	KUNIT_EXPECT_EQ(test, 12345, offset);
	KUNIT_EXPECT_EQ(test, 0, accmem_slab_largest(&t->s));
	KUNIT_EXPECT_EQ(test, 0,
			accmem_slab_free(&t->s, t->granule, 5 * SLOT, SLOT));
	KUNIT_EXPECT_EQ(test, SLOT, accmem_slab_largest(&t->s));
}

static void nonsense_changes_nothing(struct kunit *test)
{
	struct slab_test *t = test->priv;
	struct accmem_slab_granule *g = t->granule;
	unsigned int o = 12345;

	accmem_slab_add(&t->s, g);
	KUNIT_EXPECT_NULL(test, accmem_slab_alloc(&t->s, 0, 64, &o));
	KUNIT_EXPECT_NULL(test, accmem_slab_alloc(&t->s, 4097, 64, &o));
	KUNIT_EXPECT_NULL(test, accmem_slab_alloc(&t->s, ~0u, 64, &o));
	KUNIT_EXPECT_NULL(test, accmem_slab_alloc(&t->s, 64, 0, &o));
	KUNIT_EXPECT_NULL(test, accmem_slab_alloc(&t->s, 64, 96, &o));
	KUNIT_EXPECT_NULL(test, accmem_slab_alloc(&t->s, 64, 8192, &o));
	KUNIT_EXPECT_EQ(test, 12345, o);
	KUNIT_EXPECT_EQ(test, -EINVAL, accmem_slab_free(&t->s, g, 0, 64));
	KUNIT_ASSERT_PTR_EQ(test, g, accmem_slab_alloc(&t->s, 128, 64, &o));
	KUNIT_EXPECT_EQ(test, -EINVAL, accmem_slab_free(&t->s, g, 0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, accmem_slab_free(&t->s, g, 32, 64));
	KUNIT_EXPECT_EQ(test, -EINVAL, accmem_slab_free(&t->s, g, 64, 128));
	KUNIT_EXPECT_EQ(test, -EINVAL, accmem_slab_free(&t->s, g, 4096, 64));
	KUNIT_EXPECT_EQ(test, -EINVAL, accmem_slab_free(&t->s, g, ~63u, 64));
	KUNIT_EXPECT_EQ(test, -EINVAL, accmem_slab_free(&t->s, g, 0, ~0u));
	KUNIT_EXPECT_EQ(test, GRANULE - 128, accmem_slab_free_bytes(g));
	KUNIT_EXPECT_EQ(test, 1, accmem_slab_free(&t->s, g, 0, 128));
}

static void long_runs_are_kept_for_long_blocks(struct kunit *test)
{
	struct slab_test *t = test->priv;
	unsigned int offset;

	accmem_slab_add(&t->s, &t->granule[0]);
	KUNIT_ASSERT_NOT_NULL(test,
			      accmem_slab_alloc(&t->s, 3840, 64, &offset));
	accmem_slab_add(&t->s, &t->granule[1]);
	/* from the granule that has little left, though the other is newer */
	KUNIT_EXPECT_PTR_EQ(test, &t->granule[0],
			    accmem_slab_alloc(&t->s, 256, 64, &offset));
	KUNIT_EXPECT_EQ(test, GRANULE, accmem_slab_largest(&t->s));
}

static void a_removed_granule_serves_no_more(struct kunit *test)
{
	struct slab_test *t = test->priv;
	unsigned int offset;

	accmem_slab_add(&t->s, t->granule);
	KUNIT_ASSERT_NOT_NULL(test, accmem_slab_alloc(&t->s, 64, 64, &offset));
	accmem_slab_remove(&t->s, t->granule);
	accmem_slab_remove(&t->s, t->granule);
	KUNIT_EXPECT_NULL(test, accmem_slab_alloc(&t->s, 64, 64, &offset));
	KUNIT_EXPECT_EQ(test, 0, accmem_slab_largest(&t->s));
}

static void random_alloc(struct kunit *test, struct slab_test *t, u32 random)
{
	unsigned int size = random % 2048 + 1, offset, g, i;
	struct accmem_slab_granule *got;

	got = accmem_slab_alloc(&t->s, size, 64, &offset);
	if (!got) {
		for (g = 0; g < GRANULES && t->in[g]; g++)
			;
		if (g == GRANULES)
			return;
		t->in[g] = true;
		accmem_slab_add(&t->s, &t->granule[g]);
		got = accmem_slab_alloc(&t->s, size, 64, &offset);
	}
	KUNIT_ASSERT_NOT_NULL(test, got);
	g = got - t->granule;
	for (i = offset / SLOT; i < (offset + size + SLOT - 1) / SLOT; i++) {
		KUNIT_ASSERT_EQ(test, 0, t->used[g][i]);
		t->used[g][i] = 1;
	}
	t->blocks[t->nr].granule = g;
	t->blocks[t->nr].offset = offset;
	t->blocks[t->nr++].size = size;
}

static void random_free(struct kunit *test, struct slab_test *t, u32 random)
{
	unsigned int at = random % t->nr, g = t->blocks[at].granule;
	unsigned int offset = t->blocks[at].offset, size = t->blocks[at].size;
	int left;

	left = accmem_slab_free(&t->s, &t->granule[g], offset, size);
	memset(&t->used[g][offset / SLOT], 0, DIV_ROUND_UP(size, SLOT));
	KUNIT_ASSERT_EQ(test, left, memchr_inv(t->used[g], 0, SLOTS) ? 0 : 1);
	if (left)
		t->in[g] = false;
	t->blocks[at] = t->blocks[--t->nr];
}

static void random_blocks_never_overlap_and_granules_return(struct kunit *test)
{
	struct slab_test *t = test->priv;
	u32 seed = get_random_u32(), i;
	struct rnd_state rnd;

	kunit_info(test, "seed %u\n", seed);
	prandom_seed_state(&rnd, seed);
	for (i = 0; i < 20000; i++) {
		u32 random = prandom_u32_state(&rnd);

		if (t->nr && random & BIT(31))
			random_free(test, t, random & ~BIT(31));
		else
			random_alloc(test, t, random);
	}
	while (t->nr)
		random_free(test, t, 0);
	KUNIT_EXPECT_EQ(test, 0, accmem_slab_largest(&t->s));
}

static struct kunit_case slab_kunit_cases[] = {
	KUNIT_CASE(every_size_and_alignment_in_an_empty_granule),
	KUNIT_CASE(blocks_are_aligned_and_apart),
	KUNIT_CASE(a_full_slab_says_so),
	KUNIT_CASE(nonsense_changes_nothing),
	KUNIT_CASE(long_runs_are_kept_for_long_blocks),
	KUNIT_CASE(a_removed_granule_serves_no_more),
	KUNIT_CASE(random_blocks_never_overlap_and_granules_return),
	{}
};

static struct kunit_suite slab_suite = {
	.name = "accmem_slab",
	.init = slab_test_init,
	.test_cases = slab_kunit_cases,
};

kunit_test_suite(slab_suite);
