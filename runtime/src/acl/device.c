// SPDX-License-Identifier: MIT
/*
 * Devices of the ACL front-end, opened when they are first used, and how much
 * memory they have.
 *
 * A device is closed in two steps: its number is free, and then, when no stream has
 * anything to do with it and no call is at work, it goes.
 *
 * Lock order: accmem_acl_devices_lock before those of memory and of streams.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/internal.h"
#include "core/internal.h"

#define MESSAGE_SIZE 384
#define PATH_SIZE 32

/* Protects what is in @devices, but for reading a pointer that is set. */
pthread_mutex_t accmem_acl_devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct acl_device *devices[ACL_MAX_DEVICES];
/* Of each, for who has no lock: the device may be gone when it is asked. */
static struct accmem_pool *device_pools[ACL_MAX_DEVICES];
static bool initialized;

static __thread int32_t current;

aclError accmem_acl_fail(aclError error, const char *text)
{
	accmem_set_last_error("%s", text);
	return error;
}

aclError accmem_acl_error(int error)
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
		return ACL_ERROR_FEATURE_UNSUPPORTED;
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

aclError accmem_acl_failed(const char *what, int error)
{
	if (error)
		accmem_set_last_error("%s: %s", what, strerror(-error));
	return accmem_acl_error(error);
}

/* In this order they are taken elsewhere, too. */
static pthread_mutex_t *const locks[] = {
	&accmem_acl_calls_lock, &accmem_acl_devices_lock, &accmem_acl_map_lock,
	&accmem_acl_memory_lock, &accmem_acl_streams_lock
};

static void lock_all(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(locks); i++)
		pthread_mutex_lock(locks[i]);
}

static void unlock_all(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(locks); i++)
		pthread_mutex_unlock(locks[i]);
}

static void start_child(void)
{
	accmem_acl_calls_disown();
	accmem_acl_memory_disown();
	unlock_all();
}

static int fork_error;

/*
 * A child finds no lock taken by a thread that it does not have, not even by one that has
 * just begun to open the first device. The handlers come after those of the pools, and so
 * run before them, and in the child after them.
 */
__attribute__((constructor)) static void watch_fork(void)
{
	fork_error = accmem_pool_watch_fork();
	if (!fork_error)
		fork_error = -pthread_atfork(lock_all, unlock_all, start_child);
}

/* Device 0 is the one that libaccmem opens when it is not told which. */
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

	if (fork_error)
		return fork_error;
	ret = accmem_open(device_path(device->id, path), &device->ctx);
	if (ret) {
		accmem_set_last_error("device %d cannot be opened (errno %d)",
				      device->id, -ret);
		return ret;
	}
	ret = accmem_get_info(device->ctx, 0, &info);
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

/* Could there be such a device? */
static aclError check_id(int32_t id)
{
	if (id >= 0 && id < ACL_MAX_DEVICES)
		return ACL_SUCCESS;
	return accmem_acl_fail(ACL_ERROR_RT_INVALID_DEVICEID, "no such device");
}

static struct acl_device *device_open_locked(int32_t id, aclError *error)
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

	*error = check_id(id);
	if (*error)
		return NULL;
	device = __atomic_load_n(&devices[id], __ATOMIC_ACQUIRE);
	if (device)
		return device;
	pthread_mutex_lock(&accmem_acl_devices_lock);
	device = device_open_locked(id, error);
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	return device;
}

struct acl_device *accmem_acl_device_current(aclError *error)
{
	return accmem_acl_device_open(current, error);
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

/* Nobody finds it by its number any more. */
static struct acl_device *device_unlink_locked(int32_t id)
{
	struct acl_device *device = devices[id];

	if (!device)
		return NULL;
	accmem_acl_contexts_forget(id);
	__atomic_store_n(&devices[id], NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&device_pools[id], NULL, __ATOMIC_RELAXED);
	return device;
}

/*
 * What is mapped at reserved addresses is not held, and could be any stream's work: what
 * has been queued until nobody finds it any more. Calls that began before the device's
 * number was free have ended then, so that there will be no more of its handles.
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
	accmem_acl_memory_wait(device);
}

/* Calls that have found its memory by an address may have given it more to do. */
static bool device_is_idle(struct acl_device *device)
{
	return !accmem_acl_streams_exist(device) &&
	       !accmem_acl_memory_is_held(device);
}

static void device_destroy(struct acl_device *device)
{
	accmem_acl_handles_forget(device);
	accmem_acl_memory_forget(device);
	accmem_pool_destroy(device->pool);
	accmem_close(device->ctx);
	free(device);
}

void accmem_acl_device_close(struct acl_device *device)
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
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	return again ? accmem_acl_fail(ACL_ERROR_REPEAT_INITIALIZE,
				       "aclInit() for a second time") :
		       ACL_SUCCESS;
}

aclError aclFinalize(void)
{
	struct acl_device *device, *all = NULL;
	bool begun;
	int32_t id;

	pthread_mutex_lock(&accmem_acl_devices_lock);
	begun = initialized;
	initialized = false;
	for (id = 0; begun && id < ACL_MAX_DEVICES; id++) {
		device = device_unlink_locked(id);
		if (!device)
			continue;
		device->next = all;
		all = device;
	}
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	while ((device = all)) {
		all = device->next;
		accmem_acl_device_close(device);
	}
	return begun ? ACL_SUCCESS :
		       accmem_acl_fail(ACL_ERROR_UNINITIALIZE,
				       "aclFinalize() without aclInit()");
}

const char *aclGetRecentErrMsg(void)
{
	static __thread char message[MESSAGE_SIZE];

	snprintf(message, sizeof(message), "%s", accmem_last_error());
	accmem_set_last_error("%s", "");
	return *message ? message : NULL;
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
	for (id = 1; id < ACL_MAX_DEVICES; id++)
		if (access(device_path(id, path), F_OK))
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

aclError aclrtSetDevice(int32_t deviceId)
{
	struct acl_device *device;
	aclError error = check_id(deviceId);

	if (error)
		return error;
	pthread_mutex_lock(&accmem_acl_devices_lock);
	device = device_open_locked(deviceId, &error);
	if (device) {
		device->set++;
		current = deviceId;
		accmem_acl_context_select(deviceId);
	}
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	return error;
}

aclError aclrtGetDevice(int32_t *deviceId)
{
	if (!deviceId)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "deviceId is NULL");
	*deviceId = current;
	return ACL_SUCCESS;
}

/* The device, if nobody has set it, and it has no context; it is to be closed. */
static struct acl_device *device_unlink_unused(int32_t id)
{
	return devices[id]->set || devices[id]->contexts ?
		       NULL :
		       device_unlink_locked(id);
}

aclError accmem_acl_device_add_context(int32_t id)
{
	struct acl_device *device;
	aclError error = check_id(id);

	if (error)
		return error;
	device = device_open_locked(id, &error);
	if (device)
		device->contexts++;
	return error;
}

struct acl_device *accmem_acl_device_remove_context(int32_t id)
{
	devices[id]->contexts--;
	return device_unlink_unused(id);
}

bool accmem_acl_device_is_open(int32_t id)
{
	return devices[id];
}

void accmem_acl_device_select(int32_t id)
{
	current = id;
}

/* Undoes one aclrtSetDevice(), or all of them. */
static aclError device_reset(int32_t deviceId, bool all)
{
	struct acl_device *unused = NULL;
	aclError error = check_id(deviceId);
	bool is_set;

	if (error)
		return error;
	pthread_mutex_lock(&accmem_acl_devices_lock);
	is_set = devices[deviceId] && devices[deviceId]->set;
	if (is_set) {
		devices[deviceId]->set -= all ? devices[deviceId]->set : 1;
		unused = device_unlink_unused(deviceId);
	}
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	accmem_acl_device_close(unused);
	return is_set ? ACL_SUCCESS :
			accmem_acl_fail(ACL_ERROR_RT_INVALID_DEVICEID,
					"the device is not set");
}

aclError aclrtResetDevice(int32_t deviceId)
{
	return device_reset(deviceId, false);
}

aclError aclrtResetDeviceForce(int32_t deviceId)
{
	return device_reset(deviceId, true);
}

/* Bytes of a page of the kind that an attribute speaks of. */
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

/* What a limit leaves, where there is one. */
static uint64_t within(uint64_t bytes, uint64_t limit, uint64_t used)
{
	uint64_t left = limit > used ? limit - used : 0;

	return limit && left < bytes ? left : bytes;
}

/* The limit of a user is a parameter of the module that everybody may read. */
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

/* Is memory of this class what an attribute speaks of? All is, of no class. */
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

/* What there is of a class, and is free; the rest of @sum is of all carveouts. */
static int sum_of_class(struct acl_device *device, aclrtMemAttr attr,
			struct accmem_info *sum)
{
	struct accmem_info one;
	uint32_t i;
	int ret;

	ret = accmem_get_info(device->ctx, 0, sum);
	sum->capacity = 0;
	sum->free_bytes = 0;
	for (i = 0; !ret && i < device->nr_carveouts; i++) {
		ret = accmem_get_info(device->ctx, i, &one);
		if (ret || !is_class(attr, one.bandwidth))
			continue;
		sum->capacity += one.capacity;
		sum->free_bytes += one.free_bytes;
	}
	return ret;
}

/* The same of the current device, and what its pool has. */
static aclError look_at_memory(aclrtMemAttr attr, struct accmem_info *info,
			       struct accmem_pool_stats *stats)
{
	struct acl_device *device;
	aclError error;

	accmem_acl_call_begin();
	device = accmem_acl_device_current(&error);
	if (device) {
		error = accmem_acl_failed("memory of the device",
					  sum_of_class(device, attr, info));
		accmem_pool_get_stats(device->pool, stats);
	}
	accmem_acl_call_end();
	return error;
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free_bytes, size_t *total)
{
	struct accmem_pool_stats stats;
	struct accmem_info info;
	aclError error;
	uint64_t bytes;

	if (!free_bytes || !total || (int)attr < ACL_DDR_MEM ||
	    attr > ACL_HBM_MEM_P2P_HUGE1G)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "NULL, or no such attribute");
	error = look_at_memory(attr, &info, &stats);
	if (error)
		return error;
	bytes = within(info.free_bytes, info.context_limit, info.context_bytes);
	bytes = within(bytes, user_limit(), info.context_bytes);
	bytes += stats.reserved_bytes > stats.live_bytes ?
			 stats.reserved_bytes - stats.live_bytes :
			 0;
	if (bytes > info.capacity)
		bytes = info.capacity;
	*free_bytes = bytes - bytes % page_of(attr);
	*total = info.capacity - info.capacity % page_of(attr);
	return ACL_SUCCESS;
}
