// SPDX-License-Identifier: GPL-2.0
/*
 * Adapter of the kernel's genalloc, with first fit and with best fit. genalloc returns
 * address 0 on failure, so the range starts at an address equal to its size: this
 * address has every alignment.
 */
#include <linux/err.h>
#include <linux/genalloc.h>
#include <linux/log2.h>

#include "play.h"

#define BASE BENCH_RANGE

static void *create(void)
{
	struct gen_pool *pool = gen_pool_create(ilog2(BENCH_GRANULE), -1);
	int err;

	if (!pool)
		return ERR_PTR(-ENOMEM);
	err = gen_pool_add(pool, BASE, BENCH_RANGE, -1);
	if (!err)
		return pool;
	gen_pool_destroy(pool);
	return ERR_PTR(err);
}

static void destroy(void *instance)
{
	gen_pool_destroy(instance);
}

static __always_inline bool alloc_by(void *instance, u64 size,
				     union bench_block *block,
				     genpool_algo_t algo, void *data)
{
	block->start = gen_pool_alloc_algo(instance, size, algo, data);
	if (!block->start)
		return false;
	block->size = size;
	return true;
}

static bool alloc_first(void *instance, u64 size, u64 align,
			union bench_block *block)
{
	struct genpool_data_align data = { .align = align };

	if (align == BENCH_GRANULE)
		return alloc_by(instance, size, block, gen_pool_first_fit,
				NULL);
	return alloc_by(instance, size, block, gen_pool_first_fit_align,
			&data);
}

static bool alloc_best(void *instance, u64 size, u64 align,
		       union bench_block *block)
{
	return alloc_by(instance, size, block, gen_pool_best_fit, NULL);
}

static void free_block(void *instance, union bench_block *block)
{
	if (!block->size)
		return;
	gen_pool_free(instance, block->start, block->size);
	block->size = 0;
}

static void play_first(struct bench_run *run)
{
	bench_play(run, alloc_first, free_block);
}

static void play_best(struct bench_run *run)
{
	bench_play(run, alloc_best, free_block);
}

static u64 start(const union bench_block *block)
{
	return block->start - BASE;
}

const struct bench_impl bench_genalloc_first = {
	.name = "genalloc-first",
	.align_max = BIT_ULL(30),
	.create = create,
	.destroy = destroy,
	.play = play_first,
	.alloc = alloc_first,
	.free = free_block,
	.start = start,
};

const struct bench_impl bench_genalloc_best = {
	.name = "genalloc-best",
	.align_max = BENCH_GRANULE,
	.create = create,
	.destroy = destroy,
	.play = play_best,
	.alloc = alloc_best,
	.free = free_block,
	.start = start,
};
