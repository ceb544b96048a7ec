// SPDX-License-Identifier: MIT
/*
 * What the ACL front-end says of pointers, free memory, errors and itself, and the calls
 * of programs that share memory or configure it, on a device: /dev/accmem0, or the one in
 * $ACCMEM_DEVICE. Built with FAKE_DEVICE it runs on the host over fake_device.c instead.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "acl_tests.h"

static int location_of(const void *p)
{
	aclrtPtrAttributes attributes;

	memset(&attributes, 0xff, sizeof(attributes));
	CHECK_EQ(aclrtPointerGetAttributes(p, &attributes), 0);
	CHECK(attributes.pageSize >= 4096);
	CHECK_EQ(attributes.location.id, 0);
	CHECK_EQ(attributes.rsv[0] | attributes.rsv[3], 0);
	return attributes.location.type;
}

static void pointers_have_a_location(void)
{
	char *d = acl_new(4096, 0), local;
	aclrtPtrAttributes attributes;
	void *h;

	CHECK_EQ(location_of(d), ACL_MEM_LOCATION_TYPE_DEVICE);
	CHECK_EQ(location_of(d + 4095), ACL_MEM_LOCATION_TYPE_DEVICE);
	CHECK_EQ(location_of(&local), ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	CHECK_EQ(aclrtMallocHost(&h, 10000), 0);
	CHECK_EQ(location_of(h), ACL_MEM_LOCATION_TYPE_HOST);
	CHECK_EQ(location_of((char *)h + 9999), ACL_MEM_LOCATION_TYPE_HOST);
	/* behind the allocation may be memory of others */
	CHECK_EQ(aclrtMemset(h, 40000, 1, 40000), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemcpy(d, 4096, (char *)h + 9000, 4096,
			     ACL_MEMCPY_HOST_TO_DEVICE),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtFreeHost(h), 0);
	CHECK_EQ(location_of(h), ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	acl_delete(d);
	CHECK_EQ(location_of(d), ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	CHECK_EQ(aclrtPointerGetAttributes(NULL, &attributes),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtPointerGetAttributes(d, NULL), ACL_ERROR_INVALID_PARAM);
}

static char registered[64 * KIB];

static void registered_memory_is_memory_of_both_sides(void)
{
	char *d = acl_new(1000, 0), *p = registered + 100;
	void *q = NULL;

	CHECK_EQ(aclrtHostRegister(p, 1000, ACL_HOST_REGISTER_MAPPED, &q), 0);
	CHECK(q == p);
	CHECK_EQ(location_of(p), ACL_MEM_LOCATION_TYPE_HOST);
	CHECK_EQ(location_of(p + 999), ACL_MEM_LOCATION_TYPE_HOST);
	CHECK_EQ(location_of(p + 1000), ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	memset(p, 5, 1000);
	CHECK_EQ(aclrtMemcpy(d, 1000, q, 1000, ACL_MEMCPY_DEVICE_TO_DEVICE), 0);
	memset(p, 6, 1000);
	CHECK_EQ(aclrtMemcpy(q, 1000, d, 1000, ACL_MEMCPY_DEVICE_TO_HOST), 0);
	CHECK_EQ(p[999], 5);
	CHECK_EQ(aclrtMemcpy(d, 1000, p, 1000, ACL_MEMCPY_DEVICE_TO_HOST),
		 ACL_ERROR_RT_PARAM_INVALID);
	q = NULL;
	CHECK_EQ(aclrtHostGetDevicePointer(p + 5, &q, 0), 0);
	CHECK(q == p + 5);
	CHECK_EQ(aclrtFreeHost(p), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtHostUnregister(p + 5),
		 ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	CHECK_EQ(aclrtHostUnregister(p), 0);
	CHECK_EQ(aclrtHostUnregister(p), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	CHECK_EQ(location_of(p), ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	CHECK_EQ(aclrtMemcpy(d, 1, p, 1, ACL_MEMCPY_DEVICE_TO_DEVICE),
		 ACL_ERROR_RT_PARAM_INVALID);
	acl_delete(d);
}

static int is_late, may_end;

/* Ends when it may, or after 50 ms, or 20 s if it is given a pointer. */
static void be_late(void *patient)
{
	int left = patient ? 2000 : 5;

	while (left-- && !__atomic_load_n(&may_end, __ATOMIC_ACQUIRE))
		usleep(10000);
	__atomic_store_n(&is_late, 1, __ATOMIC_RELEASE);
}

/* Does an asynchronous copy of registered memory and what follows wait for the stream? */
static bool copy_waits(char *d, size_t registered_bytes, void *patient)
{
	aclrtStream stream;
	bool waits;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	CHECK_EQ(aclrtHostRegisterV2(registered, registered_bytes, 0), 0);
	__atomic_store_n(&is_late, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&may_end, 0, __ATOMIC_RELEASE);
	CHECK_EQ(aclrtLaunchHostFunc(stream, be_late, patient), 0);
	CHECK_EQ(aclrtMemcpyAsync(d, 8192, registered, 8192,
				  ACL_MEMCPY_HOST_TO_DEVICE, stream),
		 0);
	waits = __atomic_load_n(&is_late, __ATOMIC_ACQUIRE);
	__atomic_store_n(&may_end, 1, __ATOMIC_RELEASE);
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	CHECK_EQ(aclrtHostUnregister(registered), 0);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	return waits;
}

/* The program may change, or free, memory that it has not registered. */
static void a_part_that_is_registered_does_not_stand_for_all(void)
{
	char *d = acl_new(8192, 0);

	CHECK(copy_waits(d, 4096, NULL));
	CHECK(!copy_waits(d, 8192, d));
	acl_delete(d);
}

static void registrations_are_checked(void)
{
	char *d = acl_new(1000, 0), *p = registered;
	void *h, *q;

	CHECK_EQ(aclrtHostRegister(NULL, 1, 0, &q), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtHostRegister(p, 0, 0, &q), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtHostRegister(p, 1, 0, NULL), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtHostRegister(p, UINT64_MAX, 0, &q),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtHostRegister(p, 1, (aclrtHostRegisterType)1, &q),
		 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	CHECK_EQ(aclrtHostRegisterV2(p, 1, 1),
		 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	CHECK_EQ(aclrtHostRegister(d, 1000, 0, &q), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMallocHost(&h, 1000), 0);
	CHECK_EQ(aclrtHostRegister(h, 1000, 0, &q),
		 ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	CHECK_EQ(aclrtHostUnregister(h), ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	CHECK_EQ(aclrtHostGetDevicePointer(h, &q, 0),
		 ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);
	CHECK_EQ(aclrtFreeHost(h), 0);
	CHECK_EQ(aclrtHostRegisterV2(p + 100, 100, ACL_HOST_REG_MAPPED), 0);
	CHECK_EQ(aclrtHostRegister(p, 101, 0, &q),
		 ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	CHECK_EQ(aclrtHostRegister(p + 199, 100, 0, &q),
		 ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	CHECK_EQ(aclrtHostRegister(p, 100, 0, &q), 0);
	CHECK_EQ(aclrtHostRegister(p + 200, 100, 0, &q), 0);
	CHECK_EQ(aclrtHostGetDevicePointer(p, &q, 1), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtHostUnregister(NULL), ACL_ERROR_INVALID_PARAM);
	acl_delete(d);
}

/* Of three pages of addresses, the one in the middle has no memory. */
static void only_memory_is_registered(void)
{
	const size_t page = 4096;
	char *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *q;

	CHECK(p != MAP_FAILED);
	CHECK_EQ(munmap(p + page, page), 0);
	CHECK_EQ(aclrtHostRegister(p + page, page, 0, &q),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtHostRegister(p + page - 1, 2, 0, &q),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtHostRegister(p + 100, 2 * page, 0, &q),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtHostRegisterV2(p, 3 * page, ACL_HOST_REG_MAPPED),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtHostRegister((void *)1, UINT64_MAX - 1, 0, &q),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtHostRegister(p + 100, page - 100, 0, &q), 0);
	CHECK_EQ(aclrtHostRegister(p + 2 * page, 1, 0, &q), 0);
	CHECK_EQ(aclrtHostUnregister(p + 100), 0);
	CHECK_EQ(aclrtHostUnregister(p + 2 * page), 0);
}

static void map(void **r, aclrtDrvMemHandle *handle)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_NORMAL,
		.location.type = ACL_MEM_LOCATION_TYPE_DEVICE,
	};

	CHECK_EQ(aclrtReserveMemAddress(r, 128 * KIB, 0, NULL, 0), 0);
	CHECK_EQ(aclrtMallocPhysical(handle, 64 * KIB, &prop, 0), 0);
	CHECK_EQ(aclrtMapMem(*r, 64 * KIB, 0, *handle, 0), 0);
}

static void access_is_of_what_is_mapped(void)
{
	aclrtMemAccessDesc desc = {
		.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE,
		.location.type = ACL_MEM_LOCATION_TYPE_DEVICE,
	};
	aclrtDrvMemHandle handle;
	void *r;

	map(&r, &handle);
	CHECK_EQ(location_of(r), ACL_MEM_LOCATION_TYPE_DEVICE);
	CHECK_EQ(location_of((char *)r + 64 * KIB),
		 ACL_MEM_LOCATION_TYPE_UNREGISTERED);
	CHECK_EQ(aclrtMemSetAccess(r, 64 * KIB, &desc, 1), 0);
	CHECK_EQ(aclrtMemSetAccess(r, 128 * KIB, &desc, 1),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemSetAccess(&r, 1, &desc, 1),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemSetAccess(r, 0, &desc, 1), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemSetAccess(r, 1, NULL, 1), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemSetAccess(r, 1, &desc, 0), ACL_ERROR_INVALID_PARAM);
	desc.flags = ACL_RT_MEM_ACCESS_FLAGS_READ;
	CHECK_EQ(aclrtMemSetAccess(r, 1, &desc, 1),
		 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	desc.location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
	CHECK_EQ(aclrtMemSetAccess(r, 1, &desc, 1), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtUnmapMem(r), 0);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
	CHECK_EQ(aclrtReleaseMemAddress(r), 0);
}

/* what was rounded up behind an allocation cannot be written to */
static void padding_is_no_memory(void)
{
	const size_t size = 300 * MIB + 64 * KIB;
	void *p;
	char *past;

	if (aclrtMalloc(&p, size, ACL_MEM_MALLOC_HUGE_FIRST))
		return;
	past = (char *)p + (size + 64);
	CHECK_EQ(aclrtMemset(past, SIZE_MAX, 0, 64 * MIB),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemFlush(past, 64 * MIB), ACL_ERROR_RT_PARAM_INVALID);
	acl_delete(p);
}

static void a_retained_handle_is_freed_once_more(void)
{
	aclrtDrvMemHandle handle, same = NULL;
	void *r;

	map(&r, &handle);
	CHECK_EQ(aclrtMemRetainAllocationHandle((char *)r + 5, &same), 0);
	CHECK(same == handle);
	CHECK_EQ(aclrtFreePhysical(same), 0);
	CHECK_EQ(aclrtFreePhysical(handle), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemRetainAllocationHandle(r, &same), 0);
	CHECK_EQ(aclrtUnmapMem(r), 0);
	CHECK_EQ(aclrtMemRetainAllocationHandle(r, &same),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemRetainAllocationHandle(r, NULL),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
	CHECK_EQ(aclrtFreePhysical(handle), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtReleaseMemAddress(r), 0);
}

static void allocations_are_configured(void)
{
	aclrtMallocAttribute attributes[2] = {
		{ .attr = ACL_RT_MEM_ATTR_MODULE_ID, .value.moduleId = 33 },
		{ .attr = ACL_RT_MEM_ATTR_DEVICE_ID, .value.deviceId = 0 },
	};
	aclrtMallocConfig cfg = { attributes, 2 };
	void *p;

	CHECK_EQ(aclrtMallocWithCfg(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, NULL),
		 0);
	acl_delete(p);
	CHECK_EQ(aclrtMallocWithCfg(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, &cfg),
		 0);
	CHECK_EQ(aclrtFreeWithDevSync(p), 0);
	CHECK_EQ(aclrtFreeWithDevSync(p), ACL_ERROR_RT_PARAM_INVALID);
	attributes[1].value.deviceId = 1;
	CHECK_EQ(aclrtMallocWithCfg(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, &cfg),
		 ACL_ERROR_INVALID_PARAM);
	attributes[1].attr = ACL_RT_MEM_ATTR_VA_FLAG;
	attributes[1].value.vaFlag = 1;
	CHECK_EQ(aclrtMallocWithCfg(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST, &cfg),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMallocHostWithCfg(&p, 100, &cfg), 0);
	CHECK_EQ(aclrtFreeHostWithDevSync(p), 0);
	CHECK_EQ(aclrtFreeHostWithDevSync(NULL), ACL_ERROR_INVALID_PARAM);
	attributes[1].value.vaFlag = 2;
	CHECK_EQ(aclrtMallocHostWithCfg(&p, 100, &cfg),
		 ACL_ERROR_INVALID_PARAM);
	cfg.attrs = NULL;
	CHECK_EQ(aclrtMallocHostWithCfg(&p, 100, &cfg),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMallocWithCfg(NULL, 100, ACL_MEM_MALLOC_HUGE_FIRST, NULL),
		 ACL_ERROR_INVALID_PARAM);
}

static void mem_info_is_what_can_be_had(void)
{
	size_t before, after, total;
	int attr;
	void *p;

	for (attr = 0; attr < 12; attr++) {
		CHECK_EQ(aclrtGetMemInfo((aclrtMemAttr)attr, &before, &total),
			 0);
		CHECK(before <= total);
	}
	CHECK_EQ(aclrtGetMemInfo((aclrtMemAttr)12, &before, &total),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtGetMemInfo((aclrtMemAttr)(-1), &before, &total),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, NULL, &total),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total), 0);
	p = acl_new(32 * MIB, 0);
	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total), 0);
	CHECK(after <= before - 32 * MIB);
	acl_delete(p);
	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total), 0);
	CHECK(after + 2 * MIB >= before);
}

#ifndef FAKE_DEVICE
#define LIMIT "/sys/module/accmem/parameters/max_bytes_per_context"

static void set_limit(unsigned long long bytes)
{
	FILE *file = fopen(LIMIT, "w");

	CHECK(file);
	fprintf(file, "%llu\n", bytes);
	CHECK_EQ(fclose(file), 0);
}

static void idle_host_memory_is_no_device_memory(void)
{
	static const size_t lengths[] = { 100, 5000, 16 * MIB };
	size_t before, after, total, i;
	void *p[ARRAY_SIZE(lengths)];

	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total), 0);
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		CHECK_EQ(aclrtMallocHost(&p[i], lengths[i]), 0);
	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total), 0);
	CHECK_EQ(after, before);
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		CHECK_EQ(aclrtFreeHost(p[i]), 0);
	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total), 0);
	CHECK_EQ(after, before);
}

static void mem_info_looks_at_limits(void)
{
	size_t before, after, total;
	void *p, *q;

	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total), 0);
	set_limit(64 * MIB);
	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total), 0);
	CHECK_EQ(after, 64 * MIB);
	CHECK_EQ(aclrtMalloc(&p, 65 * MIB, ACL_MEM_MALLOC_HUGE_FIRST),
		 ACL_ERROR_RT_MEMORY_ALLOCATION);
	CHECK(strstr(aclGetRecentErrMsg(), "limit"));
	/* the pool's steps are no larger than what there is */
	p = acl_new(40 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);
	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total), 0);
	CHECK(after <= 24 * MIB);
	q = acl_new(after - 4 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);
	acl_delete(q);
	acl_delete(p);
	set_limit(0);
	CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total), 0);
	CHECK(after >= before);
}
#endif

static void streams_have_a_failure_mode(void)
{
	aclrtStream stream;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	CHECK_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), 0);
	CHECK_EQ(aclrtSetStreamFailureMode(stream, ACL_CONTINUE_ON_FAILURE), 0);
	CHECK_EQ(aclrtSetStreamFailureMode(stream, 2), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtSetStreamFailureMode(NULL, 0), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	CHECK_EQ(aclrtSetStreamFailureMode(stream, 0),
		 ACL_ERROR_RT_INVALID_HANDLE);
}

static void *last_error_of_thread(void *unused)
{
	(void)unused;
	CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
	return NULL;
}

static void the_last_error_is_kept_for_the_thread(void)
{
	const aclrtLastErrLevel level = ACL_RT_THREAD_LEVEL;
	char local, *d = acl_new(100, 0);
	pthread_t thread;
	void *p;

	CHECK_EQ(aclrtGetLastError(level), 0);
	CHECK_EQ(aclrtFree(&local), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
	acl_delete(d);
	CHECK_EQ(pthread_create(&thread, NULL, last_error_of_thread, NULL), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(aclrtPeekAtLastError(level), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMalloc(&p, SIZE_MAX / 2, 0),
		 ACL_ERROR_RT_MEMORY_ALLOCATION);
	CHECK_EQ(aclrtPeekAtLastError(level), ACL_ERROR_RT_MEMORY_ALLOCATION);
	CHECK_EQ(aclrtGetLastError((aclrtLastErrLevel)1),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtGetLastError(level), ACL_ERROR_RT_MEMORY_ALLOCATION);
	CHECK_EQ(aclrtGetLastError(level), 0);
	CHECK_EQ(aclrtSetDevice(63), ACL_ERROR_RT_INVALID_DEVICEID);
	CHECK_EQ(aclrtGetLastError(level), ACL_ERROR_RT_INVALID_DEVICEID);
}

static void types_of_memory_are_checked(void)
{
	const uint32_t dev = ACL_RT_MEM_TYPE_DEV, dvpp = ACL_RT_MEM_TYPE_DVPP;
	void *list[3] = { acl_new(100, 0), acl_new(MIB, 0), registered };
	uint32_t result = 7;

	CHECK_EQ(aclrtCheckMemType(list, 2, dev, &result, 0), 0);
	CHECK_EQ(result, 1);
	CHECK_EQ(aclrtCheckMemType(list, 2, dev | dvpp, &result, 0), 0);
	CHECK_EQ(result, 1);
	CHECK_EQ(aclrtCheckMemType(list, 3, dev, &result, 0), 0);
	CHECK_EQ(result, 0);
	result = 7;
	CHECK_EQ(aclrtCheckMemType(list, 1, dvpp, &result, 0), 0);
	CHECK_EQ(result, 0);
	CHECK_EQ(aclrtCheckMemType(list, 0, dev, &result, 0),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtCheckMemType(list, 1, 1, &result, 0),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtCheckMemType(list, 1, dev, &result, 1),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtCheckMemType(NULL, 1, dev, &result, 0),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtCheckMemType(list, 1, dev, NULL, 0),
		 ACL_ERROR_INVALID_PARAM);
	acl_delete(list[0]);
	CHECK_EQ(aclrtCheckMemType(list, 1, dev, &result, 0), 0);
	CHECK_EQ(result, 0);
	acl_delete(list[1]);
}

static void a_message_is_told_once(void)
{
	int32_t major = 0, minor = 0, patch = -1;

	aclGetRecentErrMsg();
	CHECK(!aclGetRecentErrMsg());
	CHECK_EQ(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
	CHECK(strstr(aclGetRecentErrMsg(), "devPtr is NULL"));
	CHECK(!aclGetRecentErrMsg());
	CHECK_EQ(aclrtGetVersion(&major, &minor, &patch), 0);
	CHECK(major == 1 && minor == 15 && patch == 0);
	CHECK_EQ(aclrtGetVersion(NULL, &minor, &patch),
		 ACL_ERROR_INVALID_PARAM);
}

int main(void)
{
	static const struct test tests[] = {
		ROW(pointers_have_a_location),
		ROW(registered_memory_is_memory_of_both_sides),
		ROW(a_part_that_is_registered_does_not_stand_for_all),
		ROW(registrations_are_checked),
		ROW(only_memory_is_registered),
		ROW(access_is_of_what_is_mapped),
		ROW(padding_is_no_memory),
		ROW(a_retained_handle_is_freed_once_more),
		ROW(allocations_are_configured),
		ROW(mem_info_is_what_can_be_had),
#ifndef FAKE_DEVICE
		ROW(idle_host_memory_is_no_device_memory),
		ROW(mem_info_looks_at_limits),
#endif
		ROW(streams_have_a_failure_mode),
		ROW(the_last_error_is_kept_for_the_thread),
		ROW(types_of_memory_are_checked),
		ROW(a_message_is_told_once),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
