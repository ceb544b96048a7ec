// SPDX-License-Identifier: MIT
/*
 * The blocks on the device: one buffer for each allocation. A freed block is unmapped and
 * freed at once, so nothing that a program has done to its pages outlives the block.
 *
 * Pages of a block become ordinary memory when the program does to them what only ordinary
 * memory can: heap_make_ordinary() puts ordinary pages at their addresses.
 *
 * Locking: blocks_lock. Threads allocate and free blocks with a shared lock, each with an
 * entry of its own, so that a system call of one thread does not delay the others. A thread that
 * reads the blocks of other threads, or changes pages of a block, has an exclusive lock. A fork
 * holds it while the C library and other libraries take their locks, whose owners may allocate
 * and free. So malloc() and free() never wait for the lock: the ordinary heap serves the
 * request, and the thread that releases the lock frees the block. Signals are masked under
 * the lock, since a handler may fork, and a fork takes the lock. heap_find() needs no
 * lock: the entry of a block that the caller owns does not change.
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

static atomic_size_t nr_marked; /* blocks that wait for heap_free_marked() */
/* Bytes on the device, with those of calls in progress */
static atomic_size_t reserved;

/* State of a thread that has the lock, for heap_leave() */
struct thread_state {
	int error;
	int cancel_state;
	bool is_masked;
	sigset_t mask;
};

/* Locks that this thread has or is about to take. Only the first one locks. */
static __thread unsigned int depth INITIAL_EXEC;
static __thread bool holds INITIAL_EXEC; /* the thread has the lock */
/* Of the thread that forks, under the exclusive lock */
static struct thread_state fork_state;

static void heap_free_marked(void);

/*
 * A wrapper of mmap() or ioctl() in another library may call malloc() or free() while
 * this thread has the lock. Without a device, only system calls of a heap are made, since
 * a seccomp filter may forbid others: signals are not masked then.
 */
static void heap_enter(struct thread_state *state)
{
	sigset_t all;

	state->error = errno;
	state->is_masked = !device_is_closed();
	sigfillset(&all);
	if (state->is_masked)
		pthread_sigmask(SIG_SETMASK, &all, &state->mask);
	/* malloc() and free() are no cancellation points */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state->cancel_state);
}

static void heap_leave(const struct thread_state *state)
{
	pthread_setcancelstate(state->cancel_state, NULL);
	errno = state->error;
	if (state->is_masked)
		pthread_sigmask(SIG_SETMASK, &state->mask, NULL);
}

static void heap_lock(struct thread_state *state)
{
	if (depth) {
		depth++;
		return;
	}
	heap_enter(state);
	depth = 1;
	pthread_rwlock_wrlock(&blocks_lock);
	holds = true;
}

/* Take the shared lock. False: another thread has the exclusive lock, or waits for it. */
static bool heap_try_lock(struct thread_state *state)
{
	if (depth) {
		depth++;
		return true;
	}
	heap_enter(state);
	depth = 1;
	holds = !pthread_rwlock_tryrdlock(&blocks_lock);
	if (holds)
		return true;
	depth = 0;
	heap_leave(state);
	return false;
}

/* Return true if that was the last lock of this thread. */
static bool heap_unlock(const struct thread_state *state)
{
	if (depth > 1) {
		depth--;
		return false;
	}
	holds = false;
	pthread_rwlock_unlock(&blocks_lock);
	depth = 0;
	heap_leave(state);
	return true;
}

static void heap_unlock_exclusive(const struct thread_state *state)
{
	if (heap_unlock(state))
		heap_free_marked();
}

void heap_lock_for_fork(void)
{
	struct thread_state state;
	bool is_first = !depth;

	heap_lock(&state);
	if (is_first)
		fork_state = state;
}

void heap_unlock_parent(void)
{
	struct thread_state state = fork_state;

	heap_unlock_exclusive(&state);
}

/* A handler may have forked during free(), which goes on in the child with its lock. */
void heap_unlock_child(void)
{
	blocks_lock = (pthread_rwlock_t)LOCK;
	reserved = 0;
	if (--depth) {
		if (holds)
			pthread_rwlock_rdlock(&blocks_lock);
		return;
	}
	holds = false;
	heap_leave(&fork_state);
	heap_free_marked();
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

/* Count bytes against the limit. */
static bool heap_reserve(size_t length)
{
	size_t old = reserved;

	do {
		if (old > preload_settings.limit ||
		    length > preload_settings.limit - old)
			return false;
	} while (!atomic_compare_exchange_weak(&reserved, &old, old + length));
	return true;
}

static char *heap_new(size_t length, size_t alignment)
{
	struct stats *s = &preload_stats;
	struct block *block;
	char *start;

	if (!heap_reserve(length))
		return NULL;
	block = heap_claim_block();
	if (!block) {
		reserved -= length;
		return NULL;
	}
	start = device_alloc(length, alignment, &block->address);
	if (start) {
		s->blocks++;
		s->allocations++;
		heap_raise(&s->peak,
			   atomic_fetch_add(&s->bytes, length) + length);
	} else {
		reserved -= length;
	}
	block->length = length;
	block->is_on_device = true;
	block->ordinary = NULL;
	block->start = start;
	return start;
}

static bool heap_is_for_device(size_t size)
{
	return size >= preload_settings.threshold && size <= PTRDIFF_MAX &&
	       !depth;
}

void *heap_try(size_t size, size_t alignment)
{
	size_t length = (size + GRANULE - 1) & -GRANULE;
	struct thread_state state;
	void *p;

	if (!heap_is_for_device(size) || !heap_try_lock(&state))
		return NULL;
	p = heap_new(length, alignment);
	heap_unlock(&state);
	return p;
}

void *heap_alloc(size_t size, size_t alignment)
{
	void *p = heap_try(size, alignment);

	if (!p && heap_is_for_device(size))
		preload_stats.fallbacks++;
	return p;
}

/* The entry is free last: another thread may get the same addresses after munmap(). */
static void heap_free_now(struct block *block)
{
	char *start = block->start;

	block->start = BLOCK_BUSY;
	preload_unmap(start, block->length);
	if (block->ordinary)
		preload_unmap(block->ordinary, block->length / GRANULE);
	if (block->is_on_device) {
		device_free(block->address);
		preload_stats.blocks--;
		preload_stats.bytes -= block->length;
		reserved -= block->length;
	}
	block->start = NULL;
}

/* Free a marked block, unless its lock is taken, or another thread frees it. */
static void heap_free_if_marked(struct block *block)
{
	struct thread_state state;

	if (!block->is_marked || !heap_try_lock(&state))
		return;
	if (!block->copy && atomic_exchange(&block->is_marked, false)) {
		nr_marked--;
		heap_free_now(block);
	}
	heap_unlock(&state);
}

/*
 * The thread that marks a block then looks whether the lock is taken; the thread that releases
 * the exclusive lock then looks for marks. So one of them frees the block.
 */
static void heap_free_marked(void)
{
	size_t i, count;

	atomic_thread_fence(memory_order_seq_cst);
	count = nr_marked ? nr_blocks : 0;
	for (i = 0; i < count; i++)
		heap_free_if_marked(&blocks[i]);
}

/* Handlers of a fork may free blocks of which there is a copy: they are freed later. */
void heap_free(struct block *block)
{
	struct thread_state state;

	if (heap_try_lock(&state)) {
		if (!block->copy) {
			heap_free_now(block);
			heap_unlock(&state);
			return;
		}
		heap_unlock(&state);
	}
	nr_marked++;
	block->is_marked = true;
	atomic_thread_fence(memory_order_seq_cst);
	heap_free_if_marked(block);
}

struct block *heap_next(struct block *block)
{
	size_t i = block ? block - blocks + 1 : 0, count = nr_blocks;

	while (i < count &&
	       (!blocks[i].start || blocks[i].start == BLOCK_BUSY ||
		!blocks[i].is_on_device))
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

/*
 * Could the range overlap a block? Without the lock: a block that comes or goes meanwhile is not
 * the caller's.
 */
static bool heap_may_overlap(const void *start, size_t length)
{
	uintptr_t from = (uintptr_t)start, at;
	size_t i, count = nr_blocks;

	for (i = 0; i < count; i++) {
		at = (uintptr_t)atomic_load(&blocks[i].start);
		if (at > (uintptr_t)BLOCK_BUSY &&
		    (at < from ? from - at < blocks[i].length :
				 at - from < length))
			return true;
	}
	return false;
}

size_t heap_part(const char *start, size_t length, bool *is_on_device)
{
	struct thread_state state;
	struct block *block = NULL;
	size_t part = length, at, end;
	const char *from;

	*is_on_device = false;
	if (!heap_may_overlap(start, length))
		return part;
	heap_lock(&state);
	while (!*is_on_device && (block = heap_next(block))) {
		if (!heap_clamp(block, start, length, &at, &end))
			continue;
		end = heap_run(block, &at, end);
		from = block->start + at;
		if (end > at && from <= start) {
			*is_on_device = true;
			part = block->start + end - start;
		} else if (end > at && (size_t)(from - start) < part) {
			part = from - start;
		}
	}
	heap_unlock_exclusive(&state);
	return part < length ? part : length;
}

/* Copy pages. Pages that are zero are not written, so they need no memory. */
static void heap_copy(char *to, const char *from, size_t length)
{
	static const char zeros[GRANULE];
	size_t at;

	for (at = 0; at < length; at += GRANULE)
		if (memcmp(from + at, zeros, GRANULE) != 0)
			memcpy(to + at, from + at, GRANULE);
}

/* One mremap() call: another thread sees the old mapping or the new one, never a hole. */
static bool heap_replace(struct block *block, size_t at, size_t end,
			 enum heap_change change)
{
	size_t length = end - at;
	void *copy =
		mmap(NULL, length, PROT_READ | PROT_WRITE, ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return false;
	if (change == HEAP_KEEP)
		heap_copy(copy, block->start + at, length);
	if (!preload_move(copy, length, block->start + at)) {
		preload_unmap(copy, length);
		return false;
	}
	preload_stats.returned += length;
	return true;
}

static bool heap_prepare_ordinary(struct block *block)
{
	void *ordinary;

	if (block->ordinary)
		return true;
	ordinary = mmap(NULL, block->length / GRANULE, PROT_READ | PROT_WRITE,
			ANONYMOUS, -1, 0);
	if (ordinary == MAP_FAILED)
		return false;
	block->ordinary = ordinary;
	return true;
}

static bool heap_change_range(struct block *block, size_t at, size_t end,
			      enum heap_change change)
{
	size_t to;

	if (!heap_prepare_ordinary(block))
		return false;
	while ((to = heap_run(block, &at, end)) > at) {
		if (!heap_replace(block, at, to, change))
			return false;
		memset(block->ordinary + at / GRANULE, true,
		       (to - at) / GRANULE);
		at = to;
	}
	return true;
}

bool heap_make_ordinary(const void *start, size_t length,
			enum heap_change change)
{
	struct thread_state state;
	struct block *block = NULL;
	size_t at, end;
	bool done = true;

	if (!heap_may_overlap(start, length))
		return true;
	heap_lock(&state);
	while (done && (block = heap_next(block)))
		if (heap_clamp(block, start, length, &at, &end))
			done = heap_change_range(block, at, end, change);
	heap_unlock_exclusive(&state);
	if (!done)
		errno = ENOMEM;
	return done;
}
