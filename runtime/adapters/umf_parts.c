// SPDX-License-Identifier: MIT
/*
 * Parts of a pool's allocation (a block) that are allocations of the provider.
 *
 * A block is divided into a list of parts, in the order of their addresses. A part is
 * live or free. Free parts stay in the list, so that a second free is noticed and
 * the block's first byte is always that of a part. When the last live part is freed, the
 * parts are forgotten and the caller releases the block. Most allocations are a block of
 * their own and have no part.
 *
 * Locking: a mutex for the parts of a provider. No call of the pool is made under it.
 */
#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "umf_parts.h"

/**
 * struct umf_block - a block that has parts
 * @first: the first part
 * @live: number of live parts
 */
struct umf_block {
	struct umf_part *first;
	size_t live;
};

/**
 * struct umf_part - a part of a block
 * @start: its first byte
 * @size: bytes
 * @live: it is not freed
 * @block: its block
 * @next: the part behind it in the block
 */
struct umf_part {
	char *start;
	size_t size;
	bool live;
	struct umf_block *block;
	struct umf_part *next;
};

static int umf_compare(const void *a, const void *b)
{
	const struct umf_part *left = a, *right = b;

	return (left->start > right->start) - (left->start < right->start);
}

static struct umf_part *umf_find(struct umf_parts *parts, void *start)
{
	const struct umf_part key = { .start = start };
	struct umf_part **found = tfind(&key, &parts->root, umf_compare);

	return found ? *found : NULL;
}

/* Put a live part into the list of its block, behind @previous or first. */
static struct umf_part *umf_insert(struct umf_parts *parts,
				   struct umf_block *block,
				   struct umf_part *previous, char *start,
				   size_t size)
{
	struct umf_part **link = previous ? &previous->next : &block->first;
	struct umf_part *part = calloc(1, sizeof(*part));

	if (!part)
		return NULL;
	*part = (struct umf_part){ start, size, true, block, *link };
	if (!tsearch(part, &parts->root, umf_compare)) {
		free(part);
		return NULL;
	}
	*link = part;
	block->live++;
	atomic_fetch_add(&parts->count, 1);
	return part;
}

/* Remove the part that @link points to, from the list and the tree. */
static void umf_remove(struct umf_parts *parts, struct umf_part **link)
{
	struct umf_part *part = *link;

	*link = part->next;
	tdelete(part, &parts->root, umf_compare);
	atomic_fetch_sub(&parts->count, 1);
	free(part);
}

/* Forget a block and its parts. */
static void umf_forget(struct umf_parts *parts, struct umf_block *block)
{
	while (block->first)
		umf_remove(parts, &block->first);
	free(block);
}

void accmem_umf_parts_create(struct umf_parts *parts)
{
	pthread_mutex_init(&parts->lock, NULL);
	parts->root = NULL;
	atomic_init(&parts->count, 0);
}

void accmem_umf_parts_destroy(struct umf_parts *parts)
{
	while (parts->root)
		umf_forget(parts, (*(struct umf_part **)parts->root)->block);
	pthread_mutex_destroy(&parts->lock);
}

int accmem_umf_parts_add(struct umf_parts *parts, char *start, size_t gap,
			 size_t size)
{
	struct umf_block *block = calloc(1, sizeof(*block));
	struct umf_part *before = NULL, *part = NULL;

	if (!block)
		return -ENOMEM;
	pthread_mutex_lock(&parts->lock);
	if (gap)
		before = umf_insert(parts, block, NULL, start, gap);
	if (!gap || before)
		part = umf_insert(parts, block, before, start + gap, size);
	if (!part) {
		umf_forget(parts, block);
	} else if (before) {
		before->live = false;
		block->live--;
	}
	pthread_mutex_unlock(&parts->lock);
	return part ? 0 : -ENOMEM;
}

static int umf_split_part(struct umf_parts *parts, struct umf_part *part,
			  size_t total, size_t first)
{
	if (!part)
		return -ENOENT;
	if (!part->live || part->size != total || !first || first >= total)
		return -EINVAL;
	if (!umf_insert(parts, part->block, part, part->start + first,
			total - first))
		return -ENOMEM;
	part->size = first;
	return 0;
}

int accmem_umf_parts_split(struct umf_parts *parts, void *start, size_t total,
			   size_t first)
{
	int ret;

	pthread_mutex_lock(&parts->lock);
	ret = umf_split_part(parts, umf_find(parts, start), total, first);
	pthread_mutex_unlock(&parts->lock);
	return ret;
}

static int umf_merge_parts(struct umf_parts *parts, struct umf_part *low,
			   struct umf_part *high, size_t total)
{
	if (!low || !high || low->next != high)
		return -EOPNOTSUPP;
	if (!low->live || !high->live || low->size + high->size != total)
		return -EINVAL;
	low->block->live--;
	umf_remove(parts, &low->next);
	low->size = total;
	return 0;
}

int accmem_umf_parts_merge(struct umf_parts *parts, void *low, void *high,
			   size_t total)
{
	int ret;

	pthread_mutex_lock(&parts->lock);
	ret = umf_merge_parts(parts, umf_find(parts, low),
			      umf_find(parts, high), total);
	pthread_mutex_unlock(&parts->lock);
	return ret;
}

static int umf_free_part(struct umf_parts *parts, struct umf_part *part,
			 size_t size, void **block)
{
	if (!part)
		return -ENOENT;
	if (!part->live || (size && size != part->size))
		return -EINVAL;
	part->live = false;
	*block = NULL;
	if (!--part->block->live) {
		*block = part->block->first->start;
		umf_forget(parts, part->block);
	}
	return 0;
}

int accmem_umf_parts_free(struct umf_parts *parts, void *start, size_t size,
			  void **block)
{
	int ret;

	/* whoever has been given a part knows that there is one */
	if (!atomic_load(&parts->count))
		return -ENOENT;
	pthread_mutex_lock(&parts->lock);
	ret = umf_free_part(parts, umf_find(parts, start), size, block);
	pthread_mutex_unlock(&parts->lock);
	return ret;
}
