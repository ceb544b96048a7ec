/* SPDX-License-Identifier: MIT */
/* Reserved addresses, and memory that is mapped there. */
#ifndef ACCMEM_RUNTIME_ACL_MAP_H
#define ACCMEM_RUNTIME_ACL_MAP_H

#include "acl/types.h"

/* 1: @count bytes at @pointer have memory; 0: reserved, not all; -1: not reserved. */
int accmem_acl_reserved_covers(const void *pointer, size_t count);

/* The number of the device whose memory is mapped there, -1 if none is. */
int32_t accmem_acl_reserved_device(const void *pointer);

/*
 * Hide memory of a device from lookups by handle and by reserved address. Returns whether
 * some of it is mapped.
 */
bool accmem_acl_handles_hide(struct acl_device *device);

/* Free the handles of a device that is closed. */
void accmem_acl_handles_free(struct acl_device *device);

#endif /* ACCMEM_RUNTIME_ACL_MAP_H */
