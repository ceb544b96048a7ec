// SPDX-License-Identifier: MIT
/*
 * The calls of the ACL front-end that reserve addresses and map memory.
 *
 * A reservation is a range of the process's addresses, outside of the window. A handle is
 * memory of a device, allocated from its pool. A call maps a handle in a reservation.
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
#include <sys/mman.h>
#include <unistd.h>

#include "acl/call.h"
#include "acl/device.h"
#include "acl/error.h"
#include "acl/locks.h"
#include "acl/map.h"
#include "acl/share.h"
#include "acl/stream.h"
#include "core/util.h"
#include "pool/direct.h"
#include "pool/pool.h"

#define RESERVED_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

/**
 * struct reservation - a range of reserved addresses
 * @start: first address
 * @size: bytes
 * @next: next in @reservations
 */
struct reservation {
	unsigned char *start;
	size_t size;
	struct reservation *next;
};

/**
 * struct handle - memory that can be mapped in a reservation
 * @device: device of the memory
 * @process: process that allocated the memory
 * @pointer: pointer of the allocation in the device's pool
 * @size: bytes
 * @at: address where the memory is mapped, or NULL
 * @retained: number of references besides the first
 * @number: shareable handle, if the memory was exported or imported; else 0
 * @imported: the memory was imported
 * @hidden: the device is being closed: no lookup finds the handle
 * @next: next in @handles
 */
struct handle {
	struct acl_device *device;
	pid_t process;
	void *pointer;
	size_t size;
	unsigned char *at;
	unsigned int retained;
	uint64_t number;
	bool imported;
	bool hidden;
	struct handle *next;
};

/* Protected by accmem_acl_map_lock. */
static struct reservation *reservations;
static struct handle *handles;

/* Do [@a, @a + @a_size) and [@b, @b + @b_size) overlap? */
static bool overlaps(const void *a, size_t a_size, const void *b, size_t b_size)
{
	return (uintptr_t)a - (uintptr_t)b < b_size ||
	       (uintptr_t)b - (uintptr_t)a < a_size;
}

static struct reservation *reservation_of(const void *pointer)
{
	struct reservation *r;

	for (r = reservations; r; r = r->next)
		if ((uintptr_t)pointer - (uintptr_t)r->start < r->size)
			return r;
	return NULL;
}

static struct handle *handle_at(const unsigned char *pointer)
{
	struct handle *h;

	for (h = handles; h; h = h->next)
		if (h->at && !h->hidden &&
		    (uintptr_t)pointer - (uintptr_t)h->at < h->size)
			return h;
	return NULL;
}

static struct handle *handle_overlapping(const void *pointer, size_t size)
{
	struct handle *h;

	for (h = handles; h; h = h->next)
		if (h->at && overlaps(h->at, h->size, pointer, size))
			return h;
	return NULL;
}

static bool handle_is_valid(const struct handle *h)
{
	return h->process == getpid() ||
	       accmem_pool_direct_is_inherited(h->device->pool, h->pointer);
}

static struct handle *handle_find(aclrtDrvMemHandle handle)
{
	struct handle *h;

	for (h = handles; h && h != handle; h = h->next)
		;
	return h && !h->hidden && handle_is_valid(h) ? h : NULL;
}

/* Release the memory. A child only drops its record of the parent's memory. */
static void handle_release(struct handle *h)
{
	if (h->number && !h->imported)
		accmem_acl_share_remove(h->number);
	if (h->process == getpid())
		accmem_pool_release(h->device->pool, h->pointer);
	else
		accmem_pool_direct_drop_inherited(h->device->pool, h->pointer);
	free(h);
}

static int covers_locked(const unsigned char *pointer, size_t count)
{
	const struct handle *h;
	size_t here;

	if (!reservation_of(pointer))
		return -1;
	do {
		h = handle_at(pointer);
		if (!h)
			return 0;
		here = h->size - (pointer - h->at);
		here = here < count ? here : count;
		pointer += here;
		count -= here;
	} while (count);
	return 1;
}

int accmem_acl_reserved_covers(const void *pointer, size_t count)
{
	int ret;

	pthread_mutex_lock(&accmem_acl_map_lock);
	ret = covers_locked(pointer, count);
	pthread_mutex_unlock(&accmem_acl_map_lock);
	return ret;
}

int32_t accmem_acl_reserved_device(const void *pointer)
{
	const struct handle *h;
	int32_t id;

	pthread_mutex_lock(&accmem_acl_map_lock);
	h = handle_at(pointer);
	id = h ? h->device->id : -1;
	pthread_mutex_unlock(&accmem_acl_map_lock);
	return id;
}

/* Reserve aligned addresses, at @expected if these are free. */
static unsigned char *reserve(size_t size, size_t alignment, void *expected)
{
	unsigned char *all;
	size_t head;

	if (expected && (uintptr_t)expected % alignment == 0) {
		all = mmap(expected, size, PROT_NONE,
			   RESERVED_FLAGS | MAP_FIXED_NOREPLACE, -1, 0);
		if (all == expected)
			return all;
		if (all != MAP_FAILED)
			munmap(all, size);
	}
	if (size > SIZE_MAX - alignment)
		return NULL;
	all = mmap(NULL, size + alignment, PROT_NONE, RESERVED_FLAGS, -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	head = -(uintptr_t)all & (alignment - 1);
	if (head)
		munmap(all, head);
	munmap(all + head + size, alignment - head);
	return all + head;
}

aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment,
				void *expectPtr, uint64_t flags)
{
	struct reservation *r;

	if (!virPtr || !size || size > SIZE_MAX - ACL_HUGE_PAGE || flags > 1 ||
	    alignment & (alignment - 1))
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "NULL, or no such size, alignment or flag");
	if (alignment < ACL_PAGE)
		alignment = alignment ? ACL_PAGE : ACL_HUGE_PAGE;
	r = calloc(1, sizeof(*r));
	if (!r)
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	r->size = (size + ACL_PAGE - 1) & -ACL_PAGE;
	r->start = reserve(r->size, alignment, expectPtr);
	if (!r->start) {
		free(r);
		return accmem_acl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				       "not so many addresses are free");
	}
	pthread_mutex_lock(&accmem_acl_map_lock);
	r->next = reservations;
	reservations = r;
	pthread_mutex_unlock(&accmem_acl_map_lock);
	*virPtr = r->start;
	return ACL_SUCCESS;
}

aclError aclrtReleaseMemAddress(void *virPtr)
{
	struct reservation **link, *r;

	if (!virPtr)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "virPtr is NULL");
	pthread_mutex_lock(&accmem_acl_map_lock);
	for (link = &reservations; *link && (*link)->start != virPtr;
	     link = &(*link)->next)
		;
	r = *link;
	if (r && handle_overlapping(r->start, r->size))
		r = NULL;
	if (r) {
		*link = r->next;
		munmap(r->start, r->size);
	}
	pthread_mutex_unlock(&accmem_acl_map_lock);
	free(r);
	return r ? ACL_SUCCESS :
		   accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				   "not reserved, or something is mapped there");
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

static int handle_allocate(struct handle *h, const aclrtPhysicalMemProp *prop)
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

static aclError handle_create(struct handle *h,
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
	struct handle *h;

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
	struct handle *h = handle_find(handle);
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
static bool add_imported(struct handle *h)
{
	const struct handle *other;

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

static aclError handle_import(struct handle *h, int32_t device, int fd)
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
	struct handle *h = calloc(1, sizeof(*h));
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

static void handle_unlink(struct handle *h)
{
	struct handle **link;

	for (link = &handles; *link != h; link = &(*link)->next)
		;
	*link = h->next;
}

static aclError handle_free(aclrtDrvMemHandle handle)
{
	aclError error = ACL_SUCCESS;
	struct handle *h;
	bool stays = false;

	pthread_mutex_lock(&accmem_acl_map_lock);
	h = handle_find(handle);
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

/* Map the pages of @h at @target, over a reservation. */
static int handle_map(struct handle *h, unsigned char *target)
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
		return ret;
	}
	h->at = target;
	return 0;
}

static aclError map_locked(unsigned char *target, size_t size,
			   aclrtDrvMemHandle handle)
{
	struct reservation *r = reservation_of(target);
	struct handle *h = handle_find(handle);

	if (!h)
		return accmem_acl_fail(ACL_ERROR_RT_INVALID_HANDLE,
				       "no such memory");
	if (size != h->size || h->at)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "not all of the memory, or mapped already");
	if (!r || size > r->size - (target - r->start) ||
	    handle_overlapping(target, size))
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "not reserved, or in use");
	return accmem_acl_failed("mapping of the memory",
				 handle_map(h, target));
}

aclError aclrtMapMem(void *virPtr, size_t size, size_t offset,
		     aclrtDrvMemHandle handle, uint64_t flags)
{
	aclError error;

	if (!virPtr || !handle || !size || (uintptr_t)virPtr % ACL_PAGE ||
	    offset || flags)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "NULL, no such size, an offset, or flags");
	pthread_mutex_lock(&accmem_acl_map_lock);
	error = map_locked(virPtr, size, handle);
	pthread_mutex_unlock(&accmem_acl_map_lock);
	return error;
}

static aclError handle_unmap(struct handle *h)
{
	if (mmap(h->at, h->size, PROT_NONE, RESERVED_FLAGS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		return accmem_acl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				       "the kernel cannot unmap it");
	h->at = NULL;
	return ACL_SUCCESS;
}

static aclError unmap_locked(void *virPtr)
{
	struct handle *h = handle_at(virPtr);

	if (!h || h->at != virPtr)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "nothing is mapped there");
	return handle_unmap(h);
}

aclError aclrtUnmapMem(void *virPtr)
{
	aclError error;

	if (!virPtr)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "virPtr is NULL");
	/* mapped memory is not held: all streams may have work on it */
	error = accmem_acl_streams_wait(NULL);
	if (error)
		return error;
	pthread_mutex_lock(&accmem_acl_map_lock);
	error = unmap_locked(virPtr);
	pthread_mutex_unlock(&accmem_acl_map_lock);
	return error;
}

bool accmem_acl_handles_hide(struct acl_device *device)
{
	bool mapped = false;
	struct handle *h;

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
	struct handle *h, *next;

	pthread_mutex_lock(&accmem_acl_map_lock);
	for (h = handles; h; h = next) {
		next = h->next;
		if (h->device != device)
			continue;
		if (h->at)
			handle_unmap(h);
		handle_unlink(h);
		handle_release(h);
	}
	pthread_mutex_unlock(&accmem_acl_map_lock);
}

aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle)
{
	struct handle *h;

	if (!virPtr || !handle)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "virPtr or handle is NULL");
	pthread_mutex_lock(&accmem_acl_map_lock);
	h = handle_at(virPtr);
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

/* Mapped memory is always readable and writable for both sides: only check the request. */
aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc,
			   size_t count)
{
	size_t i;

	if (!virPtr || !size || !desc || !count)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM, "NULL, or 0");
	for (i = 0; i < count; i++) {
		if (desc[i].location.type != ACL_MEM_LOCATION_TYPE_HOST &&
		    desc[i].location.type != ACL_MEM_LOCATION_TYPE_DEVICE)
			return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
					       "no such location");
		if (desc[i].flags != ACL_RT_MEM_ACCESS_FLAGS_READWRITE)
			return accmem_acl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
					       "mapped to read and write");
	}
	if (accmem_acl_reserved_covers(virPtr, size) != 1)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "not all has memory mapped");
	return ACL_SUCCESS;
}
