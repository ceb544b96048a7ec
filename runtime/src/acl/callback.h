/* SPDX-License-Identifier: MIT */
/* Callbacks: functions of the program that a stream runs in its order. */
#ifndef ACCMEM_RUNTIME_ACL_CALLBACK_H
#define ACCMEM_RUNTIME_ACL_CALLBACK_H

#include <acl/acl.h>

/* Drop the subscription of a stream that has ended, and its reports. */
void accmem_acl_callbacks_forget(aclrtStream stream);

/* A child of fork() has no streams: drop everything. The caller holds the lock. */
void accmem_acl_callbacks_disown(void);

#endif /* ACCMEM_RUNTIME_ACL_CALLBACK_H */
