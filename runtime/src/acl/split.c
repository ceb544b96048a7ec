// SPDX-License-Identifier: MIT
/* Splitting an allocation into segments by the rules of aclrtMalloc() (A12). */
#include <acl/accmem_acl.h>
#include <stdlib.h>
#include <string.h>

#include "acl/error.h"

#define UNIT 32
#define ALIGNMENT 64

size_t accmem_acl_segment_size(size_t length)
{
	size_t size;

	if (!length ||
	    __builtin_add_overflow((length - 1) / UNIT * UNIT, 2 * UNIT, &size))
		return 0;
	return size;
}

/* Offset of the segment after a segment of @length bytes at @offset; 0: it overflows. */
static size_t split_next(size_t offset, size_t length)
{
	size_t size = accmem_acl_segment_size(length), end;

	if (!size || __builtin_add_overflow(offset, size, &end) ||
	    __builtin_add_overflow(end, ALIGNMENT - 1, &end))
		return 0;
	return end / ALIGNMENT * ALIGNMENT;
}

aclError accmem_acl_divide(void *base, size_t size,
			   struct accmem_acl_segment *segments, size_t count,
			   size_t *needed)
{
	size_t first = -(uintptr_t)base % ALIGNMENT;
	size_t offset = first, end = first, i;

	if (count && !segments)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM, "NULL");
	for (i = 0; i < count; i++) {
		end = offset + accmem_acl_segment_size(segments[i].length);
		offset = split_next(offset, segments[i].length);
		if (!offset)
			return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
					       "a length of 0, or too large");
	}
	if (needed)
		*needed = count ? end : 0;
	if (!base)
		return ACL_SUCCESS;
	if (count && end > size)
		return accmem_acl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				       "the segments do not fit");
	for (i = 0, offset = first; i < count; i++) {
		segments[i].start = (char *)base + offset;
		offset = split_next(offset, segments[i].length);
	}
	return ACL_SUCCESS;
}

static int by_start(const void *left, const void *right)
{
	const struct accmem_acl_segment *a =
		*(struct accmem_acl_segment **)left;
	const struct accmem_acl_segment *b =
		*(struct accmem_acl_segment **)right;

	return ((uintptr_t)a->start > (uintptr_t)b->start) -
	       ((uintptr_t)a->start < (uintptr_t)b->start);
}

static aclError check_one(void *base, size_t size,
			  const struct accmem_acl_segment *segment)
{
	size_t bytes = accmem_acl_segment_size(segment->length);
	size_t offset = (uintptr_t)segment->start - (uintptr_t)base;

	if (!segment->length)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "a length of 0");
	if ((uintptr_t)segment->start % ALIGNMENT)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "a start that is no multiple of 64");
	if (!bytes || offset > size || bytes > size - offset)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "a segment outside the allocation");
	return ACL_SUCCESS;
}

/*
 * Index of the first segment, in the caller's order, whose start lies in a segment before
 * it in order of addresses; or @count.
 */
static size_t find_overlap(const struct accmem_acl_segment **sorted,
			   const struct accmem_acl_segment *first, size_t count)
{
	uintptr_t start, last = 0, end;
	size_t i, bad = count;

	for (i = 0; i < count; i++) {
		start = (uintptr_t)sorted[i]->start;
		if (start < last && (size_t)(sorted[i] - first) < bad)
			bad = sorted[i] - first;
		end = start + accmem_acl_segment_size(sorted[i]->length);
		if (last < end)
			last = end;
	}
	return bad;
}

aclError accmem_acl_check(void *base, size_t size,
			  const struct accmem_acl_segment *segments,
			  size_t count, size_t *bad)
{
	const struct accmem_acl_segment **sorted;
	aclError error = ACL_SUCCESS;
	size_t i;

	if (!base || (count && !segments))
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM, "NULL");
	for (i = 0; i < count && !error; i++)
		error = check_one(base, size, &segments[i]);
	if (error && bad)
		*bad = i - 1;
	if (error || !count)
		return error;

	sorted = calloc(count, sizeof(*sorted));
	if (!sorted)
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	for (i = 0; i < count; i++)
		sorted[i] = &segments[i];
	qsort(sorted, count, sizeof(*sorted), by_start);
	i = find_overlap(sorted, segments, count);
	free(sorted);
	if (i == count)
		return ACL_SUCCESS;
	if (bad)
		*bad = i;
	return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID, "segments overlap");
}
