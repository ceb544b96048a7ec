/* SPDX-License-Identifier: MIT */
/* Records about allocations: held by streams, read-only, or of the host. */
#ifndef ACCMEM_RUNTIME_ACL_RECORD_H
#define ACCMEM_RUNTIME_ACL_RECORD_H

#include "acl/types.h"

/* Read without the lock, because there are no records as a rule: how many there are. */
extern unsigned int accmem_acl_record_count, accmem_acl_record_host_count;

/* A child of fork() has inherited records; set when the child starts. */
extern bool accmem_acl_record_inherited;

/* Has any allocation a hold, or is any read-only? */
static inline bool acl_has_records(void)
{
	return __atomic_load_n(&accmem_acl_record_count, __ATOMIC_ACQUIRE);
}

static inline bool acl_has_hosts(void)
{
	return __atomic_load_n(&accmem_acl_record_host_count, __ATOMIC_ACQUIRE);
}

/* Is @pointer the first byte of memory of the host; or any byte of such memory? */
bool accmem_acl_record_find_host_start(const void *pointer);
bool accmem_acl_record_find_host(const void *pointer);

static inline bool acl_is_host_start(const void *pointer)
{
	return acl_has_hosts() && accmem_acl_record_find_host_start(pointer);
}

static inline bool acl_is_host(const void *pointer)
{
	return acl_has_hosts() && accmem_acl_record_find_host(pointer);
}

/* A new allocation is at @pointer: an inherited record of that address is stale. */
void accmem_acl_record_drop_inherited(const void *pointer);

static inline void acl_drop_inherited(const void *pointer)
{
	if (accmem_acl_record_inherited)
		accmem_acl_record_drop_inherited(pointer);
}

/* False: there is no memory for the record. */
bool accmem_acl_record_add_read_only(void *pointer, struct accmem_pool *pool);
bool accmem_acl_record_add_host(void *pointer, size_t size,
				struct accmem_pool *pool);

/* Remove the record of memory of the host, and return it; without a pointer if none. */
struct acl_record accmem_acl_record_take_host(void *pointer);

/* Memory that a stream works on: a free of it waits for the last release. */
aclError accmem_acl_record_hold(struct acl_side *side);
void accmem_acl_record_release(struct acl_side *side);

/*
 * Free the allocation at @pointer: 1 if it is held and goes with its last hold, -1 if it
 * was freed before, 0 if it is not held.
 */
int accmem_acl_record_free_held(void *pointer);

/* Is the allocation at @pointer freed, but held; is it read-only? */
bool accmem_acl_record_is_freed(const void *pointer);
bool accmem_acl_record_is_read_only(const void *pointer);

/* Does a stream hold memory of a device? The second waits until none does. */
bool accmem_acl_record_is_held(struct acl_device *device);
void accmem_acl_record_wait(struct acl_device *device);

/* Drop the records of a device that is closed. */
void accmem_acl_record_drop_device(struct acl_device *device);

/* In a child of fork(), which has no stream; with the memory's lock held. */
void accmem_acl_record_disown(void);

#endif /* ACCMEM_RUNTIME_ACL_RECORD_H */
