// SPDX-License-Identifier: MIT
/* Allocations of the ACL front-end with a configuration. Few attributes have an effect. */

#include "acl/call.h"
#include "acl/device.h"
#include "acl/error.h"

static aclError config_unknown(void)
{
	return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
			       "no such attribute, or not with this value");
}

static aclError config_check_device(uint32_t id)
{
	struct acl_device *device;
	aclError error;

	accmem_acl_call_begin();
	device = accmem_acl_device_current(&error);
	if (device && id != (uint32_t)device->id)
		error = config_unknown();
	accmem_acl_call_end();
	return error;
}

/* Accept a module id, which only tools read, and the id of the current device. */
static aclError config_check_one(const aclrtMallocAttribute *attribute,
				 bool on_host)
{
	switch (attribute->attr) {
	case ACL_RT_MEM_ATTR_MODULE_ID:
		return ACL_SUCCESS;
	case ACL_RT_MEM_ATTR_DEVICE_ID:
		return config_check_device(attribute->value.deviceId);
	case ACL_RT_MEM_ATTR_VA_FLAG:
		if (on_host && attribute->value.vaFlag <= 1)
			return ACL_SUCCESS;
		return config_unknown();
	default:
		return config_unknown();
	}
}

static aclError config_check(const aclrtMallocConfig *cfg, bool on_host)
{
	aclError error = ACL_SUCCESS;
	size_t i;

	if (cfg && cfg->numAttrs && !cfg->attrs)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "attributes are NULL");
	for (i = 0; cfg && i < cfg->numAttrs && !error; i++)
		error = config_check_one(&cfg->attrs[i], on_host);
	return error;
}

aclError aclrtMallocWithCfg(void **devPtr, size_t size,
			    aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg)
{
	aclError error = config_check(cfg, false);

	return error ? error : aclrtMalloc(devPtr, size, policy);
}

aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size,
				aclrtMallocConfig *cfg)
{
	aclError error = config_check(cfg, true);

	return error ? error : aclrtMallocHost(ptr, size);
}
