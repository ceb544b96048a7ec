// SPDX-License-Identifier: MIT
/*
 * Forks. The mappings of a device are shared, and a child's heap is to be its own.
 *
 * A process of one thread has its blocks copied to ordinary memory before the
 * fork; the child puts the copies where the buffers were, and the parent drops
 * them. Nothing else runs meanwhile, so both see what there was at the fork.
 *
 * In a process of several threads, others would write to a block after it was
 * copied. They are made to stand still, and the copies take the place of the
 * buffers in the parent: from then on the kernel copies its pages as it does all
 * others', at the fork itself. The process stays on the ordinary heap.
 *
 * Where neither can be done, there is no child: it ends before it has returned,
 * and fork() fails.
 *
 * vfork(), posix_spawn() and exec are not concerned. _Fork() and a clone() without
 * the C library run no handlers: there the heap is shared.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload.h"

static __thread int error_of_fork __attribute__((tls_model("initial-exec")));

int fork_error(void)
{
	return error_of_fork;
}

static bool fork_is_zero(const char *page)
{
	return !page[0] && !memcmp(page, page + 1, GRANULE - 1);
}

/* Pages that are zero need no memory. */
static char *fork_copy(const struct block *block)
{
	size_t at;
	char *copy = mmap(NULL, block->length, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return NULL;
	for (at = 0; at < block->length; at += GRANULE)
		if (!fork_is_zero(block->start + at))
			memcpy(copy + at, block->start + at, GRANULE);
	return copy;
}

static void fork_drop_copies(void)
{
	struct block *block;

	for (block = table_next(NULL); block; block = table_next(block)) {
		if (block->copy)
			munmap(block->copy, block->length);
		block->copy = NULL;
	}
}

static int fork_copy_all(void)
{
	struct block *block;

	for (block = table_next(NULL); block; block = table_next(block)) {
		if (block->state != BLOCK_LIVE)
			continue;
		block->copy = fork_copy(block);
		if (!block->copy) {
			fork_drop_copies();
			return -ENOMEM;
		}
		heap_stats.copied += block->length;
	}
	return 0;
}

/* Nothing may be left that both would write to. */
static void fork_take_copies(bool is_mine)
{
	struct block *block;

	for (block = table_next(NULL); block; block = table_next(block)) {
		struct block buffer = *block;

		if (block->state != BLOCK_LIVE)
			continue;
		/* frees what is mapped there, in the parent's context only */
		if (is_mine)
			device_free(&buffer);
		if (mremap(block->copy, block->length, block->length,
			   MREMAP_MAYMOVE | MREMAP_FIXED,
			   block->start) != block->start)
			abort();
		heap_became_private(block);
	}
}

static bool fork_has_blocks(void)
{
	struct block *block = table_next(NULL);

	while (block && block->state != BLOCK_LIVE)
		block = table_next(block);
	return block;
}

static int fork_evacuate(void)
{
	int error = stop_world();

	if (error)
		return error;
	error = fork_copy_all();
	if (!error)
		fork_take_copies(true);
	stop_end();
	heap_stats.evacuations += !error;
	return error;
}

static void fork_prepare(void)
{
	heap_lock();
	error_of_fork = 0;
	if (stop_is_alone()) {
		error_of_fork = fork_copy_all();
		return;
	}
	heap_close();
	heap_drop_cache();
	if (fork_has_blocks())
		error_of_fork = fork_evacuate();
}

static void fork_in_parent(void)
{
	fork_drop_copies();
	heap_unlock();
}

/* The parent's cached buffers are mapped here too: nobody looks at them again. */
static void fork_forget_cache(void)
{
	struct block *block;

	while ((block = cache_oldest())) {
		cache_remove(block);
		table_remove(block);
		device_unmap(block->start, block->length);
		table_delete(block);
	}
}

static void fork_in_child(void)
{
	if (error_of_fork)
		_exit(127);
	fork_take_copies(false);
	fork_forget_cache();
	device_leave();
	heap_restart();
	heap_unlock();
}

void fork_start(void)
{
	pthread_atfork(fork_prepare, fork_in_parent, fork_in_child);
}
