// SPDX-License-Identifier: GPL-2.0
/*
 * Memory taken ahead of growth.
 *
 * A buffer with a reservation grows in steps. After a small one, the rest of the
 * 2 MiB that its memory ends in is taken for it, where all of it is free and reads
 * as zero: the next steps find it there, and need not look for it, nor at what has
 * to be cleared. Where folios have owners, this is memory that no other context
 * could have.
 *
 * It is a memory of its own, charged and live, but counted with what caches hold: it
 * is free to all who ask, and is given back before anybody is told that there is
 * none.
 *
 * Locks: the context's lock guards what is ahead of its buffers, which anybody may
 * take away; the carveout's is taken below it.
 */
#include <linux/kernel.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "memory/resize.h"
#include "memory/runs.h"
#include "vm/context.h"
#include "vm/prealloc.h"
#include "waitq/waiters.h"

/* More than a few of these use up what is ahead before it pays. */
#define AHEAD_STEP_MAX (ACCMEM_FOLIO / 8)

/* @nr more, or fewer, of @bytes together */
static void ahead_count(struct accmem_context *ctx, struct accmem_carveout *cv,
			int nr, s64 bytes)
{
	lockdep_assert_held(&ctx->lock);
	WRITE_ONCE(ctx->nr_ahead, ctx->nr_ahead + nr);
	accmem_holding_count_cached(ctx, cv, bytes);
}

static struct accmem_ahead *ahead_alloc(struct accmem_memory *mem)
{
	struct accmem_ahead *ahead =
		kmalloc(sizeof(*ahead), GFP_KERNEL_ACCOUNT);

	if (!ahead)
		return NULL;
	ahead->mem = accmem_memory_create_empty(mem->account, mem->cv, 0);
	if (ahead->mem)
		return ahead;
	kfree(ahead);
	return NULL;
}

/* of no memory */
static void ahead_free(struct accmem_ahead *ahead)
{
	if (ahead->mem->size)
		accmem_memory_put(ahead->mem);
	else
		accmem_memory_destroy_empty(ahead->mem);
	kfree(ahead);
}

static void ahead_unlink(struct accmem_context *ctx, struct accmem_ahead *ahead)
{
	lockdep_assert_held(&ctx->lock);
	list_del(&ahead->link);
	WRITE_ONCE(ahead->of->ahead, NULL);
	ahead_count(ctx, ahead->mem->cv, -1, -(s64)ahead->mem->size);
}

/* bytes to the end of the 2 MiB, or of the reservation */
static u64 ahead_size(const struct accmem_buffer *buf)
{
	struct accmem_memory *mem = accmem_buffer_memory(buf);
	const struct accmem_run *last = accmem_runs_last(mem);
	u64 rest = -(last->start + last->size) & (ACCMEM_FOLIO - 1);
	u64 room = buf->reserve > mem->size ? buf->reserve - mem->size : 0;

	return min(rest, room & ~(ACCMEM_GRANULE - 1));
}

/* @mem's from here on, unless somebody else has it or waits for it */
static bool ahead_fill(struct accmem_context *ctx, struct accmem_memory *mem,
		       struct accmem_ahead *ahead, u64 size)
{
	int err;

	lockdep_assert_held(&ctx->lock);
	if (accmem_waiters_present())
		return false;
	/* before: who finds it gone looks for it here, and waits for the lock */
	ahead_count(ctx, mem->cv, 1, size);
	err = accmem_run_take_ahead(mem, size, ahead->mem);
	if (err) {
		ahead_count(ctx, mem->cv, -1, -(s64)size);
		return false;
	}
	ahead->of = mem;
	WRITE_ONCE(mem->ahead, ahead);
	list_add(&ahead->link, &ctx->ahead);
	return true;
}

/* the one that was taken first, when there are too many */
static struct accmem_ahead *ahead_evict(struct accmem_context *ctx)
{
	struct accmem_ahead *oldest;

	lockdep_assert_held(&ctx->lock);
	if (ctx->nr_ahead <= ACCMEM_AHEAD_BUFFERS)
		return NULL;
	oldest = list_last_entry(&ctx->ahead, struct accmem_ahead, link);
	ahead_unlink(ctx, oldest);
	return oldest;
}

/**
 * accmem_ahead_take() - take memory ahead of the growth of a buffer
 * @ctx: the context
 * @buf: the buffer, which the caller alone resizes, and which has nothing ahead
 * @step: bytes that it has just grown by. Sleeps.
 *
 * Nothing is taken where it is of no use, or would cost anybody anything.
 */
void accmem_ahead_take(struct accmem_context *ctx, struct accmem_buffer *buf,
		       u64 step)
{
	struct accmem_memory *mem = accmem_buffer_memory(buf);
	struct accmem_ahead *ahead, *unused;
	u64 size = ahead_size(buf);

	if (step > AHEAD_STEP_MAX || size < step || accmem_waiters_present())
		return;
	ahead = ahead_alloc(mem);
	if (!ahead)
		return;
	spin_lock(&ctx->lock);
	unused = ahead_fill(ctx, mem, ahead, size) ? ahead_evict(ctx) : ahead;
	spin_unlock(&ctx->lock);
	if (unused)
		ahead_free(unused);
}

/**
 * accmem_ahead_use() - let a memory grow by what was taken ahead
 * @ctx: the context that names it, whose lock is held
 * @mem: the memory, which the caller alone resizes
 * @size: bytes, of granules
 * @page_size: bytes; what is added begins at a multiple of it
 *
 * Return: false, and nothing has changed, where not as much is there. A memory that
 * was pending may have lost its end.
 */
bool accmem_ahead_use(struct accmem_context *ctx, struct accmem_memory *mem,
		      u64 size, u64 page_size)
{
	struct accmem_ahead *ahead = mem->ahead;

	lockdep_assert_held(&ctx->lock);
	if (!ahead || ahead->mem->size < size ||
	    !IS_ALIGNED(ahead->mem->run.start, page_size) ||
	    !accmem_memory_touches(mem, ahead->mem))
		return false;
	accmem_memory_join_part(mem, ahead->mem, size);
	ahead_count(ctx, mem->cv, 0, -(s64)size);
	return true;
}

/**
 * accmem_ahead_drop() - give back what was taken ahead of a memory
 * @ctx: the context that names it, or did
 * @mem: the memory, which the caller alone resizes, or which has no name any more.
 *	Sleeps, allocates nothing.
 */
void accmem_ahead_drop(struct accmem_context *ctx, struct accmem_memory *mem)
{
	struct accmem_ahead *ahead;

	if (!READ_ONCE(mem->ahead))
		return;
	spin_lock(&ctx->lock);
	ahead = mem->ahead;
	if (ahead)
		ahead_unlink(ctx, ahead);
	spin_unlock(&ctx->lock);
	if (ahead)
		ahead_free(ahead);
}

/**
 * accmem_ahead_drain() - give back what was taken ahead
 * @ctx: the context. Sleeps, allocates nothing.
 * @cv: of which carveout; NULL for all
 *
 * Return: of how many buffers; at most 8.
 */
unsigned int accmem_ahead_drain(struct accmem_context *ctx,
				const struct accmem_carveout *cv)
{
	struct accmem_ahead *ahead, *next;
	unsigned int nr = 0;
	LIST_HEAD(list);

	/* one who waits has to be sure that nothing is left */
	if (!READ_ONCE(ctx->nr_ahead) && !accmem_waiters_present())
		return 0;
	spin_lock(&ctx->lock);
	list_for_each_entry_safe(ahead, next, &ctx->ahead, link) {
		if (cv && ahead->mem->cv != cv)
			continue;
		ahead_unlink(ctx, ahead);
		list_add(&ahead->link, &list);
	}
	spin_unlock(&ctx->lock);
	list_for_each_entry_safe(ahead, next, &list, link) {
		ahead_free(ahead);
		nr++;
	}
	return nr;
}
