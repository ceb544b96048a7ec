// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * How the metadata of a range is divided: how many words each structure has, and where
 * they are.
 */

/* At least 1: what a word has when it is all free is not what its bits say. */
static unsigned int metadata_map_top(u64 nr)
{
	unsigned int level = 1;

	for (nr = words_for(words_for(nr)); nr > MAP_TOP_WORDS;
	     nr = words_for(nr))
		level++;
	return level;
}

static unsigned int metadata_top(u64 nr)
{
	unsigned int level = 1;

	while (mark_span(level) < nr)
		level++;
	return level;
}

/* Words of the bitmap of one class */
static u64 metadata_class_words(u64 nr)
{
	return summary_words(words_for(nr));
}

/* Words of the order cache's hash, its starts, and how many a part has of them */
static u64 kept_hash_words(u64 nr)
{
	return DIV_ROUND_UP(sizeof(u16) << kept_hash_shift(nr), sizeof(u64));
}

static u64 kept_start_words(u64 nr)
{
	return 1ull << kept_start_shift(nr);
}

static u64 kept_count_words(u64 nr)
{
	return DIV_ROUND_UP(kept_parts(nr), sizeof(u64));
}

/* Words of the order cache's blocks; id 0 is no block, but is written to */
static u64 kept_list_words(u64 nr)
{
	u64 ids = kept_room(parked_room(nr)) + 1;
	u64 size = ids * sizeof(struct kept_block);

	return parked_room(nr) ? DIV_ROUND_UP(size, sizeof(u64)) : 0;
}

/* Words of metadata that are read before they are written */
static u64 metadata_zeroed_words(u64 nr)
{
	u64 words = words_for(nr), sum = words_for(words) + 1, n = words;
	unsigned int level;

	for (level = 1; level <= metadata_map_top(nr); level++) {
		n = words_for(n);
		sum += 2 * n;
	}
	sum += metadata_class_words(nr) * (CLASS_LISTED - 1);
	for (level = 0; level < metadata_top(nr); level++)
		sum += mark_family_count(nr, level) / 2; /* longest runs */
	if (parked_room(nr))
		sum += kept_hash_words(nr) + kept_start_words(nr) +
		       kept_count_words(nr) + summary_words(kept_parts(nr));
	return sum;
}

/* Words of metadata: what metadata_lay_out() divides */
static u64 metadata_words(u64 nr)
{
	u64 sum = metadata_zeroed_words(nr) + words_for(nr) +
		  mark_family_count(nr, 0);
	unsigned int level;

	sum += kept_list_words(nr);
	for (level = 1; level < metadata_top(nr); level++)
		sum += mark_family_count(nr, level) / 2; /* marks */
	return sum;
}

/* First what has to be zero, then what something above speaks for at first */
static void metadata_lay_out(struct buddy *b, u64 *meta)
{
	u64 words = words_for(b->nr), n = words;
	unsigned int level;

	for (level = 1; level <= b->map_top; level++) {
		n = words_for(n);
		b->state[level] = (struct map_state *)meta;
		meta += 2 * n;
	}
	b->continued = meta;
	meta += words_for(words);
	b->index = meta;
	b->stride = metadata_class_words(b->nr);
	meta += b->stride * (CLASS_LISTED - 1);
	for (level = 0; level < b->top; level++) {
		b->longest[level] = (u32 *)meta;
		meta += mark_family_count(b->nr, level) / 2;
	}
	b->longest[level] = (u32 *)meta++;
	if (b->room) {
		b->kept_hash = (u16 *)meta;
		meta += kept_hash_words(b->nr);
		b->kept_starts = meta;
		meta += kept_start_words(b->nr);
		b->kept_count = (u8 *)meta;
		meta += kept_count_words(b->nr);
		b->kept_index = meta;
		meta += summary_words(kept_parts(b->nr));
	}
	b->used = meta;
	meta += words;
	b->dirty = meta;
	meta += mark_family_count(b->nr, 0);
	for (level = 1; level < b->top; level++) {
		b->marks[level] = (u32 *)meta;
		meta += mark_family_count(b->nr, level) / 2;
	}
	b->kept = (struct kept_block *)meta;
}
