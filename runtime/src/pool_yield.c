// SPDX-License-Identifier: MIT
/*
 * Giving memory back: when it is asked for, and when other contexts wait for it,
 * which a thread of the pool is told of by an eventfd.
 *
 * The thread begins when a pool keeps more than the first 2 MiB, or when a cache comes
 * for more the second time: to begin it takes longer than the first allocation. It ends
 * with the pool.
 *
 * Locking: accmem_pool.lock.
 */
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pool.h"

uint64_t accmem_pool_reclaim(struct accmem_pool *pool)
{
	uint64_t bytes = accmem_pending_reap(pool);

	/* other threads see it when they come by */
	__atomic_fetch_add(&pool->epoch, 1, __ATOMIC_RELAXED);
	accmem_cache_flush_own(pool);
	accmem_slab_trim(pool);
	return bytes + accmem_region_shrink(pool, 0);
}

uint64_t accmem_pool_trim(struct accmem_pool *pool, uint64_t keep_bytes)
{
	uint64_t bytes;

	pthread_mutex_lock(&pool->lock);
	accmem_pending_reap(pool);
	__atomic_fetch_add(&pool->epoch, 1, __ATOMIC_RELAXED);
	accmem_cache_flush_own(pool);
	accmem_slab_trim(pool);
	bytes = accmem_region_shrink(pool, keep_bytes);
	pthread_mutex_unlock(&pool->lock);
	return bytes;
}

static int call_shrink(struct accmem_pool *pool, uint32_t flags, int fd,
		       struct accmem_shrink *req)
{
	*req = (struct accmem_shrink){ .size = sizeof(*req),
				       .flags = flags,
				       .fd = fd };
	return accmem_call(pool->ctx, ACCMEM_IOC_SHRINK, req);
}

/* The driver tells a context once, whichever of its pools asked for it. */
static void yield_one(struct accmem_pool *pool, void *sum)
{
	uint64_t bytes = accmem_pool_trim(pool, 0);

	pthread_mutex_lock(&pool->lock);
	pool->stats.yielded_bytes += bytes;
	pthread_mutex_unlock(&pool->lock);
	*(uint64_t *)sum += bytes;
}

uint64_t accmem_pool_yield(struct accmem_pool *pool)
{
	struct accmem_shrink req;
	uint64_t bytes = 0;

	if (call_shrink(pool, 0, 0, &req) || !req.waiting)
		return 0;
	accmem_pools_each(pool->ctx, yield_one, &bytes);
	return bytes;
}

static void *yield_work(void *argument)
{
	struct accmem_pool *pool = argument;
	uint64_t count;

	while (read(pool->eventfd, &count, sizeof(count)) > 0 ||
	       errno == EINTR) {
		if (__atomic_load_n(&pool->ends, __ATOMIC_ACQUIRE))
			break;
		accmem_pool_yield(pool);
	}
	return NULL;
}

/* The program's signals are the program's threads' business. */
static int start_thread(struct accmem_pool *pool)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&pool->thread, NULL, yield_work, pool);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

/* A pool that cannot have it gives back when it is called, as a passive one. */
void accmem_yield_start(struct accmem_pool *pool)
{
	struct accmem_shrink req;
	int fd;

	if (pool->eventfd != POOL_NO_EVENTFD ||
	    pool->flags & ACCMEM_POOL_PASSIVE)
		return;
	fd = eventfd(0, EFD_CLOEXEC);
	pool->eventfd = fd < 0 ? POOL_PASSIVE : fd;
	if (fd < 0)
		return;
	if (!call_shrink(pool, ACCMEM_SHRINK_REGISTER, fd, &req) &&
	    !start_thread(pool))
		return;
	call_shrink(pool, ACCMEM_SHRINK_UNREGISTER, 0, &req);
	pool->eventfd = POOL_PASSIVE;
	close(fd);
}

/* Another pool of the context is told from now on. */
static void register_again(struct accmem_pool *pool, void *argument)
{
	struct accmem_shrink req;

	(void)argument;
	pthread_mutex_lock(&pool->lock);
	if (pool->eventfd >= 0)
		call_shrink(pool, ACCMEM_SHRINK_REGISTER, pool->eventfd, &req);
	pthread_mutex_unlock(&pool->lock);
}

/* The pool is not among those of its context any more. */
void accmem_yield_stop(struct accmem_pool *pool)
{
	const uint64_t one = 1;
	struct accmem_shrink req;

	if (pool->eventfd < 0)
		return;
	call_shrink(pool, ACCMEM_SHRINK_UNREGISTER, 0, &req);
	accmem_pools_each(pool->ctx, register_again, NULL);
	__atomic_store_n(&pool->ends, true, __ATOMIC_RELEASE);
	if (write(pool->eventfd, &one, sizeof(one)) == sizeof(one))
		pthread_join(pool->thread, NULL);
	close(pool->eventfd);
	pool->eventfd = POOL_PASSIVE;
}

/* The thread, and being told, stayed in the parent. */
void accmem_yield_disown(struct accmem_pool *pool)
{
	if (pool->eventfd >= 0)
		close(pool->eventfd);
	pool->eventfd = POOL_PASSIVE;
}
