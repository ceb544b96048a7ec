// SPDX-License-Identifier: MIT
/*
 * What opens and closes a device of the ACL front-end, also while streams and other
 * threads are at work on it, on a device: /dev/accmem0, or the one in $ACCMEM_DEVICE.
 * Built with FAKE_DEVICE it runs on the host over fake_device.c instead, where there are
 * two.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <accmem_pool.h>

#include "acl_tests.h"

#define LENGTH (8 * MIB)
#define FILLS 40

/* a real one takes its time to open */
#ifdef FAKE_DEVICE
#define RESETS 200
#else
#define RESETS 20
#endif

static void devices_are_set_and_reset(void)
{
	int32_t id = -1;
	uint32_t count;
	void *p;

	CHECK_EQ(aclInit(NULL), 0);
	CHECK_EQ(aclInit(NULL), ACL_ERROR_REPEAT_INITIALIZE);
	CHECK_EQ(aclrtGetDeviceCount(&count), 0);
	CHECK(count >= 1);
	CHECK_EQ(aclrtSetDevice(count), ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtResetDevice(0), ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(aclrtGetDevice(&id), 0);
	CHECK_EQ(id, 0);
	p = acl_new(100, 0);
	CHECK_EQ(aclrtMemsetAsync(p, 100, 1, 100, NULL), 0);
	CHECK_EQ(aclrtResetDevice(0), 0);
	CHECK_EQ(aclrtSynchronizeDevice(), 0);
	CHECK_EQ(byte_at(p), 1);
	CHECK_EQ(aclrtMemsetAsync(p, 100, 2, 100, NULL), 0);
	CHECK_EQ(aclrtResetDevice(0), 0);
	CHECK_EQ(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
	/* at once, however often it was set */
	CHECK_EQ(aclrtResetDeviceForce(0), ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtResetDeviceForce(-1), ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(aclrtSetDevice(0), 0);
	p = acl_new(100, 0);
	CHECK_EQ(aclrtResetDeviceForce(0), 0);
	CHECK_EQ(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtResetDevice(0), ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclFinalize(), 0);
	CHECK_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
	CHECK_EQ(aclInit(NULL), 0);
	CHECK_EQ(aclFinalize(), 0);
}

static void finalize_closes_devices_without_init(void)
{
	void *p;

	CHECK_EQ(aclrtSetDevice(0), 0);
	p = acl_new(100, 0);
	CHECK_EQ(aclFinalize(), 0);
	CHECK_EQ(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
}

/* A free opens no device, and leaves no error where it succeeds. */
static void a_free_opens_no_device(void)
{
	void *p;

	CHECK_EQ(aclInit(NULL), 0);
	CHECK_EQ(aclrtSetDevice(0), 0);
	p = acl_new(100, 0);
	CHECK_EQ(aclrtResetDevice(0), 0);
	CHECK_EQ(aclFinalize(), 0);
	CHECK_EQ(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
	/* no device is open that it would close */
	CHECK_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
}

/* Memory of a pool that the program has created beside ACL is not ACL's. */
static void memory_of_other_pools_is_unregistered(void)
{
	aclrtPtrAttributes attributes;
	struct accmem_pool_block block;
	struct accmem_context *ctx;
	struct accmem_pool *pool;
	void *p;

	CHECK_EQ(accmem_open(NULL, &ctx), 0);
	CHECK_EQ(accmem_pool_create(ctx, NULL, &pool), 0);
	p = accmem_pool_malloc(pool, MIB);
	CHECK(p);
	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(aclrtPointerGetAttributes(p, &attributes), 0);
	CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	CHECK_EQ(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(accmem_pool_lookup(pool, p, &block), 0);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK_EQ(aclrtResetDevice(0), 0);
	accmem_pool_destroy(pool);
	accmem_close(ctx);
}

#ifdef FAKE_DEVICE
/* A thread without a device, whose usual one is not there, has used another one. */
static void no_error_is_left_where_nothing_failed(void)
{
	void *p;

	fake_second = true;
	aclrtGetLastError(ACL_RT_THREAD_LEVEL);
	fake_gone = true;
	CHECK_EQ(aclrtMallocHost(&p, 100), 0);
	fake_gone = false;
	CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
	CHECK_EQ(aclrtFreeHost(p), 0);
	fake_second = false;
}
#endif

static void a_device_tells_its_memory(void)
{
	size_t free_bytes, hbm;
	int64_t value = -1;
	int32_t has = -1;

	CHECK_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE,
				    &value),
		 0);
	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &hbm), 0);
	CHECK(hbm && value >= (int64_t)hbm);
	CHECK_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &value),
		 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	CHECK_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE,
				    NULL),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtGetDeviceInfo(UINT32_MAX,
				    ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &value),
		 ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtGetDeviceCapability(0,
					  ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV,
					  &has),
		 0);
	CHECK_EQ(has, ACL_DEV_FEATURE_NOT_SUPPORT);
	CHECK_EQ(aclrtGetDeviceCapability(0, (aclrtDevFeatureType)2, &has),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtGetDeviceCapability(-1,
					  ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV,
					  &has),
		 ACL_ERROR_RT_INVALID_DEVICEID);
}

static void peers_are_other_devices(void)
{
	uint32_t count;
	int32_t can = -1;
	char *d, *e;

	CHECK_EQ(aclrtGetDeviceCount(&count), 0);
	CHECK_EQ(aclrtDeviceCanAccessPeer(&can, 0, 0), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtDeviceCanAccessPeer(&can, 0, count),
		 ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtDeviceCanAccessPeer(&can, -1, 0),
		 ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtDeviceEnablePeerAccess(0, 0), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtDeviceEnablePeerAccess(1, 1),
		 ACL_ERROR_FEATURE_UNSUPPORTED);
	CHECK_EQ(aclrtDeviceDisablePeerAccess(count),
		 ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(can, -1);
	if (count < 2)
		return;
	CHECK_EQ(aclrtDeviceCanAccessPeer(&can, 0, 1), 0);
	CHECK_EQ(can, 1);
	CHECK_EQ(aclrtDeviceCanAccessPeer(NULL, 0, 1),
		 ACL_ERROR_RT_PARAM_INVALID);
	d = acl_new(100, 0);
	CHECK_EQ(aclrtMemset(d, 100, 7, 100), 0);
	CHECK_EQ(aclrtDeviceEnablePeerAccess(1, 0), 0);
	CHECK_EQ(aclrtSetDevice(1), 0);
	e = acl_new(100, 0);
	CHECK_EQ(aclrtMemcpy(e, 100, d, 100, ACL_MEMCPY_DEVICE_TO_DEVICE), 0);
	CHECK_EQ(byte_at(e + 99), 7);
	acl_delete(e);
	CHECK_EQ(aclrtResetDevice(1), 0);
	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(aclrtDeviceDisablePeerAccess(1), 0);
	acl_delete(d);
}

static void contexts_keep_a_device_open(void)
{
	aclrtContext own, other = NULL, found;
	int32_t id = -1;
	void *p;

	CHECK_EQ(aclrtCreateContext(NULL, 0), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtCreateContext(&other, -1), ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtGetCurrentContext(NULL), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(aclrtGetCurrentContext(&own), 0);
	CHECK_EQ(aclrtCreateContext(&other, 0), 0);
	CHECK_EQ(aclrtGetCurrentContext(&found), 0);
	CHECK(found == other && found != own);
	CHECK_EQ(aclrtGetDevice(&id), 0);
	CHECK_EQ(id, 0);
	p = acl_new(100, 0);
	CHECK_EQ(aclrtResetDevice(0), 0);
	CHECK_EQ(byte_at(p), byte_at(p));
	CHECK_EQ(aclrtSetCurrentContext(own), 0);
	CHECK_EQ(aclrtGetCurrentContext(&found), 0);
	CHECK(found == own);
	CHECK_EQ(aclrtDestroyContext(own), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtDestroyContext(other), 0);
	CHECK_EQ(aclrtDestroyContext(other), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtSetCurrentContext(other), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtSetCurrentContext(own), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtGetCurrentContext(&found), ACL_ERROR_RT_CONTEXT_NULL);
	CHECK_EQ(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
}

static void set_and_reset(void)
{
	CHECK_EQ(aclrtSetDevice(0), 0);
	acl_new(100, 0);
	sched_yield();
	CHECK_EQ(aclrtResetDevice(0), 0);
}

/* Whatever the threads of its parent were at */
static void set_and_reset_in_a_child(void)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		alarm(20);
		set_and_reset();
		set_and_reset();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

#ifdef FAKE_DEVICE
static void a_device_may_go(void)
{
	char *d, *mapped, *large;
	aclrtStream stream;
	void *p;

	fake_capacity = GIB;
	CHECK_EQ(aclrtSetDevice(0), 0);
	d = acl_new(MIB, 0);
	mapped = acl_new(MIB, 0);
	large = acl_new(300 * MIB, 0);
	CHECK_EQ(aclrtMemset(mapped, MIB, 3, MIB), 0);
	CHECK_EQ(aclrtCreateStream(&stream), 0);
	fake_gone = true;
	CHECK_EQ(aclrtMalloc(&p, 200 * MIB, 0), ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtMalloc(&p, 300 * MIB, 0), ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtMemset(large, MIB, 1, MIB),
		 ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtMemcpy(large, MIB, large + MIB, MIB,
			     ACL_MEMCPY_DEVICE_TO_DEVICE),
		 ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtMemsetAsync(large, MIB, 1, MIB, stream),
		 ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	acl_delete(d);
	acl_delete(large);
	CHECK_EQ(aclrtFree(large), ACL_ERROR_RT_PARAM_INVALID);
	acl_delete(mapped);
	CHECK_EQ(aclrtFree(mapped), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	CHECK_EQ(aclrtResetDevice(0), 0);
	CHECK_EQ(aclrtMalloc(&p, MIB, 0), ACL_ERROR_RT_INVALID_DEVICEID);
	/* another one in its place */
	fake_gone = false;
	acl_delete(acl_new(MIB, 0));
}

static aclrtStream stream_of_device_0(void)
{
	aclrtStream stream;

	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(aclrtCreateStream(&stream), 0);
	return stream;
}

static void fill_often(char *p, aclrtStream stream)
{
	int i;

	for (i = 0; i < FILLS; i++)
		CHECK_EQ(aclrtMemsetAsync(p, LENGTH, i, LENGTH, stream), 0);
}

/* What it has done for another device, and goes on doing for its own */
static void check_stream(aclrtStream stream)
{
	char *p = acl_new(LENGTH, 0);

	fill_often(p, stream);
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	CHECK_EQ(byte_at(p + LENGTH - 1), FILLS - 1);
	acl_delete(p);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	CHECK_EQ(aclrtResetDevice(0), 0);
}

static void memory_stays_until_other_devices_streams_are_done(void)
{
	aclrtStream stream = stream_of_device_0();
	char *p;

	fake_second = true;
	CHECK_EQ(aclrtSetDevice(1), 0);
	p = acl_new(LENGTH, 0);
	fill_often(p, stream);
	CHECK_EQ(aclrtResetDevice(1), 0);
	CHECK_EQ(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(aclrtResetDevice(0), 0);
	check_stream(stream);
}

static void mapped_memory_stays_until_other_devices_streams_are_done(void)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_NORMAL,
		.location = { .id = 1, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	aclrtStream stream = stream_of_device_0();
	aclrtDrvMemHandle handle;
	void *p;

	fake_second = true;
	CHECK_EQ(aclrtSetDevice(1), 0);
	CHECK_EQ(aclrtReserveMemAddress(&p, LENGTH, 0, NULL, 0), 0);
	CHECK_EQ(aclrtMallocPhysical(&handle, LENGTH, &prop, 0), 0);
	CHECK_EQ(aclrtMapMem(p, LENGTH, 0, handle, 0), 0);
	fill_often(p, stream);
	CHECK_EQ(aclrtResetDevice(1), 0);
	CHECK_EQ(aclrtFreePhysical(handle), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtReleaseMemAddress(p), 0);
	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(aclrtResetDevice(0), 0);
	check_stream(stream);
}

/* A stream that is never through, but goes on */
struct backlog {
	aclrtStream stream;
	char *p;
	bool ends;
};

static void *keep_a_backlog(void *argument)
{
	struct backlog *b = argument;
	aclrtEvent done[8];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(done); i++) {
		CHECK_EQ(aclrtCreateEvent(&done[i]), 0);
		CHECK_EQ(aclrtRecordEvent(done[i], b->stream), 0);
	}
	for (i = 0; !__atomic_load_n(&b->ends, __ATOMIC_ACQUIRE);
	     i = (i + 1) % ARRAY_SIZE(done)) {
		CHECK_EQ(aclrtSynchronizeEvent(done[i]), 0);
		fill_often(b->p, b->stream);
		CHECK_EQ(aclrtRecordEvent(done[i], b->stream), 0);
	}
	CHECK_EQ(aclrtSynchronizeStream(b->stream), 0);
	for (i = 0; i < ARRAY_SIZE(done); i++)
		CHECK_EQ(aclrtDestroyEvent(done[i]), 0);
	return NULL;
}

/* Only what was queued before could be about its mapped memory. */
static void a_device_is_closed_while_others_have_a_backlog(void)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_NORMAL,
		.location = { .id = 1, .type = ACL_MEM_LOCATION_TYPE_DEVICE },
	};
	struct backlog b = { .stream = stream_of_device_0() };
	aclrtDrvMemHandle handle;
	pthread_t thread;
	void *p;

	fake_second = true;
	b.p = acl_new(LENGTH, 0);
	CHECK_EQ(pthread_create(&thread, NULL, keep_a_backlog, &b), 0);
	CHECK_EQ(aclrtSetDevice(1), 0);
	CHECK_EQ(aclrtReserveMemAddress(&p, LENGTH, 0, NULL, 0), 0);
	CHECK_EQ(aclrtMallocPhysical(&handle, LENGTH, &prop, 0), 0);
	CHECK_EQ(aclrtMapMem(p, LENGTH, 0, handle, 0), 0);
	fill_often(p, b.stream);
	usleep(100000);
	alarm(30);
	CHECK_EQ(aclrtResetDevice(1), 0);
	alarm(0);
	CHECK_EQ(aclrtReleaseMemAddress(p), 0);
	__atomic_store_n(&b.ends, true, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(aclrtResetDevice(0), 0);
	check_stream(b.stream);
}

static void *destroy_stream(void *stream)
{
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	return NULL;
}

/* Memory may go when a stream that another thread destroys has worked on it. */
static void a_stream_is_waited_for_while_it_is_destroyed(bool resets)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_NORMAL,
		.location.type = ACL_MEM_LOCATION_TYPE_DEVICE,
	};
	aclrtStream stream = stream_of_device_0();
	aclrtStreamStatus status;
	aclrtDrvMemHandle handle;
	pthread_t thread;
	void *p;

	CHECK_EQ(aclrtReserveMemAddress(&p, LENGTH, 0, NULL, 0), 0);
	CHECK_EQ(aclrtMallocPhysical(&handle, LENGTH, &prop, 0), 0);
	CHECK_EQ(aclrtMapMem(p, LENGTH, 0, handle, 0), 0);
	fill_often(p, stream);
	CHECK_EQ(pthread_create(&thread, NULL, destroy_stream, stream), 0);
	while (!aclrtStreamQuery(stream, &status))
		sched_yield();
	if (!resets) {
		CHECK_EQ(aclrtUnmapMem(p), 0);
		CHECK_EQ(aclrtFreePhysical(handle), 0);
	}
	CHECK_EQ(aclrtResetDevice(0), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(aclrtReleaseMemAddress(p), 0);
}

static void a_device_is_closed_while_a_stream_is_destroyed(void)
{
	a_stream_is_waited_for_while_it_is_destroyed(true);
}

static void memory_is_unmapped_while_a_stream_is_destroyed(void)
{
	a_stream_is_waited_for_while_it_is_destroyed(false);
}

static bool opening, forked;

static void open_slowly(void)
{
	__atomic_store_n(&opening, true, __ATOMIC_RELEASE);
	usleep(200000);
}

static void *set_device(void *unused)
{
	CHECK_EQ(aclrtSetDevice(0), 0);
	/* sanitizers complain in a child of threads that have ended */
	while (!__atomic_load_n(&forked, __ATOMIC_ACQUIRE))
		sched_yield();
	return unused;
}

/* The first one: until then nobody had anything to do with forks. */
static void a_child_is_forked_while_a_device_is_opened(void)
{
	pthread_t thread;

	fake_open_busy = open_slowly;
	CHECK_EQ(pthread_create(&thread, NULL, set_device, NULL), 0);
	while (!__atomic_load_n(&opening, __ATOMIC_ACQUIRE))
		sched_yield();
	set_and_reset_in_a_child();
	__atomic_store_n(&forked, true, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	fake_open_busy = NULL;
	CHECK_EQ(aclrtResetDevice(0), 0);
}

static void *reset_device_1(void *unused)
{
	CHECK_EQ(aclrtResetDevice(1), 0);
	return unused;
}

/* It waits for a stream that somebody else has to end. */
static void a_device_that_is_closed_holds_up_nobody(void)
{
	aclrtStream stream = stream_of_device_0(), waiting;
	aclrtStreamStatus status;
	pthread_t thread;
	aclrtEvent event;
	int i;

	fake_second = true;
	fake_capacity = 8 * GIB;
	keep_busy(stream);
	CHECK_EQ(aclrtCreateEvent(&event), 0);
	CHECK_EQ(aclrtRecordEvent(event, stream), 0);
	CHECK_EQ(aclrtSetDevice(1), 0);
	CHECK_EQ(aclrtCreateStream(&waiting), 0);
	CHECK_EQ(aclrtStreamWaitEvent(waiting, event), 0);
	CHECK_EQ(pthread_create(&thread, NULL, reset_device_1, NULL), 0);
	usleep(100000);
	for (i = 0; i < 2; i++) {
		CHECK_EQ(aclrtSetDevice(i), 0);
		acl_delete(acl_new(100, 0));
	}
	CHECK_EQ(aclrtStreamQuery(stream, &status), 0);
	CHECK_EQ(status, ACL_STREAM_STATUS_NOT_READY);
	CHECK_EQ(aclrtDestroyStreamForce(stream), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
}
#endif

/**
 * struct worker - a thread at work on a device that others close
 * @thread: it
 * @begun: it is at work
 * @ends: it is to end
 */
struct worker {
	pthread_t thread;
	bool begun;
	bool ends;
};

/* Any of these may come too late for memory, whose bytes are not touched, or a stream. */
static void work_a_little(void)
{
	aclrtDrvMemHandle handle;
	aclrtPtrAttributes attributes;
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_NORMAL,
		.location.type = ACL_MEM_LOCATION_TYPE_DEVICE,
	};
	size_t free_bytes, total;
	void *p, *host;
	aclrtEvent event;

	CHECK_EQ(aclrtMalloc(&p, 5000, 0), 0);
	CHECK_EQ(aclrtMallocHost(&host, 5000), 0);
	CHECK_EQ(aclrtCreateEvent(&event), 0);
	aclrtRecordEvent(event, NULL);
	CHECK_EQ(aclrtSynchronizeEvent(event), 0);
	CHECK_EQ(aclrtSynchronizeStream(NULL), 0);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
	aclrtMemFlush(p, 5000);
	aclrtPointerGetAttributes(p, &attributes);
	aclrtFree(p);
	aclrtFreeHost(host);
	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total), 0);
	CHECK_EQ(aclrtMallocPhysical(&handle, 4096, &prop, 0), 0);
	aclrtFreePhysical(handle);
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	while (!__atomic_load_n(&worker->ends, __ATOMIC_RELAXED)) {
		work_a_little();
		__atomic_store_n(&worker->begun, true, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void a_device_is_closed_while_others_are_at_work(void)
{
	struct worker workers[2] = {};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(workers); i++) {
		CHECK_EQ(pthread_create(&workers[i].thread, NULL, work,
					&workers[i]),
			 0);
		while (!__atomic_load_n(&workers[i].begun, __ATOMIC_RELAXED))
			sched_yield();
	}
	for (i = 0; i < RESETS; i++)
		set_and_reset();
	for (i = 0; i < 10; i++)
		set_and_reset_in_a_child();
	for (i = 0; i < ARRAY_SIZE(workers); i++)
		__atomic_store_n(&workers[i].ends, true, __ATOMIC_RELAXED);
	for (i = 0; i < ARRAY_SIZE(workers); i++)
		CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
}

int main(void)
{
	static const struct test tests[] = {
		ROW(devices_are_set_and_reset),
		ROW(finalize_closes_devices_without_init),
		ROW(a_free_opens_no_device),
		ROW(memory_of_other_pools_is_unregistered),
#ifdef FAKE_DEVICE
		ROW(no_error_is_left_where_nothing_failed),
#endif
		ROW(a_device_tells_its_memory),
		ROW(peers_are_other_devices),
		ROW(contexts_keep_a_device_open),
#ifdef FAKE_DEVICE
		ROW(a_device_may_go),
		ROW(memory_stays_until_other_devices_streams_are_done),
		ROW(mapped_memory_stays_until_other_devices_streams_are_done),
		ROW(a_device_is_closed_while_others_have_a_backlog),
		ROW(a_device_is_closed_while_a_stream_is_destroyed),
		ROW(memory_is_unmapped_while_a_stream_is_destroyed),
		ROW(a_device_that_is_closed_holds_up_nobody),
		ROW(a_child_is_forked_while_a_device_is_opened),
#endif
		ROW(a_device_is_closed_while_others_are_at_work),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
