// SPDX-License-Identifier: MIT
/*
 * Giving memory back: when it is asked for, and when other contexts wait for it, or
 * requests of the pool's own, which a thread of the pool is told of by an eventfd.
 *
 * The thread begins when a pool keeps more than the first 2 MiB, when a cache comes
 * for more the second time, or when a request is to wait: to begin it takes longer than
 * the first allocation. It ends with the pool. It is told when a wait begins, and from
 * then on looks again and again what has come back, until nobody waits any more.
 *
 * Where it cannot begin, the next calls of the pool try again. Until it does, the pool
 * keeps nothing that is released: nobody would give it back.
 *
 * Locking: accmem_pool.lock.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "pool.h"

#define LOOK_AGAIN_MS \
	100 /* and twice as long each time that nothing comes back */
#define LOOK_MOST_MS 1000

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
		       struct accmem_pressure *req)
{
	*req = (struct accmem_pressure){ .size = sizeof(*req),
					 .flags = flags,
					 .fd = fd };
	return accmem_call(pool->ctx, ACCMEM_IOC_PRESSURE, req);
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

/* Does anybody else wait? */
static bool yield_to_others(struct accmem_pool *pool, uint64_t *bytes)
{
	struct accmem_pressure req;

	if (call_shrink(pool, 0, 0, &req) || !req.waiting)
		return false;
	accmem_pools_each(pool->ctx, yield_one, bytes);
	return true;
}

uint64_t accmem_pool_yield(struct accmem_pool *pool)
{
	uint64_t bytes = 0;

	yield_to_others(pool, &bytes);
	return bytes;
}

static void reclaim_one(struct accmem_pool *pool, void *sum)
{
	pthread_mutex_lock(&pool->lock);
	*(uint64_t *)sum += accmem_pool_reclaim(pool);
	pthread_mutex_unlock(&pool->lock);
}

/* Other pools of the context may have what a request of this one waits for. */
static bool yield_to_own(struct accmem_pool *pool, uint64_t *bytes)
{
	if (!pool_waits(pool))
		return false;
	accmem_pools_each(pool->ctx, reclaim_one, bytes);
	return true;
}

/* Until it is told of a wait, or for so many ms if not negative; false: it is to end. */
static bool yield_sleep(struct accmem_pool *pool, int timeout)
{
	struct pollfd told = { .fd = pool->eventfd, .events = POLLIN };
	uint64_t count;
	int ret = 1;

	if (timeout >= 0)
		ret = poll(&told, 1, timeout);
	/* a process may not be allowed as many descriptors as it has */
	if (ret < 0 && errno != EINTR)
		usleep(timeout * 1000);
	if (ret > 0 && read(pool->eventfd, &count, sizeof(count)) <= 0 &&
	    errno != EINTR)
		return false;
	return !__atomic_load_n(&pool->ends, __ATOMIC_ACQUIRE);
}

/* How long to sleep after a look that gave back so much, or -1 */
static int yield_pause(int last, bool waits, uint64_t bytes)
{
	if (!waits)
		return -1;
	if (last < 0 || bytes)
		return LOOK_AGAIN_MS;
	return 2 * last < LOOK_MOST_MS ? 2 * last : LOOK_MOST_MS;
}

static void *yield_work(void *argument)
{
	struct accmem_pool *pool = argument;
	uint64_t bytes;
	int pause = -1;
	bool waits;

	while (yield_sleep(pool, pause)) {
		bytes = 0;
		waits = yield_to_others(pool, &bytes) ||
			yield_to_own(pool, &bytes);
		pause = yield_pause(pause, waits, bytes);
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

/* 0 or a negative errno value */
static int begin_thread(struct accmem_pool *pool)
{
	int ret, fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	pool->eventfd = fd;
	ret = start_thread(pool);
	if (!ret)
		return 0;
	pool->eventfd = POOL_NO_EVENTFD;
	accmem_close_locked(fd);
	return -ret;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

/*
 * The thread goes first: a pool without one takes the place of no other pool that its
 * context tells.
 */
static void yield_begin(struct accmem_pool *pool)
{
	struct accmem_pressure req;
	int ret = 0;

	if (pool->eventfd < 0)
		ret = begin_thread(pool);
	if (!ret)
		ret = call_shrink(pool, ACCMEM_PRESSURE_REGISTER, pool->eventfd,
				  &req);
	pool_store(&pool->retry_ms, ret ? now_ms() + LOOK_AGAIN_MS : 0);
}

/* It is to have a thread, and has none, or one that is not told. */
static bool yield_is_wanted(const struct accmem_pool *pool)
{
	return !(pool->flags & ACCMEM_POOL_PASSIVE) &&
	       !pool->ctx->parent_told &&
	       (pool->eventfd == POOL_NO_EVENTFD || pool_load(&pool->retry_ms));
}

/* After a failure, ten times a second at most. */
void accmem_yield_start(struct accmem_pool *pool)
{
	uint64_t retry_ms = pool_load(&pool->retry_ms);

	if (yield_is_wanted(pool) && (!retry_ms || now_ms() >= retry_ms))
		yield_begin(pool);
}

bool accmem_yield_wake(struct accmem_pool *pool)
{
	int state = accmem_cancel_off();
	bool looks;

	pthread_mutex_lock(&pool->lock);
	if (yield_is_wanted(pool))
		yield_begin(pool);
	if (pool->eventfd >= 0)
		eventfd_write(pool->eventfd, 1);
	looks = pool->eventfd >= 0 || !yield_is_wanted(pool);
	pthread_mutex_unlock(&pool->lock);
	accmem_cancel_restore(state);
	return looks;
}

/* Another pool of the context is told from now on. */
static void register_again(struct accmem_pool *pool, void *argument)
{
	struct accmem_pressure req;

	(void)argument;
	pthread_mutex_lock(&pool->lock);
	if (pool->eventfd >= 0)
		call_shrink(pool, ACCMEM_PRESSURE_REGISTER, pool->eventfd,
			    &req);
	pthread_mutex_unlock(&pool->lock);
}

/* The pool is not among those of its context any more. */
void accmem_yield_stop(struct accmem_pool *pool)
{
	const uint64_t one = 1;
	struct accmem_pressure req;

	if (pool->eventfd < 0)
		return;
	call_shrink(pool, ACCMEM_PRESSURE_UNREGISTER, 0, &req);
	accmem_pools_each(pool->ctx, register_again, NULL);
	__atomic_store_n(&pool->ends, true, __ATOMIC_RELEASE);
	if (write(pool->eventfd, &one, sizeof(one)) == sizeof(one))
		pthread_join(pool->thread, NULL);
	close(pool->eventfd);
	pool->eventfd = POOL_PASSIVE;
}

/* It has a thread, or begins one when it has something to give back. */
static bool yield_may_begin(const struct accmem_pool *pool)
{
	return !(pool->flags & (ACCMEM_POOL_PASSIVE | ACCMEM_POOL_DIRECT)) &&
	       pool->eventfd != POOL_PASSIVE;
}

/*
 * The thread stayed in the parent, and so does being told, which a context is once: where
 * the parent's pool has not begun yet, it does later.
 */
void accmem_yield_disown(struct accmem_pool *pool)
{
	if (yield_may_begin(pool))
		pool->ctx->parent_told = true;
	if (pool->eventfd >= 0)
		accmem_close_locked(pool->eventfd);
	pool->eventfd = POOL_PASSIVE;
	pool_store(&pool->retry_ms, 0);
}
