// SPDX-License-Identifier: GPL-2.0
/*
 * Adapter of lib/buddy. It calls the allocator as the driver does for a contiguous
 * buffer. The adapter takes no lock, and neither does the adapter of gpu_buddy: both
 * allocators leave the locking to their callers.
 */
#include <linux/err.h>
#include <linux/slab.h>

#include "play.h"
#include "lib/buddy/buddy.c"

struct instance {
	struct accmem_buddy buddy;
	void *meta;
};

static void destroy(void *instance)
{
	struct instance *in = instance;

	kvfree(in->meta);
	kfree(in);
}

static void *create(bool order_cache)
{
	struct instance *in = kzalloc(sizeof(*in), GFP_KERNEL);
	int err = -ENOMEM;

	if (!in)
		return ERR_PTR(-ENOMEM);
	in->meta = kvzalloc(accmem_buddy_meta_size(BENCH_RANGE), GFP_KERNEL);
	if (in->meta)
		err = accmem_buddy_init(&in->buddy, BENCH_RANGE, in->meta);
	if (err) {
		destroy(in);
		return ERR_PTR(err);
	}
	accmem_buddy_set_cache(&in->buddy, order_cache);
	return in;
}

static void *create_with_cache(void)
{
	return create(true);
}

static void *create_without_cache(void)
{
	return create(false);
}

static bool alloc(void *instance, u64 size, u64 align,
		  union bench_block *block)
{
	struct accmem_buddy_request req = { .size = size, .align = align };
	struct instance *in = instance;

	u64 cursor = 0;
	int err;

	err = accmem_buddy_alloc(&in->buddy, &req, &block->start);
	while (err == -EAGAIN)
		err = accmem_buddy_alloc_scan(&in->buddy, &req, &cursor,
					      &block->start);
	if (err)
		return false;
	block->size = size;
	return true;
}

static void free_block(void *instance, union bench_block *block)
{
	struct instance *in = instance;

	if (!block->size)
		return;
	WARN_ON_ONCE(accmem_buddy_free(&in->buddy, block->start, block->size));
	block->size = 0;
}

static void play(struct bench_run *run)
{
	bench_play(run, alloc, free_block);
}

static u64 start(const union bench_block *block)
{
	return block->start;
}

const struct bench_impl bench_accmem = {
	.name = "accmem",
	.align_max = BENCH_RANGE,
	.create = create_with_cache,
	.destroy = destroy,
	.play = play,
	.alloc = alloc,
	.free = free_block,
	.start = start,
};

const struct bench_impl bench_accmem_nocache = {
	.name = "accmem-nocache",
	.align_max = BENCH_RANGE,
	.create = create_without_cache,
	.destroy = destroy,
	.play = play,
	.alloc = alloc,
	.free = free_block,
	.start = start,
};

/* Create the range as the driver creates the range of a carveout. */
int bench_create_range(u64 size, u64 *ns)
{
	struct accmem_buddy *b = kzalloc(sizeof(*b), GFP_KERNEL);
	int err = -ENOMEM;
	void *meta;

	*ns = bench_ns();
	meta = kvmalloc(accmem_buddy_meta_size(size), GFP_KERNEL);
	if (b && meta) {
		memset(meta, 0, accmem_buddy_meta_zeroed(size));
		err = accmem_buddy_init(b, size, meta);
	}
	*ns = bench_ns() - *ns;
	kvfree(meta);
	kfree(b);
	return err;
}
