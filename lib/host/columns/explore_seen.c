// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The set of states that have been seen, as keys of 64 bits in an open hash
 * table: of 100 million states two have the same key with a probability of
 * 1 to 3,700.
 */
#include <stdlib.h>

#include "explore.h"

static u64 *seen;
static size_t seen_mask, seen_nr;

static void seen_put(u64 *table, size_t mask, u64 key)
{
	size_t at = key & mask;

	while (table[at])
		at = (at + 1) & mask;
	table[at] = key;
}

static void seen_grow(void)
{
	size_t i, old = seen ? seen_mask + 1 : 0, room = old ? old * 2 : 65536;
	u64 *table = calloc(room, sizeof(*table));

	if (!table)
		abort();
	for (i = 0; i < old; i++) {
		if (seen[i])
			seen_put(table, room - 1, seen[i]);
	}
	free(seen);
	seen = table;
	seen_mask = room - 1;
}

static u64 seen_mix(u64 key, u64 value)
{
	key = (key ^ value) * 0x9e3779b97f4a7c15ull;
	key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ull;
	return key ^ (key >> 31);
}

bool explore_remember(const struct packed *p)
{
	u64 key = 1;
	size_t at;
	u32 i;

	if (!seen || seen_nr * 4 > seen_mask * 3)
		seen_grow();
	for (i = 0; i < REFERENCE_CTAS; i++)
		key = seen_mix(key, p->cta[i]);
	key = key ?: 1;
	for (at = key & seen_mask; seen[at]; at = (at + 1) & seen_mask) {
		if (seen[at] == key)
			return false;
	}
	seen[at] = key;
	seen_nr++;
	return true;
}

size_t explore_seen(void)
{
	return seen_nr;
}

void explore_forget(void)
{
	free(seen);
	seen = NULL;
	seen_nr = 0;
}

void explore_keep(struct states *to, const struct packed *p)
{
	if (to->nr == to->room) {
		to->room = to->room ? to->room * 2 : 1024;
		to->at = realloc(to->at, to->room * sizeof(*to->at));
		if (!to->at)
			abort();
	}
	to->at[to->nr++] = *p;
}
