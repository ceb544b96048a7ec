// SPDX-License-Identifier: MIT
/*
 * The calls of the ACL front-end that pass handles from one process to another.
 *
 * Locking: that of physical.c and share.c.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "acl/call.h"
#include "acl/error.h"
#include "acl/physical.h"
#include "acl/socket.h"
#include "core/util.h"

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle,
					 aclrtMemHandleType handleType,
					 uint64_t flags,
					 uint64_t *shareableHandle)
{
	aclError error;

	if (!handle || !shareableHandle ||
	    handleType != ACL_MEM_HANDLE_TYPE_NONE ||
	    flags & ~(uint64_t)ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "NULL, or no such type or flags");
	accmem_acl_call_begin();
	error = accmem_acl_handle_export(handle, flags, shareableHandle);
	accmem_acl_call_end();
	return error;
}

static aclError fetch_failed(int error)
{
	if (error == -ECONNREFUSED || error == -EACCES)
		return accmem_acl_fail(ACL_ERROR_RT_INVALID_HANDLE,
				       "not exported, or not to this process");
	accmem_set_last_error("request for a shareable handle: %s",
			      strerror(-error));
	return accmem_acl_set_error(ACL_ERROR_RT_INTERNAL_ERROR);
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle,
					   int32_t deviceId,
					   aclrtDrvMemHandle *handle)
{
	aclError error;
	int fd, state;

	if (!handle)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "handle is NULL");
	if (shareableHandle >> ACL_SHARE_PID_SHIFT == (uint64_t)getpid())
		return accmem_acl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				       "memory of this process");
	state = accmem_cancel_off();
	fd = accmem_acl_socket_fetch(shareableHandle);
	if (fd < 0) {
		error = fetch_failed(fd);
	} else {
		accmem_acl_call_begin();
		error = accmem_acl_handle_import(deviceId, fd, shareableHandle,
						 handle);
		accmem_acl_call_end();
		close(fd);
	}
	accmem_cancel_restore(state);
	return error;
}
