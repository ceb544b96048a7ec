/* SPDX-License-Identifier: MIT */
/* The locks of the ACL front-end that stand for a whole list, in their order. */
#ifndef ACCMEM_RUNTIME_ACL_LOCKS_H
#define ACCMEM_RUNTIME_ACL_LOCKS_H

#include <pthread.h>

/*
 * accmem_acl_calls_lock: calls that are stopped. _devices_lock: the tables of devices and
 * of contexts. _map_lock: reservations and handles. _memory_lock: the records of
 * allocations. _streams_lock: the list of streams, and each device's default stream.
 */
extern pthread_mutex_t accmem_acl_calls_lock, accmem_acl_devices_lock,
	accmem_acl_map_lock, accmem_acl_memory_lock, accmem_acl_streams_lock;

#endif /* ACCMEM_RUNTIME_ACL_LOCKS_H */
