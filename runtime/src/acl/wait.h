/* SPDX-License-Identifier: MIT */
/* Waits for a condition, with or without a timeout. */
#ifndef ACCMEM_RUNTIME_ACL_WAIT_H
#define ACCMEM_RUNTIME_ACL_WAIT_H

#include <acl/acl.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/**
 * struct acl_timeout - end of a wait
 * @limited: the wait ends at @until; otherwise it has no end
 * @until: end of the wait, on CLOCK_MONOTONIC
 */
struct acl_timeout {
	bool limited;
	struct timespec until;
};

/* Start a timeout of @ms: -1 for no end, or at least 1. Sets the last error. */
aclError accmem_acl_timeout_start(struct acl_timeout *timeout, int32_t ms);

/* Initialise a condition for accmem_acl_cond_wait(). */
void accmem_acl_cond_init(pthread_cond_t *cond);

/* Wait for a signal. False: the timeout is over. */
bool accmem_acl_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
			  const struct acl_timeout *timeout);

#endif /* ACCMEM_RUNTIME_ACL_WAIT_H */
