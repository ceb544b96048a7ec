// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Changes of free runs: a block is cut from a run, or merges with its neighbours.
 *
 * Both changes keep the map, the index, the wilderness and the counters consistent.
 */

/* Count an allocated block, from a run or from the order cache. */
static inline void block_count_alloc(struct buddy *b, u64 lo, u64 n, u64 owner)
{
	if (b->nr_free_dirty)
		b->nr_free_dirty -= map_count(&b->dirty, lo, lo + n);
	if (n >= b->large)
		b->nr_large = min(b->nr_large, b->nr - b->nr_free) + n;
	b->nr_free -= n;
	if (b->owners)
		owner_record_alloc(b, lo, n, owner);
}

/* Count a freed block, whether it merges or is cached. */
static inline void block_count_free(struct buddy *b, u64 lo, u64 n, u64 owner)
{
	if (b->nr_dirty)
		b->nr_free_dirty += map_count(&b->dirty, lo, lo + n);
	b->nr_free += n;
	/*
	 * a block freed as one may have been allocated in parts: never below 0
	 */
	if (n >= b->large)
		b->nr_large -= min(n, b->nr_large);
	if (b->owners)
		owner_record_free(b, lo, n, owner);
}

/* Make @run the wilderness; the caller has handled the old one. */
static inline void wild_set(struct buddy *b, const struct run *run)
{
	b->wild_start = run->start;
	b->wild_size = run->size;
}

/* Cut @n granules out of a free run, and leave up to two runs. */
static void split_run(struct buddy *b, const struct candidate *cand, u64 n)
{
	const struct run *run = &cand->run;
	u64 end = run->start + run->size, stop = cand->at + n;
	struct run before = { run->start, cand->at - run->start };
	struct run after = { stop, end - stop }, none = {};
	struct removed removed = { .word = NOWHERE }, none_removed = removed;
	bool wild = wild_is(b, run);
	unsigned int level;

	if (!wild)
		index_remove_begin(b, run, &none, &removed);
	/*
	 * a word in which the run begins has used granules too, so it is mixed
	 */
	level = !map_one_word(cand->at, stop);
	if (cand->at != run->start || !(cand->at & WORD_MASK))
		level = map_level(&b->used, cand->at, stop);
	map_set(&b->used, level, cand->at, stop, true);
	/* the map is right at the other ends of the two runs */
	if (before.size)
		index_show_end(b, &before);
	if (after.size)
		index_show_start(b, &after);
	if (wild) {
		if (before.size > after.size)
			swap(before, after);
		wild_set(b, &after);
		after.size = 0;
	}
	if (before.size)
		index_add(b, &before, &removed, &none_removed);
	if (after.size)
		index_add(b, &after, &removed, &none_removed);
	index_remove_end(b, &removed);
}

/* The wilderness is not in the index. */
static inline bool merge_skip_wild(const struct buddy *b, struct run *run)
{
	if (!run->size || !wild_is(b, run))
		return false;
	run->size = 0;
	return true;
}

/*
 * A run of @size granules no longer begins in word @i; @g has the runs that do.
 */
static inline void merge_drop_class(struct buddy *b, const struct word_runs *g,
				    u64 i, u64 size)
{
	unsigned int class = class_of(size);

	class_word_del(b, class, i, !word_class_starts(g, class));
}

/*
 * merge_block() of a part of a mixed word, for a merged run that neither begins nor
 * ends with the word, and where neither the run nor a neighbour is the wilderness. Free
 * runs in other words are not affected.
 */
static noinline bool merge_inside(struct buddy *b, u64 lo, u64 n)
{
	unsigned int bit = lo & WORD_MASK, first;
	u64 i = lo >> WORD_SHIFT, used, left, right, size;
	struct word_runs g = {};

	used = b->used.words[i] & ~bits_mask(bit, n);
	first = fls64(used & ~mask_from(lo));
	if (!first || !(used >> bit) || b->wild_start >> WORD_SHIFT == i)
		return false;
	left = bit - first;
	right = __ffs64(used >> bit) - n;
	size = left + n + right;
	if (size > b->wild_size)
		return false;
	b->used.words[i] = used;
	class_word_add(b, class_of(size), i);
	if (left || right)
		g = word_runs_of(b, i, word_free_bits(b, i));
	if (left)
		merge_drop_class(b, &g, i, left);
	if (right)
		merge_drop_class(b, &g, i, right);
	if (b->longest[0][i] < size)
		longest_raise(b, i, size);
	return true;
}

/* merge_block() for all other cases */
static noinline void merge_across(struct buddy *b, unsigned int level, u64 lo,
				  u64 n)
{
	struct run left, right, run, wild = wild_run(b);
	struct removed left_removed = { .word = NOWHERE },
		       right_removed = left_removed;
	struct removed none_removed = left_removed;
	bool in_wild, displaces;
	u64 hi = lo + n;

	right.start = hi;
	right.size = index_size_at(b, hi);
	run.start = map_run_start(&b->used, level, lo);
	run.size = hi + right.size - run.start;
	left.start = run.start;
	left.size = lo - run.start;
	in_wild = merge_skip_wild(b, &left) || merge_skip_wild(b, &right);
	if (left.size)
		index_remove_begin(b, &left, &right, &left_removed);
	if (right.size)
		index_remove_begin(b, &right, &left, &right_removed);
	map_set(&b->used, level, lo, hi, false);
	displaces = !in_wild && run.size > wild.size;
	index_show(b, &run);
	if (in_wild || displaces)
		wild_set(b, &run);
	else
		index_add(b, &run, &left_removed, &right_removed);
	index_remove_end(b, &left_removed);
	index_remove_end(b, &right_removed);
	if (displaces && wild.size)
		index_add(b, &wild, &none_removed, &none_removed);
}

/*
 * Make used granules free, in one run with both neighbours. @level is map_level() of
 * them.
 */
static inline void merge_block(struct buddy *b, unsigned int level, u64 lo,
			       u64 n)
{
	bool at_end = !(lo & WORD_MASK) || !((lo + n) & WORD_MASK);

	if (level || at_end || !merge_inside(b, lo, n))
		merge_across(b, level, lo, n);
}

static void split_alloc(struct buddy *b, const struct candidate *cand, u64 n,
			u64 owner)
{
	block_count_alloc(b, cand->at, n, owner);
	split_run(b, cand, n);
}

static void merge_block_at(struct buddy *b, u64 lo, u64 n)
{
	merge_block(b, map_level(&b->used, lo, lo + n), lo, n);
}
