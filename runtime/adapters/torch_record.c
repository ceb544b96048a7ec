// SPDX-License-Identifier: MIT
/*
 * Streams that use an allocation besides the stream of its free (record_stream()).
 *
 * A use is an allocation with the handle of a stream. All uses of an allocation are a
 * list, and their first one is in a hash table. A free adds its own stream, takes the
 * position of each stream, and retires the allocation. As long as two or more streams
 * have not reached their positions, the allocation stays as it is. Then the pool gets
 * it, with the position of the last stream, if that is still not reached.
 *
 * Uses are reused, and never given back to the C library: its free() cannot be called
 * here (torch.c).
 *
 * A child of fork() forgets all uses: they are of allocations of the parent.
 *
 * Locking: torch_lock for everything here. Counters may be read without it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "torch.h"

#define BUCKETS 1024

/**
 * struct torch_use - a stream that uses an allocation
 * @next: next first use in the bucket; next unused one
 * @peer: next use of the same allocation
 * @later: of the first use of a retired allocation: the allocation retired after it
 * @pool: pool of the allocation
 * @pointer: its first byte
 * @retired: of its first use: it has been freed
 * @handle: the stream
 * @fd: descriptor of the stream at the time of the free, or -1 if there is no wait
 * @id: number of the stream. If the descriptor has another number, the stream has ended.
 * @position: position of it
 */
struct torch_use {
	struct torch_use *next;
	struct torch_use *peer;
	struct torch_use *later;
	struct accmem_pool *pool;
	void *pointer;
	bool retired;
	const void *handle;
	int fd;
	uint64_t id;
	uint64_t position;
};

static pthread_mutex_t torch_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t torch_once = PTHREAD_ONCE_INIT;
static int torch_error;
static struct torch_use *torch_buckets[BUCKETS];
static struct torch_use *torch_unused;
static struct torch_use *torch_retired;
static struct torch_use **torch_end = &torch_retired;
/* allocations that have uses; those of them that are retired */
static atomic_size_t torch_recorded;
static atomic_size_t torch_waiting;

/* Forget an allocation; @link points to its first use in the bucket. */
static void torch_forget(struct torch_use **link)
{
	struct torch_use *use = *link, *peer;

	*link = use->next;
	atomic_fetch_sub(&torch_recorded, 1);
	for (; use; use = peer) {
		peer = use->peer;
		use->next = torch_unused;
		torch_unused = use;
	}
}

static void torch_before_fork(void)
{
	pthread_mutex_lock(&torch_mutex);
}

static void torch_in_child(void)
{
	size_t i;

	for (i = 0; i < BUCKETS; i++)
		while (torch_buckets[i])
			torch_forget(&torch_buckets[i]);
	torch_retired = NULL;
	torch_end = &torch_retired;
	atomic_store(&torch_waiting, 0);
	pthread_mutex_unlock(&torch_mutex);
}

static void torch_watch_fork(void)
{
	torch_error = -pthread_atfork(torch_before_fork, accmem_torch_unlock,
				      torch_in_child);
}

int accmem_torch_lock(void)
{
	pthread_once(&torch_once, torch_watch_fork);
	if (torch_error)
		return torch_error;
	pthread_mutex_lock(&torch_mutex);
	return 0;
}

void accmem_torch_unlock(void)
{
	pthread_mutex_unlock(&torch_mutex);
}

/* Where the first use of an allocation is, or would be, in its bucket. */
static struct torch_use **torch_find(const void *pointer)
{
	uint64_t hash = (uintptr_t)pointer * 0x9e3779b97f4a7c15;
	struct torch_use **link = &torch_buckets[hash >> 32 & (BUCKETS - 1)];

	while (*link && (*link)->pointer != pointer)
		link = &(*link)->next;
	return link;
}

static struct torch_use *torch_new(void)
{
	struct torch_use *use = torch_unused;

	if (use)
		torch_unused = use->next;
	else
		use = malloc(sizeof(*use));
	if (use)
		memset(use, 0, sizeof(*use));
	return use;
}

/* Add a use, unless there is the same. */
static int torch_add(struct torch_use **link, struct accmem_pool *pool,
		     void *pointer, const void *handle)
{
	struct torch_use *use;

	for (use = *link; use; use = use->peer)
		if (use->handle == handle)
			return 0;
	use = torch_new();
	if (!use)
		return -ENOMEM;
	use->pool = pool;
	use->pointer = pointer;
	use->handle = handle;
	if (*link) {
		use->peer = (*link)->peer;
		(*link)->peer = use;
	} else {
		*link = use;
		atomic_fetch_add(&torch_recorded, 1);
	}
	return 0;
}

int accmem_torch_record_stream(void *pointer, void *stream)
{
	struct accmem_pool_block block;
	struct torch_use **link;
	int device, ret;

	if (!pointer)
		return 0;
	device = accmem_pool_find(pointer, &block) ?
			 -1 :
			 accmem_torch_device(block.pool);
	if (device < 0) {
		accmem_set_last_error("record_stream of %p: no allocation",
				      pointer);
		return -ENOENT;
	}
	/* the handlers of the first lock run before those of the last one */
	ret = accmem_torch_streams(device) ? accmem_torch_lock() : -ENOMEM;
	if (ret)
		return ret;
	link = torch_find(block.pointer);
	ret = *link && (*link)->retired ?
		      -ENOENT :
		      torch_add(link, block.pool, block.pointer, stream);
	accmem_torch_unlock();
	if (ret)
		accmem_set_last_error("record_stream of %p: %s", pointer,
				      strerror(-ret));
	return ret;
}

/* A stream that is closed, or whose device has gone, has ended. */
static bool torch_is_busy(const struct torch_use *use)
{
	struct accmem_stream_query query;

	return use->fd >= 0 && !accmem_get_stream(use->fd, &query) &&
	       query.id == use->id && query.reached < use->position &&
	       !(query.state & ACCMEM_STREAM_ENDED);
}

/*
 * Release a retired allocation if at most one of its streams is busy. @link points to it
 * in the list of retired ones. Return false if it stays there.
 */
static bool torch_settle(struct torch_use **link)
{
	struct torch_use *first = *link, *use, *busy = NULL;
	int ret = -EBADF;

	for (use = first; use; use = use->peer) {
		if (!torch_is_busy(use))
			continue;
		if (busy)
			return false;
		busy = use;
	}
	if (busy)
		ret = accmem_pool_release_at(first->pool, first->pointer,
					     busy->fd, busy->position);
	if (ret == -ENOMEM)
		return false;
	if (ret)
		accmem_pool_release(first->pool, first->pointer);
	*link = first->later;
	if (!*link)
		torch_end = link;
	atomic_fetch_sub(&torch_waiting, 1);
	torch_forget(torch_find(first->pointer));
	return true;
}

bool accmem_torch_release_retired(bool all)
{
	struct torch_use **link = &torch_retired;
	bool any = false;

	if (!atomic_load(&torch_waiting) || accmem_torch_lock())
		return false;
	while (*link) {
		if (torch_settle(link))
			any = true;
		else if (all)
			link = &(*link)->later;
		else
			break;
	}
	accmem_torch_unlock();
	return any;
}

/* Take the position of a stream. */
static int torch_locate(struct accmem_streams *streams, struct torch_use *use)
{
	struct accmem_stream_query query;
	int ret;

	ret = accmem_streams_locate(streams, use->handle, &use->fd,
				    &use->position);
	if (ret && ret != -ENODEV)
		return ret;
	if (ret || (use->fd >= 0 && accmem_get_stream(use->fd, &query)))
		use->fd = -1;
	else if (use->fd >= 0)
		use->id = query.id;
	return 0;
}

/* Take the position of each stream, and put the allocation at the end of the list. */
static int torch_retire(struct accmem_streams *streams, struct torch_use *first)
{
	struct torch_use **link = torch_end;
	struct torch_use *use;
	int ret;

	for (use = first; use; use = use->peer) {
		ret = torch_locate(streams, use);
		if (ret)
			return ret;
	}
	first->retired = true;
	*link = first;
	torch_end = &first->later;
	atomic_fetch_add(&torch_waiting, 1);
	torch_settle(link);
	return 0;
}

int accmem_torch_retire(struct accmem_streams *streams, void *pointer,
			void *handle)
{
	struct torch_use **link, *first;
	int ret;

	/* the caller is ordered behind the record_stream() of its allocation */
	if (!atomic_load(&torch_recorded))
		return -ENOENT;
	ret = accmem_torch_lock();
	if (ret)
		return ret;
	link = torch_find(pointer);
	first = *link;
	if (!first)
		ret = -ENOENT;
	else if (first->retired)
		ret = -EINVAL;
	else
		ret = torch_add(link, first->pool, pointer, handle) ?:
			      torch_retire(streams, first);
	accmem_torch_unlock();
	return ret;
}
