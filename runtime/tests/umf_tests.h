/* SPDX-License-Identifier: MIT */
/* What the test programs of the provider for the Unified Memory Framework share. */
#ifndef ACCMEM_RUNTIME_UMF_TESTS_H
#define ACCMEM_RUNTIME_UMF_TESTS_H

#include <accmem_umf.h>

#include "test.h"
#ifdef FAKE_DEVICE
#include "fake_device.h"
#endif

#define MIB 1048576ull

#if UMF_MINOR == 10
#define umf_ops_free ext.free
#else
#define umf_ops_free free
#endif
#if UMF_MINOR >= 100
#define umf_ops_split ext_allocation_split
#define umf_ops_merge ext_allocation_merge
#define umf_ops_ipc(name) ext_##name
#else
#define umf_ops_split ext.allocation_split
#define umf_ops_merge ext.allocation_merge
#define umf_ops_ipc(name) ipc.name
#endif
#ifndef UMF_PROVIDER_OPS_VERSION_CURRENT
#define UMF_PROVIDER_OPS_VERSION_CURRENT UMF_VERSION_CURRENT
#endif

static const umf_memory_provider_ops_t *ops;
static void *provider;

static inline void make_provider(void)
{
	ops = accmem_umf_provider_ops();
	CHECK_EQ(ops->version, UMF_PROVIDER_OPS_VERSION_CURRENT);
	CHECK_EQ(ops->initialize(NULL, &provider), UMF_RESULT_SUCCESS);
}

static inline void *umf_take(size_t size)
{
	void *pointer = NULL;

	ops->alloc(provider, size, 0, &pointer);
	return pointer;
}

static inline int umf_give(void *pointer, size_t size)
{
	return ops->umf_ops_free(provider, pointer, size);
}

static inline umf_result_t umf_split(void *pointer, size_t total, size_t first)
{
	return ops->umf_ops_split(provider, pointer, total, first);
}

static inline umf_result_t umf_merge(void *low, void *high, size_t total)
{
	return ops->umf_ops_merge(provider, low, high, total);
}

#endif /* ACCMEM_RUNTIME_UMF_TESTS_H */
