// SPDX-License-Identifier: MIT
/*
 * The heap on the device: a buffer for each allocation. Freed ones are kept, up to
 * a number of bytes, so that a program which frees and allocates again pays for no
 * call and no page fault.
 *
 * Whatever cannot be served is the ordinary heap's: a full device is no error.
 *
 * Locking: heap_mutex, over all of table.c and device.c. A thread that stops the
 * others holds it, so that none of them stands still with it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "preload.h"

static pthread_mutex_t heap_mutex = PTHREAD_MUTEX_INITIALIZER;
static int heap_cancel_state; /* of who has the lock, before it took it */
/* SIZE_MAX as long as there is nothing to be had */
static atomic_size_t heap_threshold = SIZE_MAX;
static atomic_size_t heap_aligned = SIZE_MAX;
static bool heap_must_open; /* a forked process that has not opened it yet */
struct stats heap_stats;

/* malloc() is no cancellation point, though it opens a device. */
void heap_lock(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&heap_mutex);
	heap_cancel_state = state;
}

void heap_unlock(void)
{
	int state = heap_cancel_state;

	pthread_mutex_unlock(&heap_mutex);
	pthread_setcancelstate(state, NULL);
}

static void heap_accept(void)
{
	atomic_store(&heap_aligned, preload_settings.aligned);
	atomic_store(&heap_threshold, preload_settings.threshold);
}

void heap_start(void)
{
	if (device_open())
		heap_accept();
	else
		settings_say(2,
			     "accmem run: %s: %s: the ordinary heap is used\n",
			     preload_settings.device, strerror(errno));
}

void heap_restart(void)
{
	heap_must_open = true;
	heap_stats = (struct stats){ 0 };
	/* what has fallen back for good stays so */
}

void heap_close(void)
{
	atomic_store(&heap_threshold, SIZE_MAX);
	atomic_store(&heap_aligned, SIZE_MAX);
}

bool heap_wants(size_t size)
{
	return size >=
	       atomic_load_explicit(&heap_threshold, memory_order_relaxed);
}

bool heap_wants_aligned(size_t size)
{
	return size >=
	       atomic_load_explicit(&heap_aligned, memory_order_relaxed);
}

static void heap_account(size_t bytes)
{
	heap_stats.bytes += bytes;
	if (heap_stats.bytes > heap_stats.peak)
		heap_stats.peak = heap_stats.bytes;
}

static void heap_drop(struct block *block)
{
	cache_remove(block);
	table_remove(block);
	device_free(block);
	table_delete(block);
}

void heap_drop_cache(void)
{
	struct block *block;

	while ((block = cache_oldest()))
		heap_drop(block);
}

static struct block *heap_reuse(size_t length, size_t alignment)
{
	struct block *block = cache_find(length, alignment);

	if (!block)
		return NULL;
	cache_remove(block);
	block->state = BLOCK_LIVE;
	heap_stats.reused++;
	return block;
}

static bool heap_is_ready(void)
{
	if (heap_must_open) {
		heap_must_open = false;
		if (!device_open()) {
			heap_close();
			return false;
		}
	}
	if (device_is_usable())
		return true;
	heap_close();
	return false;
}

/* A full device is tried once more without what is cached. */
static struct block *heap_new(size_t length, size_t alignment, size_t reserve)
{
	struct block *block = table_new();
	int error;

	if (!block)
		return NULL;
	block->length = length;
	error = device_alloc(block, alignment, reserve);
	if ((error == -ENOMEM || error == -EDQUOT) && cache_bytes) {
		heap_drop_cache();
		error = device_alloc(block, alignment, reserve);
	}
	if (error) {
		table_delete(block);
		return NULL;
	}
	block->state = BLOCK_LIVE;
	table_insert(block);
	return block;
}

static bool heap_round(size_t size, size_t *length)
{
	return !__builtin_add_overflow(size, GRANULE - 1, length) &&
	       (*length &= -GRANULE) <= PTRDIFF_MAX;
}

static struct block *heap_get(size_t length, size_t alignment, bool grows,
			      bool *is_clean)
{
	struct block *block;

	if (heap_stats.bytes > preload_settings.limit ||
	    length > preload_settings.limit - heap_stats.bytes)
		return NULL;
	block = heap_reuse(length, alignment);
	*is_clean = !block;
	if (!block && heap_is_ready())
		block = heap_new(length, alignment, grows ? 4 * length : 0);
	if (!block)
		return NULL;
	heap_stats.allocations++;
	heap_account(block->length);
	return block;
}

/* What has grown is expected to go on, and gets addresses to grow into. */
void *heap_alloc(size_t size, size_t alignment, bool zero, bool grows)
{
	struct block *block = NULL;
	int error = errno;
	bool is_clean = true;
	size_t length;

	heap_lock();
	if (heap_round(size, &length))
		block = heap_get(length,
				 alignment < GRANULE ? GRANULE : alignment,
				 grows && length < SIZE_MAX / 4, &is_clean);
	if (!block)
		heap_stats.fallbacks++;
	heap_unlock();
	errno = error;
	if (!block)
		return NULL;
	return zero && !is_clean ? memset(block->start, 0, size) : block->start;
}

static void heap_trim_to(size_t bytes)
{
	while (cache_bytes > bytes)
		heap_drop(cache_oldest());
}

void heap_free(void *pointer)
{
	struct block *block;
	int error = errno;

	heap_lock();
	block = table_find(pointer);
	if (!block || block->state == BLOCK_CACHED) {
		heap_unlock();
		settings_say(2, "accmem run: free(): invalid pointer\n");
		__builtin_trap();
	}
	if (block->state == BLOCK_LIVE) {
		heap_stats.bytes -= block->length;
		cache_push(block);
		heap_trim_to(preload_settings.cache);
	} else {
		table_remove(block);
		device_unmap(block->start, block->length);
		table_delete(block);
	}
	heap_unlock();
	errno = error;
}

size_t heap_usable(const void *pointer)
{
	struct block *block;
	size_t length = 0;

	heap_lock();
	block = table_find(pointer);
	if (block && block->state != BLOCK_CACHED)
		length = block->length;
	heap_unlock();
	return length;
}

/* Not one that shrinks by half: what it does not need others can have. */
bool heap_resize(void *pointer, size_t size)
{
	struct block *block;
	int error = errno;
	size_t length, old;
	bool fits;

	if (!heap_round(size, &length))
		return false;
	heap_lock();
	block = table_find(pointer);
	old = block ? block->length : 0;
	fits = length <= old && length >= old / 2;
	if (!fits && block && block->state == BLOCK_LIVE && length >= GRANULE &&
	    (length < old ||
	     (heap_stats.bytes <= preload_settings.limit &&
	      length - old <= preload_settings.limit - heap_stats.bytes)) &&
	    !device_resize(block, length)) {
		heap_account(length - old);
		heap_stats.resized++;
		fits = true;
	}
	heap_unlock();
	errno = error;
	return fits;
}

bool heap_trim(void)
{
	bool had = false;

	heap_lock();
	had = cache_bytes > 0;
	heap_drop_cache();
	heap_unlock();
	return had;
}

/* The caller has put ordinary memory where the buffer was mapped. */
void heap_became_private(struct block *block)
{
	if (heap_stats.bytes >= block->length)
		heap_stats.bytes -= block->length;
	block->state = BLOCK_PRIVATE;
	block->copy = NULL;
}
