// SPDX-License-Identifier: MIT
/*
 * Many buffers in one ioctl, and what that means for what is mapped.
 *
 * Locking: accmem_context.lock, so that nothing is mapped at an address between
 * its FREE and the end of the old mapping.
 */
#include <errno.h>
#include <stddef.h>

#include "core/internal.h"

static int run_batch(struct accmem_context *ctx, struct accmem_batch *batch,
		     uint32_t *done)
{
	int ret;

	batch->size = sizeof(*batch);
	ret = accmem_call(ctx, ACCMEM_IOC_BATCH, batch);
	if (done)
		*done = batch->done;
	return ret;
}

static void free_one(struct accmem_context *ctx, uint64_t address)
{
	struct accmem_free req = { .size = sizeof(req), .address = address };

	accmem_call(ctx, ACCMEM_IOC_FREE, &req);
}

/*
 * What is mapped at the addresses of new buffers belongs to old ones, freed
 * behind our back: see accmem_allocate(). A buffer whose address cannot be
 * cleared of it goes.
 */
static void drop_stale(struct accmem_context *ctx,
		       struct accmem_batch_alloc *entries, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (entries[i].result)
			continue;
		entries[i].result = accmem_unmap_range(ctx, entries[i].address,
						       entries[i].footprint);
		if (entries[i].result)
			free_one(ctx, entries[i].address);
	}
}

/* The first error in the results of an atomic batch, whose buffers go then. */
static int undo_if_one_failed(struct accmem_context *ctx,
			      const struct accmem_batch_alloc *entries,
			      uint32_t count, uint32_t *done)
{
	uint32_t i, bad;

	for (bad = 0; bad < count && !entries[bad].result; bad++)
		;
	if (bad == count)
		return 0;
	for (i = 0; i < count; i++) {
		if (!entries[i].result)
			free_one(ctx, entries[i].address);
	}
	if (done)
		*done = bad;
	return entries[bad].result;
}

int accmem_allocate_many(struct accmem_context *ctx, uint32_t flags,
			 struct accmem_batch_alloc *entries, uint32_t count,
			 uint32_t *done)
{
	struct accmem_batch batch = {
		.flags = flags,
		.op = ACCMEM_BATCH_ALLOC,
		.count = count,
		.entries = (uintptr_t)entries,
		.entry_size = sizeof(*entries),
	};
	int ret;

	ret = run_batch(ctx, &batch, done);
	if (ret && flags & ACCMEM_BATCH_ATOMIC)
		return ret;
	pthread_mutex_lock(&ctx->lock);
	drop_stale(ctx, entries, batch.done);
	pthread_mutex_unlock(&ctx->lock);
	if (flags & ACCMEM_BATCH_ATOMIC)
		ret = undo_if_one_failed(ctx, entries, count, done);
	return ret;
}

int accmem_release_many(struct accmem_context *ctx, uint32_t flags,
			struct accmem_batch_free *entries, uint32_t count,
			uint32_t *done)
{
	struct accmem_batch batch = {
		.flags = flags,
		.op = ACCMEM_BATCH_FREE,
		.count = count,
		.entries = (uintptr_t)entries,
		.entry_size = sizeof(*entries),
	};
	uint32_t i;
	int ret;

	pthread_mutex_lock(&ctx->lock);
	ret = run_batch(ctx, &batch, done);
	if (ret && flags & ACCMEM_BATCH_ATOMIC)
		goto unlock;
	/* also where another process that shares the context was faster */
	for (i = 0; i < batch.done; i++) {
		if (!entries[i].result || entries[i].result == -ENOENT)
			accmem_unmap_locked(ctx, entries[i].address);
	}
unlock:
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}
