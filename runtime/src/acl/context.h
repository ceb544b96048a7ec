/* SPDX-License-Identifier: MIT */
/* Contexts of the ACL front-end. The caller holds accmem_acl_devices_lock. */
#ifndef ACCMEM_RUNTIME_ACL_CONTEXT_H
#define ACCMEM_RUNTIME_ACL_CONTEXT_H

#include <stdint.h>

struct acl_context;

/* Make the device's own context the calling thread's context. */
void accmem_acl_context_select(int32_t device);

/* Return the number of the device of a context that a program has created, or -1. */
int32_t accmem_acl_context_device(const struct acl_context *context);

/* Free a context that a program has created, and that exists. */
void accmem_acl_context_remove(const struct acl_context *context);

/* Free all contexts of a device. */
void accmem_acl_contexts_free(int32_t device);

#endif /* ACCMEM_RUNTIME_ACL_CONTEXT_H */
