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

#include "core/call.h"
#include "core/context.h"
#include "core/util.h"
#include "pool/base.h"
#include "pool/cache.h"
#include "pool/list.h"
#include "pool/pending.h"
#include "pool/reclaim.h"
#include "pool/region.h"
#include "pool/slab.h"

#define RESCAN_MS 100 /* and twice as long each time that nothing comes back */
#define RESCAN_MAX_MS 1000

uint64_t accmem_pool_reclaim(struct accmem_pool *pool)
{
	uint64_t bytes = accmem_pool_pending_reap(pool);

	/* other threads see it when they come by */
	__atomic_fetch_add(&pool->epoch, 1, __ATOMIC_RELAXED);
	accmem_pool_cache_flush_own(pool);
	accmem_pool_slab_trim(pool);
	return bytes + accmem_pool_region_shrink(pool, 0);
}

uint64_t accmem_pool_trim(struct accmem_pool *pool, uint64_t keep_bytes)
{
	uint64_t bytes;

	pthread_mutex_lock(&pool->lock);
	accmem_pool_pending_reap(pool);
	__atomic_fetch_add(&pool->epoch, 1, __ATOMIC_RELAXED);
	accmem_pool_cache_flush_own(pool);
	accmem_pool_slab_trim(pool);
	bytes = accmem_pool_region_shrink(pool, keep_bytes);
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
static void trim_for_others(struct accmem_pool *pool, void *sum)
{
	uint64_t bytes = accmem_pool_trim(pool, 0);

	pthread_mutex_lock(&pool->lock);
	pool->stats.yielded_bytes += bytes;
	pthread_mutex_unlock(&pool->lock);
	*(uint64_t *)sum += bytes;
}

/* Does anybody else wait? */
static bool reclaim_for_others(struct accmem_pool *pool, uint64_t *bytes)
{
	struct accmem_shrink req;

	if (call_shrink(pool, 0, 0, &req) || !req.waiting)
		return false;
	accmem_pool_list_for_each(pool->ctx, trim_for_others, bytes);
	return true;
}

uint64_t accmem_pool_yield(struct accmem_pool *pool)
{
	uint64_t bytes = 0;

	reclaim_for_others(pool, &bytes);
	return bytes;
}

static void reclaim_pool(struct accmem_pool *pool, void *sum)
{
	pthread_mutex_lock(&pool->lock);
	*(uint64_t *)sum += accmem_pool_reclaim(pool);
	pthread_mutex_unlock(&pool->lock);
}

/* Other pools of the context may have what a request of this one waits for. */
static bool reclaim_for_own(struct accmem_pool *pool, uint64_t *bytes)
{
	if (!pool_waits(pool))
		return false;
	accmem_pool_list_for_each(pool->ctx, reclaim_pool, bytes);
	return true;
}

/* Until it is told of a wait, or for so many ms if not negative; false: it is to end. */
static bool reclaim_sleep(struct accmem_pool *pool, int timeout)
{
	struct pollfd event = { .fd = pool->eventfd, .events = POLLIN };
	uint64_t count;
	int ret = 1;

	if (timeout >= 0)
		ret = poll(&event, 1, timeout);
	/* a process may not be allowed as many descriptors as it has */
	if (ret < 0 && errno != EINTR)
		usleep(timeout * 1000);
	if (ret > 0 && read(pool->eventfd, &count, sizeof(count)) <= 0 &&
	    errno != EINTR)
		return false;
	return !__atomic_load_n(&pool->ends, __ATOMIC_ACQUIRE);
}

/* How long to sleep after a look that gave back so much, or -1 */
static int reclaim_pause(int last, bool waits, uint64_t bytes)
{
	if (!waits)
		return -1;
	if (last < 0 || bytes)
		return RESCAN_MS;
	return 2 * last < RESCAN_MAX_MS ? 2 * last : RESCAN_MAX_MS;
}

static void *reclaim_work(void *argument)
{
	struct accmem_pool *pool = argument;
	uint64_t bytes;
	int pause = -1;
	bool waits;

	while (reclaim_sleep(pool, pause)) {
		bytes = 0;
		waits = reclaim_for_others(pool, &bytes) ||
			reclaim_for_own(pool, &bytes);
		pause = reclaim_pause(pause, waits, bytes);
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
	ret = pthread_create(&pool->thread, NULL, reclaim_work, pool);
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
static void reclaim_begin(struct accmem_pool *pool)
{
	struct accmem_shrink req;
	int ret = 0;

	if (pool->eventfd < 0)
		ret = begin_thread(pool);
	if (!ret)
		ret = call_shrink(pool, ACCMEM_SHRINK_REGISTER, pool->eventfd,
				  &req);
	pool_store(&pool->retry_ms, ret ? now_ms() + RESCAN_MS : 0);
}

/* It is to have a thread, and has none, or one that is not told. */
static bool reclaim_needs_thread(const struct accmem_pool *pool)
{
	return !(pool->flags & ACCMEM_POOL_PASSIVE) &&
	       !pool->ctx->parent_registered &&
	       (pool->eventfd == POOL_NO_EVENTFD || pool_load(&pool->retry_ms));
}

/* After a failure, ten times a second at most. */
void accmem_pool_reclaim_start(struct accmem_pool *pool)
{
	uint64_t retry_ms = pool_load(&pool->retry_ms);

	if (reclaim_needs_thread(pool) && (!retry_ms || now_ms() >= retry_ms))
		reclaim_begin(pool);
}

bool accmem_pool_reclaim_wake(struct accmem_pool *pool)
{
	int state = accmem_cancel_off();
	bool running;

	pthread_mutex_lock(&pool->lock);
	if (reclaim_needs_thread(pool))
		reclaim_begin(pool);
	if (pool->eventfd >= 0)
		eventfd_write(pool->eventfd, 1);
	running = pool->eventfd >= 0 || !reclaim_needs_thread(pool);
	pthread_mutex_unlock(&pool->lock);
	accmem_cancel_restore(state);
	return running;
}

/* Another pool of the context is told from now on. */
static void register_pool(struct accmem_pool *pool, void *argument)
{
	struct accmem_shrink req;

	(void)argument;
	pthread_mutex_lock(&pool->lock);
	if (pool->eventfd >= 0)
		call_shrink(pool, ACCMEM_SHRINK_REGISTER, pool->eventfd, &req);
	pthread_mutex_unlock(&pool->lock);
}

/* The pool is not among those of its context any more. */
void accmem_pool_reclaim_stop(struct accmem_pool *pool)
{
	const uint64_t one = 1;
	struct accmem_shrink req;

	if (pool->eventfd < 0)
		return;
	call_shrink(pool, ACCMEM_SHRINK_UNREGISTER, 0, &req);
	accmem_pool_list_for_each(pool->ctx, register_pool, NULL);
	__atomic_store_n(&pool->ends, true, __ATOMIC_RELEASE);
	if (write(pool->eventfd, &one, sizeof(one)) == sizeof(one))
		pthread_join(pool->thread, NULL);
	close(pool->eventfd);
	pool->eventfd = POOL_PASSIVE;
}

/* It has a thread, or begins one when it has something to give back. */
static bool reclaim_may_begin(const struct accmem_pool *pool)
{
	return !(pool->flags & (ACCMEM_POOL_PASSIVE | ACCMEM_POOL_DIRECT)) &&
	       pool->eventfd != POOL_PASSIVE;
}

/*
 * The thread stayed in the parent, and so does being told, which a context is once: where
 * the parent's pool has not begun yet, it does later.
 */
void accmem_pool_reclaim_disown(struct accmem_pool *pool)
{
	if (reclaim_may_begin(pool))
		pool->ctx->parent_registered = true;
	if (pool->eventfd >= 0)
		accmem_close_locked(pool->eventfd);
	pool->eventfd = POOL_PASSIVE;
	pool_store(&pool->retry_ms, 0);
}
