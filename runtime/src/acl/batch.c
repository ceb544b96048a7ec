// SPDX-License-Identifier: MIT
/*
 * Batches of copies of the ACL front-end, between the host and devices.
 *
 * An attribute gives the location of both sides, for all copies from its index up to the
 * index of the next attribute. All copies are compared with their attributes first.
 */
#include <stdbool.h>

#include "acl/error.h"

/**
 * struct batch - the arguments of a call
 *
 * The members are as in aclrtMemcpyBatchAsync().
 */
struct batch {
	void **dsts;
	size_t *max;
	void **srcs;
	size_t *sizes;
	size_t count;
	aclrtMemcpyBatchAttr *attrs;
	size_t *indexes;
	size_t nr_attrs;
	size_t *fail_index;
};

static aclError batch_wrong(const char *text)
{
	return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID, text);
}

static bool attr_is_reserved(const aclrtMemcpyBatchAttr *attr)
{
	size_t i;

	for (i = 0; i < sizeof(attr->rsv); i++)
		if (attr->rsv[i])
			return true;
	return false;
}

static aclError batch_check(const struct batch *b)
{
	size_t i;

	if (!b->dsts || !b->max || !b->srcs || !b->attrs || !b->indexes)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM, "NULL");
	for (i = 0; i < b->count; i++)
		if (b->max[i] < b->sizes[i])
			return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
					       "a size is above its maximum");
	for (i = 0; i < b->nr_attrs; i++)
		if (attr_is_reserved(&b->attrs[i]))
			return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
					       "reserved bytes are not 0");
	if (!b->nr_attrs || b->nr_attrs > b->count || b->indexes[0])
		return batch_wrong("no such number of attributes, or index");
	for (i = 1; i < b->nr_attrs; i++)
		if (b->indexes[i] <= b->indexes[i - 1] ||
		    b->indexes[i] >= b->count)
			return batch_wrong("indexes do not rise");
	return ACL_SUCCESS;
}

static bool is_host(const aclrtMemLocation *location)
{
	return location->type == ACL_MEM_LOCATION_TYPE_HOST ||
	       location->type == ACL_MEM_LOCATION_TYPE_HOST_NUMA;
}

static bool is_there(const aclrtMemLocation *location, const void *pointer)
{
	aclrtPtrAttributes found;

	return !aclrtPointerGetAttributes(pointer, &found) &&
	       found.location.type == location->type &&
	       found.location.id == location->id;
}

/* Does copy @i agree with its attribute? */
static aclError copy_check(const struct batch *b, size_t i,
			   const aclrtMemcpyBatchAttr *attr)
{
	const bool to_host = is_host(&attr->dstLoc);

	if (!b->dsts[i] || !b->srcs[i] || !b->sizes[i])
		return batch_wrong("NULL, or a size of 0");
	if (to_host == is_host(&attr->srcLoc))
		return batch_wrong("not between the host and a device");
	if (!is_there(to_host ? &attr->srcLoc : &attr->dstLoc,
		      to_host ? b->srcs[i] : b->dsts[i]))
		return batch_wrong("not memory of the attribute's device");
	return ACL_SUCCESS;
}

static aclError copy_start(const struct batch *b, size_t i,
			   const aclrtMemcpyBatchAttr *attr, bool async,
			   aclrtStream stream)
{
	const aclrtMemcpyKind kind = is_host(&attr->dstLoc) ?
					     ACL_MEMCPY_DEVICE_TO_HOST :
					     ACL_MEMCPY_HOST_TO_DEVICE;

	return async ? aclrtMemcpyAsync(b->dsts[i], b->max[i], b->srcs[i],
					b->sizes[i], kind, stream) :
		       aclrtMemcpy(b->dsts[i], b->max[i], b->srcs[i],
				   b->sizes[i], kind);
}

/* Check all copies, or start them. */
static aclError batch_each(const struct batch *b, bool start, bool async,
			   aclrtStream stream)
{
	const aclrtMemcpyBatchAttr *attr = b->attrs;
	aclError error;
	size_t i;

	for (i = 0; i < b->count; i++) {
		if (attr + 1 < b->attrs + b->nr_attrs &&
		    b->indexes[attr + 1 - b->attrs] == i)
			attr++;
		error = start ? copy_start(b, i, attr, async, stream) :
				copy_check(b, i, attr);
		if (error) {
			*b->fail_index = i;
			return error;
		}
	}
	return ACL_SUCCESS;
}

static aclError batch_run(const struct batch *b, bool async, aclrtStream stream)
{
	aclError error;
	size_t i;

	if (!b->fail_index || !b->sizes || !b->count)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "NULL, or no copies");
	*b->fail_index = SIZE_MAX;
	for (i = 0; i < b->count && !b->sizes[i]; i++)
		;
	if (i == b->count)
		return ACL_SUCCESS;
	error = batch_check(b);
	if (!error)
		error = batch_each(b, false, async, stream);
	return error ? error : batch_each(b, true, async, stream);
}

aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs,
			  size_t *sizes, size_t numBatches,
			  aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
			  size_t numAttrs, size_t *failIndex)
{
	const struct batch b = { dsts,	       destMaxs,   srcs,
				 sizes,	       numBatches, attrs,
				 attrsIndexes, numAttrs,   failIndex };

	return batch_run(&b, false, NULL);
}

aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs,
			       size_t *sizes, size_t numBatches,
			       aclrtMemcpyBatchAttr *attrs,
			       size_t *attrsIndexes, size_t numAttrs,
			       size_t *failIndex, aclrtStream stream)
{
	const struct batch b = { dsts,	       destMaxs,   srcs,
				 sizes,	       numBatches, attrs,
				 attrsIndexes, numAttrs,   failIndex };

	return batch_run(&b, true, stream);
}
