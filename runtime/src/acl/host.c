// SPDX-License-Identifier: MIT
/*
 * Registration of host memory of the process.
 *
 * Registered memory has the same address on both sides. Copies accept it as memory of the
 * host and of the device. It is neither locked nor mapped: the CPU does the work of streams
 * in the process's own addresses.
 */
#include <sys/mman.h>

#include "acl/call.h"
#include "acl/error.h"
#include "acl/query.h"
#include "acl/record.h"

#define REGISTER_FLAGS                                                         \
	(ACL_HOST_REG_MAPPED | ACL_HOST_REG_IOMEMORY | ACL_HOST_REG_READONLY | \
	 ACL_HOST_REG_PINNED)

/* Is something mapped at all pages of the range? Their contents are not written back. */
static bool host_is_mapped(void *ptr, uint64_t size)
{
	const uint64_t head = (uintptr_t)ptr % ACL_PAGE;

	/* msync() rounds up, which must not overflow */
	return size < UINTPTR_MAX / 2 &&
	       !msync((unsigned char *)ptr - head, size + head, MS_ASYNC);
}

static aclError host_register(void *ptr, uint64_t size)
{
	struct acl_side side;
	aclError error;

	if (!ptr || !size || size > UINTPTR_MAX - (uintptr_t)ptr)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "NULL, or no such size");
	accmem_acl_call_begin();
	error = accmem_acl_side_lookup(&side, ptr, size);
	accmem_acl_call_end();
	if (!error && side.device)
		error = accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
					"memory of a device");
	if (!error && !host_is_mapped(ptr, size))
		error = accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
					"the process has no memory there");
	return error ? error : accmem_acl_record_register(ptr, size);
}

aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type,
			   void **devPtr)
{
	aclError error;

	if (!devPtr)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "devPtr is NULL");
	if (type & ~(ACL_HOST_REGISTER_IOMEMORY | ACL_HOST_REGISTER_READONLY))
		return accmem_acl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				       "no such type of registration");
	error = host_register(ptr, size);
	if (!error)
		*devPtr = ptr;
	return error;
}

aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag)
{
	if (flag & ~REGISTER_FLAGS)
		return accmem_acl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				       "no such flag of a registration");
	return host_register(ptr, size);
}

aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag)
{
	if (!pHost || !pDevice || flag)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "NULL, or a flag");
	if (!acl_is_registered(pHost))
		return accmem_acl_fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED,
				       "the memory is not registered");
	*pDevice = pHost;
	return ACL_SUCCESS;
}

aclError aclrtHostUnregister(void *ptr)
{
	if (!ptr)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM, "ptr is NULL");
	return accmem_acl_record_unregister(ptr);
}
