// SPDX-License-Identifier: MIT
/*
 * Stream handles: a program's names for streams, each with a stream of the driver.
 *
 * A handle is bound to a stream of the program, or owns a stream that the library has
 * opened. The program advances an owned stream by reports of finished work. The positions
 * of an owned stream start at 1: a release uses the current position, and a mark ends that
 * position.
 *
 * A child of fork() shares the driver's streams with its parent, and its reports would
 * advance the parent's streams. Therefore the child drops all handles that own a stream.
 *
 * Locking: streams_lock protects all handles. It is held over a search and one call of the
 * driver or of accmem_open_stream(), and so comes before the locks of pools.
 */
#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/stream.h"
#include "pool/pool.h"

#include <accmem_streams.h>

/**
 * struct handle - a stream handle
 * @value: the program's handle
 * @fd: descriptor of the stream
 * @ours: the handle owns the stream
 * @position: position for a release
 */
struct handle {
	const void *value;
	int fd;
	bool ours;
	uint64_t position;
};

/**
 * struct accmem_streams - handles over a context, see accmem_streams.h
 * @ctx: the context
 * @handles: tsearch() tree of struct handle
 * @next: next in streams_list
 */
struct accmem_streams {
	struct accmem_context *ctx;
	void *handles;
	struct accmem_streams *next;
};

static pthread_mutex_t streams_lock = PTHREAD_MUTEX_INITIALIZER;
static struct accmem_streams *streams_list;
static pthread_once_t streams_once = PTHREAD_ONCE_INIT;
static int streams_error;

static int streams_compare(const void *left, const void *right)
{
	const struct handle *a = left, *b = right;

	if ((uintptr_t)a->value < (uintptr_t)b->value)
		return -1;
	return (uintptr_t)a->value > (uintptr_t)b->value;
}

static struct handle *streams_lookup(struct accmem_streams *streams,
				     const void *value)
{
	const struct handle key = { .value = value };
	void *node = tfind(&key, &streams->handles, streams_compare);

	return node ? *(struct handle **)node : NULL;
}

static void streams_remove(struct accmem_streams *streams, struct handle *h)
{
	tdelete(h, &streams->handles, streams_compare);
	if (h->ours)
		accmem_close_stream(h->fd);
	free(h);
}

/* Result of the visitors of twalk(), which have no argument of the caller's. */
static struct handle *streams_picked;

static void streams_pick_any(const void *node, VISIT which, int depth)
{
	(void)which;
	(void)depth;
	streams_picked = *(struct handle *const *)node;
}

static void streams_pick_own(const void *node, VISIT which, int depth)
{
	if ((*(struct handle *const *)node)->ours)
		streams_pick_any(node, which, depth);
}

/* Return a handle that @visit picks, or NULL. The caller holds the lock. */
static struct handle *streams_pick(struct accmem_streams *streams,
				   void (*visit)(const void *, VISIT, int))
{
	streams_picked = NULL;
	twalk(streams->handles, visit);
	return streams_picked;
}

static void streams_before_fork(void)
{
	pthread_mutex_lock(&streams_lock);
}

static void streams_in_parent(void)
{
	pthread_mutex_unlock(&streams_lock);
}

static void streams_in_child(void)
{
	struct accmem_streams *streams;
	struct handle *h;

	for (streams = streams_list; streams; streams = streams->next)
		while ((h = streams_pick(streams, streams_pick_own)))
			streams_remove(streams, h);
	pthread_mutex_unlock(&streams_lock);
}

static void streams_watch_fork(void)
{
	streams_error = accmem_pool_watch_fork();
	if (!streams_error)
		streams_error = -pthread_atfork(streams_before_fork,
						streams_in_parent,
						streams_in_child);
}

int accmem_streams_create(struct accmem_context *ctx,
			  struct accmem_streams **result)
{
	struct accmem_streams *streams;
	int ret;

	ret = pthread_once(&streams_once, streams_watch_fork);
	if (ret || streams_error)
		return ret ? -ret : streams_error;
	streams = calloc(1, sizeof(*streams));
	if (!streams)
		return -ENOMEM;
	streams->ctx = ctx;
	pthread_mutex_lock(&streams_lock);
	streams->next = streams_list;
	streams_list = streams;
	pthread_mutex_unlock(&streams_lock);
	*result = streams;
	return 0;
}

void accmem_streams_destroy(struct accmem_streams *streams)
{
	struct accmem_streams **link;
	struct handle *h;

	if (!streams)
		return;
	pthread_mutex_lock(&streams_lock);
	for (link = &streams_list; *link != streams; link = &(*link)->next)
		;
	*link = streams->next;
	while ((h = streams_pick(streams, streams_pick_any)))
		streams_remove(streams, h);
	pthread_mutex_unlock(&streams_lock);
	free(streams);
}

/* The caller holds the lock. */
static int streams_insert(struct accmem_streams *streams, struct handle new)
{
	struct handle *h = malloc(sizeof(*h));

	if (!h)
		return -ENOMEM;
	*h = new;
	if (tsearch(h, &streams->handles, streams_compare))
		return 0;
	free(h);
	return -ENOMEM;
}

/* Open a stream for a new handle. The caller holds the lock. */
static int streams_open(struct accmem_streams *streams, const void *value)
{
	struct handle new = { .value = value, .ours = true, .position = 1 };
	int ret;

	ret = accmem_open_stream(streams->ctx, &new.fd);
	if (ret)
		return ret;
	ret = streams_insert(streams, new);
	if (ret)
		accmem_close_stream(new.fd);
	return ret;
}

static int streams_rebind(struct handle *h, int fd, uint64_t position)
{
	if (h->ours)
		return -EEXIST;
	if (h->fd == fd && position < h->position)
		return -ERANGE;
	h->fd = fd;
	h->position = position;
	return 0;
}

int accmem_streams_bind(struct accmem_streams *streams, const void *value,
			int fd, uint64_t position)
{
	struct handle *h;
	int ret;

	if (fd < 0)
		return -EINVAL;
	pthread_mutex_lock(&streams_lock);
	h = streams_lookup(streams, value);
	ret = h && h->fd == fd ? 0 : accmem_check_stream(streams->ctx, fd);
	if (!ret && h)
		ret = streams_rebind(h, fd, position);
	else if (!ret)
		ret = streams_insert(streams,
				     (struct handle){ .value = value,
						      .fd = fd,
						      .position = position });
	pthread_mutex_unlock(&streams_lock);
	return ret;
}

int accmem_streams_mark(struct accmem_streams *streams, const void *value,
			uint64_t *position)
{
	struct handle *h;
	int ret = 0;

	pthread_mutex_lock(&streams_lock);
	h = streams_lookup(streams, value);
	if (!h) {
		ret = streams_open(streams, value);
		h = streams_lookup(streams, value);
	} else if (!h->ours) {
		ret = -EEXIST;
	}
	if (!ret)
		*position = h->position++;
	pthread_mutex_unlock(&streams_lock);
	return ret;
}

int accmem_streams_reach(struct accmem_streams *streams, const void *value,
			 uint64_t position)
{
	struct handle *h;
	int ret;

	pthread_mutex_lock(&streams_lock);
	h = streams_lookup(streams, value);
	if (!h || !h->ours)
		ret = -ENOENT;
	else if (!position || position >= h->position)
		ret = -EINVAL;
	else
		ret = accmem_signal(h->fd, position);
	pthread_mutex_unlock(&streams_lock);
	/* -ERANGE: a later position has been reported */
	return ret == -ERANGE ? 0 : ret;
}

int accmem_streams_forget(struct accmem_streams *streams, const void *value)
{
	struct handle *h;

	pthread_mutex_lock(&streams_lock);
	h = streams_lookup(streams, value);
	if (h) {
		/* pending releases are at this position at most */
		if (h->ours)
			accmem_signal(h->fd, h->position);
		streams_remove(streams, h);
	}
	pthread_mutex_unlock(&streams_lock);
	return h ? 0 : -ENOENT;
}

int accmem_streams_find(struct accmem_streams *streams, const void *value,
			int *fd)
{
	struct handle *h;

	pthread_mutex_lock(&streams_lock);
	h = streams_lookup(streams, value);
	if (h)
		*fd = h->fd;
	pthread_mutex_unlock(&streams_lock);
	return h ? 0 : -ENOENT;
}

int accmem_streams_locate(struct accmem_streams *streams, const void *value,
			  int *fd, uint64_t *position)
{
	struct handle *h;
	int ret = 0;

	*fd = -1;
	*position = 0;
	pthread_mutex_lock(&streams_lock);
	h = streams_lookup(streams, value);
	if (!h && value) {
		ret = streams_open(streams, value);
		h = streams_lookup(streams, value);
	}
	if (h) {
		*fd = h->fd;
		*position = h->position;
	}
	pthread_mutex_unlock(&streams_lock);
	return ret;
}
