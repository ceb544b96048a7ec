/* SPDX-License-Identifier: MIT */
/* What the test programs of the ACL front-end share. */
#ifndef ACCMEM_RUNTIME_ACL_TESTS_H
#define ACCMEM_RUNTIME_ACL_TESTS_H

#include <acl/acl.h>
#include <sys/resource.h>

#include "test.h"
#ifdef FAKE_DEVICE
#include "fake_device.h"
#endif

#define KIB 1024ull
#define MIB 1048576ull
#define GIB (1024 * MIB)

static inline void *acl_new(size_t size, int policy)
{
	void *p = NULL;

	CHECK_EQ(aclrtMalloc(&p, size, (aclrtMemMallocPolicy)policy), 0);
	CHECK(p);
	return p;
}

static inline void acl_delete(void *p)
{
	CHECK_EQ(aclrtFree(p), 0);
}
/* A byte of memory, as the interface shows it. */
static inline unsigned char byte_at(const void *p)
{
	unsigned char byte;

	CHECK_EQ(aclrtMemcpy(&byte, 1, p, 1, ACL_MEMCPY_DEVICE_TO_HOST), 0);
	return byte;
}

/* More than a stream does until the test ends. */
static inline void keep_busy(aclrtStream stream)
{
	char *d = acl_new(8 * MIB, 0);
	int i;

	for (i = 0; i < 10000; i++)
		CHECK_EQ(aclrtMemsetAsync(d, 8 * MIB, i, 8 * MIB, stream), 0);
	CHECK_EQ(aclrtFree(d), 0);
}

/* Calls @call with @argument, while nothing of the device can be mapped. */
static inline void call_without_mappings(void (*call)(void *argument),
					 void *argument)
{
#ifdef FAKE_DEVICE
	fake_fail_mmap = true;
	call(argument);
	fake_fail_mmap = false;
#else
	struct rlimit before, none;

	CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
	none = (struct rlimit){ .rlim_max = before.rlim_max };
	CHECK_EQ(setrlimit(RLIMIT_AS, &none), 0);
	call(argument);
	CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
#endif
}

#endif /* ACCMEM_RUNTIME_ACL_TESTS_H */
