// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Layout of the metadata of a range.
 *
 * The parts before METADATA_ZEROED have to be zero at creation. The parts from it on
 * are written before they are read, or a summary above them is valid instead.
 */
enum metadata_part {
	METADATA_USED_STATES,
	METADATA_DIRTY_STATES,
	METADATA_FULL_STATES,
	METADATA_CONTINUED,
	METADATA_CLASSES,
	METADATA_LONGEST,
	METADATA_TRACKED_HASH,
	METADATA_TRACKED_BITS,
	METADATA_TRACKED_COUNT,
	METADATA_TRACKED_INDEX,
	METADATA_ZEROED,
	METADATA_USED = METADATA_ZEROED,
	METADATA_DIRTY,
	METADATA_FULL,
	METADATA_TRACKED,
	METADATA_PARTS,
};

static u64 metadata_longest_words(u64 nr)
{
	u64 sum = 1;
	unsigned int level;

	for (level = 0; level < longest_top(nr); level++)
		sum += longest_count(nr, level) / 2;
	return sum;
}

/* Words of all parts before @end */
static u64 metadata_words(u64 nr, enum metadata_part end)
{
	u64 words = words_for(nr), folios = owner_nr_folios(nr);
	u64 ids = tracked_room(cached_room(nr)), sum = 0;
	u64 each = !!ids; /* parts that only an order cache has */
	u64 tracked =
		(ids + each) * sizeof(struct tracked_block); /* and id 0 */
	const u64 parts[METADATA_PARTS] = {
		[METADATA_USED_STATES] = 2 * map_states(nr),
		[METADATA_DIRTY_STATES] = 2 * map_states(nr),
		[METADATA_FULL_STATES] = 2 * map_states(folios),
		[METADATA_CONTINUED] = words_for(words),
		[METADATA_CLASSES] = (CLASS_LISTED - 1) * summary_words(words),
		[METADATA_LONGEST] = metadata_longest_words(nr),
		[METADATA_TRACKED_HASH] =
			each * DIV_ROUND_UP(2ul << tracked_hash_shift(nr), 8),
		[METADATA_TRACKED_BITS] = each << tracked_bits_shift(nr),
		[METADATA_TRACKED_COUNT] =
			each * DIV_ROUND_UP(tracked_parts(nr), 8),
		[METADATA_TRACKED_INDEX] =
			each * summary_words(tracked_parts(nr)),
		[METADATA_USED] = words,
		[METADATA_DIRTY] = words,
		[METADATA_FULL] = words_for(folios),
		[METADATA_TRACKED] = DIV_ROUND_UP(tracked, 8),
	};
	unsigned int part;

	for (part = 0; part < end; part++)
		sum += parts[part];
	return sum;
}

static void metadata_lay_out(struct buddy *b, u64 *meta)
{
	u64 *at[METADATA_PARTS];
	unsigned int part, level;
	u32 *longest;

	for (part = 0; part < METADATA_PARTS; part++)
		at[part] = meta + metadata_words(b->nr, part);
	map_init(&b->used, b->nr, (struct map_state *)at[METADATA_USED_STATES],
		 at[METADATA_USED]);
	map_init(&b->dirty, b->nr,
		 (struct map_state *)at[METADATA_DIRTY_STATES],
		 at[METADATA_DIRTY]);
	map_init(&b->full, owner_nr_folios(b->nr),
		 (struct map_state *)at[METADATA_FULL_STATES],
		 at[METADATA_FULL]);
	b->continued = at[METADATA_CONTINUED];
	b->index = at[METADATA_CLASSES];
	b->stride = summary_words(words_for(b->nr));
	longest = (u32 *)at[METADATA_LONGEST];
	for (level = 0; level <= b->top; level++) {
		b->longest[level] = longest;
		longest += longest_count(b->nr, level);
	}
	b->tracked_hash = (u16 *)at[METADATA_TRACKED_HASH];
	b->tracked_bits = at[METADATA_TRACKED_BITS];
	b->tracked_count = (u8 *)at[METADATA_TRACKED_COUNT];
	b->tracked_index = at[METADATA_TRACKED_INDEX];
	b->tracked = (struct tracked_block *)at[METADATA_TRACKED];
}
