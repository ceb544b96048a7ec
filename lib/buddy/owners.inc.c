// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Owners: a unit of 2 MiB belongs to one owner while any granule of it is in use.
 *
 * A unit has a record while a part of it is in use, or while several blocks fill it. A
 * block that covers a unit needs no record there: no granule of the unit is free, and a
 * caller that frees a part of it passes the owner. So the cost of a block does not grow
 * with its size. The inner units of a free run are wholly free and have no owner; only
 * the units at its two ends may have one.
 *
 * The rule does not apply to owner 0 and to the cleaner (~0ull), and they do not change
 * the owner of a unit that has one. Granules of the cleaner are counted separately:
 * they keep a unit from other owners, but they are no use by the unit's owner, which
 * may free the rest meanwhile. Parked blocks count as free.
 */

#define OWNED_SHIFT (ACCMEM_BUDDY_FOLIO_SHIFT - ACCMEM_GRANULE_SHIFT)
#define OWNED BIT_ULL(OWNED_SHIFT) /* granules of a unit */

static inline bool owner_is_bound(const struct buddy *b, u64 owner)
{
	return b->owners && owner && owner != ACCMEM_BUDDY_CLEANER;
}

/* Granules of a unit; the last unit may be short. */
static inline u64 unit_granules(const struct buddy *b, u64 unit)
{
	return min(OWNED, b->nr - (unit << OWNED_SHIFT));
}

/* Granules in the record of a unit */
static inline unsigned int unit_taken(const struct accmem_buddy_folio *u)
{
	return u->used + u->cleaning;
}

/* May @owner use the free granules of a unit? */
static inline bool unit_permits(const struct buddy *b, u64 unit, u64 owner)
{
	const struct accmem_buddy_folio *u = &b->owners[unit];

	return !unit_taken(u) || u->owner == owner;
}

/* May @owner use [@lo, @lo + @n), which is free? Only its ends are checked. */
static inline bool owner_permits(const struct buddy *b, u64 owner, u64 lo,
				 u64 n)
{
	return unit_permits(b, lo >> OWNED_SHIFT, owner) &&
	       unit_permits(b, (lo + n - 1) >> OWNED_SHIFT, owner);
}

/* The part of a free run that @owner may use */
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
 * struct cover - units of a block
 * @first: first unit that the block covers
 * @last: one more than the last unit that it covers
 * @left: granules of the block in the unit before @first
 * @right: granules of the block in unit @last
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

/*
 * Granules of the units that hold no other block than this one, which is allocated if
 * @taken, and free otherwise
 */
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

/*
 * Record whether the records of units [@first, @last) count all of their granules.
 */
static void units_set_full(struct buddy *b, u64 first, u64 last, bool full)
{
	map_set(&b->full, map_level(&b->full, first, last), first, last, full);
}

/* The counter of @owner in the record of a unit */
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

	if (!unit_taken(u)) { /* one block covered the unit */
		u->owner = owner;
		*unit_share(u, owner) = all;
	} else if (unit_taken(u) == all) {
		units_set_full(b, unit, unit + 1, false);
	}
	*unit_share(u, owner) -= n;
	if (!u->used)
		u->owner = u->cleaning ? ACCMEM_BUDDY_CLEANER : 0;
}

/* Clear the full records of units [@first, @last), which are one or more. */
static void units_forget(struct buddy *b, u64 first, u64 last)
{
	u64 unit = map_next(&b->full, first, true);

	if (unit >= last)
		return;
	for (; unit < last; unit = map_next(&b->full, unit + 1, true))
		b->owners[unit] = (struct accmem_buddy_folio){};
	units_set_full(b, first, last, false);
}

/* Record that @owner has allocated a block. */
static noinline void owner_take(struct buddy *b, u64 lo, u64 n, u64 owner)
{
	struct cover c = cover_of(b, lo, n);

	if (c.left)
		unit_take(b, c.first - 1, c.left, owner);
	if (c.right)
		unit_take(b, c.last, c.right, owner);
}

/* Record that @owner has freed a block, or a part of one. */
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

/* Does a block with @n granules of a unit have the unit to itself? */
static bool unit_is_alone(const struct accmem_buddy_folio *u, u64 n)
{
	return u->used == n && !u->cleaning;
}

/* Change the owner of a block to @to; -EBUSY if the block shares a unit. */
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
