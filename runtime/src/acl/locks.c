// SPDX-License-Identifier: MIT
/*
 * The locks of the ACL front-end that protect a table or a list. A thread takes several of
 * them in the order of their definitions. fork() takes all of them (fork.c).
 */
#include "acl/locks.h"

pthread_mutex_t accmem_acl_calls_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t accmem_acl_devices_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t accmem_acl_map_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t accmem_acl_shares_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t accmem_acl_memory_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t accmem_acl_events_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t accmem_acl_streams_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t accmem_acl_callbacks_lock = PTHREAD_MUTEX_INITIALIZER;
