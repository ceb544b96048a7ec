// SPDX-License-Identifier: MIT
/*
 * Reclaim: free memory that the pool keeps, on demand and in a thread.
 *
 * A pool that is not passive has a reclaim thread, which an eventfd wakes when a request
 * waits: the driver signals the eventfd for requests of other contexts, and the pool for its
 * own. The thread frees memory of all pools of the context, and repeats that until no request
 * waits.
 *
 * The thread starts at the first of three events: the pool has more memory than its first
 * 2 MiB; a cache takes memory while the pool already has some; a request is about to wait. It
 * does not start with the pool, since that takes longer than the first allocation. It ends
 * with the pool.
 *
 * In a child of fork() the pools of an inherited context have no thread, and keep no memory
 * that is released: the driver notifies a context once, and that is the parent's.
 *
 * If the thread cannot be started, later calls try again. Until then the pool keeps no
 * memory that is released, because nothing would free it for other contexts.
 *
 * Locking: accmem_pool_list_lock over a new registration, accmem_pool.lock inside it.
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

#define RESCAN_MS 100 /* doubles while nothing is freed */
#define RESCAN_MAX_MS 1000

uint64_t accmem_pool_reclaim(struct accmem_pool *pool)
{
	uint64_t bytes = accmem_pool_pending_reap(pool);

	/* other threads empty their caches at their next call that takes the lock */
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
		       struct accmem_pressure *req)
{
	*req = (struct accmem_pressure){ .size = sizeof(*req),
					 .flags = flags,
					 .fd = fd };
	return accmem_call(pool->ctx, ACCMEM_IOC_PRESSURE, req);
}

/* Called for all pools of a context, since the driver notifies one of them. */
static void trim_for_others(struct accmem_pool *pool, void *sum)
{
	uint64_t bytes = accmem_pool_trim(pool, 0);

	pthread_mutex_lock(&pool->lock);
	pool->stats.yielded_bytes += bytes;
	pthread_mutex_unlock(&pool->lock);
	*(uint64_t *)sum += bytes;
}

/*
 * Free the memory of all pools if a request of another context waits. After a reset that has
 * lost the contents of buffers, the query fails until these are freed: then free the memory
 * once. Return true if a request waits.
 */
static bool reclaim_for_others(struct accmem_pool *pool, uint64_t *bytes)
{
	struct accmem_pressure req;
	int ret;

	/* The query of a child would end the notification of its parent. */
	if (pool->ctx->inherited)
		return false;
	ret = call_shrink(pool, 0, 0, &req);
	if (ret == -ECONNRESET || (!ret && req.waiting))
		accmem_pool_list_for_each(pool->ctx, trim_for_others, bytes);
	return !ret && req.waiting;
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

uint64_t accmem_pool_reclaim_all(struct accmem_pool *pool)
{
	uint64_t bytes = 0;

	accmem_pool_list_for_each(pool->ctx, reclaim_pool, &bytes);
	return bytes;
}

/* Free the memory of all pools of the context if a request of this pool waits. */
static bool reclaim_for_own(struct accmem_pool *pool, uint64_t *bytes)
{
	if (!pool_waits(pool))
		return false;
	*bytes += accmem_pool_reclaim_all(pool);
	return true;
}

/*
 * Sleep until the eventfd is signalled, and @timeout ms at most if that is not negative.
 * False: the thread is to end.
 */
static bool reclaim_sleep(struct accmem_pool *pool, int timeout)
{
	struct pollfd event = { .fd = pool->eventfd, .events = POLLIN };
	uint64_t count;
	int ret = 1;

	if (timeout >= 0)
		ret = poll(&event, 1, timeout);
	/* with RLIMIT_NOFILE 0, poll() fails */
	if (ret < 0 && errno != EINTR)
		usleep(timeout * 1000);
	if (ret > 0 && read(pool->eventfd, &count, sizeof(count)) <= 0 &&
	    errno != EINTR)
		return false;
	return !__atomic_load_n(&pool->ends, __ATOMIC_ACQUIRE);
}

/* Return the ms to sleep after a scan that freed @bytes, or -1: until the next signal. */
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

/* The thread blocks all signals, so that handlers run in threads of the program. */
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

/* Create the eventfd and the thread. 0 or a negative errno value. */
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
 * Start the thread, then register. The registration replaces that of another pool of the
 * context, so the pool must not register if its thread could not start.
 */
static void reclaim_begin(struct accmem_pool *pool)
{
	struct accmem_pressure req;
	int ret = 0;

	if (pool->eventfd < 0)
		ret = begin_thread(pool);
	if (!ret)
		ret = call_shrink(pool, ACCMEM_PRESSURE_REGISTER, pool->eventfd,
				  &req);
	pool_store(&pool->retry_ms, ret ? now_ms() + RESCAN_MS : 0);
}

/* Is the pool to have a thread that is registered, but has none? */
static bool reclaim_needs_thread(const struct accmem_pool *pool)
{
	return !(pool->flags & ACCMEM_POOL_PASSIVE) && !pool->ctx->inherited &&
	       (pool->eventfd == POOL_NO_EVENTFD || pool_load(&pool->retry_ms));
}

/* After a failure the next attempt is RESCAN_MS later at the earliest. */
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
	/* in a child of fork() nobody else looks at the streams */
	running = pool->eventfd >= 0 || pool->flags & ACCMEM_POOL_PASSIVE;
	pthread_mutex_unlock(&pool->lock);
	accmem_cancel_restore(state);
	return running;
}

/*
 * Does the program call accmem_pool_yield() when the descriptor of the context is readable?
 * While the context is registered, with an eventfd or without, its descriptor becomes
 * readable when a request of another context begins to wait.
 */
static bool is_polled(const struct accmem_pool *pool)
{
	return (pool->flags & (ACCMEM_POOL_PASSIVE | ACCMEM_POOL_DIRECT)) ==
		       ACCMEM_POOL_PASSIVE &&
	       !pool->ctx->inherited;
}

static void register_thread(struct accmem_pool *pool)
{
	struct accmem_pressure req;

	pthread_mutex_lock(&pool->lock);
	/* during a reset it fails: a later call tries again */
	if (pool->eventfd >= 0 &&
	    call_shrink(pool, ACCMEM_PRESSURE_REGISTER, pool->eventfd, &req))
		pool_store(&pool->retry_ms, now_ms() + RESCAN_MS);
	pthread_mutex_unlock(&pool->lock);
}

/*
 * A pool with a registration has ended, or a passive pool has begun: register the context
 * for the pools that it has now. A registration for a thread replaces one for poll(). The
 * lock of the list is held throughout: if a pool joined or left in between, the registration
 * would be for the list of before.
 */
static void register_context(struct accmem_pool *pool)
{
	struct accmem_pressure req;
	struct accmem_pool *other;
	bool polled = false;

	pthread_mutex_lock(&accmem_pool_list_lock);
	for (other = accmem_pool_list; other; other = other->next)
		polled |= other->ctx == pool->ctx && is_polled(other);
	call_shrink(pool,
		    polled ? ACCMEM_PRESSURE_REGISTER :
			     ACCMEM_PRESSURE_UNREGISTER,
		    polled ? -1 : 0, &req);
	for (other = accmem_pool_list; other; other = other->next)
		if (other->ctx == pool->ctx)
			register_thread(other);
	pthread_mutex_unlock(&accmem_pool_list_lock);
}

void accmem_pool_reclaim_create(struct accmem_pool *pool)
{
	if (is_polled(pool))
		register_context(pool);
}

/* The caller has removed the pool from the list of pools. */
void accmem_pool_reclaim_stop(struct accmem_pool *pool)
{
	const uint64_t one = 1;

	if (is_polled(pool) || pool->eventfd >= 0)
		register_context(pool);
	if (pool->eventfd < 0)
		return;
	__atomic_store_n(&pool->ends, true, __ATOMIC_RELEASE);
	if (write(pool->eventfd, &one, sizeof(one)) == sizeof(one))
		pthread_join(pool->thread, NULL);
	close(pool->eventfd);
	pool->eventfd = POOL_NO_THREAD;
}

/* The thread exists in the parent only. */
void accmem_pool_reclaim_disown(struct accmem_pool *pool)
{
	if (pool->eventfd >= 0)
		accmem_close_locked(pool->eventfd);
	pool->eventfd = POOL_NO_THREAD;
	pool_store(&pool->retry_ms, 0);
}
