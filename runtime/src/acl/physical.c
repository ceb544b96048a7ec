// SPDX-License-Identifier: MIT
/*
 * The calls of the ACL front-end that allocate memory without an address.
 *
 * A handle is memory of a device, allocated from its pool. map.c maps it in reservations.
 *
 * A child of fork() inherits the handles. When the parent frees one, the child may be
 * given its device address for other memory. handle_is_valid() finds that out, and the
 * calls refuse the handle then.
 *
 * Locking: accmem_acl_map_lock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "acl/call.h"
#include "acl/device.h"
#include "acl/error.h"
#include "acl/locks.h"
#include "acl/physical.h"
#include "acl/share.h"
#include "core/util.h"
#include "pool/direct.h"
#include "pool/pool.h"

/* Protected by accmem_acl_map_lock. */
static struct acl_handle *handles;

/* Do [@a, @a + @a_size) and [@b, @b + @b_size) overlap? */
static bool overlaps(const void *a, size_t a_size, const void *b, size_t b_size)
{
	return (uintptr_t)a - (uintptr_t)b < b_size ||
	       (uintptr_t)b - (uintptr_t)a < a_size;
}

struct acl_handle *accmem_acl_handle_at(const unsigned char *pointer)
{
	struct acl_handle *h;

	for (h = handles; h; h = h->next)
		if (h->at && !h->hidden &&
		    (uintptr_t)pointer - (uintptr_t)h->at < h->size)
			return h;
	return NULL;
}

struct acl_handle *accmem_acl_handle_overlapping(const void *pointer,
						 size_t size)
{
	struct acl_handle *h;

	for (h = handles; h; h = h->next)
		if (h->at && overlaps(h->at, h->size, pointer, size))
			return h;
	return NULL;
}

static bool handle_is_valid(const struct acl_handle *h)
{
	return h->process == getpid() ||
	       accmem_pool_direct_is_inherited(h->device->pool, h->pointer);
}

struct acl_handle *accmem_acl_handle_find(aclrtDrvMemHandle handle)
{
	struct acl_handle *h;

	for (h = handles; h && h != handle; h = h->next)
		;
	return h && !h->hidden && handle_is_valid(h) ? h : NULL;
}

/* Release the memory. A child only drops its record of the parent's memory. */
static void handle_release(struct acl_handle *h)
{
	if (h->number && !h->imported)
		accmem_acl_share_remove(h->number);
	if (h->process == getpid())
		accmem_pool_release(h->device->pool, h->pointer);
	else
		accmem_pool_direct_drop_inherited(h->device->pool, h->pointer);
	free(h);
}

/* Bytes of a page; 0: memory of a device cannot be allocated with the attribute. */
static uint64_t page_of(aclrtMemAttr attr)
{
	switch (attr) {
	case ACL_HBM_MEM_NORMAL:
	case ACL_MEM_NORMAL:
	case ACL_MEM_P2P_NORMAL:
		return ACL_PAGE;
	case ACL_HBM_MEM_HUGE:
	case ACL_MEM_HUGE:
	case ACL_MEM_P2P_HUGE:
		return ACL_HUGE_PAGE;
	case ACL_HBM_MEM_HUGE1G:
	case ACL_MEM_HUGE1G:
	case ACL_MEM_P2P_HUGE1G:
		return 1ull << 30;
	default:
		return 0;
	}
}

static aclError check_prop(const aclrtPhysicalMemProp *prop)
{
	if (prop && (prop->location.type == ACL_MEM_LOCATION_TYPE_HOST ||
		     prop->location.type == ACL_MEM_LOCATION_TYPE_HOST_NUMA))
		return accmem_acl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				       "memory without an address is the device's");
	if (!prop || prop->handleType != ACL_MEM_HANDLE_TYPE_NONE ||
	    prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED ||
	    prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE ||
	    !page_of(prop->memAttr) || prop->reserve)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "no such properties of memory");
	return ACL_SUCCESS;
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
					  aclrtMemGranularityOptions option,
					  size_t *granularity)
{
	aclError error = check_prop(prop);

	if (error)
		return error;
	if (!granularity || (int)option < 0 ||
	    option > ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "NULL, or no such option");
	*granularity = page_of(prop->memAttr);
	return ACL_SUCCESS;
}

static int handle_allocate(struct acl_handle *h,
			   const aclrtPhysicalMemProp *prop)
{
	struct accmem_pool_request req = {
		.length = h->size,
		.alignment = ACL_PAGE,
		/* a buffer of its own, which can be mapped elsewhere, and exported */
		.exportable = 1,
	};
	uint64_t page = page_of(prop->memAttr);
	int ret;

	req.page_policy = page == ACL_PAGE	? ACCMEM_PAGE_NORMAL_ONLY :
			  page == ACL_HUGE_PAGE ? ACCMEM_PAGE_HUGE_FIRST :
						  ACCMEM_PAGE_HUGE1G_ONLY;
	ret = accmem_pool_allocate(h->device->pool, &req);
	h->pointer = req.pointer;
	return ret;
}

static aclError handle_create(struct acl_handle *h,
			      const aclrtPhysicalMemProp *prop)
{
	aclError error;
	int ret;

	h->device = accmem_acl_device_open(prop->location.id, &error);
	if (!h->device)
		return error;
	ret = handle_allocate(h, prop);
	if (ret)
		return accmem_acl_error(ret);
	pthread_mutex_lock(&accmem_acl_map_lock);
	h->next = handles;
	handles = h;
	pthread_mutex_unlock(&accmem_acl_map_lock);
	return ACL_SUCCESS;
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
			     const aclrtPhysicalMemProp *prop, uint64_t flags)
{
	aclError error = check_prop(prop);
	struct acl_handle *h;

	if (error)
		return error;
	if (!handle || !size || size % page_of(prop->memAttr) || flags)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "NULL, no such size, or flags");
	h = calloc(1, sizeof(*h));
	if (!h)
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	h->size = size;
	h->process = getpid();
	accmem_acl_call_begin();
	error = handle_create(h, prop);
	accmem_acl_call_end();
	if (error)
		free(h);
	else
		*handle = h;
	return error;
}

/* Export a handle. Only the process that has allocated it may do so, and only once. */
static aclError export_locked(aclrtDrvMemHandle handle, bool any,
			      uint64_t *number)
{
	struct acl_handle *h = accmem_acl_handle_find(handle);
	int fd, ret;

	if (!h || h->process != getpid())
		return accmem_acl_fail(ACL_ERROR_RT_INVALID_HANDLE,
				       "no such memory of this process");
	if (h->number)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "exported before, or imported");
	ret = accmem_pool_export(h->device->pool, h->pointer, h->size, 0, &fd);
	if (ret)
		return accmem_acl_error(ret == -ENOTTY ? -EOPNOTSUPP : ret);
	ret = accmem_acl_share_add(fd, any, &h->number);
	if (ret)
		accmem_close_locked(fd);
	else
		*number = h->number;
	return accmem_acl_failed("export of the memory", ret);
}

aclError accmem_acl_handle_export(aclrtDrvMemHandle handle, bool any,
				  uint64_t *number)
{
	aclError error;

	pthread_mutex_lock(&accmem_acl_map_lock);
	error = export_locked(handle, any, number);
	pthread_mutex_unlock(&accmem_acl_map_lock);
	return error;
}

/* Add an imported handle. Return false if this process has a handle of the same number. */
static bool add_imported(struct acl_handle *h)
{
	const struct acl_handle *other;

	pthread_mutex_lock(&accmem_acl_map_lock);
	for (other = handles; other; other = other->next)
		if (other->imported && other->number == h->number &&
		    other->process == h->process)
			break;
	if (!other) {
		h->next = handles;
		handles = h;
	}
	pthread_mutex_unlock(&accmem_acl_map_lock);
	return !other;
}

/* EEXIST: with identity translation, memory can be in a context only once. */
static aclError import_failed(int error)
{
	if (error == -EEXIST)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "imported before, and not freed");
	if (error == -EXDEV || error == -ENOTTY)
		error = -EOPNOTSUPP;
	return accmem_acl_error(error);
}

static aclError handle_import(struct acl_handle *h, int32_t device, int fd)
{
	aclError error;
	int ret;

	h->device = accmem_acl_device_open(device, &error);
	if (!h->device)
		return error;
	ret = accmem_pool_import(h->device->pool, fd, 0, 0, &h->pointer);
	if (ret)
		return import_failed(ret);
	h->size = accmem_pool_usable_size(h->device->pool, h->pointer);
	if (add_imported(h))
		return ACL_SUCCESS;
	accmem_pool_release(h->device->pool, h->pointer);
	return import_failed(-EEXIST);
}

aclError accmem_acl_handle_import(int32_t device, int fd, uint64_t number,
				  aclrtDrvMemHandle *handle)
{
	struct acl_handle *h = calloc(1, sizeof(*h));
	aclError error;

	if (!h)
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	h->process = getpid();
	h->number = number;
	h->imported = true;
	error = handle_import(h, device, fd);
	if (error)
		free(h);
	else
		*handle = h;
	return error;
}

static void handle_unlink(struct acl_handle *h)
{
	struct acl_handle **link;

	for (link = &handles; *link != h; link = &(*link)->next)
		;
	*link = h->next;
}

static aclError handle_free(aclrtDrvMemHandle handle)
{
	aclError error = ACL_SUCCESS;
	struct acl_handle *h;
	bool stays = false;

	pthread_mutex_lock(&accmem_acl_map_lock);
	h = accmem_acl_handle_find(handle);
	if (!h)
		error = accmem_acl_fail(ACL_ERROR_RT_INVALID_HANDLE,
					"no such memory");
	else if (h->retained)
		stays = h->retained--;
	else if (h->at)
		error = accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
					"the memory is mapped");
	else
		handle_unlink(h);
	pthread_mutex_unlock(&accmem_acl_map_lock);
	if (error || stays)
		return error;
	handle_release(h);
	return ACL_SUCCESS;
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle)
{
	aclError error;

	if (!handle)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "handle is NULL");
	accmem_acl_call_begin();
	error = handle_free(handle);
	accmem_acl_call_end();
	return error;
}

int accmem_acl_handle_map(struct acl_handle *h, unsigned char *target)
{
	struct accmem_context *ctx = h->device->ctx;
	struct accmem_query query;
	void *pointer;
	int ret;

	ret = accmem_get_query(ctx,
			       accmem_pool_address(h->device->pool, h->pointer),
			       &query);
	if (ret)
		return ret;
	pointer = mmap(NULL, h->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       accmem_fd(ctx), query.mmap_offset);
	if (pointer == MAP_FAILED)
		return -errno;
	if (mremap(pointer, h->size, h->size, MREMAP_MAYMOVE | MREMAP_FIXED,
		   target) == MAP_FAILED) {
		ret = -errno;
		munmap(pointer, h->size);
		/* the kernel may have unmapped the target before it failed */
		mmap(target, h->size, PROT_NONE,
		     ACL_RESERVED_FLAGS | MAP_FIXED_NOREPLACE, -1, 0);
		return ret;
	}
	h->at = target;
	return 0;
}

aclError accmem_acl_handle_unmap(struct acl_handle *h)
{
	if (mmap(h->at, h->size, PROT_NONE, ACL_RESERVED_FLAGS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		return accmem_acl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				       "the kernel cannot unmap it");
	h->at = NULL;
	return ACL_SUCCESS;
}

bool accmem_acl_handles_hide(struct acl_device *device)
{
	bool mapped = false;
	struct acl_handle *h;

	pthread_mutex_lock(&accmem_acl_map_lock);
	for (h = handles; h; h = h->next) {
		if (h->device != device)
			continue;
		h->hidden = true;
		mapped |= !!h->at;
	}
	pthread_mutex_unlock(&accmem_acl_map_lock);
	return mapped;
}

void accmem_acl_handles_free(struct acl_device *device)
{
	struct acl_handle *h, *next;

	pthread_mutex_lock(&accmem_acl_map_lock);
	for (h = handles; h; h = next) {
		next = h->next;
		if (h->device != device)
			continue;
		if (h->at)
			accmem_acl_handle_unmap(h);
		handle_unlink(h);
		handle_release(h);
	}
	pthread_mutex_unlock(&accmem_acl_map_lock);
}

aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle)
{
	struct acl_handle *h;

	if (!virPtr || !handle)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "virPtr or handle is NULL");
	pthread_mutex_lock(&accmem_acl_map_lock);
	h = accmem_acl_handle_at(virPtr);
	if (h && h->retained < UINT_MAX)
		h->retained++;
	else
		h = NULL;
	pthread_mutex_unlock(&accmem_acl_map_lock);
	if (!h)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "no memory is mapped there");
	*handle = h;
	return ACL_SUCCESS;
}
