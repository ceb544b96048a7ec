// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Lifetimes of big blocks, predicted, so that placement can keep long-lived blocks
 * apart from others. Time is counted in events: big blocks that are made or freed.
 *
 * Two predictions. By history: a program that repeats itself makes and frees blocks of
 * the same sizes in the same order. The key is the size class of the request and the
 * last three events; for each key the longest lifetime seen lately is kept, and a block
 * is predicted to live as long. Without a history it is predicted long-lived, as
 * programs begin with what they keep. By size: a lifetime times the size is taken for
 * the mean of those products, so the larger a block, the sooner it is freed.
 *
 * The range is divided into slots, at most 512. A big block has at least the size of
 * one, so no two begin or end in the same slot, and the record of a block is in the
 * slot in which it begins. A record may be stale where a block was freed in parts or
 * with others; this changes where a request is placed, but not whether.
 */

/* Bits of an event: a class, and whether a block was freed */
#define EVENT_SHIFT 8
#define EVENT_ENDS 0x80

static_assert(CLASSES <= EVENT_ENDS);

/* Events that a long-lived block lives through, at least */
#define LIFE_LONG 32

/* A longer lifetime seen before counts for so many classes less each time. */
#define HISTORY_FADES 4

/* Blocks of which the mean is taken, and the most that one counts for */
#define LIFE_MEAN 1024
#define AREA_MAX BIT_ULL(53)

/* Events after which a range that had a large block is one that has none */
#define LARGE_LATELY 1024

/*
 * Events that a block lives as long as nothing is known, and the most otherwise: of
 * two that live as long, the one that is there goes before the one that comes.
 */
#define LIFE_UNKNOWN BIT_ULL(40)

static inline void life_init(struct buddy *b)
{
	while ((b->nr - 1) >> b->life_shift >= LIFE_SLOTS)
		b->life_shift++;
	b->large = max(1ull, (b->nr >> 5) + (b->nr >> 7));
}

/* Has a block of @n granules a slot to itself? */
static inline bool life_is_big(const struct buddy *b, u64 n)
{
	return n >> b->life_shift;
}

static inline bool life_had_large(const struct buddy *b)
{
	return b->large_at && b->now - b->large_at < LARGE_LATELY;
}

/* The key of a big request made now */
static inline u16 life_key(const struct buddy *b, u64 n)
{
	return hash_32(b->order << EVENT_SHIFT | class_of(n),
		       ilog2(LIFE_HISTORIES));
}

static inline void life_event(struct buddy *b, unsigned int event)
{
	b->order = b->order << EVENT_SHIFT | event;
	b->now++;
}

/* Is a block of @age long-lived whose key is @key? */
static inline bool life_key_is_long(const struct buddy *b, u16 key, u32 age)
{
	u64 life = class_size(b->histories[key]);

	return !life || life >= (u64)age + LIFE_LONG;
}

/* The lifetime of a block of @n granules, from its size alone */
static inline u64 life_of_size(const struct buddy *b, u64 n)
{
	if (!b->nr_ended)
		return LIFE_UNKNOWN;
	return min(b->sum / b->nr_ended / n, LIFE_UNKNOWN);
}

/* The big block that ends where granule @lo begins; NULL if none is known */
static inline const struct lifetime *life_below(const struct buddy *b, u64 lo)
{
	const struct lifetime *life;

	if (!lo)
		return NULL;
	life = &b->lifetimes[(lo - 1) >> b->life_shift];
	life = &b->lifetimes[life->begins];
	return life->n && (u64)life->lo + life->n == lo ? life : NULL;
}

/* The one that begins at granule @hi */
static inline const struct lifetime *life_above(const struct buddy *b, u64 hi)
{
	const struct lifetime *life;

	if (hi == b->nr)
		return NULL;
	life = &b->lifetimes[hi >> b->life_shift];
	return life->n && life->lo == hi ? life : NULL;
}

static inline u32 life_age(const struct buddy *b, const struct lifetime *life)
{
	return b->now - life->born;
}

/* An unknown neighbour is not. */
static inline bool life_is_long(const struct buddy *b,
				const struct lifetime *life)
{
	return life && life_key_is_long(b, life->key, life_age(b, life));
}

/*
 * How many events it will live on, from its size alone; an unknown block is long-lived.
 * One that is overdue lives on for a quarter of its age.
 */
static inline u64 life_rest(const struct buddy *b, const struct lifetime *life)
{
	u64 whole, age;

	if (!life)
		return U64_MAX;
	whole = life_of_size(b, life->n);
	age = life_age(b, life);
	return whole > age ? whole - age : age / 4;
}

/* A big block is made; it is accounted for. */
static noinline void life_begins(struct buddy *b, u64 lo, u64 n)
{
	u64 begins = lo >> b->life_shift, ends = (lo + n - 1) >> b->life_shift;
	struct lifetime *life = &b->lifetimes[begins];

	/* of a range of 2^32 granules that is one block nothing is known: n is 0 */
	life->lo = lo;
	life->n = n;
	life->key = life_key(b, n);
	b->lifetimes[ends].begins = begins;
	life_event(b, class_of(n));
	life->born = b->now;
	if (n >= b->large)
		b->large_at = b->now;
}

/* It is given back. What is not given back as it was made teaches nothing. */
static noinline void life_ends(struct buddy *b, u64 lo, u64 n)
{
	struct lifetime *life = &b->lifetimes[lo >> b->life_shift];
	unsigned int class, faded;
	u8 *history;
	u64 age;

	if (life->n != n || life->lo != lo)
		return;
	life->n = 0;
	life_event(b, EVENT_ENDS | class_of(n));
	age = life_age(b, life);
	class = class_of(age);
	history = &b->histories[life->key];
	faded = *history - min_t(unsigned int, *history, HISTORY_FADES);
	*history = max(class, faded);
	if (b->nr_ended == LIFE_MEAN)
		b->sum -= b->sum / LIFE_MEAN;
	else
		b->nr_ended++;
	b->sum += min(age * n, AREA_MAX);
}

/* What begins at @lo now is no block of a request. */
static inline void life_forget(struct buddy *b, u64 lo)
{
	struct lifetime *life = &b->lifetimes[lo >> b->life_shift];

	if (life->lo == lo)
		life->n = 0;
}
