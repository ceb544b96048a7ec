// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Owners: with this rule on, a unit of 2 MiB belongs to one owner while any granule of
 * it is in use.
 *
 * A unit has a record while a part of it is in use, or all of it by several parts. A
 * block that covers a unit needs none there: nothing of the unit is free, and whoever
 * frees a part of it says whose it is. So the cost of a block does not grow with its
 * size. A free run has whole units inside, which are nobody's; only the units at its
 * two ends may have an owner.
 *
 * Nobody in particular (0) and the cleaner (~0ull) are bound by no rule, and do not
 * change the owner of a unit that has one. What the cleaner has is counted apart: it
 * keeps a unit from others, but is no use by the unit's owner, who may free the rest
 * meanwhile. Parked blocks count as free.
 */

#define OWNED_SHIFT (ACCMEM_BUDDY_FOLIO_SHIFT - ACCMEM_GRANULE_SHIFT)
#define OWNED BIT_ULL(OWNED_SHIFT) /* granules of a unit */

static inline bool owner_is_bound(const struct buddy *b, u64 owner)
{
	return b->owners && owner && owner != ACCMEM_BUDDY_CLEANER;
}

/* The last one may be short. */
static inline u64 unit_granules(const struct buddy *b, u64 unit)
{
	return min(OWNED, b->nr - (unit << OWNED_SHIFT));
}

/* Granules that a unit has a record of */
static inline unsigned int unit_taken(const struct accmem_buddy_folio *u)
{
	return u->used + u->cleaning;
}

/* May @owner have what is free of a unit? */
static inline bool unit_permits(const struct buddy *b, u64 unit, u64 owner)
{
	const struct accmem_buddy_folio *u = &b->owners[unit];

	return !unit_taken(u) || u->owner == owner;
}

/* May it have [@lo, @lo + @n), which is free? Only the ends can tell. */
static inline bool owner_permits(const struct buddy *b, u64 owner, u64 lo,
				 u64 n)
{
	return unit_permits(b, lo >> OWNED_SHIFT, owner) &&
	       unit_permits(b, (lo + n - 1) >> OWNED_SHIFT, owner);
}

/* What @owner may have of a free run */
static struct run owner_trim(const struct buddy *b, u64 owner,
			     const struct run *run)
{
	u64 start = run->start, end = start + run->size;
	u64 last = (end - 1) >> OWNED_SHIFT;

	if (!owner_is_bound(b, owner) || !run->size)
		return *run;
	if (!unit_permits(b, start >> OWNED_SHIFT, owner))
		start = min(end, ((start >> OWNED_SHIFT) + 1) << OWNED_SHIFT);
	if (start < end && !unit_permits(b, last, owner))
		end = max(start, last << OWNED_SHIFT);
	return (struct run){ start, end - start };
}

/**
 * struct cover - the units that a block has
 * @first: the first that it has all of
 * @last: one more than the last of these
 * @left: granules that it has of the unit before @first
 * @right: granules that it has of unit @last
 */
struct cover {
	u64 first;
	u64 last;
	u64 left;
	u64 right;
};

static struct cover cover_of(const struct buddy *b, u64 lo, u64 n)
{
	u64 hi = lo + n;
	struct cover c = {
		.first = (lo + OWNED - 1) >> OWNED_SHIFT,
		.last = hi >> OWNED_SHIFT,
	};

	if (hi == b->nr)
		c.last = (hi + OWNED - 1) >> OWNED_SHIFT;
	c.left = min(c.first << OWNED_SHIFT, hi) - lo;
	if (c.first <= c.last && hi < b->nr)
		c.right = hi & (OWNED - 1);
	c.last = max(c.first, c.last);
	return c;
}

/* Granules of the units that a block, which is taken or not yet, has to itself */
static u64 cover_alone(const struct buddy *b, u64 lo, u64 n, bool taken)
{
	struct cover c = cover_of(b, lo, n);
	u64 whole = c.first << OWNED_SHIFT, alone = 0;

	if (whole < b->nr)
		alone = min(c.last << OWNED_SHIFT, b->nr) - whole;
	if (c.left && b->owners[c.first - 1].used == (taken ? c.left : 0))
		alone += unit_granules(b, c.first - 1);
	if (c.right && b->owners[c.last].used == (taken ? c.right : 0))
		alone += unit_granules(b, c.last);
	return alone;
}

static u64 owner_units(u64 nr)
{
	return (nr + OWNED - 1) >> OWNED_SHIFT;
}

/* Units of [@first, @last) have records of all of their granules, or do not. */
static void units_set_full(struct buddy *b, u64 first, u64 last, bool full)
{
	map_set(&b->full, map_level(&b->full, first, last), first, last, full);
}

/* What a unit's record has of @owner's granules */
static u16 *unit_share(struct accmem_buddy_folio *u, u64 owner)
{
	return owner == ACCMEM_BUDDY_CLEANER ? &u->cleaning : &u->used;
}

static void unit_take(struct buddy *b, u64 unit, u64 n, u64 owner)
{
	struct accmem_buddy_folio *u = &b->owners[unit];

	if (!unit_taken(u))
		u->owner = owner;
	*unit_share(u, owner) += n;
	if (unit_taken(u) == unit_granules(b, unit))
		units_set_full(b, unit, unit + 1, true);
}

static void unit_give(struct buddy *b, u64 unit, u64 n, u64 owner)
{
	struct accmem_buddy_folio *u = &b->owners[unit];
	u64 all = unit_granules(b, unit);

	if (!unit_taken(u)) { /* a block covered it */
		u->owner = owner;
		*unit_share(u, owner) = all;
	} else if (unit_taken(u) == all) {
		units_set_full(b, unit, unit + 1, false);
	}
	*unit_share(u, owner) -= n;
	if (!u->used)
		u->owner = u->cleaning ? ACCMEM_BUDDY_CLEANER : 0;
}

/* Units of [@first, @last), one or more, have no full records any more. */
static void units_forget(struct buddy *b, u64 first, u64 last)
{
	u64 unit = map_next(&b->full, first, true);

	if (unit >= last)
		return;
	for (; unit < last; unit = map_next(&b->full, unit + 1, true))
		b->owners[unit] = (struct accmem_buddy_folio){};
	units_set_full(b, first, last, false);
}

/* @owner has taken a block. */
static noinline void owner_take(struct buddy *b, u64 lo, u64 n, u64 owner)
{
	struct cover c = cover_of(b, lo, n);

	if (c.left)
		unit_take(b, c.first - 1, c.left, owner);
	if (c.right)
		unit_take(b, c.last, c.right, owner);
}

/* It has given it back, or a part of one. */
static noinline void owner_give(struct buddy *b, u64 lo, u64 n, u64 owner)
{
	struct cover c = cover_of(b, lo, n);

	if (c.left)
		unit_give(b, c.first - 1, c.left, owner);
	if (c.first < c.last)
		units_forget(b, c.first, c.last);
	if (c.right)
		unit_give(b, c.last, c.right, owner);
}

/* Is a unit in use by a block that has @n granules of it, and by nothing else? */
static bool unit_is_alone(const struct accmem_buddy_folio *u, u64 n)
{
	return u->used == n && !u->cleaning;
}

/* A block is @to's from here on, unless it has a unit together with others. */
static noinline int owner_change(struct buddy *b, u64 lo, u64 n, u64 from,
				 u64 to)
{
	struct cover c = cover_of(b, lo, n);

	if ((c.left && !unit_is_alone(&b->owners[c.first - 1], c.left)) ||
	    (c.right && !unit_is_alone(&b->owners[c.last], c.right)))
		return -EBUSY;
	owner_give(b, lo, n, from);
	owner_take(b, lo, n, to);
	return 0;
}
