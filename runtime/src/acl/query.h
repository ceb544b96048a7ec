/* SPDX-License-Identifier: MIT */
/* Query: the memory at a pointer. */
#ifndef ACCMEM_RUNTIME_ACL_QUERY_H
#define ACCMEM_RUNTIME_ACL_QUERY_H

#include "acl/types.h"

/* Find the memory of @count bytes at @pointer. Sets the last error. */
aclError accmem_acl_side_lookup(struct acl_side *side, const void *pointer,
				size_t count);

/* Is a side that was looked up memory of a device, or host memory that is known? */
bool accmem_acl_side_is_known(const struct acl_side *side);

#endif /* ACCMEM_RUNTIME_ACL_QUERY_H */
