// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The allocator's promises one at a time: each test is named by what it
 * proves. The ranges reach from one granule to 16 TiB.
 */
#include <errno.h>
#include <string.h>

#include "lib/buddy/internal.h"
#include "table.h"

static void sizes_that_no_range_has(void)
{
	EXPECT(!accmem_buddy_meta_size(0));
	EXPECT(!accmem_buddy_meta_size(1));
	EXPECT(!accmem_buddy_meta_size(G + 1));
	EXPECT(!accmem_buddy_meta_size(16 * TIB + G));
	EXPECT(!accmem_buddy_meta_size(~0ull << 12));
	EXPECT(accmem_buddy_meta_size(G));
	EXPECT(accmem_buddy_meta_size(16 * TIB));
}

static void metadata_is_at_most_four_bits_a_granule(void)
{
	u64 nr;

	for (nr = 1; nr < 2048; nr++)
		EXPECT(accmem_buddy_meta_size(nr * G) <= 1024);
	for (nr = 2048; nr < 600000; nr++)
		EXPECT(accmem_buddy_meta_size(nr * G) * 8 <= nr * 4);
	for (nr = 2048; nr <= 16 * TIB / G; nr *= 2) {
		EXPECT(accmem_buddy_meta_size(nr * G) * 8 <= nr * 4);
		EXPECT(accmem_buddy_meta_size((nr - 1) * G) * 8 <= nr * 4);
		if (nr < 16 * TIB / G)
			EXPECT(accmem_buddy_meta_size((nr + 1) * G) * 8 <=
			       nr * 4);
	}
}

static void a_range_that_cannot_be_is_not_made(void)
{
	struct accmem_buddy b;
	u64 meta[64] = {};

	EXPECT(accmem_buddy_init(&b, 0, meta) == -EINVAL);
	EXPECT(accmem_buddy_init(&b, G + 1, meta) == -EINVAL);
	EXPECT(accmem_buddy_init(&b, 16 * TIB + G, meta) == -EINVAL);
}

static void creation_writes_nothing_past_its_metadata(void)
{
	static const u64 granules[] = { 1,     2,     63,     64,
					65,    511,   512,    513,
					4095,  4096,  4097,   32767,
					32768, 32769, 262145, 5000000 };
	struct accmem_buddy b;
	size_t bytes;
	unsigned int i;
	u64 *meta;

	for (i = 0; i < ARRAY_SIZE(granules); i++) {
		bytes = accmem_buddy_meta_size(granules[i] * G);
		meta = calloc(1, bytes); /* exact: ASan watches the end */
		EXPECT(!accmem_buddy_init(&b, granules[i] * G, meta));
		EXPECT(accmem_buddy_free_bytes(&b) == granules[i] * G);
		EXPECT(largest_run(&b) == granules[i] * G);
		free(meta);
	}
}

/* Of 1 TiB: besides the third that has to be zero, next to nothing is written. */
static void creation_writes_few_words(void)
{
	size_t words = accmem_buddy_meta_size(TIB) / sizeof(u64), i;
	size_t zeroed = accmem_buddy_meta_zeroed(TIB) / sizeof(u64);
	u64 *meta = malloc(words * sizeof(u64)), changed = 0;
	const u64 other = 0x5a5a5a5a5a5a5a5aull;
	struct accmem_buddy b;

	for (i = 0; i < words; i++)
		meta[i] = i < zeroed ? 0 : other;
	EXPECT(!accmem_buddy_init(&b, TIB, meta));
	for (i = 0; i < words; i++)
		changed += meta[i] != (i < zeroed ? 0 : other);
	printf("1 TiB: %zu words of metadata, %zu zeroed, %llu written\n",
	       words, zeroed, changed);
	EXPECT(zeroed <= words / 3 + words / 16);
	EXPECT(changed <= 64);
	free(meta);
}

static void sixteen_tebibytes_in_one_piece(void)
{
	struct fixture f;
	u64 at;

	make(&f, 16 * TIB);
	EXPECT(largest_run(&f.b) == 16 * TIB);
	EXPECT(!take(&f, 16 * TIB, G, 0, &at) && at == 0);
	EXPECT(!accmem_buddy_free_bytes(&f.b));
	EXPECT(take(&f, G, G, 0, &at) == -ENOSPC);
	EXPECT(!accmem_buddy_free(&f.b, 0, 16 * TIB));
	EXPECT(largest_run(&f.b) == 16 * TIB);
	unmake(&f);
}

/* Odd sizes at both ends and the middle, given back in another order */
static void sixteen_tebibytes_in_odd_pieces(void)
{
	static const u64 sizes[] = { 5 * TIB + G, G,	  3 * MIB + G,
				     2 * TIB - G, 7 * G,  TIB + 5 * MIB,
				     511 * G,	  4 * TIB };
	u64 at[8], taken = 0;
	struct fixture f;
	int i;

	make(&f, 16 * TIB);
	for (i = 0; i < 8; i++) {
		EXPECT(!take(&f, sizes[i], G, i & 1 ? ACCMEM_BUDDY_TOP_DOWN : 0,
			     &at[i]));
		taken += sizes[i];
		EXPECT(accmem_buddy_free_bytes(&f.b) == 16 * TIB - taken);
	}
	EXPECT(largest_run(&f.b) == 16 * TIB - taken);
	for (i = 7; i >= 0; i--)
		EXPECT(!accmem_buddy_free(&f.b, at[i ^ 3], sizes[i ^ 3]));
	EXPECT(largest_run(&f.b) == 16 * TIB);
	unmake(&f);
}

static void each_malformed_request_is_refused(void)
{
	struct accmem_buddy_request good = { .size = 4 * G, .align = G };
	struct accmem_buddy_request req;
	struct fixture f;
	u64 at = 77;

	make(&f, 64 * G);
#define REFUSED(change)                                                 \
	do {                                                            \
		req = good;                                             \
		change;                                                 \
		EXPECT(accmem_buddy_alloc(&f.b, &req, &at) == -EINVAL); \
	} while (0)
	REFUSED(req.size = 0);
	REFUSED(req.size = G + 1);
	REFUSED(req.size = G - 1);
	REFUSED(req.align = 0);
	REFUSED(req.align = 64);
	REFUSED(req.align = 3 * G);
	REFUSED(req.start = 1);
	REFUSED(req.start = 65 * G);
	REFUSED(req.end = 65 * G);
	REFUSED(req.end = G + 1);
	REFUSED((req.start = 8 * G, req.end = 4 * G));
	REFUSED(req.flags = 1u << 31);
#undef REFUSED
	EXPECT(at == 77 && accmem_buddy_free_bytes(&f.b) == 64 * G);
	EXPECT(!accmem_buddy_alloc(&f.b, &good, &at));
	unmake(&f);
}

static void huge_sizes_and_alignments_do_not_wrap(void)
{
	struct fixture f;
	u64 at;

	make(&f, 64 * G);
	EXPECT(take(&f, ~0ull << 12, G, 0, &at) == -ENOSPC);
	EXPECT(take(&f, 1ull << 63, G, 0, &at) == -ENOSPC);
	EXPECT(!take(&f, G, 1ull << 63, 0, &at) && at == 0);
	EXPECT(take(&f, G, 1ull << 63, 0, &at) == -ENOSPC);
	EXPECT(take(&f, G, 1ull << 63, ACCMEM_BUDDY_TOP_DOWN, &at) == -ENOSPC);
	EXPECT(accmem_buddy_free(&f.b, 0, ~0ull << 12) == -EINVAL);
	EXPECT(accmem_buddy_free(&f.b, ~0ull << 12, 2 * G) == -EINVAL);
	unmake(&f);

	/* the longest run is one that 32 bits do not count */
	make(&f, ACCMEM_BUDDY_MAX_SIZE);
	EXPECT(take(&f, ~0ull << 12, G, 0, &at) == -ENOSPC);
	EXPECT(take(&f, 1ull << 45, G, 0, &at) == -ENOSPC);
	EXPECT(take(&f, ACCMEM_BUDDY_MAX_SIZE + G, G, 0, &at) == -ENOSPC);
	EXPECT(!take(&f, ACCMEM_BUDDY_MAX_SIZE, G, 0, &at) && at == 0);
	unmake(&f);
}

static void no_power_of_two_costs_no_rounding(void)
{
	struct fixture f;
	u64 at;
	int i;

	make(&f, 1000 * G);
	for (i = 0; i < 1000 / 40; i++)
		EXPECT(!take(&f, 37 * G, G, 0, &at) &&
		       !take(&f, 3 * G, G, 0, &at));
	EXPECT(accmem_buddy_free_bytes(&f.b) == 0);
	unmake(&f);
}

static void runs_span_buddy_boundaries(void)
{
	struct fixture f;
	u64 at;

	make(&f, 1024 * G);
	EXPECT(!take(&f, 1024 * G, G, 0, &at));
	/* free around the middle, which every aligned block ends at */
	EXPECT(!accmem_buddy_free(&f.b, 509 * G, 3 * G));
	EXPECT(!accmem_buddy_free(&f.b, 512 * G, 4 * G));
	EXPECT(largest_run(&f.b) == 7 * G);
	EXPECT(!take(&f, 7 * G, G, 0, &at) && at == 509 * G);
	unmake(&f);
}

/* The one run that no index has is found like any other, and fits like it. */
static void the_wilderness_is_a_run_like_others(void)
{
	const u64 rest = 20000 * G;
	u64 at[4], low, high, next;
	struct fixture f;
	int i;

	/* 4096 granules of one in which these are not big */
	make(&f, 4096 * G + 30 * rest);
	for (i = 0, next = 4096 * G; i < 30; i++, next += rest)
		EXPECT(!take_within(&f, rest, next, next + rest, &low));
	for (i = 0; i < 4; i++)
		EXPECT(!take(&f, 1000 * G, G, 0, &at[i]));
	EXPECT(!accmem_buddy_free(&f.b, at[1], 1000 * G));
	EXPECT(buddy_of(&f.b)->wild_start * G == at[1] &&
	       buddy_of(&f.b)->wild_size == 1000);
	/* What fits better than the wilderness goes elsewhere, */
	EXPECT(!take(&f, 96 * G, G, 0, &next) && next == 4000 * G);
	/* what needs all of it gets it, */
	EXPECT(largest_run(&f.b) == 1000 * G);
	EXPECT(!take(&f, 1000 * G, G, 0, &next) && next == at[1]);
	EXPECT(!buddy_of(&f.b)->wild_size &&
	       take(&f, G, G, 0, &next) == -ENOSPC);
	/* and from either end it is seen with the others. */
	EXPECT(!accmem_buddy_free(&f.b, at[1], 1000 * G));
	EXPECT(!accmem_buddy_free(&f.b, at[0] + 10 * G, 10 * G));
	EXPECT(!accmem_buddy_free(&f.b, at[3] + 10 * G, 10 * G));
	EXPECT(!take_within(&f, G, 0, 4095 * G, &low));
	EXPECT(low == at[0] + 10 * G);
	EXPECT(!take(&f, G, G, ACCMEM_BUDDY_TOP_DOWN, &high));
	EXPECT(high == at[3] + 19 * G);
	EXPECT(!take_within(&f, 100 * G, 500 * G, 3000 * G, &next));
	EXPECT(next == at[1]);
	unmake(&f);
}

/* They are linked through words of their own, which nobody may see. */
static void long_runs_begin_at_any_bit_of_a_word(void)
{
	struct accmem_run run;
	struct fixture f;
	u64 at, k, n = 64;

	make(&f, n * 512 * G);
	accmem_buddy_set_cache(&f.b, false);
	EXPECT(!take(&f, n * 512 * G, G, 0, &at));
	for (k = 0; k < n; k++)
		EXPECT(!accmem_buddy_free(&f.b, (k * 512 + k) * G,
					  (128 + k) * G));
	EXPECT(largest_run(&f.b) == (127 + n) * G);
	for (k = 0, at = 0; k < n; k++, at = run.start + run.size) {
		EXPECT(accmem_buddy_next_free(&f.b, at, &run));
		EXPECT(run.start == (k * 512 + k) * G);
		EXPECT(run.size == (128 + k) * G);
		EXPECT(accmem_buddy_free(&f.b, run.start + 64 * G, G) ==
		       -EINVAL);
	}
	for (k = 0; k < n; k++)
		EXPECT(!take(&f, 128 * G, G, 0, &at));
	EXPECT(take(&f, 128 * G, G, 0, &at) == -ENOSPC);
	EXPECT(accmem_buddy_free_bytes(&f.b) == n * (n - 1) / 2 * G);
	unmake(&f);
}

static void freeing_what_is_free_changes_nothing(void)
{
	struct fixture f;
	u64 at;

	make(&f, 64 * G);
	EXPECT(accmem_buddy_free(&f.b, 0, G) == -EINVAL);
	EXPECT(!take(&f, 8 * G, G, 0, &at));
	EXPECT(!accmem_buddy_free(&f.b, at + 2 * G, G));
	EXPECT(accmem_buddy_free(&f.b, at + 2 * G, G) == -EINVAL);
	EXPECT(accmem_buddy_free(&f.b, at, 8 * G) == -EINVAL);
	EXPECT(accmem_buddy_free(&f.b, at, 3 * G) == -EINVAL);
	EXPECT(accmem_buddy_free(&f.b, at, 0) == -EINVAL);
	EXPECT(accmem_buddy_free(&f.b, at, G - 1) == -EINVAL);
	EXPECT(accmem_buddy_free(&f.b, at + 1, G) == -EINVAL);
	EXPECT(accmem_buddy_free(&f.b, 64 * G, G) == -EINVAL);
	EXPECT(accmem_buddy_free(&f.b, 63 * G, 2 * G) == -EINVAL);
	EXPECT(accmem_buddy_free_bytes(&f.b) == 57 * G);
	unmake(&f);
}

static void dirty_marks_keep_no_neighbours_apart(void)
{
	struct fixture f;
	u64 at;
	int i;

	make(&f, 256 * G);
	EXPECT(!take(&f, 256 * G, G, 0, &at));
	for (i = 0; i < 256; i++) {
		if (i & 1)
			accmem_buddy_mark_dirty(&f.b, i * G, G);
		EXPECT(!accmem_buddy_free(&f.b, i * G, G));
	}
	EXPECT(accmem_buddy_free_dirty_bytes(&f.b) == 128 * G);
	EXPECT(largest_run(&f.b) == 256 * G);
	EXPECT(!take(&f, 256 * G, G, 0, &at));
	EXPECT(accmem_buddy_free_dirty_bytes(&f.b) == 0);
	unmake(&f);
}

static void few_dirty_granules_are_found_in_bounded_calls(void)
{
	struct accmem_run run;
	struct fixture f;
	unsigned int again = 0, found = 0;
	int err;

	make(&f, TIB);
	EXPECT(accmem_buddy_alloc_dirty(&f.b, MIB, &run) == -ENOENT);
	accmem_buddy_mark_dirty(&f.b, TIB - 3 * G, 2 * G);
	accmem_buddy_mark_dirty(&f.b, 5 * G, G);
	while (found < 2) {
		err = accmem_buddy_alloc_dirty(&f.b, MIB, &run);
		if (err == -EAGAIN && ++again < 100)
			continue;
		EXPECT(!err);
		if (err)
			break;
		EXPECT((run.start == TIB - 3 * G && run.size == 2 * G) ||
		       (run.start == 5 * G && run.size == G));
		found++;
	}
	EXPECT(accmem_buddy_alloc_dirty(&f.b, MIB, &run) == -ENOENT);
	EXPECT(accmem_buddy_alloc_dirty(&f.b, G - 1, &run) == -EINVAL);
	EXPECT(!accmem_buddy_next_dirty(&f.b, TIB, G, G, &run));
	EXPECT(accmem_buddy_next_dirty(&f.b, 0, TIB, G, &run));
	EXPECT(!accmem_buddy_next_dirty(&f.b, 0, TIB, G - 1, &run));
	unmake(&f);
}

/* What is free is clean, what is dirty is used, but for one granule. */
static void a_search_among_clean_and_used_is_cut_short(void)
{
	struct accmem_run run;
	struct fixture f;
	unsigned int again = 0, i;
	u64 at;
	int err;

	make(&f, 1000 * G);
	EXPECT(!take(&f, 1000 * G, G, 0, &at));
	for (i = 0; i < 999; i += 3) {
		accmem_buddy_mark_dirty(&f.b, i * G, G);
		EXPECT(!accmem_buddy_free(&f.b, (i + 1) * G, G));
	}
	accmem_buddy_mark_dirty(&f.b, 997 * G, G);
	do {
		err = accmem_buddy_alloc_dirty(&f.b, MIB, &run);
	} while (err == -EAGAIN && ++again < 100);
	EXPECT(again && !err && run.start == 997 * G && run.size == G);
	EXPECT(accmem_buddy_alloc_dirty(&f.b, MIB, &run) == -ENOENT);
	unmake(&f);
}

static void scattered_runs_say_why_they_failed(void)
{
	struct accmem_buddy_request req = { .size = 4 * G, .align = G };
	struct accmem_run runs[4];
	struct fixture f;
	unsigned int nr, i;
	u64 at;

	make(&f, 64 * G);
	EXPECT(!take(&f, 64 * G, G, 0, &at));
	for (i = 0; i < 4; i++)
		EXPECT(!accmem_buddy_free(&f.b, 2 * i * G, G));
	req.align = 3 * G;
	EXPECT(accmem_buddy_alloc_runs(&f.b, &req, runs, 4, &nr) == -EINVAL);
	req.align = G;
	EXPECT(accmem_buddy_alloc_runs(&f.b, &req, runs, 3, &nr) == -E2BIG);
	EXPECT(accmem_buddy_free_bytes(&f.b) == 4 * G);
	EXPECT(!accmem_buddy_alloc_runs(&f.b, &req, runs, 4, &nr) && nr == 4);
	for (i = 0; i < 4; i++)
		EXPECT(!accmem_buddy_free(&f.b, runs[i].start, runs[i].size));
	req.size = 5 * G;
	EXPECT(accmem_buddy_alloc_runs(&f.b, &req, runs, 4, &nr) == -ENOSPC);
	EXPECT(accmem_buddy_free_bytes(&f.b) == 4 * G);
	unmake(&f);
}

static void hard_alignments_leave_no_fragments(void)
{
	struct fixture f;
	u64 at[256];
	int i;

	make(&f, 64 * MIB);
	for (i = 0; i < 256; i++)
		EXPECT(!take(&f, 2 * G, 64 * G, 0, &at[i]) &&
		       at[i] % (64 * G) == 0);
	EXPECT(take(&f, 2 * G, 64 * G, 0, &at[0]) == -ENOSPC);
	for (i = 0; i < 256; i++)
		EXPECT(!accmem_buddy_free(&f.b, (i * 37 % 256) * 64 * G,
					  2 * G));
	EXPECT(largest_run(&f.b) == 64 * MIB);
	unmake(&f);
}

#define PIECES 200

/* What is taken of a range, in the order of addresses, in granules */
struct pieces {
	u64 start[PIECES + 1];
	u64 end[PIECES + 1];
	int nr;
};

static u64 longest_gap(const struct pieces *p, u64 nr)
{
	u64 from = 0, best = 0, to;
	int i;

	for (i = 0; i <= p->nr; i++) {
		to = i < p->nr ? p->start[i] : nr;
		best = to - from > best ? to - from : best;
		from = p->end[i];
	}
	return best;
}

static void add_piece(struct pieces *p, u64 start, u64 end)
{
	int i = p->nr++;

	for (; i && p->start[i - 1] > start; i--) {
		p->start[i] = p->start[i - 1];
		p->end[i] = p->end[i - 1];
	}
	EXPECT(!i || p->end[i - 1] <= start);
	EXPECT(i == p->nr - 1 || end <= p->start[i + 1]);
	p->start[i] = start;
	p->end[i] = end;
}

/* Random pieces, up to a quarter of 16 TiB, beside a list of them */
static void huge_ranges_agree_with_a_list(void)
{
	static struct pieces p;
	struct rng r = { .state = 3 };
	struct fixture f;
	u64 nr = 16 * TIB / G, at, n;
	int step, i;

	make(&f, 16 * TIB);
	for (step = 0; step < 100000; step++) {
		if (p.nr < PIECES && rng_below(&r, 9) < 5) {
			n = 1 + rng_below(&r, 1ull << rng_below(&r, 31));
			if (take(&f, n * G, G, rng_next(&r) & 1, &at))
				EXPECT(n > longest_gap(&p, nr));
			else
				add_piece(&p, at / G, at / G + n);
		} else if (p.nr) {
			i = rng_below(&r, p.nr);
			at = p.start[i];
			n = p.end[i] - at;
			EXPECT(!accmem_buddy_free(&f.b, at * G, n * G));
			EXPECT(accmem_buddy_free(&f.b, at * G, G) == -EINVAL);
			for (p.nr--; i < p.nr; i++) {
				p.start[i] = p.start[i + 1];
				p.end[i] = p.end[i + 1];
			}
		}
		p.end[p.nr] = nr;
		if (step % 16 == 0)
			EXPECT(largest_run(&f.b) == longest_gap(&p, nr) * G);
	}
	unmake(&f);
}

/*
 * Four runs of one class of size, freed in this order: the smallest that serves is
 * cut, and of two that are equal the one that is there for longer.
 */
static void of_a_class_the_smallest_and_oldest_run_is_cut(void)
{
	static const u64 sizes[] = { 700, 650, 660, 650 };
	struct fixture f;
	u64 at[4], got, pos = 0;
	unsigned int i;

	/* one in which these are not big */
	make(&f, 1000000 * G);
	accmem_buddy_set_cache(&f.b, false);
	for (i = 0; i < 4; i++) {
		EXPECT(!take_within(&f, sizes[i] * G, pos, 4000 * G, &at[i]) &&
		       at[i] == pos);
		pos += sizes[i] * G;
		EXPECT(!take_within(&f, 3 * G, pos, 4000 * G, &got) &&
		       got == pos);
		pos += 3 * G;
	}
	for (i = 0; i < 4; i++)
		EXPECT(!accmem_buddy_free(&f.b, at[i], sizes[i] * G));
	EXPECT(!take(&f, 645 * G, G, 0, &got) && got == at[1]);
	EXPECT(!take(&f, 645 * G, G, 0, &got) && got == at[3]);
	EXPECT(!take(&f, 645 * G, G, 0, &got) && got == at[2]);
	EXPECT(!take(&f, 645 * G, G, 0, &got) && got == at[0]);
	unmake(&f);
}

/* Also where metadata that need not be zero is not, and with the order cache */
static void the_same_calls_give_the_same_places(void)
{
	u64 at[2], size, most, align, nr = 30000;
	u64 block[64] = {}, bytes[64] = {};
	struct fixture f[2];
	struct rng r = { .state = 7 };
	int i, k, err[2];
	size_t zeroed;
	u32 flags;

	make(&f[0], nr * G);
	make(&f[1], nr * G);
	zeroed = accmem_buddy_meta_zeroed(nr * G);
	memset(f[1].meta, 0, zeroed);
	memset((char *)f[1].meta + zeroed, 0xa5, f[1].meta_size - zeroed);
	EXPECT(!accmem_buddy_init(&f[1].b, nr * G, f[1].meta));
	for (i = 0; i < 100000; i++) {
		k = rng_below(&r, 64);
		most = k % 8 ? 40 : 400;
		size = bytes[k] ? bytes[k] : (1 + rng_below(&r, most)) * G;
		align = G << (rng_below(&r, 4) ? 0 : rng_below(&r, 5));
		flags = rng_below(&r, 64) ? 0 : ACCMEM_BUDDY_TOP_DOWN;
		at[0] = block[k];
		at[1] = block[k];
		if (!bytes[k]) {
			err[0] = take(&f[0], size, align, flags, &at[0]);
			err[1] = take(&f[1], size, align, flags, &at[1]);
			bytes[k] = err[0] ? 0 : size;
			block[k] = at[0];
		} else {
			err[0] = accmem_buddy_free(&f[0].b, at[0], size);
			err[1] = accmem_buddy_free(&f[1].b, at[1], size);
			bytes[k] = 0;
		}
		EXPECT(err[0] == err[1] && at[0] == at[1]);
		EXPECT(buddy_of(&f[0].b)->nr_cached_blocks ==
		       buddy_of(&f[1].b)->nr_cached_blocks);
	}
	EXPECT(buddy_of(&f[0].b)->nr_tracked);
	unmake(&f[0]);
	unmake(&f[1]);
}

int main(void)
{
	TEST(sizes_that_no_range_has);
	TEST(metadata_is_at_most_four_bits_a_granule);
	TEST(a_range_that_cannot_be_is_not_made);
	TEST(creation_writes_nothing_past_its_metadata);
	TEST(creation_writes_few_words);
	TEST(sixteen_tebibytes_in_one_piece);
	TEST(sixteen_tebibytes_in_odd_pieces);
	TEST(each_malformed_request_is_refused);
	TEST(huge_sizes_and_alignments_do_not_wrap);
	TEST(no_power_of_two_costs_no_rounding);
	TEST(runs_span_buddy_boundaries);
	TEST(the_wilderness_is_a_run_like_others);
	TEST(long_runs_begin_at_any_bit_of_a_word);
	TEST(freeing_what_is_free_changes_nothing);
	TEST(dirty_marks_keep_no_neighbours_apart);
	TEST(few_dirty_granules_are_found_in_bounded_calls);
	TEST(a_search_among_clean_and_used_is_cut_short);
	TEST(scattered_runs_say_why_they_failed);
	TEST(hard_alignments_leave_no_fragments);
	TEST(huge_ranges_agree_with_a_list);
	TEST(of_a_class_the_smallest_and_oldest_run_is_cut);
	TEST(the_same_calls_give_the_same_places);
	return tests_end();
}
