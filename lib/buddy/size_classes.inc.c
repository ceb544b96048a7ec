// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Size classes: the words in which free runs of each class begin.
 *
 * Most classes have a bitmap of words. The classes of 128 granules and more have a list
 * of words instead, the latest first. The lists need no metadata: the second word of
 * such a run is a free leaf of the map, and its 64 bits hold the links.
 */

/*
 * Class of a size: one for each size below 8, then four for each power of two. The
 * class of a run is unpredictable, so there is no branch.
 */
static inline unsigned int class_of(u64 n)
{
	unsigned int shift = fls64(n | 4) - 3;

	return (shift << 2) + (n >> shift);
}

/* The least size of a class */
static inline u64 class_size(unsigned int class)
{
	unsigned int shift = max(class >> 2, 1u) - 1;

	return (u64)(class - (shift << 2)) << shift;
}

/* A shorter run may not cover a word of its own. */
static_assert(4 << ((CLASS_LISTED >> 2) - 1) >= 2 << WORD_SHIFT);

static inline bool class_is_listed(unsigned int class)
{
	return class >= CLASS_LISTED;
}

static inline bool class_present(const struct buddy *b, unsigned int class)
{
	return b->classes[class >> WORD_SHIFT] >> (class & WORD_MASK) & 1;
}

/* The first class from @class on that has a run; CLASSES if none */
static inline unsigned int class_next(const struct buddy *b, unsigned int class)
{
	unsigned int i = class >> WORD_SHIFT;
	u64 word = b->classes[i] & ~0ull << (class & WORD_MASK);

	while (!word) {
		if (++i == ARRAY_SIZE(b->classes))
			return CLASSES;
		word = b->classes[i];
	}
	return (i << WORD_SHIFT) + __ffs64(word);
}

static inline struct summary class_summary(const struct buddy *b,
					   unsigned int class)
{
	u64 *words = b->index + b->stride * (class - 1);

	return (struct summary){ words, words_for(words_for(b->nr)) };
}

static inline void class_set(struct buddy *b, unsigned int class, bool present)
{
	u64 *word = &b->classes[class >> WORD_SHIFT];

	*word = with_bits(*word, 1ull << (class & WORD_MASK), present);
}

/* Record that a run of the class begins in word @at. */
static __always_inline void class_word_add(struct buddy *b, unsigned int class,
					   u64 at)
{
	if (summary_add(class_summary(b, class), &b->starts[class], at))
		class_set(b, class, true);
}

/* Record that no run of the class begins in word @at any more, if @gone. */
static __always_inline void class_word_del(struct buddy *b, unsigned int class,
					   u64 at, bool gone)
{
	if (summary_del(class_summary(b, class), &b->starts[class], at, gone))
		class_set(b, class, false);
}

/* Lists */

#define NO_WORD U32_MAX /* no word; there are 2^26 at most */

static inline void class_list_init(struct buddy *b)
{
	unsigned int i;

	for (i = 0; i < CLASSES; i++)
		b->first[i] = NO_WORD;
}

/* The words of the runs before and after the run that begins in word @i */
static inline u32 class_list_prev(const struct buddy *b, u64 i)
{
	return b->used.words[i + 1] >> 32;
}

static inline u32 class_list_next(const struct buddy *b, u64 i)
{
	return b->used.words[i + 1];
}

static inline void class_list_link(struct buddy *b, u64 i, u32 prev, u32 next)
{
	b->used.words[i + 1] = (u64)prev << 32 | next;
}

/*
 * Add the run that begins in word @i to the list of its class; the map is up to date.
 */
static void class_list_add(struct buddy *b, unsigned int class, u32 i)
{
	u32 next = b->first[class];

	class_list_link(b, i, NO_WORD, next);
	if (next != NO_WORD)
		class_list_link(b, next, i, class_list_next(b, next));
	b->first[class] = i;
	class_set(b, class, true);
}

/* Remove a run from its list. Called before the map changes. */
static void class_list_del(struct buddy *b, unsigned int class, u32 i)
{
	u32 prev = class_list_prev(b, i), next = class_list_next(b, i);

	if (next != NO_WORD)
		class_list_link(b, next, prev, class_list_next(b, next));
	if (prev != NO_WORD) {
		class_list_link(b, prev, class_list_prev(b, prev), next);
		return;
	}
	b->first[class] = next;
	if (next == NO_WORD)
		class_set(b, class, false);
}
