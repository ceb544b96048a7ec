/* SPDX-License-Identifier: MIT */
/* Calls that use a device, or memory found by its address. */
#ifndef ACCMEM_RUNTIME_ACL_CALL_H
#define ACCMEM_RUNTIME_ACL_CALL_H

/*
 * Begin and end a call. No device is closed between the two, so pointers to devices, and
 * the results of lookups in pools, stay valid. A call must not wait for a stream. Calls
 * nest; the caller of the outermost begin holds no locks.
 */
void accmem_acl_call_begin(void);
void accmem_acl_call_end(void);

/* Let no call begin before accmem_acl_calls_resume(), and wait until none is at work. */
void accmem_acl_calls_stop(void);
void accmem_acl_calls_resume(void);

/* In a child of fork(), which has none of its parent's calls. */
void accmem_acl_calls_disown(void);

#endif /* ACCMEM_RUNTIME_ACL_CALL_H */
