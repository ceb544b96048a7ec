// SPDX-License-Identifier: MIT
/*
 * Information about devices that programs ask for before they use them, and access from
 * one device to another.
 *
 * The CPU copies between any two devices of the process, so each device can access each
 * other device, and the calls that turn access on and off only check their arguments.
 */
#include "acl/call.h"
#include "acl/device.h"
#include "acl/error.h"
#include "core/call.h"

static aclError total_memory(uint32_t id, int64_t *value)
{
	struct acl_device *device;
	struct accmem_info info;
	aclError error;
	int64_t sum = 0;
	uint32_t i;

	accmem_acl_call_begin();
	device = accmem_acl_device_open(id, &error);
	for (i = 0; device && !error && i < device->nr_carveouts; i++) {
		error = accmem_acl_failed("memory of the device",
					  accmem_read_info(device->ctx, i,
							   &info));
		sum += info.capacity;
	}
	accmem_acl_call_end();
	if (!error)
		*value = sum;
	return error;
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr,
			    int64_t *value)
{
	if (!value)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "value is NULL");
	if (attr != ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE)
		return accmem_acl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				       "the attribute is not known");
	return total_memory(deviceId, value);
}

/* Does the device exist? Unlike an open, this changes nothing. */
static aclError device_check(int32_t id)
{
	uint32_t count;

	aclrtGetDeviceCount(&count);
	if (id >= 0 && (uint32_t)id < count)
		return ACL_SUCCESS;
	return accmem_acl_fail(ACL_ERROR_RT_INVALID_DEVICEID, "no such device");
}

aclError aclrtGetDeviceCapability(int32_t deviceId,
				  aclrtDevFeatureType devFeatureType,
				  int32_t *value)
{
	aclError error;

	if (!value)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "value is NULL");
	error = device_check(deviceId);
	if (error)
		return error;
	if (devFeatureType != ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV &&
	    devFeatureType != ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "no such feature");
	*value = ACL_DEV_FEATURE_NOT_SUPPORT;
	return ACL_SUCCESS;
}

static aclError peers_check(int32_t id, int32_t peer)
{
	aclError error;

	if (id == peer)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "a device is no peer of itself");
	error = device_check(id);
	return error ? error : device_check(peer);
}

aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId,
				  int32_t peerDeviceId)
{
	aclError error = peers_check(deviceId, peerDeviceId);

	if (error)
		return error;
	if (!canAccessPeer)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "canAccessPeer is NULL");
	*canAccessPeer = 1;
	return ACL_SUCCESS;
}

static aclError peer_check(int32_t peer)
{
	int32_t current = 0;

	aclrtGetDevice(&current);
	return peers_check(current, peer);
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags)
{
	if (flags)
		return accmem_acl_fail(ACL_ERROR_FEATURE_UNSUPPORTED,
				       "flags are not 0");
	return peer_check(peerDeviceId);
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId)
{
	return peer_check(peerDeviceId);
}
