// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Searches for free runs: by address, by size, and for a position inside a run.
 *
 * By address they find the lowest or the highest run that is long enough. By size they
 * walk through the classes, from the smallest on.
 */

/**
 * struct find - bound of the searches for an aligned run in one call
 * @from: granule at which a search continues that a call before has begun; NOWHERE to
 *	begin
 * @words: words that may still be read
 * @more: the last search ended early: @from says where
 */
struct find {
	u64 from;
	unsigned int words;
	bool more;
};

/* May the search read word @i? If not, it ends there. */
static inline bool find_may_read(struct find *f, u64 i, bool high)
{
	if (!f)
		return true;
	if (f->words) {
		f->words--;
		return true;
	}
	f->more = true;
	f->from = (i + high) << WORD_SHIFT;
	return false;
}

/*
 * The lowest run that begins from @pos on and below @limit and holds @n granules at a
 * multiple of @align. If @high, the highest run that begins before @pos and from @limit
 * on. Size 0 if there is none, or if @f ends the search. @pos is not inside a run. The
 * search takes one step for each word in which a run of @n granules begins; these are
 * few if @align is 1, and @f may be NULL then.
 */
static struct run index_find(const struct buddy *b, u64 pos, u64 limit, u64 n,
			     u64 align, bool high, struct find *f)
{
	u64 i = pos >> WORD_SHIFT, fits;
	u64 mask = high ? ~mask_from(pos) : mask_from(pos);
	u32 least = longest_value(n);
	struct word_runs g;
	struct run run;

	if (!high && pos >= limit)
		return (struct run){};
	for (;; mask = ~0ull) {
		if (mask && b->longest[0][i] >= least) {
			if (!find_may_read(f, i, high))
				return (struct run){};
			g = word_runs_in(b, i);
			fits = bits_runs(g.inside, n) & bits_aligned(i, align);
			fits &= mask;
			if (fits && !high)
				return word_run_around(&g, i, __ffs64(fits));
			run = word_run_at(&g, i, g.tail);
			if (g.tail_size && mask >> g.tail & 1 &&
			    run_holds(&run, n, align))
				return run;
			if (fits)
				return word_run_around(&g, i, fls64(fits) - 1);
		}
		i = longest_word(b, i + !high, least, high);
		if (i == NOWHERE || (high ? i < limit >> WORD_SHIFT :
					    i > (limit - 1) >> WORD_SHIFT))
			return (struct run){};
	}
}

/* The free run around granule @pos; size 0 if the granule is used */
static struct run index_run_around(const struct buddy *b, u64 pos)
{
	u64 start;

	if (pos >= b->nr)
		return (struct run){};
	start = map_find(&b->used, b->used.top, pos + 1, true, true);
	if (start > pos)
		return (struct run){};
	return (struct run){ start, map_next(&b->used, pos, true) - start };
}

/* The lowest or the highest candidate for @w in a free run, within [@lo, @hi) */
static bool wanted_in(const struct wanted *w, const struct run *run, u64 lo,
		      u64 hi, bool high, struct candidate *cand)
{
	u64 start = max(lo, run->start), end = min(hi, run->start + run->size);

	if (!run->size || start >= end || w->n > end - start)
		return false;
	cand->run = *run;
	cand->at = high ? ALIGN_DOWN(end - w->n, w->align) :
			  ALIGN(start, w->align);
	return cand->at >= start && cand->at <= end - w->n;
}

/* By size */

/**
 * struct walk - walk through the free runs that fit best, the smallest classes first
 * @class: current class
 * @at: word in which the next run of a listed class begins; for another class,
 *	the word at which the search continues
 * @word: current word, of an unlisted class
 * @runs: runs that begin in @word
 * @begin: first bits of the remaining runs of the class in @word
 */
struct walk {
	unsigned int class;
	u64 at;
	u64 word;
	struct word_runs runs;
	u64 begin;
};

static bool walk_list(const struct buddy *b, struct walk *k, struct run *run)
{
	if (k->at == NO_WORD)
		return false;
	*run = index_long_run(b, k->at);
	k->at = class_list_next(b, k->at);
	return true;
}

static inline bool walk_words(const struct buddy *b, struct walk *k,
			      struct run *run)
{
	struct summary words = class_summary(b, k->class);

	while (!k->begin) {
		k->word = summary_next(words, &b->starts[k->class], k->at,
				       words_for(b->nr) - 1);
		if (k->word == NOWHERE)
			return false;
		k->at = k->word + 1;
		k->runs = word_runs_in(b, k->word);
		k->begin = word_class_starts(&k->runs, k->class);
	}
	*run = word_run_at(&k->runs, k->word, __ffs64(k->begin));
	k->begin &= k->begin - 1;
	return true;
}

/*
 * Continue with the first class from @class on that has runs, if there is one.
 */
static void walk_class(const struct buddy *b, struct walk *k,
		       unsigned int class)
{
	k->class = class_next(b, class);
	k->at = 0;
	k->begin = 0;
	if (k->class == CLASSES || !class_is_listed(k->class))
		return;
	k->at = b->first[k->class];
}

static bool walk_next(const struct buddy *b, struct walk *k, struct run *run)
{
	while (k->class < CLASSES) {
		if (class_is_listed(k->class) ? walk_list(b, k, run) :
						walk_words(b, k, run))
			return true;
		walk_class(b, k, k->class + 1);
	}
	return false;
}
