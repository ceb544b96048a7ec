/* SPDX-License-Identifier: MIT */
/* Errors of the ACL front-end. */
#ifndef ACCMEM_RUNTIME_ACL_ERROR_H
#define ACCMEM_RUNTIME_ACL_ERROR_H

#include <acl/acl.h>

/* Set the last error to @text; returns @error. */
aclError accmem_acl_fail(aclError error, const char *text);

/* The error of ACL for a negative errno value of the library. */
aclError accmem_acl_error(int error);

/* The same, and set the last error to @what and the words of the errno value. */
aclError accmem_acl_failed(const char *what, int error);

#endif /* ACCMEM_RUNTIME_ACL_ERROR_H */
