/* SPDX-License-Identifier: MIT */
/* The locks of the ACL front-end that protect a table or a list, in their order. */
#ifndef ACCMEM_RUNTIME_ACL_LOCKS_H
#define ACCMEM_RUNTIME_ACL_LOCKS_H

#include <pthread.h>

/*
 * accmem_acl_calls_lock: whether calls are stopped
 * accmem_acl_devices_lock: the tables of devices and of contexts
 * accmem_acl_map_lock: reservations and handles
 * accmem_acl_shares_lock: exports to other processes
 * accmem_acl_memory_lock: records of allocations
 * accmem_acl_events_lock: the tree of events
 * accmem_acl_streams_lock: the list of streams, and the default stream of each device
 * accmem_acl_callbacks_lock: subscriptions and reports
 */
extern pthread_mutex_t accmem_acl_calls_lock, accmem_acl_devices_lock,
	accmem_acl_map_lock, accmem_acl_shares_lock, accmem_acl_memory_lock,
	accmem_acl_events_lock, accmem_acl_streams_lock,
	accmem_acl_callbacks_lock;

#endif /* ACCMEM_RUNTIME_ACL_LOCKS_H */
