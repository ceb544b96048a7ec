// SPDX-License-Identifier: MIT
/*
 * Query: find the memory that a pointer points to.
 *
 * It is memory of a device in a pool or mapped at reserved addresses, memory of the host,
 * or memory that the front-end does not know.
 */
#include <string.h>

#include "acl/call.h"
#include "acl/device.h"
#include "acl/error.h"
#include "acl/map.h"
#include "acl/query.h"
#include "acl/record.h"
#include "pool/list.h"

/* Host memory of the process: an allocation, registered memory, or memory of the program. */
static const char *host_check(struct acl_side *side, size_t count)
{
	bool registered;
	size_t room;

	if (!acl_has_hosts() ||
	    !accmem_acl_record_find_host(side->pointer, &room, &registered))
		return NULL;
	side->known = count <= room;
	side->registered = registered && side->known;
	/* the program may have registered a part of its memory */
	return side->known || registered ? NULL :
					   "not all of the memory is allocated";
}

static const char *side_check(struct acl_side *side, const void *pointer,
			      size_t count)
{
	size_t offset;
	int covered;

	*side = (struct acl_side){ .pointer = (unsigned char *)pointer };
	covered = accmem_acl_reserved_covers(pointer, count);
	if (!covered)
		return "addresses that have no memory";
	side->device = covered > 0;
	if (side->device)
		return NULL;
	if (accmem_acl_device_find_block(pointer, &side->block)) {
		side->block.pool = NULL;
		return accmem_pool_has_address(pointer) ?
			       "no allocation is there" :
			       host_check(side, count);
	}
	offset = side->pointer - (unsigned char *)side->block.pointer;
	/* bytes behind the usable length belong to no allocation */
	if (offset > side->block.usable ||
	    count > side->block.usable - offset ||
	    accmem_acl_record_is_freed(side->block.pointer))
		return "not all of the memory is allocated";
	side->device = side->block.kind == ACCMEM_KIND_DEVICE;
	return NULL;
}

aclError accmem_acl_side_lookup(struct acl_side *side, const void *pointer,
				size_t count)
{
	const char *wrong = side_check(side, pointer, count);

	return wrong ? accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID, wrong) :
		       ACL_SUCCESS;
}

bool accmem_acl_side_is_known(const struct acl_side *side)
{
	return side->device || side->block.pool || side->known;
}

/* Device and CPU caches are coherent: only check the request. */
static aclError check_cached(void *devPtr, size_t size)
{
	struct acl_side side;
	aclError error;

	if (!devPtr || !size)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "devPtr is NULL, or size 0");
	accmem_acl_call_begin();
	error = accmem_acl_side_lookup(&side, devPtr, size);
	accmem_acl_call_end();
	if (!error && !accmem_acl_side_is_known(&side))
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "no allocation is there");
	return error;
}

aclError aclrtMemFlush(void *devPtr, size_t size)
{
	return check_cached(devPtr, size);
}

aclError aclrtMemInvalidate(void *devPtr, size_t size)
{
	return check_cached(devPtr, size);
}

static void set_location(aclrtPtrAttributes *attributes,
			 aclrtMemLocationType type, int32_t id)
{
	attributes->location.type = type;
	attributes->location.id = id;
}

static void fill_attributes(const void *ptr, aclrtPtrAttributes *attributes)
{
	struct acl_side side;

	if (side_check(&side, ptr, 1)) {
		set_location(attributes, ACL_MEM_LOCATION_TYPE_UNREGISTERED, 0);
		return;
	}
	if (side.block.page_size)
		attributes->pageSize = side.block.page_size;
	if (side.device)
		set_location(attributes, ACL_MEM_LOCATION_TYPE_DEVICE,
			     side.block.pool ?
				     accmem_acl_device_of(side.block.pool) :
				     accmem_acl_reserved_device(ptr));
	else if (!accmem_acl_side_is_known(&side))
		set_location(attributes, ACL_MEM_LOCATION_TYPE_UNREGISTERED, 0);
}

aclError aclrtPointerGetAttributes(const void *ptr,
				   aclrtPtrAttributes *attributes)
{
	if (!ptr || !attributes)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "ptr or attributes is NULL");
	memset(attributes, 0, sizeof(*attributes));
	attributes->pageSize = ACL_PAGE;
	accmem_acl_call_begin();
	fill_attributes(ptr, attributes);
	accmem_acl_call_end();
	return ACL_SUCCESS;
}

#define MEM_TYPES \
	(ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_DVPP | ACL_RT_MEM_TYPE_RSVD)

static bool is_device(const void *pointer)
{
	struct acl_side side;

	return !side_check(&side, pointer, 1) && side.device;
}

/* All memory of a device has one type. */
aclError aclrtCheckMemType(void **addrList, uint32_t size, uint32_t memType,
			   uint32_t *checkResult, uint32_t reserve)
{
	bool matches = memType & ACL_RT_MEM_TYPE_DEV;
	uint32_t i;

	if (!addrList || !checkResult)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM, "NULL");
	*checkResult = 0;
	if (!size || memType & ~MEM_TYPES || reserve)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "no addresses, or no such type");
	accmem_acl_call_begin();
	for (i = 0; i < size && matches; i++)
		matches = is_device(addrList[i]);
	accmem_acl_call_end();
	*checkResult = matches;
	return ACL_SUCCESS;
}
