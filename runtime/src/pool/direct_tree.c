// SPDX-License-Identifier: MIT
/*
 * The tree of a pool's direct allocations, by device address. A lookup finds an allocation
 * by any address inside it.
 *
 * Locking: accmem_pool.lock, held by all callers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <search.h>
#include <stdlib.h>

#include "core/context.h"
#include "core/walk.h"
#include "pool/base.h"
#include "pool/direct_tree.h"

/* Overlapping ranges compare as equal. Allocations in the tree do not overlap. */
static int compare(const void *left, const void *right)
{
	const struct pool_direct *a = left, *b = right;

	if (a->block.address + (a->extent - 1) < b->block.address)
		return -1;
	return b->block.address + (b->extent - 1) < a->block.address;
}

struct pool_direct *accmem_pool_direct_find_range(struct accmem_pool *pool,
						  uint64_t address,
						  uint64_t extent)
{
	const struct pool_direct key = { .block.address = address,
					 .extent = extent };
	void *node = tfind(&key, &pool->direct, compare);

	return node ? *(struct pool_direct **)node : NULL;
}

struct pool_direct *accmem_pool_direct_find(struct accmem_pool *pool,
					    const void *pointer)
{
	uint64_t address = accmem_pool_address(pool, pointer);

	return address ? accmem_pool_direct_find_range(pool, address, 1) : NULL;
}

int accmem_pool_direct_insert(struct accmem_pool *pool, struct pool_direct *d)
{
	if (!tsearch(d, &pool->direct, compare))
		return -ENOMEM;
	__atomic_fetch_add(&pool->ctx->reserved, d->reserve, __ATOMIC_RELAXED);
	return 0;
}

/* In a child of fork(), the parent's addresses stay reserved in their common context. */
void accmem_pool_direct_remove(struct accmem_pool *pool, struct pool_direct *d)
{
	tdelete(d, &pool->direct, compare);
	if (!d->inherited)
		__atomic_fetch_sub(&pool->ctx->reserved, d->reserve,
				   __ATOMIC_RELAXED);
}

void accmem_pool_direct_drop(struct accmem_pool *pool, struct pool_direct *d)
{
	accmem_pool_direct_remove(pool, d);
	free(d);
}

/* A new buffer has these addresses, so all earlier buffers there have been freed. */
void accmem_pool_direct_drop_range(struct accmem_pool *pool, uint64_t address,
				   uint64_t extent)
{
	struct pool_direct *d;

	while ((d = accmem_pool_direct_find_range(pool, address, extent)))
		accmem_pool_direct_drop(pool, d);
}

static void disown(void *record, void *none)
{
	struct pool_direct *d = record;

	(void)none;
	d->inherited = true;
}

void accmem_pool_direct_disown(struct accmem_pool *pool)
{
	accmem_walk(pool->direct, disown, NULL);
}

/**
 * struct visitor - the argument of visit_one()
 * @visit: called with each allocation
 * @argument: first argument of @visit
 */
struct visitor {
	pool_direct_visitor *visit;
	void *argument;
};

static void visit_one(void *record, void *argument)
{
	const struct pool_direct *d = record;
	const struct visitor *visitor = argument;

	if (!d->inherited)
		visitor->visit(visitor->argument, &d->block);
}

void accmem_pool_direct_visit(struct accmem_pool *pool,
			      pool_direct_visitor *visit, void *argument)
{
	struct visitor visitor = { .visit = visit, .argument = argument };

	accmem_walk(pool->direct, visit_one, &visitor);
}
