// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Placement in a range with several owners.
 *
 * It is used when the candidate of best_fit.inc.c lies in a folio of another owner.
 * There are two searches: a best fit among a bounded number of runs, and a search of
 * all runs in steps, between which the caller may drop its lock.
 */

/* Most runs that are checked, of a class and of all classes */
#define MULTI_PROBES 8
#define MULTI_PROBES_ALL 128

/**
 * struct multi_fit - state of the best fit in a range with several owners
 * @w: the request
 * @cand: the best candidate so far
 * @cost: number of free folios that @cand breaks up, then the size of its run
 */
struct multi_fit {
	const struct wanted *w;
	struct candidate cand;
	u64 cost;
};

static void multi_weigh(const struct buddy *b, struct multi_fit *s,
			const struct candidate *cand, const struct run *run)
{
	u64 broken = cover_alone(b, cand->at, s->w->n, false);
	u64 cost = DIV_ROUND_UP(broken, FOLIO_GRANULES) << 33 | cand->run.size;

	if (cost >= s->cost)
		return;
	s->cost = cost;
	s->cand.at = cand->at;
	s->cand.run = *run;
}

static void multi_check_run(const struct buddy *b, struct multi_fit *s,
			    const struct run *run)
{
	const struct wanted *w = s->w;
	struct run own = owner_trim(b, w->owner, run);
	struct candidate cand;

	if (!w->high && wanted_in(w, &own, w->lo, w->hi, false, &cand))
		multi_weigh(b, s, &cand, run);
	if (wanted_in(w, &own, w->lo, w->hi, true, &cand))
		multi_weigh(b, s, &cand, run);
}

/* The least class in which the part that any owner may use is large enough */
static unsigned int multi_sure_class(const struct buddy *b,
				     const struct wanted *w)
{
	return class_of(min(w->n + w->align + 2 * FOLIO_GRANULES, b->nr)) + 1;
}

/*
 * The best fit among the parts of runs that the owner may use: of some runs of each
 * class, from the smallest on, the candidate that breaks up the fewest free folios.
 * After many runs that do not serve, only classes are searched in which each run
 * serves.
 */
static noinline struct candidate multi_place(const struct buddy *b,
					     const struct wanted *w)
{
	struct multi_fit s = { .w = w, .cost = ~0ull };
	unsigned int probe = 0, checked = 0, class;
	struct run run = wild_run(b);
	struct walk k = {};

	multi_check_run(b, &s, &run);
	walk_class(b, &k, class_of(w->n));
	class = k.class;
	for (; checked < MULTI_PROBES_ALL && walk_next(b, &k, &run);
	     checked++) {
		probe = k.class == class ? probe + 1 : 1;
		class = k.class;
		multi_check_run(b, &s, &run);
		if (checked == MULTI_PROBES_ALL / 2 && !s.cand.run.size)
			walk_class(b, &k, max(class, multi_sure_class(b, w)));
		else if (probe == MULTI_PROBES)
			walk_class(b, &k, class + 1);
	}
	return s.cand;
}

/* Search of all runs */

/**
 * struct scan - walk through the runs that are long enough, by address
 * @own: only in folios that belong to the owner already
 * @word: word at which the walk continues
 * @words: words that may still be read
 */
struct scan {
	bool own;
	u64 word;
	unsigned int words;
};

/*
 * The next word in which a run of @n granules begins; NOWHERE with the reason in *@err
 */
static u64 scan_next(const struct buddy *b, struct scan *s, u64 hi, u64 n,
		     int *err)
{
	u64 i = NOWHERE, all = words_for(hi);

	*err = -ENOSPC;
	if (s->word < all)
		i = b->longest[0][s->word] >= longest_value(n) ?
			    s->word :
			    longest_word(b, s->word + 1, longest_value(n),
					 false);
	if (i >= all)
		return NOWHERE;
	s->word = i;
	*err = -EAGAIN;
	if (!s->words)
		return NOWHERE;
	s->words--;
	s->word++;
	return i;
}

/* The candidate in [@lo, @hi), which is a part of a run */
static bool scan_part(const struct wanted *w, u64 lo, u64 hi,
		      const struct run *run, struct candidate *cand)
{
	return wanted_in(w, run, max(lo, w->lo), min(hi, w->hi), false, cand);
}

/*
 * The candidate in the parts of a run that lie in folios of the owner: at one end, at
 * the other, or in both
 */
static bool scan_own(const struct buddy *b, const struct wanted *w,
		     const struct run *run, struct candidate *cand)
{
	u64 lo = run->start, hi = lo + run->size;
	u64 first = lo >> FOLIO_ORDER, last = (hi - 1) >> FOLIO_ORDER;
	bool low = b->owners[first].used && b->owners[first].owner == w->owner;
	bool high = b->owners[last].used && b->owners[last].owner == w->owner;

	if (low && high && last - first <= 1)
		return scan_part(w, lo, hi, run, cand);
	if (low &&
	    scan_part(w, lo, min(hi, (first + 1) << FOLIO_ORDER), run, cand))
		return true;
	return high &&
	       scan_part(w, max(lo, last << FOLIO_ORDER), hi, run, cand);
}

/* The candidate in the part of a run that the owner may use */
static bool scan_run(const struct buddy *b, const struct wanted *w,
		     const struct scan *s, const struct run *run,
		     struct candidate *cand)
{
	struct run own;

	if (s->own)
		return run->size && scan_own(b, w, run, cand);
	own = owner_trim(b, w->owner, run);
	return scan_part(w, own.start, own.start + own.size, run, cand);
}

static bool scan_word(const struct buddy *b, const struct wanted *w,
		      const struct scan *s, u64 i, struct candidate *cand)
{
	struct word_runs g = word_runs_in(b, i);
	u64 starts = word_starts(&g);
	struct run run;

	for (; starts; starts &= starts - 1) {
		run = word_run_at(&g, i, __ffs64(starts));
		if (scan_run(b, w, s, &run, cand))
			return true;
	}
	return false;
}

/* Search all runs but the wilderness for a candidate; 0, -EAGAIN or -ENOSPC */
static int scan_runs(const struct buddy *b, const struct wanted *w,
		     struct scan *s, struct candidate *cand)
{
	struct run run = index_run_around(b, w->lo);
	u64 i;
	int err;

	if (scan_run(b, w, s, &run, cand))
		return 0;
	while ((i = scan_next(b, s, w->hi, w->n, &err)) != NOWHERE)
		if (scan_word(b, w, s, i, cand))
			return 0;
	return err;
}

/* Search where folios have owners, from *@cursor on; 0, -EAGAIN or -ENOSPC */
static int scan_owned(const struct buddy *b, const struct wanted *w, bool own,
		      u64 *cursor, struct candidate *cand)
{
	struct scan s = {
		.own = own,
		.word = max(*cursor, w->lo >> WORD_SHIFT),
		.words = FIND_WORDS,
	};
	struct run wild = wild_run(b);
	int err = 0;

	if (!scan_run(b, w, &s, &wild, cand))
		err = scan_runs(b, w, &s, cand);
	*cursor = s.word;
	return err;
}

/* Search where owners do not matter, from *@cursor on; 0, -EAGAIN or -ENOSPC */
static int scan_any(const struct buddy *b, const struct wanted *w, u64 *cursor,
		    struct candidate *cand)
{
	struct find f = {
		.from = *cursor ? *cursor : NOWHERE,
		.words = FIND_WORDS,
	};

	*cand = fit_at_end(b, w, w->high, &f);
	if (cand->run.size)
		return 0;
	*cursor = f.from;
	return f.more ? -EAGAIN : -ENOSPC;
}

/* The longest run of a word, in granules that @owner may use */
static u64 scan_longest(const struct buddy *b, u64 owner, u64 i)
{
	struct word_runs g = word_runs_in(b, i);
	u64 starts = word_starts(&g), n = 0;
	struct run run;

	for (; starts; starts &= starts - 1) {
		run = word_run_at(&g, i, __ffs64(starts));
		n = max(n, owner_trim(b, owner, &run).size);
	}
	return n;
}
