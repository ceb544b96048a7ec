// SPDX-License-Identifier: MIT
/* Errors of the ACL front-end: codes for errno values, and the text of the last error. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <accmem_pool.h>

#include "acl/error.h"

#define MESSAGE_SIZE 384

/* Errors up to this one are of arguments alone. */
#define LAST_ARGUMENT_ERROR 100999

static __thread aclError last_error;

aclError accmem_acl_set_error(aclError error)
{
	if (error > LAST_ARGUMENT_ERROR)
		last_error = error;
	return error;
}

void accmem_acl_restore_error(aclError error)
{
	last_error = error;
}

aclError accmem_acl_fail(aclError error, const char *text)
{
	accmem_set_last_error("%s", text);
	return accmem_acl_set_error(error);
}

static aclError error_of(int error)
{
	switch (error) {
	case 0:
		return ACL_SUCCESS;
	case -ENOMEM:
	case -EDQUOT:
	case -EOVERFLOW:
	case -ETIMEDOUT:
		return ACL_ERROR_RT_MEMORY_ALLOCATION;
	case -EOPNOTSUPP:
		return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
	case -ENODEV:
		return ACL_ERROR_RT_INVALID_DEVICEID;
	case -EINVAL:
	case -ENOENT:
	case -EBUSY:
		return ACL_ERROR_RT_PARAM_INVALID;
	default:
		return ACL_ERROR_RT_INTERNAL_ERROR;
	}
}

aclError accmem_acl_error(int error)
{
	return accmem_acl_set_error(error_of(error));
}

aclError accmem_acl_failed(const char *what, int error)
{
	if (error)
		accmem_set_last_error("%s: %s", what, strerror(-error));
	return accmem_acl_error(error);
}

const char *aclGetRecentErrMsg(void)
{
	static __thread char message[MESSAGE_SIZE];

	snprintf(message, sizeof(message), "%s", accmem_last_error());
	accmem_set_last_error("%s", "");
	return *message ? message : NULL;
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level)
{
	if (level != ACL_RT_THREAD_LEVEL)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "no such level");
	return last_error;
}

aclError aclrtGetLastError(aclrtLastErrLevel level)
{
	aclError error = aclrtPeekAtLastError(level);

	if (level == ACL_RT_THREAD_LEVEL)
		last_error = ACL_SUCCESS;
	return error;
}
