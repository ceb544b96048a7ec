/* SPDX-License-Identifier: MIT */
/* Reserved addresses, and memory that is mapped there. */
#ifndef ACCMEM_RUNTIME_ACL_MAP_H
#define ACCMEM_RUNTIME_ACL_MAP_H

#include "acl/types.h"

/* 1: @count bytes at @pointer have memory; 0: they are reserved; -1: they are not. */
int accmem_acl_reserved_covers(const void *pointer, size_t count);

/* Return the number of the device whose memory is mapped at @pointer, or -1. */
int32_t accmem_acl_reserved_device(const void *pointer);

#endif /* ACCMEM_RUNTIME_ACL_MAP_H */
