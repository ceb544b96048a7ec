// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Placement where units have several owners: the best fit among some runs, for when
 * the candidate of choice.inc.c is in a unit of somebody else, and a search of all
 * runs in steps.
 */

/* Runs of a class that are looked at, and in all */
#define SHARED_PROBES 8
#define SHARED_PROBES_ALL 128

/**
 * struct shared - of a candidate in a range of several owners
 * @w: the request
 * @cand: the best one so far
 * @cost: units that would be nobody's otherwise, then granules of the run
 */
struct shared {
	const struct wanted *w;
	struct candidate cand;
	u64 cost;
};

static void shared_weigh(const struct buddy *b, struct shared *s,
			 const struct candidate *cand, const struct run *run)
{
	u64 broken = cover_alone(b, cand->at, s->w->n, false);
	u64 cost = DIV_ROUND_UP(broken, OWNED) << 33 | cand->run.size;

	if (cost >= s->cost)
		return;
	s->cost = cost;
	s->cand.at = cand->at;
	s->cand.run = *run;
}

static void shared_look(const struct buddy *b, struct shared *s,
			const struct run *run)
{
	const struct wanted *w = s->w;
	struct run own = owner_trim(b, w->owner, run);
	struct candidate cand;

	if (!w->high && wanted_in(w, &own, w->lo, w->hi, false, &cand))
		shared_weigh(b, s, &cand, run);
	if (wanted_in(w, &own, w->lo, w->hi, true, &cand))
		shared_weigh(b, s, &cand, run);
}

/* The least class in which what anybody may have of a run is enough */
static unsigned int shared_sure_class(const struct buddy *b,
				      const struct wanted *w)
{
	return class_of(min(w->n + w->align + 2 * OWNED, b->nr)) + 1;
}

/*
 * The best fit among what the owner may have of runs, where runs of others are met: of
 * some of each class, from the smallest on, that which breaks the fewest free units.
 * After many that do not serve only runs are looked at that do, wherever they lie.
 */
static noinline struct candidate shared_place(const struct buddy *b,
					      const struct wanted *w)
{
	struct shared s = { .w = w, .cost = ~0ull };
	unsigned int probe = 0, looked = 0, class;
	struct run run = wild_run(b);
	struct walk k = {};

	shared_look(b, &s, &run);
	walk_class(b, &k, class_of(w->n));
	class = k.class;
	for (; looked < SHARED_PROBES_ALL && walk_next(b, &k, &run); looked++) {
		probe = k.class == class ? probe + 1 : 1;
		class = k.class;
		shared_look(b, &s, &run);
		if (looked == SHARED_PROBES_ALL / 2 && !s.cand.run.size)
			walk_class(b, &k, max(class, shared_sure_class(b, w)));
		else if (probe == SHARED_PROBES)
			walk_class(b, &k, class + 1);
	}
	return s.cand;
}

/* Looking at all */

#ifndef SCAN_WORDS
#define SCAN_WORDS 256 /* that a call looks at; tests have fewer */
#endif

/**
 * struct scan - through the runs that are long enough, by address
 * @own: only in units that are the owner's already
 * @word: from which on to look
 * @words: that may be looked at yet
 */
struct scan {
	bool own;
	u64 word;
	unsigned int words;
};

/* The next word in which a run of @n granules begins: NOWHERE, with the reason */
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

/* The candidate in [@lo, @hi), a part of a run */
static bool scan_part(const struct wanted *w, u64 lo, u64 hi,
		      const struct run *run, struct candidate *cand)
{
	return wanted_in(w, run, max(lo, w->lo), min(hi, w->hi), false, cand);
}

/* in the parts of a run that lie in units of the owner's: one end, the other, both */
static bool scan_own(const struct buddy *b, const struct wanted *w,
		     const struct run *run, struct candidate *cand)
{
	u64 lo = run->start, hi = lo + run->size;
	u64 first = lo >> OWNED_SHIFT, last = (hi - 1) >> OWNED_SHIFT;
	bool low = b->owners[first].used && b->owners[first].owner == w->owner;
	bool high = b->owners[last].used && b->owners[last].owner == w->owner;

	if (low && high && last - first <= 1)
		return scan_part(w, lo, hi, run, cand);
	if (low && scan_part(w, lo, min(hi, (first + 1) << OWNED_SHIFT), run,
			     cand))
		return true;
	return high &&
	       scan_part(w, max(lo, last << OWNED_SHIFT), hi, run, cand);
}

/* The candidate in a run, of which the owner may have a part */
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

/* 0 with a candidate; -EAGAIN or -ENOSPC */
static int scan_for(const struct buddy *b, const struct wanted *w,
		    struct scan *s, struct candidate *cand)
{
	struct run run = wild_run(b);
	u64 i;
	int err;

	if (scan_run(b, w, s, &run, cand))
		return 0;
	run = index_run_around(b, w->lo);
	if (scan_run(b, w, s, &run, cand))
		return 0;
	while ((i = scan_next(b, s, w->hi, w->n, &err)) != NOWHERE)
		if (scan_word(b, w, s, i, cand))
			return 0;
	return err;
}

/* The longest run of a word that @owner may have */
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
