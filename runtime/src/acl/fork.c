// SPDX-License-Identifier: MIT
/*
 * fork() in a program that uses the ACL front-end.
 *
 * The fork handlers hold all locks of locks.c, so that no lock in the child belongs to a
 * thread that exists in the parent only.
 */
#include <errno.h>

#include "acl/call.h"
#include "acl/fork.h"
#include "acl/locks.h"
#include "acl/record.h"
#include "acl/report.h"
#include "acl/share.h"
#include "core/util.h"
#include "pool/pool.h"

/* In the order in which all other functions take them. */
static pthread_mutex_t *const locks[] = {
	&accmem_acl_calls_lock,	  &accmem_acl_devices_lock,
	&accmem_acl_map_lock,	  &accmem_acl_shares_lock,
	&accmem_acl_memory_lock,  &accmem_acl_events_lock,
	&accmem_acl_streams_lock, &accmem_acl_callbacks_lock
};

static void lock_all(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(locks); i++)
		pthread_mutex_lock(locks[i]);
}

static void unlock_all(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(locks); i++)
		pthread_mutex_unlock(locks[i]);
}

static void start_child(void)
{
	accmem_acl_calls_disown();
	accmem_acl_record_disown();
	accmem_acl_shares_disown();
	accmem_acl_callbacks_disown();
	unlock_all();
}

static int fork_error;

/*
 * A constructor, so that the handlers exist before a thread opens the first device. They
 * are registered after those of the pools. Hence they run before these, and in the child
 * after these.
 */
__attribute__((constructor)) static void watch_fork(void)
{
	fork_error = accmem_pool_watch_fork();
	if (!fork_error)
		fork_error = -pthread_atfork(lock_all, unlock_all, start_child);
}

int accmem_acl_fork_error(void)
{
	return fork_error;
}
