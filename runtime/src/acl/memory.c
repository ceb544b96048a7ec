// SPDX-License-Identifier: MIT
/*
 * Allocation and free of device memory and host memory: aclrtMalloc() and its variants.
 *
 * Locking: the records have a lock of their own (record.c).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "acl/call.h"
#include "acl/device.h"
#include "acl/error.h"
#include "acl/record.h"
#include "acl/stream.h"
#include "pool/pool.h"

#define HINTS                                                         \
	(ACL_MEM_TYPE_LOW_BAND_WIDTH | ACL_MEM_TYPE_HIGH_BAND_WIDTH | \
	 ACL_MEM_ACCESS_USER_SPACE_READONLY)

/* A policy with both hints is not in the enumeration, and has no meaning. */
static bool has_meaning(uint32_t policy)
{
	const uint32_t bands = ACL_MEM_TYPE_LOW_BAND_WIDTH |
			       ACL_MEM_TYPE_HIGH_BAND_WIDTH;

	return (policy & bands) != bands;
}

/* A5, A13: choose the driver's page policy for a policy of ACL. */
static void set_policy(struct accmem_pool_request *req, uint32_t policy)
{
	switch (has_meaning(policy) ? policy & ~(uint32_t)HINTS : policy) {
	case ACL_MEM_MALLOC_HUGE_FIRST:
	case ACL_MEM_MALLOC_HUGE_FIRST_P2P:
		req->page_policy = ACCMEM_PAGE_HUGE_FIRST;
		break;
	case ACL_MEM_MALLOC_HUGE_ONLY:
	case ACL_MEM_MALLOC_HUGE_ONLY_P2P:
		/* with POPULATE, missing pages are an error here and not a SIGBUS later */
		req->page_policy = ACCMEM_PAGE_HUGE_ONLY;
		req->flags |= ACCMEM_ALLOC_POPULATE;
		break;
	case ACL_MEM_MALLOC_NORMAL_ONLY:
	case ACL_MEM_MALLOC_NORMAL_ONLY_P2P:
		req->page_policy = ACCMEM_PAGE_NORMAL_ONLY;
		break;
	case ACL_MEM_MALLOC_HUGE1G_ONLY:
	case ACL_MEM_MALLOC_HUGE1G_ONLY_P2P:
		req->page_policy = ACCMEM_PAGE_HUGE1G_ONLY;
		req->flags |= ACCMEM_ALLOC_POPULATE;
		break;
	default:
		req->page_policy = req->length >= ACL_HUGE_PAGE ?
					   ACCMEM_PAGE_HUGE_FIRST :
					   ACCMEM_PAGE_NORMAL_ONLY;
	}
}

static aclError enter_read_only(struct acl_device *device, void *pointer)
{
	if (accmem_acl_record_add_read_only(pointer, device->pool))
		return ACL_SUCCESS;
	accmem_pool_release(device->pool, pointer);
	return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
}

/* A hint matters only on a device with several carveouts. Elsewhere it costs nothing. */
static void set_hint(const struct acl_device *device,
		     struct accmem_pool_request *req, uint32_t policy)
{
	const uint32_t low = policy & ACL_MEM_TYPE_LOW_BAND_WIDTH;
	const uint32_t high = policy & ACL_MEM_TYPE_HIGH_BAND_WIDTH;

	if (device->nr_carveouts < 2 || !low == !high)
		return;
	req->flags |= low ? ACCMEM_ALLOC_LOW_BANDWIDTH :
			    ACCMEM_ALLOC_HIGH_BANDWIDTH;
}

static aclError allocate_on(struct acl_device *device, void **devPtr,
			    size_t size, uint32_t policy, uint32_t flags)
{
	const bool read_only = has_meaning(policy) &&
			       policy & ACL_MEM_ACCESS_USER_SPACE_READONLY;
	struct accmem_pool_request req = { .length = size, .flags = flags };
	aclError error;
	int ret;

	set_policy(&req, policy);
	set_hint(device, &req, policy);
	/* pages of its own, which no other allocation maps writable */
	if (read_only)
		req.alignment = ACL_PAGE;
	ret = read_only ? accmem_pool_allocate_buffer(device->pool, &req) :
			  accmem_pool_allocate(device->pool, &req);
	if (ret)
		return accmem_acl_error(ret);
	acl_drop_inherited(req.pointer);
	if (read_only) {
		error = enter_read_only(device, req.pointer);
		if (error)
			return error;
	}
	*devPtr = req.pointer;
	return ACL_SUCCESS;
}

static aclError allocate(void **devPtr, size_t size, uint32_t policy,
			 uint32_t flags)
{
	struct acl_device *device;
	aclError error;

	if (!devPtr || !size)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       devPtr ? "size is 0" : "devPtr is NULL");
	if (size > SIZE_MAX - (flags & ACCMEM_ALLOC_TAIL32 ? 64 : 32))
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "size overflows when it is rounded");
	accmem_acl_call_begin();
	device = accmem_acl_device_current(&error);
	if (device)
		error = allocate_on(device, devPtr, size, policy, flags);
	accmem_acl_call_end();
	return error;
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	return allocate(devPtr, size, policy,
			ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32);
}

aclError aclrtMallocAlign32(void **devPtr, size_t size,
			    aclrtMemMallocPolicy policy)
{
	return allocate(devPtr, size, policy, ACCMEM_ALLOC_ROUND32);
}

aclError aclrtMallocCached(void **devPtr, size_t size,
			   aclrtMemMallocPolicy policy)
{
	return aclrtMalloc(devPtr, size, policy);
}

static aclError free_in(struct accmem_pool *pool, void *pointer)
{
	return accmem_pool_release(pool, pointer) ? accmem_acl_error(-EINVAL) :
						    ACL_SUCCESS;
}

static aclError free_device(void *devPtr)
{
	struct accmem_pool_block block;
	struct acl_device *device = accmem_acl_device_opened();
	int ret;

	if (acl_is_host_start(devPtr))
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "memory of the host");
	ret = acl_has_records() ? accmem_acl_record_free_held(devPtr) : 0;
	if (ret)
		return ret > 0 ? ACL_SUCCESS :
				 accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
						 "freed already");
	if (device && accmem_pool_address(device->pool, devPtr))
		return free_in(device->pool, devPtr);
	if (accmem_acl_device_find_block(devPtr, &block))
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "no allocation is there");
	return free_in(block.pool, devPtr);
}

aclError aclrtFree(void *devPtr)
{
	aclError error;

	if (!devPtr)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "devPtr is NULL");
	accmem_acl_call_begin();
	error = free_device(devPtr);
	accmem_acl_call_end();
	return error;
}

/* Anonymous memory of the process, for a device without host memory. */
static int host_map(void **pointer, size_t size)
{
	if (size > SIZE_MAX - ACL_PAGE)
		return -ENOMEM;
	*pointer = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return *pointer == MAP_FAILED ? -ENOMEM : 0;
}

static int host_allocate(struct accmem_pool_request *req, void **pointer,
			 struct accmem_pool **pool)
{
	const aclError last = aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL);
	struct acl_device *device;
	aclError error;
	int ret;

	device = accmem_acl_device_current(&error);
	/* not an error of the caller: there is other memory */
	if (!device)
		accmem_acl_restore_error(last);
	if (device && device->has_host) {
		ret = accmem_pool_allocate(device->pool, req);
		*pointer = req->pointer;
		*pool = device->pool;
		if (ret != -EOPNOTSUPP)
			return ret;
	}
	*pool = NULL;
	ret = host_map(pointer, req->length);
	if (ret)
		accmem_set_last_error("allocation of %zu bytes of host memory: %s",
				      (size_t)req->length, strerror(-ret));
	return ret;
}

static void host_free(void *pointer, size_t size, struct accmem_pool *pool)
{
	if (pool)
		accmem_pool_release(pool, pointer);
	else
		munmap(pointer, size);
}

static aclError allocate_host(void **hostPtr, size_t size)
{
	struct accmem_pool_request req = { .length = size,
					   .alignment = ACL_PAGE,
					   .kind = ACCMEM_KIND_HOST,
					   .mapped = 1 };
	struct accmem_pool *pool;
	void *pointer;
	int ret;

	ret = host_allocate(&req, &pointer, &pool);
	if (ret)
		return accmem_acl_error(ret);
	acl_drop_inherited(pointer);
	if (!accmem_acl_record_add_host(pointer, size, pool)) {
		host_free(pointer, size, pool);
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	}
	*hostPtr = pointer;
	return ACL_SUCCESS;
}

aclError aclrtMallocHost(void **hostPtr, size_t size)
{
	aclError error;

	if (!hostPtr || !size)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       hostPtr ? "size is 0" :
						 "hostPtr is NULL");
	accmem_acl_call_begin();
	error = allocate_host(hostPtr, size);
	accmem_acl_call_end();
	return error;
}

/* Memory of the process is not held: all streams may have work on it. */
static aclError free_host_of_process(void *hostPtr)
{
	aclError error = accmem_acl_streams_wait(NULL);
	struct acl_record found;

	if (error)
		return error;
	found = accmem_acl_record_take_host(hostPtr, true);
	if (found.pointer)
		munmap(hostPtr, found.size);
	return ACL_SUCCESS;
}

aclError aclrtFreeHost(void *hostPtr)
{
	struct acl_record found;

	if (!hostPtr)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "hostPtr is NULL");
	accmem_acl_call_begin();
	found = accmem_acl_record_take_host(hostPtr, false);
	if (found.pool && accmem_acl_record_free_held(hostPtr) <= 0)
		accmem_pool_release(found.pool, hostPtr);
	accmem_acl_call_end();
	if (!found.pointer)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "no memory of the host is there");
	return found.pool ? ACL_SUCCESS : free_host_of_process(hostPtr);
}

aclError aclrtFreeWithDevSync(void *devPtr)
{
	aclError error = aclrtSynchronizeDevice();

	return error ? error : aclrtFree(devPtr);
}

aclError aclrtFreeHostWithDevSync(void *hostPtr)
{
	aclError error = aclrtSynchronizeDevice();

	return error ? error : aclrtFreeHost(hostPtr);
}
