/* SPDX-License-Identifier: MIT */
/* Reserved addresses, and memory that is mapped there. */
#ifndef ACCMEM_RUNTIME_ACL_MAP_H
#define ACCMEM_RUNTIME_ACL_MAP_H

#include "acl/types.h"

/* 1: @count bytes at @pointer have memory; 0: they are reserved; -1: they are not. */
int accmem_acl_reserved_covers(const void *pointer, size_t count);

/* Return the number of the device whose memory is mapped at @pointer, or -1. */
int32_t accmem_acl_reserved_device(const void *pointer);

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

#endif /* ACCMEM_RUNTIME_ACL_MAP_H */
