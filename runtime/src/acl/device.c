// SPDX-License-Identifier: MIT
/*
 * Devices of the ACL front-end: the table of open devices, and information about them.
 *
 * A device is opened when it is first used. lifecycle.c closes it.
 *
 * Locking: accmem_acl_devices_lock protects the table. A pointer in the table that is not
 * NULL may be read without it in a call.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/call.h"
#include "acl/device.h"
#include "acl/error.h"
#include "acl/fork.h"
#include "acl/locks.h"
#include "core/call.h"
#include "core/context.h"
#include "core/util.h"
#include "pool/pool.h"

#define PATH_SIZE 32

/* The open devices, by number. */
static struct acl_device *devices[ACL_MAX_DEVICES];
/* The pool of each open device, for readers without a lock that only compare it. */
static struct accmem_pool *device_pools[ACL_MAX_DEVICES];

static __thread int32_t current;

/* NULL for device 0: accmem_open() chooses it. */
static const char *device_path(int32_t id, char path[PATH_SIZE])
{
	if (!id)
		return NULL;
	snprintf(path, PATH_SIZE, "/dev/accmem%d", id);
	return path;
}

static int device_start(struct acl_device *device)
{
	struct accmem_info info;
	char path[PATH_SIZE];
	int ret;

	ret = accmem_acl_fork_error();
	if (ret)
		return ret;
	ret = accmem_open(device_path(device->id, path), &device->ctx);
	if (ret)
		return ret;
	ret = accmem_read_info(device->ctx, 0, &info);
	if (ret) {
		accmem_acl_failed("device", ret);
		goto close_context;
	}
	device->nr_carveouts = info.nr_carveouts;
	device->has_host = info.features & ACCMEM_FEATURE_HOST;
	ret = accmem_pool_create(device->ctx, NULL, &device->pool);
	if (!ret)
		return 0;
close_context:
	accmem_close(device->ctx);
	return ret;
}

/* Is @id in the range of device numbers? */
aclError accmem_acl_device_check_id(int32_t id)
{
	if (id >= 0 && id < ACL_MAX_DEVICES)
		return ACL_SUCCESS;
	return accmem_acl_fail(ACL_ERROR_RT_INVALID_DEVICEID, "no such device");
}

struct acl_device *accmem_acl_device_open_locked(int32_t id, aclError *error)
{
	struct acl_device *device = devices[id];
	int ret, state;

	if (device)
		return device;
	device = calloc(1, sizeof(*device));
	if (!device) {
		*error = accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
		return NULL;
	}
	device->id = id;
	state = accmem_cancel_off();
	ret = device_start(device);
	accmem_cancel_restore(state);
	if (ret) {
		*error = ret == -ENOMEM ? ACL_ERROR_BAD_ALLOC :
					  ACL_ERROR_RT_INVALID_DEVICEID;
		accmem_acl_set_error(*error);
		free(device);
		return NULL;
	}
	__atomic_store_n(&device_pools[id], device->pool, __ATOMIC_RELAXED);
	__atomic_store_n(&devices[id], device, __ATOMIC_RELEASE);
	return device;
}

struct acl_device *accmem_acl_device_open(int32_t id, aclError *error)
{
	struct acl_device *device;

	*error = accmem_acl_device_check_id(id);
	if (*error)
		return NULL;
	device = __atomic_load_n(&devices[id], __ATOMIC_ACQUIRE);
	if (device)
		return device;
	pthread_mutex_lock(&accmem_acl_devices_lock);
	device = accmem_acl_device_open_locked(id, error);
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	return device;
}

struct acl_device *accmem_acl_device_current(aclError *error)
{
	return accmem_acl_device_open(current, error);
}

struct acl_device *accmem_acl_device_opened(void)
{
	return __atomic_load_n(&devices[current], __ATOMIC_ACQUIRE);
}

int32_t accmem_acl_device_of(const struct accmem_pool *pool)
{
	int32_t id;

	for (id = 0; id < ACL_MAX_DEVICES; id++)
		if (__atomic_load_n(&device_pools[id], __ATOMIC_RELAXED) ==
		    pool)
			return id;
	return -1;
}

int accmem_acl_device_find_block(const void *pointer,
				 struct accmem_pool_block *block)
{
	int ret = accmem_pool_find(pointer, block);

	return !ret && accmem_acl_device_of(block->pool) < 0 ? -ENOENT : ret;
}

struct acl_device *accmem_acl_device_unlink(int32_t id)
{
	struct acl_device *device = devices[id];

	__atomic_store_n(&devices[id], NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&device_pools[id], NULL, __ATOMIC_RELAXED);
	return device;
}

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion,
			 int32_t *patchVersion)
{
	if (!majorVersion || !minorVersion || !patchVersion)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM, "NULL");
	*majorVersion = 1;
	*minorVersion = 15;
	*patchVersion = 0;
	return ACL_SUCCESS;
}

aclError aclrtGetDeviceCount(uint32_t *count)
{
	char path[PATH_SIZE];
	int32_t id;

	if (!count)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "count is NULL");
	for (id = 0; id < ACL_MAX_DEVICES; id++)
		if (access(accmem_device_path(device_path(id, path)), F_OK))
			break;
	*count = id;
	return ACL_SUCCESS;
}

aclError aclrtGetRunMode(aclrtRunMode *runMode)
{
	if (!runMode)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "runMode is NULL");
	*runMode = ACL_HOST;
	return ACL_SUCCESS;
}

const char *aclrtGetSocName(void)
{
	return "accmem";
}

aclError aclrtGetDevice(int32_t *deviceId)
{
	if (!deviceId)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "deviceId is NULL");
	*deviceId = current;
	return ACL_SUCCESS;
}

struct acl_device *accmem_acl_device_find(int32_t id)
{
	return devices[id];
}

void accmem_acl_device_select(int32_t id)
{
	current = id;
}

/* Bytes of the page that a memory attribute names. */
static uint64_t page_of(aclrtMemAttr attr)
{
	switch (attr) {
	case ACL_DDR_MEM_HUGE:
	case ACL_HBM_MEM_HUGE:
	case ACL_DDR_MEM_P2P_HUGE:
	case ACL_HBM_MEM_P2P_HUGE:
		return ACL_HUGE_PAGE;
	case ACL_HBM_MEM_HUGE1G:
	case ACL_HBM_MEM_P2P_HUGE1G:
		return 1ull << 30;
	default:
		return ACL_PAGE;
	}
}

/* @bytes, or the rest of @limit if that is less. A limit of 0 is none. */
static uint64_t within(uint64_t bytes, uint64_t limit, uint64_t used)
{
	uint64_t left = limit > used ? limit - used : 0;

	return limit && left < bytes ? left : bytes;
}

/*
 * The user's limit is a parameter of the module that all users may read. What the user's
 * other contexts have of it is known to root only.
 */
static uint64_t user_limit(void)
{
	unsigned long long limit = 0;
	FILE *file =
		fopen("/sys/module/accmem/parameters/max_bytes_per_user", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%llu", &limit) != 1)
		limit = 0;
	fclose(file);
	return limit;
}

/* Does an attribute include memory of this bandwidth? Both include unclassified memory. */
static bool is_class(aclrtMemAttr attr, uint32_t bandwidth)
{
	switch (attr) {
	case ACL_DDR_MEM:
	case ACL_DDR_MEM_HUGE:
	case ACL_DDR_MEM_NORMAL:
	case ACL_DDR_MEM_P2P_HUGE:
	case ACL_DDR_MEM_P2P_NORMAL:
		return bandwidth != ACCMEM_BANDWIDTH_HIGH;
	default:
		return bandwidth != ACCMEM_BANDWIDTH_LOW;
	}
}

/* Get the bytes that the device's pool keeps in memory, and that are charged for them. */
static uint64_t idle_of(struct acl_device *device,
			const struct accmem_info *info, uint64_t *charged)
{
	uint64_t idle, shared;

	accmem_pool_get_idle(device->pool, info->address_base,
			     info->address_span, &idle, &shared);
	*charged += idle + shared;
	return idle;
}

/*
 * Sum up the capacity and the free bytes of a class, as if the pool had given back the
 * memory that it keeps. The pool does so before a request fails. Other fields concern all
 * carveouts.
 */
static int sum_of_class(struct acl_device *device, aclrtMemAttr attr,
			struct accmem_info *sum)
{
	uint64_t idle, charged = 0;
	struct accmem_info one;
	uint32_t i;
	int ret;

	ret = accmem_read_info(device->ctx, 0, sum);
	sum->capacity = 0;
	sum->free_bytes = 0;
	for (i = 0; !ret && i < device->nr_carveouts; i++) {
		ret = accmem_read_info(device->ctx, i, &one);
		idle = ret ? 0 : idle_of(device, &one, &charged);
		if (ret || !is_class(attr, one.bandwidth))
			continue;
		sum->capacity += one.capacity;
		sum->free_bytes += one.free_bytes + idle;
	}
	if (!accmem_query_host(device->ctx, &one))
		idle_of(device, &one, &charged);
	/* another thread may have freed some of it in the meantime */
	sum->context_bytes -= charged < sum->context_bytes ? charged :
							     sum->context_bytes;
	return ret;
}

/* Query the current device's memory of a class. */
static aclError get_memory_info(aclrtMemAttr attr, struct accmem_info *info)
{
	struct acl_device *device;
	aclError error;

	accmem_acl_call_begin();
	device = accmem_acl_device_current(&error);
	if (device)
		error = accmem_acl_failed("memory of the device",
					  sum_of_class(device, attr, info));
	accmem_acl_call_end();
	return error;
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free_bytes, size_t *total)
{
	struct accmem_info info;
	aclError error;
	uint64_t bytes;

	if (!free_bytes || !total || (int)attr < ACL_DDR_MEM ||
	    attr > ACL_HBM_MEM_P2P_HUGE1G)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "NULL, or no such attribute");
	error = get_memory_info(attr, &info);
	if (error)
		return error;
	bytes = within(info.free_bytes, info.context_limit, info.context_bytes);
	bytes = within(bytes, user_limit(), info.context_bytes);
	if (bytes > info.capacity)
		bytes = info.capacity;
	*free_bytes = bytes - bytes % page_of(attr);
	*total = info.capacity - info.capacity % page_of(attr);
	return ACL_SUCCESS;
}
