// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * How the metadata of a range is divided. First what has to be zero; then what is
 * written before it is read, or something above speaks for at first.
 */
enum metadata_part {
	METADATA_USED_STATES,
	METADATA_DIRTY_STATES,
	METADATA_FULL_STATES,
	METADATA_CONTINUED,
	METADATA_CLASSES,
	METADATA_LONGEST,
	METADATA_KEPT_HASH,
	METADATA_KEPT_BITS,
	METADATA_KEPT_COUNT,
	METADATA_KEPT_INDEX,
	METADATA_ZEROED,
	METADATA_USED = METADATA_ZEROED,
	METADATA_DIRTY,
	METADATA_FULL,
	METADATA_KEPT,
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

/* Words of a part */
static u64 metadata_part_words(u64 nr, enum metadata_part part)
{
	u64 ids = kept_room(parked_room(nr));

	switch (part) {
	case METADATA_USED_STATES:
	case METADATA_DIRTY_STATES:
		return 2 * map_states(nr);
	case METADATA_FULL_STATES:
		return 2 * map_states(owner_units(nr));
	case METADATA_CONTINUED:
		return words_for(words_for(nr));
	case METADATA_CLASSES:
		return (CLASS_LISTED - 1) * summary_words(words_for(nr));
	case METADATA_LONGEST:
		return metadata_longest_words(nr);
	case METADATA_KEPT_HASH:
		return ids ? DIV_ROUND_UP(2ul << kept_hash_shift(nr), 8) : 0;
	case METADATA_KEPT_BITS:
		return ids ? 1ull << kept_bits_shift(nr) : 0;
	case METADATA_KEPT_COUNT:
		return ids ? DIV_ROUND_UP(kept_parts(nr), 8) : 0;
	case METADATA_KEPT_INDEX:
		return ids ? summary_words(kept_parts(nr)) : 0;
	case METADATA_USED:
	case METADATA_DIRTY:
		return words_for(nr);
	case METADATA_FULL:
		return words_for(owner_units(nr));
	default: /* id 0 is no block, but is written to */
		ids += ids ? 1 : 0;
		return DIV_ROUND_UP(ids * sizeof(struct kept_block), 8);
	}
}

/* Words of all parts before @end */
static u64 metadata_words(u64 nr, enum metadata_part end)
{
	unsigned int part;
	u64 sum = 0;

	for (part = 0; part < end; part++)
		sum += metadata_part_words(nr, part);
	return sum;
}

static void metadata_lay_out(struct buddy *b, u64 *meta)
{
	u64 *at[METADATA_PARTS];
	unsigned int part, level;
	u32 *longest;

	for (part = 0; part < METADATA_PARTS; part++) {
		at[part] = meta;
		meta += metadata_part_words(b->nr, part);
	}
	map_init(&b->used, b->nr, (struct map_state *)at[METADATA_USED_STATES],
		 at[METADATA_USED]);
	map_init(&b->dirty, b->nr,
		 (struct map_state *)at[METADATA_DIRTY_STATES],
		 at[METADATA_DIRTY]);
	map_init(&b->full, owner_units(b->nr),
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
	b->kept_hash = (u16 *)at[METADATA_KEPT_HASH];
	b->kept_bits = at[METADATA_KEPT_BITS];
	b->kept_count = (u8 *)at[METADATA_KEPT_COUNT];
	b->kept_index = at[METADATA_KEPT_INDEX];
	b->kept = (struct kept_block *)at[METADATA_KEPT];
}
