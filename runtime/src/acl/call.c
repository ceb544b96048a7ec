// SPDX-License-Identifier: MIT
/*
 * Calls of the ACL front-end that are at work on a device, or on memory that they have
 * found by its address: a device is closed while there are none.
 *
 * A call counts itself in one of several places, which threads share evenly: calls are
 * many, and do not wait for one another. Who closes a device holds off the calls that
 * come, and waits for those that are there. A call that waits for a stream is not
 * counted meanwhile.
 *
 * Lock order: accmem_acl_calls_lock before everything else of the front-end. A call ends
 * without it, for it may have others.
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
 * struct call_slot - where some threads count their calls
 * @count: how many there are
 */
struct call_slot {
	_Alignas(CACHE_LINE) uint64_t count;
};

/* Protects what follows, but for looking at it. */
static bool calls_stopped;
static pthread_cond_t calls_resumed = PTHREAD_COND_INITIALIZER;

/* Is posted for each call that has ended while they were stopped; zeros are none. */
static sem_t calls_ended;

static struct call_slot call_slots[NR_SLOTS];
static unsigned int call_threads; /* that have a slot */

/* The calling thread's; a call within a call is part of it. */
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

/* With the lock held. */
static void calls_wait_locked(void)
{
	int state = accmem_cancel_off();

	while (calls_stopped)
		pthread_cond_wait(&calls_resumed, &accmem_acl_calls_lock);
	accmem_cancel_restore(state);
}

/* A device is being closed: the call begins after that. */
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
	/* those who wait are the parent's */
	calls_resumed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	sem_init(&calls_ended, 0, 0);
}
