/* SPDX-License-Identifier: MIT */
/* Memory without an address, which can be mapped in reservations. */
#ifndef ACCMEM_RUNTIME_ACL_PHYSICAL_H
#define ACCMEM_RUNTIME_ACL_PHYSICAL_H

#include <sys/mman.h>
#include <sys/types.h>

#include "acl/types.h"

/* Flags of mmap() for addresses without memory. */
#define ACL_RESERVED_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

/**
 * struct acl_handle - memory that can be mapped in a reservation
 * @device: device of the memory
 * @process: process that allocated or imported the memory
 * @pointer: pointer of the allocation in the device's pool
 * @size: bytes
 * @at: address where the memory is mapped, or NULL
 * @retained: number of references besides the first
 * @number: shareable handle, if the memory was exported or imported; else 0
 * @imported: the memory was imported
 * @hidden: the device is being closed: no lookup finds the handle
 * @next: next in @handles
 */
struct acl_handle {
	struct acl_device *device;
	pid_t process;
	void *pointer;
	size_t size;
	unsigned char *at;
	unsigned int retained;
	uint64_t number;
	bool imported;
	bool hidden;
	struct acl_handle *next;
};

/* These functions are called under accmem_acl_map_lock. */

/* Return the handle of a call's argument if this process may use it, or NULL. */
struct acl_handle *accmem_acl_handle_find(aclrtDrvMemHandle handle);

/* Return the handle that is mapped at @pointer, or NULL. */
struct acl_handle *accmem_acl_handle_at(const unsigned char *pointer);

/* Return a handle that is mapped in [@pointer, @pointer + @size), or NULL. */
struct acl_handle *accmem_acl_handle_overlapping(const void *pointer,
						 size_t size);

/* Map a handle at @target, in a reservation. Returns 0 or a negative errno value. */
int accmem_acl_handle_map(struct acl_handle *h, unsigned char *target);

/* Unmap a handle. Its addresses stay reserved. */
aclError accmem_acl_handle_unmap(struct acl_handle *h);

/* The functions below take the lock. */

/*
 * Hide memory of a device from lookups by handle and by address. Returns true if any of
 * the memory is mapped.
 */
bool accmem_acl_handles_hide(struct acl_device *device);

/* Export a handle to named processes, or with @any to all of the user. Within a call. */
aclError accmem_acl_handle_export(aclrtDrvMemHandle handle, bool any,
				  uint64_t *number);

/* Import dma-buf @fd as a handle on a device. Within a call. */
aclError accmem_acl_handle_import(int32_t device, int fd, uint64_t number,
				  aclrtDrvMemHandle *handle);

/* Free the handles of a device that is being closed. */
void accmem_acl_handles_free(struct acl_device *device);

#endif /* ACCMEM_RUNTIME_ACL_PHYSICAL_H */
