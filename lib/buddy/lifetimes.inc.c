// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Predicted lifetimes of big blocks.
 *
 * Placement keeps long-lived blocks apart from others. Time is counted in events: a big
 * block is allocated or freed. There are two predictions:
 *
 * - By history, since a program that repeats itself allocates and frees the same sizes
 *   in the same order. The key is the size class of the request and the last three
 *   events. For each key the longest recent lifetime is stored, and a block is
 *   predicted to live as long. A block without history is predicted long-lived, because
 *   programs begin with the memory that they keep.
 *
 * - By size. The lifetime times the size is predicted as the mean of those products, so
 *   a larger block is freed sooner.
 *
 * The range is divided into at most 512 sections. A big block has at least the size of
 * a section, so no two blocks begin or end in the same section. The record of a block
 * is in the section in which it begins. A record may be stale if a block was freed in
 * parts or together with others. A stale record changes the placement of a request, not
 * its success.
 */

/* An event is a class of size and a flag for a free */
#define EVENT_SHIFT 8
#define EVENT_ENDS 0x80

static_assert(CLASSES <= EVENT_ENDS);

/* Least lifetime of a long-lived block, in events */
#define LIFETIME_LONG 32

/* Classes by which a longer stored lifetime shrinks at each shorter one */
#define HISTORY_FADES 4

/* Number of blocks in the mean, and the largest product of one block */
#define LIFETIME_MEAN 1024
#define AREA_MAX BIT_ULL(53)

/* Events after which a large block is no longer recent */
#define LARGE_LATELY 1024

/*
 * Lifetime of a block while nothing is known, in events, and the longest prediction. Of
 * two blocks with this lifetime, the older one is freed first.
 */
#define LIFETIME_UNKNOWN BIT_ULL(40)

static inline void lifetime_init(struct buddy *b)
{
	while ((b->nr - 1) >> b->lifetime_shift >= LIFETIME_SECTIONS)
		b->lifetime_shift++;
	b->large = max(1ull, (b->nr >> 5) + (b->nr >> 7));
}

/* Is a block of @n granules big? */
static inline bool lifetime_is_big(const struct buddy *b, u64 n)
{
	return n >> b->lifetime_shift;
}

static inline bool lifetime_had_large(const struct buddy *b)
{
	return b->large_at && b->now - b->large_at < LARGE_LATELY;
}

/* Key of the history of a big request at this moment */
static inline u16 lifetime_key(const struct buddy *b, u64 n)
{
	return hash_32(b->order << EVENT_SHIFT | class_of(n),
		       ilog2(LIFETIME_HISTORIES));
}

static inline void lifetime_event(struct buddy *b, unsigned int event)
{
	b->order = b->order << EVENT_SHIFT | event;
	b->now++;
}

/* Is a block with this key and age predicted long-lived? */
static inline bool lifetime_key_is_long(const struct buddy *b, u16 key, u32 age)
{
	u64 life = class_size(b->histories[key]);

	return !life || life >= (u64)age + LIFETIME_LONG;
}

/* Lifetime of a block of @n granules, predicted from the size alone */
static inline u64 lifetime_of_size(const struct buddy *b, u64 n)
{
	if (!b->nr_ended)
		return LIFETIME_UNKNOWN;
	return min(b->sum / b->nr_ended / n, LIFETIME_UNKNOWN);
}

/*
 * The big block that ends right before granule @lo; NULL if there is no record
 */
static inline const struct lifetime *lifetime_below(const struct buddy *b,
						    u64 lo)
{
	const struct lifetime *life;

	if (!lo)
		return NULL;
	life = &b->lifetimes[(lo - 1) >> b->lifetime_shift];
	life = &b->lifetimes[life->begins];
	return life->n && (u64)life->lo + life->n == lo ? life : NULL;
}

/* The big block that begins at granule @hi; NULL if there is no record */
static inline const struct lifetime *lifetime_above(const struct buddy *b,
						    u64 hi)
{
	const struct lifetime *life;

	if (hi == b->nr)
		return NULL;
	life = &b->lifetimes[hi >> b->lifetime_shift];
	return life->n && life->lo == hi ? life : NULL;
}

static inline u32 lifetime_age(const struct buddy *b,
			       const struct lifetime *life)
{
	return b->now - life->born;
}

/* A neighbour without a record counts as short-lived. */
static inline bool lifetime_is_long(const struct buddy *b,
				    const struct lifetime *life)
{
	return life &&
	       lifetime_key_is_long(b, life->key, lifetime_age(b, life));
}

/*
 * Remaining lifetime in events, from the size alone. A block without a record lives for
 * ever. A block that outlived its prediction gets another quarter of its age.
 */
static inline u64 lifetime_rest(const struct buddy *b,
				const struct lifetime *life)
{
	u64 whole, age;

	if (!life)
		return U64_MAX;
	whole = lifetime_of_size(b, life->n);
	age = lifetime_age(b, life);
	return whole > age ? whole - age : age / 4;
}

/* A big block was allocated; the counters include it already. */
static noinline void lifetime_begins(struct buddy *b, u64 lo, u64 n)
{
	u64 begins = lo >> b->lifetime_shift,
	    ends = (lo + n - 1) >> b->lifetime_shift;
	struct lifetime *life = &b->lifetimes[begins];

	/* n is 0 for a block of 2^32 granules: no record */
	life->lo = lo;
	life->n = n;
	life->key = lifetime_key(b, n);
	b->lifetimes[ends].begins = begins;
	lifetime_event(b, class_of(n));
	life->born = b->now;
	if (n >= b->large)
		b->large_at = b->now;
}

/*
 * A big block is freed. Only a free of exactly the allocated block updates the history.
 */
static noinline void lifetime_ends(struct buddy *b, u64 lo, u64 n)
{
	struct lifetime *life = &b->lifetimes[lo >> b->lifetime_shift];
	unsigned int class, faded;
	u8 *history;
	u64 age;

	if (life->n != n || life->lo != lo)
		return;
	life->n = 0;
	lifetime_event(b, EVENT_ENDS | class_of(n));
	age = lifetime_age(b, life);
	class = class_of(age);
	history = &b->histories[life->key];
	faded = *history - min_t(unsigned int, *history, HISTORY_FADES);
	*history = max(class, faded);
	if (b->nr_ended == LIFETIME_MEAN)
		b->sum -= b->sum / LIFETIME_MEAN;
	else
		b->nr_ended++;
	b->sum += min(age * n, AREA_MAX);
}

/* The memory at @lo no longer belongs to a recorded block. */
static inline void lifetime_forget(struct buddy *b, u64 lo)
{
	struct lifetime *life = &b->lifetimes[lo >> b->lifetime_shift];

	if (life->lo == lo)
		life->n = 0;
}
