// SPDX-License-Identifier: MIT
/*
 * The blocks on the device: one buffer for each allocation. A freed block is unmapped and
 * freed at once, so nothing that a program has done to its pages outlives the block.
 *
 * Pages of a block become ordinary memory when the program does to them what only ordinary
 * memory can: heap_make_ordinary() puts a copy at their addresses.
 *
 * Locking: blocks_lock. Threads allocate and free blocks with a shared lock, each with an
 * entry of its own, so that a system call of one thread does not delay the others. A thread that
 * reads the blocks of other threads has an exclusive lock. Signals are masked under the
 * lock, since a handler may fork, and a fork takes the lock. heap_find() needs no lock: the
 * entry of a block that the caller owns does not change.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "preload.h"

#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)
#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))
/* A fork does not wait for threads that allocate and free without a pause. */
#define LOCK PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP

static pthread_rwlock_t blocks_lock = LOCK;
static struct block blocks[BLOCKS_MAX];
static atomic_size_t nr_blocks; /* entries from here on have never been used */

/* State of the thread that heap_unlock() restores */
static __thread struct {
	unsigned int depth; /* calls of heap_lock() */
	bool is_masked;
	sigset_t mask;
	int error;
	int cancel_state;
} locked INITIAL_EXEC;

/*
 * A wrapper of mmap() or ioctl() in another library may call malloc() or free() while
 * this thread has the lock. Without a device, only system calls of a heap are made, since
 * a seccomp filter may forbid others; a handler may fork then, as blocks only go.
 */
void heap_lock(bool exclusive)
{
	sigset_t all;

	if (locked.depth++)
		return;
	locked.error = errno;
	locked.is_masked = !device_is_closed();
	sigfillset(&all);
	if (locked.is_masked)
		pthread_sigmask(SIG_SETMASK, &all, &locked.mask);
	/* malloc() and free() are no cancellation points */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &locked.cancel_state);
	if (exclusive)
		pthread_rwlock_wrlock(&blocks_lock);
	else
		pthread_rwlock_rdlock(&blocks_lock);
}

static void heap_restore(void)
{
	pthread_setcancelstate(locked.cancel_state, NULL);
	errno = locked.error;
	if (locked.is_masked)
		pthread_sigmask(SIG_SETMASK, &locked.mask, NULL);
}

void heap_unlock(void)
{
	if (--locked.depth)
		return;
	pthread_rwlock_unlock(&blocks_lock);
	heap_restore();
}

void heap_unlock_child(void)
{
	blocks_lock = (pthread_rwlock_t)LOCK;
	locked.depth = 0;
	heap_restore();
}

/* Few pointers of other heaps are multiples of the granule. */
struct block *heap_find(const void *pointer)
{
	size_t i, count = (uintptr_t)pointer % GRANULE ? 0 : nr_blocks;

	for (i = 0; pointer && i < count; i++)
		if (blocks[i].start == pointer)
			return &blocks[i];
	return NULL;
}

static void heap_raise(atomic_size_t *mark, size_t to)
{
	size_t old = *mark;

	while (old < to && !atomic_compare_exchange_weak(mark, &old, to))
		;
}

static struct block *heap_claim_block(void)
{
	char *none;
	size_t i;

	for (i = 0; i < BLOCKS_MAX; i++) {
		none = NULL;
		if (atomic_compare_exchange_strong(&blocks[i].start, &none,
						   BLOCK_BUSY)) {
			heap_raise(&nr_blocks, i + 1);
			return &blocks[i];
		}
	}
	return NULL;
}

static char *heap_new(size_t length, size_t alignment)
{
	struct block *block = heap_claim_block();
	char *start;

	if (!block)
		return NULL;
	start = device_alloc(length, alignment, &block->address);
	block->length = length;
	block->is_on_device = true;
	block->ordinary = NULL;
	block->start = start;
	return start;
}

void *heap_alloc(size_t size, size_t alignment)
{
	size_t length = (size + GRANULE - 1) & -GRANULE;
	struct stats *s = &preload_stats;
	void *p = NULL;

	if (size < preload_settings.threshold || size > PTRDIFF_MAX ||
	    locked.depth)
		return NULL;
	heap_lock(false);
	if (atomic_fetch_add(&s->bytes, length) + length <=
	    preload_settings.limit)
		p = heap_new(length, alignment);
	if (p) {
		s->blocks++;
		s->allocations++;
		heap_raise(&s->peak, s->bytes);
	} else {
		s->bytes -= length;
		s->fallbacks++;
	}
	heap_unlock();
	return p;
}

/* The entry is free last: another thread may get the same addresses after munmap(). */
void heap_free(struct block *block)
{
	char *start = block->start;

	heap_lock(false);
	block->start = BLOCK_BUSY;
	munmap(start, block->length);
	if (block->ordinary)
		munmap(block->ordinary, block->length / GRANULE);
	if (block->is_on_device) {
		device_free(block->address);
		preload_stats.blocks--;
		preload_stats.bytes -= block->length;
	}
	block->start = NULL;
	heap_unlock();
}

struct block *heap_next(struct block *block)
{
	size_t i = block ? block - blocks + 1 : 0, count = nr_blocks;

	while (i < count && (!blocks[i].start || !blocks[i].is_on_device))
		i++;
	return i < count ? &blocks[i] : NULL;
}

static bool heap_is_ordinary(const struct block *block, size_t at)
{
	return block->ordinary && block->ordinary[at / GRANULE];
}

size_t heap_run(const struct block *block, size_t *at, size_t end)
{
	size_t to;

	while (*at < end && heap_is_ordinary(block, *at))
		*at += GRANULE;
	for (to = *at; to < end && !heap_is_ordinary(block, to);)
		to += GRANULE;
	return to;
}

/*
 * Set [*first, *end) to the part of the block that the range covers, in whole pages.
 * Return false if the range covers no page.
 */
static bool heap_clamp(const struct block *block, const void *start,
		       size_t length, size_t *first, size_t *end)
{
	uintptr_t at = (uintptr_t)block->start, from = (uintptr_t)start, to;

	if (!length || __builtin_add_overflow(from, length - 1, &to) ||
	    to < at || from >= at + block->length)
		return false;
	*first = from < at ? 0 : (from - at) & -GRANULE;
	*end = to - at >= block->length ? block->length :
					  ((to - at) & -GRANULE) + GRANULE;
	return true;
}

bool heap_overlaps(const void *start, size_t length)
{
	struct block *block = NULL;
	size_t at, end;
	bool found = false;

	if (!nr_blocks)
		return false;
	heap_lock(true);
	while (!found && (block = heap_next(block)))
		found = heap_clamp(block, start, length, &at, &end) &&
			heap_run(block, &at, end) > at;
	heap_unlock();
	return found;
}

/* One mremap() call: another thread sees the old mapping or the new one, never a hole. */
static bool heap_replace(struct block *block, size_t at, size_t end)
{
	size_t length = end - at;
	void *copy =
		mmap(NULL, length, PROT_READ | PROT_WRITE, ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return false;
	memcpy(copy, block->start + at, length);
	if (!preload_move(copy, length, block->start + at)) {
		munmap(copy, length);
		return false;
	}
	memset(block->ordinary + at / GRANULE, true, length / GRANULE);
	preload_stats.returned += length;
	return true;
}

static bool heap_replace_range(struct block *block, size_t at, size_t end)
{
	void *ordinary;
	size_t to;

	if (!block->ordinary) {
		ordinary = mmap(NULL, block->length / GRANULE,
				PROT_READ | PROT_WRITE, ANONYMOUS, -1, 0);
		if (ordinary == MAP_FAILED)
			return false;
		block->ordinary = ordinary;
	}
	while ((to = heap_run(block, &at, end)) > at) {
		if (!heap_replace(block, at, to))
			return false;
		at = to;
	}
	return true;
}

bool heap_make_ordinary(const void *start, size_t length)
{
	struct block *block = NULL;
	size_t at, end;
	bool done = true;

	if (!nr_blocks)
		return true;
	heap_lock(true);
	while (done && (block = heap_next(block)))
		if (heap_clamp(block, start, length, &at, &end))
			done = heap_replace_range(block, at, end);
	heap_unlock();
	if (!done)
		errno = ENOMEM;
	return done;
}
