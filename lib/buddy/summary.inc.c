// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A bitmap with a summary: a bit for each piece of the range, above it a bit for each
 * of its words that is not 0, and so on up to one word. There is one for each class of
 * size that has no list, and one for the order cache.
 */

/*
 * Levels of the map of 2^26 pieces. What is on the stack is small: many kernels
 * clear it at each call.
 */
#define STARTS_LEVELS 5

/**
 * struct summary - such a bitmap, from a level up
 * @words: its words, below the topmost level
 * @nr: how many of this level; the topmost has one, which is in the instance
 */
struct summary {
	u64 *words;
	u64 nr;
};

/* Words of one for so many pieces, but for the topmost */
static inline u64 summary_words(u64 pieces)
{
	u64 words = words_for(pieces), sum = 0;

	for (; words > 1; words = words_for(words))
		sum += words;
	return sum;
}

static inline struct summary summary_above(struct summary p)
{
	p.words += p.nr;
	p.nr = words_for(p.nr);
	return p;
}

/* Something begins in piece @at. Was there nothing before in any? */
static inline bool summary_add(struct summary p, u64 *top, u64 at)
{
	u64 old;

	for (; p.nr > 1; p = summary_above(p)) {
		old = p.words[at >> WORD_SHIFT];
		p.words[at >> WORD_SHIFT] = old | 1ull << (at & WORD_MASK);
		if (old)
			return false;
		at >>= WORD_SHIFT;
	}
	old = *top;
	*top = old | 1ull << at;
	return !old;
}

/* Nothing does any more, if @gone. Is there nothing left in any? */
static inline bool summary_del(struct summary p, u64 *top, u64 at, bool gone)
{
	u64 bit = gone;

	for (; p.nr > 1; p = summary_above(p)) {
		p.words[at >> WORD_SHIFT] &= ~(bit << (at & WORD_MASK));
		if (p.words[at >> WORD_SHIFT])
			return false;
		at >>= WORD_SHIFT;
	}
	*top &= ~(bit << at);
	return !*top;
}

/* The first piece from @at to @most in which something begins; NOWHERE */
static inline u64 summary_next(struct summary p, const u64 *top, u64 at,
			       u64 most)
{
	const u64 *level[STARTS_LEVELS];
	unsigned int n = 0;
	u64 word;

	for (; at <= most >> map_shift(n); p = summary_above(p)) {
		level[n] = p.nr > 1 ? p.words : top;
		word = level[n][at >> WORD_SHIFT] & mask_from(at);
		if (!word) {
			at = (at >> WORD_SHIFT) + 1;
			n++;
			continue;
		}
		at = (at & ~(u64)WORD_MASK) + __ffs64(word);
		while (n--)
			at = (at << WORD_SHIFT) + __ffs64(level[n][at]);
		return at <= most ? at : NOWHERE;
	}
	return NOWHERE;
}
