// SPDX-License-Identifier: MIT
/*
 * The lifecycle of a device: when it is opened, and when it is closed.
 *
 * A device is open as long as a program has set it, or has a context of it, until
 * aclFinalize(). It is closed in two steps: first its number is free; then, when no stream
 * works on its memory and no call is at work, its memory is freed.
 *
 * Locking: accmem_acl_devices_lock. A device is closed without locks.
 */
#include <stdlib.h>

#include "acl/call.h"
#include "acl/context.h"
#include "acl/device.h"
#include "acl/error.h"
#include "acl/locks.h"
#include "acl/physical.h"
#include "acl/record.h"
#include "acl/stream.h"
#include "core/util.h"

/* Under accmem_acl_devices_lock. */
static bool initialized;
static bool finalized; /* aclFinalize() was called after the last aclInit() */

/* Remove a device, and its contexts, from the tables. The caller holds the lock. */
static struct acl_device *device_unlink(int32_t id)
{
	struct acl_device *device = accmem_acl_device_unlink(id);

	if (device)
		accmem_acl_contexts_free(id);
	return device;
}

/*
 * Memory that is mapped at reserved addresses is not held, and any stream may work on it.
 * Hide it from lookups, then wait for all work that is queued. Stopping all calls first
 * ends those that could still create handles of the device.
 */
static void device_wait_for_mapped(struct acl_device *device)
{
	bool mapped;

	accmem_acl_calls_stop();
	mapped = accmem_acl_handles_hide(device);
	accmem_acl_calls_resume();
	if (mapped)
		accmem_acl_streams_wait(NULL);
}

static void device_wait(struct acl_device *device)
{
	accmem_acl_streams_end(device);
	accmem_acl_record_wait(device);
}

/* A call may have found the device's memory by its address, and queued more work. */
static bool device_is_idle(struct acl_device *device)
{
	return !accmem_acl_streams_exist(device) &&
	       !accmem_acl_record_is_held(device);
}

static void device_destroy(struct acl_device *device)
{
	accmem_acl_handles_free(device);
	accmem_acl_record_drop_device(device);
	accmem_pool_destroy(device->pool);
	accmem_close(device->ctx);
	free(device);
}

static void device_close(struct acl_device *device)
{
	bool idle;
	int state;

	if (!device)
		return;
	state = accmem_cancel_off();
	device_wait_for_mapped(device);
	do {
		device_wait(device);
		accmem_acl_calls_stop();
		idle = device_is_idle(device);
		if (idle)
			device_destroy(device);
		accmem_acl_calls_resume();
	} while (!idle);
	accmem_cancel_restore(state);
}

aclError aclInit(const char *configPath)
{
	bool again;

	(void)configPath;
	pthread_mutex_lock(&accmem_acl_devices_lock);
	again = initialized;
	initialized = true;
	finalized = false;
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	return again ? accmem_acl_fail(ACL_ERROR_REPEAT_INITIALIZE,
				       "aclInit() for a second time") :
		       ACL_SUCCESS;
}

aclError aclFinalize(void)
{
	aclError error = accmem_acl_streams_check_wait(NULL);
	struct acl_device *device, *all = NULL;
	bool again;
	int32_t id;

	if (error)
		return error;
	pthread_mutex_lock(&accmem_acl_devices_lock);
	again = finalized;
	initialized = false;
	finalized = true;
	for (id = 0; !again && id < ACL_MAX_DEVICES; id++) {
		device = device_unlink(id);
		if (!device)
			continue;
		device->next = all;
		all = device;
	}
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	while ((device = all)) {
		all = device->next;
		device_close(device);
	}
	return again ? accmem_acl_fail(ACL_ERROR_REPEAT_FINALIZE,
				       "aclFinalize() for a second time") :
		       ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t deviceId)
{
	struct acl_device *device;
	aclError error = accmem_acl_device_check_id(deviceId);

	if (error)
		return error;
	pthread_mutex_lock(&accmem_acl_devices_lock);
	device = accmem_acl_device_open_locked(deviceId, &error);
	if (device) {
		device->set++;
		accmem_acl_device_select(deviceId);
		accmem_acl_context_select(deviceId);
	}
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	return error;
}

/*
 * Undo @count uses of a device: aclrtSetDevice() or contexts, which @uses counts. Without
 * a use left, remove the device, and store it at @unused. A close waits for streams.
 */
static aclError device_unuse(struct acl_device *device, unsigned int *uses,
			     unsigned int count, struct acl_device **unused)
{
	bool last = device->set + device->contexts == count;
	aclError error = ACL_SUCCESS;

	if (last)
		error = accmem_acl_streams_check_wait(NULL);
	if (error)
		return error;
	*uses -= count;
	if (last)
		*unused = device_unlink(device->id);
	return ACL_SUCCESS;
}

/* Undo one aclrtSetDevice(), or all of them. */
static aclError device_reset(int32_t deviceId, bool all)
{
	struct acl_device *device, *unused = NULL;
	aclError error = accmem_acl_device_check_id(deviceId);

	if (error)
		return error;
	pthread_mutex_lock(&accmem_acl_devices_lock);
	device = accmem_acl_device_find(deviceId);
	if (device && device->set)
		error = device_unuse(device, &device->set,
				     all ? device->set : 1, &unused);
	else
		error = accmem_acl_fail(ACL_ERROR_RT_INVALID_DEVICEID,
					"the device is not set");
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	device_close(unused);
	return error;
}

aclError aclrtResetDevice(int32_t deviceId)
{
	return device_reset(deviceId, false);
}

aclError aclrtResetDeviceForce(int32_t deviceId)
{
	return device_reset(deviceId, true);
}

aclError aclrtDestroyContext(aclrtContext context)
{
	struct acl_device *device, *unused = NULL;
	aclError error;
	int32_t id;

	pthread_mutex_lock(&accmem_acl_devices_lock);
	id = accmem_acl_context_device(context);
	if (id >= 0) {
		device = accmem_acl_device_find(id);
		error = device_unuse(device, &device->contexts, 1, &unused);
		/* the contexts of a device that is unlinked are freed */
		if (!error && !unused)
			accmem_acl_context_remove(context);
	} else {
		error = accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
					"no such context");
	}
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	device_close(unused);
	return error;
}
