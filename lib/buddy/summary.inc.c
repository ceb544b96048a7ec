// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A bitmap with a summary.
 *
 * The bitmap has a bit for each piece of the range. Above it each level has a bit for
 * each word of the level below that is not 0, up to a level of one word. There is one
 * such bitmap for each class of size without a list, and one for the order cache.
 */

/*
 * Levels of a bitmap of 2^26 pieces. The array on the stack is small, because many
 * kernels clear the stack at each call.
 */
#define STARTS_LEVELS 5

/**
 * struct summary - such a bitmap, from a level up
 * @words: its words, below the topmost level
 * @nr: words of this level; the word of the topmost level is in the instance
 */
struct summary {
	u64 *words;
	u64 nr;
};

/* Words of a bitmap for @pieces pieces, without the topmost one */
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

/* Set the bit of piece @at. Returns true if no bit was set before. */
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

/* Clear the bit of piece @at, if @gone. Returns true if no bit is left. */
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

/*
 * The first piece from @at to @most whose bit is set; NOWHERE if there is none
 */
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
