// SPDX-License-Identifier: MIT
/*
 * Calls: the calls of the ACL front-end that use a device, or memory found by its address.
 * A device is closed when no call is at work.
 *
 * A call increments one of NR_SLOTS counters, which threads share evenly, so that frequent
 * calls of many threads do not contend for a cache line. To close a device, a thread stops
 * new calls and waits for those at work. A call that waits for a stream is not counted
 * during that wait.
 *
 * Lock order: accmem_acl_calls_lock comes before all other locks of the front-end. A call
 * ends without that lock, since its thread may hold others.
 */
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "acl/call.h"
#include "acl/locks.h"
#include "core/util.h"

#define NR_SLOTS 16
#define CACHE_LINE 64

/**
 * struct call_slot - the counter of some threads' calls
 * @count: number of calls at work
 */
struct call_slot {
	_Alignas(CACHE_LINE) uint64_t count;
};

/* Protected by accmem_acl_calls_lock; read without it. */
static bool calls_stopped;
static pthread_cond_t calls_resumed = PTHREAD_COND_INITIALIZER;

/* Posted for each call that ends while calls are stopped. All zeros: a count of 0. */
static sem_t calls_ended;

static struct call_slot call_slots[NR_SLOTS];
static unsigned int call_threads; /* number of threads that have a slot */

/* The calling thread's slot, and how deep its calls are nested. */
static __thread struct call_slot *call_slot;
static __thread unsigned int call_depth;

static void call_count(int64_t more)
{
	__atomic_fetch_add(&call_slot->count, more, __ATOMIC_SEQ_CST);
}

static bool calls_are_stopped(void)
{
	return __atomic_load_n(&calls_stopped, __ATOMIC_SEQ_CST);
}

/* The caller holds the lock. */
static void calls_wait_locked(void)
{
	int state = accmem_cancel_off();

	while (calls_stopped)
		pthread_cond_wait(&calls_resumed, &accmem_acl_calls_lock);
	accmem_cancel_restore(state);
}

/* Calls are stopped: begin this call after they have resumed. */
static void call_begin_later(void)
{
	call_count(-1);
	sem_post(&calls_ended);
	pthread_mutex_lock(&accmem_acl_calls_lock);
	calls_wait_locked();
	call_count(1);
	pthread_mutex_unlock(&accmem_acl_calls_lock);
}

void accmem_acl_call_begin(void)
{
	if (call_depth++)
		return;
	if (!call_slot)
		call_slot = &call_slots[__atomic_fetch_add(&call_threads, 1,
							   __ATOMIC_RELAXED) %
					NR_SLOTS];
	call_count(1);
	if (calls_are_stopped())
		call_begin_later();
}

void accmem_acl_call_end(void)
{
	if (--call_depth)
		return;
	call_count(-1);
	if (calls_are_stopped())
		sem_post(&calls_ended);
}

static bool calls_are_at_work(void)
{
	uint64_t count = 0;
	int i;

	for (i = 0; i < NR_SLOTS; i++)
		count +=
			__atomic_load_n(&call_slots[i].count, __ATOMIC_SEQ_CST);
	return count;
}

void accmem_acl_calls_stop(void)
{
	pthread_mutex_lock(&accmem_acl_calls_lock);
	calls_wait_locked();
	__atomic_store_n(&calls_stopped, true, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&accmem_acl_calls_lock);
	while (calls_are_at_work())
		sem_wait(&calls_ended);
}

void accmem_acl_calls_resume(void)
{
	pthread_mutex_lock(&accmem_acl_calls_lock);
	__atomic_store_n(&calls_stopped, false, __ATOMIC_SEQ_CST);
	pthread_cond_broadcast(&calls_resumed);
	pthread_mutex_unlock(&accmem_acl_calls_lock);
}

void accmem_acl_calls_disown(void)
{
	int i;

	for (i = 0; i < NR_SLOTS; i++)
		call_slots[i].count = 0;
	calls_stopped = false;
	/* the threads that wait are the parent's */
	calls_resumed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	sem_init(&calls_ended, 0, 0);
}
