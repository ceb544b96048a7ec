// SPDX-License-Identifier: MIT
/*
 * The history of a pool: the call site of each live allocation, and the last NR_EVENTS
 * events. Only a pool with ACCMEM_POOL_LEAKS or ACCMEM_POOL_HISTORY has a history.
 *
 * Locking: accmem_pool.lock.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <time.h>

#include "pool/base.h"
#include "pool/history.h"

#define NR_EVENTS 65536u

/**
 * struct site - call site of a live allocation
 * @pointer: pointer of the allocation
 * @length: requested bytes
 * @caller: caller of the library
 */
struct site {
	const void *pointer;
	uint64_t length;
	const void *caller;
};

/**
 * struct pool_history - history of a pool
 * @sites: tsearch() tree of struct site
 * @count: number of events so far
 * @events: ring of the last events, or NULL without ACCMEM_POOL_HISTORY
 */
struct pool_history {
	void *sites;
	uint64_t count;
	struct pool_event *events;
};

static int compare(const void *left, const void *right)
{
	const struct site *a = left, *b = right;

	return ((uintptr_t)a->pointer > (uintptr_t)b->pointer) -
	       ((uintptr_t)a->pointer < (uintptr_t)b->pointer);
}

static struct site *find(const struct pool_history *history,
			 const void *pointer)
{
	const struct site key = { .pointer = pointer };
	void *node = tfind(&key, &history->sites, compare);

	return node ? *(struct site **)node : NULL;
}

static void drop_site(struct pool_history *history, struct site *site)
{
	tdelete(site, &history->sites, compare);
	free(site);
}

int accmem_pool_history_create(struct accmem_pool *pool)
{
	struct pool_history *history;

	if (!(pool->flags & (ACCMEM_POOL_LEAKS | ACCMEM_POOL_HISTORY)))
		return 0;
	history = calloc(1, sizeof(*history));
	if (!history)
		return -ENOMEM;
	if (pool->flags & ACCMEM_POOL_HISTORY) {
		history->events = calloc(NR_EVENTS, sizeof(*history->events));
		if (!history->events) {
			free(history);
			return -ENOMEM;
		}
	}
	pool->history = history;
	return 0;
}

void accmem_pool_history_destroy(struct accmem_pool *pool)
{
	struct pool_history *history = pool->history;

	if (!history)
		return;
	while (history->sites)
		drop_site(history, *(struct site **)history->sites);
	free(history->events);
	free(history);
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

static void record_event(struct pool_history *history,
			 const struct pool_event *event)
{
	struct pool_event *slot;

	if (!history->events)
		return;
	slot = &history->events[history->count++ % NR_EVENTS];
	*slot = *event;
	slot->time_us = now_us();
}

void accmem_pool_history_allocated(struct accmem_pool *pool,
				   const void *pointer, uint64_t length,
				   int stream, const void *caller)
{
	const struct pool_event event = { .pointer = pointer,
					  .length = length,
					  .stream = stream,
					  .site = caller };
	struct site *site = malloc(sizeof(*site)), *old;

	pthread_mutex_lock(&pool->lock);
	old = find(pool->history, pointer);
	if (old)
		drop_site(pool->history, old);
	if (site) {
		site->pointer = pointer;
		site->length = length;
		site->caller = caller;
		/* without memory for its site, the allocation has no known call site */
		if (!tsearch(site, &pool->history->sites, compare))
			free(site);
	}
	record_event(pool->history, &event);
	pthread_mutex_unlock(&pool->lock);
}

struct pool_origin accmem_pool_history_released(struct accmem_pool *pool,
						const void *pointer, int stream,
						const void *caller)
{
	struct pool_origin origin = {};
	struct pool_event event = { .pointer = pointer,
				    .stream = stream,
				    .site = caller,
				    .released = true };
	struct site *site;

	pthread_mutex_lock(&pool->lock);
	site = find(pool->history, pointer);
	if (site) {
		origin.length = site->length;
		origin.caller = site->caller;
		event.length = site->length;
		drop_site(pool->history, site);
		record_event(pool->history, &event);
	}
	pthread_mutex_unlock(&pool->lock);
	return origin;
}

void accmem_pool_history_release_failed(struct accmem_pool *pool,
					const void *pointer,
					struct pool_origin origin, int error)
{
	if (origin.length && error != -ENOENT)
		accmem_pool_history_allocated(pool, pointer, origin.length, 0,
					      origin.caller);
}

const void *accmem_pool_history_site(const struct accmem_pool *pool,
				     const void *pointer)
{
	const struct site *site;

	site = pool->history ? find(pool->history, pointer) : NULL;
	return site ? site->caller : NULL;
}

const struct pool_event *
accmem_pool_history_event(const struct accmem_pool *pool, uint64_t index)
{
	const struct pool_history *history = pool->history;
	uint64_t first;

	if (!history || !history->events)
		return NULL;
	first = history->count > NR_EVENTS ? history->count - NR_EVENTS : 0;
	if (index >= history->count - first)
		return NULL;
	return &history->events[(first + index) % NR_EVENTS];
}
