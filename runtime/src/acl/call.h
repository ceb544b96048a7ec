/* SPDX-License-Identifier: MIT */
/*
 * Calls that are at work on a device, or on memory that they have found by its address.
 */
#ifndef ACCMEM_RUNTIME_ACL_CALL_H
#define ACCMEM_RUNTIME_ACL_CALL_H

/*
 * Begin and end a call. No device is closed in between, so devices, and what pools say
 * of an address, stay valid. A call does not wait for a stream. Calls nest; the first
 * begins without locks.
 */
void accmem_acl_call_begin(void);
void accmem_acl_call_end(void);

/* Stop: wait until no call is at work, and let none begin before accmem_acl_calls_resume(). */
void accmem_acl_calls_stop(void);
void accmem_acl_calls_resume(void);

/* In a child of fork(), which has none of its parent's calls. */
void accmem_acl_calls_disown(void);

#endif /* ACCMEM_RUNTIME_ACL_CALL_H */
