/* SPDX-License-Identifier: MIT */
/* What the test programs of the ACL front-end share. */
#ifndef ACCMEM_RUNTIME_ACL_TESTS_H
#define ACCMEM_RUNTIME_ACL_TESTS_H

#include <acl/acl.h>

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
#endif /* ACCMEM_RUNTIME_ACL_TESTS_H */
