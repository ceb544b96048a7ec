/* SPDX-License-Identifier: MIT */
/* Errors of the ACL front-end. */
#ifndef ACCMEM_RUNTIME_ACL_ERROR_H
#define ACCMEM_RUNTIME_ACL_ERROR_H

#include <acl/acl.h>

/* Make an error, unless it is of an argument alone, the thread's last one. Returns @error. */
aclError accmem_acl_set_error(aclError error);

/* Make @error the thread's last one again, which may be ACL_SUCCESS. */
void accmem_acl_restore_error(aclError error);

/* Set the text of the last error. Returns @error. */
aclError accmem_acl_fail(aclError error, const char *text);

/* Return ACL's error for a negative errno value of the library. */
aclError accmem_acl_error(int error);

/* Return ACL's error, and set the last error to @what and the errno value's text. */
aclError accmem_acl_failed(const char *what, int error);

#endif /* ACCMEM_RUNTIME_ACL_ERROR_H */
