/* SPDX-License-Identifier: MIT */
/* Contexts of the ACL front-end; with the devices' lock held. */
#ifndef ACCMEM_RUNTIME_ACL_CONTEXT_H
#define ACCMEM_RUNTIME_ACL_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

struct acl_context;

/* The calling thread has set @device: its context is the device's own. */
void accmem_acl_context_select(int32_t device);

/* Free a context that a program has made. False: there is no such context. */
bool accmem_acl_context_remove(const struct acl_context *context,
			       int32_t *device);

/* Free the contexts of a device. */
void accmem_acl_contexts_free(int32_t device);

#endif /* ACCMEM_RUNTIME_ACL_CONTEXT_H */
