/* SPDX-License-Identifier: MIT */
/* Types and errors of ACL: see acl(3). */
#ifndef ACCMEM_ACL_BASE_H
#define ACCMEM_ACL_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int aclError;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtContext;

/* Constants, as in the interface; the names with _RT_ are macros there. */
static const int ACL_SUCCESS = 0, ACL_ERROR_NONE = 0,
		 ACL_ERROR_INVALID_PARAM = 100000,
		 ACL_ERROR_UNINITIALIZE = 100001,
		 ACL_ERROR_REPEAT_INITIALIZE = 100002,
		 ACL_ERROR_REPEAT_FINALIZE = 100037,
		 ACL_ERROR_BAD_ALLOC = 200000,
		 ACL_ERROR_FEATURE_UNSUPPORTED = 200006,
		 ACL_ERROR_INTERNAL_ERROR = 500000, ACL_ERROR_FAILURE = 500001;

#define ACL_ERROR_RT_PARAM_INVALID 107000
#define ACL_ERROR_RT_INVALID_DEVICEID 107001
#define ACL_ERROR_RT_CONTEXT_NULL 107002
#define ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID 107006
#define ACL_ERROR_RT_INVALID_HANDLE 107017
#define ACL_ERROR_RT_FEATURE_NOT_SUPPORT 207000
#define ACL_ERROR_RT_MEMORY_ALLOCATION 207001
#define ACL_ERROR_RT_INTERNAL_ERROR 507000
#define ACL_ERROR_RT_STREAM_SYNC_TIMEOUT 507046
#define ACL_ERROR_RT_EVENT_SYNC_TIMEOUT 507047

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_ACL_BASE_H */
