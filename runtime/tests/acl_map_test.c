// SPDX-License-Identifier: MIT
/*
 * Reserved addresses of the ACL front-end and the memory that is mapped at them, on a
 * device: /dev/accmem0, or the one in $ACCMEM_DEVICE. Built with FAKE_DEVICE it runs on
 * the host over fake_device.c instead.
 */
#define _GNU_SOURCE
#include <accmem.h>
#include <stdint.h>
#include <stdlib.h>

#include "acl_tests.h"

static aclrtPhysicalMemProp prop_of(aclrtMemAttr attr)
{
	const aclrtPhysicalMemProp prop = {
		.memAttr = attr,
		.location.type = ACL_MEM_LOCATION_TYPE_DEVICE,
	};

	return prop;
}

static void memory_is_mapped_at_reserved_addresses(void)
{
	aclrtPhysicalMemProp prop = prop_of(ACL_HBM_MEM_NORMAL);
	aclrtDrvMemHandle a, b;
	void *r;
	char *p;

	CHECK_EQ(aclrtReserveMemAddress(&r, 4 * MIB, 0, NULL, 1), 0);
	CHECK_EQ((uintptr_t)r % (2 * MIB), 0);
	p = r;
	CHECK_EQ(aclrtMallocPhysical(&a, 64 * KIB, &prop, 0), 0);
	CHECK_EQ(aclrtMallocPhysical(&b, 64 * KIB, &prop, 0), 0);
	CHECK_EQ(aclrtMemset(p, 1, 0, 1), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMapMem(p, 64 * KIB, 0, a, 0), 0);
	CHECK_EQ(aclrtMapMem(p + 64 * KIB, 64 * KIB, 0, b, 0), 0);
	CHECK_EQ(aclrtMemset(p, 128 * KIB, 6, 128 * KIB), 0);
	CHECK_EQ(byte_at(p + 128 * KIB - 1), 6);
	CHECK_EQ(aclrtMemset(p, 128 * KIB + 1, 6, 128 * KIB + 1),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtReleaseMemAddress(r), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtFreePhysical(a), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtUnmapMem(p + 4096), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtUnmapMem(p), 0);
	CHECK_EQ(aclrtUnmapMem(p), ACL_ERROR_RT_PARAM_INVALID);
	/* the memory keeps what is in it from one address to the next */
	CHECK_EQ(aclrtMapMem(p + MIB, 64 * KIB, 0, a, 0), 0);
	CHECK_EQ(byte_at(p + MIB), 6);
	CHECK_EQ(aclrtUnmapMem(p + MIB), 0);
	CHECK_EQ(aclrtUnmapMem(p + 64 * KIB), 0);
	CHECK_EQ(aclrtFreePhysical(a), 0);
	CHECK_EQ(aclrtFreePhysical(a), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtFreePhysical(b), 0);
	CHECK_EQ(aclrtReleaseMemAddress(r), 0);
	CHECK_EQ(aclrtReleaseMemAddress(r), ACL_ERROR_RT_PARAM_INVALID);
}

static void reserve_and_map_check_their_arguments(void)
{
	const aclrtMemGranularityOptions least =
		ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM;
	aclrtPhysicalMemProp prop = prop_of(ACL_HBM_MEM_HUGE);
	aclrtDrvMemHandle h;
	size_t granularity;
	void *r;

	CHECK_EQ(aclrtReserveMemAddress(NULL, MIB, 0, NULL, 0),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtReserveMemAddress(&r, 0, 0, NULL, 0),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtReserveMemAddress(&r, MIB, 3, NULL, 0),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtReserveMemAddress(&r, MIB, 0, NULL, 2),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtReserveMemAddress(&r, SIZE_MAX / 2 + 1, 0, NULL, 0),
		 ACL_ERROR_RT_MEMORY_ALLOCATION);
	CHECK_EQ(aclrtReserveMemAddress(&r, MIB, 0, NULL, 0), 0);
	CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, least, &granularity),
		 0);
	CHECK_EQ(granularity, 2 * MIB);
	CHECK_EQ(aclrtMallocPhysical(&h, MIB, &prop, 0),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMallocPhysical(&h, 2 * MIB, NULL, 0),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMallocPhysical(&h, 2 * MIB, &prop, 1),
		 ACL_ERROR_INVALID_PARAM);
	prop.location.type = ACL_MEM_LOCATION_TYPE_HOST;
	CHECK_EQ(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0),
		 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	CHECK_EQ(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0), 0);
	/* there are not so many addresses */
	CHECK_EQ(aclrtMapMem(r, 2 * MIB, 0, h, 0), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMapMem(r, MIB, 0, h, 0), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMapMem(r, MIB, 0, r, 0), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtMapMem(r, MIB, 0, NULL, 0), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtFreePhysical(NULL), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMapMem(r, MIB, 4096, h, 0), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtFreePhysical(h), 0);
	CHECK_EQ(aclrtReleaseMemAddress(r), 0);
}

/* 0: memory of a device is never allocated with the attribute. */
static const size_t granularities[] = {
	[ACL_HBM_MEM_NORMAL] = 4 * KIB, [ACL_MEM_NORMAL] = 4 * KIB,
	[ACL_MEM_P2P_NORMAL] = 4 * KIB, [ACL_HBM_MEM_HUGE] = 2 * MIB,
	[ACL_MEM_HUGE] = 2 * MIB,	[ACL_MEM_P2P_HUGE] = 2 * MIB,
	[ACL_HBM_MEM_HUGE1G] = GIB,	[ACL_MEM_HUGE1G] = GIB,
	[ACL_MEM_P2P_HUGE1G] = GIB,	[ACL_MEM_P2P_HUGE1G + 1] = 0,
};

static void an_attribute_names_a_page(void)
{
	const aclrtMemGranularityOptions least =
		ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM;
	aclrtPhysicalMemProp prop;
	aclrtDrvMemHandle h;
	size_t i, size;

	for (i = 0; i < ARRAY_SIZE(granularities); i++) {
		prop = prop_of((aclrtMemAttr)i);
		size = granularities[i];
		if (!size) {
			CHECK_EQ(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0),
				 ACL_ERROR_INVALID_PARAM);
			CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, least,
								  &size),
				 ACL_ERROR_INVALID_PARAM);
			continue;
		}
		CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, least, &size),
			 0);
		CHECK_EQ(size, granularities[i]);
		if (size == GIB)
			continue;
		CHECK_EQ(aclrtMallocPhysical(&h, size, &prop, 0), 0);
		CHECK_EQ(aclrtFreePhysical(h), 0);
	}
	prop = prop_of(ACL_MEM_NORMAL);
	prop.location.type = ACL_MEM_LOCATION_TYPE_HOST_NUMA;
	CHECK_EQ(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0),
		 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	prop.location.type = ACL_MEM_LOCATION_TYPE_MANAGED;
	CHECK_EQ(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0),
		 ACL_ERROR_INVALID_PARAM);
}

/**
 * struct target - what is to be mapped, and where
 * @at: where
 * @handle: what
 */
struct target {
	void *at;
	aclrtDrvMemHandle handle;
};

static void map_target(void *argument)
{
	const struct target *t = argument;

	CHECK_EQ(aclrtMapMem(t->at, 64 * KIB, 0, t->handle, 0),
		 ACL_ERROR_RT_MEMORY_ALLOCATION);
}

static void what_cannot_be_mapped_is_told_in_words(void)
{
	aclrtPhysicalMemProp prop = prop_of(ACL_HBM_MEM_NORMAL);
	struct target t;

	CHECK_EQ(aclrtReserveMemAddress(&t.at, 4 * MIB, 0, NULL, 1), 0);
	CHECK_EQ(aclrtMallocPhysical(&t.handle, 64 * KIB, &prop, 0), 0);
	CHECK(!aclGetRecentErrMsg());
	call_without_mappings(map_target, &t);
	CHECK(aclGetRecentErrMsg());
	CHECK_EQ(aclrtMapMem(t.at, 64 * KIB, 0, t.handle, 0), 0);
	CHECK_EQ(aclrtUnmapMem(t.at), 0);
	CHECK_EQ(aclrtFreePhysical(t.handle), 0);
	CHECK_EQ(aclrtReleaseMemAddress(t.at), 0);
}

#ifndef FAKE_DEVICE
#define PIECES_MAX 4096

/* Take all memory in pieces of 1 MiB, and release every other one. */
static struct accmem_context *take_every_other_mib(void)
{
	static uint64_t pieces[PIECES_MAX];
	struct accmem_context *ctx;
	size_t n = 0, i;

	CHECK_EQ(accmem_open(NULL, &ctx), 0);
	while (n < PIECES_MAX && !accmem_malloc(ctx, MIB, &pieces[n]))
		n++;
	CHECK(n < PIECES_MAX);
	for (i = 0; i < n; i += 2)
		CHECK_EQ(accmem_release(ctx, pieces[i]), 0);
	return ctx;
}

/* With identity translation, memory in pieces is of no use to any allocation. */
static void memory_in_pieces_serves_all_allocations(void)
{
	aclrtPhysicalMemProp prop = prop_of(ACL_HBM_MEM_NORMAL);
	struct accmem_context *ctx = take_every_other_mib();
	aclrtDrvMemHandle handle;
	void *p, *read_only;

	if (!aclrtMalloc(&p, 8 * MIB, ACL_MEM_MALLOC_NORMAL_ONLY)) {
		CHECK_EQ(aclrtMallocPhysical(&handle, 8 * MIB, &prop, 0), 0);
		read_only =
			acl_new(8 * MIB, ACL_MEM_ACCESS_USER_SPACE_READONLY);
		CHECK_EQ(aclrtMemset(read_only, 8 * MIB, 1, 8 * MIB), 0);
		CHECK_EQ(byte_at((char *)read_only + 8 * MIB - 1), 1);
		acl_delete(read_only);
		CHECK_EQ(aclrtFreePhysical(handle), 0);
		acl_delete(p);
	}
	accmem_close(ctx);
}
#endif

int main(void)
{
	static const struct test tests[] = {
		ROW(memory_is_mapped_at_reserved_addresses),
		ROW(reserve_and_map_check_their_arguments),
		ROW(an_attribute_names_a_page),
		ROW(what_cannot_be_mapped_is_told_in_words),
#ifndef FAKE_DEVICE
		ROW(memory_in_pieces_serves_all_allocations),
#endif
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
