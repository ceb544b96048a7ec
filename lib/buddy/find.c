// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The search by address: the lowest and the highest free run that is long enough, and
 * where in a run a request may be.
 */

/*
 * The lowest run from @pos on that holds @n granules at a multiple of @align;
 * size 0 if none does that begins below @hi. @pos is not inside a run. One step
 * a word in which a run of @n granules begins: few if @align is 1.
 */
static struct run index_find_up(const struct buddy *b, u64 pos, u64 hi, u64 n,
				u64 align)
{
	u64 i = pos >> WORD_SHIFT, mask = mask_from(pos), fits;
	struct word_runs g;
	struct run run;

	if (pos >= hi)
		return (struct run){};
	for (;; mask = ~0ull) {
		if (b->longest[0][i] >= longest_value(n)) {
			g = word_runs_in(b, i);
			fits = bits_runs(g.inside, n) & bits_aligned(i, align);
			if (fits & mask)
				return word_run_around(&g, i,
						       __ffs64(fits & mask));
			run = word_run_at(&g, i, g.tail);
			if (g.tail_size && mask >> g.tail & 1 &&
			    run_holds(&run, n, align))
				return run;
		}
		i = longest_next_word(b, i + 1, longest_value(n));
		if (i > (hi - 1) >> WORD_SHIFT)
			return (struct run){};
	}
}

/*
 * The highest such run that begins before @pos, which is not inside a run; size 0
 * if none does that begins from @lo on.
 */
static struct run index_find_down(const struct buddy *b, u64 pos, u64 lo, u64 n,
				  u64 align)
{
	u64 i = pos >> WORD_SHIFT, mask = ~mask_from(pos), fits;
	struct word_runs g;
	struct run run;

	for (;; mask = ~0ull) {
		if (mask && b->longest[0][i] >= longest_value(n)) {
			g = word_runs_in(b, i);
			run = word_run_at(&g, i, g.tail);
			if (g.tail_size && mask >> g.tail & 1 &&
			    run_holds(&run, n, align))
				return run;
			fits = bits_runs(g.inside, n) & bits_aligned(i, align);
			if (fits & mask)
				return word_run_around(&g, i,
						       fls64(fits & mask) - 1);
		}
		i = longest_prev_word(b, i, longest_value(n));
		if (i == NOWHERE || i < lo >> WORD_SHIFT)
			return (struct run){};
	}
}

/* The run that has granule @pos; its size is 0 when that is used */
static struct run index_run_around(const struct buddy *b, u64 pos)
{
	struct run run = {};

	if (pos < b->nr && map_next(&b->used, pos, false) == pos) {
		run.start = map_prev(&b->used, pos, true);
		run.size = map_next(&b->used, pos, true) - run.start;
	}
	return run;
}

static bool wanted_serves(const struct wanted *w, const struct run *run)
{
	return run_holds(run, w->n, w->align);
}

/* The lowest candidate for @w in a free run, within [@lo, @hi) */
static bool wanted_low(const struct wanted *w, const struct run *run, u64 lo,
		       u64 hi, struct candidate *cand)
{
	u64 end = min(hi, run->start + run->size);

	cand->run = *run;
	cand->at = align_up(max(lo, run->start), w->align);
	return run->size && cand->at < end && w->n <= end - cand->at;
}

static bool wanted_high(const struct wanted *w, const struct run *run, u64 lo,
			u64 hi, struct candidate *cand)
{
	u64 start = max(lo, run->start), end = min(hi, run->start + run->size);

	cand->run = *run;
	if (!run->size || start >= end || w->n > end - start)
		return false;
	cand->at = align_down(end - w->n, w->align);
	return cand->at >= start;
}
