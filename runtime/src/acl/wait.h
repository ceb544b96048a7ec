/* SPDX-License-Identifier: MIT */
/* Waits with a timeout. */
#ifndef ACCMEM_RUNTIME_ACL_WAIT_H
#define ACCMEM_RUNTIME_ACL_WAIT_H

#include <acl/acl.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/**
 * struct acl_timeout - how long something is waited for
 * @limited: until @until, on CLOCK_MONOTONIC; otherwise for ever
 * @until: when it is over
 */
struct acl_timeout {
	bool limited;
	struct timespec until;
};

/* From @ms on as the interface has it: -1 for ever, or at least 1. */
aclError accmem_acl_timeout_start(struct acl_timeout *timeout, int32_t ms);

/* Initialise a condition for waits with a timeout. */
void accmem_acl_cond_init(pthread_cond_t *cond);

/* Wait for a change. False: the timeout is over. */
bool accmem_acl_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
			  const struct acl_timeout *timeout);

#endif /* ACCMEM_RUNTIME_ACL_WAIT_H */
