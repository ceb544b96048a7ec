// SPDX-License-Identifier: GPL-2.0
/*
 * Adapter of gpu_buddy, the buddy allocator of the kernel's graphics drivers. It calls
 * gpu_buddy as these drivers do: contiguous, or with as many blocks as necessary.
 */
#include <linux/err.h>
#include <linux/gpu_buddy.h>

#include "play.h"

static void *create(void)
{
	struct gpu_buddy *mm = kzalloc(sizeof(*mm), GFP_KERNEL);
	int err;

	if (!mm)
		return ERR_PTR(-ENOMEM);
	err = gpu_buddy_init(mm, BENCH_RANGE, BENCH_GRANULE);
	if (!err)
		return mm;
	kfree(mm);
	return ERR_PTR(err);
}

static void destroy(void *instance)
{
	gpu_buddy_fini(instance);
	kfree(instance);
}

static __always_inline bool alloc_blocks(void *instance, u64 size, u64 align,
					 union bench_block *block,
					 unsigned long flags)
{
	INIT_LIST_HEAD(&block->list);
	if (!gpu_buddy_alloc_blocks(instance, 0, BENCH_RANGE, size, align,
				    &block->list, flags))
		return true;
	block->list.next = NULL;
	return false;
}

/*
 * In contiguous mode, gpu_buddy uses the size as the alignment. If the alignment is
 * larger than the size, the adapter uses the other mode: gpu_buddy then allocates one
 * block as large as the alignment, and frees the rest of the block at once.
 */
static bool alloc(void *instance, u64 size, u64 align,
		  union bench_block *block)
{
	return alloc_blocks(instance, size, align, block,
			    align > size ? 0 : GPU_BUDDY_CONTIGUOUS_ALLOCATION);
}

static bool alloc_scattered(void *instance, u64 size, u64 align,
			    union bench_block *block)
{
	return alloc_blocks(instance, size, align, block, 0);
}

static void free_block(void *instance, union bench_block *block)
{
	if (!block->list.next)
		return;
	gpu_buddy_free_list(instance, &block->list, 0);
	block->list.next = NULL;
}

static void play(struct bench_run *run)
{
	bench_play(run, alloc, free_block);
}

static void play_scattered(struct bench_run *run)
{
	bench_play(run, alloc_scattered, free_block);
}

static u64 start(const union bench_block *block)
{
	return gpu_buddy_block_offset(list_first_entry(&block->list,
						       struct gpu_buddy_block,
						       link));
}

const struct bench_impl bench_gpu_buddy = {
	.name = "gpu_buddy",
	.align_max = BENCH_RANGE,
	.create = create,
	.destroy = destroy,
	.play = play,
	.alloc = alloc,
	.free = free_block,
	.start = start,
};

const struct bench_impl bench_gpu_buddy_scattered = {
	.name = "gpu_buddy-scattered",
	.align_max = BENCH_RANGE,
	.create = create,
	.destroy = destroy,
	.play = play_scattered,
	.alloc = alloc_scattered,
	.free = free_block,
	.start = start,
};
