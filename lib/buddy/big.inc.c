// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Placement of big requests: at the end of a free run where they break up the least of
 * what is free, or soon will be. Some of the runs that fit best are looked at, and both
 * ends of each are weighed, by one of two rules.
 *
 * In a range without large blocks lately, once lifetimes are known: next to a neighbour with
 * the same predicted lifetime, unless that takes a much larger run.
 *
 * In others: a run and the neighbours that will be freed before the request is make a
 * region. What the request cuts off from the rest of its region is lost for the next
 * request that needs the region as a whole: it costs more the larger that part and the
 * region are. The larger the request, the further down it goes.
 */

/* Runs that are looked at, but for the wilderness */
#define BIG_PROBES 8

/**
 * struct big_choice - of a candidate for a big request
 * @w: the request
 * @class: of its size
 * @regions: which of the two rules: it had large blocks, or nothing is known
 * @is_long: predicted long-lived
 * @life: its lifetime, from its size alone
 * @log: of its size
 * @low: how far it is drawn to the low end; to the high end if negative
 * @cand: the best one so far
 * @cost: what that costs
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

/* Either end of a run, if it serves and costs less than the best so far */
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

/* Classes of size: how much larger a run may be where the neighbour is right */
#define NEIGHBOUR_WORTH 4

static void big_weigh_neighbours(const struct buddy *b, struct big_choice *c,
				 const struct run *run)
{
	u64 end = run->start + run->size;
	int larger = class_of(run->size) - c->class;
	bool below, above;

	below = life_is_long(b, life_below(b, run->start)) == c->is_long;
	above = life_is_long(b, life_above(b, end)) == c->is_long;
	if (run->size == c->w->n)
		below |= above;
	big_choose(b, c, run, larger + (below ? 0 : NEIGHBOUR_WORTH),
		   larger + (above ? 0 : NEIGHBOUR_WORTH));
}

/* Regions */

/* Of the life of the request, in tenths: blocks beside it are gone by then. */
static const unsigned int shares[] = { 4, 7, 12 };

/* The logarithm of @n to the base 2, by 256 */
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

/* With an alignment, what the ends would cost without: they are near enough. */
static void big_weigh_regions(const struct buddy *b, struct big_choice *c,
			      const struct run *run)
{
	u64 start = run->start, end = start + run->size, n = c->w->n, lo, hi;
	const struct lifetime *below = life_below(b, start);
	const struct lifetime *above = life_above(b, end);
	u64 below_rest = life_rest(b, below), above_rest = life_rest(b, above);
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
 * How far a request is drawn down: a large one most, one of a quarter of that size
 * neither way, one of a sixteenth up. The other end costs ten octaves more then.
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

/* May a run of @class cost less than the best so far? */
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
		.regions = life_had_large(b) || !b->nr_ended,
		.is_long = life_key_is_long(b, life_key(b, w->n), 0),
		.life = life_of_size(b, w->n),
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
