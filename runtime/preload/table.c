// SPDX-License-Identifier: MIT
/*
 * The descriptors of blocks: found by address, and in order of age those that
 * are cached.
 *
 * Owns them all, in static memory of which a program touches what it uses, since
 * whoever provides malloc() cannot call it. A reallocation or a free finds a
 * block by its first byte only: it gets no other.
 *
 * Locking: the heap's lock, held by the caller.
 */
#include <stdlib.h>

#include "preload.h"

#define BUCKETS 16384u /* a power of two */

static struct block blocks[BLOCKS_MAX];
static uint32_t used; /* descriptors from here on were never in use */
static uint32_t unused_plus_1; /* a list of those that are not in use */
static uint32_t bucket_plus_1[BUCKETS]; /* 0: empty, so static memory will do */
static uint32_t oldest_plus_1, newest_plus_1;
size_t cache_bytes;

static uint32_t table_index(const struct block *block)
{
	return block ? block - blocks : NO_BLOCK;
}

static struct block *table_at(uint32_t index)
{
	return index == NO_BLOCK ? NULL : &blocks[index];
}

static uint32_t *table_bucket(const void *pointer)
{
	uint64_t key = (uintptr_t)pointer / GRANULE;

	return &bucket_plus_1[key * 0x9e3779b97f4a7c15ull >> 50];
}

struct block *table_new(void)
{
	struct block *block;

	if (unused_plus_1) {
		block = &blocks[unused_plus_1 - 1];
		unused_plus_1 = block->next + 1;
	} else if (used < BLOCKS_MAX) {
		block = &blocks[used++];
	} else {
		return NULL;
	}
	*block = (struct block){ .state = BLOCK_UNUSED };
	return block;
}

void table_delete(struct block *block)
{
	block->state = BLOCK_UNUSED;
	block->next = unused_plus_1 - 1;
	unused_plus_1 = table_index(block) + 1;
}

void table_insert(struct block *block)
{
	uint32_t *bucket = table_bucket(block->start);

	block->next = *bucket - 1;
	*bucket = table_index(block) + 1;
}

void table_remove(struct block *block)
{
	uint32_t *bucket = table_bucket(block->start);
	struct block *previous = table_at(*bucket - 1);

	if (previous == block) {
		*bucket = block->next + 1;
		return;
	}
	while (table_at(previous->next) != block)
		previous = table_at(previous->next);
	previous->next = block->next;
}

struct block *table_find(const void *pointer)
{
	struct block *block = table_at(*table_bucket(pointer) - 1);

	while (block && block->start != pointer)
		block = table_at(block->next);
	return block;
}

struct block *table_next(struct block *block)
{
	uint32_t i = block ? table_index(block) + 1 : 0;

	while (i < used && blocks[i].state == BLOCK_UNUSED)
		i++;
	return i < used ? &blocks[i] : NULL;
}

void cache_push(struct block *block)
{
	block->state = BLOCK_CACHED;
	block->older = newest_plus_1 - 1;
	block->newer = NO_BLOCK;
	if (newest_plus_1)
		blocks[newest_plus_1 - 1].newer = table_index(block);
	else
		oldest_plus_1 = table_index(block) + 1;
	newest_plus_1 = table_index(block) + 1;
	cache_bytes += block->length;
}

void cache_remove(struct block *block)
{
	if (block->older == NO_BLOCK)
		oldest_plus_1 = block->newer + 1;
	else
		blocks[block->older].newer = block->newer;
	if (block->newer == NO_BLOCK)
		newest_plus_1 = block->older + 1;
	else
		blocks[block->newer].older = block->older;
	cache_bytes -= block->length;
}

struct block *cache_oldest(void)
{
	return table_at(oldest_plus_1 - 1);
}

/*
 * The most recent one that is large enough, aligned, and wastes an eighth at
 * most. That many are looked at: a long list of others costs more than a call.
 */
struct block *cache_find(size_t length, size_t alignment)
{
	struct block *block = table_at(newest_plus_1 - 1);
	unsigned int looks = 64;

	for (; block && looks--; block = table_at(block->older))
		if (block->length >= length &&
		    block->length - length <= length / 8 &&
		    (uintptr_t)block->start % alignment == 0)
			return block;
	return NULL;
}
