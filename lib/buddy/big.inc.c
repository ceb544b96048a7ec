// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Placement of big requests, by predicted lifetimes.
 *
 * A big request goes to the end of a free run where it fragments the free memory of now
 * and of the near future least. Some of the runs that fit best are candidates. Both
 * ends of each candidate get a cost, by one of two rules:
 *
 * - Neighbours: in a range without recent large blocks, once lifetimes are known. The
 *   request goes next to a block with the same predicted lifetime, unless that takes a
 *   much larger run.
 *
 * - Regions: in other ranges. A run and the neighbours that will be freed before the
 *   request form a region. The part that the request cuts off from its region is lost
 *   for later requests that need the whole region. The cost grows with that part and
 *   with the region. The larger the request, the lower it is placed.
 */

/* Number of candidate runs besides the wilderness */
#define BIG_PROBES 8

/**
 * struct big_choice - state of the search for a big request
 * @w: the request
 * @class: class of its size
 * @regions: the rule of regions applies
 * @is_long: predicted long-lived
 * @life: lifetime predicted from the size alone
 * @log: logarithm of its size
 * @low: pull towards the low end; negative towards the high end
 * @cand: the best candidate so far
 * @cost: cost of @cand
 */
struct big_choice {
	const struct wanted *w;
	unsigned int class;
	bool regions;
	bool is_long;
	u64 life;
	int log;
	int low;
	struct candidate cand;
	int cost;
};

/*
 * Take an end of a run as candidate if it serves and costs less than the best so far.
 */
static void big_choose(const struct buddy *b, struct big_choice *c,
		       const struct run *run, int low, int high)
{
	struct candidate cand;

	if (low < c->cost && wanted_in(c->w, run, 0, b->nr, false, &cand)) {
		c->cand = cand;
		c->cost = low;
	}
	if (high < c->cost && wanted_in(c->w, run, 0, b->nr, true, &cand)) {
		c->cand = cand;
		c->cost = high;
	}
}

/* Neighbours */

/* Classes of size by which a run with a matching neighbour may be larger */
#define NEIGHBOUR_WORTH 4

static void big_weigh_neighbours(const struct buddy *b, struct big_choice *c,
				 const struct run *run)
{
	u64 end = run->start + run->size;
	int larger = class_of(run->size) - c->class;
	bool below, above;

	below = lifetime_is_long(b, lifetime_below(b, run->start)) ==
		c->is_long;
	above = lifetime_is_long(b, lifetime_above(b, end)) == c->is_long;
	if (run->size == c->w->n)
		below |= above;
	big_choose(b, c, run, larger + (below ? 0 : NEIGHBOUR_WORTH),
		   larger + (above ? 0 : NEIGHBOUR_WORTH));
}

/* Regions */

/*
 * Moments in the lifetime of the request, in tenths, at which neighbours are checked
 */
static const unsigned int shares[] = { 4, 7, 12 };

/* Binary logarithm of @n, times 256 */
#define LOG_SHIFT 8

static inline int big_log(u64 n)
{
	unsigned int whole = ilog2(n);

	return (whole << LOG_SHIFT) +
	       (int)((n << (63 - whole) << 1) >> (64 - LOG_SHIFT));
}

static int big_region_cost(const struct big_choice *c, u64 size, u64 cut_off)
{
	return big_log(size) - c->log +
	       4 * (big_log(c->w->n + cut_off) - c->log);
}

static int big_end_cost(const struct buddy *b, const struct big_choice *c,
			u64 at)
{
	return c->low * (int)((at << LOG_SHIFT) / b->nr) >> LOG_SHIFT;
}

/*
 * Cost of both ends by regions. The alignment is ignored, which is accurate enough.
 */
static void big_weigh_regions(const struct buddy *b, struct big_choice *c,
			      const struct run *run)
{
	u64 start = run->start, end = start + run->size, n = c->w->n, lo, hi;
	const struct lifetime *below = lifetime_below(b, start);
	const struct lifetime *above = lifetime_above(b, end);
	u64 below_rest = lifetime_rest(b, below),
	    above_rest = lifetime_rest(b, above);
	int low = big_end_cost(b, c, start), high = big_end_cost(b, c, end - n);
	unsigned int i;
	u64 soon;

	for (i = 0; i < ARRAY_SIZE(shares); i++) {
		soon = c->life * shares[i] / 10;
		lo = below_rest <= soon ? below->lo : start;
		hi = above_rest <= soon ? above->lo + (u64)above->n : end;
		low += big_region_cost(c, hi - lo,
				       min(start - lo, hi - start - n));
		high += big_region_cost(c, hi - lo,
					min(hi - end, end - n - lo));
	}
	big_choose(b, c, run, low, high);
}

/*
 * Pull of a request to the low end: full for a large request, 0 for a quarter of that
 * size, negative for a sixteenth. With a full pull the other end costs ten octaves
 * more.
 */
static int big_drawn_low(const struct buddy *b, int log)
{
	int low = log - big_log(b->large) + (2 << LOG_SHIFT);

	return 5 * clamp(low, -(2 << LOG_SHIFT), 2 << LOG_SHIFT);
}

static void big_weigh(const struct buddy *b, struct big_choice *c,
		      const struct run *run)
{
	struct run own = owner_trim(b, c->w->owner, run);
	int cost = c->cost;

	if (own.size < c->w->n)
		return;
	if (c->regions)
		big_weigh_regions(b, c, &own);
	else
		big_weigh_neighbours(b, c, &own);
	if (c->cost != cost)
		c->cand.run = *run;
}

/* Can a run of @class cost less than the best so far? */
static bool big_may_be_better(const struct big_choice *c, unsigned int class)
{
	int log = big_log(class_size(class)) - c->log;

	if (c->regions)
		return (int)ARRAY_SIZE(shares) * log + min(c->low, 0) < c->cost;
	return (int)class - (int)c->class < c->cost;
}

static noinline struct candidate big_place(const struct buddy *b,
					   const struct wanted *w)
{
	struct run run = wild_run(b);
	struct big_choice c = {
		.w = w,
		.class = class_of(w->n),
		.regions = lifetime_had_large(b) || !b->nr_ended,
		.is_long = lifetime_key_is_long(b, lifetime_key(b, w->n), 0),
		.life = lifetime_of_size(b, w->n),
		.log = big_log(w->n),
		.cost = INT_MAX,
	};
	unsigned int probe;
	struct walk k = {};

	c.low = big_drawn_low(b, c.log);
	big_weigh(b, &c, &run);
	walk_class(b, &k, c.class);
	for (probe = 0; probe < BIG_PROBES && walk_next(b, &k, &run); probe++) {
		if (!big_may_be_better(&c, k.class))
			break;
		big_weigh(b, &c, &run);
	}
	return c.cand;
}
