// SPDX-License-Identifier: MIT
/*
 * Pools: creation and destruction, fork(), and statistics.
 *
 * A pool is created over a context, and all its memory is freed when it is destroyed.
 *
 * The fork handlers hold the locks of all pools, so that no lock in the child belongs to a
 * thread that exists in the parent only. They are registered after those of the contexts,
 * and so run before them. The child owns none of the memory that it inherits: it may
 * release this memory, but the release frees nothing.
 *
 * Lock order: caches_lock (cache.c) > accmem_pool_list_lock > accmem_pool.lock >
 * pool_arena.lock, in the order of the array > accmem_context.lock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/call.h"
#include "core/context.h"
#include "core/stream.h"
#include "core/util.h"
#include "pool/base.h"
#include "pool/cache.h"
#include "pool/direct.h"
#include "pool/direct_tree.h"
#include "pool/history.h"
#include "pool/list.h"
#include "pool/pending.h"
#include "pool/pool.h"
#include "pool/reclaim.h"
#include "pool/region.h"
#include "pool/slab.h"

static pthread_once_t pools_once = PTHREAD_ONCE_INIT;
static int pools_error;

static void lock_all(void)
{
	struct accmem_pool *pool;

	accmem_pool_cache_lock();
	pthread_mutex_lock(&accmem_pool_list_lock);
	for (pool = accmem_pool_list; pool; pool = pool->next) {
		pthread_mutex_lock(&pool->lock);
		accmem_pool_lock_arenas(pool);
	}
}

static void unlock_all(void)
{
	struct accmem_pool *pool;

	for (pool = accmem_pool_list; pool; pool = pool->next) {
		accmem_pool_unlock_arenas(pool);
		pthread_mutex_unlock(&pool->lock);
	}
	pthread_mutex_unlock(&accmem_pool_list_lock);
	accmem_pool_cache_unlock();
}

/* In a child, all memory and all threads of a pool belong to the parent. */
static void disown(struct accmem_pool *pool)
{
	accmem_pool_cache_disown(pool);
	accmem_pool_pending_disown(pool);
	accmem_pool_region_disown(pool);
	accmem_pool_direct_disown(pool);
	accmem_pool_reclaim_disown(pool);
	pool->live_bytes = 0;
	pool->waiting = 0;
	pool->stats.reserved_bytes = 0;
	pool->stats.kernel_buffers = 0;
}

static void start_child(void)
{
	struct accmem_pool *pool;

	for (pool = accmem_pool_list; pool; pool = pool->next)
		disown(pool);
	unlock_all();
}

/* The stream with this descriptor has ended. */
static void end_stream(int stream)
{
	struct accmem_pool *pool;

	pthread_mutex_lock(&accmem_pool_list_lock);
	for (pool = accmem_pool_list; pool; pool = pool->next) {
		pthread_mutex_lock(&pool->lock);
		accmem_pool_pending_end_stream(pool, stream);
		pthread_mutex_unlock(&pool->lock);
	}
	pthread_mutex_unlock(&accmem_pool_list_lock);
}

static void watch_fork(void)
{
	accmem_watch_streams(end_stream);
	pools_error = pthread_atfork(lock_all, unlock_all, start_child);
}

int accmem_pool_watch_fork(void)
{
	int ret = accmem_watch_fork();

	if (!ret)
		ret = -pthread_once(&pools_once, watch_fork);
	return ret ? ret : -pools_error;
}

/* secure_getenv(): a set-user-ID program ignores the environment. */
static uint32_t flags_of_environment(void)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} words[] = { { "direct", ACCMEM_POOL_DIRECT },
		      { "leaks", ACCMEM_POOL_LEAKS },
		      { "history", ACCMEM_POOL_HISTORY },
		      { "passive", ACCMEM_POOL_PASSIVE } };
	const char *text = secure_getenv("ACCMEM_POOL");
	uint32_t flags = 0;
	size_t i, length;

	while (text && *text) {
		length = strcspn(text, ",");
		for (i = 0; i < ARRAY_SIZE(words); i++)
			if (strlen(words[i].name) == length &&
			    !strncmp(text, words[i].name, length))
				flags |= words[i].flag;
		text += length + (text[length] == ',');
	}
	return flags;
}

static int set_options(struct accmem_pool *pool,
		       const struct accmem_pool_options *options)
{
	pool->flags = flags_of_environment();
	pool->keep_bytes = ACCMEM_POOL_KEEP_ALL;
	if (!options)
		return 0;
	if (options->size && options->size != sizeof(*options)) {
		accmem_set_last_error("options of a pool: %" PRIu32
				      " bytes, not %zu",
				      options->size, sizeof(*options));
		return -EINVAL;
	}
	if (options->flags & ~ACCMEM_POOL_FLAGS) {
		accmem_set_last_error("options of a pool: unknown flags %#" PRIx32,
				      options->flags & ~ACCMEM_POOL_FLAGS);
		return -EINVAL;
	}
	pool->flags |= options->flags;
	if (options->keep_bytes)
		pool->keep_bytes = options->keep_bytes;
	return 0;
}

/* Set the last error if there is an error. Returns @error. */
static int create_failed(int error)
{
	if (error)
		accmem_set_last_error("a new pool: %s", strerror(-error));
	return error;
}

static int set_window(struct accmem_pool *pool)
{
	struct accmem_info info;
	uint64_t alignment;
	int ret = create_failed(accmem_sum_info(pool->ctx, &info));

	if (ret)
		return ret;
	pool->window = pool->ctx->window;
	pool->base = pool->ctx->address_base;
	pool->span = pool->ctx->address_span;
	pool->identity = info.translation == ACCMEM_TRANSLATION_IDENTITY;
	alignment = (uintptr_t)pool->window & -(uintptr_t)pool->window;
	pool->granted = alignment < info.max_alignment ? alignment :
							 info.max_alignment;
	if (pool->window && pool->ctx->window_size >= pool->span)
		return 0;
	accmem_set_last_error("no room in the address space for %" PRIu64
			      " bytes of window",
			      pool->span);
	return -ENOMEM;
}

/* Two more entries: heap.c reads the entry after the last page of a region. */
static size_t table_size(const struct accmem_pool *pool)
{
	return ((pool->span >> POOL_PAGE_SHIFT) + 2) * sizeof(*pool->table);
}

/* Map zeroed memory. Most programs touch only a few of its pages. */
static void *map_zeros(size_t size)
{
	void *zeros = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (zeros != MAP_FAILED)
		return zeros;
	accmem_set_last_error("no memory for the tables of pages");
	return NULL;
}

static void destroy_tables(struct accmem_pool *pool)
{
	if (pool->table)
		munmap(pool->table, table_size(pool));
	if (pool->lists)
		munmap(pool->lists, POOL_NR_HEAPS * sizeof(*pool->lists));
}

static int create_tables(struct accmem_pool *pool)
{
	uint32_t i;

	pool->table = map_zeros(table_size(pool));
	pool->lists = map_zeros(POOL_NR_HEAPS * sizeof(*pool->lists));
	if (!pool->table || !pool->lists) {
		destroy_tables(pool);
		return -ENOMEM;
	}
	for (i = 0; i < POOL_NR_HEAPS; i++)
		pool->heaps[i].lists = &pool->lists[i];
	return 0;
}

static void destroy_locks(struct accmem_pool *pool)
{
	uint32_t i;

	for (i = 0; i < POOL_NR_ARENAS; i++)
		pthread_mutex_destroy(&pool->arenas[i].lock);
	pthread_mutex_destroy(&pool->lock);
}

/* A mutex without attributes needs no resources, so this cannot fail. */
static void create_locks(struct accmem_pool *pool)
{
	uint32_t i;

	pthread_mutex_init(&pool->lock, NULL);
	for (i = 0; i < POOL_NR_ARENAS; i++)
		pthread_mutex_init(&pool->arenas[i].lock, NULL);
}

int accmem_pool_create(struct accmem_context *ctx,
		       const struct accmem_pool_options *options,
		       struct accmem_pool **result)
{
	struct accmem_pool *pool;
	int ret;

	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return create_failed(-ENOMEM);
	pool->ctx = ctx;
	pool->eventfd = POOL_NO_EVENTFD;
	ret = set_options(pool, options);
	if (!ret)
		ret = set_window(pool);
	if (!ret)
		ret = create_tables(pool);
	if (ret)
		goto free_pool;
	ret = create_failed(accmem_pool_history_create(pool));
	if (ret)
		goto destroy_tables;
	create_locks(pool);
	ret = create_failed(accmem_pool_watch_fork());
	if (ret)
		goto destroy_locks;
	accmem_pool_list_add(pool);
	accmem_pool_reclaim_create(pool);
	*result = pool;
	return 0;

destroy_locks:
	destroy_locks(pool);
	accmem_pool_history_destroy(pool);
destroy_tables:
	destroy_tables(pool);
free_pool:
	free(pool);
	return ret;
}

static void destroy(struct accmem_pool *pool)
{
	/* before a fork() cannot find the pool any more: a child must not use these caches */
	accmem_pool_cache_lock();
	accmem_pool_cache_disown(pool);
	accmem_pool_cache_unlock();
	accmem_pool_list_remove(pool);
	accmem_pool_reclaim_stop(pool);
	if (pool->flags & ACCMEM_POOL_LEAKS)
		accmem_pool_report_leaks(pool, STDERR_FILENO);
	accmem_pool_pending_disown(pool);
	accmem_pool_region_destroy_all(pool);
	accmem_pool_slab_destroy_all(pool);
	accmem_pool_direct_destroy(pool);
	accmem_pool_history_destroy(pool);
	destroy_tables(pool);
	destroy_locks(pool);
	free(pool);
}

/* A thread that is cancelled inside destroy() would leak the pool's memory. */
void accmem_pool_destroy(struct accmem_pool *pool)
{
	int state = accmem_cancel_off();

	if (pool)
		destroy(pool);
	accmem_cancel_restore(state);
}

/*
 * Add the counts of the caches. Other threads change theirs meanwhile: a block may be counted
 * at its release by one thread, and not at its allocation by another.
 */
static void add_caches(const struct accmem_pool *pool,
		       struct accmem_pool_stats *stats)
{
	int64_t live = pool_load(&pool->live_bytes);
	const struct pool_cache *cache;

	for (cache = pool->caches; cache; cache = cache->next_of_pool) {
		stats->allocations += pool_load(&cache->allocations);
		stats->releases += pool_load(&cache->releases);
		live += __atomic_load_n(&cache->live, __ATOMIC_RELAXED);
	}
	stats->live_bytes = live > 0 ? live : 0;
}

void accmem_pool_get_stats(struct accmem_pool *pool,
			   struct accmem_pool_stats *stats)
{
	pthread_mutex_lock(&pool->lock);
	*stats = pool->stats;
	stats->pending_bytes = pool->pending_bytes;
	add_caches(pool, stats);
	accmem_pool_raise_peak(pool, stats->live_bytes);
	stats->peak_live_bytes = pool_load(&pool->peak_live_bytes);
	pthread_mutex_unlock(&pool->lock);
	stats->size = sizeof(*stats);
}

void accmem_pool_reset_peaks(struct accmem_pool *pool)
{
	struct accmem_pool_stats stats = {};

	pthread_mutex_lock(&pool->lock);
	add_caches(pool, &stats);
	pool_store(&pool->peak_live_bytes, stats.live_bytes);
	pool->stats.peak_reserved_bytes = pool->stats.reserved_bytes;
	pthread_mutex_unlock(&pool->lock);
}
