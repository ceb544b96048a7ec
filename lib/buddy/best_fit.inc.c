// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Placement of requests; big requests go to big.inc.c.
 *
 * A request is cut from the best fit of a few runs of its class, with TOP_DOWN or a
 * window from the highest or lowest run. Documentation/rationale.rst has the gain of
 * each rule.
 */

/*
 * Does a request go to the high end, apart from large blocks? Only if it is not big and
 * large blocks fill the range, because it would fragment their room. Where large blocks
 * are rare, best fit alone packs better. While less than 8 granules are used, requests
 * go to the high end as well.
 */
static bool fit_uses_high_end(const struct buddy *b, u64 n)
{
	u64 live = b->nr - b->nr_free;

	return !lifetime_is_big(b, n) && min(b->nr_large, live) >= live >> 3;
}

/* Number of runs of a class among which the best fit is chosen */
#define PROBES 4

/*
 * Does the run of @size granules that begins last in word @i hold the request?
 */
static inline bool fit_long_run_holds(const struct buddy *b,
				      const struct wanted *w, u64 i, u64 size)
{
	struct run run;

	if (w->align == 1)
		return size >= w->n;
	run = index_long_run(b, i);
	return run_holds(&run, w->n, w->align);
}

/*
 * The smallest run that serves among the latest runs of a listed class, the oldest of
 * equal ones; size 0 if none serves. The loop has no branch on the sizes, because they
 * are unpredictable.
 */
static struct run fit_best_listed(const struct buddy *b, const struct wanted *w,
				  unsigned int class)
{
	u64 best = ~0ull, that, size; /* size and word */
	u32 i = b->first[class];
	unsigned int probe;

	for (probe = 0; probe < PROBES && i != NO_WORD; probe++) {
		size = b->longest[0][i];
		that = size << 32 | i;
		that = size <= best >> 32 ? that : best;
		best = fit_long_run_holds(b, w, i, size) ? that : best;
		i = class_list_next(b, i);
	}
	return ~best ? index_long_run(b, (u32)best) : (struct run){};
}

/* The smallest run that serves among the lowest runs of an unlisted class */
static struct run fit_best_in_order(const struct buddy *b,
				    const struct wanted *w, unsigned int class)
{
	struct walk k = { .class = class };
	struct run best = {}, run;
	unsigned int probe;

	for (probe = 0; probe < PROBES && walk_words(b, &k, &run); probe++) {
		if (!run_holds(&run, w->n, w->align) ||
		    (best.size && run.size >= best.size))
			continue;
		best = run;
		if (best.size == w->n || class < 8)
			break;
	}
	return best;
}

static inline struct run fit_best_of_class(const struct buddy *b,
					   const struct wanted *w,
					   unsigned int class)
{
	if (class_is_listed(class))
		return fit_best_listed(b, w, class);
	return fit_best_in_order(b, w, class);
}

/*
 * The best fit: a run of the request's own class, else of the smallest class in which
 * all runs are large enough. With an alignment, the classes between are skipped, since
 * only some of their runs serve. The wilderness is chosen if it fits better.
 */
static struct run fit_best(const struct buddy *b, const struct wanted *w)
{
	unsigned int own = class_of(w->n), larger;
	unsigned int sure = class_of(min(w->n + w->align - 1, b->nr));
	struct run run = {}, wild = wild_run(b);

	if (class_present(b, own))
		run = fit_best_of_class(b, w, own);
	if (!run.size && sure != own && class_present(b, sure))
		run = fit_best_of_class(b, w, sure);
	if (!run.size) {
		larger = class_next(b, sure + 1);
		if (larger < CLASSES)
			run = fit_best_of_class(b, w, larger);
	}
	if (run_holds(&wild, w->n, w->align) &&
	    (!run.size || wild.size < run.size))
		return wild;
	return run;
}

/*
 * The highest or lowest candidate among all runs but the wilderness. With an alignment,
 * a run that holds w->n granules at any position is found first. Only if there is none
 * are the words with shorter runs searched, as far as @f allows.
 */
static noinline struct candidate fit_indexed(const struct buddy *b,
					     const struct wanted *w, bool high,
					     struct find *f)
{
	u64 pos = high ? w->hi : w->lo, limit = high ? w->lo : w->hi;
	struct candidate cand;
	struct run run;

	if (high ? pos < b->nr : pos > 0) {
		run = index_run_around(b, pos - high);
		if (wanted_in(w, &run, w->lo, w->hi, high, &cand))
			return cand;
		if (run.size)
			pos = high ? run.start : run.start + run.size;
	}
	run = index_find(b, pos, limit, w->n + w->align - 1, 1, high, NULL);
	if (wanted_in(w, &run, w->lo, w->hi, high, &cand))
		return cand;
	if (w->align > 1) {
		run = index_find(b, f->from == NOWHERE ? pos : f->from, limit,
				 w->n, w->align, high, f);
		if (wanted_in(w, &run, w->lo, w->hi, high, &cand))
			return cand;
		if (f->more)
			return (struct candidate){};
	}
	/* the run that reaches into the window from below */
	if (high && limit && limit < pos) {
		run = index_run_around(b, limit);
		if (wanted_in(w, &run, w->lo, w->hi, high, &cand))
			return cand;
	}
	return (struct candidate){};
}

/* The highest or lowest candidate among all runs */
static struct candidate fit_at_end(const struct buddy *b,
				   const struct wanted *w, bool high,
				   struct find *f)
{
	struct candidate cand = {}, other;
	struct run wild = wild_run(b);

	if (longest_value(w->n) <= longest_in_range(b))
		cand = fit_indexed(b, w, high, f);
	if (!wanted_in(w, &wild, w->lo, w->hi, high, &other))
		return cand;
	if (!cand.run.size || (high ? other.at > cand.at : other.at < cand.at))
		return other;
	return cand;
}

/* Take the candidate in @run as the best if it has more than *@n granules. */
static inline void fit_replace_if_longer(const struct run *run, u64 lo, u64 hi,
					 u64 align, struct candidate *best,
					 u64 *n)
{
	u64 start = ALIGN(max(lo, run->start), align);
	u64 end = min(hi, run->start + run->size);

	if (start >= end || end - start <= *n)
		return;
	best->at = start;
	best->run = *run;
	*n = end - start;
}

/*
 * The longest candidate with an aligned start in the window of @w, of *@n granules, at
 * least w->n; *@n is 0 if there is none. Runs but the wilderness are searched from
 * @from on, until a candidate has @enough granules, and as far as @f allows.
 */
static struct candidate fit_longest(const struct buddy *b,
				    const struct wanted *w, u64 from,
				    u64 enough, u64 *n, struct find *f)
{
	struct run run = wild_run(b);
	struct candidate best = {};
	u64 pos = from;

	*n = w->n - 1;
	if (w->align == 1 && !w->lo && w->hi == b->nr && longest_in_range(b))
		*n = max_t(u64, *n, longest_in_range(b) - 1);
	fit_replace_if_longer(&run, w->lo, w->hi, w->align, &best, n);
	run.size = 0;
	if (from && from < w->hi)
		run = index_run_around(b, from);
	while (pos < w->hi && *n < enough) {
		if (!run.size)
			run = index_find(b, pos, w->hi, *n + 1, w->align, false,
					 w->align == 1 ? NULL : f);
		if (!run.size)
			break;
		fit_replace_if_longer(&run, w->lo, w->hi, w->align, &best, n);
		pos = min(w->hi, run.start + run.size);
		run.size = 0;
	}
	if (!best.run.size)
		*n = 0;
	return best;
}

/**
 * struct pieces - state of a request that is served in pieces, the longest run first
 * @from: no usable run starts lower, except the wilderness
 * @last: granules of the last piece: upper bound for the next
 */
struct pieces {
	u64 from;
	u64 last;
};

/*
 * The candidate for the next piece. Its size is a multiple of w->align and at most
 * w->n; *@n is 0 if there is none.
 */
static struct candidate fit_next_piece(const struct buddy *b,
				       const struct wanted *w, struct pieces *p,
				       u64 *n, struct find *f)
{
	struct wanted least = *w;
	struct candidate cand;

	least.n = w->align;
	cand = fit_longest(b, &least, p->from, p->last, n, f);
	*n = ALIGN_DOWN(min(*n, w->n), w->align);
	/* all remaining runs are as long, and there are none below this one */
	if (p->last == w->align && !wild_is(b, &cand.run))
		p->from = cand.at + *n;
	/* if the rest is a multiple too, each run of this length serves */
	if (!(w->n & (w->align - 1)))
		p->last = *n;
	return cand;
}

static struct candidate fit_place(const struct buddy *b, const struct wanted *w,
				  struct find *f)
{
	bool window = w->lo || w->hi != b->nr;
	bool high = w->high || (!window && fit_uses_high_end(b, w->n));
	struct candidate cand;

	if (w->n > b->wild_size && longest_value(w->n) > longest_in_range(b))
		return (struct candidate){};
	if (high || window)
		return fit_at_end(b, w, high, f);
	if (lifetime_is_big(b, w->n)) {
		cand = big_place(b, w);
		if (cand.run.size)
			return cand;
	}
	cand.run = fit_best(b, w);
	if (!cand.run.size)
		return fit_indexed(b, w, false, f);
	cand.at = ALIGN(cand.run.start, w->align);
	return cand;
}
