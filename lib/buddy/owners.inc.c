// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Owners: a folio of 2 MiB belongs to one owner while any granule of it is in use.
 *
 * A folio has a record while a part of it is in use, or while several blocks fill it. A
 * block that covers a folio needs no record there: no granule of the folio is free, and
 * a caller that frees a part of it passes the owner. So the cost of a block does not
 * grow with its size. The inner folios of a free run are wholly free and have no owner;
 * only the folios at its two ends may have one.
 *
 * The rule does not apply to owner 0 and to the cleaner (~0ull), and they do not change
 * the owner of a folio that has one. Granules of the cleaner are counted separately:
 * they keep a folio from other owners, but they are no use by the folio's owner, which
 * may free the rest meanwhile. Cached blocks count as free. Retired granules are counted
 * separately too. They are nobody's: a folio with no other granules in use has no owner.
 */

#define FOLIO_ORDER (ACCMEM_BUDDY_FOLIO_SHIFT - ACCMEM_GRANULE_SHIFT)
#define FOLIO_GRANULES BIT_ULL(FOLIO_ORDER) /* granules of a folio */

static inline bool owner_is_bound(const struct buddy *b, u64 owner)
{
	return b->owners && owner && owner != ACCMEM_BUDDY_CLEANER;
}

/* Granules of a folio; the last folio may be short. */
static inline u64 owner_folio_granules(const struct buddy *b, u64 folio)
{
	return min(FOLIO_GRANULES, b->nr - (folio << FOLIO_ORDER));
}

#define OWNER_RETIRED \
	(ACCMEM_BUDDY_CLEANER - 1) /* of granules that are retired */

/* Granules of a folio that keep it from other owners */
static inline unsigned int owner_folio_held(const struct accmem_buddy_folio *f)
{
	return f->used + f->cleaning;
}

/* Granules in the record of a folio */
static inline unsigned int
owner_folio_recorded(const struct accmem_buddy_folio *f)
{
	return owner_folio_held(f) + f->retired;
}

/* May @owner use the free granules of a folio? */
static inline bool owner_folio_permits(const struct buddy *b, u64 folio,
				       u64 owner)
{
	const struct accmem_buddy_folio *f = &b->owners[folio];

	return !owner_folio_held(f) || f->owner == owner;
}

/* May @owner use [@lo, @lo + @n), which is free? Only its ends are checked. */
static inline bool owner_permits(const struct buddy *b, u64 owner, u64 lo,
				 u64 n)
{
	return owner_folio_permits(b, lo >> FOLIO_ORDER, owner) &&
	       owner_folio_permits(b, (lo + n - 1) >> FOLIO_ORDER, owner);
}

/* The part of a free run that @owner may use */
static struct run owner_trim(const struct buddy *b, u64 owner,
			     const struct run *run)
{
	u64 start = run->start, end = start + run->size;
	u64 last = (end - 1) >> FOLIO_ORDER;

	if (!owner_is_bound(b, owner) || !run->size)
		return *run;
	if (!owner_folio_permits(b, start >> FOLIO_ORDER, owner))
		start = min(end, ((start >> FOLIO_ORDER) + 1) << FOLIO_ORDER);
	if (start < end && !owner_folio_permits(b, last, owner))
		end = max(start, last << FOLIO_ORDER);
	return (struct run){ start, end - start };
}

/**
 * struct cover - folios of a block
 * @first: first folio that the block covers
 * @last: one more than the last folio that it covers
 * @left: granules of the block in the folio before @first
 * @right: granules of the block in folio @last
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
		.first = (lo + FOLIO_GRANULES - 1) >> FOLIO_ORDER,
		.last = hi >> FOLIO_ORDER,
	};

	if (hi == b->nr)
		c.last = (hi + FOLIO_GRANULES - 1) >> FOLIO_ORDER;
	c.left = min(c.first << FOLIO_ORDER, hi) - lo;
	if (c.first <= c.last && hi < b->nr)
		c.right = hi & (FOLIO_GRANULES - 1);
	c.last = max(c.first, c.last);
	return c;
}

/*
 * Granules of the folios that hold no other block than this one, which is allocated if
 * @taken, and free otherwise
 */
static u64 cover_alone(const struct buddy *b, u64 lo, u64 n, bool taken)
{
	struct cover c = cover_of(b, lo, n);
	u64 whole = c.first << FOLIO_ORDER, alone = 0;

	if (whole < b->nr)
		alone = min(c.last << FOLIO_ORDER, b->nr) - whole;
	if (c.left && b->owners[c.first - 1].used == (taken ? c.left : 0))
		alone += owner_folio_granules(b, c.first - 1);
	if (c.right && b->owners[c.last].used == (taken ? c.right : 0))
		alone += owner_folio_granules(b, c.last);
	return alone;
}

static u64 owner_nr_folios(u64 nr)
{
	return (nr + FOLIO_GRANULES - 1) >> FOLIO_ORDER;
}

/*
 * Record whether the records of folios [@first, @last) count all of their granules.
 */
static void owner_folios_set_full(struct buddy *b, u64 first, u64 last,
				  bool full)
{
	map_set(&b->full, map_level(&b->full, first, last), first, last, full);
}

/* The counter of @owner in the record of a folio */
static u16 *owner_folio_counter(struct accmem_buddy_folio *f, u64 owner)
{
	if (owner == OWNER_RETIRED)
		return &f->retired;
	return owner == ACCMEM_BUDDY_CLEANER ? &f->cleaning : &f->used;
}

static void owner_folio_add(struct buddy *b, u64 folio, u64 n, u64 owner)
{
	struct accmem_buddy_folio *f = &b->owners[folio];

	if (!owner_folio_held(f))
		f->owner = owner == OWNER_RETIRED ? 0 : owner;
	*owner_folio_counter(f, owner) += n;
	if (owner_folio_recorded(f) == owner_folio_granules(b, folio))
		owner_folios_set_full(b, folio, folio + 1, true);
}

static void owner_folio_sub(struct buddy *b, u64 folio, u64 n, u64 owner)
{
	struct accmem_buddy_folio *f = &b->owners[folio];
	u64 all = owner_folio_granules(b, folio);

	if (!owner_folio_recorded(f)) { /* one block covered the folio */
		f->owner = owner;
		*owner_folio_counter(f, owner) = all;
	} else if (owner_folio_recorded(f) == all) {
		owner_folios_set_full(b, folio, folio + 1, false);
	}
	*owner_folio_counter(f, owner) -= n;
	if (!f->used)
		f->owner = f->cleaning ? ACCMEM_BUDDY_CLEANER : 0;
}

/* Clear the full records of folios [@first, @last), which are one or more. */
static void owner_folios_clear(struct buddy *b, u64 first, u64 last)
{
	u64 folio = map_next(&b->full, first, true);

	if (folio >= last)
		return;
	for (; folio < last; folio = map_next(&b->full, folio + 1, true))
		b->owners[folio] = (struct accmem_buddy_folio){};
	owner_folios_set_full(b, first, last, false);
}

/* Record that @owner has allocated a block. */
static noinline void owner_record_alloc(struct buddy *b, u64 lo, u64 n,
					u64 owner)
{
	struct cover c = cover_of(b, lo, n);

	if (c.left)
		owner_folio_add(b, c.first - 1, c.left, owner);
	if (c.right)
		owner_folio_add(b, c.last, c.right, owner);
}

/* Record that @owner has freed a block, or a part of one. */
static noinline void owner_record_free(struct buddy *b, u64 lo, u64 n,
				       u64 owner)
{
	struct cover c = cover_of(b, lo, n);

	if (c.left)
		owner_folio_sub(b, c.first - 1, c.left, owner);
	if (c.first < c.last)
		owner_folios_clear(b, c.first, c.last);
	if (c.right)
		owner_folio_sub(b, c.last, c.right, owner);
}

/* Does a block with @n granules of a folio have the folio to itself? */
static bool owner_folio_is_alone(const struct accmem_buddy_folio *f, u64 n)
{
	return f->used == n && !f->cleaning;
}

/* Change the owner of a block to @to; -EBUSY if the block shares a folio. */
static noinline int owner_change(struct buddy *b, u64 lo, u64 n, u64 from,
				 u64 to)
{
	struct cover c = cover_of(b, lo, n);

	if ((c.left &&
	     !owner_folio_is_alone(&b->owners[c.first - 1], c.left)) ||
	    (c.right && !owner_folio_is_alone(&b->owners[c.last], c.right)))
		return -EBUSY;
	owner_record_free(b, lo, n, from);
	owner_record_alloc(b, lo, n, to);
	return 0;
}
