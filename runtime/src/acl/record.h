/* SPDX-License-Identifier: MIT */
/* Records about allocations: held by streams, read-only, or host memory. */
#ifndef ACCMEM_RUNTIME_ACL_RECORD_H
#define ACCMEM_RUNTIME_ACL_RECORD_H

#include "acl/types.h"

/* Number of records. Read without the lock, because most programs have no records. */
extern unsigned int accmem_acl_record_count, accmem_acl_record_host_count;

/* A child of fork() has inherited records. Set when the child starts. */
extern bool accmem_acl_record_inherited;

/* Is any allocation held, or read-only? */
static inline bool acl_has_records(void)
{
	return __atomic_load_n(&accmem_acl_record_count, __ATOMIC_ACQUIRE);
}

static inline bool acl_has_hosts(void)
{
	return __atomic_load_n(&accmem_acl_record_host_count, __ATOMIC_ACQUIRE);
}

/* Is @pointer the first byte of host memory? Is it any byte of registered memory? */
bool accmem_acl_record_find_host_start(const void *pointer);
bool accmem_acl_record_find_registered(const void *pointer);

/*
 * Find the host memory that contains @pointer: *@room is the number of its bytes from there on.
 * False: there is none.
 */
bool accmem_acl_record_find_host(const void *pointer, size_t *room,
				 bool *registered);

static inline bool acl_is_host_start(const void *pointer)
{
	return acl_has_hosts() && accmem_acl_record_find_host_start(pointer);
}

static inline bool acl_is_registered(const void *pointer)
{
	return acl_has_hosts() && accmem_acl_record_find_registered(pointer);
}

/* A new allocation has the address @pointer: drop an inherited record of that address. */
void accmem_acl_record_drop_inherited(const void *pointer);

static inline void acl_drop_inherited(const void *pointer)
{
	if (accmem_acl_record_inherited)
		accmem_acl_record_drop_inherited(pointer);
}

/* Add a record. False: there is no memory for it. */
bool accmem_acl_record_add_read_only(void *pointer, struct accmem_pool *pool);
bool accmem_acl_record_add_host(void *pointer, size_t size,
				struct accmem_pool *pool);

/*
 * Return a copy of the record of an allocation; without a record all zeros. The record is
 * removed if it is one of a pool's memory, or with @of_process of memory of the process.
 */
struct acl_record accmem_acl_record_take_host(void *pointer, bool of_process);

/* Register host memory, and undo it. Set the last error. */
aclError accmem_acl_record_register(void *pointer, size_t size);
aclError accmem_acl_record_unregister(void *pointer);

/* Hold, and release, memory that a stream works on. A free waits for the last release. */
aclError accmem_acl_record_hold(struct acl_side *side);
void accmem_acl_record_release(struct acl_side *side);

/*
 * Free the allocation at @pointer. 1: it is held, and its last release frees it; -1: it
 * was freed before; 0: it is not held.
 */
int accmem_acl_record_free_held(void *pointer);

/* Is the allocation at @pointer freed but held? Is it read-only? */
bool accmem_acl_record_is_freed(const void *pointer);
bool accmem_acl_record_is_read_only(const void *pointer);

/* Does a stream hold memory of the device? Wait until no stream does. */
bool accmem_acl_record_is_held(struct acl_device *device);
void accmem_acl_record_wait(struct acl_device *device);

/* Drop the records of a device that is being closed. */
void accmem_acl_record_drop_device(struct acl_device *device);

/* A child of fork() has no streams: drop all holds. The caller holds the lock. */
void accmem_acl_record_disown(void);

#endif /* ACCMEM_RUNTIME_ACL_RECORD_H */
