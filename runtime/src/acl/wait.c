// SPDX-License-Identifier: MIT
/* Waits for a condition, with or without a timeout. */
#include <errno.h>

#include "acl/error.h"
#include "acl/wait.h"
#include "core/util.h"

aclError accmem_acl_timeout_start(struct acl_timeout *timeout, int32_t ms)
{
	struct timespec *until = &timeout->until;

	if (ms < -1 || !ms)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "a timeout is -1, or at least 1 ms");
	timeout->limited = ms > 0;
	clock_gettime(CLOCK_MONOTONIC, until);
	until->tv_sec += ms / 1000;
	until->tv_nsec += ms % 1000 * 1000000l;
	if (until->tv_nsec >= 1000000000) {
		until->tv_nsec -= 1000000000;
		until->tv_sec++;
	}
	return ACL_SUCCESS;
}

void accmem_acl_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

bool accmem_acl_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
			  const struct acl_timeout *timeout)
{
	int state = accmem_cancel_off();
	int ret = timeout->limited ?
			  pthread_cond_timedwait(cond, lock, &timeout->until) :
			  pthread_cond_wait(cond, lock);

	accmem_cancel_restore(state);
	return ret != ETIMEDOUT;
}
