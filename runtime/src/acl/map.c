// SPDX-License-Identifier: MIT
/*
 * The calls of the ACL front-end that reserve addresses and map memory there.
 *
 * A reservation is a range of the process's addresses, outside of the window. A call maps
 * a handle (physical.c) in a reservation.
 *
 * Locking: accmem_acl_map_lock.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "acl/error.h"
#include "acl/locks.h"
#include "acl/map.h"
#include "acl/physical.h"
#include "acl/stream.h"

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

/* Protected by accmem_acl_map_lock. */
static struct reservation *reservations;

static struct reservation *reservation_of(const void *pointer)
{
	struct reservation *r;

	for (r = reservations; r; r = r->next)
		if ((uintptr_t)pointer - (uintptr_t)r->start < r->size)
			return r;
	return NULL;
}

static int covers_locked(const unsigned char *pointer, size_t count)
{
	const struct acl_handle *h;
	size_t here;

	if (!reservation_of(pointer))
		return -1;
	do {
		h = accmem_acl_handle_at(pointer);
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
	const struct acl_handle *h;
	int32_t id;

	pthread_mutex_lock(&accmem_acl_map_lock);
	h = accmem_acl_handle_at(pointer);
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
			   ACL_RESERVED_FLAGS | MAP_FIXED_NOREPLACE, -1, 0);
		if (all == expected)
			return all;
		if (all != MAP_FAILED)
			munmap(all, size);
	}
	if (size > SIZE_MAX - alignment)
		return NULL;
	all = mmap(NULL, size + alignment, PROT_NONE, ACL_RESERVED_FLAGS, -1,
		   0);
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
	if (r && accmem_acl_handle_overlapping(r->start, r->size))
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

static aclError map_locked(unsigned char *target, size_t size,
			   aclrtDrvMemHandle handle)
{
	struct reservation *r = reservation_of(target);
	struct acl_handle *h = accmem_acl_handle_find(handle);

	if (!h)
		return accmem_acl_fail(ACL_ERROR_RT_INVALID_HANDLE,
				       "no such memory");
	if (size != h->size || h->at)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "not all of the memory, or mapped already");
	if (!r || size > r->size - (target - r->start) ||
	    accmem_acl_handle_overlapping(target, size))
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "not reserved, or in use");
	return accmem_acl_failed("mapping of the memory",
				 accmem_acl_handle_map(h, target));
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

static aclError unmap_locked(void *virPtr)
{
	struct acl_handle *h = accmem_acl_handle_at(virPtr);

	if (!h || h->at != virPtr)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "nothing is mapped there");
	return accmem_acl_handle_unmap(h);
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
